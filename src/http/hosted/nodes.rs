//! A single node or evidence record, by id.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;

use super::error::HostedError;
use super::guard::{Guarded, RecallRead};
use super::query::Params;
use super::{id_of, resource};
use crate::actors::graph_store::{ReadEvidence, ReadNode};
use crate::domain::detail::{EvidenceHead, EvidenceRecord, NodeRelationship};
use crate::domain::node::KgNode;
use crate::domain::session::Visible;
use crate::http::AppState;
use crate::store::Page;

const DEFAULT_LIMIT: u32 = 100;
const MAX_LIMIT: u32 = 1000;
/// Largest offset: the engine skips the preceding rows one by one.
const MAX_OFFSET: u32 = 1_000_000;

#[derive(Serialize, ToSchema)]
struct NodeAnswer {
    node: KgNode,
    #[schema(value_type = Vec<NodeRelationship>)]
    relationships: Visible<NodeRelationship>,
    /// Whether there are more than this page holds.
    #[schema(example = false)]
    more_relationships: bool,
    #[schema(value_type = Vec<EvidenceHead>)]
    evidence: Visible<EvidenceHead>,
    /// Whether there is more than the newest hundred.
    #[schema(example = false)]
    more_evidence: bool,
}

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(resource("/api/nodes/{id}").route(web::get().to(node)));
    cfg.service(resource("/api/evidence/{id}").route(web::get().to(evidence)));
}

/// Operations of this file, for the API description.
#[derive(utoipa::OpenApi)]
#[openapi(paths(node, evidence))]
pub(super) struct Docs;

/// A node with one page of its relationships and its newest evidence.
#[utoipa::path(
    get, path = "/api/nodes/{id}", tag = "Recall",
    params(
        ("id" = Uuid, Path, description = "Id of the node."),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 1000, description = "Most relationships; 100 if absent."),
        (
            "offset" = Option<u32>,
            Query,
            minimum = 0,
            maximum = 1000000,
            description = "Relationships to skip; 0 if absent.",
        ),
        (
            "include_rejected" = Option<bool>,
            Query,
            description = "Whether to show what was rejected; only for administrators and analysts.",
        ),
    ),
    responses(
        (
            status = 200,
            description = "The node.",
            body = NodeAnswer,
            links(("evidence" = (operation_id = "evidence", parameters(("id" = "$response.body#/evidence/0/id"))))),
        ),
    )
)]
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
#[utoipa::path(
    get, path = "/api/evidence/{id}", tag = "Recall",
    params(
        ("id" = Uuid, Path, description = "Id of the record."),
        (
            "include_rejected" = Option<bool>,
            Query,
            description = "Whether to show what was rejected; only for administrators and analysts.",
        ),
    ),
    responses((status = 200, description = "The record.", body = EvidenceRecord))
)]
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
