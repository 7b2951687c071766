//! Bodies and answers of remember, recall, ingest and synthesize.
//!
//! The bounds of a body's fields stand only in its `read`. The document takes them from there, see
//! [`Fields::describe`].

use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::config::local::LocalSettings;
use crate::domain::memory::note::{DEFAULT_DOMAIN, NoteStatus, context, truncate_chars};
use crate::domain::memory::synthesis::{Answer, SynthesisFormat};
use crate::domain::memory::why::{InterpretedQuestion, NamedEntity, NoteWhy};
use crate::domain::question::{AskedPeriod, CombinationAsked, Kind, TimeOrder};
use crate::domain::why::MatchedBy;
use crate::http::local::error::Issue;
use crate::http::local::validate::{Fields, is_no_entry};
use crate::local::{FoundNote, NewNote, RememberOutcome};

pub(super) const MAX_DOMAIN: usize = 100;
pub(super) const MAX_SOURCE_TYPE: usize = 100;
pub(super) const MAX_SOURCE_REF: usize = 500;
pub(super) const MAX_FORMAT: usize = 50;
/// Longest time with a zone.
pub(super) const MAX_TIME: usize = 64;
const MAX_ITEMS: usize = 100;
/// Most characters and entities of a note shown in a result list.
const SHOWN_CONTENT: usize = 500;
const SHOWN_ENTITIES: usize = 10;
const DEFAULT_SOURCE_TYPE: &str = "manual";

/// A question to the notes.
#[derive(Debug, ToSchema)]
#[schema(example = json!({"query": "Which tools does APT28 use?", "domain": "cti"}))]
pub(in crate::http::local) struct RecallBody {
    /// The question, or words to look for. At most `web.max_query_chars` characters.
    pub query: String,
    /// Number of notes wanted. Default `retrieval.default_k`, at most `web.max_k`. A whole number in quotes is read too.
    pub k: usize,
    /// Only notes of this domain. An empty text means any.
    pub domain: Option<String>,
    /// Only notes created at or after this time: a day, from its beginning in UTC, or an RFC 3339 time.
    #[schema(value_type = Option<String>)]
    pub since: Option<DateTime<Utc>>,
    /// Only notes created at or before this time: a day, to its end in UTC, or an RFC 3339 time. Not before `since`.
    #[schema(value_type = Option<String>)]
    pub until: Option<DateTime<Utc>>,
    /// Whether to tell why each note was found and how the question was understood.
    pub explain: bool,
    /// Lowest score of a note. If absent, what is likely no answer is left out; with 0, nothing is.
    pub min_score: Option<f32>,
}

impl RecallBody {
    pub fn read(fields: &mut Fields<'_>, settings: &LocalSettings) -> Self {
        let (since, until) = fields.period("since", "until");
        Self {
            query: fields.text("query", 1, settings.web.max_query_chars),
            k: fields.number_or("k", settings.default_k(), 1, settings.web.max_k),
            domain: fields.optional_text("domain", MAX_DOMAIN),
            since,
            until,
            explain: fields.flag_or("explain", false),
            min_score: fields.share("min_score"),
        }
    }
}

/// A note to be remembered.
#[derive(Debug, ToSchema)]
#[schema(example = json!({
    "content": "APT28 used X-Agent against 203.0.113.7.", "domain": "cti", "source_type": "report",
    "source_ref": "https://example.com/report", "evolve": true,
}))]
pub(in crate::http::local) struct RememberBody {
    /// The text, stored as it is. At most `web.max_content_chars` characters.
    pub content: String,
    /// What the note is about. White space around it is ignored.
    pub domain: String,
    /// Kind of source, which decides the tier: such as `manual`, `report`, `feed` or `llm`.
    pub source_type: String,
    /// Where the text comes from, such as a URL.
    pub source_ref: String,
    /// Whether to compare the note with existing ones: duplicates, near-duplicates. `"yes"`, `"no"`, 1 and 0 are read
    /// too.
    pub evolve: bool,
}

