//! `POST /mcp`: the API for agents, over the Model Context Protocol.

use std::sync::{Arc, LazyLock};

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::error::HostedError;
use super::guard::{Admitted, Guarded, SignedInOnly};
use super::{openapi, resource};
use crate::actors::audit_writer::{Append, AuditHandle};
use crate::clock;
use crate::domain::audit::AuditEntry;
use crate::domain::error::DomainError;
use crate::domain::permission::Permission;
use crate::domain::principal::{KNOWLEDGE_GRAPH, Principal};
use crate::http::AppState;
use crate::http::body::{self, Body};
use crate::http::mcp::{self, Admission, InProcessApi};
use crate::mcp::{CallLog, CallRecord, Caller, Catalog, Service};

const FOREIGN_PAGE: HostedError = HostedError::Message(
    StatusCode::FORBIDDEN,
    "Origin: must be this service or one of server.cors_origins",
);

static CATALOG: LazyLock<Arc<Catalog>> =
    LazyLock::new(|| Arc::new(Catalog::new(Service::Hosted, &openapi::description())));

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(resource("/mcp").route(web::post().to(answer)));
}

async fn answer(
    caller: Guarded<SignedInOnly>,
    request: HttpRequest,
    state: web::Data<AppState>,
    api: web::Data<InProcessApi>,
    payload: Body,
) -> Result<HttpResponse, HostedError> {
    let settings = &state.settings.server;
    if mcp::is_foreign(request.headers(), &settings.cors_origins) {
        return Err(FOREIGN_PAGE);
    }
    let by = caller.by;
    let (limit, workspace) = (settings.body_limit, Some(by.workspace.id));
    let read = body::read_counted(payload, limit, &state.bodies, workspace, Ok::<_, DomainError>);
    let (message, _load) = read.await?;
    let admitted = Admitted(by.clone());
    let admission: Admission = Arc::new(move |data| {
        data.insert(admitted.clone());
    });
    let caller = Caller {
        api: api.of(&request, admission),
        permissions: permissions(&by),
        user_agent: mcp::user_agent(&request),
        log: Arc::new(HostedLog {
            audit: state.audit.clone(),
            by,
        }),
    };
    Ok(mcp::answer(&request, message, limit, Arc::clone(&CATALOG), caller).await)
}

/// What the caller may do: writing needs a feature of the workspace, too.
fn permissions(by: &Principal) -> Vec<Permission> {
    let may_write = by.require_feature(KNOWLEDGE_GRAPH).is_ok();
    let held = Permission::ALL
        .iter()
        .copied()
        .filter(|permission| by.holds(*permission));
    held.filter(|permission| *permission != Permission::RecallWrite || may_write)
        .collect()
}

struct HostedLog {
    audit: AuditHandle,
    by: Principal,
}

impl CallLog for HostedLog {
    fn record(&self, call: CallRecord) -> BoxFuture<'static, Result<(), DomainError>> {
        let entry = AuditEntry::by(&self.by, &call.action, "mcp", call.outcome, clock::now())
            .with_some_text("client", call.client.as_deref());
        let audit = self.audit.clone();
        async move { audit.call(Append(entry)).await.map(drop) }.boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_requests_of_this_api() {
        let document = openapi::description();
        CATALOG.check(&document);
    }
}
