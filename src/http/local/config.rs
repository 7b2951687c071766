//! Settings: effective values, those that need a restart, and changes.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;

use super::body::json_body;
use super::error::{ErrorBody, LocalError};
use super::toml::{TOML, is_toml, toml_body, wants_toml};
use super::{LocalState, address_of, guarded_resource};
use crate::config::local::{ChangeOutcome, ChangedSettings, ConfigMeta, ShownSettings};
use crate::http::body::Body;

/// Largest change, in bytes; all settings together take a few kilobytes.
const BODY_LIMIT: usize = 256 * 1024;
const NOTHING_WAITS: &str = "No change of this setting waits for a restart";

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(
        guarded_resource("/api/config")
            .route(web::get().to(read))
            .route(web::put().to(change)),
    );
    cfg.service(guarded_resource("/api/config/meta").route(web::get().to(meta)));
    cfg.service(guarded_resource("/api/config/pending/{path}").route(web::delete().to(withdraw)));
}

#[derive(utoipa::OpenApi)]
#[openapi(paths(read, meta, change, withdraw))]
pub(super) struct Docs;

/// Reads the settings.
///
/// As JSON: those in effect; secrets that are set show as `***`. As TOML: a configuration file, with comments, which also
/// has the values that wait for a restart; secrets that are set are left out.
#[utoipa::path(
    get, path = "/api/config", tag = "Settings", operation_id = "read_config",
    responses((status = 200, description = "The settings.", content(
        (ShownSettings = "application/json"),
        (String = "application/toml", example = json!("[retrieval]\ndefault_k = 7\n")),
    ))),
)]
async fn read(request: HttpRequest, state: web::Data<LocalState>) -> Result<HttpResponse, LocalError> {
    if wants_toml(&request) {
        let text = state.memory.config_file().await?;
        return Ok(HttpResponse::Ok().content_type(TOML).body(text));
    }
    Ok(HttpResponse::Ok().json(state.memory.config().await?))
}

/// Explains the settings.
///
/// Their types and bounds, what they mean, which of them need a restart, and which values wait for one.
#[utoipa::path(
    get, path = "/api/config/meta", tag = "Settings", operation_id = "read_config_meta",
    responses((status = 200, description = "What is known about each setting.", body = ConfigMeta)),
)]
async fn meta(state: web::Data<LocalState>) -> Result<HttpResponse, LocalError> {
    Ok(HttpResponse::Ok().json(state.memory.config_meta().await?))
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

impl From<ChangeOutcome> for Changed {
    fn from(done: ChangeOutcome) -> Self {
        let message = if done.pending_restart.is_empty() {
            "Config updated in-memory."
        } else {
            "Config updated in-memory; fields under pending_restart take effect after a restart."
        };
        Self {
            applied: done.applied,
            pending_restart: done.pending_restart,
            message,
        }
    }
}

/// Changes settings.
///
/// All of them, or none if one is invalid. A secret given as `***` stays as it is, and a setting that is given the value
/// in effect waits for nothing any more. Rules between settings, and of texts such as addresses, are not part of the
/// schema; a broken one is answered with 422 and named. A body of type `application/toml` is a configuration file; all others
/// are read as JSON.
#[utoipa::path(
    put, path = "/api/config", tag = "Settings", operation_id = "change_config",
    request_body = ChangedSettings,
    responses((status = 200, description = "What is in effect, and what needs a restart.", body = Changed)),
)]
async fn change(
    request: HttpRequest,
    state: web::Data<LocalState>,
    payload: Body,
) -> Result<HttpResponse, LocalError> {
    let limit = BODY_LIMIT.min(state.settings().web.body_limit);
    let change = if is_toml(&request) {
        toml_body(&state, payload, limit).await?
    } else {
        json_body(&state, payload, limit).await?
    };
    let outcome = state.memory.change_config(change, address_of(&request)).await?;
    let done = outcome.map_err(|issues| LocalError::issues(&issues))?;
    Ok(HttpResponse::Ok().json(Changed::from(done)))
}

/// Takes back a change that waits for a restart.
///
/// The setting keeps the value in effect. Refused if another change that waits needs this one.
#[utoipa::path(
    delete, path = "/api/config/pending/{path}", tag = "Settings", operation_id = "withdraw_change",
    params(("path" = String, Path, description = "Dotted path of the setting.", example = "llm.model")),
    responses(
        (status = 200, description = "The setting keeps its value.", body = Changed,
            example = json!({"applied": ["llm.model"], "pending_restart": [], "message": "Config updated in-memory."})),
        (status = 404, description = "No change of this setting waits.", body = ErrorBody,
            example = json!({"detail": NOTHING_WAITS})),
        (status = 422, description = "Another change that waits needs this one.", body = super::error::InvalidBody),
    ),
)]
async fn withdraw(
    request: HttpRequest,
    state: web::Data<LocalState>,
    path: web::Path<String>,
) -> Result<HttpResponse, LocalError> {
    let withdrawn = state
        .memory
        .withdraw_config(path.into_inner(), address_of(&request))
        .await?;
    let outcome = withdrawn.ok_or(LocalError::Message(StatusCode::NOT_FOUND, NOTHING_WAITS))?;
    let done = outcome.map_err(|issues| LocalError::issues(&issues))?;
    Ok(HttpResponse::Ok().json(Changed::from(done)))
}
