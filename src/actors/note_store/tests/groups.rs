//! Notes that wait together are written in one transaction.

use std::collections::HashSet;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use test_support::until;
use tokio::task::JoinHandle;

use super::super::prepare::prepare;
use super::copy::CopiedMemory;
use super::*;
use crate::actors::note_store::known_names::NoteNames;
use crate::clock;
use crate::store::tests::fresh_with;
use crate::store::{NotesWrite, StorageMemory};

/// A sentence about one address that no other note mentions.
fn seen(number: usize) -> String {
    let words = ["garden", "harbour", "library", "station", "bridge", "market"];
    let word = words[number % words.len()];
    format!("A scanner near the {word} of town {number} was seen at 198.51.100.{number}.")
}

type WriteResult = Result<Vec<Result<RememberOutcome, DomainError>>, DomainError>;

/// Lets notes wait for their turn together, each in a request of its own, in this order.
async fn together(core: &Arc<NoteCore>, notes: Vec<NewNote>) -> Vec<WriteResult> {
    let state = core.notes.state(workspace());
    // Catching up takes the turn.
    core.open().await.unwrap();
    let memory = core.memory().await.unwrap();
    let turn = core.notes.turn(workspace(), &state).await.unwrap();
    let mut writers: Vec<JoinHandle<WriteResult>> = Vec::new();
    for note in notes {
        let core = Arc::clone(core);
        let message = Remember {
            notes: vec![note],
            from: HERE,
            permit: None,
        };
        writers.push(tokio::spawn(async move { core.remember(message).await }));
        until(|| memory.queue().len() == writers.len()).await;
    }
    drop(turn);
    let mut told = Vec::new();
    for writer in writers {
        told.push(writer.await.unwrap());
    }
    told
}

#[test]
fn what_waits_together_is_one_transaction() {
    run(async {
        let core = fresh(tuning()).await;
        remember(&core, "A first note.").await;
        for notes in [1, 7, 8, 23] {
            let before = core.notes.store.last_write(workspace()).await.unwrap();
            let first = notes * 10;
            let texts = (first..first + notes).map(seen);
            together(&core, texts.map(|text| note(&text)).collect()).await;
            let changes = core
                .notes
                .store
                .changes(workspace(), before, 1_000)
                .await
                .unwrap();
            let revs: HashSet<u64> = changes.notes.iter().map(|change| change.rev).collect();
            assert_eq!(revs.len(), 1, "{notes} notes");
        }
    });
}

#[test]
fn other_writers_have_their_turn_between_groups() {
    run(async {
        let core = fresh(tuning()).await;
        remember(&core, "A first note.").await;
        let state = core.notes.state(workspace());
        let stop = Arc::new(AtomicBool::new(false));
        let writers: Vec<_> = (0..16)
            .map(|writer| {
                let (core, stop) = (Arc::clone(&core), Arc::clone(&stop));
                tokio::spawn(async move {
                    let mut written = 0;
                    while !stop.load(Ordering::Relaxed) {
                        remember(&core, &format!("Report {written} of writer {writer}.")).await;
                        written += 1;
                    }
                    written
                })
            })
            .collect();
        for _ in 0..20 {
            let highest = {
                let _turn = core.notes.turn(workspace(), &state).await.unwrap();
                let highest = state.backlog().highest;
                // Nothing becomes durable in the meantime.
                tokio::time::sleep(Duration::from_millis(5)).await;
                let changes = core.notes.store.changes(workspace(), highest, 1).await.unwrap();
                assert_eq!(changes.last, None);
                highest
            };
            until(|| state.backlog().highest > highest).await;
        }
        stop.store(true, Ordering::Relaxed);
        for writer in writers {
            assert!(writer.await.unwrap() > 0);
        }
    });
}

