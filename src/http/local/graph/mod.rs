//! The knowledge graph: nodes, edges, the entity index, pictures of a part of it.

mod entities;
mod merging;
mod view;

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

pub(super) use self::entities::EntitiesQuery;
pub(super) use self::merging::{MergeBody, UnmergeBody};
pub(super) use self::view::{NodeQuery, ViewQuery};
use super::body::query_of;
use super::error::LocalError;
use super::validate::Fields;
use super::{LocalState, guarded_resource};
use crate::domain::memory::view::{GraphEdge, GraphNode, Page};

/// Most nodes or edges in one response.
const MAX_PAGE: usize = 10_000;
/// The API sets no limit on offsets; past the end the result is empty.
const MAX_OFFSET: usize = usize::MAX >> 1;
/// Longest filter, in characters.
const MAX_FILTER: usize = 500;

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(guarded_resource("/api/graph/nodes").route(web::get().to(nodes)));
    cfg.service(guarded_resource("/api/graph/edges").route(web::get().to(edges)));
    view::configure(cfg);
    entities::configure(cfg);
    merging::configure(cfg);
}

#[derive(utoipa::OpenApi)]
#[openapi(paths(
    nodes,
    edges,
    view::view,
    view::node,
    entities::entities,
    entities::domains,
    merging::merge,
    merging::unmerge
))]
pub(super) struct Docs;

fn page(fields: &mut Fields<'_>, default: usize, max: usize) -> Page {
    Page {
        offset: fields.number_or("offset", 0, 0, MAX_OFFSET),
        limit: fields.number_or("limit", default, 1, max),
    }
}

/// Lowercases a filter: types and tiers are stored in lower case.
fn lower(filter: Option<String>) -> Option<String> {
    filter.map(|filter| filter.to_lowercase())
}

/// Which nodes are wanted.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct NodesQuery {
    /// Nodes to pass over.
    #[param(required = false)]
    offset: usize,
    /// Most nodes in the answer.
    #[param(required = false)]
    limit: usize,
    /// Type of the nodes, in any case: `note`, or an entity type such as `actor`.
    #[param(rename = "type", example = "actor")]
    node_type: Option<String>,
    /// Part of the label, in any case.
    #[param(example = "bear")]
    q: Option<String>,
}

impl NodesQuery {
    pub fn read(fields: &mut Fields<'_>) -> Self {
        let Page { offset, limit } = page(fields, MAX_PAGE, MAX_PAGE);
        Self {
            offset,
            limit,
            node_type: lower(fields.optional_text("type", MAX_FILTER)),
            q: fields.optional_text("q", MAX_FILTER),
        }
    }
}

/// Nodes of the graph.
#[derive(Debug, Serialize, ToSchema)]
struct Nodes {
    /// Number of nodes in this answer.
    count: usize,
    nodes: Vec<GraphNode>,
}

/// Lists the nodes of the graph.
///
/// Nodes are notes, and the entities that they mention.
#[utoipa::path(
    get, path = "/api/graph/nodes", tag = "Graph", operation_id = "list_nodes", params(NodesQuery),
    responses((status = 200, description = "The nodes.", body = Nodes), (status = 422, description = "")),
)]
async fn nodes(request: HttpRequest, state: web::Data<LocalState>) -> Result<HttpResponse, LocalError> {
    let NodesQuery {
        offset,
        limit,
        node_type,
        q,
    } = query_of(&request, NodesQuery::read)?;
    let nodes = state.memory.nodes(Page { offset, limit }, node_type, q).await?;
    let count = nodes.len();
    Ok(HttpResponse::Ok().json(Nodes { count, nodes }))
}

/// Which edges are wanted.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct EdgesQuery {
    /// Edges to pass over.
    #[param(required = false)]
    offset: usize,
    /// Most edges in the answer.
    #[param(required = false)]
    limit: usize,
}

impl EdgesQuery {
    pub fn read(fields: &mut Fields<'_>) -> Self {
        let Page { offset, limit } = page(fields, MAX_PAGE, MAX_PAGE);
        Self { offset, limit }
    }
}

/// Edges of the graph.
#[derive(Debug, Serialize, ToSchema)]
struct Edges {
    /// Number of edges in this answer.
    count: usize,
    edges: Vec<GraphEdge>,
}

/// Lists the edges of the graph.
///
/// Edges lead from a note to what it mentions or supersedes, and between entities.
#[utoipa::path(
    get, path = "/api/graph/edges", tag = "Graph", operation_id = "list_edges", params(EdgesQuery),
    responses((status = 200, description = "The edges.", body = Edges), (status = 422, description = "")),
)]
async fn edges(request: HttpRequest, state: web::Data<LocalState>) -> Result<HttpResponse, LocalError> {
    let EdgesQuery { offset, limit } = query_of(&request, EdgesQuery::read)?;
    let edges = state.memory.edges(Page { offset, limit }).await?;
    let count = edges.len();
    Ok(HttpResponse::Ok().json(Edges { count, edges }))
}
