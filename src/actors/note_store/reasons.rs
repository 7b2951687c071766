//! Why notes were found: what their scores are made of, the name that matched, and the way through the graph.

use uuid::Uuid;

use super::graph::{EntityState, MemoryGraph, Slot};
use super::question::{NoteAnswer, QuestionAnswers};
use super::ranking::{RELATED, RankedNote, Ranking, phrases};
use crate::domain::memory::why::{EntityStep, InterpretedQuestion, NamedEntity, NoteWhy};
use crate::domain::question::{AskedTime, Question};
use crate::domain::why::{Evidence, Match, NamedBy, Shares};
use crate::search::{Reasons, canonical_key};

/// The part of words in what words and meaning found together.
fn part_of_words(reasons: &Reasons, note: Uuid) -> f32 {
    let shares = reasons.get(&note).map(|reason| reason.shares).unwrap_or_default();
    let both = shares.words + shares.meaning;
    if both > 0.0 { shares.words / both } else { 0.0 }
}

impl Ranking<'_> {
    /// What the question was understood to ask, and why each of these notes was found.
    pub(super) fn explain(
        &self,
        question: &Question,
        (asked, names): (&[Slot], &[(String, Slot)]),
        reasons: &Reasons,
        ranked: &[RankedNote],
    ) -> (InterpretedQuestion, Vec<NoteWhy>) {
        let reasons = ranked.iter().map(|ranked| {
            let words = part_of_words(reasons, ranked.hit.node_id);
            self.why(ranked, asked, names, words)
        });
        let reasons = reasons.collect();
        let named = names.iter().filter_map(|(text, slot)| {
            let entity = self.graph.entity_in(*slot)?;
            Some(NamedEntity {
                text: text.clone(),
                id: entity.public_id(),
                name: entity.name().to_owned(),
            })
        });
        let question = InterpretedQuestion {
            names: named.collect(),
            plan: self.answered.map(|answered| answered.asked.plan.clone()),
            denial: self.graph.denial_in(question),
            time: AskedTime::default(),
        };
        (question, reasons)
    }

    /// Why a note was found; `words` is their part in what words and meaning found.
    fn why(&self, ranked: &RankedNote, asked: &[Slot], names: &[(String, Slot)], words: f32) -> NoteWhy {
        let parts = ranked.parts;
        let note = self.graph.note(ranked.hit.node_id);
        let mentions = note.map_or(&[][..], |note| &note.mentions);
        let whole = (parts.text + parts.graph + parts.evidence).max(f32::MIN_POSITIVE);
        let shares = Shares {
            words: parts.text * words / whole,
            meaning: parts.text * (1.0 - words) / whole,
            graph: parts.graph / whole,
            evidence: parts.evidence / whole,
        };
        let answer = self.answered.and_then(|answered| {
            let note = answered.notes.get(&ranked.hit.node_id)?;
            Some((answered, note))
        });
        let matched = names.iter().find(|(_, slot)| mentions.contains(slot));
        let path = match answer {
            Some((answered, note)) => self.graph.path_of(answered, note),
            None if matched.is_some() => Vec::new(),
            None => self.graph.path_to(mentions, asked),
        };
        let stated = answer.and_then(|(_, note)| self.graph.relation_in(note.relation?));
        NoteWhy {
            shares,
            matched: matched.and_then(|(text, slot)| self.graph.match_of(text, *slot)),
            path,
            passages: stated
                .map(|relation| Evidence {
                    id: relation.id,
                    text: String::new(),
                    share: shares.evidence,
                })
                .into_iter()
                .collect(),
        }
    }
}

impl MemoryGraph {
    /// The words of a question that name entities, longest first.
    pub(super) fn named_by(
        &self,
        query: &str,
        asked: &[Slot],
        answered: Option<&QuestionAnswers>,
    ) -> Vec<(String, Slot)> {
        let mut names: Vec<(String, Slot)> = Vec::new();
        let mut add = |text: &str, slot: Slot| {
            if !names.iter().any(|(_, known)| *known == slot) {
                names.push((text.to_owned(), slot));
            }
        };
        for name in answered.into_iter().flat_map(|answered| &answered.asked.names) {
            name.entities.iter().for_each(|slot| add(&name.text, *slot));
        }
        for phrase in phrases(query).iter().rev() {
            let shown = phrase.trim_matches(|c: char| !c.is_alphanumeric());
            let known = self.slots_named([phrase.as_str()]).into_iter();
            known
                .filter(|slot| asked.contains(slot))
                .for_each(|slot| add(shown, slot));
        }
        names
    }

    pub(super) fn match_of(&self, text: &str, slot: Slot) -> Option<Match> {
        let entity = self.entity_in(slot)?;
        let key = canonical_key(text);
        let is_name = [&*entity.value, entity.name()]
            .iter()
            .any(|name| canonical_key(name) == key);
        let kind = match &*entity.entity_type {
            "actor" | "campaign" | "malware" | "tool" if is_name => NamedBy::Name,
            "actor" | "campaign" | "malware" | "tool" => NamedBy::Alias,
            _ => NamedBy::Identifier,
        };
        Some(Match {
            kind,
            text: text.to_owned(),
        })
    }

    /// The way to what a note answers.
    fn path_of(&self, answered: &QuestionAnswers, note: &NoteAnswer) -> Vec<EntityStep> {
        let answer = note.answer.and_then(|place| answered.answers.get(place));
        let way = answer.map_or_else(Vec::new, |answer| answered.walk.way_to(answer));
        let stops = way
            .into_iter()
            .map(|stop| (stop.thing, stop.by.map(|hop| hop.relationship)));
        self.steps(stops)
    }

    /// The relationship that leads from what is asked to what a note mentions.
    fn path_to(&self, mentions: &[Slot], asked: &[Slot]) -> Vec<EntityStep> {
        for from in asked {
            let near = self.related_entities(*from, asked, RELATED);
            let Some(to) = near.into_iter().find(|slot| mentions.contains(slot)) else {
                continue;
            };
            let by = self.relation_between(*from, to);
            return self.steps([(*from, None), (to, by)]);
        }
        Vec::new()
    }

    fn relation_between(&self, from: Slot, to: Slot) -> Option<Slot> {
        let (from, to) = (self.entity_in(from)?, self.entity_in(to)?);
        let joins = |slot: &&Slot| {
            let relation = self.relation_in(**slot);
            relation.is_some_and(|relation| {
                (relation.source, relation.target) == (from.id, to.id)
                    || (relation.source, relation.target) == (to.id, from.id)
            })
        };
        from.relations.iter().find(joins).copied()
    }

    /// Entities on a way, each with the relationship that leads to it.
    fn steps(&self, stops: impl IntoIterator<Item = (Slot, Option<Slot>)>) -> Vec<EntityStep> {
        let step = |(slot, by): (Slot, Option<Slot>)| {
            let entity: &EntityState = self.entity_in(slot)?;
            let relation = by.and_then(|slot| self.relation_in(slot));
            Some(EntityStep {
                id: entity.public_id(),
                name: entity.name().to_owned(),
                relationship: relation.map(|relation| relation.relationship.clone()),
                outgoing: relation.map(|relation| relation.target == entity.id),
            })
        };
        stops.into_iter().filter_map(step).collect()
    }
}