#[test]
fn what_is_written_together_is_one_graph_and_one_index() {
    run(async {
        let copied = CopiedMemory::new().await;
        let core = copied.core();
        let mut texts: Vec<String> = (0..12).map(seen).collect();
        texts.extend([seen(3), BEACONS.to_owned(), BEACONS.replace("went", "then went")]);
        texts.push("Sandworm used Industroyer at 198.51.100.5 and 192.0.2.1.".to_owned());
        let told = together(&core, texts.iter().map(|text| note(text)).collect()).await;
        let told: Vec<RememberOutcome> = told
            .into_iter()
            .map(|told| told.unwrap().remove(0).unwrap())
            .collect();
        let status = |status| told.iter().filter(|told| told.status == status).count();
        assert_eq!(
            (status(NoteStatus::Created), status(NoteStatus::Updated)),
            (14, 1)
        );
        assert_eq!(told[12].note_id, told[3].note_id);
        assert_eq!(told[14].superseded, Some(told[13].note_id));

        copied.assert_right("after many notes at once").await;
        let changes = core.notes.store.changes(workspace(), 0, 1_000).await.unwrap();
        let revs: HashSet<u64> = changes.notes.iter().map(|change| change.rev).collect();
        assert_eq!(revs.len(), 1);
        for (text, told) in texts.iter().zip(&told) {
            let superseded = text == BEACONS;
            let found = ids(&core, text, None).await;
            assert_eq!(found.first() == Some(&told.note_id), !superseded, "{text}");
        }
    });
}

#[test]
fn a_group_that_fails_leaves_nothing_and_can_be_sent_again() {
    run(async {
        let memory = StorageMemory {
            transaction: 1 << 20,
            ..StorageMemory::default()
        };
        let store = Arc::new(fresh_with(memory).await);
        let audit = audit_writer(&store);
        let core = over(&store, &audit, None, tuning());
        remember(&core, "A first note.").await;
        let large = format!("{} {}", seen(0), "many words ".repeat(200_000));
        // The last one builds on an address that the first note would have brought.
        let texts: Vec<String> = [large]
            .into_iter()
            .chain((1..8).map(seen))
            .chain([seen(0)])
            .collect();
        let told = together(&core, texts.iter().map(|text| note(text)).collect()).await;
        assert!(told.iter().all(Result::is_err));
        for text in &texts[1..] {
            assert_eq!(remember(&core, text).await.status, NoteStatus::Created);
        }
        let stored = store.entities(workspace()).await.unwrap().rows;
        assert!(
            stored
                .iter()
                .any(|entity| entity.draft.key.value == "198.51.100.0")
        );
    });
}

#[test]
fn what_a_dead_pipeline_left_in_flight_is_completed_from_the_database() {
    run(async {
        let copied = CopiedMemory::new().await;
        let core = copied.core();
        remember(&core, "A first note.").await;
        let of_entities = core.notes.store.ids_of(workspace());
        let prepared = prepare(
            of_entities,
            note(BEACONS),
            &tuning(),
            Some(&core.notes.index),
            &mut NoteNames::of(&core.memory.graph),
        )
        .unwrap();
        let id = prepared.note.id;
        let write = NotesWrite {
            notes: vec![(prepared.note, prepared.digest)],
            ..NotesWrite::default()
        };
        let store = Arc::clone(&core.notes.store);
        let rev = store.last_write(workspace()).await.unwrap() + 1;
        let written = tokio::spawn(async move {
            let now = clock::now();
            store.write_notes(workspace(), &write, rev, now).await.unwrap();
            panic!("after the commit");
        });
        Arc::clone(&core).take_over(Some((rev, written))).await;
        core.notes.fill_vectors().await;
        let again = remember(&core, BEACONS).await;
        assert_eq!((again.status, again.note_id), (NoteStatus::Duplicate, id));
        assert_eq!(ids(&core, BEACONS, None).await.first(), Some(&id));
        remember(&core, "A third note.").await;
        copied.assert_right("after a group that nobody had shown").await;
    });
}
