//! The local memory as a library: remember, recall, synthesize, and relationships between entities.
//!
//! It uses the same actors as `threat-memory local`, without HTTP. A [`MemoryManager`] opened here runs them on threads
//! of its own, so it works on any tokio runtime. Clones share the actors, and dropping the last clone closes the store.
//!
//! ```
//! use threat_memory::MemoryManager;
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let memory = MemoryManager::in_memory().await?;
//! let told = memory.remember("Fancy Bear used Cobalt Strike against a ministry.").await?;
//! assert_eq!(told.entities, ["apt28", "cobalt-strike"]);
//!
//! let found = memory.recall("What does APT 28 use?", 5).await?;
//! assert_eq!(found.notes[0].note.id, told.note_id);
//! # memory.close().await;
//! # Ok::<(), threat_memory::MemoryError>(())
//! # }).unwrap();
//! ```
//!
//! The program must take over the patch of the database's engine, because Cargo reads patches only from the program that
//! is built. Without it the build stops at once, with a message that names the patch; `docs/engine.md` says why:
//!
//! ```toml
//! [dependencies]
//! threat-memory = { path = "../threat-memory" }
//!
//! [patch.crates-io]
//! surrealkv = { path = "../threat-memory/engine" }
//! ```

mod audit;
mod backup;
mod corrections;

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use uuid::Uuid;

use super::core::{LocalCore, WORKSPACE};
use super::handles::LocalHandles;
use super::host::Host;
use crate::actors::audit_writer::Append;
use crate::actors::extractor::{Synthesize, read_question};
use crate::actors::note_store::{
    CountMemory, EntityFilter, EntityOrder, FoundNote, IngestRelationship, ListDomains, ListEdges,
    ListEntities, ListNodes, LookUpEntities, NotesFound, ReadGraphNode, ReadNote, ReadRelationships,
    RecallNotes, RecallOptions, Remember, ViewGraph,
};
use crate::actors::telemetry_tailer::TelemetryEntry;
use crate::actors::write_semaphore::TakePermit;
use crate::clock;
use crate::config::local::{LocalFlags, LocalSettings};
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::error::DomainError;
use crate::domain::lookup::{AskedValue, LookupOfEntities};
use crate::domain::memory::entity::{EntityDraft, EntityKey, relationship_label};
use crate::domain::memory::note::{NewNote, RememberOutcome, truncate_chars};
use crate::domain::memory::synthesis::{Answer, SynthesisFormat};
use crate::domain::memory::tier::Tier;
use crate::domain::memory::view::{
    DomainCount, EntityRelationship, EntityView, GraphEdge, GraphNode, GraphView, MemoryCounts, NodeDetails,
    Page,
};
use crate::llm::synthesis::SourceNote;

/// Caller address of direct library calls.
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// The limit of concurrent writes is reached.
    #[error("Write capacity exhausted; retry shortly")]
    WriteCapacity,
    /// The memory could not be opened.
    #[error("the memory could not be opened: {0}")]
    Open(String),
    #[error(transparent)]
    Domain(#[from] DomainError),
}

/// A synthesized answer and its metadata.
#[derive(Debug, Clone, PartialEq)]
pub struct SynthesisResult {
    pub synthesis: Answer,
    /// Number of notes shown to the model.
    pub sources_count: usize,
}

/// The local memory. A program that uses it must take over the patch of the database's engine in its `Cargo.toml`:
///
/// ```toml
/// [patch.crates-io]
/// surrealkv = { path = "../threat-memory/engine" }
/// ```
///
/// The module documentation has an example and says why.
#[derive(Clone)]
pub struct MemoryManager {
    pub(super) handles: LocalHandles,
    retrievals: Arc<AtomicU64>,
    /// Set if the memory was opened as a library.
    host: Option<Arc<Host>>,
}

impl MemoryManager {
    /// Opens the memory in a directory, or creates it.
    ///
    /// # Errors
    /// When the directory can't be used or another process has it open.
    pub async fn open(data_dir: impl AsRef<Path>) -> Result<Self, MemoryError> {
        let flags = LocalFlags {
            data_dir: Some(data_dir.as_ref().to_owned()),
            ..LocalFlags::default()
        };
        Self::with(None, flags).await
    }

