//! Recall: search, sessions, export.

use std::sync::Arc;

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::error::{HELD_BACK, HostedError};
use super::guard::{Guarded, RecallRead};
use super::query::Params;
use super::{id_of, resource};
use crate::actors::extractor::read_question;
use crate::actors::graph_store::{
    ExportBundle, ExportSession, ListSessions, ReadSession, Recall, RecallSemantic,
};
use crate::clock;
use crate::domain::narrowing::{Narrowing, NarrowingParams};
use crate::domain::question::{self, QuestionAsked};
use crate::domain::schema::{self, text_schema};
use crate::domain::session::{RecallMode, RecallSession, ScoredNode, Visible};
use crate::domain::stix::export::ExportedBundle;
use crate::domain::tlp::Tlp;
use crate::http::AppState;

/// Media type of an exported bundle.
const STIX_JSON: &str = "application/stix+json;version=2.1";
/// Results by default, and at most.
pub(super) const DEFAULT_LIMIT: u32 = 20;
pub(super) const MAX_LIMIT: u32 = 100;
/// Longest query, in characters.
const MAX_QUERY: usize = 4000;

text_schema! {
    /// A question; white space around it is removed.
    Question, (1, MAX_QUERY), schema::NOT_BLANK, "Fancy Bear"
}

#[derive(Serialize, ToSchema)]
struct SearchAnswer {
    #[schema(value_type = Vec<ScoredNode>)]
    results: Visible<ScoredNode>,
    #[schema(example = 1)]
    count: usize,
    #[schema(example = "Fancy Bear")]
    query: String,
    mode: RecallMode,
    /// Whether rejected nodes were searched: only for administrators and analysts.
    #[schema(example = false)]
    include_rejected: bool,
    /// Id of the session, for its export.
    recall_id: Uuid,
    /// The most restrictive marking of the results; WHITE if there are none.
    max_tlp: Tlp,
    /// How a question about related things or a time was understood; only if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    question: Option<QuestionAsked>,
}

#[derive(Serialize, ToSchema)]
struct SemanticAnswer {
    #[schema(value_type = Vec<ScoredNode>)]
    results: Visible<ScoredNode>,
    #[schema(example = 1)]
    count: usize,
}

#[derive(Serialize, ToSchema)]
struct SessionsAnswer {
    sessions: Vec<RecallSession>,
    /// Number of sessions on this page.
    #[schema(example = 1)]
    count: usize,
}

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(resource("/api/recall/search").route(web::get().to(search)));
    cfg.service(resource("/api/recall/semantic").route(web::get().to(semantic)));
    cfg.service(resource("/api/recall/sessions").route(web::get().to(sessions)));
    cfg.service(resource("/api/recall/sessions/{id}").route(web::get().to(session)));
    cfg.service(resource("/api/recall/sessions/{id}/export.stix").route(web::get().to(export)));
}

/// Operations of this file, for the API description.
#[derive(utoipa::OpenApi)]
#[openapi(paths(search, semantic, sessions, session, export))]
pub(super) struct Docs;

/// Blended or structured search; creates a session.
#[utoipa::path(
    get, path = "/api/recall/search", tag = "Recall",
    params(
        ("q" = inline(Question), Query, description = "The question, or words of it.", example = "Fancy Bear"),
        ("mode" = Option<RecallMode>, Query, description = "How to search; blended if absent."),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 100, description = "Most results; 20 if absent."),
        NarrowingParams,
        (
            "include_rejected" = Option<bool>,
            Query,
            description = "Whether to show what was rejected; only for administrators and analysts.",
        ),
        (
            "min_score" = Option<f32>,
            Query,
            minimum = 0,
            maximum = 1,
            description = "Lowest score of a result. If absent, what is likely no answer is left out; with 0, nothing is.",
        ),
        (
            "explain" = Option<bool>,
            Query,
            description = "Whether to say how the question was understood and why each result was found.",
        ),
    ),
    responses(
        (
            status = 200,
            description = "The results, best first.",
            body = SearchAnswer,
            links(
                ("session" = (operation_id = "session", parameters(("id" = "$response.body#/recall_id")))),
                ("export" = (operation_id = "export", parameters(("id" = "$response.body#/recall_id")))),
                ("node" = (operation_id = "node", parameters(("id" = "$response.body#/results/0/id")))),
            ),
        ),
    )
)]
async fn search(
    caller: Guarded<RecallRead>,
    request: HttpRequest,
    state: web::Data<AppState>,
) -> Result<HttpResponse, HostedError> {
    let params = Params::of(&request)?;
    let include_rejected = params.flag("include_rejected", false)?;
    let effective = include_rejected && caller.by.may_see_rejected();
    let query = params.text("q", MAX_QUERY)?;
    let message = Recall {
        question: read_question(&state.extractor, &state.settings.llm, &query).await,
        mode: params.parse_value("mode")?.unwrap_or(RecallMode::Blended),
        limit: params.number("limit", DEFAULT_LIMIT, 1, MAX_LIMIT)? as usize,
        include_rejected,
        narrowing: Narrowing::read(|name| params.raw_value(name))?,
        explain: params.flag("explain", false)?,
        min_score: params.share("min_score")?,
        by: caller.by,
    };
    let found = state.graph.call(message).await?;
    Ok(HttpResponse::Ok().json(SearchAnswer {
        count: found.results.rows().len(),
        results: found.results,
        query: found.session.query,
        mode: found.session.mode,
        include_rejected: effective,
        recall_id: found.session.id,
        max_tlp: found.session.max_tlp,
        question: found.question,
    }))
}

