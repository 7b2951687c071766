//! Works off the notes that wait for a language model, one after the other, beside everything else.
//!
//! Nobody waits for it. An endpoint that is out of reach costs time only: the queue stays, and the pauses grow. A note
//! for which the model gives nothing usable again and again leaves the queue as it is.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use actix::{Actor, Context};
use futures_util::FutureExt;
use serde::Serialize;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::extractor::{Decide, Extract, ExtractorHandle};
use super::graph_store::GraphHandle;
use super::graph_store::memory::EnrichmentQueue;
use super::graph_store::memory::enrich::{
    ApplyEnrichment, EnrichmentFailed, NextWaiting, Verdict, WaitingNote,
};
use super::handle::{Access, ActorHandle, Request};
use super::job;
use crate::config::ActorSettings;
use crate::domain::error::DomainError;
use crate::domain::extraction::EntityKind;
use crate::domain::memory::entity::{EntityDraft, Mentions, RelationDraft, type_of};
use crate::domain::memory::note::Note;
use crate::domain::node::NodeType;
use crate::domain::staging::{ExtractedEntity, Extraction, SourceType};
use crate::llm::evolution::{Candidate, Decision};

/// Notes that are looked up at a time.
const BATCH: usize = 8;
/// Attempts at one note.
const MOST_ATTEMPTS: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How often the queue is looked at though nobody rang.
const ROUND: Duration = Duration::from_secs(30);
/// How the extractor says that only the rules have read a text, and that asking again would change nothing.
const MODEL_UNAVAILABLE: &str = "language model unavailable";
const UNUSABLE: &str = "unusable";
/// Below this what a model found is left out.
const LEAST_CONFIDENCE: f64 = 0.5;

/// Way to the enricher.
pub type EnricherHandle = ActorHandle<Enricher>;

/// How the queue does.
#[derive(Debug)]
pub struct ReadQueue;

/// The queue at this moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QueueState {
    /// Notes that wait.
    pub depth: u64,
    /// `idle`, `processing`, `backing_off` (the endpoint is out of reach) or `paused` (no model is configured).
    pub status: &'static str,
}

impl Request for ReadQueue {
    type Reply = QueueState;
    const NAME: &'static str = "read_queue";
    const ACCESS: Access = Access::Read;
}

const IDLE: u8 = 0;
const PROCESSING: u8 = 1;
const BACKING_OFF: u8 = 2;

/// What the work needs.
pub struct EnricherCore {
    graph: GraphHandle,
    extractor: ExtractorHandle,
    queue: Arc<EnrichmentQueue>,
    /// Whether there is a model to ask.
    on: bool,
    /// Longest work on one note.
    patience: Duration,
    status: AtomicU8,
}

/// The actor.
pub struct Enricher {
    core: Arc<EnricherCore>,
    runtime: Handle,
}

impl EnricherCore {
    /// `on`: whether there is a model to ask; `patience`: the longest work on one note.
    pub fn new(
        graph: GraphHandle,
        extractor: ExtractorHandle,
        queue: Arc<EnrichmentQueue>,
        on: bool,
        patience: Duration,
    ) -> Self {
        Self {
            graph,
            extractor,
            queue,
            on,
            patience,
            status: AtomicU8::new(IDLE),
        }
    }

    #[allow(clippy::unused_async)] // The shape of every request's work.
    async fn state(&self, _: ReadQueue) -> Result<QueueState, DomainError> {
        let depth = self.queue.depth();
        let status = match (self.on, self.status.load(Ordering::Relaxed)) {
            (_, _) if depth == 0 => "idle",
            (false, _) => "paused",
            (true, BACKING_OFF) => "backing_off",
            (true, _) => "processing",
        };
        Ok(QueueState { depth, status })
    }

