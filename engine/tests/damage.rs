//! Damage on disk: a changed byte never changes an answer, and a store that has lost commits is recognised.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use surrealkv::{
    CommitObserver, Durability, LSMIterator, Mode, Result, Transaction, Tree, TreeBuilder, observe_commits,
};

const ROWS: u32 = 90;
/// Values of at least so many bytes are in the value log.
const LONG: usize = 600;
const FOLDERS: [&str; 4] = ["manifest", "sstables", "vlog", "wal"];

fn key(row: u32) -> Vec<u8> {
    format!("row{row:03}").into_bytes()
}

/// Every third value is long.
fn value(row: u32) -> Vec<u8> {
    let times = if row.is_multiple_of(3) { 40 } else { 1 };
    format!("the value of row {row:03} ").repeat(times).into_bytes()
}

/// Remembers the number of the last sync, as a program does outside of the store.
#[derive(Default)]
struct Memory(AtomicU64);

impl CommitObserver for Memory {
    fn opened(&self, number: u64) -> std::result::Result<(), String> {
        match self.0.load(Ordering::Relaxed) {
            last if number < last => Err(format!("the store ends at {number}, and {last} was on disk")),
            _ => Ok(()),
        }
    }

    fn synced(&self, number: u64) {
        self.0.fetch_max(number, Ordering::Relaxed);
    }
}

fn open(dir: &Path, memory: &Arc<Memory>) -> Result<Tree> {
    observe_commits(dir, Arc::clone(memory) as Arc<dyn CommitObserver>);
    TreeBuilder::new()
        .with_path(dir.to_owned())
        .with_max_memtable_size(64 << 10)
        .with_block_cache_capacity(8 << 20)
        .with_block_size(1 << 10)
        .with_enable_vlog(true)
        .with_vlog_value_threshold(LONG)
        .build()
}

async fn write(tree: &Tree, rows: std::ops::Range<u32>) {
    for row in rows {
        let mut transaction = tree.begin_with_mode(Mode::ReadWrite).unwrap();
        transaction.set_durability(Durability::Eventual);
        transaction.set(key(row), value(row)).unwrap();
        transaction.commit().await.unwrap();
        sync(tree);
    }
}

