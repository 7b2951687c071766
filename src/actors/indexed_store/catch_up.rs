//! Bringing an index up to date with the store, and following other processes.

use std::sync::Arc;

use uuid::Uuid;

use super::{DocumentPage, IndexedStore, Source, WorkspaceState, index_error};
use crate::actors::job::blocking;
use crate::domain::error::DomainError;
use crate::store::Change;

impl<S: Source> IndexedStore<S> {
    /// Brings the index of a workspace up to date with the store: after a crash, an update or a change of model.
    pub(in crate::actors) async fn catch_up(&self, ws: Uuid) -> Result<(), DomainError> {
        // No write may slip in between the last page and the first request.
        let state = self.state(ws);
        let _writing = state.writing.lock().await;
        let mut target = self.open_index(ws).await?;
        let checkpoint = target.checkpoint();
        if checkpoint > 0 && self.store.next_write(ws, checkpoint - 1).await?.is_none() {
            tracing::warn!(
                workspace = %ws, checkpoint,
                "the search index is of a later state of the store; it is made anew"
            );
            drop(target);
            let index = Arc::clone(&self.index);
            blocking(move || index.discard(ws).map_err(index_error)).await?;
            target = self.open_index(ws).await?;
        }
        let complete = target.checkpoint();
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
        let mut unindexed = state.backlog();
        unindexed.highest = unindexed.highest.max(after);
        if indexed > 0 {
            tracing::info!(workspace = %ws, nodes = indexed, "search index caught up with the store");
        }
        Ok(())
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
        let known = state.backlog().highest;
        if self.store.next_write(ws, known).await?.is_none() {
            return Ok(());
        }
        self.turn(ws, state).await?.follow().await
    }

    /// Indexes what was written after the last write that this process knows of. Call under the write lock.
    pub(super) async fn follow_to_end(&self, ws: Uuid, state: &WorkspaceState) -> Result<(), DomainError> {
        let target = self.open_index(ws).await?;
        loop {
            let after = state.backlog().highest;
            let known = |change: &Change| target.contains(change.id, change.rev);
            let page = self.source.documents(ws, after, &target, known).await?;
            let Some(DocumentPage { docs, last }) = page else {
                return Ok(());
            };
            let first = after.saturating_add(1);
            state.record_followed(first, last);
            let embed = !self.environment.remote_model;
            let applied = self.apply(ws, &target, docs, state.mark(first), embed).await;
            self.record_indexed(ws, state, first, applied);
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
