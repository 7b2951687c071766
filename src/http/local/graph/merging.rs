//! Entities that are one, and the way back.

use actix_web::{HttpRequest, HttpResponse, web};
use utoipa::ToSchema;

use super::view::MAX_ID;
use crate::domain::memory::view::EntityView;
use crate::http::body::Body;
use crate::http::local::body::{fields_of, limit_for};
use crate::http::local::error::{ErrorBody, LocalError};
use crate::http::local::validate::Fields;
use crate::http::local::{LocalState, address_of, guarded_resource};

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(guarded_resource("/api/entities/merge").route(web::post().to(merge)));
    cfg.service(guarded_resource("/api/entities/unmerge").route(web::post().to(unmerge)));
}

/// Two entities of one type that are the same thing.
#[derive(Debug, ToSchema)]
#[schema(example = json!({"from": "actor:sandworm-team", "into": "actor:sandworm"}))]
pub(in crate::http::local) struct MergeBody {
    /// Id of the entity that the other one stands for from now on: its type, a colon and its value.
    pub from: String,
    /// Id of the entity that stands for both.
    pub into: String,
}

impl MergeBody {
    pub fn read(fields: &mut Fields<'_>) -> Self {
        Self {
            from: fields.text("from", 1, MAX_ID),
            into: fields.text("into", 1, MAX_ID),
        }
    }
}

/// A merged entity that is a thing of its own again.
#[derive(Debug, ToSchema)]
#[schema(example = json!({"entity": "actor:sandworm-team"}))]
pub(in crate::http::local) struct UnmergeBody {
    /// Id of the entity, as it was named in `from`.
    pub entity: String,
}

impl UnmergeBody {
    pub fn read(fields: &mut Fields<'_>) -> Self {
        Self {
            entity: fields.text("entity", 1, MAX_ID),
        }
    }
}

/// Lets one entity stand for another.
///
/// Whatever is asked of either is then answered with the notes and relationships of both. Nothing that is stored changes, so
/// that the merge can be undone at any time.
#[utoipa::path(
    post, path = "/api/entities/merge", tag = "Graph", operation_id = "merge_entities", request_body = MergeBody,
    responses(
        (status = 200, description = "The entity that stands for both.", body = EntityView),
        (status = 404, description = "There is no such entity.", body = ErrorBody,
            example = json!({"detail": "entity not found"})),
    ),
)]
pub(super) async fn merge(
    request: HttpRequest,
    state: web::Data<LocalState>,
    payload: Body,
) -> Result<HttpResponse, LocalError> {
    let limit = limit_for(&state, 2 * MAX_ID);
    let (MergeBody { from, into }, _load) = fields_of(&state, payload, limit, MergeBody::read).await?;
    let caller = address_of(&request);
    let merged = state.memory.merge_entities_for(&from, &into, caller).await;
    Ok(HttpResponse::Ok().json(merged.map_err(LocalError::bad_request)?))
}

/// Undoes a merge.
///
/// The entity has again everything that names it, also what was written since.
#[utoipa::path(
    post, path = "/api/entities/unmerge", tag = "Graph", operation_id = "unmerge_entity", request_body = UnmergeBody,
    responses(
        (status = 200, description = "The entity as it is now.", body = EntityView),
        (status = 404, description = "There is no such entity.", body = ErrorBody,
            example = json!({"detail": "entity not found"})),
    ),
)]
pub(super) async fn unmerge(
    request: HttpRequest,
    state: web::Data<LocalState>,
    payload: Body,
) -> Result<HttpResponse, LocalError> {
    let limit = limit_for(&state, MAX_ID);
    let (UnmergeBody { entity }, _load) = fields_of(&state, payload, limit, UnmergeBody::read).await?;
    let unmerged = state
        .memory
        .unmerge_entity_for(&entity, address_of(&request))
        .await;
    Ok(HttpResponse::Ok().json(unmerged.map_err(LocalError::bad_request)?))
}
