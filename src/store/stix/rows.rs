//! Row types of the objects of a STIX bundle.

use chrono::{DateTime, Utc};
use surrealdb::types::{Bytes, RecordId};
use uuid::Uuid;

use crate::domain::ids::WorkspaceIds;
use crate::domain::stix::ingest::{StixNode, StixRelationship, StixSupport};
use crate::domain::tlp::Tlp;
use crate::store::rows::{EdgeRow, EvidenceRow, NodeRow, SupportRow, record};

/// Builds the rows of one transaction.
pub(in crate::store) struct StixRows {
    pub ws: Uuid,
    pub ids: WorkspaceIds,
    pub now: DateTime<Utc>,
    /// The number of the write.
    pub rev: i64,
    /// The feed that the objects come from.
    pub feed: Option<Uuid>,
}

/// The id of a supporting object in a workspace, which no answer shows.
pub(in crate::store) fn support_id(ws: Uuid, stix_id: &str) -> Uuid {
    Uuid::new_v5(&ws, format!("support\0{stix_id}").as_bytes())
}

/// The name from which the id of the evidence of a version is made; `beside` is its row if the object's id does not name
/// it.
fn evidence_name(node: &StixNode, beside: Option<Uuid>) -> String {
    let mut name = format!("{}\0{}", node.stix_id, node.modified);
    if let Some(row) = beside {
        name.push_str(&format!("\0{row}"));
    }
    name
}

impl StixRows {
    /// The evidence of a version with this marking; `beside` is its row if the object's id does not name it.
    pub(in crate::store) fn evidence(
        &self,
        node: &StixNode,
        beside: Option<Uuid>,
        level: Tlp,
    ) -> EvidenceRow {
        EvidenceRow {
            id: record("evidence", self.ids.evidence(&evidence_name(node, beside))),
            ws: self.ws,
            kind: "stix".into(),
            ext_id: Some(node.stix_id.clone()),
            title: node.name.clone(),
            source: node.source.clone(),
            tlp_rank: i64::from(level.rank()),
            raw: Some(Bytes::from(node.raw.clone())),
            node: beside,
            rejected: None,
            created_at: self.now,
        }
    }

    /// The row of a version with this marking, without links to evidence.
    pub(in crate::store) fn node(&self, id: Uuid, node: &StixNode, source: Uuid, level: Tlp) -> NodeRow {
        NodeRow {
            id: record("node", id),
            ws: self.ws,
            node_type: node.node_type.as_str().into(),
            name: node.name.clone(),
            description: node.description.clone(),
            source: node.source.clone(),
            source_type: "stix".into(),
            tlp_rank: i64::from(level.rank()),
            confidence: node.confidence,
            properties: node.properties.clone(),
            status: node.status.as_str().into(),
            evidence: Vec::new(),
            evidence_tlp: Vec::new(),
            stix_evidence: Some(source),
            modified: Some(node.modified),
            held_by: held_by(&node.held_by),
            feeds: self.feeds(),
            changed_at: None,
            context: node.is_context().then_some(true),
            corrected: None,
            rejected: None,
            rev: self.rev,
            ingested_at: self.now,
        }
    }

    pub(in crate::store) fn edge(
        &self,
        edge: &StixRelationship,
        id: RecordId,
        (source, target): (Uuid, Uuid),
        level: Tlp,
    ) -> EdgeRow {
        let first = record("edge", self.ids.edge(&edge.stix_id));
        EdgeRow {
            beside: (id != first).then_some(first),
            id,
            source: record("node", source),
            target: record("node", target),
            ws: self.ws,
            relationship: edge.relationship.clone(),
            tlp_rank: i64::from(level.rank()),
            confidence: edge.confidence,
            active: edge.active,
            modified: Some(edge.modified),
            raw: (!edge.is_reference()).then(|| Bytes::from(edge.raw.clone())),
            proof: None,
            evidence: None,
            properties: None,
            held_by: held_by(&edge.held_by),
            feeds: self.feeds(),
            changed_at: None,
            context: edge.is_context().then_some(true),
            corrected: None,
            rev: None,
            created_at: self.now,
        }
    }

    pub(in crate::store) fn support(&self, object: &StixSupport, id: RecordId, level: Tlp) -> SupportRow {
        SupportRow {
            id,
            ws: self.ws,
            stix_id: object.stix_id.clone(),
            tlp_rank: i64::from(level.rank()),
            states: object.states.map(|level| i64::from(level.rank())),
            modified: object.modified,
            held_by: held_by(&object.held_by),
            feeds: self.feeds(),
            raw: Bytes::from(object.raw.clone()),
        }
    }

    fn feeds(&self) -> Option<Vec<Uuid>> {
        self.feed.map(|feed| vec![feed])
    }
}

fn held_by(markings: &[String]) -> Option<Vec<String>> {
    (!markings.is_empty()).then(|| markings.to_vec())
}
