//! Follows one family of files across everything that happens to them.
//!
//! A file that grows is read on; one that is cut or replaced is read from its start; a newer one is followed after
//! the rest of the older one was read. Lines come in their order, each once. Who gets them is the hub's business.

use chrono::NaiveDate;

use super::files::{Family, FileKey, Place};
use super::lines::{Budget, Cursor, Line};

/// Files that one look goes through at most.
const MOST_FILES: usize = 64;

/// The follower of one family of files.
pub(super) struct Tail {
    family: Family,
    /// `None` while there is no file: the first one is then new from its first line.
    current: Option<(FileKey, Cursor)>,
    /// The newest file when following began; older ones are not news.
    since: Option<FileKey>,
    /// The file that was followed before, which may come back under another name.
    previous: Option<Cursor>,
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

    pub(super) fn family(&self) -> &Family {
        &self.family
    }

    /// Goes to the end of the newest file.
    pub(super) fn begin(&mut self, today: NaiveDate) {
        self.rest();
        self.since = self.family.list(today).pop();
        self.current = self.since.and_then(|key| {
            let cursor = Cursor::at_end(&self.family.path(key)).ok()?;
            Some((key, cursor))
        });
    }

    /// Lets go of the files.
    pub(super) fn rest(&mut self) {
        self.current = None;
        self.previous = None;
    }

    /// The file that is followed and the place after the last line that was handed on.
    pub(super) fn here(&self) -> Option<(Place, &Cursor)> {
        self.current.as_ref().map(|(key, cursor)| {
            let place = Place {
                key: *key,
                offset: cursor.line_end(),
            };
            (place, cursor)
        })
    }

    /// Hands on what is new, until the budget ends; true when there may be more.
    pub(super) fn read(
        &mut self,
        today: NaiveDate,
        budget: &mut Budget,
        take: &mut impl FnMut(FileKey, Line),
    ) -> bool {
        for _ in 0..MOST_FILES {
            if self.current.is_none() && !self.open_first(today) {
                return false;
            }
            if self.read_current(budget, take) {
                return true;
            }
            let Some(next) = self.next(today) else {
                return false;
            };
            // What was written before the next file was there.
            if self.read_current(budget, take) {
                return true;
            }
            if !self.go_to(next) {
                return false;
            }
        }
        true
    }

    fn read_current(&mut self, budget: &mut Budget, take: &mut impl FnMut(FileKey, Line)) -> bool {
        let Some((key, cursor)) = &mut self.current else {
            return false;
        };
        let key = *key;
        cursor
            .read(budget, &mut |line| take(key, line))
            .unwrap_or_else(|error| {
                // Not louder: the log may be what is followed.
                tracing::debug!(%error, "reading a followed file failed");
                false
            })
    }

    fn open_first(&mut self, today: NaiveDate) -> bool {
        let mut news = self.family.list(today).into_iter();
        self.current = news.find(|key| Some(*key) >= self.since).and_then(|key| {
            let cursor = Cursor::at_start(&self.family.path(key)).ok()?;
            Some((key, cursor))
        });
        self.current.is_some()
    }

    /// The file to follow next: the same name when another file is behind it, or a newer one. While the name is gone
    /// the old file is kept, since a writer may still have it open.
    fn next(&self, today: NaiveDate) -> Option<FileKey> {
        let (key, cursor) = self.current.as_ref()?;
        match self.family.inode(*key) {
            Some(inode) if inode != cursor.inode() => Some(*key),
            _ => self.family.list(today).into_iter().find(|newer| newer > key),
        }
    }

    fn go_to(&mut self, key: FileKey) -> bool {
        let Ok(mut next) = Cursor::at_start(&self.family.path(key)) else {
            return false;
        };
        if let Some(known) = self.previous.take_if(|previous| previous.inode() == next.inode()) {
            // The file was renamed: its lines were handed on already.
            next = known;
        }
        self.previous = self.current.replace((key, next)).map(|(_, cursor)| cursor);
        true
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
            let mut budget = Budget {
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
            let mut budget = Budget { lines: 2, bytes: 100 };
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
