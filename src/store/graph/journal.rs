//! Journal of the nodes, edges and notes that each write changed, in write order; the search indexes of both services
//! and the graph of the local one follow it.
//!
//! Rule: each write that changes nodes, edges, passages or notes takes the next number of its workspace, by adding the
//! journal's row with that number in its own transaction. So the numbers have no gaps, and their order is that of the
//! commits; whoever has followed the journal to a number has missed nothing before it. Of two processes that write to one
//! workspace at once, the database refuses the second row, and the write is planned again.
//!
//! A number never leaves the service: gaps between those that a caller sees would tell of hidden writes.
//!
//! Each row lists many nodes, edges and notes, and is keyed by workspace, number and part. An index over the rows' own
//! revisions would take four entries per row, more than a small node's own row on commit.

use std::collections::HashSet;

use surrealdb::types::{Array, RecordId, SurrealValue};
use uuid::Uuid;

use crate::domain::error::DomainError;
use crate::store::connection::error::StoreError;
use crate::store::connection::tx::WriteTx;
use crate::store::rows::up_to_limit;
use crate::store::{Store, failed};

/// Maximum number of nodes in one row, of edges, and of notes.
const MAX_CHANGES: usize = 1000;
/// Rows read at a time.
const ROWS: usize = 50;

/// A row that was written, and its revision: the number of the write in its workspace.
#[derive(Debug, Clone, Copy)]
pub struct Change {
    pub id: Uuid,
    pub rev: u64,
}

#[derive(Debug, Clone, SurrealValue)]
pub(in crate::store) struct NewRow {
    id: RecordId,
    nodes: Vec<Uuid>,
    edges: Option<Vec<Uuid>>,
    notes: Option<Vec<Uuid>>,
}

#[derive(Debug, SurrealValue)]
struct Row {
    rev: i64,
    part: i64,
    nodes: Vec<Uuid>,
    edges: Option<Vec<Uuid>>,
    notes: Option<Vec<Uuid>>,
}

impl Row {
    /// The number of the write.
    fn number(&self) -> u64 {
        u64::try_from(self.rev).unwrap_or(0)
    }
}

/// What was written after a revision.
#[derive(Debug, Default)]
pub struct Changes {
    pub nodes: Vec<Change>,
    pub edges: Vec<Change>,
    pub notes: Vec<Change>,
    /// The number of the last write; `None` if there were none.
    pub last: Option<u64>,
}

impl Changes {
    fn len(&self) -> usize {
        self.nodes.len() + self.edges.len() + self.notes.len()
    }
}

/// What one write changed.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::store) struct WriteSet<'a> {
    pub(in crate::store) nodes: &'a [Uuid],
    pub(in crate::store) edges: &'a [Uuid],
    pub(in crate::store) notes: &'a [Uuid],
}

impl WriteTx {
    /// Records what the transaction wrote, as the write with this number. Call once per transaction.
    ///
    /// # Errors
    /// [`DomainError::Overtaken`] when another process has taken the number.
    pub(in crate::store) async fn note_writes(
        &self,
        ws: Uuid,
        rev: u64,
        nodes: &[Uuid],
        edges: &[Uuid],
    ) -> Result<(), StoreError> {
        let written = WriteSet {
            nodes,
            edges,
            ..WriteSet::default()
        };
        let rows = rows_of(ws, rev, written);
        match self.write("INSERT INTO node_write $rows RETURN NONE", rows).await {
            Err(StoreError::Database(error)) if is_taken(&error) => Err(DomainError::Overtaken.into()),
            written => written,
        }
    }
}

/// Whether a number was taken already.
pub(in crate::store) fn is_taken(error: &surrealdb::Error) -> bool {
    error.is_already_exists() && error.message().contains("node_write")
}

/// The rows that record what a write changed: one, unless there are more than [`MAX_CHANGES`] of a kind. A write that
/// changed nothing has a row, too, since numbers have no gaps.
pub(in crate::store) fn rows_of(ws: Uuid, rev: u64, written: WriteSet<'_>) -> Vec<NewRow> {
    let rev = i64::try_from(rev).unwrap_or(i64::MAX);
    let WriteSet { nodes, edges, notes } = written;
    let most = nodes.len().max(edges.len()).max(notes.len());
    let rows = (0i64..)
        .zip(0..most.div_ceil(MAX_CHANGES).max(1))
        .map(|(part, at)| {
            let of = |ids: &[Uuid]| ids.chunks(MAX_CHANGES).nth(at).map(<[Uuid]>::to_vec);
            let key = vec![ws.into_value(), rev.into_value(), part.into_value()];
            NewRow {
                id: RecordId::new("node_write", Array::from(key)),
                nodes: of(nodes).unwrap_or_default(),
                edges: of(edges),
                notes: of(notes),
            }
        });
    rows.collect()
}