/// Syncs on a thread of its own, as SurrealDB does. The clone is not dropped: dropping one closes the store.
fn sync(tree: &Tree) {
    let tree = std::mem::ManuallyDrop::new(tree.clone());
    let syncing = std::thread::spawn(move || tree.flush_wal(true));
    tokio::task::block_in_place(|| syncing.join().unwrap().unwrap());
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(|entry| entry.unwrap()) {
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to.join(entry.file_name()));
        } else if entry.file_name() != "LOCK" {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

/// The engine's files that hold anything, relative to the store.
fn files(store: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in FOLDERS {
        let Ok(entries) = fs::read_dir(store.join(folder)) else {
            continue;
        };
        for path in entries.map(|entry| entry.unwrap().path()) {
            if path.metadata().unwrap().len() > 0 {
                found.push(path.strip_prefix(store).unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

/// Places in a file: its head, its end, and so many between them. One place if none is wanted between.
fn places(length: usize, between: usize) -> Vec<usize> {
    let Some(step) = length.checked_div(between) else {
        return vec![0];
    };
    let ends = (0..length.min(48))
        .step_by(6)
        .chain((length.saturating_sub(60)..length).step_by(7));
    let mut places: Vec<usize> = ends.chain((0..length).step_by(step.max(1))).collect();
    places.sort_unstable();
    places.dedup();
    places
}

/// Each answer is the row as it was written, or an error; a scan that doesn't fail has all rows. Returns how many rows were
/// answered.
async fn assert_true_or_refused(opened: Result<Tree>, place: &str) -> u32 {
    let Ok(tree) = opened else { return 0 };
    let mut answered = 0;
    if let Ok(transaction) = tree.begin() {
        answered = assert_true_rows(&transaction, place);
        assert_true_scan(&transaction, place);
    }
    tree.close().await.ok();
    answered
}

/// All rows are answered, one by one and in a scan.
async fn assert_whole(tree: Tree) {
    let transaction = tree.begin().unwrap();
    for row in 0..ROWS {
        assert!(
            transaction.get(key(row)).unwrap() == Some(value(row)),
            "row {row}"
        );
    }
    let mut all = transaction.range(key(0), key(999)).unwrap();
    let mut is_row = all.seek_first().unwrap();
    for row in 0..ROWS {
        assert!(
            is_row && all.value().unwrap() == value(row),
            "row {row} of a scan"
        );
        is_row = all.next().unwrap();
    }
    assert!(!is_row, "a scan has more rows");
    drop(all);
    drop(transaction);
    tree.close().await.unwrap();
}

fn assert_true_rows(transaction: &Transaction, place: &str) -> u32 {
    let mut answered = 0;
    for row in 0..ROWS {
        if let Ok(answer) = transaction.get(key(row)) {
            assert!(answer == Some(value(row)), "{place}: row {row} is {answer:?}");
            answered += 1;
        }
    }
    answered
}

fn assert_true_scan(transaction: &Transaction, place: &str) {
    let Ok(mut all) = transaction.range(key(0), key(999)) else {
        return;
    };
    let mut next = all.seek_first();
    let mut count = 0;
    while let Ok(true) = next {
        let Ok(found) = all.value() else { return };
        assert!(found == value(count), "{place}: a scan has another row {count}");
        count += 1;
        next = all.next();
    }
    assert!(next.is_err() || count == ROWS, "{place}: a scan has {count} rows");
}

/// What happens to a file at a place in it.
type Accident = fn(&Path, usize);
/// What happens to a whole file.
type Loss = fn(&Path);

/// Accidents, and how many places between a file's head and its end are tried.
const ACCIDENTS: [(&str, Accident, usize); 4] = [
    (
        "another byte",
        |file, at| change(file, |bytes| bytes[at] ^= 0x21),
        50,
    ),
    (
        "zeros",
        |file, at| {
            change(file, |bytes| {
                bytes[at..].iter_mut().take(64).for_each(|byte| *byte = 0)
            })
        },
        10,
    ),
    (
        "the end of the file",
        |file, at| change(file, |bytes| bytes.truncate(at)),
        10,
    ),
    ("a lost file", |file, _| fs::remove_file(file).unwrap(), 0),
];

fn change(file: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(file).unwrap();
    change(&mut bytes);
    fs::write(file, bytes).unwrap();
}

/// Tries each accident in each file of `store`, one at a time.
async fn assert_no_accident_is_answered(store: &Path, memory: &Arc<Memory>) {
    let dir = tempfile::tempdir().unwrap();
    let mut tried = 0;
    let (mut answered, mut refused) = (0, 0);
    for file in files(store) {
        let length = store.join(&file).metadata().unwrap().len() as usize;
        for (name, happen, between) in ACCIDENTS {
            for at in places(length, between) {
                let damaged = dir.path().join(format!("{tried}"));
                tried += 1;
                copy(store, &damaged);
                happen(&damaged.join(&file), at);
                let place = format!("{name} at {at} of {}", file.display());
                let rows = assert_true_or_refused(open(&damaged, memory), &place).await;
                answered += rows;
                refused += ROWS - rows;
                // SurrealKV closes a refused store in the background and may be writing still. What is left goes with `dir`.
                fs::remove_dir_all(damaged).ok();
            }
        }
    }
    assert!(tried > 200, "{tried} places");
    assert!(
        answered > 0 && refused > 0,
        "{answered} rows were answered, {refused} were not"
    );
}

async fn written(dir: &Path, memory: &Arc<Memory>) -> Tree {
    let tree = open(dir, memory).unwrap();
    write(&tree, 0..ROWS).await;
    tree
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_to_a_closed_store_changes_no_answer() {
    let dir = tempfile::tempdir().unwrap();
    let memory = Arc::new(Memory::default());
    let tree = written(dir.path(), &memory).await;
    tree.close().await.unwrap();
    drop(tree);
    for folder in ["sstables", "vlog"] {
        assert!(
            files(dir.path()).iter().any(|file| file.starts_with(folder)),
            "{folder}"
        );
    }
    assert_whole(open(dir.path(), &memory).unwrap()).await;
    assert_no_accident_is_answered(dir.path(), &memory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_to_a_killed_store_changes_no_answer() {
    let dir = tempfile::tempdir().unwrap();
    let memory = Arc::new(Memory::default());
    let tree = written(dir.path(), &memory).await;
    let killed = tempfile::tempdir().unwrap();
    copy(dir.path(), killed.path());
    assert!(files(killed.path()).iter().any(|file| file.starts_with("wal")));
    let undamaged = tempfile::tempdir().unwrap();
    copy(killed.path(), undamaged.path());
    assert_whole(open(undamaged.path(), &memory).unwrap()).await;
    assert_no_accident_is_answered(killed.path(), &memory).await;
    tree.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_has_lost_its_log_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let memory = Arc::new(Memory::default());
    let tree = written(dir.path(), &memory).await;
    let at_kill = memory.0.load(Ordering::Relaxed);
    assert!(at_kill > u64::from(ROWS) / 2, "{at_kill}");
    let lose: [(&str, Loss); 3] = [
        ("emptied", |log| fs::write(log, "").unwrap()),
        ("removed", |log| fs::remove_file(log).unwrap()),
        ("cut", |log| {
            let whole = fs::read(log).unwrap();
            fs::write(log, &whole[..whole.len() - whole.len().min(200)]).unwrap();
        }),
    ];
    for (name, lose) in lose {
        let killed = tempfile::tempdir().unwrap();
        copy(dir.path(), killed.path());
        let logs = files(killed.path());
        let last = logs.iter().rfind(|file| file.starts_with("wal")).unwrap();
        lose(&killed.path().join(last));
        let refused = open(killed.path(), &memory).err().map(|error| error.to_string());
        assert!(refused.is_some(), "the log was {name}, and nobody noticed");
    }
    tree.close().await.unwrap();
    drop(tree);
    assert!(open(dir.path(), &memory).is_ok());
}
