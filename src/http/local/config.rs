//! Settings: effective values, those that need a restart, and changes.

use actix_web::{HttpRequest, HttpResponse, web};
use serde_json::json;

use super::body::json_body;
use super::error::LocalError;
use super::{LocalState, address_of, guarded};

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

async fn read(state: web::Data<LocalState>) -> Result<HttpResponse, LocalError> {
    Ok(HttpResponse::Ok().json(state.memory.config().await?))
}

async fn meta(state: web::Data<LocalState>) -> Result<HttpResponse, LocalError> {
    let fields = state.memory.restart_required_fields().await?;
    Ok(HttpResponse::Ok().json(json!({"restart_required_fields": fields})))
}

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
    Ok(HttpResponse::Ok().json(json!({
        "applied": done.applied, "pending_restart": done.pending_restart, "message": message,
    })))
}
