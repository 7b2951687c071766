//! The audit log, as JSON and as CSV.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;

use super::error::HostedError;
use super::guard::{AuditExport, AuditRead, Guarded};
use super::query::Params;
use super::resource;
use crate::actors::audit_writer::{Append, ListEntries, VerifyChain};
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::error::DomainError;
use crate::http::AppState;
use crate::store::AuditFilter;

/// Largest offset: skipping rows is slow, and filtering by `to` reaches further back at less cost.
const MAX_OFFSET: u32 = 1_000_000;

const COLUMNS: [&str; 11] = [
    "id",
    "tenant_id",
    "user_id",
    "user_email",
    "action",
    "resource",
    "resource_id",
    "outcome",
    "ip_address",
    "metadata",
    "created_at",
];

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
    let tenant = caller.by.workspace.id;
    let entries = state.audit.call(ListEntries { tenant, filter }).await?;
    let entry = AuditEntry::by(
        &caller.by,
        "audit.export",
        "audit",
        Outcome::Success,
        clock::now(),
    )
    .with("rows", entries.len() as u64);
    state.audit.call(Append(entry)).await?;
    let text = csv(&entries).map_err(|error| DomainError::internal("writing the CSV failed", error))?;
    Ok(HttpResponse::Ok()
        .content_type("text/csv; charset=utf-8")
        .insert_header(("content-disposition", "attachment; filename=\"audit.csv\""))
        .body(text))
}

/// Checks the hash chain of the workspace's log.
async fn verify(caller: Guarded<AuditRead>, state: web::Data<AppState>) -> Result<HttpResponse, HostedError> {
    let tenant = caller.by.workspace.id;
    let report = state.audit.call(VerifyChain { tenant }).await?;
    Ok(HttpResponse::Ok().json(report))
}

fn csv(entries: &[AuditEntry]) -> Result<Vec<u8>, csv::Error> {
    let mut writer = csv::WriterBuilder::new()
        .terminator(csv::Terminator::CRLF)
        .from_writer(Vec::new());
    writer.write_record(COLUMNS)?;
    for entry in entries {
        let text = |value: &Option<String>| cell(value.as_deref().unwrap_or_default());
        writer.write_record([
            entry.id.to_string(),
            entry.tenant_id.to_string(),
            entry.user_id.map(|id| id.to_string()).unwrap_or_default(),
            text(&entry.user_email),
            cell(&entry.action),
            cell(&entry.resource),
            text(&entry.resource_id),
            entry.outcome.to_string(),
            text(&entry.ip_address),
            serde_json::Value::Object(entry.metadata.clone()).to_string(),
            entry
                .created_at
                .to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true),
        ])?;
    }
    writer
        .into_inner()
        .map_err(|error| csv::Error::from(error.into_error()))
}

/// A cell that a spreadsheet would run as a formula gets a quote in front (OWASP, CSV injection).
fn cell(text: &str) -> String {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        format!("'{text}")
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    #[test]
    fn cells_are_quoted_and_formulas_are_defused() {
        let mut entry = AuditEntry::anonymous(
            uuid::Uuid::nil(),
            IpAddr::from([127, 0, 0, 1]),
            "auth.login",
            "user",
            Outcome::Failure,
            chrono::DateTime::UNIX_EPOCH,
        )
        .on("a,b\"c\nd")
        .with("q", "x");
        entry.id = uuid::Uuid::nil();
        entry.user_email = Some("=HYPERLINK(1)".into());
        let text = String::from_utf8(csv(&[entry]).unwrap()).unwrap();
        let nil = "00000000-0000-0000-0000-000000000000";
        assert_eq!(
            text,
            format!(
                "id,tenant_id,user_id,user_email,action,resource,resource_id,outcome,ip_address,metadata,created_at\r\n\
                 {nil},{nil},,'=HYPERLINK(1),auth.login,user,\"a,b\"\"c\nd\",failure,127.0.0.1,\"{{\"\"q\"\":\"\"x\"\"}}\",1970-01-01T00:00:00Z\r\n"
            )
        );
    }
}
