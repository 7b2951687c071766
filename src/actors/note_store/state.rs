//! In-process state of the memory beside the database: its graph, and the requests that wait to be written.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::sync::{Notify, OnceCell};
use uuid::Uuid;

use super::changes::Changes;
use super::copy::GraphCopy;
use super::graph::MemoryGraph;
use super::journal::GraphJournal;
use super::load;
use super::queue::{PendingRequest, Queue};
use super::tuning::TuningSource;
use super::wording::{RecentNotes, Wording};
use crate::actors::indexed_store::Turn;
use crate::actors::note_store::core::NoteCore;
use crate::actors::note_store::documents::Notes;
use crate::domain::error::DomainError;
use crate::domain::ids::WorkspaceIds;
use crate::search::WorkspaceIndex;
use crate::store::{NotesWrite, Store};

/// In-process state of the memory.
pub struct Memory {
    pub(super) workspace: Uuid,
    /// The ids of its entities and their relations.
    pub(super) ids: WorkspaceIds,
    pub(super) tuning: TuningSource,
    copy: Option<GraphCopy>,
    pub(super) graph: Arc<RwLock<MemoryGraph>>,
    index: OnceCell<Arc<WorkspaceIndex>>,
    loaded: OnceCell<()>,
    /// Number of lost database replies when the graph was last read.
    losses: AtomicU64,
    queue: Mutex<Queue>,
    /// Notified when a request arrives in the queue.
    recent: Mutex<RecentNotes>,
    journal: Mutex<Option<GraphJournal>>,
    pub(super) created: AtomicU64,
    pub(super) enrichment: Arc<EnrichmentQueue>,
}

/// Number of notes waiting for a language model, and the signal that there are new ones.
#[derive(Debug, Default)]
pub struct EnrichmentQueue {
    depth: AtomicU64,
    bell: Notify,
}

impl EnrichmentQueue {
    /// Number of waiting notes.
    pub fn depth(&self) -> u64 {
        self.depth.load(Ordering::Relaxed)
    }

    /// Waits until there may be something to do.
    pub async fn wait_for_work(&self) {
        self.bell.notified().await;
    }

    pub(super) fn add(&self, more: u64) {
        self.depth.fetch_add(more, Ordering::Relaxed);
        self.bell.notify_one();
    }

    fn set(&self, depth: u64) {
        self.depth.store(depth, Ordering::Relaxed);
        self.bell.notify_one();
    }

    pub(super) fn subtract(&self, notes: u64) {
        self.depth
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |depth| {
                Some(depth.saturating_sub(notes))
            })
            .ok();
    }
}

impl Memory {
    /// The memory of one workspace. With a copy of its graph, a start need not read the database; only for a database that
    /// no other process writes to.
    pub fn new(workspace: Uuid, ids: WorkspaceIds, tuning: TuningSource, copy: Option<GraphCopy>) -> Self {
        Self {
            workspace,
            ids,
            tuning,
            copy,
            graph: Arc::default(),
            index: OnceCell::new(),
            loaded: OnceCell::new(),
            losses: AtomicU64::new(0),
            queue: Mutex::default(),
            recent: Mutex::default(),
            journal: Mutex::default(),
            created: AtomicU64::new(0),
            enrichment: Arc::default(),
        }
    }

    /// The queue of notes waiting for a language model.
    pub fn enrichment(&self) -> Arc<EnrichmentQueue> {
        Arc::clone(&self.enrichment)
    }

    pub(super) async fn load(&self, store: &Store) -> Result<(), DomainError> {
        let load = || self.read(store);
        self.loaded.get_or_try_init(load).await.copied()
    }

    /// Reloads the memory if a database reply was lost: the write may have taken effect, and a caller that retries it
    /// must not create a duplicate.
    pub(super) async fn refresh(&self, store: &Store, turn: &Turn<'_, Notes>) -> Result<(), DomainError> {
        if self.losses.load(Ordering::Acquire) == store.losses() {
            return Ok(());
        }
        turn.follow().await?;
        self.read(store).await
    }

