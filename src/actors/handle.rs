//! What every handle provides: concurrency limit, queue, time-out, metrics and restart.
//!
//! An actix mailbox applies no backpressure, so the limits are enforced here: `gate` requests run at a time,
//! `mailbox` more may wait, and any beyond that are refused with `Busy`. Permits and queue slots are shared out among
//! workspaces ([`Shares`]). A write waits only while other workspaces hold a permit that belongs to its own
//! workspace's share.

mod status;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use actix::dev::ToEnvelope;
use actix::{Actor, Addr, Context, Handler, Message};
use metrics::{counter, gauge, histogram};
use parking_lot::RwLock;
use tracing::{Instrument, Span};

use self::status::WaitTimes;
pub use self::status::{ActorStatus, GateStatus};
use crate::capacity::{Load, Share, Shares, Tenant};
use crate::config::ActorSettings;
use crate::domain::error::DomainError;
use crate::telemetry::traces;

/// Whether a request may wait for a permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Waits for a permit, up to the time-out.
    Read,
    /// Takes a permit or is refused; waits only while others hold a permit of its workspace's share.
    Write,
}

/// A request to an actor: an imperative phrase with its reply.
pub trait Request: Send + 'static {
    type Reply: Send + 'static;
    const NAME: &'static str;
    const ACCESS: Access;

    /// Workspace the request is made for: permits are shared out among workspaces.
    fn tenant(&self) -> Tenant;
}

/// A request in flight, with the permit it keeps until the work is done.
pub struct Job<M> {
    body: M,
    guard: InFlight,
    span: Span,
}

impl<M: Request> Message for Job<M> {
    type Result = Result<M::Reply, DomainError>;
}

impl<M> Job<M> {
    /// Splits the job into its parts; the guard must live as long as the work.
    pub fn open(self) -> (M, InFlight, Span) {
        (self.body, self.guard, traces::of_work(self.span))
    }
}

/// Releases the permit and the request's load and records the metrics when dropped, even if the work panics.
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

/// An actor with state of its own, which handles one message at a time.
pub trait Stateful: Actor<Context = Context<Self>> {
    /// The actor's name in the settings (`[actors.<name>]`), in metrics and in the log.
    const NAME: &'static str;
}

/// Starts an actor, and restarts it.
pub type Factory<A> = Box<dyn Fn() -> Addr<A> + Send + Sync>;

/// Handle to an actor.
pub struct ActorHandle<A: Actor> {
    inner: Arc<Inner<A>>,
}

struct Inner<A: Actor> {
    name: &'static str,
    addr: RwLock<Addr<A>>,
    factory: Factory<A>,
    reads: Gate,
    writes: Gate,
    restarts: AtomicU64,
    settings: ActorSettings,
}

/// The permits for one kind of request, and what became of those who asked for one.
struct Gate {
    permits: Shares,
    waits: WaitTimes,
    refused: AtomicU64,
}

impl Gate {
    fn new(permits: Shares) -> Self {
        Self {
            permits,
            waits: WaitTimes::default(),
            refused: AtomicU64::new(0),
        }
    }

    fn status(&self) -> GateStatus {
        GateStatus {
            in_flight: self.permits.held(),
            waiting: self.permits.waiting(),
            refused: self.refused.load(Ordering::Relaxed),
            wait_p95: self.waits.p95(),
            shares: self.permits.shares(),
        }
    }
}

impl<A: Actor> Clone for ActorHandle<A> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
        }
    }
}

