//! The objects and relationships of a bundle, from which the right answers are computed.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::Fallible;
use crate::bundle::{aliases, external_ids, is_valid};

/// What the service makes nodes of, as far as ATT&CK for ICS has it.
const KINDS: [&str; 6] = [
    "attack-pattern",
    "campaign",
    "course-of-action",
    "intrusion-set",
    "malware",
    "tool",
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
        let all = bundle["objects"].as_array().ok_or("a bundle has objects")?;
        let valid = || all.iter().filter(|object| is_valid(object));
        let objects: BTreeMap<String, Object> = valid().filter_map(object).collect();
        let edges = valid()
            .filter_map(edge)
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
            (edge.relation == relation && near == id).then_some(far.as_str())
        })
    }
}

fn object(object: &Value) -> Option<(String, Object)> {
    let kind = object["type"].as_str().filter(|kind| KINDS.contains(kind))?;
    let name = object["name"].as_str()?;
    let times = ["created", "modified", "first_seen", "last_seen"]
        .into_iter()
        .filter_map(|field| Some((field, object[field].as_str()?.to_owned())))
        .collect();
    let found = Object {
        kind: kind.to_owned(),
        name: name.to_owned(),
        id: external_ids(object).into_iter().next()?,
        aliases: aliases(object, name),
        times,
    };
    Some((object["id"].as_str()?.to_owned(), found))
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
