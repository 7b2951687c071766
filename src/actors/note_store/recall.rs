//! Recall of notes: what search finds and the graph answers, ranked (`ranking.rs`), with the notes themselves.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use parking_lot::RwLock;
use uuid::Uuid;

use super::core::NoteCore;
use super::corrections::{BEYOND, put_corrections_first};
use super::graph::MemoryGraph;
use super::lead::LeadingNotes;
use super::question::QuestionAnswers;
use super::ranking::{RankedNote, Ranking};
use super::scope::Scope;
use super::state::Memory;
use super::tuning::Tuning;
use super::{FoundNote, NotesFound, RecallNotes};
use crate::actors::indexed_store::index_error;
use crate::actors::job::blocking;
use crate::clock;
use crate::domain::error::DomainError;
use crate::domain::memory::note::{Note, truncate_chars};
use crate::domain::memory::why::{InterpretedQuestion, NoteWhy};
use crate::domain::question::{Intent, Question};
use crate::domain::tlp::Tlp;
use crate::search::{
    Filter, Hit, LEADING_SCORE, Mode, SCORE_FLOOR, SearchIndex, SearchResults, WorkspaceIndex,
};

/// Maximum number of notes contributed by word and vector search.
const POOL: usize = 100;
/// Maximum number of successors followed while a note is read.
const MAX_SUCCESSIONS: usize = 16;
/// Characters of a note that are read for dates.
const READ: usize = 20_000;

impl NoteCore {
    /// Searches the notes.
    pub(super) async fn recall_notes(&self, message: RecallNotes) -> Result<NotesFound, DomainError> {
        let memory = self.memory().await?;
        let scope = message.options.scope.clone().normal();
        let now = clock::now();
        let (k, question) = (message.k, Arc::clone(&message.question));
        let answered = self
            .answer_note_question(memory, &message.question, &scope)
            .await?;
        let search = NoteSearch {
            leading: self
                .leading_notes(memory, &message.question, &scope, answered.as_ref())
                .await?,
            answered,
            target: self.notes_index(memory).await?,
            index: Arc::clone(&self.notes.index),
            graph: Arc::clone(&memory.graph),
            tuning: (memory.tuning)(),
            message,
            scope: scope.clone(),
            now,
        };
        let Outcome {
            intent,
            ranked,
            rare,
            told,
        } = blocking(move || search.run()).await?;
        let (told, reasons) = told.unzip();
        let hits = ranked.into_iter().map(|ranked| ranked.hit).collect();
        let mut notes = self.load_notes(memory, hits, reasons.unwrap_or_default()).await?;
        notes.retain(|found| scope.admits_stored(&found.note));
        if !question.is_statement() {
            put_corrections_first(&mut notes, question.asks_about_present(), &rare);
        }
        notes.truncate(k);
        Ok(NotesFound {
            notes,
            intent,
            question: told,
        })
    }

    /// What the graph answers to a question that asks for related things; `None` if it doesn't or there is no answer. A
    /// statement asks for nothing.
    pub(super) async fn answer_note_question(
        &self,
        memory: &Memory,
        question: &Arc<Question>,
        scope: &Scope,
    ) -> Result<Option<QuestionAnswers>, DomainError> {
        let asks = question.asks_for_related() || question.model_reading().is_some();
        if question.is_statement() || !asks {
            return Ok(None);
        }
        let (question, scope) = (Arc::clone(question), scope.clone());
        let graph = Arc::clone(&memory.graph);
        let answered = blocking(move || {
            let graph = graph.read();
            let asked = match question.model_reading() {
                Some(meant) => graph.understand_model_reading(meant),
                None => graph.understand(&question),
            };
            Ok(asked.map(|asked| QuestionAnswers::to(&graph, asked, &scope)))
        });
        let Some(mut answered) = answered.await? else {
            return Ok(None);
        };
        if let Some(period) = answered.asked.plan.period {
            let texts = self
                .notes
                .store
                .notes_by_id(memory.workspace, &answered.unread())
                .await?;
            let stated = move || {
                let of_period = texts
                    .iter()
                    .filter(|note| period.is_stated_in(truncate_chars(&note.content, READ)));
                Ok(of_period.map(|note| note.id).collect::<Vec<Uuid>>())
            };
            answered.keep_timely(&blocking(stated).await?);
        }
        Ok(Some(answered).filter(QuestionAnswers::decide))
    }

    /// The notes of these hits, with the reasons for them; a note superseded since the search is replaced by its
    /// successor.
    pub(super) async fn load_notes(
        &self,
        memory: &Memory,
        mut hits: Vec<Hit>,
        reasons: Vec<NoteWhy>,
    ) -> Result<Vec<FoundNote>, DomainError> {
        let mut stored: HashMap<Uuid, Note> = HashMap::new();
        for _ in 0..MAX_SUCCESSIONS {
            let ids = hits.iter().map(|hit| hit.node_id);
            let new: Vec<Uuid> = ids.filter(|id| !stored.contains_key(id)).collect();
            let notes = self.notes.store.notes_by_id(memory.workspace, &new).await?;
            stored.extend(notes.into_iter().map(|note| (note.id, note)));
            let mut moved = false;
            for hit in &mut hits {
                let by = stored.get(&hit.node_id).and_then(|note| note.superseded_by);
                if let Some(by) = by {
                    hit.node_id = by;
                    moved = true;
                }
            }
            if !moved {
                break;
            }
        }
        let reasons = self.with_sentences(memory, reasons).await?;
        let graph = memory.graph();
        let mut reasons = reasons.into_iter();
        let found = hits.into_iter().filter_map(|hit| {
            let why = reasons.next();
            // Two hits may have the same successor.
            let note = stored
                .remove(&hit.node_id)
                .filter(|note| note.superseded_by.is_none())?;
            Some(FoundNote {
                entities: graph.values(&note.mentions),
                score: hit.score,
                matched: hit.matched,
                conflicts_with: Vec::new(),
                note,
                why,
            })
        });
        Ok(found.collect())
    }

