//! A single node or evidence record, by id.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;

use super::error::HostedError;
use super::guard::{Guarded, RecallRead};
use super::query::Params;
use super::{id_of, resource};
use crate::actors::graph_store::{ReadEvidence, ReadNode};
use crate::domain::detail::{EvidenceHead, NodeRelationship};
use crate::domain::node::KgNode;
use crate::domain::session::Visible;
use crate::http::AppState;
use crate::store::Page;

const DEFAULT_LIMIT: u32 = 100;
const MAX_LIMIT: u32 = 1000;
/// Largest offset: the engine skips the preceding rows one by one.
const MAX_OFFSET: u32 = 1_000_000;

#[derive(Serialize)]
struct NodeAnswer {
    node: KgNode,
    relationships: Visible<NodeRelationship>,
    more_relationships: bool,
    evidence: Visible<EvidenceHead>,
    more_evidence: bool,
}

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(resource("/api/nodes/{id}").route(web::get().to(node)));
    cfg.service(resource("/api/evidence/{id}").route(web::get().to(evidence)));
}

/// A node with one page of its relationships and its newest evidence.
async fn node(
    caller: Guarded<RecallRead>,
    request: HttpRequest,
    state: web::Data<AppState>,
    id: web::Path<String>,
) -> Result<HttpResponse, HostedError> {
    let params = Params::of(&request)?;
    let message = ReadNode {
        include_rejected: params.flag("include_rejected", false)?,
        page: Page {
            limit: params.number("limit", DEFAULT_LIMIT, 1, MAX_LIMIT)?,
            offset: params.number("offset", 0, 0, MAX_OFFSET)?,
        },
        node: id_of(&id, "node")?,
        by: caller.by,
    };
    let found = state.graph.call(message).await?;
    Ok(HttpResponse::Ok().json(NodeAnswer {
        node: found.node,
        relationships: found.relationships,
        more_relationships: found.more_relationships,
        evidence: found.evidence,
        more_evidence: found.more_evidence,
    }))
}

/// An evidence record with its text and its original.
async fn evidence(
    caller: Guarded<RecallRead>,
    request: HttpRequest,
    state: web::Data<AppState>,
    id: web::Path<String>,
) -> Result<HttpResponse, HostedError> {
    let params = Params::of(&request)?;
    let message = ReadEvidence {
        include_rejected: params.flag("include_rejected", false)?,
        evidence: id_of(&id, "evidence record")?,
        by: caller.by,
    };
    let found = state.graph.call(message).await?;
    Ok(HttpResponse::Ok().json(found))
}
