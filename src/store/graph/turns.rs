//! The wish of a process to write next to a workspace that others write to as well.
//!
//! Correctness needs none of this: numbers do (`journal.rs`). But a write that takes long would always be overtaken by
//! those of another process that take a moment. So one that was overtaken twice asks the others to wait. All times are the
//! database's.

use std::time::Duration;

use surrealdb::IndexedResults;
use uuid::Uuid;

use crate::domain::error::DomainError;
use crate::store::connection::retry::with_retry;
use crate::store::rows::record;
use crate::store::{Store, failed};

impl Store {
    /// Asks the other processes to wait with their writes to a workspace, at most for `lasts`. Changes nothing while
    /// another one has asked.
    pub async fn ask_for_turn(&self, ws: Uuid, process: Uuid, lasts: Duration) -> Result<(), DomainError> {
        let block = "{ \
            INSERT IGNORE INTO write_turn { id: $turn, process: $process, until: time::now() } RETURN NONE; \
            UPDATE $turn SET process = $process, until = time::now() + $lasts \
                WHERE process = $process OR until <= time::now() RETURN NONE; \
            }";
        let asked = with_retry(|| async {
            let statement = self.db.query(block).bind(("turn", record("write_turn", ws)));
            let statement = statement.bind(("process", process)).bind(("lasts", lasts));
            statement.await.and_then(IndexedResults::check)?;
            Ok(())
        });
        asked
            .await
            .map_err(|error| error.into_domain("asking for the turn to write failed"))
    }

    /// Takes the wish back.
    pub async fn end_turn(&self, ws: Uuid, process: Uuid) -> Result<(), DomainError> {
        let statement = "DELETE $turn WHERE process = $process RETURN NONE";
        let statement = self.db.query(statement).bind(("turn", record("write_turn", ws)));
        let ended = statement.bind(("process", process)).await;
        ended
            .and_then(IndexedResults::check)
            .map_err(failed("giving back the turn to write failed"))?;
        Ok(())
    }

    /// Whether another process than this one asks for the turn.
    pub async fn is_turn_of_another(&self, ws: Uuid, process: Uuid) -> Result<bool, DomainError> {
        let what = "reading whose turn it is to write failed";
        let statement = "SELECT VALUE process FROM $turn WHERE process != $process AND until > time::now()";
        let statement = self.db.query(statement).bind(("turn", record("write_turn", ws)));
        let mut response = statement.bind(("process", process)).await.map_err(failed(what))?;
        let other: Option<Uuid> = response.take(0).map_err(failed(what))?;
        Ok(other.is_some())
    }
}
