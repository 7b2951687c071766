//! Recall of notes: by words, by meaning, by the graph around the entities in the question, and by recency if asked
//! for.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use parking_lot::RwLock;
use uuid::Uuid;

use super::graph::{MemoryGraph, Slot};
use super::question::{Level, QuestionAnswers, is_indicator};
use super::scope::Scope;
use super::state::Memory;
use super::tuning::Tuning;
use super::{FoundNote, NotesFound, RecallNotes};
use crate::actors::graph_store::core::{GraphCore, index_error};
use crate::actors::job::blocking;
use crate::clock;
use crate::domain::error::DomainError;
use crate::domain::extraction::question_filters;
use crate::domain::memory::intent::{Intent, intent_of};
use crate::domain::memory::note::{Note, truncate_chars};
use crate::domain::memory::why::{InterpretedQuestion, NoteWhy};
use crate::domain::question::{ModelReading, ParsedQuestion, is_statement};
use crate::domain::tlp::Tlp;
use crate::search::{
    Filter, Hit, LEADING_SCORE, Mode, SearchIndex, SearchResults, WorkspaceIndex, is_code_word,
};

/// Maximum number of notes contributed by word and vector search.
const POOL: usize = 100;
/// Maximum number of notes contributed by each entity of the question, and by each related entity.
const PER_ENTITY: usize = 100;
const PER_RELATED: usize = 20;
/// Maximum number of related entities considered.
pub(super) const RELATED: usize = 50;
/// Score of a note that mentions only something related to what the question names.
const ONE_STEP: f32 = 0.4;
/// Maximum number of successors followed while a note is read.
const MAX_SUCCESSIONS: usize = 16;
/// Words of a question that are searched for names, and words of the longest name.
const WORDS: usize = 64;
const MAX_NAME_LENGTH: usize = 5;
/// Characters of a note that are read for dates.
const READ: usize = 20_000;
/// What the scores of all other notes are multiplied by where a note holds an exact rare word of the question, and the
/// score that such a note then has at least among answers of the graph.
const BESIDE_RARE: f32 = 0.5;
const RARE_AMONG_ANSWERS: f32 = 0.85;
/// Highest score of a note that doesn't answer a question which the graph answers.
const OTHER_NOTES: f32 = 0.15;

impl GraphCore {
    /// Searches the notes.
    pub(super) async fn recall_notes(&self, message: RecallNotes) -> Result<NotesFound, DomainError> {
        let memory = self.memory().await?;
        let scope = message.scope.clone().normal();
        let now = clock::now();
        let search = NoteSearch {
            answered: self
                .answer_note_question(memory, (&message.query, &message.meant), &scope, now)
                .await?,
            target: self.notes_index(memory).await?,
            index: Arc::clone(&self.index),
            graph: Arc::clone(&memory.graph),
            tuning: (memory.tuning)(),
            message,
            scope: scope.clone(),
            now,
        };
        let (intent, ranked, told) = blocking(move || search.run()).await?;
        let (question, reasons) = told.unzip();
        let hits = ranked.into_iter().map(|ranked| ranked.hit).collect();
        let mut notes = self.load_notes(memory, hits, reasons.unwrap_or_default()).await?;
        notes.retain(|found| scope.admits_stored(&found.note));
        Ok(NotesFound {
            notes,
            intent,
            question,
        })
    }

