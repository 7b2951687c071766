//! File names of one family of files: which files exist, in which order, and positions in them.
//!
//! A family has one file per day, and further parts of a day when a file grew too large. Names are checked strictly,
//! because clients send them back as event ids.

use std::fs::{self, File};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use chrono::{Days, NaiveDate};

use super::lines::lines_backwards;

/// Day and part; orders the files of a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FileKey {
    pub(super) day: NaiveDate,
    pub(super) part: u32,
}

/// A byte offset in one of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FilePosition {
    pub(super) key: FileKey,
    pub(super) offset: u64,
}

/// The files of one directory whose names share a prefix and a suffix.
#[derive(Debug, Clone)]
pub(super) struct Family {
    pub(super) dir: PathBuf,
    prefix: &'static str,
    suffix: &'static str,
}

impl Family {
    pub(super) fn new(dir: PathBuf, prefix: &'static str, suffix: &'static str) -> Self {
        Self { dir, prefix, suffix }
    }

    pub(super) fn name(&self, FileKey { day, part }: FileKey) -> String {
        let Self { prefix, suffix, .. } = self;
        match part {
            0 => format!("{prefix}{day}{suffix}"),
            part => format!("{prefix}{day}.{part}{suffix}"),
        }
    }

    pub(super) fn path(&self, key: FileKey) -> PathBuf {
        self.dir.join(self.name(key))
    }

    /// The key of a name; `None` for any name this family would not generate.
    fn key(&self, name: &str) -> Option<FileKey> {
        let middle = name.strip_prefix(self.prefix)?.strip_suffix(self.suffix)?;
        let (day, part) = middle.split_once('.').unwrap_or((middle, "0"));
        let (day, part) = (day.parse().ok()?, part.parse().ok()?);
        let key = FileKey { day, part };
        (self.name(key) == name).then_some(key)
    }

    /// Every file, oldest first; none when the directory can't be read.
    pub(super) fn all(&self) -> Vec<FileKey> {
        let entries = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let keys = entries.filter_map(|entry| self.key(entry.file_name().to_str()?));
        let mut keys: Vec<FileKey> = keys.collect();
        keys.sort_unstable();
        keys
    }

    /// The files up to now, oldest first. A file dated after tomorrow was written under a wrong clock and must not
    /// pass for the current one.
    pub(super) fn list(&self, today: NaiveDate) -> Vec<FileKey> {
        let mut keys = self.all();
        keys.retain(|key| key.day <= today + Days::new(1));
        keys
    }

    /// The parts of one day, oldest first.
    pub(super) fn of_day(&self, day: NaiveDate) -> Vec<FileKey> {
        let mut keys = self.all();
        keys.retain(|key| key.day == day);
        keys
    }

    /// Passes the lines of the files since a day to `take`, newest first, until it has enough or `max_bytes` would be
    /// exceeded; true when it reached the oldest.
    pub(super) fn lines_backwards(
        &self,
        since: NaiveDate,
        today: NaiveDate,
        mut max_bytes: u64,
        mut take: impl FnMut(String) -> ControlFlow<()>,
    ) -> io::Result<bool> {
        let keys = self.list(today).into_iter().filter(|key| key.day >= since);
        for key in keys.rev() {
            let file = match File::open(self.path(key)) {
                // Pruned a moment ago.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                file => file?,
            };
            if !lines_backwards(&file, max_bytes, &mut take)? {
                return Ok(false);
            }
            max_bytes = max_bytes.saturating_sub(file.metadata()?.len());
        }
        Ok(true)
    }

    /// Inode of the file behind a name; it changes when the file is renamed and a new one created.
    pub(super) fn inode(&self, key: FileKey) -> Option<u64> {
        fs::metadata(self.path(key)).ok().map(|metadata| metadata.ino())
    }

    /// The id of the event that ends at a position.
    pub(super) fn id(&self, place: FilePosition) -> String {
        format!("{}:{}", self.name(place.key), place.offset)
    }

    /// The position that an event id names.
    pub(super) fn place(&self, id: &str) -> Option<FilePosition> {
        let (name, offset) = id.trim().rsplit_once(':')?;
        let (key, offset) = (self.key(name)?, offset.parse().ok()?);
        Some(FilePosition { key, offset })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> NaiveDate {
        text.parse().unwrap()
    }

    #[test]
    fn places_survive_their_ids_and_strange_ids_are_none() {
        let family = Family::new("d".into(), "t-", ".jsonl");
        for part in [0, 7] {
            let key = FileKey {
                day: day("2026-11-21"),
                part,
            };
            let place = FilePosition { key, offset: 17 };
            assert_eq!(family.place(&family.id(place)), Some(place));
        }
        let strange = [
            "",
            "x:y",
            "t-2026-11-21.jsonl",
            "t-2026-11-21.jsonl:-1",
            "t-2026-11-21.0.jsonl:1",
            "t-2026-11-21.+1.jsonl:1",
            "t-2026-11-21.01.jsonl:1",
            "t-2026-13-21.jsonl:1",
            "../t-2026-11-21.jsonl:1",
            "t-../../etc/passwd.jsonl:1",
        ];
        for id in strange {
            assert_eq!(family.place(id), None, "{id}");
        }
    }

    #[test]
    fn files_are_in_the_order_of_days_and_parts_and_the_far_future_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let ordered = [
            "t-2026-01-01.jsonl",
            "t-2026-01-01.2.jsonl",
            "t-2026-01-01.10.jsonl",
            "t-2026-01-02.jsonl",
        ];
        for name in ordered
            .iter()
            .rev()
            .chain(&["t-2026-01-09.jsonl", "other", "t-.jsonl"])
        {
            fs::write(dir.path().join(name), "").unwrap();
        }
        let family = Family::new(dir.path().to_owned(), "t-", ".jsonl");
        let names = |keys: Vec<FileKey>| keys.into_iter().map(|key| family.name(key)).collect::<Vec<_>>();
        assert_eq!(names(family.list(day("2026-01-01"))), ordered);
        assert_eq!(names(family.of_day(day("2026-01-01"))), ordered[..3]);
        assert_eq!(family.all().len(), 5);
    }
}
