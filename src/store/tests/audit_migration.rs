//! The audit log of an earlier version is moved whole, in its order, also when the first try was interrupted.

use chrono::TimeDelta;
use surrealdb::types::{SurrealValue, Value as Row};
use test_support::extent;

use super::hot_tables::previous;
use super::*;
use crate::domain::audit::ChainLink;
use crate::store::AuditFilter;
use crate::store::migrations::audit;
use crate::store::rows::{newest_first, record};

/// Entries of one workspace, every third one by a user, some at the same moment.
fn log(tenant: Uuid, user: Uuid, count: usize) -> Vec<AuditEntry> {
    let begin = clock::now() - TimeDelta::hours(1);
    let made = (0..count).map(|at| {
        let mut entry = entry(tenant, "test.act").on(at).with("at", at);
        entry.created_at = begin + TimeDelta::milliseconds(i64::try_from(at / 2).unwrap());
        entry.user_id = Some(user).filter(|_| at % 3 == 0);
        entry
    });
    made.collect()
}

/// Writes a log as the earlier version did, with links for the first `linked` entries.
async fn write(db: &Database, entries: &[AuditEntry], linked: usize) {
    let rows: Vec<Row> = entries
        .iter()
        .map(|entry| {
            json!({"action": entry.action, "resource": entry.resource, "resource_id": entry.resource_id,
                "outcome": "success", "ip_address": entry.ip_address, "ord": newest_first(entry.created_at),
                "metadata": Value::Object(entry.metadata.clone()).to_string()})
            .into_value()
        })
        .zip(entries)
        .map(|(mut row, entry)| {
            let Row::Object(fields) = &mut row else {
                panic!("{row:?}");
            };
            fields.insert("id".to_owned(), record("audit", entry.id).into_value());
            fields.insert("tenant_id".to_owned(), entry.tenant_id.into_value());
            fields.insert("user_id".to_owned(), entry.user_id.into_value());
            fields.insert("created_at".to_owned(), entry.created_at.into_value());
            row
        })
        .collect();
    insert(db, "audit", rows).await;
    let mut links: Vec<ChainLink> = Vec::new();
    let rows = entries[..linked].iter().map(|entry| {
        let prev = links.last().map(|link| (link.seq, link.hash.clone()));
        let prev = prev.as_ref().map(|(seq, hash)| (*seq, hash.as_str()));
        let link = ChainLink::after(entry.tenant_id, prev, entry.id, entry.digest());
        let mut row = json!({"seq": link.seq, "entry_hash": link.entry_hash, "prev_hash": link.prev_hash, "hash": link.hash})
            .into_value();
        let Row::Object(fields) = &mut row else {
            panic!("{row:?}");
        };
        fields.insert("id".to_owned(), record("audit_chain", entry.id).into_value());
        fields.insert("tenant_id".to_owned(), entry.tenant_id.into_value());
        fields.insert("entry".to_owned(), entry.id.into_value());
        fields.insert("entry_time".to_owned(), entry.created_at.into_value());
        links.push(link);
        row
    });
    let rows = rows.collect();
    insert(db, "audit_chain", rows).await;
}

async fn insert(db: &Database, table: &str, rows: Vec<Row>) {
    let query = format!("INSERT INTO {table} $rows RETURN NONE");
    db.query(query)
        .bind(("rows", rows))
        .await
        .unwrap()
        .check()
        .unwrap();
}

async fn tables(db: &Database) -> Vec<String> {
    let query = "RETURN object::keys((INFO FOR DB).tables)";
    db.query(query).await.unwrap().take(0).unwrap()
}

/// A store whose log was written by the earlier version.
async fn earlier(dir: &tempfile::TempDir, logs: &[(&[AuditEntry], usize)]) -> (String, Database) {
    let url = format!("surrealkv://{}", dir.path().display());
    let db = previous(&url).await;
    for (entries, linked) in logs {
        write(&db, entries, *linked).await;
    }
    (url, db)
}

