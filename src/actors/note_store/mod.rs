//! Owns the local service's memory: notes, the entities they mention, and the search index beside them.
//!
//! A note is acknowledged once it is durable in full and both search and graph show it. Waiting notes are written
//! together in one transaction. A superseded note stays readable. Reads never wait for writes.

mod changes;
mod copy;
mod core;
mod correct;
mod corrections;
mod documents;
pub mod enrich;
mod erase;
mod evolution;
mod explore;
mod graph;
mod group;
mod history;
mod journal;
mod known_names;
mod lead;
mod lists;
mod load;
mod lookup;
mod merge;
mod node;
mod pipeline;
mod prepare;
mod question;
mod queue;
mod ranking;
mod reasons;
mod recall;
mod relate;
mod release;
mod remove;
mod scope;
pub(super) mod state;
#[cfg(test)]
mod tests;
mod tuning;
mod wording;
mod writer;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Map, Value};
use tokio::sync::OwnedSemaphorePermit;
use uuid::Uuid;

pub use self::copy::GraphCopy;
pub use self::core::NoteCore;
pub use self::correct::{CorrectNote, NoteCorrection, SupersedeNote};
pub use self::explore::{ListDomains, ReadGraphNode, ViewGraph};
pub use self::graph::EntityFilter;
pub use self::history::{ChangesSince, ReadChanges, ReadVersions};
pub use self::lists::EntityOrder;
pub use self::lookup::LookUpEntities;
pub use self::merge::{MergeEntities, UnmergeEntity};
pub use self::remove::{DeleteNote, NoteDeletion};
pub use self::scope::Scope;
pub use self::state::{EnrichmentQueue, Memory};
pub use self::tuning::{PiiAction, Tuning, TuningSource};
use super::worker::WorkerHandle;
use crate::actors::worker::{Access, Work};
use crate::domain::error::DomainError;
use crate::domain::memory::entity::{EntityDraft, EntityKey};
use crate::domain::memory::note::{NewNote, Note, RememberOutcome};
use crate::domain::memory::view::{EntityRelationship, EntityView, GraphEdge, GraphNode, MemoryCounts, Page};
use crate::domain::memory::why::{InterpretedQuestion, NoteWhy};
use crate::domain::question::{Intent, Question};
use crate::domain::why::MatchedBy;

/// Handle to the notes.
pub type NoteHandle = WorkerHandle<NoteCore>;

/// Ingests notes as one transaction; a note refused for its content gets an error of its own.
#[derive(Debug)]
pub struct Remember {
    pub notes: Vec<NewNote>,
    pub from: IpAddr,
    /// Released when the write has ended, even if no caller is waiting for it any more.
    pub permit: Option<OwnedSemaphorePermit>,
}

impl Work for Remember {
    type Core = NoteCore;
    type Reply = Vec<Result<RememberOutcome, DomainError>>;
    const NAME: &'static str = "remember";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) {}

    async fn run(self, core: Arc<NoteCore>) -> Result<Self::Reply, DomainError> {
        core.remember(self).await
    }
}

/// Searches notes.
#[derive(Debug)]
pub struct RecallNotes {
    pub question: Arc<Question>,
    pub k: usize,
    pub options: RecallOptions,
}

/// What of the notes a search is asked for.
#[derive(Debug, Clone, Default)]
pub struct RecallOptions {
    pub scope: Scope,
    /// Whether to tell why each note was found.
    pub explain: bool,
    /// The lowest score of a note, 0 to 1. If absent, what is likely no answer is left out; with 0, nothing is.
    pub min_score: Option<f32>,
}

/// A note with its score from 0 to 1, and the values of the entities it mentions.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundNote {
    pub note: Note,
    pub score: f32,
    /// What made it a result, the strongest if there are several.
    pub matched: MatchedBy,
    pub entities: Vec<String>,
    /// The notes of the same result that it corrects or that correct it.
    pub conflicts_with: Vec<Uuid>,
    /// Why it was found, if that was asked for.
    pub why: Option<NoteWhy>,
}

/// Result of a recall, best first.
#[derive(Debug)]
pub struct NotesFound {
    pub notes: Vec<FoundNote>,
    pub intent: Intent,
    /// What the question was understood to ask, if that was asked for.
    pub question: Option<InterpretedQuestion>,
}

impl Work for RecallNotes {
    type Core = NoteCore;
    type Reply = NotesFound;
    const NAME: &'static str = "recall_notes";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) {}

    async fn run(self, core: Arc<NoteCore>) -> Result<Self::Reply, DomainError> {
        core.recall_notes(self).await
    }
}

