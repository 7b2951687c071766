//! Which nodes stand in which. Rows are keyed by workspace and node, so that a node stands in one other at most.

use chrono::{DateTime, Utc};
use surrealdb::types::{Array, RecordId, SurrealValue};
use uuid::Uuid;

use super::write::{GraphWrite, GraphWritten};
use crate::domain::audit::AuditEntry;
use crate::domain::error::DomainError;
use crate::domain::graph::merging::{Merge, in_order};
use crate::store::connection::error::StoreError;
use crate::store::connection::retry::with_retry;
use crate::store::{Store, failed};

#[derive(Debug, Clone, SurrealValue)]
struct MergeRow {
    id: RecordId,
    ws: Uuid,
    into: Uuid,
    reason: Option<String>,
    at: DateTime<Utc>,
    ended: Option<DateTime<Utc>>,
}

#[derive(Debug, SurrealValue)]
struct FoundMerge {
    node: Uuid,
    into: Uuid,
    reason: Option<String>,
    at: DateTime<Utc>,
    ended: Option<DateTime<Utc>>,
}

impl Store {
    /// The merges of a workspace, those that were taken back included.
    pub async fn merges(&self, ws: Uuid) -> Result<Vec<Merge>, DomainError> {
        let what = "reading the merges failed";
        let query = "SELECT record::id(id)[1] AS node, into, reason, at, ended FROM \
            node_merge:[$ws, $first]..=[$ws, $last]";
        let statement = self.db.query(query).bind(("ws", ws));
        let statement = statement.bind(("first", Uuid::nil())).bind(("last", Uuid::max()));
        let mut response = statement.await.map_err(failed(what))?;
        let rows: Vec<FoundMerge> = response.take(0).map_err(failed(what))?;
        Ok(rows.into_iter().map(Merge::from).collect())
    }

    /// Writes a merge, or its end, that was planned when `after` was the number of the last write.
    pub async fn write_merge(
        &self,
        ws: Uuid,
        merge: &Merge,
        after: u64,
        audit: &AuditEntry,
    ) -> Result<GraphWritten, DomainError> {
        with_retry(|| async {
            let tx = self.begin().await?;
            let outcome: Result<GraphWritten, StoreError> = async {
                let mut graph = GraphWrite::begin(&tx, ws, after);
                let query = "FOR $row IN $rows { UPSERT $row.id CONTENT $row RETURN NONE }";
                tx.write(query, vec![MergeRow::of(ws, merge)]).await?;
                graph
                    .note_merge(merge.node, merge.into, merge.ended.is_some())
                    .await?;
                let written = graph.end(audit).await?;
                tx.audit([audit]).await?;
                Ok(written)
            }
            .await;
            tx.finish(outcome).await
        })
        .await
        .map_err(|error: StoreError| error.into_domain("writing a merge failed"))
    }
}

/// A pair of nodes that are not the same, and since when; without a time, the pair is forgotten.
#[derive(Debug, Clone, Copy)]
pub struct DistinctPair {
    pub nodes: (Uuid, Uuid),
    pub since: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, SurrealValue)]
struct DistinctRow {
    id: RecordId,
    ws: Uuid,
    at: DateTime<Utc>,
}

#[derive(Debug, SurrealValue)]
struct FoundPair {
    one: Uuid,
    other: Uuid,
}

impl Store {
    /// The pairs of nodes of a workspace that are not the same.
    pub async fn distinct_nodes(&self, ws: Uuid) -> Result<Vec<(Uuid, Uuid)>, DomainError> {
        let what = "reading the nodes that are not the same failed";
        let query = "SELECT record::id(id)[1] AS one, record::id(id)[2] AS other FROM \
            node_distinct:[$ws, $first, $first]..=[$ws, $last, $last]";
        let statement = self.db.query(query).bind(("ws", ws));
        let statement = statement.bind(("first", Uuid::nil())).bind(("last", Uuid::max()));
        let mut response = statement.await.map_err(failed(what))?;
        let rows: Vec<FoundPair> = response.take(0).map_err(failed(what))?;
        Ok(rows.into_iter().map(|row| (row.one, row.other)).collect())
    }

    /// Writes that two nodes are not the same, or forgets it, planned when `after` was the number of the last write.
    pub async fn write_distinct(
        &self,
        ws: Uuid,
        pair: DistinctPair,
        after: u64,
        audit: &AuditEntry,
    ) -> Result<GraphWritten, DomainError> {
        let (one, other) = in_order(pair.nodes);
        let key = vec![ws.into_value(), one.into_value(), other.into_value()];
        let id = RecordId::new("node_distinct", Array::from(key));
        with_retry(|| async {
            let tx = self.begin().await?;
            let outcome: Result<GraphWritten, StoreError> = async {
                let graph = GraphWrite::begin(&tx, ws, after);
                let id = id.clone();
                match pair.since {
                    Some(at) => {
                        let query = "FOR $row IN $rows { UPSERT $row.id CONTENT $row RETURN NONE }";
                        tx.write(query, vec![DistinctRow { id, ws, at }]).await?;
                    }
                    None => tx.write("DELETE $rows RETURN NONE", vec![id]).await?,
                }
                let written = graph.end(audit).await?;
                tx.audit([audit]).await?;
                Ok(written)
            }
            .await;
            tx.finish(outcome).await
        })
        .await
        .map_err(|error: StoreError| error.into_domain("writing that nodes are not the same failed"))
    }
}

impl MergeRow {
    fn of(ws: Uuid, merge: &Merge) -> Self {
        let key = vec![ws.into_value(), merge.node.into_value()];
        Self {
            id: RecordId::new("node_merge", Array::from(key)),
            ws,
            into: merge.into,
            reason: merge.reason.clone(),
            at: merge.at,
            ended: merge.ended,
        }
    }
}

impl From<FoundMerge> for Merge {
    fn from(row: FoundMerge) -> Self {
        Self {
            node: row.node,
            into: row.into,
            reason: row.reason,
            at: row.at,
            ended: row.ended,
        }
    }
}