impl RememberBody {
    pub fn read(fields: &mut Fields<'_>, settings: &LocalSettings) -> Self {
        Self {
            content: fields.text("content", 1, settings.web.max_content_chars),
            domain: fields.text_or("domain", DEFAULT_DOMAIN, 1, MAX_DOMAIN),
            source_type: fields.text_or("source_type", DEFAULT_SOURCE_TYPE, 1, MAX_SOURCE_TYPE),
            source_ref: fields.text_or("source_ref", "", 0, MAX_SOURCE_REF),
            evolve: fields.flag_or("evolve", true),
        }
    }
}

impl From<RememberBody> for NewNote {
    fn from(body: RememberBody) -> Self {
        let RememberBody {
            content,
            domain,
            source_type,
            source_ref,
            evolve,
        } = body;
        Self {
            content,
            domain,
            source_type,
            source_ref,
            evolve,
        }
    }
}

/// Notes to be remembered.
#[derive(Debug, ToSchema)]
#[schema(example = json!({"items": [
    {"content": "Turla uses Snake."}, {"content": "FIN7 uses Carbanak.", "source_type": "report", "evolve": false},
]}))]
#[allow(dead_code, reason = "describes the body; the items are read one by one")]
pub(in crate::http::local) struct IngestBody {
    items: Vec<IngestItem>,
}

/// One note of an ingest. An item with an invalid field fails alone. Null means the default, except for `content`.
#[derive(Debug, ToSchema)]
#[allow(dead_code, reason = "describes an item, which is read into a `NewNote`")]
pub(in crate::http::local) struct IngestItem {
    /// The text, stored as it is. At most `web.max_content_chars` characters.
    content: String,
    /// What the note is about. An empty text means the default, `cti`.
    domain: Option<String>,
    /// Kind of source, which decides the tier. An empty text means the default, `manual`.
    source_type: Option<String>,
    /// Where the text comes from, such as a URL.
    source_ref: Option<String>,
    /// Whether to compare the note with existing ones.
    evolve: Option<bool>,
}

impl IngestBody {
    /// Each item as a note, or what is wrong with it. One bad item never refuses the others. A list in which nothing is
    /// an object with a `content` holds no items, and fails the request.
    pub fn read(fields: &mut Fields<'_>, settings: &LocalSettings) -> Vec<Result<NewNote, Vec<Issue>>> {
        let max_content = settings.web.max_content_chars;
        let items = fields.list("items", 1, MAX_ITEMS, |fields| read_item(fields, max_content));
        let is_item =
            |item: &Result<NewNote, Vec<Issue>>| !matches!(item, Err(issues) if is_no_entry(issues));
        if items.iter().any(is_item) {
            return items;
        }
        fields.add_issues(items.into_iter().filter_map(Result::err).flatten());
        Vec::new()
    }
}

/// Reads one item of an ingest. Null and an empty text mean the default, except for the content.
fn read_item(fields: &mut Fields<'_>, max_content: usize) -> NewNote {
    let content = fields.text("content", 1, max_content);
    let mut or = |name: &str, most: usize, default: &str| {
        let given = fields.optional_text(name, most);
        given.unwrap_or_else(|| default.to_owned())
    };
    NewNote {
        content,
        source_type: or("source_type", MAX_SOURCE_TYPE, DEFAULT_SOURCE_TYPE),
        domain: or("domain", MAX_DOMAIN, DEFAULT_DOMAIN),
        source_ref: or("source_ref", MAX_SOURCE_REF, ""),
        evolve: fields.optional_flag_or("evolve", true),
    }
}

/// A question to be answered from the notes.
#[derive(Debug, ToSchema)]
#[schema(example = json!({"query": "Who uses Snake?", "format": "direct_answer"}))]
pub(in crate::http::local) struct SynthesizeBody {
    /// The question. At most `web.max_query_chars` characters.
    pub query: String,
    /// Format of the answer. Any other text is refused with 400.
    #[schema(value_type = SynthesisFormat)]
    pub format: String,
    /// Number of notes to answer from. Default `retrieval.default_k`, at most `web.max_k`.
    pub k: usize,
}

