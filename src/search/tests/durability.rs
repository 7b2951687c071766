//! Data on disk survives; a damaged index is recreated; reapplying changes nothing.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use super::*;

fn groups(count: u128) -> Vec<IndexDoc> {
    let words = ["phishing", "ransomware", "espionage", "wiper", "banking"];
    (0..count)
        .map(|n| {
            doc(
                n,
                &format!("Group {n}"),
                &format!("{} {}", words[n as usize % 5], words[n as usize / 5 % 5]),
            )
        })
        .collect()
}

fn answers(index: &WorkspaceIndex) -> Vec<Vec<Uuid>> {
    let queries = ["phishing", "Group 7", "wiper espionage", "banking group 12"];
    let each = |query: &&str| MODES.map(|mode| found(index, query, mode, &all(), 40));
    queries.iter().flat_map(each).collect()
}

fn workspace_dir(dir: &tempfile::TempDir) -> PathBuf {
    dir.path().join(id(0).to_string())
}

#[test]
fn reopened_from_disk_it_answers_as_before() {
    let dir = tempfile::tempdir().unwrap();
    let before = {
        let index = open(Some(dir.path())).workspace(id(0)).unwrap();
        for (at, chunk) in groups(30).chunks(7).enumerate() {
            index.apply(chunk.to_vec(), at as u64).unwrap();
        }
        index.apply(vec![IndexDoc::removal(id(3), 5)], 77).unwrap();
        answers(&index)
    };
    let index = open(Some(dir.path())).workspace(id(0)).unwrap();
    assert_eq!(index.checkpoint(), 77);
    assert_eq!(index.len(), 30);
    assert!(index.contains(id(3), 5));
    assert_eq!(answers(&index), before);
}

#[test]
fn applying_again_changes_nothing_and_an_older_version_never_wins() {
    let index = holding(groups(20));
    let mut newer = doc(4, "Renamed", "wiper");
    newer.rev = 5;
    index.apply(vec![newer.clone()], 5).unwrap();
    let before = answers(&index);
    let mut older = doc(4, "Group 4", "banking phishing");
    older.rev = 3;
    index.apply(groups(20), 5).unwrap();
    index.apply(vec![older.clone(), newer.clone(), older], 4).unwrap();
    assert_eq!(answers(&index), before);
    assert_eq!((index.len(), index.checkpoint()), (20, 5));
    assert_eq!(found(&index, "Renamed", Mode::Keyword, &all(), 1), [id(4)]);
}

#[test]
fn of_one_batch_the_newest_version_wins() {
    let versions = [3u64, 9, 5].map(|rev| {
        let mut doc = doc(1, &format!("Version {rev}"), "text");
        doc.rev = rev;
        doc
    });
    let index = holding(versions.to_vec());
    assert_eq!(index.lookup(&["Version 9"], &all()).unwrap().len(), 1);
    assert_eq!(index.lookup(&["Version 3", "Version 5"], &all()).unwrap(), []);
}

#[test]
fn a_vector_that_comes_later_is_taken() {
    let mut bare = doc(1, "Alpha", "words");
    let full = bare.clone();
    bare.vector = None;
    let index = holding(vec![bare]);
    assert_eq!(found(&index, "alpha words", Mode::Vector, &all(), 5), NONE);
    index.apply(vec![full], 1).unwrap();
    assert_eq!(found(&index, "alpha words", Mode::Vector, &all(), 5), [id(1)]);
}

#[test]
fn after_a_crash_the_replay_heals() {
    let dir = tempfile::tempdir().unwrap();
    let copy = tempfile::tempdir().unwrap();
    let index = open(Some(dir.path())).workspace(id(0)).unwrap();
    index.apply(groups(10), 10).unwrap();
    // The files as a kill would leave them, copied while the index is open for writing.
    copy_dir(&workspace_dir(&dir), &workspace_dir(&copy));
    index.apply(groups(25), 25).unwrap();
    let after = open(Some(copy.path())).workspace(id(0)).unwrap();
    assert_eq!((after.checkpoint(), after.len()), (10, 10));
    after.apply(groups(25), 25).unwrap();
    assert_eq!(answers(&after), answers(&index));
}

