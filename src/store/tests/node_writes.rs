//! The journal of node writes that the search index follows, also in a store that used an index instead.

use super::feeds::WITHOUT_FEEDS;
use super::*;
use crate::domain::error::DomainError;
use crate::store::Change;

/// Reverts a store to the schema that tracked node writes by an index.
const BEFORE: &str = "REMOVE TABLE node_write; DEFINE INDEX node_ws_rev ON node FIELDS ws, rev; \
    DELETE schema_version WHERE record::id(id) >= 8;";

fn tools(count: usize, year: u32) -> StixPlan {
    let time = format!("{year}-01-01T00:00:00.000Z");
    let tools = (0..count).map(|at| {
        json!({"type": "tool", "id": format!("tool--00000000-0000-4000-8000-{at:012}"), "spec_version": "2.1",
            "name": format!("Tool {at}"), "created": "2020-01-01T00:00:00.000Z", "modified": time})
    });
    let defaults = StixDefaults {
        tlp: Tlp::Green,
        confidence: 0.5,
        now: DateTime::<Utc>::UNIX_EPOCH,
    };
    ingest::plan(tools.collect::<Vec<_>>().into(), defaults, Markings::new())
}

/// Writes a bundle; returns the revision.
async fn write(store: &Store, ws: Uuid, plan: &StixPlan) -> u64 {
    let audit = entry(ws, "ingest");
    let origin = origin(store, ws).await;
    let done = store.ingest_stix(ws, plan, &origin, clock::now(), |_, _| audit.clone());
    done.await.unwrap().written.rev
}

fn revs(changes: &[Change]) -> Vec<u64> {
    changes.iter().map(|change| change.rev).collect()
}

#[test]
fn changes_come_write_by_write_and_each_node_at_its_newest() {
    run_on_each(|url| async move {
        let (store, ws, other) = (open(&url).await, Uuid::new_v4(), Uuid::new_v4());
        let first = write(&store, ws, &tools(1_200, 2020)).await;
        let theirs = write(&store, other, &tools(2, 2020)).await;
        let second = write(&store, ws, &tools(3, 2021)).await;
        let changes = |ws, rev, limit| store.node_changes(ws, rev, limit);

        let page = changes(ws, 0, 1).await.unwrap();
        assert_eq!(revs(&page), [first; 1_200], "a page ends with a write");
        assert_eq!(revs(&changes(ws, first, 1).await.unwrap()), [second; 3]);
        assert!(changes(ws, second, 1).await.unwrap().is_empty());
        let all = changes(ws, 0, 5_000).await.unwrap();
        let (before, after) = all.split_at(1_197);
        assert_eq!(revs(before), [first; 1_197]);
        assert_eq!(revs(after), [second; 3]);
        assert_eq!(revs(&changes(other, 0, 5_000).await.unwrap()), [theirs; 2]);
    });
}

#[test]
fn what_an_older_store_wrote_is_known_by_its_writes() {
    let (_dir, url) = new_dir();
    run(async move {
        let (store, ws) = (open(&url).await, Uuid::new_v4());
        number_by_time(&store, ws, 0).await;
        let first = write(&store, ws, &tools(40, 2020)).await;
        number_by_time(&store, ws, 200).await;
        let second = write(&store, ws, &tools(7, 2021)).await;
        drop(store);
        let db = owner(&url).await;
        db.query(format!("{WITHOUT_FEEDS} {BEFORE}"))
            .await
            .unwrap()
            .check()
            .unwrap();
        drop(db);

        let store = open(&url).await;
        let changes = store.node_changes(ws, 0, 1_000).await.unwrap();
        let (before, after) = changes.split_at(33);
        assert_eq!(revs(before), [first; 33]);
        let first_number = store.last_write(ws).await.unwrap();
        assert!(first_number > second);
        assert_eq!(
            revs(after),
            [first_number; 7],
            "it repeats what is two minutes old"
        );
        let third = write(&store, ws, &tools(1, 2022)).await;
        assert_eq!(third, first_number + 1);
        assert_eq!(
            revs(&store.node_changes(ws, first_number, 1_000).await.unwrap()),
            [third]
        );
    });
}

#[test]
fn of_two_writes_with_one_number_the_later_is_refused_whole() {
    run_on_each(|url| async move {
        let (store, ws) = (open(&url).await, Uuid::new_v4());
        let origin = origin(&store, ws).await;
        let (few, more) = (tools(2, 2020), tools(5, 2021));
        let send = |plan| {
            let audit = entry(ws, "ingest");
            store.ingest_stix(ws, plan, &origin, clock::now(), move |_, _| audit.clone())
        };
        let (one, other) = tokio::join!(send(&few), send(&more));
        let refused = [one.is_err(), other.is_err()];
        assert!(refused[0] != refused[1], "{refused:?}");
        let error = one.err().or(other.err()).unwrap();
        assert!(matches!(error, DomainError::Overtaken), "{error:?}");
        let there = if refused[0] { 5 } else { 2 };
        for (table, want) in [
            ("node", there),
            ("evidence", there),
            ("audit_entry", 1),
            ("node_write", 1),
        ] {
            assert_eq!(rows(&store.db, table).await.len(), want, "{table}");
        }
        assert_eq!(store.last_write(ws).await.unwrap(), 1);
    });
}
