//! Turns received STIX objects into items for review.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::domain::node::NodeType;
use crate::domain::packing::{unpack, unpacked_size};
use crate::domain::stix::ingest::{
    Markings, SkippedObject, SkippedSize, SkipsByMarking, StixNode, StixPlan, StixRelationship, StixSupport,
};
use crate::domain::stix::marking::{self, Conflict, ObjectMarking};
use crate::domain::stix::object::{flag, type_of_id};
use crate::domain::tlp::Tlp;
use crate::domain::warninglists::{self, Warninglists};

/// Markings that one warning names at most.
const MAX_MARKINGS: usize = 3;
/// Undefined markings that an item may wait for.
const MAX_UNDEFINED: usize = 50;
/// Start of the warning about undefined markings, by which a later definition finds it.
const UNDEFINED: &str = "undefined marking: ";
/// Start of the warning about two levels.
const CONFLICT: &str = "two markings: ";
/// Start of the warnings about an object without a marking.
const SILENT: &str = "states no marking: ";
const UNMARKED: &str = "states no marking: the default of the feed is proposed";
/// End of the warning about an object that keeps the marking of an earlier version.
const KEPT: &str = " of an earlier version is proposed";

/// An object to be staged.
#[derive(Debug, Clone)]
pub struct StagedObject {
    pub stix_id: String,
    pub name: String,
    pub modified: DateTime<Utc>,
    /// A digest of the object, if it states no time of its own, as observables do: another one is another version.
    pub says: Option<Uuid>,
    /// Ends of a relationship.
    pub ends: Option<(String, String)>,
    pub marking: ProposedMarking,
    pub warnings: Vec<String>,
    /// The packed object.
    pub raw: Vec<u8>,
}

/// The marking proposed for an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedMarking {
    pub tlp: Tlp,
    /// The part of it that the object itself states, or versions that came with it.
    pub stated: Option<Tlp>,
    /// Its undefined markings.
    pub undefined: Vec<String>,
    /// What it says of itself and what its markings say, where these differ.
    pub conflict: Option<Conflict>,
}

/// A page or bundle, ready to be staged.
#[derive(Debug, Clone, Default)]
pub struct StagedPage {
    pub objects: Vec<StagedObject>,
    /// Markings, identities and other objects that items refer to.
    pub support: Vec<StixSupport>,
    pub skips: SkipsByMarking,
}

impl StagedObject {
    /// Size of the object as JSON text in bytes.
    pub fn bytes(&self) -> usize {
        unpacked_size(&self.raw)
    }

    /// Keeps the marking of earlier versions, if this one would be marked lower and states no marking.
    pub fn keep_marking(&mut self, earlier: Tlp) {
        self.marking.keep(earlier, &mut self.warnings);
    }
}

/// Objects of a plan that name so many undefined markings that they are not staged.
pub fn overmarked_objects(plan: &StixPlan) -> Vec<SkippedObject> {
    let nodes = plan.nodes.iter().map(|node| (&node.stix_id, &node.held_by));
    let edges = plan
        .relationships
        .iter()
        .map(|edge| (&edge.stix_id, &edge.held_by));
    let over = nodes
        .chain(edges)
        .filter(|(_, held_by)| held_by.len() > MAX_UNDEFINED);
    over.map(|(id, _)| SkippedObject {
        id: id.clone(),
        reason: overmarked(),
    })
    .collect()
}

fn overmarked() -> String {
    format!("object_marking_refs: more than {MAX_UNDEFINED} undefined markings")
}

impl StagedPage {
    /// Skips objects that name so many undefined markings that waiting for them would be a burden.
    pub fn drop_overmarked(&mut self) {
        let skips = &mut self.skips;
        self.objects.retain(|object| {
            let fits = object.marking.undefined.len() <= MAX_UNDEFINED;
            if !fits {
                let size = SkippedSize {
                    tlp: object.marking.tlp,
                    bytes: object.bytes(),
                };
                skips.add_invalid(size, stix_type(&object.stix_id), &object.stix_id, overmarked());
            }
            fits
        });
    }
}

/// Makes items of planned objects.
#[derive(Debug, Clone)]
pub struct Stager {
    /// The markings known to the workspace, to the feed, and in what was received.
    pub markings: Markings,
    /// Marking of objects that state none.
    pub default_tlp: Tlp,
    pub warninglists: Arc<Warninglists>,
}

impl Stager {
    /// A page as a whole.
    pub fn page(&self, plan: StixPlan) -> StagedPage {
        let plan = plan.into_reviewable();
        let nodes = plan.nodes.into_iter().map(|node| self.node(node));
        let edges = plan.relationships.into_iter().map(|edge| self.relationship(edge));
        let mut page = StagedPage {
            objects: nodes.chain(edges).collect(),
            support: plan.supporting,
            skips: plan.skips,
        };
        page.drop_overmarked();
        page
    }