impl<A: Actor<Context = Context<A>>> ActorHandle<A> {
    /// Starts the actor; only the roster does, so that it is restarted when it dies.
    pub(super) fn start(name: &'static str, settings: ActorSettings, factory: Factory<A>) -> Self {
        let inner = Inner {
            name,
            addr: RwLock::new(factory()),
            factory,
            reads: Gate::new(Shares::new(settings.gate, 1, settings.mailbox)),
            // Only workspaces below their share wait, so the number of workspaces bounds the queue.
            writes: Gate::new(Shares::new(settings.write_gate, 1, usize::MAX)),
            restarts: AtomicU64::new(0),
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

    /// Sends a request and waits for the reply.
    ///
    /// # Errors
    /// `Busy` when the gate is full or the actor is being restarted; `Timeout` when no reply came in time. A write that
    /// timed out may still take effect.
    pub async fn call<M>(&self, body: M) -> Result<M::Reply, DomainError>
    where
        M: Request,
        A: Handler<Job<M>>,
        A::Context: ToEnvelope<A, Job<M>>,
    {
        self.send(body, None).await
    }

    /// Like [`ActorHandle::call`], for a request built from a request body. The body's load is released when the work
    /// ends, even if the caller has gone away by then.
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
            let permit = self.permit(M::ACCESS, body.tenant());
            let permit = permit.instrument(traces::of_wait()).await?;
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
        let answer = answer.instrument(traces::of_message(actor, M::NAME));
        match tokio::time::timeout(Duration::from_millis(limit), answer).await {
            Ok(result) => result,
            Err(_) => {
                self.reject(M::ACCESS);
                Err(DomainError::Timeout { actor })
            }
        }
    }

    async fn permit(&self, access: Access, tenant: Tenant) -> Result<Share, DomainError> {
        let actor = self.inner.name;
        let begun = Instant::now();
        let permit = match access {
            Access::Read => {
                let _waiting = WaitingGauge::new(actor);
                self.inner.reads.permits.take(tenant).await
            }
            Access::Write => {
                let _waiting = WaitingGauge::new(actor);
                // A write that is still queued has done nothing yet, so it may be abandoned sooner than a running
                // one.
                let patience = Duration::from_millis(self.inner.settings.timeout_ms);
                let taken = tokio::time::timeout(patience, self.inner.writes.permits.take_own(tenant)).await;
                taken.ok().flatten()
            }
        };
        self.gate(access).waits.add(begun.elapsed());
        permit.ok_or_else(|| {
            self.reject(access);
            DomainError::Busy { actor }
        })
    }

    fn gate(&self, access: Access) -> &Gate {
        match access {
            Access::Read => &self.inner.reads,
            Access::Write => &self.inner.writes,
        }
    }

    fn reject(&self, access: Access) {
        self.gate(access).refused.fetch_add(1, Ordering::Relaxed);
        counter!("actor_rejected_total", "actor" => self.inner.name).increment(1);
    }

    fn addr(&self) -> Addr<A> {
        self.inner.addr.read().clone()
    }
}

/// Counts the requests that are waiting for a permit.
struct WaitingGauge {
    actor: &'static str,
}

impl WaitingGauge {
    fn new(actor: &'static str) -> Self {
        gauge!("actor_mailbox_depth", "actor" => actor).increment(1.0);
        Self { actor }
    }
}

impl Drop for WaitingGauge {
    fn drop(&mut self) {
        gauge!("actor_mailbox_depth", "actor" => self.actor).decrement(1.0);
    }
}

/// What the keeper needs of a handle, whatever its actor type.
pub trait Restartable: Send + Sync {
    /// The actor's name.
    fn name(&self) -> &'static str;
    /// Restarts the actor if it has died; returns whether it did.
    fn revive(&self) -> bool;
    /// How busy it is.
    fn status(&self) -> ActorStatus;
}

impl<A: Actor<Context = Context<A>>> Restartable for ActorHandle<A> {
    fn name(&self) -> &'static str {
        self.inner.name
    }

    fn revive(&self) -> bool {
        if self.addr().connected() {
            return false;
        }
        let mut addr = self.inner.addr.write();
        if addr.connected() {
            return false;
        }
        *addr = (self.inner.factory)();
        counter!("actor_restarts_total", "actor" => self.inner.name).increment(1);
        self.inner.restarts.fetch_add(1, Ordering::Relaxed);
        true
    }

    fn status(&self) -> ActorStatus {
        ActorStatus {
            name: self.inner.name,
            reads: self.inner.reads.status(),
            writes: self.inner.writes.status(),
            restarts: self.inner.restarts.load(Ordering::Relaxed),
            settings: self.inner.settings,
        }
    }
}

#[cfg(test)]
mod tests;
