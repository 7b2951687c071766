//! From which level on a bundle makes its marking-definitions known.
//!
//! Rule: a definition has no clearance of its own. Who may see an object of the bundle that carries it may know it; one
//! that no object carries is as visible as any other object of the bundle. So what a caller learns of a marking never
//! depends on a bundle that the caller can't see.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{StixSupport, marking, type_of_id};
use crate::domain::tlp::Tlp;

/// Definitions that refer to each other are followed so far.
const MAX_HOPS: usize = 8;

/// The weakest object that carries each marking.
#[derive(Debug, Default)]
pub(super) struct Carriers {
    weakest: HashMap<String, Tlp>,
    /// The markings that definitions carry.
    of_definitions: HashMap<String, Vec<String>>,
}

impl Carriers {
    /// Notes the markings of an object. Its level must not count what their definitions say: a definition is known to
    /// those who may see what the sender marked so, not only to those who see it once it is marked.
    pub(super) fn note(&mut self, id: &str, object: &Map<String, Value>, level: Tlp) {
        let sent = marking::marking_refs(object).filter(|id| !marking::is_built_in(id));
        if type_of_id(id) == Some("marking-definition") {
            let sent: Vec<String> = sent.map(str::to_owned).collect();
            if !sent.is_empty() {
                self.of_definitions.insert(id.to_owned(), sent);
            }
            return;
        }
        for marking in sent {
            self.carry(marking, level);
        }
    }

    fn carry(&mut self, marking: &str, level: Tlp) -> bool {
        match self.weakest.get_mut(marking) {
            Some(weakest) if *weakest <= level => return false,
            Some(weakest) => *weakest = level,
            None => {
                self.weakest.insert(marking.to_owned(), level);
            }
        }
        true
    }

    /// Gives the definitions among these objects the level from which they are known.
    pub(super) fn settle(mut self, objects: &mut [StixSupport]) {
        let of_definitions = std::mem::take(&mut self.of_definitions);
        for _ in 0..MAX_HOPS {
            let mut changed = false;
            for (definition, carried) in &of_definitions {
                if let Some(level) = self.weakest.get(definition).copied() {
                    for marking in carried {
                        changed |= self.carry(marking, level);
                    }
                }
            }
            if !changed {
                break;
            }
        }
        for object in objects {
            if let Some(level) = self.weakest.get(&object.stix_id)
                && type_of_id(&object.stix_id) == Some("marking-definition")
            {
                object.tlp = *level;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use serde_json::json;

    use super::super::{Markings, StixDefaults, plan};
    use super::*;

    const LICENCE: &str = "marking-definition--11111111-1111-4111-8111-111111111111";
    const NESTED: &str = "marking-definition--22222222-2222-4222-8222-222222222222";

    #[test]
    fn a_definition_is_known_from_the_weakest_object_that_carries_it() {
        let time = "2024-01-01T00:00:00.000Z";
        let definition = |id: &str, more: Value| {
            let mut definition = json!({"type": "marking-definition", "id": id, "spec_version": "2.1",
                "created": time, "definition_type": "statement", "definition": {"statement": "x"}});
            let more = more.as_object().unwrap().clone();
            definition.as_object_mut().unwrap().extend(more);
            definition
        };
        let tool = |n: u32, level: Option<&str>| {
            let mut tool = json!({"type": "tool", "id": format!("tool--00000000-0000-4000-8000-{n:012}"),
                "spec_version": "2.1", "created": time, "modified": time, "name": "t",
                "object_marking_refs": [LICENCE]});
            if let Some(level) = level {
                tool["x_mitre_tlp"] = level.into();
            }
            tool
        };
        let plain = definition(LICENCE, json!({}));
        let red = definition(LICENCE, json!({"x_mitre_tlp": "TLP:RED"}));
        let stating = definition(LICENCE, json!({"name": "TLP:RED"}));
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
            (vec![stating, tool(1, None)], Tlp::Green, Tlp::Green),
            (
                [nested.to_vec(), vec![tool(1, Some("white"))]].concat(),
                Tlp::Red,
                Tlp::White,
            ),
        ] {
            let shown = json!(objects).to_string();
            let defaults = StixDefaults {
                tlp: default,
                confidence: 0.5,
                now: DateTime::UNIX_EPOCH,
            };
            let plan = plan(objects.into(), defaults, Markings::new());
            assert!(!plan.supporting.is_empty());
            for definition in plan.supporting {
                assert_eq!(definition.tlp, want, "{shown}");
            }
        }
    }
}
