//! Writes the telemetry files: one a day, more parts of a day when one grew too large, pruned when they are old.
//!
//! A line is written whole by one call. A file is never renamed, so event ids stay true. Whether telemetry is wanted
//! and what a failure means is the caller's business.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt};

use chrono::{DateTime, Days, NaiveDate, Utc};
use serde::Serialize;
use uuid::Uuid;

use super::files::{Family, FileKey};

pub(super) const PREFIX: &str = "telemetry-";
pub(super) const SUFFIX: &str = ".jsonl";

/// One answered question.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TelemetryEntry {
    /// `recall` or `synthesis`.
    pub event_type: &'static str,
    /// Seconds since 1970.
    pub timestamp: f64,
    /// 32 hexadecimal digits.
    pub query_id: String,
    pub actor: Option<String>,
    pub caller: Option<String>,
    /// Empty when queries are not to be kept.
    pub query: String,
    pub result_count: usize,
    pub duration_ms: u64,
    pub intent: &'static str,
}

impl TelemetryEntry {
    /// An entry for a question that was answered at `now`.
    pub fn new(
        event_type: &'static str,
        query: &str,
        intent: &'static str,
        result_count: usize,
        duration_ms: u64,
        now: DateTime<Utc>,
    ) -> Self {
        Self {
            event_type,
            timestamp: now.timestamp_micros() as f64 / 1e6,
            query_id: Uuid::now_v7().simple().to_string(),
            actor: None,
            caller: None,
            query: query.to_owned(),
            result_count,
            duration_ms,
            intent,
        }
    }
}

/// The file that is being written.
struct Open {
    key: FileKey,
    file: File,
    inode: u64,
    size: u64,
}

/// The writer of the telemetry files.
pub(super) struct Journal {
    family: Family,
    open: Option<Open>,
}

impl Journal {
    pub(super) fn new(family: Family) -> Self {
        Self { family, open: None }
    }

    /// Appends one line; when it would make the file larger than `most_bytes`, the day goes on in the next part.
    pub(super) fn append(&mut self, line: &str, now: DateTime<Utc>, most_bytes: u64) -> io::Result<()> {
        let whole = format!("{line}\n");
        let mut open = self.opened(now.date_naive())?;
        if open.size > 0 && open.size + whole.len() as u64 > most_bytes {
            open = Open::file(&self.family, open.key.next_part())?;
        }
        // One call, so that no reader sees half a line and no other writer gets between. Only after a success the
        // file stays open: opening it again mends a torn line.
        open.file.write_all(whole.as_bytes())?;
        open.size += whole.len() as u64;
        self.open = Some(open);
        Ok(())
    }

    /// Today's last file, also when somebody moved, deleted or cut the one that was open.
    fn opened(&mut self, day: NaiveDate) -> io::Result<Open> {
        if let Some(mut open) = self.open.take()
            && open.key.day == day
            && let Ok(metadata) = fs::metadata(self.family.path(open.key))
            && metadata.ino() == open.inode
        {
            open.size = metadata.len();
            return Ok(open);
        }
        let last = self.family.of_day(day).pop();
        Open::file(&self.family, last.unwrap_or(FileKey::first_of(day)))
    }
}

/// Deletes the files of days that are over; today is the first of `keep_days`.
pub(super) fn prune(family: &Family, today: NaiveDate, keep_days: u32) {
    let first = today - Days::new(u64::from(keep_days.saturating_sub(1)));
    for key in family.all().into_iter().filter(|key| key.day < first) {
        if let Err(error) = fs::remove_file(family.path(key)) {
            let file = family.name(key);
            tracing::warn!(%error, file, "deleting an old telemetry file failed");
        }
    }
}

impl Open {
    fn file(family: &Family, key: FileKey) -> io::Result<Self> {
        crate::files::private_dir(family.dir())?;
        let mut options = OpenOptions::new();
        options.read(true).create(true).append(true);
        // Questions may tell what somebody works on.
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(family.path(key))?;
        let metadata = file.metadata()?;
        let mut size = metadata.len();
        let mut last = [b'\n'];
        if size > 0 {
            file.read_exact_at(&mut last, size - 1)?;
        }
        if last != [b'\n'] {
            // A line that was torn when a process was cut off must not swallow the next one.
            file.write_all(b"\n")?;
            size += 1;
        }
        Ok(Self {
            key,
            file,
            inode: metadata.ino(),
            size,
        })
    }
}
