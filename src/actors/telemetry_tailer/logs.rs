//! The end of the log file, for people.

use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::files::{files, lines_backwards};

pub(super) const PREFIX: &str = "threat-memory.";
pub(super) const SUFFIX: &str = ".log";
/// Lines that are looked at for one answer, at most.
const MOST_SCANNED: usize = 1_000_000;

/// The last lines of the log, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LogPage {
    pub logs: Vec<Value>,
    /// Whether there are more that fit.
    pub truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'static str>,
}

/// Reads the last `count` lines, of one level if it is given.
pub(super) fn last_lines(dir: Option<&Path>, count: usize, level: Option<&str>) -> LogPage {
    let newest = dir.and_then(|dir| files(dir, PREFIX, SUFFIX).pop());
    let Some(newest) = newest else {
        return LogPage {
            error: Some("No log file configured"),
            ..LogPage::default()
        };
    };
    let level = level
        .map(str::to_ascii_lowercase)
        .map(|level| match level.as_str() {
            "warning" => "warn".to_owned(),
            "critical" => "error".to_owned(),
            _ => level,
        });
    let mut page = LogPage::default();
    let mut scanned = 0;
    let read = lines_backwards(&newest, |line| {
        scanned += 1;
        let entry = entry_of(&line.text);
        if level
            .as_ref()
            .is_none_or(|level| entry.get("level").and_then(Value::as_str) == Some(level))
        {
            if page.logs.len() == count {
                page.truncated = true;
                return false;
            }
            page.logs.push(entry);
        }
        scanned < MOST_SCANNED
    });
    if let Err(error) = read {
        tracing::warn!(%error, "reading the log file failed");
        page.error = Some("The log file could not be read");
    }
    page.logs.reverse();
    page
}

/// A line as clients of the API know it: `event`, `level`, `time`, and the rest of its fields.
fn entry_of(line: &str) -> Value {
    let Ok(Value::Object(mut map)) = serde_json::from_str::<Value>(line) else {
        return json!({"event": "", "level": "", "time": "", "raw": line});
    };
    let fields = map.remove("fields").and_then(|fields| match fields {
        Value::Object(fields) => Some(fields),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => None,
    });
    let mut entry: Map<String, Value> = fields.unwrap_or_default();
    let event = entry.remove("message").unwrap_or_default();
    let level = map
        .remove("level")
        .and_then(|level| level.as_str().map(str::to_ascii_lowercase));
    let time = map.remove("timestamp").unwrap_or_default();
    entry.extend(map);
    entry.insert("event".into(), event);
    entry.insert("level".into(), level.into());
    entry.insert("time".into(), time);
    Value::Object(entry)
}
