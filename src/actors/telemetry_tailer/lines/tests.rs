//! Reading forwards and backwards yields the same lines, whatever happens to the file.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::*;

/// A cursor and its file.
struct Reading {
    file: File,
    cursor: Cursor,
}

impl Reading {
    fn at_start(path: &Path) -> Self {
        let (file, cursor) = (File::open(path).unwrap(), Cursor::default());
        Self { file, cursor }
    }

    fn at_end(path: &Path) -> Self {
        let file = File::open(path).unwrap();
        let cursor = Cursor::at_end(&file).unwrap();
        Self { file, cursor }
    }

    fn read(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        let take = &mut |line: Line| lines.push(line.text);
        self.cursor
            .read(&self.file, &mut { ReadLimit::ALL }, take)
            .unwrap();
        lines
    }

    fn holds(&self) -> bool {
        self.cursor.holds(&self.file).unwrap()
    }
}

fn file_of(text: impl AsRef<[u8]>) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    fs::write(&path, text).unwrap();
    (dir, path)
}

fn append(path: &Path, text: impl AsRef<[u8]>) {
    let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(text.as_ref()).unwrap();
}

fn backwards(path: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    let whole = lines_backwards(&File::open(path).unwrap(), u64::MAX, |line| {
        lines.push(line);
        ControlFlow::Continue(())
    });
    assert!(whole.unwrap());
    lines.reverse();
    lines
}

#[test]
fn lines_are_the_same_from_both_ends() {
    for count in [0usize, 1, 2, 500, 5000] {
        let text: String = (0..count)
            .map(|n| format!("line {n} {}\n", "x".repeat(n % 300)))
            .collect();
        let (_dir, path) = file_of(text.clone() + "half a line");
        let file = File::open(&path).unwrap();
        let (forwards, end) = lines_between(&file, 0, text.len() as u64, u64::MAX).unwrap();
        assert_eq!((forwards.len(), end), (count, text.len() as u64));
        assert!(forwards.last().is_none_or(|line| line.end == end));
        let texts: Vec<_> = forwards.into_iter().map(|line| line.text).collect();
        assert_eq!(backwards(&path), texts);
        assert_eq!(last_end(&file).unwrap(), text.len() as u64);
    }
}

#[test]
fn strange_bytes_feeds_and_empty_lines_do_no_harm() {
    let (_dir, path) = file_of(b"\n\na\r\n\xff\xfeb\n\n\nc\n\n");
    let expected = ["a", "\u{fffd}\u{fffd}b", "c"];
    assert_eq!(backwards(&path), expected);
    assert_eq!(Reading::at_start(&path).read(), expected);
}

#[test]
fn a_torn_line_waits_for_its_end_and_an_overlong_one_is_cut() {
    let (_dir, path) = file_of("one\ntw");
    let mut reading = Reading::at_start(&path);
    assert_eq!(reading.read(), ["one"]);
    assert_eq!(reading.cursor.line_end(), 4);
    append(&path, "o\nthr");
    assert_eq!(reading.read(), ["two"]);
    let mut later = Reading::at_end(&path);
    append(&path, "ee\n");
    assert_eq!(reading.read(), ["three"]);
    assert_eq!(
        later.read(),
        ["three"],
        "its beginning was there before the cursor was"
    );
    for _ in 0..3 {
        append(&path, "y".repeat(MAX_LINE));
        assert!(reading.read().is_empty());
    }
    assert!(reading.cursor.beginning.kept.len() <= MAX_LINE + 1);
    append(&path, "\nafter\n");
    let lines = reading.read();
    assert_eq!(lines[0], "y".repeat(MAX_LINE) + CUT_MARK);
    assert_eq!(lines[1..], ["after"]);
    assert_eq!(backwards(&path)[3..], lines);
}

#[test]
fn a_file_that_is_cut_or_written_anew_is_read_from_its_start() {
    let (_dir, path) = file_of("first line\nsecond line\n");
    let mut reading = Reading::at_end(&path);
    fs::write(&path, "new\n").unwrap();
    assert!(!reading.holds());
    assert_eq!(reading.read(), ["new"]);
    // Same length as before.
    fs::write(&path, "gnu\n").unwrap();
    assert_eq!(reading.read(), ["gnu"]);
    // Empty for a while.
    fs::write(&path, "").unwrap();
    assert!(reading.read().is_empty());
    append(&path, "x\n");
    assert_eq!(reading.read(), ["x"]);
    // Grown beyond the old offset between two polls.
    fs::write(&path, "another\nfile\n").unwrap();
    assert_eq!(reading.read(), ["another", "file"]);
    assert!(reading.holds());
    assert!(reading.read().is_empty());
}

#[test]
fn a_budget_ends_a_look_and_the_next_one_goes_on() {
    let (_dir, path) = file_of("a\nb\nc\nd\ne\n");
    let mut reading = Reading::at_start(&path);
    let mut lines = Vec::new();
    let mut looks = 0;
    loop {
        looks += 1;
        let mut budget = ReadLimit { lines: 2, bytes: 100 };
        let Reading { file, cursor } = &mut reading;
        if !cursor
            .read(file, &mut budget, &mut |line| lines.push(line.end))
            .unwrap()
        {
            break;
        }
    }
    assert_eq!((lines, looks), (vec![2, 4, 6, 8, 10], 3));
}

#[test]
fn the_last_lines_are_found_within_lines_bytes_and_floor() {
    let (_dir, path) = file_of("aa\nbb\ncc\ndd\n");
    let file = File::open(&path).unwrap();
    let start = |end, floor, lines, bytes| {
        let mut budget = ReadLimit { lines, bytes };
        let start = last_start(&file, end, floor, &mut budget).unwrap();
        (start, budget.lines)
    };
    assert_eq!(start(12, 0, 2, 100), (6, 0));
    assert_eq!(start(12, 0, 4, 100), (0, 0));
    assert_eq!(start(12, 0, 9, 100), (0, 5));
    assert_eq!(start(12, 3, 9, 100), (3, 6));
    assert_eq!(start(12, 12, 9, 100), (12, 9));
    assert_eq!(start(9, 0, 1, 100), (6, 0));
    assert_eq!(start(12, 0, 9, 7), (6, 0), "seven bytes hold two lines of three");
    assert_eq!(start(12, 0, 9, 2), (12, 0));
}

#[test]
fn reading_backwards_ends_with_its_bytes() {
    let (_dir, path) = file_of("x".repeat(99).repeat(1000).replace("xxx", "xx\n"));
    let file = File::open(&path).unwrap();
    let mut count = 0;
    let whole = lines_backwards(&file, 100, |_| {
        count += 1;
        ControlFlow::Continue(())
    });
    assert!(!whole.unwrap());
    assert_eq!(count, 33, "three bytes each");
}
