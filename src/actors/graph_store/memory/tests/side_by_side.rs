//! Notes that arrive together and have nothing to do with each other are written in transactions of their own.

use std::collections::HashSet;

use test_support::until;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::super::evolution::Known;
use super::super::prepare::{Prepared, prepare};
use super::super::split::split;
use super::super::state::Pending;
use super::copy::Copied;
use super::*;
use crate::capacity::cores;
use crate::store::StorageMemory;

/// A sentence about one address that no other note mentions.
fn seen(number: usize) -> String {
    let words = ["garden", "harbour", "library", "station", "bridge", "market"];
    let word = words[number % words.len()];
    format!("A scanner near the {word} of town {number} was seen at 198.51.100.{number}.")
}

type Told = Result<Vec<Result<Remembered, DomainError>>, DomainError>;

/// Lets notes wait for their turn together, each in a request of its own, in this order.
async fn together(core: &Arc<GraphCore>, notes: Vec<NewNote>) -> Vec<Told> {
    let state = core.state(workspace());
    // Catching up takes the turn.
    core.open_memory().await.unwrap();
    let memory = core.memory().await.unwrap();
    let turn = state.writing.lock().await;
    let mut writers: Vec<JoinHandle<Told>> = Vec::new();
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

/// The numbers of the notes in each part.
async fn parts(core: &GraphCore, texts: &[&str], most: usize) -> Vec<Vec<usize>> {
    let memory = core.memory().await.unwrap();
    let requests: Vec<Pending> = texts
        .iter()
        .map(|text| Pending {
            notes: vec![prepare(workspace(), note(text), &tuning(), Some(&core.index))],
            from: HERE,
            done: oneshot::channel().0,
            _permit: None,
        })
        .collect();
    let notes: Vec<&Prepared> = requests.iter().flat_map(|one| &one.notes).flatten().collect();
    let numbers: HashMap<Uuid, usize> = notes.iter().map(|one| one.note.id).zip(0..).collect();
    let known = Known::of(memory, &notes, &tuning());
    let number = |request: &Pending| numbers[&request.notes[0].as_ref().unwrap().note.id];
    let parts = split(memory, requests, &known, most);
    parts
        .iter()
        .map(|part| part.iter().map(number).collect())
        .collect()
}

#[test]
fn only_what_shares_nothing_new_is_written_apart() {
    run(async {
        let core = fresh(tuning()).await;
        remember(&core, "APT28 uses Mimikatz.").await;
        let twice = BEACONS.replace("went", "then went");
        let texts = [
            // Known entities and relationships are shared by all.
            "In March APT28 used Mimikatz against a ministry.",
            BEACONS,
            "Again they exploited CVE-2024-4711 on the mail server.",
            "In May APT28 used Mimikatz against a bank.",
            &twice,
            "A note on CVE-2024-4711 and its patch was sent around.",
            "In June APT28 used Mimikatz against a port.",
            "In June  APT28 used Mimikatz against a port.",
        ];
        let parts = parts(&core, &texts, 2).await;
        assert_eq!(parts, [vec![0, 2, 5, 6, 7], vec![1, 3, 4]]);
    });
}

#[test]
fn a_few_notes_are_written_in_few_transactions() {
    run(async {
        let core = fresh(tuning()).await;
        let texts: Vec<String> = (0..9).map(seen).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        for (notes, most, expected) in [(1, 8, 1), (3, 8, 1), (4, 8, 2), (9, 8, 4), (9, 3, 3), (9, 1, 1)] {
            let parts = parts(&core, &texts[..notes], most).await;
            assert_eq!(parts.len(), expected, "{notes} notes, at most {most}");
            assert_eq!(parts.iter().map(Vec::len).sum::<usize>(), notes);
        }
    });
}

#[test]
fn what_is_written_apart_is_one_graph_and_one_index() {
    run(async {
        let copied = Copied::new().await;
        let core = copied.core();
        let mut texts: Vec<String> = (0..12).map(seen).collect();
        texts.extend([seen(3), BEACONS.to_owned(), BEACONS.replace("went", "then went")]);
        texts.push("Sandworm used Industroyer at 198.51.100.5 and 192.0.2.1.".to_owned());
        let told = together(&core, texts.iter().map(|text| note(text)).collect()).await;
        let told: Vec<Remembered> = told
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
        assert_eq!(revs.len(), cores().min(8));
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
        let secret = SecretString::from("0123456789abcdef0123456789abcdef");
        let memory = StorageMemory {
            transaction: 1 << 20,
            ..StorageMemory::default()
        };
        let store = Store::open("mem://", "local", memory, None, &secret)
            .await
            .unwrap();
        let store = Arc::new(store);
        let audit = audit_writer(&store);
        let core = over(&store, &audit, None, tuning());
        remember(&core, "A first note.").await;
        let large = format!("{} {}", seen(0), "many words ".repeat(200_000));
        let mut notes: Vec<NewNote> = [large].iter().map(|text| note(text)).collect();
        notes.extend((1..8).map(|number| note(&seen(number))));
        let told = together(&core, notes).await;
        assert!(told[0].is_err());
        let apart = told.iter().filter(|told| told.is_ok()).count();
        assert_eq!(apart > 0, cores() > 1);
        // Whoever was told of a failure finds nothing written, and can try again.
        for (number, told) in told.iter().enumerate().skip(1) {
            let again = remember(&core, &seen(number)).await;
            match told {
                Ok(told) => {
                    assert_eq!(again.status, NoteStatus::Duplicate);
                    assert_eq!(again.note_id, told[0].as_ref().unwrap().note_id);
                }
                Err(_) => assert_eq!(again.status, NoteStatus::Created),
            }
        }
    });
}
