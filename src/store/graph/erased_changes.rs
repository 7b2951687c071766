//! The list of changes, and that of additions, without what is erased.

use std::collections::HashSet;

use surrealdb::types::{Bytes, RecordId, SurrealValue};
use uuid::Uuid;

use crate::domain::change::{ChangeKind, GraphChange};
use crate::domain::error::DomainError;
use crate::domain::packing;
use crate::domain::taxii::addition::Addition;
use crate::domain::tlp::Tlp;
use crate::store::rows::{corrupt, up_to_limit};
use crate::store::{Store, failed};

/// Rows read at a time.
const ROWS: usize = 100;

/// What an erasure removes, by id.
#[derive(Debug, Default)]
pub(super) struct ErasedIds {
    pub(super) nodes: HashSet<Uuid>,
    pub(super) edges: HashSet<Uuid>,
    /// Nodes that stay and lose some of what they say.
    pub(super) touched: HashSet<Uuid>,
}

/// A row as it is written again.
#[derive(Debug, Clone, SurrealValue)]
pub(super) struct RewrittenRow {
    pub(super) id: RecordId,
    pub(super) entries: Bytes,
}

/// What is to be done to the list.
#[derive(Debug, Default)]
pub(super) struct ChangesWithout {
    pub(super) rewritten: Vec<RewrittenRow>,
    /// Rows of which nothing is left.
    pub(super) removed: Vec<RecordId>,
    /// Number of changes removed or emptied, as far as they are seen.
    pub(super) count: u64,
}

#[derive(Debug, SurrealValue)]
struct FoundRow {
    id: RecordId,
    rev: i64,
    part: i64,
    entries: Bytes,
}

#[derive(Debug, SurrealValue)]
struct FoundAdditions {
    id: RecordId,
    last: i64,
    entries: Bytes,
}

impl FoundAdditions {
    /// The row without what is erased; `None` if it names nothing of it.
    fn without(self, erased: &HashSet<Uuid>) -> Result<Option<RewrittenRow>, DomainError> {
        let text = packing::unpack_text(&self.entries).map_err(corrupt)?;
        let mut entries: Vec<Option<Addition>> = serde_json::from_slice(&text).map_err(corrupt)?;
        let mut is_changed = false;
        for entry in &mut entries {
            let names = entry.as_ref().is_some_and(|entry| {
                erased.contains(&entry.id) || entry.original.is_some_and(|id| erased.contains(&id))
            });
            if names {
                *entry = None;
                is_changed = true;
            }
        }
        let text = serde_json::to_vec(&entries).map_err(corrupt)?;
        let entries = Bytes::from(packing::pack_text(&text));
        Ok(is_changed.then_some(RewrittenRow { id: self.id, entries }))
    }
}

impl ErasedIds {
    /// Removes a change, or what it says: none of it is left if `None`, and the number says whether it has changed.
    fn without(&self, mut change: GraphChange) -> (Option<GraphChange>, u64) {
        let is_erased = |id: Option<Uuid>| id.is_some_and(|id| self.nodes.contains(&id));
        let is_gone = is_erased(change.node) && change.kind != ChangeKind::Erased
            || is_erased(change.into)
            || change.edge.is_some_and(|edge| self.edges.contains(&edge));
        if is_gone {
            return (None, 1);
        }
        let is_touched = change.node.is_some_and(|node| self.touched.contains(&node));
        if is_touched && !(change.before.is_empty() && change.after.is_empty()) {
            change.before.clear();
            change.after.clear();
            return (Some(change), 1);
        }
        (Some(change), 0)
    }
}

impl Store {
    /// The rows of the list of additions that name any of these ids, without them. An entry leaves its place empty, since the
    /// places of the others are their dates.
    pub(super) async fn additions_without_erased(
        &self,
        ws: Uuid,
        erased: &HashSet<Uuid>,
    ) -> Result<Vec<RewrittenRow>, DomainError> {
        let mut rewritten = Vec::new();
        for level in Tlp::ALL {
            let mut after = i64::MIN;
            loop {
                let rows = self.addition_rows_to_erase(ws, level, after).await?;
                let is_last = rows.len() < ROWS;
                for row in rows {
                    after = row.last;
                    rewritten.extend(row.without(erased)?);
                }
                if is_last {
                    break;
                }
            }
        }
        Ok(rewritten)
    }

    async fn addition_rows_to_erase(
        &self,
        ws: Uuid,
        level: Tlp,
        after: i64,
    ) -> Result<Vec<FoundAdditions>, DomainError> {
        let what = "reading the list of additions failed";
        let range = up_to_limit("taxii_added:[$ws, $level, $after]>..[$ws, $next]");
        let query = format!("SELECT id, record::id(id)[2] AS last, entries FROM {range} LIMIT {ROWS}");
        let rank = i64::from(level.rank());
        let statement = self.db.query(query).bind(("ws", ws)).bind(("level", rank));
        let statement = statement.bind(("next", rank + 1)).bind(("after", after));
        let mut response = statement.await.map_err(failed(what))?;
        response.take(0).map_err(failed(what))
    }

    /// The rows of the list that an erasure must change; counted are those up to `highest`.
    pub(super) async fn changes_without_erased(
        &self,
        ws: Uuid,
        erased: &ErasedIds,
        highest: Tlp,
    ) -> Result<ChangesWithout, DomainError> {
        let mut done = ChangesWithout::default();
        for level in Tlp::ALL {
            let mut from = (0, 0);
            loop {
                let rows = self.change_rows_to_erase(ws, level, from).await?;
                let is_last = rows.len() < ROWS;
                for row in rows {
                    from = (row.rev, row.part + 1);
                    let count = done.take(row, erased)?;
                    done.count += if level <= highest { count } else { 0 };
                }
                if is_last {
                    break;
                }
            }
        }
        Ok(done)
    }

    async fn change_rows_to_erase(
        &self,
        ws: Uuid,
        level: Tlp,
        (rev, part): (i64, i64),
    ) -> Result<Vec<FoundRow>, DomainError> {
        let what = "reading the list of changes failed";
        let range = up_to_limit("graph_change:[$ws, $level, $rev, $part]..[$ws, $next]");
        let query = format!(
            "SELECT id, record::id(id)[2] AS rev, record::id(id)[3] AS part, entries FROM {range} LIMIT {ROWS}"
        );
        let rank = i64::from(level.rank());
        let statement = self.db.query(query).bind(("ws", ws)).bind(("level", rank));
        let statement = statement.bind(("next", rank + 1)).bind(("rev", rev));
        let mut response = statement.bind(("part", part)).await.map_err(failed(what))?;
        response.take(0).map_err(failed(what))
    }
}

impl ChangesWithout {
    /// Takes a row without what is erased; returns how many changes that were.
    fn take(&mut self, row: FoundRow, erased: &ErasedIds) -> Result<u64, DomainError> {
        let text = packing::unpack_text(&row.entries).map_err(corrupt)?;
        let changes: Vec<GraphChange> = serde_json::from_slice(&text).map_err(corrupt)?;
        let (mut left, mut count) = (Vec::new(), 0);
        for change in changes {
            let (kept, changed) = erased.without(change);
            left.extend(kept);
            count += changed;
        }
        if left.is_empty() {
            self.removed.push(row.id);
        } else if count > 0 {
            let text = serde_json::to_vec(&left).map_err(corrupt)?;
            let entries = Bytes::from(packing::pack_text(&text));
            self.rewritten.push(RewrittenRow { id: row.id, entries });
        }
        Ok(count)
    }
}
