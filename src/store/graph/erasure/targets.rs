//! What an erasure by where things came from names, and the account or workspace that it closes.

use chrono::{DateTime, Utc};
use surrealdb::types::{RecordId, SurrealValue, Value};
use uuid::Uuid;

use super::{NewErasure, READ};
use crate::domain::erasure::ErasureKind;
use crate::domain::error::DomainError;
use crate::domain::tlp::Tlp;
use crate::store::rows::{key, record};
use crate::store::{Store, failed};

/// An account that is refused from now on.
#[derive(Debug, Clone, SurrealValue)]
pub(super) struct ClosedRow {
    id: RecordId,
    at: DateTime<Utc>,
}

impl NewErasure {
    /// What refuses the user or the workspace that goes, from the request on.
    pub(super) fn closing(&self, at: DateTime<Utc>) -> Option<(&'static str, Vec<ClosedRow>)> {
        let (table, query) = match self.what {
            ErasureKind::User => (
                "user",
                "FOR $row IN $rows { UPDATE $row.id SET disabled = true, tokens_after = $row.at RETURN NONE }",
            ),
            ErasureKind::Workspace => (
                "workspace",
                "FOR $row IN $rows { UPDATE $row.id SET suspended = true, erased = true RETURN NONE }",
            ),
            ErasureKind::Nodes | ErasureKind::Evidence | ErasureKind::Source | ErasureKind::Feed => {
                return None;
            }
        };
        let id = record(table, self.owner?);
        Some((query, vec![ClosedRow { id, at }]))
    }
}

impl Store {
    /// Nodes and evidence records of a source, as far as they are marked no higher than `highest`.
    pub async fn things_of_source(
        &self,
        ws: Uuid,
        source: &str,
        highest: Tlp,
    ) -> Result<(Vec<Uuid>, Vec<Uuid>), DomainError> {
        let queries = "SELECT VALUE id FROM node WHERE ws = $ws AND source = $of AND tlp_rank <= $highest; \
                       SELECT VALUE id FROM evidence WHERE ws = $ws AND source = $of AND tlp_rank <= $highest";
        self.things(ws, queries, source.to_owned().into_value(), highest)
            .await
    }

    /// Nodes and relationships that no other source than this feed brought, as far as they are marked no higher than
    /// `highest`.
    pub async fn things_of_feed(
        &self,
        ws: Uuid,
        feed: Uuid,
        highest: Tlp,
    ) -> Result<(Vec<Uuid>, Vec<Uuid>), DomainError> {
        let queries = "SELECT VALUE id FROM node WHERE ws = $ws AND feeds = $of AND tlp_rank <= $highest; \
                       SELECT VALUE id FROM edge WHERE ws = $ws AND feeds = $of AND tlp_rank <= $highest";
        self.things(ws, queries, vec![feed].into_value(), highest).await
    }

    /// Whether a feed of the workspace, deleted or not, has this id and is not erased.
    pub async fn is_erasable_feed(&self, ws: Uuid, feed: Uuid) -> Result<bool, DomainError> {
        let query = "SELECT VALUE id FROM $id WHERE ws = $ws AND name != ''";
        let statement = self.db.query(query).bind(("ws", ws));
        let mut response = statement
            .bind(("id", record("feed", feed)))
            .await
            .map_err(failed(READ))?;
        let found: Option<RecordId> = response.take(0).map_err(failed(READ))?;
        Ok(found.is_some())
    }

    async fn things(
        &self,
        ws: Uuid,
        queries: &str,
        of: Value,
        highest: Tlp,
    ) -> Result<(Vec<Uuid>, Vec<Uuid>), DomainError> {
        let statement = self.db.query(queries).bind(("ws", ws)).bind(("of", of));
        let statement = statement.bind(("highest", i64::from(highest.rank())));
        let mut response = statement.await.map_err(failed(READ))?;
        let first: Vec<RecordId> = response.take(0).map_err(failed(READ))?;
        let second: Vec<RecordId> = response.take(1).map_err(failed(READ))?;
        let keys = |ids: Vec<RecordId>| ids.iter().map(key).collect::<Result<Vec<Uuid>, _>>();
        Ok((keys(first)?, keys(second)?))
    }
}
