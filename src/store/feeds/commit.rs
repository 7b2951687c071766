//! The review's share of a commit: reviewers' markings, and the new status of the items.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use super::batches::UPDATE;
use super::items::batch_row;
use super::rows::{FeedItemRow, item_id};
use crate::domain::error::DomainError;
use crate::domain::feed::{ItemStatus, Tally};
use crate::domain::stix::ingest::{EarlierVersions, StixPlan, VersionMarking};
use crate::domain::stix::marking::{SilentReport, SilentVersion};
use crate::domain::tlp::Tlp;
use crate::store::connection::error::StoreError;
use crate::store::connection::tx::WriteTx;
use crate::store::rows::{parse, tlp};

/// An item that is committed, as it was when it was chosen.
#[derive(Debug, Clone)]
pub struct ReviewedItem {
    pub position: i64,
    pub stix_id: String,
    pub modified: DateTime<Utc>,
    /// Whether the object states no time of its own: what came last is its newest version then.
    pub is_undated: bool,
    /// The part of its marking that the object states, or versions that came with it.
    pub stated: Option<Tlp>,
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
    /// The rows of objects that turned out to be nodes of other sources, by the id that the object's would have.
    pub joins: HashMap<Uuid, Uuid>,
    /// The number of the last write when these were found.
    pub after: u64,
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

impl FeedItemRow {
    /// What a commit needs to know of the item.
    pub(super) fn into_reviewed(self) -> Result<ReviewedItem, DomainError> {
        let (tlp_seen, status) = self.cell()?;
        Ok(ReviewedItem {
            position: self.position()?,
            stated: self.stated_tlp.map(tlp).transpose()?,
            resolved_tlp: self.resolved_tlp.map(tlp).transpose()?,
            modified: self.modified,
            is_undated: self.says.is_some(),
            tlp: tlp_seen,
            status,
            stix_id: self.stix_id,
        })
    }
}

impl ReviewedItem {
    /// The order of the versions of one object.
    fn rank(&self) -> (DateTime<Utc>, Option<i64>, Tlp) {
        (self.modified, self.is_undated.then_some(self.position), self.tlp)
    }
}

impl Review {
    /// Of each object, by its id, the item that is written: the newest version, and of two texts of one version the one
    /// with the stricter marking.
    pub fn newest(&self) -> HashMap<&str, &ReviewedItem> {
        let mut newest = HashMap::new();
        for item in &self.items {
            let known = newest.entry(item.stix_id.as_str()).or_insert(item);
            if item.rank() > known.rank() {
                *known = item;
            }
        }
        newest
    }

    /// Applies the markings of the items to the versions that they are of. No object gets a marking below the one that it
    /// states, and none without a reviewer's decision one below what was shown. Versions that are not written count as
    /// if they had been committed before.
    pub fn mark(&self, plan: &mut StixPlan) {
        let (newest, mut earlier) = (self.newest(), EarlierVersions::default());
        for item in &self.items {
            if newest
                .get(item.stix_id.as_str())
                .is_some_and(|newest| newest.position != item.position)
            {
                earlier.note(&item.stix_id, item.version());
            }
        }
        let item_of = |stix_id: &str, modified: DateTime<Utc>| {
            let item = newest.get(stix_id).copied();
            item.filter(|item| item.modified == modified)
        };
        let mut marked_nodes = HashMap::new();
        for node in &mut plan.nodes {
            let item = match node.undated {
                true => newest.get(node.stix_id.as_str()).copied(),
                false => item_of(&node.stix_id, node.modified),
            };
            if let Some(item) = item {
                let planned = (node.tlp, node.stated, node.earlier);
                let marked = item.marking(planned, &node.held_by, &earlier, &mut plan.silent);
                (node.tlp, node.stated, node.earlier) = marked;
            }
            if node.is_context() {
                marked_nodes.insert(node.stix_id.clone(), (node.tlp, node.stated, node.earlier));
            }
        }
        for edge in &mut plan.relationships {
            if edge.is_reference() {
                if let Some(marked) = marked_nodes.get(&edge.source_ref) {
                    (edge.tlp, edge.stated, edge.earlier) = *marked;
                }
            } else if let Some(item) = item_of(&edge.stix_id, edge.modified) {
                let planned = (edge.tlp, edge.stated, edge.earlier);
                let marked = item.marking(planned, &edge.held_by, &earlier, &mut plan.silent);
                (edge.tlp, edge.stated, edge.earlier) = marked;
            }
        }
    }

