//! Notes that arrive together and have nothing to do with each other are written at the same time.

use std::collections::HashSet;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use test_support::until;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::super::claims::Claims;
use super::super::evolution::NearDuplicates;
use super::super::prepare::{PreparedNote, prepare};
use super::super::queue::PendingRequest;
use super::copy::CopiedMemory;
use super::*;
use crate::capacity::cores;
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
async fn together(core: &Arc<GraphCore>, notes: Vec<NewNote>) -> Vec<WriteResult> {
    let state = core.state(workspace());
    // Catching up takes the turn.
    core.open_memory().await.unwrap();
    let memory = core.memory().await.unwrap();
    let turn = state.writing.write().await;
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

/// Whether the second note must wait while the first one is written.
async fn must_wait(core: &GraphCore, texts: &[String; 2]) -> bool {
    let memory = core.memory().await.unwrap();
    let claims = texts.each_ref().map(|text| {
        let request = PendingRequest {
            notes: vec![prepare(workspace(), note(text), &tuning(), Some(&core.index))],
            from: HERE,
            done: oneshot::channel().0,
            _permit: None,
        };
        let notes: Vec<&PreparedNote> = request.notes.iter().flatten().collect();
        let known = NearDuplicates::of(memory, &notes, &tuning());
        Claims::of(memory, &request, &known)
    });
    claims[0].meet(&claims[1], &tuning())
}

#[test]
fn only_what_shares_nothing_new_is_written_at_once() {
    run(async {
        let core = fresh(tuning()).await;
        remember(&core, "APT28 uses Mimikatz.").await;
        remember(&core, "Sandworm was seen.").await;
        let apart = [
            [seen(1), seen(2)],
            // Known entities and relationships are shared by all.
            ["In March", "In May"].map(|month| format!("{month} APT28 used Mimikatz against a bank.")),
            ["In March", "In May"].map(|month| format!("{month} Sandworm was seen near a bank.")),
        ];
        for texts in apart {
            assert!(!must_wait(&core, &texts).await, "{texts:?}");
        }
        let after_another = [
            ["It was told", "We read"].map(|who| format!("{who} of CVE-2024-4711.")),
            ["It was told", "We read"].map(|who| format!("{who} that Sandworm used Mimikatz.")),
            ["in June", "in  June"].map(|month| format!("APT28 used Mimikatz {month}.")),
            ["went", "then went"].map(|went| BEACONS.replace("went", went)),
        ];
        for texts in after_another {
            assert!(must_wait(&core, &texts).await, "{texts:?}");
        }
    });
}

#[test]
fn a_single_note_is_no_transaction_beside_another() {
    run(async {
        let core = fresh(tuning()).await;
        remember(&core, "A first note.").await;
        for notes in [1, 7, 8, 23] {
            let before = core.store.next_rev();
            let first = notes * 10;
            let texts = (first..first + notes).map(seen);
            together(&core, texts.map(|text| note(&text)).collect()).await;
            let changes = core.store.changes(workspace(), before, 1_000).await.unwrap();
            let revs: HashSet<u64> = changes.notes.iter().map(|change| change.rev).collect();
            assert_eq!(revs.len(), (notes / 4).clamp(1, cores()), "{notes} notes");
        }
    });
}

#[test]
fn other_writers_have_their_turn_between_groups() {
    run(async {
        let core = fresh(tuning()).await;
        remember(&core, "A first note.").await;
        let state = core.state(workspace());
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
                let _turn = state.writing.write().await;
                let highest = state.backlog().highest;
                // Nothing becomes durable in the meantime.
                tokio::time::sleep(Duration::from_millis(5)).await;
                let changes = core.store.changes(workspace(), highest, 1).await.unwrap();
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
fn what_is_written_apart_is_one_graph_and_one_index() {
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

        copied.assert_right("after two transactions at once").await;
        let changes = core.store.changes(workspace(), 0, 1_000).await.unwrap();
        let revs: HashSet<u64> = changes.notes.iter().map(|change| change.rev).collect();
        // The repeated note may have waited for the one that it repeats.
        let least = cores().min(4);
        assert!((least..=least + 1).contains(&revs.len()), "{}", revs.len());
        for (text, told) in texts.iter().zip(&told) {
            let superseded = text == BEACONS;
            let found = ids(&core, text, None).await;
            assert_eq!(found.first() == Some(&told.note_id), !superseded, "{text}");
        }
    });
}

#[test]
fn a_part_that_fails_fails_alone() {
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
        let mut texts: Vec<String> = [large].into_iter().chain((1..8).map(seen)).collect();
        // It builds on an address that the first note would have brought, and is in the second half.
        texts.push(seen(0));
        let told = together(&core, texts.iter().map(|text| note(text)).collect()).await;
        assert!(told[0].is_err());
        let apart = told.iter().filter(|told| told.is_ok()).count();
        assert_eq!(apart > 0, cores() > 1);
        assert_eq!(told[8].is_ok(), cores() > 1);
        // Whoever was told of a failure finds nothing written, and can try again.
        for (text, told) in texts.iter().zip(&told).skip(1) {
            let again = remember(&core, text).await;
            match told {
                Ok(told) => {
                    assert_eq!(again.status, NoteStatus::Duplicate);
                    assert_eq!(again.note_id, told[0].as_ref().unwrap().note_id);
                }
                Err(_) => assert_eq!(again.status, NoteStatus::Created),
            }
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
        let prepared = prepare(workspace(), note(BEACONS), &tuning(), Some(&core.index)).unwrap();
        let id = prepared.note.id;
        let write = NotesWrite {
            notes: vec![(prepared.note, prepared.digest)],
            ..NotesWrite::default()
        };
        let (store, rev) = (Arc::clone(&core.store), core.store.next_rev());
        // A younger note has landed meanwhile.
        remember(&core, "A second note.").await;
        let written = tokio::spawn(async move {
            let now = clock::now();
            store.write_notes(workspace(), &write, rev, now).await.unwrap();
            panic!("after the commit");
        });
        Arc::clone(&core).take_over(vec![(rev, written)]).await;
        core.fill_vectors().await;
        let again = remember(&core, BEACONS).await;
        assert_eq!((again.status, again.note_id), (NoteStatus::Duplicate, id));
        assert_eq!(ids(&core, BEACONS, None).await.first(), Some(&id));
        remember(&core, "A third note.").await;
        copied.assert_right("after a group that nobody had shown").await;
    });
}
