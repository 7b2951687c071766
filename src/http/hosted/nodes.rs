//! A single node or evidence record, by id.

use actix_web::http::header::ETAG;
use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::error::HostedError;
use super::guard::{Guarded, RecallRead};
use super::query::Params;
use super::{corrections, id_of, resource};
use crate::actors::graph_store::{NodeName, ReadEvidence, ReadNode, ReadOverview};
use crate::domain::detail::{EvidenceHead, EvidenceRecord, MergedNode, NodeLink, NodeRelationship};
use crate::domain::error::DomainError;
use crate::domain::graph::correction::FieldCorrection;
use crate::domain::node::KgNode;
use crate::domain::principal::Principal;
use crate::domain::session::Visible;
use crate::http::AppState;

const DEFAULT_LIMIT: u32 = 100;
const MAX_LIMIT: u32 = 1000;
/// Nodes of an overview of the graph.
const DEFAULT_NODES: u32 = 40;
const MAX_NODES: u32 = 200;

/// What of a node is shown, for the description of the API.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only describes parameters")]
struct NodeParams {
    /// Most relationships; 100 if absent.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// Relationships to skip; 0 if absent.
    #[param(minimum = 0, maximum = 1000000)]
    offset: Option<u32>,
    /// Whether to show what was rejected; only for administrators and analysts.
    include_rejected: Option<bool>,
}

#[derive(Serialize, ToSchema)]
struct NodeAnswer {
    node: KgNode,
    /// What was set by hand.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(example = json!([]))]
    corrections: Vec<FieldCorrection>,
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
    /// The nodes that are merged into it, directly or by way of others.
    #[schema(value_type = Vec<MergedNode>)]
    merged: Visible<MergedNode>,
    /// The node that was asked for, if it is merged into this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    redirected_from: Option<Uuid>,
}

#[derive(Serialize, ToSchema)]
struct GraphAnswer {
    /// Best connected first.
    #[schema(value_type = Vec<KgNode>)]
    nodes: Visible<KgNode>,
    /// Those among these nodes.
    relationships: Vec<NodeLink>,
}

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(resource("/api/graph").route(web::get().to(graph)));
    cfg.service(resource("/api/nodes").route(web::get().to(node_of_object)));
    cfg.service(
        resource("/api/nodes/{id}")
            .route(web::get().to(node))
            .route(web::patch().to(corrections::correct_node)),
    );
    cfg.service(
        resource("/api/evidence/{id}")
            .route(web::get().to(evidence))
            .route(web::patch().to(corrections::correct_evidence)),
    );
    cfg.service(resource("/api/edges/{id}").route(web::patch().to(corrections::correct_edge)));
}

/// Operations of this file, for the API description.
#[derive(utoipa::OpenApi)]
#[openapi(paths(graph, node_of_object, node, evidence))]
pub(super) struct Docs;

/// The best connected nodes that the caller may see, and the relationships among them.
#[utoipa::path(
    get, path = "/api/graph", tag = "Recall",
    params(
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 200, description = "Most nodes; 40 if absent."),
    ),
    responses(
        (
            status = 200,
            description = "The nodes; none in a workspace with too many to compare.",
            body = GraphAnswer,
            links(("node" = (operation_id = "node", parameters(("id" = "$response.body#/nodes/0/id"))))),
        ),
    )
)]
async fn graph(
    caller: Guarded<RecallRead>,
    request: HttpRequest,
    state: web::Data<AppState>,
) -> Result<HttpResponse, HostedError> {
    let params = Params::of(&request)?;
    let message = ReadOverview {
        by: caller.by,
        limit: params.number("limit", DEFAULT_NODES, 1, MAX_NODES)? as usize,
    };
    let found = state.graph.call(message).await?;
    Ok(HttpResponse::Ok().json(GraphAnswer {
        nodes: found.nodes,
        relationships: found.relationships,
    }))
}

/// A node with one page of its relationships and its newest evidence.
#[utoipa::path(
    get, path = "/api/nodes/{id}", tag = "Recall",
    params(
        ("id" = Uuid, Path, description = "Id of the node."),
        NodeParams,
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
    let node = NodeName::Id(id_of(&id, "node")?);
    node_response(caller.by, node, &params, &state).await
}

/// The node of a STIX object, by the object's id: that of the object that it came as, or with which it is exported.
#[utoipa::path(
    get, path = "/api/nodes", operation_id = "node_of_object", tag = "Recall",
    params(
        (
            "stix_id" = String,
            Query,
            pattern = "^[a-z][a-z0-9-]+--[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$",
            description = "Id of the object; the case of its UUID does not count.",
            example = "malware--31b940d4-6f77-4a6a-9026-81c1046b8f47",
        ),
        NodeParams,
    ),
    responses(
        (
            status = 200,
            description = "The node.",
            body = NodeAnswer,
            links(("evidence" = (operation_id = "evidence", parameters(("id" = "$response.body#/evidence/0/id"))))),
        ),
        (status = 404, description = "No node that the caller may see is this object."),
    )
)]
async fn node_of_object(
    caller: Guarded<RecallRead>,
    request: HttpRequest,
    state: web::Data<AppState>,
) -> Result<HttpResponse, HostedError> {
    let params = Params::of(&request)?;
    let id = params.parse_value("stix_id")?;
    let id = id.ok_or_else(|| DomainError::invalid("stix_id", "is required and must not be empty"))?;
    node_response(caller.by, NodeName::Stix(id), &params, &state).await
}

async fn node_response(
    by: Principal,
    node: NodeName,
    params: &Params,
    state: &AppState,
) -> Result<HttpResponse, HostedError> {
    let message = ReadNode {
        include_rejected: params.flag("include_rejected", false)?,
        page: params.page(DEFAULT_LIMIT, MAX_LIMIT)?,
        node,
        by,
    };
    let found = state.graph.call(message).await?;
    let mut response = HttpResponse::Ok();
    Ok(response.insert_header((ETAG, found.entity_tag)).json(NodeAnswer {
        node: found.node,
        corrections: found.corrections,
        relationships: found.relationships,
        more_relationships: found.more_relationships,
        evidence: found.evidence,
        more_evidence: found.more_evidence,
        merged: found.merged,
        redirected_from: found.asked_for,
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
