//! Remember, recall, ingest and synthesize.

use std::net::IpAddr;
use std::time::Instant;

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::body::{fields_of, limit_for};
use super::error::{BAD_FORMAT, Issue, LocalError, NO_CAPACITY};
use super::validate::Fields;
use super::{LocalState, address_of, guarded};
use crate::domain::error::DomainError;
use crate::domain::memory::note::{DEFAULT_DOMAIN, context, cut};
use crate::domain::memory::synthesis::SynthesisFormat;
use crate::local::{FoundNote, MemoryError, NewNote, Remembered};

const MAX_DOMAIN: usize = 100;
const MAX_SOURCE_TYPE: usize = 100;
const MAX_SOURCE_REF: usize = 500;
const MAX_FORMAT: usize = 50;
const MAX_ITEMS: usize = 100;
/// Ingest items per write.
const ITEMS_PER_WRITE: usize = 10;
/// Most characters and entities of a note shown in a result list.
const SHOWN_CONTENT: usize = 500;
const SHOWN_ENTITIES: usize = 10;
const DEFAULT_SOURCE_TYPE: &str = "manual";

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(guarded("/api/recall").route(web::post().to(recall)));
    cfg.service(guarded("/api/remember").route(web::post().to(remember)));
    cfg.service(guarded("/api/ingest").route(web::post().to(ingest)));
    cfg.service(guarded("/api/synthesize").route(web::post().to(synthesize)));
    cfg.service(guarded("/api/notes/{id}").route(web::get().to(note)));
}

impl From<MemoryError> for LocalError {
    fn from(error: MemoryError) -> Self {
        match error {
            MemoryError::WriteCapacity => Self::Says(StatusCode::TOO_MANY_REQUESTS, NO_CAPACITY),
            MemoryError::Domain(error) => error.into(),
            MemoryError::Open(cause) => DomainError::internal("the memory is closed", cause).into(),
        }
    }
}

/// A note as a recall result.
#[derive(Serialize)]
struct NoteView<'a> {
    id: Uuid,
    content: &'a str,
    domain: &'a str,
    tier: &'a str,
    confidence: f64,
    created_at: String,
    entities: &'a [String],
    context: String,
}

impl<'a> From<&'a FoundNote> for NoteView<'a> {
    fn from(found: &'a FoundNote) -> Self {
        let note = &found.note;
        let shown = found.entities.len().min(SHOWN_ENTITIES);
        Self {
            id: note.id,
            content: cut(&note.content, SHOWN_CONTENT),
            domain: &note.domain,
            tier: &note.tier,
            confidence: note.confidence,
            created_at: time(note.created_at),
            entities: found.entities.get(..shown).unwrap_or_default(),
            context: context(&note.content),
        }
    }
}

fn time(at: chrono::DateTime<chrono::Utc>) -> String {
    at.to_rfc3339_opts(chrono::SecondsFormat::Micros, true)
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

async fn recall(state: web::Data<LocalState>, payload: web::Payload) -> Result<HttpResponse, LocalError> {
    let since = Instant::now();
    let settings = state.settings();
    let limit = limit_for(&state, settings.web.max_query_chars + MAX_DOMAIN);
    let read = fields_of(&state, payload, limit, move |fields| {
        (
            fields.text("query", 1, settings.web.max_query_chars),
            fields.number_or("k", settings.default_k(), 1, settings.web.max_k),
            fields.optional_text("domain", MAX_DOMAIN),
        )
    });
    let ((query, k, domain), _load) = read.await?;
    let found = state.memory.recall_in(&query, k, domain).await?;
    let results: Vec<NoteView<'_>> = found.notes.iter().map(NoteView::from).collect();
    Ok(HttpResponse::Ok().json(json!({
        "query": query, "count": results.len(), "results": results, "latency_ms": millis(since),
    })))
}

async fn remember(
    request: HttpRequest,
    state: web::Data<LocalState>,
    payload: web::Payload,
) -> Result<HttpResponse, LocalError> {
    let since = Instant::now();
    let settings = state.settings();
    let other = MAX_DOMAIN + MAX_SOURCE_TYPE + MAX_SOURCE_REF;
    let limit = limit_for(&state, settings.web.max_content_chars + other);
    let read = fields_of(&state, payload, limit, move |fields| NewNote {
        content: fields.text("content", 1, settings.web.max_content_chars),
        domain: fields.text_or("domain", DEFAULT_DOMAIN, 1, MAX_DOMAIN),
        source_type: fields.text_or("source_type", DEFAULT_SOURCE_TYPE, 1, MAX_SOURCE_TYPE),
        source_ref: fields.text_or("source_ref", "", 0, MAX_SOURCE_REF),
        evolve: fields.flag_or("evolve", true),
    });
    let (note, _load) = read.await?;
    let mut outcomes = state
        .memory
        .remember_all(vec![note], address_of(&request))
        .await?;
    let outcome = outcomes.pop();
    let told = outcome.ok_or_else(|| DomainError::internal("the write gave no answer", ""))??;
    Ok(HttpResponse::Ok().json(json!({
        "note_id": told.note_id, "status": told.status.as_str(), "entities": told.entities,
        "latency_ms": millis(since),
    })))
}

async fn ingest(
    request: HttpRequest,
    state: web::Data<LocalState>,
    payload: web::Payload,
) -> Result<HttpResponse, LocalError> {
    let settings = state.settings();
    let max_content = settings.web.max_content_chars;
    let read = fields_of(&state, payload, settings.web.body_limit, move |fields| {
        let items = fields.list("items", 1, MAX_ITEMS, |fields| read_item(fields, max_content));
        fields.blame(items.iter().filter_map(|item| item.as_ref().err()).flatten());
        items
    });
    let (mut left, _load) = read.await?;
    let from = address_of(&request);
    let mut results: Vec<Value> = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let rest = left.split_off(left.len().min(ITEMS_PER_WRITE));
        results.extend(write_items(&state, left, from).await);
        left = rest;
    }
    let succeeded = results.iter().filter(|result| result["success"] == true).count();
    Ok(HttpResponse::Ok().json(json!({
        "total": results.len(), "succeeded": succeeded, "failed": results.len() - succeeded, "results": results,
    })))
}

