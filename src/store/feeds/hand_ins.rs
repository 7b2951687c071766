//! What clients have handed in over TAXII.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use surrealdb::types::{Bytes, RecordId, SurrealValue};
use uuid::Uuid;

use super::batches::{NewFeedBatch, OWN, UPSERT, insert_upload};
use super::rows::FeedBatchRow;
use crate::domain::audit::AuditEntry;
use crate::domain::error::DomainError;
use crate::domain::feed::{BatchState, ItemStatus};
use crate::domain::packing;
use crate::domain::taxii::hand_in::{HandIn, HandedObject, ReviewState};
use crate::domain::tlp::Tlp;
use crate::store::connection::error::StoreError;
use crate::store::connection::retry::with_retry;
use crate::store::connection::tx::WriteTx;
use crate::store::rows::{corrupt, key, parse, record};
use crate::store::{Store, failed};

/// Rows removed in one transaction.
const CHUNK: usize = 500;
const READ: &str = "reading what was handed in failed";
const WRITE: &str = "recording what was handed in failed";

#[derive(Debug, Clone, SurrealValue)]
struct HandInRow {
    id: RecordId,
    ws: Uuid,
    user: Uuid,
    at: DateTime<Utc>,
    batch: Option<Uuid>,
    unnamed: i64,
    objects: Bytes,
}

/// The objects that a hand-in keeps when others are erased.
#[derive(Debug, Clone, SurrealValue)]
pub(in crate::store) struct HandInObjects {
    id: RecordId,
    objects: Bytes,
}

#[derive(Debug, SurrealValue)]
struct ItemState {
    stix_id: String,
    status: String,
}

fn pack(objects: &[HandedObject]) -> Result<Bytes, DomainError> {
    let text = serde_json::to_vec(objects).map_err(corrupt)?;
    Ok(Bytes::from(packing::pack_text(&text)))
}

fn unpack(bytes: &Bytes) -> Result<Vec<HandedObject>, DomainError> {
    let text = packing::unpack_text(bytes).map_err(corrupt)?;
    serde_json::from_slice(&text).map_err(corrupt)
}

impl HandInRow {
    fn new(ws: Uuid, hand_in: &HandIn) -> Result<Self, DomainError> {
        Ok(Self {
            id: record("hand_in", hand_in.id),
            ws,
            user: hand_in.user,
            at: hand_in.at,
            batch: hand_in.batch,
            unnamed: i64::try_from(hand_in.unnamed_failures).unwrap_or(i64::MAX),
            objects: pack(&hand_in.objects)?,
        })
    }

    fn into_hand_in(self) -> Result<HandIn, DomainError> {
        Ok(HandIn {
            id: key(&self.id)?,
            user: self.user,
            at: self.at,
            batch: self.batch,
            unnamed_failures: u64::try_from(self.unnamed).unwrap_or(0),
            objects: unpack(&self.objects)?,
        })
    }
}

impl Store {
    /// What a user has handed in.
    pub async fn hand_in(&self, ws: Uuid, user: Uuid, id: Uuid) -> Result<Option<HandIn>, DomainError> {
        let query = "SELECT * FROM $id WHERE ws = $ws AND user = $user";
        let statement = self.db.query(query).bind(("ws", ws)).bind(("user", user));
        let mut response = statement
            .bind(("id", record("hand_in", id)))
            .await
            .map_err(failed(READ))?;
        let row: Option<HandInRow> = response.take(0).map_err(failed(READ))?;
        row.map(HandInRow::into_hand_in).transpose()
    }

    /// Records what was handed in and ingested, with the audit entry.
    pub async fn put_hand_in(
        &self,
        ws: Uuid,
        hand_in: &HandIn,
        audit: &AuditEntry,
    ) -> Result<(), DomainError> {
        let row = HandInRow::new(ws, hand_in)?;
        with_retry(|| async {
            let tx = self.begin().await?;
            let written = async {
                tx.write(UPSERT, vec![row.clone()]).await?;
                tx.audit([audit]).await
            };
            let outcome = written.await;
            tx.finish(outcome).await
        })
        .await
        .map_err(|error: StoreError| error.into_domain(WRITE))
    }

