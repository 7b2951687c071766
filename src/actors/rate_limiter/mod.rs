//! Owns the rate limits and the failed sign-ins; everything is in memory and synchronous.
//!
//! Each limit is a sliding window. What an anonymous flood can fill is bounded, and apart from what it must not push
//! out: the windows of workspaces and the locks of accounts.

mod addresses;
mod logins;
mod network;
mod window;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use actix::{Actor, AsyncContext, Context, Handler};
use uuid::Uuid;

use self::addresses::Addresses;
use self::logins::Logins;
pub use self::logins::{BeginLogin, EndLogin, LoginGate, LoginLine, LoginPlace};
pub use self::network::Network;
pub use self::window::Limit;
use self::window::Windows;
use super::handle::{Access, ActorHandle, Job, Request, Stateful};
use crate::capacity::Tenant;
use crate::domain::error::DomainError;

const SWEEP: Duration = Duration::from_secs(60);
/// Guesses per address: attempts to sign in, whatever the account, and keys and tokens that are not valid. Each of the
/// two has its own count.
pub const GUESSES: [Limit; 1] = [(300, Duration::from_secs(15 * 60))];

/// Handle to the rate limiter.
pub type RateLimiterHandle = ActorHandle<RateLimiter>;

/// State of a limit after a request, for the `RateLimit-*` headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateState {
    pub allowed: bool,
    pub limit: u32,
    pub remaining: u32,
    /// Time until the oldest request that counts is forgotten; if nothing remains, until a request is admitted again.
    pub reset: Duration,
}

impl RateState {
    const UNLIMITED: Self = Self {
        allowed: true,
        limit: u32::MAX,
        remaining: u32::MAX,
        reset: Duration::ZERO,
    };
}

/// Whose requests are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RateKey {
    /// All users and API keys of a workspace: otherwise every new key would raise its limit.
    Workspace(Uuid),
    /// Whoever has the key of the local service.
    KeyHolder,
    /// All callers of a group of routes.
    Everybody(&'static str),
    /// A group of routes called from one network.
    Address(&'static str, Network),
}

/// Counts a request if all limits admit it, and otherwise in none. A caller must always have limits over the same
/// lengths of time; their numbers may change.
#[derive(Debug)]
pub struct TakeRequest {
    pub counted: RateKey,
    pub limits: Vec<Limit>,
}

impl Request for TakeRequest {
    type Reply = RateState;
    const NAME: &'static str = "take_request";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Tenant {
        None
    }
}

/// The rate limiter actor.
#[derive(Debug, Default)]
pub struct RateLimiter {
    /// Callers who have shown a valid credential, so there are only as many as there are workspaces.
    known: HashMap<RateKey, Windows>,
    addresses: Addresses,
    logins: Logins,
}

impl Stateful for RateLimiter {
    const NAME: &'static str = "rate_limiter";
}

impl Actor for RateLimiter {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.run_interval(SWEEP, |limiter, _| limiter.sweep(Instant::now()));
    }
}

impl RateLimiter {
    fn take(&mut self, request: &TakeRequest, now: Instant) -> RateState {
        let TakeRequest { counted, limits } = request;
        match counted {
            RateKey::Address(group, network) => self.addresses.take(group, *network, limits, now),
            RateKey::Workspace(_) | RateKey::KeyHolder | RateKey::Everybody(_) => {
                let windows = self.known.entry(*counted);
                windows
                    .or_insert_with(|| Windows::new(limits, now))
                    .take(limits, now)
            }
        }
    }

    fn sweep(&mut self, now: Instant) {
        self.known.retain(|_, windows| {
            windows.slide(now);
            windows.entries() > 0
        });
        self.addresses.sweep(now);
        self.logins.sweep(now);
    }
}

impl Handler<Job<TakeRequest>> for RateLimiter {
    type Result = Result<RateState, DomainError>;

    fn handle(&mut self, job: Job<TakeRequest>, _: &mut Self::Context) -> Self::Result {
        let (request, _guard, _span) = job.open();
        Ok(self.take(&request, Instant::now()))
    }
}

impl Handler<Job<BeginLogin>> for RateLimiter {
    type Result = Result<LoginGate, DomainError>;

    fn handle(&mut self, job: Job<BeginLogin>, _: &mut Self::Context) -> Self::Result {
        let (request, _guard, _span) = job.open();
        Ok(self.logins.begin(request.key, Instant::now()))
    }
}

impl Handler<Job<EndLogin>> for RateLimiter {
    type Result = Result<RateState, DomainError>;

    fn handle(&mut self, job: Job<EndLogin>, _: &mut Self::Context) -> Self::Result {
        let (request, _guard, _span) = job.open();
        Ok(self.logins.end(request, Instant::now()))
    }
}

#[cfg(test)]
mod tests;
