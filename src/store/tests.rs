//! Guarantees of the storage: append-only tables, one owner per directory, conflicts that resolve.

mod addresses;
mod audit_migration;
mod backends;
mod check;
mod feed_batches;
mod feeds;
mod hand_ins;
mod hot_tables;
mod known_rows;
mod node_ids;
mod node_writes;
mod note_writes;
mod outbox;
mod pages;
pub(super) mod passages;
mod retention;
mod staging;
mod stix_ids;

use std::net::IpAddr;
use std::path::Path;

use chrono::{DateTime, Utc};
use secrecy::SecretString;
use serde_json::{Value, json};
use surrealdb::engine::any::connect;
use surrealdb::opt::Config;
use test_support::eventually;
use uuid::Uuid;

pub(crate) use self::backends::{TestServer, fresh, fresh_with, open, run};
pub(super) use self::backends::{new_dir, run_on_each};
use super::audit::linked_entries::LinkedEntries;
use super::audit::rows::Position;
use super::connection::database::{Connection, Database};
use super::connection::size::SizeLimit;
use super::{SessionRecord, StixOrigin, Store, StoreError};
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::session::{RecallMode, RecallSession};
use crate::domain::stix::ingest::{self, Markings, StixDefaults, StixPlan};
use crate::domain::tlp::Tlp;

/// The append-only tables.
const APPEND_ONLY: [&str; 6] = [
    "audit_entry",
    "audit_by_user",
    "audit_link",
    "evidence",
    "passage",
    "recall_session",
];

/// Lets the writes of a workspace go on as in a store whose revisions were times: these seconds after one of 2023, in
/// microseconds.
async fn number_by_time(store: &Store, ws: Uuid, seconds: i64) {
    let number = 1_700_000_000_000_000 + seconds * 1_000_000;
    let statement = "CREATE type::record('node_write', [$ws, $number, 0]) SET nodes = []";
    let statement = store
        .db
        .query(statement)
        .bind(("ws", ws))
        .bind(("number", number));
    statement.await.unwrap().check().unwrap();
}

/// An ingest after all that was written so far.
async fn origin(store: &Store, ws: Uuid) -> StixOrigin {
    StixOrigin {
        after: store.last_write(ws).await.unwrap(),
        ..StixOrigin::default()
    }
}

pub(super) fn entry(tenant: Uuid, action: &str) -> AuditEntry {
    let ip = IpAddr::from([127, 0, 0, 1]);
    AuditEntry::anonymous(tenant, ip, action, "test", Outcome::Success, clock::now())
}

fn plan(objects: usize) -> StixPlan {
    let time = "2020-01-01T00:00:00.000Z";
    let id = |kind: &str, at: usize| format!("{kind}--00000000-0000-4000-8000-{at:012}");
    let mut all: Vec<Value> = (0..objects)
        .map(|at| {
            json!({"type": "tool", "id": id("tool", at), "spec_version": "2.1", "name": format!("Tool {at}"),
                "created": time, "modified": time})
        })
        .collect();
    all.extend((1..objects).map(|at| {
        json!({"type": "relationship", "id": id("relationship", at), "spec_version": "2.1", "created": time,
            "modified": time, "relationship_type": "related-to", "source_ref": id("tool", 0),
            "target_ref": id("tool", at)})
    }));
    let defaults = StixDefaults {
        tlp: Tlp::Green,
        confidence: 0.5,
        now: DateTime::<Utc>::UNIX_EPOCH,
    };
    ingest::plan(all.into(), defaults, Markings::new())
}

/// Everything in a table, as text.
async fn rows(db: &Database, table: &str) -> Vec<String> {
    let mut answer = db
        .query(format!("SELECT * FROM {table} ORDER BY id"))
        .await
        .unwrap();
    let value: surrealdb::types::Value = answer.take(0).unwrap();
    let surrealdb::types::Value::Array(rows) = value else {
        panic!("{value:?}");
    };
    rows.into_iter().map(|row| format!("{row:?}")).collect()
}

/// A store with rows in each append-only table.
async fn filled(url: &str) -> (Store, Uuid) {
    let (store, tenant) = (open(url).await, Uuid::new_v4());
    let (plan, ingested) = (plan(3), entry(tenant, "ingest"));
    let origin = origin(&store, tenant).await;
    let done = store.ingest_stix(tenant, &plan, &origin, clock::now(), |_, _| ingested.clone());
    done.await.unwrap();
    let session = SessionRecord {
        session: RecallSession {
            id: Uuid::new_v4(),
            query: "q".into(),
            mode: RecallMode::Blended,
            result_count: 0,
            max_tlp: Tlp::White,
            has_red_node: false,
            node_ids: Vec::new(),
            created_at: clock::now(),
        },
        user: Uuid::new_v4(),
        include_rejected: false,
    };
    let mut searched = entry(tenant, "search");
    searched.user_id = Some(session.user);
    store.save_session(tenant, &session, &searched).await.unwrap();
    store.link_unlinked(tenant).await.unwrap();
    passages::send(&store, tenant, &passages::excerpt()).await;
    (store, tenant)
}

