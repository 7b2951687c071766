//! Items under review: reading them, deciding about them, and marking them again when a marking is defined.

use chrono::{DateTime, Utc};
use serde_json::Value;
use surrealdb::types::{Bytes, SurrealValue};
use uuid::Uuid;

use super::batches::{OWN, UPDATE, one};
use super::memory;
use super::memory::MovedItem;
use super::rows::{FeedBatchRow, FeedItemRow, POSITIONS, item_id, support_id};
use crate::domain::audit::AuditEntry;
use crate::domain::error::DomainError;
use crate::domain::feed::{FeedItem, ItemId, ItemStatus, Tally};
use crate::domain::stix::marking::{DefinitionLevel, Markings, learn, level_of};
use crate::domain::tlp::Tlp;
use crate::store::connection::error::StoreError;
use crate::store::connection::retry::with_retry;
use crate::store::connection::tx::{CHUNK, WriteTx};
use crate::store::rows::{record, tlp, unpack};
use crate::store::{Store, failed};

/// Positions read at a time where few items may match: those of a thousand items, if all have the same marking.
const WINDOW: i64 = 1000 * POSITIONS;
const READING: &str = "reading items failed";
/// Bytes of objects that one list of items parses at most.
const LISTED: i64 = 1 << 20;
/// All fields, but not an object of more than 16 KiB: a list of items shows none, and reads them to find duplicates.
const SMALL: &str = "*, IF bytes <= 16384 THEN raw ELSE NONE END AS raw";

/// A reviewer's decision about an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemDecision {
    pub status: Option<ItemStatus>,
    pub resolved_tlp: Option<Tlp>,
}

impl ItemDecision {
    /// # Errors
    /// When nothing is decided, or `committed` is, which only a commit does.
    pub fn of(status: Option<ItemStatus>, resolved_tlp: Option<Tlp>) -> Result<Self, DomainError> {
        if status == Some(ItemStatus::Committed) {
            let rule = "must be one of pending, accepted, rejected; the batch's commit endpoint commits";
            return Err(DomainError::invalid("status", rule));
        }
        if status.is_none() && resolved_tlp.is_none() {
            return Err(DomainError::invalid(
                "status",
                "is required, unless resolved_tlp is given",
            ));
        }
        Ok(Self { status, resolved_tlp })
    }
}

/// A marking that a feed brought, and the rank of the level it states.
#[derive(Debug, SurrealValue)]
pub(super) struct StagedMarking {
    stix_id: String,
    states: Option<i64>,
    raw: Bytes,
}

/// Reads [`StagedMarking`]s by row id.
pub(super) const STAGED_MARKINGS: &str = "SELECT record::id(id)[2] AS stix_id, states, raw FROM $ids";

impl StagedMarking {
    /// The marking, unless its level can't be read.
    pub(super) fn into_known(self) -> Result<Option<(String, Option<Tlp>)>, DomainError> {
        let stated = self.states.map(tlp).transpose()?;
        let level = match level_of(&Value::Object(unpack(&self.raw)?)) {
            DefinitionLevel::Level(level) => stated.max(Some(level)),
            DefinitionLevel::Unreadable if stated.is_none() => return Ok(None),
            DefinitionLevel::Statement | DefinitionLevel::Unreadable => stated,
        };
        Ok(Some((self.stix_id, level)))
    }
}

impl Store {
    /// At most `limit` items after a position, in the order of their positions, with their objects as far as those are
    /// small. Items of one marking stand in the order in which they were received.
    pub async fn feed_items(
        &self,
        ws: Uuid,
        batch: Uuid,
        (after, limit): (Option<u64>, u32),
        status: Option<ItemStatus>,
        highest: Tlp,
    ) -> Result<Vec<FeedItem>, DomainError> {
        let rows: Vec<FeedItemRow> = self
            .item_rows(ws, batch, (after, limit), status, highest, SMALL)
            .await?;
        // A parsed object can take seventy times the memory of its text.
        let mut room = LISTED;
        let listed = rows.into_iter().map(|mut row| {
            room -= row.raw.as_ref().map_or(0, |_| row.bytes);
            row.raw = row.raw.filter(|_| room >= 0);
            row.into_item(batch, highest)
        });
        listed.collect()
    }

