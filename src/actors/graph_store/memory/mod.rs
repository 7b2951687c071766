//! The local service's memory: notes, what they mention, and how they are found again.
//!
//! Promises: a note is acknowledged when it is durable, whole, and a search and the graph show it; what waits is
//! written together in one transaction; a note that lost its place stays readable. Reads never wait for writes.

pub mod enrich;
mod evolution;
mod graph;
mod lists;
mod prepare;
mod recall;
#[cfg(test)]
mod tests;
mod writer;

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use serde_json::{Map, Value};
use tokio::sync::{Notify, OnceCell, OwnedSemaphorePermit};
use uuid::Uuid;

pub use self::graph::EntityFilter;
use self::graph::MemoryGraph;
use self::writer::Pending;
use super::Holds;
use super::core::GraphCore;
use crate::actors::worker::{Access, Party, Work};
use crate::domain::error::DomainError;
use crate::domain::memory::entity::{EntityDraft, EntityKey};
use crate::domain::memory::intent::Intent;
use crate::domain::memory::note::Note;
use crate::domain::memory::view::{
    EntityRelationship, EntityView, GraphEdge, GraphNode, MemoryFigures, Page,
};
use crate::store::Store;

/// What may be changed while the service runs.
#[derive(Debug, Clone)]
pub struct Tuning {
    /// Weight of the graph and of recency beside words and meaning.
    pub graph_weight: f32,
    pub recency_weight: f32,
    /// Days after which recency counts half.
    pub half_life_days: f64,
    /// Cosine from which a note is looked at as a near-duplicate, and share of equal words that makes it one.
    pub near_cosine: f32,
    pub near_overlap: f64,
    /// Whether writes go into the audit log.
    pub audited: bool,
    /// What to do with personal data, if it is looked for.
    pub pii: Option<PiiAction>,
    /// Notes that may wait for a language model; none without one.
    pub most_waiting: u64,
}

/// What happens to a note that holds personal data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PiiAction {
    /// It is stored as it is and flagged.
    Log,
    /// It is stored with the data blanked out, and flagged.
    Redact,
    /// It is refused.
    Block,
}

/// Where the tuning of this moment is read.
pub type TuningSource = Arc<dyn Fn() -> Tuning + Send + Sync>;

/// What the actor keeps of the memory beside the database.
pub struct Memory {
    pub(super) workspace: Uuid,
    tuning: TuningSource,
    graph: Arc<RwLock<MemoryGraph>>,
    loaded: OnceCell<()>,
    /// Missing answers of the database when the graph was read.
    losses: AtomicU64,
    waiting: Mutex<Vec<Pending>>,
    created: AtomicU64,
    enrichment: Arc<EnrichmentQueue>,
}

/// How many notes wait for a language model, and the bell that says so.
#[derive(Debug, Default)]
pub struct EnrichmentQueue {
    depth: AtomicU64,
    bell: Notify,
}

impl EnrichmentQueue {
    /// Notes that wait.
    pub fn depth(&self) -> u64 {
        self.depth.load(Ordering::Relaxed)
    }

    /// Waits until there may be something to do.
    pub async fn rung(&self) {
        self.bell.notified().await;
    }

    fn add(&self, more: u64) {
        self.depth.fetch_add(more, Ordering::Relaxed);
        self.bell.notify_one();
    }

    fn set(&self, depth: u64) {
        self.depth.store(depth, Ordering::Relaxed);
        self.bell.notify_one();
    }

    fn done(&self, notes: u64) {
        self.depth
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |depth| {
                Some(depth.saturating_sub(notes))
            })
            .ok();
    }
}

impl Memory {
    /// The memory of one workspace.
    pub fn new(workspace: Uuid, tuning: TuningSource) -> Self {
        Self {
            workspace,
            tuning,
            graph: Arc::default(),
            loaded: OnceCell::new(),
            losses: AtomicU64::new(0),
            waiting: Mutex::default(),
            created: AtomicU64::new(0),
            enrichment: Arc::default(),
        }
    }

    /// The notes that wait for a language model.
    pub fn enrichment(&self) -> Arc<EnrichmentQueue> {
        Arc::clone(&self.enrichment)
    }

    async fn load(&self, store: &Store) -> Result<(), DomainError> {
        let load = || self.read(store);
        self.loaded.get_or_try_init(load).await.copied()
    }

