//! From which level on a bundle makes its marking-definitions known.
//!
//! Rule: a definition has no clearance of its own. Who may see an object of the bundle that carries it may know it, and
//! so may its sender; one that no object carries is as visible as any other object of the bundle. So what a caller learns
//! of a marking never depends on a bundle of others that the caller can't see, not even one that is hidden only because
//! of what the definition says.

use std::collections::HashMap;

use super::{StixPlan, StixSupport, type_of_id};
use crate::domain::tlp::Tlp;

/// Definitions that refer to each other are followed so far.
const MAX_HOPS: usize = 8;

/// The level of the weakest object that carries each marking.
#[derive(Default)]
struct Carriers<'a>(HashMap<&'a str, Tlp>);

impl StixPlan {
    /// Gives its definitions the level from which they are known, where the sender may see levels up to `sender`. Call it
    /// again once the levels of the objects have changed.
    pub fn settle_definitions(&mut self, sender: Tlp) {
        let levels: Vec<Option<Tlp>> = {
            let carriers = self.carriers();
            let objects = self.supporting.iter();
            objects
                .map(|object| carriers.0.get(object.stix_id.as_str()).copied())
                .collect()
        };
        for (object, level) in self.supporting.iter_mut().zip(levels) {
            if let Some(level) = level.filter(|_| is_definition(object)) {
                object.tlp = level.min(sender);
            }
        }
    }

    fn carriers(&self) -> Carriers<'_> {
        let mut carriers = Carriers::default();
        let nodes = self.nodes.iter().map(|node| (&node.carried, node.tlp));
        let edges = self.relationships.iter().map(|edge| (&edge.carried, edge.tlp));
        let (definitions, others): (Vec<_>, Vec<_>) =
            self.supporting.iter().partition(|object| is_definition(object));
        let others = others.iter().map(|object| (&object.carried, object.tlp));
        for (carried, level) in nodes.chain(edges).chain(others) {
            carriers.note(carried, level);
        }
        for _ in 0..MAX_HOPS {
            let mut changed = false;
            for definition in &definitions {
                if let Some(level) = carriers.0.get(definition.stix_id.as_str()).copied() {
                    changed |= carriers.note(&definition.carried, level);
                }
            }
            if !changed {
                break;
            }
        }
        carriers
    }
}

impl<'a> Carriers<'a> {
    /// Notes an object that carries these markings. Returns whether it is the weakest of one.
    fn note(&mut self, markings: &'a [String], level: Tlp) -> bool {
        let mut changed = false;
        for marking in markings {
            let weakest = self.0.get(marking.as_str());
            if weakest.is_none_or(|weakest| *weakest > level) {
                self.0.insert(marking, level);
                changed = true;
            }
        }
        changed
    }
}

fn is_definition(object: &StixSupport) -> bool {
    type_of_id(&object.stix_id) == Some("marking-definition")
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use serde_json::{Value, json};

    use super::super::{Markings, StixDefaults, plan};
    use super::*;

    const LICENCE: &str = "marking-definition--11111111-1111-4111-8111-111111111111";
    const NESTED: &str = "marking-definition--22222222-2222-4222-8222-222222222222";

    const TIME: &str = "2024-01-01T00:00:00.000Z";

    fn definition(id: &str, more: Value) -> Value {
        let mut definition = json!({"type": "marking-definition", "id": id, "spec_version": "2.1",
            "created": TIME, "definition_type": "statement", "definition": {"statement": "x"}});
        let more = more.as_object().unwrap().clone();
        definition.as_object_mut().unwrap().extend(more);
        definition
    }

    fn stating() -> Value {
        definition(LICENCE, json!({"name": "TLP:RED"}))
    }

    fn tool(n: u32, level: Option<&str>) -> Value {
        let mut tool = json!({"type": "tool", "id": format!("tool--00000000-0000-4000-8000-{n:012}"),
            "spec_version": "2.1", "created": TIME, "modified": TIME, "name": "t",
            "object_marking_refs": [LICENCE]});
        if let Some(level) = level {
            tool["x_mitre_tlp"] = level.into();
        }
        tool
    }

    fn planned(objects: Vec<Value>, default: Tlp) -> StixPlan {
        let defaults = StixDefaults {
            tlp: default,
            confidence: 0.5,
            now: DateTime::UNIX_EPOCH,
        };
        plan(objects.into(), defaults, Markings::new())
    }

    #[test]
    fn a_definition_is_known_from_the_weakest_object_that_carries_it() {
        let plain = definition(LICENCE, json!({}));
        let red = definition(LICENCE, json!({"x_mitre_tlp": "TLP:RED"}));
        let nested = [
            definition(NESTED, json!({})),
            definition(LICENCE, json!({"object_marking_refs": [NESTED]})),
        ];
        for (objects, default, want) in [
            (vec![plain.clone()], Tlp::Green, Tlp::Green),
            (vec![plain.clone()], Tlp::Red, Tlp::Red),
            (vec![red.clone()], Tlp::Green, Tlp::Red),
            (vec![red, tool(1, None)], Tlp::Green, Tlp::Green),
            (vec![plain.clone(), tool(1, Some("red"))], Tlp::Green, Tlp::Red),
            (
                vec![plain, tool(1, Some("red")), tool(2, Some("white"))],
                Tlp::Red,
                Tlp::White,
            ),
            (vec![stating(), tool(1, None)], Tlp::Green, Tlp::Red),
            (
                [nested.to_vec(), vec![tool(1, Some("white"))]].concat(),
                Tlp::Red,
                Tlp::White,
            ),
        ] {
            let shown = json!(objects).to_string();
            let plan = planned(objects, default);
            assert!(!plan.supporting.is_empty());
            for definition in plan.supporting {
                assert_eq!(definition.tlp, want, "{shown}");
            }
        }
    }

    #[test]
    fn the_sender_knows_a_definition_that_an_object_carries() {
        for (objects, want) in [
            (vec![stating(), tool(1, None)], Tlp::Amber),
            (vec![definition(LICENCE, json!({})), tool(1, None)], Tlp::Green),
            (
                vec![definition(LICENCE, json!({"x_mitre_tlp": "TLP:RED"}))],
                Tlp::Red,
            ),
        ] {
            let shown = json!(objects).to_string();
            let mut plan = planned(objects, Tlp::Green);
            plan.settle_definitions(Tlp::Amber);
            let levels: Vec<Tlp> = plan.supporting.iter().map(|object| object.tlp).collect();
            assert_eq!(levels, [want], "{shown}");
        }
    }
}
