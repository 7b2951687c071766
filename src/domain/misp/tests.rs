//! Tests of the MISP reader with tables, arbitrary JSON, and real events kept beside the repository.

#![allow(clippy::wildcard_enum_match_arm)] // The tests match on arbitrary JSON.

mod bounds;
mod galaxies;
mod markings;
mod properties;
pub(in crate::domain) mod real;
mod shapes;
mod values;

use serde_json::json;

use super::*;
use crate::domain::draft::NodeDraft;
use crate::domain::tlp::Tlp;

const UUID: &str = "5d3f036b-0f50-4499-af4c-695a0a016219";

const DEFAULTS: ItemDefaults = ItemDefaults {
    tlp: Tlp::Green,
    confidence: 0.6,
};

/// An event with a uuid and these members.
fn event(members: Value) -> Map<String, Value> {
    let Value::Object(mut event) = members else {
        panic!("an event is an object")
    };
    event.entry("uuid").or_insert_with(|| UUID.into());
    event
}

fn planned(members: Value) -> MispPlan {
    plan(&event(members), DEFAULTS).unwrap()
}

/// The plan of an event with one attribute of this type and value.
fn attribute(kind: &str, value: &str) -> MispPlan {
    planned(json!({"Attribute": [{"type": kind, "value": value, "to_ids": true}]}))
}

fn named<'p>(plan: &'p MispPlan, name: &str) -> &'p NodeDraft {
    let found = plan.drafts.nodes.iter().find(|node| node.name == name);
    found.unwrap_or_else(|| panic!("no {name} among {:?}", names(plan)))
}

fn names(plan: &MispPlan) -> Vec<&str> {
    plan.drafts.nodes.iter().map(|node| node.name.as_str()).collect()
}

/// Skipped items, by reason.
fn reasons(plan: &MispPlan) -> Value {
    let mut reasons = Map::new();
    for skipped in plan.skipped.values() {
        assert_eq!(skipped.count, skipped.reasons.values().sum::<u64>());
        reasons.extend(
            skipped
                .reasons
                .iter()
                .map(|(reason, count)| (reason.clone(), json!(count))),
        );
    }
    Value::Object(reasons)
}

/// Edges as source, relationship, target.
fn edges(plan: &MispPlan) -> Vec<(&str, &str, &str)> {
    let name = |at: usize| plan.drafts.nodes[at].name.as_str();
    let edges = plan.drafts.edges.iter();
    edges
        .map(|edge| (name(edge.source), edge.relationship.as_str(), name(edge.target)))
        .collect()
}
