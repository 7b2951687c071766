//! STIX objects for tests, and comparison of exported objects with the originals.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use crate::helpers::{Answer, Client, encode};

/// The types that become nodes.
pub const NODE_TYPES: [&str; 9] = [
    "threat-actor",
    "intrusion-set",
    "campaign",
    "malware",
    "tool",
    "vulnerability",
    "attack-pattern",
    "course-of-action",
    "indicator",
];
const TIME: &str = "2020-01-01T00:00:00.000Z";
/// Marking definitions that the service can export without having received them.
const BUILT_IN: [&str; 10] = [
    "613f2e26-407d-48c7-9eca-b8e91df99dc9",
    "34098fce-860f-48ae-8e50-ebd3cc5e41da",
    "f88d31f6-486f-44da-b317-01333bde0b82",
    "5e57c739-391a-4eb3-b6be-7d15ca92d5ed",
    "94868c89-83c2-464b-929b-a1a8aa3c8487",
    "bab4a63c-aed9-4cf5-a766-dfca5abac2bb",
    "55d920b0-5e8b-4f79-9ee9-91f868d9b421",
    "939a9414-2ddd-4d32-a0cd-375ea402b003",
    "e828b379-4e03-4974-9ac4-e53a884c97c1",
    "6c1f4e0a-5b0d-4c7e-9a55-3f6d1e8b7a42",
];

/// A new id for a type.
pub fn id(kind: &str) -> String {
    format!("{kind}--{}", uuid::Uuid::new_v4())
}

/// A valid object of a node type.
pub fn object(kind: &str, name: &str) -> Value {
    let mut object = json!({"type": kind, "id": id(kind), "spec_version": "2.1",
        "created": TIME, "modified": TIME, "name": name});
    match kind {
        "malware" => object["is_family"] = json!(false),
        "indicator" => merge(
            &mut object,
            &json!({"pattern": "[ipv4-addr:value = '198.51.100.3']", "pattern_type": "stix", "valid_from": TIME}),
        ),
        _ => {}
    }
    object
}

/// `object` with the properties of `changes` set.
pub fn with(mut object: Value, changes: Value) -> Value {
    merge(&mut object, &changes);
    object
}

/// `object` without one property.
pub fn without(mut object: Value, key: &str) -> Value {
    object.as_object_mut().unwrap().remove(key);
    object
}

/// A version of `object` that was modified in this year.
pub fn version(object: &Value, year: u32, changes: Value) -> Value {
    let time = format!("{year}-01-01T00:00:00.000Z");
    with(with(object.clone(), json!({"modified": time})), changes)
}

/// The number of evidence records linked to a node.
pub fn evidence(node: &Value) -> usize {
    node["linked_evidence_ids"].as_array().unwrap().len()
}

fn merge(object: &mut Value, changes: &Value) {
    for (key, value) in changes.as_object().unwrap() {
        object[key] = value.clone();
    }
}

/// A relationship between two objects.
pub fn relationship(source: &Value, kind: &str, target: &Value) -> Value {
    json!({"type": "relationship", "id": id("relationship"), "spec_version": "2.1", "created": TIME,
        "modified": TIME, "relationship_type": kind, "source_ref": source["id"], "target_ref": target["id"]})
}

/// A marking-definition with a statement.
pub fn statement(text: &str) -> Value {
    json!({"type": "marking-definition", "id": id("marking-definition"), "spec_version": "2.1",
        "created": TIME, "definition_type": "statement", "definition": {"statement": text}})
}

/// The objects of a document: a bundle, a list, or a single object.
pub fn objects_of(document: &Value) -> Vec<Value> {
    let listed = document
        .as_array()
        .or_else(|| document.get("objects")?.as_array());
    listed.cloned().unwrap_or_else(|| vec![document.clone()])
}

pub fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object[key].as_str().unwrap_or_default()
}

pub fn is_node(object: &Value) -> bool {
    NODE_TYPES.contains(&text(object, "type"))
}

/// Objects by id.
pub fn by_id(objects: &[Value]) -> HashMap<String, Value> {
    objects
        .iter()
        .map(|object| (text(object, "id").to_owned(), object.clone()))
        .collect()
}

/// Differences between an exported object and its original, apart from an added marking or confidence.
pub fn differences(original: &Value, exported: &Value) -> Vec<String> {
    let empty = Map::new();
    let (before, after) = (
        original.as_object().unwrap_or(&empty),
        exported.as_object().unwrap_or(&empty),
    );
    let keys: HashSet<&String> = before.keys().chain(after.keys()).collect();
    let differs = |key: &&String| match (before.get(*key), after.get(*key)) {
        (None, Some(_)) if *key == "confidence" => false,
        (old, Some(new)) if *key == "object_marking_refs" => {
            let old = old.and_then(Value::as_array).cloned().unwrap_or_default();
            let new = new.as_array().cloned().unwrap_or_default();
            !new.starts_with(&old)
        }
        (old, new) => old != new,
    };
    let mut found: Vec<String> = keys
        .into_iter()
        .filter(differs)
        .map(|key| {
            format!(
                "{} {key}: {:?} became {:?}",
                text(original, "id"),
                before.get(key),
                after.get(key)
            )
        })
        .collect();
    found.sort();
    found
}

