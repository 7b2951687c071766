//! Writes to the graph: the only place that changes nodes, edges, evidence and passages of the hosted service.
//!
//! Rules:
//! - A write ends with its row of the journal (`journal.rs`), so that nothing changes without a number, and with its rows of
//!   the list of changes (`change_log.rs`), and of the list of additions (`additions.rs`).
//! - What was set by hand of a row stands over what is written to it (`domain/graph/correction.rs`).

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use super::additions::NewAdditions;
use super::change_log::NewChanges;
use super::corrections::EdgeStatus;
use super::faces::{StoredEdgeFace, StoredNodeFace, edge_change, node_change};
use crate::domain::audit::AuditEntry;
use crate::domain::change::{ChangeKind, GraphChange};
#[cfg(doc)]
use crate::domain::error::DomainError;
use crate::store::connection::error::StoreError;
use crate::store::connection::tx::WriteTx;
use crate::store::rows::{EdgeRow, EvidenceRow, NodeRow, PassageRow, SupportRow, key, record};

/// Nodes, and what connects them: edges and passages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowIds {
    pub nodes: Vec<Uuid>,
    pub edges: Vec<Uuid>,
}

/// A write that is in the journal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GraphWritten {
    /// Its number.
    pub rev: u64,
    /// What is new or changed.
    pub rows: RowIds,
}

/// A stricter marking for a node that stays otherwise.
#[derive(Debug, Clone, SurrealValue)]
pub(in crate::store) struct NodeRise {
    pub id: RecordId,
    pub tlp_rank: i64,
    pub evidence_tlp: Vec<i64>,
    /// The evidence with its original.
    pub original: RecordId,
    pub rev: i64,
    pub changed_at: DateTime<Utc>,
}

/// A stricter marking for a relationship that stays otherwise.
#[derive(Debug, Clone, SurrealValue)]
pub(in crate::store) struct EdgeRise {
    pub id: RecordId,
    pub tlp_rank: i64,
    pub changed_at: DateTime<Utc>,
    pub rev: i64,
}

/// Another marking for an edge, an evidence record or a supporting object.
#[derive(Debug, Clone, SurrealValue)]
pub(in crate::store) struct MarkedRow {
    pub id: RecordId,
    pub tlp_rank: i64,
    pub held_by: Option<Vec<String>>,
}

/// A write inside its transaction.
pub(in crate::store) struct GraphWrite<'a> {
    pub(in crate::store) tx: &'a WriteTx,
    pub(in crate::store) ws: Uuid,
    rev: u64,
    rows: RowIds,
    changes: NewChanges,
    additions: NewAdditions,
}

impl<'a> GraphWrite<'a> {
    /// Begins a write that was planned when `after` was the number of the last one.
    pub(in crate::store) fn begin(tx: &'a WriteTx, ws: Uuid, after: u64) -> Self {
        Self {
            tx,
            ws,
            rev: after.saturating_add(1),
            rows: RowIds::default(),
            changes: NewChanges::default(),
            additions: NewAdditions::default(),
        }
    }

    /// The number of the write, as rows hold it.
    pub(in crate::store) fn rev(&self) -> i64 {
        i64::try_from(self.rev).unwrap_or(i64::MAX)
    }

    /// What has been written so far.
    pub(in crate::store) fn rows(&self) -> &RowIds {
        &self.rows
    }

    pub(in crate::store) async fn insert_nodes(&mut self, rows: Vec<NodeRow>) -> Result<(), StoreError> {
        self.note_nodes(rows.iter().map(|row| &row.id))?;
        for row in &rows {
            let created = GraphChange::created(Some(key(&row.id)?), None);
            self.changes.add_at(row.tlp_rank, created)?;
            self.additions.add_node(row, None)?;
        }
        self.tx.write("INSERT INTO node $rows RETURN NONE", rows).await
    }

    /// Writes what sources state now of nodes; what was set by hand stands over it.
    pub(in crate::store) async fn replace_nodes(&mut self, mut rows: Vec<NodeRow>) -> Result<(), StoreError> {
        let ids = rows.iter().map(|row| row.id.clone()).collect();
        let before = StoredNodeFace::find(self.tx, self.ws, ids).await?;
        for row in &mut rows {
            if let Some(stored) = before.get(&key(&row.id)?) {
                row.rejected.clone_from(&stored.rejected);
                row.corrected.clone_from(&stored.corrected);
                row.lay_correction()?;
            }
        }
        self.rewrite_nodes(rows, &before).await
    }

