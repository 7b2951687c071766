//! Staging: extracted entities that wait for review or for the automatic commit.
//!
//! Pure: the types, counters and state-machine rules. The store persists them; the
//! `StagingBatches` actor drives them.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use super::confidence::Confidence;
use super::extraction::EntityKind;
use super::node::{NodeType, wire_enum};
use super::schema::{self, schema_of};
use super::tlp::Tlp;

wire_enum! {
    /// Review status of a staged entity.
    StagedStatus, "pending, accepted, rejected, merged, uncertain" {
        Pending = "pending",
        Accepted = "accepted",
        Rejected = "rejected",
        Merged = "merged",
        Uncertain = "uncertain",
    }
}

wire_enum! {
    /// The kind of text that a preview extracts from.
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
    /// How a stored node matched a staged entity, strongest first.
    MatchKind, "id, name, alias, semantic" {
        Id = "id",
        Name = "name",
        Alias = "alias",
        Semantic = "semantic",
    }
}

/// Shortest text of a preview, in characters.
const MIN_TEXT: usize = 10;
/// Longest text of a preview, in bytes.
const MAX_TEXT: usize = 1 << 20;
/// Longest label of a session, in characters.
const MAX_SESSION: usize = 200;

/// The text of a preview: 10 characters to 1 MiB. The store cannot hold a NUL character.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviewText(String);

impl TryFrom<String> for PreviewText {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        if text.chars().nth(MIN_TEXT - 1).is_none() {
            return Err(format!("must have at least {MIN_TEXT} characters"));
        }
        if text.len() > MAX_TEXT {
            return Err(format!("must have at most {MAX_TEXT} bytes"));
        }
        if text.contains('\0') {
            return Err("must not hold a NUL character".into());
        }
        Ok(Self(text))
    }
}

schema_of! {
    PreviewText, "The text; at most 1 MiB of UTF-8.", (MIN_TEXT, MAX_TEXT), schema::PLAIN,
    "Sandworm Team uses Industroyer. Seen at hxxp://198.51.100[.]7/a"
}

impl From<PreviewText> for String {
    fn from(text: PreviewText) -> Self {
        text.0
    }
}

/// The caller's id of a session, whose previews share a batch: 1 to 200 characters without a NUL character.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionLabel(String);

impl TryFrom<String> for SessionLabel {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        if text.is_empty() || text.chars().nth(MAX_SESSION).is_some() || text.contains('\0') {
            return Err(format!(
                "must have from 1 to {MAX_SESSION} characters, none of them NUL"
            ));
        }
        Ok(Self(text))
    }
}

schema_of! {
    SessionLabel, "The caller's id of a session, whose previews share a batch.", (1, MAX_SESSION), schema::PLAIN,
    "case-2026-014"
}

impl From<SessionLabel> for String {
    fn from(label: SessionLabel) -> Self {
        label.0
    }
}

/// One entity found by an extractor.
#[derive(Debug, Clone, PartialEq)]
pub struct ExtractedEntity {
    pub node_type: NodeType,
    /// The kind assigned by the rules, if known; several kinds share a node type.
    pub kind: Option<EntityKind>,
    pub name: String,
    pub description: String,
    /// 0 to 1.
    pub confidence: f64,
    /// Why it was extracted: the rule and the matched words, or the model's reason.
    pub reasoning: String,
    /// As in [`super::draft::NodeDraft::properties`]: `aliases`, `external_ids`, `value`, `pattern`, …
    pub properties: Map<String, Value>,
    /// Identity of its node; see [`super::draft::NodeDraft::identity`].
    pub identity: String,
    pub merge_by_name: bool,
    /// Byte range in the text, if the entity occurs there literally.
    pub span: Option<(usize, usize)>,
    pub warnings: Vec<String>,
}

impl ExtractedEntity {
    /// The confidence that a request states for all entities, else the one found; never more than found for common software.
    pub fn confidence_or(&self, stated: Option<f64>) -> f64 {
        let is_common = self.warnings.iter().any(|warning| warning.starts_with(DUAL_USE));
        match stated {
            Some(stated) if is_common => stated.min(self.confidence),
            stated => stated.unwrap_or(self.confidence),
        }
    }

    /// Whether auto mode leaves it to a reviewer whatever its marking: its name is not in the text or may mean things of
    /// several types, or it is common software that the text names without saying that somebody used it.
    pub fn needs_reviewer(&self) -> bool {
        let mut warnings = self.warnings.iter();
        warnings.any(|warning| {
            warning == DUAL_USE_UNSTATED || warning.contains(NOT_FOUND) || warning.starts_with(AMBIGUOUS)
        })
    }
}

/// A relationship stated by a sentence of the text.
#[derive(Debug, Clone, PartialEq)]
pub struct ExtractedRelation {
    /// Positions in the list of the text's entities.
    pub source: usize,
    pub target: usize,
    pub relationship: String,
    /// The sentence that states it.
    pub proof: String,
    pub confidence: f64,
}

/// What an extractor found in a text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Extraction {
    pub entities: Vec<ExtractedEntity>,
    pub relations: Vec<ExtractedRelation>,
    /// Warnings about the whole extraction, such as an unreachable model.
    pub warnings: Vec<String>,
}

/// A stored node that may be the same as a staged entity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DuplicateCandidate {
    pub node_id: Uuid,
    pub node_type: NodeType,
    #[schema(example = "Sandworm Team")]
    pub name: String,
    /// 0 to 1.
    #[schema(value_type = Confidence)]
    pub score: f32,
    #[serde(rename = "match")]
    pub matched: MatchKind,
}

