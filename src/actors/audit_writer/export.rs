//! An export of the log: which entries it holds, and how far it has been read.

use std::sync::Arc;

use actix::Handler;
use chrono::{DateTime, TimeDelta, Utc};
use uuid::Uuid;

use super::{Append, AuditHandle, AuditWriter};
use crate::actors::handle::{Access, Job, Request};
use crate::actors::job::{self, TaskReply};
use crate::capacity::Tenant;
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::error::DomainError;
use crate::domain::principal::Principal;
use crate::store::AuditFilter;

/// Entries read at a time.
const PAGE: u32 = 500;
/// Precision of an entry's time.
const TICK: TimeDelta = TimeDelta::microseconds(1);

/// Counts the entries of a workspace, up to the filter's limit, once all that have arrived are written.
#[derive(Debug)]
struct CountEntries {
    tenant: Uuid,
    filter: AuditFilter,
}

impl Request for CountEntries {
    type Reply = u32;
    const NAME: &'static str = "count_entries";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Tenant {
        Some(self.tenant)
    }
}

impl Handler<Job<CountEntries>> for AuditWriter {
    type Result = TaskReply<u32>;

    fn handle(&mut self, job: Job<CountEntries>, ctx: &mut Self::Context) -> Self::Result {
        let (CountEntries { tenant, filter }, guard, span) = job.open();
        let store = Arc::clone(&self.store);
        let settled = self.when_settled(ctx);
        job::run(&self.runtime, guard, span, async move {
            settled.await.ok();
            store.count_audit(tenant, &filter).await
        })
    }
}

/// An export under way.
#[derive(Debug)]
pub struct AuditExport {
    tenant: Uuid,
    filter: AuditFilter,
    /// Entries that may still be read.
    left: u32,
    /// Time of the last entry read.
    last: Option<DateTime<Utc>>,
}

impl AuditHandle {
    /// Begins an export. It is in the log before its first row is read, and contains nothing later than itself.
    ///
    /// # Errors
    /// When the log can't be read or written.
    pub async fn export(&self, by: &Principal, mut filter: AuditFilter) -> Result<AuditExport, DomainError> {
        let (tenant, now) = (by.workspace.id, clock::now());
        filter.to = Some(filter.to.map_or(now, |to| to.min(now)));
        let count = CountEntries {
            tenant,
            filter: filter.clone(),
        };
        let rows = self.call(count).await?;
        let entry = AuditEntry::by(by, "audit.export", "audit", Outcome::Success, now).with("rows", rows);
        self.call(Append(entry)).await?;
        Ok(AuditExport {
            tenant,
            // Not the count: an entry that is committed late must not push out the oldest one.
            left: filter.limit,
            filter,
            last: None,
        })
    }
}

impl AuditExport {
    /// The workspace whose log is exported.
    pub fn tenant(&self) -> Uuid {
        self.tenant
    }

    /// The next page to read; `None` at the end.
    pub fn next_page(&self) -> Option<AuditFilter> {
        (self.left > 0).then(|| AuditFilter {
            limit: self.left.min(PAGE),
            ..self.filter.clone()
        })
    }

    /// Goes on behind these entries.
    pub fn advance(&mut self, entries: &[AuditEntry]) {
        let asked = self.left.min(PAGE);
        let Some(last) = entries.last().map(|entry| entry.created_at) else {
            self.left = 0;
            return;
        };
        let ties = entries.iter().rev().take_while(|entry| entry.created_at == last);
        let ties = u32::try_from(ties.count()).unwrap_or(u32::MAX);
        // Entries of one instant may be on both sides of the border between two pages.
        let before = if self.last == Some(last) {
            self.filter.offset
        } else {
            0
        };
        self.filter.offset = before + ties;
        self.filter.to = Some(last + TICK);
        self.last = Some(last);
        let read = u32::try_from(entries.len()).unwrap_or(u32::MAX);
        // A page that is not full is the last one.
        self.left = if read < asked { 0 } else { self.left - read };
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn entries(times: &[i64]) -> Vec<AuditEntry> {
        let entry = |micros: &i64| {
            let at = DateTime::from_timestamp_micros(*micros).unwrap();
            let ip = IpAddr::from([127, 0, 0, 1]);
            AuditEntry::anonymous(Uuid::nil(), ip, "a", "b", Outcome::Success, at)
        };
        times.iter().map(entry).collect()
    }

    #[test]
    fn pages_cover_the_log_once_also_where_entries_share_their_time() {
        // The log, newest first: many entries share a microsecond.
        let log = entries(
            &(0..2600)
                .map(|n| 10_000 - n / 7 * i64::from(n < 2000))
                .collect::<Vec<_>>(),
        );
        let mut log = log;
        log.sort_by_key(|entry| std::cmp::Reverse(entry.created_at));
        let to = DateTime::from_timestamp_micros(20_000);
        let filter = AuditFilter {
            to,
            limit: 5000,
            ..AuditFilter::default()
        };
        let mut export = AuditExport {
            tenant: Uuid::nil(),
            filter,
            left: 5000,
            last: None,
        };
        let mut read = Vec::new();
        while let Some(page) = export.next_page() {
            let older = log
                .iter()
                .filter(|entry| page.to.is_none_or(|to| entry.created_at < to));
            let found: Vec<AuditEntry> = older
                .skip(page.offset as usize)
                .take(page.limit as usize)
                .cloned()
                .collect();
            export.advance(&found);
            read.extend(found);
        }
        let ids = |entries: &[AuditEntry]| entries.iter().map(|entry| entry.id).collect::<Vec<_>>();
        assert_eq!(ids(&read), ids(&log));
    }
}
