//! STIX objects for nodes of other sources: MISP, OSINT, analysts, reports and reviewed texts.
//!
//! Invariants: every object passes the schemas of this service, whatever the node contains, and the same row always
//! gives the same id. Nothing is invented: an indicator without a searchable value becomes a note rather than a
//! pattern that never matches. A `tlp:` tag never becomes a label, because readers prefer labels over the row's
//! marking. The exporter adds marking and confidence.
//!
//! Ids: rows have UUIDv5 ids, but STIX 2.1 (section 2.9) reserves version 5 for cyber-observables and asks for
//! version 4 elsewhere. An object's id is the row's with the version changed, so it is stable and conforming.

mod fields;
mod indicator;
#[cfg(test)]
mod tests;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};
use uuid::{Builder, Uuid, Variant, Version};

use crate::domain::extraction::{EntityKind, Gazetteer};
use crate::domain::node::{KgNode, NodeType};
use fields::{
    cve_references, fill_times, known_references, labels, name_or, put, put_list, strings, time_text,
    url_references,
};

/// The input for one object.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// The id of the row.
    pub id: Uuid,
    pub node: &'a KgNode,
    /// The `id` of [`workspace_identity`], the creator of the object.
    pub identity_id: &'a str,
}

/// Galaxy types and kinds whose entries are malware; other entries of type `tool` are tools.
const MALWARE: [&str; 13] = [
    "malware",
    "malpedia",
    "ransomware",
    "rat",
    "banker",
    "stealer",
    "botnet",
    "backdoor",
    "android",
    "cryptominers",
    "wiper",
    "loader",
    "stalkerware",
];

/// The object of a node, without marking and confidence.
pub fn object_of(facts: &Origin<'_>) -> Map<String, Value> {
    let node = facts.node;
    match node.node_type {
        NodeType::Actor => actor(facts),
        NodeType::Cve | NodeType::Vulnerability => vulnerability(facts),
        NodeType::Ioc => indicator::of(facts),
        NodeType::Attck => technique(facts),
        NodeType::Tool => tool(facts),
        NodeType::Osint => report(facts),
    }
}

/// The relationship object of an edge; the two ids are those of the exported objects.
pub fn relationship_of(
    id: Uuid,
    source_stix_id: &str,
    target_stix_id: &str,
    relationship: &str,
    description: &str,
    identity_id: &str,
    created: DateTime<Utc>,
) -> Map<String, Value> {
    let mut object = core("relationship", id, created);
    put(&mut object, "created_by_ref", identity_id);
    put(&mut object, "relationship_type", &relationship_type(relationship));
    put(&mut object, "description", description);
    put(&mut object, "source_ref", source_stix_id);
    put(&mut object, "target_ref", target_stix_id);
    object
}

/// The identity of a workspace, the creator of synthesized objects.
pub fn workspace_identity(id: Uuid, name: &str, created: DateTime<Utc>) -> Map<String, Value> {
    let mut object = core("identity", id, created);
    object.insert("name".to_owned(), name_or(name, "unnamed workspace").into());
    put(&mut object, "identity_class", "organization");
    object
}

/// The `type--UUID` id of an object made from a row.
fn stix_id(stix_type: &str, row: Uuid) -> String {
    let random = Builder::from_bytes(row.into_bytes())
        .with_variant(Variant::RFC4122)
        .with_version(Version::Random)
        .into_uuid();
    format!("{stix_type}--{random}")
}

fn core(stix_type: &str, row: Uuid, created: DateTime<Utc>) -> Map<String, Value> {
    let time = time_text(created).unwrap_or_else(|| "1970-01-01T00:00:00.000Z".to_owned());
    let mut object = Map::new();
    object.insert("type".to_owned(), stix_type.into());
    object.insert("spec_version".to_owned(), "2.1".into());
    object.insert("id".to_owned(), stix_id(stix_type, row).into());
    object.insert("created".to_owned(), time.as_str().into());
    object.insert("modified".to_owned(), time.into());
    object
}

/// Properties common to all objects of nodes: core, creator, labels, references.
fn base(stix_type: &str, facts: &Origin<'_>, references: Vec<Value>) -> Map<String, Value> {
    let node = facts.node;
    let mut object = core(stix_type, facts.id, node.ingested_at);
    put(&mut object, "created_by_ref", facts.identity_id);
    put_list(&mut object, "labels", labels(&node.properties));
    let mut references = references;
    references.extend(url_references(&node.properties));
    if !references.is_empty() {
        object.insert("external_references".to_owned(), references.into());
    }
    object
}

