//! What the audit log is asked for.

use uuid::Uuid;

use crate::actors::handle::{Access, Request};
use crate::capacity::Tenant;
use crate::domain::audit::{AuditEntry, ChainReport};
use crate::store::AuditFilter;

/// Writes one entry durably. That of a read may wait in the reserve while the store takes no writes.
#[derive(Debug)]
pub struct Append(pub AuditEntry);

/// Writes one entry to the log durably: that of a change outside the database, which must not be made while nothing can
/// be written.
#[derive(Debug)]
pub struct AppendStored(pub AuditEntry);

impl Request for Append {
    type Reply = ();
    const NAME: &'static str = "append";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) -> Tenant {
        Some(self.0.tenant_id)
    }
}

impl Request for AppendStored {
    type Reply = ();
    const NAME: &'static str = "append_stored";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) -> Tenant {
        Some(self.0.tenant_id)
    }
}

/// Requests the link of an entry that is already in the log. Never waits behind a reader of the log.
#[derive(Debug)]
pub struct Chain(pub AuditEntry);

impl Request for Chain {
    type Reply = ();
    const NAME: &'static str = "chain";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) -> Tenant {
        Some(self.0.tenant_id)
    }
}

/// Requests the links of the entries of one write, which are already in the log, in their order.
#[derive(Debug)]
pub struct ChainAll {
    pub tenant: Uuid,
    pub entries: Vec<AuditEntry>,
}

impl Request for ChainAll {
    type Reply = ();
    const NAME: &'static str = "chain_all";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) -> Tenant {
        Some(self.tenant)
    }
}

/// Lists entries of a workspace, newest first.
#[derive(Debug)]
pub struct ListEntries {
    pub tenant: Uuid,
    pub filter: AuditFilter,
}

impl Request for ListEntries {
    type Reply = Vec<AuditEntry>;
    const NAME: &'static str = "list_entries";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Tenant {
        Some(self.tenant)
    }
}

/// Verifies the chain of a workspace.
#[derive(Debug)]
pub struct VerifyChain {
    pub tenant: Uuid,
}

impl Request for VerifyChain {
    type Reply = ChainReport;
    const NAME: &'static str = "verify_chain";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Tenant {
        Some(self.tenant)
    }
}

/// Waits until everything accepted so far is written and linked.
#[derive(Debug)]
pub struct Drain;

impl Request for Drain {
    type Reply = ();
    const NAME: &'static str = "drain";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Tenant {
        None
    }
}
