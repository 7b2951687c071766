//! Indexing what was written, in the order of the revisions.

use std::future::Future;
use std::sync::Arc;

use uuid::Uuid;

use super::{IndexedStore, Source, WorkspaceState, embed, index_error};
use crate::actors::job::blocking;
use crate::capacity::{index_permits, run_heavy};
use crate::domain::error::DomainError;
use crate::search::{IndexDoc, SearchError, WorkspaceIndex};

/// Documents embedded at a time, which takes some tens of milliseconds.
const DOCS_PER_PIECE: usize = 256;

impl<S: Source> IndexedStore<S> {
    /// Indexes documents, embedding them first if asked to; false when they have no vectors yet.
    pub(in crate::actors) async fn apply(
        &self,
        ws: Uuid,
        target: &Arc<WorkspaceIndex>,
        docs: Vec<IndexDoc>,
        checkpoint: u64,
        embed: bool,
    ) -> Result<bool, DomainError> {
        let (docs, embedded) = self.with_vectors(ws, docs, embed).await?;
        self.write_index(ws, target, move |index| index.apply(docs, checkpoint))
            .await?;
        Ok(embedded)
    }

    /// Writes to an index on a thread for blocking work, in the workspace's turn.
    async fn write_index(
        &self,
        ws: Uuid,
        target: &Arc<WorkspaceIndex>,
        write: impl FnOnce(&WorkspaceIndex) -> Result<(), SearchError> + Send + 'static,
    ) -> Result<(), DomainError> {
        let place = index_permits().take(Some(ws)).await;
        let target = Arc::clone(target);
        blocking(move || {
            let _place = place;
            write(&target).map_err(index_error)
        })
        .await
    }

    /// The documents, embedded if asked for and not done yet; false when they have no vectors.
    async fn with_vectors(
        &self,
        ws: Uuid,
        docs: Vec<IndexDoc>,
        embed: bool,
    ) -> Result<(Vec<IndexDoc>, bool), DomainError> {
        if embed && docs.iter().any(|doc| doc.vector.is_none()) {
            return self.embed_docs(ws, docs).await;
        }
        Ok((docs, embed))
    }

    /// Embeds documents piece by piece; false when the model can't be reached.
    async fn embed_docs(&self, ws: Uuid, docs: Vec<IndexDoc>) -> Result<(Vec<IndexDoc>, bool), DomainError> {
        let index = Arc::clone(&self.index);
        if self.environment.remote_model {
            // A remote model means waiting, not CPU work.
            return blocking(move || {
                let mut docs = docs;
                let embedded = embed::embed(&index, &mut docs);
                Ok((docs, embedded))
            })
            .await;
        }
        let (mut done, mut left) = (Vec::with_capacity(docs.len()), docs);
        while !left.is_empty() {
            let rest = left.split_off(left.len().min(DOCS_PER_PIECE));
            let index = Arc::clone(&index);
            let (piece, embedded) = run_heavy(Some(ws), move || {
                let embedded = embed::embed(&index, &mut left);
                Ok((left, embedded))
            })
            .await?;
            done.extend(piece);
            left = rest;
            if !embedded {
                done.extend(left);
                return Ok((done, false));
            }
        }
        Ok((done, true))
    }

    /// Indexes what a committed revision changed, page by page; the last page makes all of them searchable and advances
    /// the checkpoint. After a failure the checkpoint stays below the revision and the background fill tries again.
    pub(in crate::actors) async fn index_revision<P>(
        &self,
        ws: Uuid,
        state: &WorkspaceState,
        rev: u64,
        pages: impl ExactSizeIterator<Item = P>,
    ) where
        P: Future<Output = Result<Vec<IndexDoc>, DomainError>>,
    {
        let applied = async {
            let target = self.open_index(ws).await?;
            let rollbacks = target.rollbacks();
            let (mut left, mut complete) = (pages.len(), true);
            let mut last = Vec::new();
            for page in pages {
                left -= 1;
                let docs = page.await?;
                if left == 0 {
                    last = docs;
                } else {
                    complete &= self.stage(ws, &target, docs).await?;
                }
            }
            let embed = !self.environment.remote_model;
            let (last, embedded) = self.with_vectors(ws, last, embed).await?;
            let mark = state.mark(rev);
            self.write_index(ws, &target, move |index| {
                index.apply_staged(last, mark, rollbacks)
            })
            .await?;
            Ok(complete && embedded)
        };
        let applied = applied.await;
        self.record_indexed(ws, state, rev, applied);
    }

    /// Hands a page of documents to the index for the write's last page; false when they have no vectors yet.
    async fn stage(
        &self,
        ws: Uuid,
        target: &Arc<WorkspaceIndex>,
        docs: Vec<IndexDoc>,
    ) -> Result<bool, DomainError> {
        let (docs, embedded) = self
            .with_vectors(ws, docs, !self.environment.remote_model)
            .await?;
        self.write_index(ws, target, move |index| index.stage(docs))
            .await?;
        Ok(embedded)
    }

    /// Records the outcome of indexing a revision: whether its nodes have their vectors.
    pub(in crate::actors) fn record_indexed(
        &self,
        ws: Uuid,
        state: &WorkspaceState,
        rev: u64,
        applied: Result<bool, DomainError>,
    ) {
        match applied {
            Ok(embedded) => {
                let mut unindexed = state.backlog();
                unindexed.revs.remove(&rev);
                if !embedded {
                    unindexed.lacks_vectors_from(rev);
                }
                state.indexed.notify_waiters();
            }
            Err(error) => {
                tracing::error!(workspace = %ws, rev, ?error, "indexing failed; trying again soon");
                let mut unindexed = state.backlog();
                unindexed.revs.remove(&rev);
                unindexed.lacks_vectors_from(rev);
                unindexed.behind = true;
                state.indexed.notify_waiters();
            }
        }
    }
}
