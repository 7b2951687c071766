//! Converts nodes, and texts about them, to documents of the search index.

use serde_json::{Map, Value};
use uuid::Uuid;

use crate::domain::ids::WorkspaceIds;
use crate::domain::naming::{normal_value, pattern_keys};
use crate::domain::node::{NodeStatus, NodeType};
use crate::domain::question::{Kind, bare_sector, country_names, relationship_code};
use crate::domain::stix::properties::FIELDS;
use crate::domain::tlp::Tlp;
use crate::search::{Ends, Facts, IndexDoc, Population, Relation};
use crate::store::{StoredEdge, StoredNode, StoredPassage};

/// Properties whose values identify exactly this node.
const IDENTIFIERS: [&str; 4] = ["stix_id", "external_ids", "value", "attribute_uuids"];
/// Properties whose values are worth searching.
const SEARCHED: [&str; 6] = [
    "labels",
    "kill_chain_phases",
    "pattern",
    "indicator_types",
    "malware_types",
    "x_mitre_platforms",
];

/// The document of a stored node.
pub(super) fn of_stored(ids: WorkspaceIds, stored: &StoredNode) -> IndexDoc {
    let node = &stored.node;
    let facts = DocumentParts {
        ids,
        id: node.id,
        rev: stored.rev,
        population: population(stored.is_context),
        node_type: node.node_type,
        status: node.status,
        tlp: node.tlp,
        facts: Facts::of(&node.source, node.confidence, node.ingested_at),
        name: &node.name,
        description: &node.description,
        properties: &node.properties,
    };
    facts.into_doc()
}

/// The document of an edge.
pub(super) fn of_edge(edge: StoredEdge, rev: u64) -> IndexDoc {
    let relation = Relation {
        ends: Ends::of(edge.source, edge.target),
        tlp: edge.tlp,
        code: relationship_code(&edge.relationship),
        confidence: edge.confidence,
    };
    IndexDoc {
        population: population(!edge.is_about_node),
        ..IndexDoc::relationship(edge.id, rev, relation, edge.text)
    }
}

fn population(is_context: bool) -> Population {
    if is_context {
        Population::Context
    } else {
        Population::Main
    }
}

/// The document of a passage.
pub(super) fn of_passage(passage: StoredPassage, rev: u64) -> IndexDoc {
    let ends = Ends::of(passage.source, passage.target);
    IndexDoc::passage(passage.id, rev, passage.tlp, ends, passage.text)
}

struct DocumentParts<'a> {
    ids: WorkspaceIds,
    id: Uuid,
    rev: u64,
    population: Population,
    node_type: NodeType,
    status: NodeStatus,
    tlp: Tlp,
    facts: Facts,
    name: &'a str,
    description: &'a str,
    properties: &'a Map<String, Value>,
}

impl DocumentParts<'_> {
    fn into_doc(self) -> IndexDoc {
        let mut identifiers = Vec::new();
        for key in IDENTIFIERS {
            collect(self.properties.get(key), &mut identifiers);
        }
        if self.node_type == NodeType::Ioc {
            identifiers.extend(normal_value(self.properties));
            identifiers.extend(pattern_keys(self.properties));
        }
        // The index finds a node by the STIX id from which its own id follows. As terms, ids that occur once each are
        // the largest part of a dictionary.
        identifiers.retain(|id| self.ids.node(id) != self.id || id.to_ascii_lowercase() != *id);
        let mut aliases = Vec::new();
        collect(self.properties.get("aliases"), &mut aliases);
        let mut words = Vec::new();
        for key in SEARCHED {
            collect(self.properties.get(key), &mut words);
        }
        if let Some(Value::Object(fields)) = self.properties.get(FIELDS) {
            let said = fields.iter().filter(|(key, _)| !is_time(key));
            said.for_each(|(_, value)| collect(Some(value), &mut words));
        }
        let stix_type = self.properties.get("stix_type").and_then(Value::as_str);
        let kind = match self.population {
            Population::Main => Kind::of(self.node_type, stix_type),
            Population::Context => stix_type.and_then(|kind| context_kind(kind, self.properties)),
        };
        if let Some(kind) = kind.filter(|kind| kind.is_context()) {
            aliases.extend(names_of_context(kind, self.name, self.properties));
        }
        let mut body = self.description.to_owned();
        for word in words {
            body.push('\n');
            body.push_str(&word);
        }
        IndexDoc {
            node_id: self.id,
            rev: self.rev,
            population: self.population,
            node_type: self.node_type,
            status: self.status,
            tlp: self.tlp,
            name: self.name.to_owned(),
            aliases,
            identifiers,
            body,
            facts: self.facts.with_stix_type(stix_type).with_code(Kind::code(kind)),
            vector: None,
            ends: None,
            relation: None,
        }
    }
}

/// The kind of a context object with these properties.
pub(super) fn context_kind(stix_type: &str, properties: &Map<String, Value>) -> Option<Kind> {
    let class = properties
        .get(FIELDS)
        .and_then(|fields| fields.get("identity_class"));
    Kind::of_context(stix_type, class.and_then(Value::as_str))
}

/// Other names by which questions mean a context object: the sector that a class of organizations is, the country or region
/// that a location is, the abbreviation in brackets behind a name.
fn names_of_context(kind: Kind, name: &str, properties: &Map<String, Value>) -> Vec<String> {
    let mut names = Vec::new();
    let fields = properties.get(FIELDS);
    let field = |key: &str| fields.and_then(|fields| fields.get(key));
    if kind == Kind::Sector {
        collect(field("sectors"), &mut names);
        names.extend(bare_sector(name).map(str::to_owned));
    }
    // A city is no other name of its country.
    if kind == Kind::Place
        && ["city", "administrative_area"]
            .iter()
            .all(|part| field(part).is_none())
    {
        let code = field("country");
        collect(code.or(field("region")), &mut names);
        let code = code.and_then(Value::as_str).unwrap_or_default();
        names.extend(country_names(code).map(str::to_owned));
    }
    let bracketed = name.strip_suffix(')').and_then(|name| name.rsplit_once(" ("));
    if let Some((front, back)) = bracketed {
        names.extend([front, back].map(str::to_owned));
    }
    names
}

/// Whether a field of a STIX object holds a time, which nobody searches as words.
fn is_time(field: &str) -> bool {
    let ends = ["_seen", "_observed", "_time", "_started", "_ended"];
    ends.iter().any(|end| field.ends_with(end)) || ["published", "created", "modified"].contains(&field)
}

fn collect(value: Option<&Value>, into: &mut Vec<String>) {
    match value {
        Some(Value::String(text)) => into.push(text.clone()),
        Some(Value::Array(items)) => items.iter().for_each(|item| collect(Some(item), into)),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {}
    }
}
