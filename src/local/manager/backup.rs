//! Back-ups of the memory.

use std::net::IpAddr;

use secrecy::SecretString;

use super::{MemoryError, MemoryManager};
use crate::actors::backup_writer::{ArchiveStream, BeginBackUp};
use crate::archive::Since;
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::local::core::WORKSPACE;

impl MemoryManager {
    /// Begins a back-up of the memory as it is now.
    ///
    /// # Errors
    /// When another back-up is running, or the store fails.
    pub(crate) async fn back_up(
        &self,
        since: Since,
        passphrase: Option<SecretString>,
        from: IpAddr,
    ) -> Result<ArchiveStream, MemoryError> {
        let action = "backup.create";
        let entry = AuditEntry::anonymous(WORKSPACE, from, action, "backup", Outcome::Success, clock::now());
        let message = BeginBackUp {
            entry: self.settings().governance.enabled.then_some(entry),
            since,
            passphrase,
        };
        Ok(self.handles.backup.call(message).await?)
    }
}
