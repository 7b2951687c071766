//! Notes in the journal of writes, also those of a store that found them by an index, and what the database checks of
//! them.

use std::collections::HashSet;

use surrealdb::IndexedResults;
use test_support::extent;

use super::*;
use crate::domain::memory::digest::digest;
use crate::domain::memory::note::Note;
use crate::store::NotesWrite;

/// Reverts a store to the schema that found notes by an index over their revisions.
const BEFORE: &str = "DELETE node_write WHERE notes != NONE; REMOVE FIELD notes ON node_write; \
    DEFINE INDEX note_ws_rev ON note FIELDS ws, rev; DELETE schema_version WHERE record::id(id) >= 16;";

fn note(text: String) -> Note {
    Note {
        id: Uuid::now_v7(),
        content: text,
        domain: "cti".into(),
        source_type: "manual".into(),
        source_ref: "test".into(),
        source_refs: vec!["test".into()],
        tier: "b".into(),
        confidence: 0.5,
        flags: Vec::new(),
        mentions: Vec::new(),
        superseded_by: None,
        created_at: clock::now(),
    }
}

/// Writes as many notes at once; returns them and the revision.
async fn write(store: &Store, ws: Uuid, count: usize) -> (Vec<Note>, u64) {
    let notes: Vec<Note> = (0..count).map(|at| note(format!("note {at}"))).collect();
    let with_digest = |note: &Note| (note.clone(), digest(&note.domain, &note.content));
    let write = NotesWrite {
        notes: notes.iter().map(with_digest).collect(),
        ..NotesWrite::default()
    };
    let rev = store.last_write(ws).await.unwrap() + 1;
    store.write_notes(ws, &write, rev, clock::now()).await.unwrap();
    (notes, rev)
}

/// Changes the first three notes in three ways, and returns the revision.
async fn change(store: &Store, ws: Uuid, notes: &[Note]) -> u64 {
    let write = NotesWrite {
        mentions: vec![(notes[0].id, vec![ws])],
        superseded: vec![(notes[1].id, notes[0].id)],
        repeated: vec![notes[2].clone()],
        ..NotesWrite::default()
    };
    let rev = store.last_write(ws).await.unwrap() + 1;
    store.write_notes(ws, &write, rev, clock::now()).await.unwrap();
    rev
}

/// Everything after a revision, page by page: the ids, and the last revision.
async fn after(store: &Store, ws: Uuid, rev: u64) -> (Vec<Uuid>, Option<u64>) {
    let (mut ids, mut last) = (Vec::new(), None);
    while let page = store.changes(ws, last.unwrap_or(rev), 100).await.unwrap()
        && page.last.is_some()
    {
        last = page.last;
        ids.extend(page.notes.iter().map(|change| change.id));
    }
    (ids, last)
}

fn ids(notes: &[Note]) -> HashSet<Uuid> {
    notes.iter().map(|note| note.id).collect()
}

#[test]
fn a_write_names_the_notes_that_it_adds_and_changes() {
    run_on_each(|url| async move {
        let (store, ws, other) = (open(&url).await, Uuid::new_v4(), Uuid::new_v4());
        let (notes, first) = write(&store, ws, 1_200).await;
        let (theirs, of_theirs) = write(&store, other, 1).await;
        let second = change(&store, ws, &notes).await;

        let page = store.changes(ws, 0, 1).await.unwrap();
        assert_eq!(page.last, Some(first));
        assert_eq!(page.notes.len(), 1_200, "a page ends with a write");
        let (changed, last) = after(&store, ws, first).await;
        assert_eq!(HashSet::from_iter(changed), ids(&notes[..3]));
        assert_eq!(last, Some(second));
        assert_eq!(
            after(&store, other, 0).await,
            (vec![theirs[0].id], Some(of_theirs))
        );
        let heads = store.note_heads_after(ws, first).await.unwrap();
        assert_eq!((heads.rows.len(), heads.rev), (3, second));
        for (rev, is_known) in [(first, true), (second, true), (second + 1, false)] {
            assert_eq!(store.has_revision(ws, rev).await.unwrap(), is_known);
        }
    });
}

#[test]
fn no_note_of_an_older_store_is_missed() {
    let (_dir, url) = new_dir();
    run(async move {
        let (store, ws, other) = (open(&url).await, Uuid::new_v4(), Uuid::new_v4());
        let mut notes: Vec<(Uuid, u64)> = Vec::new();
        number_by_time(&store, ws, 0).await;
        // The notes come in parts of a thousand.
        for count in [1, extent(1_100, 2_500), 1, 30] {
            let (new, rev) = write(&store, ws, count).await;
            notes.extend(new.iter().map(|note| (note.id, rev)));
        }
        let (theirs, _) = write(&store, other, 2).await;
        drop(store);
        let db = owner(&url).await;
        db.query(BEFORE).await.unwrap().check().unwrap();
        drop(db);

        let store = open(&url).await;
        let newest = store.last_write(ws).await.unwrap();
        for (_, checkpoint) in notes.iter().step_by(700).chain([&(ws, 0), &(ws, newest)]) {
            let (found, last) = after(&store, ws, *checkpoint).await;
            let later = notes.iter().filter(|(_, rev)| rev > checkpoint);
            let (found, later): (HashSet<Uuid>, HashSet<Uuid>) =
                (found.into_iter().collect(), later.map(|(id, _)| *id).collect());
            assert!(found.is_superset(&later), "after {checkpoint}");
            assert_eq!(last, (*checkpoint < newest).then_some(newest));
        }
        assert!(store.has_revision(ws, newest).await.unwrap());
        assert_eq!(HashSet::from_iter(after(&store, other, 0).await.0), ids(&theirs));
        let (new, rev) = write(&store, ws, 1).await;
        assert_eq!(after(&store, ws, newest).await, (vec![new[0].id], Some(rev)));
    });
}

#[test]
fn a_note_keeps_its_workspace_and_has_a_text() {
    run_on_each(|url| async move {
        let (store, ws) = (open(&url).await, Uuid::new_v4());
        write(&store, ws, 3).await;
        let before = rows(&store.db, "note").await;
        for attack in [
            "UPDATE note SET ws = rand::uuid()",
            "UPDATE note SET content = 7",
            "INSERT INTO note { id: rand::uuid(), content: 'whose?' }",
            "INSERT INTO note { id: rand::uuid(), ws: rand::uuid() }",
        ] {
            let outcome = store.db.query(attack).await;
            assert!(outcome.and_then(IndexedResults::check).is_err(), "{attack}");
        }
        assert_eq!(rows(&store.db, "note").await, before);
    });
}
