//! The audit log: append and read are its only operations (see `schemas/0017_audit_order.surql`).

pub(super) mod linked_entries;
pub(super) mod relink;
pub(super) mod reserve;
pub(super) mod rows;
pub(super) mod texts;

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use self::linked_entries::{LinkedEntries, SKEW};
use self::reserve::AuditReserve;
use self::rows::{AuditRow, LinksRow, PlacedLink, Position, audit_rows};
use super::connection::error::StoreError;
use super::connection::retry::with_retry;
use super::rows::{newest_first, up_to_limit};
use super::{Store, failed};
use crate::domain::audit::{AuditEntry, ChainCheck, ChainLink, ChainReport, Outcome};
use crate::domain::error::DomainError;
use crate::{blocking, clock};

pub(super) const PAGE: u32 = 1000;
/// Most links in a row.
const LINKS: usize = 500;
/// The year 9999: the latest time that RFC 3339 can write.
pub(super) const FAR_FUTURE: DateTime<Utc> = DateTime::from_timestamp(253_402_300_799, 0).unwrap();

/// Which entries to list, newest first.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    pub user: Option<Uuid>,
    pub action: Option<String>,
    pub outcome: Option<Outcome>,
    /// Inclusive lower bound.
    pub from: Option<DateTime<Utc>>,
    /// Exclusive upper bound.
    pub to: Option<DateTime<Utc>>,
    pub limit: u32,
    pub offset: u32,
}

impl AuditFilter {
    /// Whether the references of a user lead to what is asked for: they hold neither action nor outcome.
    fn is_by_reference(&self) -> bool {
        self.user.is_some() && self.action.is_none() && self.outcome.is_none()
    }

    /// The condition on the entries of a range.
    fn condition(&self) -> String {
        let conditions = [
            self.user.map(|_| "user_id = $user"),
            self.action.as_ref().map(|_| "action = $action"),
            self.outcome.map(|_| "outcome = $outcome"),
        ];
        let conditions: Vec<&str> = conditions.into_iter().flatten().collect();
        if conditions.is_empty() || self.is_by_reference() {
            return String::new();
        }
        format!("WHERE {}", conditions.join(" AND "))
    }
}

/// The last link of a workspace's chain.
#[derive(Debug, Clone)]
pub(super) struct ChainHead {
    pub seq: u64,
    hash: String,
    /// The position of its entry.
    pub last: Position,
}

/// What this process knows of a workspace's chain.
#[derive(Debug, Default)]
pub(super) struct Chain {
    /// Its end; `None` when it must be read.
    head: Option<ChainHead>,
    /// Entries that got their link when they were found in the log; whoever wrote them may yet ask for it.
    found: HashSet<Uuid>,
}

/// Who asks for links.
#[derive(Debug, Clone, Copy)]
enum Origin<'a> {
    /// Whoever wrote the entries.
    Writer,
    /// Whoever found them in the log, with the links that it knows.
    Log(&'a LinkedEntries),
}

impl Store {
    /// Writes entries durably, in one statement.
    pub async fn append_audit(&self, entries: &[AuditEntry]) -> Result<(), DomainError> {
        let what = "writing the audit log failed";
        let rows = audit_rows(entries);
        with_retry(|| async {
            // IGNORE: a retry after an unknown outcome must not fail on entries that are already there.
            self.db
                .query("INSERT IGNORE $rows RETURN NONE")
                .bind(("rows", rows.clone()))
                .await?
                .check()?;
            Ok(())
        })
        .await
        .map_err(|error: StoreError| error.into_domain(what))
    }

    /// Writes the entries of reads durably: to the log or, when the store takes no writes, to the reserve. Those reach the
    /// log at the next start. Returns whether they are in the log.
    ///
    /// # Errors
    /// [`DomainError::AuditFull`] when there is no room left in the reserve either.
    pub async fn append_audit_of_reads(&self, entries: &[AuditEntry]) -> Result<bool, DomainError> {
        match self.append_audit(entries).await {
            Err(DomainError::StorageFailed) => self.keep_in_reserve(entries.to_vec()).await.map(|()| false),
            written => written.map(|()| true),
        }
    }