/// Statements that would change or remove rows of a table.
fn attacks(table: &str) -> Vec<String> {
    let field = match table {
        "audit_entry" => "action = 'forged'",
        "audit_by_user" => "forged = true",
        "audit_link" => "prev_hash = 'forged'",
        "evidence" => "title = 'forged'",
        "passage" => "text = 'forged'",
        _ => "query = 'forged'",
    };
    let one = format!("(SELECT VALUE id FROM {table})");
    let mut attacks = vec![
        format!("UPDATE {table} SET {field}"),
        format!("UPDATE {table} MERGE {{ x: 1 }}"),
        format!("UPDATE {one} SET {field}"),
        format!("UPSERT {table} SET {field}"),
        format!("FOR $id IN {one} {{ UPSERT $id SET {field} }}"),
        format!(
            "FOR $row IN (SELECT * FROM {table}) {{ INSERT INTO {table} $row ON DUPLICATE KEY UPDATE {field} }}"
        ),
        format!("DELETE {table}"),
        format!("DELETE {one} RETURN BEFORE"),
        format!("BEGIN; DELETE {table}; COMMIT"),
        format!("{{ UPDATE {table} SET {field}; DELETE {table}; }}"),
    ];
    let import: Vec<String> = attacks
        .iter()
        .map(|attack| format!("OPTION IMPORT; {attack}"))
        .collect();
    attacks.extend(import);
    attacks
}

#[test]
fn append_only_tables_refuse_change_and_removal_to_the_service_and_its_clones() {
    run_on_each(|url| async move {
        let (store, _) = filled(&url).await;
        let clone = store.db.clone();
        let handles = [store.db.clone(), clone.clone(), clone];
        for table in APPEND_ONLY {
            let before = rows(&store.db, table).await;
            assert!(!before.is_empty(), "{table}");
            for db in std::iter::once(&store.db).chain(&handles) {
                for attack in attacks(table) {
                    // Whether it fails or is ignored does not matter, as long as nothing changed.
                    db.query(&attack).await.and_then(|answer| answer.check()).ok();
                    assert_eq!(rows(db, table).await, before, "{attack}");
                }
            }
            for attack in attacks(table) {
                let tx = store.db.clone().begin().await.unwrap();
                tx.query(&attack).await.and_then(|answer| answer.check()).ok();
                // A caller may also commit after a failed statement.
                tx.commit().await.ok();
                assert_eq!(rows(&store.db, table).await, before, "{attack} in a transaction");
            }
        }
    });
}

#[test]
fn the_service_can_not_change_the_schema_nor_its_own_rights() {
    run_on_each(|url| async move {
        let (store, tenant) = filled(&url).await;
        for statement in [
            "REMOVE TABLE audit_entry",
            "REMOVE TABLE node",
            "REMOVE EVENT audit_entry_append_only ON audit_entry",
            "REMOVE FIELD tenant_id ON audit_entry",
            "REMOVE INDEX user_ws ON user",
            "REMOVE USER service ON DATABASE",
            "REMOVE DATABASE hosted",
            "REMOVE NAMESPACE threat_memory",
            "DEFINE TABLE OVERWRITE audit_entry SCHEMALESS PERMISSIONS FULL",
            "DEFINE EVENT OVERWRITE audit_entry_append_only ON audit_entry WHEN false THEN {}",
            "DEFINE FIELD OVERWRITE tenant_id ON audit_entry TYPE string",
            "DEFINE TABLE mine PERMISSIONS FULL",
            "DEFINE USER mine ON DATABASE PASSWORD 'x' ROLES OWNER",
            "DEFINE USER mine ON ROOT PASSWORD 'x' ROLES OWNER",
            "DEFINE ACCESS mine ON DATABASE TYPE RECORD",
            "DEFINE FUNCTION fn::mine() { DELETE audit_entry }",
            "ALTER TABLE audit_entry PERMISSIONS FULL",
            "OPTION IMPORT; RETURN 1",
            "OPTION IMPORT; REMOVE TABLE audit_entry",
            "REBUILD INDEX user_ws ON user",
        ] {
            for db in [&store.db, &store.db.clone()] {
                let answer = db.query(statement).await.and_then(|answer| answer.check());
                let error = answer.expect_err(statement).to_string();
                assert!(error.contains("Not enough permissions"), "{statement}: {error}");
            }
        }
        let script = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(script.path(), "OPTION IMPORT; DELETE audit_entry;").unwrap();
        match &store.db.connection {
            Connection::Embedded(db) => db.import(script.path()).await.ok(),
            Connection::Remote(db) => db.import(script.path()).await.ok(),
            // The SDK imports over HTTP only.
            Connection::Pool(_) => None,
        };
        assert_eq!(rows(&store.db, "audit_entry").await.len(), 3);
        assert!(store.verify_audit(tenant).await.unwrap().valid);
    });
}

