//! What the walk along relationships asks the database: facts that the search index does not hold, and whether the
//! relationships that led to an answer still stand. Every query filters by workspace, marking and status.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use serde_json::Value;
use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use super::narrowing::{conditions, parameters};
use super::nodes::statuses;
use super::visibility::{self, sees_both};
use crate::domain::detail::NodeLink;
use crate::domain::error::DomainError;
use crate::domain::narrowing::Narrowing;
use crate::domain::node::NodeType;
use crate::domain::tlp::Tlp;
use crate::store::rows::{key, parse, record};
use crate::store::{Store, failed};

const READ: &str = "reading relationships failed";

/// What ranking and filtering need to know of a node.
#[derive(Debug, Clone)]
pub struct NodeOfType {
    pub id: Uuid,
    pub node_type: NodeType,
    /// 0 to 1.
    pub confidence: f64,
    pub stix: StixFacts,
}

/// Properties that a STIX object gave its node; the times are RFC 3339 texts.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct StixFacts {
    #[serde(rename = "stix_type")]
    pub kind: Option<String>,
    pub created: Option<String>,
    pub first_seen: Option<String>,
    pub last_seen: Option<String>,
    #[serde(default)]
    kill_chain_phases: Value,
    #[serde(default)]
    x_mitre_domains: Value,
    /// What else a context object says.
    #[serde(default)]
    fields: Value,
}

impl StixFacts {
    /// The short names of the tactics that it serves.
    pub fn tactics(&self) -> impl Iterator<Item = &str> {
        let phases = self.kill_chain_phases.as_array().into_iter().flatten();
        phases.filter_map(Value::as_str)
    }

    /// Whether it may stand in the same matrix of ATT&CK as another: they share a domain, or one of them names none.
    pub fn is_of_domain(&self, other: &StixFacts) -> bool {
        match (self.x_mitre_domains.as_array(), other.x_mitre_domains.as_array()) {
            (Some(own), Some(others)) => own.iter().any(|domain| others.contains(domain)),
            (Some(_) | None, _) => true,
        }
    }

    /// What a context object says under this name, if it is a text.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name)?.as_str()
    }

    /// When it was seen, observed or published for the first time, and for the last.
    pub fn times(&self) -> [Option<&str>; 2] {
        let first = || self.field("first_observed").or(self.field("published"));
        [
            self.first_seen.as_deref().or_else(first),
            self.last_seen.as_deref().or(self.field("last_observed")),
        ]
    }
}

#[derive(Debug, SurrealValue)]
struct NodeOfTypeRow {
    node: RecordId,
    node_type: String,
    node_confidence: f64,
    properties: String,
}

#[derive(Debug, SurrealValue)]
struct FactsRow {
    id: RecordId,
    properties: String,
}

#[derive(Debug, SurrealValue)]
struct LinkRow {
    id: RecordId,
    source: RecordId,
    target: RecordId,
    relationship: String,
}

impl LinkRow {
    fn into_link(self) -> Result<NodeLink, DomainError> {
        Ok(NodeLink {
            id: key(&self.id)?,
            relationship_type: self.relationship,
            source: key(&self.source)?,
            target: key(&self.target)?,
        })
    }
}

#[derive(Debug, SurrealValue)]
struct EdgeIdRow {
    id: RecordId,
}

impl Store {
    /// Those of these relationships that are in force and that a caller may see together with both ends.
    pub async fn relationships_in_force(
        &self,
        ws: Uuid,
        relationships: &[Uuid],
        shown: (Tlp, bool),
    ) -> Result<HashSet<Uuid>, DomainError> {
        if relationships.is_empty() {
            return Ok(HashSet::new());
        }
        let query = format!(
            "SELECT id FROM $ids WHERE active = true AND {}",
            sees_both("in", "out")
        );
        let ids = relationships.iter().map(|id| record("edge", *id)).collect();
        let rows: Vec<EdgeIdRow> = self
            .rows_by_id(&query, ids, &visibility::parameters(ws, shown))
            .await
            .map_err(failed(READ))?;
        rows.iter().map(|row| key(&row.id)).collect()
    }

