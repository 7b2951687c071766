//! Row types of notes, entities and relationships, and their conversion to and from the domain.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};
use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use super::{ENTITY_SOURCE, NoteHead, StoredEntity, StoredNote, StoredRelation};
use crate::domain::error::DomainError;
use crate::domain::memory::digest::Digest;
use crate::domain::memory::entity::{EntityDraft, EntityKey};
use crate::domain::memory::note::{self, Note, domain_of};
use crate::domain::memory::tier::Tier;
use crate::domain::tlp::Tlp;
use crate::store::rows::{EdgeRow, NodeRow, corrupt, key, record};

#[derive(Debug, Clone, SurrealValue)]
pub(super) struct NoteRow {
    pub(in crate::store) id: RecordId,
    pub(in crate::store) ws: Uuid,
    pub(in crate::store) content: String,
    pub(super) label: String,
    pub(in crate::store) domain: String,
    pub(in crate::store) source_type: String,
    pub(in crate::store) source_ref: String,
    pub(in crate::store) source_refs: Option<Vec<String>>,
    pub(in crate::store) tier: String,
    pub(in crate::store) confidence: f64,
    pub(in crate::store) flags: Vec<String>,
    pub(in crate::store) digest: String,
    pub(in crate::store) mentions: Vec<Uuid>,
    pub(in crate::store) superseded_by: Option<Uuid>,
    pub(in crate::store) rev: i64,
    pub(in crate::store) created_at: DateTime<Utc>,
}

#[derive(Debug, SurrealValue)]
pub(super) struct NoteHeadRow {
    pub(in crate::store) id: RecordId,
    pub(super) label: String,
    pub(in crate::store) domain: String,
    pub(in crate::store) tier: String,
    pub(in crate::store) confidence: f64,
    pub(in crate::store) digest: String,
    pub(in crate::store) mentions: Vec<Uuid>,
    pub(in crate::store) superseded_by: Option<Uuid>,
    pub(in crate::store) rev: i64,
    pub(in crate::store) created_at: DateTime<Utc>,
}

#[derive(Debug, SurrealValue)]
pub(super) struct NoteEntityRow {
    pub(in crate::store) id: RecordId,
    pub(in crate::store) name: String,
    pub(in crate::store) confidence: f64,
    pub(in crate::store) properties: String,
    pub(in crate::store) rev: i64,
    pub(in crate::store) ingested_at: DateTime<Utc>,
    pub(in crate::store) merged_into: Option<Uuid>,
}

#[derive(Debug, Clone, SurrealValue)]
pub(super) struct RestatementRow {
    pub(in crate::store) id: RecordId,
    pub(in crate::store) proof: Option<String>,
    pub(in crate::store) note: Option<Uuid>,
}

#[derive(Debug, Clone, SurrealValue)]
pub(super) struct RowUpdate {
    pub(in crate::store) id: RecordId,
    pub(in crate::store) by: Option<Uuid>,
    pub(in crate::store) mentions: Vec<Uuid>,
    pub(in crate::store) confidence: f64,
    pub(in crate::store) properties: Option<String>,
}

#[derive(Debug, Clone, SurrealValue)]
pub(super) struct RepeatRow {
    pub(in crate::store) id: RecordId,
    pub(in crate::store) tier: String,
    pub(in crate::store) confidence: f64,
    pub(in crate::store) source_refs: Vec<String>,
}

#[derive(Debug, Clone, SurrealValue)]
pub(super) struct WaitingRow {
    pub(in crate::store) id: RecordId,
    pub(in crate::store) ws: Uuid,
    pub(in crate::store) attempts: i64,
    pub(in crate::store) created_at: DateTime<Utc>,
}

/// Builds the rows of one write.
pub(super) struct NoteRowBuilder {
    pub(in crate::store) ws: Uuid,
    pub(in crate::store) now: DateTime<Utc>,
    pub(super) stamp: i64,
}

impl NoteRowBuilder {
    pub(in crate::store) fn note(&self, note: &Note, digest: &Digest) -> NoteRow {
        NoteRow {
            id: record("note", note.id),
            ws: self.ws,
            label: note::label(&note.content),
            content: note.content.clone(),
            domain: note.domain.clone(),
            source_type: note.source_type.clone(),
            source_ref: note.source_ref.clone(),
            source_refs: Some(note.source_refs.clone()),
            tier: note.tier.clone(),
            confidence: note.confidence,
            flags: note.flags.clone(),
            digest: hex::encode(digest),
            mentions: note.mentions.clone(),
            superseded_by: note.superseded_by,
            rev: self.stamp,
            created_at: note.created_at,
        }
    }

    pub(in crate::store) fn entity(&self, entity: &StoredEntity) -> NodeRow {
        let EntityDraft {
            key,
            name,
            aliases,
            confidence,
        } = &entity.draft;
        NodeRow {
            node_type: key.node_type().as_str().into(),
            name: name.clone(),
            source_type: ENTITY_SOURCE.into(),
            tlp_rank: i64::from(Tlp::White.rank()),
            confidence: *confidence,
            properties: entity_properties(key, aliases),
            rev: self.stamp,
            ingested_at: self.now,
            ..NodeRow::empty(self.ws, entity.id)
        }
    }

