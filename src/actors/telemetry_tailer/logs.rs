//! The last lines of the log file for display, read backwards up to a limit.

use std::borrow::Cow;
use std::ops::ControlFlow;

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::files::Family;

pub(super) const PREFIX: &str = "threat-memory.";
pub(super) const SUFFIX: &str = ".log";
/// Maximum number of bytes read per request.
const MAX_READ: u64 = 16 << 20;
const LEVELS: [&str; 5] = ["trace", "debug", "info", "warn", "error"];

/// The last lines of the log, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, ToSchema)]
pub struct LogPage {
    #[schema(value_type = Vec<LogLine>)]
    pub logs: Vec<Value>,
    /// Whether there are more lines than requested, or than one request reads.
    pub truncated: bool,
    /// Why there are no lines, such as a log that is not written to a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false, example = "No log file configured")]
    pub error: Option<&'static str>,
}

/// A line of the log; the line's other fields stand beside these.
#[derive(ToSchema)]
#[schema(example = json!({
    "event": "request answered", "level": "info", "time": "2026-01-02T03:04:05.678901Z",
}))]
#[allow(dead_code, reason = "describes the lines, which hold whatever was logged")]
pub struct LogLine {
    /// The message.
    event: Value,
    /// `trace`, `debug`, `info`, `warning` or `error`.
    #[schema(required)]
    level: Option<String>,
    /// As in the file (RFC 3339).
    time: Value,
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
struct LogLevelField<'a> {
    #[serde(borrow)]
    level: Cow<'a, str>,
}

/// The last `count` lines of the log, optionally of one level: from the newest file and as many older ones as needed.
pub(super) fn last_lines(family: &Family, today: NaiveDate, count: usize, level: Option<&str>) -> LogPage {
    // The directory is made with the first file. A file that was moved away is followed by another one.
    if !family.dir.is_dir() {
        return LogPage::failed("No log file configured");
    }
    let level = level.map(normal);
    if level.as_deref().is_some_and(|level| !LEVELS.contains(&level)) {
        return LogPage::default();
    }
    let mut logs = Vec::new();
    let complete = family.lines_backwards(NaiveDate::MIN, today, MAX_READ, |line| {
        if level.is_some() && level_of(&line) != level {
            return ControlFlow::Continue(());
        }
        if logs.len() == count {
            return ControlFlow::Break(());
        }
        logs.push(entry_of(&line));
        ControlFlow::Continue(())
    });
    logs.reverse();
    match complete {
        Ok(complete) => LogPage {
            logs,
            truncated: !complete,
            error: None,
        },
        Err(error) => {
            tracing::warn!(%error, "reading the log file failed");
            LogPage::failed("The log file could not be read")
        }
    }
}

/// Normalises the spelling of a level.
fn normal(level: &str) -> String {
    match level.to_ascii_lowercase().as_str() {
        "warning" => "warn".to_owned(),
        "critical" | "fatal" => "error".to_owned(),
        level => level.to_owned(),
    }
}

/// The level of a line, without reading the rest of it into memory.
fn level_of(line: &str) -> Option<String> {
    let found = serde_json::from_str::<LogLevelField<'_>>(line).ok()?;
    Some(normal(&found.level))
}

