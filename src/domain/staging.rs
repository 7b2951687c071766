//! Staging: what an extractor found in a text, waiting for a person or for the automatic commit.
//!
//! Pure: the shapes, the counters and the rules of the state machine; the store keeps them, the
//! `StagingBatches` actor drives them.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::extraction::EntityKind;
use super::node::{NodeType, wire_enum};
use super::tlp::Tlp;

wire_enum! {
    /// What became of a staged entity.
    StagedStatus, "pending, accepted, rejected, merged, uncertain" {
        Pending = "pending",
        Accepted = "accepted",
        Rejected = "rejected",
        Merged = "merged",
        Uncertain = "uncertain",
    }
}

wire_enum! {
    /// What kind of text a preview reads.
    SourceType, "manual_text, analyst_report, osint_feed, incident_writeup, chat" {
        ManualText = "manual_text",
        AnalystReport = "analyst_report",
        OsintFeed = "osint_feed",
        IncidentWriteup = "incident_writeup",
        Chat = "chat",
    }
}

wire_enum! {
    /// Whether extracted entities wait for review or are committed at once.
    IngestMode, "auto, review" {
        Auto = "auto",
        Review = "review",
    }
}

wire_enum! {
    /// How a stored node resembles a staged entity, strongest first.
    MatchKind, "id, name, alias, semantic" {
        Id = "id",
        Name = "name",
        Alias = "alias",
        Semantic = "semantic",
    }
}

/// One entity that an extractor found in a text.
#[derive(Debug, Clone, PartialEq)]
pub struct ExtractedEntity {
    pub node_type: NodeType,
    /// What the rules take it for, where they know it: several kinds share a node type.
    pub kind: Option<EntityKind>,
    pub name: String,
    pub description: String,
    /// 0 to 1.
    pub confidence: f64,
    /// Why it was taken: the rule and the words, or the model's reason.
    pub reasoning: String,
    /// As in [`super::draft::NodeDraft::properties`]: `aliases`, `external_ids`, `value`, `pattern`, …
    pub properties: Map<String, Value>,
    /// What makes it one node with others; see [`super::draft::NodeDraft::identity`].
    pub identity: String,
    pub merge_by_name: bool,
    /// Byte range in the text, when it stands there literally.
    pub span: Option<(usize, usize)>,
    pub warnings: Vec<String>,
}

/// A relationship that a sentence of the text states.
#[derive(Debug, Clone, PartialEq)]
pub struct ExtractedRelation {
    /// Positions in [`Extraction::entities`].
    pub source: usize,
    pub target: usize,
    pub relationship: String,
    /// The sentence.
    pub proof: String,
    pub confidence: f64,
}

/// What an extractor found in a text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Extraction {
    pub entities: Vec<ExtractedEntity>,
    pub relations: Vec<ExtractedRelation>,
    /// About the extraction as a whole, such as a model that could not be reached.
    pub warnings: Vec<String>,
}

/// A stored node that a staged entity may be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DuplicateCandidate {
    pub node_id: Uuid,
    pub node_type: NodeType,
    pub name: String,
    /// 0 to 1.
    pub score: f32,
    #[serde(rename = "match")]
    pub matched: MatchKind,
}

/// A staged entity as the API shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StagedEntity {
    pub id: Uuid,
    pub batch_id: Uuid,
    pub status: StagedStatus,
    pub node_type: NodeType,
    pub name: String,
    pub description: String,
    pub proposed_tlp: Tlp,
    pub proposed_confidence: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved_tlp: Option<Tlp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merge_target_id: Option<Uuid>,
    pub duplicate_candidates: Vec<DuplicateCandidate>,
    pub warnings: Vec<String>,
    pub extraction_reasoning: String,
    /// The node it became or was merged into, once committed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_id: Option<Uuid>,
    /// Whether neither the request nor the text states the marking.
    #[serde(skip)]
    pub unmarked: bool,
}

impl StagedEntity {
    /// Whether a TLP sensitivity warning is among its warnings.
    pub fn is_sensitive(&self) -> bool {
        self.warnings
            .iter()
            .any(|warning| warning.starts_with(SENSITIVITY))
    }
}

/// The counters of a batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Entities found.
    pub total_parsed: u64,
    /// Those that are no node yet.
    pub total_to_add: u64,
    /// Those that are a node already, by id, name or alias.
    pub total_to_update: u64,
    /// Those with at least one duplicate candidate, by meaning too.
    pub duplicates: u64,
    /// Those whose marking is a fallback: neither the request nor the text states one.
    pub missing_tlp: u64,
    /// Those with a TLP sensitivity warning.
    pub sensitive_warns: u64,
}

impl Summary {
    /// The counters of these entities.
    pub fn of<'e>(staged: impl Iterator<Item = &'e StagedEntity>) -> Self {
        let mut sum = Self::default();
        for entity in staged {
            let candidates = &entity.duplicate_candidates;
            let known = candidates
                .iter()
                .any(|candidate| candidate.matched != MatchKind::Semantic);
            sum.total_parsed += 1;
            sum.total_to_add += u64::from(!known);
            sum.total_to_update += u64::from(known);
            sum.duplicates += u64::from(!candidates.is_empty());
            sum.missing_tlp += u64::from(entity.unmarked);
            sum.sensitive_warns += u64::from(entity.is_sensitive());
        }
        sum
    }

    /// Counts the entities that a further text of the batch added.
    pub fn add(&mut self, more: Self) {
        self.total_parsed += more.total_parsed;
        self.total_to_add += more.total_to_add;
        self.total_to_update += more.total_to_update;
        self.duplicates += more.duplicates;
        self.missing_tlp += more.missing_tlp;
        self.sensitive_warns += more.sensitive_warns;
    }
}

/// A batch of staged entities as the API shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StagingBatch {
    pub id: Uuid,
    /// `open` while something is undecided, then `committed`.
    pub status: String,
    pub source_type: SourceType,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    pub ingest_mode: IngestMode,
    pub summary: Summary,
    pub warnings: Vec<String>,
    pub created_at: DateTime<Utc>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub committed_at: Option<DateTime<Utc>>,
}

/// What a commit did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct CommitResult {
    pub nodes_created: u64,
    pub nodes_updated: u64,
    pub evidence_created: u64,
    pub merged: u64,
    pub discarded: u64,
    /// Entities still undecided; they keep the batch open.
    pub remaining: u64,
}

/// Most entities of one batch.
pub const MAX_ENTITIES: usize = 4000;
/// Begins every TLP sensitivity warning.
pub const SENSITIVITY: &str = "TLP sensitivity: ";
