//! The ATT&CK for ICS bundle: its documents for the index, and its procedure sentences.

use std::path::PathBuf;

use serde_json::Value;
use threat_memory::domain::node::{NodeStatus, NodeType};
use threat_memory::domain::tlp::Tlp;
use threat_memory::search::{Facts, IndexDoc, Population};
use uuid::Uuid;

use crate::Fallible;

/// A procedure sentence, the technique it describes, and the actor or tool it mentions.
pub struct Sentence {
    pub text: String,
    pub answer: Uuid,
    pub teller: Uuid,
}

/// Reads the bundle; `None` if the data set is missing.
pub fn read() -> Fallible<Option<Value>> {
    let path = PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../shared/data/attack/ics-attack.json"
    ));
    let Ok(text) = std::fs::read_to_string(&path) else {
        println!("data set not found, nothing measured: {}", path.display());
        return Ok(None);
    };
    Ok(Some(serde_json::from_str(&text)?))
}

/// The bundle with objects that ATT&CK does not have: victims, places, reports, sightings, infrastructure, observables.
pub fn with_context(bundle: &Value) -> Fallible<Value> {
    let mut all = bundle.clone();
    let more: Value = serde_json::from_str(include_str!("context.json"))?;
    let more = more["objects"].as_array().ok_or("a bundle has objects")?;
    let objects = all["objects"].as_array_mut().ok_or("a bundle has objects")?;
    objects.extend(more.iter().cloned());
    Ok(all)
}

/// The node for a STIX object; `None` if it is not a node or no longer valid.
pub fn node(object: &Value) -> Option<IndexDoc> {
    let node_type = match object["type"].as_str()? {
        "threat-actor" | "intrusion-set" | "campaign" => NodeType::Actor,
        "malware" | "tool" => NodeType::Tool,
        "attack-pattern" | "course-of-action" => NodeType::Attck,
        _ => return None,
    };
    if !is_valid(object) {
        return None;
    }
    let stix_id = object["id"].as_str()?;
    let name = object["name"].as_str()?.to_owned();
    let mut identifiers = external_ids(object);
    identifiers.push(stix_id.to_owned());
    Some(IndexDoc {
        population: Population::Main,
        node_id: node_id(stix_id)?,
        rev: 1,
        node_type,
        status: NodeStatus::Active,
        tlp: Tlp::White,
        aliases: aliases(object, &name),
        name,
        identifiers,
        body: plain(object["description"].as_str().unwrap_or("")),
        facts: Facts::default(),
        vector: None,
        ends: None,
        relation: None,
    })
}

/// The other names of an object.
pub fn aliases(object: &Value, name: &str) -> Vec<String> {
    ["aliases", "x_mitre_aliases"]
        .iter()
        .filter_map(|key| object[key].as_array())
        .flatten()
        .filter_map(Value::as_str)
        .filter(|alias| *alias != name)
        .map(str::to_owned)
        .collect()
}

/// The ATT&CK ids of an object, such as T0836.
pub fn external_ids(object: &Value) -> Vec<String> {
    let references = object["external_references"].as_array().into_iter().flatten();
    references
        .filter(|reference| {
            reference["source_name"]
                .as_str()
                .is_some_and(|source| source.starts_with("mitre"))
        })
        .filter_map(|reference| reference["external_id"].as_str().map(str::to_owned))
        .collect()
}

pub fn is_mitigation(doc: &IndexDoc) -> bool {
    doc.identifiers
        .iter()
        .any(|id| id.starts_with("course-of-action"))
}

pub fn node_id(stix_id: &str) -> Option<Uuid> {
    Uuid::parse_str(stix_id.split("--").nth(1)?).ok()
}

impl Sentence {
    /// The sentence of a `uses` relationship between an actor or malware and a technique.
    pub fn of(object: &Value) -> Option<Self> {
        let source = object["source_ref"].as_str()?;
        let target = object["target_ref"].as_str()?;
        let asks = object["relationship_type"] == "uses"
            && ["intrusion-set--", "malware--", "campaign--"]
                .iter()
                .any(|kind| source.starts_with(kind))
            && target.starts_with("attack-pattern--")
            && is_valid(object);
        let text = plain(object["description"].as_str()?);
        (asks && !text.is_empty()).then_some(Self {
            text,
            answer: node_id(target)?,
            teller: node_id(source)?,
        })
    }
}

/// True unless the object is revoked or deprecated.
pub fn is_valid(object: &Value) -> bool {
    object["revoked"] != true && object["x_mitre_deprecated"] != true
}

/// The text without citations, with links reduced to their text.
pub fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['(', '[']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let citation = rest.starts_with("(Citation:").then(|| rest.find(')')).flatten();
        let link = rest.starts_with('[').then(|| rest.split_once("](")).flatten();
        if let Some(end) = citation {
            rest = &rest[end + 1..];
        } else if let Some((words, after)) = link.filter(|(words, _)| !words.contains(']')) {
            out.push_str(&words[1..]);
            rest = after.split_once(')').map_or("", |(_, after)| after);
        } else {
            out.push_str(&rest[..1]);
            rest = &rest[1..];
        }
    }
    out.push_str(rest);
    out.trim().to_owned()
}
