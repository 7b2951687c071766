//! Entities of the local API: a type and a canonical value, such as `tool:cobalt-strike`.
//!
//! The canonical form is used both when storing and when looking up, so every spelling of a value
//! (`Cobalt Strike`, `hxxp://evil[.]com`) finds it. Values are in lower case, unless case is significant (URLs,
//! paths, bitcoin addresses).

use std::collections::{HashMap, HashSet};
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::draft::identity;
use crate::domain::error::DomainError;
use crate::domain::extraction::{EntityKind, Entry, Extractor, Gazetteer, Mention, stated_relations};
use crate::domain::naming::canonical_value;
use crate::domain::node::NodeType;
use crate::domain::staging::ExtractedEntity;

/// Maximum length of an entity type and of a value, in characters.
pub const MAX_TYPE: usize = 100;
pub const MAX_VALUE: usize = 2000;

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
        (self.entity_type == type_of(EntityKind::Tool)).then(|| Self {
            entity_type: type_of(EntityKind::Malware).to_owned(),
            value: self.value.clone(),
        })
    }

    /// The identity from which the store derives the node id.
    pub fn identity(&self) -> String {
        identity(["entity", &self.entity_type, &self.value])
    }

    /// The node type under which the entity is stored.
    pub fn node_type(&self) -> NodeType {
        match kind_of(&self.entity_type) {
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
        let entry = kind_of(&key.entity_type).and_then(|kind| entry_of(kind, value));
        Ok(Self {
            name: entry.map_or_else(|| value.trim().to_owned(), |entry| entry.name.clone()),
            aliases: entry.map(|entry| entry.aliases.clone()).unwrap_or_default(),
            key,
            confidence,
        })
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

    fn of_hit(hit: &Mention) -> Self {
        let confidence = (f64::from(hit.confidence) * 100.0).round() / 100.0;
        Self::of_kind(hit.kind, &hit.value, confidence)
    }

    fn of_kind(kind: EntityKind, value: &str, confidence: f64) -> Self {
        // G0007 and S0002 resolve to the actor and the tool with these ids.
        let entry = entry_of(kind, value);
        let kind = entry.map_or(kind, |entry| entry.kind);
        let name = entry.map_or(value, |entry| entry.name.as_str());
        let entity_type = type_of(kind).to_owned();
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

/// A relationship between two entities of a text, stated by it.
#[derive(Debug, Clone, PartialEq)]
pub struct RelationDraft {
    /// Positions in the list of the text's entities.
    pub source: usize,
    pub target: usize,
    pub relationship: String,
    /// The sentence that states it.
    pub proof: String,
    /// 0 to 1.
    pub confidence: f64,
}

/// The entities mentioned in a text, each once, in text order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Mentions {
    pub entities: Vec<EntityDraft>,
    pub relations: Vec<RelationDraft>,
}

/// All entities that the rules find in a text.
pub fn mentions_in(text: &str) -> Mentions {
    let hits = Extractor::shared().extract(text);
    let mut found = Mentions::default();
    let mut places: HashMap<EntityKey, usize> = HashMap::new();
    let mut of_hit = Vec::with_capacity(hits.len());
    let mut stated_before = HashSet::new();
    for hit in &hits {
        let draft = EntityDraft::of_hit(hit);
        let at = *places.entry(draft.key.clone()).or_insert(found.entities.len());
        match found.entities.get_mut(at) {
            Some(known) => known.confidence = known.confidence.max(draft.confidence),
            None => found.entities.push(draft),
        }
        of_hit.push(at);
    }
    for stated in stated_relations(text, &hits) {
        let (Some(&source), Some(&target)) = (of_hit.get(stated.subject), of_hit.get(stated.object)) else {
            continue;
        };
        if source != target && stated_before.insert((source, stated.verb, target)) {
            let sure = |at: usize| found.entities.get(at).map_or(0.0, |entity| entity.confidence);
            found.relations.push(RelationDraft {
                source,
                target,
                relationship: stated.verb.as_str().to_owned(),
                proof: text.get(stated.sentence).unwrap_or_default().trim().to_owned(),
                confidence: sure(source).min(sure(target)),
            });
        }
    }
    found
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
        "threat_actor" | "intrusion_set" => type_of(EntityKind::Actor).to_owned(),
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
    let mut types: Vec<&str> = EntityKind::ALL.iter().map(|kind| type_of(*kind)).collect();
    types.extend(OTHERS);
    types.sort_unstable();
    types.dedup();
    types.into_iter()
}

/// The entity type of an extractor kind.
pub fn type_of(kind: EntityKind) -> &'static str {
    match kind {
        EntityKind::Cve => "cve",
        EntityKind::Cwe => "cwe",
        EntityKind::Capec => "capec",
        EntityKind::AttckTechnique => "attack_pattern",
        EntityKind::AttckTactic => "tactic",
        EntityKind::AttckSoftware | EntityKind::Tool => "tool",
        EntityKind::AttckMitigation => "course_of_action",
        EntityKind::AttckCampaign => "campaign",
        EntityKind::Ipv4 => "ipv4",
        EntityKind::Ipv6 => "ipv6",
        EntityKind::Cidr => "cidr",
        EntityKind::Domain => "domain",
        EntityKind::Url => "url",
        EntityKind::Email => "email",
        EntityKind::Md5 => "md5",
        EntityKind::Sha1 => "sha1",
        EntityKind::Sha256 => "sha256",
        EntityKind::Sha512 => "sha512",
        EntityKind::FileName => "file_name",
        EntityKind::FilePath => "file_path",
        EntityKind::RegistryKey => "registry_key",
        EntityKind::Asn => "asn",
        EntityKind::Bitcoin => "bitcoin",
        EntityKind::YaraRule => "yara_rule",
        EntityKind::SigmaRule => "sigma_rule",
        EntityKind::Actor | EntityKind::AttckGroup => "actor",
        EntityKind::Malware => "malware",
    }
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

fn kind_of(entity_type: &str) -> Option<EntityKind> {
    // These types cover several kinds; use the one for names.
    let named = match entity_type {
        "tool" => Some(EntityKind::Tool),
        "actor" => Some(EntityKind::Actor),
        _ => None,
    };
    named.or_else(|| {
        EntityKind::ALL
            .iter()
            .copied()
            .find(|kind| type_of(*kind) == entity_type)
    })
}

/// The gazetteer entry of this name, if it has that kind.
fn entry_of(kind: EntityKind, name: &str) -> Option<&'static Entry> {
    let by_name = kind.is_name()
        || matches!(
            kind,
            EntityKind::AttckGroup | EntityKind::AttckSoftware | EntityKind::AttckCampaign
        );
    let entry = Gazetteer::shared().resolve(name).filter(|_| by_name)?;
    (entry.kind.node_type() == kind.node_type()).then_some(entry)
}

fn canonical(entity_type: &str, value: &str) -> String {
    let value = value.trim();
    let Some(kind) = kind_of(entity_type) else {
        return slug_or_lower(value);
    };
    if let Some(entry) = entry_of(kind, value) {
        return slug_or_lower(&entry.name);
    }
    match kind {
        EntityKind::Url | EntityKind::FilePath | EntityKind::Bitcoin => canonical_value(kind, value),
        EntityKind::Actor
        | EntityKind::Tool
        | EntityKind::Malware
        | EntityKind::AttckGroup
        | EntityKind::AttckSoftware
        | EntityKind::AttckCampaign => slug_or_lower(value),
        EntityKind::Cve
        | EntityKind::Cwe
        | EntityKind::Capec
        | EntityKind::AttckTechnique
        | EntityKind::AttckTactic
        | EntityKind::AttckMitigation
        | EntityKind::Ipv4
        | EntityKind::Ipv6
        | EntityKind::Cidr
        | EntityKind::Domain
        | EntityKind::Email
        | EntityKind::Md5
        | EntityKind::Sha1
        | EntityKind::Sha256
        | EntityKind::Sha512
        | EntityKind::FileName
        | EntityKind::RegistryKey
        | EntityKind::Asn
        | EntityKind::YaraRule
        | EntityKind::SigmaRule => canonical_value(kind, value).to_lowercase(),
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
mod tests {
    use super::*;

    fn keys(text: &str) -> Vec<String> {
        let found = mentions_in(text).entities;
        found.iter().map(|entity| entity.key.to_string()).collect()
    }

    #[test]
    fn a_text_yields_canonical_entities_each_once() {
        let text = "APT28 used Cobalt Strike to exploit CVE-2024-3094 against 10.1.2.3 and evil[.]example.com \
                    (T1566.001). Fancy Bear, also APT 28, is G0007.";
        assert_eq!(
            keys(text),
            [
                "actor:apt28",
                "tool:cobalt-strike",
                "cve:cve-2024-3094",
                "ipv4:10.1.2.3",
                "domain:evil.example.com",
                "attack_pattern:t1566.001",
            ]
        );
        assert_eq!(
            keys("TA0001 over 2001:DB8::1"),
            ["tactic:ta0001", "ipv6:2001:db8::1"]
        );
        assert!(keys("nothing of note").is_empty());
    }

    #[test]
    fn every_spelling_is_one_key() {
        for (kind, spellings) in [
            ("actor", &["APT28", "apt 28", "Fancy Bear", "G0007"][..]),
            ("tool", &["Cobalt Strike", "cobalt-strike", "COBALT  STRIKE"]),
            ("domain", &["evil.com", "EVIL[.]com"]),
            ("organization", &["Acme, Inc.", "acme inc", "ACME--INC"]),
            ("url", &["hxxp://evil[.]com/A", "http://evil.com/A"]),
        ] {
            let keys: Vec<_> = spellings
                .iter()
                .map(|value| EntityKey::new(kind, value).unwrap())
                .collect();
            assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
        }
        let upper = EntityKey::new("url", "http://evil.com/A").unwrap();
        assert_ne!(upper, EntityKey::new("url", "http://evil.com/a").unwrap());
        assert_eq!(
            EntityKey::new("Malware Family", "X").unwrap().entity_type,
            "malware_family"
        );
    }

    #[test]
    fn threat_actors_and_intrusion_sets_are_the_actor_of_that_name() {
        let actor = EntityKey::new("actor", "APT28").unwrap();
        for kind in ["threat_actor", "Threat Actor", "intrusion-set", "INTRUSION_SET"] {
            for name in ["apt 28", "Fancy Bear", "G0007"] {
                assert_eq!(EntityKey::new(kind, name).unwrap(), actor, "{kind} {name}");
            }
        }
        let unknown = EntityKey::new("intrusion-set", "Silk Moth").unwrap();
        assert_eq!(unknown.to_string(), "actor:silk-moth");
        assert_eq!(unknown.node_type(), NodeType::Actor);
        // A group known only by its id is the same entity in every spelling.
        assert_eq!(keys("The group G1199 again"), ["actor:g1199"]);
        assert_eq!(
            EntityKey::new("intrusion_set", "G1199").unwrap().to_string(),
            "actor:g1199"
        );
    }

    #[test]
    fn empty_and_long_keys_are_refused_by_name() {
        for (kind, value, field) in [
            ("", "x", "entity_type"),
            ("actor", "  ", "entity_value"),
            ("actor", &"x".repeat(MAX_VALUE + 1), "entity_value"),
        ] {
            let error = EntityKey::new(kind, value).unwrap_err().to_string();
            assert!(error.starts_with(field), "{error}");
        }
        assert!(relationship_label("->").is_err());
        assert!(relationship_label("uses\ntool").is_err());
        assert!(relationship_label(&"é".repeat(MAX_TYPE)).is_ok());
        assert!(relationship_label(&"é".repeat(MAX_TYPE + 1)).is_err());
    }

    #[test]
    fn labels_of_relationships_stay_as_they_were_written() {
        for label in ["USES_TOOL", "uses-tool", "Uses Tool", "verwendet/nutzt"] {
            assert_eq!(relationship_label(&format!(" {label}\n")).unwrap(), label);
        }
    }

    #[test]
    fn stated_relations_point_at_the_entities() {
        let found = mentions_in("Sandworm uses Industroyer. Sandworm uses Industroyer.");
        assert_eq!(found.relations.len(), 1);
        let relation = &found.relations[0];
        assert_eq!(relation.relationship, "uses");
        assert_eq!(found.entities[relation.source].key.entity_type, "actor");
        assert_eq!(found.entities[relation.target].key.value, "industroyer");
    }
}
