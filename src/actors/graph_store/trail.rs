//! The way from what a question names to what the graph answers.

use std::borrow::Cow;
use std::collections::HashMap;

use uuid::Uuid;

use crate::domain::why::PathStep;
use crate::search;

/// A relationship that led to a node.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) id: Uuid,
    pub(super) from: Uuid,
    pub(super) relationship: Cow<'static, str>,
    pub(super) outgoing: bool,
    /// 0 to 1.
    pub(super) confidence: f64,
}

/// The nodes that one step reached, each with the best relationship that led to it; nothing did if it was found by its
/// time.
pub(super) type Hops = HashMap<Uuid, Option<Step>>;

/// The steps of a walk, the first one first.
#[derive(Debug, Default)]
pub(super) struct Trail(Vec<Hops>);

/// A node on the way, and what led to it from the one before.
#[derive(Debug, Clone)]
pub(super) struct Waypoint {
    pub(super) node: Uuid,
    pub(super) step: Option<Step>,
}

impl Step {
    /// A step of the index along a relationship of this type.
    pub(super) fn of(step: &search::Step, relationship: &'static str) -> Self {
        Step {
            id: step.relationship,
            from: step.from,
            relationship: Cow::Borrowed(relationship),
            outgoing: step.outgoing,
            confidence: step.confidence,
        }
    }

    /// Whether it is the better one of two that fit equally well.
    pub(super) fn is_better(&self, other: &Step) -> bool {
        let by_confidence = self.confidence.total_cmp(&other.confidence);
        by_confidence.then_with(|| other.from.cmp(&self.from)).is_gt()
    }
}

impl Trail {
    pub(super) fn add(&mut self, hops: Hops) {
        self.0.push(hops);
    }

    /// The way to a node from one that is named, or from where no relationship led to; empty if there is none.
    pub(super) fn path_to(&self, node: Uuid, is_named: impl Fn(&Uuid) -> bool) -> Vec<Waypoint> {
        let mut way = Vec::new();
        let mut at = Some(node);
        // No step leads back to an earlier one, so each is taken once.
        for hops in self.0.iter().rev() {
            let Some(node) = at.filter(|node| !is_named(node)) else {
                break;
            };
            let Some(step) = hops.get(&node) else { continue };
            way.push(Waypoint {
                node,
                step: step.clone(),
            });
            at = step.as_ref().map(|step| step.from);
        }
        let start = at.filter(is_named);
        way.extend(start.map(|node| Waypoint { node, step: None }));
        way.reverse();
        // A way begins where no relationship led to.
        let begins = way.first().is_some_and(|first| first.step.is_none());
        if begins { way } else { Vec::new() }
    }
}

/// A way of at least one step as the caller is told it; `None` if a node on it has no name.
pub(super) fn path_of(way: Vec<Waypoint>, names: &HashMap<Uuid, String>) -> Option<Vec<PathStep>> {
    if way.len() < 2 {
        return None;
    }
    let told = |Waypoint { node, step }: Waypoint| {
        Some(PathStep {
            id: node,
            name: names.get(&node)?.clone(),
            outgoing: step.as_ref().map(|step| step.outgoing),
            relationship: step.map(|step| step.relationship.into_owned()),
        })
    };
    way.into_iter().map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }

    fn step(from: u128, confidence: f64) -> Step {
        Step {
            id: id(100 + from),
            from: id(from),
            relationship: Cow::Borrowed("uses"),
            outgoing: true,
            confidence,
        }
    }

    fn nodes(trail: &Trail, node: u128) -> Vec<u128> {
        let way = trail.path_to(id(node), |_| false);
        way.into_iter().map(|at| at.node.as_u128()).collect()
    }

    #[test]
    fn a_way_begins_where_nothing_led_to_and_follows_the_steps_in_order() {
        let mut trail = Trail::default();
        trail.add(Hops::from([(id(1), None)]));
        trail.add(Hops::from([(id(2), Some(step(1, 0.5)))]));
        // The same node on a later step is another way to it.
        trail.add(Hops::from([
            (id(3), Some(step(2, 0.5))),
            (id(1), Some(step(2, 0.5))),
        ]));
        assert_eq!(nodes(&trail, 3), [1, 2, 3]);
        assert_eq!(nodes(&trail, 1), [1, 2, 1]);
        assert_eq!(nodes(&trail, 2), [1, 2]);
        assert!(nodes(&trail, 9).is_empty());
    }

    #[test]
    fn a_way_begins_at_what_is_named_or_is_none() {
        let mut trail = Trail::default();
        trail.add(Hops::from([(id(2), Some(step(1, 0.5)))]));
        assert!(nodes(&trail, 2).is_empty());
        let way = trail.path_to(id(2), |node| *node == id(1));
        let ids: Vec<Uuid> = way.iter().map(|at| at.node).collect();
        assert_eq!(ids, [id(1), id(2)]);
        assert_eq!(way[1].step.as_ref().map(|step| step.id), Some(id(101)));
    }

    #[test]
    fn a_path_names_every_node_or_is_not_told() {
        let mut trail = Trail::default();
        trail.add(Hops::from([(id(2), Some(step(1, 0.5)))]));
        let way = trail.path_to(id(2), |node| *node == id(1));
        let mut names = HashMap::from([(id(1), "FIN7".to_owned())]);
        assert!(path_of(way.clone(), &names).is_none());
        names.insert(id(2), "Lizar".to_owned());
        let path = path_of(way.clone(), &names).unwrap();
        assert_eq!((path[0].name.as_str(), path[1].name.as_str()), ("FIN7", "Lizar"));
        assert_eq!(path[1].relationship.as_deref(), Some("uses"));
        assert!(path_of(way[..1].to_vec(), &names).is_none());
    }

    #[test]
    fn the_surer_relationship_is_the_better_one() {
        assert!(step(2, 0.9).is_better(&step(1, 0.5)));
        assert!(!step(2, 0.5).is_better(&step(1, 0.5)));
        assert!(step(1, 0.5).is_better(&step(2, 0.5)));
    }
}