/// The database with the rights of the directory's owner.
async fn owner(url: &str) -> Database {
    // The engine releases the directory in the background.
    let db = eventually(|| async { connect((url, Config::new())).await }).await;
    db.use_ns("threat_memory").use_db("hosted").await.unwrap();
    Database::new(Connection::Remote(db), SizeLimit::new(256 << 20))
}

#[test]
fn the_same_statements_do_change_the_tables_for_an_owner() {
    run(async {
        let (_dir, url) = new_dir();
        drop(filled(&url).await);
        let db = owner(&url).await;
        for table in APPEND_ONLY {
            for attack in attacks(table) {
                db.query(&attack).await.and_then(|answer| answer.check()).ok();
            }
            assert!(rows(&db, table).await.is_empty(), "{table}");
        }
    });
}

#[test]
fn no_code_of_the_store_gives_up_the_session_of_the_service() {
    // An embedded engine gives a session without a user the owner's rights.
    let allowed = ["open.rs", "connection/connector.rs", "connection/database.rs"];
    let store = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src/store"));
    let mut seen = 0;
    let mut folders = vec![store.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(store).unwrap().to_string_lossy().into_owned();
            if name.contains("tests") {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            seen += 1;
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(!text.contains(".invalidate("), "{name}");
            let opens = ["connect((", ".signin(", ".authenticate(", "Surreal::"];
            let opened = opens.iter().any(|way| text.contains(way));
            assert!(
                !opened || allowed.contains(&name.as_str()),
                "{name} opens a session of its own"
            );
        }
    }
    assert!(seen > 50, "{seen} files were read");
}

/// Tampers as the directory's owner; returns the result of the verification.
async fn first_error_after(tampering: &str) -> (Vec<AuditEntry>, Option<String>) {
    let (_dir, url) = new_dir();
    let tenant = Uuid::new_v4();
    let entries: Vec<AuditEntry> = (0..4).map(|at| entry(tenant, &format!("test.{at}"))).collect();
    let store = open(&url).await;
    store.append_audit(&entries).await.unwrap();
    for part in [&entries[..3], &entries[3..]] {
        store.chain_audit(tenant, part).await.unwrap();
    }
    let report = store.verify_audit(tenant).await.unwrap();
    assert_eq!((report.valid, report.entries, report.unchained), (true, 4, 0));
    drop(store);

    let db = owner(&url).await;
    let script = format!(
        "REMOVE EVENT audit_entry_append_only ON audit_entry; REMOVE EVENT audit_link_append_only ON audit_link; {tampering}"
    );
    let [second, third] = [1, 2].map(|at| Position::of(&entries[at]).id(tenant));
    let statement = db.query(script).bind(("second", second)).bind(("third", third));
    statement.await.unwrap().check().unwrap();
    drop(db);

    let report = open_again(&url).await.verify_audit(tenant).await.unwrap();
    assert_eq!(report.valid, report.first_error.is_none());
    (entries, report.first_error)
}

/// Opens a directory that was closed a moment ago.
async fn open_again(url: &str) -> Store {
    drop(owner(url).await);
    open(url).await
}

#[test]
fn a_tampered_log_is_reported_with_the_first_bad_link() {
    run(async {
        let (_, error) = first_error_after("RETURN 1").await;
        assert_eq!(error, None);
        let both = "UPDATE $second SET action = 'x'; UPDATE $third SET action = 'x'";
        let (entries, error) = first_error_after(both).await;
        let id = entries[1].id;
        assert_eq!(error, Some(format!("entry {id} of link 2 was changed")));
        let (entries, error) = first_error_after("DELETE $third").await;
        let id = entries[2].id;
        assert_eq!(error, Some(format!("entry {id} of link 3 is missing")));
        for (tampering, link) in [
            ("UPDATE audit_link SET links[1].hash = 'x'", 2),
            ("UPDATE audit_link SET prev_hash = 'x'", 1),
            (
                "DELETE $second; UPDATE audit_link SET links = array::remove(links, 1)",
                2,
            ),
            ("DELETE audit_link WHERE array::len(links) = 3", 4),
        ] {
            let (_, error) = first_error_after(tampering).await;
            let expected = format!("link {link} does not follow the one before it");
            assert_eq!(error, Some(expected), "{tampering}");
        }
    });
}

