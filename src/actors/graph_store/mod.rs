//! Owns the graph: nodes, evidence, edges and sessions in the database, and the search index beside it.
//!
//! A write is acknowledged once its transaction is durable and the index shows it. Writes of one workspace are
//! ordered, and reads never wait for them. Everything returned has passed the caller's clearance. The only other
//! actor it calls is the audit writer, to link the entries written in its own transactions.

mod ahead;
mod answers;
mod asked;
mod changes;
mod core;
mod demo;
mod detail;
mod documents;
mod drafts;
mod export;
mod ingest;
mod meant;
pub mod memory;
mod recall;
mod session;
#[cfg(test)]
mod tests;
mod trail;
mod upkeep;
mod walk;
mod why;
mod workspace;

pub use self::core::{GraphCore, Holds, Surroundings};
pub use self::demo::{DemoExport, DemoQuestion, DemoRecall, DemoRecalled, Visit};
pub use self::detail::{NodeDetail, ReadEvidence, ReadNode};
pub use self::drafts::{CommitStaged, DraftsDone, FindDuplicates, IngestDrafts};
pub use self::export::{ExportSession, Exported};
pub(super) use self::ingest::planned;
pub use self::ingest::{IngestStix, Ingested};
pub use self::recall::{Recall, RecallSemantic, Recalled};
pub use self::session::ReadSession;
use super::worker::WorkerHandle;

/// Handle to the graph.
pub type GraphHandle = WorkerHandle<GraphCore>;
