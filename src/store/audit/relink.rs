//! Links the audit entries that an interrupted process left unlinked, a page at a time.

use surrealdb::types::RecordId;
use uuid::Uuid;

use super::PAGE;
use super::linked_entries::LinkedEntries;
use super::rows::{AuditRow, Position};
use crate::domain::audit::AuditEntry;
use crate::domain::error::DomainError;
use crate::store::rows::up_to_limit;
use crate::store::{Store, failed};

const READING: &str = "reading the audit log failed";

/// Result of linking the entries left unlinked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RelinkReport {
    /// Number of entries linked.
    pub linked: usize,
    /// Number of log pages read.
    pub pages: usize,
}

/// A range of the log with unlinked entries, newest first.
#[derive(Debug, Clone, Copy)]
struct Window {
    first: Position,
    last: Position,
}

impl Store {
    /// Links the unlinked entries of a workspace, oldest first. It reads back from the newest entry to beyond the
    /// last linked one, and on until it has found all that are missing: an entry is timestamped when its work begins
    /// and may reach the log after younger ones.
    ///
    /// # Errors
    /// When the store fails; entries linked before that stay linked.
    pub async fn link_unlinked(&self, tenant: Uuid) -> Result<RelinkReport, DomainError> {
        let head = self.chain_head(tenant).await;
        let head = head.map_err(|error| error.into_domain(READING))?;
        let (entries, links) = (
            self.count_entries(tenant).await?,
            head.as_ref().map_or(0, |head| head.seq),
        );
        let mut done = RelinkReport::default();
        if entries == links {
            return Ok(done);
        }
        let mut linked = LinkedEntries::of(tenant);
        let (mut windows, mut found, mut after) = (Vec::new(), 0, None);
        loop {
            // Entries newer than the first page are already about to be linked.
            let page = self.log_page(tenant, after).await?;
            let Some((&first, &last)) = page.first().zip(page.last()) else {
                break;
            };
            done.pages += 1;
            let reached = linked.reach(&self.db, last.made_at()).await;
            reached.map_err(|error| error.into_domain(READING))?;
            let missing = page.iter().filter(|place| !linked.holds(place.entry)).count();
            if missing > 0 {
                windows.push(Window { first, last });
            }
            found += missing as u64;
            after = Some(last);
            let is_past = head.as_ref().is_some_and(|head| last >= head.last);
            if is_past && found >= entries.saturating_sub(links) {
                break;
            }
        }
        for window in windows.into_iter().rev() {
            let mut left = self.entries_between(tenant, window).await?;
            // Earlier windows and other processes have appended links since.
            let known = linked.catch_up(&self.db).await;
            known.map_err(|error| error.into_domain(READING))?;
            left.retain(|entry| !linked.holds(entry.id));
            for part in left.chunks(PAGE as usize) {
                self.chain_unlinked(tenant, part, &linked).await?;
                done.linked += part.len();
            }
        }
        Ok(done)
    }

    /// A page of the log after a position.
    async fn log_page(&self, tenant: Uuid, after: Option<Position>) -> Result<Vec<Position>, DomainError> {
        let range = up_to_limit(if after.is_some() {
            "audit_entry:[$t, $ord, $entry]>..[$t, $end]"
        } else {
            "audit_entry:[$t]..[$t, $end]"
        });
        let mut response = self
            .db
            .query(format!("SELECT VALUE id FROM {range} LIMIT {PAGE}"))
            .bind(("t", tenant))
            .bind(("ord", after.map(|after| after.ord)))
            .bind(("entry", after.map(|after| after.entry)))
            .bind(("end", i64::MAX))
            .await
            .map_err(failed(READING))?;
        let ids: Vec<RecordId> = response.take(0).map_err(failed(READING))?;
        ids.iter().map(Position::from_id).collect()
    }

