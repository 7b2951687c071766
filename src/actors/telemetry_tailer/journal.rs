//! Writes the telemetry files, one per day with further parts when one grew too large; prunes and reads them.
//!
//! A line is written by a single call. A file is never renamed, so event ids stay valid. The caller decides whether
//! telemetry is enabled and what a failure means.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};

use chrono::{DateTime, Days, NaiveDate, Utc};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::mpsc;
use utoipa::ToSchema;
use uuid::Uuid;

use super::files::{Family, FileKey};

pub(super) const PREFIX: &str = "telemetry-";
pub(super) const SUFFIX: &str = ".jsonl";
/// Maximum number of bytes read per request.
const MAX_READ: u64 = 64 << 20;

/// One answered query.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(example = json!({
    "event_type": "recall", "timestamp": 1_767_323_045.678, "query_id": "0197f3a05a587c118a550f6f3f4f6a10",
    "actor": null, "caller": null, "query": "Which tools does APT28 use?", "result_count": 5, "duration_ms": 9,
    "intent": "factual",
}))]
pub struct TelemetryEntry {
    /// `recall` or `synthesis`.
    pub event_type: &'static str,
    /// Seconds since 1970.
    pub timestamp: f64,
    /// 32 hexadecimal digits.
    pub query_id: String,
    #[schema(required)]
    pub actor: Option<String>,
    #[schema(required)]
    pub caller: Option<String>,
    /// Empty when queries are not to be recorded.
    pub query: String,
    pub result_count: usize,
    pub duration_ms: u64,
    pub intent: &'static str,
}

impl TelemetryEntry {
    /// An entry for a query answered at `now`.
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

/// The writer of the telemetry files.
pub(super) struct TelemetryJournal {
    family: Family,
    /// The file being written.
    open: Option<(FileKey, File)>,
    /// Lines waiting to be written.
    pub(super) queued: mpsc::Receiver<String>,
    /// When a write failure was last logged.
    pub(super) complained: Option<DateTime<Utc>>,
}

impl TelemetryJournal {
    pub(super) fn new(family: Family, queued: mpsc::Receiver<String>) -> Self {
        Self {
            family,
            open: None,
            queued,
            complained: None,
        }
    }

    /// Appends one line; if it would make the file larger than `max_bytes`, the day continues in the next part.
    pub(super) fn append(&mut self, line: &str, now: DateTime<Utc>, max_bytes: u64) -> io::Result<()> {
        let whole = format!("{line}\n");
        let (mut key, mut file) = self.last_of(now.date_naive())?;
        let size = file.metadata()?.len();
        if size > 0 && size + whole.len() as u64 > max_bytes {
            key.part = key.part.saturating_add(1);
            file = open(&self.family, key)?;
        }
        // One call, so that no reader sees half a line and no other writer interleaves. The file stays open only
        // after a success: reopening it repairs a torn line.
        file.write_all(whole.as_bytes())?;
        self.open = Some((key, file));
        Ok(())
    }

    /// The last file of a day, even if the one that was open has been moved or deleted.
    fn last_of(&mut self, day: NaiveDate) -> io::Result<(FileKey, File)> {
        if let Some((key, file)) = self.open.take()
            && key.day == day
            && self.family.inode(key) == Some(file.metadata()?.ino())
        {
            return Ok((key, file));
        }
        let last = self.family.of_day(day).pop();
        let key = last.unwrap_or(FileKey { day, part: 0 });
        Ok((key, open(&self.family, key)?))
    }
}

/// Opens a file for appending.
fn open(family: &Family, key: FileKey) -> io::Result<File> {
    crate::files::private_dir(&family.dir)?;
    let mut options = OpenOptions::new();
    // Queries may reveal what an analyst is working on.
    options.read(true).create(true).append(true).mode(0o600);
    let mut file = options.open(family.path(key))?;
    let mut last = [b'\n'];
    if let Some(before) = file.metadata()?.len().checked_sub(1) {
        file.read_exact_at(&mut last, before)?;
    }
    if last != [b'\n'] {
        // A line torn by a crash must not swallow the next one.
        file.write_all(b"\n")?;
    }
    Ok(file)
}

/// Deletes expired files; today is the first of `keep_days`.
pub(super) fn prune(family: &Family, today: NaiveDate, keep_days: u32) {
    let first = today - Days::new(u64::from(keep_days.saturating_sub(1)));
    for key in family.all().into_iter().filter(|key| key.day < first) {
        if let Err(error) = fs::remove_file(family.path(key)) {
            let file = family.name(key);
            tracing::warn!(%error, file, "deleting an old telemetry file failed");
        }
    }
}

/// Recalls and syntheses of the last `days` days, today included, newest first.
pub(super) fn history(family: &Family, today: NaiveDate, days: u32, limit: usize) -> io::Result<Vec<Value>> {
    let first = today - Days::new(u64::from(days.saturating_sub(1)));
    let mut found: Vec<Value> = Vec::new();
    family.lines_backwards(first, today, MAX_READ, |line| {
        found.extend(question(&line));
        match found.len() < limit {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    })?;
    Ok(found)
}

/// The entry on a line, if it is a recall or a synthesis.
fn question(line: &str) -> Option<Value> {
    let entry = serde_json::from_str::<Value>(line).ok()?;
    let event_type = entry.get("event_type").and_then(Value::as_str);
    matches!(event_type, Some("recall" | "synthesis")).then_some(entry)
}
