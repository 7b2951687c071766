//! What a step along relationships found, and which of it answers best.

use std::cmp::Reverse;
use std::collections::HashMap;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::trail::{Hops, Step};
use crate::domain::question::{Kind, Period, relationship_of_code, relationships};
use crate::search;
use crate::store::{NodeOfType, StixFacts};

/// How well a node answers; the least is the best.
type Rank = (usize, Reverse<usize>, Reverse<u64>, Reverse<u64>, Reverse<i64>);

/// The nodes where a step begins. Every relationship of a hub is compared with them, so hashing must be fast.
pub(super) type StepOrigins = hashbrown::HashMap<Uuid, Kind>;

/// The nodes that one step found.
#[derive(Debug, Default)]
pub(super) struct Answers {
    found: hashbrown::HashMap<Uuid, Answer>,
}

#[derive(Debug)]
struct Answer {
    kind: Kind,
    /// Position of the kind among those asked for, later if the relationship or the thing named fits less well.
    fit: usize,
    relationships: usize,
    relationship_confidence: f64,
    /// The best relationship that led to it.
    step: Option<Step>,
    /// Confidence of the node, 0 to 1.
    confidence: f64,
    /// When it was ingested, in microseconds since 1970.
    ingested_at: i64,
}

/// What a step looks for.
#[derive(Debug, Clone, Copy)]
pub(super) struct StepTarget<'a> {
    /// The nodes where it begins.
    pub(super) at: &'a StepOrigins,
    /// The kinds of nodes asked for, the best first.
    pub(super) kinds: &'a [Kind],
    /// Lowers the rank.
    pub(super) later: usize,
}

impl StepTarget<'_> {
    /// The kind of the node that a step leads to, the type of the relationship, and how well both fit; `None` if they
    /// don't.
    fn match_step(&self, step: &search::Step) -> Option<(Kind, &'static str, usize)> {
        let kind = Kind::of_code(step.node_code)?;
        let place = self.kinds.iter().position(|wanted| *wanted == kind)?;
        let near = self.at.get(&step.from)?;
        let relationship = relationship_of_code(step.code)?;
        let usual = relationships(*near, kind);
        let fitting = usual.iter().position(|name| *name == relationship)?;
        let is_new = !self.at.contains_key(&step.node);
        is_new.then_some((
            kind,
            relationship,
            self.later * 100 + place * 10 + usize::from(fitting > 0),
        ))
    }
}

/// A time that is asked for, and the times of the nodes that are compared with it; others don't fit.
#[derive(Debug)]
pub(super) struct PeriodFilter<'a> {
    pub(super) period: Period,
    pub(super) facts: &'a HashMap<Uuid, StixFacts>,
}

impl PeriodFilter<'_> {
    /// How much less well a node fits; `None` if it is of another time.
    fn lateness(&self, node: Uuid, kind: Kind) -> Option<usize> {
        let seen = is_in(&self.period, self.facts.get(&node)?);
        // Of a group or a technique nobody says when it was seen; a campaign without a time is none of that time.
        match seen {
            Some(false) => None,
            None if kind == Kind::Campaign => None,
            None => Some(200),
            Some(true) => Some(0),
        }
    }
}

impl Answers {
    /// Adds what a step reached, as far as kind and relationship fit.
    pub(super) fn add(&mut self, step: &search::Step, sought: StepTarget<'_>) {
        let Some((kind, relationship, fit)) = sought.match_step(step) else {
            return;
        };
        let answer = self.found.entry(step.node).or_insert_with(|| Answer {
            kind,
            fit,
            relationships: 0,
            relationship_confidence: 0.0,
            step: None,
            confidence: step.node_confidence,
            ingested_at: step.ingested_at,
        });
        let led = Step::of(step, relationship);
        let is_better = |known: &Step| fit == answer.fit && led.is_better(known);
        if fit < answer.fit || answer.step.as_ref().is_none_or(is_better) {
            answer.step = Some(led);
        }
        answer.fit = answer.fit.min(fit);
        answer.relationships += 1;
        answer.relationship_confidence = answer.relationship_confidence.max(step.confidence);
    }

    /// Adds the nodes of these kinds that fit a time.
    pub(super) fn add_nodes_of_period(&mut self, nodes: Vec<NodeOfType>, kinds: &[Kind], period: Period) {
        for node in nodes {
            let kind = Kind::of(node.node_type, node.stix.kind.as_deref());
            let place = kinds.iter().position(|wanted| kind == Some(*wanted));
            if let (Some(kind), Some(fit)) = (kind, place)
                && is_in(&period_for_kind(kind, period), &node.stix) == Some(true)
            {
                let answer = Answer {
                    kind,
                    fit,
                    relationships: 0,
                    relationship_confidence: 0.0,
                    step: None,
                    confidence: node.confidence,
                    ingested_at: 0,
                };
                self.found.insert(node.id, answer);
            }
        }
    }

    /// Keeps the nodes that fit a time; those of unknown times come later.
    pub(super) fn keep_timely(&mut self, timely: &PeriodFilter<'_>) {
        self.found.retain(|node, answer| {
            let later = timely.lateness(*node, answer.kind);
            answer.fit += later.unwrap_or_default();
            later.is_some()
        });
    }

    /// The best `most` of what was found, best first, with how well it fits: the least is the best.
    pub(super) fn best(&self, most: usize) -> Vec<(Uuid, Kind, usize)> {
        let found = self.found.iter();
        let mut ranked: Vec<((Rank, Uuid), Kind)> = found
            .map(|(id, answer)| ((answer.rank(), *id), answer.kind))
            .collect();
        if most < ranked.len() {
            ranked.select_nth_unstable_by_key(most, |(rank, _)| *rank);
            ranked.truncate(most);
        }
        ranked.sort_unstable_by_key(|(rank, _)| *rank);
        ranked
            .into_iter()
            .map(|((rank, id), kind)| (id, kind, rank.0))
            .collect()
    }

    /// What led to these nodes.
    pub(super) fn hops<'a>(&self, nodes: impl Iterator<Item = &'a Uuid>) -> Hops {
        let step = |node: &Uuid| Some((*node, self.found.get(node)?.step.clone()));
        nodes.filter_map(step).collect()
    }

    /// What led to every node.
    pub(super) fn all_hops(&self) -> Hops {
        self.hops(self.found.keys())
    }
}

impl Answer {
    fn rank(&self) -> Rank {
        // Confidences lie between 0 and 1; their bits are in the same order.
        let confidence = |value: f64| Reverse(value.max(0.0).to_bits());
        (
            self.fit,
            Reverse(self.relationships),
            confidence(self.relationship_confidence),
            confidence(self.confidence),
            Reverse(self.ingested_at),
        )
    }
}

/// What a period means for a kind. Nobody records when a technique or mitigation was seen, so its entry counts.
fn period_for_kind(kind: Kind, period: Period) -> Period {
    Period {
        entered: period.entered || matches!(kind, Kind::Technique | Kind::Mitigation),
        ..period
    }
}

/// Whether a node was seen, or entered, in the period; `None` if the node has no times.
fn is_in(period: &Period, stix: &StixFacts) -> Option<bool> {
    let time = |text: &Option<String>| -> Option<DateTime<Utc>> { text.as_ref()?.parse().ok() };
    let (first, last) = if period.entered {
        (time(&stix.created), time(&stix.created))
    } else {
        (
            time(&stix.first_seen).or(time(&stix.last_seen)),
            time(&stix.last_seen),
        )
    };
    first.map(|first| period.covers(first, last.unwrap_or(first)))
}
