//! Works through the notes queued for the language model, one at a time, in the background.
//!
//! No caller waits for it. When the endpoint is unreachable, the queue is kept and the back-off grows. A failed note
//! is retried after the others have had their turn. A note that keeps failing while others succeed is taken off the
//! queue and keeps what the rules found.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Serialize;
use uuid::Uuid;

use super::extractor::{Extract, ExtractWithModel, ExtractorHandle, JudgeNote};
use super::note_store::enrich::{
    ApplyEnrichment, CountEnrichmentFailure, ReadWaitingNotes, Verdict, WaitingNote,
};
use super::note_store::{EnrichmentQueue, NoteHandle};
use super::worker::{Access, ActorCore, Work, WorkerHandle};
use crate::domain::error::DomainError;
use crate::domain::extraction::KnownNames;
use crate::domain::memory::entity::{EntityDraft, Mentions};
use crate::domain::memory::note::Note;
use crate::domain::staging::{ExtractedRelation, Extraction, SourceType};
use crate::llm::LlmError;
use crate::llm::evolution::{Decision, OlderNote};

/// Number of notes fetched at a time.
const BATCH: u32 = 8;
/// Attempts per note.
const MAX_ATTEMPTS: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);
/// Polling interval of the queue when no new note is signalled.
const ROUND: Duration = Duration::from_secs(30);
/// Consecutive notes without an answer before backing off: a single one may be the note's own fault.
const MAX_OUTAGES: usize = 2;
/// Unanswered notes that a later success may count as failures of their own. More of them point to a real outage.
const MAX_SUSPECTS: usize = 4;
/// Findings of the model below this confidence are dropped.
const MIN_CONFIDENCE: f64 = 0.5;

/// Handle to the enricher.
pub type EnricherHandle = WorkerHandle<EnricherCore>;

/// Reads the state of the queue.
#[derive(Debug)]
pub struct ReadQueue;

/// State of the queue at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QueueState {
    /// Number of waiting notes.
    pub depth: u64,
    /// State of the worker: `idle` (waiting for notes), `processing` (working on one), `backing_off` (waiting before
    /// a retry), or `paused` (notes wait, but no model is configured).
    pub status: &'static str,
}

impl Work for ReadQueue {
    type Core = EnricherCore;
    type Reply = QueueState;
    const NAME: &'static str = "read_queue";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) {}

    async fn run(self, core: Arc<EnricherCore>) -> Result<Self::Reply, DomainError> {
        let depth = core.queue.depth();
        let status = status_of(core.on, depth, core.status.load(Ordering::Relaxed));
        Ok(QueueState { depth, status })
    }
}

const IDLE: u8 = 0;
const PROCESSING: u8 = 1;
const BACKING_OFF: u8 = 2;

/// State shared by the enricher's requests and its background task.
pub struct EnricherCore {
    notes: NoteHandle,
    extractor: ExtractorHandle,
    queue: Arc<EnrichmentQueue>,
    /// Whether a model is configured.
    on: bool,
    /// Time limit for one note.
    patience: Duration,
    status: AtomicU8,
}

impl ActorCore for EnricherCore {
    type Tenant = ();

    const NAME: &'static str = "enricher";

    /// Processes the queue, if a model is configured.
    fn upkeep(self: &Arc<Self>) -> Vec<BoxFuture<'static, ()>> {
        let work = self.on.then(|| Arc::clone(self).work());
        work.into_iter().map(|work| Box::pin(work) as _).collect()
    }
}

impl EnricherCore {
    /// `on`: whether a model is configured; `patience`: time limit for one note.
    pub fn new(
        notes: NoteHandle,
        extractor: ExtractorHandle,
        queue: Arc<EnrichmentQueue>,
        on: bool,
        patience: Duration,
    ) -> Self {
        Self {
            notes,
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
            let next = ReadWaitingNotes {
                after: round.after,
                limit: BATCH,
            };
            let batch = self.notes.call(next).await.unwrap_or_else(|error| {
                tracing::warn!(?error, "reading the enrichment queue failed");
                Vec::new()
            });
            if batch.is_empty() && !round.left_behind {
                self.status.store(IDLE, Ordering::Relaxed);
                tokio::time::timeout(ROUND, self.queue.wait_for_work()).await.ok();
                round.after = None;
            } else if batch.is_empty() {
                // Failed notes are retried, but only after a pause.
                round.after = None;
                self.pause(&mut round).await;
                round.left_behind = false;
            } else {
                self.batch(batch, &mut round).await;
            }
        }
    }

