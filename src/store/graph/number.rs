//! Numbers of the writes of a workspace.
//!
//! Rule: each write that changes nodes, edges, passages or notes takes the next number of its workspace in its own
//! transaction. So the numbers have no gaps, and their order is that of the commits; whoever has followed the journal to a
//! number has missed nothing before it. Two processes that write to one workspace at once change the same row, so the
//! database refuses one of them, and that one finds another number than it was planned for.
//!
//! A number never leaves the service: gaps between those that a caller sees would tell of hidden writes.

use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use crate::domain::error::DomainError;
use crate::store::connection::error::StoreError;
use crate::store::connection::tx::WriteTx;
use crate::store::rows::record;
use crate::store::{Store, failed};

/// Takes the number of a write; the statement refers to the row as `$number_row`.
pub(in crate::store) const TAKE_NUMBER: &str =
    "UPSERT ONLY $number_row SET number = (number ?? 0) + 1 RETURN VALUE number";

/// The row with the number of the last write of a workspace.
pub(in crate::store) fn number_row(ws: Uuid) -> RecordId {
    record("write_number", ws)
}

impl WriteTx {
    /// Takes the number of this write, which was planned when `after` was the last one; `None` if it relies on nothing
    /// that it does not read itself.
    ///
    /// # Errors
    /// [`DomainError::Overtaken`] when another process has written since then.
    pub(in crate::store) async fn take_number(
        &self,
        ws: Uuid,
        after: Option<u64>,
    ) -> Result<u64, StoreError> {
        let row = number_row(ws).into_value();
        let taken: Vec<i64> = self.select(TAKE_NUMBER, &[("number_row", row)]).await?;
        let number = taken.first().and_then(|number| u64::try_from(*number).ok());
        let number = number.ok_or_else(|| DomainError::internal("numbering a write failed", "no number"))?;
        match after {
            Some(after) if number != after + 1 => Err(DomainError::Overtaken.into()),
            Some(_) | None => Ok(number),
        }
    }
}

impl Store {
    /// The number of the last write of a workspace; 0 before the first.
    pub async fn last_write(&self, ws: Uuid) -> Result<u64, DomainError> {
        let what = "reading the number of the last write failed";
        let statement = self.db.query("SELECT VALUE number FROM $row");
        let mut response = statement
            .bind(("row", number_row(ws)))
            .await
            .map_err(failed(what))?;
        let found: Option<i64> = response.take(0).map_err(failed(what))?;
        Ok(found.and_then(|number| u64::try_from(number).ok()).unwrap_or(0))
    }
}
