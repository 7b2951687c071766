//! State shared by all requests to the graph.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::Notify;
use uuid::Uuid;

use super::changes::Nodes;
use super::merges::MergeCache;
use crate::actors::audit_writer::AuditHandle;
use crate::actors::indexed_store::{IndexedStore, StoreEnvironment, upkeep};
use crate::actors::worker::ActorCore;
use crate::search::SearchIndex;
use crate::store::Store;
use crate::warninglists::WarninglistsHandle;

/// Nodes of a write turned into documents, embedded and indexed at a time.
pub(super) const NODES_PER_PAGE: usize = 500;

/// State of the graph actor.
pub struct GraphCore {
    pub(super) graph: IndexedStore<Nodes>,
    pub(super) warninglists: WarninglistsHandle,
    /// Notified when an erasure was asked for.
    pub(super) erasing: Notify,
    /// The workspaces whose lists of additions are being brought up to date.
    pub(super) keeping_lists: parking_lot::Mutex<HashSet<Uuid>>,
}

impl GraphCore {
    /// The graph over an opened store and index.
    pub fn new(
        store: Arc<Store>,
        index: Arc<SearchIndex>,
        audit: AuditHandle,
        environment: StoreEnvironment,
    ) -> Self {
        let source = Nodes {
            store: Arc::clone(&store),
            merges: MergeCache::default(),
        };
        Self {
            graph: IndexedStore::new(store, index, source, audit, environment),
            warninglists: WarninglistsHandle::default(),
            erasing: Notify::new(),
            keeping_lists: parking_lot::Mutex::default(),
        }
    }

    /// The graph with these warninglists; without any, no indicator is on one.
    #[must_use]
    pub fn with_warninglists(mut self, warninglists: WarninglistsHandle) -> Self {
        self.warninglists = warninglists;
        self
    }

    /// Opens the indexes of all workspaces and brings them up to date, one after the other.
    pub async fn warm_up(&self) {
        for ws in self.graph.workspaces().await {
            if self.graph.warm_up(ws).await
                && let Err(error) = self.release_waiting(ws).await
            {
                tracing::error!(workspace = %ws, ?error, "marking held objects anew failed");
            }
            if let Err(error) = self.fill_list(ws).await {
                tracing::error!(workspace = %ws, ?error, "filling the list of additions failed");
            }
        }
    }

    /// Releases the memory of index writers that have been idle for `idle`.
    pub async fn close_idle_indexes(&self, idle: Duration) {
        self.graph.close_idle_indexes(idle).await;
    }
}

impl ActorCore for GraphCore {
    type Tenant = Uuid;

    const NAME: &'static str = "graph_store";

    fn upkeep(self: &Arc<Self>) -> Vec<BoxFuture<'static, ()>> {
        let (warm, erasing) = (Arc::clone(self), Arc::clone(self));
        let mut tasks = upkeep(self, |core| &core.graph);
        tasks.insert(0, Box::pin(async move { warm.warm_up().await }));
        tasks.push(Box::pin(async move { erasing.run_erasures().await }));
        tasks
    }
}
