//! What a row says before and after a write, as far as the list of changes tells it, and what was set by hand of it.

use std::collections::HashMap;

use serde_json::{Map, Value};
use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use crate::domain::change::{EdgeFace, GraphChange, NodeFace};
use crate::domain::error::DomainError;
use crate::domain::graph::correction::{CorrectableFields, NodeCorrection, StatusCorrection};
use crate::domain::tlp::Tlp;
use crate::store::connection::error::StoreError;
use crate::store::connection::tx::WriteTx;
use crate::store::rows::{EdgeRow, NodeRow, corrupt, key, parse, tlp};
use crate::store::stix::context::REFERENCE;

/// A stored node.
#[derive(Debug, Clone, SurrealValue)]
pub(in crate::store) struct StoredNodeFace {
    id: RecordId,
    name: String,
    description: String,
    source: String,
    pub(super) tlp_rank: i64,
    confidence: f64,
    properties: String,
    pub(super) status: String,
    pub(super) held_by: Option<Vec<String>>,
    evidence: Vec<Uuid>,
    evidence_tlp: Vec<i64>,
    pub(super) corrected: Option<String>,
    pub(super) rejected: Option<Vec<Uuid>>,
}

/// A stored edge.
#[derive(Debug, Clone, SurrealValue)]
pub(in crate::store) struct StoredEdgeFace {
    id: RecordId,
    relationship: String,
    pub(super) tlp_rank: i64,
    confidence: f64,
    pub(super) active: bool,
    pub(super) corrected: Option<String>,
    is_reference: bool,
}

impl StoredNodeFace {
    /// Those of these nodes that exist.
    pub(in crate::store) async fn find(
        tx: &WriteTx,
        ws: Uuid,
        ids: Vec<RecordId>,
    ) -> Result<HashMap<Uuid, Self>, StoreError> {
        let query = "SELECT id, name, description, source, tlp_rank, confidence, properties, status, held_by, \
                     evidence, evidence_tlp, corrected, rejected FROM $ids WHERE ws = $ws";
        let rows: Vec<Self> = tx.find(ws, query, ids).await?;
        let rows = rows.into_iter().map(|row| Ok((key(&row.id)?, row)));
        Ok(rows.collect::<Result<_, DomainError>>()?)
    }

    /// What a row says.
    pub(in crate::store) fn of(row: &NodeRow) -> Self {
        Self {
            id: row.id.clone(),
            name: row.name.clone(),
            description: row.description.clone(),
            source: row.source.clone(),
            tlp_rank: row.tlp_rank,
            confidence: row.confidence,
            properties: row.properties.clone(),
            status: row.status.clone(),
            held_by: row.held_by.clone(),
            evidence: row.evidence.clone(),
            evidence_tlp: row.evidence_tlp.clone(),
            corrected: row.corrected.clone(),
            rejected: row.rejected.clone(),
        }
    }

    fn face(&self, properties: Map<String, Value>) -> Result<NodeFace, DomainError> {
        let evidence = self.evidence.iter().zip(&self.evidence_tlp);
        Ok(NodeFace {
            name: self.name.clone(),
            description: self.description.clone(),
            source: self.source.clone(),
            tlp: tlp(self.tlp_rank)?,
            confidence: self.confidence,
            properties,
            status: parse(&self.status)?,
            evidence: evidence
                .map(|(id, rank)| Ok((*id, tlp(*rank)?)))
                .collect::<Result<_, DomainError>>()?,
        })
    }
}

impl StoredEdgeFace {
    /// Those of these edges that exist.
    pub(in crate::store) async fn find(
        tx: &WriteTx,
        ws: Uuid,
        ids: Vec<RecordId>,
    ) -> Result<HashMap<Uuid, Self>, StoreError> {
        let query = &format!(
            "SELECT id, relationship, tlp_rank, confidence, active, corrected, {REFERENCE} AS is_reference \
             FROM $ids WHERE ws = $ws"
        );
        let rows: Vec<Self> = tx.find(ws, query, ids).await?;
        let rows = rows.into_iter().map(|row| Ok((key(&row.id)?, row)));
        Ok(rows.collect::<Result<_, DomainError>>()?)
    }

    /// Whether it stands in a property of its source and is no object.
    pub(super) fn is_reference(&self) -> bool {
        self.is_reference
    }

    fn face(&self) -> Result<EdgeFace, DomainError> {
        Ok(EdgeFace {
            relationship: self.relationship.clone(),
            tlp: tlp(self.tlp_rank)?,
            confidence: self.confidence,
            active: self.active,
        })
    }
}