    /// Keeps the entries of reads until the next start.
    pub(super) async fn keep_in_reserve(&self, entries: Vec<AuditEntry>) -> Result<(), DomainError> {
        let reserve = self.reserve.clone().ok_or(DomainError::StorageFailed)?;
        let kept = blocking::spawn(move || reserve.keep(&entries)).await;
        match kept {
            Ok(true) => Ok(()),
            Ok(false) => Err(DomainError::AuditFull),
            Err(error) => Err(DomainError::internal("keeping audit entries failed", error)),
        }
    }

    /// Opens the reserve of a data directory, and moves what is in it to the log. Without one, reads that must be audited
    /// are refused while nothing can be written.
    pub(super) async fn open_reserve(&mut self, data_dir: &Path) {
        let (reserve, entries) = match AuditReserve::open(data_dir) {
            Ok(opened) => opened,
            Err(error) => {
                tracing::warn!(%error, "there is no room set aside for audit entries on a full disk");
                return;
            }
        };
        let mut moved = Ok(());
        for part in entries.chunks(PAGE as usize) {
            moved = self.append_audit(part).await;
            if moved.is_err() {
                break;
            }
        }
        let cleared = moved.map_err(|error| error.to_string()).and_then(|()| {
            let cleared = if entries.is_empty() {
                Ok(())
            } else {
                reserve.clear()
            };
            cleared.map_err(|error| error.to_string())
        });
        match cleared {
            Ok(()) if entries.is_empty() => {}
            Ok(()) => tracing::info!(
                entries = entries.len(),
                "audit entries of a full disk are in the log now"
            ),
            Err(error) => tracing::error!(error, "audit entries of a full disk wait for the next start"),
        }
        self.reserve = Some(Arc::new(reserve));
    }

    /// Appends entries of one workspace to its chain, in the given order; those that have a link are left out.
    pub async fn chain_audit(&self, tenant: Uuid, entries: &[AuditEntry]) -> Result<(), DomainError> {
        self.append_to_chain(tenant, entries, Origin::Writer).await
    }

    /// [`Store::chain_audit`] for entries that were found in the log: this process may be about to link them, too.
    /// `known` reaches back to before the oldest of them was made; what was linked since is read here.
    pub(super) async fn chain_unlinked(
        &self,
        tenant: Uuid,
        entries: &[AuditEntry],
        known: &LinkedEntries,
    ) -> Result<(), DomainError> {
        self.append_to_chain(tenant, entries, Origin::Log(known)).await
    }

    async fn append_to_chain(
        &self,
        tenant: Uuid,
        entries: &[AuditEntry],
        origin: Origin<'_>,
    ) -> Result<(), DomainError> {
        with_retry(|| async {
            let mut entries: Vec<&AuditEntry> = entries.iter().collect();
            // Taken during the write, so that the head is read again after a failure.
            let mut head = self.take_head(tenant, &mut entries, origin);
            if head.is_none() {
                head = self.chain_head(tenant).await?;
                // Read after the head: whoever appends later takes the place of this write, and it is tried again.
                let linked = match origin {
                    Origin::Writer => self.linked_entries(tenant, &entries).await?,
                    Origin::Log(known) => known.newer(&self.db).await?,
                };
                entries.retain(|entry| !linked.holds(entry.id));
            }
            let mut links: Vec<PlacedLink> = Vec::with_capacity(entries.len());
            for entry in &entries {
                let prev = head.as_ref().map(|head| (head.seq, head.hash.as_str()));
                let link = ChainLink::after(tenant, prev, entry.id, entry.digest());
                let last = Position::of(entry);
                head = Some(ChainHead {
                    seq: link.seq,
                    hash: link.hash.clone(),
                    last,
                });
                links.push((link, last));
            }
            self.append_links(tenant, &links).await?;
            let mut chains = self.chains.lock();
            let chain = chains.entry(tenant).or_default();
            chain.head = head;
            if let Origin::Log(_) = origin {
                // Older ones are another process's, and nobody here will link them again.
                let own = entries
                    .iter()
                    .filter(|entry| entry.created_at >= self.opened - SKEW);
                chain.found.extend(own.map(|entry| entry.id));
            }
            Ok(())
        })
        .await
        .map_err(|error: StoreError| error.into_domain("writing the audit chain failed"))
    }

