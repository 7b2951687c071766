//! State shared by all requests to the graph: the store, the index, and the write order of each workspace.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use uuid::Uuid;

use super::documents;
use super::memory::state::Memory;
use super::workspace::WorkspaceState;
use crate::actors::audit_writer::{AuditHandle, Chain};
use crate::actors::job::blocking;
use crate::capacity::{index_permits, run_heavy};
use crate::domain::audit::AuditEntry;
use crate::domain::error::DomainError;
use crate::search::{IndexDoc, SearchError, SearchIndex, WorkspaceIndex};
use crate::store::{Change, Store};

/// Documents embedded at a time, which takes some tens of milliseconds.
const DOCS_PER_PIECE: usize = 256;
/// Nodes of a write turned into documents, embedded and indexed at a time.
pub(super) const NODES_PER_PAGE: usize = 500;
/// Microseconds allowed for another process's open transaction or for clock skew.
const OVERLAP: u64 = 120_000_000;

/// What the graph depends on outside this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct GraphEnvironment {
    /// The embedding model is remote and slow: an index that catches up is searchable by words first.
    pub remote_model: bool,
    /// Whether other processes write to the same database.
    pub shared_store: bool,
    /// Interval at which nodes without a vector of the current model get one (`embedding.fill_seconds`).
    pub fill_interval: Duration,
    /// Idle time after which an index writer releases its memory (`search.idle_writer_seconds`).
    pub idle_writer: Duration,
}

/// What the index covers.
pub enum IndexCoverage {
    /// The nodes of every workspace: the hosted service.
    Nodes,
    /// The notes of one workspace: the local service.
    Notes(Box<Memory>),
}

/// State of the graph actor.
pub struct GraphCore {
    pub(super) store: Arc<Store>,
    pub(super) index: Arc<SearchIndex>,
    pub(super) holds: IndexCoverage,
    audit: AuditHandle,
    pub(super) surroundings: GraphEnvironment,
    workspaces: Mutex<HashMap<Uuid, Arc<WorkspaceState>>>,
}

impl GraphCore {
    /// The graph over an opened store and index.
    pub fn new(
        store: Arc<Store>,
        index: Arc<SearchIndex>,
        audit: AuditHandle,
        surroundings: GraphEnvironment,
        holds: IndexCoverage,
    ) -> Self {
        Self {
            store,
            index,
            holds,
            audit,
            surroundings,
            workspaces: Mutex::default(),
        }
    }

    pub(super) fn state(&self, ws: Uuid) -> Arc<WorkspaceState> {
        Arc::clone(self.workspaces.lock().entry(ws).or_default())
    }

    /// The index of a workspace, caught up with the store; the first call in a process does the work.
    pub(super) async fn index_of(&self, ws: Uuid) -> Result<Arc<WorkspaceIndex>, DomainError> {
        let state = self.state(ws);
        state.caught_up.get_or_try_init(|| self.catch_up(ws)).await?;
        self.open_index(ws).await
    }

    pub(super) async fn open_index(&self, ws: Uuid) -> Result<Arc<WorkspaceIndex>, DomainError> {
        let index = Arc::clone(&self.index);
        blocking(move || index.workspace(ws).map_err(index_error)).await
    }

