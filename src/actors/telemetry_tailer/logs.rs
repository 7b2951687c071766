//! The end of the log file, for people: read backwards, with a bound.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::files::Family;
use super::lines::lines_backwards;

pub(super) const PREFIX: &str = "threat-memory.";
pub(super) const SUFFIX: &str = ".log";
/// Bytes that are read for one answer, at most.
const MOST_READ: u64 = 16 << 20;
const LEVELS: [&str; 5] = ["trace", "debug", "info", "warn", "error"];

/// The last lines of the log, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LogPage {
    pub logs: Vec<Value>,
    /// Whether there are more than were asked for, or more than one answer reads.
    pub truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'static str>,
}

impl LogPage {
    fn failed(error: &'static str) -> Self {
        Self {
            error: Some(error),
            ..Self::default()
        }
    }
}

#[derive(Deserialize)]
struct Leveled<'a> {
    #[serde(borrow)]
    level: Cow<'a, str>,
}

/// The last `count` lines of the newest log file, of one level if it is given.
pub(super) fn last_lines(
    family: Option<&Family>,
    today: NaiveDate,
    count: usize,
    level: Option<&str>,
) -> LogPage {
    let newest = family.and_then(|family| Some(family.path(family.list(today).pop()?)));
    let Some(newest) = newest else {
        return LogPage::failed("No log file configured");
    };
    let level = level.map(normal);
    if level.as_deref().is_some_and(|level| !LEVELS.contains(&level)) {
        return LogPage::default();
    }
    let file = match File::open(newest) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return LogPage::failed("No log file configured");
        }
        file => file,
    };
    match file.and_then(|file| page(&file, count, level.as_deref())) {
        Ok(page) => page,
        Err(error) => {
            tracing::warn!(%error, "reading the log file failed");
            LogPage::failed("The log file could not be read")
        }
    }
}

fn page(file: &File, count: usize, level: Option<&str>) -> io::Result<LogPage> {
    let mut logs = Vec::new();
    let complete = lines_backwards(file, MOST_READ, |line| {
        if level.is_some_and(|level| level_of(&line).as_deref() != Some(level)) {
            return ControlFlow::Continue(());
        }
        if logs.len() == count {
            return ControlFlow::Break(());
        }
        logs.push(entry_of(&line));
        ControlFlow::Continue(())
    })?;
    logs.reverse();
    Ok(LogPage {
        logs,
        truncated: !complete,
        error: None,
    })
}

/// One spelling for each level.
fn normal(level: &str) -> String {
    match level.to_ascii_lowercase().as_str() {
        "warning" => "warn".to_owned(),
        "critical" | "fatal" => "error".to_owned(),
        level => level.to_owned(),
    }
}

/// The level of a line, without reading the rest of it into memory.
fn level_of(line: &str) -> Option<String> {
    let found = serde_json::from_str::<Leveled<'_>>(line).ok()?;
    Some(normal(&found.level))
}

/// A line as clients of the API know it: `event`, `level`, `time`, and its other fields beside them.
fn entry_of(line: &str) -> Value {
    let Ok(Value::Object(mut map)) = serde_json::from_str::<Value>(line) else {
        return json!({"event": "", "level": "", "time": "", "raw": line});
    };
    let mut fields = match map.remove("fields") {
        Some(Value::Object(fields)) => fields,
        Some(other) => Map::from_iter([("fields".to_owned(), other)]),
        None => Map::new(),
    };
    let event = ["message", "event"]
        .into_iter()
        .find_map(|name| fields.remove(name).or_else(|| map.remove(name)));
    let time = ["timestamp", "time"]
        .into_iter()
        .find_map(|name| map.remove(name));
    map.insert("event".to_owned(), event.unwrap_or_default());
    map.insert("time".to_owned(), time.unwrap_or_default());
    let level = map
        .get("level")
        .and_then(Value::as_str)
        .map(str::to_ascii_lowercase);
    map.insert("level".to_owned(), level.into());
    for (name, value) in fields {
        // A field must not pass for the line's own level or time.
        let name = match map.contains_key(&name) {
            true => format!("fields.{name}"),
            false => name,
        };
        map.insert(name, value);
    }
    Value::Object(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_event_level_and_time_and_keeps_its_fields() {
        let line = r#"{"timestamp":"t","level":"WARN","fields":{"message":"m","n":1,"level":"x","timestamp":"y"},"target":"a"}"#;
        let expected = json!({"time": "t", "level": "warn", "event": "m", "n": 1, "target": "a",
            "fields.level": "x", "timestamp": "y"});
        assert_eq!(entry_of(line), expected);
        let peers = r#"{"n":2,"event":"e","level":"warning","time":"t"}"#;
        assert_eq!(
            entry_of(peers),
            json!({"n": 2, "event": "e", "level": "warning", "time": "t"})
        );
        for raw in ["[1]", "no json"] {
            assert_eq!(
                entry_of(raw),
                json!({"event": "", "level": "", "time": "", "raw": raw})
            );
        }
    }
}
