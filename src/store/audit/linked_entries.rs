//! Which audit entries have a link, as far as the end of the chain tells.

use std::collections::HashSet;

use chrono::{DateTime, TimeDelta, Utc};
use surrealdb::types::SurrealValue;
use uuid::Uuid;

use crate::store::connection::database::Database;
use crate::store::connection::error::StoreError;
use crate::store::rows::up_to_limit;

/// Rows read at a time.
const ROWS: usize = 100;
/// How far the clocks of processes that share a database may be apart, and how far one may be set back.
pub(super) const SKEW: TimeDelta = TimeDelta::minutes(1);

/// Entries with a link, read from the end of a workspace's chain back to some moment.
#[derive(Debug)]
pub(in crate::store) struct LinkedEntries {
    tenant: Uuid,
    entries: HashSet<Uuid>,
    /// Places of the last and of the first row read.
    read: Option<(i64, i64)>,
    /// When the first row read was written; `None` before any was.
    since: Option<DateTime<Utc>>,
    /// Whether the whole chain was read.
    all: bool,
}

#[derive(Debug, SurrealValue)]
struct Row {
    place: i64,
    at: DateTime<Utc>,
    entries: Vec<Uuid>,
}

impl LinkedEntries {
    pub(in crate::store) fn of(tenant: Uuid) -> Self {
        Self {
            tenant,
            entries: HashSet::new(),
            read: None,
            since: None,
            all: false,
        }
    }

    pub(in crate::store) fn holds(&self, entry: Uuid) -> bool {
        self.entries.contains(&entry)
    }

    /// Reads back until every link of an entry from this moment on is known: an entry is linked after it is made.
    pub(in crate::store) async fn reach(
        &mut self,
        db: &Database,
        made: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let until = made - SKEW;
        while !self.all && self.since.is_none_or(|since| since >= until) {
            let after = self.read.map_or(i64::MIN, |(_, first)| first);
            let rows = self.rows(db, after, i64::MAX, Some(ROWS)).await?;
            self.all = rows.len() < ROWS;
            self.take(rows);
        }
        Ok(())
    }

    /// Reads what was appended to the chain in the meantime.
    pub(super) async fn catch_up(&mut self, db: &Database) -> Result<(), StoreError> {
        let rows = self.newer_rows(db).await?;
        self.take(rows);
        Ok(())
    }

    /// Only the links that were appended since this was read.
    pub(in crate::store) async fn newer(&self, db: &Database) -> Result<Self, StoreError> {
        let mut newer = Self::of(self.tenant);
        newer.take(self.newer_rows(db).await?);
        Ok(newer)
    }

    async fn newer_rows(&self, db: &Database) -> Result<Vec<Row>, StoreError> {
        let before = self.read.map_or(i64::MAX, |(last, _)| last);
        self.rows(db, i64::MIN, before, None).await
    }

    fn take(&mut self, rows: Vec<Row>) {
        for row in rows {
            let (last, first) = self.read.unwrap_or((row.place, row.place));
            self.read = Some((last.min(row.place), first.max(row.place)));
            self.since = Some(self.since.map_or(row.at, |since| since.min(row.at)));
            self.entries.extend(row.entries);
        }
    }

    /// Rows between two places, newest first.
    async fn rows(
        &self,
        db: &Database,
        after: i64,
        before: i64,
        most: Option<usize>,
    ) -> Result<Vec<Row>, StoreError> {
        let range = up_to_limit("audit_link:[$t, $after]>..[$t, $before]");
        let limit = most.map(|most| format!("LIMIT {most}")).unwrap_or_default();
        let query =
            format!("SELECT record::id(id)[1] AS place, at, links.entry AS entries FROM {range} {limit}");
        let statement = db.query(query).bind(("t", self.tenant)).bind(("after", after));
        let mut response = statement.bind(("before", before)).await?;
        Ok(response.take(0)?)
    }
}