    /// Writes nodes as they are; `before` has what they were.
    pub(super) async fn rewrite_nodes(
        &mut self,
        rows: Vec<NodeRow>,
        before: &HashMap<Uuid, StoredNodeFace>,
    ) -> Result<(), StoreError> {
        self.note_nodes(rows.iter().map(|row| &row.id))?;
        for row in &rows {
            let before = before.get(&key(&row.id)?);
            self.additions.add_node(row, before)?;
            if let Some((level, change)) = before
                .map(|before| node_change(before, row))
                .transpose()?
                .flatten()
            {
                self.changes.add(level, change);
            }
        }
        self.tx
            .write(
                "FOR $row IN $rows { UPDATE $row.id CONTENT $row RETURN NONE }",
                rows,
            )
            .await
    }

    pub(in crate::store) async fn raise_nodes(&mut self, rows: Vec<NodeRise>) -> Result<(), StoreError> {
        self.note_nodes(rows.iter().map(|row| &row.id))?;
        for row in &rows {
            self.additions.touch(key(&row.id)?);
            self.additions.touch_edges_of(key(&row.id)?);
            self.changes
                .add_at(row.tlp_rank, marked(&row.id, row.tlp_rank)?)?;
        }
        self.tx
            .write(
                "FOR $row IN $rows { UPDATE $row.id SET tlp_rank = $row.tlp_rank, evidence_tlp = $row.evidence_tlp, \
                 rev = $row.rev, changed_at = $row.changed_at RETURN NONE; \
                 UPDATE $row.original SET tlp_rank = $row.tlp_rank RETURN NONE }",
                rows,
            )
            .await
    }

    pub(in crate::store) async fn insert_evidence(&self, rows: Vec<EvidenceRow>) -> Result<(), StoreError> {
        self.tx
            .write("INSERT INTO evidence $rows RETURN NONE", rows)
            .await
    }

    /// Gives evidence, edges and supporting objects other markings, and, with `held`, other markings that they wait for.
    pub(in crate::store) async fn mark(
        &mut self,
        rows: Vec<MarkedRow>,
        held: bool,
    ) -> Result<(), StoreError> {
        let edges = rows
            .iter()
            .map(|row| &row.id)
            .filter(|id| id.table.as_str() == "edge");
        let edges = edges.map(key).collect::<Result<Vec<Uuid>, _>>()?;
        self.rows.edges.extend(edges);
        for row in rows.iter().filter(|row| row.id.table.as_str() == "edge") {
            self.changes
                .add_at(row.tlp_rank, marked(&row.id, row.tlp_rank)?)?;
            self.additions
                .change_edge(&row.id, (row.tlp_rank, self.rev()), false)?;
        }
        let (edges, others): (Vec<_>, Vec<_>) =
            rows.into_iter().partition(|row| row.id.table.as_str() == "edge");
        let held = if held { ", held_by = $row.held_by" } else { "" };
        let rev = format!(", rev = {}", self.rev());
        let supports = others
            .iter()
            .filter(|row| row.id.table.as_str() == "stix_support");
        self.additions.touch_supports(supports.map(|row| row.id.clone()));
        for (rows, rev) in [(edges, rev.as_str()), (others, "")] {
            let query = format!(
                "FOR $row IN $rows {{ UPDATE $row.id SET tlp_rank = $row.tlp_rank{held}{rev} RETURN NONE }}"
            );
            self.tx.write(&query, rows).await?;
        }
        Ok(())
    }

    /// Tells the write the markings of nodes that were read for it.
    pub(in crate::store) fn tell_ranks(&mut self, ranks: impl IntoIterator<Item = (Uuid, i64)>) {
        self.additions.tell_ranks(ranks);
    }

    pub(in crate::store) async fn insert_edges(&mut self, rows: Vec<EdgeRow>) -> Result<(), StoreError> {
        for row in &rows {
            let created = GraphChange::created(None, Some(key(&row.id)?));
            self.changes.add_at(row.tlp_rank, created)?;
        }
        self.put_edges(rows).await
    }

