//! The references of an object that is a node, as relationships: what a report names, a sighting is of, an address belongs to.
//!
//! They are no objects. They stand in the object, leave with it, and end when a newer version of it drops them.

use serde_json::{Map, Value};
use uuid::Uuid;

use super::{StixNode, StixRelationship};
use crate::domain::kinds::StixRow;
use crate::domain::node::NodeStatus;
use crate::domain::stix::object::type_of_id;

/// What the ids of these relationships begin with; no STIX id does.
pub(super) const PREFIX: &str = "reference--";

/// Maximum number of references of one object.
const MOST: usize = 50_000;

/// References that say who wrote or marked an object, and nothing that it is about.
const OF_THE_OBJECT_ITSELF: [&str; 3] = ["created_by_ref", "object_marking_refs", "x_mitre_modified_by_ref"];

/// The list of a collection of ATT&CK that has every object of its release, and is about none of them.
const CONTENTS: &str = "x_mitre_contents";

/// Names of the relationships, where the property's own would not be understood.
const NAMES: [(&str, &str); 9] = [
    ("object_ref", "translates"),
    ("object_refs", "refers-to"),
    ("sighting_of_ref", "sighting-of"),
    ("where_sighted_refs", "sighted-by"),
    ("observed_data_refs", "based-on"),
    ("analysis_sco_refs", "analysis-of"),
    ("sample_ref", "analysis-of"),
    ("x_mitre_analytic_refs", "has-analytic"),
    ("tactic_refs", "has-tactic"),
];

/// The references of an object to objects that can be nodes, each once.
pub(super) fn of(node: &StixNode, object: &Map<String, Value>) -> Vec<StixRelationship> {
    let mut found: Vec<StixRelationship> = Vec::new();
    // What a list of objects refers to is related as the list's own object: the log sources of an analytic.
    let lists = object.iter().filter(|(property, _)| *property != CONTENTS);
    let items = lists.filter_map(|(_, value)| value.as_array()).flatten();
    let inner = items.filter_map(Value::as_object).flatten();
    for (property, value) in object.iter().chain(inner) {
        if OF_THE_OBJECT_ITSELF.contains(&property.as_str()) {
            continue;
        }
        let name = name_of(property);
        for target in targets_of(property, value) {
            let is_node = type_of_id(target).is_some_and(|kind| StixRow::of(kind).is_some());
            if is_node && target != node.stix_id && found.len() < MOST {
                found.push(reference(node, property, &name, target));
            }
        }
    }
    found.sort_by(|one, other| one.stix_id.cmp(&other.stix_id));
    found.dedup_by(|one, other| one.stix_id == other.stix_id);
    found
}

/// The ids to which a property refers.
fn targets_of<'o>(property: &str, value: &'o Value) -> Vec<&'o str> {
    let single = value.as_str().filter(|_| property.ends_with("_ref"));
    let many = value.as_array().filter(|_| property.ends_with("_refs"));
    let many = many.into_iter().flatten().filter_map(Value::as_str);
    single.into_iter().chain(many).collect()
}

fn name_of(property: &str) -> String {
    if let Some((_, name)) = NAMES.iter().find(|(known, _)| *known == property) {
        return (*name).to_owned();
    }
    let bare = property.trim_end_matches("_refs").trim_end_matches("_ref");
    bare.trim_start_matches("x_mitre_").replace('_', "-")
}

fn reference(node: &StixNode, property: &str, name: &str, target: &str) -> StixRelationship {
    let of = format!("{property}\0{target}");
    let object = Uuid::new_v5(&Uuid::NAMESPACE_OID, node.stix_id.as_bytes());
    StixRelationship {
        stix_id: format!("{PREFIX}{}", Uuid::new_v5(&object, of.as_bytes())),
        modified: node.modified,
        relationship: name.to_owned(),
        source_ref: node.stix_id.clone(),
        target_ref: target.to_owned(),
        tlp: node.tlp,
        stated: node.stated,
        earlier: node.earlier,
        confidence: node.confidence,
        active: node.status == NodeStatus::Active,
        raw: Vec::new(),
        held_by: Vec::new(),
        carried: Vec::new(),
    }
}
