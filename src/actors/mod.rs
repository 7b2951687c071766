//! The actors: one file or folder per actor, reached only through its typed handle.

pub mod audit_writer;
pub mod backup_writer;
pub mod config_owner;
pub mod enricher;
pub mod extractor;
pub mod graph_store;
pub mod handle;
pub mod identity;
pub mod indexed_store;
mod job;
pub mod keeper;
mod keyed_locks;
pub mod note_store;
pub mod notifier;
pub mod rate_limiter;
pub mod retention;
pub mod roster;
pub mod staging;
pub mod taxii_puller;
pub mod telemetry_tailer;
pub mod worker;
pub mod write_semaphore;
