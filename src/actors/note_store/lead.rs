//! The notes that lead because a question asks for a time without asking for related things ("attacks of A before 2020", "most
//! recent attack of A"), or compares what they are about ("A vs B").

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::core::NoteCore;
use super::graph::{MemoryGraph, NoteState, Slot};
use super::question::QuestionAnswers;
use super::ranking::{RankedNote, Ranking};
use super::scope::Scope;
use super::state::Memory;
use crate::actors::indexed_store::index_error;
use crate::actors::job::blocking;
use crate::clock;
use crate::domain::error::DomainError;
use crate::domain::memory::note::{Note, truncate_chars};
use crate::domain::question::{AskedTime, Name, Period, Question, StatedTimes, TimeOrder};
use crate::domain::tlp::Tlp;
use crate::search::{Filter, Mode, tokenize};

/// Notes on what a question names whose texts are read: the newest ones, and the oldest ones.
const NEWEST: usize = 200;
const OLDEST: usize = 100;
/// Notes of each name among which these are chosen.
const SEARCHED: usize = 20_000;
/// Characters of a note that are read for dates.
const READ: usize = 20_000;
/// Letters of the shortest word of a question that tells notes apart.
const SHORTEST: usize = 4;
/// Scores of the notes that lead, from the first to the last, and what those of all others are multiplied by.
const FIRST: f32 = 0.95;
const LAST: f32 = 0.55;
const BEHIND: f32 = 0.5;

/// The place of a note among those that lead; higher ones come first.
type Place = [i64; 5];

/// Which notes lead.
#[derive(Debug, Default)]
pub(super) enum Lead {
    #[default]
    Nothing,
    /// These.
    ByTime(HashMap<Uuid, Place>),
    /// The best note on each of these things, each with the entities that its name can mean.
    Compared(Vec<Vec<Slot>>),
}

/// Which notes lead, and the time that the question asks about.
#[derive(Debug, Default)]
pub(super) struct LeadingNotes {
    pub(super) lead: Lead,
    pub(super) time: AskedTime,
}

/// A note that may lead, and how much of what the question names it mentions.
type Candidates = HashMap<Uuid, i64>;

/// What a question asks of a time, and the notes that may answer.
struct TimeQuestion {
    time: AskedTime,
    candidates: Candidates,
    /// Names in lower case that stand in the text of a note about them, if the graph knows none of them.
    names: Vec<String>,
    /// Its words beside names and times.
    words: Vec<String>,
    now: DateTime<Utc>,
}

impl NoteCore {
    /// The notes that lead for a question, given what the graph answers.
    pub(super) async fn leading_notes(
        &self,
        memory: &Memory,
        question: &Arc<Question>,
        scope: &Scope,
        answered: Option<&QuestionAnswers>,
    ) -> Result<LeadingNotes, DomainError> {
        let in_scope = scope.clone();
        let (question, scope) = (Arc::clone(question), scope.clone());
        let graph = Arc::clone(&memory.graph);
        let answers: Option<Candidates> = answered.map(|answered| {
            let notes = answered.notes.iter();
            notes.map(|(note, answer)| (*note, answer.level as i64)).collect()
        });
        let read = move || Ok(graph.read().lead_for(&question, &scope, answers));
        let mut asked = match blocking(read).await? {
            LeadAsked::Nothing => return Ok(LeadingNotes::default()),
            LeadAsked::Compared(names) => {
                return Ok(LeadingNotes {
                    lead: Lead::Compared(names),
                    time: AskedTime::default(),
                });
            }
            LeadAsked::Time(asked) => asked,
        };
        if !asked.names.is_empty() {
            asked.candidates = self.notes_with_names(memory, &asked.names, &in_scope).await?;
        }
        let ids: Vec<Uuid> = asked.candidates.keys().copied().collect();
        let notes = self.notes.store.notes_by_id(memory.workspace, &ids).await?;
        let time = asked.time;
        let places = move || {
            let place = |note: &Note| Some((note.id, asked.place_of(note)?));
            Ok(notes.iter().filter_map(place).collect())
        };
        Ok(LeadingNotes {
            lead: Lead::ByTime(blocking(places).await?),
            time,
        })
    }
}