    /// One item with its object.
    pub async fn feed_item(
        &self,
        ws: Uuid,
        batch: Uuid,
        item: ItemId,
        highest: Tlp,
    ) -> Result<Option<FeedItem>, DomainError> {
        let Some(position) = item.position_in(batch) else {
            return Ok(None);
        };
        let after = position.checked_sub(1);
        let rows: Vec<FeedItemRow> = self.item_rows(ws, batch, (after, 1), None, highest, "*").await?;
        let row = rows.into_iter().next();
        let item_of = |row: FeedItemRow| row.into_item(batch, highest);
        let found = row.map(item_of).transpose()?;
        Ok(found.filter(|found| found.id == item))
    }

    /// Rows of items after a position, oldest first. Reads the batch window by window: the engine would read the whole
    /// range before it applies the conditions and the limit.
    pub(super) async fn item_rows<T: SurrealValue>(
        &self,
        ws: Uuid,
        batch: Uuid,
        (after, limit): (Option<u64>, u32),
        status: Option<ItemStatus>,
        highest: Tlp,
        fields: &str,
    ) -> Result<Vec<T>, DomainError> {
        let first = after.map_or(0, |after| after.saturating_add(1));
        let mut first = i64::try_from(first).unwrap_or(i64::MAX);
        let end = self.end_of_batch(ws, batch).await?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let window = i64::try_from(limit).unwrap_or(WINDOW).saturating_mul(POSITIONS);
        let (mut rows, mut window) = (Vec::new(), window.min(WINDOW));
        while first < end && rows.len() < limit {
            let last = first.saturating_add(window).min(end);
            let room = limit - rows.len();
            let query = format!(
                "SELECT {fields} FROM feed_item:[$ws, $batch, $first]..[$ws, $batch, $last] \
                 WHERE tlp_rank <= $highest AND ($status = NONE OR status = $status) LIMIT {room}"
            );
            let mut response = self
                .db
                .query(query)
                .bind(("ws", ws))
                .bind(("batch", batch))
                .bind(("first", first))
                .bind(("last", last))
                .bind(("highest", i64::from(highest.rank())))
                .bind(("status", status.map(|status| status.as_str().to_owned())))
                .await
                .map_err(failed(READING))?;
            let found: Vec<T> = response.take(0).map_err(failed(READING))?;
            rows.extend(found);
            (first, window) = (last, WINDOW);
        }
        Ok(rows)
    }

    /// The position of the next item of a batch.
    async fn end_of_batch(&self, ws: Uuid, batch: Uuid) -> Result<i64, DomainError> {
        let mut response = self
            .db
            .query("SELECT VALUE next_ord FROM $batch WHERE ws = $ws")
            .bind(("batch", record("feed_batch", batch)))
            .bind(("ws", ws))
            .await
            .map_err(failed(READING))?;
        let end: Option<i64> = response.take(0).map_err(failed(READING))?;
        Ok(end.unwrap_or(0))
    }

