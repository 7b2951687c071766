//! One note: read, correct, supersede, delete.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::types::{MAX_DOMAIN, MAX_SOURCE_REF, MAX_SOURCE_TYPE, time};
use crate::config::local::LocalSettings;
use crate::domain::error::DomainError;
use crate::domain::memory::note::context;
use crate::http::body::Body;
use crate::http::local::body::{fields_of, limit_for, query_of};
use crate::http::local::error::LocalError;
use crate::http::local::validate::Fields;
use crate::http::local::{LocalState, address_of, guarded_resource};
use crate::local::{FoundNote, NoteCorrection, StoredVersion};

pub(in crate::http::local) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(
        guarded_resource("/api/notes/{id}")
            .route(web::get().to(note))
            .route(web::patch().to(correct))
            .route(web::delete().to(delete)),
    );
    cfg.service(guarded_resource("/api/notes/{id}/supersede").route(web::post().to(supersede)));
}

/// What is said of a note from now on. What is absent stays as it is; one field at least must be there.
#[derive(Debug, ToSchema)]
#[schema(example = json!({"content": "APT28 used X-Agent against 203.0.113.70."}))]
pub(in crate::http::local) struct CorrectionBody {
    /// The text. At most `web.max_content_chars` characters.
    pub content: Option<String>,
    /// The domain.
    pub domain: Option<String>,
    /// Kind of source, which decides the tier.
    pub source_type: Option<String>,
    /// The source, instead of those that are known.
    pub source_ref: Option<String>,
}

impl CorrectionBody {
    pub fn read(fields: &mut Fields<'_>, settings: &LocalSettings) -> Self {
        let body = Self {
            content: fields.text_if_given("content", 1, settings.web.max_content_chars),
            domain: fields.text_if_given("domain", 1, MAX_DOMAIN),
            source_type: fields.text_if_given("source_type", 1, MAX_SOURCE_TYPE),
            source_ref: fields.text_if_given("source_ref", 0, MAX_SOURCE_REF),
        };
        let given = [&body.content, &body.domain, &body.source_type, &body.source_ref];
        if given.iter().all(|field| field.is_none()) && !fields.has_issues() {
            fields.refuse_body(
                "value_error",
                "Send `content`, `domain`, `source_type` or `source_ref`",
            );
        }
        body
    }
}

impl From<CorrectionBody> for NoteCorrection {
    fn from(body: CorrectionBody) -> Self {
        Self {
            content: body.content,
            domain: body.domain,
            source_type: body.source_type,
            source_ref: body.source_ref,
        }
    }
}

/// The note that replaces another.
#[derive(Debug, ToSchema)]
#[schema(example = json!({"by": "0197f3a0-5a58-7c11-8a55-0f6f3f4f6a10"}))]
pub(in crate::http::local) struct SupersedeBody {
    /// Id of the note that is found instead.
    pub by: String,
}

impl SupersedeBody {
    pub fn read(fields: &mut Fields<'_>) -> Self {
        Self {
            by: fields.text("by", 1, MAX_NOTE_ID),
        }
    }
}

/// Longest text of an id.
const MAX_NOTE_ID: usize = 64;

/// A complete note.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "id": "0197f3a0-5a58-7c11-8a55-0f6f3f4f6a10", "content": "APT28 used X-Agent against 203.0.113.7.",
    "domain": "cti", "source_type": "report", "source_ref": "https://example.com/report",
    "source_refs": ["https://example.com/report"], "tier": "b", "confidence": 0.8,
    "created_at": "2026-01-02T03:04:05.678901Z", "entities": ["apt28", "x-agent", "203.0.113.7"],
    "context": "APT28 used X-Agent against 203", "flags": [], "superseded_by": null,
}))]
pub(super) struct WholeNote {
    id: Uuid,
    content: String,
    domain: String,
    source_type: String,
    source_ref: String,
    /// Every source that reported the text, the first one first.
    #[schema(max_items = 100)]
    source_refs: Vec<String>,
    tier: String,
    /// 0 to 1.
    #[schema(minimum = 0, maximum = 1)]
    confidence: f64,
    #[schema(format = DateTime)]
    created_at: String,
    entities: Vec<String>,
    context: String,
    /// Warnings for readers, such as `prompt-injection`.
    flags: Vec<String>,
    /// The note that superseded this one.
    #[schema(required)]
    superseded_by: Option<Uuid>,
    /// What the note said before each correction, the first version first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    versions: Vec<VersionView>,
}

/// What a note said before a correction.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "version": 1, "content": "APT28 used X-Agent.", "domain": "cti", "source_type": "manual", "source_ref": "",
    "until": "2026-01-03T03:04:05.678901Z",
}))]
struct VersionView {
    /// From 1.
    version: u64,
    content: String,
    domain: String,
    source_type: String,
    source_ref: String,
    /// When the correction replaced it.
    #[schema(format = DateTime)]
    until: String,
}

impl WholeNote {
    fn of(found: FoundNote, versions: Vec<StoredVersion>) -> Self {
        let note = found.note;
        let view = |stored: StoredVersion| VersionView {
            version: stored.version.number,
            content: stored.version.content,
            domain: stored.version.domain,
            source_type: stored.version.source_type,
            source_ref: stored.version.source_ref,
            until: time(stored.until),
        };
        Self {
            id: note.id,
            context: context(&note.content),
            content: note.content,
            domain: note.domain,
            source_type: note.source_type,
            source_ref: note.source_ref,
            source_refs: note.source_refs,
            tier: note.tier,
            confidence: note.confidence,
            created_at: time(note.created_at),
            entities: found.entities,
            flags: note.flags,
            superseded_by: note.superseded_by,
            versions: versions.into_iter().map(view).collect(),
        }
    }
}

