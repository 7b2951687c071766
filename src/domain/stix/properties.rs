//! Maps a STIX object to the `properties` of its node. Node types and names: `domain/kinds.rs`.

use serde_json::{Map, Value};

use super::object::{text, texts};
use super::titles::{digests, observed_value};
use crate::domain::extraction::{cve_id, refang};
use crate::domain::graph::alias_sources::{aliases_of, note_sources, sources_of};
use crate::domain::kinds::is_context_node;

/// Properties copied from the object under the same name.
const COPIED: &[&str] = &[
    "created",
    "modified",
    "revoked",
    "labels",
    "pattern",
    "pattern_type",
    "valid_from",
    "valid_until",
    "indicator_types",
    "malware_types",
    "threat_actor_types",
    "tool_types",
    "is_family",
    "first_seen",
    "last_seen",
    "primary_motivation",
    "goals",
    "sophistication",
    "x_mitre_domains",
    "x_mitre_platforms",
    "x_mitre_deprecated",
    "x_mitre_is_subtechnique",
];

/// What a malware instance without a name is called.
pub(in crate::domain) fn nameless_malware(object: &Map<String, Value>) -> String {
    let aliases = ["aliases", "x_mitre_aliases"];
    let alias = aliases.iter().find_map(|key| texts(object, key).next());
    let sample = texts(object, "sample_refs").next();
    let id = text(object, "id").unwrap_or_default();
    match (alias, sample) {
        (Some(alias), _) => alias.to_owned(),
        (None, Some(sample)) => format!("malware of {sample}"),
        (None, None) => format!("unnamed {id}"),
    }
}

/// The first source that an object cites.
pub fn cited_source(object: &Map<String, Value>) -> String {
    let first = references(object).next();
    first
        .and_then(|reference| text(reference, "source_name"))
        .unwrap_or("stix")
        .to_owned()
}

/// The property of a context object that holds what else it says, under the names of the standard.
pub const FIELDS: &str = "fields";
/// Longest text among them, in bytes: a payload is no reading matter.
const MAX_FIELD: usize = 4096;
/// What a node shows elsewhere.
const SHOWN_ELSEWHERE: [&str; 10] = [
    "type",
    "id",
    "spec_version",
    "name",
    "description",
    "content",
    "external_references",
    "extensions",
    "object_marking_refs",
    "granular_markings",
];

/// The node properties of an object: its id, aliases, external ids and the usual fields; of a context object also its value
/// and all other fields.
pub fn of_node(object: &Map<String, Value>) -> Map<String, Value> {
    let mut shown = usual(object);
    if !text(object, "id").is_some_and(is_context_node) {
        return shown;
    }
    if let Some((kind, value)) = observed_value(object) {
        shown.insert("value".into(), value.into());
        shown.insert("ioc_type".into(), kind.as_str().into());
    }
    add_missing(&mut shown, "aliases", digests(object).map(Value::from));
    // References are relationships, of which a reader sees those to what the reader may see.
    let is_reference = |key: &str| key.ends_with("_ref") || key.ends_with("_refs");
    let is_field = |(key, value): &(&String, &Value)| {
        !SHOWN_ELSEWHERE.contains(&key.as_str())
            && !is_reference(key)
            && value.as_str().is_none_or(|text| text.len() <= MAX_FIELD)
    };
    let fields: Map<String, Value> = object
        .iter()
        .filter(is_field)
        .filter(|(key, _)| !shown.contains_key(*key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if !fields.is_empty() {
        shown.insert(FIELDS.into(), Value::Object(fields));
    }
    shown
}

fn usual(object: &Map<String, Value>) -> Map<String, Value> {
    let mut shown = Map::new();
    for (from, to) in [("id", "stix_id"), ("type", "stix_type")] {
        if let Some(value) = object.get(from) {
            shown.insert(to.into(), value.clone());
        }
    }
    let name = text(object, "name");
    let mut aliases: Vec<&str> = Vec::new();
    for key in ["aliases", "x_mitre_aliases"] {
        for alias in texts(object, key) {
            if Some(alias) != name && !aliases.contains(&alias) {
                aliases.push(alias);
            }
        }
    }
    if !aliases.is_empty() {
        shown.insert("aliases".into(), aliases.into());
    }
    let ids: Vec<Value> = references(object)
        .filter_map(|r| r.get("external_id"))
        .cloned()
        .collect();
    if !ids.is_empty() {
        shown.insert("external_ids".into(), ids.into());
    }
    let phases = object
        .get("kill_chain_phases")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let phases: Vec<Value> = phases
        .filter_map(|phase| phase.get("phase_name"))
        .cloned()
        .collect();
    if !phases.is_empty() {
        shown.insert("kill_chain_phases".into(), phases.into());
    }
    for key in COPIED {
        if let Some(value) = object.get(*key) {
            shown.insert((*key).into(), value.clone());
        }
    }
    shown
}

/// Keeps what other sources added to a node when a newer version of its STIX object arrives: aliases, and properties
/// that are not the object's own.
pub fn carry_over(old: &Map<String, Value>, new: &mut Map<String, Value>) {
    let own = [
        "stix_id",
        "stix_type",
        "external_ids",
        "kill_chain_phases",
        FIELDS,
    ];
    for (key, value) in old {
        if key == "aliases" {
            let aliases = new.entry("aliases").or_insert_with(|| Value::Array(Vec::new()));
            if let (Value::Array(aliases), Value::Array(earlier)) = (aliases, value) {
                let added: Vec<Value> = earlier
                    .iter()
                    .filter(|alias| !aliases.contains(alias))
                    .cloned()
                    .collect();
                aliases.extend(added);
            }
        } else if !own.contains(&key.as_str()) && !COPIED.contains(&key.as_str()) {
            new.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
}

/// Keeps what a node of another source said when it turns out to be an object of this name: its name and aliases, its ids,
/// and properties that are not the object's own. Both have a name and a source.
pub fn take_over(
    old: &Map<String, Value>,
    ((old_name, old_source), (name, source)): (&(String, String), &(String, String)),
    new: &mut Map<String, Value>,
) {
    let is_other = !old_name.eq_ignore_ascii_case(name);
    let names = is_other.then_some(old_name.as_str()).into_iter();
    for alias in names.chain(aliases_of(old)) {
        note_sources(new, source, alias, sources_of(old, old_source, alias));
    }
    carry_over(old, new);
    let renamed = is_other.then(|| Value::from(old_name.as_str()));
    add_missing(new, "aliases", renamed);
    let ids = old.get("external_ids").and_then(Value::as_array);
    add_missing(new, "external_ids", ids.into_iter().flatten().cloned());
}

fn add_missing(properties: &mut Map<String, Value>, key: &str, more: impl IntoIterator<Item = Value>) {
    for item in more {
        let list = properties.entry(key).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(items) = list
            && !items.contains(&item)
        {
            items.push(item);
        }
    }
}

fn references(object: &Map<String, Value>) -> impl Iterator<Item = &Map<String, Value>> {
    let list = object.get("external_references").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_object)
}

/// Whether an object is about one CVE: its name is the id, or it refers to it.
pub(in crate::domain) fn carries_cve(object: &Map<String, Value>) -> bool {
    let referenced = references(object)
        .filter_map(|r| text(r, "external_id"))
        .any(is_cve);
    referenced || text(object, "name").is_some_and(is_cve)
}

/// Whether the text is a CVE id, in any of its spellings.
pub fn is_cve(text: &str) -> bool {
    cve_id(&refang(text.trim())).is_some()
}
