//! Row types of staging, and their conversion to and from the domain.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use surrealdb::types::{Bytes, RecordId, SurrealValue};
use uuid::Uuid;

use super::parts::NewBatch;
use crate::domain::draft::{EdgeDraft, EvidenceDraft, JsonText, NodeDraft, identity};
use crate::domain::error::DomainError;
use crate::domain::staging::{ExtractedEntity, ExtractedRelation, StagedEntity, StagingBatch, Summary};
use crate::domain::tlp::Tlp;
use crate::store::connection::error::StoreError;
use crate::store::connection::tx::WriteTx;
use crate::store::rows::{corrupt, key, pack, parse, record, tlp, unpack};

#[derive(Debug, Clone, SurrealValue)]
pub(in crate::store) struct BatchRow {
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
    pub text_rank: Option<i64>,
    pub sensitive: Option<bool>,
    pub parts: Option<i64>,
    pub text_bytes: Option<i64>,
    pub discarded: Option<Vec<String>>,
    pub created_at: DateTime<Utc>,
    /// When its last entity was committed.
    pub committed_at: Option<DateTime<Utc>>,
    /// The same of what one sees who is cleared up to its marking, and up to each level above it, as far as that is so.
    pub commits_by_level: Option<Vec<DateTime<Utc>>>,
}

/// One text of a batch with the relationships it states.
#[derive(Debug, Clone, SurrealValue)]
pub(in crate::store) struct PartRow {
    pub id: RecordId,
    pub ws: Uuid,
    pub batch: Uuid,
    pub ord: i64,
    pub source_type: String,
    pub source: Bytes,
    pub relations: String,
    pub tlp_rank: i64,
    pub sensitive: bool,
    pub created_at: DateTime<Utc>,
}

#[derive(Debug, Clone, SurrealValue)]
pub(in crate::store) struct StagedEntityRow {
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
    pub parts: Option<Vec<i64>>,
    pub linked: Option<Vec<i64>>,
    pub unmarked: Option<bool>,
}

/// A stated relationship as stored: its ends are positions in the batch.
#[derive(Serialize, Deserialize)]
struct KeptRelation {
    source: i64,
    target: i64,
    relationship: String,
    proof: String,
    confidence: f64,
}

/// A stated relationship of a batch: the positions of both ends, and the edge without them.
pub(super) type StatedEdge = (i64, i64, EdgeDraft);

impl BatchRow {
    /// A batch of one text, whose entities keep their positions in the extraction.
    pub(in crate::store) fn new(ws: Uuid, new: &NewBatch<'_>) -> Result<Self, DomainError> {
        let batch = new.batch;
        let places: Vec<Option<i64>> = (0..).map(Some).take(new.entities.len()).collect();
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
            source: source_of(new),
            relations: relations_of(new, &places)?,
            tlp_rank: i64::from(new.tlp.rank()),
            text_rank: None,
            sensitive: Some(new.sensitive),
            parts: Some(1),
            text_bytes: Some(bytes_of(new)),
            discarded: None,
            created_at: batch.created_at,
            committed_at: batch.committed_at,
            commits_by_level: None,
        })
    }

    /// The batch for a caller cleared up to `highest`, who sees these entities of it.
    pub(in crate::store) fn into_batch(
        self,
        highest: Tlp,
        entities: &[StagedEntity],
    ) -> Result<StagingBatch, DomainError> {
        let is_done = entities.iter().all(|entity| entity.node_id.is_some());
        let seen = commit_seen_from(
            (self.tlp_rank, highest),
            self.commits_by_level.as_deref(),
            self.committed_at,
        );
        let committed_at = seen.filter(|_| is_done);
        let status = committed_at.map_or("open", |_| "committed");
        Ok(StagingBatch {
            id: key(&self.id)?,
            summary: Summary::of(entities.iter()),
            status: status.into(),
            source_type: parse(&self.source_type)?,
            session_id: self.session_id,
            ingest_mode: parse(&self.ingest_mode)?,
            warnings: self.warnings,
            created_at: self.created_at,
            committed_at,
        })
    }

    /// Records that only entities marked `waiting` or higher are left, or none at all; returns whether that is news.
    pub(super) fn record_commit(&mut self, waiting: Option<i64>, now: DateTime<Utc>) -> bool {
        if waiting.is_none() {
            self.status = "committed".into();
            self.committed_at.get_or_insert(now);
        }
        let end = waiting.unwrap_or(Tlp::ALL.len() as i64);
        let levels = usize::try_from(end - self.tlp_rank).unwrap_or(0);
        let mut commits = self.commits_by_level.take().unwrap_or_default();
        let before = commits.len();
        // A batch of an earlier version has only the time of the whole.
        commits.resize(levels, self.committed_at.unwrap_or(now));
        self.commits_by_level = (levels > 0).then_some(commits);
        levels != before
    }

    /// Whether nobody who sees it has committed all of it.
    pub(super) fn is_open_for_all(&self) -> bool {
        self.status == "open" && self.commits_by_level.is_none()
    }

    pub(super) fn counters(&self) -> Result<Summary, DomainError> {
        serde_json::from_str(&self.summary).map_err(corrupt)
    }

    /// The text stored in the batch's own row.
    pub(super) fn first_part(&self) -> Result<PartRow, DomainError> {
        Ok(PartRow {
            id: self.id.clone(),
            ws: self.ws,
            batch: key(&self.id)?,
            ord: 0,
            source_type: self.source_type.clone(),
            source: self.source.clone(),
            relations: self.relations.clone(),
            tlp_rank: self.text_rank.unwrap_or(self.tlp_rank),
            sensitive: self.sensitive.unwrap_or(false),
            created_at: self.created_at,
        })
    }
}

