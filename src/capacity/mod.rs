//! Concurrency limits of the process, and how much of each a workspace may use.
//!
//! - [`Shares`]: permits, such as those of an actor's gate, and the queue for them.
//! - [`Budget`]: bytes of request bodies in flight.
//! - [`heavy`]: turns for CPU-bound work.
//! - [`runtime`]: the threads, and those of low priority for bulk work.
//! - [`side_by_side`]: the threads that share a large search.
//!
//! A single workspace may use nearly everything. While others are active it gets its fair share, so that the load of
//! one never causes an outage for another.

mod budget;
mod lane;
mod shares;
mod threads;

use uuid::Uuid;

pub use budget::{Budget, Load};
pub use lane::{cores, heavy, indexing, large_places};
pub use shares::{Share, Shares};
pub use threads::{STACK_BYTES, bulk_or, lower_priority, runtime, shorten_slice, side_by_side};

/// The owner of work: a workspace, or `None` for the service itself and for unauthenticated callers.
pub type Party = Option<Uuid>;
