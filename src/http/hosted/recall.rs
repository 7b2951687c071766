//! Recall: search, sessions, export.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use uuid::Uuid;

use super::error::{HELD_BACK, HostedError};
use super::guard::{Guarded, RecallRead};
use super::query::Params;
use super::{id_of, resource};
use crate::actors::graph_store::{ExportSession, Exported, ReadSession, Recall, RecallSemantic};
use crate::domain::session::{RecallMode, ScoredNode, Visible};
use crate::domain::tlp::Tlp;
use crate::http::AppState;

/// Media type of an exported bundle.
const STIX_JSON: &str = "application/stix+json;version=2.1";
/// Results by default, and at most.
pub(super) const DEFAULT_LIMIT: u32 = 20;
pub(super) const MAX_LIMIT: u32 = 100;
/// Longest query, in characters.
const MAX_QUERY: usize = 4000;

#[derive(Serialize)]
struct SearchAnswer {
    results: Visible<ScoredNode>,
    count: usize,
    query: String,
    mode: RecallMode,
    include_rejected: bool,
    recall_id: Uuid,
    max_tlp: Tlp,
}

#[derive(Serialize)]
struct SemanticAnswer {
    results: Visible<ScoredNode>,
    count: usize,
}

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(resource("/api/recall/search").route(web::get().to(search)));
    cfg.service(resource("/api/recall/semantic").route(web::get().to(semantic)));
    cfg.service(resource("/api/recall/sessions/{id}").route(web::get().to(session)));
    cfg.service(resource("/api/recall/sessions/{id}/export.stix").route(web::get().to(export)));
}

/// Blended or structured search; creates a session.
async fn search(
    caller: Guarded<RecallRead>,
    request: HttpRequest,
    state: web::Data<AppState>,
) -> Result<HttpResponse, HostedError> {
    let params = Params::of(&request)?;
    let include_rejected = params.flag("include_rejected", false)?;
    let effective = include_rejected && caller.by.may_see_rejected();
    let message = Recall {
        query: params.text("q", MAX_QUERY)?,
        mode: params.parsed("mode")?.unwrap_or(RecallMode::Blended),
        limit: params.number("limit", DEFAULT_LIMIT, 1, MAX_LIMIT)? as usize,
        include_rejected,
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
    }))
}

/// Pure vector search; creates no session.
async fn semantic(
    caller: Guarded<RecallRead>,
    request: HttpRequest,
    state: web::Data<AppState>,
) -> Result<HttpResponse, HostedError> {
    let params = Params::of(&request)?;
    let message = RecallSemantic {
        query: params.text("q", MAX_QUERY)?,
        limit: params.number("limit", DEFAULT_LIMIT, 1, MAX_LIMIT)? as usize,
        include_rejected: params.flag("include_rejected", false)?,
        by: caller.by,
    };
    let results = state.graph.call(message).await?;
    Ok(HttpResponse::Ok().json(SemanticAnswer {
        count: results.rows().len(),
        results,
    }))
}

/// A recall session.
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
async fn export(
    caller: Guarded<RecallRead>,
    state: web::Data<AppState>,
    id: web::Path<String>,
) -> Result<HttpResponse, HostedError> {
    let message = ExportSession {
        by: caller.by,
        session: id_of(&id, "session")?,
    };
    Ok(exported(state.graph.call(message).await?))
}

/// The answer with an exported bundle.
pub(super) fn exported(exported: Exported) -> HttpResponse {
    let mut answer = HttpResponse::Ok();
    if exported.held_back > 0 {
        answer.insert_header((HELD_BACK, exported.held_back));
    }
    answer.content_type(STIX_JSON).body(exported.bundle)
}
