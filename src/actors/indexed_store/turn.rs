//! The turn to write to a workspace.
//!
//! Rule: a write is planned after the last write of its workspace, and its transaction takes the next number. Within a
//! process the writes of a workspace take turns. Where another process has taken that number, the write is refused; what
//! that process wrote is indexed, and the write is planned again. So no plan misses what was written before it, whatever
//! process wrote that.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::MutexGuard;
use tokio::time::Instant;
use uuid::Uuid;

use super::{IndexedStore, Source, WorkspaceState};
use crate::domain::error::DomainError;

/// How often a write is planned: each further time another process was faster.
const PLANS: u32 = 50;
/// After so many plans the other processes are asked to wait.
const PATIENT_PLANS: u32 = 2;
/// How long they are asked to wait, and how long they do.
const WISH: Duration = Duration::from_secs(60);
const COURTESY: Duration = Duration::from_secs(30);
/// How often they look whether they still have to.
const LOOK: Duration = Duration::from_millis(50);

/// The turn to write to a workspace; the next one comes when this one is dropped.
pub(in crate::actors) struct Turn<'a, S: Source> {
    store: &'a IndexedStore<S>,
    ws: Uuid,
    state: &'a WorkspaceState,
    plans: u32,
    /// Whether other processes have been asked to wait.
    has_asked: bool,
    _writing: MutexGuard<'a, ()>,
}

impl<S: Source> Drop for Turn<'_, S> {
    fn drop(&mut self) {
        if self.has_asked
            && let Ok(runtime) = Handle::try_current()
        {
            let (store, ws, process) = (Arc::clone(&self.store.store), self.ws, self.store.process);
            // Without it they wait until the wish is too old.
            runtime.spawn(async move { store.end_turn(ws, process).await });
        }
    }
}

impl<S: Source> IndexedStore<S> {
    /// Waits for the turn to write to a workspace; its index has caught up then.
    pub(in crate::actors) async fn turn<'a>(
        &'a self,
        ws: Uuid,
        state: &'a WorkspaceState,
    ) -> Result<Turn<'a, S>, DomainError> {
        state.caught_up.get_or_try_init(|| self.catch_up(ws)).await?;
        let turn = Turn {
            store: self,
            ws,
            state,
            plans: 0,
            has_asked: false,
            _writing: state.writing.lock().await,
        };
        state.check()?;
        if self.environment.shared_store {
            let until = Instant::now() + COURTESY;
            while self.store.is_turn_of_another(ws, self.process).await? && Instant::now() < until {
                tokio::time::sleep(LOOK).await;
            }
        }
        Ok(turn)
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
        if !matches!(error, DomainError::Overtaken) || self.plans >= PLANS {
            return Err(error);
        }
        if self.plans >= PATIENT_PLANS {
            self.has_asked = true;
            let (ws, process) = (self.ws, self.store.process);
            self.store.store.ask_for_turn(ws, process, WISH).await?;
        }
        self.follow().await
    }

    /// Indexes what others have written since the last write that this process knows of.
    pub(in crate::actors) async fn follow(&self) -> Result<(), DomainError> {
        self.store.follow_to_end(self.ws, self.state).await
    }
}
