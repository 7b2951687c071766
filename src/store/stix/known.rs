//! Which rows of a bundle exist already.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use surrealdb::types::{Bytes, RecordId, SurrealValue};
use uuid::Uuid;

use super::super::rows::{key, tlp};
use super::Ingest;
use super::targets::{Beside, Rows, Target, VersionRow};
use crate::domain::error::DomainError;
use crate::domain::graph::correction::NodeCorrection;
use crate::domain::graph::merge::NewVersion;
use crate::domain::ids::WorkspaceIds;
use crate::domain::stix::ingest::{StixNode, StixRelationship};
use crate::domain::tlp::Tlp;
use crate::store::connection::error::StoreError;
use crate::store::graph::faces::correction_of;

/// A stored node.
#[derive(Debug, SurrealValue)]
pub(super) struct ExistingNode {
    pub(super) id: RecordId,
    pub(super) modified: Option<DateTime<Utc>>,
    pub(super) evidence: Vec<Uuid>,
    pub(super) evidence_tlp: Vec<i64>,
    pub(super) stix_evidence: Option<Uuid>,
    pub(super) properties: String,
    pub(super) tlp_rank: i64,
    pub(super) held_by: Option<Vec<String>>,
    pub(super) feeds: Option<Vec<Uuid>>,
    pub(super) changed_at: Option<DateTime<Utc>>,
    pub(super) context: Option<bool>,
    pub(super) corrected: Option<String>,
}

/// A stored relationship.
#[derive(Debug, SurrealValue)]
pub(super) struct ExistingEdge {
    pub(super) id: RecordId,
    pub(super) modified: Option<DateTime<Utc>>,
    pub(super) tlp_rank: i64,
    /// The rank of the marking from which the relationship and both its ends are seen.
    seen_from: i64,
    pub(super) held_by: Option<Vec<String>>,
    pub(super) feeds: Option<Vec<Uuid>>,
    pub(super) changed_at: Option<DateTime<Utc>>,
}

impl ExistingNode {
    /// What was set by hand.
    pub(super) fn correction(&self) -> Result<Option<NodeCorrection>, DomainError> {
        correction_of(self.corrected.as_deref())
    }
}

/// A stored end of a relationship.
#[derive(Debug, SurrealValue)]
struct ExistingEnd {
    id: RecordId,
    modified: Option<DateTime<Utc>>,
    tlp_rank: i64,
}

/// The original of a relationship.
#[derive(Debug, SurrealValue)]
pub(super) struct OriginalRow {
    pub(super) id: RecordId,
    pub(super) raw: Option<Bytes>,
}

impl VersionRow for ExistingNode {
    const TABLE: &'static str = "node";
    const QUERY: &'static str = "SELECT id, modified, evidence, evidence_tlp, stix_evidence, properties, tlp_rank, \
                                 held_by, feeds, changed_at, context, corrected FROM $ids WHERE ws = $ws";

    fn id(&self) -> &RecordId {
        &self.id
    }

    fn ranks(&self) -> (i64, i64) {
        (self.tlp_rank, self.tlp_rank)
    }

    fn modified(&self) -> Option<DateTime<Utc>> {
        self.modified
    }

    fn row_id(ids: WorkspaceIds, name: &str) -> Uuid {
        ids.node(name)
    }
}

impl VersionRow for ExistingEdge {
    const TABLE: &'static str = "edge";
    const QUERY: &'static str = "SELECT id, modified, tlp_rank, held_by, feeds, changed_at, \
                                 math::max([tlp_rank, in.tlp_rank ?? 0, out.tlp_rank ?? 0]) AS seen_from \
                                 FROM $ids WHERE ws = $ws";

    fn id(&self) -> &RecordId {
        &self.id
    }

    fn ranks(&self) -> (i64, i64) {
        (self.tlp_rank, self.seen_from)
    }

    fn modified(&self) -> Option<DateTime<Utc>> {
        self.modified
    }

    fn row_id(ids: WorkspaceIds, name: &str) -> Uuid {
        ids.edge(name)
    }
}

impl VersionRow for ExistingEnd {
    const TABLE: &'static str = "node";
    const QUERY: &'static str = "SELECT id, modified, tlp_rank FROM $ids WHERE ws = $ws";

    fn id(&self) -> &RecordId {
        &self.id
    }

    fn ranks(&self) -> (i64, i64) {
        (self.tlp_rank, self.tlp_rank)
    }

    fn modified(&self) -> Option<DateTime<Utc>> {
        self.modified
    }

    fn row_id(ids: WorkspaceIds, name: &str) -> Uuid {
        ids.node(name)
    }
}

/// The node at an end of a relationship.
#[derive(Debug, Clone, Copy)]
pub(super) struct End {
    pub(super) node: Uuid,
    /// Whether the writer may see it, or has sent it.
    pub(super) is_known: bool,
    /// The rank of its marking.
    pub(super) rank: i64,
}

/// The ends of relationships, by STIX id; those that the workspace does not have are absent.
pub(super) type Ends<'p> = HashMap<&'p str, End>;

