//! What a marking-definition says about TLP.
//!
//! Rule: every sign of a TLP level in a definition counts, wherever a producer writes it and in any spelling, and the
//! strictest sign wins. Producers write it as a definition of type `tlp`, as an extension, in the name, in a statement,
//! or in properties of their own such as `x_opencti_definition`. A definition that speaks of TLP without a level that
//! can be read is [`DefinitionLevel::Unreadable`], which is not the same as a statement without TLP.

use serde_json::{Map, Value, json};

use super::built_in::level_of_id;
use crate::domain::extraction::tlp_hint;
use crate::domain::stix::object::{format_timestamp, text, timestamp};
use crate::domain::tlp::{Tlp, mentions_tlp};

/// What a marking-definition says about TLP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefinitionLevel {
    /// Nothing: a copyright statement, a PAP level and the like.
    Statement,
    Level(Tlp),
    /// It speaks of TLP, but the level can't be read.
    Unreadable,
}

/// Properties that say nothing about the level: names of other objects, times, and the definition's own marking.
const OTHER_PROPERTIES: [&str; 15] = [
    "type",
    "id",
    "spec_version",
    "created",
    "modified",
    "labels",
    "lang",
    "confidence",
    "revoked",
    "object_marking_refs",
    "granular_markings",
    "external_references",
    "created_by_ref",
    "x_mitre_tlp",
    "extension_type",
];

/// Reads a marking-definition.
pub fn level_of(definition: &Value) -> DefinitionLevel {
    let Some(definition) = definition.as_object() else {
        return DefinitionLevel::Statement;
    };
    let mut signs = Signs::default();
    if let Some(level) = text(definition, "id").and_then(level_of_id) {
        signs.level = Some(level);
        signs.fixed = true;
    }
    signs.read(definition, false);
    signs.result()
}

/// Whether a definition has a type that the standard names, or none (STIX 2.1, section 7.2.1). Tools that read strictly refuse
/// a bundle with another one, such as OpenCTI's `TLP`.
pub fn has_standard_type(definition: &Map<String, Value>) -> bool {
    let kind = definition.get("definition_type");
    kind.is_none_or(|kind| kind == "tlp" || kind == "statement")
}

/// A valid definition in place of one that is not valid STIX but states a level, so that the objects which carry it
/// can leave with it.
pub fn restated(id: &str, original: &Map<String, Value>, level: Tlp) -> Map<String, Value> {
    let created = text(original, "created").and_then(timestamp).unwrap_or_default();
    let name = text(original, "name").filter(|name| !name.trim().is_empty());
    let restated = json!({
        "type": "marking-definition", "spec_version": "2.1", "id": id,
        "created": format_timestamp(created), "name": name.unwrap_or(level.as_str()),
        "definition_type": "statement", "definition": {"statement": level.as_str()},
    });
    match restated {
        Value::Object(restated) => restated,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    }
}

/// The signs of a level found so far.
#[derive(Default)]
struct Signs {
    level: Option<Tlp>,
    /// Whether the id alone states the level.
    fixed: bool,
    /// Whether anything speaks of TLP.
    claimed: bool,
    /// Whether a value that must be a level is none.
    unreadable: bool,
}

impl Signs {
    /// Reads the properties of an object; `about_tlp` when it stands where a level is expected.
    fn read(&mut self, object: &Map<String, Value>, about_tlp: bool) {
        for (key, value) in object {
            if OTHER_PROPERTIES.contains(&key.as_str()) {
                continue;
            }
            if key.ends_with("definition_type") {
                self.claimed |= value.as_str().is_some_and(mentions_tlp);
                continue;
            }
            // `definition` and `definition_type`, `x_opencti_definition` and `x_opencti_definition_type`.
            let of_type = text(object, &format!("{key}_type")).is_some_and(mentions_tlp);
            self.value(value, about_tlp || of_type || mentions_tlp(key));
        }
    }

    fn value(&mut self, value: &Value, about_tlp: bool) {
        match value {
            Value::String(written) if about_tlp => self.level(written),
            Value::String(written) => self.words(written),
            Value::Object(inner) => self.read(inner, about_tlp),
            Value::Array(items) => items.iter().for_each(|item| self.value(item, about_tlp)),
            Value::Null | Value::Bool(_) | Value::Number(_) => self.unreadable |= about_tlp,
        }
    }

    /// A value that should be a level.
    fn level(&mut self, written: &str) {
        self.claimed = true;
        match Tlp::from_spelling(written).or_else(|_| tlp_hint(written).ok_or(())) {
            Ok(level) => self.level = self.level.max(Some(level)),
            Err(()) => self.unreadable = true,
        }
    }

    /// A text that may mention a level.
    fn words(&mut self, written: &str) {
        let claimed = mentions_tlp(written);
        let spelled = Tlp::from_spelling(written).ok().filter(|_| claimed);
        self.level = self.level.max(tlp_hint(written)).max(spelled);
        self.claimed |= claimed;
    }

    fn result(self) -> DefinitionLevel {
        match self.level {
            // Half of it can't be read, so what it asks for may be stricter than the rest.
            Some(level) if self.unreadable && !self.fixed => DefinitionLevel::Level(level.max(Tlp::Amber)),
            Some(level) => DefinitionLevel::Level(level),
            None if self.claimed || self.unreadable => DefinitionLevel::Unreadable,
            None => DefinitionLevel::Statement,
        }
    }
}