/// Reads one item of an ingest. An item that is not an object or has no text fails the whole request; any other error
/// is reported for the item alone. Null and an empty text mean the default.
fn read_item(fields: &mut Fields<'_>, max_content: usize) -> Result<NewNote, Vec<Issue>> {
    let content = fields.text("content", 1, max_content);
    fields.apart(|fields| {
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
    })
}

/// Writes the valid items in one batch. The results are in the order of the items.
async fn write_items(
    state: &LocalState,
    items: Vec<Result<NewNote, Vec<Issue>>>,
    from: IpAddr,
) -> Vec<Value> {
    let mut notes = Vec::with_capacity(items.len());
    let take = |item: Result<NewNote, Vec<Issue>>| match item {
        Ok(note) => {
            notes.push(note);
            None
        }
        Err(broken) => Some(told(&broken)),
    };
    let refused: Vec<Option<String>> = items.into_iter().map(take).collect();
    let written = if notes.is_empty() {
        Ok(Vec::new())
    } else {
        state.memory.remember_all(notes, from).await
    };
    // If the batch failed, each of its items failed.
    let mut outcomes = written.map(Vec::into_iter).map_err(|error| said(&error));
    let result = |refused: Option<String>| match (refused, &mut outcomes) {
        (Some(broken), _) => failed_item(&broken),
        (None, Err(error)) => failed_item(error),
        (None, Ok(outcomes)) => outcomes.next().map_or_else(
            || failed_item("the write gave no answer"),
            |outcome| item_of(&outcome),
        ),
    };
    refused.into_iter().map(result).collect()
}

/// The issues of an item as one text, each prefixed with its field.
fn told(broken: &[Issue]) -> String {
    let rule = |issue: &Issue| {
        let field = issue.loc.last().and_then(Value::as_str).unwrap_or_default();
        format!("{field}: {}", issue.msg)
    };
    broken.iter().map(rule).collect::<Vec<_>>().join("; ")
}

fn item_of(outcome: &Result<Remembered, DomainError>) -> Value {
    match outcome {
        Ok(told) => json!({
            "note_id": told.note_id, "status": told.status.as_str(), "entities": told.entities,
            "success": true, "error": null,
        }),
        Err(error) => failed_item(&error.to_string()),
    }
}

fn failed_item(error: &str) -> Value {
    json!({"note_id": null, "status": "error", "entities": [], "success": false, "error": error})
}

/// The part of a failure that a client may see.
fn said(error: &MemoryError) -> String {
    if let MemoryError::Domain(DomainError::Internal { what, cause }) = error {
        tracing::error!(what, cause, "ingest failed");
    }
    error.to_string()
}

async fn synthesize(
    request: HttpRequest,
    state: web::Data<LocalState>,
    payload: web::Payload,
) -> Result<HttpResponse, LocalError> {
    let since = Instant::now();
    let settings = state.settings();
    let limit = limit_for(&state, settings.web.max_query_chars + MAX_FORMAT);
    let read = fields_of(&state, payload, limit, move |fields| {
        (
            fields.text("query", 1, settings.web.max_query_chars),
            fields.text_or("format", SynthesisFormat::DirectAnswer.as_str(), 0, MAX_FORMAT),
            fields.number_or("k", settings.default_k(), 1, settings.web.max_k),
        )
    });
    let ((query, format, k), _load) = read.await?;
    let format: SynthesisFormat = format
        .parse()
        .map_err(|_| LocalError::Says(StatusCode::BAD_REQUEST, BAD_FORMAT))?;
    let answer = state
        .memory
        .synthesize_for(&query, format, k, address_of(&request))
        .await?;
    Ok(HttpResponse::Ok().json(json!({
        "query": query, "format": format, "synthesis": answer.synthesis,
        "sources_count": answer.sources_count, "latency_ms": millis(since),
    })))
}

/// A complete note, including superseded ones.
async fn note(state: web::Data<LocalState>, id: web::Path<String>) -> Result<HttpResponse, LocalError> {
    let id = Uuid::parse_str(&id).map_err(|_| DomainError::NotFound("note"))?;
    let found = state.memory.note(id).await?;
    let note = &found.note;
    Ok(HttpResponse::Ok().json(json!({
        "id": note.id, "content": note.content, "domain": note.domain, "source_type": note.source_type,
        "source_ref": note.source_ref, "source_refs": note.source_refs, "tier": note.tier, "confidence": note.confidence,
        "created_at": time(note.created_at), "entities": found.entities, "context": context(&note.content),
        "flags": note.flags, "superseded_by": note.superseded_by,
    })))
}