impl NoteCore {
    /// Notes of a scope with the words of these names.
    async fn notes_with_names(
        &self,
        memory: &Memory,
        names: &[String],
        scope: &Scope,
    ) -> Result<Candidates, DomainError> {
        let target = self.notes_index(memory).await?;
        let filter = Filter {
            only: scope.filter(&memory.graph),
            ..Filter::up_to(Tlp::White)
        };
        let names = names.join(" ");
        let found = move || {
            let hits = target.search(&names, None, Mode::Keyword, &filter, NEWEST + OLDEST);
            let hits = hits.map_err(index_error)?;
            Ok(hits.into_iter().map(|hit| (hit.node_id, 0)).collect())
        };
        blocking(found).await
    }
}

enum LeadAsked {
    Nothing,
    Compared(Vec<Vec<Slot>>),
    Time(TimeQuestion),
}

impl MemoryGraph {
    /// What a question asks of a time or compares; `answers` are the notes by which the graph answers it.
    fn lead_for(&self, question: &Question, scope: &Scope, answers: Option<Candidates>) -> LeadAsked {
        let named = self.names_in(question);
        let words: Vec<Range<usize>> = if named.is_empty() {
            question.written_names()
        } else {
            named.iter().map(|name| name.words.clone()).collect()
        };
        if answers.is_none() && named.len() > 1 && question.compares() {
            return LeadAsked::Compared(named.into_iter().map(|name| name.entities).collect());
        }
        let time = question.time_asked(&words);
        // What the graph answers is of the time asked for.
        let period = time.period.filter(|_| answers.is_none());
        let time = AskedTime { period, ..time };
        if words.is_empty() || !time.is_any() {
            return LeadAsked::Nothing;
        }
        let is_unknown = named.is_empty() && answers.is_none();
        let texts = words.iter().filter_map(|words| question.text_of(words));
        let unknown: Vec<String> = texts.filter(|_| is_unknown).map(str::to_lowercase).collect();
        let candidates = answers.unwrap_or_else(|| {
            let names = named.iter().map(|name| name.entities.as_slice());
            self.candidates(names, scope)
        });
        let name = |words: Range<usize>| Name {
            words,
            kinds: Vec::new(),
        };
        let names: Vec<Name> = words.into_iter().map(name).collect();
        let others = question.other_words(&names).into_iter();
        let others = others.filter(|word| word.chars().count() >= SHORTEST && !Question::is_about_time(word));
        LeadAsked::Time(TimeQuestion {
            time,
            candidates,
            names: unknown,
            words: others.flat_map(tokenize).collect(),
            now: clock::now(),
        })
    }

    /// The newest and the oldest notes of a scope about what is named.
    fn candidates<'s>(&self, names: impl Iterator<Item = &'s [Slot]>, scope: &Scope) -> Candidates {
        let mut found = Candidates::new();
        for entities in names {
            let mut of_name: HashSet<Uuid> = HashSet::new();
            for entity in entities {
                let notes = self.notes_about_in(*entity, scope.since, scope.until);
                let notes: Vec<&NoteState> = notes.filter(|note| scope.admits(note)).take(SEARCHED).collect();
                let oldest = notes.iter().skip(NEWEST).rev().take(OLDEST);
                of_name.extend(notes.iter().take(NEWEST).chain(oldest).map(|note| note.id));
            }
            for note in of_name {
                *found.entry(note).or_default() += 1;
            }
        }
        found
    }
}

impl TimeQuestion {
    /// How much of what the question names a note is about; `None` if it is about none of it.
    fn names_of(&self, note: &Note, text: &str) -> Option<i64> {
        if self.names.is_empty() {
            return self.candidates.get(&note.id).copied();
        }
        let text = text.to_lowercase();
        let named = self
            .names
            .iter()
            .filter(|name| text.contains(name.as_str()))
            .count() as i64;
        Some(named).filter(|named| *named > 0 && note.superseded_by.is_none())
    }