    /// The known end of a chain, which only the holder may extend. Leaves out entries that were linked when they were
    /// found in the log.
    fn take_head(
        &self,
        tenant: Uuid,
        entries: &mut Vec<&AuditEntry>,
        origin: Origin<'_>,
    ) -> Option<ChainHead> {
        let mut chains = self.chains.lock();
        let chain = chains.entry(tenant).or_default();
        match origin {
            Origin::Writer => entries.retain(|entry| !chain.found.remove(&entry.id)),
            // They may have been linked since they were found.
            Origin::Log(known) => {
                entries.retain(|entry| !known.holds(entry.id));
                chain.head = None;
            }
        }
        chain.head.take()
    }

    /// Writes links that follow the end of the chain; fails if another process was faster: its row has the same id.
    async fn append_links(&self, tenant: Uuid, links: &[PlacedLink]) -> Result<(), StoreError> {
        let at = clock::now();
        let rows = links.chunks(LINKS).map(|part| LinksRow::new(tenant, part, at));
        let rows: Vec<LinksRow> = rows.flatten().collect();
        if rows.is_empty() {
            return Ok(());
        }
        let insert = "INSERT INTO audit_link $rows RETURN NONE";
        self.db.query(insert).bind(("rows", rows)).await?.check()?;
        Ok(())
    }

    /// Which of these entries have a link.
    pub(super) async fn linked_entries(
        &self,
        tenant: Uuid,
        entries: &[&AuditEntry],
    ) -> Result<LinkedEntries, StoreError> {
        let mut linked = LinkedEntries::of(tenant);
        if let Some(oldest) = entries.iter().map(|entry| entry.created_at).min() {
            linked.reach(&self.db, oldest).await?;
        }
        Ok(linked)
    }

    /// The last link of a workspace.
    pub(super) async fn chain_head(&self, tenant: Uuid) -> Result<Option<ChainHead>, StoreError> {
        let chain = up_to_limit("audit_link:[$t]..[$t, $end]");
        let mut response = self
            .db
            .query(format!("SELECT * FROM {chain} LIMIT 1"))
            .bind(("t", tenant))
            .bind(("end", i64::MAX))
            .await?;
        let row: Option<LinksRow> = response.take(0)?;
        let links = row.map(LinksRow::into_links).transpose()?;
        let last = links.and_then(|links| links.into_iter().last());
        Ok(last.map(|(link, last)| ChainHead {
            seq: link.seq,
            hash: link.hash,
            last,
        }))
    }

    /// The entries of a workspace, newest first.
    pub async fn list_audit(
        &self,
        tenant: Uuid,
        filter: &AuditFilter,
    ) -> Result<Vec<AuditEntry>, DomainError> {
        let rows: Vec<AuditRow> = if filter.is_by_reference() {
            let ids: Vec<RecordId> = self.audit_range("VALUE id", tenant, filter).await?;
            let ids = ids.iter().map(Position::from_id);
            let mut ids: Vec<Position> = ids.collect::<Result<_, _>>()?;
            ids.sort_unstable();
            self.entries_at(tenant, &ids).await?
        } else {
            self.audit_range("*", tenant, filter).await?
        };
        let entries = rows.into_iter().map(AuditRow::into_entry);
        self.readable(tenant, entries.collect::<Result<_, _>>()?).await
    }

    /// The number of entries of a workspace, up to the filter's limit.
    pub async fn count_audit(&self, tenant: Uuid, filter: &AuditFilter) -> Result<u32, DomainError> {
        let found: Vec<RecordId> = self.audit_range("VALUE id", tenant, filter).await?;
        Ok(u32::try_from(found.len()).unwrap_or(u32::MAX))
    }

    /// Columns of the entries that a filter asks for, or of the references to them if it asks for a user's.
    async fn audit_range<T: SurrealValue>(
        &self,
        columns: &str,
        tenant: Uuid,
        filter: &AuditFilter,
    ) -> Result<Vec<T>, DomainError> {
        let what = "reading the audit log failed";
        let range = up_to_limit(if filter.is_by_reference() {
            "audit_by_user:[$t, $user, $first]..[$t, $user, $end]"
        } else {
            "audit_entry:[$t, $first]..[$t, $end]"
        });
        // LIMIT and START are validated numbers and inlined: as parameters they would not go into the scan.
        let (limit, offset) = (filter.limit, filter.offset);
        let condition = filter.condition();
        let after = |time| newest_first(time).saturating_add(1);
        let mut response = self
            .db
            .query(format!(
                "SELECT {columns} FROM {range} {condition} LIMIT {limit} START {offset}"
            ))
            .bind(("t", tenant))
            .bind(("user", filter.user))
            .bind(("action", filter.action.clone()))
            .bind((
                "outcome",
                filter.outcome.map(|outcome| outcome.as_str().to_owned()),
            ))
            .bind(("first", after(filter.to.unwrap_or(FAR_FUTURE))))
            .bind(("end", after(filter.from.unwrap_or(DateTime::UNIX_EPOCH))))
            .await
            .map_err(failed(what))?;
        response.take(0).map_err(failed(what))
    }

