//! Owns the graph: nodes, evidence, edges and sessions in the database, and the search index beside it.
//!
//! A write is acknowledged once its transaction is durable and the index shows it. Writes of one workspace are
//! ordered, and reads never wait for them. Everything returned has passed the caller's clearance. The only other
//! actor it calls is the audit writer, to link the entries written in its own transactions.

mod change_log;
mod changes;
mod changes_question;
mod context;
mod context_question;
mod core;
mod correct;
mod corrections;
mod demo;
mod detail;
mod documents;
mod drafts;
mod duplicates;
mod erase;
mod erasing;
mod export;
mod export_gate;
mod export_merges;
mod export_references;
mod hits;
mod ingest;
mod joins;
mod known_names;
mod lead;
mod lookup;
mod matching;
mod merges;
mod overview;
mod question;
mod recall;
mod recall_semantic;
mod session;
mod tactics;
mod taxii;
#[cfg(test)]
pub(super) mod tests;
mod walk;
mod why;

pub use self::change_log::{AskedChanges, ChangeBound, ChangeEntry, ListChanges};
pub use self::core::GraphCore;
pub use self::correct::{
    CorrectEdge, CorrectEvidence, CorrectNode, EvidenceStatus, ExpectedTags, RelationshipStatus,
    settable_status,
};
pub use self::demo::{DemoExport, DemoQuestion, DemoRecall, DemoRecallOutcome, Visit};
pub use self::detail::{NodeDetail, NodeName, ReadEvidence, ReadNode};
pub use self::drafts::{CommitStaged, DraftsOutcome, FindDuplicates, IngestDrafts};
pub use self::duplicates::{DuplicatesPage, FindLikelyDuplicates};
pub use self::erase::{Erase, EraseWorkspace, ErasureTargets, ReadErasure};
pub use self::export::{ExportBundle, ExportSession};
pub(super) use self::ingest::plan_objects;
pub use self::ingest::{IngestOutcome, IngestStix};
pub use self::known_names::FindKnownNames;
pub use self::lookup::{LookUp, LookUpOutcome};
pub use self::merges::{MarkDistinct, MergeNode, MergeOutcome, UnmergeNode};
pub use self::overview::ReadOverview;
pub use self::recall::{Recall, RecallOutcome};
pub use self::recall_semantic::RecallSemantic;
pub use self::session::{ListSessions, ReadSession};
pub use self::taxii::{
    AskedPage, GivenObject, ListCollections, ObjectPage, PageOf, ReadCollection, ReadObjects, RetractObject,
};
use super::worker::WorkerHandle;

/// Handle to the graph.
pub type GraphHandle = WorkerHandle<GraphCore>;
