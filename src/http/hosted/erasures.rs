//! Erasures: removing for good what the workspace must not hold any more.

use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::error::HostedError;
use super::guard::{Admin, Guarded};
use super::{id_of, resource};
use crate::actors::graph_store::{Erase, ErasureTargets, ReadErasure};
use crate::domain::erasure::Erasure;
use crate::domain::error::DomainError;
use crate::http::AppState;
use crate::http::body::{self, Body};

const BODY_LIMIT: usize = 256 * 1024;
/// Most ids of one request.
const MAX_IDS: usize = 1000;
/// Longest name of a source, in characters.
const MAX_SOURCE: usize = 2000;
const FIELDS: [&str; 3] = ["node_ids", "evidence_ids", "source"];

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
#[openapi(paths(erase, erasure))]
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
        match (self.node_ids, self.evidence_ids, self.source) {
            (Some(nodes), None, None) => Ok(ErasureTargets::Nodes(ids("node_ids", nodes)?)),
            (None, Some(records), None) => Ok(ErasureTargets::Evidence(ids("evidence_ids", records)?)),
            (None, None, Some(source)) => match source.chars().take(MAX_SOURCE + 1).count() {
                1..=MAX_SOURCE if !source.contains('\0') => Ok(ErasureTargets::Source(source)),
                _ => Err(DomainError::invalid(
                    "source",
                    format!("must have 1 to {MAX_SOURCE} characters and no NUL character"),
                )),
            },
            _ => Err(DomainError::invalid(
                "body",
                "must have exactly one of node_ids, evidence_ids and source",
            )),
        }
    }
}

/// Erases nodes or evidence records for good: from the database, the search index and every file of the data directory.
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
