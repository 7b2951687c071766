//! Batches of a feed: a pull's beginning and end, and reading them.

use std::net::{IpAddr, Ipv4Addr};

use chrono::{DateTime, TimeDelta, Utc};
use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use super::rows::{FeedBatchRow, FeedPulseRow, FeedRow};
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::error::DomainError;
use crate::domain::feed::{BatchState, Feed, FeedBatch, InputKind, Received, Tally};
use crate::domain::tlp::Tlp;
use crate::store::connection::error::StoreError;
use crate::store::connection::retry::with_retry;
use crate::store::connection::tx::WriteTx;
use crate::store::rows::{key, record, tlp};
use crate::store::{Store, failed};

/// A pull that has given no sign of life for this long has died with its process.
pub const PULL_SILENCE: TimeDelta = TimeDelta::seconds(60);
/// What is said of such a pull.
pub const INTERRUPTED: &str = "the pull was interrupted when the service stopped";
pub(in crate::store) const UPDATE: &str = "FOR $row IN $rows { UPDATE $row.id CONTENT $row RETURN NONE }";
pub(in crate::store) const UPSERT: &str = "FOR $row IN $rows { UPSERT $row.id CONTENT $row RETURN NONE }";
/// The rows with these ids, if they belong to the workspace.
pub(super) const OWN: &str = "SELECT * FROM $ids WHERE ws = $ws";
/// The same of feeds, without those that are deleted.
pub(super) const OWN_FEED: &str = "SELECT * FROM $ids WHERE ws = $ws AND deleted_at = NONE";

/// A batch to be filled.
#[derive(Debug, Clone)]
pub struct NewFeedBatch {
    pub id: Uuid,
    pub feed: Option<Uuid>,
    pub user: Uuid,
    pub input_kind: InputKind,
    pub default_tlp: Tlp,
    pub now: DateTime<Utc>,
}

/// A pull that has begun.
#[derive(Debug, Clone)]
pub struct PullStart {
    pub feed: Feed,
    /// Marking of objects that state none, in this batch.
    pub default_tlp: Tlp,
    pub cursor: String,
    /// Number of the run: what an earlier one does late is refused.
    pub run: i64,
    /// The audit entry of an interrupted pull that this one took the place of.
    pub interrupted: Option<AuditEntry>,
}

impl Store {
    /// Starts the pull of a feed, or resumes the failed batch `resumed`.
    ///
    /// # Errors
    /// `NotFound`, or `Conflict` when the feed is disabled, is being pulled, or the batch has not failed.
    pub async fn begin_pull(
        &self,
        ws: Uuid,
        batch: &NewFeedBatch,
        resumed: bool,
        audit: &AuditEntry,
    ) -> Result<PullStart, DomainError> {
        let feed = batch.feed.ok_or(DomainError::NotFound("feed"))?;
        with_retry(|| async {
            let tx = self.begin().await?;
            let outcome = begin_pull(&tx, ws, feed, batch, resumed, audit).await;
            tx.finish(outcome).await
        })
        .await
        .map_err(|error: StoreError| error.into_domain("starting the pull failed"))
    }

    /// Starts the batch of an uploaded bundle.
    pub async fn begin_upload(
        &self,
        ws: Uuid,
        batch: &NewFeedBatch,
        audit: &AuditEntry,
    ) -> Result<(), DomainError> {
        with_retry(|| async {
            let tx = self.begin().await?;
            let written = async {
                insert_upload(&tx, ws, batch).await?;
                tx.audit([audit]).await
            };
            let outcome = written.await;
            tx.finish(outcome).await
        })
        .await
        .map_err(|error: StoreError| error.into_domain("staging the bundle failed"))
    }

