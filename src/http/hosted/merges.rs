//! Nodes that are one thing: merging two of them, and taking that back.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::error::HostedError;
use super::guard::{Guarded, RecallRead, RecallWrite};
use super::query::Params;
use super::{id_of, resource};
use crate::actors::graph_store::{FindLikelyDuplicates, MarkDistinct, MergeNode, MergeOutcome, UnmergeNode};
use crate::domain::graph::duplicates::LikelyDuplicate;
use crate::domain::node::{NodeStatus, NodeType};
use crate::domain::pilot::{Line, PilotLine};
use crate::domain::session::Visible;
use crate::http::AppState;
use crate::http::body::{self, Body, optional};

const BODY_LIMIT: usize = 16 * 1024;
/// Pairs of a page of likely duplicates.
const DEFAULT_PAIRS: u32 = 50;
const MAX_PAIRS: u32 = 500;

#[derive(Deserialize, ToSchema)]
struct MergeBody {
    /// The node that stands for this one from now on: of the same type, and marked no more strictly.
    into: Uuid,
    /// Why; for those who see both nodes. The audit log has a digest of it.
    #[schema(value_type = Option<PilotLine>, inline)]
    reason: Option<String>,
}

#[derive(Deserialize, ToSchema)]
struct UnmergeBody {
    /// Why. The audit log has a digest of it.
    #[schema(value_type = Option<PilotLine>, inline)]
    reason: Option<String>,
}

#[derive(Deserialize, ToSchema)]
struct DistinctBody {
    /// The other node.
    from: Uuid,
}

#[derive(Serialize, ToSchema)]
struct DistinctAnswer {
    #[schema(example = true)]
    success: bool,
}

#[derive(Serialize, ToSchema)]
struct DuplicatesAnswer {
    /// Pairs of nodes, each once.
    #[schema(value_type = Vec<LikelyDuplicate>)]
    duplicates: Visible<LikelyDuplicate>,
    /// The `cursor` of the next page; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "1:fancybear")]
    next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
struct MergeAnswer {
    id: Uuid,
    status: NodeStatus,
    /// The node that it is merged into; absent if it stands for itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    merged_into: Option<Uuid>,
    /// The node with which reads of this one are answered now.
    standing: Uuid,
}

impl MergeAnswer {
    fn of(outcome: MergeOutcome) -> Self {
        Self {
            id: outcome.node,
            status: outcome.status,
            merged_into: outcome.merged_into,
            standing: outcome.standing,
        }
    }
}

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(resource("/api/nodes/duplicates").route(web::get().to(duplicates)));
    cfg.service(resource("/api/nodes/{id}/distinct").route(web::post().to(distinct)));
    let pair = resource("/api/nodes/{id}/distinct/{other}");
    cfg.service(pair.route(web::delete().to(not_distinct)));
    cfg.service(resource("/api/nodes/{id}/merge").route(web::post().to(merge)));
    cfg.service(resource("/api/nodes/{id}/unmerge").route(web::post().to(unmerge)));
}

/// Operations of this file, for the API description.
#[derive(utoipa::OpenApi)]
#[openapi(paths(merge, unmerge, duplicates, distinct, not_distinct))]
pub(super) struct Docs;

/// Merges a node into another one, which stands for it from now on: in searches, walks, look-ups and exports, and where the
/// node is read by its id.
///
/// Nothing of either is lost: what is written to the node later stays with it, and shows while the merge lasts.
#[utoipa::path(
    post, path = "/api/nodes/{id}/merge", operation_id = "merge_node", tag = "Recall",
    params(("id" = Uuid, Path, description = "Id of the node.")),
    request_body = MergeBody,
    responses(
        (
            status = 200,
            description = "The node is merged.",
            body = MergeAnswer,
            links(
                ("node" = (operation_id = "node", parameters(("id" = "$response.body#/standing")))),
                ("unmerge" = (operation_id = "unmerge_node", parameters(("id" = "$response.body#/id")))),
            ),
        ),
        (status = 404, description = "One of the nodes is unknown, or hidden from the caller."),
        (status = 409, description = "The node is merged into another one already."),
    )
)]
async fn merge(
    caller: Guarded<RecallWrite>,
    state: web::Data<AppState>,
    id: web::Path<String>,
    payload: Body,
) -> Result<HttpResponse, HostedError> {
    let node = id_of(&id, "node")?;
    let body: MergeBody = body::json(payload, BODY_LIMIT).await?;
    let message = MergeNode {
        by: caller.by,
        node,
        into: body.into,
        reason: optional::<_, Line>("reason", body.reason)?.map(String::from),
    };
    Ok(HttpResponse::Ok().json(MergeAnswer::of(state.graph.call(message).await?)))
}