    /// Reads the memory again where the database may have taken what it was not known to take: an answer was
    /// missing, and who sends the same again must not make a double. To be called under the write lock.
    pub(super) async fn refresh(&self, store: &Store) -> Result<(), DomainError> {
        if self.losses.load(Ordering::Acquire) == store.losses() {
            return Ok(());
        }
        self.read(store).await
    }

    async fn read(&self, store: &Store) -> Result<(), DomainError> {
        let ws = self.workspace;
        let losses = store.losses();
        let (heads, entities, relations, waiting) = tokio::try_join!(
            store.note_heads(ws),
            store.entities(ws),
            store.relations(ws),
            store.count_waiting(ws),
        )?;
        *self.graph_mut() = MemoryGraph::of(heads, entities, relations);
        self.enrichment.set(waiting);
        self.losses.store(losses, Ordering::Release);
        Ok(())
    }

    fn graph(&self) -> RwLockReadGuard<'_, MemoryGraph> {
        self.graph.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn graph_mut(&self) -> RwLockWriteGuard<'_, MemoryGraph> {
        self.graph.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn queue(&self) -> std::sync::MutexGuard<'_, Vec<Pending>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A note as somebody gives it.
#[derive(Debug, Clone)]
pub struct NewNote {
    pub content: String,
    pub domain: String,
    pub source_type: String,
    pub source_ref: String,
    /// Whether what is known already is looked at: duplicates, near-duplicates, language model.
    pub evolve: bool,
}

/// How a note was taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoteStatus {
    Created,
    /// The same text is there already; the id is that note's.
    Duplicate,
    /// It took the place of a note that says nearly the same.
    Updated,
}

impl NoteStatus {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            NoteStatus::Created => "created",
            NoteStatus::Duplicate => "duplicate",
            NoteStatus::Updated => "updated",
        }
    }
}

/// What became of one note.
#[derive(Debug, Clone, PartialEq)]
pub struct Remembered {
    pub note_id: Uuid,
    pub status: NoteStatus,
    /// Canonical values, in the order of the text.
    pub entities: Vec<String>,
    /// The note whose place it took.
    pub superseded: Option<Uuid>,
}

/// Takes notes in as one transaction; a note that is refused for its content has an error of its own.
#[derive(Debug)]
pub struct Remember {
    pub notes: Vec<NewNote>,
    pub from: IpAddr,
    /// Given back when the write has ended, also if nobody waits for it any more.
    pub permit: Option<OwnedSemaphorePermit>,
}

impl Work for Remember {
    type Core = GraphCore;
    type Reply = Vec<Result<Remembered, DomainError>>;
    const NAME: &'static str = "remember";
    const ACCESS: Access = Access::Write;

    fn party(&self) -> Party {
        None
    }

    async fn run(self, core: Arc<GraphCore>) -> Result<Self::Reply, DomainError> {
        core.remember(self).await
    }
}

/// Looks for notes.
#[derive(Debug)]
pub struct RecallNotes {
    pub query: String,
    pub k: usize,
    pub domain: Option<String>,
}

/// A note with its score from 0 to 1, and the values of the entities it mentions.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundNote {
    pub note: Note,
    pub score: f32,
    pub entities: Vec<String>,
}

/// What was found, best first.
#[derive(Debug)]
pub struct NotesFound {
    pub notes: Vec<FoundNote>,
    pub intent: Intent,
}

impl Work for RecallNotes {
    type Core = GraphCore;
    type Reply = NotesFound;
    const NAME: &'static str = "recall_notes";
    const ACCESS: Access = Access::Read;

    fn party(&self) -> Party {
        None
    }

    async fn run(self, core: Arc<GraphCore>) -> Result<Self::Reply, DomainError> {
        core.recall_notes(self).await
    }
}

/// Reads one note, whole, superseded or not.
#[derive(Debug)]
pub struct ReadNote(pub Uuid);

impl Work for ReadNote {
    type Core = GraphCore;
    type Reply = FoundNote;
    const NAME: &'static str = "read_note";
    const ACCESS: Access = Access::Read;

    fn party(&self) -> Party {
        None
    }