    /// Records that a pull is alive.
    pub async fn keep_pull_alive(
        &self,
        ws: Uuid,
        batch: Uuid,
        now: DateTime<Utc>,
    ) -> Result<(), DomainError> {
        let what = "recording the pull's progress failed";
        self.db
            .query("UPDATE $pulse SET seen_at = $now WHERE ws = $ws RETURN NONE")
            .bind(("pulse", record("feed_pulse", batch)))
            .bind(("ws", ws))
            .bind(("now", now))
            .await
            .and_then(surrealdb::IndexedResults::check)
            .map_err(failed(what))?;
        Ok(())
    }

    /// Removes the sign of life of a batch whose last page is staged. If that fails, the sweep for abandoned pulls does it.
    pub(super) async fn end_pulse(&self, batch: Uuid) {
        let ended = with_retry(|| async {
            let tx = self.begin().await?;
            let outcome = remove_pulse(&tx, batch).await;
            tx.finish(outcome).await
        });
        if let Err(error) = ended.await {
            tracing::debug!(?error, %batch, "the sign of life of an ended pull stays for now");
        }
    }

    /// Ends a run that failed, with its audit entry; what it staged stays. `run` is `None` for whichever run is under way.
    /// Returns whether there was one.
    pub async fn fail_pull(
        &self,
        ws: Uuid,
        (batch, run): (Uuid, Option<i64>),
        error: &str,
        now: DateTime<Utc>,
        audit: &AuditEntry,
    ) -> Result<bool, DomainError> {
        with_retry(|| async {
            let tx = self.begin().await?;
            let outcome = fail(&tx, ws, (batch, run), error, now, audit).await;
            tx.finish(outcome).await
        })
        .await
        .map_err(|error: StoreError| error.into_domain("ending the pull failed"))
    }

    /// Workspace and id of the batches that are being filled and gave their last sign of life before `before`.
    pub async fn abandoned_pulls(&self, before: DateTime<Utc>) -> Result<Vec<(Uuid, Uuid)>, DomainError> {
        let what = "reading interrupted pulls failed";
        let mut response = self
            .db
            .query("SELECT * FROM feed_pulse WHERE seen_at < $before")
            .bind(("before", before))
            .await
            .map_err(failed(what))?;
        let found: Vec<FeedPulseRow> = response.take(0).map_err(failed(what))?;
        found.into_iter().map(|row| Ok((row.ws, key(&row.id)?))).collect()
    }

    /// A batch as a caller cleared up to `highest` sees it; `None` also if it does not exist for the caller.
    pub async fn feed_batch(
        &self,
        ws: Uuid,
        batch: Uuid,
        highest: Tlp,
    ) -> Result<Option<FeedBatch>, DomainError> {
        let what = "reading the batch failed";
        let mut response = self
            .db
            .query("SELECT * FROM $batch WHERE ws = $ws")
            .bind(("batch", record("feed_batch", batch)))
            .bind(("ws", ws))
            .await
            .map_err(failed(what))?;
        let row: Option<FeedBatchRow> = response.take(0).map_err(failed(what))?;
        match row {
            Some(row) if row.is_visible(highest)? => row.into_batch(highest).map(Some),
            Some(_) | None => Ok(None),
        }
    }

    /// The newest batches that exist for a caller cleared up to `highest`, of one feed and in one state if these are given.
    pub async fn feed_batches(
        &self,
        ws: Uuid,
        (feed, state): (Option<Uuid>, Option<BatchState>),
        (limit, offset): (u32, u32),
        highest: Tlp,
    ) -> Result<Vec<FeedBatch>, DomainError> {
        let what = "reading batches failed";
        let query = format!(
            "SELECT * FROM feed_batch WHERE ws = $ws AND ($feed = NONE OR feed = $feed) \
             AND (default_tlp <= $highest OR {items} > 0) AND {in_state} \
             ORDER BY created_at DESC, id DESC LIMIT $limit START $offset",
            items = sum_of(Tally::places_of_all(highest)),
            in_state = in_state(state, highest),
        );
        let mut response = self
            .db
            .query(query)
            .bind(("ws", ws))
            .bind(("feed", feed))
            .bind(("highest", i64::from(highest.rank())))
            .bind(("limit", i64::from(limit)))
            .bind(("offset", i64::from(offset)))
            .await
            .map_err(failed(what))?;
        let rows: Vec<FeedBatchRow> = response.take(0).map_err(failed(what))?;
        rows.into_iter().map(|row| row.into_batch(highest)).collect()
    }
}

