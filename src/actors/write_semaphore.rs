//! Owns the write permits of the local service: up to the configured number of writes run at a time, and further
//! writes are refused at once. Reads need no permit.
//!
//! A permit is held for the whole write and released when the write ends, even after a panic or a client disconnect.
//! The capacity may shrink while permits are held; surplus permits are removed as they are released.

use std::sync::Arc;

use actix::{Actor, Context, Handler};
use metrics::{counter, gauge};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::handle::{Access, ActorHandle, Job, Request, Stateful};
use crate::capacity::Tenant;
use crate::domain::error::DomainError;

/// Handle to the write permits.
pub type WriteSemaphoreHandle = ActorHandle<WriteSemaphore>;

/// Reads the number of permits wanted now.
pub type Capacity = Arc<dyn Fn() -> usize + Send + Sync>;

/// Takes a permit if one is free.
#[derive(Debug)]
pub struct TakePermit;

impl Request for TakePermit {
    type Reply = Option<OwnedSemaphorePermit>;
    const NAME: &'static str = "take_permit";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Tenant {
        None
    }
}

/// The permits, kept outside the actor so that a restart can't hand out more than the capacity.
struct Permits {
    semaphore: Arc<Semaphore>,
    /// Number of permits, free and held.
    size: usize,
}

/// The write permit actor; clones share the permits.
#[derive(Clone)]
pub struct WriteSemaphore {
    permits: Arc<Mutex<Permits>>,
    capacity: Capacity,
}

impl WriteSemaphore {
    /// `capacity` returns the number of permits wanted now.
    pub fn new(capacity: Capacity) -> Self {
        let permits = Permits {
            semaphore: Arc::new(Semaphore::new(0)),
            size: 0,
        };
        Self {
            permits: Arc::new(Mutex::new(permits)),
            capacity,
        }
    }

    fn take(&mut self) -> Option<OwnedSemaphorePermit> {
        let mut permits = self.permits.lock();
        permits.resize((self.capacity)());
        let permit = Arc::clone(&permits.semaphore).try_acquire_owned().ok();
        if permit.is_none() {
            counter!("write_permits_refused_total").increment(1);
        }
        gauge!("write_permits_free").set(permits.semaphore.available_permits() as f64);
        permit
    }
}

impl Permits {
    fn resize(&mut self, wanted: usize) {
        if wanted > self.size {
            self.semaphore.add_permits(wanted - self.size);
            self.size = wanted;
        } else {
            // Only free permits can be removed now; the rest go when a write asks after their release.
            self.size -= self.semaphore.forget_permits(self.size - wanted);
        }
    }
}

impl Stateful for WriteSemaphore {
    const NAME: &'static str = "write_semaphore";
}

impl Actor for WriteSemaphore {
    type Context = Context<Self>;
}

impl Handler<Job<TakePermit>> for WriteSemaphore {
    type Result = Result<Option<OwnedSemaphorePermit>, DomainError>;

    fn handle(&mut self, job: Job<TakePermit>, _: &mut Self::Context) -> Self::Result {
        let (_, _guard, _span) = job.open();
        Ok(self.take())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn semaphore(size: &Arc<AtomicUsize>) -> WriteSemaphore {
        let size = Arc::clone(size);
        WriteSemaphore {
            permits: Arc::new(Mutex::new(Permits {
                semaphore: Arc::new(Semaphore::new(0)),
                size: 0,
            })),
            capacity: Arc::new(move || size.load(Ordering::Relaxed)),
        }
    }

    #[test]
    fn no_more_than_the_capacity_are_out_and_dropped_ones_come_back() {
        let size = Arc::new(AtomicUsize::new(2));
        let mut semaphore = semaphore(&size);
        let (first, second) = (semaphore.take(), semaphore.take());
        assert!(first.is_some() && second.is_some());
        assert!(semaphore.take().is_none());
        drop(first);
        assert!(semaphore.take().is_some());
    }

    #[test]
    fn the_capacity_may_change_while_permits_are_out() {
        let size = Arc::new(AtomicUsize::new(3));
        let mut semaphore = semaphore(&size);
        let mut out: Vec<_> = (0..3).map(|_| semaphore.take()).collect();
        size.store(1, Ordering::Relaxed);
        assert!(semaphore.take().is_none());
        out.pop();
        assert!(semaphore.take().is_none(), "two of one are still out");
        out.pop();
        assert!(semaphore.take().is_none(), "one of one is still out");
        out.pop();
        let only = semaphore.take();
        assert!(only.is_some() && semaphore.take().is_none());
        size.store(2, Ordering::Relaxed);
        assert!(semaphore.take().is_some());
    }
}
