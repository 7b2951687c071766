//! The audit log of the memory.

use std::net::IpAddr;

use super::{MemoryError, MemoryManager};
use crate::actors::audit_writer::{Append, ListEntries, VerifyChain};
use crate::clock;
use crate::domain::audit::{AuditEntry, ChainReport, Outcome};
use crate::local::core::WORKSPACE;
use crate::store::AuditFilter;

/// Maximum number of audit entries per call.
const MAX_ENTRIES: u32 = 1000;

impl MemoryManager {
    /// The newest entries of the audit log, at most 1000. The log is written while `governance.enabled` is true.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn audit_entries(&self, limit: u32) -> Result<Vec<AuditEntry>, MemoryError> {
        let filter = AuditFilter {
            limit: limit.min(MAX_ENTRIES),
            ..AuditFilter::default()
        };
        let message = ListEntries {
            tenant: WORKSPACE,
            filter,
        };
        Ok(self.handles.audit.call(message).await?)
    }

    /// Verifies the hash chain of the audit log.
    ///
    /// # Errors
    /// When the store fails. A broken chain is a result, not an error.
    pub async fn verify_audit(&self) -> Result<ChainReport, MemoryError> {
        Ok(self.handles.audit.call(VerifyChain { tenant: WORKSPACE }).await?)
    }

    /// Writes an entry of a call that an agent made, while `governance.enabled` is true.
    ///
    /// # Errors
    /// When the log can't be written.
    pub(crate) async fn record_call(
        &self,
        action: &str,
        client: Option<&str>,
        outcome: Outcome,
        from: IpAddr,
    ) -> Result<(), MemoryError> {
        if self.settings().governance.enabled {
            let entry = AuditEntry::anonymous(WORKSPACE, from, action, "mcp", outcome, clock::now())
                .with_some_text("client", client);
            self.handles.audit.call(Append(entry)).await?;
        }
        Ok(())
    }
}
