//! What the list of changes is about, as far as its reader may see it now.

use std::collections::HashMap;

use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use crate::domain::error::DomainError;
use crate::domain::node::{NodeStatus, NodeType};
use crate::domain::tlp::Tlp;
use crate::store::rows::{key, parse, record};
use crate::store::{Store, failed};

/// A node that changed, as it is now.
#[derive(Debug, Clone)]
pub struct NodeOfChange {
    pub name: String,
    pub node_type: NodeType,
    pub source: String,
    pub status: NodeStatus,
}

/// A relationship that changed, as it is now.
#[derive(Debug, Clone)]
pub struct EdgeOfChange {
    pub relationship: String,
    pub source: Uuid,
    pub target: Uuid,
    /// Whether one of its ends is rejected.
    pub of_rejected: bool,
}

#[derive(Debug, SurrealValue)]
struct NodeRow {
    id: RecordId,
    name: String,
    node_type: String,
    source: String,
    status: String,
}

#[derive(Debug, SurrealValue)]
struct EdgeRow {
    id: RecordId,
    relationship: String,
    source: RecordId,
    target: RecordId,
    source_status: String,
    target_status: String,
}

const READ: &str = "reading what changed failed";

impl Store {
    /// Those of these nodes of the workspace that are marked no higher than `highest`, whatever their status.
    pub async fn nodes_of_changes(
        &self,
        ws: Uuid,
        ids: &[Uuid],
        highest: Tlp,
    ) -> Result<HashMap<Uuid, NodeOfChange>, DomainError> {
        let rows: Vec<NodeRow> = self
            .rows_by_id(
                "SELECT id, name, node_type, source, status FROM $ids WHERE ws = $ws AND tlp_rank <= $highest",
                ids.iter().map(|id| record("node", *id)).collect(),
                &[
                    ("ws", ws.into_value()),
                    ("highest", i64::from(highest.rank()).into_value()),
                ],
            )
            .await
            .map_err(failed(READ))?;
        let rows = rows.into_iter().map(|row| {
            let node = NodeOfChange {
                node_type: parse(&row.node_type)?,
                status: parse(&row.status)?,
                name: row.name,
                source: row.source,
            };
            Ok((key(&row.id)?, node))
        });
        rows.collect()
    }

    /// Those of these relationships of the workspace that are marked no higher than `highest`, as both their ends are, in
    /// force or not.
    pub async fn edges_of_changes(
        &self,
        ws: Uuid,
        ids: &[Uuid],
        highest: Tlp,
    ) -> Result<HashMap<Uuid, EdgeOfChange>, DomainError> {
        let rows: Vec<EdgeRow> = self
            .rows_by_id(
                "SELECT id, relationship, in AS source, out AS target, in.status AS source_status, \
                 out.status AS target_status FROM $ids WHERE ws = $ws AND tlp_rank <= $highest \
                 AND in.tlp_rank <= $highest AND out.tlp_rank <= $highest",
                ids.iter().map(|id| record("edge", *id)).collect(),
                &[
                    ("ws", ws.into_value()),
                    ("highest", i64::from(highest.rank()).into_value()),
                ],
            )
            .await
            .map_err(failed(READ))?;
        let rejected = NodeStatus::Rejected.as_str();
        let rows = rows.into_iter().map(|row| {
            let edge = EdgeOfChange {
                source: key(&row.source)?,
                target: key(&row.target)?,
                of_rejected: row.source_status == rejected || row.target_status == rejected,
                relationship: row.relationship,
            };
            Ok((key(&row.id)?, edge))
        });
        rows.collect()
    }
}
