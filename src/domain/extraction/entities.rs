//! Turns hits into entities for staging: one per distinct thing, with its aliases, ids and pattern.

use serde_json::{Map, Value};

use super::dual_use::mark_with;
use super::gazetteer::canonical_name;
use super::{
    EntityKind, EntityOfHits, Extractor, Gazetteer, KnownNames, KnownThing, Mention, round_confidence, unite,
};
use crate::domain::draft::identity;
use crate::domain::kinds::ValuePattern;
use crate::domain::naming::{self, Indicator};
use crate::domain::node::NodeType;
use crate::domain::normal_form::own_spelling;
use crate::domain::staging::{AMBIGUOUS, ExtractedEntity, Extraction};
use crate::domain::stix::pattern::{Observable, comparison, literal, pattern};

/// Maximum characters of the text quoted as reasoning.
const QUOTED: usize = 120;
/// Confidence below which a reviewer is warned: private addresses, hashes of empty input and the like.
const WEAK: f64 = 0.5;

/// All entities that the rules find in a text.
pub fn entities_of(text: &str) -> Extraction {
    entities_with(text, &KnownNames::default())
}

/// All entities that the rules find in a text, with the names that the memory knows.
pub fn entities_with(text: &str, known: &KnownNames) -> Extraction {
    let hits = Extractor::shared().extract_with(text, known);
    let (found, relations) = unite::<CountedEntity>(text, &hits);
    let mut extraction = Extraction {
        entities: found.into_iter().map(CountedEntity::finish).collect(),
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
    match kind.row().pattern {
        ValuePattern::Compare(observable) => pattern(observable, value),
        ValuePattern::Network if value.contains(':') => pattern(Observable::Ipv6, value),
        ValuePattern::Network => pattern(Observable::Ipv4, value),
        ValuePattern::FilePath => path_pattern(value),
        ValuePattern::None => None,
    }
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

/// An entity and the number of its hits.
struct CountedEntity {
    entity: ExtractedEntity,
    mentions: u32,
}

impl EntityOfHits for CountedEntity {
    type Key = String;

    fn of_hit(hit: &Mention) -> Self {
        let mut entity = of_hit(hit);
        entity.confidence = round_confidence(hit.confidence);
        Self { entity, mentions: 1 }
    }

    fn key(&self) -> String {
        self.entity.identity.clone()
    }

    fn begin(&mut self, text: &str, hit: &Mention) {
        if let Some(spelled) = own_spelling(hit.kind, hit.text(text)) {
            self.entity.name = spelled;
        }
        // As with an identifier that no memory knows: the words may be another thing's, too.
        let known = hit.known.first();
        if let Some(id) = known.and_then(|thing| thing.identifier(hit.text(text))) {
            id.clone_into(&mut self.entity.name);
        }
        let quoted: String = hit.text(text).chars().take(QUOTED).collect();
        self.entity.reasoning = format!("rule {} matched {quoted:?}", hit.rule);
        self.entity.span = Some((hit.span.start, hit.span.end));
    }

    fn add(&mut self, other: &Self) {
        self.entity.confidence = self.entity.confidence.max(other.entity.confidence);
        self.mentions += other.mentions;
    }

    fn also(&mut self, alias: &str) {
        let aliases = self.entity.properties.entry("aliases");
        let Some(aliases) = aliases.or_insert_with(|| Value::Array(Vec::new())).as_array_mut() else {
            return;
        };
        let is_same = |known: &Value| {
            known
                .as_str()
                .is_some_and(|known| canonical_name(known) == canonical_name(alias))
        };
        if !aliases.iter().any(is_same) {
            aliases.push(alias.into());
        }
    }

    fn confidence(&self) -> f64 {
        self.entity.confidence
    }
}

impl CountedEntity {
    fn finish(self) -> ExtractedEntity {
        let Self { mut entity, mentions } = self;
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
        entity
    }
}

fn of_hit(hit: &Mention) -> ExtractedEntity {
    if let [thing, others @ ..] = hit.known.as_slice() {
        return of_known(thing, !others.is_empty());
    }
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

/// The entity of a thing that the memory knows; `is_unclear`: the text may mean one of another type.
fn of_known(thing: &KnownThing, is_unclear: bool) -> ExtractedEntity {
    let mut properties = Map::new();
    insert(&mut properties, "aliases", thing.aliases.iter().cloned());
    insert(
        &mut properties,
        "external_ids",
        thing.external_ids.iter().cloned(),
    );
    let (identity, merge_by_name) = naming::identity_of(thing.kind.node_type(), &thing.value);
    let mut entity = ExtractedEntity {
        kind: Some(thing.kind),
        identity,
        merge_by_name,
        ..entity(thing.kind.node_type(), thing.name.clone(), properties)
    };
    if is_unclear {
        entity.warnings.push(format!(
            "{AMBIGUOUS}nodes of several types are named {:?}, and the text does not tell which it means",
            thing.name
        ));
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

#[cfg(test)]
mod tests;
