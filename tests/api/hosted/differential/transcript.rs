//! Answers without what is random: ids made here, times, and the order of what has equal rank.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value};

static ID: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").unwrap());
static TIME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"20[2-9][6-9]-\d\d-\d\dT[0-9:.]+(Z|\+00:00)").unwrap());
/// Lists whose order is that of random ids, or of rows of equal rank.
const UNORDERED: [&str; 12] = [
    // Those of one write.
    "changes",
    "duplicates",
    "merged",
    "corrections",
    "hits",
    "indicates",
    "objects",
    "relationships",
    "linked_evidence_ids",
    "evidence",
    "duplicate_candidates",
    "items",
];

/// One call with its answer.
pub fn entry(
    call: &str,
    status: u16,
    held_back: Option<&str>,
    body: &str,
    sent: &BTreeSet<String>,
) -> String {
    let body = match serde_json::from_str::<Value>(body) {
        Ok(body) => normalize(body, sent).to_string(),
        Err(_) => body.to_owned(),
    };
    let held_back = held_back.map_or_else(String::new, |count| format!(" held back {count}"));
    format!("{} -> {status}{held_back} {body}", mask(call, sent))
}

/// The value without random ids and times. Ids that were sent stay.
fn normalize(value: Value, sent: &BTreeSet<String>) -> Value {
    match value {
        Value::String(text) => Value::String(mask(&text, sent)),
        Value::Array(items) => items.into_iter().map(|item| normalize(item, sent)).collect(),
        Value::Object(fields) => Value::Object(
            pair_in_order(fields)
                .into_iter()
                .map(|(key, value)| {
                    let mut value = normalize(value, sent);
                    if key == "next" || key == "next_cursor" || key == "cursor" {
                        // A sealed position.
                        value = Value::from(value.is_null());
                    }
                    if let Value::Array(items) = &mut value {
                        sort(&key, items);
                    }
                    (mask(&key, sent), value)
                })
                .collect(),
        ),
        other => other,
    }
}

/// Of a pair of nodes the one with the lower id comes first.
fn pair_in_order(mut fields: Map<String, Value>) -> Map<String, Value> {
    if let (Some(first), Some(second)) = (fields.get("first").cloned(), fields.get("second").cloned()) {
        let said = |node: &Value| ["name", "node_type", "tlp"].map(|field| node[field].to_string());
        if said(&second) < said(&first) {
            fields.insert("first".into(), second);
            fields.insert("second".into(), first);
        }
    }
    fields
}

fn sort(key: &str, items: &mut [Value]) {
    if UNORDERED.contains(&key) {
        items.sort_by_key(Value::to_string);
    }
    if key == "results" {
        for tied in items.chunk_by_mut(|one, other| one["score"] == other["score"]) {
            tied.sort_by_key(Value::to_string);
        }
    }
}

fn mask(text: &str, sent: &BTreeSet<String>) -> String {
    let text = TIME.replace_all(text, "TIME");
    let keep = |found: &regex::Captures| {
        let id = &found[0];
        if sent.contains(id) {
            id.to_owned()
        } else {
            "ID".to_owned()
        }
    };
    ID.replace_all(&text, keep).into_owned()
}

/// The UUIDs in what was sent.
pub fn ids_in(text: &str) -> impl Iterator<Item = String> {
    ID.find_iter(text).map(|id| id.as_str().to_owned())
}