#[test]
fn an_earlier_log_is_moved_whole() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let (tenant, other, user) = (Uuid::new_v4(), Uuid::new_v4(), Uuid::new_v4());
        // More than one page of entries and of links.
        let linked = extent(520, 1_200);
        let entries = log(tenant, user, linked + 3);
        let theirs = log(other, user, 7);
        let (url, db) = earlier(&dir, &[(&entries, linked), (&theirs, 7)]).await;
        drop(db);
        let store = open(&url).await;
        let report = store.verify_audit(tenant).await.unwrap();
        assert_eq!(
            (report.valid, report.entries, report.unchained),
            (true, linked as u64, 3),
            "{report:?}"
        );
        let filter = AuditFilter {
            limit: 5_000,
            ..AuditFilter::default()
        };
        let by_age = |entries: Vec<&AuditEntry>| {
            let mut entries: Vec<AuditEntry> = entries.into_iter().cloned().collect();
            entries.sort_by_key(|entry| (newest_first(entry.created_at), entry.id));
            entries
        };
        let found = store.list_audit(tenant, &filter).await.unwrap();
        assert_eq!(found, by_age(entries.iter().collect()));
        let of_user = AuditFilter {
            user: Some(user),
            ..filter.clone()
        };
        let found = store.list_audit(tenant, &of_user).await.unwrap();
        let expected = entries.iter().filter(|entry| entry.user_id == Some(user));
        assert_eq!(found, by_age(expected.collect()));
        assert_eq!(store.list_audit(other, &filter).await.unwrap().len(), 7);
        assert_eq!(store.link_unlinked(tenant).await.unwrap().linked, 3);
        let report = store.verify_audit(tenant).await.unwrap();
        let all = entries.len() as u64;
        assert_eq!((report.valid, report.entries, report.unchained), (true, all, 0));
        let tables = tables(&store.db).await;
        assert!(
            tables
                .iter()
                .all(|table| table != "audit" && table != "audit_chain"),
            "{tables:?}"
        );
    });
}

#[test]
fn a_move_that_was_interrupted_is_finished_and_doubles_nothing() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let (tenant, user) = (Uuid::new_v4(), Uuid::new_v4());
        let linked = extent(520, 650);
        let entries = log(tenant, user, linked + 50);
        let (_, db) = earlier(&dir, &[(&entries, linked)]).await;
        let script = include_str!("../../../schemas/0017_audit_order.surql");
        db.query(script).await.unwrap().check().unwrap();
        audit::run(&db).await.unwrap();
        // As if the last pages had not been reached.
        let lost = "REMOVE EVENT audit_entry_append_only ON audit_entry; REMOVE EVENT audit_link_append_only ON audit_link; \
                    DELETE audit_link WHERE array::len(links) < 500; \
                    DELETE (SELECT VALUE id FROM audit_entry LIMIT 90);";
        db.query(lost).await.unwrap().check().unwrap();
        audit::run(&db).await.unwrap();
        let moved = "SELECT VALUE count FROM (SELECT count() FROM audit_entry GROUP ALL)";
        let moved: Option<i64> = db.query(moved).await.unwrap().take(0).unwrap();
        assert_eq!(moved, Some(entries.len() as i64));
        let links: Vec<i64> = db
            .query("SELECT VALUE array::len(links) FROM audit_link")
            .await
            .unwrap()
            .take(0)
            .unwrap();
        assert_eq!(links, [linked as i64 - 500, 500]);
    });
}

#[test]
fn a_gap_in_an_earlier_chain_is_still_reported() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let (tenant, user) = (Uuid::new_v4(), Uuid::new_v4());
        let entries = log(tenant, user, 20);
        let (url, db) = earlier(&dir, &[(&entries, 20)]).await;
        let cut = "REMOVE EVENT audit_chain_append_only ON audit_chain; DELETE audit_chain WHERE seq = 7";
        db.query(cut).await.unwrap().check().unwrap();
        drop(db);
        let report = open(&url).await.verify_audit(tenant).await.unwrap();
        assert_eq!(
            report.first_error.as_deref(),
            Some("link 8 does not follow the one before it")
        );
    });
}
