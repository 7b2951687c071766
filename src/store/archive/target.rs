//! A store that no service has open.

use std::path::Path;
use std::sync::Arc;

use crate::archive::ServiceKind;
use crate::files;
use crate::store::archive::{Snapshot, refuse_half_restored};
use crate::store::connection::database::Database;
use crate::store::connection::error::StoreError;
use crate::store::{StorageMemory, StorageServer, StoreMarker, embedded_dir};

/// A store that no service has open, or an external one.
#[derive(Debug)]
pub struct StoreTarget {
    /// As the service names it.
    pub url: String,
    pub memory: StorageMemory,
    /// The owner of an external one.
    pub server: Option<StorageServer>,
    pub service: ServiceKind,
}

/// What a store is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum Purpose {
    /// It must be there, and stays as it is.
    Read,
    /// It is made if it is missing.
    Restore,
}

/// A store that was opened as its owner.
pub(in crate::store) struct OpenStore {
    pub(in crate::store) db: Database,
    /// Follows the commits of an embedded one.
    pub(in crate::store) marker: Option<Arc<StoreMarker>>,
}

/// Closes a store when it is dropped.
#[must_use]
pub struct StoreGuard {
    _open: OpenStore,
}

impl StoreTarget {
    /// The directory of an embedded one.
    pub fn dir(&self) -> Option<&Path> {
        embedded_dir(&self.url)
    }

    /// Whether it ends with the process.
    pub(super) fn is_temporary(&self) -> bool {
        self.url.starts_with("mem:")
    }

    pub(in crate::store) async fn open(&self, purpose: Purpose) -> Result<OpenStore, StoreError> {
        let is_missing = self.dir().is_some_and(files::is_empty) || self.is_temporary();
        if purpose == Purpose::Read && is_missing {
            return Err(StoreError::Missing(self.url.clone()));
        }
        let (db, marker) = Database::open_as_owner(self, purpose).await?;
        if purpose == Purpose::Read {
            refuse_half_restored(&db).await?;
        }
        Ok(OpenStore { db, marker })
    }

    /// The store as it is now. Its schema may be one of an earlier version of this program, and stays.
    ///
    /// # Errors
    /// When there is no store, or a service has it open.
    pub async fn snapshot(&self) -> Result<(Snapshot, StoreGuard), StoreError> {
        let open = self.open(Purpose::Read).await?;
        Ok((Snapshot::of(&open.db).await?, StoreGuard { _open: open }))
    }
}
