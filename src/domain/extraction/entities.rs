//! Turns hits into entities for staging: one per distinct thing, with its aliases, ids and pattern.

use std::collections::hash_map::Entry as Slot;
use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::dual_use::mark_with;
use super::{EntityKind, Extractor, Gazetteer, Mention, stated_relations};
use crate::domain::draft::identity;
use crate::domain::naming::{self, Indicator};
use crate::domain::node::NodeType;
use crate::domain::staging::{ExtractedEntity, ExtractedRelation, Extraction};
use crate::domain::stix::pattern::{Observable, comparison, literal, pattern};

/// Maximum characters of the text quoted as reasoning.
const QUOTED: usize = 120;
/// Confidence below which a reviewer is warned: private addresses, hashes of empty input and the like.
const WEAK: f64 = 0.5;

/// All entities that the rules find in a text.
pub fn entities_of(text: &str) -> Extraction {
    let hits = Extractor::shared().extract(text);
    let mut found = EntityCollector::default();
    let places: Vec<usize> = hits.iter().map(|hit| found.add(text, hit)).collect();
    let relations = relations(text, &hits, &places, &found.entities);
    let mut extraction = Extraction {
        entities: found.finish(),
        relations,
        warnings: Vec::new(),
    };
    mark_with(text, &hits, &mut extraction);
    extraction
}

/// The entity of a bare name. An identifier or indicator decides its own type, whatever type was given; a name in the
/// gazetteer gets its aliases and ids. Has no span, reasoning or confidence.
pub fn entity_of_name(node_type: NodeType, name: &str) -> ExtractedEntity {
    let name = name.trim();
    if let Some(hit) = naming::whole_hit(name) {
        return of_hit(&hit);
    }
    if node_type == NodeType::Ioc {
        let indicator = naming::indicator_of(name);
        return entity_of_indicator(name.to_owned(), &indicator);
    }
    if let Some(id) = naming::identifier_in(node_type, name) {
        let mut entity = entity_of_entry(node_type, &id);
        if entity.name != id {
            return entity;
        }
        // In `Phishing (T1566)` the words are the better name.
        entity.name = name.to_owned();
        entity.kind = naming::whole_hit(&id).map(|hit| hit.kind);
        insert(&mut entity.properties, "external_ids", [id]);
        return entity;
    }
    entity_of_entry(node_type, name)
}

/// The node properties of an indicator: `value`, `ioc_type`, and a STIX `pattern` if there is one.
pub fn indicator_properties(indicator: &Indicator) -> Map<String, Value> {
    let mut properties = Map::new();
    properties.insert("value".into(), indicator.value.as_str().into());
    properties.insert("ioc_type".into(), indicator.kind_name().into());
    let pattern = indicator
        .kind
        .and_then(|kind| stix_pattern(kind, &indicator.value));
    if let Some(pattern) = pattern {
        properties.insert("pattern".into(), pattern.into());
    }
    properties
}

/// The STIX pattern that matches a value of this kind; `None` for kinds without an observable.
pub fn stix_pattern(kind: EntityKind, value: &str) -> Option<String> {
    let observable = match kind {
        EntityKind::Ipv4 => Observable::Ipv4,
        EntityKind::Ipv6 => Observable::Ipv6,
        EntityKind::Cidr if value.contains(':') => Observable::Ipv6,
        EntityKind::Cidr => Observable::Ipv4,
        EntityKind::Domain => Observable::Domain,
        EntityKind::Url => Observable::Url,
        EntityKind::Email => Observable::Email,
        EntityKind::Md5 => Observable::Md5,
        EntityKind::Sha1 => Observable::Sha1,
        EntityKind::Sha256 => Observable::Sha256,
        EntityKind::Sha512 => Observable::Sha512,
        EntityKind::FileName => Observable::FileName,
        EntityKind::FilePath => return path_pattern(value),
        EntityKind::RegistryKey => Observable::RegistryKey,
        EntityKind::Asn => Observable::AutonomousSystem,
        EntityKind::Bitcoin
        | EntityKind::YaraRule
        | EntityKind::SigmaRule
        | EntityKind::Cve
        | EntityKind::Cwe
        | EntityKind::Capec
        | EntityKind::AttckTechnique
        | EntityKind::AttckTactic
        | EntityKind::AttckGroup
        | EntityKind::AttckSoftware
        | EntityKind::AttckMitigation
        | EntityKind::AttckCampaign
        | EntityKind::Actor
        | EntityKind::Tool
        | EntityKind::Malware => return None,
    };
    pattern(observable, value)
}

/// The pattern of a file in its directory (STIX 2.1 section 6.7: `parent_directory_ref`).
fn path_pattern(path: &str) -> Option<String> {
    if path.chars().any(char::is_control) {
        return None;
    }
    let cut = path.rfind(['\\', '/'])?;
    let (directory, name) = (path.get(..cut)?, path.get(cut + 1..)?);
    // Without its separator the root would not be a path.
    let directory = if directory.is_empty() || directory.ends_with(':') {
        path.get(..=cut)?
    } else {
        directory
    };
    if name.is_empty() {
        return pattern(Observable::DirectoryPath, directory);
    }
    let name = comparison(Observable::FileName, name)?;
    Some(format!(
        "[{name} AND file:parent_directory_ref.path = {}]",
        literal(directory)
    ))
}

