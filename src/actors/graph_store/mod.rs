//! Owns the graph: nodes, evidence, edges and sessions in the database, and the search index beside it.
//!
//! Promises: a write is acknowledged when its transaction is durable and the index shows it; writes of one
//! workspace are ordered, reads never wait for them; whatever leaves has passed the caller's clearance.
//! Talks to the audit writer only, to have entries linked that were written in its own transactions.

mod core;
mod detail;
mod documents;
mod drafts;
mod export;
mod ingest;
pub mod memory;
mod recall;
#[cfg(test)]
mod tests;
mod workspace;

use std::sync::Arc;

use actix::{Actor, Context};
use tokio::runtime::Handle;
use uuid::Uuid;

pub use self::core::{GraphCore, Holds, Surroundings};
use super::handle::{Access, ActorHandle, Request};
use super::job;
use crate::capacity::Party;
use crate::config::ActorSettings;
use crate::domain::detail::{EvidenceHead, EvidenceRecord, NodeRelationship};
use crate::domain::draft::Drafts;
use crate::domain::node::KgNode;
use crate::domain::principal::Principal;
use crate::domain::session::{RecallMode, RecallSession, ScoredNode, Visible};
use crate::domain::staging::{CommitResult, DuplicateCandidate, ExtractedEntity};
use crate::domain::stix::ingest::{Defaults, SkipReport};
use crate::domain::stix::objects::Objects;
use crate::store::{IngestResult, Page};

/// Way to the graph.
pub type GraphHandle = ActorHandle<GraphStore>;

/// Takes the objects of a STIX bundle in: all of them that are usable, or, on an error, none.
#[derive(Debug)]
pub struct IngestStix {
    pub by: Principal,
    pub objects: Objects,
    pub defaults: Defaults,
}

/// What an ingest did.
#[derive(Debug)]
pub struct Ingested {
    pub result: IngestResult,
    pub skipped: SkipReport,
    /// What was taken in and is held back, line by line.
    pub warnings: Vec<String>,
    /// Objects from earlier that were marked anew, because this bundle defines a marking of theirs.
    pub remarked: u64,
}

impl Request for IngestStix {
    type Reply = Ingested;
    const NAME: &'static str = "ingest_stix";
    const ACCESS: Access = Access::Write;

    fn party(&self) -> Party {
        Some(self.by.workspace.id)
    }
}

/// Takes drafts in: all of them, or, on an error, none.
#[derive(Debug)]
pub struct IngestDrafts {
    pub by: Principal,
    pub drafts: Drafts,
    /// Redistribution state of the source.
    pub redistribution: String,
    /// Name of the action in the audit log.
    pub action: &'static str,
}

/// What an ingest of drafts did.
#[derive(Debug)]
pub struct DraftsDone {
    pub result: IngestResult,
    /// The node each draft became, in the order of the drafts.
    pub ids: Vec<Uuid>,
}

impl Request for IngestDrafts {
    type Reply = DraftsDone;
    const NAME: &'static str = "ingest_drafts";
    const ACCESS: Access = Access::Write;

    fn party(&self) -> Party {
        Some(self.by.workspace.id)
    }
}

/// Looks for stored nodes that extracted entities may be.
#[derive(Debug)]
pub struct FindDuplicates {
    pub by: Principal,
    pub entities: Vec<ExtractedEntity>,
}

impl Request for FindDuplicates {
    type Reply = Vec<Vec<DuplicateCandidate>>;
    const NAME: &'static str = "find_duplicates";
    const ACCESS: Access = Access::Read;

    fn party(&self) -> Party {
        Some(self.by.workspace.id)
    }
}

/// Asks for the decided entities of one batch to become nodes, all or nothing.
#[derive(Debug)]
pub struct CommitStaged {
    pub by: Principal,
    pub batch: Uuid,
}

impl Request for CommitStaged {
    type Reply = CommitResult;
    const NAME: &'static str = "commit_staged";
    const ACCESS: Access = Access::Write;

    fn party(&self) -> Party {
        Some(self.by.workspace.id)
    }
}

/// Searches and remembers the result as a session.
#[derive(Debug)]
pub struct Recall {
    pub by: Principal,
    pub query: String,
    pub mode: RecallMode,
    pub limit: usize,
    pub include_rejected: bool,
}