/// Takes the merge of a node back: both are what they would be without it.
#[utoipa::path(
    post, path = "/api/nodes/{id}/unmerge", operation_id = "unmerge_node", tag = "Recall",
    params(("id" = Uuid, Path, description = "Id of the merged node.")),
    request_body(content = Option<UnmergeBody>),
    responses(
        (
            status = 200,
            description = "The node stands for itself.",
            body = MergeAnswer,
            links(("node" = (operation_id = "node", parameters(("id" = "$response.body#/id"))))),
        ),
        (status = 404, description = "The node is unknown, or hidden from the caller."),
        (status = 409, description = "The node is not merged."),
    )
)]
async fn unmerge(
    caller: Guarded<RecallWrite>,
    state: web::Data<AppState>,
    id: web::Path<String>,
    payload: Body,
) -> Result<HttpResponse, HostedError> {
    let node = id_of(&id, "node")?;
    let body: UnmergeBody = body::json_or_empty(payload, BODY_LIMIT, &["reason"]).await?;
    let message = UnmergeNode {
        by: caller.by,
        node,
        reason: optional::<_, Line>("reason", body.reason)?.map(String::from),
    };
    Ok(HttpResponse::Ok().json(MergeAnswer::of(state.graph.call(message).await?)))
}

/// Pairs of nodes of one type that are likely the same, because they share a name, an alias, an external id or a value.
///
/// Pairs that are merged or remembered as not the same are left out.
#[utoipa::path(
    get, path = "/api/nodes/duplicates", operation_id = "duplicates", tag = "Recall",
    params(
        ("node_type" = Option<NodeType>, Query, description = "Nodes of this type alone."),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 500, description = "Most pairs; 50 if absent."),
        (
            "cursor" = Option<String>,
            Query,
            pattern = "^[0-9]{1,4}:",
            max_length = 4000,
            description = "The `next_cursor` of the page before.",
        ),
    ),
    responses((status = 200, description = "The pairs.", body = DuplicatesAnswer))
)]
async fn duplicates(
    caller: Guarded<RecallRead>,
    request: HttpRequest,
    state: web::Data<AppState>,
) -> Result<HttpResponse, HostedError> {
    let params = Params::of(&request)?;
    let message = FindLikelyDuplicates {
        node_type: params.parse_value("node_type")?,
        limit: params.number("limit", DEFAULT_PAIRS, 1, MAX_PAIRS)? as usize,
        after: params.parse_value("cursor")?,
        by: caller.by,
    };
    let page = state.graph.call(message).await?;
    Ok(HttpResponse::Ok().json(DuplicatesAnswer {
        duplicates: page.pairs,
        next_cursor: page.next.map(|next| next.to_string()),
    }))
}

/// Remembers that two nodes are not the same: they are no likely duplicates any more, and can't be merged.
#[utoipa::path(
    post, path = "/api/nodes/{id}/distinct", operation_id = "mark_distinct", tag = "Recall",
    params(("id" = Uuid, Path, description = "Id of the node.")),
    request_body = DistinctBody,
    responses(
        (status = 200, description = "It is remembered.", body = DistinctAnswer),
        (status = 404, description = "One of the nodes is unknown, or hidden from the caller."),
    )
)]
async fn distinct(
    caller: Guarded<RecallWrite>,
    state: web::Data<AppState>,
    id: web::Path<String>,
    payload: Body,
) -> Result<HttpResponse, HostedError> {
    let node = id_of(&id, "node")?;
    let body: DistinctBody = body::json(payload, BODY_LIMIT).await?;
    let message = MarkDistinct {
        by: caller.by,
        node,
        from: body.from,
        is_distinct: true,
    };
    state.graph.call(message).await?;
    Ok(HttpResponse::Ok().json(DistinctAnswer { success: true }))
}

/// Forgets that two nodes are not the same.
#[utoipa::path(
    delete, path = "/api/nodes/{id}/distinct/{other}", operation_id = "unmark_distinct", tag = "Recall",
    params(
        ("id" = Uuid, Path, description = "Id of the node."),
        ("other" = Uuid, Path, description = "Id of the other node."),
    ),
    responses(
        (status = 200, description = "It is forgotten.", body = DistinctAnswer),
        (status = 404, description = "One of the nodes is unknown, or hidden from the caller."),
    )
)]
async fn not_distinct(
    caller: Guarded<RecallWrite>,
    state: web::Data<AppState>,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse, HostedError> {
    let (node, other) = path.into_inner();
    let message = MarkDistinct {
        by: caller.by,
        node: id_of(&node, "node")?,
        from: id_of(&other, "from: node")?,
        is_distinct: false,
    };
    state.graph.call(message).await?;
    Ok(HttpResponse::Ok().json(DistinctAnswer { success: true }))
}
