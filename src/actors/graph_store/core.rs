//! What all requests to the graph share: the store, the index, and the order of each workspace's writes.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::OnceCell;
use uuid::Uuid;

use super::documents;
use crate::actors::audit_writer::{AuditHandle, Chain};
use crate::actors::job::blocking;
use crate::domain::audit::AuditEntry;
use crate::domain::error::DomainError;
use crate::search::{IndexDoc, SearchIndex, WorkspaceIndex};
use crate::store::Store;

/// Nodes read and indexed at a time while an index catches up.
const PAGE: u32 = 2000;

/// The graph behind the actor.
pub struct GraphCore {
    pub(super) store: Arc<Store>,
    pub(super) index: Arc<SearchIndex>,
    audit: AuditHandle,
    workspaces: Mutex<HashMap<Uuid, Arc<WorkspaceState>>>,
}

/// One workspace: its index once it has caught up, and the writes on their way into it.
#[derive(Default)]
pub(super) struct WorkspaceState {
    /// Held while a transaction of the workspace runs, so revisions are committed in their order.
    pub(super) writing: tokio::sync::Mutex<()>,
    caught_up: OnceCell<()>,
    unindexed: Mutex<Unindexed>,
}

/// Revisions that are durable and not in the index yet.
#[derive(Default)]
struct Unindexed {
    revs: BTreeSet<u64>,
    highest: u64,
}

impl GraphCore {
    /// The graph over an opened store and index.
    pub fn new(store: Arc<Store>, index: Arc<SearchIndex>, audit: AuditHandle) -> Self {
        Self {
            store,
            index,
            audit,
            workspaces: Mutex::default(),
        }
    }

    pub(super) fn state(&self, ws: Uuid) -> Arc<WorkspaceState> {
        let mut workspaces = self.workspaces.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(workspaces.entry(ws).or_default())
    }

    /// The index of a workspace, caught up with the store; the first call of a process does the work.
    pub(super) async fn index_of(&self, ws: Uuid) -> Result<Arc<WorkspaceIndex>, DomainError> {
        let state = self.state(ws);
        state.caught_up.get_or_try_init(|| self.catch_up(ws)).await?;
        self.open_index(ws).await
    }

    async fn open_index(&self, ws: Uuid) -> Result<Arc<WorkspaceIndex>, DomainError> {
        let index = Arc::clone(&self.index);
        blocking(move || index.workspace(ws).map_err(index_failed)).await
    }

    /// Brings the index of a workspace up to the store: after a cut, an update or a change of model.
    async fn catch_up(&self, ws: Uuid) -> Result<(), DomainError> {
        // No write may pass between the last page and the first request.
        let state = self.state(ws);
        let _writing = state.writing.lock().await;
        let target = self.open_index(ws).await?;
        let mut after = target.checkpoint();
        let mut indexed = 0usize;
        loop {
            let nodes = self.store.nodes_after(ws, after, PAGE).await?;
            let Some(last) = nodes.iter().map(|node| node.rev).max() else {
                break;
            };
            indexed += nodes.len();
            let docs = nodes.iter().map(documents::of_stored).collect();
            self.apply(&target, docs, last).await?;
            after = last;
        }
        if indexed > 0 {
            tracing::info!(workspace = %ws, nodes = indexed, "search index caught up with the store");
        }
        Ok(())
    }

    /// Embeds and indexes; returns when a search sees the nodes.
    async fn apply(
        &self,
        target: &Arc<WorkspaceIndex>,
        mut docs: Vec<IndexDoc>,
        checkpoint: u64,
    ) -> Result<(), DomainError> {
        let (index, target) = (Arc::clone(&self.index), Arc::clone(target));
        blocking(move || {
            documents::embed(&index, &mut docs);
            target.apply(docs, checkpoint).map_err(index_failed)
        })
        .await
    }

    /// Notes that a revision is durable; to be called before the workspace's write lock is given back.
    pub(super) fn committed(state: &WorkspaceState, rev: u64) {
        let mut unindexed = state.unindexed.lock().unwrap_or_else(PoisonError::into_inner);
        unindexed.revs.insert(rev);
        unindexed.highest = unindexed.highest.max(rev);
    }

    /// Indexes what a committed revision changed. A failure is logged and healed at the next start: the
    /// checkpoint stays below the revision.
    pub(super) async fn index_revision(
        &self,
        ws: Uuid,
        state: &WorkspaceState,
        rev: u64,
        docs: Vec<IndexDoc>,
    ) {
        let mark = {
            let unindexed = state.unindexed.lock().unwrap_or_else(PoisonError::into_inner);
            let other = unindexed.revs.iter().find(|other| **other != rev);
            other.map_or(unindexed.highest, |other| other.saturating_sub(1))
        };
        let applied = async {
            let target = self.open_index(ws).await?;
            self.apply(&target, docs, mark).await
        };
        match applied.await {
            Ok(()) => {
                let mut unindexed = state.unindexed.lock().unwrap_or_else(PoisonError::into_inner);
                unindexed.revs.remove(&rev);
            }
            Err(error) => tracing::error!(workspace = %ws, rev, ?error, "indexing failed"),
        }
    }

    pub(super) fn audit(&self) -> &AuditHandle {
        &self.audit
    }

    /// Hands an entry that is in the log to the audit writer for its link.
    pub(super) async fn chain(&self, entry: AuditEntry) {
        if let Err(error) = self.audit.call(Chain(entry)).await {
            // Not lost: entries without a link are linked at the next start.
            tracing::warn!(?error, "audit entry waits for its link");
        }
    }

    /// Opens the indexes of all workspaces and brings them up to date, one after the other.
    pub async fn warm_up(&self) {
        let workspaces = match self.store.workspace_ids().await {
            Ok(ids) => ids,
            Err(error) => {
                tracing::error!(?error, "reading the workspaces failed");
                return;
            }
        };
        for ws in workspaces {
            if let Err(error) = self.index_of(ws).await {
                tracing::error!(workspace = %ws, ?error, "opening the search index failed");
            }
        }
    }

    /// Gives back the memory of index writers that had nothing to do for `idle`.
    pub async fn close_idle_indexes(&self, idle: Duration) {
        let index = Arc::clone(&self.index);
        let closed = blocking(move || index.close_idle(idle).map_err(index_failed)).await;
        if let Err(error) = closed {
            tracing::warn!(?error, "closing idle index writers failed");
        }
    }
}

pub(super) fn index_failed(error: crate::search::SearchError) -> DomainError {
    DomainError::internal("the search index failed", error)
}
