//! Settings: effective values, those that need a restart, and changes.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;

use super::body::json_body;
use super::error::LocalError;
use super::{LocalState, address_of, guarded};
use crate::config::local::{ChangedSettings, ShownSettings};

/// Largest change, in bytes; all settings together take a few kilobytes.
const BODY_LIMIT: usize = 256 * 1024;

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(
        guarded("/api/config")
            .route(web::get().to(read))
            .route(web::put().to(change)),
    );
    cfg.service(guarded("/api/config/meta").route(web::get().to(meta)));
}

#[derive(utoipa::OpenApi)]
#[openapi(paths(read, meta, change))]
pub(super) struct Docs;

/// Reads the settings in effect.
///
/// Secrets that are set show as `***`.
#[utoipa::path(
    get, path = "/api/config", tag = "Settings", operation_id = "read_config",
    responses((status = 200, description = "The settings.", body = ShownSettings)),
)]
async fn read(state: web::Data<LocalState>) -> Result<HttpResponse, LocalError> {
    Ok(HttpResponse::Ok().json(state.memory.config().await?))
}

/// The settings that need a restart.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"restart_required_fields": ["backend", "llm.model", "storage.data_dir"]}))]
struct Meta {
    /// Dotted paths, sorted.
    restart_required_fields: Vec<String>,
}

/// Lists the settings that need a restart.
///
/// A change of any other setting takes effect at once.
#[utoipa::path(
    get, path = "/api/config/meta", tag = "Settings", operation_id = "read_config_meta",
    responses((status = 200, description = "Their dotted paths.", body = Meta)),
)]
async fn meta(state: web::Data<LocalState>) -> Result<HttpResponse, LocalError> {
    let restart_required_fields = state.memory.restart_required_fields().await?;
    Ok(HttpResponse::Ok().json(Meta {
        restart_required_fields,
    }))
}

/// What became of a change.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "applied": ["retrieval.default_k"], "pending_restart": ["llm.model"],
    "message": "Config updated in-memory; fields under pending_restart take effect after a restart.",
}))]
struct Changed {
    /// Dotted paths of the settings that are in effect.
    applied: Vec<String>,
    /// Dotted paths of those that take effect at the next start.
    pending_restart: Vec<String>,
    message: &'static str,
}

/// Changes settings.
///
/// All of them, or none if one is invalid. A secret given as `***` stays as it is. Rules between settings, and of texts
/// such as addresses, are not part of the schema; a broken one is answered with 422 and named.
#[utoipa::path(
    put, path = "/api/config", tag = "Settings", operation_id = "change_config",
    request_body = ChangedSettings,
    responses((status = 200, description = "What is in effect, and what needs a restart.", body = Changed)),
)]
async fn change(
    request: HttpRequest,
    state: web::Data<LocalState>,
    payload: web::Payload,
) -> Result<HttpResponse, LocalError> {
    let limit = BODY_LIMIT.min(state.settings().web.body_limit);
    let change = json_body(&state, payload, limit).await?;
    let outcome = state.memory.change_config(change, address_of(&request)).await?;
    let done = outcome.map_err(|issues| LocalError::issues(&issues))?;
    let message = if done.pending_restart.is_empty() {
        "Config updated in-memory."
    } else {
        "Config updated in-memory; fields under pending_restart take effect after a restart."
    };
    Ok(HttpResponse::Ok().json(Changed {
        applied: done.applied,
        pending_restart: done.pending_restart,
        message,
    }))
}
