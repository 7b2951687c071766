//! The files are SurrealKV's own: stores of other builders are read, and others read ours.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::ops::Deref;
use std::path::Path;

use surrealkv::{Durability, LSMIterator, Transaction, Tree, TreeBuilder};
use surrealkv_1::Tree as PlainTree;

const ROWS: u32 = 2_000;
/// So small that a store has several flushed files, each with a filter.
const MEMTABLE_BYTES: usize = 64 << 10;

fn key(row: u32) -> Vec<u8> {
    format!("row{row:05}").into_bytes()
}

fn value(row: u32) -> Vec<u8> {
    let rest = "x".repeat((row % 40) as usize);
    format!("value of row {row}, {rest}").into_bytes()
}

fn open(dir: &Path) -> Tree {
    TreeBuilder::new()
        .with_path(dir.to_owned())
        .with_max_memtable_size(MEMTABLE_BYTES)
        .with_block_cache_capacity(8 << 20)
        .build()
        .unwrap()
}

/// Opens a store as a program does that knows SurrealKV 1 alone.
fn open_by_default(dir: &Path) -> Box<PlainTree> {
    let opened = surrealkv_1::TreeBuilder::new().with_path(dir.to_owned()).build();
    Box::new(opened.unwrap())
}

async fn write(tree: &PlainTree, rows: std::ops::Range<u32>) {
    for first in rows.clone().step_by(50) {
        let mut transaction = tree.begin().unwrap();
        transaction.set_durability(Durability::Immediate);
        for row in first..(first + 50).min(rows.end) {
            transaction.set(key(row), value(row)).unwrap();
        }
        transaction.commit().await.unwrap();
    }
}

/// Each row by its key, all of them in their order, and no other.
fn assert_rows(transaction: &Transaction, rows: u32) {
    for row in 0..rows {
        assert_eq!(transaction.get(key(row)).unwrap(), Some(value(row)), "row {row}");
    }
    for row in rows..rows + 500 {
        assert_eq!(transaction.get(key(row)).unwrap(), None, "row {row}");
    }
    let mut all = transaction.range(key(0), key(99_999)).unwrap();
    let mut found = all.seek_first().unwrap();
    let mut count = 0;
    while found {
        assert_eq!(all.value().unwrap(), value(count));
        count += 1;
        found = all.next().unwrap();
    }
    assert_eq!(count, rows);
}

fn flushed_files(dir: &Path) -> usize {
    fs::read_dir(dir.join("sstables")).unwrap().count()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to.join(entry.file_name()));
        } else {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn surrealkv_with_its_defaults_reads_every_row_of_ours() {
    let dir = tempfile::tempdir().unwrap();
    let ours = open(dir.path());
    write(&ours, 0..ROWS).await;
    ours.close().await.unwrap();
    drop(ours);
    assert!(flushed_files(dir.path()) > 2);
    let theirs = open_by_default(dir.path());
    assert_rows(&theirs.begin().unwrap(), ROWS);
    write(&theirs, ROWS..ROWS + 100).await;
    theirs.close().await.unwrap();
    drop(theirs);
    assert_rows(&open(dir.path()).begin().unwrap(), ROWS + 100);
}

/// Version 1.0.0 of threat-memory wrote filters of an encoding of its own under the name of the default kind. The store
/// in `fixtures` was written by it.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_with_the_filters_of_the_version_before_misses_nothing() {
    assert_nothing_is_missing(open).await;
    assert_nothing_is_missing(open_by_default).await;
}

async fn assert_nothing_is_missing<T: Deref<Target = PlainTree>>(opened: impl Fn(&Path) -> T) {
    let before = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/before");
    let dir = tempfile::tempdir().unwrap();
    copy(&before, dir.path());
    assert!(flushed_files(dir.path()) > 2);
    let tree = opened(dir.path());
    assert_rows(&tree.begin().unwrap(), ROWS);
    write(&tree, ROWS..2 * ROWS).await;
    assert_rows(&tree.begin().unwrap(), 2 * ROWS);
    tree.close().await.unwrap();
    drop(tree);
    assert_rows(&opened(dir.path()).begin().unwrap(), 2 * ROWS);
}
