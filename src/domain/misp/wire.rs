//! MISP event types as the core format describes them (draft-dulaunoy-misp-core-format).
//!
//! Attributes and objects are read one by one from the event's JSON, so that a broken one is skipped alone. Unknown
//! keys are ignored; every key may be missing.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::lenient;

/// The sharing scope (core format, section "distribution").
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Distribution {
    /// Not stated: inherited, as in MISP.
    #[default]
    Absent,
    Level(i64),
    /// Stated, but unreadable.
    Unreadable,
}

impl<'de> Deserialize<'de> for Distribution {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let level = |number: f64| match number.fract() == 0.0 && number.abs() < 1e9 {
            true => Distribution::Level(number as i64),
            false => Distribution::Unreadable,
        };
        Ok(match Value::deserialize(deserializer)? {
            Value::Null => Distribution::Absent,
            Value::Number(number) => number.as_f64().map_or(Distribution::Unreadable, level),
            Value::String(text) if text.trim().is_empty() => Distribution::Absent,
            Value::String(text) => text.trim().parse().map_or(Distribution::Unreadable, level),
            Value::Bool(_) | Value::Array(_) | Value::Object(_) => Distribution::Unreadable,
        })
    }
}

/// The event without its attributes and objects.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event {
    #[serde(deserialize_with = "lenient::text")]
    pub info: Option<String>,
    pub distribution: Distribution,
    #[serde(rename = "Orgc", deserialize_with = "lenient::object")]
    pub creator: Organisation,
    #[serde(rename = "Org", deserialize_with = "lenient::object")]
    pub owner: Organisation,
    #[serde(rename = "Tag", deserialize_with = "lenient::list")]
    pub tags: Vec<Tag>,
    #[serde(rename = "EventTag", deserialize_with = "lenient::list")]
    pub old_tags: Vec<Tag>,
    #[serde(rename = "Galaxy", deserialize_with = "lenient::list")]
    pub galaxies: Vec<Galaxy>,
    #[serde(rename = "EventReport", deserialize_with = "lenient::list")]
    pub reports: Vec<EventReport>,
}

/// A text of an analyst about the event, in Markdown.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct EventReport {
    #[serde(deserialize_with = "lenient::text")]
    pub name: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    pub content: Option<String>,
    pub distribution: Distribution,
    #[serde(deserialize_with = "lenient::flag")]
    pub deleted: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Organisation {
    #[serde(deserialize_with = "lenient::text")]
    pub name: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Attribute {
    #[serde(deserialize_with = "lenient::text")]
    pub uuid: Option<String>,
    #[serde(rename = "type", deserialize_with = "lenient::text")]
    pub kind: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    pub category: Option<String>,
    #[serde(deserialize_with = "lenient::flag")]
    pub to_ids: bool,
    #[serde(deserialize_with = "lenient::text")]
    pub comment: Option<String>,
    #[serde(deserialize_with = "lenient::flag")]
    pub deleted: bool,
    pub distribution: Distribution,
    #[serde(deserialize_with = "lenient::text")]
    pub object_relation: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    pub first_seen: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    pub last_seen: Option<String>,
    #[serde(rename = "Tag", deserialize_with = "lenient::list")]
    pub tags: Vec<Tag>,
    #[serde(rename = "AttributeTag", deserialize_with = "lenient::list")]
    pub old_tags: Vec<Tag>,
    #[serde(rename = "Galaxy", deserialize_with = "lenient::list")]
    pub galaxies: Vec<Galaxy>,
    #[serde(rename = "Sighting", deserialize_with = "lenient::list")]
    pub sightings: Vec<Sighting>,
}

/// A MISP object without its attributes.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Object {
    #[serde(deserialize_with = "lenient::text")]
    pub uuid: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    pub name: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    pub comment: Option<String>,
    #[serde(deserialize_with = "lenient::flag")]
    pub deleted: bool,
    #[serde(deserialize_with = "lenient::text")]
    pub timestamp: Option<String>,
    pub distribution: Distribution,
    #[serde(rename = "Tag", deserialize_with = "lenient::list")]
    pub tags: Vec<Tag>,
    #[serde(rename = "ObjectReference", deserialize_with = "lenient::list")]
    pub references: Vec<ObjectReference>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct ObjectReference {
    #[serde(deserialize_with = "lenient::text")]
    pub uuid: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    pub referenced_uuid: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    pub relationship_type: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    pub comment: Option<String>,
    #[serde(deserialize_with = "lenient::flag")]
    pub deleted: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Galaxy {
    #[serde(rename = "type", deserialize_with = "lenient::text")]
    pub kind: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    pub name: Option<String>,
    #[serde(rename = "GalaxyCluster", deserialize_with = "lenient::list")]
    pub clusters: Vec<Cluster>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Cluster {
    #[serde(deserialize_with = "lenient::text")]
    pub uuid: Option<String>,
    #[serde(rename = "type", deserialize_with = "lenient::text")]
    pub kind: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    pub value: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    pub tag_name: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    pub description: Option<String>,
    #[serde(deserialize_with = "lenient::flag")]
    pub deleted: bool,
    pub distribution: Distribution,
    #[serde(deserialize_with = "lenient::object")]
    pub meta: Map<String, Value>,
    /// The entries of `meta`, as exports of clusters list them.
    #[serde(rename = "GalaxyElement", deserialize_with = "lenient::list")]
    pub elements: Vec<ClusterElement>,
    /// The relationship of the event or attribute to the cluster; `false` if unstated.
    #[serde(deserialize_with = "lenient::text")]
    pub relationship_type: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct ClusterElement {
    #[serde(deserialize_with = "lenient::text")]
    pub key: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    pub value: Option<String>,
}

/// `type` is 0 for seen, 1 for false positive, 2 for expired.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Sighting {
    #[serde(rename = "type", deserialize_with = "lenient::text")]
    pub kind: Option<String>,
}

/// A tag: `{name}`, `{Tag: {name}}` as in old exports, or the bare name.
#[derive(Debug, Clone)]
pub(super) struct Tag(pub String);

impl<'de> Deserialize<'de> for Tag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let name = value
            .get("name")
            .or_else(|| value.pointer("/Tag/name"))
            .unwrap_or(&value);
        lenient::as_text(name)
            .map(Tag)
            .ok_or_else(|| serde::de::Error::custom("a tag has a name"))
    }
}