impl SynthesizeBody {
    pub fn read(fields: &mut Fields<'_>, settings: &LocalSettings) -> Self {
        Self {
            query: fields.text("query", 1, settings.web.max_query_chars),
            format: fields.text_or("format", SynthesisFormat::DirectAnswer.as_str(), 0, MAX_FORMAT),
            k: fields.number_or("k", settings.default_k(), 1, settings.web.max_k),
        }
    }
}

/// A note as a recall result.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct NoteView<'a> {
    id: Uuid,
    /// The first 500 characters.
    #[schema(max_length = 500)]
    content: &'a str,
    domain: &'a str,
    /// Trust by the kind of source: `a` (entered by a person), `b` (a report or feed), `c` (model-written or unsourced).
    tier: &'a str,
    /// 0 to 1.
    #[schema(minimum = 0, maximum = 1)]
    confidence: f64,
    #[schema(format = DateTime)]
    created_at: String,
    /// Canonical values of the first ten entities that the note mentions.
    #[schema(max_items = 10)]
    entities: &'a [String],
    /// The first sentence, cut after 150 characters.
    context: String,
    /// 0 to 1, falling with rank.
    #[schema(minimum = 0, maximum = 1)]
    score: f32,
    /// What made it a result, the strongest if there are several.
    matched: MatchedBy,
    /// The notes that it corrects or that correct it: a correction stands above what it corrects.
    #[serde(skip_serializing_if = "<[Uuid]>::is_empty")]
    #[schema(required = false)]
    conflicts_with: &'a [Uuid],
    /// Why it was found; only with `explain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a NoteWhy>,
}

impl<'a> From<&'a FoundNote> for NoteView<'a> {
    fn from(found: &'a FoundNote) -> Self {
        let note = &found.note;
        let shown = found.entities.len().min(SHOWN_ENTITIES);
        Self {
            id: note.id,
            content: truncate_chars(&note.content, SHOWN_CONTENT),
            domain: &note.domain,
            tier: &note.tier,
            confidence: note.confidence,
            created_at: time(note.created_at),
            entities: found.entities.get(..shown).unwrap_or_default(),
            context: context(&note.content),
            score: found.score,
            matched: found.matched,
            conflicts_with: &found.conflicts_with,
            why: found.why.as_ref(),
        }
    }
}

pub(super) fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(chrono::SecondsFormat::Micros, true)
}

/// The notes found, best first.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "query": "Which tools does APT28 use?", "count": 1, "latency_ms": 3,
    "results": [{
        "id": "0197f3a0-5a58-7c11-8a55-0f6f3f4f6a10", "content": "APT28 used X-Agent against 203.0.113.7.",
        "domain": "cti", "tier": "b", "confidence": 0.8, "created_at": "2026-01-02T03:04:05.678901Z",
        "entities": ["apt28", "x-agent", "203.0.113.7"], "context": "APT28 used X-Agent against 203",
        "score": 0.87, "matched": "name",
    }],
}))]
pub(super) struct RecallAnswer<'a> {
    pub query: String,
    pub results: Vec<NoteView<'a>>,
    /// Number of results.
    pub count: usize,
    /// How the question was understood; only with `explain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<QuestionView<'a>>,
    pub latency_ms: u64,
}

/// How a question was understood.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct QuestionView<'a> {
    /// What it names and the memory knows.
    names: &'a [NamedEntity],
    /// The kinds of things that it asks for, the most fitting one first. Empty if it doesn't ask for related things, or
    /// if the graph has no answer.
    #[schema(value_type = Vec<String>, example = json!(["software"]))]
    wanted: &'a [Kind],
    /// The kinds of things on the way to them.
    #[schema(value_type = Vec<String>, example = json!(["group"]))]
    through: &'a [Kind],
    /// The time that it asks for.
    #[schema(required)]
    period: Option<AskedPeriod>,
    /// The order by time that it asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    order: Option<TimeOrder>,
    /// How what it names is combined, unless things related to any of it answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    combination: Option<CombinationAsked>,
    /// A word by which it denies or excepts something that was not understood: it was answered by words and meaning alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "without")]
    not_understood: Option<&'a str>,
}

