//! Moves the audit log of an earlier version, page by page. Interrupted, it goes on where it stopped at the next start.

use chrono::{DateTime, Utc};
use surrealdb::types::SurrealValue;
use uuid::Uuid;

use crate::clock;
use crate::domain::audit::{AuditEntry, ChainLink};
use crate::store::audit::rows::{AuditRow, LinksRow, PlacedLink, Position, audit_rows};
use crate::store::connection::database::Database;
use crate::store::connection::error::StoreError;
use crate::store::rows::{key, newest_first, up_to_limit};

/// Rows moved in one transaction.
const PAGE: usize = 500;

#[derive(Debug, SurrealValue)]
struct OldLink {
    seq: i64,
    entry: Uuid,
    entry_time: DateTime<Utc>,
    entry_hash: String,
    prev_hash: String,
    hash: String,
}

/// Moves what the tables `audit` and `audit_chain` hold; they stay as they are.
pub(in crate::store) async fn run(admin: &Database) -> Result<(), StoreError> {
    let tables = "RETURN object::keys((INFO FOR DB).tables)";
    let tables: Vec<String> = admin.query(tables).await?.take(0)?;
    if !tables.iter().any(|table| table == "audit") {
        return Ok(());
    }
    entries(admin).await?;
    let query = "SELECT VALUE tenant_id FROM audit_chain GROUP BY tenant_id";
    let tenants: Vec<Uuid> = admin.query(query).await?.take(0)?;
    for tenant in tenants {
        links(admin, tenant).await?;
    }
    Ok(())
}

async fn entries(admin: &Database) -> Result<(), StoreError> {
    let mut after: Option<Uuid> = None;
    loop {
        let start = after.map(|after| format!("u'{after}'>")).unwrap_or_default();
        let range = up_to_limit(&format!("audit:{start}.."));
        let query = format!("SELECT * FROM {range} LIMIT {PAGE}");
        let rows: Vec<AuditRow> = admin.query(query).await?.take(0)?;
        let Some(last) = rows.last() else {
            return Ok(());
        };
        after = Some(key(last.id())?);
        let entries = rows
            .into_iter()
            .map(|row| key(row.id()).and_then(|id| row.with_id(id)));
        let entries: Vec<AuditEntry> = entries.collect::<Result<_, _>>()?;
        insert(admin, "INSERT IGNORE $rows RETURN NONE", audit_rows(&entries)).await?;
    }
}

async fn links(admin: &Database, tenant: Uuid) -> Result<(), StoreError> {
    let mut last = 0;
    loop {
        let query = format!(
            "SELECT * FROM audit_chain WHERE tenant_id = $t AND seq > $last ORDER BY seq LIMIT {PAGE}"
        );
        let statement = admin.query(query).bind(("t", tenant)).bind(("last", last));
        let rows: Vec<OldLink> = statement.await?.take(0)?;
        let Some(end) = rows.last() else {
            return Ok(());
        };
        last = end.seq;
        let links: Vec<PlacedLink> = rows.into_iter().map(OldLink::into_link).collect();
        // Links that don't follow each other need rows of their own, so that a check finds the gap.
        for part in links.chunk_by(|(a, _), (b, _)| b.seq == a.seq + 1 && b.prev_hash == a.hash) {
            let row = LinksRow::new(tenant, part, clock::now());
            let rows = row.into_iter().map(LinksRow::into_value).collect();
            insert(admin, "INSERT IGNORE INTO audit_link $rows RETURN NONE", rows).await?;
        }
    }
}

async fn insert(admin: &Database, query: &str, rows: Vec<surrealdb::types::Value>) -> Result<(), StoreError> {
    admin.query(query).bind(("rows", rows)).await?.check()?;
    Ok(())
}

impl OldLink {
    fn into_link(self) -> PlacedLink {
        let position = Position {
            ord: newest_first(self.entry_time),
            entry: self.entry,
        };
        let link = ChainLink {
            seq: u64::try_from(self.seq).unwrap_or(0),
            entry: self.entry,
            entry_hash: self.entry_hash,
            prev_hash: self.prev_hash,
            hash: self.hash,
        };
        (link, position)
    }
}