/// A staged entity as the API shows it.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct StagedEntity {
    pub id: Uuid,
    pub batch_id: Uuid,
    pub status: StagedStatus,
    pub node_type: NodeType,
    #[schema(example = "Sandworm Team")]
    pub name: String,
    #[schema(example = "")]
    pub description: String,
    pub proposed_tlp: Tlp,
    #[schema(value_type = Confidence)]
    pub proposed_confidence: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub resolved_tlp: Option<Tlp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub merge_target_id: Option<Uuid>,
    pub duplicate_candidates: Vec<DuplicateCandidate>,
    /// A TLP sensitivity warning starts with `TLP sensitivity: `, that about common software with `Dual use: `.
    #[schema(example = json!([]))]
    pub warnings: Vec<String>,
    #[schema(example = "the name of a known actor: \"Sandworm Team\"")]
    pub extraction_reasoning: String,
    /// The node it became or was merged into; set after commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub node_id: Option<Uuid>,
    /// Whether the marking is stated neither in the request nor in the text.
    #[serde(skip)]
    pub unmarked: bool,
}

impl StagedEntity {
    /// Whether a TLP sensitivity warning is among its warnings.
    pub fn is_sensitive(&self) -> bool {
        self.warnings.iter().any(|warning| is_sensitivity(warning))
    }
}

/// The counters of a batch, over the entities of it that the caller sees.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Summary {
    /// Entities found.
    pub total_parsed: u64,
    /// Entities that match no stored node by id, name or alias.
    pub total_to_add: u64,
    /// Entities that match a stored node by id, name or alias.
    pub total_to_update: u64,
    /// Entities with at least one duplicate candidate, semantic ones included.
    pub duplicates: u64,
    /// Entities with a fallback marking: stated neither in the request nor in the text.
    pub missing_tlp: u64,
    /// Entities with a TLP sensitivity warning.
    pub sensitive_warns: u64,
}

impl Summary {
    /// Counts these entities.
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

    /// Adds the counters of another text of the batch.
    pub fn add(&mut self, more: Self) {
        self.total_parsed += more.total_parsed;
        self.total_to_add += more.total_to_add;
        self.total_to_update += more.total_to_update;
        self.duplicates += more.duplicates;
        self.missing_tlp += more.missing_tlp;
        self.sensitive_warns += more.sensitive_warns;
    }
}

wire_enum! {
    /// Whether a batch has entities that are not committed: `open`, then `committed`.
    StagingState, "open, committed" {
        Open = "open",
        Committed = "committed",
    }
}

/// The entities of a batch that the caller sees, by what was decided; those of the first five are not committed yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct StagedCounts {
    pub pending: u64,
    pub accepted: u64,
    pub rejected: u64,
    pub merged: u64,
    pub uncertain: u64,
    pub committed: u64,
}

impl StagedCounts {
    /// Adds entities of this status that are not committed.
    pub fn add(&mut self, status: StagedStatus, number: u64) {
        let count = match status {
            StagedStatus::Pending => &mut self.pending,
            StagedStatus::Accepted => &mut self.accepted,
            StagedStatus::Rejected => &mut self.rejected,
            StagedStatus::Merged => &mut self.merged,
            StagedStatus::Uncertain => &mut self.uncertain,
        };
        *count += number;
    }

    /// Entities that are not committed.
    pub fn open(&self) -> u64 {
        self.pending + self.accepted + self.rejected + self.merged + self.uncertain
    }
}

/// A batch in the list of batches.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct StagingBatchHead {
    pub id: Uuid,
    pub status: StagingState,
    pub source_type: SourceType,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = SessionLabel, required = false)]
    pub session_id: Option<String>,
    pub ingest_mode: IngestMode,
    pub entities: StagedCounts,
    pub created_at: DateTime<Utc>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub committed_at: Option<DateTime<Utc>>,
}

/// A batch of staged entities as the API shows it.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct StagingBatch {
    pub id: Uuid,
    /// `open` while an entity is undecided, then `committed`.
    #[schema(example = "open")]
    pub status: String,
    pub source_type: SourceType,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = SessionLabel, required = false)]
    pub session_id: Option<String>,
    pub ingest_mode: IngestMode,
    pub summary: Summary,
    #[schema(example = json!([]))]
    pub warnings: Vec<String>,
    pub created_at: DateTime<Utc>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub committed_at: Option<DateTime<Utc>>,
}

/// Outcome of a commit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct CommitResult {
    pub nodes_created: u64,
    pub nodes_updated: u64,
    pub evidence_created: u64,
    pub merged: u64,
    pub discarded: u64,
    /// Undecided entities; they keep the batch open.
    pub remaining: u64,
}

/// Maximum number of entities in a batch.
pub const MAX_ENTITIES: usize = 4000;
/// Prefix of the warning about a tool that is a program of an operating system or common software, and the whole warning
/// where the text doesn't say that somebody used it.
pub const DUAL_USE: &str = "Dual use: ";
pub const DUAL_USE_UNSTATED: &str = "Dual use: common software; the text does not say that somebody used it";
/// Part of the warning about an entity of a language model whose name is not in the text.
pub const NOT_FOUND: &str = "not found in the text";
/// Prefix of the warning about an entity that may be any of several nodes.
pub const AMBIGUOUS: &str = "Ambiguous: ";
/// Prefix of every TLP sensitivity warning.
pub const SENSITIVITY: &str = "TLP sensitivity: ";

/// Whether a warning is one about TLP sensitivity.
pub fn is_sensitivity(warning: &str) -> bool {
    warning.starts_with(SENSITIVITY)
}
