//! A store and the search index beside it, kept up to date in the order of each workspace's writes.
//!
//! Two actors have one: of the nodes of all workspaces (`graph_store`), and of the notes of one (`note_store`). What the
//! documents are made of is their [`Source`].

mod catch_up;
mod embed;
mod fill;
mod turn;
mod upkeep;
mod workspace;
mod write;

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;
use uuid::Uuid;

pub(super) use self::embed::embed;
pub(super) use self::turn::Turn;
pub(super) use self::upkeep::upkeep;
pub(super) use self::workspace::WorkspaceState;
use super::audit_writer::{AuditHandle, Chain};
use super::job::blocking;
use crate::domain::audit::AuditEntry;
use crate::domain::error::DomainError;
use crate::search::{IndexDoc, SearchError, SearchIndex, WorkspaceIndex};
use crate::store::{Change, Store};

/// What a store depends on outside this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct StoreEnvironment {
    /// The embedding model is remote and slow: an index that catches up is searchable by words first.
    pub remote_model: bool,
    /// Whether other processes write to the same database.
    pub shared_store: bool,
    /// Interval at which rows without a vector of the current model get one (`embedding.fill_seconds`).
    pub fill_interval: Duration,
    /// Idle time after which an index writer releases its memory (`search.idle_writer_seconds`).
    pub idle_writer: Duration,
}

/// Documents of one page of changes.
pub(super) struct DocumentPage {
    pub(super) docs: Vec<IndexDoc>,
    /// The number of the last write of the page.
    pub(super) last: u64,
}

/// The rows that an index is made of.
pub(super) trait Source: Send + Sync + 'static {
    /// One page of documents of what was written after a revision, without the changes that are `known`; `None` at the
    /// end. `target` is the index that they are for.
    fn documents(
        &self,
        ws: Uuid,
        after: u64,
        target: &WorkspaceIndex,
        known: impl Fn(&Change) -> bool + Send + Sync,
    ) -> impl Future<Output = Result<Option<DocumentPage>, DomainError>> + Send;
}

/// A store and the search index of its rows.
pub(super) struct IndexedStore<S> {
    pub(super) store: Arc<Store>,
    pub(super) index: Arc<SearchIndex>,
    pub(super) source: S,
    pub(super) environment: StoreEnvironment,
    audit: AuditHandle,
    /// Names this process to those that share its database.
    process: Uuid,
    workspaces: Mutex<HashMap<Uuid, Arc<WorkspaceState>>>,
}

impl<S: Source> IndexedStore<S> {
    /// Over an opened store and index.
    pub(super) fn new(
        store: Arc<Store>,
        index: Arc<SearchIndex>,
        source: S,
        audit: AuditHandle,
        environment: StoreEnvironment,
    ) -> Self {
        Self {
            store,
            index,
            source,
            environment,
            audit,
            process: Uuid::new_v4(),
            workspaces: Mutex::default(),
        }
    }

    pub(super) fn state(&self, ws: Uuid) -> Arc<WorkspaceState> {
        Arc::clone(self.workspaces.lock().entry(ws).or_default())
    }

    /// The index of a workspace, caught up with the store; the first call in a process does the work.
    pub(super) async fn index_of(&self, ws: Uuid) -> Result<Arc<WorkspaceIndex>, DomainError> {
        let state = self.state(ws);
        state.check()?;
        state.caught_up.get_or_try_init(|| self.catch_up(ws)).await?;
        self.open_index(ws).await
    }

    pub(super) async fn open_index(&self, ws: Uuid) -> Result<Arc<WorkspaceIndex>, DomainError> {
        let index = Arc::clone(&self.index);
        blocking(move || index.workspace(ws).map_err(index_error)).await
    }

    /// Lets nobody write to a workspace any more, and waits for who does.
    pub(super) async fn close(&self, ws: Uuid) {
        let state = self.state(ws);
        state.is_gone.store(true, Ordering::Release);
        drop(state.writing.lock().await);
    }

    /// Removes the index of a workspace that is closed.
    pub(super) async fn discard(&self, ws: Uuid) -> Result<(), DomainError> {
        let index = Arc::clone(&self.index);
        blocking(move || index.discard(ws).map_err(index_error)).await
    }

    fn states(&self) -> Vec<(Uuid, Arc<WorkspaceState>)> {
        let workspaces = self.workspaces.lock();
        let open = workspaces.iter().filter(|(_, state)| state.check().is_ok());
        open.map(|(ws, state)| (*ws, Arc::clone(state))).collect()
    }

    /// Whether vectors come from a remote model, and so arrive later.
    pub(super) fn remote_model(&self) -> bool {
        self.environment.remote_model
    }

    pub(super) fn audit(&self) -> &AuditHandle {
        &self.audit
    }

    /// Hands an entry that is already in the log to the audit writer to be linked.
    pub(super) async fn chain(&self, entry: AuditEntry) {
        if let Err(error) = self.audit.call(Chain(entry)).await {
            // Not lost: unlinked entries are linked at the next start.
            tracing::warn!(?error, "audit entry waits for its link");
        }
    }
}

pub(super) fn index_error(error: SearchError) -> DomainError {
    DomainError::internal("the search index failed", error)
}
