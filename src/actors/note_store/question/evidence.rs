//! The notes that answer a question: those that state the relationship, then those on what they name.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::walk::{Answer, Walk, is_seen_in};
use super::{GraphQuestion, kind_of};
use crate::actors::note_store::graph::{MemoryGraph, NoteState, Slot};
use crate::actors::note_store::scope::Scope;
use crate::domain::memory::tier::Tier;
use crate::domain::question::walk::Stop;
use crate::domain::question::{Period, QuestionPlan};

/// Answers whose notes are looked for, the best ones.
const MAX_ANSWERS: usize = 100;
/// Notes of an entity that are searched for others, the newest ones, and how many of them count.
const SEARCHED: usize = 200;
const PER_PAIR: usize = 20;
/// Notes on an answer that mention nothing else of the question.
const PER_ANSWER: usize = 2;
/// Notes of a time that are searched for what is asked for, the newest ones.
const OF_A_TIME: usize = 5_000;
/// Notes whose texts are read for the dates that they state, the best ones.
const READ: usize = 30;

/// What makes a note an answer, the weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::actors::note_store) enum Level {
    /// It mentions what is asked for.
    About,
    /// It mentions both ends of the relationship, or states a step on the way.
    Both,
    /// It states the relationship.
    States,
}

/// A note that answers a question.
#[derive(Debug, Clone, Copy)]
pub(in crate::actors::note_store) struct NoteAnswer {
    pub(in crate::actors::note_store) level: Level,
    /// How well the answer fits, 0 to 1.
    pub(in crate::actors::note_store) fit: f32,
    /// Confidence, tier and number of what the note says, 0 to 1.
    pub(in crate::actors::note_store) worth: f32,
    /// The best of its answers and the relationship stated, by their places.
    pub(in crate::actors::note_store) answer: Option<usize>,
    pub(in crate::actors::note_store) relation: Option<Slot>,
    /// Number of answers it speaks for.
    answers: u32,
    /// Whether it is of the time asked for, as far as the graph knows.
    timely: bool,
}

/// The answers of the graph to a question.
#[derive(Debug)]
pub(in crate::actors::note_store) struct QuestionAnswers {
    pub(in crate::actors::note_store) asked: GraphQuestion,
    pub(in crate::actors::note_store) answers: Vec<Answer>,
    /// What led to the answers.
    pub(in crate::actors::note_store) walk: Walk,
    pub(in crate::actors::note_store) notes: HashMap<Uuid, NoteAnswer>,
    /// What is the opposite of an answer.
    barred: HashSet<Slot>,
}

impl QuestionAnswers {
    /// The answers to a question among the notes of a scope.
    pub(in crate::actors::note_store) fn to(
        graph: &MemoryGraph,
        asked: GraphQuestion,
        scope: &Scope,
    ) -> Self {
        let (mut walk, barred) = graph.walk_by_logic(&asked);
        let answers = walk.answers(MAX_ANSWERS);
        let mut found = EvidenceCollector {
            graph,
            scope,
            plan: &asked.plan,
            notes: HashMap::new(),
        };
        for (place, answer) in answers.iter().enumerate() {
            found.add_evidence(place, answer, &walk.way_to(answer));
        }
        if asked.names.is_empty() {
            found.add_of_time();
        }
        let notes = found.notes;
        Self {
            asked,
            answers,
            walk,
            notes,
            barred,
        }
    }

    /// Whether a note states the opposite of an answer: it mentions what is named and what must not be related to it.
    pub(in crate::actors::note_store) fn bars(&self, note: &NoteState) -> bool {
        let mentions = |slot: &Slot| note.mentions.contains(slot);
        let mut named = self.asked.names.iter().flat_map(|name| &name.entities);
        !self.barred.is_empty() && named.any(mentions) && self.barred.iter().any(mentions)
    }

    /// Whether they decide what a recall finds: there are some, or something is known to be the opposite of one.
    pub(in crate::actors::note_store) fn decide(&self) -> bool {
        !self.notes.is_empty() || !self.barred.is_empty()
    }

    /// The notes whose texts must be read to know whether they are of the time asked for.
    pub(in crate::actors::note_store) fn unread(&self) -> Vec<Uuid> {
        let wants_texts = self.asked.plan.period.is_some_and(|period| !period.entered);
        let open = self.notes.iter().filter(|(_, note)| wants_texts && !note.timely);
        let mut open: Vec<(&Uuid, &NoteAnswer)> = open.collect();
        open.sort_by(|(id, a), (other, b)| {
            let worth = b.worth.total_cmp(&a.worth);
            b.level.cmp(&a.level).then(worth).then(id.cmp(other))
        });
        open.into_iter().take(READ).map(|(id, _)| *id).collect()
    }

    /// Keeps the notes of the time asked for: `stated` are those whose texts state a date of it.
    pub(in crate::actors::note_store) fn keep_timely(&mut self, stated: &[Uuid]) {
        if self.asked.plan.period.is_some() {
            self.notes.retain(|id, note| note.timely || stated.contains(id));
        }
    }
}

/// The notes found so far.
struct EvidenceCollector<'g> {
    graph: &'g MemoryGraph,
    scope: &'g Scope,
    plan: &'g QuestionPlan,
    notes: HashMap<Uuid, NoteAnswer>,
}

