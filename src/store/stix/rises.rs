//! Markings that state a stricter level than before: the rows that carry them are raised.
//!
//! The bundle that brings the definition records the rise. The rows follow page by page, each page a transaction. An
//! interrupted run begins anew with the next bundle, or at the next start, and changes nothing twice.

use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use super::remarking::{Release, RemarkedObjects};
use super::rise_row;
use crate::domain::audit::AuditEntry;
use crate::domain::error::DomainError;
use crate::store::connection::retry::with_retry;
use crate::store::rows::up_to_limit;
use crate::store::{Store, failed};

/// Rises read at a time.
const RISES: usize = 100;

#[derive(Debug, SurrealValue)]
struct CarrierPart {
    rev: i64,
    part: i64,
    rows: Vec<RecordId>,
}

/// How far the rows that carry a marking have been raised.
#[derive(Debug)]
pub struct RiseProgress {
    /// The last part that was read.
    part: (i64, i64),
    /// Its rows that are left.
    left: Vec<RecordId>,
    /// Rows raised in one transaction.
    page: usize,
}

impl Default for RiseProgress {
    fn default() -> Self {
        Self {
            part: (0, 0),
            left: Vec::new(),
            page: usize::MAX,
        }
    }
}

impl Store {
    /// The markings whose carriers are to be raised, some at a time.
    pub async fn rises(&self, ws: Uuid) -> Result<Vec<String>, DomainError> {
        let what = "reading raised markings failed";
        let range = up_to_limit("stix_rise:[$ws]..[$ws, $end]");
        let query = format!("SELECT VALUE record::id(id)[1] FROM {range} LIMIT {RISES}");
        // Sorts after every id of a definition.
        let statement = self.db.query(query).bind(("ws", ws)).bind(("end", "n"));
        let mut response = statement.await.map_err(failed(what))?;
        response.take(0).map_err(failed(what))
    }

    /// Raises one page of the rows that carry a marking; `None` when all are done.
    pub async fn raise_carriers(
        &self,
        ws: Uuid,
        marking: &str,
        progress: &mut RiseProgress,
        after: u64,
        audit: impl Fn(u64) -> AuditEntry,
    ) -> Result<Option<RemarkedObjects>, DomainError> {
        if progress.left.is_empty() {
            let Some(next) = self.next_carriers(ws, marking, progress.part).await? else {
                self.end_rise(ws, marking).await?;
                return Ok(None);
            };
            progress.part = (next.rev, next.part);
            progress.left = next.rows;
        }
        loop {
            let rest = progress.left.len().saturating_sub(progress.page);
            let (_, rows) = progress.left.split_at(rest);
            let raised = with_retry(|| async {
                let tx = self.begin().await?;
                let release = Release::new(&tx, self.ids_of(ws), (ws, after), marking);
                let outcome = release.raise(rows, &audit).await;
                tx.finish(outcome).await
            });
            match raised
                .await
                .map_err(|error| error.into_domain("re-marking failed"))
            {
                Err(DomainError::TransactionTooLarge { .. }) if rows.len() > 1 => {
                    progress.page = (rows.len() / 8).max(1);
                }
                Err(error) => return Err(error),
                Ok(done) => {
                    progress.left.truncate(rest);
                    return Ok(Some(done));
                }
            }
        }
    }

    /// The first part of a marking's carriers after this one.
    async fn next_carriers(
        &self,
        ws: Uuid,
        marking: &str,
        (rev, part): (i64, i64),
    ) -> Result<Option<CarrierPart>, DomainError> {
        let what = "reading the rows that carry a marking failed";
        let range = up_to_limit("stix_carrier:[$ws, $marking, $rev, $part]>..[$ws, $marking, $end]");
        let query =
            format!("SELECT record::id(id)[2] AS rev, record::id(id)[3] AS part, rows FROM {range} LIMIT 1");
        let statement = self.db.query(query).bind(("ws", ws)).bind(("rev", rev));
        let statement = statement.bind(("part", part)).bind(("end", i64::MAX));
        let statement = statement.bind(("marking", marking.to_owned()));
        let mut response = statement.await.map_err(failed(what))?;
        response.take(0).map_err(failed(what))
    }

    async fn end_rise(&self, ws: Uuid, marking: &str) -> Result<(), DomainError> {
        let ended = with_retry(|| async {
            let tx = self.begin().await?;
            let outcome = tx
                .write("DELETE $rows RETURN NONE", vec![rise_row(ws, marking)])
                .await;
            tx.finish(outcome).await
        });
        ended
            .await
            .map_err(|error| error.into_domain("re-marking failed"))
    }
}
