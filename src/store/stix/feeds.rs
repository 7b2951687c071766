//! Which feeds a row remembers: those whose content it may still carry.

use chrono::{DateTime, Utc};
use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use crate::store::connection::error::StoreError;
use crate::store::connection::size;
use crate::store::connection::tx::WriteTx;

/// The feeds of a row after a newer version: the row may still carry content of the older ones.
pub(super) fn unite_feeds(known: Option<Vec<Uuid>>, ours: Option<Vec<Uuid>>) -> Option<Vec<Uuid>> {
    let mut feeds = known.unwrap_or_default();
    for feed in ours.into_iter().flatten() {
        if !feeds.contains(&feed) {
            feeds.push(feed);
        }
    }
    (!feeds.is_empty()).then_some(feeds)
}

/// Rows whose content has now come without a feed as well, so that no feed restricts them any longer.
#[derive(Default)]
pub(super) struct UnrestrictedRows {
    rows: Vec<RecordId>,
    /// What the rows take beside the ids that the statement is given.
    bytes: u64,
}

impl UnrestrictedRows {
    /// Adds a row of about `size` bytes if the same version of it comes from no feed, and a feed brought it before.
    pub(in crate::store) fn note(
        &mut self,
        feed: Option<Uuid>,
        (stored, feeds): (Option<DateTime<Utc>>, Option<&Vec<Uuid>>),
        (row, modified, size): (&RecordId, DateTime<Utc>, u64),
    ) {
        if feed.is_none() && feeds.is_some() && stored == Some(modified) {
            self.bytes += size.saturating_sub(size::of_row(&row.clone().into_value()));
            self.rows.push(row.clone());
        }
    }

    pub(in crate::store) fn rows(&self) -> &[RecordId] {
        &self.rows
    }

    /// Updates nothing but the list of feeds.
    pub(in crate::store) async fn write(self, tx: &WriteTx) -> Result<(), StoreError> {
        tx.charge(self.bytes)?;
        tx.write(
            "FOR $row IN $rows { UPDATE $row SET feeds = NONE RETURN NONE }",
            self.rows,
        )
        .await
    }
}
