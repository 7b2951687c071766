//! Row types, and their conversion to and from the domain.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use surrealdb::types::{Bytes, RecordId, RecordIdKey, SurrealValue};
use uuid::Uuid;

use crate::domain::error::DomainError;
use crate::domain::graph::draft::NodeContent;
use crate::domain::node::{KgNode, NodeStatus};
use crate::domain::packing;
use crate::domain::tlp::Tlp;

#[derive(Debug, Clone, SurrealValue)]
pub(super) struct NodeRow {
    pub id: RecordId,
    pub ws: Uuid,
    pub node_type: String,
    pub name: String,
    pub description: String,
    pub source: String,
    pub source_type: String,
    pub tlp_rank: i64,
    pub confidence: f64,
    pub properties: String,
    pub status: String,
    pub evidence: Vec<Uuid>,
    pub evidence_tlp: Vec<i64>,
    pub stix_evidence: Option<Uuid>,
    pub modified: Option<DateTime<Utc>>,
    /// Its markings that are not defined; `None` for a row that may be exported.
    pub held_by: Option<Vec<String>>,
    /// The feeds that brought its versions; `None` if none did.
    pub feeds: Option<Vec<Uuid>>,
    /// When what an export shows of it was last changed here; `None` if it is as it was received or made.
    pub changed_at: Option<DateTime<Utc>>,
    /// Whether it is a STIX object beside those that an ingest counts as nodes, and nothing else.
    pub context: Option<bool>,
    /// What was set by hand, as JSON text.
    pub corrected: Option<String>,
    /// Its evidence records that were rejected by hand.
    pub rejected: Option<Vec<Uuid>>,
    pub rev: i64,
    pub ingested_at: DateTime<Utc>,
}

#[derive(Debug, Clone, SurrealValue)]
pub(super) struct EvidenceRow {
    pub id: RecordId,
    pub ws: Uuid,
    pub kind: String,
    pub ext_id: Option<String>,
    pub title: String,
    pub source: String,
    pub tlp_rank: i64,
    pub raw: Option<Bytes>,
    /// The node of a STIX object's version, if the object's id does not name it.
    pub node: Option<Uuid>,
    /// Whether it was rejected by hand.
    pub rejected: Option<bool>,
    pub created_at: DateTime<Utc>,
}

#[derive(Debug, Clone, SurrealValue)]
pub(super) struct EdgeRow {
    pub id: RecordId,
    #[surreal(rename = "in")]
    pub source: RecordId,
    #[surreal(rename = "out")]
    pub target: RecordId,
    pub ws: Uuid,
    pub relationship: String,
    pub tlp_rank: i64,
    pub confidence: f64,
    pub active: bool,
    pub modified: Option<DateTime<Utc>>,
    pub raw: Option<Bytes>,
    pub proof: Option<String>,
    pub evidence: Option<Uuid>,
    pub properties: Option<String>,
    /// Its markings that are not defined; `None` for a row that may be exported.
    pub held_by: Option<Vec<String>>,
    /// The feeds that brought its versions; `None` if none did.
    pub feeds: Option<Vec<Uuid>>,
    /// When what an export shows of it was last changed here; `None` if it is as it was received or made.
    pub changed_at: Option<DateTime<Utc>>,
    /// The row of the same relationship beside which this one stands; `None` for that row itself.
    pub beside: Option<RecordId>,
    /// Whether one of its ends is such a node.
    pub context: Option<bool>,
    /// Whether it was rejected or restored by hand, as JSON text.
    pub corrected: Option<String>,
    /// The number of its last write in its workspace; `None` if that is older than the list of additions.
    pub rev: Option<i64>,
    pub created_at: DateTime<Utc>,
}

#[derive(Debug, Clone, SurrealValue)]
pub(super) struct PassageRow {
    pub id: RecordId,
    pub source: RecordId,
    pub target: RecordId,
    pub ws: Uuid,
    pub tlp_rank: i64,
    pub text: String,
    pub created_at: DateTime<Utc>,
}

