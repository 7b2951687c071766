//! A whole table is read page by page: every row once, at a cost that does not grow with the rows that remain.

use std::time::{Duration, Instant};

use test_support::{extent, is_full};

use super::*;
use crate::domain::memory::entity::{EntityDraft, EntityKey};
use crate::store::rows::up_to_limit;
use crate::store::{NotesWrite, StoredEntity};

async fn fill(store: &Store, ws: Uuid, entities: usize) {
    for first in (0..entities).step_by(500) {
        let mut write = NotesWrite::default();
        for at in first..entities.min(first + 500) {
            let key = EntityKey::new("domain", &format!("host{at}.example")).unwrap();
            write.entities.push(StoredEntity {
                id: store.ids_of(ws).entity(&key),
                draft: EntityDraft {
                    name: key.value.clone(),
                    key,
                    aliases: Vec::new(),
                    confidence: 1.0,
                },
                created_at: clock::now(),
                merged_into: None,
            });
        }
        let rev = store.last_write(ws).await.unwrap() + 1;
        store.write_notes(ws, &write, rev, clock::now()).await.unwrap();
    }
}

async fn read(store: &Store, ws: Uuid, expected: usize) -> Duration {
    let begun = Instant::now();
    let found = store.entities(ws).await.unwrap().rows;
    let took = begun.elapsed();
    assert_eq!(found.len(), expected);
    assert!(found.is_sorted_by(|a, b| a.id < b.id), "each once, by id");
    took
}

#[test]
fn every_row_of_a_workspace_is_read_once() {
    run_on_each(|url| async move {
        let store = open(&url).await;
        let (ws, other) = (Uuid::new_v4(), Uuid::new_v4());
        // More than one page.
        let many = extent(2_100, 4_000);
        fill(&store, ws, many).await;
        fill(&store, other, 700).await;
        read(&store, ws, many).await;
        read(&store, other, 700).await;
        read(&store, Uuid::new_v4(), 0).await;
    });
}

#[test]
fn four_times_the_rows_take_four_times_as_long() {
    let (_dir, url) = new_dir();
    run(async move {
        let store = open(&url).await;
        let (ws, rows) = (Uuid::new_v4(), extent(300, 6_000));
        let (mut few, mut many) = (Duration::MAX, Duration::MAX);
        fill(&store, ws, rows).await;
        for _ in 0..3 {
            few = few.min(read(&store, ws, rows).await);
        }
        fill(&store, ws, 4 * rows).await;
        for _ in 0..3 {
            many = many.min(read(&store, ws, 4 * rows).await);
        }
        // With every page read to the end of the table it would be twelve times as long.
        assert!(
            !is_full() || many < few * 8,
            "{few:?}, {many:?} for four times {rows}"
        );
    });
}

#[test]
fn a_range_of_ids_is_read_no_further_than_the_limit() {
    run_on_each(|url| async move {
        let store = open(&url).await;
        let ws = Uuid::new_v4();
        for _ in 0..6 {
            fill(&store, ws, 1).await;
        }
        let after = up_to_limit("node_write:[$ws, 0, 0]>..[$ws, $end]");
        for (filter, limit) in [("", 4), ("WHERE nodes != []", 3)] {
            let query = format!("SELECT VALUE id FROM {after} {filter} LIMIT {limit}");
            let mut answer = store
                .db
                .query(format!("{query}; EXPLAIN {query}"))
                .bind(("ws", ws))
                .bind(("end", i64::MAX))
                .await
                .unwrap();
            let found: Vec<surrealdb::types::RecordId> = answer.take(0).unwrap();
            let plan: Option<String> = answer.take(1).unwrap();
            let plan = plan.unwrap();
            assert_eq!(found.len(), limit);
            assert!(
                plan.contains(&format!("limit: {limit}")) && !plan.contains("Limit ["),
                "{plan}"
            );
        }
    });
}