/// Collects every id that an object refers to, at any depth.
pub fn references(value: &Value, into: &mut Vec<String>) {
    for item in value.as_array().into_iter().flatten() {
        references(item, into);
    }
    for (key, value) in value.as_object().into_iter().flatten() {
        if key.ends_with("_ref") {
            into.extend(value.as_str().map(str::to_owned));
        } else if key.ends_with("_refs") {
            let ids = value.as_array().into_iter().flatten().filter_map(Value::as_str);
            into.extend(ids.map(str::to_owned));
        } else {
            references(value, into);
        }
    }
}

/// Fails unless every object of the bundle equals its original, no reference dangles, and every object
/// carries a marking. Returns the exported objects by id.
#[track_caller]
pub fn assert_faithful(bundle: &Value, originals: &[Value]) -> HashMap<String, Value> {
    let originals = by_id(originals);
    let exported = by_id(bundle["objects"].as_array().unwrap());
    assert_eq!(bundle["type"], "bundle");
    assert_eq!(bundle["spec_version"], "2.1");
    assert_eq!(
        exported.len(),
        bundle["objects"].as_array().unwrap().len(),
        "an id is there twice"
    );
    let mut wrong = Vec::new();
    for (id, object) in &exported {
        match originals.get(id) {
            Some(original) => wrong.extend(differences(original, object)),
            None if BUILT_IN.iter().any(|uuid| id.ends_with(uuid)) => {}
            None => wrong.push(format!("{id} was never sent")),
        }
        let mut refs = Vec::new();
        references(object, &mut refs);
        wrong.extend(
            refs.into_iter()
                .filter(|to| !exported.contains_key(to))
                .map(|to| format!("{id} refers to {to}, which is not there")),
        );
        if text(object, "type") != "marking-definition" && object["object_marking_refs"].is_null() {
            wrong.push(format!("{id} carries no marking"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(20)].join("\n")
    );
    exported
}

impl Client {
    /// Searches with extra parameters and returns the whole response body.
    pub async fn search_with(&self, query: &str, more: &[(&str, &str)]) -> Value {
        let mut pairs = vec![("q", query), ("limit", "100"), ("min_score", "0")];
        pairs.extend_from_slice(more);
        self.get(&format!("/api/recall/search?{}", encode(&pairs)))
            .await
            .expect(200)
            .await
    }

    /// The node with this STIX id among the first hundred results for `query`, including rejected ones.
    pub async fn node(&self, query: &str, stix_id: &str) -> Option<Value> {
        let found = self.search_with(query, &[("include_rejected", "true")]).await;
        let results = found["results"].as_array().unwrap();
        results
            .iter()
            .find(|node| node["properties"]["stix_id"] == stix_id)
            .cloned()
    }

    /// Searches, exports and compares; returns the exported objects by id.
    pub async fn export_of(&self, query: &str, originals: &[Value]) -> HashMap<String, Value> {
        let found = self.search_with(query, &[("include_rejected", "true")]).await;
        let bundle = self.export(found["recall_id"].as_str().unwrap()).await;
        assert_faithful(&bundle, originals)
    }
}

/// The error text of a response, after checking its status and that the body is `{error, details?}`.
pub async fn refusal(answer: Answer, status: u16, what: &str) -> String {
    let got = answer.0.status().as_u16();
    let kind = answer.0.headers().get("content-type").cloned();
    let body = answer.0.text().await.unwrap();
    assert_eq!(got, status, "{what}: {body}");
    assert!(
        kind.is_some_and(|kind| kind.to_str().unwrap().starts_with("application/json")),
        "{what}"
    );
    let value: Value =
        serde_json::from_str(&body).unwrap_or_else(|error| panic!("{what}: {error} in {body}"));
    let map = value.as_object().unwrap();
    assert!(
        map.keys().all(|key| key == "error" || key == "details"),
        "{what}: {body}"
    );
    value["error"]
        .as_str()
        .unwrap_or_else(|| panic!("{what}: {body}"))
        .to_owned()
}

/// The names of the results, in order.
pub fn names(answer: &Value) -> Vec<&str> {
    let results = answer["results"].as_array().unwrap();
    results.iter().map(|node| text(node, "name")).collect()
}
