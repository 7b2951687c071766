//! Writes to the graph: the only place that changes nodes, edges, evidence and passages of the hosted service.
//!
//! Rule: a write ends with its row of the journal (`journal.rs`), so that nothing changes without a number.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

#[cfg(doc)]
use crate::domain::error::DomainError;
use crate::store::connection::error::StoreError;
use crate::store::connection::tx::WriteTx;
use crate::store::rows::{EdgeRow, EvidenceRow, NodeRow, PassageRow, key};

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
}

impl<'a> GraphWrite<'a> {
    /// Begins a write that was planned when `after` was the number of the last one.
    pub(in crate::store) fn begin(tx: &'a WriteTx, ws: Uuid, after: u64) -> Self {
        Self {
            tx,
            ws,
            rev: after.saturating_add(1),
            rows: RowIds::default(),
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
        self.tx.write("INSERT INTO node $rows RETURN NONE", rows).await
    }

    pub(in crate::store) async fn replace_nodes(&mut self, rows: Vec<NodeRow>) -> Result<(), StoreError> {
        self.note_nodes(rows.iter().map(|row| &row.id))?;
        self.tx
            .write(
                "FOR $row IN $rows { UPDATE $row.id CONTENT $row RETURN NONE }",
                rows,
            )
            .await
    }

    pub(in crate::store) async fn raise_nodes(&mut self, rows: Vec<NodeRise>) -> Result<(), StoreError> {
        self.note_nodes(rows.iter().map(|row| &row.id))?;
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
        let query = match held {
            true => {
                "FOR $row IN $rows { UPDATE $row.id SET tlp_rank = $row.tlp_rank, held_by = $row.held_by RETURN NONE }"
            }
            false => "FOR $row IN $rows { UPDATE $row.id SET tlp_rank = $row.tlp_rank RETURN NONE }",
        };
        self.tx.write(query, rows).await
    }

    pub(in crate::store) async fn insert_edges(&mut self, rows: Vec<EdgeRow>) -> Result<(), StoreError> {
        self.note_edges(rows.iter().map(|row| &row.id))?;
        self.tx
            .write("INSERT RELATION INTO edge $rows RETURN NONE", rows)
            .await
    }

    /// Puts edges in the place of others. An edge's ends can't be updated.
    pub(in crate::store) async fn replace_edges(
        &mut self,
        replaced: Vec<RecordId>,
        rows: Vec<EdgeRow>,
    ) -> Result<(), StoreError> {
        self.tx.write("DELETE $rows RETURN NONE", replaced).await?;
        self.insert_edges(rows).await
    }

    pub(in crate::store) async fn raise_edges(&mut self, rows: Vec<EdgeRise>) -> Result<(), StoreError> {
        self.note_edges(rows.iter().map(|row| &row.id))?;
        self.tx
            .write(
                "FOR $row IN $rows { UPDATE $row.id SET tlp_rank = $row.tlp_rank, changed_at = $row.changed_at \
                 RETURN NONE }",
                rows,
            )
            .await
    }

    /// Ends edges that are no longer stated.
    pub(in crate::store) async fn end_edges(&mut self, ids: Vec<RecordId>) -> Result<(), StoreError> {
        self.note_edges(ids.iter())?;
        self.tx
            .write("UPDATE $rows SET active = false RETURN NONE", ids)
            .await
    }

    pub(in crate::store) async fn insert_passages(
        &mut self,
        rows: Vec<PassageRow>,
    ) -> Result<(), StoreError> {
        self.note_edges(rows.iter().map(|row| &row.id))?;
        self.tx.write("INSERT INTO passage $rows RETURN NONE", rows).await
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

    /// Ends the write with its row of the journal.
    ///
    /// # Errors
    /// [`DomainError::Overtaken`] when another process has taken its number.
    pub(in crate::store) async fn end(self) -> Result<GraphWritten, StoreError> {
        let Self {
            tx,
            ws,
            rev,
            mut rows,
        } = self;
        for ids in [&mut rows.nodes, &mut rows.edges] {
            let mut seen = HashSet::with_capacity(ids.len());
            ids.retain(|id| seen.insert(*id));
        }
        tx.note_writes(ws, rev, &rows.nodes, &rows.edges).await?;
        Ok(GraphWritten { rev, rows })
    }
}
