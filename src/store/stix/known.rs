//! Which rows of a bundle exist already.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use super::super::connect::StoreError;
use super::super::rows::{key, record};
use super::super::stix_rows::support_id;
use super::Ingest;
use crate::domain::node::node_id;
use crate::domain::stix::ingest::{StixNode, StixRelationship, StixSupport};

/// Existing rows of the workspace with their versions and feeds.
const VERSIONS: &str = "SELECT id, modified, tlp_rank, feeds FROM $ids WHERE ws = $ws";

#[derive(Debug, SurrealValue)]
pub(super) struct ExistingRow {
    pub(super) id: RecordId,
    pub(super) modified: Option<DateTime<Utc>>,
    pub(super) tlp_rank: i64,
    pub(super) feeds: Option<Vec<Uuid>>,
}

#[derive(Debug, SurrealValue)]
pub(super) struct ExistingNode {
    pub(super) id: RecordId,
    pub(super) modified: Option<DateTime<Utc>>,
    pub(super) evidence: Vec<Uuid>,
    pub(super) evidence_tlp: Vec<i64>,
    pub(super) properties: String,
    pub(super) tlp_rank: i64,
    pub(super) feeds: Option<Vec<Uuid>>,
}

impl Ingest<'_> {
    /// Whether a row may exist.
    fn may_exist(&self, id: &Uuid) -> bool {
        self.known.is_none_or(|known| known.contains(id))
    }

    pub(super) async fn stored_nodes(
        &self,
        nodes: &[StixNode],
    ) -> Result<HashMap<Uuid, ExistingNode>, StoreError> {
        let ids = nodes.iter().map(|node| node_id(self.ws, &node.stix_id));
        let ids = ids.filter(|id| self.may_exist(id));
        let ids = ids.map(|id| record("node", id)).collect();
        let query = "SELECT id, modified, evidence, evidence_tlp, properties, tlp_rank, feeds FROM $ids WHERE ws = $ws";
        let found: Vec<ExistingNode> = self.tx.find(self.ws, query, ids).await?;
        let mut stored = HashMap::new();
        for row in found {
            stored.insert(key(&row.id)?, row);
        }
        Ok(stored)
    }

    pub(super) async fn stored_edges(
        &self,
        edges: &[StixRelationship],
    ) -> Result<HashMap<Uuid, ExistingRow>, StoreError> {
        let ids = edges.iter().map(|edge| self.rows.edge_id(edge));
        let ids = ids.filter(|id| self.may_exist(id));
        let ids = ids.map(|id| record("edge", id)).collect();
        by_key(self.tx.find(self.ws, VERSIONS, ids).await?)
    }

    pub(super) async fn stored_support(
        &self,
        objects: &[StixSupport],
    ) -> Result<HashMap<Uuid, ExistingRow>, StoreError> {
        let ids = objects.iter().map(|object| support_id(self.ws, &object.stix_id));
        let ids = ids.map(|id| record("stix_support", id)).collect();
        by_key(self.tx.find(self.ws, VERSIONS, ids).await?)
    }

    /// Those ends of these relationships that are nodes of the workspace, and those among them that the sender may see or
    /// has sent.
    pub(super) async fn known_ends(
        &self,
        edges: &[StixRelationship],
    ) -> Result<(HashSet<Uuid>, HashSet<Uuid>), StoreError> {
        let mut ends = HashSet::new();
        for edge in edges {
            ends.insert(node_id(self.ws, &edge.source_ref));
            ends.insert(node_id(self.ws, &edge.target_ref));
        }
        let ids: Vec<_> = ends.into_iter().map(|id| record("node", id)).collect();
        let found = by_key(self.tx.find(self.ws, VERSIONS, ids).await?)?;
        let is_seen =
            |(id, row): &(&Uuid, &ExistingRow)| row.tlp_rank <= self.highest || self.own.contains(*id);
        let seen = found.iter().filter(is_seen).map(|(id, _)| *id).collect();
        Ok((found.into_keys().collect(), seen))
    }
}

fn by_key(rows: Vec<ExistingRow>) -> Result<HashMap<Uuid, ExistingRow>, StoreError> {
    rows.into_iter().map(|row| Ok((key(&row.id)?, row))).collect()
}
