//! What today's telemetry adds up to.
//!
//! Counted from the files alone, so the figures are true after a restart and when somebody deletes or replaces a file.
//! Each call reads only what was appended; when something that was counted is gone, everything is counted anew.

use std::collections::BTreeMap;
use std::io;

use chrono::NaiveDate;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use super::files::{Family, FileKey};
use super::lines::{Budget, Cursor};

/// Intents that the figures name.
const TOP_INTENTS: usize = 10;
/// Different intents that are counted at most, whatever a file says.
const MOST_INTENTS: usize = 1000;

/// What today's questions add up to; times in milliseconds.
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
    /// The most frequent first.
    #[serde(serialize_with = "as_object")]
    pub top_intents: Vec<(String, u64)>,
}

fn as_object<S: Serializer>(pairs: &[(String, u64)], serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(pairs.len()))?;
    for (name, count) in pairs {
        map.serialize_entry(name, count)?;
    }
    map.end()
}

#[derive(Deserialize)]
struct Seen {
    event_type: String,
    #[serde(default)]
    duration_ms: u64,
    #[serde(default)]
    intent: Option<String>,
}

#[derive(Debug, Default)]
struct Tallies {
    recalls: u64,
    syntheses: u64,
    /// How often each duration was seen, which gives every percentile without sorting.
    durations: BTreeMap<u64, u64>,
    intents: BTreeMap<String, u64>,
}

/// The running figures.
pub(super) struct Figures {
    family: Family,
    day: Option<NaiveDate>,
    /// Files that are complete: inode and size.
    done: BTreeMap<FileKey, (u64, u64)>,
    /// The file that still grows.
    growing: Option<(FileKey, Cursor)>,
    tallies: Tallies,
}

impl Figures {
    pub(super) fn new(family: Family) -> Self {
        Self {
            family,
            day: None,
            done: BTreeMap::new(),
            growing: None,
            tallies: Tallies::default(),
        }
    }

    /// Brings the figures up to date; none of them is kept when reading fails.
    pub(super) fn read(&mut self, today: NaiveDate) -> io::Result<TelemetryFigures> {
        if self.day != Some(today) || !self.holds() {
            self.restart(today);
        }
        if let Err(error) = self.read_on(today) {
            self.restart(today);
            return Err(error);
        }
        Ok(self.tallies.sum())
    }

    fn restart(&mut self, today: NaiveDate) {
        *self = Self {
            day: Some(today),
            ..Self::new(self.family.clone())
        };
    }

    /// Whether everything that was counted is still there.
    fn holds(&self) -> bool {
        let complete = self.done.iter().all(|(key, (inode, size))| {
            let size_now = std::fs::metadata(self.family.path(*key)).map(|metadata| metadata.len());
            self.family.inode(*key) == Some(*inode) && size_now.is_ok_and(|now| now == *size)
        });
        complete
            && self.growing.as_ref().is_none_or(|(key, cursor)| {
                self.family.inode(*key) == Some(cursor.inode()) && cursor.holds().unwrap_or(false)
            })
    }

    fn read_on(&mut self, today: NaiveDate) -> io::Result<()> {
        for key in self.family.of_day(today) {
            if self.done.contains_key(&key) {
                continue;
            }
            let mut cursor = match self.growing.take() {
                Some((growing, cursor)) if growing == key => cursor,
                Some((growing, cursor)) => {
                    // A newer part exists, so this one is complete.
                    self.done.insert(growing, (cursor.inode(), cursor.offset()));
                    Cursor::at_start(&self.family.path(key))?
                }
                None => Cursor::at_start(&self.family.path(key))?,
            };
            let mut all = Budget {
                lines: u64::MAX,
                bytes: u64::MAX,
            };
            cursor.read(&mut all, &mut |line| self.tallies.count(&line.text))?;
            self.growing = Some((key, cursor));
        }
        Ok(())
    }
}

impl Tallies {
    fn count(&mut self, line: &str) {
        let Ok(seen) = serde_json::from_str::<Seen>(line) else {
            return;
        };
        match seen.event_type.as_str() {
            "recall" => self.recalls += 1,
            "synthesis" => self.syntheses += 1,
            _ => return,
        }
        *self.durations.entry(seen.duration_ms).or_default() += 1;
        let known = |intent: &String| self.intents.len() < MOST_INTENTS || self.intents.contains_key(intent);
        if let Some(intent) = seen.intent.filter(known) {
            *self.intents.entry(intent).or_default() += 1;
        }
    }

    fn sum(&self) -> TelemetryFigures {
        let count = self.recalls + self.syntheses;
        let milliseconds: u128 = self
            .durations
            .iter()
            .map(|(duration, times)| u128::from(*duration) * u128::from(*times))
            .sum();
        let average = (milliseconds + u128::from(count / 2)).checked_div(u128::from(count));
        let mut intents: Vec<_> = self.intents.clone().into_iter().collect();
        intents.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        intents.truncate(TOP_INTENTS);
        TelemetryFigures {
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

    /// The smallest duration that `percent` of all are not above.
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