/// What a note says for an answer.
struct NoteStatement {
    level: Level,
    answer: Option<usize>,
    fit: usize,
    relation: Option<Slot>,
    confidence: f64,
    timely: bool,
}

impl EvidenceCollector<'_> {
    /// Adds the notes that speak for an answer and for the way to it.
    fn add_evidence(&mut self, place: usize, answer: &Answer, way: &[Stop<Slot, Slot>]) {
        let hops = way.iter().rev().skip(1).filter_map(|stop| stop.by);
        let earlier: Vec<Slot> = hops.map(|hop| hop.relationship).collect();
        let dated = if self.plan.period_is_of_through {
            &earlier
        } else {
            &answer.relationships
        };
        let is_seen = |slot: &Slot| is_seen_in(self.graph.relation_in(*slot)?, self.plan.period.as_ref()?);
        let timely = dated.iter().any(|slot| is_seen(slot) == Some(true));
        let says = |level, relation: Option<Slot>, confidence| NoteStatement {
            level,
            answer: Some(place),
            fit: answer.fit,
            relation,
            confidence,
            timely,
        };
        let last = answer.relationships.iter().map(|slot| (Level::States, *slot));
        for (level, slot) in last.chain(earlier.iter().map(|slot| (Level::Both, *slot))) {
            let Some(relation) = self.graph.relation_in(slot) else {
                continue;
            };
            let note = relation.note.and_then(|note| self.graph.current(note));
            if let Some(note) = note.and_then(|note| self.graph.note(note)) {
                self.add(note, says(level, Some(slot), relation.confidence));
            }
        }
        let before = way.iter().rev().nth(1).map(|stop| stop.thing);
        let both = before.map(|before| with_both(self.graph, self.scope, before, answer.thing));
        for note in both.unwrap_or_default() {
            self.add(note, says(Level::Both, None, note.confidence));
        }
        let scope = self.scope;
        let notes = self.graph.notes_about_in(answer.thing, scope.since, scope.until);
        let about: Vec<&NoteState> = notes.take(SEARCHED).filter(|note| scope.admits(note)).collect();
        for note in about.into_iter().take(PER_ANSWER) {
            self.add(note, says(Level::About, None, note.confidence));
        }
    }

    /// Of a question that asks for a time and names nothing, the notes of that time that mention what it asks for.
    fn add_of_time(&mut self) {
        let Some(period) = self.plan.period else {
            return;
        };
        let notes = self.graph.notes_in(period.from, period.until).take(OF_A_TIME);
        for note in notes {
            let mentioned = note
                .mentions
                .iter()
                .filter_map(|slot| self.graph.entity_in(*slot));
            let places = mentioned.filter_map(|entity| {
                let kind = kind_of(&entity.entity_type)?;
                self.plan.wanted.iter().position(|wanted| *wanted == kind)
            });
            if let Some(place) = places.min() {
                let says = NoteStatement {
                    level: Level::About,
                    answer: None,
                    fit: place * 10,
                    relation: None,
                    confidence: note.confidence,
                    timely: false,
                };
                self.add(note, says);
            }
        }
    }

    /// Adds what a note says, if the note is in scope.
    fn add(&mut self, note: &NoteState, says: NoteStatement) {
        if !note.is_active() || !self.scope.admits(note) {
            return;
        }
        let timely = says.timely
            || self
                .plan
                .period
                .is_none_or(|period| is_of(&period, note.created_at));
        let trust = match note.tier {
            Tier::A => 1.0,
            Tier::B => 0.8,
            Tier::C => 0.5,
        };
        let new = NoteAnswer {
            level: says.level,
            fit: 1.0 / (1.0 + says.fit as f32 / 10.0),
            worth: (says.confidence * trust) as f32,
            answer: says.answer,
            relation: says.relation,
            answers: 1,
            timely,
        };
        let known = self
            .notes
            .entry(note.id)
            .or_insert(NoteAnswer { answers: 0, ..new });
        let is_better = (new.level, new.fit) > (known.level, known.fit);
        let answers = known.answers + u32::from(known.answers == 0 || known.answer != new.answer);
        let timely = known.timely || new.timely;
        if is_better {
            *known = new;
        }
        known.worth = known.worth.max(new.worth);
        known.answers = answers;
        known.timely = timely;
    }
}

impl NoteAnswer {
    /// The worth of the note, more if it speaks for several answers.
    pub(in crate::actors::note_store) fn weight(&self) -> f32 {
        let several = 1.0 - 1.0 / self.answers.max(1) as f32;
        0.6 * self.worth + 0.4 * several
    }
}

fn is_of(period: &Period, at: DateTime<Utc>) -> bool {
    period.from.is_none_or(|from| at >= from) && period.until.is_none_or(|until| at < until)
}

/// The newest notes of a scope that mention both entities.
fn with_both<'g>(graph: &'g MemoryGraph, scope: &Scope, one: Slot, other: Slot) -> Vec<&'g NoteState> {
    let count = |slot: Slot| graph.entity_in(slot).map_or(0, |entity| entity.notes.len());
    let (rare, other) = if count(one) <= count(other) {
        (one, other)
    } else {
        (other, one)
    };
    let notes = graph.notes_about_in(rare, scope.since, scope.until);
    let both = notes.take(SEARCHED).filter(|note| note.mentions.contains(&other));
    both.take(PER_PAIR).collect()
}
