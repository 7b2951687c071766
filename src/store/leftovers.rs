//! Links the audit entries that an interrupted process left unlinked, a page at a time.

use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use super::audit::{FAR_FUTURE, PAGE};
use super::rows::{AuditRow, ChainRow, key, newest_first};
use super::{Store, failed};
use crate::domain::audit::AuditEntry;
use crate::domain::error::DomainError;

const READING: &str = "reading the audit log failed";

/// Result of linking the entries left unlinked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Leftovers {
    /// Number of entries linked.
    pub linked: usize,
    /// Number of log pages read.
    pub pages: usize,
}

/// A range of the log, newest first: its first and last position.
#[derive(Debug, Clone, Copy)]
struct Window {
    from: i64,
    to: i64,
}

#[derive(Debug, SurrealValue)]
struct LogPosition {
    id: RecordId,
    ord: i64,
}

impl Store {
    /// Links the unlinked entries of a workspace, oldest first. It reads back from the newest entry to beyond the
    /// last linked one, and on until it has found all that are missing: an entry is timestamped when its work begins
    /// and may reach the log after younger ones.
    ///
    /// # Errors
    /// When the store fails; entries linked before that stay linked.
    pub async fn link_leftovers(&self, tenant: Uuid) -> Result<Leftovers, DomainError> {
        let (entries, links) = (
            self.count(tenant, "audit").await?,
            self.count(tenant, "audit_chain").await?,
        );
        if entries == links {
            return Ok(Leftovers::default());
        }
        let windows = self.windows(tenant, entries.saturating_sub(links)).await?;
        let mut done = Leftovers {
            linked: 0,
            pages: windows.len(),
        };
        for window in windows.into_iter().rev() {
            let left = self.unlinked_in(tenant, window).await?;
            for part in left.chunks(PAGE as usize) {
                self.chain_audit(tenant, part).await?;
                done.linked += part.len();
            }
        }
        Ok(done)
    }

    /// The ranges of the log, newest first, that contain all unlinked entries.
    async fn windows(&self, tenant: Uuid, missing: u64) -> Result<Vec<Window>, DomainError> {
        let last_linked = self.last_linked(tenant).await?;
        let (mut windows, mut found, mut after) = (Vec::new(), 0, newest_first(FAR_FUTURE));
        loop {
            // Entries newer than the first page are already about to be linked.
            let page = self.places(tenant, after).await?;
            let Some((first, last)) = page.first().zip(page.last()) else {
                return Ok(windows);
            };
            windows.push(Window {
                from: first.ord,
                to: last.ord,
            });
            let ids: Vec<Uuid> = page
                .iter()
                .map(|place| key(&place.id))
                .collect::<Result<_, _>>()?;
            let linked = self
                .linked(&ids)
                .await
                .map_err(|error| error.into_domain(READING))?;
            found += (ids.len() - linked.len()) as u64;
            after = last.ord;
            if found >= missing && last_linked.is_some_and(|linked| after >= linked) {
                return Ok(windows);
            }
        }
    }

    /// The position of the last linked entry.
    async fn last_linked(&self, tenant: Uuid) -> Result<Option<i64>, DomainError> {
        let mut response = self
            .db
            .query("SELECT * FROM audit_chain WHERE tenant_id = $t ORDER BY seq DESC LIMIT 1")
            .bind(("t", tenant))
            .await
            .map_err(failed(READING))?;
        let last: Option<ChainRow> = response.take(0).map_err(failed(READING))?;
        Ok(last.map(|last| newest_first(last.entry_time)))
    }

    /// A page of the log after a position. Entries that share the last position may be missing from it.
    async fn places(&self, tenant: Uuid, after: i64) -> Result<Vec<LogPosition>, DomainError> {
        let mut response = self
            .db
            .query(format!(
                "SELECT id, ord FROM audit WHERE tenant_id = $t AND ord > $after ORDER BY ord LIMIT {PAGE}"
            ))
            .bind(("t", tenant))
            .bind(("after", after))
            .await
            .map_err(failed(READING))?;
        response.take(0).map_err(failed(READING))
    }

    /// The unlinked entries in a range of the log, oldest first.
    async fn unlinked_in(&self, tenant: Uuid, window: Window) -> Result<Vec<AuditEntry>, DomainError> {
        let mut response = self
            .db
            .query("SELECT * FROM audit WHERE tenant_id = $t AND ord >= $from AND ord <= $to ORDER BY ord")
            .bind(("t", tenant))
            .bind(("from", window.from))
            .bind(("to", window.to))
            .await
            .map_err(failed(READING))?;
        let rows: Vec<AuditRow> = response.take(0).map_err(failed(READING))?;
        let ids: Vec<Uuid> = rows.iter().map(|row| key(&row.id)).collect::<Result<_, _>>()?;
        let linked = self
            .linked(&ids)
            .await
            .map_err(|error| error.into_domain(READING))?;
        rows.into_iter()
            .rev()
            .map(AuditRow::into_entry)
            .filter(|entry| entry.as_ref().map_or(true, |entry| !linked.contains(&entry.id)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

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
            let entries = log(tenant, 4000, 1);
            write(&store, &entries).await;
            link(&store, tenant, &entries[..3990]).await;
            let done = store.link_leftovers(tenant).await.unwrap();
            assert_eq!(done, Leftovers { linked: 10, pages: 1 });
            let report = store.verify_audit(tenant).await.unwrap();
            assert_eq!((report.valid, report.entries, report.unchained), (true, 4000, 0));
            assert_eq!(store.link_leftovers(tenant).await.unwrap(), Leftovers::default());
        });
    }

    #[test]
    fn an_entry_that_reached_the_log_late_is_linked_too() {
        run_on_each(|url| async move {
            let (store, tenant) = (open(&url).await, Uuid::new_v4());
            let mut entries = log(tenant, 2600, 1);
            write(&store, &entries).await;
            let late = entries.remove(900);
            link(&store, tenant, &entries).await;
            let done = store.link_leftovers(tenant).await.unwrap();
            assert_eq!(done, Leftovers { linked: 1, pages: 2 });
            let report = store.verify_audit(tenant).await.unwrap();
            assert_eq!((report.valid, report.entries, report.unchained), (true, 2600, 0));
            assert!(store.linked(&[late.id]).await.unwrap().contains(&late.id));
        });
    }

    #[test]
    fn a_log_without_any_link_is_linked_in_its_order_also_where_entries_share_a_moment() {
        run_on_each(|url| async move {
            let (store, tenant, other) = (open(&url).await, Uuid::new_v4(), Uuid::new_v4());
            let entries = log(tenant, 2500, 7);
            write(&store, &entries).await;
            write(&store, &log(other, 3, 1)).await;
            let done = store.link_leftovers(tenant).await.unwrap();
            assert_eq!((done.linked, done.pages), (2500, 3));
            let report = store.verify_audit(tenant).await.unwrap();
            assert_eq!((report.valid, report.entries, report.unchained), (true, 2500, 0));
            let mut response = store
                .db
                .query("SELECT * FROM audit_chain WHERE tenant_id = $t ORDER BY seq")
                .bind(("t", tenant))
                .await
                .unwrap();
            let links: Vec<ChainRow> = response.take(0).unwrap();
            assert!(
                links.is_sorted_by_key(|link| link.entry_time),
                "the chain has another order"
            );
            let theirs = store.verify_audit(other).await.unwrap();
            assert_eq!(theirs.unchained, 3, "another workspace's log was touched");
        });
    }
}
