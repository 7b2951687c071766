//! Many threads on one workspace: every write is visible to its writer, and none is lost.

use std::sync::Barrier;
use std::thread;

use test_support::extent;

use super::*;

#[test]
fn a_writer_sees_its_own_write() {
    let dir = tempfile::tempdir().unwrap();
    let index = open(Some(dir.path())).workspace(id(0)).unwrap();
    let start = Barrier::new(8);
    let each = extent(4, 10);
    thread::scope(|scope| {
        for writer in 0..8u128 {
            let (index, start) = (&index, &start);
            scope.spawn(move || {
                start.wait();
                for n in 0..each {
                    let number = writer * 100 + n;
                    let name = format!("Actor w{writer}n{n}x");
                    index.apply(vec![doc(number, &name, "text")], 1).unwrap();
                    for mode in [Mode::Keyword, Mode::Vector] {
                        assert!(
                            found(index, &name, mode, &all(), 200).contains(&id(number)),
                            "{name} {mode:?}"
                        );
                    }
                }
            });
        }
    });
    let all = 8 * each as usize;
    assert_eq!(index.len(), all);
    drop(index);
    assert_eq!(open(Some(dir.path())).workspace(id(0)).unwrap().len(), all);
}

#[test]
fn searches_go_on_while_rows_change_and_hidden_ones_stay_hidden() {
    let index = holding(
        (0..300)
            .map(|n| doc(n, &format!("Actor {n}"), "shared words"))
            .collect(),
    );
    thread::scope(|scope| {
        let writing = scope.spawn(|| {
            for rev in 2..20u64 {
                let docs = (0..300).step_by(3).map(|n| {
                    let mut doc = doc(n, &format!("Actor {n}"), &format!("shared words {rev}"));
                    (doc.rev, doc.tlp) = (rev, Tlp::Red);
                    doc
                });
                index.apply(docs.collect(), rev).unwrap();
            }
        });
        while !writing.is_finished() {
            for mode in MODES {
                let hits = found(&index, "shared words", mode, &Filter::up_to(Tlp::Amber), 300);
                assert!(hits.len() >= 100, "{mode:?} {}", hits.len());
            }
        }
    });
    for mode in MODES {
        let hits = found(&index, "shared words", mode, &Filter::up_to(Tlp::Amber), 300);
        assert_eq!(hits.len(), 200, "{mode:?}");
    }
}

#[test]
fn opening_one_workspace_from_many_threads_gives_one_index() {
    let dir = tempfile::tempdir().unwrap();
    let search = open(Some(dir.path()));
    let opened: Vec<Arc<WorkspaceIndex>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| search.workspace(id(5)).unwrap()))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(opened.windows(2).all(|pair| Arc::ptr_eq(&pair[0], &pair[1])));
}