    /// Puts edges in the place of others, some of which may be new. An edge's ends can't be updated. What was set by hand of
    /// an edge stands.
    pub(in crate::store) async fn replace_edges(
        &mut self,
        replaced: Vec<RecordId>,
        mut rows: Vec<EdgeRow>,
    ) -> Result<(), StoreError> {
        let before = StoredEdgeFace::find(self.tx, self.ws, replaced.clone()).await?;
        for row in &mut rows {
            let id = key(&row.id)?;
            let Some(stored) = before.get(&id) else {
                self.changes
                    .add_at(row.tlp_rank, GraphChange::created(None, Some(id)))?;
                continue;
            };
            row.corrected.clone_from(&stored.corrected);
            row.lay_correction()?;
            if let Some((level, change)) = edge_change(stored, row)? {
                self.changes.add(level, change);
            }
        }
        self.tx.write("DELETE $rows RETURN NONE", replaced).await?;
        self.put_edges(rows).await
    }

    async fn put_edges(&mut self, mut rows: Vec<EdgeRow>) -> Result<(), StoreError> {
        self.note_edges(rows.iter().map(|row| &row.id))?;
        for row in &mut rows {
            row.rev = Some(self.rev());
            self.additions.add_edge(row)?;
        }
        self.tx
            .write("INSERT RELATION INTO edge $rows RETURN NONE", rows)
            .await
    }

    pub(in crate::store) async fn raise_edges(&mut self, rows: Vec<EdgeRise>) -> Result<(), StoreError> {
        self.note_edges(rows.iter().map(|row| &row.id))?;
        for row in &rows {
            self.changes
                .add_at(row.tlp_rank, marked(&row.id, row.tlp_rank)?)?;
            self.additions
                .change_edge(&row.id, (row.tlp_rank, row.rev), false)?;
        }
        self.tx
            .write(
                "FOR $row IN $rows { UPDATE $row.id SET tlp_rank = $row.tlp_rank, changed_at = $row.changed_at, \
                 rev = $row.rev RETURN NONE }",
                rows,
            )
            .await
    }

    /// Ends edges that are no longer stated.
    pub(in crate::store) async fn end_edges(&mut self, ids: Vec<RecordId>) -> Result<(), StoreError> {
        self.note_edges(ids.iter())?;
        for (id, stored) in StoredEdgeFace::find(self.tx, self.ws, ids.clone()).await? {
            if stored.active {
                let mut change = GraphChange::created(None, Some(id));
                change.kind = ChangeKind::Rejected;
                self.changes.add_at(stored.tlp_rank, change)?;
                if !stored.is_reference() {
                    let id = record("edge", id);
                    self.additions
                        .change_edge(&id, (stored.tlp_rank, self.rev()), true)?;
                }
            }
        }
        let query = format!(
            "UPDATE $rows SET active = false, rev = {} RETURN NONE",
            self.rev()
        );
        self.tx.write(&query, ids).await
    }

    pub(in crate::store) async fn insert_passages(
        &mut self,
        rows: Vec<PassageRow>,
    ) -> Result<(), StoreError> {
        self.note_edges(rows.iter().map(|row| &row.id))?;
        self.tx.write("INSERT INTO passage $rows RETURN NONE", rows).await
    }

    /// Removes nodes for good. Each comes with the rank of its marking; that it was erased is all that is told of it.
    pub(super) async fn erase_nodes(&mut self, nodes: Vec<(RecordId, i64)>) -> Result<(), StoreError> {
        self.note_nodes(nodes.iter().map(|(id, _)| id))?;
        for (id, rank) in &nodes {
            let mut change = GraphChange::created(Some(key(id)?), None);
            change.kind = ChangeKind::Erased;
            self.changes.add_at(*rank, change)?;
        }
        let ids: Vec<RecordId> = nodes.into_iter().map(|(id, _)| id).collect();
        self.additions.forget(&ids)?;
        self.tx.write("DELETE $rows RETURN NONE", ids).await
    }

    /// Removes edges or passages for good; nothing is told of them.
    pub(super) async fn erase_links(&mut self, ids: Vec<RecordId>) -> Result<(), StoreError> {
        self.note_edges(ids.iter())?;
        self.tx.write("DELETE $rows RETURN NONE", ids).await
    }