impl Store {
    /// The nodes of a workspace written after the write `rev`, each with its newest revision, oldest write first. Returns at
    /// least `limit` of them if there are that many, since a page never ends inside a write.
    pub async fn node_changes(&self, ws: Uuid, rev: u64, limit: usize) -> Result<Vec<Change>, DomainError> {
        Ok(self.changes(ws, rev, limit).await?.nodes)
    }

    /// [`Store::node_changes`], with the edges and notes, which count against the limit, too.
    pub async fn changes(&self, ws: Uuid, rev: u64, limit: usize) -> Result<Changes, DomainError> {
        let mut changes = Changes::default();
        let (mut rev, mut part) = (i64::try_from(rev).unwrap_or(i64::MAX), i64::MAX);
        'pages: loop {
            let rows = self.node_writes(ws, (rev, part), ROWS).await?;
            let more = rows.len() == ROWS;
            for row in rows {
                if changes.len() >= limit && row.rev != rev {
                    break 'pages;
                }
                (rev, part) = (row.rev, row.part);
                let rev = row.number();
                changes.last = Some(rev);
                let change = |id| Change { id, rev };
                changes.nodes.extend(row.nodes.into_iter().map(change));
                let edges = row.edges.into_iter().flatten();
                changes.edges.extend(edges.map(change));
                let notes = row.notes.into_iter().flatten();
                changes.notes.extend(notes.map(change));
            }
            if !more {
                break;
            }
        }
        for all in [&mut changes.nodes, &mut changes.edges, &mut changes.notes] {
            keep_newest(all);
        }
        Ok(changes)
    }

    /// The number of the first write after this one.
    pub async fn next_write(&self, ws: Uuid, after: u64) -> Result<Option<u64>, DomainError> {
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        let next = self.node_writes(ws, (after, i64::MAX), 1).await?;
        Ok(next.first().map(Row::number))
    }

    /// Whether the journal of writes has this revision. Of notes that an older version of this program wrote, it has only
    /// some.
    pub async fn has_revision(&self, ws: Uuid, rev: u64) -> Result<bool, DomainError> {
        Ok(self.next_write(ws, rev.saturating_sub(1)).await? == Some(rev))
    }

    /// The rows of a workspace after this revision and part.
    async fn node_writes(
        &self,
        ws: Uuid,
        (rev, part): (i64, i64),
        rows: usize,
    ) -> Result<Vec<Row>, DomainError> {
        let what = "reading revisions for the index failed";
        let after = up_to_limit("node_write:[$ws, $rev, $part]>..[$ws, $end]");
        let query = format!(
            "SELECT record::id(id)[1] AS rev, record::id(id)[2] AS part, nodes, edges, notes FROM {after} LIMIT {rows}"
        );
        let statement = self.db.query(query).bind(("ws", ws)).bind(("rev", rev));
        let statement = statement.bind(("part", part)).bind(("end", i64::MAX));
        let mut response = statement.await.map_err(failed(what))?;
        response.take(0).map_err(failed(what))
    }
}

#[cfg(test)]
impl Store {
    /// The number of the last write of a workspace; 0 before the first.
    pub async fn last_write(&self, ws: Uuid) -> Result<u64, DomainError> {
        let mut last = 0;
        while let Some(next) = self.changes(ws, last, 10_000).await?.last {
            last = next;
        }
        Ok(last)
    }
}

/// Keeps the newest change of each row.
fn keep_newest(changes: &mut Vec<Change>) {
    let mut seen = HashSet::new();
    changes.reverse();
    changes.retain(|change| seen.insert(change.id));
    changes.reverse();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_is_one_row_unless_it_changed_more_than_fit() {
        let ids = |count: usize| -> Vec<Uuid> { (0..count).map(|_| Uuid::new_v4()).collect() };
        for (counts, rows) in [
            ([0, 0, 0], 1),
            ([1, 0, 2], 1),
            ([MAX_CHANGES, MAX_CHANGES, MAX_CHANGES], 1),
            ([5, 2 * MAX_CHANGES + 1, MAX_CHANGES + 1], 3),
        ] {
            let [nodes, edges, notes] = counts.map(ids);
            let written = WriteSet {
                nodes: &nodes,
                edges: &edges,
                notes: &notes,
            };
            let made = rows_of(Uuid::nil(), 7, written);
            assert_eq!(made.len(), rows, "{counts:?}");
            let all = |of: fn(&NewRow) -> &[Uuid]| -> Vec<Uuid> {
                assert!(made.iter().all(|row| of(row).len() <= MAX_CHANGES));
                made.iter().flat_map(of).copied().collect()
            };
            assert_eq!(all(|row| &row.nodes), nodes);
            assert_eq!(all(|row| row.edges.as_deref().unwrap_or_default()), edges);
            assert_eq!(all(|row| row.notes.as_deref().unwrap_or_default()), notes);
            let keys: HashSet<String> = made.iter().map(|row| format!("{:?}", row.id)).collect();
            assert_eq!(keys.len(), rows);
        }
    }
}
