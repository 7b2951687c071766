//! State of one workspace: the order of its writes, and those its index does not show yet.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, OnceCell};

use crate::domain::error::DomainError;

/// Longest wait for the index to show earlier commits.
const SETTLING: Duration = Duration::from_secs(5);

/// One workspace: its index once it has caught up, and the writes in flight to it.
#[derive(Default)]
pub(in crate::actors) struct WorkspaceState {
    /// Held while this process writes to the workspace; see [`super::Turn`].
    pub(super) writing: tokio::sync::Mutex<()>,
    pub(in crate::actors) caught_up: OnceCell<()>,
    unindexed: Mutex<IndexBacklog>,
    /// Notified whenever a revision has reached the index.
    pub(in crate::actors) indexed: Notify,
    /// Whether the workspace is no more, so that nothing is written to it and no index of it opened.
    pub(super) is_gone: AtomicBool,
}

/// Revisions that are durable but not yet fully indexed.
#[derive(Default)]
pub(in crate::actors) struct IndexBacklog {
    /// The first number of each write, or of each run of writes of other processes, that is being indexed.
    pub(in crate::actors) revs: BTreeSet<u64>,
    /// The number of the last write that this process knows of; it knows all before it.
    pub(in crate::actors) highest: u64,
    /// First revision with nodes that have no vector yet.
    pub(in crate::actors) without_vectors: Option<u64>,
    /// First revision of the vector fill in progress.
    pub(in crate::actors) filling: Option<u64>,
    /// Whether some of those nodes are not in the index at all, not even for word search.
    pub(in crate::actors) behind: bool,
}

impl IndexBacklog {
    /// The revision up to which the index is complete once `own` is indexed too.
    pub(in crate::actors) fn mark(&self, own: u64) -> u64 {
        let first = self.revs.iter().copied().find(|rev| *rev != own);
        let open = [first, self.without_vectors, self.filling]
            .into_iter()
            .flatten()
            .min();
        open.map_or(self.highest, |open| open.saturating_sub(1))
    }

    pub(in crate::actors) fn lacks_vectors_from(&mut self, rev: u64) {
        self.without_vectors = Some(self.without_vectors.map_or(rev, |earlier| earlier.min(rev)));
    }
}

impl WorkspaceState {
    /// # Errors
    /// If the workspace is no more.
    pub(super) fn check(&self) -> Result<(), DomainError> {
        match self.is_gone.load(Ordering::Acquire) {
            true => Err(DomainError::NotFound("workspace")),
            false => Ok(()),
        }
    }

    /// Waits until the index shows everything that is durable. Call under the write lock, with nothing in flight: nothing
    /// new becomes durable then.
    ///
    /// # Errors
    /// `Busy` when it takes too long: continuing would duplicate what the index does not show yet.
    pub(in crate::actors) async fn wait_until_indexed(&self) -> Result<(), DomainError> {
        self.once(|unindexed| unindexed.revs.is_empty() && !unindexed.behind)
            .await
    }

    /// Waits for a state of the index.
    async fn once(&self, is_so: impl Fn(&IndexBacklog) -> bool) -> Result<(), DomainError> {
        let so = async {
            loop {
                let indexed = self.indexed.notified();
                if is_so(&self.backlog()) {
                    return;
                }
                indexed.await;
            }
        };
        let waited = tokio::time::timeout(SETTLING, so).await;
        waited.map_err(|_| DomainError::Busy {
            actor: "search index",
        })
    }

    /// The revision up to which a search sees everything that is durable. Waits while nodes are missing in the index.
    ///
    /// # Errors
    /// `Busy` when that takes too long.
    pub(in crate::actors) async fn wait_until_visible(&self) -> Result<u64, DomainError> {
        self.once(|unindexed| !unindexed.behind).await?;
        let unindexed = self.backlog();
        let first = unindexed.revs.first();
        Ok(first.map_or(unindexed.highest, |rev| rev.saturating_sub(1)))
    }

    /// Records that writes of other processes, from this number to that one, are about to be indexed.
    pub(super) fn record_followed(&self, first: u64, last: u64) {
        let mut unindexed = self.backlog();
        unindexed.revs.insert(first);
        unindexed.highest = unindexed.highest.max(last);
    }

    /// Records that a revision is durable; call before releasing the workspace's write lock.
    pub(in crate::actors) fn record_durable(&self, rev: u64) {
        let mut unindexed = self.backlog();
        unindexed.revs.insert(rev);
        unindexed.highest = unindexed.highest.max(rev);
    }

    /// The revision up to which the index is complete once `rev` is indexed too.
    pub(in crate::actors) fn mark(&self, rev: u64) -> u64 {
        self.backlog().mark(rev)
    }

    pub(in crate::actors) fn backlog(&self) -> MutexGuard<'_, IndexBacklog> {
        self.unindexed.lock()
    }
}