    /// Writes the items' status: committed, or still accepted for relationships without an end.
    pub(in crate::store) async fn settle(
        &self,
        tx: &WriteTx,
        ws: Uuid,
        unjoined: &HashSet<String>,
        now: DateTime<Utc>,
    ) -> Result<ReviewOutcome, StoreError> {
        let mut batch = batch_row(tx, ws, self.batch).await?;
        let cells = self.cells(tx, ws).await?;
        let mut tally = Tally::from_row(&batch.tally);
        let (mut reviewed, mut rows) = (ReviewOutcome::default(), Vec::new());
        for item in &self.items {
            let cell = cells.get(&item.position).ok_or(DomainError::NotFound("item"))?;
            if *cell != (item.tlp, item.status) {
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
            tally.transfer(*cell, (item.tlp, after));
            rows.push(NewStatus {
                id: item_id(ws, self.batch, item.position),
                status: after.as_str().into(),
            });
        }
        let received = batch.received()?;
        batch.settle(tally, received, now)?;
        let query = "FOR $row IN $rows { UPDATE $row.id SET status = $row.status RETURN NONE }";
        tx.write(query, rows).await?;
        tx.write(UPDATE, vec![batch]).await?;
        Ok(reviewed)
    }

    /// Marking and status of the items as they are now, by position.
    async fn cells(&self, tx: &WriteTx, ws: Uuid) -> Result<HashMap<i64, (Tlp, ItemStatus)>, StoreError> {
        let ids = self
            .items
            .iter()
            .map(|item| item_id(ws, self.batch, item.position));
        let query = "SELECT record::id(id)[2] AS position, status, tlp_rank FROM $ids";
        let cells: Vec<Cell> = tx.find(ws, query, ids.collect()).await?;
        let cells = cells.into_iter().map(|cell| {
            let now = (tlp(cell.tlp_rank)?, parse(&cell.status)?);
            Ok((cell.position, now))
        });
        cells.collect()
    }
}

/// The marking of a planned version: its level, what it states, and what versions that come with it state.
type PlannedMarking = (Tlp, Option<Tlp>, Option<Tlp>);

impl ReviewedItem {
    /// How the item's version is marked. What a reviewer decides counts as its own statement.
    fn version(&self) -> VersionMarking {
        VersionMarking {
            modified: self.modified,
            tlp: self.tlp,
            stated: self.stated.max(self.resolved_tlp),
        }
    }

    /// The marking with which the item is written.
    fn marking(
        &self,
        (planned, stated, along): PlannedMarking,
        held_by: &[String],
        earlier: &EarlierVersions,
        silent: &mut SilentReport,
    ) -> PlannedMarking {
        if let Some(resolved) = self.resolved_tlp {
            let floor = if held_by.is_empty() {
                stated.max(self.stated).unwrap_or(Tlp::White)
            } else {
                // What an undefined marking forbids is unknown.
                planned
            };
            let level = resolved.max(floor);
            return (level, stated.max(self.stated).max(Some(resolved)), None);
        }
        let tlp = planned.max(self.tlp);
        let modified = self.modified;
        let others = earlier.of(
            &self.stix_id,
            VersionMarking {
                modified,
                tlp,
                stated,
            },
        );
        let level = tlp.max(others.tlp.unwrap_or(Tlp::White));
        let version = SilentVersion {
            before: tlp,
            planned: tlp,
            level,
        };
        silent.note(&self.stix_id, version);
        (level, stated, along.max(self.stated).max(others.stated))
    }
}