/// When all was committed that a caller cleared up to `highest` saw of a batch of this rank.
pub(super) fn commit_seen_from(
    (rank, highest): (i64, Tlp),
    by_level: Option<&[DateTime<Utc>]>,
    whole: Option<DateTime<Utc>>,
) -> Option<DateTime<Utc>> {
    let level = usize::try_from(i64::from(highest.rank()) - rank).ok()?;
    let commits = by_level.unwrap_or_default();
    commits.get(level).copied().or(whole)
}

impl PartRow {
    /// A further text of a batch; `places` maps the extraction's entities to positions in the batch.
    pub(in crate::store) fn new(
        batch: &BatchRow,
        ord: i64,
        new: &NewBatch<'_>,
        places: &[Option<i64>],
    ) -> Result<Self, DomainError> {
        Ok(Self {
            id: record("staging_part", new.batch.id),
            ws: batch.ws,
            batch: key(&batch.id)?,
            ord,
            source_type: new.batch.source_type.as_str().into(),
            source: source_of(new),
            relations: relations_of(new, places)?,
            tlp_rank: i64::from(new.tlp.rank()),
            sensitive: new.sensitive,
            created_at: new.batch.created_at,
        })
    }

    /// The text as evidence for what it names, marked `tlp_rank`; `was_written` says whether it is evidence already.
    pub(in crate::store) fn evidence(
        &self,
        session: Option<&str>,
        tlp_rank: i64,
        was_written: bool,
    ) -> Result<EvidenceDraft, DomainError> {
        let source = session.unwrap_or(&self.source_type).to_owned();
        let raw = unpack(&self.source)?;
        let text = raw.get("text").and_then(Value::as_str).unwrap_or_default();
        let digest = hex::encode(Sha256::digest(text.trim()));
        let level = tlp(tlp_rank)?;
        let named = if was_written { tlp(self.tlp_rank)? } else { level };
        Ok(EvidenceDraft {
            // The same text of the same source at the same marking is one record, however often it is sent. A record
            // keeps its marking where a later decision is stricter.
            identity: identity(["staged text", &self.source_type, &source, named.as_str(), &digest]),
            kind: "staged",
            ext_id: Some(key(&self.id)?.to_string()),
            title: format!(
                "{} of {}",
                self.source_type,
                self.created_at.format("%Y-%m-%d %H:%M")
            ),
            source,
            tlp: level,
            raw: raw.into(),
        })
    }

    /// The relationships the text states, marked `tlp_rank`, with the evidence at this position.
    pub(in crate::store) fn relations(
        &self,
        tlp_rank: i64,
        evidence: usize,
    ) -> Result<Vec<StatedEdge>, DomainError> {
        let kept: Vec<KeptRelation> = serde_json::from_str(&self.relations).map_err(corrupt)?;
        let marking = tlp(tlp_rank)?;
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
                evidence,
            };
            (source, target, edge)
        };
        Ok(kept.into_iter().map(edge).collect())
    }
}

fn source_of(new: &NewBatch<'_>) -> Bytes {
    let source = json!({
        "text": new.text, "source_type": new.batch.source_type, "session_id": new.batch.session_id,
    });
    pack(source.as_object().unwrap_or(&Map::new()))
}

pub(super) fn bytes_of(new: &NewBatch<'_>) -> i64 {
    i64::try_from(new.text.len()).unwrap_or(i64::MAX)
}

/// The stated relationships as JSON text, except those with an end outside the batch.
fn relations_of(new: &NewBatch<'_>, places: &[Option<i64>]) -> Result<String, DomainError> {
    let place = |index: usize| places.get(index).copied().flatten();
    let keep = |relation: &ExtractedRelation| {
        Some(KeptRelation {
            source: place(relation.source)?,
            target: place(relation.target)?,
            relationship: relation.relationship.clone(),
            proof: relation.proof.clone(),
            confidence: relation.confidence,
        })
    };
    let kept: Vec<KeptRelation> = new.relations.iter().filter_map(keep).collect();
    serde_json::to_string(&kept).map_err(corrupt)
}

