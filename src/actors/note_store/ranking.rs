//! Ranks notes by words and meaning, by the graph around the entities in the question, and by recency if asked for.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::graph::{MemoryGraph, NoteState, Slot};
use super::lead::Lead;
use super::question::{Level, QuestionAnswers, is_indicator};
use super::scope::Scope;
use super::tuning::Tuning;
use crate::domain::extraction::Gazetteer;
use crate::domain::question::{Intent, Question};
use crate::domain::why::MatchedBy;
use crate::search::{Hit, LEADING_SCORE, SCORE_FLOOR, is_code_word, rank_part};

/// Maximum number of notes contributed by each entity of the question, and by each related entity.
const PER_ENTITY: usize = 100;
const PER_RELATED: usize = 20;
/// Maximum number of related entities considered.
pub(super) const RELATED: usize = 50;
/// Score of a note that mentions only something related to what the question names.
const ONE_STEP: f32 = 0.4;
/// Words of a question that are searched for names, and words of the longest name.
const WORDS: usize = 64;
const MAX_NAME_LENGTH: usize = 5;
/// What the scores of all other notes are multiplied by where a note holds an exact rare word of the question, and the
/// score that such a note then has at least among answers of the graph.
const BESIDE_RARE: f32 = 0.5;
const RARE_AMONG_ANSWERS: f32 = 0.85;
/// Highest score of a note that doesn't answer a question which the graph answers.
const OTHER_NOTES: f32 = 0.15;

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
    /// Which notes lead by the time that the question asks for, or because it compares what they are about.
    pub(super) lead: &'a Lead,
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

    pub(super) fn times(self, factor: f32) -> Self {
        Self {
            text: self.text * factor,
            graph: self.graph * factor,
            evidence: self.evidence * factor,
        }
    }
}

/// An entity that a question names, and by what.
#[derive(Debug, Clone, Copy)]
pub(super) struct AskedEntity {
    pub(super) slot: Slot,
    pub(super) matched: MatchedBy,
}

/// A note that is near what a question names.
#[derive(Debug, Clone, Copy)]
pub(super) struct Near {
    /// 0 to 1.
    share: f32,
    matched: MatchedBy,
}