#[test]
fn entries_without_a_link_are_found_and_linking_one_twice_is_harmless() {
    run_on_each(|url| async move {
        let (store, tenant) = (open(&url).await, Uuid::new_v4());
        let entries: Vec<AuditEntry> = (0..3).map(|at| entry(tenant, &format!("test.{at}"))).collect();
        store.append_audit(&entries).await.unwrap();
        // Rewriting existing entries changes nothing.
        store.append_audit(&entries).await.unwrap();
        store.chain_audit(tenant, &entries[..1]).await.unwrap();
        let report = store.verify_audit(tenant).await.unwrap();
        assert_eq!((report.valid, report.entries, report.unchained), (true, 1, 2));
        assert_eq!(store.link_unlinked(tenant).await.unwrap().linked, 2);
        // Whoever wrote them asks for their links only now, and another process finds them, too.
        store.chain_audit(tenant, &entries[1..]).await.unwrap();
        let mut known = LinkedEntries::of(tenant);
        store.chain_unlinked(tenant, &entries, &known).await.unwrap();
        known.reach(&store.db, entries[0].created_at).await.unwrap();
        store.chain_unlinked(tenant, &entries, &known).await.unwrap();
        let report = store.verify_audit(tenant).await.unwrap();
        assert_eq!((report.valid, report.entries, report.unchained), (true, 3, 0));
        assert_eq!(store.link_unlinked(tenant).await.unwrap().linked, 0);
    });
}

#[test]
fn an_entry_in_the_log_can_not_be_replaced_by_writing_its_id_again() {
    run_on_each(|url| async move {
        let (store, tenant) = (open(&url).await, Uuid::new_v4());
        let first = entry(tenant, "test.first");
        store.append_audit(std::slice::from_ref(&first)).await.unwrap();
        let mut forged = first.clone();
        forged.action = "test.forged".into();
        store.append_audit(&[forged]).await.ok();
        let filter = super::AuditFilter {
            limit: 10,
            ..super::AuditFilter::default()
        };
        assert_eq!(store.list_audit(tenant, &filter).await.unwrap(), [first]);
    });
}

#[test]
fn a_second_store_on_the_same_directory_says_that_it_is_in_use() {
    run(async {
        let (dir, url) = new_dir();
        let first = open(&url).await;
        let secret = SecretString::from("another secret of at least 32 bytes");
        let error = Store::open(
            &url,
            "hosted",
            crate::store::StorageMemory::default(),
            None,
            &secret,
        )
        .await
        .unwrap_err();
        assert!(matches!(error, StoreError::InUse(_)), "{error:?}");
        let text = error.to_string();
        let place = dir.path().display().to_string();
        assert!(
            text.contains(&place) && text.contains("in use by another process"),
            "{text}"
        );
        assert!(!text.contains("surrealkv"), "{text}");
        // The refused process did no harm.
        let tenant = Uuid::new_v4();
        first.append_audit(&[entry(tenant, "test")]).await.unwrap();
    });
}

#[test]
fn a_store_that_is_broken_is_not_said_to_be_in_use() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        // The directory's name must not matter either.
        let path = dir.path().join("locked");
        std::fs::write(&path, "a file where a directory belongs").unwrap();
        let secret = SecretString::from("a secret of at least 32 bytes for tests");
        let url = format!("surrealkv://{}", path.display());
        let error = Store::open(
            &url,
            "hosted",
            crate::store::StorageMemory::default(),
            None,
            &secret,
        )
        .await
        .unwrap_err();
        assert!(matches!(error, StoreError::Open { .. }), "{error:?}");
    });
}

#[test]
fn a_new_secret_opens_an_old_store() {
    run(async {
        let (_dir, url) = new_dir();
        let (store, tenant) = filled(&url).await;
        drop(store);
        drop(owner(&url).await);
        let secret = SecretString::from("another secret of at least 32 bytes");
        let store = Store::open(
            &url,
            "hosted",
            crate::store::StorageMemory::default(),
            None,
            &secret,
        )
        .await
        .unwrap();
        assert!(store.verify_audit(tenant).await.unwrap().valid);
        store.append_audit(&[entry(tenant, "test")]).await.unwrap();
    });
}
