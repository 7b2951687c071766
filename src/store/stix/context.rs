//! What is special about objects beside those that an ingest counts as nodes: how they are counted, when they are new, and
//! which of their references end.

use std::borrow::Cow;
use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use super::known::{ExistingNode, OriginalRow};
use super::targets::Rows;
use super::{Ingest, stix_type};
use crate::domain::packing::unpack as unpack_text;
use crate::domain::stix::ingest::{StixNode, StixRelationship};
use crate::domain::stix::object::text;
use crate::store::connection::error::StoreError;
use crate::store::connection::tx::CHUNK;
use crate::store::rows::{corrupt, key, record, unpack};

/// Whether an edge stands in a property of its source and is no object: what an object states has a time.
pub(in crate::store) const REFERENCE: &str = "(raw = NONE AND modified != NONE)";

/// What a stored version says, and its time.
type Version = (Map<String, Value>, DateTime<Utc>);

#[derive(Debug, SurrealValue)]
struct EdgeId {
    id: RecordId,
}

impl Ingest<'_> {
    pub(super) fn count_created(&mut self, node: &StixNode) {
        if node.is_context() {
            self.done.result.kept.objects_created += 1;
            self.done.skipped.keep(stix_type(&node.stix_id));
        } else {
            self.done.result.nodes_created += 1;
        }
    }

    pub(super) fn count_updated(&mut self, node: &StixNode) {
        if node.is_context() {
            self.done.result.kept.objects_updated += 1;
            self.done.skipped.keep(stix_type(&node.stix_id));
        } else {
            self.done.result.nodes_updated += 1;
        }
    }

    /// Counts an object that turned out to be the node of another source.
    pub(super) fn count_joined(&mut self, node: &StixNode) {
        match node.is_context() {
            true => self.count_created(node),
            false => self.count_updated(node),
        }
    }

    pub(super) fn count_evidence(&mut self, node: &StixNode) {
        self.done.result.evidence_created += u64::from(!node.is_context());
    }

    pub(super) fn count_edge(&mut self, edge: &StixRelationship, number: u64) {
        if edge.is_reference() || number == 0 {
            return;
        }
        if edge.is_context() {
            self.done.result.kept.relationships_created += number;
            self.done.skipped.keep("relationship");
        } else {
            self.done.result.edges_created += number;
        }
    }

    pub(super) fn count_newer_edge(&mut self, edge: &StixRelationship, number: u64) {
        if edge.is_reference() || number == 0 {
            return;
        }
        if edge.is_context() {
            self.done.skipped.keep("relationship");
        } else {
            self.done.result.edges_updated += number;
        }
    }

    /// The nodes, with the time of the stored version where one without a time of its own says the same. So an observable
    /// that is sent again is not new.
    pub(super) async fn date_observables<'n>(
        &self,
        nodes: &'n [StixNode],
    ) -> Result<Cow<'n, [StixNode]>, StoreError> {
        let undated = nodes.iter().filter(|node| node.undated);
        let ids: HashMap<Uuid, &StixNode> = undated
            .map(|node| (self.first_id(&node.stix_id), node))
            .filter(|(id, _)| self.may_exist(id))
            .collect();
        let mut stored: Rows<ExistingNode> = self.rows_of(ids.keys().copied().collect()).await?;
        if stored.is_empty() {
            return Ok(Cow::Borrowed(nodes));
        }
        // Others stand beside a row that the writer does not see.
        let hidden = stored.iter().filter(|(_, row)| !self.sees(row.tlp_rank));
        let names = hidden
            .filter_map(|(id, _)| ids.get(id))
            .map(|node| node.stix_id.as_str());
        let beside = self.beside::<ExistingNode>(names).await?;
        let beside = beside.into_values().flatten().map(|(_, row)| row);
        let mut rows: Vec<ExistingNode> = stored.drain().map(|(_, row)| row).chain(beside).collect();
        rows.retain(|row| self.sees(row.tlp_rank));
        let originals = rows.iter().filter_map(|row| row.stix_evidence);
        let originals: Vec<RecordId> = originals.map(|id| record("evidence", id)).collect();
        let query = "SELECT id, raw FROM $ids WHERE ws = $ws";
        let originals: Vec<OriginalRow> = match originals.is_empty() {
            true => Vec::new(),
            false => self.tx.find(self.ws, query, originals).await?,
        };
        let mut known: HashMap<String, Vec<Version>> = HashMap::new();
        for original in originals {
            let of = key(&original.id)?;
            let row = rows.iter().find(|row| row.stix_evidence == Some(of));
            let Some((raw, time)) = original.raw.zip(row.and_then(|row| row.modified)) else {
                continue;
            };
            let said = unpack(&raw)?;
            let id = text(&said, "id").unwrap_or_default().to_owned();
            known.entry(id).or_default().push((said, time));
        }
        let mut dated = nodes.to_vec();
        for node in dated.iter_mut().filter(|node| node.undated) {
            let Some(versions) = known.get(&node.stix_id) else {
                continue;
            };
            let said = unpack_text(&node.raw).map_err(corrupt)?;
            if let Some((_, time)) = versions.iter().find(|(version, _)| *version == said) {
                node.modified = *time;
            }
        }
        Ok(Cow::Owned(dated))
    }

    /// Ends the references that newer versions of their objects no longer have.
    pub(super) async fn end_references(&mut self) -> Result<(), StoreError> {
        let superseded = std::mem::take(&mut self.superseded);
        let query = format!(
            "SELECT id FROM $ids->edge WHERE ws = $ws AND active = true AND {REFERENCE} AND modified < in.modified"
        );
        for nodes in superseded.chunks(CHUNK) {
            let edges: Vec<EdgeId> = self.tx.find(self.ws, &query, nodes.to_vec()).await?;
            self.graph
                .end_edges(edges.into_iter().map(|edge| edge.id).collect())
                .await?;
        }
        Ok(())
    }
}
