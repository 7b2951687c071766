//! Vectors that come later, and what the index keeps in memory.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::{DocumentPage, IndexedStore, Source, WorkspaceState, index_error};
use crate::actors::job::blocking;
use crate::domain::error::DomainError;

impl<S: Source> IndexedStore<S> {
    /// Adds the vectors of nodes indexed without one, after a change of model or an outage of it.
    pub(in crate::actors) async fn fill_vectors(&self) {
        for (ws, state) in self.states() {
            let from = {
                let mut unindexed = state.backlog();
                unindexed.filling = unindexed.without_vectors.take();
                unindexed.filling
            };
            let Some(from) = from else { continue };
            let stopped_at = self.fill_workspace(ws, from.saturating_sub(1)).await;
            {
                let mut unindexed = state.backlog();
                unindexed.filling = None;
                match stopped_at {
                    Some(after) => unindexed.lacks_vectors_from(after.saturating_add(1)),
                    None => unindexed.behind = unindexed.without_vectors.is_some() && unindexed.behind,
                }
                state.indexed.notify_waiters();
            }
            if stopped_at.is_none() {
                self.move_mark(ws, &state).await;
            }
        }
    }

    /// Advances the index's checkpoint, so that the next start need not fill in the same vectors again.
    async fn move_mark(&self, ws: Uuid, state: &WorkspaceState) {
        let mark = state.backlog().mark(u64::MAX);
        let moved = async {
            let target = self.open_index(ws).await?;
            self.apply(ws, &target, Vec::new(), mark, false).await
        };
        if let Err(error) = moved.await {
            tracing::warn!(workspace = %ws, ?error, "storing the index's mark failed");
        }
    }

    /// Fills in the vectors of everything written after a revision; returns where it had to stop, if anywhere.
    async fn fill_workspace(&self, ws: Uuid, mut after: u64) -> Option<u64> {
        loop {
            let page = async {
                let target = self.open_index(ws).await?;
                let page = self.source.documents(ws, after, &target, |_| false).await?;
                let Some(DocumentPage { docs, last }) = page else {
                    return Ok(None);
                };
                // Keep the current checkpoint: other revisions may still be in flight.
                let mark = target.checkpoint();
                let applied = self.apply(ws, &target, docs, mark, true).await?;
                Ok::<_, DomainError>(Some((last, applied)))
            };
            match page.await {
                Ok(None) => {
                    tracing::info!(workspace = %ws, "all nodes have their vectors");
                    return None;
                }
                Ok(Some((last, true))) => after = last,
                Ok(Some((_, false))) => return Some(after),
                Err(error) => {
                    tracing::error!(workspace = %ws, ?error, "filling in vectors failed");
                    return Some(after);
                }
            }
        }
    }

    /// Flushes to disk what has been searchable only from memory for `age`, and tidies up where nothing has been written
    /// for as long.
    pub(in crate::actors) async fn keep_up_indexes(&self, age: Duration) {
        let index = Arc::clone(&self.index);
        let kept = blocking(move || index.keep_up(age).map_err(index_error)).await;
        if let Err(error) = kept {
            tracing::warn!(?error, "writing the search index failed; trying again soon");
        }
    }

    /// Releases the memory of index writers that have been idle for `idle`.
    pub(in crate::actors) async fn close_idle_indexes(&self, idle: Duration) {
        let index = Arc::clone(&self.index);
        let closed = blocking(move || index.close_idle(idle).map_err(index_error)).await;
        if let Err(error) = closed {
            tracing::warn!(?error, "closing idle index writers failed");
        }
    }
}