    /// The item of an object that would become a node.
    pub fn node(&self, node: StixNode) -> StagedObject {
        let item = StagedObject {
            stix_id: node.stix_id,
            name: node.name,
            modified: node.modified,
            says: node
                .undated
                .then(|| Uuid::new_v5(&Uuid::NAMESPACE_OID, &node.raw)),
            ends: None,
            marking: ProposedMarking::HIDDEN,
            warnings: Vec::new(),
            raw: node.raw,
        };
        let mut item = self.item(item, (node.tlp, node.earlier));
        if node.node_type == NodeType::Ioc {
            let properties = serde_json::from_str(&node.properties).unwrap_or_default();
            let listed = self.warninglists.of_node(node.node_type, &item.name, &properties);
            item.warnings.extend(warninglists::warning(&listed));
        }
        item
    }

    /// The item of a relationship.
    pub fn relationship(&self, edge: StixRelationship) -> StagedObject {
        let item = StagedObject {
            stix_id: edge.stix_id,
            name: edge.relationship,
            modified: edge.modified,
            says: None,
            ends: Some((edge.source_ref, edge.target_ref)),
            marking: ProposedMarking::HIDDEN,
            warnings: Vec::new(),
            raw: edge.raw,
        };
        self.item(item, (edge.tlp, edge.earlier))
    }

    /// An item with the marking that its object was planned with, and what versions that came with it state.
    fn item(&self, mut item: StagedObject, (planned, earlier): (Tlp, Option<Tlp>)) -> StagedObject {
        let object = unpack(&item.raw).unwrap_or_default();
        item.marking = propose_marking(&object, &self.markings, self.default_tlp);
        item.warnings = item.marking.warnings();
        if planned > item.marking.tlp {
            match item.marking.stated {
                None => item.keep_marking(planned),
                Some(_) => item.warnings.push(format!(
                    "another text of this version states {planned}, which is proposed"
                )),
            }
            item.marking.tlp = planned;
        }
        item.marking.stated = item.marking.stated.max(earlier);
        if flag(&object, "revoked") || flag(&object, "x_mitre_deprecated") {
            let warning = "withdrawn by its author: committing it hides its node or edge";
            item.warnings.push(warning.to_owned());
        }
        item
    }
}

/// The marking to propose for a validated object. One that can't be read is RED.
pub fn propose_marking(object: &Map<String, Value>, markings: &Markings, default: Tlp) -> ProposedMarking {
    let Ok(ObjectMarking {
        tlp,
        stated,
        undefined,
        conflict,
        ..
    }) = marking::object_marking(object, markings, default)
    else {
        return ProposedMarking::HIDDEN;
    };
    ProposedMarking {
        tlp,
        stated,
        undefined,
        conflict,
    }
}

impl ProposedMarking {
    /// The strictest marking there is.
    const HIDDEN: Self = Self {
        tlp: Tlp::Red,
        stated: Some(Tlp::Red),
        undefined: Vec::new(),
        conflict: None,
    };

    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if !self.undefined.is_empty() {
            let named: Vec<&str> = self
                .undefined
                .iter()
                .take(MAX_MARKINGS)
                .map(String::as_str)
                .collect();
            warnings.push(format!("{UNDEFINED}{}", named.join(", ")));
        } else if self.stated.is_none() {
            warnings.push(UNMARKED.to_owned());
        }
        if let Some(conflict) = self.conflict {
            warnings.push(format!("{CONFLICT}{conflict}"));
        }
        warnings
    }

    /// Says why an item keeps a stricter marking than it has by itself.
    pub fn note_kept(&self, kept: Tlp, warnings: &mut Vec<String>) {
        if kept > self.tlp {
            warnings.retain(|warning| warning != UNMARKED);
            warnings.push(format!(
                "{kept} stays proposed: the marking that was defined later states no level"
            ));
        }
    }

    /// Keeps the marking of earlier versions, if the object states none and would be marked lower, now or once its
    /// undefined markings are defined.
    fn keep(&mut self, earlier: Tlp, warnings: &mut Vec<String>) {
        let lower = self.tlp < earlier || (self.tlp == earlier && !self.undefined.is_empty());
        if self.stated.is_none() && lower {
            self.tlp = earlier;
            warnings.retain(|warning| !warning.starts_with(SILENT));
            warnings.push(format!("{SILENT}{earlier}{KEPT}"));
        }
    }

    /// Brings the marking and the warnings of an item up to date when one of its markings has been defined.
    pub fn renew(&mut self, warnings: &mut Vec<String>) {
        let kept = warnings.iter().find_map(|warning| kept_level(warning));
        let renewed = [UNDEFINED, CONFLICT, SILENT];
        warnings.retain(|warning| !renewed.iter().any(|start| warning.starts_with(start)));
        warnings.extend(self.warnings());
        if let Some(earlier) = kept {
            self.keep(earlier, warnings);
        }
    }
}

/// The marking of earlier versions that an item keeps, by its warning.
fn kept_level(warning: &str) -> Option<Tlp> {
    let level = warning.strip_prefix(SILENT)?.strip_suffix(KEPT)?;
    level.parse().ok()
}