    /// What the graph answers to a question that asks for related things; `None` if it doesn't or there is no answer.
    pub(super) async fn answer_note_question(
        &self,
        memory: &Memory,
        (query, meant): (&str, &Option<ModelReading>),
        scope: &Scope,
        now: DateTime<Utc>,
    ) -> Result<Option<QuestionAnswers>, DomainError> {
        if ParsedQuestion::of(query, now).is_none() && meant.is_none() {
            return Ok(None);
        }
        let (query, meant, scope) = (query.to_owned(), meant.clone(), scope.clone());
        let graph = Arc::clone(&memory.graph);
        let answered = blocking(move || {
            let graph = graph.read();
            let asked = match ParsedQuestion::of(&query, now) {
                Some(reading) => graph.understand(&reading),
                None => meant.and_then(|meant| graph.understand_model_reading(&meant)),
            };
            Ok(asked.map(|asked| QuestionAnswers::to(&graph, asked, &scope)))
        });
        let Some(mut answered) = answered.await? else {
            return Ok(None);
        };
        if let Some(period) = answered.asked.plan.period {
            let texts = self
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
        Ok(Some(answered).filter(|answered| !answered.notes.is_empty()))
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
            let notes = self.store.notes_by_id(memory.workspace, &new).await?;
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
        let stored = self.store.relations_by_id(memory.workspace, &ids).await?;
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
}

/// The intent of a question, the notes, and, if asked for, how it was understood and why each note was found.
type Outcome = (
    Intent,
    Vec<RankedNote>,
    Option<(InterpretedQuestion, Vec<NoteWhy>)>,
);

impl NoteSearch {
    fn run(self) -> Result<Outcome, DomainError> {
        let RecallNotes {
            query, k, explain, ..
        } = &self.message;
        let intent = intent_of(query);
        let vector = self.index.embed_query(query);
        if let Err(error) = &vector {
            tracing::warn!(%error, "embedding the query failed; searching by words and graph only");
        }
        let vector = vector.ok();
        let filter = Filter {
            only: self.scope.filter(&self.graph),
            ..Filter::up_to(Tlp::White)
        };
        let (vector, pool) = (vector.as_deref(), POOL.max(*k));
        let (target, blended) = (&self.target, Mode::Blended);
        let found = if *explain {
            target.search_explained(query, vector, blended, &filter, pool)
        } else {
            target
                .search(query, vector, blended, &filter, pool)
                .map(SearchResults::from)
        };
        let SearchResults { hits, reasons, .. } = found.map_err(index_error)?;
        let graph = self.graph.read();
        let mut ranking = Ranking {
            graph: &graph,
            tuning: &self.tuning,
            intent,
            now: self.now,
            scope: &self.scope,
            answered: self.answered.as_ref(),
            has_code_word: false,
        };
        let asked = ranking.entities_of_query(query);
        let is_led = hits.first().is_some_and(|hit| hit.score >= LEADING_SCORE);
        ranking.has_code_word = is_led && ranking.has_unknown_code_word(query, &asked);
        // The notes about a name lead where the text asks, or is hardly more than the name: a sentence that states something
        // is no question about the names in it.
        let near = if is_statement(query) {
            HashMap::new()
        } else {
            ranking.neighbourhood(&asked)
        };
        let ranked = ranking.fuse(hits, near, *k);
        let told = explain.then(|| ranking.explain(query, &asked, &reasons, &ranked));
        Ok((intent, ranked, told))
    }
}

/// A view of the graph for one question.
pub(super) struct Ranking<'a> {
    pub(super) graph: &'a MemoryGraph,
    pub(super) tuning: &'a Tuning,
    pub(super) intent: Intent,
    pub(super) now: DateTime<Utc>,
    pub(super) scope: &'a Scope,
    /// What the graph answers to the question.
    pub(super) answered: Option<&'a QuestionAnswers>,
    /// Whether the question has a code word that is no name in the graph.
    pub(super) has_code_word: bool,
}

/// A note with its score, and what the score is made of.
#[derive(Debug, Clone, Copy)]
pub(super) struct RankedNote {
    pub(super) hit: Hit,
    pub(super) parts: ScoreParts,
}

/// Parts of a score.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ScoreParts {
    /// Words and meaning.
    pub(super) text: f32,
    pub(super) graph: f32,
    /// What the note states, and how new it is if that was asked for.
    pub(super) evidence: f32,
}

impl ScoreParts {
    fn sum(self) -> f32 {
        self.text + self.graph + self.evidence
    }

    fn times(self, factor: f32) -> Self {
        Self {
            text: self.text * factor,
            graph: self.graph * factor,
            evidence: self.evidence * factor,
        }
    }
}