    /// Opens a memory that persists nothing.
    ///
    /// # Errors
    /// When threads or memory are unavailable.
    pub async fn in_memory() -> Result<Self, MemoryError> {
        let flags = LocalFlags {
            backend: Some("mem".into()),
            ..LocalFlags::default()
        };
        Self::with(None, flags).await
    }

    /// Opens a memory with the settings of a file (see `config/local.toml`), the environment and flags.
    ///
    /// # Errors
    /// Those of [`MemoryManager::open`], and when a setting is invalid.
    pub async fn with(config: Option<PathBuf>, flags: LocalFlags) -> Result<Self, MemoryError> {
        let loaded = LocalSettings::load(config.as_deref(), &flags);
        let (settings, editor) = loaded.map_err(|error| MemoryError::Open(error.to_string()))?;
        let started = Host::start(settings, editor).await;
        let (host, handles) = started.map_err(|error| MemoryError::Open(error.to_string()))?;
        Ok(Self {
            handles,
            retrievals: Arc::default(),
            host: Some(Arc::new(host)),
        })
    }

    /// A memory over actors that the caller starts and stops.
    pub(crate) fn from_core(core: &LocalCore) -> Self {
        Self {
            handles: core.handles().clone(),
            retrievals: Arc::default(),
            host: None,
        }
    }

    /// Number of recalls and syntheses since this memory was opened.
    pub fn retrievals(&self) -> u64 {
        self.retrievals.load(Ordering::Relaxed)
    }

    /// Closes the store if this is the last clone; otherwise the last clone closes it.
    pub async fn close(self) {
        if let Some(host) = self.host.and_then(Arc::into_inner) {
            host.stop().await;
        }
    }

    /// Stores one note. When this returns, the note is durable and searchable.
    ///
    /// # Errors
    /// [`MemoryError::WriteCapacity`] when too many writes are in progress; `Invalid` when the content is refused.
    pub async fn remember(&self, note: impl Into<NewNote>) -> Result<RememberOutcome, MemoryError> {
        let mut outcomes = self.remember_all(vec![note.into()], HERE).await?;
        let outcome = outcomes
            .pop()
            .ok_or_else(|| DomainError::internal("the write gave no answer", ""))?;
        Ok(outcome?)
    }

    /// Stores notes in one transaction. A note whose content is refused gets an error of its own.
    ///
    /// # Errors
    /// [`MemoryError::WriteCapacity`] when too many writes are in progress.
    pub async fn remember_all(
        &self,
        notes: Vec<NewNote>,
        from: IpAddr,
    ) -> Result<Vec<Result<RememberOutcome, DomainError>>, MemoryError> {
        self.require_room()?;
        let permit = self.handles.semaphore.call(TakePermit).await?;
        let permit = Some(permit.ok_or(MemoryError::WriteCapacity)?);
        let message = Remember { notes, from, permit };
        Ok(self.handles.notes.call(message).await?)
    }

    /// The `k` notes that best match a query.
    ///
    /// # Errors
    /// When the store or the index fails.
    pub async fn recall(&self, query: &str, k: usize) -> Result<NotesFound, MemoryError> {
        self.recall_with(query, k, RecallOptions::default()).await
    }

    /// Like [`MemoryManager::recall`], limited to the notes of a domain or a time, to a lowest score, or with the reasons of
    /// each note.
    ///
    /// # Errors
    /// When the store or the index fails.
    pub async fn recall_with(
        &self,
        query: &str,
        k: usize,
        options: RecallOptions,
    ) -> Result<NotesFound, MemoryError> {
        let since = Instant::now();
        let found = self.look_up(query, k, options).await?;
        self.record("recall", query, &found, since);
        Ok(found)
    }