    /// The reasons with the sentences that state the relationships; those of which no sentence is known are left out.
    async fn with_sentences(
        &self,
        memory: &Memory,
        mut reasons: Vec<NoteWhy>,
    ) -> Result<Vec<NoteWhy>, DomainError> {
        let passages = reasons.iter().flat_map(|why| &why.passages);
        let ids: Vec<Uuid> = passages.map(|passage| passage.id).collect();
        let stored = self.notes.store.relations_by_id(memory.workspace, &ids).await?;
        let sentences = stored
            .into_iter()
            .filter_map(|relation| Some((relation.id, relation.proof?)));
        let sentences: HashMap<Uuid, String> = sentences.collect();
        for passage in reasons.iter_mut().flat_map(|why| &mut why.passages) {
            passage.text = sentences.get(&passage.id).cloned().unwrap_or_default();
        }
        for why in &mut reasons {
            why.passages.retain(|passage| !passage.text.is_empty());
        }
        Ok(reasons)
    }
}

/// A search of the notes, away from the async threads.
struct NoteSearch {
    target: Arc<WorkspaceIndex>,
    index: Arc<SearchIndex>,
    graph: Arc<RwLock<MemoryGraph>>,
    tuning: Tuning,
    message: RecallNotes,
    scope: Scope,
    now: DateTime<Utc>,
    answered: Option<QuestionAnswers>,
    leading: LeadingNotes,
}

struct Outcome {
    intent: Intent,
    ranked: Vec<RankedNote>,
    /// The exact rare words by which notes lead.
    rare: Vec<String>,
    /// If asked for, how the question was understood, and why each note was found.
    told: Option<(InterpretedQuestion, Vec<NoteWhy>)>,
}

impl NoteSearch {
    fn run(self) -> Result<Outcome, DomainError> {
        let RecallNotes { question, k, options } = &self.message;
        let (intent, query) = (question.intent(), question.text());
        let SearchResults { hits, reasons, .. } = self.search_index()?;
        let graph = self.graph.read();
        let mut ranking = Ranking {
            graph: &graph,
            tuning: &self.tuning,
            intent,
            now: self.now,
            scope: &self.scope,
            answered: self.answered.as_ref(),
            has_code_word: false,
            lead: &self.leading.lead,
        };
        let asked = ranking.entities_of(question);
        let names = graph.named_by(query, &asked, ranking.answered);
        let is_led = hits.first().is_some_and(|hit| hit.score >= LEADING_SCORE);
        let rare = if is_led {
            ranking.unknown_code_words(query, &names)
        } else {
            Vec::new()
        };
        ranking.has_code_word = !rare.is_empty();
        // The notes about a name lead where the text asks, or is hardly more than the name: a sentence that states something
        // is no question about the names in it.
        let near = if question.is_statement() {
            HashMap::new()
        } else {
            let entities = ranking.asked_entities(&asked, &names);
            ranking.neighbourhood(&entities, !self.is_look_up())
        };
        let mut ranked = ranking.fuse(hits, near, *k + BEYOND);
        let least = options.min_score.unwrap_or(SCORE_FLOOR);
        ranked.retain(|note| note.hit.score >= least);
        let told = options
            .explain
            .then(|| ranking.explain(question, (&asked, &names), &reasons, &ranked))
            .map(|(mut question, reasons)| {
                question.time = self.leading.time;
                (question, reasons)
            });
        Ok(Outcome {
            intent,
            ranked,
            rare,
            told,
        })
    }

    /// Whether the question consists of identifiers: only notes that have one of them are results.
    fn is_look_up(&self) -> bool {
        self.answered.is_none() && !self.message.question.identifiers().is_empty()
    }

    /// What the index finds.
    fn search_index(&self) -> Result<SearchResults, DomainError> {
        let (question, pool) = (&self.message.question, POOL.max(self.message.k));
        let filter = Filter {
            only: self.scope.filter(&self.graph),
            ..Filter::up_to(Tlp::White)
        };
        if self.is_look_up() {
            let found = self
                .target
                .find_identifiers(question.identifiers(), &filter, pool);
            return found.map_err(index_error);
        }
        let vector = self.index.embed_query(question.text());
        if let Err(error) = &vector {
            tracing::warn!(%error, "embedding the query failed; searching by words and graph only");
        }
        let vector = vector.ok();
        let page = (pool, self.message.options.explain);
        let found = self
            .target
            .find(question.text(), vector.as_deref(), Mode::Blended, &filter, page);
        found.map_err(index_error)
    }
}
