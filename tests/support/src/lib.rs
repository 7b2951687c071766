//! What unit tests and API tests have in common: real input, waiting for a condition, a real SurrealDB server.

mod input;
pub mod server;
mod wait;

pub use input::{shared, skipped};
pub use wait::{eventually, until};
