//! The rows of staging, and their way to and from the domain.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use surrealdb::types::{Bytes, RecordId, SurrealValue};
use uuid::Uuid;

use super::rows::{corrupt, key, pack, parse, record, tlp, unpack};
use super::staging::NewBatch;
use crate::domain::draft::{EdgeDraft, EvidenceDraft, NodeDraft, identity};
use crate::domain::error::DomainError;
use crate::domain::staging::{ExtractedEntity, ExtractedRelation, StagedEntity, StagingBatch};
use crate::domain::tlp::Tlp;

#[derive(Debug, Clone, SurrealValue)]
pub(super) struct BatchRow {
    pub id: RecordId,
    pub ws: Uuid,
    pub user: Uuid,
    pub status: String,
    pub source_type: String,
    pub session_id: Option<String>,
    pub ingest_mode: String,
    pub summary: String,
    pub warnings: Vec<String>,
    pub source: Bytes,
    pub relations: String,
    pub tlp_rank: i64,
    pub created_at: DateTime<Utc>,
    pub committed_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, SurrealValue)]
pub(super) struct EntityRow {
    pub id: RecordId,
    pub ws: Uuid,
    pub batch: Uuid,
    pub ord: i64,
    pub status: String,
    pub node_type: String,
    pub name: String,
    pub description: String,
    pub identity: String,
    pub merge_by_name: bool,
    pub properties: String,
    pub proposed_tlp: i64,
    pub confidence: f64,
    pub resolved_tlp: Option<i64>,
    pub merge_target: Option<Uuid>,
    pub duplicates: String,
    pub warnings: Vec<String>,
    pub reasoning: String,
    pub node: Option<Uuid>,
}

/// A stated relationship as it is kept: ends by their place in the batch.
#[derive(Serialize, Deserialize)]
struct KeptRelation {
    source: i64,
    target: i64,
    relationship: String,
    proof: String,
    confidence: f64,
}

impl BatchRow {
    pub(super) fn new(ws: Uuid, new: &NewBatch<'_>) -> Result<Self, DomainError> {
        let batch = new.batch;
        let source = json!({
            "text": new.text, "source_type": batch.source_type, "session_id": batch.session_id,
        });
        let place = |index: usize| i64::try_from(index).unwrap_or(i64::MAX);
        let relations: Vec<KeptRelation> = new
            .relations
            .iter()
            .map(
                |ExtractedRelation {
                     source,
                     target,
                     relationship,
                     proof,
                     confidence,
                 }| KeptRelation {
                    source: place(*source),
                    target: place(*target),
                    relationship: relationship.clone(),
                    proof: proof.clone(),
                    confidence: *confidence,
                },
            )
            .collect();
        Ok(Self {
            id: record("staging_batch", batch.id),
            ws,
            user: new.user,
            status: batch.status.clone(),
            source_type: batch.source_type.as_str().into(),
            session_id: batch.session_id.clone(),
            ingest_mode: batch.ingest_mode.as_str().into(),
            summary: serde_json::to_string(&batch.summary).map_err(corrupt)?,
            warnings: batch.warnings.clone(),
            source: pack(source.as_object().unwrap_or(&Map::new())),
            relations: serde_json::to_string(&relations).map_err(corrupt)?,
            tlp_rank: i64::from(new.tlp.rank()),
            created_at: batch.created_at,
            committed_at: batch.committed_at,
        })
    }

    pub(super) fn into_batch(self) -> Result<StagingBatch, DomainError> {
        Ok(StagingBatch {
            id: key(&self.id)?,
            status: self.status,
            source_type: parse(&self.source_type)?,
            session_id: self.session_id,
            ingest_mode: parse(&self.ingest_mode)?,
            summary: serde_json::from_str(&self.summary).map_err(corrupt)?,
            warnings: self.warnings,
            created_at: self.created_at,
            committed_at: self.committed_at,
        })
    }

