//! What unit tests and API tests have in common: real input, waiting for a condition, directories that are costly to
//! make, a real SurrealDB server.

mod extent;
mod input;
pub mod server;
mod template;
mod wait;

pub use extent::{extent, is_full};
pub use input::{shared, skipped};
pub use template::copy_of;
pub use wait::{eventually, until};
