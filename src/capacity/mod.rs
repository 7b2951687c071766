//! What a process can do at a time, and how much of it each workspace may use.
//!
//! - [`Shares`]: places, such as those of an actor's gate, and the line before them.
//! - [`Budget`]: bytes of request bodies that are being worked on.
//! - [`heavy`]: the threads for work that takes a core for itself.
//!
//! A workspace alone may use nearly everything; as soon as others are there it gets its fair share, so that the
//! load of one is never the outage of another.

mod budget;
mod lane;
mod shares;

use uuid::Uuid;

pub use budget::{Budget, Load};
pub use lane::{heavy, indexing, large_places};
pub use shares::{Share, Shares};

/// Whose work it is: a workspace, or `None` for the service itself and for callers nobody knows yet.
pub type Party = Option<Uuid>;