#[test]
fn damaged_files_are_discarded() {
    for damage in ["cut", "flipped", "meta", "gone"] {
        let dir = tempfile::tempdir().unwrap();
        open(Some(dir.path()))
            .workspace(id(0))
            .unwrap()
            .apply(groups(50), 50)
            .unwrap();
        let inside = workspace_dir(&dir);
        let mut files: Vec<PathBuf> = fs::read_dir(&inside)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        files.retain(|file| {
            file.extension()
                .is_some_and(|kind| kind == "fast" || kind == "idx" || kind == "term")
        });
        assert!(!files.is_empty());
        for file in files {
            let mut bytes = fs::read(&file).unwrap();
            match damage {
                "cut" => bytes.truncate(bytes.len() / 2),
                "flipped" => bytes.iter_mut().step_by(9).for_each(|byte| *byte ^= 0x55),
                "meta" => fs::write(inside.join("meta.json"), "{").unwrap(),
                _ => fs::remove_file(&file).unwrap(),
            }
            if damage != "gone" {
                fs::write(&file, bytes).unwrap();
            }
        }
        let index = open(Some(dir.path())).workspace(id(0)).unwrap();
        assert_eq!((index.checkpoint(), index.len()), (0, 0), "{damage}");
        index.apply(groups(5), 5).unwrap();
        assert_eq!(index.len(), 5);
    }
}

#[test]
fn after_a_restart_of_the_machine_one_wrong_byte_anywhere_is_noticed() {
    for kind in ["fast", "idx", "term", "rows"] {
        let dir = tempfile::tempdir().unwrap();
        open(Some(dir.path()))
            .workspace(id(0))
            .unwrap()
            .apply(groups(50), 50)
            .unwrap();
        let inside = workspace_dir(&dir);
        if kind == "rows" {
            let file = inside.join("rows").join("0-000000");
            let mut bytes = fs::read(&file).unwrap();
            bytes[36 * 20 + 3] ^= 1;
            fs::write(&file, bytes).unwrap();
        } else {
            for entry in fs::read_dir(&inside).unwrap() {
                let file = entry.unwrap().path();
                if file.extension().is_some_and(|found| found == kind) {
                    let mut bytes = fs::read(&file).unwrap();
                    bytes[10] ^= 1;
                    fs::write(&file, bytes).unwrap();
                }
            }
        }
        fs::write(inside.join("whole"), "another start of the machine").unwrap();
        let index = open(Some(dir.path())).workspace(id(0)).unwrap();
        assert_eq!((index.checkpoint(), index.len()), (0, 0), "{kind}");
    }
}

#[test]
fn what_is_staged_is_searchable_after_the_next_write_and_gone_after_a_crash() {
    let dir = tempfile::tempdir().unwrap();
    let copy = tempfile::tempdir().unwrap();
    let index = open(Some(dir.path())).workspace(id(0)).unwrap();
    index.apply(groups(10), 10).unwrap();
    let mut newer = groups(12);
    newer.iter_mut().for_each(|doc| {
        (doc.rev, doc.body) = (2, "sabotage".to_owned());
    });
    index.stage(newer[..6].to_vec()).unwrap();
    assert_eq!(found(&index, "sabotage", Mode::Keyword, &all(), 20), NONE);
    copy_dir(&workspace_dir(&dir), &workspace_dir(&copy));
    index.apply_staged(newer[6..].to_vec(), 12, 0).unwrap();
    assert!(
        index.apply_staged(groups(20), 20, 1).is_err(),
        "its first parts are lost"
    );
    assert_eq!(found(&index, "sabotage", Mode::Keyword, &all(), 20).len(), 12);
    assert_eq!(found(&index, "phishing", Mode::Keyword, &all(), 20), NONE);
    assert_eq!((index.len(), index.checkpoint(), index.rollbacks()), (12, 12, 0));
    let after = open(Some(copy.path())).workspace(id(0)).unwrap();
    assert_eq!((after.len(), after.checkpoint()), (10, 10));
    assert!(!after.contains(id(3), 2));
    after.apply(newer, 12).unwrap();
    assert_eq!(answers(&after), answers(&index));
}

