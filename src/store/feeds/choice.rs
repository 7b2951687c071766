//! Chooses the items of a commit, within a bound on their size.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::{Map, Value};
use surrealdb::types::{Bytes, RecordId, SurrealValue};
use uuid::Uuid;

use super::commit::ReviewedItem;
use super::rows::{FeedBatchRow, FeedItemRow, item_id, support_id};
use crate::domain::error::DomainError;
use crate::domain::feed::{ItemId, ItemStatus};
use crate::domain::packing::unpacked_size;
use crate::domain::stix::object::visit_refs;
use crate::domain::tlp::Tlp;
use crate::store::connection::tx::CHUNK;
use crate::store::rows::{parse, record, unpack};
use crate::store::{Store, failed};

/// Largest sum of the objects of one commit, in bytes, with what they refer to: as of an ingest.
const MAX_BYTES: usize = 64 << 20;
/// Longest chain of references that is followed from an item: an identity names its own author and markings.
const MAX_HOPS: usize = 8;
const FAILED: &str = "reading items failed";

/// An item chosen for a commit.
#[derive(Debug, Clone)]
pub struct ChosenItem {
    pub item: ReviewedItem,
    /// JSON text.
    pub object: String,
}

/// What a commit is to write.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    pub items: Vec<ChosenItem>,
    /// Objects that the items refer to.
    pub support: Vec<String>,
    /// Chosen items that are committed already.
    pub committed: u64,
}

/// What decides whether an item can be chosen.
#[derive(Debug, SurrealValue)]
struct Head {
    position: i64,
    status: String,
    bytes: i64,
}

const HEAD: &str = "record::id(id)[2] AS position, status, bytes";

impl Store {
    /// The items to commit: those with these ids, or else the accepted ones, as far as they fit; with what they refer to.
    ///
    /// # Errors
    /// `Invalid` for an id that names no item that the caller may see or a rejected one, or if the items are too large.
    pub async fn items_to_commit(
        &self,
        ws: Uuid,
        batch: Uuid,
        (ids, most): (Option<&[ItemId]>, u32),
        highest: Tlp,
    ) -> Result<Choice, DomainError> {
        let mut choice = Choice::default();
        let (mut positions, mut bytes) = (Vec::new(), 0);
        let heads = match ids {
            Some(ids) => self.chosen_heads(ws, batch, ids, highest).await?,
            None => {
                let accepted = Some(ItemStatus::Accepted);
                self.item_rows(ws, batch, (None, most), accepted, highest, HEAD)
                    .await?
            }
        };
        for head in heads {
            if parse::<ItemStatus>(&head.status)? == ItemStatus::Committed {
                choice.committed += 1;
                continue;
            }
            bytes += usize::try_from(head.bytes).unwrap_or(MAX_BYTES);
            if bytes > MAX_BYTES && ids.is_none() && !positions.is_empty() {
                break;
            }
            check_size(bytes)?;
            positions.push(head.position);
        }
        let mut wanted = BTreeSet::new();
        for row in self.whole_rows(ws, batch, &positions, highest).await? {
            let object = row.object()?;
            choice.items.push(ChosenItem {
                item: row.into_reviewed()?,
                object: text_of(&object, &mut wanted),
            });
            // Reading a large object takes milliseconds.
            tokio::task::yield_now().await;
        }
        choice.support = self.support_of(ws, batch, wanted, bytes).await?;
        Ok(choice)
    }

    /// The heads of these items, in this order.
    async fn chosen_heads(
        &self,
        ws: Uuid,
        batch: Uuid,
        ids: &[ItemId],
        highest: Tlp,
    ) -> Result<Vec<Head>, DomainError> {
        let wrong = |place: usize, rule: &str| DomainError::invalid(format!("item_ids[{place}]"), rule);
        const UNKNOWN: &str = "is not an item of this batch";
        let mut positions = Vec::with_capacity(ids.len());
        for (place, id) in ids.iter().enumerate() {
            let position = id.position_in(batch).and_then(|at| i64::try_from(at).ok());
            positions.push(position.ok_or_else(|| wrong(place, UNKNOWN))?);
        }
        let rows: Vec<Head> = self.rows_at(ws, batch, &positions, highest, HEAD).await?;
        let mut found: HashMap<i64, Head> = rows.into_iter().map(|row| (row.position, row)).collect();
        for (place, position) in positions.iter().enumerate() {
            let head = found.get(position).ok_or_else(|| wrong(place, UNKNOWN))?;
            if parse::<ItemStatus>(&head.status)? == ItemStatus::Rejected {
                return Err(wrong(place, "is rejected; accept it first"));
            }
        }
        // An id that is listed twice is one item.
        Ok(positions.iter().filter_map(|at| found.remove(at)).collect())
    }