    /// Records a decision with its audit entry.
    ///
    /// # Errors
    /// `NotFound` for an item that does not exist for the caller, `Conflict` for a committed one,
    /// `Invalid` for a marking below the one that the object states.
    pub async fn decide_item(
        &self,
        ws: Uuid,
        (batch, item): (Uuid, ItemId),
        decision: ItemDecision,
        highest: Tlp,
        (now, audit): (DateTime<Utc>, &AuditEntry),
    ) -> Result<FeedItem, DomainError> {
        let position = item.position_in(batch).ok_or(DomainError::NotFound("item"))?;
        let position = i64::try_from(position).unwrap_or(i64::MAX);
        with_retry(|| async {
            let tx = self.begin().await?;
            let outcome = async {
                let id = record("feed_batch", batch);
                let mut batch_row: FeedBatchRow = one(&tx, ws, OWN, id, "item").await?;
                if !batch_row.is_visible(highest)? {
                    return Err(DomainError::NotFound("item").into());
                }
                let query = format!("SELECT * FROM $ids WHERE tlp_rank <= {}", highest.rank());
                let found: Vec<FeedItemRow> = tx.find(ws, &query, vec![item_id(ws, batch, position)]).await?;
                let mut row = found.into_iter().next().ok_or(DomainError::NotFound("item"))?;
                let before = row.cell()?;
                apply(&mut row, decision)?;
                let after = row.cell()?;
                let (mut tally, mut received) = (Tally::from_row(&batch_row.tally), batch_row.received()?);
                tally.transfer(before, after);
                if before.0 != after.0 {
                    received.move_item(before.0, after.0, row.size());
                    let moved = [MovedItem::of(&row, before.0, after.0)];
                    memory::follow(&tx, (ws, batch_row.source()?), &moved).await?;
                }
                batch_row.settle(tally, received, now)?;
                tx.write(UPDATE, vec![row.clone()]).await?;
                tx.write(UPDATE, vec![batch_row]).await?;
                tx.audit([audit]).await?;
                Ok(row.into_item(batch, highest)?)
            };
            let outcome = outcome.await;
            tx.finish(outcome).await
        })
        .await
        .map_err(|error: StoreError| error.into_domain("changing the item failed"))
    }

    /// The markings among these ids that the workspace, as far as a caller with this clearance knows, or the feed (or
    /// batch) `source` has, with the level each states.
    pub async fn feed_markings(
        &self,
        ws: Uuid,
        source: Uuid,
        (stix_ids, highest): (&[String], Tlp),
    ) -> Result<Markings, DomainError> {
        let what = "reading markings failed";
        let mut known = self.markings(ws, stix_ids, highest).await?;
        if stix_ids.is_empty() {
            return Ok(known);
        }
        for chunk in stix_ids.chunks(CHUNK) {
            let ids: Vec<_> = chunk.iter().map(|id| support_id(ws, source, id)).collect();
            let mut response = self
                .db
                .query(STAGED_MARKINGS)
                .bind(("ids", ids))
                .await
                .map_err(failed(what))?;
            let rows: Vec<StagedMarking> = response.take(0).map_err(failed(what))?;
            for row in rows {
                learn(&mut known, row.into_known()?);
            }
        }
        Ok(known)
    }
}

pub(super) async fn batch_row(tx: &WriteTx, ws: Uuid, batch: Uuid) -> Result<FeedBatchRow, StoreError> {
    let query = "SELECT * FROM $ids WHERE ws = $ws";
    let found = tx.find(ws, query, vec![record("feed_batch", batch)]).await?;
    Ok(found.into_iter().next().ok_or(DomainError::NotFound("batch"))?)
}

fn apply(row: &mut FeedItemRow, decision: ItemDecision) -> Result<(), DomainError> {
    if row.cell()?.1 == ItemStatus::Committed {
        return Err(DomainError::Conflict("the item is committed already".into()));
    }
    if let Some(status) = decision.status {
        row.status = status.as_str().into();
    }
    if let Some(level) = decision.resolved_tlp {
        let stated = row.stated_tlp.map(tlp).transpose()?;
        if let Some(stated) = stated.filter(|stated| level < *stated) {
            let rule = format!("must not be weaker than the marking that the object states ({stated})");
            return Err(DomainError::invalid("resolved_tlp", rule));
        }
        row.resolved_tlp = Some(i64::from(level.rank()));
        row.tlp_rank = i64::from(level.rank());
    }
    Ok(())
}