    /// Begins the review of what is handed in; false if the same was handed in before, unless that failed.
    pub async fn begin_hand_in(
        &self,
        ws: Uuid,
        hand_in: &HandIn,
        batch: &NewFeedBatch,
        audit: &AuditEntry,
    ) -> Result<bool, DomainError> {
        let row = HandInRow::new(ws, hand_in)?;
        with_retry(|| async {
            let tx = self.begin().await?;
            let begun = async {
                let known: Vec<HandInRow> = tx.find(ws, OWN, vec![row.id.clone()]).await?;
                if let Some(earlier) = known.first().and_then(|known| known.batch) {
                    let ids = vec![record("feed_batch", earlier)];
                    let batches: Vec<FeedBatchRow> = tx.find(ws, OWN, ids).await?;
                    let state = batches.first().map(FeedBatchRow::state).transpose()?;
                    if state.is_some_and(|state| state != BatchState::Failed) {
                        return Ok(false);
                    }
                }
                tx.write(UPSERT, vec![row.clone()]).await?;
                insert_upload(&tx, ws, batch).await?;
                tx.audit([audit]).await?;
                Ok(true)
            };
            let outcome = begun.await;
            tx.finish(outcome).await
        })
        .await
        .map_err(|error: StoreError| error.into_domain(WRITE))
    }

    /// How far the review of a batch is, as a caller cleared up to `highest` sees it; `None` if the batch is gone.
    pub async fn review_state(
        &self,
        ws: Uuid,
        batch: Uuid,
        highest: Tlp,
    ) -> Result<Option<ReviewState>, DomainError> {
        let mut response = self
            .db
            .query("SELECT * FROM $batch WHERE ws = $ws")
            .bind(("batch", record("feed_batch", batch)))
            .bind(("ws", ws))
            .await
            .map_err(failed(READ))?;
        let row: Option<FeedBatchRow> = response.take(0).map_err(failed(READ))?;
        let Some(row) = row else {
            return Ok(None);
        };
        let fields = "stix_id, status";
        let every = (None, u32::MAX);
        let items: Vec<ItemState> = self.item_rows(ws, batch, every, None, highest, fields).await?;
        let items = items
            .into_iter()
            .map(|item| Ok((item.stix_id, parse(&item.status)?)));
        Ok(Some(ReviewState {
            state: row.state()?,
            error: row.error,
            items: items.collect::<Result<HashMap<String, ItemStatus>, DomainError>>()?,
        }))
    }

    /// Removes what was handed in before `before` and is not in review any more; returns how many there were.
    pub async fn sweep_hand_ins(&self, before: DateTime<Utc>) -> Result<usize, DomainError> {
        let query = format!(
            "SELECT VALUE id FROM hand_in WHERE at < $before \
             AND (batch = NONE OR !record::exists(type::record('feed_batch', batch))) LIMIT {CHUNK}"
        );
        self.sweep(&query, before, "DELETE $ids RETURN NONE").await
    }

    /// What was handed in, without these objects and the relationships of these rows, as far as it has any of them.
    pub(in crate::store) async fn hand_ins_without(
        &self,
        ws: Uuid,
        (stix_ids, edges): (&HashSet<String>, &HashSet<Uuid>),
    ) -> Result<Vec<HandInObjects>, DomainError> {
        let ids = self.ids_of(ws);
        let is_gone = |id: &str| stix_ids.contains(id) || edges.contains(&ids.edge(id));
        let query = "SELECT id, objects FROM hand_in WHERE ws = $ws";
        let mut response = self
            .db
            .query(query)
            .bind(("ws", ws))
            .await
            .map_err(failed(READ))?;
        let rows: Vec<HandInObjects> = response.take(0).map_err(failed(READ))?;
        let mut changed = Vec::new();
        for row in rows {
            let mut objects = unpack(&row.objects)?;
            let before = objects.len();
            objects.retain(|object| !is_gone(&object.id));
            if objects.len() < before {
                let objects = pack(&objects)?;
                changed.push(HandInObjects { id: row.id, objects });
            }
        }
        Ok(changed)
    }
}

/// Takes from what was handed in what is erased.
pub(in crate::store) async fn write_objects(
    tx: &WriteTx,
    left: Vec<HandInObjects>,
) -> Result<(), StoreError> {
    tx.write(
        "FOR $row IN $rows { UPDATE $row.id SET objects = $row.objects RETURN NONE }",
        left,
    )
    .await
}