    async fn run(self, core: Arc<GraphCore>) -> Result<Self::Reply, DomainError> {
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
    type Core = GraphCore;
    type Reply = Vec<GraphNode>;
    const NAME: &'static str = "list_nodes";
    const ACCESS: Access = Access::Read;

    fn party(&self) -> Party {
        None
    }

    async fn run(self, core: Arc<GraphCore>) -> Result<Self::Reply, DomainError> {
        core.list_nodes(self).await
    }
}

/// Lists edges of the graph.
#[derive(Debug)]
pub struct ListEdges(pub Page);

impl Work for ListEdges {
    type Core = GraphCore;
    type Reply = Vec<GraphEdge>;
    const NAME: &'static str = "list_edges";
    const ACCESS: Access = Access::Read;

    fn party(&self) -> Party {
        None
    }

    async fn run(self, core: Arc<GraphCore>) -> Result<Self::Reply, DomainError> {
        core.list_edges(self).await
    }
}

/// Lists entities; the reply says how many fit.
#[derive(Debug)]
pub struct ListEntities {
    pub filter: EntityFilter,
    pub page: Page,
}

impl Work for ListEntities {
    type Core = GraphCore;
    type Reply = (Vec<EntityView>, usize);
    const NAME: &'static str = "list_entities";
    const ACCESS: Access = Access::Read;

    fn party(&self) -> Party {
        None
    }

    async fn run(self, core: Arc<GraphCore>) -> Result<Self::Reply, DomainError> {
        core.list_entities(self).await
    }
}

/// Counts what the memory holds.
#[derive(Debug)]
pub struct CountMemory;

impl Work for CountMemory {
    type Core = GraphCore;
    type Reply = MemoryFigures;
    const NAME: &'static str = "count_memory";
    const ACCESS: Access = Access::Read;

    fn party(&self) -> Party {
        None
    }

    async fn run(self, core: Arc<GraphCore>) -> Result<Self::Reply, DomainError> {
        core.count_memory(self).await
    }
}

/// Writes one edge between two entities, or gives it new properties.
#[derive(Debug)]
pub struct IngestRelationship {
    pub source: EntityDraft,
    pub target: EntityDraft,
    pub relationship: String,
    pub properties: Map<String, Value>,
    pub from: IpAddr,
}

impl Work for IngestRelationship {
    type Core = GraphCore;
    type Reply = Uuid;
    const NAME: &'static str = "ingest_relationship";
    const ACCESS: Access = Access::Write;

    fn party(&self) -> Party {
        None
    }

    async fn run(self, core: Arc<GraphCore>) -> Result<Self::Reply, DomainError> {
        core.ingest_relationship(self).await
    }
}

/// Every relationship of an entity.
#[derive(Debug)]
pub struct ReadRelationships(pub EntityKey);

impl Work for ReadRelationships {
    type Core = GraphCore;
    type Reply = Vec<EntityRelationship>;
    const NAME: &'static str = "read_relationships";
    const ACCESS: Access = Access::Read;

    fn party(&self) -> Party {
        None
    }

    async fn run(self, core: Arc<GraphCore>) -> Result<Self::Reply, DomainError> {
        core.read_relationships(self).await
    }
}

impl GraphCore {
    /// The memory, loaded.
    pub(super) async fn memory(&self) -> Result<&Memory, DomainError> {
        let Holds::Notes(memory) = &self.holds else {
            return Err(DomainError::internal(
                "this store keeps no notes",
                "a note request reached it",
            ));
        };
        memory.load(&self.store).await?;
        Ok(memory)
    }

    /// Loads the memory and opens its index, before anybody asks.
    pub async fn open_memory(&self) -> Result<(), DomainError> {
        let memory = self.memory().await?;
        self.index_of(memory.workspace).await.map(drop)
    }

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
        let memory = self.memory().await?;
        Ok(memory.graph().list_entities(&message.filter, message.page))
    }

    async fn count_memory(&self, _: CountMemory) -> Result<MemoryFigures, DomainError> {
        let memory = self.memory().await?;
        let notes_created = memory.created.load(Ordering::Relaxed);
        Ok(MemoryFigures {
            notes_created,
            is_writable: self.store.is_writable(),
            ..memory.graph().figures()
        })
    }

    async fn read_relationships(
        &self,
        message: ReadRelationships,
    ) -> Result<Vec<EntityRelationship>, DomainError> {
        Ok(self.memory().await?.graph().relationships_of(&message.0))
    }
}
