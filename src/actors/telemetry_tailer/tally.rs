//! Totals of today's telemetry.
//!
//! They are computed from the files alone, so they stay correct after a restart and when a file is deleted or
//! replaced. Each call reads only what was appended; when something already counted is gone, everything is recounted.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;

use chrono::NaiveDate;
use serde::{Deserialize, Serialize, Serializer};
use utoipa::ToSchema;

use super::files::{Family, FileKey};
use super::lines::{Cursor, ReadLimit};

/// Number of intents listed in the metrics.
const TOP_INTENTS: usize = 10;
/// Upper bound of distinct intents that are counted, whatever a file contains.
const MAX_INTENTS: usize = 1000;

/// Totals of today's queries; times in milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, ToSchema)]
#[schema(example = json!({
    "total_queries": 4, "queries_today": 4, "recall_count": 3, "synthesis_count": 1, "syntheses_today": 1,
    "avg_latency_ms": 12, "p50_ms": 9, "p95_ms": 31, "top_intents": {"factual": 3, "temporal": 1},
}))]
pub struct TelemetryMetrics {
    pub total_queries: u64,
    pub queries_today: u64,
    pub recall_count: u64,
    pub synthesis_count: u64,
    pub syntheses_today: u64,
    pub avg_latency_ms: u64,
    pub p50_ms: u64,
    pub p95_ms: u64,
    /// Number of queries of each intent, the most frequent first.
    #[serde(serialize_with = "as_object")]
    #[schema(value_type = BTreeMap<String, u64>)]
    pub top_intents: Vec<(String, u64)>,
}

fn as_object<S: Serializer>(pairs: &[(String, u64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().map(|(name, count)| (name, count)))
}

#[derive(Deserialize)]
struct CountedFile {
    event_type: String,
    #[serde(default)]
    duration_ms: u64,
    #[serde(default)]
    intent: Option<String>,
}

/// The running count of one day.
#[derive(Default)]
pub(super) struct Tally {
    day: NaiveDate,
    /// Inode of each file, and how far it has been counted.
    files: BTreeMap<FileKey, (u64, Cursor)>,
    recalls: u64,
    syntheses: u64,
    /// Number of occurrences of each duration, which gives every percentile without sorting.
    durations: BTreeMap<u64, u64>,
    intents: BTreeMap<String, u64>,
}

impl Tally {
    /// Brings the count up to date; all of it is discarded when reading fails.
    pub(super) fn read(&mut self, family: &Family, today: NaiveDate) -> io::Result<TelemetryMetrics> {
        loop {
            if self.day != today {
                let day = today;
                *self = Self {
                    day,
                    ..Self::default()
                };
            }
            let read = self.read_on(family);
            if !matches!(read, Ok(true)) {
                *self = Self::default();
            }
            if read? {
                return Ok(self.metrics());
            }
        }
    }

    /// Counts new lines; false when something already counted is gone.
    fn read_on(&mut self, family: &Family) -> io::Result<bool> {
        let keys = family.of_day(self.day);
        if self.files.keys().any(|counted| !keys.contains(counted)) {
            return Ok(false);
        }
        for key in keys {
            let file = File::open(family.path(key))?;
            let inode = file.metadata()?.ino();
            let (known, mut cursor) = self
                .files
                .remove(&key)
                .unwrap_or_else(|| (inode, Cursor::default()));
            if known != inode || !cursor.holds(&file)? {
                return Ok(false);
            }
            cursor.read(&file, &mut { ReadLimit::ALL }, &mut |line| self.count(&line.text))?;
            self.files.insert(key, (inode, cursor));
        }
        Ok(true)
    }

    fn count(&mut self, line: &str) {
        let Ok(seen) = serde_json::from_str::<CountedFile>(line) else {
            return;
        };
        match seen.event_type.as_str() {
            "recall" => self.recalls += 1,
            "synthesis" => self.syntheses += 1,
            _ => return,
        }
        *self.durations.entry(seen.duration_ms).or_default() += 1;
        let known = |intent: &String| self.intents.len() < MAX_INTENTS || self.intents.contains_key(intent);
        if let Some(intent) = seen.intent.filter(known) {
            *self.intents.entry(intent).or_default() += 1;
        }
    }

    fn metrics(&self) -> TelemetryMetrics {
        let count = self.recalls + self.syntheses;
        let sum = |(duration, times): (&u64, &u64)| u128::from(*duration) * u128::from(*times);
        let milliseconds: u128 = self.durations.iter().map(sum).sum();
        let average = (milliseconds + u128::from(count / 2)).checked_div(u128::from(count));
        let mut intents: Vec<_> = self.intents.clone().into_iter().collect();
        intents.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        intents.truncate(TOP_INTENTS);
        TelemetryMetrics {
            total_queries: count,
            queries_today: count,
            recall_count: self.recalls,
            synthesis_count: self.syntheses,
            syntheses_today: self.syntheses,
            avg_latency_ms: average.and_then(|ms| u64::try_from(ms).ok()).unwrap_or(0),
            p50_ms: self.percentile(count, 50),
            p95_ms: self.percentile(count, 95),
            top_intents: intents,
        }
    }

    /// The smallest duration that at least `percent` of all queries do not exceed.
    fn percentile(&self, count: u64, percent: u64) -> u64 {
        let wanted = (count * percent).div_ceil(100);
        let mut seen = 0;
        let found = self.durations.iter().find(|(_, times)| {
            seen += **times;
            seen >= wanted
        });
        found.map_or(0, |(duration, _)| *duration)
    }
}