    async fn work(self: Arc<Self>) {
        let mut pause = FIRST_PAUSE;
        loop {
            let batch = self.graph.call(NextWaiting { limit: BATCH }).await;
            let batch = batch.unwrap_or_else(|error| {
                tracing::warn!(?error, "reading the enrichment queue failed");
                Vec::new()
            });
            if batch.is_empty() {
                self.status.store(IDLE, Ordering::Relaxed);
                tokio::time::timeout(ROUND, self.queue.rung()).await.ok();
                continue;
            }
            self.status.store(PROCESSING, Ordering::Relaxed);
            let mut reached = true;
            for waiting in batch {
                // A panic costs this note's turn only.
                let turn = AssertUnwindSafe(self.enrich(waiting)).catch_unwind();
                reached = turn.await.unwrap_or(false);
                if !reached {
                    break;
                }
            }
            if reached {
                pause = FIRST_PAUSE;
            } else {
                self.status.store(BACKING_OFF, Ordering::Relaxed);
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }

    /// One note; false when the model can't be reached.
    async fn enrich(&self, waiting: WaitingNote) -> bool {
        let note = waiting.note.id;
        let verdict = match self.verdict(&waiting).await {
            Ok(Some(verdict)) => verdict,
            Ok(None) => return false,
            Err(error) => {
                tracing::warn!(%note, %error, "the language model's decision is unusable");
                let failed = self.graph.call(EnrichmentFailed(note)).await;
                if failed.is_ok_and(|attempts| attempts < MOST_ATTEMPTS) {
                    return true;
                }
                Verdict::Keep
            }
        };
        let Some(found) = self.mentions(waiting.note.content).await else {
            return false;
        };
        let apply = ApplyEnrichment { note, found, verdict };
        if let Err(error) = self.graph.call(apply).await {
            tracing::warn!(%note, ?error, "storing what the language model found failed; trying again later");
            return false;
        }
        true
    }

    /// What the model and the rules find in a text; none when the model can't be reached.
    async fn mentions(&self, text: String) -> Option<Mentions> {
        let extract = Extract {
            text,
            source_type: SourceType::AnalystReport,
        };
        let found = self.extractor.call(extract).await.ok()?;
        let missed = |warning: &String| warning.starts_with(MODEL_UNAVAILABLE) && !warning.contains(UNUSABLE);
        (!found.warnings.iter().any(missed)).then(|| mentions_of(found))
    }

    /// What the model makes of the note; none when it can't be reached, an error when it says nothing usable.
    async fn verdict(&self, waiting: &WaitingNote) -> Result<Option<Verdict>, String> {
        if waiting.candidates.is_empty() {
            return Ok(Some(Verdict::Keep));
        }
        let candidate = |note: &Note| Candidate {
            id: note.id.to_string(),
            content: note.content.clone(),
            created_at: note.created_at,
        };
        let ask = Decide {
            new: waiting.note.content.clone(),
            candidates: waiting.candidates.iter().map(candidate).collect(),
            patience: self.patience,
        };
        let id = |id: &str| Uuid::parse_str(id).map_err(|error| error.to_string());
        match self.extractor.call(ask).await {
            Ok(Ok(Decision::Add)) => Ok(Some(Verdict::Keep)),
            Ok(Ok(Decision::Supersede { id: older })) => Ok(Some(Verdict::Supersedes(id(&older)?))),
            Ok(Ok(Decision::NoOp { id: older })) => Ok(Some(Verdict::SaidBy(id(&older)?))),
            Ok(Ok(Decision::Update { id: older, merged })) => Ok(Some(Verdict::Merges {
                older: id(&older)?,
                text: merged,
            })),
            Ok(Err(error)) if error.is_outage() => Ok(None),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Ok(None),
        }
    }
}

/// What the extractor found, as the memory names it; what the text does not bear out is left out.
fn mentions_of(extraction: Extraction) -> Mentions {
    let mut found = Mentions::default();
    let mut places = Vec::with_capacity(extraction.entities.len());
    for entity in &extraction.entities {
        let sure = entity.warnings.is_empty() && entity.confidence >= LEAST_CONFIDENCE;
        let draft = entity_type(entity)
            .filter(|_| sure)
            .and_then(|kind| EntityDraft::named(kind, value_of(entity), entity.confidence).ok());
        places.push(draft.map(|draft| {
            found.entities.push(draft);
            found.entities.len() - 1
        }));
    }
    for relation in extraction.relations {
        let place = |at: usize| places.get(at).copied().flatten();
        if let (Some(source), Some(target)) = (place(relation.source), place(relation.target)) {
            found.relations.push(RelationDraft {
                source,
                target,
                relationship: relation.relationship,
                proof: relation.proof,
                confidence: relation.confidence,
            });
        }
    }
    found
}

fn value_of(entity: &ExtractedEntity) -> &str {
    let value = entity.properties.get("value").and_then(serde_json::Value::as_str);
    value.unwrap_or(&entity.name)
}

fn entity_type(entity: &ExtractedEntity) -> Option<&'static str> {
    match entity.node_type {
        NodeType::Actor => Some("actor"),
        NodeType::Cve => Some("cve"),
        NodeType::Attck => Some("attack_pattern"),
        NodeType::Tool => Some("tool"),
        NodeType::Vulnerability => Some("vulnerability"),
        NodeType::Osint => None,
        NodeType::Ioc => {
            let kind = entity
                .properties
                .get("ioc_type")
                .and_then(serde_json::Value::as_str);
            kind.and_then(|kind| kind.parse::<EntityKind>().ok()).map(type_of)
        }
    }
}

impl Enricher {
    /// Starts the actor, and its work if there is a model to ask; whoever stops the service ends the work.
    pub fn start(
        core: Arc<EnricherCore>,
        runtime: Handle,
        settings: ActorSettings,
    ) -> (EnricherHandle, Option<JoinHandle<()>>) {
        let work = core.on.then(|| runtime.spawn(Arc::clone(&core).work()));
        let arbiter = actix::Arbiter::current();
        let handle = ActorHandle::start(
            "enricher",
            settings,
            Box::new(move || {
                let (core, runtime) = (Arc::clone(&core), runtime.clone());
                Self::start_in_arbiter(&arbiter, move |ctx| {
                    ctx.set_mailbox_capacity(settings.mailbox.max(1));
                    Self { core, runtime }
                })
            }),
        );
        (handle, work)
    }
}

impl Actor for Enricher {
    type Context = Context<Self>;
}

job::delegate! {
    Enricher:
    ReadQueue => state,
}
