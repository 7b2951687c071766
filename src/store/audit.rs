//! The audit log: append and read are its only operations (see `schemas/0001_core.surql`).

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{MutexGuard, PoisonError};

use chrono::{DateTime, Utc};
use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use super::connect::StoreError;
use super::retry::with_retry;
use super::rows::{AuditRow, ChainRow, key, newest_first, record};
use super::{Store, failed};
use crate::domain::audit::{AuditEntry, ChainCheck, ChainLink, ChainReport};
use crate::domain::error::DomainError;

pub(super) const PAGE: u32 = 1000;
/// The year 9999: the latest time that RFC 3339 can write.
pub(super) const FAR_FUTURE: DateTime<Utc> = DateTime::from_timestamp(253_402_300_799, 0).unwrap();

/// Which entries to list, newest first.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    pub user: Option<Uuid>,
    /// Inclusive lower bound.
    pub from: Option<DateTime<Utc>>,
    /// Exclusive upper bound.
    pub to: Option<DateTime<Utc>>,
    pub limit: u32,
    pub offset: u32,
}

#[derive(Debug, SurrealValue)]
struct HeadRow {
    seq: i64,
    hash: String,
}

/// The last link of a workspace's chain.
#[derive(Debug, Clone)]
pub(super) struct ChainHead {
    seq: u64,
    hash: String,
}

impl Store {
    /// Writes entries durably, in one statement.
    pub async fn append_audit(&self, entries: &[AuditEntry]) -> Result<(), DomainError> {
        let what = "writing the audit log failed";
        let rows: Vec<AuditRow> = entries.iter().map(AuditRow::from).collect();
        with_retry(|| async {
            // IGNORE: a retry after an unknown outcome must not fail on entries that are already there.
            self.db
                .query("INSERT IGNORE INTO audit $rows RETURN NONE")
                .bind(("rows", rows.clone()))
                .await?
                .check()?;
            Ok(())
        })
        .await
        .map_err(|error: StoreError| error.into_domain(what))
    }

    /// Appends entries of one workspace to its chain, in the given order.
    pub async fn chain_audit(&self, tenant: Uuid, entries: &[AuditEntry]) -> Result<(), DomainError> {
        let what = "writing the audit chain failed";
        let lost_races = AtomicU32::new(0);
        with_retry(|| async {
            let mut entries: Vec<&AuditEntry> = entries.iter().collect();
            // Removed during the write, so that the head is read again after a failure.
            let mut head = self.chain_heads().remove(&tenant);
            if lost_races.fetch_add(1, Ordering::Relaxed) > 0 {
                // Another process may have linked some of them in the meantime.
                let ids: Vec<Uuid> = entries.iter().map(|entry| entry.id).collect();
                let linked = self.linked(&ids).await?;
                entries.retain(|entry| !linked.contains(&entry.id));
                head = None;
            }
            if head.is_none() {
                head = self.chain_head(tenant).await?;
            }
            let mut rows = Vec::with_capacity(entries.len());
            for entry in entries {
                let prev = head.as_ref().map(|head| (head.seq, head.hash.as_str()));
                let link = ChainLink::after(tenant, prev, entry.id, entry.digest());
                rows.push(ChainRow::new(entry, &link));
                head = Some(ChainHead {
                    seq: link.seq,
                    hash: link.hash,
                });
            }
            let insert = "INSERT INTO audit_chain $rows RETURN NONE";
            self.db.query(insert).bind(("rows", rows)).await?.check()?;
            if let Some(head) = head {
                self.chain_heads().insert(tenant, head);
            }
            Ok(())
        })
        .await
        .map_err(|error: StoreError| error.into_domain(what))
    }

    fn chain_heads(&self) -> MutexGuard<'_, HashMap<Uuid, ChainHead>> {
        self.chain_heads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ids of those entries that have a link.
    pub(super) async fn linked(&self, entries: &[Uuid]) -> Result<HashSet<Uuid>, StoreError> {
        let ids: Vec<_> = entries.iter().map(|id| record("audit_chain", *id)).collect();
        let mut response = self
            .db
            .query("SELECT VALUE id FROM $ids")
            .bind(("ids", ids))
            .await?;
        let linked: Vec<RecordId> = response.take(0)?;
        Ok(linked.iter().map(key).collect::<Result<_, _>>()?)
    }

    /// The last link of a workspace. It is cached between writes because a backward scan is slow.
    async fn chain_head(&self, tenant: Uuid) -> Result<Option<ChainHead>, StoreError> {
        let mut response = self
            .db
            .query("SELECT seq, hash FROM audit_chain WHERE tenant_id = $t ORDER BY seq DESC LIMIT 1")
            .bind(("t", tenant))
            .await?;
        let row: Option<HeadRow> = response.take(0)?;
        Ok(row.map(|HeadRow { seq, hash }| ChainHead {
            seq: u64::try_from(seq).unwrap_or(0),
            hash,
        }))
    }

