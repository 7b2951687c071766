//! Steps along relationships. Every step filters by workspace, marking and status of the relationship and of the node
//! that it reaches, so that nothing hidden can be passed through.

use serde::Deserialize;
use surrealdb::IndexedResults;
use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use super::narrowing::{conditions, parameters};
use super::nodes::statuses;
use super::rows::{key, parse, record};
use super::{Store, failed};
use crate::domain::error::DomainError;
use crate::domain::narrowing::Narrowing;
use crate::domain::node::NodeType;
use crate::domain::tlp::Tlp;

/// Relationships passed on at most in each direction, the most confident ones.
const MOST: usize = 5_000;
/// What a step may pass.
#[derive(Debug, Clone, Copy)]
pub struct Passable<'a> {
    pub highest: Tlp,
    pub include_rejected: bool,
    pub relationships: &'a [&'static str],
    pub node_types: &'a [NodeType],
    /// What is asked of the nodes that it reaches.
    pub narrowing: &'a Narrowing,
}

/// A node that a relationship leads to.
#[derive(Debug, Clone)]
pub struct Reached {
    pub from: Uuid,
    pub relationship: String,
    /// Whether the relationship leads from `from` to the node rather than back.
    pub outgoing: bool,
    /// 0 to 1.
    pub confidence: f64,
    pub node: SeenNode,
}

/// What ranking and filtering need to know of a node.
#[derive(Debug, Clone)]
pub struct SeenNode {
    pub id: Uuid,
    pub name: String,
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
}

#[derive(Debug, SurrealValue)]
struct SeenRow {
    node: RecordId,
    name: String,
    node_type: String,
    node_confidence: f64,
    properties: String,
}

#[derive(Debug, SurrealValue)]
struct ReachedRow {
    near: RecordId,
    outgoing: bool,
    relationship: String,
    confidence: f64,
    node: RecordId,
    name: String,
    node_type: String,
    node_confidence: f64,
    properties: String,
}

const READ: &str = "reading relationships failed";

/// The columns of a node that a relationship leads to.
const FAR: &str = "{id, ws, tlp_rank, status, node_type, name, confidence, properties, source, ingested_at}";
/// Whether the caller may see that node and wants it.
const IS_WANTED: &str = "node.ws = $ws AND node.tlp_rank <= $highest AND node.status IN $statuses \
    AND node.node_type IN $types";
/// Whether the caller may see a relationship.
const IS_SHOWN: &str = "ws = $ws AND active = true AND tlp_rank <= $highest";

/// The columns of an edge that hold the end where a step begins and the other one.
fn ends(outgoing: bool) -> (&'static str, &'static str) {
    if outgoing { ("in", "out") } else { ("out", "in") }
}

/// What of these relationships the caller may see and wants.
fn kept(narrowing: &Narrowing, outgoing: bool) -> String {
    let conditions = conditions(narrowing, "node.");
    format!(
        "SELECT near, node.id AS node, {outgoing} AS outgoing, relationship, confidence, node.name AS name, \
             node.node_type AS node_type, node.confidence AS node_confidence, node.properties AS properties \
             FROM $edges WHERE {IS_WANTED}{conditions}"
    )
}

impl Store {
    /// The nodes one step from these, by relationships of these types in either direction.
    pub async fn reached(
        &self,
        ws: Uuid,
        nodes: &[Uuid],
        passable: Passable<'_>,
    ) -> Result<Vec<Reached>, DomainError> {
        if nodes.is_empty() {
            return Ok(Vec::new());
        }
        // The far end is filtered before the limit: hidden nodes must not displace visible ones, nor others those asked
        // for.
        let step = |arrow: &str, outgoing: bool| {
            let (near, far) = ends(outgoing);
            let kept = kept(passable.narrowing, outgoing);
            format!(
                "LET $edges = array::flatten(SELECT VALUE {arrow}(SELECT {near} AS near, {far}.{FAR} AS node, \
                     relationship, confidence FROM edge WHERE {IS_SHOWN} AND relationship IN $relationships) \
                     FROM $seen); {kept} ORDER BY confidence DESC LIMIT {MOST};"
            )
        };
        let statements = format!("{}{}", step("->", true), step("<-", false));
        let mut response = self.passing(ws, nodes, passable, &statements).await?;
        let mut rows: Vec<ReachedRow> = response.take(2).map_err(failed(READ))?;
        rows.extend(response.take::<Vec<ReachedRow>>(4).map_err(failed(READ))?);
        rows.into_iter().map(ReachedRow::into_reached).collect()
    }

    /// Runs statements that begin at `$seen`, those of these nodes that the caller may see.
    async fn passing(
        &self,
        ws: Uuid,
        nodes: &[Uuid],
        passable: Passable<'_>,
        statements: &str,
    ) -> Result<IndexedResults, DomainError> {
        let ids: Vec<_> = nodes.iter().map(|id| record("node", *id)).collect();
        let types: Vec<String> = passable.node_types.iter().map(|kind| kind.to_string()).collect();
        let relationships = passable.relationships.iter();
        let relationships: Vec<String> = relationships.map(|name| (*name).to_owned()).collect();
        let mut statement = self.db.query(format!(
            "LET $seen = SELECT VALUE id FROM $ids WHERE ws = $ws AND tlp_rank <= $highest \
                 AND status IN $statuses; {statements}"
        ));
        for parameter in parameters(passable.narrowing) {
            statement = statement.bind(parameter);
        }
        statement
            .bind(("ids", ids))
            .bind(("ws", ws))
            .bind(("highest", i64::from(passable.highest.rank())))
            .bind(("statuses", statuses(passable.include_rejected)))
            .bind(("relationships", relationships))
            .bind(("types", types))
            .await
            .map_err(failed(READ))
    }

    /// At most `most` nodes of one of these types, in no particular order.
    pub async fn nodes_of_type(
        &self,
        ws: Uuid,
        (highest, include_rejected): (Tlp, bool),
        (types, narrowing): (&[NodeType], &Narrowing),
        most: usize,
    ) -> Result<Vec<SeenNode>, DomainError> {
        let types: Vec<String> = types.iter().map(|kind| kind.to_string()).collect();
        let query = format!(
            "SELECT id AS node, name, node_type, confidence AS node_confidence, properties FROM node \
                 WHERE ws = $ws AND tlp_rank <= $highest AND status IN $statuses AND node_type IN $types{} \
                 LIMIT {most}",
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
        let rows: Vec<SeenRow> = response.take(0).map_err(failed(READ))?;
        rows.into_iter().map(SeenRow::into_node).collect()
    }
}

impl SeenRow {
    fn into_node(self) -> Result<SeenNode, DomainError> {
        Ok(SeenNode {
            id: key(&self.node)?,
            name: self.name,
            node_type: parse(&self.node_type)?,
            confidence: self.node_confidence,
            // Properties of other sources may have other types under these names.
            stix: serde_json::from_str(&self.properties).unwrap_or_default(),
        })
    }
}

impl ReachedRow {
    fn into_reached(self) -> Result<Reached, DomainError> {
        let node = SeenRow {
            node: self.node,
            name: self.name,
            node_type: self.node_type,
            node_confidence: self.node_confidence,
            properties: self.properties,
        };
        Ok(Reached {
            from: key(&self.near)?,
            relationship: self.relationship,
            outgoing: self.outgoing,
            confidence: self.confidence,
            node: node.into_node()?,
        })
    }
}
