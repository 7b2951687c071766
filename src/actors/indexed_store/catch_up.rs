//! Bringing an index up to date with the store, and following other processes.

use uuid::Uuid;

use super::{DocumentPage, IndexedStore, Source, WorkspaceState};
use crate::domain::error::DomainError;
use crate::store::Change;

/// Microseconds allowed for another process's open transaction or for clock skew.
const OVERLAP: u64 = 120_000_000;

impl<S: Source> IndexedStore<S> {
    /// Brings the index of a workspace up to date with the store: after a crash, an update or a change of model.
    pub(super) async fn catch_up(&self, ws: Uuid) -> Result<(), DomainError> {
        // No write may slip in between the last page and the first request.
        let state = self.state(ws);
        let _writing = state.writing.lock().await;
        let target = self.open_index(ws).await?;
        let complete = self.closed_revision(target.checkpoint());
        let mut after = complete;
        let mut indexed = 0usize;
        loop {
            let page = self.source.documents(ws, after, &target, |_| false).await?;
            let Some(DocumentPage { docs, last }) = page else {
                break;
            };
            indexed += docs.len();
            let mark = if self.environment.remote_model {
                complete
            } else {
                last
            };
            if !self
                .apply(ws, &target, docs, mark, !self.environment.remote_model)
                .await?
            {
                state.backlog().lacks_vectors_from(after.saturating_add(1));
            }
            after = last;
        }
        self.store.observe_rev(after);
        let mut unindexed = state.backlog();
        unindexed.highest = unindexed.highest.max(after);
        if indexed > 0 {
            tracing::info!(workspace = %ws, nodes = indexed, "search index caught up with the store");
        }
        Ok(())
    }

    /// The revision below which no other process still has an open transaction.
    fn closed_revision(&self, rev: u64) -> u64 {
        if self.environment.shared_store {
            rev.saturating_sub(OVERLAP)
        } else {
            rev
        }
    }

    /// Indexes what other processes wrote to a shared database.
    pub(in crate::actors) async fn follow(&self) {
        for (ws, state) in self.states() {
            // An index that has not been opened yet catches up when it is.
            if self.environment.shared_store
                && state.caught_up.initialized()
                && let Err(error) = self.follow_workspace(ws, &state).await
            {
                tracing::warn!(workspace = %ws, ?error, "following the other processes failed");
            }
        }
    }

    async fn follow_workspace(&self, ws: Uuid, state: &WorkspaceState) -> Result<(), DomainError> {
        let target = self.open_index(ws).await?;
        let mut after = self.closed_revision(state.backlog().highest);
        loop {
            let known = |change: &Change| target.contains(change.id, change.rev);
            let page = self.source.documents(ws, after, &target, known).await?;
            let Some(DocumentPage { docs, last }) = page else {
                return Ok(());
            };
            if !docs.is_empty() && !self.apply(ws, &target, docs, target.checkpoint(), true).await? {
                state.backlog().lacks_vectors_from(after.saturating_add(1));
            }
            let mut unindexed = state.backlog();
            unindexed.highest = unindexed.highest.max(last);
            after = last;
        }
    }

    /// Opens the index of a workspace and brings it up to date; says whether it could.
    pub(in crate::actors) async fn warm_up(&self, ws: Uuid) -> bool {
        let opened = self.index_of(ws).await;
        if let Err(error) = &opened {
            tracing::error!(workspace = %ws, ?error, "opening the search index failed");
        }
        opened.is_ok()
    }

    /// The workspaces whose indexes a start opens.
    pub(in crate::actors) async fn workspaces(&self) -> Vec<Uuid> {
        let found = self.store.workspace_ids().await;
        found.unwrap_or_else(|error| {
            tracing::error!(?error, "reading the workspaces failed");
            Vec::new()
        })
    }
}
