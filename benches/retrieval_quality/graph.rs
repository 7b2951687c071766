//! The objects and relationships of a bundle, from which the right answers are computed.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::Fallible;
use crate::bundle::{aliases, external_ids, is_valid};

/// What the service makes nodes of, as far as ATT&CK for ICS has it.
const MAIN: [&str; 6] = [
    "attack-pattern",
    "campaign",
    "course-of-action",
    "intrusion-set",
    "malware",
    "tool",
];

/// Properties that relate an object to those that they name, with the names of the relationships.
const REFERENCES: [(&str, &str); 5] = [
    ("object_refs", "refers-to"),
    ("sighting_of_ref", "sighting-of"),
    ("where_sighted_refs", "sighted-by"),
    ("resolves_to_refs", "resolves-to"),
    ("x_mitre_analytic_refs", "has-analytic"),
];

pub struct Object {
    pub kind: String,
    pub name: String,
    /// The ATT&CK id, such as G0034.
    pub id: String,
    pub aliases: Vec<String>,
    times: BTreeMap<&'static str, String>,
}

impl Object {
    /// A time by its field, in RFC 3339.
    pub fn time(&self, field: &str) -> Option<&str> {
        self.times.get(field).map(String::as_str)
    }
}

struct Edge {
    relation: String,
    source: String,
    target: String,
}

/// The valid part of a bundle: neither the objects nor the relationships are revoked or deprecated.
pub struct Graph {
    /// By STIX id.
    pub objects: BTreeMap<String, Object>,
    edges: Vec<Edge>,
}

impl Graph {
    pub fn of(bundle: &Value) -> Fallible<Self> {
        let is_main = |object: &Value| object["type"].as_str().is_some_and(|kind| MAIN.contains(&kind));
        Self::of_objects(bundle, is_main, |_| Vec::new())
    }

    /// The graph with the objects that give context, to which references lead as well as relationships.
    pub fn with_context(bundle: &Value) -> Fallible<Self> {
        let all = bundle["objects"].as_array().ok_or("a bundle has objects")?;
        let tactics: BTreeMap<&str, &str> = all
            .iter()
            .filter(|object| is_valid(object))
            .filter_map(|object| Some((object["x_mitre_shortname"].as_str()?, object["id"].as_str()?)))
            .collect();
        let is_named = |object: &Value| object["type"] != "relationship";
        Self::of_objects(bundle, is_named, |object| references(object, &tactics))
    }

    fn of_objects(
        bundle: &Value,
        is_kept: impl Fn(&Value) -> bool,
        references: impl Fn(&Value) -> Vec<Edge>,
    ) -> Fallible<Self> {
        let all = bundle["objects"].as_array().ok_or("a bundle has objects")?;
        let valid = || all.iter().filter(|object| is_valid(object));
        let kept = valid().filter(|object| is_kept(object));
        let objects: BTreeMap<String, Object> = kept.filter_map(object).collect();
        let edges = valid().filter_map(edge).chain(valid().flat_map(references));
        let edges = edges
            .filter(|edge| objects.contains_key(&edge.source) && objects.contains_key(&edge.target))
            .collect();
        Ok(Self { objects, edges })
    }

    /// The STIX ids at the other ends of the relationships of `id`, those that leave it or those that arrive.
    pub fn neighbours<'a>(
        &'a self,
        id: &'a str,
        relation: &'a str,
        leaving: bool,
    ) -> impl Iterator<Item = &'a str> {
        self.edges.iter().filter_map(move |edge| {
            let (near, far) = match leaving {
                true => (&edge.source, &edge.target),
                false => (&edge.target, &edge.source),
            };
            (relation.split('|').any(|relation| edge.relation == relation) && near == id)
                .then_some(far.as_str())
        })
    }
}

fn object(object: &Value) -> Option<(String, Object)> {
    let is_sector = object["identity_class"] == "class";
    let kind = if is_sector {
        "sector"
    } else {
        object["type"].as_str()?
    };
    let name = ["name", "value", "abstract", "id"]
        .iter()
        .find_map(|key| object[*key].as_str())?;
    let times = ["created", "modified", "first_seen", "last_seen", "published"]
        .into_iter()
        .filter_map(|field| Some((field, object[field].as_str()?.to_owned())))
        .collect();
    let found = Object {
        kind: kind.to_owned(),
        name: name.to_owned(),
        id: external_ids(object)
            .into_iter()
            .next()
            .unwrap_or_else(|| name.to_owned()),
        aliases: aliases(object, name),
        times,
    };
    Some((object["id"].as_str()?.to_owned(), found))
}

/// What an object refers to, and the tactics whose short names it has.
fn references(object: &Value, tactics: &BTreeMap<&str, &str>) -> Vec<Edge> {
    let Some(source) = object["id"].as_str() else {
        return Vec::new();
    };
    let edge = |relation: &str, target: &str| Edge {
        relation: relation.to_owned(),
        source: source.to_owned(),
        target: target.to_owned(),
    };
    let mut edges = Vec::new();
    for (property, relation) in REFERENCES {
        let value = &object[property];
        let many = value.as_array().into_iter().flatten().filter_map(Value::as_str);
        edges.extend(many.chain(value.as_str()).map(|target| edge(relation, target)));
    }
    let phases = object["kill_chain_phases"].as_array().into_iter().flatten();
    let served = phases.filter_map(|phase| tactics.get(phase["phase_name"].as_str()?));
    edges.extend(served.map(|tactic| edge("kill-chain-phase", tactic)));
    edges
}

fn edge(object: &Value) -> Option<Edge> {
    (object["type"] == "relationship").then_some(())?;
    let text = |field: &str| object[field].as_str().map(str::to_owned);
    Some(Edge {
        relation: text("relationship_type")?,
        source: text("source_ref")?,
        target: text("target_ref")?,
    })
}