#[derive(Debug, Clone, SurrealValue)]
pub(super) struct SupportRow {
    pub id: RecordId,
    pub ws: Uuid,
    pub stix_id: String,
    pub tlp_rank: i64,
    pub states: Option<i64>,
    pub modified: DateTime<Utc>,
    /// Its markings that are not defined; `None` for a row that may be exported.
    pub held_by: Option<Vec<String>>,
    /// The feeds that brought its versions; `None` if none did.
    pub feeds: Option<Vec<Uuid>>,
    pub raw: Bytes,
}

/// A row withheld until a marking is defined: an evidence record (with its node), an edge or a supporting object.
#[derive(Debug, Clone, SurrealValue)]
pub(super) struct HeldRow {
    pub id: RecordId,
    pub ws: Uuid,
    pub marking: String,
    pub held: RecordId,
    /// The bundle's default marking for objects without one.
    pub default_tlp: i64,
    /// The marking of the row.
    pub tlp_rank: Option<i64>,
    /// The marking that was stated beside the original.
    pub floor_tlp: Option<i64>,
    pub is_support: Option<bool>,
}

/// Sort key for newest first: minus the microseconds since 1970.
pub(super) fn newest_first(time: DateTime<Utc>) -> i64 {
    -time.timestamp_micros()
}

/// A range of record ids, such as `edge:[$ws]..`, to be read no further than the statement's limit: the engine reads a
/// range that stands by itself to its end.
pub(super) fn up_to_limit(range: &str) -> String {
    format!("type::record({range})")
}

/// A record id with a UUID key.
pub(super) fn record(table: &'static str, id: Uuid) -> RecordId {
    RecordId::new(table, surrealdb::types::Uuid::from(id))
}

/// The UUID key of a record id.
pub(super) fn key(id: &RecordId) -> Result<Uuid, DomainError> {
    if let RecordIdKey::Uuid(uuid) = &id.key {
        return Ok(uuid.into_inner());
    }
    Err(corrupt(format!("{:?} is not a UUID key", id.key)))
}

/// Error for a stored value that this program would never have written.
pub(super) fn corrupt(cause: impl std::fmt::Display) -> DomainError {
    DomainError::internal("a stored row is damaged", cause)
}

/// The TLP level of a stored rank.
pub(super) fn tlp(rank: i64) -> Result<Tlp, DomainError> {
    let level = u8::try_from(rank).ok().and_then(Tlp::from_rank);
    level.ok_or_else(|| corrupt(format!("tlp_rank {rank}")))
}

/// Parses a stored enum value.
pub(super) fn parse<T: std::str::FromStr>(text: &str) -> Result<T, DomainError> {
    text.parse().map_err(|_| corrupt(text))
}

/// Compresses an original for storage.
pub(super) fn pack(object: &Map<String, Value>) -> Bytes {
    Bytes::from(packing::pack(object))
}

/// [`pack`] for an original that is JSON text already.
pub(super) fn pack_text(json: &[u8]) -> Bytes {
    Bytes::from(packing::pack_text(json))
}

/// Reads back what [`pack`] wrote.
pub(super) fn unpack(bytes: &Bytes) -> Result<Map<String, Value>, DomainError> {
    packing::unpack(bytes).map_err(corrupt)
}

impl HeldRow {
    pub(super) fn new(
        ws: Uuid,
        marking: &str,
        held: &RecordId,
        default_tlp: Tlp,
        (level, floor): (Tlp, Option<Tlp>),
    ) -> Result<Self, DomainError> {
        Ok(Self {
            id: Self::row_id(ws, marking, held)?,
            ws,
            marking: marking.to_owned(),
            held: held.clone(),
            default_tlp: i64::from(default_tlp.rank()),
            tlp_rank: Some(i64::from(level.rank())),
            floor_tlp: floor.map(|floor| i64::from(floor.rank())),
            is_support: Some(held.table.as_str() == "stix_support"),
        })
    }

    /// The id of the row that records that `held` waits for a marking.
    pub(super) fn row_id(ws: Uuid, marking: &str, held: &RecordId) -> Result<RecordId, DomainError> {
        let name = format!("held\0{marking}\0{}\0{}", held.table.as_str(), key(held)?);
        Ok(record("stix_held", Uuid::new_v5(&ws, name.as_bytes())))
    }
}