/// Pure vector search; creates no session.
#[utoipa::path(
    get, path = "/api/recall/semantic", tag = "Recall",
    params(
        ("q" = inline(Question), Query, description = "The question, or words of it.", example = "Fancy Bear"),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 100, description = "Most results; 20 if absent."),
        NarrowingParams,
        (
            "include_rejected" = Option<bool>,
            Query,
            description = "Whether to show what was rejected; only for administrators and analysts.",
        ),
        (
            "min_score" = Option<f32>,
            Query,
            minimum = 0,
            maximum = 1,
            description = "Lowest score of a result, which is its cosine; 0 if absent.",
        ),
        ("explain" = Option<bool>, Query, description = "Whether to say why each result was found."),
    ),
    responses(
        (
            status = 200,
            description = "The results, nearest first.",
            body = SemanticAnswer,
            links(("node" = (operation_id = "node", parameters(("id" = "$response.body#/results/0/id"))))),
        ),
    )
)]
async fn semantic(
    caller: Guarded<RecallRead>,
    request: HttpRequest,
    state: web::Data<AppState>,
) -> Result<HttpResponse, HostedError> {
    let params = Params::of(&request)?;
    let query = params.text("q", MAX_QUERY)?;
    let message = RecallSemantic {
        question: Arc::new(question::Question::read(&query, clock::now())),
        limit: params.number("limit", DEFAULT_LIMIT, 1, MAX_LIMIT)? as usize,
        include_rejected: params.flag("include_rejected", false)?,
        narrowing: Narrowing::read(|name| params.raw_value(name))?,
        explain: params.flag("explain", false)?,
        min_score: params.share("min_score")?,
        by: caller.by,
    };
    let results = state.graph.call(message).await?;
    Ok(HttpResponse::Ok().json(SemanticAnswer {
        count: results.rows().len(),
        results,
    }))
}

/// The caller's own recall sessions, newest first. Those of an API key are its owner's.
#[utoipa::path(
    get, path = "/api/recall/sessions", operation_id = "list_sessions", tag = "Recall",
    params(
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 100, description = "Most sessions; 20 if absent."),
        ("offset" = Option<u32>, Query, minimum = 0, maximum = 1000000, description = "Sessions to skip; 0 if absent."),
    ),
    responses(
        (
            status = 200,
            description = "The sessions as the caller may see them now.",
            body = SessionsAnswer,
            links(
                ("session" = (operation_id = "session", parameters(("id" = "$response.body#/sessions/0/id")))),
                ("export" = (operation_id = "export", parameters(("id" = "$response.body#/sessions/0/id")))),
            ),
        ),
    )
)]
async fn sessions(
    caller: Guarded<RecallRead>,
    request: HttpRequest,
    state: web::Data<AppState>,
) -> Result<HttpResponse, HostedError> {
    let params = Params::of(&request)?;
    let message = ListSessions {
        by: caller.by,
        page: params.page(DEFAULT_LIMIT, MAX_LIMIT)?,
    };
    let sessions = state.graph.call(message).await?;
    let count = sessions.len();
    Ok(HttpResponse::Ok().json(SessionsAnswer { sessions, count }))
}

/// A recall session.
#[utoipa::path(
    get, path = "/api/recall/sessions/{id}", tag = "Recall",
    params(("id" = Uuid, Path, description = "Id of the session: the `recall_id` of a search.")),
    responses((status = 200, description = "The session as the caller may see it now.", body = RecallSession))
)]
async fn session(
    caller: Guarded<RecallRead>,
    state: web::Data<AppState>,
    id: web::Path<String>,
) -> Result<HttpResponse, HostedError> {
    let message = ReadSession {
        by: caller.by,
        session: id_of(&id, "session")?,
    };
    let found = state.graph.call(message).await?;
    Ok(HttpResponse::Ok().json(found))
}

/// A recall session as a STIX 2.1 bundle.
#[utoipa::path(
    get, path = "/api/recall/sessions/{id}/export.stix", tag = "Recall",
    params(("id" = Uuid, Path, description = "Id of the session: the `recall_id` of a search.")),
    responses(
        (
            status = 200,
            description = "The bundle.",
            body = ExportedBundle,
            content_type = "application/stix+json;version=2.1",
            headers((
                "X-Held-Back" = u64,
                description = "Objects withheld because a marking of theirs is not defined or may not leave; absent if \
                               there are none."
            ))
        ),
        (
            status = 403,
            description = "The caller lacks the permission recall:read; or the session holds TLP:RED and the \
                           workspace has no grant to export it; or a feed forbids redistribution.",
        ),
        (
            status = 422,
            description = "The bundle breaks a rule of STIX, named in `details`; or every object is held back.",
            headers(("X-Held-Back" = u64, description = "Objects withheld because a marking of theirs is not defined or may not leave."))
        ),
    )
)]
async fn export(
    caller: Guarded<RecallRead>,
    state: web::Data<AppState>,
    id: web::Path<String>,
) -> Result<HttpResponse, HostedError> {
    let message = ExportSession {
        by: caller.by,
        session: id_of(&id, "session")?,
    };
    Ok(bundle_response(state.graph.call(message).await?))
}

/// The answer with an exported bundle.
pub(super) fn bundle_response(exported: ExportBundle) -> HttpResponse {
    let mut answer = HttpResponse::Ok();
    if exported.held_back > 0 {
        answer.insert_header((HELD_BACK, exported.held_back));
    }
    answer.content_type(STIX_JSON).body(exported.bundle)
}