    /// The entries of a range of the log, oldest first.
    async fn entries_between(&self, tenant: Uuid, window: Window) -> Result<Vec<AuditEntry>, DomainError> {
        let Window { first, last } = window;
        let mut response = self
            .db
            .query("SELECT * FROM audit_entry:[$t, $first, $newest]..=[$t, $last, $oldest]")
            .bind(("t", tenant))
            .bind(("first", first.ord))
            .bind(("newest", first.entry))
            .bind(("last", last.ord))
            .bind(("oldest", last.entry))
            .await
            .map_err(failed(READING))?;
        let rows: Vec<AuditRow> = response.take(0).map_err(failed(READING))?;
        rows.into_iter().rev().map(AuditRow::into_entry).collect()
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use test_support::extent;

    use super::*;
    use crate::store::tests::{entry, open, run_on_each};

    /// Entries of one workspace, a millisecond apart except for those that share a timestamp.
    fn log(tenant: Uuid, count: usize, together: usize) -> Vec<AuditEntry> {
        let begin = crate::clock::now() - TimeDelta::hours(1);
        let made = (0..count).map(|n| {
            let mut entry = entry(tenant, "test.act");
            let moment = i64::try_from(n / together).unwrap();
            entry.created_at = begin + TimeDelta::milliseconds(moment);
            entry
        });
        made.collect()
    }

    async fn write(store: &Store, entries: &[AuditEntry]) {
        for part in entries.chunks(500) {
            store.append_audit(part).await.unwrap();
        }
    }

    async fn link(store: &Store, tenant: Uuid, entries: &[AuditEntry]) {
        for part in entries.chunks(500) {
            store.chain_audit(tenant, part).await.unwrap();
        }
    }

    #[test]
    fn a_start_reads_the_log_from_its_end_and_no_further_than_it_must() {
        run_on_each(|url| async move {
            let (store, tenant) = (open(&url).await, Uuid::new_v4());
            let count = extent(1100, 4000);
            let entries = log(tenant, count, 1);
            write(&store, &entries).await;
            link(&store, tenant, &entries[..count - 10]).await;
            let done = store.link_unlinked(tenant).await.unwrap();
            assert_eq!(done, RelinkReport { linked: 10, pages: 1 });
            let report = store.verify_audit(tenant).await.unwrap();
            assert_eq!(
                (report.valid, report.entries, report.unchained),
                (true, count as u64, 0)
            );
            assert_eq!(
                store.link_unlinked(tenant).await.unwrap(),
                RelinkReport::default()
            );
        });
    }

    #[test]
    fn an_entry_that_reached_the_log_late_is_linked_too() {
        run_on_each(|url| async move {
            let (store, tenant) = (open(&url).await, Uuid::new_v4());
            let count = extent(1200, 2600);
            let mut entries = log(tenant, count, 1);
            write(&store, &entries).await;
            // On the second page.
            let late = entries.remove(count - 1100);
            link(&store, tenant, &entries).await;
            let done = store.link_unlinked(tenant).await.unwrap();
            assert_eq!(done, RelinkReport { linked: 1, pages: 2 });
            let report = store.verify_audit(tenant).await.unwrap();
            assert_eq!(
                (report.valid, report.entries, report.unchained),
                (true, count as u64, 0)
            );
            let linked = store.linked_entries(tenant, &[&late]).await.unwrap();
            assert!(linked.holds(late.id));
        });
    }

    #[test]
    fn a_log_without_any_link_is_linked_in_its_order_also_where_entries_share_a_moment() {
        run_on_each(|url| async move {
            let (store, tenant, other) = (open(&url).await, Uuid::new_v4(), Uuid::new_v4());
            let (count, pages) = extent((1100, 2), (2500, 3));
            let entries = log(tenant, count, 7);
            write(&store, &entries).await;
            write(&store, &log(other, 3, 1)).await;
            let done = store.link_unlinked(tenant).await.unwrap();
            assert_eq!((done.linked, done.pages), (count, pages));
            let report = store.verify_audit(tenant).await.unwrap();
            assert_eq!(
                (report.valid, report.entries, report.unchained),
                (true, count as u64, 0)
            );
            let mut links = store.links_after(tenant, 0).await.unwrap();
            while let Some((last, _)) = links.last()
                && last.seq < count as u64
            {
                links.append(&mut store.links_after(tenant, last.seq).await.unwrap());
            }
            assert!(
                links.is_sorted_by(|(_, a), (_, b)| a.ord >= b.ord),
                "the chain has another order"
            );
            let theirs = store.verify_audit(other).await.unwrap();
            assert_eq!(theirs.unchained, 3, "another workspace's log was touched");
        });
    }
}