/// The sum of these places in the counts of a batch, as an expression of a query.
fn sum_of(places: impl Iterator<Item = usize>) -> String {
    let places: Vec<String> = places.map(|place| format!("tally[{place}]")).collect();
    format!("({})", places.join(" + "))
}

/// The condition of a query that a batch is in a state for a caller cleared up to `highest`: [`BatchState::seen`].
fn in_state(state: Option<BatchState>, highest: Tlp) -> String {
    let open = sum_of(Tally::places_of_open(highest));
    match state {
        None => "true".to_owned(),
        Some(state @ (BatchState::Pulling | BatchState::Failed)) => format!("status = '{}'", state.as_str()),
        Some(BatchState::Review) => format!("status IN ['review', 'committed'] AND {open} > 0"),
        Some(BatchState::Committed) => format!("status IN ['review', 'committed'] AND {open} = 0"),
    }
}

impl FeedBatchRow {
    fn new(ws: Uuid, batch: &NewFeedBatch) -> Self {
        Self {
            id: record("feed_batch", batch.id),
            ws,
            feed: batch.feed,
            user: batch.user,
            input_kind: batch.input_kind.as_str().into(),
            default_tlp: i64::from(batch.default_tlp.rank()),
            status: BatchState::Pulling.as_str().into(),
            pages: 0,
            objects: 0,
            bytes: 0,
            unchanged: 0,
            unreadable: 0,
            skipped: r#"{"by_type":{},"objects":[]}"#.into(),
            tally: Tally::default().to_row(),
            next_ord: 0,
            error: None,
            run: 1,
            created_at: batch.now,
            ended_at: None,
            committed_at: None,
            received: serde_json::to_string(&Received::default()).ok(),
            numbers: Some(vec![0; Tlp::ALL.len()]),
        }
    }
}

pub(in crate::store) async fn one<T: SurrealValue>(
    tx: &WriteTx,
    ws: Uuid,
    query: &str,
    id: RecordId,
    what: &'static str,
) -> Result<T, StoreError> {
    let found = tx.find(ws, query, vec![id]).await?;
    Ok(found.into_iter().next().ok_or(DomainError::NotFound(what))?)
}

/// Writes the rows with which the batch of an uploaded bundle begins.
pub(super) async fn insert_upload(tx: &WriteTx, ws: Uuid, batch: &NewFeedBatch) -> Result<(), StoreError> {
    let query = "INSERT INTO feed_batch $rows RETURN NONE";
    tx.write(query, vec![FeedBatchRow::new(ws, batch)]).await?;
    tx.write(UPSERT, vec![FeedPulseRow::new(ws, batch.id, batch.now)])
        .await
}

