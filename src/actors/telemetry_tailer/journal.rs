//! The telemetry files: one a day, put aside when it grows too large, pruned when it is old; and what they add up to.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::files::{files, lines_backwards, lines_from, name_of};

pub(super) const PREFIX: &str = "telemetry-";
pub(super) const SUFFIX: &str = ".jsonl";
/// Intents that the figures name.
const TOP_INTENTS: usize = 10;

/// One answered question.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TelemetryEntry {
    /// `recall` or `synthesis`.
    pub event_type: &'static str,
    /// Seconds since 1970.
    pub timestamp: f64,
    pub query_id: String,
    pub actor: Option<String>,
    pub caller: Option<String>,
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

/// What today's questions add up to.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct TelemetryFigures {
    pub total_queries: u64,
    pub queries_today: u64,
    pub recall_count: u64,
    pub synthesis_count: u64,
    pub syntheses_today: u64,
    pub avg_latency_ms: u64,
    pub p50_ms: u64,
    pub p95_ms: u64,
    pub top_intents: BTreeMap<String, u64>,
}

#[derive(Deserialize)]
struct Seen {
    event_type: String,
    #[serde(default)]
    duration_ms: u64,
    #[serde(default)]
    intent: Option<String>,
}

/// The file of the day, and what was counted of it.
pub(super) struct Journal {
    dir: PathBuf,
    day: Option<NaiveDate>,
    /// How far each of today's files was counted.
    counted: BTreeMap<PathBuf, u64>,
    recalls: u64,
    syntheses: u64,
    durations: Vec<u64>,
    intents: BTreeMap<String, u64>,
}

impl Journal {
    pub(super) fn new(dir: PathBuf) -> Self {
        Self {
            dir,
            day: None,
            counted: BTreeMap::new(),
            recalls: 0,
            syntheses: 0,
            durations: Vec::new(),
            intents: BTreeMap::new(),
        }
    }

    fn of_day(&self, day: NaiveDate) -> Vec<PathBuf> {
        files(&self.dir, &format!("{PREFIX}{day}"), SUFFIX)
    }

    /// Appends one line; a full file is left alone and the day goes on in the next part.
    pub(super) fn append(&mut self, line: &str, now: DateTime<Utc>, most_bytes: u64) -> io::Result<()> {
        let day = now.date_naive();
        let parts = self.of_day(day);
        let name = |part: u32| match part {
            0 => format!("{PREFIX}{day}{SUFFIX}"),
            part => format!("{PREFIX}{day}.{part}{SUFFIX}"),
        };
        let path = match parts.last() {
            None => self.dir.join(name(0)),
            Some(last) if fs::metadata(last).is_ok_and(|metadata| metadata.len() >= most_bytes) => {
                self.dir.join(name(part_of(last) + 1))
            }
            Some(last) => last.clone(),
        };
        fs::create_dir_all(&self.dir)?;
        let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
        // One call, so that no reader sees half a line and no other writer gets between.
        file.write_all(format!("{line}\n").as_bytes())
    }

    /// Deletes the files of days that are over.
    pub(super) fn prune(&self, now: DateTime<Utc>, keep_days: u32) {
        let first = now.date_naive() - chrono::Days::new(u64::from(keep_days.saturating_sub(1)));
        for path in files(&self.dir, PREFIX, SUFFIX) {
            if day_of(&path).is_some_and(|day| day < first)
                && let Err(error) = fs::remove_file(&path)
            {
                tracing::warn!(%error, file = name_of(&path), "deleting an old telemetry file failed");
            }
        }
    }

    /// What today's files add up to; only what was written since the last time is read.
    pub(super) fn figures(&mut self, now: DateTime<Utc>) -> TelemetryFigures {
        let day = now.date_naive();
        let today = self.of_day(day);
        let shrank = self
            .counted
            .iter()
            .any(|(path, offset)| fs::metadata(path).map_or(true, |metadata| metadata.len() < *offset));
        if self.day != Some(day) || shrank {
            *self = Self {
                day: Some(day),
                ..Self::new(self.dir.clone())
            };
        }
        for path in today {
            let offset = self.counted.get(&path).copied().unwrap_or(0);
            let lines = File::open(&path).and_then(|mut file| lines_from(&mut file, offset, false));
            for line in lines.unwrap_or_default() {
                self.counted.insert(path.clone(), line.end);
                self.count(&line.text);
            }
        }
        self.sum()
    }

    fn count(&mut self, line: &str) {
        let Ok(seen) = serde_json::from_str::<Seen>(line) else {
            return;
        };
        match seen.event_type.as_str() {
            "recall" => self.recalls += 1,
            "synthesis" => self.syntheses += 1,
            _ => return,
        }
        self.durations.push(seen.duration_ms);
        if let Some(intent) = seen.intent {
            *self.intents.entry(intent).or_default() += 1;
        }
    }

    fn sum(&self) -> TelemetryFigures {
        let mut sorted = self.durations.clone();
        sorted.sort_unstable();
        let at = |share: f64| {
            let place = (sorted.len() as f64 * share).ceil() as usize;
            sorted.get(place.saturating_sub(1)).copied().unwrap_or(0)
        };
        let count = sorted.len() as u64;
        let mut intents: Vec<_> = self.intents.clone().into_iter().collect();
        intents.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        intents.truncate(TOP_INTENTS);
        TelemetryFigures {
            total_queries: count,
            queries_today: count,
            recall_count: self.recalls,
            synthesis_count: self.syntheses,
            syntheses_today: self.syntheses,
            avg_latency_ms: sorted.iter().sum::<u64>().checked_div(count).unwrap_or(0),
            p50_ms: at(0.5),
            p95_ms: at(0.95),
            top_intents: intents.into_iter().collect(),
        }
    }
}

/// Recalls and syntheses of the last days, newest first.
pub(super) fn history(dir: &Path, now: DateTime<Utc>, days: u32, limit: usize) -> io::Result<Vec<Value>> {
    let first = now.date_naive() - chrono::Days::new(u64::from(days.saturating_sub(1)));
    let mut found: Vec<Value> = Vec::new();
    let mut newest_first = files(dir, PREFIX, SUFFIX);
    newest_first.retain(|path| day_of(path).is_some_and(|day| day >= first));
    newest_first.reverse();
    for path in newest_first {
        lines_backwards(&path, |line| {
            if let Ok(entry) = serde_json::from_str::<Value>(&line.text)
                && matches!(
                    entry.get("event_type").and_then(Value::as_str),
                    Some("recall" | "synthesis")
                )
            {
                found.push(entry);
            }
            found.len() < limit
        })?;
        if found.len() >= limit {
            break;
        }
    }
    Ok(found)
}

fn middle(path: &Path) -> &str {
    let name = name_of(path);
    name.strip_prefix(PREFIX)
        .and_then(|name| name.strip_suffix(SUFFIX))
        .unwrap_or_default()
}

fn day_of(path: &Path) -> Option<NaiveDate> {
    middle(path).split('.').next()?.parse().ok()
}

fn part_of(path: &Path) -> u32 {
    middle(path)
        .split_once('.')
        .and_then(|(_, part)| part.parse().ok())
        .unwrap_or(0)
}
