//! What the local memory's graph is made of: all of it, or what was written after a revision.

use std::collections::HashSet;

use surrealdb::types::SurrealValue;
use uuid::Uuid;

use super::rows::{NoteEntityRow, NoteHeadRow, relation};
use super::{ENTITY_SOURCE, NoteHead, StoredEntity, StoredRelation};
use crate::domain::error::DomainError;
use crate::store::rows::{EdgeRow, record};
use crate::store::{Store, failed};

const HEAD: &str = "id, label, domain, tier, confidence, digest, mentions, superseded_by, rev, created_at";
const ENTITY: &str = "id, name, confidence, properties, rev, ingested_at, merged_into";
const WHAT: &str = "reading the memory failed";
/// Notes read at a time.
const PAGE: usize = 2_000;
/// Nodes whose edges are read at a time.
const NODES: usize = 200;

/// Rows, and the highest revision among them.
#[derive(Debug)]
pub struct RowsAtRev<T> {
    pub rows: Vec<T>,
    pub rev: u64,
    /// The ids of what was written and is no longer there.
    pub gone: Vec<Uuid>,
}

impl Store {
    /// The heads of all notes of a workspace.
    pub async fn note_heads(&self, ws: Uuid) -> Result<RowsAtRev<NoteHead>, DomainError> {
        let rows: Vec<NoteHeadRow> = self
            .rows_of_table([HEAD, "note", "true"], ws, |row: &NoteHeadRow| &row.id)
            .await?;
        rows_at_rev(rows, |row| row.rev, NoteHeadRow::into_head)
    }

    /// Every entity of a workspace.
    pub async fn entities(&self, ws: Uuid) -> Result<RowsAtRev<StoredEntity>, DomainError> {
        let of_notes = format!("source_type = '{ENTITY_SOURCE}'");
        let rows: Vec<NoteEntityRow> = self
            .rows_of_table([ENTITY, "node", &of_notes], ws, |row: &NoteEntityRow| &row.id)
            .await?;
        rows_at_rev(rows, |row| row.rev, NoteEntityRow::into_entity)
    }

    /// Every relationship of a workspace.
    pub async fn relations(&self, ws: Uuid) -> Result<Vec<StoredRelation>, DomainError> {
        let rows: Vec<EdgeRow> = self
            .rows_of_table(["*", "edge", "active = true"], ws, |row: &EdgeRow| &row.id)
            .await?;
        rows.into_iter().map(relation).collect()
    }

    /// The relationships with these ids, with the sentences that state them.
    pub async fn relations_by_id(&self, ws: Uuid, ids: &[Uuid]) -> Result<Vec<StoredRelation>, DomainError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let rows: Vec<EdgeRow> = self.rows_with_ids(ws, "*", "edge", ids).await?;
        rows.into_iter().map(relation).collect()
    }

    /// The heads of the notes written after a revision.
    pub async fn note_heads_after(&self, ws: Uuid, rev: u64) -> Result<RowsAtRev<NoteHead>, DomainError> {
        let mut rows: Vec<NoteHeadRow> = Vec::new();
        let mut written: HashSet<Uuid> = HashSet::new();
        let mut after = rev;
        loop {
            let changes = self.changes(ws, after, PAGE).await?;
            let Some(last) = changes.last else { break };
            after = last;
            let ids: Vec<Uuid> = changes.notes.iter().map(|change| change.id).collect();
            rows.extend(self.rows_with_ids(ws, HEAD, "note", &ids).await?);
            written.extend(ids);
        }
        let mut heads = rows_at_rev(rows, |row: &NoteHeadRow| row.rev, NoteHeadRow::into_head)?;
        heads.rev = heads.rev.max(after);
        for head in &heads.rows {
            written.remove(&head.id);
        }
        heads.gone = written.into_iter().collect();
        Ok(heads)
    }

    /// The entities written after a revision, and the edges from those of which an edge was written after it.
    pub async fn entities_after(
        &self,
        ws: Uuid,
        rev: u64,
    ) -> Result<(RowsAtRev<StoredEntity>, Vec<StoredRelation>), DomainError> {
        let changes = self.node_changes(ws, rev, usize::MAX).await?;
        let ids: Vec<Uuid> = changes.iter().map(|change| change.id).collect();
        let rows: Vec<NoteEntityRow> = self.rows_with_ids(ws, ENTITY, "node", &ids).await?;
        let mut entities = rows_at_rev(rows, |row| row.rev, NoteEntityRow::into_entity)?;
        let highest = changes.iter().map(|change| change.rev).max();
        entities.rev = entities.rev.max(highest.unwrap_or(0));
        let there: HashSet<Uuid> = entities.rows.iter().map(|entity| entity.id).collect();
        entities.gone = ids.iter().filter(|id| !there.contains(id)).copied().collect();
        Ok((entities, self.edges_from(ws, &ids).await?))
    }

    async fn rows_with_ids<T: SurrealValue + Send + 'static>(
        &self,
        ws: Uuid,
        fields: &str,
        table: &'static str,
        ids: &[Uuid],
    ) -> Result<Vec<T>, DomainError> {
        let ids = ids.iter().map(|id| record(table, *id)).collect();
        let query = format!("SELECT {fields} FROM $ids WHERE ws = $ws");
        self.rows_by_id(&query, ids, &[("ws", ws.into_value())])
            .await
            .map_err(failed(WHAT))
    }

    async fn edges_from(&self, ws: Uuid, nodes: &[Uuid]) -> Result<Vec<StoredRelation>, DomainError> {
        let mut edges = Vec::new();
        for nodes in nodes.chunks(NODES) {
            let ids: Vec<_> = nodes.iter().map(|id| record("node", *id)).collect();
            let mut response = self
                .db
                .query("SELECT * FROM $ids->edge WHERE ws = $ws AND active = true")
                .bind(("ids", ids))
                .bind(("ws", ws))
                .await
                .map_err(failed(WHAT))?;
            let rows: Vec<EdgeRow> = response.take(0).map_err(failed(WHAT))?;
            for row in rows {
                edges.push(relation(row)?);
            }
        }
        Ok(edges)
    }
}

#[cfg(test)]
impl Store {
    /// As if an older version of this program had written, which recorded notes alone.
    pub async fn forget_entity_writes(&self, ws: Uuid) {
        let query = "LET $rows = (SELECT id, notes FROM node_write:[$ws, 0, 0]..[$ws, $end]); DELETE $rows.id; \
            FOR $row IN $rows { IF $row.notes != NONE { CREATE $row.id SET nodes = [], notes = $row.notes } };";
        let statement = self.db.query(query).bind(("ws", ws)).bind(("end", i64::MAX));
        statement.await.unwrap().check().unwrap();
    }
}

fn rows_at_rev<R, T>(
    rows: Vec<R>,
    rev: impl Fn(&R) -> i64,
    into: impl Fn(R) -> Result<T, DomainError>,
) -> Result<RowsAtRev<T>, DomainError> {
    let highest = rows.iter().map(rev).max().unwrap_or(0);
    Ok(RowsAtRev {
        rows: rows.into_iter().map(into).collect::<Result<_, _>>()?,
        rev: u64::try_from(highest).unwrap_or(0),
        gone: Vec::new(),
    })
}
