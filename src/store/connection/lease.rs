//! Ownership of the local memory: one process at a time, even where the database is external and any process could
//! reach it.
//!
//! The graph in memory is read from the database once, at startup, so a second process would not see the first one's
//! writes. The lease is a row that its holder renews; all times are the database's.

use std::time::Duration;

use surrealdb::IndexedResults;
use surrealdb::types::SurrealValue;
use uuid::Uuid;

use super::error::StoreError;
use super::retry::with_retry;
use crate::domain::error::DomainError;
use crate::store::{Store, failed};

/// A process that asks for the lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The installation; after a restart it takes over from its own earlier process.
    pub instance: Uuid,
    pub process: Uuid,
    /// Where it runs, for display.
    pub place: String,
}

#[derive(Debug, SurrealValue)]
struct LeaseRow {
    process: Uuid,
    place: String,
}

impl Store {
    /// Takes the lease, unless another installation has renewed it within `lasts`.
    ///
    /// # Errors
    /// [`StoreError::Held`], which names the holder.
    pub async fn take_lease(&self, holder: &Holder, lasts: Duration) -> Result<(), StoreError> {
        // One block is one transaction: of two concurrent callers, one sees the other's row.
        let block = "{ \
            INSERT IGNORE INTO lease { id: lease:memory, instance: $instance, process: $process, place: $place, \
                renewed_at: time::now() } RETURN NONE; \
            UPDATE lease:memory SET instance = $instance, process = $process, place = $place, \
                renewed_at = time::now() \
                WHERE instance = $instance OR renewed_at < time::now() - $lasts RETURN NONE; \
            }";
        with_retry(|| async {
            let statement = self.db.query(block).bind(("instance", holder.instance));
            let statement = statement
                .bind(("process", holder.process))
                .bind(("place", holder.place.clone()))
                .bind(("lasts", lasts));
            statement.await.and_then(IndexedResults::check)?;
            Ok(())
        })
        .await?;
        let mut found = self
            .db
            .query("SELECT process, place FROM lease:memory")
            .await?
            .check()?;
        let row: Option<LeaseRow> = found.take(0)?;
        match row {
            Some(row) if row.process == holder.process => Ok(()),
            Some(row) => Err(StoreError::Held {
                place: row.place,
                seconds: lasts.as_secs(),
            }),
            None => {
                let gone = DomainError::internal("taking the lease failed", "its row is gone");
                Err(StoreError::Domain(gone))
            }
        }
    }

    /// Renews the lease; false when another process holds it by now.
    ///
    /// # Errors
    /// When the database can't be reached; the lease may still be held.
    pub async fn renew_lease(&self, holder: &Holder) -> Result<bool, DomainError> {
        let what = "renewing the lease failed";
        let mut renewed = self
            .db
            .query("UPDATE lease:memory SET renewed_at = time::now() WHERE process = $process RETURN VALUE process")
            .bind(("process", holder.process))
            .await
            .and_then(IndexedResults::check)
            .map_err(failed(what))?;
        let rows: Vec<Uuid> = renewed.take(0).map_err(failed(what))?;
        Ok(!rows.is_empty())
    }

    /// Releases the lease, so that nobody has to wait for it to expire.
    ///
    /// # Errors
    /// When the database can't be reached; the lease then expires by itself.
    pub async fn release_lease(&self, holder: &Holder) -> Result<(), DomainError> {
        self.db
            .query("DELETE lease:memory WHERE process = $process RETURN NONE")
            .bind(("process", holder.process))
            .await
            .and_then(IndexedResults::check)
            .map_err(failed("giving the lease back failed"))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
