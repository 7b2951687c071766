//! Works off the notes that wait for a language model, one after the other, beside everything else.
//!
//! Nobody waits for it. An endpoint that is out of reach costs time only: the queue stays, and the pauses grow. A note
//! that fails steps aside for the others until all have had their turn; one that fails again and again while others
//! do well leaves the queue as it is, with what the rules found.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Serialize;
use uuid::Uuid;

use super::extractor::{Decide, Extract, ExtractWithModel, ExtractorHandle};
use super::graph_store::GraphHandle;
use super::graph_store::memory::EnrichmentQueue;
use super::graph_store::memory::enrich::{
    ApplyEnrichment, EnrichmentFailed, NextWaiting, Verdict, WaitingNote,
};
use super::worker::{Access, ActorCore, Party, Work, WorkerHandle};
use crate::domain::error::DomainError;
use crate::domain::memory::entity::{EntityDraft, Mentions, RelationDraft};
use crate::domain::memory::note::Note;
use crate::domain::staging::{Extraction, SourceType};
use crate::llm::LlmError;
use crate::llm::evolution::{Candidate, Decision};

/// Notes that are looked up at a time.
const BATCH: u32 = 8;
/// Attempts at one note.
const MAX_ATTEMPTS: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);
/// How often the queue is looked at though nobody rang.
const ROUND: Duration = Duration::from_secs(30);
/// Notes in a row that the endpoint lets down before it is given a pause: one alone may be the note's fault.
const MAX_OUTAGES: usize = 2;
/// Notes that a later success may tell to be at fault: many would be so after a real outage.
const MAX_SUSPECTS: usize = 4;
/// Below this what a model found is left out.
const MIN_CONFIDENCE: f64 = 0.5;

/// Way to the enricher.
pub type EnricherHandle = WorkerHandle<EnricherCore>;

/// How the queue does.
#[derive(Debug)]
pub struct ReadQueue;

/// The queue at this moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QueueState {
    /// Notes that wait.
    pub depth: u64,
    /// What the worker does: `idle` (it waits for notes), `processing` (it works on one), `backing_off` (it waits before
    /// it tries again), or `paused`: there is none, because no model is configured, and notes wait.
    pub status: &'static str,
}

impl Work for ReadQueue {
    type Core = EnricherCore;
    type Reply = QueueState;
    const NAME: &'static str = "read_queue";
    const ACCESS: Access = Access::Read;

    fn party(&self) -> Party {
        None
    }

    async fn run(self, core: Arc<EnricherCore>) -> Result<Self::Reply, DomainError> {
        let depth = core.queue.depth();
        let status = status_of(core.on, depth, core.status.load(Ordering::Relaxed));
        Ok(QueueState { depth, status })
    }
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

impl ActorCore for EnricherCore {
    const NAME: &'static str = "enricher";

    /// Works the queue off, if there is a model to ask.
    fn upkeep(self: &Arc<Self>) -> Vec<BoxFuture<'static, ()>> {
        let work = self.on.then(|| Arc::clone(self).work());
        work.into_iter().map(|work| Box::pin(work) as _).collect()
    }
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

    async fn work(self: Arc<Self>) {
        let mut round = Round::new();
        loop {
            let next = NextWaiting {
                after: round.after,
                limit: BATCH,
            };
            let batch = self.graph.call(next).await.unwrap_or_else(|error| {
                tracing::warn!(?error, "reading the enrichment queue failed");
                Vec::new()
            });
            if batch.is_empty() && !round.left_behind {
                self.status.store(IDLE, Ordering::Relaxed);
                tokio::time::timeout(ROUND, self.queue.rung()).await.ok();
                round.after = None;
            } else if batch.is_empty() {
                // Those left behind are tried again, not at once.
                round.after = None;
                self.pause(&mut round).await;
                round.left_behind = false;
            } else {
                self.batch(batch, &mut round).await;
            }
        }
    }

    /// A batch, until the endpoint seems to be out of reach.
    async fn batch(&self, batch: Vec<WaitingNote>, round: &mut Round) {
        for waiting in batch {
            let note = waiting.note.id;
            round.after = Some(note);
            self.status.store(PROCESSING, Ordering::Relaxed);
            // A panic costs this note's turn only.
            let turn = AssertUnwindSafe(self.enrich(waiting)).catch_unwind();
            match turn.await.unwrap_or(Turn::Unanswered(LlmError::Broken)) {
                Turn::Done => {
                    (round.pause, round.outages) = (FIRST_PAUSE, 0);
                    // The endpoint works, so the fault may be theirs.
                    for (failed, error) in std::mem::take(&mut round.suspects) {
                        self.count_failure(failed, &error).await;
                    }
                }
                Turn::Failed => round.left_behind = true,
                Turn::Unanswered(error) => {
                    round.suspect(note, error);
                    if round.outages >= MAX_OUTAGES {
                        self.pause(round).await;
                    }
                }
            }
        }
    }

    async fn pause(&self, round: &mut Round) {
        self.status.store(BACKING_OFF, Ordering::Relaxed);
        tokio::time::sleep(round.pause).await;
        round.pause = (round.pause * 2).min(MAX_PAUSE);
    }