/// What a recall found.
#[derive(Debug)]
pub struct Recalled {
    pub results: Visible<ScoredNode>,
    pub session: RecallSession,
}

impl Request for Recall {
    type Reply = Recalled;
    const NAME: &'static str = "recall";
    const ACCESS: Access = Access::Read;

    fn party(&self) -> Party {
        Some(self.by.workspace.id)
    }
}

/// Searches by meaning only.
#[derive(Debug)]
pub struct RecallSemantic {
    pub by: Principal,
    pub query: String,
    pub limit: usize,
    pub include_rejected: bool,
}

impl Request for RecallSemantic {
    type Reply = Visible<ScoredNode>;
    const NAME: &'static str = "recall_semantic";
    const ACCESS: Access = Access::Read;

    fn party(&self) -> Party {
        Some(self.by.workspace.id)
    }
}

/// Reads a recall session.
#[derive(Debug)]
pub struct ReadSession {
    pub by: Principal,
    pub session: Uuid,
}

impl Request for ReadSession {
    type Reply = RecallSession;
    const NAME: &'static str = "read_session";
    const ACCESS: Access = Access::Read;

    fn party(&self) -> Party {
        Some(self.by.workspace.id)
    }
}

/// Reads a node with what surrounds it.
#[derive(Debug)]
pub struct ReadNode {
    pub by: Principal,
    pub node: Uuid,
    pub include_rejected: bool,
    /// Of its relationships.
    pub page: Page,
}

/// A node with what surrounds it.
#[derive(Debug)]
pub struct NodeDetail {
    pub node: KgNode,
    pub relationships: Visible<NodeRelationship>,
    pub more_relationships: bool,
    /// Newest first.
    pub evidence: Visible<EvidenceHead>,
    pub more_evidence: bool,
}

impl Request for ReadNode {
    type Reply = NodeDetail;
    const NAME: &'static str = "read_node";
    const ACCESS: Access = Access::Read;

    fn party(&self) -> Party {
        Some(self.by.workspace.id)
    }
}

/// Reads an evidence record.
#[derive(Debug)]
pub struct ReadEvidence {
    pub by: Principal,
    pub evidence: Uuid,
    pub include_rejected: bool,
}

impl Request for ReadEvidence {
    type Reply = EvidenceRecord;
    const NAME: &'static str = "read_evidence";
    const ACCESS: Access = Access::Read;

    fn party(&self) -> Party {
        Some(self.by.workspace.id)
    }
}

/// Builds the STIX bundle of a session, as JSON text.
#[derive(Debug)]
pub struct ExportSession {
    pub by: Principal,
    pub session: Uuid,
}

/// The bundle of a session.
#[derive(Debug)]
pub struct Exported {
    pub bundle: String,
    /// Objects that were left out because a marking of theirs is not defined.
    pub held_back: u64,
}

impl Request for ExportSession {
    type Reply = Exported;
    const NAME: &'static str = "export_session";
    const ACCESS: Access = Access::Read;

    fn party(&self) -> Party {
        Some(self.by.workspace.id)
    }
}

/// The actor.
pub struct GraphStore {
    core: Arc<GraphCore>,
    runtime: Handle,
}

impl GraphStore {
    /// Starts the actor over an opened store and index.
    pub fn start(core: Arc<GraphCore>, runtime: Handle, settings: ActorSettings) -> GraphHandle {
        let arbiter = actix::Arbiter::current();
        ActorHandle::start(
            "graph_store",
            settings,
            Box::new(move || {
                let (core, runtime) = (Arc::clone(&core), runtime.clone());
                Self::start_in_arbiter(&arbiter, move |ctx| {
                    ctx.set_mailbox_capacity(settings.mailbox.max(1));
                    Self { core, runtime }
                })
            }),
        )
    }
}

impl Actor for GraphStore {
    type Context = Context<Self>;
}

job::delegate! {
    GraphStore:
    IngestStix => ingest_stix,
    IngestDrafts => ingest_drafts,
    FindDuplicates => find_duplicates,
    CommitStaged => commit_staged,
    Recall => recall,
    RecallSemantic => recall_semantic,
    ReadSession => read_session,
    ReadNode => read_node,
    ReadEvidence => read_evidence,
    ExportSession => export_session,
}
