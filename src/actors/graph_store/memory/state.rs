//! In-process state of the memory beside the database: its graph, and the pending requests.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tokio::sync::{Notify, OnceCell, OwnedSemaphorePermit, oneshot};
use uuid::Uuid;

use super::graph::MemoryGraph;
use super::prepare::Prepared;
use super::tuning::TuningSource;
use crate::domain::error::DomainError;
use crate::domain::memory::note::Remembered;
use crate::store::Store;

/// Outcome for each note of one request.
pub(super) type Outcomes = Vec<Result<Remembered, DomainError>>;
/// Channel to the caller that waits for the outcome of a request.
pub(super) type Asker = oneshot::Sender<Result<Outcomes, DomainError>>;

/// Notes of one request waiting for their group.
pub(super) struct Pending {
    pub(super) notes: Vec<Result<Prepared, DomainError>>,
    pub(super) from: IpAddr,
    pub(super) done: Asker,
    pub(super) _permit: Option<OwnedSemaphorePermit>,
}

/// In-process state of the memory.
pub struct Memory {
    pub(super) workspace: Uuid,
    pub(super) tuning: TuningSource,
    pub(super) graph: Arc<RwLock<MemoryGraph>>,
    loaded: OnceCell<()>,
    /// Number of lost database replies when the graph was last read.
    losses: AtomicU64,
    /// Requests waiting for the next group.
    waiting: Mutex<Vec<Pending>>,
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
    pub async fn rung(&self) {
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

    pub(super) fn done(&self, notes: u64) {
        self.depth
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |depth| {
                Some(depth.saturating_sub(notes))
            })
            .ok();
    }
}

impl Memory {
    /// The memory of one workspace.
    pub fn new(workspace: Uuid, tuning: TuningSource) -> Self {
        Self {
            workspace,
            tuning,
            graph: Arc::default(),
            loaded: OnceCell::new(),
            losses: AtomicU64::new(0),
            waiting: Mutex::default(),
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
    /// must not create a duplicate. Call under the write lock.
    pub(super) async fn refresh(&self, store: &Store) -> Result<(), DomainError> {
        if self.losses.load(Ordering::Acquire) == store.losses() {
            return Ok(());
        }
        self.read(store).await
    }

    async fn read(&self, store: &Store) -> Result<(), DomainError> {
        let ws = self.workspace;
        let losses = store.losses();
        let (heads, entities, relations, waiting) = tokio::try_join!(
            store.note_heads(ws),
            store.entities(ws),
            store.relations(ws),
            store.count_waiting(ws),
        )?;
        *self.graph_mut() = MemoryGraph::of(heads, entities, relations);
        self.enrichment.set(waiting);
        self.losses.store(losses, Ordering::Release);
        Ok(())
    }

    pub(super) fn graph(&self) -> RwLockReadGuard<'_, MemoryGraph> {
        self.graph.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn graph_mut(&self) -> RwLockWriteGuard<'_, MemoryGraph> {
        self.graph.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn queue(&self) -> MutexGuard<'_, Vec<Pending>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