/// The type of a staged object.
pub fn stix_type(stix_id: &str) -> &str {
    type_of_id(stix_id).unwrap_or("unknown")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::stix::ingest::{self, StixDefaults};

    const RED: &str = "marking-definition--5e57c739-391a-4eb3-b6be-7d15ca92d5ed";
    const LICENCE: &str = "marking-definition--11111111-1111-4111-8111-111111111111";

    fn proposal(object: Value, known: &Markings) -> ProposedMarking {
        propose_marking(object.as_object().unwrap(), known, Tlp::Green)
    }

    #[test]
    fn an_item_is_marked_by_the_rules_of_an_ingest_and_says_what_is_odd() {
        let unknown = Markings::new();
        let conflict = proposal(
            json!({"labels": ["tlp:white"], "object_marking_refs": [RED]}),
            &unknown,
        );
        assert_eq!((conflict.tlp, conflict.stated), (Tlp::Red, Some(Tlp::Red)));
        let warnings = conflict.warnings();
        assert_eq!(
            warnings,
            ["two markings: labels says TLP:WHITE, and its markings say TLP:RED: TLP:RED counts"]
        );

        let marked = json!({"object_marking_refs": [LICENCE]});
        let undefined = proposal(marked.clone(), &unknown);
        let mut warnings = undefined.warnings();
        assert_eq!(undefined.tlp, Tlp::Amber);
        assert_eq!(warnings, [format!("undefined marking: {LICENCE}")]);
        let mut defined = proposal(marked, &Markings::from([(LICENCE.to_owned(), None)]));
        defined.renew(&mut warnings);
        assert_eq!(warnings, [UNMARKED]);
        defined.note_kept(Tlp::Amber, &mut warnings);
        assert_eq!(
            warnings,
            ["TLP:AMBER stays proposed: the marking that was defined later states no level"]
        );
    }

    #[test]
    fn an_item_without_a_marking_keeps_that_of_earlier_versions_until_it_turns_out_to_state_one() {
        let marked = json!({"object_marking_refs": [LICENCE]});
        for earlier in [Tlp::Amber, Tlp::Red] {
            let mut undefined = proposal(marked.clone(), &Markings::new());
            let mut warnings = undefined.warnings();
            undefined.keep(earlier, &mut warnings);
            assert_eq!(undefined.tlp, earlier);
            let kept = format!("states no marking: {earlier} of an earlier version is proposed");
            assert_eq!(warnings, [format!("undefined marking: {LICENCE}"), kept.clone()]);
            let mut silent = proposal(marked.clone(), &Markings::from([(LICENCE.to_owned(), None)]));
            let mut of_silent = warnings.clone();
            silent.renew(&mut of_silent);
            assert_eq!((silent.tlp, of_silent), (earlier, vec![kept]));
            let level = Some(Tlp::Green);
            let mut stating = proposal(marked.clone(), &Markings::from([(LICENCE.to_owned(), level)]));
            stating.renew(&mut warnings);
            assert_eq!((stating.tlp, warnings.len()), (Tlp::Green, 0));
        }
    }

    #[test]
    fn an_item_keeps_what_versions_that_came_with_it_state() {
        let version = |day: u32, more: Value| {
            let mut object = json!({"type": "tool", "id": "tool--00000000-0000-4000-8000-000000000001",
                "spec_version": "2.1", "name": "Tool", "created": "2024-01-01T00:00:00.000Z",
                "modified": format!("2024-01-{day:02}T00:00:00.000Z")});
            for (key, value) in more.as_object().unwrap() {
                object[key] = value.clone();
            }
            object
        };
        let red = version(1, json!({"object_marking_refs": [RED]}));
        let (silent, newer) = (version(1, json!({})), version(2, json!({})));
        let green = version(1, json!({"labels": ["tlp:green"]}));
        let kept = "states no marking: TLP:RED of an earlier version is proposed";
        let other = "another text of this version states TLP:RED, which is proposed";
        for (objects, warnings) in [
            ([&red, &newer], vec![kept]),
            ([&newer, &red], vec![kept]),
            ([&silent, &red], vec![kept]),
            ([&green, &red], vec![other]),
            ([&red, &silent], vec![]),
        ] {
            let defaults = StixDefaults {
                tlp: Tlp::Green,
                confidence: 0.5,
                now: DateTime::UNIX_EPOCH,
            };
            let stager = Stager {
                markings: Markings::new(),
                default_tlp: Tlp::Green,
                warninglists: Arc::default(),
            };
            let objects: Vec<Value> = objects.into_iter().cloned().collect();
            let page = stager.page(ingest::plan(objects.into(), defaults, Markings::new()));
            let [item] = page.objects.as_slice() else {
                panic!("{} items", page.objects.len());
            };
            assert_eq!(
                (item.marking.tlp, item.marking.stated),
                (Tlp::Red, Some(Tlp::Red))
            );
            assert_eq!(item.warnings, warnings);
        }
    }
}
