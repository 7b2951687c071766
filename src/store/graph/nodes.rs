//! Reads nodes by id: for responses, exports and the search index.

use chrono::{DateTime, Utc};
use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use super::sessions::Withholding;
use crate::domain::error::DomainError;
use crate::domain::graph::correction::NodeCorrection;
use crate::domain::node::{KgNode, NodeStatus};
use crate::domain::session::NodeMarking;
use crate::domain::tlp::Tlp;
use crate::store::rows::{NodeRow, key, record, tlp};
use crate::store::{Store, failed};

/// A node with its internal fields.
#[derive(Debug, Clone)]
pub struct StoredNode {
    pub node: KgNode,
    /// The number of its last write in its workspace.
    pub rev: u64,
    /// The evidence record that holds its STIX object.
    pub stix_evidence: Option<Uuid>,
    /// The feeds that brought its versions.
    pub feeds: Vec<Uuid>,
    /// Whether it is a STIX object beside those that an ingest counts as nodes, and nothing else.
    pub is_context: bool,
    /// When it was last changed here, as far as an export shows it.
    pub changed_at: Option<DateTime<Utc>>,
    /// What was set by hand.
    pub correction: Option<NodeCorrection>,
}

/// A node withheld from export because one of its markings is not defined.
#[derive(Debug, Clone)]
pub struct WithheldNode {
    pub id: Uuid,
    /// The number of its last write in its workspace.
    pub rev: u64,
    pub is_active: bool,
    pub tlp: Tlp,
    /// The feeds that brought its versions.
    pub feeds: Vec<Uuid>,
}

#[derive(Debug, SurrealValue)]
struct MarkingRow {
    id: RecordId,
    tlp_rank: i64,
    status: String,
}

impl MarkingRow {
    fn into_marking(self) -> Result<NodeMarking, DomainError> {
        Ok(NodeMarking {
            id: key(&self.id)?,
            tlp: tlp(self.tlp_rank)?,
            is_active: self.status == NodeStatus::Active.as_str(),
        })
    }
}

impl WithheldNode {
    fn of(row: NodeRow) -> Result<Self, DomainError> {
        Ok(Self {
            id: key(&row.id)?,
            rev: u64::try_from(row.rev).unwrap_or(0),
            is_active: row.status == NodeStatus::Active.as_str(),
            tlp: tlp(row.tlp_rank)?,
            feeds: row.feeds.unwrap_or_default(),
        })
    }
}

impl StoredNode {
    pub(in crate::store) fn from_row(row: NodeRow, highest: Tlp) -> Result<Self, DomainError> {
        Ok(Self {
            rev: u64::try_from(row.rev).unwrap_or(0),
            stix_evidence: row.stix_evidence,
            changed_at: row.changed_at,
            is_context: row.context == Some(true),
            feeds: row.feeds.clone().unwrap_or_default(),
            correction: row.correction()?,
            node: row.into_node(highest)?,
        })
    }
}

/// The visible statuses.
pub(super) fn statuses(include_rejected: bool) -> Vec<String> {
    let mut shown = vec![NodeStatus::Active];
    if include_rejected {
        shown.push(NodeStatus::Rejected);
    }
    shown.iter().map(NodeStatus::to_string).collect()
}

impl Store {
    /// The nodes with these ids that belong to the workspace, are marked no higher than `highest` and have
    /// one of the statuses; in no particular order.
    pub async fn nodes_by_id(
        &self,
        ws: Uuid,
        ids: &[Uuid],
        highest: Tlp,
        include_rejected: bool,
    ) -> Result<Vec<StoredNode>, DomainError> {
        let rows = self.shown_rows(ws, ids, highest, include_rejected).await?;
        rows.into_iter()
            .map(|row| StoredNode::from_row(row, highest))
            .collect()
    }

    /// The markings of those of these nodes that belong to the workspace, are marked no higher than `highest`, and are
    /// active or rejected; in no particular order.
    pub async fn node_markings(
        &self,
        ws: Uuid,
        ids: &[Uuid],
        highest: Tlp,
    ) -> Result<Vec<NodeMarking>, DomainError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<_> = ids.iter().map(|id| record("node", *id)).collect();
        let rows: Vec<MarkingRow> = self
            .rows_by_id(
                "SELECT id, tlp_rank, status FROM $ids \
                 WHERE ws = $ws AND tlp_rank <= $highest AND status IN $statuses",
                ids,
                &[
                    ("ws", ws.into_value()),
                    ("highest", i64::from(highest.rank()).into_value()),
                    ("statuses", statuses(true).into_value()),
                ],
            )
            .await
            .map_err(failed("reading nodes failed"))?;
        rows.into_iter().map(MarkingRow::into_marking).collect()
    }

    /// The exportable nodes among those `nodes_by_id` returns, and those withheld.
    pub async fn nodes_to_export(
        &self,
        ws: Uuid,
        ids: &[Uuid],
        highest: Tlp,
        include_rejected: bool,
    ) -> Result<Withholding<Vec<StoredNode>, Vec<WithheldNode>>, DomainError> {
        let rows = self.shown_rows(ws, ids, highest, include_rejected).await?;
        // One read for both: the engine takes as long for a field as for a row.
        let (held, leaving): (Vec<NodeRow>, Vec<NodeRow>) =
            rows.into_iter().partition(|row| row.held_by.is_some());
        let leaving = leaving
            .into_iter()
            .map(|row| StoredNode::from_row(row, highest))
            .collect::<Result<_, _>>()?;
        let held = held.into_iter().map(WithheldNode::of).collect::<Result<_, _>>()?;
        Ok(Withholding { leaving, held })
    }

    /// The rows of those of these nodes that a reader may see.
    async fn shown_rows(
        &self,
        ws: Uuid,
        ids: &[Uuid],
        highest: Tlp,
        include_rejected: bool,
    ) -> Result<Vec<NodeRow>, DomainError> {
        let rows = self
            .rows_by_id(
                "SELECT * FROM $ids WHERE ws = $ws AND tlp_rank <= $highest AND status IN $statuses",
                ids.iter().map(|id| record("node", *id)).collect(),
                &[
                    ("ws", ws.into_value()),
                    ("highest", i64::from(highest.rank()).into_value()),
                    ("statuses", statuses(include_rejected).into_value()),
                ],
            )
            .await;
        rows.map_err(failed("reading nodes failed"))
    }

    /// The nodes of a workspace with these ids, whatever their marking and status: for indexing only.
    pub async fn nodes_to_index(&self, ws: Uuid, ids: &[Uuid]) -> Result<Vec<StoredNode>, DomainError> {
        let rows: Vec<NodeRow> = self
            .rows_by_id(
                "SELECT * FROM $ids WHERE ws = $ws",
                ids.iter().map(|id| record("node", *id)).collect(),
                &[("ws", ws.into_value())],
            )
            .await
            .map_err(failed("reading nodes for the index failed"))?;
        rows.into_iter()
            .map(|row| StoredNode::from_row(row, Tlp::Red))
            .collect()
    }
}
