//! Journal of the nodes and edges that each write changed, in write order; the search index of the
//! hosted service and the graph of the local one follow it.
//!
//! Each row lists many of them and is keyed by workspace and revision. An index over the nodes' own revisions would
//! take four entries per node, more than a small node's own row on commit.

use std::collections::HashSet;

use surrealdb::types::{Array, RecordId, SurrealValue};
use uuid::Uuid;

use super::connect::StoreError;
use super::tx::WriteTx;
use super::{Store, failed};
use crate::domain::error::DomainError;

/// Maximum number of nodes in one row, and of edges.
const NODES: usize = 1000;
/// Rows read at a time.
const ROWS: usize = 100;

/// A row that was written, and its revision.
#[derive(Debug, Clone, Copy)]
pub struct Change {
    pub id: Uuid,
    /// Hybrid logical clock of the write.
    pub rev: u64,
}

#[derive(Debug, Clone, SurrealValue)]
pub(super) struct NewRow {
    id: RecordId,
    nodes: Vec<Uuid>,
    edges: Option<Vec<Uuid>>,
}

#[derive(Debug, SurrealValue)]
struct Row {
    rev: i64,
    part: i64,
    nodes: Vec<Uuid>,
    edges: Option<Vec<Uuid>>,
}

/// What was written after a revision.
#[derive(Debug, Default)]
pub struct Changes {
    pub nodes: Vec<Change>,
    pub edges: Vec<Change>,
    /// The last of the writes; `None` if there were none.
    pub last: Option<u64>,
}

impl WriteTx {
    /// Records which nodes and edges the transaction wrote. Call once per transaction, since its
    /// revision is the key.
    pub(super) async fn note_writes(
        &self,
        ws: Uuid,
        rev: u64,
        nodes: &[Uuid],
        edges: &[Uuid],
    ) -> Result<(), StoreError> {
        self.write(
            "INSERT INTO node_write $rows RETURN NONE",
            rows_of(ws, rev, nodes, edges),
        )
        .await
    }
}

/// The rows that record which nodes and edges a write changed.
pub(super) fn rows_of(ws: Uuid, rev: u64, nodes: &[Uuid], edges: &[Uuid]) -> Vec<NewRow> {
    let rev = i64::try_from(rev).unwrap_or(i64::MAX);
    let nodes = nodes.chunks(NODES).map(|nodes| (nodes.to_vec(), None));
    let edges = edges
        .chunks(NODES)
        .map(|edges| (Vec::new(), Some(edges.to_vec())));
    let rows = (0i64..).zip(nodes.chain(edges)).map(|(part, (nodes, edges))| {
        let key = vec![ws.into_value(), rev.into_value(), part.into_value()];
        NewRow {
            id: RecordId::new("node_write", Array::from(key)),
            nodes,
            edges,
        }
    });
    rows.collect()
}

impl Store {
    /// The nodes of a workspace written after `rev`, each with its newest revision, oldest write first. Returns at
    /// least `limit` of them if there are that many, since a page never ends inside a write.
    pub async fn node_changes(&self, ws: Uuid, rev: u64, limit: usize) -> Result<Vec<Change>, DomainError> {
        Ok(self.changes(ws, rev, limit).await?.nodes)
    }

    /// [`Store::node_changes`], with the edges, which count against the limit, too.
    pub async fn changes(&self, ws: Uuid, rev: u64, limit: usize) -> Result<Changes, DomainError> {
        let mut changes = Changes::default();
        let (mut rev, mut part) = (i64::try_from(rev).unwrap_or(i64::MAX), i64::MAX);
        'pages: loop {
            let rows = self.node_writes(ws, (rev, part), ROWS).await?;
            let more = rows.len() == ROWS;
            for row in rows {
                if changes.nodes.len() + changes.edges.len() >= limit && row.rev != rev {
                    break 'pages;
                }
                (rev, part) = (row.rev, row.part);
                let rev = u64::try_from(rev).unwrap_or(0);
                changes.last = Some(rev);
                let change = |id| Change { id, rev };
                changes.nodes.extend(row.nodes.into_iter().map(change));
                let edges = row.edges.into_iter().flatten();
                changes.edges.extend(edges.map(change));
            }
            if !more {
                break;
            }
        }
        keep_newest(&mut changes.nodes);
        keep_newest(&mut changes.edges);
        Ok(changes)
    }

    /// The rows of a workspace after this revision and part.
    async fn node_writes(
        &self,
        ws: Uuid,
        (rev, part): (i64, i64),
        rows: usize,
    ) -> Result<Vec<Row>, DomainError> {
        let what = "reading revisions for the index failed";
        let query = format!(
            "SELECT record::id(id)[1] AS rev, record::id(id)[2] AS part, nodes, edges \
             FROM node_write:[$ws, $rev, $part]>..[$ws, $end] LIMIT {rows}"
        );
        let statement = self.db.query(query).bind(("ws", ws)).bind(("rev", rev));
        let statement = statement.bind(("part", part)).bind(("end", i64::MAX));
        let mut response = statement.await.map_err(failed(what))?;
        response.take(0).map_err(failed(what))
    }
}

/// Keeps the newest change of each row.
fn keep_newest(changes: &mut Vec<Change>) {
    let mut seen = HashSet::new();
    changes.reverse();
    changes.retain(|change| seen.insert(change.id));
    changes.reverse();
}