/// How a write changes a node, and the marking from which that is seen.
pub(super) fn node_change(
    before: &StoredNodeFace,
    after: &NodeRow,
) -> Result<Option<(Tlp, GraphChange)>, StoreError> {
    // Properties are read only if they differ.
    let is_same = before.properties == after.properties;
    let read = |text: &str| match is_same {
        true => Ok(Map::new()),
        false => serde_json::from_str(text).map_err(corrupt),
    };
    let old = before.face(read(&before.properties)?)?;
    let new = StoredNodeFace::of(after).face(read(&after.properties)?)?;
    Ok(GraphChange::of_node(key(&after.id)?, &old, &new))
}

/// How a write changes an edge, and the marking from which that is seen, apart from those of its ends.
pub(super) fn edge_change(
    before: &StoredEdgeFace,
    after: &EdgeRow,
) -> Result<Option<(Tlp, GraphChange)>, StoreError> {
    let new = StoredEdgeFace {
        id: after.id.clone(),
        relationship: after.relationship.clone(),
        tlp_rank: after.tlp_rank,
        confidence: after.confidence,
        active: after.active,
        corrected: None,
        is_reference: false,
    };
    Ok(GraphChange::of_edge(
        key(&after.id)?,
        &before.face()?,
        &new.face()?,
    ))
}

impl NodeRow {
    /// What was set by hand.
    pub(in crate::store) fn correction(&self) -> Result<Option<NodeCorrection>, DomainError> {
        correction_of(self.corrected.as_deref())
    }

    /// Gives the row back what sources state, apart from its marking.
    pub(in crate::store) fn lift_correction(&mut self) -> Result<(), DomainError> {
        if let Some(correction) = self.correction()? {
            let mut fields = self.correctable()?;
            correction.lift(&mut fields);
            self.set_correctable(fields)?;
        }
        Ok(())
    }

    /// Sets what was set by hand over what sources state now.
    pub(in crate::store) fn lay_correction(&mut self) -> Result<(), DomainError> {
        if let Some(mut correction) = self.correction()? {
            let mut fields = self.correctable()?;
            correction.lay(&mut fields);
            self.set_correctable(fields)?;
            self.set_correction(&correction);
        }
        Ok(())
    }

    pub(in crate::store) fn set_correction(&mut self, correction: &NodeCorrection) {
        // Serializing plain fields cannot fail.
        self.corrected = serde_json::to_string(correction).ok();
    }

    /// The fields that can be set by hand, as the row has them.
    pub(in crate::store) fn correctable(&self) -> Result<CorrectableFields, DomainError> {
        let properties: Map<String, Value> = serde_json::from_str(&self.properties).map_err(corrupt)?;
        let aliases = properties.get("aliases").and_then(Value::as_array);
        let aliases = aliases.into_iter().flatten().filter_map(Value::as_str);
        Ok(CorrectableFields {
            name: self.name.clone(),
            description: self.description.clone(),
            aliases: aliases.map(str::to_owned).collect(),
            confidence: self.confidence,
            tlp: tlp(self.tlp_rank)?,
            status: parse(&self.status)?,
        })
    }

    pub(in crate::store) fn set_correctable(&mut self, fields: CorrectableFields) -> Result<(), DomainError> {
        let before = self.correctable()?;
        if fields.aliases != before.aliases {
            let mut properties: Map<String, Value> =
                serde_json::from_str(&self.properties).map_err(corrupt)?;
            match fields.aliases.is_empty() {
                true => properties.remove("aliases"),
                false => properties.insert("aliases".into(), fields.aliases.into()),
            };
            self.properties = Value::Object(properties).to_string();
        }
        self.name = fields.name;
        self.description = fields.description;
        self.confidence = fields.confidence;
        self.tlp_rank = i64::from(fields.tlp.rank());
        self.status = fields.status.as_str().into();
        Ok(())
    }
}

/// What was set by hand of a node, as it is stored.
pub(in crate::store) fn correction_of(stored: Option<&str>) -> Result<Option<NodeCorrection>, DomainError> {
    stored
        .map(|text| serde_json::from_str(text).map_err(corrupt))
        .transpose()
}

impl EdgeRow {
    /// Rejects or restores the edge as was set by hand, and remembers what sources state.
    pub(in crate::store) fn lay_correction(&mut self) -> Result<(), DomainError> {
        let Some(text) = &self.corrected else {
            return Ok(());
        };
        let mut correction: StatusCorrection = serde_json::from_str(text).map_err(corrupt)?;
        correction.stated = self.active;
        self.active = correction.active;
        self.corrected = serde_json::to_string(&correction).ok();
        Ok(())
    }
}
