//! The actors of a service. Starting each of them here gives it supervision, metrics and settings.

use std::sync::Arc;

use actix::{Addr, ArbiterHandle};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::handle::{ActorHandle, ActorStatus, Restartable, Stateful};
use super::keeper;
use super::worker::{ActorCore, Worker, WorkerHandle};
use crate::config::ActorSettings;

/// Starts the actors of one service, then supervises all of them.
#[must_use = "actors are kept alive by `keep`"]
pub struct Roster {
    /// The limits of an actor, by its name.
    limits: Box<dyn Fn(&'static str) -> ActorSettings>,
    arbiter: ArbiterHandle,
    runtime: Handle,
    kept: Vec<Arc<dyn Restartable>>,
}

/// How busy the actors of a service are.
#[derive(Clone)]
pub struct ActorList(Arc<[Arc<dyn Restartable>]>);

impl ActorList {
    /// Each actor, in the order in which they were started.
    pub fn statuses(&self) -> Vec<ActorStatus> {
        self.0.iter().map(|actor| actor.status()).collect()
    }
}

impl Roster {
    /// Must be called inside an actix system on a multi-thread runtime; `limits` returns the limits of each actor.
    pub fn new(limits: impl Fn(&'static str) -> ActorSettings + 'static) -> Self {
        Self {
            limits: Box::new(limits),
            arbiter: actix::Arbiter::current(),
            runtime: Handle::current(),
            kept: Vec::new(),
        }
    }

    /// Starts an actor that runs its requests concurrently.
    pub fn worker<C: ActorCore>(&mut self, core: &Arc<C>) -> WorkerHandle<C> {
        let (core, runtime) = (Arc::clone(core), self.runtime.clone());
        self.stateful(move || Worker::new(Arc::clone(&core), runtime.clone()))
    }

    /// Starts an actor with state of its own; `make` builds the state, again after each restart.
    pub fn stateful<A: Stateful>(&mut self, make: impl Fn() -> A + Send + Sync + 'static) -> ActorHandle<A> {
        let settings = (self.limits)(A::NAME);
        let (arbiter, make) = (self.arbiter.clone(), Arc::new(make));
        let start = move || -> Addr<A> {
            let make = Arc::clone(&make);
            A::start_in_arbiter(&arbiter, move |context| {
                context.set_mailbox_capacity(settings.mailbox.max(1));
                make()
            })
        };
        let handle = ActorHandle::start(A::NAME, settings, Box::new(start));
        self.kept.push(Arc::new(handle.clone()));
        handle
    }

    /// Whether the service has an actor of this name.
    pub fn has(&self, name: &str) -> bool {
        self.kept.iter().any(|actor| actor.name() == name)
    }

    /// The actors that were started so far.
    pub fn list(&self) -> ActorList {
        ActorList(self.kept.as_slice().into())
    }

    /// Restarts each actor that dies. `give_up` is called with the name of an actor that dies more than `max_restarts`
    /// times a minute.
    pub fn keep(self, max_restarts: u32, give_up: impl Fn(&'static str) + Send + 'static) -> JoinHandle<()> {
        tokio::spawn(keeper::watch(self.kept, max_restarts, give_up))
    }
}
