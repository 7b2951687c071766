//! Node drafts from attribute values and galaxy clusters, and the merge of two drafts of one node.

use serde_json::{Map, Value, json};

use super::galaxy::ClusterNode;
use super::lenient::scrub_map;
use super::value::AttributeValue;
use super::wire::{Attribute, Object, Sighting};
use crate::domain::draft::{NodeDraft, identity};
use crate::domain::naming::{identity_of, indicator_identity};
use crate::domain::node::NodeType;
use crate::domain::tlp::Tlp;

/// Maximum length of a node name, in characters; `properties.value` holds the complete value.
const MAX_NAME: usize = 200;
/// Maximum size of a comment that is also kept as a property, in bytes. Longer ones are complete in the
/// description and the original.
const MAX_REPEATED: usize = 1000;
/// Maximum number of list items per node, so that a value repeated a thousand times does not inflate its node.
const MAX_ITEMS: usize = 1000;
/// Maximum number of original attributes kept per node; `attribute_count` counts all.
const MAX_ORIGINALS: usize = 64;
/// Attribute members that are not kept: shown elsewhere on the node, or the bytes of a sample.
const NOT_KEPT: [&str; 7] = [
    "Galaxy",
    "ShadowAttribute",
    "Sighting",
    "Event",
    "Object",
    "data",
    "value",
];

/// Event-level facts shown on all its nodes. No node has a lower marking than the event, so each may show them.
#[derive(Debug)]
pub(super) struct EventFacts {
    pub uuid: String,
    /// The title, if short enough to be copied to every node; the evidence record holds it in full.
    pub info: String,
    pub source: String,
    pub tlp: Tlp,
    pub labels: Vec<String>,
    /// When it was last changed, in seconds since 1970.
    pub timestamp: Option<i64>,
}

/// An attribute with its resolved context.
pub(super) struct Carrier<'a> {
    pub original: &'a Map<String, Value>,
    pub attribute: &'a Attribute,
    pub object: Option<&'a Object>,
    pub labels: Vec<String>,
    pub tlp: Tlp,
    pub confidence: f64,
}

