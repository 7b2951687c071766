//! Follows one family of files through growth, truncation and replacement.
//!
//! A growing file is read on; one that is truncated or replaced is read from its start; a newer one is followed once
//! the rest of the older one has been read. Lines arrive in order, each once.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;

use chrono::NaiveDate;

use super::files::{Family, FileKey, FilePosition};
use super::lines::{Cursor, Line, ReadLimit};

/// Maximum number of files processed per poll.
const MAX_FILES: usize = 64;

/// An open file and how far it has been read.
struct OpenFile {
    key: FileKey,
    file: File,
    cursor: Cursor,
}

impl OpenFile {
    /// The file's identity, independent of its current name.
    fn inode(&self) -> Option<u64> {
        Some(self.file.metadata().ok()?.ino())
    }
}

/// Follows one family of files.
pub(super) struct Tail {
    pub(super) family: Family,
    /// `None` while there is no file; the first one to appear is then read from its start.
    current: Option<OpenFile>,
    /// The newest file when following began; older ones are ignored.
    since: Option<FileKey>,
    /// The file followed before, which may reappear under another name.
    previous: Option<OpenFile>,
}

impl Tail {
    pub(super) fn new(family: Family) -> Self {
        Self {
            family,
            current: None,
            since: None,
            previous: None,
        }
    }

    /// Moves to the end of the newest file.
    pub(super) fn begin(&mut self, today: NaiveDate) {
        self.rest();
        self.since = self.family.list(today).pop();
        self.current = self.since.and_then(|key| {
            let mut newest = self.open(key)?;
            newest.cursor = Cursor::at_end(&newest.file).ok()?;
            Some(newest)
        });
    }

    /// Closes the files.
    pub(super) fn rest(&mut self) {
        self.current = None;
        self.previous = None;
    }

    /// The position after the last line passed on.
    pub(super) fn here(&self) -> Option<FilePosition> {
        let current = self.current.as_ref()?;
        let (key, offset) = (current.key, current.cursor.line_end());
        Some(FilePosition { key, offset })
    }

    /// A file of the family; the followed file itself if the key is its own, even if it has been renamed.
    pub(super) fn file(&self, key: FileKey) -> io::Result<File> {
        match &self.current {
            Some(current) if current.key == key => current.file.try_clone(),
            _ => File::open(self.family.path(key)),
        }
    }

    /// Passes on new lines until the budget runs out; true when there may be more.
    pub(super) fn read(
        &mut self,
        today: NaiveDate,
        budget: &mut ReadLimit,
        take: &mut impl FnMut(FileKey, Line),
    ) -> bool {
        for _ in 0..MAX_FILES {
            if self.current.is_none() {
                let mut keys = self.family.list(today).into_iter();
                let first = keys.find(|key| Some(*key) >= self.since);
                self.current = first.and_then(|key| self.open(key));
            }
            // Determined before reading, so that the rest of the old file is read before the next one begins.
            let next = self.next(today);
            let Some(OpenFile { key, file, cursor }) = &mut self.current else {
                return false;
            };
            match cursor.read(file, budget, &mut |line| take(*key, line)) {
                Ok(true) => return true,
                Ok(false) => {}
                // Debug level only: the log may be the file being followed.
                Err(error) => tracing::debug!(%error, "reading a followed file failed"),
            }
            let Some(next) = next.and_then(|key| self.open(key)) else {
                return false;
            };
            self.go_to(next);
        }
        true
    }

    fn open(&self, key: FileKey) -> Option<OpenFile> {
        let file = File::open(self.family.path(key)).ok()?;
        let cursor = Cursor::default();
        Some(OpenFile { key, file, cursor })
    }

    /// The file to follow next: the same name if another file is behind it, or a newer one. While the name is missing
    /// the old file is kept, since a writer may still have it open.
    fn next(&self, today: NaiveDate) -> Option<FileKey> {
        let current = self.current.as_ref()?;
        let named = self.family.inode(current.key);
        if named.is_some() && named != current.inode() {
            return Some(current.key);
        }
        let mut keys = self.family.list(today).into_iter();
        keys.find(|key| *key > current.key)
    }

