//! What a marking-definition says about TLP.
//!
//! Rule: every sign of a TLP level in a definition counts, wherever a producer writes it and in any spelling, and the
//! strictest sign wins. Producers write it as a definition of type `tlp`, as the type itself, as an extension, in the
//! name, in a label, in a statement, or in properties of their own such as `x_opencti_definition`. A definition that speaks of TLP without a level that
//! can be read is [`DefinitionLevel::Unreadable`], which is not the same as a statement without TLP.

use serde_json::{Map, Value, json};

use super::built_in::level_of_id;
use crate::domain::extraction::tlp_hint;
use crate::domain::stix::object::{format_timestamp, text, texts, timestamp};
use crate::domain::tlp::{Tlp, level_of_tag, mentions_tlp};

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
const OTHER_PROPERTIES: [&str; 14] = [
    "type",
    "id",
    "spec_version",
    "created",
    "modified",
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
pub fn restate(id: &str, original: &Map<String, Value>, level: Tlp) -> Map<String, Value> {
    let created = text(original, "created").and_then(timestamp).unwrap_or_default();
    let name = text(original, "name").filter(|name| !name.trim().is_empty());
    let definition = json!({
        "type": "marking-definition", "spec_version": "2.1", "id": id,
        "created": format_timestamp(created), "name": name.unwrap_or(level.as_str()),
        "definition_type": "statement", "definition": {"statement": level.as_str()},
    });
    match definition {
        Value::Object(definition) => definition,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    }
}

/// The level that a text about anything mentions.
fn level_in(written: &str) -> Option<Tlp> {
    let spelled = Tlp::from_spelling(written).ok();
    tlp_hint(written).max(spelled.filter(|_| mentions_tlp(written)))
}

/// What an object has where levels are expected.
#[derive(Default)]
struct Values {
    readable: bool,
    unreadable: bool,
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
        let mut found = Values::default();
        for (key, value) in object {
            if OTHER_PROPERTIES.contains(&key.as_str()) {
                continue;
            }
            if key == "labels" {
                self.labels(object);
                continue;
            }
            if key.ends_with("definition_type") {
                value.as_str().into_iter().for_each(|kind| self.words(kind));
                continue;
            }
            // `definition` and `definition_type`, `x_opencti_definition` and `x_opencti_definition_type`.
            let kind = text(object, &format!("{key}_type"));
            // A type that states the level itself leaves none for the value.
            let of_type = kind.is_some_and(|kind| mentions_tlp(kind) && level_in(kind).is_none());
            let is_level = key.eq_ignore_ascii_case("tlp");
            let mut values = Values::default();
            self.value(value, about_tlp || of_type || mentions_tlp(key), &mut values);
            self.unreadable |= is_level && values.unreadable;
            found.readable |= values.readable;
            found.unreadable |= values.unreadable;
        }
        // Properties beside the one with the level, such as `tlp_version`, need not be levels.
        self.unreadable |= found.unreadable && !found.readable;
    }

    fn value(&mut self, value: &Value, about_tlp: bool, values: &mut Values) {
        match value {
            Value::String(written) if about_tlp => self.level(written, values),
            Value::String(written) => self.words(written),
            Value::Object(inner) => self.read(inner, about_tlp),
            Value::Array(items) => {
                let items = items.iter();
                items.for_each(|item| self.value(item, about_tlp, values));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => values.unreadable |= about_tlp,
        }
    }

    /// A value that should be a level.
    fn level(&mut self, written: &str, values: &mut Values) {
        self.claimed = true;
        match Tlp::from_spelling(written).ok().or_else(|| tlp_hint(written)) {
            Some(level) => {
                self.level = self.level.max(Some(level));
                values.readable = true;
            }
            None => values.unreadable = true,
        }
    }

    fn labels(&mut self, object: &Map<String, Value>) {
        for stated in texts(object, "labels").filter_map(level_of_tag) {
            self.claimed = true;
            match stated {
                Ok(level) => self.level = self.level.max(Some(level)),
                Err(_) => self.unreadable = true,
            }
        }
    }

    /// A text that may mention a level.
    fn words(&mut self, written: &str) {
        self.level = self.level.max(level_in(written));
        self.claimed |= mentions_tlp(written);
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
