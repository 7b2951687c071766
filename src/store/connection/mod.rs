//! How the store speaks to SurrealDB: connecting, transactions and their sizes, retries, reading in parts, and what
//! keeps two processes and lost files apart.

pub(super) mod connector;
pub(super) mod database;
pub(super) mod error;
pub(super) mod lease;
pub(super) mod marker;
mod pages;
pub(super) mod pool;
pub(super) mod retry;
pub(super) mod size;
pub(super) mod temporary;
pub(super) mod tx;