    fn go_to(&mut self, mut next: OpenFile) {
        if let Some(known) = self.previous.take_if(|previous| previous.inode() == next.inode()) {
            // The file was renamed: its lines were passed on already.
            next.cursor = known.cursor;
        }
        self.previous = self.current.replace(next);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::path::Path;

    use super::*;

    struct Bench {
        dir: tempfile::TempDir,
        tail: Tail,
    }

    fn today() -> NaiveDate {
        "2026-11-21".parse().unwrap()
    }

    impl Bench {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let family = Family::new(dir.path().to_owned(), "t-", ".jsonl");
            Self {
                dir,
                tail: Tail::new(family),
            }
        }

        fn path(&self, name: &str) -> std::path::PathBuf {
            self.dir.path().join(name)
        }

        fn append(&self, name: &str, text: impl AsRef<[u8]>) {
            append(&self.path(name), text.as_ref());
        }

        fn read(&mut self) -> Vec<String> {
            let mut lines = Vec::new();
            let mut budget = ReadLimit {
                lines: 1000,
                bytes: 1 << 20,
            };
            self.tail
                .read(today(), &mut budget, &mut |_, line| lines.push(line.text));
            lines
        }
    }

    fn append(path: &Path, text: &[u8]) {
        let mut file = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .unwrap();
        file.write_all(text).unwrap();
    }

    const BASE: &str = "t-2026-11-21.jsonl";

    #[test]
    fn a_new_day_and_new_parts_are_followed_after_the_rest_of_the_old_file() {
        let mut bench = Bench::new();
        bench.append(BASE, "old\n");
        bench.tail.begin(today());
        bench.append(BASE, "one\n");
        bench.append("t-2026-11-21.1.jsonl", "two\n");
        bench.append("t-2026-11-21.2.jsonl", "three\n");
        bench.append("t-2026-11-22.jsonl", "four\nfi");
        assert_eq!(bench.read(), ["one", "two", "three", "four"]);
        bench.append("t-2026-11-22.jsonl", "ve\n");
        assert_eq!(bench.read(), ["five"]);
        assert!(bench.read().is_empty());
    }

    #[test]
    fn the_first_file_is_new_from_its_first_line() {
        let mut bench = Bench::new();
        bench.tail.begin(today());
        assert!(bench.read().is_empty());
        bench.append(BASE, "one\n");
        assert_eq!(bench.read(), ["one"]);
    }

    #[test]
    fn a_file_that_can_not_be_opened_yet_does_not_bring_up_old_ones() {
        let mut bench = Bench::new();
        bench.append("t-2026-11-20.jsonl", "old\n");
        std::os::unix::fs::symlink("nowhere", bench.path(BASE)).unwrap();
        bench.tail.begin(today());
        assert!(bench.read().is_empty());
        fs::remove_file(bench.path(BASE)).unwrap();
        bench.append(BASE, "new\n");
        assert_eq!(bench.read(), ["new"]);
    }

    #[test]
    fn a_file_renamed_away_replaced_deleted_or_cut_loses_and_doubles_nothing() {
        let mut bench = Bench::new();
        bench.append(BASE, "");
        bench.tail.begin(today());
        bench.append(BASE, "one\n");
        fs::rename(bench.path(BASE), bench.path("away")).unwrap();
        assert_eq!(bench.read(), ["one"], "from the open file");
        bench.append("away", "two\n");
        bench.append(BASE, "three\n");
        assert_eq!(bench.read(), ["two", "three"]);
        fs::remove_file(bench.path(BASE)).unwrap();
        assert!(bench.read().is_empty());
        bench.append(BASE, "four\n");
        assert_eq!(bench.read(), ["four"]);
        fs::File::create(bench.path(BASE)).unwrap();
        bench.append(BASE, "five\n");
        assert_eq!(bench.read(), ["five"]);
    }

    #[test]
    fn a_file_renamed_to_a_later_part_is_not_read_again() {
        let mut bench = Bench::new();
        bench.append(BASE, "");
        bench.tail.begin(today());
        bench.append(BASE, "one\ntwo\n");
        assert_eq!(bench.read(), ["one", "two"]);
        fs::rename(bench.path(BASE), bench.path("t-2026-11-21.1.jsonl")).unwrap();
        bench.append(BASE, "three\n");
        assert_eq!(bench.read(), ["three"]);
        bench.append("t-2026-11-21.1.jsonl", "four\n");
        assert_eq!(bench.read(), ["four"]);
    }

    #[test]
    fn an_ended_budget_says_that_there_is_more() {
        let mut bench = Bench::new();
        bench.tail.begin(today());
        bench.append(BASE, "1\n2\n3\n");
        let mut found = Vec::new();
        let mut looks = 0;
        loop {
            looks += 1;
            let mut budget = ReadLimit { lines: 2, bytes: 100 };
            if !bench
                .tail
                .read(today(), &mut budget, &mut |_, line| found.push(line.text))
            {
                break;
            }
        }
        assert_eq!((found.len(), looks), (3, 2));
    }
}