    /// Answers a question from the `k` best matching notes. Every citation is checked against its note.
    ///
    /// ```
    /// use threat_memory::{MemoryManager, SynthesisFormat};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let memory = MemoryManager::in_memory().await?;
    /// memory.remember("Turla uses Snake.").await?;
    /// // Without a language model the answer is well-formed but empty.
    /// let answer = memory.synthesize("Who uses Snake?", SynthesisFormat::DirectAnswer, 5).await?;
    /// assert_eq!((answer.synthesis.confidence, answer.sources_count), (0.0, 1));
    /// # memory.close().await;
    /// # Ok::<(), threat_memory::MemoryError>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// When the store or the index fails. If the language model fails, the answer says so.
    pub async fn synthesize(
        &self,
        query: &str,
        format: SynthesisFormat,
        k: usize,
    ) -> Result<SynthesisResult, MemoryError> {
        self.synthesize_for(query, format, k, HERE).await
    }

    pub(crate) async fn synthesize_for(
        &self,
        query: &str,
        format: SynthesisFormat,
        k: usize,
        from: IpAddr,
    ) -> Result<SynthesisResult, MemoryError> {
        let since = Instant::now();
        let settings = self.handles.settings();
        let found = self.look_up(query, k, RecallOptions::default()).await?;
        let sources = found.notes.iter().map(|found| SourceNote {
            id: found.note.id.to_string(),
            content: truncate_chars(&found.note.content, settings.synthesis.max_source_chars).to_owned(),
            tier: found.note.tier.parse().unwrap_or(Tier::C),
            created_at: found.note.created_at,
        });
        let message = Synthesize {
            question: query.to_owned(),
            format,
            sources: sources.collect(),
            patience: Duration::from_millis(settings.synthesis.timeout_ms),
        };
        let synthesis = self.handles.extractor.call(message).await?;
        self.record("synthesis", query, &found, since);
        if settings.governance.enabled {
            let cited: Vec<String> = synthesis
                .sources
                .iter()
                .map(|source| source.note_id.to_string())
                .collect();
            let entry = AuditEntry::anonymous(
                WORKSPACE,
                from,
                "memory.synthesize",
                "note",
                Outcome::Success,
                clock::now(),
            )
            .with("format", format.as_str())
            .with("cited", cited);
            self.handles.audit.call(Append(entry)).await?;
        }
        Ok(SynthesisResult {
            sources_count: found.notes.len(),
            synthesis,
        })
    }

    /// A complete note, including superseded ones (`superseded_by` names the successor).
    ///
    /// # Errors
    /// `NotFound` when there is no such note.
    pub async fn note(&self, id: Uuid) -> Result<FoundNote, MemoryError> {
        Ok(self.handles.notes.call(ReadNote(id)).await?)
    }

    /// Writes a single edge between two entities, creating missing ends. Writing the same source, target and
    /// relationship again replaces the edge's properties (`confidence`, 0 to 1, becomes the edge's confidence).
    ///
    /// Values may use any spelling: they are canonicalised here as in every look-up.
    ///
    /// ```
    /// use serde_json::{Map, json};
    /// use threat_memory::MemoryManager;
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let memory = MemoryManager::in_memory().await?;
    /// let properties = Map::from_iter([("confidence".into(), json!(0.8)), ("source".into(), json!("a report"))]);
    /// memory.ingest_relationship("actor", "Fancy Bear", "tool", "Cobalt Strike", "uses", properties).await?;
    ///
    /// let related = memory.get_entity_relationships("actor", "APT28").await?;
    /// assert_eq!(related[0].relationship, "uses");
    /// assert_eq!(related[0].node.entity_value, "cobalt-strike");
    /// # memory.close().await;
    /// # Ok::<(), threat_memory::MemoryError>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// `Invalid` when a type, value or the label has no letter or digit, or is too long.
    pub async fn ingest_relationship(
        &self,
        from_type: &str,
        from_value: &str,
        to_type: &str,
        to_value: &str,
        relationship: &str,
        properties: Map<String, Value>,
    ) -> Result<Uuid, MemoryError> {
        self.require_room()?;
        let message = IngestRelationship {
            source: EntityDraft::from_name(from_type, from_value, 1.0)?,
            target: EntityDraft::from_name(to_type, to_value, 1.0)?,
            relationship: relationship_label(relationship)?,
            properties,
            from: HERE,
        };
        Ok(self.handles.notes.call(message).await?)
    }