    /// The text as the evidence of everything committed from the batch.
    pub(super) fn evidence(&self) -> Result<EvidenceDraft, DomainError> {
        let id = key(&self.id)?.to_string();
        Ok(EvidenceDraft {
            identity: identity(["staged", &id]),
            kind: "staged",
            ext_id: Some(id),
            title: format!(
                "{} of {}",
                self.source_type,
                self.created_at.format("%Y-%m-%d %H:%M")
            ),
            source: self
                .session_id
                .clone()
                .unwrap_or_else(|| self.source_type.clone()),
            tlp: tlp(self.tlp_rank)?,
            raw: unpack(&self.source)?,
        })
    }

    /// The stated relationships: the places of both ends, and the edge without them.
    pub(super) fn relations(&self) -> Result<Vec<(i64, i64, EdgeDraft)>, DomainError> {
        let kept: Vec<KeptRelation> = serde_json::from_str(&self.relations).map_err(corrupt)?;
        let marking = tlp(self.tlp_rank)?;
        let edge = |relation: KeptRelation| {
            let KeptRelation {
                source,
                target,
                relationship,
                proof,
                confidence,
            } = relation;
            let edge = EdgeDraft {
                source: 0,
                target: 0,
                relationship,
                tlp: marking,
                confidence,
                proof,
                evidence: 0,
            };
            (source, target, edge)
        };
        Ok(kept.into_iter().map(edge).collect())
    }
}

impl EntityRow {
    pub(super) fn new(
        ws: Uuid,
        ord: i64,
        entity: &StagedEntity,
        found: &ExtractedEntity,
    ) -> Result<Self, DomainError> {
        Ok(Self {
            id: record("staged_entity", entity.id),
            ws,
            batch: entity.batch_id,
            ord,
            status: entity.status.as_str().into(),
            node_type: entity.node_type.as_str().into(),
            name: entity.name.clone(),
            description: entity.description.clone(),
            identity: found.identity.clone(),
            merge_by_name: found.merge_by_name,
            properties: Value::Object(found.properties.clone()).to_string(),
            proposed_tlp: i64::from(entity.proposed_tlp.rank()),
            confidence: entity.proposed_confidence,
            resolved_tlp: entity.resolved_tlp.map(|level| i64::from(level.rank())),
            merge_target: entity.merge_target_id,
            duplicates: serde_json::to_string(&entity.duplicate_candidates).map_err(corrupt)?,
            warnings: entity.warnings.clone(),
            reasoning: entity.extraction_reasoning.clone(),
            node: None,
        })
    }

    pub(super) fn into_entity(self) -> Result<StagedEntity, DomainError> {
        Ok(StagedEntity {
            id: key(&self.id)?,
            batch_id: self.batch,
            status: parse(&self.status)?,
            node_type: parse(&self.node_type)?,
            name: self.name,
            description: self.description,
            proposed_tlp: tlp(self.proposed_tlp)?,
            proposed_confidence: self.confidence,
            resolved_tlp: self.resolved_tlp.map(tlp).transpose()?,
            merge_target_id: self.merge_target,
            duplicate_candidates: serde_json::from_str(&self.duplicates).map_err(corrupt)?,
            warnings: self.warnings,
            extraction_reasoning: self.reasoning,
            node_id: self.node,
        })
    }

    /// The entity as a node with the batch's text, evidence 0, behind it.
    pub(super) fn draft(&self) -> Result<NodeDraft, DomainError> {
        let marking: Tlp = tlp(self.resolved_tlp.unwrap_or(self.proposed_tlp))?;
        let properties: Map<String, Value> = serde_json::from_str(&self.properties).map_err(corrupt)?;
        Ok(NodeDraft {
            identity: self.identity.clone(),
            node_type: parse(&self.node_type)?,
            name: self.name.clone(),
            description: self.description.clone(),
            source: "preview".into(),
            source_type: "staged",
            tlp: marking,
            confidence: self.confidence,
            properties,
            evidence: vec![0],
            merge_by_name: self.merge_by_name,
        })
    }
}
