//! Remember, recall, ingest and synthesize.

mod notes;
mod types;

use std::net::IpAddr;
use std::time::Instant;

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use serde_json::Value;

pub(super) use self::notes::{CorrectionBody, SupersedeBody};
use self::types::{
    IngestAnswer, ItemResult, MAX_DOMAIN, MAX_FORMAT, MAX_SOURCE_REF, MAX_SOURCE_TYPE, MAX_TIME, NoteView,
    QuestionView, RecallAnswer, RememberAnswer, SynthesizeAnswer,
};
pub(super) use self::types::{IngestBody, RecallBody, RememberBody, SynthesizeBody};
use super::body::{fields_of, limit_for};
use super::error::{BAD_FORMAT, ErrorBody, Issue, LocalError, NO_CAPACITY};
use super::{LocalState, address_of, guarded_resource};
use crate::domain::error::DomainError;
use crate::domain::memory::synthesis::SynthesisFormat;
use crate::http::body::Body;
use crate::local::{MemoryError, NewNote, RecallOptions, RememberOutcome, Scope};

/// Ingest items per write.
const ITEMS_PER_WRITE: usize = 10;

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(guarded_resource("/api/recall").route(web::post().to(recall)));
    cfg.service(guarded_resource("/api/remember").route(web::post().to(remember)));
    cfg.service(guarded_resource("/api/ingest").route(web::post().to(ingest)));
    cfg.service(guarded_resource("/api/synthesize").route(web::post().to(synthesize)));
    notes::configure(cfg);
}

#[derive(utoipa::OpenApi)]
#[openapi(paths(
    recall,
    remember,
    ingest,
    synthesize,
    notes::note,
    notes::correct,
    notes::supersede,
    notes::delete
))]
pub(super) struct Docs;

impl From<MemoryError> for LocalError {
    fn from(error: MemoryError) -> Self {
        match error {
            MemoryError::WriteCapacity => Self::Message(StatusCode::TOO_MANY_REQUESTS, NO_CAPACITY),
            MemoryError::Domain(error) => error.into(),
            MemoryError::Open(cause) => DomainError::internal("the memory is closed", cause).into(),
        }
    }
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Finds the notes that answer a question.
///
/// Blends keywords, meaning and the entities that the question names. If the question asks for things related to what it
/// names, one or two relationships away, or of a time, the notes that answer it from the graph come first.
#[utoipa::path(
    post, path = "/api/recall", tag = "Memory", operation_id = "recall",
    request_body = RecallBody,
    responses((status = 200, description = "The notes, best first.", body = RecallAnswer)),
)]
async fn recall(state: web::Data<LocalState>, payload: Body) -> Result<HttpResponse, LocalError> {
    let since = Instant::now();
    let settings = state.settings();
    let other = MAX_DOMAIN + 2 * MAX_TIME;
    let limit = limit_for(&state, settings.web.max_query_chars + other);
    let read = fields_of(&state, payload, limit, move |fields| {
        RecallBody::read(fields, &settings)
    });
    let (body, _load) = read.await?;
    let RecallBody {
        query,
        k,
        domain,
        since: first,
        until,
        explain,
        min_score,
    } = body;
    let scope = Scope {
        domain,
        since: first,
        until,
    };
    let options = RecallOptions {
        scope,
        explain,
        min_score,
    };
    let found = state.memory.recall_with(&query, k, options).await?;
    let results: Vec<NoteView<'_>> = found.notes.iter().map(NoteView::from).collect();
    Ok(HttpResponse::Ok().json(RecallAnswer {
        query,
        count: results.len(),
        results,
        question: found.question.as_ref().map(QuestionView::from),
        latency_ms: millis(since),
    }))
}

/// Stores a note.
///
/// The note is on disk and can be found before the answer is sent.
#[utoipa::path(
    post, path = "/api/remember", tag = "Memory", operation_id = "remember",
    request_body = RememberBody,
    responses(
        (status = 200, description = "The note is stored.", body = RememberAnswer, links(
            ("note" = (operation_id = "read_note", parameters(("id" = "$response.body#/note_id")))),
        )),
        (status = 429, description = "`Write capacity exhausted; retry shortly` or `Rate limit exceeded`.",
            body = ErrorBody, example = json!({"detail": NO_CAPACITY})),
    ),
)]
async fn remember(
    request: HttpRequest,
    state: web::Data<LocalState>,
    payload: Body,
) -> Result<HttpResponse, LocalError> {
    let since = Instant::now();
    let settings = state.settings();
    let other = MAX_DOMAIN + MAX_SOURCE_TYPE + MAX_SOURCE_REF;
    let limit = limit_for(&state, settings.web.max_content_chars + other);
    let read = fields_of(&state, payload, limit, move |fields| {
        RememberBody::read(fields, &settings)
    });
    let (note, _load) = read.await?;
    let mut outcomes = state
        .memory
        .remember_all(vec![note.into()], address_of(&request))
        .await?;
    let outcome = outcomes.pop();
    let told = outcome.ok_or_else(|| DomainError::internal("the write gave no answer", ""))??;
    Ok(HttpResponse::Ok().json(RememberAnswer {
        note_id: told.note_id,
        status: told.status,
        entities: told.entities,
        latency_ms: millis(since),
    }))
}