impl Ranking<'_> {
    /// Notes that mention what the question names, or something related to it unless that is no answer.
    pub(super) fn neighbourhood(&self, asked: &[AskedEntity], takes_related: bool) -> HashMap<Uuid, Near> {
        let mut near: HashMap<Uuid, Near> = HashMap::new();
        let share = 1.0 / asked.len().max(1) as f32;
        let Scope { since, until, .. } = *self.scope;
        for entity in asked {
            let notes = self
                .graph
                .notes_about_in(entity.slot, since, until)
                .take(PER_ENTITY);
            for note in notes.filter(|note| self.scope.admits(note)) {
                let matched = entity.matched;
                near.entry(note.id)
                    .and_modify(|near| near.share += share)
                    .or_insert(Near { share, matched });
            }
        }
        let slots: Vec<Slot> = asked.iter().map(|entity| entity.slot).collect();
        for entity in slots.iter().filter(|_| takes_related) {
            for related in self.graph.related_entities(*entity, &slots, RELATED) {
                let notes = self.graph.notes_about_in(related, since, until).take(PER_RELATED);
                for note in notes.filter(|note| self.scope.admits(note)) {
                    let share = share * ONE_STEP;
                    let matched = MatchedBy::Graph;
                    near.entry(note.id)
                        .and_modify(|near| near.share = near.share.max(share))
                        .or_insert(Near { share, matched });
                }
            }
        }
        near
    }

    /// The entities a question names: found by the rules, or by a name that only this memory knows.
    pub(super) fn entities_of(&self, question: &Question) -> Vec<Slot> {
        let filters = question.filters();
        let names = filters
            .names
            .iter()
            .chain(&filters.identifiers)
            .map(String::as_str);
        let mut asked = self.graph.slots_named(names);
        let entries = filters
            .identifiers
            .iter()
            .filter_map(|id| Gazetteer::shared().resolve(id));
        for entry in entries {
            let known = self.graph.slots_named(entry.names());
            asked.extend(
                known
                    .into_iter()
                    .filter(|slot| !asked.contains(slot))
                    .collect::<Vec<_>>(),
            );
        }
        for phrase in phrases(question.text()) {
            for slot in self.graph.slots_named([phrase.as_str()]) {
                if !asked.contains(&slot) {
                    asked.push(slot);
                }
            }
        }
        asked
    }

    /// By what the question names each of these entities; `names` are the words that name them.
    pub(super) fn asked_entities(&self, asked: &[Slot], names: &[(String, Slot)]) -> Vec<AskedEntity> {
        let matched = |slot: Slot| {
            let named = names.iter().find(|(_, known)| *known == slot);
            let found = named.and_then(|(text, slot)| self.graph.match_of(text, *slot));
            let is_value = || {
                let entity = self.graph.entity_in(slot);
                entity.is_some_and(|entity| is_indicator(&entity.entity_type))
            };
            match found {
                Some(found) => found.kind.into(),
                None if is_value() => MatchedBy::Value,
                None => MatchedBy::Name,
            }
        };
        let entity = |slot: &Slot| AskedEntity {
            slot: *slot,
            matched: matched(*slot),
        };
        asked.iter().map(entity).collect()
    }

    /// The code words of a question that are no names in the graph. An indicator is one although the graph has it.
    pub(super) fn unknown_code_words(&self, query: &str, names: &[(String, Slot)]) -> Vec<String> {
        let is_no_indicator = |slot: Slot| {
            let entity = self.graph.entity_in(slot);
            entity.is_some_and(|entity| !is_indicator(&entity.entity_type))
        };
        let names: Vec<&str> = names
            .iter()
            .filter(|(_, slot)| is_no_indicator(*slot))
            .map(|(name, _)| name.as_str())
            .collect();
        let is_named = |word: &str| {
            let word = word.trim_matches(|c: char| !c.is_alphanumeric());
            names.iter().any(|name| name.contains(word))
        };
        let words = query.split_whitespace().take(WORDS);
        let unknown = words.filter(|word| !is_named(word) && is_code_word(word));
        unknown.map(str::to_owned).collect()
    }

    /// Fuses the results of search and graph: the weighted scores are added and scaled back to 0 to 1. What the graph
    /// answers comes first.
    pub(super) fn fuse(&self, found: Vec<Hit>, near: HashMap<Uuid, Near>, k: usize) -> Vec<RankedNote> {
        let scores = self.text_scores(&found, &near);
        let is_led = scores.values().any(|text| self.leads(text.score));
        let rank = |(node_id, text): (&Uuid, &Hit)| {
            let share = near.get(node_id).map_or(0.0, |near| near.share);
            let parts = self.weigh(*node_id, rank_part(text.score), share, is_led);
            self.lift_answer(*node_id, parts, self.leads(text.score))
        };
        let mut ranked: Vec<RankedNote> = scores.iter().map(rank).collect();
        let leading = self.put_leading_first(&mut ranked);
        for note in &mut ranked {
            let id = note.hit.node_id;
            let near = near.get(&id).copied();
            if let Some(text) = scores.get(&id) {
                *note = self.above_floor(*note, *text, near, leading.contains(&id));
            }
        }
        ranked.sort_unstable_by(|a, b| {
            let (a, b) = (a.hit, b.hit);
            b.score
                .total_cmp(&a.score)
                .then_with(|| b.node_id.cmp(&a.node_id))
        });
        ranked.truncate(k);
        ranked
    }

    /// The note with a score above the floor if its text, the graph or what it mentions makes it a likely answer, and below
    /// the floor otherwise; and what made it a result.
    fn above_floor(
        &self,
        mut ranked: RankedNote,
        text: Hit,
        near: Option<Near>,
        is_leading: bool,
    ) -> RankedNote {
        let answers = self
            .answered
            .is_some_and(|answered| answered.notes.contains_key(&ranked.hit.node_id));
        let is_likely = answers || is_leading || near.is_some() || text.score >= SCORE_FLOOR;
        let score = ranked.hit.score.clamp(0.0, 1.0);
        ranked.hit.score = if is_likely {
            SCORE_FLOOR + (1.0 - SCORE_FLOOR) * score
        } else {
            SCORE_FLOOR * score
        };
        ranked.hit.matched = match near {
            _ if answers => MatchedBy::Graph,
            Some(near) if near.matched != MatchedBy::Graph || text.score < SCORE_FLOOR => near.matched,
            None if is_leading && text.score < SCORE_FLOOR => MatchedBy::Name,
            Some(_) | None => text.matched,
        };
        ranked
    }

    /// Whether a note of this score leads: notes have no names of their own, so only an exact rare word lifts one so high.
    fn leads(&self, text: f32) -> bool {
        self.has_code_word && text >= LEADING_SCORE
    }

    /// The scores by words and meaning of the notes that search or the graph found; 0 where only the graph did.
    fn text_scores(&self, found: &[Hit], near: &HashMap<Uuid, Near>) -> HashMap<Uuid, Hit> {
        let unfound = |note: Uuid| Hit {
            node_id: note,
            score: 0.0,
            matched: MatchedBy::Graph,
        };
        let mut scores: HashMap<Uuid, Hit> = near.keys().map(|note| (*note, unfound(*note))).collect();
        for hit in found {
            // A note superseded a moment ago may still be in the index, and its successor not yet.
            let Some(note) = self.graph.current(hit.node_id) else {
                continue;
            };
            let text = scores.entry(note).or_insert_with(|| unfound(note));
            if hit.score > text.score {
                *text = Hit {
                    node_id: note,
                    ..*hit
                };
            }
        }
        // A note of another domain or time may have arrived since the filter was built.
        let is_barred = |head: &NoteState| self.answered.is_some_and(|answered| answered.bars(head));
        scores.retain(|note, _| {
            let head = self.graph.note(*note);
            head.is_some_and(|head| self.scope.admits(head) && !is_barred(head))
        });
        let answers = self
            .answered
            .into_iter()
            .flat_map(|answered| answered.notes.keys());
        for note in answers.chain(self.lead.notes()) {
            scores.entry(*note).or_insert_with(|| unfound(*note));
        }
        scores
    }

    /// The parts of a note's score by its scores in search and graph. Whatever the weights, a note that leads has more than
    /// half of the highest score, and others have less where one does.
    fn weigh(&self, note: Uuid, text: f32, near: f32, is_led: bool) -> ScoreParts {
        let (graph_weight, recency_weight) = self.weights();
        let recent = if recency_weight > 0.0 {
            self.recency(note)
        } else {
            0.0
        };
        let (near, recent, factor) = match (self.leads(text), is_led) {
            (true, _) => (1.0, 0.5 + 0.5 * recent, 1.0),
            (false, true) => (near, recent, BESIDE_RARE),
            (false, false) => (near, recent, 1.0),
        };
        let parts = ScoreParts {
            text,
            graph: graph_weight * near,
            evidence: recency_weight * recent,
        };
        parts.times(factor / (1.0 + graph_weight + recency_weight))
    }

    /// What graph and recency weigh beside words and meaning, by what is asked for.
    fn weights(&self) -> (f32, f32) {
        let graph = match self.intent {
            // A question about relations weighs the graph more.
            Intent::Relational | Intent::Causal => self.tuning.graph_weight * 1.5,
            Intent::Factual | Intent::Temporal | Intent::Exploratory => self.tuning.graph_weight,
        };
        let recency = match self.intent {
            Intent::Temporal => self.tuning.recency_weight,
            Intent::Factual | Intent::Relational | Intent::Causal | Intent::Exploratory => 0.0,
        };
        (graph, recency)
    }

    /// Lifts a note that answers the question above those that don't: each level has a band of scores of its own. One that
    /// holds an exact rare word of the question stands above all bands.
    fn lift_answer(&self, node_id: Uuid, parts: ScoreParts, holds_rare_word: bool) -> RankedNote {
        let Some(answered) = self.answered else {
            let score = parts.sum();
            return RankedNote {
                hit: Hit {
                    node_id,
                    score,
                    matched: MatchedBy::Words,
                },
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
            hit: Hit {
                node_id,
                score,
                matched: MatchedBy::Words,
            },
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
