//! Entities of the local API: a type and a canonical value, such as `tool:cobalt-strike`.
//!
//! The canonical form is used both when storing and when looking up, so every spelling of a value
//! (`Cobalt Strike`, `hxxp://evil[.]com`) finds it. Values are in lower case, unless case is significant (URLs,
//! paths, bitcoin addresses).

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::draft::identity;
use crate::domain::error::DomainError;
use crate::domain::extraction::{
    EntityKind, EntityOfHits, Entry, Extractor, Gazetteer, KnownNames, KnownThing, Mention, canonical_name,
    round_confidence, unite,
};
use crate::domain::kinds::Case;
use crate::domain::naming::canonical_value;
use crate::domain::node::NodeType;
use crate::domain::staging::{ExtractedEntity, ExtractedRelation};

/// Maximum length of an entity type and of a value, in characters.
pub const MAX_TYPE: usize = 100;
pub const MAX_VALUE: usize = 2000;
/// Maximum number of aliases that notes give an entity.
const MAX_ALIASES: usize = 100;

/// The identity of an entity: its type and its canonical value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EntityKey {
    pub entity_type: String,
    pub value: String,
}

impl EntityKey {
    /// The key of a type and a value in any spelling.
    ///
    /// # Errors
    /// `Invalid` when either is empty, too long, or has no letter or digit.
    pub fn new(entity_type: &str, value: &str) -> Result<Self, DomainError> {
        let kind = canonical_type(entity_type);
        let bounds = [
            ("entity_type", kind.is_empty(), entity_type, MAX_TYPE),
            ("entity_value", value.trim().is_empty(), value, MAX_VALUE),
        ];
        for (field, empty, text, most) in bounds {
            if empty {
                return Err(DomainError::invalid(field, "must have a letter or digit"));
            }
            if text.chars().count() > most {
                return Err(DomainError::invalid(
                    field,
                    format!("must have at most {most} characters"),
                ));
            }
        }
        let value = canonical(&kind, value);
        Ok(Self {
            entity_type: kind,
            value,
        })
    }

    /// For a tool, the malware of the same name. Callers that know only node types, such as a language
    /// model, call both a tool.
    pub fn as_malware(&self) -> Option<Self> {
        (self.entity_type == EntityKind::Tool.row().local).then(|| Self {
            entity_type: EntityKind::Malware.row().local.to_owned(),
            value: self.value.clone(),
        })
    }

    /// The identity from which the store derives the node id.
    pub fn identity(&self) -> String {
        identity(["entity", &self.entity_type, &self.value])
    }

    /// The node type under which the entity is stored.
    pub fn node_type(&self) -> NodeType {
        match EntityKind::of_local(&self.entity_type) {
            Some(kind) => kind.node_type(),
            None => NodeType::Osint,
        }
    }
}

impl fmt::Display for EntityKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.entity_type, self.value)
    }
}

/// An entity to be stored in the graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EntityDraft {
    pub key: EntityKey,
    /// The display name.
    pub name: String,
    pub aliases: Vec<String>,
    /// 0 to 1.
    pub confidence: f64,
}

impl EntityDraft {
    /// An entity known only by name, enriched from the gazetteer.
    ///
    /// # Errors
    /// As [`EntityKey::new`].
    pub fn from_name(entity_type: &str, value: &str, confidence: f64) -> Result<Self, DomainError> {
        let key = EntityKey::new(entity_type, value)?;
        let entry = EntityKind::of_local(&key.entity_type).and_then(|kind| entry_of(kind, value));
        Ok(Self {
            name: entry.map_or_else(|| value.trim().to_owned(), |entry| entry.name.clone()),
            aliases: entry.map(|entry| entry.aliases.clone()).unwrap_or_default(),
            key,
            confidence,
        })
    }

    /// Adds those of the aliases that it does not have yet, up to [`MAX_ALIASES`]; whether there are any.
    pub fn add_aliases(&mut self, aliases: &[String]) -> bool {
        let known = self.aliases.len();
        for alias in aliases {
            if self.aliases.len() < MAX_ALIASES {
                self.also(alias);
            }
        }
        self.aliases.len() > known
    }

    /// The memory's entity for an extracted one, the same that [`mentions_in`] makes of its hit. `None` if the memory
    /// has no such entity type.
    pub fn of_extracted(entity: &ExtractedEntity) -> Option<Self> {
        let text = |key: &str| entity.properties.get(key).and_then(Value::as_str);
        let Some(kind) = entity.kind else {
            return Self::from_name(plain_type(entity.node_type)?, &entity.name, entity.confidence).ok();
        };
        let value = if kind.is_identifier() {
            let ids = entity.properties.get("external_ids").and_then(Value::as_array);
            ids.and_then(|ids| ids.first()?.as_str())
        } else {
            text("value")
        };
        Some(Self::of_kind(
            kind,
            value.unwrap_or(&entity.name),
            entity.confidence,
        ))
    }

    /// The entity of a thing that the memory knows: `value` is that of its key.
    fn of_known(thing: &KnownThing, confidence: f64) -> Self {
        let entity_type = thing.kind.row().local.to_owned();
        Self {
            key: EntityKey {
                value: canonical(&entity_type, &thing.value),
                entity_type,
            },
            name: thing.name.clone(),
            aliases: thing.aliases.clone(),
            confidence,
        }
    }

