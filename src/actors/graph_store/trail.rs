//! The way from what a question names to what the graph answers.

use std::collections::HashMap;

use uuid::Uuid;

use crate::domain::node::KgNode;
use crate::domain::why::PathStep;
use crate::store::Reached;

/// A relationship that led to a node.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) from: Uuid,
    pub(super) relationship: String,
    pub(super) outgoing: bool,
    /// 0 to 1.
    pub(super) confidence: f64,
}

/// A node on the way, and what led to it; nothing did if it was found by its time.
#[derive(Debug, Clone)]
pub(super) struct Hop {
    name: String,
    step: Option<Step>,
}

/// The nodes that one step reached.
pub(super) type Hops = HashMap<Uuid, Hop>;

/// The steps of a walk, the first one first.
#[derive(Debug, Default)]
pub(super) struct Trail(Vec<Hops>);

impl Step {
    /// Whether it is the better one of two that fit equally well.
    pub(super) fn is_better(&self, other: &Step) -> bool {
        let by_confidence = self.confidence.total_cmp(&other.confidence);
        by_confidence.then_with(|| other.from.cmp(&self.from)).is_gt()
    }
}

impl Hop {
    pub(super) fn new(name: String, step: Option<Step>) -> Self {
        Hop { name, step }
    }
}

/// The best way to each node reached.
pub(super) fn hops_of(reached: &[Reached]) -> Hops {
    let mut best: HashMap<Uuid, (&Reached, Step)> = HashMap::new();
    for reached in reached {
        let step = Step {
            from: reached.from,
            relationship: reached.relationship.clone(),
            outgoing: reached.outgoing,
            confidence: reached.confidence,
        };
        let known = best.get(&reached.node.id);
        if known.is_none_or(|(_, known)| step.is_better(known)) {
            best.insert(reached.node.id, (reached, step));
        }
    }
    let hop = |(reached, step): (&Reached, Step)| Hop::new(reached.node.name.clone(), Some(step));
    best.into_iter().map(|(id, way)| (id, hop(way))).collect()
}

impl Trail {
    pub(super) fn add(&mut self, hops: Hops) {
        self.0.push(hops);
    }

    /// The path to each of these nodes, as far as relationships led to it.
    pub(super) fn paths(
        &self,
        nodes: &[Uuid],
        named: &HashMap<Uuid, KgNode>,
    ) -> HashMap<Uuid, Vec<PathStep>> {
        let paths = nodes.iter().map(|node| (*node, self.path(*node, named)));
        paths.filter(|(_, path)| path.len() > 1).collect()
    }

    fn path(&self, node: Uuid, named: &HashMap<Uuid, KgNode>) -> Vec<PathStep> {
        let mut path = Vec::new();
        let mut at = Some(node);
        // No step leads back to an earlier one, so each is taken once.
        for hops in self.0.iter().rev() {
            let Some(id) = at.filter(|id| !named.contains_key(id)) else {
                break;
            };
            let Some(hop) = hops.get(&id) else { continue };
            let step = hop.step.as_ref();
            path.push(PathStep {
                id,
                name: hop.name.clone(),
                relationship: step.map(|step| step.relationship.clone()),
                outgoing: step.map(|step| step.outgoing),
            });
            at = step.map(|step| step.from);
        }
        path.extend(at.and_then(|id| named.get(&id)).map(PathStep::start));
        path.reverse();
        // A path begins where no relationship led to.
        let begins = path.first().is_some_and(|first| first.relationship.is_none());
        if begins { path } else { Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }

    fn hop(node: u128, from: u128, confidence: f64) -> (Uuid, Hop) {
        let step = Step {
            from: id(from),
            relationship: format!("uses {from}"),
            outgoing: true,
            confidence,
        };
        (id(node), Hop::new(node.to_string(), Some(step)))
    }

    fn names(trail: &Trail, node: u128) -> Vec<String> {
        let path = trail.path(id(node), &HashMap::new());
        path.into_iter().map(|step| step.name).collect()
    }

    #[test]
    fn a_path_begins_where_nothing_led_to_and_follows_the_steps_in_order() {
        let mut trail = Trail::default();
        trail.add(Hops::from([(id(1), Hop::new("1".to_owned(), None))]));
        trail.add(Hops::from([hop(2, 1, 0.5)]));
        // The same node on a later step is another way to it.
        trail.add(Hops::from([hop(3, 2, 0.5), hop(1, 2, 0.5)]));
        assert_eq!(names(&trail, 3), ["1", "2", "3"]);
        assert_eq!(names(&trail, 1), ["1", "2", "1"]);
        assert_eq!(names(&trail, 2), ["1", "2"]);
        assert!(names(&trail, 9).is_empty());
        let paths = trail.paths(&[id(1), id(3), id(9)], &HashMap::new());
        assert_eq!(paths.len(), 2);
    }

    #[test]
    fn a_path_without_a_beginning_is_none() {
        let mut trail = Trail::default();
        trail.add(Hops::from([hop(2, 1, 0.5)]));
        assert!(names(&trail, 2).is_empty());
    }

    #[test]
    fn the_surer_relationship_is_the_better_one() {
        let step = |from, confidence| hop(9, from, confidence).1.step.unwrap();
        assert!(step(2, 0.9).is_better(&step(1, 0.5)));
        assert!(!step(2, 0.5).is_better(&step(1, 0.5)));
        assert!(step(1, 0.5).is_better(&step(2, 0.5)));
    }
}