    /// Rejects or restores edges by hand.
    pub(super) async fn set_edge_status(&mut self, rows: Vec<EdgeStatus>) -> Result<(), StoreError> {
        self.note_edges(rows.iter().map(|row| &row.id))?;
        let ids = rows.iter().map(|row| row.id.clone()).collect();
        let before = StoredEdgeFace::find(self.tx, self.ws, ids).await?;
        for row in &rows {
            let id = key(&row.id)?;
            let Some(stored) = before.get(&id).filter(|stored| stored.active != row.active) else {
                continue;
            };
            let mut change = GraphChange::created(None, Some(id));
            change.kind = match row.active {
                true => ChangeKind::Restored,
                false => ChangeKind::Rejected,
            };
            self.changes.add_at(stored.tlp_rank, change)?;
            if !stored.is_reference() {
                self.additions
                    .change_edge(&row.id, (stored.tlp_rank, self.rev()), !row.active)?;
            }
        }
        let query = format!(
            "FOR $row IN $rows {{ UPDATE $row.id SET active = $row.active, corrected = $row.corrected, \
             changed_at = $row.changed_at, rev = {} RETURN NONE }}",
            self.rev()
        );
        self.tx.write(&query, rows).await
    }

    /// Notes that a node is merged into another one, or is no longer; told to those who see both.
    pub(super) async fn note_merge(
        &mut self,
        node: Uuid,
        into: Uuid,
        is_over: bool,
    ) -> Result<(), StoreError> {
        let ids = [node, into].map(|id| record("node", id)).to_vec();
        let stored = StoredNodeFace::find(self.tx, self.ws, ids).await?;
        let rank = stored
            .values()
            .map(|stored| stored.tlp_rank)
            .max()
            .unwrap_or_default();
        self.changes
            .add_at(rank, GraphChange::merged(node, into, is_over))?;
        self.additions.touch(node);
        self.additions.touch(into);
        self.additions.touch_edges_of(node);
        Ok(())
    }

    /// Notes supporting objects that are written beside the graph.
    pub(in crate::store) fn note_supports(&mut self, rows: &[SupportRow]) -> Result<(), StoreError> {
        Ok(self.additions.add_supports(rows)?)
    }

    /// Notes rows that no feed restricts any longer.
    pub(in crate::store) fn note_unrestricted(&mut self, rows: &[RecordId]) -> Result<(), StoreError> {
        for row in rows {
            match row.table.as_str() {
                "node" => {
                    self.additions.touch(key(row)?);
                    self.additions.touch_edges_of(key(row)?);
                }
                _ => self.additions.touch_edge(key(row)?),
            }
        }
        Ok(())
    }

    fn note_edges<'r>(&mut self, ids: impl Iterator<Item = &'r RecordId>) -> Result<(), StoreError> {
        for id in ids {
            self.rows.edges.push(key(id)?);
        }
        Ok(())
    }

    fn note_nodes<'r>(&mut self, ids: impl Iterator<Item = &'r RecordId>) -> Result<(), StoreError> {
        for id in ids {
            self.rows.nodes.push(key(id)?);
        }
        Ok(())
    }

    /// Ends the write with its rows of the journal and of the list of changes; its audit entry says who made it.
    ///
    /// # Errors
    /// [`DomainError::Overtaken`] when another process has taken its number.
    pub(in crate::store) async fn end(self, entry: &AuditEntry) -> Result<GraphWritten, StoreError> {
        let number = self.rev();
        let Self {
            tx,
            ws,
            rev,
            mut rows,
            changes,
            additions,
        } = self;
        for ids in [&mut rows.nodes, &mut rows.edges] {
            let mut seen = HashSet::with_capacity(ids.len());
            ids.retain(|id| seen.insert(*id));
        }
        tx.note_writes(ws, rev, &rows.nodes, &rows.edges).await?;
        changes.write(tx, ws, number, entry).await?;
        additions.write(tx, ws, number).await?;
        Ok(GraphWritten { rev, rows })
    }
}

/// A row that has another marking now.
fn marked(row: &RecordId, rank: i64) -> Result<GraphChange, StoreError> {
    let id = key(row)?;
    let is_node = row.table.as_str() == "node";
    let mut change = GraphChange::created(is_node.then_some(id), (!is_node).then_some(id));
    change.kind = ChangeKind::Changed;
    change
        .after
        .insert("tlp".into(), crate::store::rows::tlp(rank)?.as_str().into());
    Ok(change)
}