impl Ingest<'_> {
    /// Whether a row may exist.
    pub(super) fn may_exist(&self, id: &Uuid) -> bool {
        self.known.is_none_or(|known| known.contains(id))
    }

    /// Where each of these nodes goes.
    pub(super) async fn node_targets(
        &self,
        nodes: &[StixNode],
    ) -> Result<Vec<Target<ExistingNode>>, StoreError> {
        let id = |node: &StixNode| self.first_id(&node.stix_id);
        let ids = nodes.iter().map(id).filter(|id| self.may_exist(id)).collect();
        let mut first: Rows<ExistingNode> = self.rows_of(ids).await?;
        let mut asked = Vec::new();
        for node in nodes {
            if let Some(row) = first.get(&id(node))
                && self.is_beside_asked(row, node.modified)?
            {
                asked.push(node.stix_id.as_str());
            }
        }
        let mut beside = self.beside(asked.into_iter()).await?;
        let mut targets = Vec::with_capacity(nodes.len());
        for node in nodes {
            let version = NewVersion {
                modified: node.modified,
                level: node.tlp,
                stated: node.stated,
                earlier: node.earlier,
                seen_from: node.tlp,
            };
            let row = first.remove(&id(node));
            targets.push(self.target(&node.stix_id, &version, row, &mut beside)?);
        }
        Ok(targets)
    }

    /// Where each of these relationships goes; `None` for those that can't be joined.
    pub(super) async fn edge_targets(
        &self,
        edges: &[StixRelationship],
        ends: &Ends<'_>,
    ) -> Result<Vec<Option<Target<ExistingEdge>>>, StoreError> {
        let names: Vec<String> = edges.iter().map(|edge| self.edge_name(edge, ends)).collect();
        let id = |name: &String| self.ids.edge(name);
        // The index knows the ids of all edges, but this was asked only for the usual ones.
        let is_asked = |(edge, name): &(&StixRelationship, &String)| {
            edge.stix_id != **name || self.may_exist(&self.ids.edge(&edge.stix_id))
        };
        let asked = edges.iter().zip(&names).filter(is_asked);
        let ids = asked.map(|(_, name)| id(name)).collect();
        let mut first: Rows<ExistingEdge> = self.rows_of(ids).await?;
        let mut asked = Vec::new();
        for (edge, name) in edges.iter().zip(&names) {
            if let Some(row) = first.get(&id(name))
                && self.is_beside_asked(row, edge.modified)?
            {
                asked.push(name.as_str());
            }
        }
        let mut beside = self.beside(asked.into_iter()).await?;
        let mut targets = Vec::with_capacity(edges.len());
        for (edge, name) in edges.iter().zip(&names) {
            let joined = ends
                .get(edge.source_ref.as_str())
                .zip(ends.get(edge.target_ref.as_str()));
            let Some((source, target)) = joined else {
                targets.push(None);
                continue;
            };
            let version = NewVersion {
                modified: edge.modified,
                level: edge.tlp,
                stated: edge.stated,
                earlier: edge.earlier,
                seen_from: edge.tlp.max(tlp(source.rank)?).max(tlp(target.rank)?),
            };
            let row = first.remove(&id(name));
            targets.push(Some(self.target(name, &version, row, &mut beside)?));
        }
        Ok(targets)
    }

    /// The name from which the id of a relationship is made: its own id, and the nodes that it joins where these stand
    /// beside others. So a relationship never moves from one node of an object to another.
    fn edge_name(&self, edge: &StixRelationship, ends: &Ends<'_>) -> String {
        let mut name = edge.stix_id.clone();
        for end in [&edge.source_ref, &edge.target_ref] {
            let usual = self.first_id(end);
            if let Some(end) = ends.get(end.as_str()).filter(|end| end.node != usual) {
                name.push_str(&format!("\0{}", end.node));
            }
        }
        name
    }

    /// The nodes at the ends of these relationships: for each object the one that the writer sees or has sent.
    pub(super) async fn ends<'p>(&self, edges: &'p [StixRelationship]) -> Result<Ends<'p>, StoreError> {
        let refs = edges.iter().flat_map(|edge| [&edge.source_ref, &edge.target_ref]);
        let refs: HashSet<&str> = refs.map(String::as_str).collect();
        let place = |stix_id: &str| {
            let id = self.first_id(stix_id);
            self.placed.get(&id).copied().unwrap_or(id)
        };
        let mut rows: Rows<ExistingEnd> = self.rows_of(refs.iter().map(|id| place(id)).collect()).await?;
        let (mut ends, mut hidden) = (Ends::new(), Vec::new());
        for stix_id in refs {
            let node = place(stix_id);
            let Some(row) = rows.remove(&node) else { continue };
            let is_known = self.sees(row.tlp_rank) || self.own.contains(&self.first_id(stix_id));
            if !is_known {
                hidden.push(stix_id);
            }
            let rank = row.tlp_rank;
            ends.insert(stix_id, End { node, is_known, rank });
        }
        let mut beside: Beside<ExistingEnd> = self.beside(hidden.iter().copied()).await?;
        for stix_id in hidden {
            let rows = beside.remove(stix_id).unwrap_or_default();
            if let Some(row) = self.newest_seen(rows)? {
                let node = key(&row.id)?;
                let rank = row.tlp_rank;
                ends.insert(
                    stix_id,
                    End {
                        node,
                        is_known: true,
                        rank,
                    },
                );
            }
        }
        Ok(ends)
    }
}

impl ExistingNode {
    pub(super) fn level(&self) -> Result<Tlp, StoreError> {
        Ok(tlp(self.tlp_rank)?)
    }

    pub(super) fn key(&self) -> Result<Uuid, StoreError> {
        Ok(key(&self.id)?)
    }
}

impl ExistingEdge {
    pub(super) fn level(&self) -> Result<Tlp, StoreError> {
        Ok(tlp(self.tlp_rank)?)
    }
}