impl NodeRow {
    /// Links one more evidence record, unless it is linked already.
    pub(super) fn link(&mut self, evidence: Uuid, tlp: Tlp) {
        if !self.evidence.contains(&evidence) {
            self.evidence.push(evidence);
            self.evidence_tlp.push(i64::from(tlp.rank()));
        }
    }

    /// A row without content.
    pub(super) fn empty(ws: Uuid, id: Uuid) -> Self {
        Self {
            id: record("node", id),
            ws,
            node_type: String::new(),
            name: String::new(),
            description: String::new(),
            source: String::new(),
            source_type: String::new(),
            tlp_rank: 0,
            confidence: 0.0,
            properties: String::new(),
            status: NodeStatus::Active.as_str().into(),
            evidence: Vec::new(),
            evidence_tlp: Vec::new(),
            stix_evidence: None,
            modified: None,
            held_by: None,
            feeds: None,
            changed_at: None,
            context: None,
            corrected: None,
            rejected: None,
            rev: 0,
            ingested_at: DateTime::UNIX_EPOCH,
        }
    }

    /// Takes out what merging reads and changes; [`Self::put_content`] puts it back.
    pub(super) fn take_content(&mut self) -> Result<NodeContent, DomainError> {
        let markings = std::mem::take(&mut self.evidence_tlp).into_iter().map(tlp);
        let markings: Vec<Tlp> = markings.collect::<Result<_, _>>()?;
        let evidence = std::mem::take(&mut self.evidence).into_iter().zip(markings);
        Ok(NodeContent {
            node_type: parse(&self.node_type)?,
            name: std::mem::take(&mut self.name),
            description: std::mem::take(&mut self.description),
            source: std::mem::take(&mut self.source),
            source_type: std::mem::take(&mut self.source_type),
            tlp: tlp(self.tlp_rank)?,
            confidence: self.confidence,
            properties: std::mem::take(&mut self.properties),
            evidence: evidence.collect(),
            is_stix: self.stix_evidence.is_some(),
            status: parse(&self.status)?,
            modified: self.modified,
            changed_at: self.changed_at,
            ingested_at: self.ingested_at,
        })
    }

    pub(super) fn put_content(&mut self, content: NodeContent) {
        self.node_type = content.node_type.as_str().into();
        self.name = content.name;
        self.description = content.description;
        self.source = content.source;
        self.source_type = content.source_type;
        self.tlp_rank = i64::from(content.tlp.rank());
        self.confidence = content.confidence;
        self.properties = content.properties;
        let ranks = content.evidence.iter().map(|(_, tlp)| i64::from(tlp.rank()));
        self.evidence_tlp = ranks.collect();
        self.evidence = content.evidence.into_iter().map(|(id, _)| id).collect();
        self.status = content.status.as_str().into();
        self.changed_at = content.changed_at;
        self.ingested_at = content.ingested_at;
    }

    /// The node as seen by a caller cleared up to `highest`.
    pub(super) fn into_node(self, highest: Tlp) -> Result<KgNode, DomainError> {
        let corrections = self.correction()?.map(|correction| correction.evidence);
        let corrections = corrections.unwrap_or_default().into_iter();
        let corrections = corrections.filter(|(_, tlp)| *tlp <= highest).map(|(id, _)| id);
        let rejected = self.rejected.unwrap_or_default();
        let highest = i64::from(highest.rank());
        let evidence = self.evidence.into_iter().zip(self.evidence_tlp);
        Ok(KgNode {
            id: key(&self.id)?,
            node_type: parse(&self.node_type)?,
            name: self.name,
            description: self.description,
            source: self.source,
            source_type: self.source_type,
            tlp: tlp(self.tlp_rank)?,
            confidence: self.confidence,
            properties: serde_json::from_str(&self.properties).map_err(corrupt)?,
            ingested_at: self.ingested_at,
            linked_evidence_ids: evidence
                .filter(|(id, tlp)| *tlp <= highest && !rejected.contains(id))
                .map(|(id, _)| id)
                .chain(corrections)
                .collect(),
            status: parse(&self.status)?,
        })
    }
}
