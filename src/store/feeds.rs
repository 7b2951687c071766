//! Threat feeds of a workspace, and which of them forbid redistribution.

pub(super) mod batches;
pub(super) mod choice;
pub(super) mod commit;
pub(super) mod erase;
pub(super) mod hand_ins;
pub(super) mod items;
mod memory;
mod retention;
pub(super) mod rows;
pub(super) mod staging;
pub(super) mod waiting;

use chrono::{DateTime, Utc};
use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use self::batches::{OWN, OWN_FEED, UPDATE, fail, one};
use self::rows::FeedRow;
use super::audit::rows::audit_rows;
use super::connection::error::StoreError;
use super::connection::retry::{with_race_retry, with_retry};
use super::rows::{key, parse, record};
use super::{Store, failed};
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::error::DomainError;
use crate::domain::feed::{Feed, FeedChange, Redistribution};
use crate::domain::principal::Principal;

/// What is said of a pull whose feed was deleted.
pub const DELETED: &str = "the feed was deleted";

/// A feed whose redistribution is not allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockedFeed {
    pub id: Uuid,
    pub name: String,
    pub redistribution: Redistribution,
}

#[derive(Debug, SurrealValue)]
struct BlockedRow {
    id: RecordId,
    name: String,
    redistribution: String,
}

impl Store {
    /// Creates a feed that has never been pulled, with the audit entry of its registration.
    ///
    /// # Errors
    /// A feed with this id exists, or the database failed.
    pub async fn register_feed(&self, ws: Uuid, feed: &Feed, audit: &AuditEntry) -> Result<(), DomainError> {
        let row = FeedRow::new(ws, feed);
        with_race_retry(|| async {
            self.db
                .query("{ INSERT INTO feed $feed RETURN NONE; INSERT $audit RETURN NONE; }")
                .bind(("feed", row.clone()))
                .bind(("audit", audit_rows([audit])))
                .await?
                .check()?;
            Ok(())
        })
        .await
        .map_err(|error: StoreError| error.into_domain("registering the feed failed"))
    }

    /// The feeds of a workspace that are not deleted, by name.
    pub async fn feeds(&self, ws: Uuid) -> Result<Vec<Feed>, DomainError> {
        let what = "reading the feeds failed";
        let query = "SELECT * FROM feed WHERE ws = $ws AND deleted_at = NONE ORDER BY name, id";
        let mut response = self
            .db
            .query(query)
            .bind(("ws", ws))
            .await
            .map_err(failed(what))?;
        let rows: Vec<FeedRow> = response.take(0).map_err(failed(what))?;
        rows.into_iter().map(FeedRow::into_feed).collect()
    }

    /// The feed with this id, if it belongs to the workspace and is not deleted.
    pub async fn feed(&self, ws: Uuid, feed: Uuid) -> Result<Option<Feed>, DomainError> {
        let what = "reading the feed failed";
        let mut response = self
            .db
            .query("SELECT * FROM $feed WHERE ws = $ws AND deleted_at = NONE")
            .bind(("feed", record("feed", feed)))
            .bind(("ws", ws))
            .await
            .map_err(failed(what))?;
        let row: Option<FeedRow> = response.take(0).map_err(failed(what))?;
        row.map(FeedRow::into_feed).transpose()
    }

    /// Changes a feed, with the audit entry.
    ///
    /// # Errors
    /// `NotFound`, or the database failed.
    pub async fn change_feed(
        &self,
        ws: Uuid,
        feed: Uuid,
        change: &FeedChange,
        (now, audit): (DateTime<Utc>, &AuditEntry),
    ) -> Result<Feed, DomainError> {
        with_retry(|| async {
            let tx = self.begin().await?;
            let changed = async {
                let row: FeedRow = one(&tx, ws, OWN_FEED, record("feed", feed), "feed").await?;
                let cursor = row.cursor.clone();
                let mut changed = row.into_feed()?;
                change.apply(&mut changed, now);
                let mut row = FeedRow::new(ws, &changed);
                row.cursor = cursor;
                tx.write(UPDATE, vec![row]).await?;
                tx.audit([audit]).await?;
                Ok(changed)
            };
            let changed = changed.await;
            tx.finish(changed).await
        })
        .await
        .map_err(|error: StoreError| error.into_domain("changing the feed failed"))
    }

    /// Deletes a feed with its address and cursor, and ends its pull, which `ended` then tells about. What it brought
    /// stays, and so do its batches and its redistribution state. Returns the audit entries that were written.
    ///
    /// # Errors
    /// `NotFound`, or the database failed.
    pub async fn delete_feed(
        &self,
        ws: Uuid,
        feed: Uuid,
        by: &Principal,
        now: DateTime<Utc>,
    ) -> Result<Vec<AuditEntry>, DomainError> {
        let deletion = |known: &Feed| {
            AuditEntry::by(by, "feed.delete", "feed", Outcome::Success, now)
                .on(feed)
                .with_text("name", &known.name)
                .with("redistribution_state", known.redistribution_state.as_str())
        };
        let end = |batch: Uuid| {
            AuditEntry::by(by, "feed.pull_failed", "feed_batch", Outcome::Failure, now)
                .on(batch)
                .with("feed_source_id", feed.to_string())
                .with("reason", DELETED)
        };
        with_retry(|| async {
            let tx = self.begin().await?;
            let deleted = async {
                let id = record("feed", feed);
                let row: FeedRow = one(&tx, ws, OWN_FEED, id.clone(), "feed").await?;
                let mut entries = vec![deletion(&row.clone().into_feed()?)];
                tx.audit(&entries).await?;
                if let Some(batch) = row.pulling {
                    let entry = end(batch);
                    if fail(&tx, ws, (batch, None), DELETED, now, &entry).await? {
                        entries.push(entry);
                    }
                }
                let mut row: FeedRow = one(&tx, ws, OWN, id, "feed").await?;
                row.delete(now);
                tx.write(UPDATE, vec![row]).await?;
                Ok(entries)
            };
            let deleted = deleted.await;
            tx.finish(deleted).await
        })
        .await
        .map_err(|error: StoreError| error.into_domain("deleting the feed failed"))
    }

    /// The feeds of the workspace whose redistribution is not allowed at this moment, by name. Deleted ones are among
    /// them: what they brought stays under their rule.
    ///
    /// # Errors
    /// The database failed.
    pub async fn blocked_feeds(&self, ws: Uuid) -> Result<Vec<BlockedFeed>, DomainError> {
        let what = "reading the feeds failed";
        let mut response = self
            .db
            .query(
                "SELECT id, name, redistribution FROM feed WHERE ws = $ws AND redistribution != $allowed \
                 ORDER BY name, id",
            )
            .bind(("ws", ws))
            .bind(("allowed", Redistribution::Allowed.as_str().to_owned()))
            .await
            .map_err(failed(what))?;
        let rows: Vec<BlockedRow> = response.take(0).map_err(failed(what))?;
        rows.into_iter().map(BlockedFeed::of).collect()
    }
}

impl BlockedFeed {
    fn of(row: BlockedRow) -> Result<Self, DomainError> {
        Ok(Self {
            id: key(&row.id)?,
            name: row.name,
            redistribution: parse(&row.redistribution)?,
        })
    }
}