    async fn whole_rows(
        &self,
        ws: Uuid,
        batch: Uuid,
        positions: &[i64],
        highest: Tlp,
    ) -> Result<Vec<FeedItemRow>, DomainError> {
        self.rows_at(ws, batch, positions, highest, "*").await
    }

    async fn rows_at<T: SurrealValue>(
        &self,
        ws: Uuid,
        batch: Uuid,
        positions: &[i64],
        highest: Tlp,
        fields: &str,
    ) -> Result<Vec<T>, DomainError> {
        let mut rows = Vec::with_capacity(positions.len());
        for chunk in positions.chunks(CHUNK) {
            let ids: Vec<RecordId> = chunk.iter().map(|at| item_id(ws, batch, *at)).collect();
            let mut response = self
                .db
                .query(format!("SELECT {fields} FROM $ids WHERE tlp_rank <= $highest"))
                .bind(("ids", ids))
                .bind(("highest", i64::from(highest.rank())))
                .await
                .map_err(failed(FAILED))?;
            let found: Vec<T> = response.take(0).map_err(failed(FAILED))?;
            rows.extend(found);
        }
        Ok(rows)
    }

    /// The supporting objects with these ids that the batch's feed brought, and those that they refer to in turn.
    async fn support_of(
        &self,
        ws: Uuid,
        batch: Uuid,
        mut wanted: BTreeSet<String>,
        mut bytes: usize,
    ) -> Result<Vec<String>, DomainError> {
        let source = self.source_of_batch(ws, batch).await?;
        let (mut support, mut asked) = (Vec::new(), HashSet::new());
        for _ in 0..MAX_HOPS {
            wanted.retain(|id| !asked.contains(id));
            if wanted.is_empty() {
                break;
            }
            let ids: Vec<String> = std::mem::take(&mut wanted).into_iter().collect();
            for chunk in ids.chunks(CHUNK) {
                let chunk: Vec<_> = chunk.iter().map(|id| support_id(ws, source, id)).collect();
                let mut response = self
                    .db
                    .query("SELECT VALUE raw FROM $ids")
                    .bind(("ids", chunk))
                    .await
                    .map_err(failed(FAILED))?;
                let found: Vec<Bytes> = response.take(0).map_err(failed(FAILED))?;
                for raw in &found {
                    bytes += unpacked_size(raw);
                    check_size(bytes)?;
                    support.push(text_of(&unpack(raw)?, &mut wanted));
                    tokio::task::yield_now().await;
                }
            }
            asked.extend(ids);
        }
        Ok(support)
    }

    async fn source_of_batch(&self, ws: Uuid, batch: Uuid) -> Result<Uuid, DomainError> {
        let mut response = self
            .db
            .query("SELECT * FROM $batch WHERE ws = $ws")
            .bind(("batch", record("feed_batch", batch)))
            .bind(("ws", ws))
            .await
            .map_err(failed(FAILED))?;
        let row: Option<FeedBatchRow> = response.take(0).map_err(failed(FAILED))?;
        row.ok_or(DomainError::NotFound("batch"))?.source()
    }
}

/// An object as text, a fraction of its size when parsed; notes what it refers to.
fn text_of(object: &Map<String, Value>, wanted: &mut BTreeSet<String>) -> String {
    visit_refs(object, &mut |id| {
        wanted.insert(id.to_owned());
    });
    serde_json::to_string(object).unwrap_or_default()
}

fn check_size(bytes: usize) -> Result<(), DomainError> {
    if bytes <= MAX_BYTES {
        return Ok(());
    }
    let rule = format!(
        "hold more than {} MiB with what they refer to: commit them in parts",
        MAX_BYTES >> 20
    );
    Err(DomainError::invalid("item_ids", rule))
}
