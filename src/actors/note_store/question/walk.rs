//! One and two steps through the entities, from what a question names to what it asks for.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};

use super::{GraphQuestion, is_sponsor, kind_of};
use crate::actors::note_store::graph::{MemoryGraph, Slot};
use crate::domain::question::{Kind, Period, relationships};
use crate::store::StoredRelation;

/// Relationships that one question may look at: a few milliseconds of work, whatever the entities.
const MAX_EXAMINED: usize = 100_000;
/// Entities on the way that are followed, the best ones.
const FOLLOWED: usize = 50;
/// Relationships kept that lead to an answer.
const KEPT: usize = 8;

/// An entity that answers a question.
#[derive(Debug, Clone)]
pub(in crate::actors::note_store) struct Answer {
    pub(in crate::actors::note_store) entity: Slot,
    kind: Kind,
    /// How well kind and relationship fit; 0 is the best.
    pub(in crate::actors::note_store) fit: usize,
    /// From what the question names to this entity.
    pub(in crate::actors::note_store) path: Vec<Stop>,
    /// The relationships of the last step.
    pub(in crate::actors::note_store) relations: Vec<Slot>,
    /// Highest confidence of those.
    confidence: f64,
}

/// An entity on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::actors::note_store) struct Stop {
    pub(in crate::actors::note_store) entity: Slot,
    /// The relationship between the stop before and this one; none at the first.
    pub(in crate::actors::note_store) by: Option<Slot>,
}

/// Where a step starts.
struct Start {
    entity: Slot,
    kind: Kind,
    path: Vec<Stop>,
    /// What is added to the fit of the answers.
    later: usize,
}

/// The answers to a question, best first.
pub(super) fn answers(graph: &MemoryGraph, asked: &GraphQuestion) -> Vec<Answer> {
    let plan = &asked.plan;
    let mut walk = Walk {
        graph,
        left: MAX_EXAMINED,
        period: plan.period,
    };
    let is_direct = plan.through.is_empty();
    let first = if is_direct { &plan.wanted } else { &plan.through };
    let starts = walk.starts(asked, first);
    let named: HashSet<Slot> = starts.iter().map(|start| start.entity).collect();
    if !is_direct {
        // The time asked for is that of what is asked for.
        walk.period = None;
    }
    let mut found = walk.step(&starts, first, &named);
    if !is_direct {
        walk.period = plan.period;
        found.truncate(FOLLOWED);
        let starts: Vec<Start> = found
            .into_iter()
            .map(|answer| Start {
                entity: answer.entity,
                kind: answer.kind,
                path: answer.path,
                later: answer.fit,
            })
            .collect();
        found = walk.step(&starts, &plan.wanted, &named);
    }
    found
}

struct Walk<'g> {
    graph: &'g MemoryGraph,
    /// Relationships that may still be looked at.
    left: usize,
    period: Option<Period>,
}

