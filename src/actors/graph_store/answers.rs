//! What a step along relationships found, and which of it answers best.

use std::cmp::Reverse;
use std::collections::HashMap;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::recall::Search;
use super::trail::{Hop, Hops, Step};
use crate::domain::question::{Kind, Period, relationships};
use crate::store::{Reached, SeenNode};

/// How well a node answers; the least is the best.
type Rank = (usize, Reverse<usize>, Reverse<u64>, Reverse<u64>, String);

/// The nodes that one step found.
#[derive(Debug, Default)]
pub(super) struct Answers {
    found: HashMap<Uuid, Answer>,
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
    node: SeenNode,
}

impl Answers {
    /// Adds what a step from these nodes reached, as far as kind, relationship and time fit. `later` lowers the rank.
    pub(super) fn add(
        &mut self,
        reached: Vec<Reached>,
        at: &HashMap<Uuid, Kind>,
        kinds: &[Kind],
        later: usize,
        period: Option<Period>,
    ) {
        for step in reached {
            let kind = Kind::of(step.node.node_type, step.node.stix.kind.as_deref());
            let place = kinds.iter().position(|wanted| kind == Some(*wanted));
            let (Some(kind), Some(place), Some(near)) = (kind, place, at.get(&step.from)) else {
                continue;
            };
            let fitting = relationships(*near, kind)
                .iter()
                .position(|name| *name == step.relationship);
            let Some(fitting) = fitting.filter(|_| !at.contains_key(&step.node.id)) else {
                continue;
            };
            let timely = period.map_or(Some(true), |period| is_in(&period, &step.node));
            // Of a group or a technique nobody says when it was seen; a campaign without a time is none of that time.
            if timely == Some(false) || (timely.is_none() && kind == Kind::Campaign) {
                continue;
            }
            let later = later + 2 * usize::from(timely.is_none());
            let fit = later * 100 + place * 10 + usize::from(fitting > 0);
            let Reached {
                from,
                relationship,
                outgoing,
                confidence,
                node,
            } = step;
            let entry = self.found.entry(node.id);
            let answer = entry.or_insert_with(|| Answer::new(kind, fit, node));
            let step = Step {
                from,
                relationship,
                outgoing,
                confidence,
            };
            let is_better = |known: &Step| fit == answer.fit && step.is_better(known);
            if fit < answer.fit || answer.step.as_ref().is_none_or(is_better) {
                answer.step = Some(step);
            }
            answer.fit = answer.fit.min(fit);
            answer.relationships += 1;
            answer.relationship_confidence = answer.relationship_confidence.max(confidence);
        }
    }

    /// Adds the nodes of these kinds that fit a time.
    pub(super) fn add_listed(&mut self, nodes: Vec<SeenNode>, kinds: &[Kind], period: Period) {
        for node in nodes {
            let kind = Kind::of(node.node_type, node.stix.kind.as_deref());
            let place = kinds.iter().position(|wanted| kind == Some(*wanted));
            if let (Some(kind), Some(fit)) = (kind, place)
                && is_in(&period, &node) == Some(true)
            {
                self.found.insert(node.id, Answer::new(kind, fit, node));
            }
        }
    }

    /// The way to each node found, if the caller asks why.
    pub(super) fn hops(&self, ask: &Search) -> Hops {
        let found = self.found.iter().filter(|_| ask.explain);
        let hop = |answer: &Answer| Hop::new(answer.node.name.clone(), answer.step.clone());
        found.map(|(id, answer)| (*id, hop(answer))).collect()
    }

    /// What was found, best first, with how well it fits: the least is the best.
    pub(super) fn best(self) -> Vec<(Uuid, Kind, usize)> {
        let found = self.found.into_iter();
        let mut ranked: Vec<(Rank, Uuid, Kind)> = found
            .map(|(id, answer)| (answer.rank(), id, answer.kind))
            .collect();
        ranked.sort_by(|(a, id, _), (b, other, _)| a.cmp(b).then_with(|| id.cmp(other)));
        ranked
            .into_iter()
            .map(|(rank, id, kind)| (id, kind, rank.0))
            .collect()
    }
}

impl Answer {
    /// A node to which no relationship has led yet.
    fn new(kind: Kind, fit: usize, node: SeenNode) -> Self {
        Answer {
            kind,
            fit,
            relationships: 0,
            relationship_confidence: 0.0,
            step: None,
            node,
        }
    }

    fn rank(&self) -> Rank {
        // Confidences lie between 0 and 1; their bits are in the same order.
        let confidence = |value: f64| Reverse(value.max(0.0).to_bits());
        (
            self.fit,
            Reverse(self.relationships),
            confidence(self.relationship_confidence),
            confidence(self.node.confidence),
            self.node.name.clone(),
        )
    }
}

/// Whether a node was seen, or entered, in the period; `None` if the node has no times.
fn is_in(period: &Period, node: &SeenNode) -> Option<bool> {
    let time = |text: &Option<String>| -> Option<DateTime<Utc>> { text.as_ref()?.parse().ok() };
    let (first, last) = if period.entered {
        (time(&node.stix.created), time(&node.stix.created))
    } else {
        (
            time(&node.stix.first_seen).or(time(&node.stix.last_seen)),
            time(&node.stix.last_seen),
        )
    };
    first.map(|first| period.covers(first, last.unwrap_or(first)))
}