    /// The rows of entries, in the order in which they are asked for.
    async fn entries_at(&self, tenant: Uuid, positions: &[Position]) -> Result<Vec<AuditRow>, DomainError> {
        let ids = positions.iter().map(|position| position.id(tenant)).collect();
        self.rows_by_id(
            "SELECT * FROM $ids WHERE tenant_id = $t",
            ids,
            &[("t", tenant.into_value())],
        )
        .await
        .map_err(failed("reading the audit log failed"))
    }

    /// Checks the whole chain of a workspace, page by page.
    pub async fn verify_audit(&self, tenant: Uuid) -> Result<ChainReport, DomainError> {
        let what = "reading the audit chain failed";
        let head = self.chain_head(tenant).await;
        let head = head.map_err(|error| error.into_domain(what))?;
        let end = head.map_or(0, |head| head.seq);
        let mut check = ChainCheck::new(tenant);
        let mut last = 0;
        while last < end {
            let links = self.links_after(tenant, last).await?;
            let Some((newest, _)) = links.last() else {
                check.fail(Some(format!("the links after link {last} are missing")));
                break;
            };
            last = newest.seq;
            self.check_page(tenant, &links, &mut check).await?;
        }
        let entries = self.count_entries(tenant).await?;
        Ok(check.finish(entries.saturating_sub(last)))
    }

    /// Links of the rows that begin within a page after this link, in order.
    pub(super) async fn links_after(&self, tenant: Uuid, last: u64) -> Result<Vec<PlacedLink>, DomainError> {
        let what = "reading the audit chain failed";
        let place = |link: u64| -i64::try_from(link).unwrap_or(i64::MAX);
        let mut response = self
            .db
            .query("SELECT * FROM audit_link:[$t, $first]..[$t, $last]")
            .bind(("t", tenant))
            .bind(("first", place(last + u64::from(PAGE))))
            .bind(("last", place(last)))
            .await
            .map_err(failed(what))?;
        let rows: Vec<LinksRow> = response.take(0).map_err(failed(what))?;
        let links = rows.into_iter().rev().map(LinksRow::into_links);
        Ok(links
            .collect::<Result<Vec<_>, _>>()?
            .into_iter()
            .flatten()
            .collect())
    }

    /// The number of entries of a workspace.
    pub(super) async fn count_entries(&self, tenant: Uuid) -> Result<u64, DomainError> {
        let what = "counting audit entries failed";
        let mut response = self
            .db
            .query("SELECT VALUE count FROM (SELECT count() FROM audit_entry:[$t]..[$t, $end] GROUP ALL)")
            .bind(("t", tenant))
            .bind(("end", i64::MAX))
            .await
            .map_err(failed(what))?;
        let count: Option<i64> = response.take(0).map_err(failed(what))?;
        Ok(u64::try_from(count.unwrap_or(0)).unwrap_or(0))
    }

    async fn check_page(
        &self,
        tenant: Uuid,
        links: &[PlacedLink],
        check: &mut ChainCheck,
    ) -> Result<(), DomainError> {
        let positions: Vec<Position> = links.iter().map(|(_, position)| *position).collect();
        let mut found = HashMap::new();
        for row in self.entries_at(tenant, &positions).await? {
            let entry = row.into_entry()?;
            found.insert(entry.id, entry);
        }
        for (entry, texts) in self.audit_texts(tenant, &positions).await? {
            if let Some(entry) = found.get_mut(&entry) {
                entry.texts = texts;
            }
        }
        for (link, _) in links {
            check.link(link, found.get(&link.entry));
        }
        Ok(())
    }
}