impl StagedEntityRow {
    /// An entity at this position of a batch, named by the batch's text `part`.
    pub(in crate::store) fn new(
        batch: &BatchRow,
        (ord, part): (i64, i64),
        entity: &StagedEntity,
        found: &ExtractedEntity,
    ) -> Result<Self, DomainError> {
        Ok(Self {
            id: record("staged_entity", entity.id),
            ws: batch.ws,
            batch: key(&batch.id)?,
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
            parts: Some(vec![part]),
            linked: None,
            unmarked: Some(entity.unmarked),
        })
    }

    /// Whether the findings are the same, whatever a reviewer has decided.
    pub(super) fn says_what(&self, other: &Self) -> bool {
        self.identity == other.identity
            && self.node_type == other.node_type
            && self.name == other.name
            && self.description == other.description
            && self.properties == other.properties
            && self.proposed_tlp == other.proposed_tlp
            && self.confidence.to_bits() == other.confidence.to_bits()
            && self.duplicates == other.duplicates
            && self.warnings == other.warnings
    }

    pub(in crate::store) fn into_entity(self) -> Result<StagedEntity, DomainError> {
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
            unmarked: self.unmarked.unwrap_or(false),
        })
    }

    /// The effective marking.
    pub(in crate::store) fn marking(&self) -> i64 {
        self.resolved_tlp.unwrap_or(self.proposed_tlp)
    }

    /// Positions of the texts that name it; the first is the one that staged it.
    pub(super) fn naming_texts(&self) -> &[i64] {
        self.parts.as_deref().unwrap_or(&[0])
    }

    /// Positions of the texts that are already evidence of its node.
    pub(super) fn linked_texts(&self) -> &[i64] {
        let before_sessions: &[i64] = if self.node.is_some() { &[0] } else { &[] };
        self.linked.as_deref().unwrap_or(before_sessions)
    }

    /// The entity as a node draft with these evidence records.
    pub(in crate::store) fn draft(&self, evidence: Vec<usize>) -> Result<NodeDraft, DomainError> {
        let marking: Tlp = tlp(self.marking())?;
        Ok(NodeDraft {
            identity: self.identity.clone(),
            node_type: parse(&self.node_type)?,
            name: self.name.clone(),
            description: self.description.clone(),
            source: "preview".into(),
            source_type: "staged",
            tlp: marking,
            confidence: self.confidence,
            properties: JsonText::from_text(self.properties.clone()),
            evidence,
            merge_by_name: self.merge_by_name,
        })
    }
}

impl WriteTx {
    /// The entities of a staging batch, in text order.
    pub(in crate::store) async fn entities_of(
        &self,
        ws: Uuid,
        batch: Uuid,
    ) -> Result<Vec<StagedEntityRow>, StoreError> {
        let query = "SELECT * FROM staged_entity WHERE batch = $batch AND ws = $ws ORDER BY ord";
        self.of_batch(query, ws, batch).await
    }

    /// The later texts of a staging batch, in order.
    pub(in crate::store) async fn later_parts(
        &self,
        ws: Uuid,
        batch: Uuid,
    ) -> Result<Vec<PartRow>, StoreError> {
        let query = "SELECT * FROM staging_part WHERE batch = $batch AND ws = $ws ORDER BY ord";
        self.of_batch(query, ws, batch).await
    }

    /// Rows of a staging batch; the query refers to workspace and batch as `$ws` and `$batch`.
    async fn of_batch<T: SurrealValue>(
        &self,
        query: &str,
        ws: Uuid,
        batch: Uuid,
    ) -> Result<Vec<T>, StoreError> {
        let of = [("ws", ws.into_value()), ("batch", batch.into_value())];
        self.select(query, &of).await
    }

    /// The batch with this id.
    pub(in crate::store) async fn batch_with_id(
        &self,
        ws: Uuid,
        id: Uuid,
    ) -> Result<Option<BatchRow>, StoreError> {
        let of = [
            ("ws", ws.into_value()),
            ("id", record("staging_batch", id).into_value()),
        ];
        Ok(self.select("SELECT * FROM $id WHERE ws = $ws", &of).await?.pop())
    }

    /// The newest batch of a session with this marking that is open for everybody who sees it.
    pub(in crate::store) async fn open_batch(
        &self,
        ws: Uuid,
        session: &str,
        tlp_rank: i64,
    ) -> Result<Option<BatchRow>, StoreError> {
        let query = "SELECT * FROM staging_batch WHERE ws = $ws AND session_id = $of \
                     AND status = 'open' AND commits_by_level = NONE AND tlp_rank = $tlp_rank \
                     ORDER BY created_at DESC LIMIT 1";
        let of = [
            ("ws", ws.into_value()),
            ("of", session.to_owned().into_value()),
            ("tlp_rank", tlp_rank.into_value()),
        ];
        Ok(self.select(query, &of).await?.pop())
    }
}