    /// Processes a batch, backing off when the endpoint seems unreachable.
    async fn batch(&self, batch: Vec<WaitingNote>, round: &mut Round) {
        for waiting in batch {
            let note = waiting.note.id;
            round.after = Some(note);
            self.status.store(PROCESSING, Ordering::Relaxed);
            // A panic fails only this note's turn.
            let turn = AssertUnwindSafe(self.enrich(waiting)).catch_unwind();
            match turn.await.unwrap_or(Turn::Unanswered(LlmError::Broken)) {
                Turn::Done => {
                    (round.pause, round.outages) = (FIRST_PAUSE, 0);
                    // The endpoint works, so the earlier failures may be the notes' own fault.
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

    /// Processes one note.
    async fn enrich(&self, waiting: WaitingNote) -> Turn {
        let (note, read) = (waiting.note.id, waiting.digests());
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
        self.apply(ApplyEnrichment {
            note,
            read,
            found,
            verdict,
        })
        .await
    }

    async fn apply(&self, apply: ApplyEnrichment) -> Turn {
        let note = apply.note;
        match self.notes.call(apply).await {
            Ok(()) => Turn::Done,
            Err(error) => {
                tracing::warn!(%note, ?error, "storing what the language model found failed; trying again later");
                Turn::Failed
            }
        }
    }

    /// Counts a failed attempt at a note; returns whether the note may be retried.
    async fn may_fail_again(&self, note: Uuid, error: &LlmError) -> bool {
        tracing::warn!(%note, %error, "the language model can do nothing with a note");
        let failed = self.notes.call(CountEnrichmentFailure(note)).await;
        failed.map_or(true, |attempts| attempts < MAX_ATTEMPTS)
    }

    /// Counts a failure caused by the note, and gives the note up after too many.
    async fn count_failure(&self, note: Uuid, error: &LlmError) {
        if !self.may_fail_again(note, error).await {
            self.apply(ApplyEnrichment {
                note,
                read: Vec::new(),
                found: Mentions::default(),
                verdict: Verdict::Keep,
            })
            .await;
        }
    }

    /// Entities and relations that the model and the rules find in a text.
    async fn mentions(&self, text: String, until: Instant) -> Result<Mentions, LlmError> {
        let extract = Extract {
            workspace: None,
            text,
            source_type: SourceType::AnalystReport,
            known: KnownNames::default(),
        };
        let extract = ExtractWithModel {
            extract,
            patience: until.saturating_duration_since(Instant::now()),
        };
        // A full mailbox or gate is transient, as an outage is.
        let found = self.extractor.call(extract).await;
        found.unwrap_or(Err(LlmError::OutOfTime)).map(mentions_of)
    }

    /// The model's verdict on the note.
    async fn verdict(&self, waiting: &WaitingNote, until: Instant) -> Result<Verdict, LlmError> {
        if waiting.candidates.is_empty() {
            return Ok(Verdict::Keep);
        }
        let candidate = |note: &Note| OlderNote {
            id: note.id.to_string(),
            content: note.content.clone(),
            created_at: note.created_at,
        };
        let ask = JudgeNote {
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

/// Progress of one pass over the queue.
struct Round {
    /// Last note processed.
    after: Option<Uuid>,
    /// Whether notes that failed in this pass are still queued.
    left_behind: bool,
    /// Most recent unanswered notes since the last success.
    suspects: Vec<(Uuid, LlmError)>,
    /// Unanswered notes since the last success.
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

/// Outcome of one note.
enum Turn {
    Done,
    /// Enriching the note, or storing the result, failed.
    Failed,
    /// The model gave no answer; the cause may or may not be the note.
    Unanswered(LlmError),
}

/// Name of the worker's state; `on`: whether a model is configured.
fn status_of(on: bool, depth: u64, status: u8) -> &'static str {
    match status {
        _ if !on && depth > 0 => "paused",
        PROCESSING => "processing",
        BACKING_OFF => "backing_off",
        _ => "idle",
    }
}

/// Converts the extractor's findings; those that the text does not support are dropped.
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
            found.relations.push(ExtractedRelation {
                source,
                target,
                ..relation
            });
        }
    }
    found
}

#[cfg(test)]
mod tests;