    pub(in crate::store) fn edge(&self, relation: &StoredRelation) -> EdgeRow {
        EdgeRow {
            id: record("edge", relation.id),
            source: record("node", relation.source),
            target: record("node", relation.target),
            ws: self.ws,
            relationship: relation.relationship.clone(),
            tlp_rank: i64::from(Tlp::White.rank()),
            confidence: relation.confidence,
            active: true,
            modified: None,
            raw: None,
            proof: relation.proof.clone(),
            evidence: relation.note,
            properties: relation
                .properties
                .clone()
                .map(|map| Value::Object(map).to_string()),
            held_by: None,
            feeds: None,
            changed_at: None,
            beside: None,
            context: None,
            corrected: None,
            rev: None,
            created_at: relation.created_at,
        }
    }

    pub(in crate::store) fn waiting_row(&self, note: Uuid) -> WaitingRow {
        WaitingRow {
            id: record("enrichment", note),
            ws: self.ws,
            attempts: 0,
            created_at: self.now,
        }
    }
}

fn entity_properties(key: &EntityKey, aliases: &[String]) -> String {
    json!({"entity_type": key.entity_type, "entity_value": key.value, "aliases": aliases}).to_string()
}

pub(super) fn alias_update(entity: &StoredEntity) -> RowUpdate {
    RowUpdate {
        id: record("node", entity.id),
        by: None,
        mentions: Vec::new(),
        confidence: entity.draft.confidence,
        properties: Some(entity_properties(&entity.draft.key, &entity.draft.aliases)),
    }
}

pub(super) fn edge_update(relation: &StoredRelation) -> RowUpdate {
    RowUpdate {
        id: record("edge", relation.id),
        by: None,
        mentions: Vec::new(),
        confidence: relation.confidence,
        properties: relation
            .properties
            .clone()
            .map(|map| Value::Object(map).to_string()),
    }
}

pub(super) fn restatement(relation: &StoredRelation) -> RestatementRow {
    RestatementRow {
        id: record("edge", relation.id),
        proof: relation.proof.clone(),
        note: relation.note,
    }
}

pub(super) fn merge_update(entity: &StoredEntity) -> RowUpdate {
    RowUpdate {
        id: record("node", entity.id),
        by: entity.merged_into,
        mentions: Vec::new(),
        confidence: entity.draft.confidence,
        properties: None,
    }
}

pub(super) fn mention_update((note, mentions): &(Uuid, Vec<Uuid>)) -> RowUpdate {
    RowUpdate {
        id: record("note", *note),
        by: None,
        mentions: mentions.clone(),
        confidence: 0.0,
        properties: None,
    }
}

pub(super) fn supersession_update((old, by): &(Uuid, Uuid)) -> RowUpdate {
    RowUpdate {
        id: record("note", *old),
        by: Some(*by),
        mentions: Vec::new(),
        confidence: 0.0,
        properties: None,
    }
}

pub(super) fn repeat_row(note: &Note) -> RepeatRow {
    RepeatRow {
        id: record("note", note.id),
        tier: note.tier.clone(),
        confidence: note.confidence,
        source_refs: note.source_refs.clone(),
    }
}

pub(in crate::store) fn relation(row: EdgeRow) -> Result<StoredRelation, DomainError> {
    Ok(StoredRelation {
        id: key(&row.id)?,
        source: key(&row.source)?,
        target: key(&row.target)?,
        relationship: row.relationship,
        confidence: row.confidence,
        proof: row.proof,
        note: row.evidence,
        properties: row
            .properties
            .map(|text| serde_json::from_str(&text).map_err(corrupt))
            .transpose()?,
        created_at: row.created_at,
    })
}

impl NoteRow {
    pub(super) fn into_stored(self) -> Result<StoredNote, DomainError> {
        let first = Some(self.source_ref).filter(|source| !source.is_empty());
        let source_refs = self
            .source_refs
            .unwrap_or_else(|| first.iter().cloned().collect());
        Ok(StoredNote {
            rev: u64::try_from(self.rev).unwrap_or(0),
            note: Note {
                id: key(&self.id)?,
                content: self.content,
                domain: domain_of(&self.domain).to_owned(),
                source_type: self.source_type,
                source_ref: first.or_else(|| source_refs.first().cloned()).unwrap_or_default(),
                source_refs,
                tier: self.tier,
                confidence: self.confidence,
                flags: self.flags,
                mentions: self.mentions,
                superseded_by: self.superseded_by,
                created_at: self.created_at,
            },
        })
    }
}

impl NoteHeadRow {
    pub(in crate::store) fn into_head(self) -> Result<NoteHead, DomainError> {
        let mut digest = Digest::default();
        hex::decode_to_slice(&self.digest, &mut digest).map_err(corrupt)?;
        Ok(NoteHead {
            id: key(&self.id)?,
            label: self.label,
            domain: domain_of(&self.domain).to_owned(),
            tier: self.tier.parse().unwrap_or(Tier::C),
            confidence: self.confidence,
            digest,
            mentions: self.mentions,
            superseded_by: self.superseded_by,
            created_at: self.created_at,
        })
    }
}

impl NoteEntityRow {
    pub(in crate::store) fn into_entity(self) -> Result<StoredEntity, DomainError> {
        let properties: Map<String, Value> = serde_json::from_str(&self.properties).map_err(corrupt)?;
        let text = |key: &str| {
            properties
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let aliases = properties.get("aliases").and_then(Value::as_array);
        let aliases = aliases
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned);
        Ok(StoredEntity {
            id: key(&self.id)?,
            draft: EntityDraft {
                key: EntityKey {
                    entity_type: text("entity_type"),
                    value: text("entity_value"),
                },
                name: self.name,
                aliases: aliases.collect(),
                confidence: self.confidence,
            },
            created_at: self.ingested_at,
            merged_into: self.merged_into,
        })
    }
}
