//! Erasures: removing for good what the workspace must not hold any more.

use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::error::HostedError;
use super::guard::{Admin, Guarded};
use super::{id_of, resource};
use crate::actors::graph_store::{Erase, EraseWorkspace, ErasureTargets, ReadErasure};
use crate::domain::erasure::Erasure;
use crate::domain::error::DomainError;
use crate::http::AppState;
use crate::http::body::{self, Body};

const BODY_LIMIT: usize = 256 * 1024;
/// Most ids of one request.
const MAX_IDS: usize = 1000;
/// Longest name of a source, in characters.
const MAX_SOURCE: usize = 2000;
const FIELDS: [&str; 5] = ["node_ids", "evidence_ids", "source", "feed_id", "user_id"];

/// What to erase: exactly one of the fields.
#[derive(Deserialize, ToSchema)]
#[schema(as = NewErasure)]
struct NewErasureBody {
    /// Nodes, with their relationships, and the evidence that no other node lists.
    #[schema(min_items = 1, max_items = 1000, nullable = false)]
    node_ids: Option<Vec<Uuid>>,
    /// Evidence records, what they alone state, and nodes that list no other or whose original they are.
    #[schema(min_items = 1, max_items = 1000, nullable = false)]
    evidence_ids: Option<Vec<Uuid>>,
    /// All nodes and evidence records of this source, as far as the caller may see them.
    #[schema(
        min_length = 1,
        max_length = 2000,
        nullable = false,
        example = "analyst@example.com"
    )]
    source: Option<String>,
    /// A threat feed, deleted or not: what no other source brought, as far as the caller may see it, and what the feed has
    /// received and remembers.
    #[schema(nullable = false)]
    feed_id: Option<Uuid>,
    /// Another user: the account with its keys, sessions and staged texts, and what has the user's address as its source.
    #[schema(nullable = false)]
    user_id: Option<Uuid>,
}

/// The workspace to erase, named again.
#[derive(Deserialize, ToSchema)]
#[schema(as = WorkspaceErasure)]
struct WorkspaceErasureBody {
    /// Its name, exactly.
    #[schema(example = "Sector team")]
    name: String,
}

#[derive(Serialize, ToSchema)]
struct ErasureAnswer {
    erasure: Erasure,
}

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(resource("/api/admin/erasures").route(web::post().to(erase)));
    cfg.service(resource("/api/admin/erasures/{id}").route(web::get().to(erasure)));
}

/// Operations of this file, for the API description.
#[derive(utoipa::OpenApi)]
#[openapi(paths(erase, erasure, erase_workspace))]
pub(super) struct Docs;

impl NewErasureBody {
    fn into_targets(self) -> Result<ErasureTargets, DomainError> {
        let ids = |field: &str, ids: Vec<Uuid>| match ids.len() {
            1..=MAX_IDS => Ok(ids),
            _ => Err(DomainError::invalid(
                field,
                format!("must have 1 to {MAX_IDS} ids"),
            )),
        };
        let mut targets = Vec::new();
        if let Some(nodes) = self.node_ids {
            targets.push(ErasureTargets::Nodes(ids("node_ids", nodes)?));
        }
        if let Some(records) = self.evidence_ids {
            targets.push(ErasureTargets::Evidence(ids("evidence_ids", records)?));
        }
        if let Some(source) = self.source {
            targets.push(ErasureTargets::Source(checked_source(source)?));
        }
        targets.extend(self.feed_id.map(ErasureTargets::Feed));
        targets.extend(self.user_id.map(ErasureTargets::User));
        match (targets.pop(), targets.is_empty()) {
            (Some(one), true) => Ok(one),
            _ => {
                let fields = FIELDS.join(", ");
                let rule = format!("must have exactly one of {fields}");
                Err(DomainError::invalid("body", rule))
            }
        }
    }
}

fn checked_source(source: String) -> Result<String, DomainError> {
    match source.chars().take(MAX_SOURCE + 1).count() {
        1..=MAX_SOURCE if !source.contains('\0') => Ok(source),
        _ => {
            let rule = format!("must have 1 to {MAX_SOURCE} characters and no NUL character");
            Err(DomainError::invalid("source", rule))
        }
    }
}

/// Erases things, all of a source, a feed or a user for good: from the database, the search index and every file of the data directory.
///
/// The answer comes at once; the receipt says when nothing is left. What is erased can't be brought back, and comes back if a
/// source sends it again.
#[utoipa::path(
    post, path = "/api/admin/erasures", operation_id = "erase", tag = "Administration", security(("bearer" = [])),
    request_body = NewErasureBody,
    responses(
        (status = 202, description = "The erasure runs.", body = ErasureAnswer,
            links(("receipt" = (operation_id = "erasure", parameters(("id" = "$response.body#/erasure/id")))))),
        (status = 404, description = "One of the things is unknown, or hidden from the caller; nothing is erased."),
    )
)]
async fn erase(
    caller: Guarded<Admin>,
    state: web::Data<AppState>,
    payload: Body,
) -> Result<HttpResponse, HostedError> {
    let body: NewErasureBody = body::json_of_optional(payload, BODY_LIMIT, &FIELDS).await?;
    let message = Erase {
        by: caller.by,
        targets: body.into_targets()?,
    };
    let erasure = state.graph.call(message).await?;
    Ok(HttpResponse::Accepted().json(ErasureAnswer { erasure }))
}

/// Erases a workspace for good, with all that is in it: users, keys, nodes, evidence, sessions, feeds.
///
/// Only administrators of the operator's workspace may do this, who name the workspace again. It is refused everywhere from the
/// request on; the receipt says when nothing is left. Of its audit log stay the entries, without texts.
#[utoipa::path(
    delete, path = "/api/admin/workspaces/{id}", operation_id = "erase_workspace", tag = "Administration",
    security(("bearer" = [])), request_body = WorkspaceErasureBody,
    params(("id" = Uuid, Path, description = "Id of the workspace.")),
    responses(
        (status = 202, description = "The erasure runs.", body = ErasureAnswer,
            links(("receipt" = (operation_id = "erasure", parameters(("id" = "$response.body#/erasure/id")))))),
        (status = 409, description = "The operator's own workspace can't be erased."),
    )
)]
pub(super) async fn erase_workspace(
    caller: Guarded<Admin>,
    state: web::Data<AppState>,
    id: web::Path<String>,
    payload: Body,
) -> Result<HttpResponse, HostedError> {
    let workspace = id_of(&id, "workspace")?;
    let body: WorkspaceErasureBody = body::json(payload, BODY_LIMIT).await?;
    let message = EraseWorkspace {
        by: caller.by,
        workspace,
        name: body.name,
    };
    let erasure = state.graph.call(message).await?;
    Ok(HttpResponse::Accepted().json(ErasureAnswer { erasure }))
}

/// The receipt of an erasure: how far it is, and how much was removed where.
#[utoipa::path(
    get, path = "/api/admin/erasures/{id}", operation_id = "erasure", tag = "Administration", security(("bearer" = [])),
    params(("id" = Uuid, Path, description = "Id of the erasure.")),
    responses((status = 200, description = "The receipt.", body = ErasureAnswer))
)]
async fn erasure(
    caller: Guarded<Admin>,
    state: web::Data<AppState>,
    id: web::Path<String>,
) -> Result<HttpResponse, HostedError> {
    let message = ReadErasure {
        id: id_of(&id, "erasure")?,
        by: caller.by,
    };
    let erasure = state.graph.call(message).await?;
    Ok(HttpResponse::Ok().json(ErasureAnswer { erasure }))
}
