//! What every handle shares: gate, waiting line, time-out, metrics, restart.
//!
//! An actix mailbox does not push back, so the limits live here: `gate` requests run at a time, `mailbox`
//! more may wait, and what comes on top is refused with `Busy`. Gates and line are shared out among workspaces
//! ([`Shares`]). A write waits only for a place that is its workspace's share while others hold it.

use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use actix::dev::ToEnvelope;
use actix::{Actor, Addr, Context, Handler, Message};
use metrics::{counter, gauge, histogram};
use tracing::Span;

use crate::capacity::{Load, Party, Share, Shares};
use crate::config::ActorSettings;
use crate::domain::error::DomainError;

/// Whether a request may wait for its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Waits for a permit, bounded by the time-out.
    Read,
    /// Takes a permit or is refused; waits only where others hold what is its workspace's share.
    Write,
}

/// A request to an actor: an imperative phrase with its reply.
pub trait Request: Send + 'static {
    type Reply: Send + 'static;
    const NAME: &'static str;
    const ACCESS: Access;

    /// Whose request it is: permits are shared out among workspaces.
    fn party(&self) -> Party;
}

/// A request on its way, with the permit it keeps until the work is done.
pub struct Job<M> {
    body: M,
    guard: InFlight,
    span: Span,
}

impl<M: Request> Message for Job<M> {
    type Result = Result<M::Reply, DomainError>;
}

impl<M> Job<M> {
    /// Takes the request apart; the guard must live as long as the work.
    pub fn open(self) -> (M, InFlight, Span) {
        (self.body, self.guard, self.span)
    }
}

/// Gives the permit and what the request was made of back and keeps the figures, also when the work panics.
#[derive(Debug)]
pub struct InFlight {
    _permit: Share,
    _load: Option<Load>,
    actor: &'static str,
    request: &'static str,
    since: Instant,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        gauge!("actor_in_flight", "actor" => self.actor).decrement(1.0);
        let seconds = self.since.elapsed().as_secs_f64();
        histogram!("actor_latency_seconds", "actor" => self.actor, "request" => self.request).record(seconds);
    }
}

/// Starts an actor, and starts it again.
pub type Factory<A> = Box<dyn Fn() -> Addr<A> + Send + Sync>;

/// The way to an actor.
pub struct ActorHandle<A: Actor> {
    inner: Arc<Inner<A>>,
}

struct Inner<A: Actor> {
    name: &'static str,
    addr: RwLock<Addr<A>>,
    factory: Factory<A>,
    reads: Shares,
    writes: Shares,
    settings: ActorSettings,
}

impl<A: Actor> Clone for ActorHandle<A> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
        }
    }
}

impl<A: Actor<Context = Context<A>>> ActorHandle<A> {
    /// Starts the actor.
    pub fn start(name: &'static str, settings: ActorSettings, factory: Factory<A>) -> Self {
        let inner = Inner {
            name,
            addr: RwLock::new(factory()),
            factory,
            reads: Shares::new(settings.gate, 1, settings.mailbox),
            // Only who is below its share waits, so the number of workspaces bounds the line.
            writes: Shares::new(settings.write_gate, 1, usize::MAX),
            settings,
        };
        gauge!("actor_in_flight", "actor" => name).set(0.0);
        gauge!("actor_mailbox_depth", "actor" => name).set(0.0);
        counter!("actor_rejected_total", "actor" => name).absolute(0);
        counter!("actor_restarts_total", "actor" => name).absolute(0);
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Sends a request and waits for its answer.
    ///
    /// # Errors
    /// `Busy` when the gate is full or the actor is being restarted, `Timeout` when no answer came in time; a
    /// write that timed out may still take effect.
    pub async fn call<M>(&self, body: M) -> Result<M::Reply, DomainError>
    where
        M: Request,
        A: Handler<Job<M>>,
        A::Context: ToEnvelope<A, Job<M>>,
    {
        self.send(body, None).await
    }

    /// As [`ActorHandle::call`] for a request made of a body: its load is given back when the work ends, also when
    /// the caller went away before.
    ///
    /// # Errors
    /// As [`ActorHandle::call`].
    pub async fn call_with<M>(&self, body: M, load: Load) -> Result<M::Reply, DomainError>
    where
        M: Request,
        A: Handler<Job<M>>,
        A::Context: ToEnvelope<A, Job<M>>,
    {
        self.send(body, Some(load)).await
    }

    async fn send<M>(&self, body: M, load: Option<Load>) -> Result<M::Reply, DomainError>
    where
        M: Request,
        A: Handler<Job<M>>,
        A::Context: ToEnvelope<A, Job<M>>,
    {
        let actor = self.inner.name;
        let limit = match M::ACCESS {
            Access::Read => self.inner.settings.timeout_ms,
            Access::Write => self.inner.settings.write_timeout_ms,
        };
        let answer = async {
            let permit = self.permit(M::ACCESS, body.party()).await?;
            gauge!("actor_in_flight", "actor" => actor).increment(1.0);
            let guard = InFlight {
                _permit: permit,
                _load: load,
                actor,
                request: M::NAME,
                since: Instant::now(),
            };
            let addr = self.addr();
            addr.send(Job {
                body,
                guard,
                span: Span::current(),
            })
            .await
            .map_err(|error| {
                tracing::error!(actor, request = M::NAME, %error, "actor is gone");
                DomainError::Busy { actor }
            })?
        };
        match tokio::time::timeout(Duration::from_millis(limit), answer).await {
            Ok(result) => result,
            Err(_) => {
                self.rejected();
                Err(DomainError::Timeout { actor })
            }
        }
    }

    async fn permit(&self, access: Access, party: Party) -> Result<Share, DomainError> {
        let actor = self.inner.name;
        let permit = match access {
            Access::Read => {
                let _waiting = Waiting::new(actor);
                self.inner.reads.take(party).await
            }
            Access::Write => {
                let _waiting = Waiting::new(actor);
                // A write that waits has done nothing yet, so it may be given up sooner than one at work.
                let patience = Duration::from_millis(self.inner.settings.timeout_ms);
                let taken = tokio::time::timeout(patience, self.inner.writes.take_own(party)).await;
                taken.ok().flatten()
            }
        };
        permit.ok_or_else(|| {
            self.rejected();
            DomainError::Busy { actor }
        })
    }

    fn rejected(&self) {
        counter!("actor_rejected_total", "actor" => self.inner.name).increment(1);
    }

    fn addr(&self) -> Addr<A> {
        self.inner
            .addr
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone()
    }
}

/// Counts those that are on their way to a permit.
struct Waiting {
    actor: &'static str,
}

impl Waiting {
    fn new(actor: &'static str) -> Self {
        gauge!("actor_mailbox_depth", "actor" => actor).increment(1.0);
        Self { actor }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        gauge!("actor_mailbox_depth", "actor" => self.actor).decrement(1.0);
    }
}

/// What the keeper needs of a handle, whatever its actor.
pub trait Kept: Send + Sync {
    /// The actor's name.
    fn name(&self) -> &'static str;
    /// Starts the actor again if it is gone; true when it had to.
    fn revive(&self) -> bool;
}

impl<A: Actor<Context = Context<A>>> Kept for ActorHandle<A> {
    fn name(&self) -> &'static str {
        self.inner.name
    }

    fn revive(&self) -> bool {
        if self.addr().connected() {
            return false;
        }
        let mut addr = self
            .inner
            .addr
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if addr.connected() {
            return false;
        }
        *addr = (self.inner.factory)();
        counter!("actor_restarts_total", "actor" => self.inner.name).increment(1);
        true
    }
}

#[cfg(test)]
mod tests;
