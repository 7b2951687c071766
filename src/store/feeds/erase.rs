//! Items of threat feeds that are erased objects, or lead to them.

use std::collections::{BTreeMap, HashSet};

use chrono::{DateTime, Utc};
use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use super::batches::{OWN, UPDATE, UPSERT};
use super::memory::object_id;
use super::rows::{FeedBatchRow, FeedRow, FeedWaitingRow, support_id};
use crate::domain::error::DomainError;
use crate::domain::feed::Tally;
use crate::domain::tlp::Tlp;
use crate::store::connection::error::StoreError;
use crate::store::connection::tx::WriteTx;
use crate::store::rows::{parse, record, tlp};
use crate::store::{Store, failed};

#[derive(Debug, SurrealValue)]
struct FoundItem {
    id: RecordId,
    batch: Uuid,
    position: i64,
    stix_id: String,
    says: Option<Uuid>,
    tlp_rank: i64,
    status: String,
    held_by: Option<Vec<String>>,
}

impl Store {
    /// The items that are one of these objects, or a relationship of one.
    pub(in crate::store) async fn items_of_objects(
        &self,
        ws: Uuid,
        stix_ids: &HashSet<String>,
    ) -> Result<Vec<RecordId>, DomainError> {
        let what = "reading the items of threat feeds failed";
        if stix_ids.is_empty() {
            return Ok(Vec::new());
        }
        let query = "SELECT VALUE id FROM feed_item:[$ws, $first]..=[$ws, $last, $end] \
                     WHERE stix_id IN $objects OR source_ref IN $objects OR target_ref IN $objects";
        let statement = self.db.query(query).bind(("ws", ws)).bind(("end", i64::MAX));
        let statement = statement.bind(("first", Uuid::nil())).bind(("last", Uuid::max()));
        let objects: Vec<String> = stix_ids.iter().cloned().collect();
        let mut response = statement.bind(("objects", objects)).await.map_err(failed(what))?;
        response.take(0).map_err(failed(what))
    }
}

/// Removes these items, with what their feeds remember of them; returns how many are marked no higher than `highest`.
pub(in crate::store) async fn erase_items(
    tx: &WriteTx,
    ws: Uuid,
    (ids, highest): (Vec<RecordId>, Tlp),
    now: DateTime<Utc>,
) -> Result<u64, StoreError> {
    let query = "SELECT id, record::id(id)[1] AS batch, record::id(id)[2] AS position, stix_id, says, tlp_rank, status, \
                 held_by FROM $ids";
    let items: Vec<FoundItem> = tx.find(ws, query, ids).await?;
    let mut by_batch: BTreeMap<Uuid, Vec<FoundItem>> = BTreeMap::new();
    let seen = items
        .iter()
        .filter(|item| item.tlp_rank <= i64::from(highest.rank()));
    let seen = seen.count() as u64;
    for item in items {
        by_batch.entry(item.batch).or_default().push(item);
    }
    let ids = by_batch
        .keys()
        .map(|batch| record("feed_batch", *batch))
        .collect();
    let batches: Vec<FeedBatchRow> = tx.find(ws, OWN, ids).await?;
    let mut gone = Vec::new();
    let mut left = Vec::new();
    for mut batch in batches {
        let source = batch.source()?;
        let mut tally = Tally::from_row(&batch.tally);
        let items = by_batch.remove(&crate::store::rows::key(&batch.id)?);
        for item in items.into_iter().flatten() {
            tally.remove(tlp(item.tlp_rank)?, parse(&item.status)?);
            gone.push(object_id(source, (&item.stix_id, item.says)));
            gone.push(support_id(ws, source, &item.stix_id));
            for marking in item.held_by.iter().flatten() {
                gone.push(FeedWaitingRow::new(ws, source, marking, item.batch, item.position).id);
            }
            gone.push(item.id);
        }
        let received = batch.received()?;
        batch.settle(tally, received, now)?;
        left.push(batch);
    }
    tx.write("DELETE $rows RETURN NONE", gone).await?;
    tx.write(UPSERT, left).await?;
    Ok(seen)
}

/// Leaves of a feed nothing but its rule; returns whether there was more.
pub(in crate::store) async fn tombstone(
    tx: &WriteTx,
    ws: Uuid,
    feed: Uuid,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let found: Vec<FeedRow> = tx.find(ws, OWN, vec![record("feed", feed)]).await?;
    let Some(mut row) = found.into_iter().find(|row| !row.name.is_empty()) else {
        return Ok(false);
    };
    row.delete(now);
    row.name.clear();
    tx.write(UPDATE, vec![row]).await?;
    Ok(true)
}
