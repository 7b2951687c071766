//! The questions of the last days, for people: read from the ends of the files, so that a big one costs little.

use std::fs::File;
use std::io;
use std::ops::ControlFlow;

use chrono::{Days, NaiveDate};
use serde_json::Value;

use super::files::Family;
use super::lines::lines_backwards;

/// Bytes of one file that are read for one answer, at most.
const MOST_READ: u64 = 64 << 20;

/// Recalls and syntheses of the last `days` days (today is the first), newest first.
pub(super) fn read(family: &Family, today: NaiveDate, days: u32, limit: usize) -> io::Result<Vec<Value>> {
    let first = today - Days::new(u64::from(days.saturating_sub(1)));
    let mut found: Vec<Value> = Vec::new();
    let recent = family.list(today).into_iter().filter(|key| key.day >= first);
    for key in recent.rev() {
        let file = match File::open(family.path(key)) {
            // It was pruned this moment.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            file => file?,
        };
        lines_backwards(&file, MOST_READ, |line| {
            found.extend(question(&line));
            match found.len() < limit {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        })?;
        if found.len() >= limit {
            break;
        }
    }
    Ok(found)
}

/// The entry of a line, when it is a recall or a synthesis.
fn question(line: &str) -> Option<Value> {
    let entry = serde_json::from_str::<Value>(line).ok()?;
    let event_type = entry.get("event_type").and_then(Value::as_str);
    matches!(event_type, Some("recall" | "synthesis")).then_some(entry)
}