#[test]
fn a_staged_version_replaces_one_that_is_only_in_memory() {
    let settings = IndexSettings {
        fresh_docs: 100,
        ..IndexSettings::default()
    };
    let index = open_with(None, "word-hash", settings).workspace(id(0)).unwrap();
    index.apply(vec![doc(1, "Alpha", "phishing")], 1).unwrap();
    let mut newer = doc(1, "Alpha", "wiper");
    newer.rev = 2;
    index.stage(vec![newer]).unwrap();
    index
        .apply_staged(vec![doc(2, "Beta", "words")], 2, index.rollbacks())
        .unwrap();
    assert_eq!(found(&index, "phishing", Mode::Keyword, &all(), 5), NONE);
    assert_eq!(found(&index, "wiper", Mode::Keyword, &all(), 5), [id(1)]);
    assert_eq!(index.lookup(&["alpha"], &all()).unwrap().len(), 1);
}

#[test]
fn another_embedder_begins_anew() {
    let dir = tempfile::tempdir().unwrap();
    open(Some(dir.path()))
        .workspace(id(0))
        .unwrap()
        .apply(groups(5), 5)
        .unwrap();
    let index = open_with(Some(dir.path()), "another", IndexSettings::default())
        .workspace(id(0))
        .unwrap();
    assert_eq!((index.checkpoint(), index.len()), (0, 0));
}

#[test]
fn discard_begins_anew() {
    let dir = tempfile::tempdir().unwrap();
    for dir in [None, Some(dir.path())] {
        let search = open(dir);
        search.workspace(id(0)).unwrap().apply(groups(5), 5).unwrap();
        search.discard(id(0)).unwrap();
        let index = search.workspace(id(0)).unwrap();
        assert_eq!((index.checkpoint(), index.len()), (0, 0));
    }
}

#[test]
fn idle_workspaces_are_closed_and_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let search = open(Some(dir.path()));
    search.workspace(id(0)).unwrap().apply(groups(5), 5).unwrap();
    let held = search.workspace(id(1)).unwrap();
    held.apply(groups(3), 3).unwrap();
    search.close_idle(Duration::from_secs(60)).unwrap();
    search.close_idle(Duration::ZERO).unwrap();
    held.apply(groups(4), 4).unwrap();
    assert_eq!(held.len(), 4);
    let index = search.workspace(id(0)).unwrap();
    assert_eq!((index.checkpoint(), index.len()), (5, 5));
    assert!(Arc::ptr_eq(&held, &search.workspace(id(1)).unwrap()));
}

#[test]
fn few_writers_stay_open_and_all_workspaces_stay_usable() {
    let dir = tempfile::tempdir().unwrap();
    let search = open_with(
        Some(dir.path()),
        "word-hash",
        IndexSettings {
            open_writers: 2,
            ..IndexSettings::default()
        },
    );
    let indexes: Vec<_> = (0..5).map(|n| search.workspace(id(n)).unwrap()).collect();
    for round in 1..4u64 {
        std::thread::scope(|scope| {
            for index in &indexes {
                scope.spawn(move || index.apply(groups(u128::from(round) * 3), round).unwrap());
            }
        });
        for index in &indexes {
            index.apply(Vec::new(), 10 + round).unwrap();
        }
    }
    for index in &indexes {
        assert_eq!((index.len(), index.checkpoint()), (9, 13));
        assert!(found(index, "Group 8", Mode::Keyword, &all(), 1).contains(&id(8)));
    }
}

#[test]
fn a_checkpoint_alone_is_stored_and_never_goes_back() {
    let dir = tempfile::tempdir().unwrap();
    let index = open(Some(dir.path())).workspace(id(0)).unwrap();
    index.apply(Vec::new(), 40).unwrap();
    index.apply(Vec::new(), 30).unwrap();
    drop(index);
    assert_eq!(open(Some(dir.path())).workspace(id(0)).unwrap().checkpoint(), 40);
}

fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let copy = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_dir(&entry.path(), &copy);
        } else {
            fs::copy(entry.path(), copy).unwrap();
        }
    }
}