    /// All relationships of an entity, in either direction, each with the entity at the other end.
    ///
    /// # Errors
    /// `Invalid` as in [`MemoryManager::ingest_relationship`]. An unknown entity has no relationships.
    pub async fn get_entity_relationships(
        &self,
        entity_type: &str,
        entity_value: &str,
    ) -> Result<Vec<EntityRelationship>, MemoryError> {
        let key = EntityKey::new(entity_type, entity_value)?;
        Ok(self.handles.notes.call(ReadRelationships(key)).await?)
    }

    /// Nodes of the graph: notes and entities of a type whose label contains `part`.
    ///
    /// # Errors
    /// When the graph does not respond in time.
    pub async fn nodes(
        &self,
        page: Page,
        node_type: Option<String>,
        part: Option<String>,
    ) -> Result<Vec<GraphNode>, MemoryError> {
        let message = ListNodes {
            page,
            node_type,
            part,
        };
        Ok(self.handles.notes.call(message).await?)
    }

    /// Edges of the graph.
    ///
    /// # Errors
    /// When the graph does not respond in time.
    pub async fn edges(&self, page: Page) -> Result<Vec<GraphEdge>, MemoryError> {
        Ok(self.handles.notes.call(ListEdges(page)).await?)
    }

    /// A page of the matching entities, and the total number of matches.
    ///
    /// # Errors
    /// When the graph does not respond in time.
    pub async fn entities(
        &self,
        filter: EntityFilter,
        order: EntityOrder,
        page: Page,
    ) -> Result<(Vec<EntityView>, usize), MemoryError> {
        let message = ListEntities { filter, order, page };
        Ok(self.handles.notes.call(message).await?)
    }

    /// Which of these values the entities are, lie around or inside, or stand above, with the notes that mention them.
    ///
    /// # Errors
    /// When the graph does not respond in time.
    pub async fn lookup(&self, asked: Vec<AskedValue>) -> Result<LookupOfEntities, MemoryError> {
        Ok(self.handles.notes.call(LookUpEntities(asked)).await?)
    }

    /// A picture of a part of the graph.
    ///
    /// # Errors
    /// `NotFound` when there is no node to start from.
    pub async fn view(&self, wanted: ViewGraph) -> Result<GraphView, MemoryError> {
        Ok(self.handles.notes.call(wanted).await?)
    }

    /// A node of the graph, with a page of its notes and a page of its neighbours.
    ///
    /// # Errors
    /// `NotFound` when there is no such node.
    pub async fn node(&self, id: String, page: Page) -> Result<NodeDetails, MemoryError> {
        Ok(self.handles.notes.call(ReadGraphNode { id, page }).await?)
    }

    /// The domains with most notes, at most 1000.
    ///
    /// # Errors
    /// When the graph does not respond in time.
    pub async fn domains(&self) -> Result<Vec<DomainCount>, MemoryError> {
        Ok(self.handles.notes.call(ListDomains).await?)
    }

    /// Counts of what the memory holds.
    ///
    /// # Errors
    /// When the graph does not respond in time.
    pub async fn counts(&self) -> Result<MemoryCounts, MemoryError> {
        Ok(self.handles.notes.call(CountMemory).await?)
    }

    async fn look_up(
        &self,
        query: &str,
        k: usize,
        options: RecallOptions,
    ) -> Result<NotesFound, MemoryError> {
        self.retrievals.fetch_add(1, Ordering::Relaxed);
        let settings = self.handles.settings();
        let message = RecallNotes {
            question: read_question(&self.handles.extractor, &settings.llm, query).await,
            k,
            options,
        };
        Ok(self.handles.notes.call(message).await?)
    }

    /// Telemetry never delays a response.
    fn record(&self, event: &'static str, query: &str, found: &NotesFound, since: Instant) {
        let took = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let count = found.notes.len();
        let entry = TelemetryEntry::new(event, query, found.intent.as_str(), count, took, clock::now());
        if self.handles.entries.try_send(entry).is_err() {
            tracing::debug!("a telemetry entry was dropped");
        }
    }
}