    /// The entries of a workspace, newest first.
    pub async fn list_audit(
        &self,
        tenant: Uuid,
        filter: &AuditFilter,
    ) -> Result<Vec<AuditEntry>, DomainError> {
        let rows: Vec<AuditRow> = self.audit_rows("*", tenant, filter).await?;
        rows.into_iter().map(AuditRow::into_entry).collect()
    }

    /// The number of entries of a workspace, up to the filter's limit.
    pub async fn count_audit(&self, tenant: Uuid, filter: &AuditFilter) -> Result<u32, DomainError> {
        let found: Vec<i64> = self.audit_rows("VALUE ord", tenant, filter).await?;
        Ok(u32::try_from(found.len()).unwrap_or(u32::MAX))
    }

    async fn audit_rows<T: SurrealValue>(
        &self,
        columns: &str,
        tenant: Uuid,
        filter: &AuditFilter,
    ) -> Result<Vec<T>, DomainError> {
        let what = "reading the audit log failed";
        // LIMIT and START are validated numbers and inlined: with a parameter the engine would sort everything.
        let user = if filter.user.is_some() {
            "AND user_id = $user"
        } else {
            ""
        };
        let (limit, offset) = (filter.limit, filter.offset);
        let mut response = self
            .db
            .query(format!(
                "SELECT {columns} FROM audit WHERE tenant_id = $t {user} AND ord > $to AND ord <= $from \
                 ORDER BY ord LIMIT {limit} START {offset}"
            ))
            .bind(("t", tenant))
            .bind(("user", filter.user))
            .bind(("from", newest_first(filter.from.unwrap_or(DateTime::UNIX_EPOCH))))
            .bind(("to", newest_first(filter.to.unwrap_or(FAR_FUTURE))))
            .await
            .map_err(failed(what))?;
        response.take(0).map_err(failed(what))
    }

    /// Checks the whole chain of a workspace, page by page.
    pub async fn verify_audit(&self, tenant: Uuid) -> Result<ChainReport, DomainError> {
        let what = "reading the audit chain failed";
        let mut check = ChainCheck::new(tenant);
        let mut last = 0i64;
        let mut links = 0u64;
        loop {
            let mut response = self
                .db
                .query(format!(
                    "SELECT * FROM audit_chain WHERE tenant_id = $t AND seq > $last ORDER BY seq LIMIT {PAGE}"
                ))
                .bind(("t", tenant))
                .bind(("last", last))
                .await
                .map_err(failed(what))?;
            let rows: Vec<ChainRow> = response.take(0).map_err(failed(what))?;
            let Some(end) = rows.last() else { break };
            last = end.seq;
            links += rows.len() as u64;
            self.check_page(tenant, rows, &mut check).await?;
        }
        let entries = self.count(tenant, "audit").await?;
        Ok(check.finish(entries.saturating_sub(links)))
    }

    pub(super) async fn count(&self, tenant: Uuid, table: &'static str) -> Result<u64, DomainError> {
        let what = "counting audit entries failed";
        let query =
            format!("SELECT VALUE count FROM (SELECT count() FROM {table} WHERE tenant_id = $t GROUP ALL)");
        let mut response = self
            .db
            .query(query)
            .bind(("t", tenant))
            .await
            .map_err(failed(what))?;
        let count: Option<i64> = response.take(0).map_err(failed(what))?;
        Ok(u64::try_from(count.unwrap_or(0)).unwrap_or(0))
    }

    async fn check_page(
        &self,
        tenant: Uuid,
        rows: Vec<ChainRow>,
        check: &mut ChainCheck,
    ) -> Result<(), DomainError> {
        let what = "reading the audit log failed";
        let ids: Vec<_> = rows.iter().map(|row| record("audit", row.entry)).collect();
        let mut response = self
            .db
            .query("SELECT * FROM $ids WHERE tenant_id = $t")
            .bind(("ids", ids))
            .bind(("t", tenant))
            .await
            .map_err(failed(what))?;
        let entries: Vec<AuditRow> = response.take(0).map_err(failed(what))?;
        let mut found = std::collections::HashMap::new();
        for row in entries {
            let entry = row.into_entry()?;
            found.insert(entry.id, entry);
        }
        for row in rows {
            let link = row.into_link();
            check.link(&link, found.get(&link.entry));
        }
        Ok(())
    }
}
