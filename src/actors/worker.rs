//! Actors that run their requests concurrently over a shared core, as most of them do.
//!
//! A message, its reply and its work are defined together as one [`Work`]. An actor that changes state of its own
//! between messages is an `actix::Actor` with handlers instead.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, Context, Handler};
use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use uuid::Uuid;

pub use super::handle::Access;
use super::handle::{ActorHandle, Job, Request, Stateful};
use super::job::{self, TaskReply};
pub use crate::capacity::Tenant;
use crate::capacity::bulk_runtime_or;
use crate::domain::error::DomainError;

/// State shared by all requests to one actor; it survives a restart of the actor.
pub trait ActorCore: Send + Sync + 'static {
    /// Whom its requests are made for: a workspace (`Uuid`), a workspace or nobody ([`Tenant`]), or always nobody (`()`).
    type Tenant: Into<TenantOf>;

    /// The actor's name in the settings (`[actors.<name>]`), in metrics and in the log.
    const NAME: &'static str;

    /// Background tasks that run for as long as the actor lives.
    fn upkeep(self: &Arc<Self>) -> Vec<BoxFuture<'static, ()>> {
        Vec::new()
    }
}

/// The tenant of a request, from whatever its actor's requests say of it.
pub struct TenantOf(Tenant);

impl From<()> for TenantOf {
    fn from((): ()) -> Self {
        Self(None)
    }
}

impl From<Uuid> for TenantOf {
    fn from(workspace: Uuid) -> Self {
        Self(Some(workspace))
    }
}

impl From<Tenant> for TenantOf {
    fn from(tenant: Tenant) -> Self {
        Self(tenant)
    }
}

/// A request to a [`Worker`]: an imperative phrase, its reply and its work.
pub trait Work: Send + 'static {
    type Core: ActorCore;
    type Reply: Send + 'static;
    const NAME: &'static str;
    const ACCESS: Access;

    /// Workspace the request is made for: permits are shared out among workspaces.
    fn tenant(&self) -> <Self::Core as ActorCore>::Tenant;

    /// Whether the work is large enough to step back behind other requests: see [`crate::capacity::bulk_runtime_or`].
    fn is_bulk(&self) -> bool {
        false
    }

    /// Runs on the multi-thread runtime, to completion even if the caller goes away.
    fn run(self, core: Arc<Self::Core>) -> impl Future<Output = Result<Self::Reply, DomainError>> + Send;
}

impl<W: Work> Request for W {
    type Reply = W::Reply;
    const NAME: &'static str = W::NAME;
    const ACCESS: Access = W::ACCESS;

    fn tenant(&self) -> Tenant {
        let TenantOf(tenant) = Work::tenant(self).into();
        tenant
    }
}

/// Handle to a [`Worker`] over `C`.
pub type WorkerHandle<C> = ActorHandle<Worker<C>>;

/// An actor that runs its requests over a shared core.
pub struct Worker<C> {
    core: Arc<C>,
    runtime: Handle,
    upkeep: JoinSet<()>,
}

impl<C: ActorCore> Worker<C> {
    pub(super) fn new(core: Arc<C>, runtime: Handle) -> Self {
        Self {
            core,
            runtime,
            upkeep: JoinSet::new(),
        }
    }
}

impl<C: ActorCore> Stateful for Worker<C> {
    const NAME: &'static str = C::NAME;
}

impl<C: ActorCore> Actor for Worker<C> {
    type Context = Context<Self>;

    /// Background tasks end with the actor: dropping a `JoinSet` aborts its tasks.
    fn started(&mut self, _: &mut Self::Context) {
        for task in self.core.upkeep() {
            self.upkeep.spawn_on(task, &self.runtime);
        }
    }
}

impl<W: Work> Handler<Job<W>> for Worker<W::Core> {
    type Result = TaskReply<W::Reply>;

    fn handle(&mut self, job: Job<W>, _: &mut Self::Context) -> Self::Result {
        let (work, guard, span) = job.open();
        let core = Arc::clone(&self.core);
        let runtime = if work.is_bulk() {
            bulk_runtime_or(&self.runtime)
        } else {
            &self.runtime
        };
        job::run(runtime, guard, span, work.run(core))
    }
}

/// A task that runs at once and again after each `interval`.
pub(super) fn every<F: Future<Output = ()> + Send + 'static>(
    interval: Duration,
    work: impl Fn() -> F + Send + 'static,
) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let mut ticks = tokio::time::interval(interval);
        loop {
            ticks.tick().await;
            work().await;
        }
    })
}
