//! Submitting and reading pilot requests.

use std::net::IpAddr;
use std::sync::Arc;

use super::NotifierCore;
use crate::actors::audit_writer::Append;
use crate::actors::worker::{Access, Tenant, Work};
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::error::DomainError;
use crate::domain::pilot::{Application, Notification, PilotRequest};
use crate::domain::principal::Principal;

/// Stores an application, and has the operator told of it.
#[derive(Debug)]
pub struct SubmitPilot {
    pub application: Application,
    pub ip: IpAddr,
}

impl Work for SubmitPilot {
    type Core = NotifierCore;
    type Reply = ();
    const NAME: &'static str = "submit_pilot";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) -> Tenant {
        None
    }

    async fn run(self, core: Arc<NotifierCore>) -> Result<Self::Reply, DomainError> {
        let operator = core.store.operator_workspace().await?.ok_or_else(|| {
            DomainError::internal("the request can't be stored", "there is no operator's workspace")
        })?;
        let notification = match core.mailer {
            Some(_) => Notification::Pending,
            None => Notification::Off,
        };
        let now = clock::now();
        let request = PilotRequest::new(self.application, notification, now);
        // Who applied is in the request: the audit log is kept for ever and repeats no personal data.
        let entry = AuditEntry::anonymous(
            operator,
            self.ip,
            "pilot.request",
            "pilot_request",
            Outcome::Success,
            now,
        )
        .on(request.id)
        .with("role", request.role.as_str());
        core.store.submit_pilot(operator, &request, &entry).await?;
        core.submitted.notify_one();
        core.chain(entry).await;
        Ok(())
    }
}

/// Lists pilot requests, newest first, for an administrator of the operator's workspace.
#[derive(Debug)]
pub struct ListPilotRequests {
    pub by: Principal,
    pub limit: u32,
    pub offset: u32,
}

impl Work for ListPilotRequests {
    type Core = NotifierCore;
    type Reply = Vec<PilotRequest>;
    const NAME: &'static str = "list_pilot_requests";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Tenant {
        Some(self.by.workspace.id)
    }

    async fn run(self, core: Arc<NotifierCore>) -> Result<Self::Reply, DomainError> {
        let ListPilotRequests { by, limit, offset } = self;
        if !by.workspace.is_operator {
            return Err(DomainError::Forbidden(
                "only the operator's administrators read pilot requests".into(),
            ));
        }
        let requests = core.store.pilot_requests(by.workspace.id, limit, offset).await?;
        let entry = AuditEntry::by(&by, "pilot.read", "pilot_request", Outcome::Success, clock::now())
            .with("rows", requests.len() as u64);
        // Before the answer: personal data is not read without a trace.
        core.audit.call(Append(entry)).await?;
        Ok(requests)
    }
}