impl<'a> From<&'a InterpretedQuestion> for QuestionView<'a> {
    fn from(question: &'a InterpretedQuestion) -> Self {
        let plan = question.plan.as_ref();
        let period = plan.and_then(|plan| plan.period).or(question.time.period);
        Self {
            names: &question.names,
            wanted: plan.map_or(&[], |plan| &plan.wanted),
            through: plan.map_or(&[], |plan| &plan.through),
            period: period.map(AskedPeriod::from),
            order: question.time.order,
            combination: plan.and_then(|plan| CombinationAsked::of(plan.logic.combination)),
            not_understood: question.denial.as_deref(),
        }
    }
}

/// The stored note.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "note_id": "0197f3a0-5a58-7c11-8a55-0f6f3f4f6a10", "status": "created",
    "entities": ["apt28", "x-agent", "203.0.113.7"], "latency_ms": 12,
}))]
pub(super) struct RememberAnswer {
    pub note_id: Uuid,
    pub status: NoteStatus,
    /// Canonical values of the entities that the text mentions, in its order.
    pub entities: Vec<String>,
    pub latency_ms: u64,
}

/// What became of each item.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "total": 2, "succeeded": 1, "failed": 1, "results": [
        {"note_id": "0197f3a0-5a58-7c11-8a55-0f6f3f4f6a10", "status": "created", "entities": ["turla", "snake"],
            "success": true, "error": null},
        {"note_id": null, "status": "error", "entities": [], "success": false,
            "error": "Write capacity exhausted; retry shortly"},
    ],
}))]
pub(super) struct IngestAnswer {
    pub total: usize,
    pub succeeded: usize,
    pub failed: usize,
    /// In the order of the items.
    pub results: Vec<ItemResult>,
}

/// What became of one item of an ingest.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ItemResult {
    /// Null if the item failed.
    #[schema(required)]
    note_id: Option<Uuid>,
    status: ItemStatus,
    entities: Vec<String>,
    pub success: bool,
    /// Why it failed: the field and the rule, or that the write capacity was exhausted.
    #[schema(required)]
    error: Option<String>,
}

/// Outcome of one item: that of a remembered note, or an error.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum ItemStatus {
    Created,
    Duplicate,
    Updated,
    Error,
}

impl From<NoteStatus> for ItemStatus {
    fn from(status: NoteStatus) -> Self {
        match status {
            NoteStatus::Created => Self::Created,
            NoteStatus::Duplicate => Self::Duplicate,
            NoteStatus::Updated => Self::Updated,
        }
    }
}

impl ItemResult {
    pub fn failed(error: impl Into<String>) -> Self {
        Self {
            note_id: None,
            status: ItemStatus::Error,
            entities: Vec::new(),
            success: false,
            error: Some(error.into()),
        }
    }
}

impl From<RememberOutcome> for ItemResult {
    fn from(told: RememberOutcome) -> Self {
        Self {
            note_id: Some(told.note_id),
            status: told.status.into(),
            entities: told.entities,
            success: true,
            error: None,
        }
    }
}

/// An answer made from notes, and what was asked.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "query": "Who uses Snake?", "format": "direct_answer", "sources_count": 1, "latency_ms": 830,
    "synthesis": {
        "answer": "Turla uses Snake.", "confidence": 0.8,
        "sources": [{"note_id": "0197f3a0-5a58-7c11-8a55-0f6f3f4f6a10", "quote": "Turla uses Snake."}],
    },
}))]
pub(super) struct SynthesizeAnswer {
    pub query: String,
    pub format: SynthesisFormat,
    /// Well formed but without an answer if no note answers the question or no language model is configured.
    pub synthesis: Answer,
    /// Number of notes that the answer was sought in.
    pub sources_count: usize,
    pub latency_ms: u64,
}
