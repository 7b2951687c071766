//! Looking around in the graph: a picture of a part of it, and one node with what is around it.
//!
//! The ids of entities may have slashes, so they are query parameters.

use actix_web::{HttpRequest, HttpResponse, web};
use utoipa::IntoParams;

use super::{MAX_FILTER, page};
use crate::domain::memory::entity::{MAX_TYPE, MAX_VALUE, canonical_type};
use crate::domain::memory::view::{GraphView, NodeDetails, Page};
use crate::http::local::body::query_of;
use crate::http::local::error::{ErrorBody, LocalError};
use crate::http::local::validate::Fields;
use crate::http::local::{LocalState, guarded_resource};
use crate::local::ViewGraph;

const MAX_NODES: usize = 5000;
const DEFAULT_NODES: usize = 1000;
/// Most edges from the node in the middle of a picture.
const MAX_DEPTH: usize = 3;
/// Most notes and most neighbours of one node in an answer.
const MAX_NEIGHBOURS: usize = 500;
const DEFAULT_NEIGHBOURS: usize = 50;
/// Longest id of a node, in characters: a type, a colon, a value.
pub(super) const MAX_ID: usize = MAX_TYPE + 1 + MAX_VALUE;

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(guarded_resource("/api/graph/view").route(web::get().to(view)));
    cfg.service(guarded_resource("/api/graph/node").route(web::get().to(node)));
}

/// Which part of the graph is wanted.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http::local) struct ViewQuery {
    /// Most nodes in the answer.
    #[param(required = false)]
    limit: usize,
    /// Types of the nodes, in any case: `note`, or entity types such as `actor`. Several are separated by commas, or stand
    /// in several parameters.
    #[param(rename = "type", value_type = Option<String>, example = "actor,tool")]
    types: Vec<String>,
    /// Part of the label, value or an alias, in any case.
    #[param(example = "bear")]
    q: Option<String>,
    /// Id of the node in the middle, which is always in the answer.
    #[param(example = "actor:apt28")]
    around: Option<String>,
    /// Most edges from the node in the middle to any other.
    #[param(required = false)]
    depth: usize,
    /// Whether notes are shown.
    #[param(required = false)]
    notes: bool,
}

impl ViewQuery {
    pub fn read(fields: &mut Fields<'_>) -> Self {
        Self {
            limit: fields.number_or("limit", DEFAULT_NODES, 1, MAX_NODES),
            types: fields.words("type", MAX_FILTER),
            q: fields.optional_text("q", MAX_FILTER),
            around: fields.optional_text("around", MAX_ID),
            depth: fields.number_or("depth", 1, 1, MAX_DEPTH),
            notes: fields.flag_or("notes", true),
        }
    }
}

impl From<ViewQuery> for ViewGraph {
    fn from(query: ViewQuery) -> Self {
        Self {
            limit: query.limit,
            types: query.types.iter().map(|name| canonical_type(name)).collect(),
            part: query.q,
            around: query.around,
            depth: query.depth,
            notes: query.notes,
        }
    }
}

/// Draws a part of the graph.
///
/// The best connected nodes, or with `around` those around a node, step by step, the best connected of each step first.
/// While entities wait for a place, notes take at most half of the places.
/// Edges are those between these nodes. A picture around a node goes only through nodes that it shows.
#[utoipa::path(
    get, path = "/api/graph/view", tag = "Graph", operation_id = "view_graph", params(ViewQuery),
    responses(
        (status = 200, description = "Nodes, and the edges between them.", body = GraphView),
        (status = 404, description = "`around` names no node.", body = ErrorBody,
            example = json!({"detail": "node not found"})),
        (status = 422, description = ""),
    ),
)]
pub(super) async fn view(
    request: HttpRequest,
    state: web::Data<LocalState>,
) -> Result<HttpResponse, LocalError> {
    let query = query_of(&request, ViewQuery::read)?;
    let view = state.memory.view(query.into()).await?;
    Ok(HttpResponse::Ok().json(view))
}

/// Which node is wanted.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http::local) struct NodeQuery {
    /// Id of the node.
    #[param(example = "actor:apt28")]
    id: String,
    /// Notes, and neighbours, to pass over.
    #[param(required = false)]
    offset: usize,
    /// Most notes, and most neighbours, in the answer.
    #[param(required = false)]
    limit: usize,
}

impl NodeQuery {
    pub fn read(fields: &mut Fields<'_>) -> Self {
        let Page { offset, limit } = page(fields, DEFAULT_NEIGHBOURS, MAX_NEIGHBOURS);
        Self {
            id: fields.text("id", 1, MAX_ID),
            offset,
            limit,
        }
    }
}

/// Reads a node of the graph.
///
/// With the notes that mention an entity, and the nodes at the other ends of its edges.
#[utoipa::path(
    get, path = "/api/graph/node", tag = "Graph", operation_id = "read_node", params(NodeQuery),
    responses(
        (status = 200, description = "The node, a page of its notes and a page of its neighbours.", body = NodeDetails),
        (status = 404, description = "There is no such node.", body = ErrorBody,
            example = json!({"detail": "node not found"})),
        (status = 422, description = ""),
    ),
)]
pub(super) async fn node(
    request: HttpRequest,
    state: web::Data<LocalState>,
) -> Result<HttpResponse, LocalError> {
    let NodeQuery { id, offset, limit } = query_of(&request, NodeQuery::read)?;
    let details = state.memory.node(id, Page { offset, limit }).await?;
    Ok(HttpResponse::Ok().json(details))
}