#[derive(Default)]
struct EntityCollector {
    entities: Vec<ExtractedEntity>,
    by_identity: HashMap<String, usize>,
    mentions: Vec<u32>,
}

impl EntityCollector {
    /// Adds a hit; returns the position of its entity.
    fn add(&mut self, text: &str, hit: &Mention) -> usize {
        let mut fresh = of_hit(hit);
        let confidence = round_confidence(hit.confidence);
        match self.by_identity.entry(fresh.identity.clone()) {
            Slot::Occupied(at) => {
                let at = *at.get();
                if let Some(known) = self.entities.get_mut(at) {
                    known.confidence = known.confidence.max(confidence);
                }
                if let Some(count) = self.mentions.get_mut(at) {
                    *count += 1;
                }
                at
            }
            Slot::Vacant(free) => {
                let at = *free.insert(self.entities.len());
                let quoted: String = hit.text(text).chars().take(QUOTED).collect();
                fresh.reasoning = format!("rule {} matched {quoted:?}", hit.rule);
                fresh.confidence = confidence;
                fresh.span = Some((hit.span.start, hit.span.end));
                self.entities.push(fresh);
                self.mentions.push(1);
                at
            }
        }
    }

    fn finish(mut self) -> Vec<ExtractedEntity> {
        for (entity, mentions) in self.entities.iter_mut().zip(self.mentions) {
            if mentions > 1 {
                entity.reasoning.push_str(&format!(" ({mentions} mentions)"));
            }
            if entity.confidence < WEAK {
                let note = format!(
                    "weak: a private, reserved or ambiguous value ({})",
                    entity.confidence
                );
                entity.warnings.push(note);
            }
        }
        self.entities
    }
}

fn of_hit(hit: &Mention) -> ExtractedEntity {
    let node_type = hit.kind.node_type();
    if node_type == NodeType::Ioc {
        let indicator = Indicator {
            kind: Some(hit.kind),
            value: hit.value.clone(),
        };
        return entity_of_indicator(hit.value.clone(), &indicator);
    }
    let mut entity = entity_of_entry(node_type, &hit.value);
    entity.kind.get_or_insert(hit.kind);
    if hit.kind.is_identifier() {
        insert(&mut entity.properties, "external_ids", [hit.value.clone()]);
    }
    entity
}

fn entity_of_indicator(name: String, indicator: &Indicator) -> ExtractedEntity {
    ExtractedEntity {
        kind: indicator.kind,
        ..entity(NodeType::Ioc, name, indicator_properties(indicator))
    }
}

/// The entity of a name, enriched from the gazetteer.
fn entity_of_entry(node_type: NodeType, name: &str) -> ExtractedEntity {
    let entry = Gazetteer::shared()
        .resolve(name)
        .filter(|entry| entry.kind.node_type() == node_type);
    let Some(entry) = entry else {
        return entity(node_type, name.to_owned(), Map::new());
    };
    let mut properties = Map::new();
    insert(&mut properties, "aliases", entry.aliases.iter().cloned());
    insert(&mut properties, "external_ids", entry.attack_id.clone());
    ExtractedEntity {
        kind: Some(entry.kind),
        ..entity(node_type, entry.name.clone(), properties)
    }
}

fn entity(node_type: NodeType, name: String, properties: Map<String, Value>) -> ExtractedEntity {
    let text = |key: &str| properties.get(key).and_then(Value::as_str);
    let (identity, merge_by_name) = match (text("ioc_type"), text("value")) {
        (Some(kind), Some(value)) => (identity([node_type.as_str(), kind, value]), false),
        _ => naming::identity_of(node_type, &name),
    };
    ExtractedEntity {
        node_type,
        kind: None,
        name,
        description: String::new(),
        confidence: 0.0,
        reasoning: String::new(),
        properties,
        identity,
        merge_by_name,
        span: None,
        warnings: Vec::new(),
    }
}

/// Sets a list property, unless the list is empty.
fn insert(properties: &mut Map<String, Value>, key: &str, values: impl IntoIterator<Item = String>) {
    let values: Vec<Value> = values.into_iter().map(Value::from).collect();
    if !values.is_empty() {
        properties.insert(key.into(), values.into());
    }
}

fn relations(
    text: &str,
    hits: &[Mention],
    places: &[usize],
    entities: &[ExtractedEntity],
) -> Vec<ExtractedRelation> {
    let mut seen = HashSet::new();
    let mut relations = Vec::new();
    for stated in stated_relations(text, hits) {
        let (Some(&source), Some(&target)) = (places.get(stated.subject), places.get(stated.object)) else {
            continue;
        };
        if source == target || !seen.insert((source, stated.verb, target)) {
            continue;
        }
        let sure = |at: usize| entities.get(at).map_or(0.0, |entity| entity.confidence);
        relations.push(ExtractedRelation {
            source,
            target,
            relationship: stated.verb.as_str().to_owned(),
            proof: text.get(stated.sentence).unwrap_or_default().trim().to_owned(),
            confidence: sure(source).min(sure(target)),
        });
    }
    relations
}

/// Two decimals are the precision of the rules; also avoids 0.949999988 for 0.95.
fn round_confidence(confidence: f32) -> f64 {
    (f64::from(confidence) * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests;