    /// One note's turn.
    async fn enrich(&self, waiting: WaitingNote) -> Turn {
        let note = waiting.note.id;
        let until = Instant::now() + self.patience;
        let verdict = match self.verdict(&waiting, until).await {
            Ok(verdict) => verdict,
            Err(error) if !error.is_answer() => return Turn::Unanswered(error),
            Err(error) if self.may_fail_again(note, &error).await => return Turn::Failed,
            Err(_) => Verdict::Keep,
        };
        let found = match self.mentions(waiting.note.content, until).await {
            Ok(found) => found,
            Err(error) if !error.is_answer() => return Turn::Unanswered(error),
            Err(error) if self.may_fail_again(note, &error).await => return Turn::Failed,
            Err(_) => Mentions::default(),
        };
        self.apply(ApplyEnrichment { note, found, verdict }).await
    }

    async fn apply(&self, apply: ApplyEnrichment) -> Turn {
        let note = apply.note;
        match self.graph.call(apply).await {
            Ok(()) => Turn::Done,
            Err(error) => {
                tracing::warn!(%note, ?error, "storing what the language model found failed; trying again later");
                Turn::Failed
            }
        }
    }

    /// Counts a failure of the model at a note; whether the note gets another turn.
    async fn may_fail_again(&self, note: Uuid, error: &LlmError) -> bool {
        tracing::warn!(%note, %error, "the language model can do nothing with a note");
        let failed = self.graph.call(EnrichmentFailed(note)).await;
        failed.map_or(true, |attempts| attempts < MAX_ATTEMPTS)
    }

    /// Counts a failure that came of the note, and gives the note up after too many.
    async fn count_failure(&self, note: Uuid, error: &LlmError) {
        if !self.may_fail_again(note, error).await {
            self.apply(ApplyEnrichment {
                note,
                found: Mentions::default(),
                verdict: Verdict::Keep,
            })
            .await;
        }
    }

    /// What the model and the rules find in a text.
    async fn mentions(&self, text: String, until: Instant) -> Result<Mentions, LlmError> {
        let extract = Extract {
            workspace: None,
            text,
            source_type: SourceType::AnalystReport,
        };
        let extract = ExtractWithModel {
            extract,
            patience: until.saturating_duration_since(Instant::now()),
        };
        // A full mailbox or gate is over in a moment, as an outage is.
        let found = self.extractor.call(extract).await;
        found.unwrap_or(Err(LlmError::OutOfTime)).map(mentions_of)
    }

    /// What the model makes of the note.
    async fn verdict(&self, waiting: &WaitingNote, until: Instant) -> Result<Verdict, LlmError> {
        if waiting.candidates.is_empty() {
            return Ok(Verdict::Keep);
        }
        let candidate = |note: &Note| Candidate {
            id: note.id.to_string(),
            content: note.content.clone(),
            created_at: note.created_at,
        };
        let ask = Decide {
            new: waiting.note.content.clone(),
            candidates: waiting.candidates.iter().map(candidate).collect(),
            patience: until.saturating_duration_since(Instant::now()),
        };
        let id = |id: &str| Uuid::parse_str(id).map_err(|error| LlmError::Unusable(error.to_string()));
        let decision = self.extractor.call(ask).await;
        Ok(match decision.unwrap_or(Err(LlmError::OutOfTime))? {
            Decision::Add => Verdict::Keep,
            Decision::Supersede { id: older } => Verdict::Supersedes(id(&older)?),
            Decision::NoOp { id: older } => Verdict::SaidBy(id(&older)?),
            Decision::Update { id: older, merged } => Verdict::Merges {
                older: id(&older)?,
                text: merged,
            },
        })
    }
}

/// Where the work stands.
struct Round {
    /// The last note that had its turn.
    after: Option<Uuid>,
    /// Whether notes that had their turn still wait.
    left_behind: bool,
    /// The last notes without an answer since the last one with.
    suspects: Vec<(Uuid, LlmError)>,
    /// Outages since then.
    outages: usize,
    pause: Duration,
}

impl Round {
    fn new() -> Self {
        Self {
            after: None,
            left_behind: false,
            suspects: Vec::new(),
            outages: 0,
            pause: FIRST_PAUSE,
        }
    }

    fn suspect(&mut self, note: Uuid, error: LlmError) {
        self.left_behind = true;
        self.outages += usize::from(error.is_outage());
        self.suspects.retain(|(known, _)| *known != note);
        self.suspects.push((note, error));
        if self.suspects.len() > MAX_SUSPECTS {
            self.suspects.remove(0);
        }
    }
}

/// How a note's turn went.
enum Turn {
    Done,
    /// The note, or storing it, failed.
    Failed,
    /// There was no answer, for a reason that may be the note's or not.
    Unanswered(LlmError),
}

/// What the worker does, by name; `on`: whether there is one.
fn status_of(on: bool, depth: u64, status: u8) -> &'static str {
    match status {
        _ if !on && depth > 0 => "paused",
        PROCESSING => "processing",
        BACKING_OFF => "backing_off",
        _ => "idle",
    }
}

/// What the extractor found, as the memory names it; what the text does not bear out is left out.
fn mentions_of(extraction: Extraction) -> Mentions {
    let mut found = Mentions::default();
    let mut places = Vec::with_capacity(extraction.entities.len());
    for entity in &extraction.entities {
        let sure = entity.warnings.is_empty() && entity.confidence >= MIN_CONFIDENCE;
        let draft = EntityDraft::of_extracted(entity).filter(|_| sure);
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

#[cfg(test)]
mod tests;
