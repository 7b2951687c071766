//! When something was entered last into the list of additions.
//!
//! What is written is entered with its write, whose dates are known. What is entered again without being written, because readers
//! see it otherwise since then, has a row of its own.

use std::collections::{HashMap, HashSet};

use surrealdb::types::{Array, RecordId, SurrealValue};
use uuid::Uuid;

use super::added::READ;
use crate::domain::error::DomainError;
use crate::domain::taxii::addition::{AddedKind, Addition};
use crate::store::connection::error::StoreError;
use crate::store::connection::tx::WriteTx;
use crate::store::{Store, failed};

/// The entry of a row that was entered again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastDate {
    /// The write that wrote the row before.
    pub rev: i64,
    /// In microseconds.
    pub date: i64,
}

#[derive(Debug, Clone, SurrealValue)]
struct LastDateRow {
    id: RecordId,
    rev: i64,
    date: i64,
}

#[derive(Debug, SurrealValue)]
struct FoundDate {
    row: Uuid,
    rev: i64,
    date: i64,
}

pub(super) fn place_of(ws: Uuid, row: Uuid) -> RecordId {
    RecordId::new(
        "taxii_again",
        Array::from(vec![ws.into_value(), row.into_value()]),
    )
}

/// Notes the dates of those entries that none of these writes made.
pub(super) async fn note_last_dates(
    tx: &WriteTx,
    ws: Uuid,
    entries: impl Iterator<Item = (i64, &Addition)>,
    revs: &[i64],
) -> Result<(), StoreError> {
    let made: HashSet<i64> = revs.iter().copied().collect();
    // A supporting object is entered with the time of its version.
    let again = entries.filter(|(_, entry)| entry.kind != AddedKind::Support && !made.contains(&entry.rev));
    let rows: Vec<LastDateRow> = again
        .map(|(date, entry)| LastDateRow {
            id: place_of(ws, entry.id),
            rev: entry.rev,
            date,
        })
        .collect();
    tx.write(
        "INSERT INTO taxii_again $rows ON DUPLICATE KEY UPDATE rev = $input.rev, date = $input.date RETURN NONE",
        rows,
    )
    .await
}

impl Store {
    /// The last entries of those of these rows that were entered again.
    pub async fn last_dates(
        &self,
        ws: Uuid,
        rows: impl IntoIterator<Item = Uuid>,
    ) -> Result<HashMap<Uuid, LastDate>, DomainError> {
        let ids: Vec<RecordId> = rows.into_iter().map(|row| place_of(ws, row)).collect();
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let found: Vec<FoundDate> = self
            .rows_by_id("SELECT record::id(id)[1] AS row, rev, date FROM $ids", ids, &[])
            .await
            .map_err(failed(READ))?;
        let last = |FoundDate { row, rev, date }| (row, LastDate { rev, date });
        Ok(found.into_iter().map(last).collect())
    }
}
