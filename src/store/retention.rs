//! Removes rows whose retention period has ended, in every workspace: recall sessions and finished staging batches.
//! Audit entries, nodes and evidence are kept for ever.

use chrono::{DateTime, Utc};
use surrealdb::types::RecordId;

use super::connection::error::StoreError;
use super::connection::retry::with_retry;
use super::rows::key;
use super::{Store, failed};
use crate::domain::error::DomainError;

/// Rows removed in one transaction.
const CHUNK: usize = 500;
/// Batches removed in one transaction, each with up to 4,000 entities.
const BATCH_CHUNK: usize = 5;

impl Store {
    /// Removes the recall sessions created before `before`; returns their number.
    ///
    /// # Errors
    /// When the database fails; rows removed before that stay removed.
    pub async fn sweep_sessions(&self, before: DateTime<Utc>) -> Result<usize, DomainError> {
        let query = format!("SELECT VALUE id FROM recall_session WHERE created_at < $before LIMIT {CHUNK}");
        self.sweep(&query, before, "DELETE $ids RETURN NONE").await
    }

    /// Removes the staging batches whose last entity was decided and committed before `before`, with their text and
    /// entities; returns their number. The nodes created from them stay.
    ///
    /// # Errors
    /// As [`Store::sweep_sessions`].
    pub async fn sweep_batches(&self, before: DateTime<Utc>) -> Result<usize, DomainError> {
        // The time of a batch that is still open is NONE, which sorts before all times.
        let query = format!(
            "SELECT VALUE id FROM staging_batch WHERE committed_at < $before AND committed_at > d'1970-01-01T00:00:00Z' \
             LIMIT {BATCH_CHUNK}"
        );
        let removal = "{ FOR $batch IN $keys { DELETE staged_entity WHERE batch = $batch RETURN NONE; \
                       DELETE staging_part WHERE batch = $batch RETURN NONE; }; \
                       DELETE $ids RETURN NONE; }";
        self.sweep(&query, before, removal).await
    }

    /// Runs `removal` on the rows `$ids`, whose keys are `$keys`, until `query` finds no more.
    pub(super) async fn sweep(
        &self,
        query: &str,
        before: DateTime<Utc>,
        removal: &'static str,
    ) -> Result<usize, DomainError> {
        let (mut swept, mut last) = (0, Vec::new());
        loop {
            let ids = self.ended_rows(query, before).await?;
            // Rows that a rule of the database protects are left in place.
            if ids.is_empty() || ids == last {
                return Ok(swept);
            }
            self.remove(removal, &ids).await?;
            swept += ids.len();
            last = ids;
        }
    }

    async fn ended_rows(&self, query: &str, before: DateTime<Utc>) -> Result<Vec<RecordId>, DomainError> {
        let what = "reading what has ended failed";
        let mut response = self
            .db
            .query(query.to_owned())
            .bind(("before", before))
            .await
            .map_err(failed(what))?;
        response.take(0).map_err(failed(what))
    }

    async fn remove(&self, removal: &'static str, ids: &[RecordId]) -> Result<(), DomainError> {
        let keys = ids.iter().map(key).collect::<Result<Vec<_>, _>>()?;
        with_retry(|| async {
            self.db
                .query(removal)
                .bind(("ids", ids.to_vec()))
                .bind(("keys", keys.clone()))
                .await?
                .check()?;
            Ok(())
        })
        .await
        .map_err(|error: StoreError| error.into_domain("removing what has ended failed"))
    }
}