impl Carrier<'_> {
    /// Drafts one node per value of the attribute.
    pub(super) fn drafts(
        &self,
        parts: Vec<AttributeValue>,
        detail: Option<(&'static str, Value)>,
        event: &EventFacts,
    ) -> Vec<NodeDraft> {
        let mut detail = detail;
        parts
            .into_iter()
            .map(|part| self.draft(part, detail.take(), event))
            .collect()
    }

    fn draft(
        &self,
        part: AttributeValue,
        detail: Option<(&'static str, Value)>,
        event: &EventFacts,
    ) -> NodeDraft {
        let (identity, merge_by_name) = if part.node_type == NodeType::Ioc {
            (identity_of_value(&part), false)
        } else {
            identity_of(part.node_type, &part.value)
        };
        let mut properties = self.properties(&part, event);
        if let Some((key, value)) = detail {
            properties.insert(key.to_owned(), json!([value]));
        }
        NodeDraft {
            identity,
            node_type: part.node_type,
            name: display_name(&part),
            description: self.description(event),
            source: event.source.clone(),
            source_type: "misp",
            tlp: self.tlp,
            confidence: self.confidence,
            properties: properties.into(),
            evidence: vec![0],
            merge_by_name,
        }
    }

    fn description(&self, event: &EventFacts) -> String {
        let told = (!event.info.is_empty()).then(|| format!("MISP event: {}", event.info));
        let comment = self.attribute.comment.clone();
        let said: Vec<String> = comment.into_iter().chain(told).collect();
        match said.is_empty() {
            true => self.attribute.category.clone().unwrap_or_default(),
            false => said.join("\n"),
        }
    }

    fn properties(&self, part: &AttributeValue, event: &EventFacts) -> Map<String, Value> {
        let attribute = self.attribute;
        let mut shown = Map::new();
        shown.insert("value".to_owned(), part.value.as_str().into());
        shown.insert("ioc_type".to_owned(), part.kind.as_ref().into());
        shown.insert("to_ids".to_owned(), attribute.to_ids.into());
        shown.insert("event_uuid".to_owned(), event.uuid.as_str().into());
        shown.insert("attribute_count".to_owned(), 1.into());
        let object = self.object;
        for (key, text) in [
            ("misp_type", attribute.kind.as_deref()),
            ("category", attribute.category.as_deref()),
            (
                "comment",
                attribute
                    .comment
                    .as_deref()
                    .filter(|text| text.len() <= MAX_REPEATED),
            ),
            ("first_seen", attribute.first_seen.as_deref()),
            ("last_seen", attribute.last_seen.as_deref()),
            ("pattern", part.pattern.as_deref()),
            ("pattern_type", part.pattern_type),
            ("object_name", object.and_then(|object| object.name.as_deref())),
            ("object_uuid", object.and_then(|object| object.uuid.as_deref())),
            ("object_relation", attribute.object_relation.as_deref()),
        ] {
            if let Some(text) = text {
                shown.insert(key.to_owned(), text.into());
            }
        }
        if let Some(uuid) = &attribute.uuid {
            shown.insert("attribute_uuids".to_owned(), json!([uuid]));
        }
        let tags = self.tags(event);
        if !tags.is_empty() {
            shown.insert("tags".to_owned(), tags.into());
        }
        if !attribute.sightings.is_empty() {
            shown.insert("sightings".to_owned(), sightings(&attribute.sightings));
        }
        shown.insert(
            "misp_attributes".to_owned(),
            json!([self.remaining_members(part, event)]),
        );
        shown
    }

    fn tags(&self, event: &EventFacts) -> Vec<String> {
        let mut tags = self.labels.clone();
        for label in &event.labels {
            if !tags.contains(label) {
                tags.push(label.clone());
            }
        }
        tags
    }

    /// The original attribute without the members that the node shows anyway.
    fn remaining_members(&self, part: &AttributeValue, event: &EventFacts) -> Map<String, Value> {
        let mut kept = scrub_map(self.original, &NOT_KEPT);
        if let Some(Value::String(value)) = self.original.get("value")
            && *value != part.value
        {
            kept.insert("value".to_owned(), super::lenient::without_nul(value).into());
        }
        if let Some(uuid) = self.object.and_then(|object| object.uuid.as_deref()) {
            kept.insert("object_uuid".to_owned(), uuid.into());
        }
        // What tells its versions apart, and of which event it is the last word.
        if self.attribute.uuid.is_some() {
            kept.insert("event_uuid".to_owned(), event.uuid.as_str().into());
            if let Some(timestamp) = event.timestamp {
                kept.insert("event_timestamp".to_owned(), timestamp.into());
            }
        }
        kept
    }
}

/// The identity of an indicator. Values that are canonical whenever they are well-formed are not normalised again:
/// that would take half the time of a large event.
fn identity_of_value(part: &AttributeValue) -> String {
    let settled = ["ipv4", "ipv6", "domain", "md5", "sha1", "sha256", "sha512"].contains(&part.kind.as_ref());
    if settled && part.pattern.is_some() {
        return identity([NodeType::Ioc.as_str(), &part.kind, &part.value]);
    }
    indicator_identity(&part.kind, &part.value)
}

fn sightings(list: &[Sighting]) -> Value {
    let count = |kind: &str| {
        list.iter()
            .filter(|sighting| sighting.kind.as_deref().unwrap_or("0") == kind)
            .count()
    };
    json!({"seen": count("0"), "false_positive": count("1"), "expired": count("2")})
}

/// The draft of a cluster, with the marking and confidence of its carrier.
pub(super) fn of_cluster(cluster: ClusterNode, event: &EventFacts, tlp: Tlp, confidence: f64) -> NodeDraft {
    let mut properties = cluster.properties;
    properties.insert("event_uuid".to_owned(), event.uuid.as_str().into());
    NodeDraft {
        identity: cluster.identity,
        node_type: cluster.node_type,
        name: shorten_name(&cluster.name),
        description: cluster.description,
        source: event.source.clone(),
        source_type: "misp",
        tlp,
        confidence,
        properties: properties.into(),
        evidence: vec![0],
        merge_by_name: cluster.merge_by_name,
    }
}

/// Merges `other` into `known`, whose parsed properties are `properties`. The marking only rises
/// and no value is lost.
pub(super) fn absorb(known: &mut NodeDraft, properties: &mut Map<String, Value>, other: NodeDraft) {
    known.tlp = known.tlp.max(other.tlp);
    known.confidence = known.confidence.max(other.confidence);
    if known.description.is_empty() {
        known.description = other.description;
    }
    for (key, value) in other.properties.map() {
        match properties.get_mut(&key) {
            Some(there) => join(&key, there, value),
            None => {
                properties.insert(key, value);
            }
        }
    }
}

fn join(key: &str, there: &mut Value, value: Value) {
    match (key, there, value) {
        // Each item comes from a different attribute, so there are no duplicates to look for.
        ("misp_attributes", Value::Array(there), Value::Array(items)) => add(there, items, MAX_ORIGINALS),
        ("attribute_uuids", Value::Array(there), Value::Array(items)) => add(there, items, MAX_ITEMS),
        (_, Value::Array(there), Value::Array(mut items)) => {
            items.retain(|item| !there.contains(item));
            add(there, items, MAX_ITEMS);
        }
        ("to_ids", Value::Bool(there), Value::Bool(value)) => *there |= value,
        ("attribute_count", there, value) => sum(there, &value),
        ("first_seen", Value::String(there), Value::String(value)) if value < *there => *there = value,
        ("last_seen", Value::String(there), Value::String(value)) if value > *there => *there = value,
        ("sightings", Value::Object(there), Value::Object(value)) => {
            for (kind, count) in there.iter_mut() {
                sum(count, value.get(kind).unwrap_or(&Value::Null));
            }
        }
        _ => {}
    }
}

fn add(there: &mut Vec<Value>, items: Vec<Value>, most: usize) {
    let room = most.saturating_sub(there.len());
    there.extend(items.into_iter().take(room));
}

fn sum(there: &mut Value, value: &Value) {
    let total = there.as_u64().unwrap_or_default() + value.as_u64().unwrap_or_default();
    *there = total.into();
}

/// The display name: the title of a rule, the beginning of a long text, the value itself otherwise.
fn display_name(part: &AttributeValue) -> String {
    let value = part.spelled.as_deref().unwrap_or(&part.value);
    let titled = match part.pattern_type {
        Some("yara") => value
            .lines()
            .find_map(|line| {
                line.trim_start()
                    .trim_start_matches("private ")
                    .strip_prefix("rule ")
            })
            .and_then(|rest| rest.split([' ', '{', ':']).find(|word| !word.is_empty())),
        Some("sigma") => value
            .lines()
            .find_map(|line| line.strip_prefix("title:"))
            .map(str::trim),
        Some("snort") => value
            .split_once("msg:\"")
            .and_then(|(_, rest)| rest.split('"').next()),
        Some(_) | None => None,
    };
    shorten_name(titled.filter(|title| !title.is_empty()).unwrap_or(value))
}

fn shorten_name(text: &str) -> String {
    let line = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or(text);
    if line == text && text.chars().nth(MAX_NAME).is_none() {
        return text.to_owned();
    }
    let start: String = line.chars().take(MAX_NAME).collect();
    format!("{start}…")
}
