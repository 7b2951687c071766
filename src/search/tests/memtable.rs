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

/// Documents of different lengths, some of them rewritten, in this order.
fn of_all_lengths() -> Vec<IndexDoc> {
    let mut random = Random(7);
    let mut docs: Vec<IndexDoc> = (1..=60u128)
        .map(|number| {
            let words = 3 + (random.next() % 90) as usize;
            let word = |_| {
                ["phishing", "wiper", "loader", "the bank", "a router", "quiet"][(random.next() % 6) as usize]
            };
            let body: Vec<&str> = (0..words).map(word).collect();
            doc(number, "Heron", &body.join(" "))
        })
        .collect();
    let again = docs.iter().take(5).cloned();
    let again: Vec<IndexDoc> = again
        .map(|doc| IndexDoc {
            rev: 2,
            body: "phishing".into(),
            ..doc
        })
        .collect();
    docs.extend(again);
    docs
}

#[test]
fn a_document_scores_the_same_before_and_after_the_commit() {
    let vector = quantize(&word_vector("phishing loader"));
    let scores = |index: &WorkspaceIndex| {
        let search = |mode| {
            index
                .search("phishing loader", Some(&vector), mode, &all(), 60)
                .unwrap()
        };
        let mut scores: Vec<(Uuid, f32)> = [Mode::Keyword, Mode::Blended]
            .into_iter()
            .flat_map(search)
            .map(|hit| (hit.node_id, hit.score))
            .collect();
        scores.sort_by_key(|(node, _)| *node);
        scores
    };
    let all_docs = of_all_lengths();
    for (in_index, count) in [(0, 65), (20, 60), (60, 60)] {
        let docs = all_docs.get(..count).unwrap();
        let (index, committed) = (keeping(100, None), holding(docs.to_vec()));
        let (first, rest) = docs.split_at(in_index);
        index.apply(first.to_vec(), 1).unwrap();
        index.flush_older_than(Duration::ZERO).unwrap();
        for doc in rest {
            index.apply(vec![doc.clone()], 2).unwrap();
        }
        for ((node, score), (other, later)) in scores(&index).into_iter().zip(scores(&committed)) {
            assert_eq!((node, score), (other, later), "{in_index} in the index");
        }
    }
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
        only: Some(crate::search::RowPredicate::new(|node| node == id(1))),
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
