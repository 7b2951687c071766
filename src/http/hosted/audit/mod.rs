//! The audit log, as JSON and as CSV.

mod csv;

use actix_web::http::header::CONTENT_DISPOSITION;
use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;

use super::error::HostedError;
use super::guard::{AuditExport, AuditRead, Guarded};
use super::query::Params;
use super::resource;
use crate::actors::audit_writer::{ListEntries, VerifyChain};
use crate::domain::audit::{AuditEntry, ChainReport, Outcome};
use crate::domain::narrowing::DayOrTime;
use crate::http::AppState;
use crate::store::AuditFilter;

/// Longest name of an action, in characters.
const MAX_ACTION: usize = 100;

#[derive(Serialize, ToSchema)]
struct LogsAnswer {
    logs: Vec<AuditEntry>,
    count: usize,
}

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(resource("/api/audit/logs").route(web::get().to(logs)));
    cfg.service(resource("/api/audit/export").route(web::get().to(export)));
    cfg.service(resource("/api/audit/verify").route(web::get().to(verify)));
}

/// Operations of this file, for the API description.
#[derive(utoipa::OpenApi)]
#[openapi(paths(logs, export, verify))]
pub(super) struct Docs;

/// Entries of the workspace, newest first.
#[utoipa::path(
    get, path = "/api/audit/logs", tag = "Audit", security(("bearer" = [])),
    params(
        ("user_id" = Option<Uuid>, Query, description = "Only entries of this user."),
        ("action" = Option<String>, Query, min_length = 1, max_length = 100, example = "recall.search",
            description = "Only entries of this action."),
        ("outcome" = Option<Outcome>, Query, description = "Only entries with this outcome."),
        ("from" = inline(Option<DayOrTime>), Query, description = "Only entries from this time on."),
        ("to" = inline(Option<DayOrTime>), Query, description = "Only entries before this time; of a day, all of it counts."),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 1000, description = "Most entries; 100 if absent."),
        ("offset" = Option<u32>, Query, minimum = 0, maximum = 1000000, description = "Entries to skip; 0 if absent."),
    ),
    responses((status = 200, description = "The entries.", body = LogsAnswer))
)]
async fn logs(
    caller: Guarded<AuditRead>,
    request: HttpRequest,
    state: web::Data<AppState>,
) -> Result<HttpResponse, HostedError> {
    let params = Params::of(&request)?;
    let [from, to] = params.period("from", "to")?;
    let filter = AuditFilter {
        user: params.uuid("user_id")?,
        action: params.optional_text("action", MAX_ACTION)?,
        outcome: params.parse_value("outcome")?,
        from,
        to,
        limit: params.number("limit", 100, 1, 1000)?,
        offset: params.offset()?,
    };
    let tenant = caller.by.workspace.id;
    let logs = state.audit.call(ListEntries { tenant, filter }).await?;
    Ok(HttpResponse::Ok().json(LogsAnswer {
        count: logs.len(),
        logs,
    }))
}

/// Entries of the workspace as CSV (RFC 4180), newest first.
#[utoipa::path(
    get, path = "/api/audit/export", operation_id = "export_audit", tag = "Audit", security(("bearer" = [])),
    params(
        ("action" = Option<String>, Query, min_length = 1, max_length = 100, example = "recall.search",
            description = "Only entries of this action."),
        ("outcome" = Option<Outcome>, Query, description = "Only entries with this outcome."),
        ("from" = inline(Option<DayOrTime>), Query, description = "Only entries from this time on."),
        ("to" = inline(Option<DayOrTime>), Query, description = "Only entries before this time; of a day, all of it counts."),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 5000, description = "Most entries; 1000 if absent."),
    ),
    responses((
            status = 200,
            description = "The entries. Cells that a spreadsheet would run as a formula begin with a quote.",
            body = String, content_type = "text/csv",
            headers(("Content-Disposition" = String, description = "Suggests the name of the file.")),
            example = "id,tenant_id,user_id,user_email,action,resource,resource_id,outcome,ip_address,metadata,created_at\r\n"
    ))
)]
async fn export(
    caller: Guarded<AuditExport>,
    request: HttpRequest,
    state: web::Data<AppState>,
) -> Result<HttpResponse, HostedError> {
    let params = Params::of(&request)?;
    let [from, to] = params.period("from", "to")?;
    let filter = AuditFilter {
        user: None,
        action: params.optional_text("action", MAX_ACTION)?,
        outcome: params.parse_value("outcome")?,
        from,
        to,
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
#[utoipa::path(
    get, path = "/api/audit/verify", tag = "Audit", security(("bearer" = [])),
    responses((status = 200, description = "Whether the chain is whole.", body = ChainReport))
)]
async fn verify(caller: Guarded<AuditRead>, state: web::Data<AppState>) -> Result<HttpResponse, HostedError> {
    let tenant = caller.by.workspace.id;
    let report = state.audit.call(VerifyChain { tenant }).await?;
    Ok(HttpResponse::Ok().json(report))
}