fn id_of(id: &str) -> Result<Uuid, LocalError> {
    Ok(Uuid::parse_str(id).map_err(|_| DomainError::NotFound("note"))?)
}

async fn whole(state: &LocalState, id: Uuid) -> Result<HttpResponse, LocalError> {
    let found = state.memory.note(id).await?;
    let versions = state.memory.versions(id).await?;
    Ok(HttpResponse::Ok().json(WholeNote::of(found, versions)))
}

/// Reads a complete note.
///
/// Superseded notes are included, and what a corrected note said before.
#[utoipa::path(
    get, path = "/api/notes/{id}", tag = "Memory", operation_id = "read_note",
    params(("id" = Uuid, Path, description = "Id of the note.")),
    responses((status = 200, description = "The note.", body = WholeNote)),
)]
pub(super) async fn note(
    state: web::Data<LocalState>,
    id: web::Path<String>,
) -> Result<HttpResponse, LocalError> {
    whole(&state, id_of(&id)?).await
}

/// Corrects a note.
///
/// The note keeps its id and its time. What it said before is kept as a version. Entities and relationships that only its
/// old text stated go.
#[utoipa::path(
    patch, path = "/api/notes/{id}", tag = "Memory", operation_id = "correct_note",
    params(("id" = Uuid, Path, description = "Id of the note.")), request_body = CorrectionBody,
    responses((status = 200, description = "The note as it is now.", body = WholeNote)),
)]
pub(super) async fn correct(
    request: HttpRequest,
    state: web::Data<LocalState>,
    id: web::Path<String>,
    payload: Body,
) -> Result<HttpResponse, LocalError> {
    let id = id_of(&id)?;
    let settings = state.settings();
    let other = MAX_DOMAIN + MAX_SOURCE_TYPE + MAX_SOURCE_REF;
    let limit = limit_for(&state, settings.web.max_content_chars + other);
    let read = fields_of(&state, payload, limit, move |fields| {
        CorrectionBody::read(fields, &settings)
    });
    let (body, _load) = read.await?;
    let from = address_of(&request);
    state.memory.correct_note_for(id, body.into(), from).await?;
    whole(&state, id).await
}

/// Replaces a note by another one.
///
/// As a near-duplicate does: the note stays readable, and recall finds the other one instead.
#[utoipa::path(
    post, path = "/api/notes/{id}/supersede", tag = "Memory", operation_id = "supersede_note",
    params(("id" = Uuid, Path, description = "Id of the note that is replaced.")), request_body = SupersedeBody,
    responses((status = 200, description = "The note that is replaced.", body = WholeNote)),
)]
pub(super) async fn supersede(
    request: HttpRequest,
    state: web::Data<LocalState>,
    id: web::Path<String>,
    payload: Body,
) -> Result<HttpResponse, LocalError> {
    let id = id_of(&id)?;
    let limit = limit_for(&state, MAX_NOTE_ID);
    let (body, _load) = fields_of(&state, payload, limit, SupersedeBody::read).await?;
    let from = address_of(&request);
    let done = state.memory.supersede_note_for(id, id_of(&body.by)?, from).await;
    done.map_err(LocalError::bad_request)?;
    whole(&state, id).await
}

/// How a note is deleted.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http::local) struct DeletionQuery {
    /// Whether to remove every trace of the text from the files of the service before answering.
    #[param(required = false)]
    pub erase: bool,
}

impl DeletionQuery {
    pub fn read(fields: &mut Fields<'_>) -> Self {
        Self {
            erase: fields.flag_or("erase", false),
        }
    }
}

/// A deleted note.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"note_id": "0197f3a0-5a58-7c11-8a55-0f6f3f4f6a10", "erased": false, "restored": []}))]
struct Deletion {
    note_id: Uuid,
    /// Whether nothing of its text is left in any file.
    erased: bool,
    /// The notes that it had superseded, and that are found again.
    restored: Vec<Uuid>,
}

/// Deletes a note.
///
/// It is gone from every search, list and count, with the entities and relationships that it alone stated; what others state
/// stays. The notes that it had superseded are found again. With `erase` the answer comes once no file of the service holds
/// its text any more, which takes time in proportion to the size of the memory; what was interrupted goes on at the next
/// start, or when the request is sent again.
#[utoipa::path(
    delete, path = "/api/notes/{id}", tag = "Memory", operation_id = "delete_note",
    params(("id" = Uuid, Path, description = "Id of the note."), DeletionQuery),
    responses((status = 200, description = "The note is gone.", body = Deletion)),
)]
pub(super) async fn delete(
    request: HttpRequest,
    state: web::Data<LocalState>,
    id: web::Path<String>,
) -> Result<HttpResponse, LocalError> {
    let id = id_of(&id)?;
    let DeletionQuery { erase } = query_of(&request, DeletionQuery::read)?;
    let deleted = state
        .memory
        .delete_note_for(id, erase, address_of(&request))
        .await?;
    Ok(HttpResponse::Ok().json(Deletion {
        note_id: id,
        erased: erase,
        restored: deleted.restored,
    }))
}
