//! State shared by all requests to the notes.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::documents::Notes;
use super::state::Memory;
use crate::actors::audit_writer::AuditHandle;
use crate::actors::indexed_store::{IndexedStore, StoreEnvironment, upkeep};
use crate::actors::worker::ActorCore;
use crate::domain::error::DomainError;
use crate::search::SearchIndex;
use crate::store::Store;
use crate::warninglists::WarninglistsHandle;

/// State of the note actor.
pub struct NoteCore {
    pub(super) notes: IndexedStore<Notes>,
    pub(super) memory: Memory,
    pub(super) warninglists: WarninglistsHandle,
}

impl NoteCore {
    /// The notes over an opened store and index.
    pub fn new(
        store: Arc<Store>,
        index: Arc<SearchIndex>,
        audit: AuditHandle,
        environment: StoreEnvironment,
        memory: Memory,
    ) -> Self {
        let source = Notes {
            store: Arc::clone(&store),
        };
        Self {
            notes: IndexedStore::new(store, index, source, audit, environment),
            memory,
            warninglists: WarninglistsHandle::default(),
        }
    }

    /// The notes with these warninglists; without any, no value is on one.
    #[must_use]
    pub fn with_warninglists(mut self, warninglists: WarninglistsHandle) -> Self {
        self.warninglists = warninglists;
        self
    }

    /// The memory, loaded on first use.
    pub(super) async fn memory(&self) -> Result<&Memory, DomainError> {
        self.memory.load(&self.notes.store).await?;
        Ok(&self.memory)
    }

    /// Loads the memory and opens its index, side by side, ahead of the first request.
    pub async fn open(&self) -> Result<(), DomainError> {
        let memory = &self.memory;
        tokio::try_join!(memory.load(&self.notes.store), self.notes_index(memory))?;
        Ok(())
    }

    /// Releases the memory of an index writer that has been idle for `idle`.
    pub async fn close_idle_index(&self, idle: Duration) {
        self.notes.close_idle_indexes(idle).await;
    }
}

impl ActorCore for NoteCore {
    type Tenant = ();

    // The name of its section in the settings, as clients of earlier versions wrote it.
    const NAME: &'static str = "graph_store";

    fn upkeep(self: &Arc<Self>) -> Vec<BoxFuture<'static, ()>> {
        let warm = Arc::clone(self);
        let mut tasks = upkeep(self, |core| &core.notes);
        let warm_up = async move {
            warm.notes.warm_up(warm.memory.workspace).await;
            if let Err(error) = warm.finish_erasures().await {
                tracing::warn!(
                    ?error,
                    "an erasure is not finished; it is tried again at the next start"
                );
            }
        };
        tasks.insert(0, Box::pin(warm_up));
        tasks
    }
}