    fn of_kind(kind: EntityKind, value: &str, confidence: f64) -> Self {
        // G0007 and S0002 resolve to the actor and the tool with these ids.
        let entry = entry_of(kind, value);
        let kind = entry.map_or(kind, |entry| entry.kind);
        let name = entry.map_or(value, |entry| entry.name.as_str());
        let entity_type = kind.row().local.to_owned();
        Self {
            key: EntityKey {
                value: canonical(&entity_type, name),
                entity_type,
            },
            name: name.to_owned(),
            aliases: entry.map(|entry| entry.aliases.clone()).unwrap_or_default(),
            confidence,
        }
    }
}

impl EntityOfHits for EntityDraft {
    type Key = EntityKey;

    fn of_hit(hit: &Mention) -> Self {
        if let Some(thing) = hit.known.first() {
            return Self::of_known(thing, round_confidence(hit.confidence));
        }
        Self::of_kind(hit.kind, &hit.value, round_confidence(hit.confidence))
    }

    fn key(&self) -> EntityKey {
        self.key.clone()
    }

    fn add(&mut self, other: &Self) {
        self.confidence = self.confidence.max(other.confidence);
    }

    fn also(&mut self, alias: &str) {
        let key = canonical_name(alias);
        let mut names = std::iter::once(&self.name).chain(&self.aliases);
        if !names.any(|name| canonical_name(name) == key) {
            self.aliases.push(alias.to_owned());
        }
    }

    fn confidence(&self) -> f64 {
        self.confidence
    }
}

/// The entities mentioned in a text, each once, in text order, and the relationships that it states between them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Mentions {
    pub entities: Vec<EntityDraft>,
    pub relations: Vec<ExtractedRelation>,
}

/// All entities that the rules find in a text.
pub fn mentions_in(text: &str) -> Mentions {
    mentions_with(text, &KnownNames::default())
}

/// All entities that the rules find in a text, with the names that the memory knows.
pub fn mentions_with(text: &str, known: &KnownNames) -> Mentions {
    let hits = Extractor::shared().extract_with(text, known);
    let (entities, relations) = unite(text, &hits);
    Mentions { entities, relations }
}

/// The label of a relationship as stored: trimmed, otherwise as written. Labels are compared by their exact spelling.
///
/// # Errors
/// `Invalid` if it has no letter or digit, contains a control character, or is longer than [`MAX_TYPE`] characters.
pub fn relationship_label(text: &str) -> Result<String, DomainError> {
    let label = text.trim();
    let readable = label.contains(char::is_alphanumeric) && !label.contains(char::is_control);
    if !readable || label.chars().count() > MAX_TYPE {
        let rule = format!(
            "must have 1 to {MAX_TYPE} characters, with a letter or digit among them and no control character"
        );
        return Err(DomainError::invalid("relationship", rule));
    }
    Ok(label.to_owned())
}

/// The canonical form of an entity type: lower case, words joined by `_`. The STIX 2.1 names `threat_actor` and
/// `intrusion_set` are mapped to `actor`.
pub fn canonical_type(entity_type: &str) -> String {
    let name = slug(entity_type, '_');
    match name.as_str() {
        "threat_actor" | "intrusion_set" => EntityKind::Actor.row().local.to_owned(),
        _ => name,
    }
}

/// The entity types that are listed even without entities: those of the rules, those a language model may use, and
/// one that clients expect although its entities are stored as `actor`.
pub fn known_types() -> impl Iterator<Item = &'static str> {
    const OTHERS: [&str; 7] = [
        "intrusion_set",
        "person",
        "location",
        "organization",
        "event",
        "activity",
        "temporal",
    ];
    let mut types: Vec<&str> = EntityKind::ALL.iter().map(|kind| kind.row().local).collect();
    types.extend(OTHERS);
    types.sort_unstable();
    types.dedup();
    types.into_iter()
}

/// The entity type when only the node type is known; an indicator of unknown kind has none.
fn plain_type(node_type: NodeType) -> Option<&'static str> {
    match node_type {
        NodeType::Actor => Some("actor"),
        NodeType::Cve => Some("cve"),
        NodeType::Attck => Some("attack_pattern"),
        NodeType::Tool => Some("tool"),
        NodeType::Vulnerability => Some("vulnerability"),
        NodeType::Osint | NodeType::Ioc => None,
    }
}

/// The gazetteer entry of this name, if it has that kind.
fn entry_of(kind: EntityKind, name: &str) -> Option<&'static Entry> {
    let entry = Gazetteer::shared().resolve(name).filter(|_| kind.has_names())?;
    (entry.kind.node_type() == kind.node_type()).then_some(entry)
}

fn canonical(entity_type: &str, value: &str) -> String {
    let value = value.trim();
    let Some(kind) = EntityKind::of_local(entity_type) else {
        return slug_or_lower(value);
    };
    if let Some(entry) = entry_of(kind, value) {
        return slug_or_lower(&entry.name);
    }
    let case = kind.row().case;
    if case == Case::Significant {
        canonical_value(kind, value)
    } else if kind.has_names() {
        slug_or_lower(value)
    } else {
        canonical_value(kind, value).to_lowercase()
    }
}

fn slug_or_lower(value: &str) -> String {
    let slug = slug(value, '-');
    if slug.is_empty() {
        value.to_lowercase()
    } else {
        slug
    }
}

/// Keeps letters, digits and dots, in lower case; any other run of characters becomes one `joint`.
fn slug(text: &str, joint: char) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.trim().chars().flat_map(char::to_lowercase) {
        if c.is_alphanumeric() || c == '.' {
            out.push(c);
        } else if !out.is_empty() && !out.ends_with(joint) {
            out.push(joint);
        }
    }
    out.truncate(out.trim_end_matches([joint, '.']).len());
    out
}

#[cfg(test)]
mod tests;
