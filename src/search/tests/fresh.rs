//! Documents that are not in the text index yet are found as if they were.

use std::time::Duration;

use super::*;
use crate::search::KeyKind;

fn keeping(fresh_docs: usize, dir: Option<&Path>) -> Arc<WorkspaceIndex> {
    let settings = IndexSettings {
        fresh_docs,
        ..IndexSettings::default()
    };
    open_with(dir, "word-hash", settings).workspace(id(0)).unwrap()
}

#[test]
fn the_same_questions_get_the_same_nodes_before_and_after_the_commit() {
    let index = keeping(100, None);
    let mut named = doc(1, "Quiet Heron", "a group that sends phishing");
    named.aliases = vec!["Blue Egret".into()];
    named.identifiers = vec!["d41d8cd98f00b204e9800998ecf8427e".into()];
    index
        .apply(vec![named, doc(2, "Loud Heron", "ransomware and phishing")], 5)
        .unwrap();
    assert_eq!(index.checkpoint(), 0, "nothing is committed yet");
    let ask = || {
        let keys = ["blue egret", "QUIET-HERON"].map(|key| index.lookup(&[key], &all()).unwrap());
        let queries = ["phishing group", "Blue Egret", "d41d8cd98f00", "ransomware"];
        let found = MODES.map(|mode| queries.map(|query| found(&index, query, mode, &all(), 5)));
        (keys, found)
    };
    let before = ask();
    assert_eq!(before.0[0].first().map(|hit| hit.kind), Some(KeyKind::Alias));
    assert_eq!(before.1[0][3].first(), Some(&id(2)));
    index.flush_older_than(Duration::ZERO).unwrap();
    assert_eq!(index.checkpoint(), 5);
    assert_eq!(ask(), before);
}

#[test]
fn a_newer_version_hides_the_committed_one_and_a_removal_hides_both() {
    let index = keeping(100, None);
    index.apply(vec![doc(1, "Alpha", "phishing")], 1).unwrap();
    index.flush_older_than(Duration::ZERO).unwrap();
    let mut newer = doc(1, "Alpha", "wiper");
    newer.rev = 2;
    index.apply(vec![newer], 2).unwrap();
    for _ in 0..2 {
        assert_eq!(found(&index, "phishing", Mode::Keyword, &all(), 5), NONE);
        assert_eq!(found(&index, "wiper", Mode::Keyword, &all(), 5), [id(1)]);
        index.flush_older_than(Duration::ZERO).unwrap();
    }
    index.apply(vec![IndexDoc::removal(id(1), 3)], 3).unwrap();
    for mode in MODES {
        assert_eq!(found(&index, "alpha wiper", mode, &all(), 5), NONE);
    }
}

#[test]
fn the_classes_and_conditions_of_a_filter_hold_for_fresh_documents_too() {
    let index = keeping(100, None);
    let mut secret = doc(1, "Alpha", "phishing");
    secret.tlp = Tlp::Red;
    index.apply(vec![secret, doc(2, "Alpha", "phishing")], 1).unwrap();
    let low = Filter::up_to(Tlp::Green);
    let only = Filter {
        only: Some(crate::search::Only::new(|node| node == id(1))),
        ..all()
    };
    for mode in MODES {
        assert_eq!(found(&index, "alpha phishing", mode, &low, 5), [id(2)]);
        assert_eq!(found(&index, "alpha phishing", mode, &only, 5), [id(1)]);
    }
    assert_eq!(index.lookup(&["alpha"], &low).unwrap().len(), 1);
}

#[test]
fn many_are_written_at_once_and_a_crash_leaves_the_checkpoint_below() {
    let dir = tempfile::tempdir().unwrap();
    let index = keeping(3, Some(dir.path()));
    for number in 0..3u64 {
        index
            .apply(vec![doc(u128::from(number), "Alpha", "words")], number + 1)
            .unwrap();
    }
    assert_eq!(index.checkpoint(), 0);
    index.apply(vec![doc(3, "Alpha", "words")], 4).unwrap();
    assert_eq!(index.checkpoint(), 4);
    index.apply(vec![doc(4, "Alpha", "words")], 5).unwrap();
    assert_eq!((index.len(), index.checkpoint()), (5, 4));
    drop(index);
    let again = keeping(3, Some(dir.path()));
    assert_eq!((again.len(), again.checkpoint()), (4, 4));
}