/// [`base`] with the name and description of the node.
fn named_object(stix_type: &str, facts: &Origin<'_>, references: Vec<Value>) -> Map<String, Value> {
    let mut object = base(stix_type, facts, references);
    let fallback = format!("unnamed {}", facts.node.node_type);
    object.insert("name".to_owned(), name_or(&facts.node.name, &fallback).into());
    put(&mut object, "description", &facts.node.description);
    object
}

fn actor(facts: &Origin<'_>) -> Map<String, Value> {
    let galaxy = property(facts.node, "galaxy_type");
    let stix_type = match galaxy {
        kind if kind.contains("intrusion-set") => "intrusion-set",
        kind if kind.contains("campaign") => "campaign",
        _ => "threat-actor",
    };
    let mut object = named_object(stix_type, facts, known_references(facts.node, &["G", "C"]));
    put_aliases(&mut object, facts.node);
    fill_times(&mut object, &facts.node.properties);
    object
}

fn vulnerability(facts: &Origin<'_>) -> Map<String, Value> {
    named_object("vulnerability", facts, cve_references(facts.node))
}

fn technique(facts: &Origin<'_>) -> Map<String, Value> {
    let node = facts.node;
    let references = known_references(node, &["T", "TA", "M"]);
    let id = references
        .iter()
        .find_map(|reference| reference.get("external_id")?.as_str())
        .unwrap_or_default()
        .to_owned();
    let galaxy = property(node, "galaxy_type");
    let mitigation =
        id.starts_with('M') || galaxy.contains("course-of-action") || galaxy.contains("mitigation");
    let stix_type = if mitigation {
        "course-of-action"
    } else {
        "attack-pattern"
    };
    let mut object = named_object(stix_type, facts, references);
    // Node names may be "Name - T1059" to distinguish techniques with one name; in STIX the reference does that.
    let bare = node
        .name
        .strip_suffix(id.as_str())
        .and_then(|name| name.strip_suffix(" - "));
    if let Some(bare) = bare
        .map(str::trim)
        .filter(|name| !name.is_empty() && !id.is_empty())
    {
        object.insert("name".to_owned(), name_or(bare, "unnamed attck").into());
    }
    if !mitigation {
        put_aliases(&mut object, node);
        let phases = fields::kill_chain_phases(&node.properties);
        if !phases.is_empty() {
            object.insert("kill_chain_phases".to_owned(), phases.into());
        }
    }
    object
}

fn tool(facts: &Origin<'_>) -> Map<String, Value> {
    let node = facts.node;
    let malware = is_malware(node);
    let stix_type = if malware { "malware" } else { "tool" };
    let mut object = named_object(stix_type, facts, known_references(node, &["S"]));
    put_aliases(&mut object, node);
    if malware {
        // A malware name denotes a family; samples become indicators here.
        object.insert("is_family".to_owned(), true.into());
        fill_times(&mut object, &node.properties);
    }
    object
}

/// Whether the source says that it is malware, or else the name is known as malware.
fn is_malware(node: &KgNode) -> bool {
    let said = ["galaxy_type", "kind", "stix_type"].map(|key| property(node, key));
    if said
        .iter()
        .any(|kind| MALWARE.contains(kind) || kind.ends_with("-malware"))
    {
        return true;
    }
    if said.iter().any(|kind| *kind == "tool" || kind.ends_with("-tool")) {
        return false;
    }
    let known = Gazetteer::shared().resolve(&node.name);
    known.is_some_and(|entry| entry.kind == EntityKind::Malware)
}

/// A report must refer to something. Its subjects are in relationships, so it refers to the workspace identity.
fn report(facts: &Origin<'_>) -> Map<String, Value> {
    let mut object = named_object("report", facts, Vec::new());
    let created = object.get("created").cloned().unwrap_or_default();
    let published = fields::publication_time(&facts.node.properties).map_or(created, Value::from);
    object.insert("published".to_owned(), published);
    object.insert("object_refs".to_owned(), json!([facts.identity_id]));
    object
}

fn put_aliases(object: &mut Map<String, Value>, node: &KgNode) {
    let mut aliases = strings(&node.properties, "aliases");
    aliases.retain(|alias| *alias != node.name);
    put_list(object, "aliases", aliases);
}

fn property<'n>(node: &'n KgNode, key: &str) -> &'n str {
    node.properties
        .get(key)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// STIX 2.1 section 5.1: lower case, digits, hyphens.
fn relationship_type(text: &str) -> String {
    let folded: String = text
        .trim()
        .to_ascii_lowercase()
        .chars()
        .map(|c| {
            if c.is_ascii_lowercase() || c.is_ascii_digit() {
                c
            } else {
                '-'
            }
        })
        .take(250)
        .collect();
    match folded.trim_matches('-') {
        "" => "related-to".to_owned(),
        fit => fit.to_owned(),
    }
}
