//! Concurrency limits of the process, and how much of each a workspace may use.
//!
//! - [`Shares`]: permits, such as those of an actor's gate, and the queue for them.
//! - [`Budget`]: bytes of request bodies in flight.
//! - [`run_heavy`]: turns for CPU-bound work.
//! - [`runtime`]: the threads, and those of low priority for bulk work.
//! - [`search_pool`]: the threads that share a large search.
//!
//! A single workspace may use nearly everything. While others are active it gets its fair share, so that the load of
//! one never causes an outage for another.

mod budget;
mod disk;
mod pools;
mod shares;
mod threads;

use uuid::Uuid;

pub use budget::{Budget, Load};
pub use disk::{DiskRoom, free_mib};
pub use pools::{cores, index_permits, large_body_permits, run_heavy};
pub use shares::{Share, Shares, TenantShare};
pub use threads::{STACK_BYTES, bulk_runtime_or, lower_priority, runtime, search_pool, shorten_slice};

/// The owner of work: a workspace, or `None` for the service itself and for unauthenticated callers.
pub type Tenant = Option<Uuid>;
