//! What decides whether an object is in a collection.

use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use crate::domain::error::DomainError;
use crate::domain::taxii::filter::ObjectFacts;
use crate::domain::tlp::Tlp;
use crate::store::rows::{key, record, tlp};
use crate::store::{Store, failed};

/// The facts of a node or of a relationship.
#[derive(Debug, Clone)]
pub struct StoredFacts {
    tlp: Tlp,
    confidence: f64,
    feeds: Vec<Uuid>,
    nodes: Vec<(Uuid, String)>,
}

#[derive(Debug, SurrealValue)]
struct FactsRow {
    tlp_rank: i64,
    confidence: f64,
    feeds: Option<Vec<Uuid>>,
    nodes: Vec<NodeOfRow>,
}

#[derive(Debug, SurrealValue)]
struct NodeOfRow {
    id: RecordId,
    source: String,
}

impl StoredFacts {
    /// The facts of an object of this type; `nodes` is where its nodes are put.
    pub fn of_type<'a>(&'a self, stix_type: &'a str, nodes: &'a mut Vec<(Uuid, &'a str)>) -> ObjectFacts<'a> {
        nodes.extend(self.nodes.iter().map(|(id, source)| (*id, source.as_str())));
        ObjectFacts {
            stix_type,
            tlp: self.tlp,
            confidence: self.confidence,
            feeds: &self.feeds,
            nodes,
        }
    }
}

impl Store {
    /// The facts of an active node that is marked no higher than `highest`.
    pub async fn node_facts(
        &self,
        ws: Uuid,
        node: Uuid,
        highest: Tlp,
    ) -> Result<Option<StoredFacts>, DomainError> {
        let query = "SELECT tlp_rank, confidence, feeds, [{ id: id, source: source }] AS nodes FROM $id \
                     WHERE ws = $ws AND tlp_rank <= $highest AND status = 'active'";
        self.facts(query, ws, record("node", node), highest).await
    }

    /// The facts of an active relationship that is marked no higher than `highest`, as its ends are.
    pub async fn edge_facts(
        &self,
        ws: Uuid,
        edge: Uuid,
        highest: Tlp,
    ) -> Result<Option<StoredFacts>, DomainError> {
        let query = "SELECT tlp_rank, confidence, feeds, \
                     [{ id: in.id, source: in.source }, { id: out.id, source: out.source }] AS nodes FROM $id \
                     WHERE ws = $ws AND active = true AND tlp_rank <= $highest AND in.tlp_rank <= $highest \
                     AND out.tlp_rank <= $highest AND in.status = 'active' AND out.status = 'active'";
        self.facts(query, ws, record("edge", edge), highest).await
    }

    async fn facts(
        &self,
        query: &str,
        ws: Uuid,
        id: RecordId,
        highest: Tlp,
    ) -> Result<Option<StoredFacts>, DomainError> {
        let what = "reading an object failed";
        let statement = self.db.query(query.to_owned()).bind(("ws", ws)).bind(("id", id));
        let statement = statement.bind(("highest", i64::from(highest.rank())));
        let mut response = statement.await.map_err(failed(what))?;
        let row: Option<FactsRow> = response.take(0).map_err(failed(what))?;
        let facts = |row: FactsRow| {
            let nodes = row
                .nodes
                .into_iter()
                .map(|node| Ok((key(&node.id)?, node.source)));
            Ok(StoredFacts {
                tlp: tlp(row.tlp_rank)?,
                confidence: row.confidence,
                feeds: row.feeds.unwrap_or_default(),
                nodes: nodes.collect::<Result<_, DomainError>>()?,
            })
        };
        row.map(facts).transpose()
    }
}
