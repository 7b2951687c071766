//! Indicators for searchable values, and notes for all others.

use serde_json::{Map, Value, json};

use super::fields::{name_or, put, time_of, time_text};
use super::{Origin, base, named_object, property};
use crate::domain::extraction::EntityKind;
use crate::domain::misp::detection;
use crate::domain::naming::indicator_of;
use crate::domain::node::KgNode;
use crate::domain::stix::pattern::is_well_formed;

/// Languages in which the rule text is the pattern (STIX 2.1, pattern-type-ov).
const RULES: [&str; 6] = ["yara", "sigma", "snort", "suricata", "pcre", "spl"];
/// Maximum length of a value whose kind is guessed.
const MAX_GUESSED: usize = 4096;

/// The indicator of an ioc node, or a note with the node's content.
pub(super) fn of(facts: &Origin<'_>) -> Map<String, Value> {
    match pattern_of(facts.node) {
        Some((pattern, language)) => indicator(facts, &pattern, &language),
        None => note(facts),
    }
}

fn indicator(facts: &Origin<'_>, pattern: &str, language: &str) -> Map<String, Value> {
    let node = facts.node;
    let mut object = named_object("indicator", facts, Vec::new());
    object.insert("pattern".to_owned(), pattern.into());
    object.insert("pattern_type".to_owned(), language.into());
    if language == "stix" {
        object.insert("pattern_version".to_owned(), "2.1".into());
    }
    let created = object.get("created").cloned().unwrap_or_default();
    let first_seen = time_of(&node.properties, "first_seen").and_then(time_text);
    object.insert("valid_from".to_owned(), first_seen.map_or(created, Value::from));
    if node.properties.get("to_ids").and_then(Value::as_bool) == Some(true) {
        object.insert("indicator_types".to_owned(), json!(["malicious-activity"]));
    }
    object
}

fn note(facts: &Origin<'_>) -> Map<String, Value> {
    let node = facts.node;
    let mut object = base("note", facts, Vec::new());
    let name = name_or(&node.name, "unnamed ioc");
    let kind = name_or(property(node, "ioc_type"), "ioc");
    let value = name_or(property(node, "value"), &name);
    let mut content = format!("{kind}: {value}");
    let description = name_or(&node.description, "");
    if !description.is_empty() {
        content.push_str("\n\n");
        content.push_str(&description);
    }
    put(&mut object, "abstract", &name);
    object.insert("content".to_owned(), content.into());
    object.insert("object_refs".to_owned(), json!([facts.identity_id]));
    object
}

/// The pattern of a node and its language: the node's own, the one of its value and kind, or, if no kind is stated,
/// the one of the guessed kind.
fn pattern_of(node: &KgNode) -> Option<(String, String)> {
    let value = Some(property(node, "value"))
        .filter(|value| !value.trim().is_empty())
        .unwrap_or(&node.name);
    let language = property(node, "pattern_type");
    let pattern = property(node, "pattern");
    if RULES.contains(&language) {
        let rule = if pattern.trim().is_empty() { value } else { pattern };
        return (!rule.trim().is_empty()).then(|| (rule.replace('\0', ""), language.to_owned()));
    }
    if matches!(language, "" | "stix") && is_well_formed(pattern) {
        return Some((pattern.to_owned(), "stix".to_owned()));
    }
    let kinds = ["ioc_type", "kind", "misp_type"].map(|key| property(node, key));
    let said = kinds.into_iter().find(|kind| !kind.is_empty());
    let found = match said {
        Some(kind) => detection(kind, value),
        None => detection(guess_kind(value)?, value),
    };
    let (pattern, language) = found?;
    let fits = language != "stix" || is_well_formed(&pattern);
    (fits && !pattern.trim().is_empty()).then(|| (pattern, language.to_owned()))
}

/// The kind of a value, if the extraction rules recognise it as a whole.
fn guess_kind(value: &str) -> Option<&'static str> {
    if value.len() > MAX_GUESSED {
        return None;
    }
    indicator_of(value).kind.map(EntityKind::as_str)
}
