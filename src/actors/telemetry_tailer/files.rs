//! Names of the files of one family: which there are, in which order, and places in them.
//!
//! A family has a file a day, and more parts of a day when one grew too large. Names are checked strictly, because
//! they come back from clients as event ids. Nothing is read here.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use chrono::{Days, NaiveDate};

/// Day and part: the order in which files follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FileKey {
    pub(super) day: NaiveDate,
    pub(super) part: u32,
}

impl FileKey {
    /// The first file of a day.
    pub(super) fn first_of(day: NaiveDate) -> Self {
        Self { day, part: 0 }
    }

    /// The next file of the same day.
    pub(super) fn next_part(self) -> Self {
        Self {
            part: self.part.saturating_add(1),
            ..self
        }
    }
}

/// The files of one directory whose names begin and end alike.
#[derive(Debug, Clone)]
pub(super) struct Family {
    dir: PathBuf,
    prefix: &'static str,
    suffix: &'static str,
}

impl Family {
    pub(super) fn new(dir: PathBuf, prefix: &'static str, suffix: &'static str) -> Self {
        Self { dir, prefix, suffix }
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn name(&self, key: FileKey) -> String {
        let Self { prefix, suffix, .. } = self;
        match key {
            FileKey { day, part: 0 } => format!("{prefix}{day}{suffix}"),
            FileKey { day, part } => format!("{prefix}{day}.{part}{suffix}"),
        }
    }

    pub(super) fn path(&self, key: FileKey) -> PathBuf {
        self.dir.join(self.name(key))
    }

    /// The key of a name; `None` for every name that this family would not give.
    pub(super) fn key(&self, name: &str) -> Option<FileKey> {
        let middle = name.strip_prefix(self.prefix)?.strip_suffix(self.suffix)?;
        let (day, part) = middle.split_once('.').unwrap_or((middle, "0"));
        let key = FileKey {
            day: day.parse().ok()?,
            part: part.parse().ok()?,
        };
        (self.name(key) == name).then_some(key)
    }

    /// The files there are, oldest first. A file from the day after tomorrow was written under a wrong clock; it must
    /// not pass for the current one.
    pub(super) fn list(&self, today: NaiveDate) -> Vec<FileKey> {
        let latest = today + Days::new(1);
        let mut keys = self.all();
        keys.retain(|key| key.day <= latest);
        keys
    }

    /// Every file, oldest first; none when the directory can't be read.
    pub(super) fn all(&self) -> Vec<FileKey> {
        let Ok(entries) = fs::read_dir(&self.dir) else {
            return Vec::new();
        };
        let mut keys: Vec<FileKey> = entries
            .flatten()
            .filter_map(|entry| self.key(entry.file_name().to_str()?))
            .collect();
        keys.sort_unstable();
        keys
    }

    /// The parts of one day, oldest first.
    pub(super) fn of_day(&self, day: NaiveDate) -> Vec<FileKey> {
        let mut keys = self.all();
        keys.retain(|key| key.day == day);
        keys
    }

    /// Which file is behind a name now; a renamed and newly made one is another.
    pub(super) fn inode(&self, key: FileKey) -> Option<u64> {
        fs::metadata(self.path(key)).ok().map(|metadata| metadata.ino())
    }

    /// The id of the event that ends at a place.
    pub(super) fn id(&self, place: Place) -> String {
        format!("{}:{}", self.name(place.key), place.offset)
    }

    /// The place that an event id names.
    pub(super) fn place(&self, id: &str) -> Option<Place> {
        let (name, offset) = id.trim().rsplit_once(':')?;
        Some(Place {
            key: self.key(name)?,
            offset: offset.parse().ok()?,
        })
    }
}

/// After how many bytes of which file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) key: FileKey,
    pub(super) offset: u64,
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
            let place = Place { key, offset: 17 };
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
