//! Removes feed batches whose retention period has ended, with their items.

use chrono::{DateTime, Utc};
use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use crate::domain::error::DomainError;
use crate::store::connection::error::StoreError;
use crate::store::connection::retry::with_retry;
use crate::store::rows::key;
use crate::store::{Store, failed};

/// Rows removed in one transaction: a batch can have hundreds of thousands of items.
const CHUNK: usize = 1000;
/// Batches looked up at a time.
const BATCHES: usize = 100;
const FAILED: &str = "removing what has ended failed";

#[derive(Debug, SurrealValue)]
struct EndedBatch {
    id: RecordId,
    ws: Uuid,
}

impl Store {
    /// Removes the batches whose last item was decided and committed before `before`; returns their number. The nodes
    /// made of them stay, and so does the memory of what a feed has brought.
    ///
    /// # Errors
    /// When the database fails; rows removed before that stay removed.
    pub async fn sweep_feed_batches(&self, before: DateTime<Utc>) -> Result<usize, DomainError> {
        let mut swept = 0;
        loop {
            let ended = self.ended_feed_batches(before).await?;
            for batch in &ended {
                self.remove_feed_batch(batch).await?;
                swept += 1;
            }
            if ended.len() < BATCHES {
                return Ok(swept);
            }
        }
    }

    async fn ended_feed_batches(&self, before: DateTime<Utc>) -> Result<Vec<EndedBatch>, DomainError> {
        // The time of a batch that is still open is NONE, which sorts before all times.
        let query = format!(
            "SELECT id, ws FROM feed_batch WHERE committed_at < $before AND committed_at > d'1970-01-01T00:00:00Z' \
             AND status != 'pulling' LIMIT {BATCHES}"
        );
        let mut response = self
            .db
            .query(query)
            .bind(("before", before))
            .await
            .map_err(failed(FAILED))?;
        response.take(0).map_err(failed(FAILED))
    }

    async fn remove_feed_batch(&self, ended: &EndedBatch) -> Result<(), DomainError> {
        let batch = key(&ended.id)?;
        let ranges = [
            // What an uploaded bundle without a feed refers to is kept under the batch's own id.
            format!("feed_support:[$ws, $batch]..=[$ws, $batch, 'z'] LIMIT {CHUNK}"),
            format!("feed_waiting:[$ws, $batch]..=[$ws, $batch, 'z'] LIMIT {CHUNK}"),
            format!(
                "feed_item:[$ws, $batch]..=[$ws, $batch, {}] LIMIT {CHUNK}",
                i64::MAX
            ),
        ];
        for range in &ranges {
            loop {
                let query = format!("SELECT VALUE id FROM {range}");
                let mut response = self
                    .db
                    .query(query)
                    .bind(("ws", ended.ws))
                    .bind(("batch", batch))
                    .await
                    .map_err(failed(FAILED))?;
                let ids: Vec<RecordId> = response.take(0).map_err(failed(FAILED))?;
                if ids.is_empty() {
                    break;
                }
                self.remove_rows(&ids).await?;
            }
        }
        self.remove_rows(std::slice::from_ref(&ended.id)).await
    }

    async fn remove_rows(&self, ids: &[RecordId]) -> Result<(), DomainError> {
        with_retry(|| async {
            let deleted = self
                .db
                .query("DELETE $ids RETURN NONE")
                .bind(("ids", ids.to_vec()));
            deleted.await?.check()?;
            Ok(())
        })
        .await
        .map_err(|error: StoreError| error.into_domain(FAILED))
    }
}