/// Stores up to 100 notes.
///
/// Each item has a result of its own: a bad one, or one for which the write capacity is exhausted, fails alone. A list
/// in which nothing is an object with a `content` is refused as a whole.
#[utoipa::path(
    post, path = "/api/ingest", tag = "Memory", operation_id = "ingest",
    request_body = IngestBody,
    responses((status = 200, description = "What became of each item.", body = IngestAnswer)),
)]
async fn ingest(
    request: HttpRequest,
    state: web::Data<LocalState>,
    payload: Body,
) -> Result<HttpResponse, LocalError> {
    let settings = state.settings();
    let limit = settings.web.body_limit;
    let read = fields_of(&state, payload, limit, move |fields| {
        IngestBody::read(fields, &settings)
    });
    let (mut left, _load) = read.await?;
    let from = address_of(&request);
    let mut results: Vec<ItemResult> = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let rest = left.split_off(left.len().min(ITEMS_PER_WRITE));
        results.extend(write_items(&state, left, from).await);
        left = rest;
    }
    let succeeded = results.iter().filter(|result| result.success).count();
    Ok(HttpResponse::Ok().json(IngestAnswer {
        total: results.len(),
        succeeded,
        failed: results.len() - succeeded,
        results,
    }))
}

/// Writes the valid items in one batch. The results are in the order of the items.
async fn write_items(
    state: &LocalState,
    items: Vec<Result<NewNote, Vec<Issue>>>,
    from: IpAddr,
) -> Vec<ItemResult> {
    let mut notes = Vec::with_capacity(items.len());
    let take = |item: Result<NewNote, Vec<Issue>>| match item {
        Ok(note) => {
            notes.push(note);
            None
        }
        Err(broken) => Some(join_issues(&broken)),
    };
    let refused: Vec<Option<String>> = items.into_iter().map(take).collect();
    let written = if notes.is_empty() {
        Ok(Vec::new())
    } else {
        state.memory.remember_all(notes, from).await
    };
    // If the batch failed, each of its items failed.
    let mut outcomes = written
        .map(Vec::into_iter)
        .map_err(|error| client_message(&error));
    let result = |refused: Option<String>| match (refused, &mut outcomes) {
        (Some(broken), _) => ItemResult::failed(broken),
        (None, Err(error)) => ItemResult::failed(error.as_str()),
        (None, Ok(outcomes)) => outcomes
            .next()
            .map_or_else(|| ItemResult::failed("the write gave no answer"), item_of),
    };
    refused.into_iter().map(result).collect()
}

/// The issues of an item as one text, each prefixed with its field unless it is about the item.
fn join_issues(broken: &[Issue]) -> String {
    let rule = |issue: &Issue| match issue.loc.last().and_then(Value::as_str) {
        Some(field) => format!("{field}: {}", issue.msg),
        None => issue.msg.clone(),
    };
    broken.iter().map(rule).collect::<Vec<_>>().join("; ")
}

fn item_of(outcome: Result<RememberOutcome, DomainError>) -> ItemResult {
    match outcome {
        Ok(told) => told.into(),
        Err(error) => ItemResult::failed(error.to_string()),
    }
}

/// The part of a failure that a client may see.
fn client_message(error: &MemoryError) -> String {
    if let MemoryError::Domain(DomainError::Internal { what, cause }) = error {
        tracing::error!(what, cause, "ingest failed");
    }
    error.to_string()
}

/// Answers a question from the notes.
///
/// Each source of the answer quotes its note; a quote that the note does not hold is dropped.
#[utoipa::path(
    post, path = "/api/synthesize", tag = "Memory", operation_id = "synthesize",
    request_body = SynthesizeBody,
    responses(
        (status = 200, description = "The answer, or that there is none.", body = SynthesizeAnswer),
        (status = 400, description = "The format is not supported, or the body can't be read.", body = ErrorBody,
            example = json!({"detail": BAD_FORMAT})),
    ),
)]
async fn synthesize(
    request: HttpRequest,
    state: web::Data<LocalState>,
    payload: Body,
) -> Result<HttpResponse, LocalError> {
    let since = Instant::now();
    let settings = state.settings();
    let limit = limit_for(&state, settings.web.max_query_chars + MAX_FORMAT);
    let read = fields_of(&state, payload, limit, move |fields| {
        SynthesizeBody::read(fields, &settings)
    });
    let (SynthesizeBody { query, format, k }, _load) = read.await?;
    let format: SynthesisFormat = format
        .parse()
        .map_err(|_| LocalError::Message(StatusCode::BAD_REQUEST, BAD_FORMAT))?;
    let answer = state
        .memory
        .synthesize_for(&query, format, k, address_of(&request))
        .await?;
    Ok(HttpResponse::Ok().json(SynthesizeAnswer {
        query,
        format,
        synthesis: answer.synthesis,
        sources_count: answer.sources_count,
        latency_ms: millis(since),
    }))
}
