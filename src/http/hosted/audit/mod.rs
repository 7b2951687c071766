//! The audit log, as JSON and as CSV.

mod csv;

use actix_web::http::header::CONTENT_DISPOSITION;
use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;

use super::error::HostedError;
use super::guard::{AuditExport, AuditRead, Guarded};
use super::query::Params;
use super::resource;
use crate::actors::audit_writer::{ListEntries, VerifyChain};
use crate::domain::audit::AuditEntry;
use crate::http::AppState;
use crate::store::AuditFilter;

/// Largest offset: skipping rows is slow, and filtering by `to` reaches further back at less cost.
const MAX_OFFSET: u32 = 1_000_000;

#[derive(Serialize)]
struct LogsAnswer {
    logs: Vec<AuditEntry>,
    count: usize,
}

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(resource("/api/audit/logs").route(web::get().to(logs)));
    cfg.service(resource("/api/audit/export").route(web::get().to(export)));
    cfg.service(resource("/api/audit/verify").route(web::get().to(verify)));
}

/// Entries of the workspace, newest first.
async fn logs(
    caller: Guarded<AuditRead>,
    request: HttpRequest,
    state: web::Data<AppState>,
) -> Result<HttpResponse, HostedError> {
    let params = Params::of(&request)?;
    let filter = AuditFilter {
        user: params.uuid("user_id")?,
        from: params.time("from")?,
        to: params.time("to")?,
        limit: params.number("limit", 100, 1, 1000)?,
        offset: params.number("offset", 0, 0, MAX_OFFSET)?,
    };
    let tenant = caller.by.workspace.id;
    let logs = state.audit.call(ListEntries { tenant, filter }).await?;
    Ok(HttpResponse::Ok().json(LogsAnswer {
        count: logs.len(),
        logs,
    }))
}

/// Entries of the workspace as CSV (RFC 4180), newest first.
async fn export(
    caller: Guarded<AuditExport>,
    request: HttpRequest,
    state: web::Data<AppState>,
) -> Result<HttpResponse, HostedError> {
    let params = Params::of(&request)?;
    let filter = AuditFilter {
        user: None,
        from: params.time("from")?,
        to: params.time("to")?,
        limit: params.number("limit", 1000, 1, 5000)?,
        offset: 0,
    };
    let export = state.audit.export(&caller.by, filter).await?;
    Ok(HttpResponse::Ok()
        .content_type("text/csv; charset=utf-8")
        .insert_header((CONTENT_DISPOSITION, "attachment; filename=\"audit.csv\""))
        .streaming(csv::stream(state.audit.clone(), export)))
}

/// Checks the hash chain of the workspace's log.
async fn verify(caller: Guarded<AuditRead>, state: web::Data<AppState>) -> Result<HttpResponse, HostedError> {
    let tenant = caller.by.workspace.id;
    let report = state.audit.call(VerifyChain { tenant }).await?;
    Ok(HttpResponse::Ok().json(report))
}