    /// The place of a note; `None` if it is of another time.
    fn place_of(&self, note: &Note) -> Option<Place> {
        let text = truncate_chars(&note.content, READ);
        let times = StatedTimes::in_text(text, note.created_at);
        let is_created_in = |period: &Period| {
            period.from.is_none_or(|from| note.created_at >= from)
                && period.until.is_none_or(|until| note.created_at < until)
        };
        let period = self.time.period.as_ref();
        let fit = match period {
            None => 0,
            Some(period) if period.entered && is_created_in(period) => 2,
            Some(period) if times.are_in(period) => 2 - i64::from(period.entered),
            Some(period) if times.is_empty() && is_created_in(period) => 1,
            Some(_) => return None,
        };
        let names = self.names_of(note, text)?;
        let Some(order) = self.time.order else {
            return Some([fit, names, 0, 0, 0]);
        };
        let stated = Some(&times).filter(|_| !self.time.is_of_records);
        let stated = stated.and_then(|times| times.first_in_order(order, period, self.now));
        let at = stated.unwrap_or(note.created_at).timestamp_micros();
        let held = if self.words.is_empty() {
            0
        } else {
            let tokens: HashSet<String> = tokenize(text).into_iter().collect();
            self.words.iter().filter(|word| tokens.contains(*word)).count()
        };
        let at = match order {
            TimeOrder::NewestFirst => at,
            TimeOrder::OldestFirst => -at,
        };
        Some([fit, names, held as i64, i64::from(stated.is_some()), at])
    }
}

impl Lead {
    /// The notes that lead wherever words and meaning rank them.
    pub(super) fn notes(&self) -> impl Iterator<Item = &Uuid> {
        let notes = match self {
            Self::ByTime(places) => Some(places.keys()),
            Self::Nothing | Self::Compared(_) => None,
        };
        notes.into_iter().flatten()
    }
}

impl Ranking<'_> {
    /// Puts the notes that lead before all others, with scores that are higher, and tells which they are.
    pub(super) fn put_leading_first(&self, ranked: &mut [RankedNote]) -> HashSet<Uuid> {
        let of_each;
        let places = match self.lead {
            Lead::Nothing => return HashSet::new(),
            Lead::ByTime(places) => places,
            Lead::Compared(names) => {
                of_each = self.best_of_each(names, ranked);
                &of_each
            }
        };
        let place = |note: &RankedNote| places.get(&note.hit.node_id);
        ranked.sort_unstable_by(|a, b| {
            let score = b.hit.score.total_cmp(&a.hit.score);
            let by_place = place(b).cmp(&place(a));
            by_place
                .then(score)
                .then_with(|| b.hit.node_id.cmp(&a.hit.node_id))
        });
        let leading = ranked.iter().filter(|note| place(note).is_some()).count();
        let step = (FIRST - LAST) / leading.max(1) as f32;
        for (rank, note) in ranked.iter_mut().enumerate() {
            let own = note.hit.score.max(f32::MIN_POSITIVE);
            let score = if rank < leading {
                FIRST - step * rank as f32
            } else {
                BEHIND * own
            };
            // What lifts it is what it states; what lowers it is no part of it.
            note.parts = note.parts.times((score / own).min(1.0));
            note.parts.evidence += (score - own).max(0.0);
            note.hit.score = score;
        }
        ranked.iter().take(leading).map(|note| note.hit.node_id).collect()
    }

    /// The best note on each of several names, rather one that mentions no other of them.
    fn best_of_each(&self, names: &[Vec<Slot>], ranked: &[RankedNote]) -> HashMap<Uuid, Place> {
        let mut best: HashMap<Uuid, Place> = HashMap::new();
        for (rank, name) in names.iter().enumerate() {
            let mentions =
                |note: &NoteState, name: &[Slot]| name.iter().any(|slot| note.mentions.contains(slot));
            let candidates = ranked.iter().filter_map(|ranked| {
                let note = self.graph.note(ranked.hit.node_id)?;
                let is_free = mentions(note, name) && !best.contains_key(&note.id);
                let named = names.iter().filter(|other| mentions(note, other)).count();
                is_free.then_some((note.id, named, ranked.hit.score))
            });
            let found = candidates.min_by(|a, b| {
                let score = b.2.total_cmp(&a.2);
                a.1.cmp(&b.1).then(score).then_with(|| a.0.cmp(&b.0))
            });
            if let Some((note, _, _)) = found {
                best.insert(note, [-(rank as i64), 0, 0, 0, 0]);
            }
        }
        best
    }
}