impl Walk<'_> {
    /// What is named, and the sub-techniques of a technique, which fit less well.
    fn starts(&self, asked: &GraphQuestion, to: &[Kind]) -> Vec<Start> {
        let mut starts: Vec<Start> = Vec::new();
        let mut add = |entity: Slot, later: usize, path: Vec<Stop>| {
            let known = self.graph.entity_in(entity);
            let kind = known.and_then(|entity| kind_of(&entity.entity_type));
            let related = |kind: &Kind| to.iter().any(|to| !relationships(*kind, *to).is_empty());
            if let Some(kind) = kind.filter(related)
                && !starts.iter().any(|start| start.entity == entity)
            {
                starts.push(Start {
                    entity,
                    kind,
                    path,
                    later,
                });
            }
        };
        for entity in asked.names.iter().flat_map(|name| &name.entities) {
            let stop = Stop {
                entity: *entity,
                by: None,
            };
            add(*entity, 0, vec![stop]);
            if !to.contains(&Kind::Technique) {
                for part in self.graph.sub_techniques(*entity) {
                    let of_part = Stop {
                        entity: part,
                        by: None,
                    };
                    add(part, 100, vec![of_part]);
                }
            }
        }
        starts
    }

    /// What one step reaches of these kinds, best first.
    fn step(&mut self, from: &[Start], to: &[Kind], named: &HashSet<Slot>) -> Vec<Answer> {
        let mut found: HashMap<Slot, Answer> = HashMap::new();
        for start in from {
            let Some(state) = self.graph.entity_in(start.entity) else {
                continue;
            };
            let examined = state.relations.len().min(self.left);
            self.left -= examined;
            for slot in state.relations.iter().rev().take(examined) {
                let relation = self.graph.relation_in(*slot);
                let Some(relation) = relation.filter(|relation| self.is_timely(relation)) else {
                    continue;
                };
                let other = if relation.source == state.id {
                    relation.target
                } else {
                    relation.source
                };
                let Some(entity) = self.graph.entity_slot(other).filter(|slot| !named.contains(slot)) else {
                    continue;
                };
                if let Some((kind, fit)) = self.match_relation(start.kind, entity, relation, to) {
                    let reached = ReachedEntity {
                        entity,
                        kind,
                        relation: *slot,
                        fit: start.later + fit,
                    };
                    reached.add_to(&mut found, start, relation.confidence);
                }
            }
        }
        let mut found: Vec<Answer> = found.into_values().collect();
        found.sort_by_cached_key(|answer| self.rank(answer));
        found
    }

    /// The kind of an entity among those asked for, and how well it and the relationship fit.
    fn match_relation(
        &self,
        from: Kind,
        to: Slot,
        relation: &StoredRelation,
        asked: &[Kind],
    ) -> Option<(Kind, usize)> {
        let entity_type = &self.graph.entity_in(to)?.entity_type;
        let kind = kind_of(entity_type).filter(|_| !is_sponsor(entity_type))?;
        let place = asked.iter().position(|asked| *asked == kind)?;
        let usual = relationships(from, kind).first();
        // Any label can be written, and rules attribute malware to groups.
        let other = usual.is_none_or(|usual| !is_same_label(usual, &relation.relationship));
        Some((kind, place * 10 + usize::from(other)))
    }

    /// Whether a relationship may be of the time asked for: its properties can say when it was seen.
    fn is_timely(&self, relation: &StoredRelation) -> bool {
        let Some(period) = self.period else {
            return true;
        };
        sighting_period(relation).is_none_or(|(first, last)| period.covers(first, last))
    }

    fn rank(&self, answer: &Answer) -> impl Ord + use<> {
        let entity = self.graph.entity_in(answer.entity);
        let confidence = Reverse(answer.confidence.max(0.0).to_bits());
        let newest = answer
            .relations
            .iter()
            .filter_map(|slot| self.graph.relation_in(*slot));
        let newest = newest.map(|relation| relation.created_at).max();
        (
            answer.fit,
            Reverse(answer.relations.len()),
            confidence,
            Reverse(newest),
            entity.map(|entity| entity.id),
        )
    }
}

/// When a relationship's properties say that it was seen, first and last.
pub(super) fn sighting_period(relation: &StoredRelation) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
    let properties = relation.properties.as_ref()?;
    let time = |key: &str| -> Option<DateTime<Utc>> { properties.get(key)?.as_str()?.parse().ok() };
    let (first, last) = (time("first_seen"), time("last_seen"));
    Some((first.or(last)?, last.or(first)?))
}

/// Whether two labels differ only in case and in how their words are joined.
fn is_same_label(one: &str, other: &str) -> bool {
    let normal = |c: char| match c {
        '_' | ' ' => '-',
        c => c.to_ascii_lowercase(),
    };
    one.chars().map(normal).eq(other.chars().map(normal))
}

struct ReachedEntity {
    entity: Slot,
    kind: Kind,
    relation: Slot,
    fit: usize,
}

impl ReachedEntity {
    fn add_to(self, found: &mut HashMap<Slot, Answer>, start: &Start, confidence: f64) {
        let path = || {
            let stop = Stop {
                entity: self.entity,
                by: Some(self.relation),
            };
            start.path.iter().copied().chain([stop]).collect()
        };
        let answer = found.entry(self.entity).or_insert_with(|| Answer {
            entity: self.entity,
            kind: self.kind,
            fit: self.fit,
            path: path(),
            relations: Vec::new(),
            confidence,
        });
        if self.fit < answer.fit {
            answer.fit = self.fit;
            answer.path = path();
        }
        answer.confidence = answer.confidence.max(confidence);
        if answer.relations.len() < KEPT {
            answer.relations.push(self.relation);
        }
    }
}
