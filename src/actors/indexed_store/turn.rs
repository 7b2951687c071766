//! The turn to write to a workspace.
//!
//! Rule: a write is planned after the last write of its workspace, and its transaction takes the next number. Within a
//! process the writes of a workspace take turns. Where another process has taken the number, the write is refused; what
//! that process wrote is indexed, and the write is planned again. So no plan misses what was written before it, whatever
//! process wrote that.

use tokio::sync::MutexGuard;
use uuid::Uuid;

use super::{IndexedStore, Source, WorkspaceState};
use crate::domain::error::DomainError;

/// How often a write is planned: each further time another process was faster.
const PLANS: u32 = 50;

/// The turn to write to a workspace; the next one comes when this one is dropped.
pub(in crate::actors) struct Turn<'a, S> {
    store: &'a IndexedStore<S>,
    ws: Uuid,
    state: &'a WorkspaceState,
    plans: u32,
    _writing: MutexGuard<'a, ()>,
}

impl<S: Source> IndexedStore<S> {
    /// Waits for the turn to write to a workspace; its index has caught up then.
    pub(in crate::actors) async fn turn<'a>(
        &'a self,
        ws: Uuid,
        state: &'a WorkspaceState,
    ) -> Result<Turn<'a, S>, DomainError> {
        state.caught_up.get_or_try_init(|| self.catch_up(ws)).await?;
        Ok(Turn {
            store: self,
            ws,
            state,
            plans: 0,
            _writing: state.writing.lock().await,
        })
    }
}

impl<S: Source> Turn<'_, S> {
    /// The number of the last write.
    pub(in crate::actors) fn after(&self) -> u64 {
        self.state.backlog().highest
    }

    /// Records the number of a write that is durable. It counts as not indexed until
    /// [`IndexedStore::record_indexed`] is told of it.
    pub(in crate::actors) fn record(&self, number: u64) {
        self.state.record_durable(number);
    }

    /// Records the number of a write that changed nothing that is indexed.
    pub(in crate::actors) fn record_unindexed(&self, number: u64) {
        let mut backlog = self.state.backlog();
        backlog.highest = backlog.highest.max(number);
    }

    /// Prepares for planning a write again that failed because others were faster.
    ///
    /// # Errors
    /// The error, if it is another one, or after too many plans.
    pub(in crate::actors) async fn plan_again(&mut self, error: DomainError) -> Result<(), DomainError> {
        self.plans += 1;
        if matches!(error, DomainError::Overtaken) && self.plans < PLANS {
            return self.follow().await;
        }
        Err(error)
    }

    /// Indexes what others have written since the last write that this process knows of.
    pub(in crate::actors) async fn follow(&self) -> Result<(), DomainError> {
        self.store.follow_to_end(self.ws, self.state).await
    }
}