impl Ranking<'_> {
    /// Notes that mention what the question names, or something related to it, scored from 0 to 1.
    fn neighbourhood(&self, asked: &[Slot]) -> HashMap<Uuid, f32> {
        let mut near: HashMap<Uuid, f32> = HashMap::new();
        let share = 1.0 / asked.len().max(1) as f32;
        let Scope { since, until, .. } = *self.scope;
        for entity in asked {
            let notes = self.graph.notes_about_in(*entity, since, until).take(PER_ENTITY);
            for note in notes.filter(|note| self.scope.admits(note)) {
                *near.entry(note.id).or_default() += share;
            }
        }
        for entity in asked {
            for related in self.graph.related_entities(*entity, asked, RELATED) {
                let notes = self.graph.notes_about_in(related, since, until).take(PER_RELATED);
                for note in notes.filter(|note| self.scope.admits(note)) {
                    let worth = near.entry(note.id).or_default();
                    *worth = worth.max(share * ONE_STEP);
                }
            }
        }
        near
    }

    /// The entities a question names: found by the rules, or by a name that only this memory knows.
    fn entities_of_query(&self, query: &str) -> Vec<Slot> {
        let filters = question_filters(query);
        let names = filters
            .names
            .iter()
            .chain(&filters.identifiers)
            .map(String::as_str);
        let mut asked = self.graph.slots_named(names);
        for phrase in phrases(query) {
            for slot in self.graph.slots_named([phrase.as_str()]) {
                if !asked.contains(&slot) {
                    asked.push(slot);
                }
            }
        }
        asked
    }

    /// Whether a question has a code word that is no name in the graph. An indicator is one although the graph has it.
    fn has_unknown_code_word(&self, query: &str, asked: &[Slot]) -> bool {
        let mut names = self.graph.named_by(query, asked, self.answered);
        names.retain(|(_, slot)| {
            let entity = self.graph.entity_in(*slot);
            entity.is_some_and(|entity| !is_indicator(&entity.entity_type))
        });
        let is_named = |word: &str| {
            let word = word.trim_matches(|c: char| !c.is_alphanumeric());
            names.iter().any(|(name, _)| name.contains(word))
        };
        let words = query.split_whitespace().take(WORDS);
        words.filter(|word| !is_named(word)).any(is_code_word)
    }

    /// Fuses the results of search and graph: the weighted scores are added and scaled back to 0 to 1. What the graph
    /// answers comes first.
    pub(super) fn fuse(&self, found: Vec<Hit>, near: HashMap<Uuid, f32>, k: usize) -> Vec<RankedNote> {
        let graph_weight = match self.intent {
            // A question about relations weighs the graph more.
            Intent::Relational | Intent::Causal => self.tuning.graph_weight * 1.5,
            Intent::Factual | Intent::Temporal | Intent::Exploratory => self.tuning.graph_weight,
        };
        let recency_weight = match self.intent {
            Intent::Temporal => self.tuning.recency_weight,
            Intent::Factual | Intent::Relational | Intent::Causal | Intent::Exploratory => 0.0,
        };
        let mut scores: HashMap<Uuid, f32> = near.keys().map(|note| (*note, 0.0)).collect();
        for hit in &found {
            // A note superseded a moment ago may still be in the index, and its successor not yet.
            let Some(note) = self.graph.current(hit.node_id) else {
                continue;
            };
            let score = scores.entry(note).or_default();
            *score = score.max(hit.score);
        }
        // A note of another domain or time may have arrived since the filter was built.
        scores.retain(|note, _| self.graph.note(*note).is_some_and(|head| self.scope.admits(head)));
        let answers = self
            .answered
            .into_iter()
            .flat_map(|answered| answered.notes.keys());
        for note in answers {
            scores.entry(*note).or_default();
        }
        // Notes have no names of their own, so only an exact rare word lifts one so high.
        let leads = |text: f32| self.has_code_word && text >= LEADING_SCORE;
        let is_led = scores.values().any(|text| leads(*text));
        let whole = 1.0 + graph_weight + recency_weight;
        let mut ranked: Vec<RankedNote> = scores
            .into_iter()
            .map(|(node_id, text)| {
                let near = near.get(&node_id).copied().unwrap_or(0.0);
                let recent = if recency_weight > 0.0 {
                    self.recency(node_id)
                } else {
                    0.0
                };
                // Whatever the weights, a note that leads has more than half of the highest score, and others have less.
                let (near, recent, factor) = match (leads(text), is_led) {
                    (true, _) => (1.0, 0.5 + 0.5 * recent, 1.0),
                    (false, true) => (near, recent, BESIDE_RARE),
                    (false, false) => (near, recent, 1.0),
                };
                let parts = ScoreParts {
                    text,
                    graph: graph_weight * near,
                    evidence: recency_weight * recent,
                };
                let parts = parts.times(factor / whole);
                self.lift_answer(node_id, parts, leads(text))
            })
            .collect();
        ranked.sort_unstable_by(|a, b| {
            let (a, b) = (a.hit, b.hit);
            b.score
                .total_cmp(&a.score)
                .then_with(|| b.node_id.cmp(&a.node_id))
        });
        ranked.truncate(k);
        ranked
    }

    /// Lifts a note that answers the question above those that don't: each level has a band of scores of its own. One that
    /// holds an exact rare word of the question stands above all bands.
    fn lift_answer(&self, node_id: Uuid, parts: ScoreParts, holds_rare_word: bool) -> RankedNote {
        let Some(answered) = self.answered else {
            let score = parts.sum();
            return RankedNote {
                hit: Hit { node_id, score },
                parts,
            };
        };
        let mut parts = parts.times(OTHER_NOTES);
        if holds_rare_word {
            parts.text += RARE_AMONG_ANSWERS;
        } else if let Some(note) = answered.notes.get(&node_id) {
            let weight = 0.8 * note.weight() + 0.2 * self.recency(node_id);
            parts.graph += 0.15 + 0.05 * note.fit;
            parts.evidence += match note.level {
                Level::About => 0.0,
                Level::Both => 0.25 + 0.05 * weight,
                Level::States => 0.5 + 0.1 * weight,
            };
        }
        let score = parts.sum();
        RankedNote {
            hit: Hit { node_id, score },
            parts,
        }
    }

    /// 1 for a note written now, halved with every half-life.
    fn recency(&self, note: Uuid) -> f32 {
        let Some(head) = self.graph.note(note) else {
            return 0.0;
        };
        let age = self.now.signed_duration_since(head.created_at);
        let days = (age.num_seconds().max(0) as f64) / 86_400.0;
        0.5f64.powf(days / self.tuning.half_life_days.max(0.01)) as f32
    }
}

/// The runs of words in a question that may be a name.
pub(super) fn phrases(query: &str) -> Vec<String> {
    let words: Vec<&str> = query.split_whitespace().take(WORDS).collect();
    let lengths = 1..=MAX_NAME_LENGTH.min(words.len());
    lengths
        .flat_map(|length| words.windows(length))
        .map(|phrase| phrase.join(" "))
        .collect()
}