    /// Has the memory reloaded before the next write, if this error of a write says that others have written.
    pub(super) fn doubt(&self, error: &DomainError) {
        if matches!(error, DomainError::Overtaken) {
            self.distrust();
        }
    }

    /// Lets the graph be read from the database before the next write, because it is unknown what became durable.
    pub(super) fn distrust(&self) {
        // A later record of the copy may hide that an earlier one is missing.
        *self.journal.lock() = None;
        if let Some(copy) = &self.copy {
            copy.discard().ok();
        }
        self.losses.store(u64::MAX, Ordering::Release);
    }

    /// Queues a request; returns whether a task must be started that writes it.
    pub(super) fn enqueue(&self, request: PendingRequest) -> bool {
        self.queue().push(request)
    }

    async fn read(&self, store: &Store) -> Result<(), DomainError> {
        let losses = store.losses();
        let waiting = store.count_waiting(self.workspace);
        let (loaded, waiting) =
            tokio::try_join!(load::load(store, self.workspace, self.copy.as_ref()), waiting)?;
        *self.graph_mut() = loaded.graph;
        *self.journal.lock() = loaded.journal;
        self.recent().forget(loaded.rev);
        self.enrichment.set(waiting);
        self.losses.store(losses, Ordering::Release);
        Ok(())
    }

    /// Applies a durable write to the graph and its copy; `wordings` are those of its new notes. Call under the write
    /// lock, in the order of the revisions.
    pub(super) fn apply_write(&self, rev: u64, write: NotesWrite, wordings: Vec<Arc<Wording>>) {
        let (created, queued) = (write.notes.len() as u64, write.enrich.len() as u64);
        self.enrichment.subtract(write.enriched.len() as u64);
        let changes = Changes::of(rev, write);
        if changes.len() > 0 {
            let copied = self.copy(&changes);
            self.graph_mut().apply(changes);
            self.recent().add(rev, wordings);
            if copied {
                // One that stays is read again at the next start, with all that follows.
                self.shorten_copy(rev).ok();
            }
        }
        self.created.fetch_add(created, Ordering::Relaxed);
        if queued > 0 {
            self.enrichment.add(queued);
        }
    }

    /// Appends changes to the copy; whether it should be written anew. A copy that can't be written is given up: what it
    /// lacks is read from the database at the next start.
    fn copy(&self, changes: &Changes) -> bool {
        let mut journal = self.journal.lock();
        match journal.as_mut().map(|journal| journal.append(changes)) {
            None => false,
            Some(Ok(())) => journal.as_ref().is_some_and(GraphJournal::is_long),
            Some(Err(error)) => {
                tracing::warn!(%error, "the copy of the graph is no longer written");
                *journal = None;
                false
            }
        }
    }

    /// Writes the copy anew from the graph, which shows everything up to this revision: nothing else is left in it. A copy that
    /// can't be written is removed.
    ///
    /// # Errors
    /// When there is one still, which may hold what the graph no longer has.
    pub(super) fn shorten_copy(&self, rev: u64) -> io::Result<()> {
        let (mut journal, graph) = (self.journal.lock(), self.graph());
        match journal.as_mut().map(|journal| journal.shorten(&graph, rev)) {
            Some(Ok(())) => return Ok(()),
            Some(Err(error)) => {
                tracing::warn!(%error, "the copy of the graph is no longer written");
                *journal = None;
            }
            None => {}
        }
        self.copy.as_ref().map_or(Ok(()), GraphCopy::discard)
    }

    pub(super) fn graph(&self) -> RwLockReadGuard<'_, MemoryGraph> {
        self.graph.read()
    }

    pub(super) fn graph_mut(&self) -> RwLockWriteGuard<'_, MemoryGraph> {
        self.graph.write()
    }

    pub(super) fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock()
    }

    pub(super) fn recent(&self) -> MutexGuard<'_, RecentNotes> {
        self.recent.lock()
    }
}

impl NoteCore {
    /// The index of the notes, caught up with the store and kept open.
    pub(super) async fn notes_index(&self, memory: &Memory) -> Result<Arc<WorkspaceIndex>, DomainError> {
        let open = || self.notes.index_of(memory.workspace);
        memory.index.get_or_try_init(open).await.cloned()
    }
}