async fn begin_pull(
    tx: &WriteTx,
    ws: Uuid,
    feed: Uuid,
    batch: &NewFeedBatch,
    resumed: bool,
    audit: &AuditEntry,
) -> Result<PullStart, StoreError> {
    let mut row: FeedRow = one(tx, ws, OWN_FEED, record("feed", feed), "feed").await?;
    if !row.enabled {
        return Err(DomainError::Conflict("the feed is disabled".into()).into());
    }
    let interrupted = match row.pulling {
        Some(running) => end_silent(tx, ws, running, batch.now).await?,
        None => None,
    };
    let new = if resumed {
        let mut known: FeedBatchRow = one(tx, ws, OWN, record("feed_batch", batch.id), "batch").await?;
        if known.state()? != BatchState::Failed {
            let rule = format!(
                "the batch's status is {}; only a failed pull can be resumed",
                known.status
            );
            return Err(DomainError::Conflict(rule).into());
        }
        known.status = BatchState::Pulling.as_str().into();
        known.run += 1;
        known.error = None;
        known.ended_at = None;
        known.committed_at = None;
        known.settle(Tally::from_row(&known.tally), known.received()?, batch.now)?;
        known
    } else {
        let mut new = FeedBatchRow::new(ws, batch);
        new.default_tlp = row.default_tlp;
        new
    };
    row.pulling = Some(batch.id);
    let begun = PullStart {
        feed: row.clone().into_feed()?,
        default_tlp: tlp(new.default_tlp)?,
        cursor: row.cursor.clone(),
        run: new.run,
        interrupted,
    };
    tx.write(UPSERT, vec![new]).await?;
    tx.write(UPSERT, vec![FeedPulseRow::new(ws, batch.id, batch.now)])
        .await?;
    tx.write(UPDATE, vec![row]).await?;
    tx.audit([audit]).await?;
    Ok(begun)
}

/// Ends the run of a batch whose process has died, and returns the audit entry of that.
///
/// # Errors
/// `Conflict` when the run is alive.
async fn end_silent(
    tx: &WriteTx,
    ws: Uuid,
    batch: Uuid,
    now: DateTime<Utc>,
) -> Result<Option<AuditEntry>, StoreError> {
    let pulses: Vec<FeedPulseRow> = tx.find(ws, OWN, vec![record("feed_pulse", batch)]).await?;
    if pulses.iter().any(|pulse| pulse.seen_at + PULL_SILENCE > now) {
        // The caller may not be allowed to know the batch.
        return Err(DomainError::Conflict("the feed is being pulled".into()).into());
    }
    let entry = interrupted_entry(ws, batch, now);
    let ended = fail(tx, ws, (batch, None), INTERRUPTED, now, &entry).await?;
    Ok(ended.then_some(entry))
}

/// The audit entry of a pull whose process has died.
pub fn interrupted_entry(ws: Uuid, batch: Uuid, now: DateTime<Utc>) -> AuditEntry {
    let here = IpAddr::from(Ipv4Addr::LOCALHOST);
    AuditEntry::anonymous(ws, here, "feed.pull_failed", "feed_batch", Outcome::Failure, now)
        .on(batch)
        .with("reason", INTERRUPTED)
}

/// As [`Store::fail_pull`].
pub(super) async fn fail(
    tx: &WriteTx,
    ws: Uuid,
    (id, run): (Uuid, Option<i64>),
    error: &str,
    now: DateTime<Utc>,
    audit: &AuditEntry,
) -> Result<bool, StoreError> {
    let found: Vec<FeedBatchRow> = tx.find(ws, OWN, vec![record("feed_batch", id)]).await?;
    let Some(mut batch) = found.into_iter().next() else {
        return Ok(false);
    };
    if batch.state()? != BatchState::Pulling {
        remove_pulse(tx, id).await?;
        return Ok(false);
    }
    if run.is_some_and(|run| run != batch.run) {
        return Ok(false);
    }
    batch.fail(error, now)?;
    if let Some(feed) = batch.feed {
        let mut feed: FeedRow = one(tx, ws, OWN, record("feed", feed), "feed").await?;
        if feed.pulling == Some(id) {
            feed.pulling = None;
            tx.write(UPDATE, vec![feed]).await?;
        }
    }
    tx.write(UPDATE, vec![batch]).await?;
    remove_pulse(tx, id).await?;
    tx.audit([audit]).await?;
    Ok(true)
}

async fn remove_pulse(tx: &WriteTx, batch: Uuid) -> Result<(), StoreError> {
    tx.write("DELETE $rows RETURN NONE", vec![record("feed_pulse", batch)])
        .await
}