/// A line in the format of the API: `event`, `level`, `time`, and the line's other fields beside them.
fn entry_of(line: &str) -> Value {
    let Ok(Value::Object(mut map)) = serde_json::from_str::<Value>(line) else {
        return json!({"event": "", "level": "", "time": "", "raw": line});
    };
    let mut fields = match map.remove("fields") {
        Some(Value::Object(fields)) => fields,
        other => other
            .map(|other| ("fields".to_owned(), other))
            .into_iter()
            .collect(),
    };
    let event = ["message", "event"]
        .into_iter()
        .find_map(|name| fields.remove(name).or_else(|| map.remove(name)));
    let time = map.remove("timestamp").or_else(|| map.remove("time"));
    map.insert("event".to_owned(), event.unwrap_or_default());
    map.insert("time".to_owned(), time.unwrap_or_default());
    let level = map.get("level").and_then(Value::as_str);
    // The API's spelling of the level.
    let level = level.map(|level| normal(level).replace("warn", "warning"));
    map.insert("level".to_owned(), level.into());
    for (name, value) in fields {
        // A field must not overwrite the line's own level or time.
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

    fn day(text: &str) -> NaiveDate {
        text.parse().unwrap()
    }

    /// A folder with log files, by day.
    fn logged(files: &[(&str, &str)]) -> (tempfile::TempDir, Family) {
        let dir = tempfile::tempdir().unwrap();
        for (day, text) in files {
            std::fs::write(dir.path().join(format!("{PREFIX}{day}{SUFFIX}")), text).unwrap();
        }
        let family = Family::new(dir.path().to_owned(), PREFIX, SUFFIX);
        (dir, family)
    }

    fn events(page: &LogPage) -> Vec<&str> {
        page.logs
            .iter()
            .map(|entry| entry["event"].as_str().unwrap())
            .collect()
    }

    fn line(level: &str, event: &str) -> String {
        let fields = json!({"message": event});
        format!(
            "{}\n",
            json!({"timestamp": "t", "level": level, "fields": fields})
        )
    }

    #[test]
    fn lines_come_from_as_many_files_as_they_need() {
        let old = line("INFO", "one") + &line("WARN", "two") + &line("INFO", "three");
        let new = line("INFO", "five");
        let (_dir, family) = logged(&[
            ("2026-11-20", &old),
            ("2026-11-21", &line("INFO", "four")),
            ("2026-11-22", &new),
        ]);
        let last = |count, level| last_lines(&family, day("2026-11-22"), count, level);
        for (count, level, wanted, truncated) in [
            (1, None, &["five"][..], true),
            (2, None, &["four", "five"], true),
            (4, None, &["two", "three", "four", "five"], true),
            (5, None, &["one", "two", "three", "four", "five"], false),
            (100, None, &["one", "two", "three", "four", "five"], false),
            (1, Some("warning"), &["two"], false),
            (1, Some("error"), &[], false),
        ] {
            let page = last(count, level);
            assert_eq!(
                (events(&page), page.truncated),
                (wanted.to_vec(), truncated),
                "{count}"
            );
            assert_eq!(page.error, None);
        }
    }

    #[test]
    fn a_log_that_was_moved_away_is_empty_and_one_that_is_not_written_is_an_error() {
        let (dir, family) = logged(&[("2026-11-22", &line("INFO", "one"))]);
        let log = dir.path().join(family.name(family.all()[0]));
        std::fs::rename(&log, dir.path().join("rotated.1")).unwrap();
        let page = last_lines(&family, day("2026-11-22"), 10, None);
        assert_eq!(page, LogPage::default());
        std::fs::write(log, line("INFO", "two")).unwrap();
        let page = last_lines(&family, day("2026-11-22"), 10, None);
        assert_eq!(events(&page), ["two"]);
        let nowhere = Family::new("".into(), PREFIX, SUFFIX);
        let page = last_lines(&nowhere, day("2026-11-22"), 10, None);
        assert_eq!(page.error, Some("No log file configured"));
    }

    #[test]
    fn one_answer_reads_no_more_than_its_bound_whatever_the_number_of_files() {
        let large = line("INFO", &"x".repeat(1 << 19)).repeat(18);
        let (_dir, family) = logged(&[
            ("2026-11-20", &large),
            ("2026-11-21", &large),
            ("2026-11-22", &large),
        ]);
        let page = last_lines(&family, day("2026-11-22"), 10_000, None);
        assert!(page.truncated);
        assert!((30..=36).contains(&page.logs.len()), "{}", page.logs.len());
    }

    #[test]
    fn an_entry_has_event_level_and_time_and_keeps_its_fields() {
        let line = r#"{"timestamp":"t","level":"WARN","fields":{"message":"m","n":1,"level":"x","timestamp":"y"},"target":"a"}"#;
        let expected = json!({"time": "t", "level": "warning", "event": "m", "n": 1, "target": "a",
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
