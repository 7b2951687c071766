//! Owns the rate-limit buckets and the failed sign-ins; everything is in memory and synchronous.
//!
//! A bucket is a fixed window that opens with its first request.

mod logins;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use actix::{Actor, AsyncContext, Context, Handler};

use self::logins::Logins;
pub use self::logins::{BeginLogin, EndLogin, LoginGate, LoginLine, LoginPlace};
use super::handle::{Access, ActorHandle, Job, Request, Stateful};
use crate::capacity::Party;
use crate::domain::error::DomainError;

const SWEEP: Duration = Duration::from_secs(60);

/// Handle to the rate limiter.
pub type RateLimiterHandle = ActorHandle<RateLimiter>;

/// State of a bucket after a request, for the `RateLimit-*` headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateState {
    pub allowed: bool,
    pub limit: u32,
    pub remaining: u32,
    /// Time until the window ends.
    pub reset: Duration,
}

/// Takes one request from a bucket.
#[derive(Debug)]
pub struct TakeRequest {
    pub bucket: String,
    pub limit: u32,
    pub window: Duration,
}

impl Request for TakeRequest {
    type Reply = RateState;
    const NAME: &'static str = "take_request";
    const ACCESS: Access = Access::Read;

    fn party(&self) -> Party {
        None
    }
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    used: u32,
    opened: Instant,
    window: Duration,
}

/// The rate limiter actor.
#[derive(Debug, Default)]
pub struct RateLimiter {
    buckets: HashMap<String, Bucket>,
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
    fn take(&mut self, request: TakeRequest, now: Instant) -> RateState {
        let TakeRequest {
            bucket,
            limit,
            window,
        } = request;
        let bucket = open_bucket(&mut self.buckets, bucket, window, now);
        let allowed = bucket.used < limit;
        if allowed {
            bucket.used += 1;
        }
        let reset = bucket.window.saturating_sub(now.duration_since(bucket.opened));
        RateState {
            allowed,
            limit,
            remaining: limit.saturating_sub(bucket.used),
            reset,
        }
    }

    fn sweep(&mut self, now: Instant) {
        self.buckets
            .retain(|_, bucket| now.duration_since(bucket.opened) < bucket.window);
        self.logins.sweep(now);
    }
}

fn open_bucket(
    buckets: &mut HashMap<String, Bucket>,
    key: String,
    window: Duration,
    now: Instant,
) -> &mut Bucket {
    let bucket = buckets.entry(key).or_insert(Bucket {
        used: 0,
        opened: now,
        window,
    });
    if now.duration_since(bucket.opened) >= bucket.window {
        *bucket = Bucket {
            used: 0,
            opened: now,
            window,
        };
    }
    bucket
}

impl Handler<Job<TakeRequest>> for RateLimiter {
    type Result = Result<RateState, DomainError>;

    fn handle(&mut self, job: Job<TakeRequest>, _: &mut Self::Context) -> Self::Result {
        let (request, _guard, _span) = job.open();
        Ok(self.take(request, Instant::now()))
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
mod tests {
    use super::*;

    fn request(limit: u32) -> TakeRequest {
        TakeRequest {
            bucket: "a".into(),
            limit,
            window: Duration::from_secs(60),
        }
    }

    #[test]
    fn a_bucket_counts_down_refuses_and_opens_again() {
        let mut limiter = RateLimiter::default();
        let start = Instant::now();
        let remaining: Vec<_> = (0..3).map(|_| limiter.take(request(2), start)).collect();
        assert_eq!(
            remaining.iter().map(|s| s.remaining).collect::<Vec<_>>(),
            [1, 0, 0]
        );
        assert_eq!(
            remaining.iter().map(|s| s.allowed).collect::<Vec<_>>(),
            [true, true, false]
        );
        assert_eq!(remaining[2].reset, Duration::from_secs(60));
        let later = start + Duration::from_secs(60);
        assert!(limiter.take(request(2), later).allowed);
        limiter.sweep(later + Duration::from_secs(60));
        assert!(limiter.buckets.is_empty());
    }
}
