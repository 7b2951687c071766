//! Notes that arrive together recognise each other, whenever their look-up was.

use test_support::{extent, until};

use super::super::graph::MemoryGraph;
use super::super::prepare::prepare;
use super::*;
use crate::actors::indexed_store::Turn;
use crate::actors::note_store::documents::{self, Notes};
use crate::actors::note_store::known_names::NoteNames;
use crate::store::NotesWrite;

/// Texts that repeat each other in both directions: they differ in a word without meaning.
fn variants() -> impl Iterator<Item = String> {
    let words = "then also too so here there very it they we that this these as by at";
    words
        .split(' ')
        .map(|word| BEACONS.replace("went", &format!("{word} went")))
}

fn active(graph: &MemoryGraph) -> Vec<String> {
    let notes = graph.notes_by_age().filter(|note| note.superseded_by.is_none());
    notes.map(|note| note.id.to_string()).collect()
}

#[test]
fn of_notes_that_say_the_same_at_the_same_moment_one_stands() {
    run(async {
        for round in 0..extent(3, 8) {
            let core = fresh(tuning()).await;
            let writers: Vec<_> = variants()
                .map(|text| {
                    let core = Arc::clone(&core);
                    tokio::spawn(async move { remember(&core, &text).await })
                })
                .collect();
            let mut told = Vec::new();
            for writer in writers {
                told.push(writer.await.unwrap());
            }
            let memory = core.memory().await.unwrap();
            let standing = active(&memory.graph());
            assert_eq!(standing.len(), 1, "round {round}");
            let superseded: std::collections::HashSet<_> =
                told.iter().filter_map(|told| told.superseded).collect();
            assert_eq!(superseded.len(), told.len() - 1);
            assert_eq!(ids(&core, "beacons of the implant in Riga", None).await.len(), 1);
        }
    });
}

#[test]
fn equal_notes_at_the_same_moment_are_one() {
    run(async {
        let core = fresh(tuning()).await;
        let writers: Vec<_> = (0..16)
            .map(|_| {
                let core = Arc::clone(&core);
                tokio::spawn(async move { remember(&core, BEACONS).await })
            })
            .collect();
        let mut told = Vec::new();
        for writer in writers {
            told.push(writer.await.unwrap());
        }
        assert!(told.iter().all(|other| other.note_id == told[0].note_id));
        let created = told.iter().filter(|told| told.status == NoteStatus::Created);
        assert_eq!(created.count(), 1);
    });
}

/// Stores a note while the turn is held, and forgets it as if a thousand others had followed.
async fn slip_in(core: &NoteCore, turn: &Turn<'_, Notes>, text: &str) -> Uuid {
    let memory = core.memory().await.unwrap();
    let state = core.notes.state(workspace());
    let prepared = prepare(
        memory.ids,
        note(text),
        &tuning(),
        Some(&core.notes.index),
        &mut NoteNames::of(&memory.graph),
    )
    .unwrap();
    let id = prepared.note.id;
    let mut doc = documents::of_note(&prepared.note, 0);
    doc.vector.clone_from(&prepared.wording.vector);
    let write = NotesWrite {
        notes: vec![(prepared.note, prepared.digest)],
        ..NotesWrite::default()
    };
    let (rev, _) = core.write_memory(memory, turn, write, Vec::new()).await.unwrap();
    doc.rev = rev;
    turn.record(rev);
    core.show_docs(memory, &state, rev, vec![doc]).await;
    memory.recent().forget(rev);
    id
}

#[test]
fn a_note_whose_look_up_is_long_past_is_looked_up_again() {
    run(async {
        let core = fresh(tuning()).await;
        remember(&core, "Something else.").await;
        let memory = core.memory().await.unwrap();
        let state = core.notes.state(workspace());
        let turn = core.notes.turn(workspace(), &state).await.unwrap();
        let writer = {
            let core = Arc::clone(&core);
            tokio::spawn(async move { remember(&core, &BEACONS.replace("went", "then went")).await })
        };
        // It has looked for notes once it waits for its turn.
        until(|| memory.queue().len() == 1).await;
        let old = slip_in(&core, &turn, BEACONS).await;
        drop(turn);
        assert_eq!(writer.await.unwrap().superseded, Some(old));
    });
}

#[test]
fn among_many_notes_of_one_entity_and_of_none_a_near_duplicate_is_found() {
    run(async {
        let core = fresh(tuning()).await;
        let texts = [
            "APT28 sent phishing mails to ministries and went on with the replies of their staff in Riga.",
            BEACONS,
        ];
        let mut told = Vec::new();
        for text in &texts {
            told.push(remember(&core, text).await);
        }
        let others = (0..40).map(|number| {
            let word = ["ministry", "garden", "harbour", "library"][number % 4];
            let mut note = note(&format!(
                "APT28 wrote report {number} about the {word} of a town."
            ));
            note.evolve = false;
            note
        });
        tell(&core, others.collect()).await;
        for (text, told) in texts.iter().zip(told) {
            let again = remember(&core, &text.replace("went", "then went")).await;
            assert_eq!(again.superseded, Some(told.note_id), "{text}");
        }
    });
}