    /// Brings the index of a workspace up to date with the store: after a crash, an update or a change of model.
    async fn catch_up(&self, ws: Uuid) -> Result<(), DomainError> {
        // No write may slip in between the last page and the first request.
        let state = self.state(ws);
        let _writing = state.writing.lock().await;
        let target = self.open_index(ws).await?;
        let complete = self.closed_revision(target.checkpoint());
        let mut after = complete;
        let mut indexed = 0usize;
        loop {
            let Some((docs, last)) = self.docs_after(ws, after, |_| false).await? else {
                break;
            };
            indexed += docs.len();
            let mark = if self.surroundings.remote_model {
                complete
            } else {
                last
            };
            if !self
                .apply(ws, &target, docs, mark, !self.surroundings.remote_model)
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
        if self.surroundings.shared_store {
            rev.saturating_sub(OVERLAP)
        } else {
            rev
        }
    }

    /// Indexes what other processes wrote to a shared database.
    pub async fn follow(&self) {
        for (ws, state) in self.states() {
            // An index that has not been opened yet catches up when it is.
            if self.surroundings.shared_store
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
            let Some((docs, last)) = self.docs_after(ws, after, known).await? else {
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

    fn states(&self) -> Vec<(Uuid, Arc<WorkspaceState>)> {
        let workspaces = self.workspaces.lock();
        workspaces
            .iter()
            .map(|(ws, state)| (*ws, Arc::clone(state)))
            .collect()
    }

    /// Indexes documents, embedding them first if asked to; false when they have no vectors yet.
    pub(super) async fn apply(
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
        if self.surroundings.remote_model {
            // A remote model means waiting, not CPU work.
            return blocking(move || {
                let mut docs = docs;
                let embedded = documents::embed(&index, &mut docs);
                Ok((docs, embedded))
            })
            .await;
        }
        let (mut done, mut left) = (Vec::with_capacity(docs.len()), docs);
        while !left.is_empty() {
            let rest = left.split_off(left.len().min(DOCS_PER_PIECE));
            let index = Arc::clone(&index);
            let (piece, embedded) = run_heavy(Some(ws), move || {
                let embedded = documents::embed(&index, &mut left);
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

    /// Records that a revision is durable; call before releasing the workspace's write lock.
    pub(super) fn record_durable(state: &WorkspaceState, rev: u64) {
        let mut unindexed = state.backlog();
        unindexed.revs.insert(rev);
        unindexed.highest = unindexed.highest.max(rev);
    }

    /// Indexes what a committed revision changed, page by page; the last page makes all of them searchable and advances
    /// the checkpoint. After a failure the checkpoint stays below the revision and the background fill tries again.
    pub(super) async fn index_revision<P>(
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
            let embed = !self.surroundings.remote_model;
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
            .with_vectors(ws, docs, !self.surroundings.remote_model)
            .await?;
        self.write_index(ws, target, move |index| index.stage(docs))
            .await?;
        Ok(embedded)
    }

    /// Records the outcome of indexing a revision: whether its nodes have their vectors.
    pub(super) fn record_indexed(
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

    /// Adds the vectors of nodes indexed without one, after a change of model or an outage of it.
    pub async fn fill_vectors(&self) {
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
                let Some((docs, last)) = self.docs_after(ws, after, |_| false).await? else {
                    return Ok(None);
                };
                let target = self.open_index(ws).await?;
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

    /// Whether vectors come from a remote model, and so arrive later.
    pub(super) fn remote_model(&self) -> bool {
        self.surroundings.remote_model
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
            } else if let Err(error) = self.release_waiting(ws).await {
                tracing::error!(workspace = %ws, ?error, "marking held objects anew failed");
            }
        }
    }

    /// Flushes to disk what has been searchable only from memory for `age`, and tidies up where nothing has been written
    /// for as long.
    pub async fn keep_up_indexes(&self, age: Duration) {
        let index = Arc::clone(&self.index);
        let kept = blocking(move || index.keep_up(age).map_err(index_error)).await;
        if let Err(error) = kept {
            tracing::warn!(?error, "writing the search index failed; trying again soon");
        }
    }

    /// Releases the memory of index writers that have been idle for `idle`.
    pub async fn close_idle_indexes(&self, idle: Duration) {
        let index = Arc::clone(&self.index);
        let closed = blocking(move || index.close_idle(idle).map_err(index_error)).await;
        if let Err(error) = closed {
            tracing::warn!(?error, "closing idle index writers failed");
        }
    }
}

pub(super) fn index_error(error: SearchError) -> DomainError {
    DomainError::internal("the search index failed", error)
}
