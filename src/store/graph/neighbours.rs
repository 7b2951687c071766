//! Neighbours of a node. Every query filters by workspace, marking and status of the relationship and of both ends
//! before it ranks and limits, so that hidden rows never displace visible ones.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use super::narrowing::{conditions, parameters};
use super::nodes::statuses;
use crate::domain::detail::{Direction, NodeRelationship, OtherEnd};
use crate::domain::error::DomainError;
use crate::domain::narrowing::Narrowing;
use crate::domain::node::{NodeStatus, NodeType};
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

/// A row of a relationship that has several.
#[derive(Debug, SurrealValue)]
struct RelationshipVersion {
    id: RecordId,
    beside: Option<RecordId>,
    tlp_rank: i64,
    modified: Option<DateTime<Utc>>,
}

#[derive(Debug, SurrealValue)]
struct NeighbourEdgeRow {
    id: RecordId,
    relationship: String,
    confidence: f64,
    tlp_rank: i64,
    active: bool,
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
                 AND status IN $statuses AND node_type IN $types AND (context = NONE OR node_type = 'osint'){}; \
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

    /// A page of the relationships of nodes that are one thing, the most confident first, and whether there are more: those in
    /// force and, only if asked for, those that were rejected by hand.
    /// Of several versions of one, it holds what an export would. The caller must check access to the nodes themselves.
    pub async fn relationships_of(
        &self,
        ws: Uuid,
        nodes: &[Uuid],
        (highest, include_rejected): (Tlp, bool),
        page: Page,
    ) -> Result<(Vec<NodeRelationship>, bool), DomainError> {
        let (mut rows, versions) = self
            .relationship_rows(ws, nodes, (highest, include_rejected), (page, &[]))
            .await?;
        let others = superseded(versions)?;
        if !others.is_empty() {
            let page = (page, others.as_slice());
            (rows, _) = self
                .relationship_rows(ws, nodes, (highest, include_rejected), page)
                .await?;
        }
        let more = rows.len() > page.limit as usize;
        rows.truncate(page.limit as usize);
        let rows = rows.into_iter().map(NeighbourEdgeRow::into_relationship);
        Ok((rows.collect::<Result<_, _>>()?, more))
    }

    /// A page of these relationships without some, and a row more if there are more. And the rows of those
    /// relationships that have several.
    async fn relationship_rows(
        &self,
        ws: Uuid,
        nodes: &[Uuid],
        (highest, include_rejected): (Tlp, bool),
        (page, without): (Page, &[RecordId]),
    ) -> Result<(Vec<NeighbourEdgeRow>, Vec<RelationshipVersion>), DomainError> {
        let fields = "id, relationship, confidence, tlp_rank, modified, beside, active";
        let in_force = match include_rejected {
            true => "(active = true OR corrected != NONE)",
            false => "active = true",
        };
        let query = format!(
            "LET $outgoing = SELECT {fields}, true AS outgoing, out AS other \
                 FROM $nodes->edge WHERE ws = $ws AND {in_force} AND tlp_rank <= $highest \
                 AND (in = out OR out NOT IN $nodes); \
             LET $incoming = SELECT {fields}, false AS outgoing, in AS other \
                 FROM $nodes<-edge WHERE ws = $ws AND {in_force} AND tlp_rank <= $highest \
                 AND in NOT IN $nodes; \
             LET $edges = SELECT * FROM array::concat($outgoing, $incoming) WHERE \
                 other.ws = $ws AND other.tlp_rank <= $highest AND other.status IN $statuses; \
             SELECT id, relationship, confidence, tlp_rank, active, outgoing, other, other.name AS other_name, \
                 other.node_type AS other_type, other.tlp_rank AS other_rank FROM $edges \
                 WHERE id NOT IN $without ORDER BY confidence DESC, id LIMIT {} START {}; \
             LET $first = SELECT VALUE beside FROM $edges WHERE beside != NONE; \
             SELECT id, beside, tlp_rank, modified FROM $edges WHERE beside != NONE OR id IN $first",
            u64::from(page.limit) + 1,
            page.offset
        );
        let mut response = self
            .db
            .query(query)
            .bind((
                "nodes",
                nodes.iter().map(|id| record("node", *id)).collect::<Vec<_>>(),
            ))
            .bind(("ws", ws))
            .bind(("highest", i64::from(highest.rank())))
            .bind(("statuses", statuses(include_rejected)))
            .bind(("without", without.to_vec()))
            .await
            .map_err(failed(READ))?;
        let rows: Vec<NeighbourEdgeRow> = response.take(3).map_err(failed(READ))?;
        let versions: Vec<RelationshipVersion> = response.take(5).map_err(failed(READ))?;
        Ok((rows, versions))
    }
}

/// The rows that don't stand for their relationship: of each all but the strictest, and the newest of those.
fn superseded(mut versions: Vec<RelationshipVersion>) -> Result<Vec<RecordId>, DomainError> {
    versions.sort_by(|one, other| {
        let order = |version: &RelationshipVersion| (version.tlp_rank, version.modified);
        order(other).cmp(&order(one))
    });
    let mut standing = HashSet::new();
    let mut others = Vec::new();
    for version in versions {
        let first = version.beside.as_ref().unwrap_or(&version.id);
        if !standing.insert(key(first)?) {
            others.push(version.id);
        }
    }
    Ok(others)
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
            status: (!self.active).then_some(NodeStatus::Rejected),
        })
    }
}
