//! Neighbours of a node. Every query filters by workspace, marking and status of the relationship and of both ends
//! before it ranks and limits, so that hidden rows never displace visible ones.

use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use super::narrowing::{conditions, parameters};
use super::nodes::statuses;
use crate::domain::detail::{Direction, NodeRelationship, OtherEnd};
use crate::domain::error::DomainError;
use crate::domain::narrowing::Narrowing;
use crate::domain::node::NodeType;
use crate::domain::tlp::Tlp;
use crate::store::rows::{key, parse, record, tlp};
use crate::store::{Store, failed};

/// Neighbours of a set of nodes.
#[derive(Debug, Default)]
pub struct Neighbours {
    /// The most confident ones, best first.
    pub best: Vec<Uuid>,
    /// All of them, unordered.
    pub all: Vec<Uuid>,
}

/// Which neighbours to return.
#[derive(Debug, Clone, Copy)]
pub struct NeighbourQuery<'a> {
    pub highest: Tlp,
    pub include_rejected: bool,
    /// Any of these node types.
    pub types: &'a [NodeType],
    pub narrowing: &'a Narrowing,
    /// Number of best neighbours.
    pub best: usize,
}

/// A page of a node's relationships.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    pub limit: u32,
    pub offset: u32,
}

#[derive(Debug, SurrealValue)]
struct RankedRow {
    id: RecordId,
}

#[derive(Debug, SurrealValue)]
struct NeighbourEdgeRow {
    id: RecordId,
    relationship: String,
    confidence: f64,
    tlp_rank: i64,
    outgoing: bool,
    other: RecordId,
    other_name: String,
    other_type: String,
    other_rank: i64,
}

const READ: &str = "reading relationships failed";

impl Store {
    /// The nodes at the other end of these nodes' active relationships.
    pub async fn neighbours(
        &self,
        ws: Uuid,
        nodes: &[Uuid],
        wanted: NeighbourQuery<'_>,
    ) -> Result<Neighbours, DomainError> {
        if nodes.is_empty() {
            return Ok(Neighbours::default());
        }
        let ids: Vec<_> = nodes.iter().map(|id| record("node", *id)).collect();
        let types: Vec<String> = wanted.types.iter().map(|kind| kind.to_string()).collect();
        let query = format!(
            "LET $seen = SELECT VALUE id FROM $ids \
                 WHERE ws = $ws AND tlp_rank <= $highest AND status IN $statuses; \
             LET $targets = SELECT VALUE out FROM $seen->edge \
                 WHERE ws = $ws AND active = true AND tlp_rank <= $highest; \
             LET $sources = SELECT VALUE in FROM $seen<-edge \
                 WHERE ws = $ws AND active = true AND tlp_rank <= $highest; \
             LET $ends = array::distinct(array::concat($targets, $sources)); \
             LET $near = SELECT id, confidence, name FROM $ends WHERE ws = $ws AND tlp_rank <= $highest \
                 AND status IN $statuses AND node_type IN $types{}; \
             SELECT id, confidence, name FROM $near ORDER BY confidence DESC, name, id LIMIT {}; \
             SELECT id FROM $near",
            conditions(wanted.narrowing, ""),
            wanted.best
        );
        let mut statement = self.db.query(query);
        for parameter in parameters(wanted.narrowing) {
            statement = statement.bind(parameter);
        }
        let mut response = statement
            .bind(("ids", ids))
            .bind(("ws", ws))
            .bind(("highest", i64::from(wanted.highest.rank())))
            .bind(("statuses", statuses(wanted.include_rejected)))
            .bind(("types", types))
            .await
            .map_err(failed(READ))?;
        let best: Vec<RankedRow> = response.take(5).map_err(failed(READ))?;
        let all: Vec<RankedRow> = response.take(6).map_err(failed(READ))?;
        let ids = |rows: Vec<RankedRow>| rows.iter().map(|row| key(&row.id)).collect::<Result<_, _>>();
        Ok(Neighbours {
            best: ids(best)?,
            all: ids(all)?,
        })
    }

    /// A page of a node's active relationships, the most confident first, and whether there are more. The caller must
    /// check access to the node itself.
    pub async fn relationships_of(
        &self,
        ws: Uuid,
        node: Uuid,
        (highest, include_rejected): (Tlp, bool),
        page: Page,
    ) -> Result<(Vec<NodeRelationship>, bool), DomainError> {
        // One row more than the page tells whether there are more.
        let query = format!(
            "LET $outgoing = SELECT id, relationship, confidence, tlp_rank, true AS outgoing, out AS other \
                 FROM $node->edge WHERE ws = $ws AND active = true AND tlp_rank <= $highest; \
             LET $incoming = SELECT id, relationship, confidence, tlp_rank, false AS outgoing, in AS other \
                 FROM $node<-edge WHERE ws = $ws AND active = true AND tlp_rank <= $highest AND in != $node; \
             LET $edges = array::concat($outgoing, $incoming); \
             SELECT id, relationship, confidence, tlp_rank, outgoing, other, other.name AS other_name, \
                 other.node_type AS other_type, other.tlp_rank AS other_rank FROM $edges \
                 WHERE other.ws = $ws AND other.tlp_rank <= $highest AND other.status IN $statuses \
                 ORDER BY confidence DESC, id LIMIT {} START {}",
            u64::from(page.limit) + 1,
            page.offset
        );
        let mut response = self
            .db
            .query(query)
            .bind(("node", record("node", node)))
            .bind(("ws", ws))
            .bind(("highest", i64::from(highest.rank())))
            .bind(("statuses", statuses(include_rejected)))
            .await
            .map_err(failed(READ))?;
        let mut rows: Vec<NeighbourEdgeRow> = response.take(3).map_err(failed(READ))?;
        let more = rows.len() > page.limit as usize;
        rows.truncate(page.limit as usize);
        let rows = rows.into_iter().map(NeighbourEdgeRow::into_relationship);
        Ok((rows.collect::<Result<_, _>>()?, more))
    }
}

impl NeighbourEdgeRow {
    fn into_relationship(self) -> Result<NodeRelationship, DomainError> {
        Ok(NodeRelationship {
            id: key(&self.id)?,
            relationship_type: self.relationship,
            direction: if self.outgoing {
                Direction::Outgoing
            } else {
                Direction::Incoming
            },
            node: OtherEnd {
                id: key(&self.other)?,
                name: self.other_name,
                node_type: parse(&self.other_type)?,
                tlp: tlp(self.other_rank)?,
            },
            confidence: self.confidence,
            tlp: tlp(self.tlp_rank)?,
        })
    }
}
