//! Settings: what is in effect, what needs a restart, and changes.

use actix_web::{HttpRequest, HttpResponse, web};
use serde_json::json;

use super::body::json_body;
use super::error::LocalError;
use super::{LocalState, address_of, guarded};
use crate::actors::audit_writer::Append;
use crate::actors::config_owner::{ChangeConfig, ReadConfig, ReadConfigMeta};
use crate::app::local::WORKSPACE;
use crate::clock;
use crate::config::local::Applied;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::error::DomainError;

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(
        guarded("/api/config")
            .route(web::get().to(read))
            .route(web::put().to(change)),
    );
    cfg.service(guarded("/api/config/meta").route(web::get().to(meta)));
}

async fn read(state: web::Data<LocalState>) -> Result<HttpResponse, LocalError> {
    Ok(HttpResponse::Ok().json(state.memory.handles().config.call(ReadConfig).await?))
}

async fn meta(state: web::Data<LocalState>) -> Result<HttpResponse, LocalError> {
    let fields = state.memory.handles().config.call(ReadConfigMeta).await?;
    Ok(HttpResponse::Ok().json(json!({"restart_required_fields": fields})))
}

async fn change(
    request: HttpRequest,
    state: web::Data<LocalState>,
    payload: web::Payload,
) -> Result<HttpResponse, LocalError> {
    let governed = state.settings().governance.enabled;
    let body = json_body(payload, state.settings().web.body_limit).await?;
    let outcome = state.memory.handles().config.call(ChangeConfig(body)).await?;
    let done = outcome.map_err(|issues| LocalError::issues(&issues))?;
    // Also the change that turns the log off is in it.
    if governed || state.settings().governance.enabled {
        audit(&request, &state, &done).await?;
    }
    let message = if done.pending_restart.is_empty() {
        "Config updated in-memory."
    } else {
        "Config updated in-memory; fields under pending_restart take effect after a restart."
    };
    Ok(HttpResponse::Ok().json(json!({
        "applied": done.applied, "pending_restart": done.pending_restart, "message": message,
    })))
}

/// Which keys were changed; never their values.
async fn audit(request: &HttpRequest, state: &LocalState, done: &Applied) -> Result<(), DomainError> {
    let from = address_of(request);
    let entry = AuditEntry::anonymous(
        WORKSPACE,
        from,
        "config.change",
        "config",
        Outcome::Success,
        clock::now(),
    )
    .with("applied", done.applied.clone())
    .with("pending_restart", done.pending_restart.clone());
    state.memory.handles().audit.call(Append(entry)).await
}