    /// Those of these relationships that are in force and that a caller may see together with both ends, by id.
    pub async fn node_links(
        &self,
        ws: Uuid,
        relationships: &[Uuid],
        shown: (Tlp, bool),
    ) -> Result<Vec<NodeLink>, DomainError> {
        if relationships.is_empty() {
            return Ok(Vec::new());
        }
        let query = format!(
            "SELECT id, in AS source, out AS target, relationship FROM $ids WHERE active = true AND {}",
            sees_both("in", "out")
        );
        let ids = relationships.iter().map(|id| record("edge", *id)).collect();
        let rows: Vec<LinkRow> = self
            .rows_by_id(&query, ids, &visibility::parameters(ws, shown))
            .await
            .map_err(failed(READ))?;
        let mut links: Vec<NodeLink> = rows
            .into_iter()
            .map(LinkRow::into_link)
            .collect::<Result<_, _>>()?;
        links.sort_unstable_by_key(|link| link.id);
        Ok(links)
    }

    /// The STIX properties of those of these nodes that a caller may see.
    pub async fn stix_facts(
        &self,
        ws: Uuid,
        nodes: &[Uuid],
        shown: (Tlp, bool),
    ) -> Result<HashMap<Uuid, StixFacts>, DomainError> {
        let query =
            "SELECT id, properties FROM $ids WHERE ws = $ws AND tlp_rank <= $highest AND status IN $statuses";
        let ids = nodes.iter().map(|id| record("node", *id)).collect();
        let rows: Vec<FactsRow> = self
            .rows_by_id(query, ids, &visibility::parameters(ws, shown))
            .await
            .map_err(failed("reading the times of nodes failed"))?;
        let facts = rows
            .iter()
            .map(|row| Ok((key(&row.id)?, facts_of(&row.properties))));
        facts.collect()
    }

    /// At most `most` nodes of one of these types, those that an ingest counts or those that give context to them, in no
    /// particular order.
    pub async fn nodes_of_type(
        &self,
        ws: Uuid,
        (highest, include_rejected): (Tlp, bool),
        (types, narrowing): (&[NodeType], &Narrowing),
        (is_context, most): (bool, usize),
    ) -> Result<Vec<NodeOfType>, DomainError> {
        let population = if is_context { "true" } else { "NONE" };
        let types: Vec<String> = types.iter().map(|kind| kind.to_string()).collect();
        let query = format!(
            "SELECT id AS node, node_type, confidence AS node_confidence, properties FROM node \
                 WHERE ws = $ws AND tlp_rank <= $highest AND status IN $statuses AND node_type IN $types \
                 AND context = {population}{} LIMIT {most}",
            conditions(narrowing, "")
        );
        let mut statement = self.db.query(query);
        for parameter in parameters(narrowing) {
            statement = statement.bind(parameter);
        }
        let mut response = statement
            .bind(("ws", ws))
            .bind(("highest", i64::from(highest.rank())))
            .bind(("statuses", statuses(include_rejected)))
            .bind(("types", types))
            .await
            .map_err(failed(READ))?;
        let rows: Vec<NodeOfTypeRow> = response.take(0).map_err(failed(READ))?;
        rows.into_iter().map(NodeOfTypeRow::into_node).collect()
    }
}

impl NodeOfTypeRow {
    fn into_node(self) -> Result<NodeOfType, DomainError> {
        Ok(NodeOfType {
            id: key(&self.node)?,
            node_type: parse(&self.node_type)?,
            confidence: self.node_confidence,
            stix: facts_of(&self.properties),
        })
    }
}

/// Properties of other sources may have other types under these names.
fn facts_of(properties: &str) -> StixFacts {
    serde_json::from_str(properties).unwrap_or_default()
}
