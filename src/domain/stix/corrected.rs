//! A STIX object as it leaves with what was set of it by hand.

use serde_json::{Map, Value};

use super::marking::is_built_in;
use super::object::{text, texts};
use super::sco;
use crate::domain::graph::correction::CorrectedField;
use crate::domain::node::{KgNode, NodeStatus};

/// Types with names beside their own (STIX 2.1 section 4).
const WITH_ALIASES: [&str; 7] = [
    "attack-pattern",
    "campaign",
    "infrastructure",
    "intrusion-set",
    "malware",
    "threat-actor",
    "tool",
];

/// Writes what was set by hand of a node into its object. Observables have none of these fields, and leave as they came.
/// The marking is taken out where it was set: an export adds that of the node.
pub fn write_correction(
    object: &mut Map<String, Value>,
    node: &KgNode,
    is_set: impl Fn(CorrectedField) -> bool,
) {
    let kind = text(object, "type").unwrap_or_default().to_owned();
    if sco::is_observable(&kind) {
        return;
    }
    if is_set(CorrectedField::Name) && object.contains_key("name") {
        object.insert("name".into(), node.name.clone().into());
    }
    if is_set(CorrectedField::Description) {
        let key = match kind.as_str() {
            "note" => "content",
            "opinion" => "explanation",
            _ => "description",
        };
        // The text of a note is required.
        match node.description.is_empty() && key != "content" {
            true => object.remove(key),
            false => object.insert(key.into(), node.description.clone().into()),
        };
    }
    if is_set(CorrectedField::Aliases) {
        write_aliases(object, &kind, node);
    }
    if is_set(CorrectedField::Tlp) {
        let refs: Vec<Value> = texts(object, "object_marking_refs")
            .filter(|id| !is_built_in(id))
            .map(Value::from)
            .collect();
        match refs.is_empty() {
            true => object.remove("object_marking_refs"),
            false => object.insert("object_marking_refs".into(), refs.into()),
        };
    }
    if is_set(CorrectedField::Status) {
        object.insert("revoked".into(), (node.status == NodeStatus::Rejected).into());
    }
}

fn write_aliases(object: &mut Map<String, Value>, kind: &str, node: &KgNode) {
    let aliases: Vec<Value> = texts(&node.properties, "aliases").map(Value::from).collect();
    if WITH_ALIASES.contains(&kind) || object.contains_key("aliases") {
        match aliases.is_empty() {
            true => object.remove("aliases"),
            false => object.insert("aliases".into(), aliases.clone().into()),
        };
    }
    if object.contains_key("x_mitre_aliases") {
        // ATT&CK lists the name first.
        let name = Value::from(node.name.as_str());
        let all: Vec<Value> = std::iter::once(name.clone())
            .chain(aliases.into_iter().filter(|alias| *alias != name))
            .collect();
        object.insert("x_mitre_aliases".into(), all.into());
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use crate::domain::node::NodeType;
    use crate::domain::tlp::Tlp;

    #[test]
    fn an_object_leaves_with_what_was_set_and_with_nothing_else_changed() {
        let object = json!({
            "type": "intrusion-set", "id": "intrusion-set--1", "name": "APT28x", "description": "Old.",
            "aliases": ["Cozy Bear"], "x_mitre_aliases": ["APT28x", "Cozy Bear"], "goals": ["espionage"],
            "object_marking_refs": ["marking-definition--f88d31f6-486f-44da-b317-01333bde0b82", "marking-definition--1"],
        });
        let node = KgNode {
            id: Uuid::nil(),
            node_type: NodeType::Actor,
            name: "APT28".into(),
            description: "New.".into(),
            source: "MITRE".into(),
            source_type: "stix".into(),
            tlp: Tlp::Green,
            confidence: 0.5,
            properties: json!({"aliases": ["Fancy Bear"]}).as_object().unwrap().clone(),
            ingested_at: DateTime::UNIX_EPOCH,
            linked_evidence_ids: Vec::new(),
            status: NodeStatus::Active,
        };
        for (field, changed) in [
            (CorrectedField::Name, json!({"name": "APT28"})),
            (CorrectedField::Description, json!({"description": "New."})),
            (
                CorrectedField::Aliases,
                json!({"aliases": ["Fancy Bear"], "x_mitre_aliases": ["APT28", "Fancy Bear"]}),
            ),
            (
                CorrectedField::Tlp,
                json!({"object_marking_refs": ["marking-definition--1"]}),
            ),
            (CorrectedField::Status, json!({"revoked": false})),
            (CorrectedField::Confidence, json!({})),
        ] {
            let mut written = object.as_object().unwrap().clone();
            write_correction(&mut written, &node, |set| set == field);
            let mut want = object.as_object().unwrap().clone();
            want.extend(changed.as_object().unwrap().clone());
            assert_eq!(written, want, "{field}");
        }
    }
}