/// Reads one note in full, superseded or not.
#[derive(Debug)]
pub struct ReadNote(pub Uuid);

impl Work for ReadNote {
    type Core = NoteCore;
    type Reply = FoundNote;
    const NAME: &'static str = "read_note";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) {}

    async fn run(self, core: Arc<NoteCore>) -> Result<Self::Reply, DomainError> {
        core.read_note(self).await
    }
}

/// Lists nodes of the graph.
#[derive(Debug)]
pub struct ListNodes {
    pub page: Page,
    pub node_type: Option<String>,
    pub part: Option<String>,
}

impl Work for ListNodes {
    type Core = NoteCore;
    type Reply = Vec<GraphNode>;
    const NAME: &'static str = "list_nodes";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) {}

    async fn run(self, core: Arc<NoteCore>) -> Result<Self::Reply, DomainError> {
        core.list_nodes(self).await
    }
}

/// Lists edges of the graph.
#[derive(Debug)]
pub struct ListEdges(pub Page);

impl Work for ListEdges {
    type Core = NoteCore;
    type Reply = Vec<GraphEdge>;
    const NAME: &'static str = "list_edges";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) {}

    async fn run(self, core: Arc<NoteCore>) -> Result<Self::Reply, DomainError> {
        core.list_edges(self).await
    }
}

/// Lists entities; the reply includes how many match.
#[derive(Debug)]
pub struct ListEntities {
    pub filter: EntityFilter,
    pub order: EntityOrder,
    pub page: Page,
}

impl Work for ListEntities {
    type Core = NoteCore;
    type Reply = (Vec<EntityView>, usize);
    const NAME: &'static str = "list_entities";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) {}

    async fn run(self, core: Arc<NoteCore>) -> Result<Self::Reply, DomainError> {
        core.list_entities(self).await
    }
}

/// Counts what the memory holds.
#[derive(Debug)]
pub struct CountMemory;

impl Work for CountMemory {
    type Core = NoteCore;
    type Reply = MemoryCounts;
    const NAME: &'static str = "count_memory";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) {}

    async fn run(self, core: Arc<NoteCore>) -> Result<Self::Reply, DomainError> {
        core.count_memory(self).await
    }
}

/// Writes one edge between two entities, or updates its properties.
#[derive(Debug)]
pub struct IngestRelationship {
    pub source: EntityDraft,
    pub target: EntityDraft,
    pub relationship: String,
    pub properties: Map<String, Value>,
    pub from: IpAddr,
}

impl Work for IngestRelationship {
    type Core = NoteCore;
    type Reply = Uuid;
    const NAME: &'static str = "ingest_relationship";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) {}

    async fn run(self, core: Arc<NoteCore>) -> Result<Self::Reply, DomainError> {
        core.ingest_relationship(self).await
    }
}

/// Lists every relationship of an entity.
#[derive(Debug)]
pub struct ReadRelationships(pub EntityKey);

impl Work for ReadRelationships {
    type Core = NoteCore;
    type Reply = Vec<EntityRelationship>;
    const NAME: &'static str = "read_relationships";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) {}

    async fn run(self, core: Arc<NoteCore>) -> Result<Self::Reply, DomainError> {
        core.read_relationships(self).await
    }
}

impl NoteCore {
    async fn list_nodes(&self, message: ListNodes) -> Result<Vec<GraphNode>, DomainError> {
        let memory = self.memory().await?;
        let ListNodes {
            page,
            node_type,
            part,
        } = message;
        Ok(memory.graph().nodes(page, node_type.as_deref(), part.as_deref()))
    }

    async fn list_edges(&self, message: ListEdges) -> Result<Vec<GraphEdge>, DomainError> {
        Ok(self.memory().await?.graph().edges(message.0))
    }

    async fn list_entities(&self, message: ListEntities) -> Result<(Vec<EntityView>, usize), DomainError> {
        let ListEntities { filter, order, page } = message;
        self.look(move |graph| graph.list_entities(&filter, order, page))
            .await
    }

    async fn count_memory(&self, _: CountMemory) -> Result<MemoryCounts, DomainError> {
        let memory = self.memory().await?;
        let notes_created = memory.created.load(Ordering::Relaxed);
        Ok(MemoryCounts {
            notes_created,
            is_writable: self.notes.store.is_writable(),
            ..memory.graph().counts()
        })
    }

    async fn read_relationships(
        &self,
        message: ReadRelationships,
    ) -> Result<Vec<EntityRelationship>, DomainError> {
        Ok(self.memory().await?.graph().relationships_of(&message.0))
    }
}
