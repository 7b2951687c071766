//! The review's share of a commit: reviewers' markings, and the new status of the items.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use super::connect::StoreError;
use super::feed_batches::UPDATE;
use super::feed_items::batch_row;
use super::feed_rows::item_id;
use super::rows::{parse, tlp};
use super::tx::WriteTx;
use crate::domain::error::DomainError;
use crate::domain::feed::{ItemStatus, Tally};
use crate::domain::stix::ingest::StixPlan;
use crate::domain::tlp::Tlp;

/// An item that is committed, as it was when it was chosen.
#[derive(Debug, Clone)]
pub struct ReviewedItem {
    pub position: i64,
    pub stix_id: String,
    pub modified: DateTime<Utc>,
    /// The reviewer's marking.
    pub resolved_tlp: Option<Tlp>,
    /// The marking that was shown.
    pub tlp: Tlp,
    pub status: ItemStatus,
}

/// The items of a batch that are committed together.
#[derive(Debug, Clone)]
pub struct Review {
    pub batch: Uuid,
    pub items: Vec<ReviewedItem>,
}

/// What became of the items.
#[derive(Debug, Clone, Default)]
pub struct ReviewOutcome {
    pub committed: u64,
    /// Positions of relationships that wait for an end.
    pub waiting: Vec<i64>,
}

/// Where the objects of a bundle come from.
#[derive(Debug, Clone, Default)]
pub struct StixOrigin {
    /// The feed that brought them.
    pub feed: Option<Uuid>,
    /// The items that they were staged as.
    pub review: Option<Review>,
    /// The highest marking that the sender may see. The result counts rows marked above it as if they did not exist.
    pub highest: Option<Tlp>,
    /// The nodes and edges of the bundle that may exist already; `None` if any may. The others are inserted without being
    /// read first.
    pub known: Option<HashSet<Uuid>>,
}

impl From<Option<Uuid>> for StixOrigin {
    fn from(feed: Option<Uuid>) -> Self {
        Self {
            feed,
            ..Self::default()
        }
    }
}

#[derive(Debug, SurrealValue)]
struct Cell {
    position: i64,
    status: String,
    tlp_rank: i64,
}

#[derive(Debug, Clone, SurrealValue)]
struct NewStatus {
    id: RecordId,
    status: String,
}

impl Review {
    /// Applies the markings of the items to the versions that they are of. No object gets a marking below the one that it
    /// states, and none without a reviewer's decision one below what was shown.
    pub fn mark(&self, plan: &mut StixPlan) {
        let items: HashMap<_, _> = self
            .items
            .iter()
            .map(|item| ((item.stix_id.as_str(), item.modified), item))
            .collect();
        for node in &mut plan.nodes {
            if let Some(item) = items.get(&(node.stix_id.as_str(), node.modified)) {
                node.tlp = item.level(node.tlp, node.stated, &node.held_by);
                // A reviewer's marking is one that the version states.
                node.stated = node.stated.max(item.resolved_tlp.map(|_| node.tlp));
            }
        }
        for edge in &mut plan.relationships {
            if let Some(item) = items.get(&(edge.stix_id.as_str(), edge.modified)) {
                edge.tlp = item.level(edge.tlp, edge.stated, &edge.held_by);
                edge.stated = edge.stated.max(item.resolved_tlp.map(|_| edge.tlp));
            }
        }
    }

    /// Writes the items' status: committed, or still accepted for relationships without an end.
    pub(super) async fn settle(
        &self,
        tx: &WriteTx,
        ws: Uuid,
        unjoined: &HashSet<String>,
        now: DateTime<Utc>,
    ) -> Result<ReviewOutcome, StoreError> {
        let mut batch = batch_row(tx, ws, self.batch).await?;
        let ids: Vec<_> = self
            .items
            .iter()
            .map(|item| item_id(ws, self.batch, item.position))
            .collect();
        let cells: Vec<Cell> = tx
            .find(
                ws,
                "SELECT record::id(id)[2] AS position, status, tlp_rank FROM $ids",
                ids.clone(),
            )
            .await?;
        let cells: HashMap<i64, Cell> = cells.into_iter().map(|cell| (cell.position, cell)).collect();
        let mut tally = Tally::from_row(&batch.tally);
        let (mut reviewed, mut rows) = (ReviewOutcome::default(), Vec::new());
        for (item, id) in self.items.iter().zip(ids) {
            let cell = cells.get(&item.position).ok_or(DomainError::NotFound("item"))?;
            let (level, before): (Tlp, ItemStatus) = (tlp(cell.tlp_rank)?, parse(&cell.status)?);
            if (level, before) != (item.tlp, item.status) {
                let rule = "an item was changed at the same time: read the batch and commit again";
                return Err(DomainError::Conflict(rule.into()).into());
            }
            let after = if unjoined.contains(&item.stix_id) {
                reviewed.waiting.push(item.position);
                ItemStatus::Accepted
            } else {
                reviewed.committed += 1;
                ItemStatus::Committed
            };
            tally.transfer((level, before), (level, after));
            rows.push(NewStatus {
                id,
                status: after.as_str().into(),
            });
        }
        let received = batch.received()?;
        batch.settle(tally, received, now)?;
        tx.write(
            "FOR $row IN $rows { UPDATE $row.id SET status = $row.status RETURN NONE }",
            rows,
        )
        .await?;
        tx.write(UPDATE, vec![batch]).await?;
        Ok(reviewed)
    }
}

impl ReviewedItem {
    fn level(&self, planned: Tlp, stated: Option<Tlp>, held_by: &[String]) -> Tlp {
        match self.resolved_tlp {
            // What an undefined marking forbids is unknown.
            Some(resolved) if held_by.is_empty() => resolved.max(stated.unwrap_or(Tlp::White)),
            Some(resolved) => resolved.max(planned),
            None => planned.max(self.tlp),
        }
    }
}
