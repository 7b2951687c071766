//! Times in request fields: a day or an RFC 3339 time.

use chrono::{DateTime, NaiveTime, TimeDelta, Utc};
use serde_json::{Value, json};

use super::validate::Fields;
use crate::domain::narrowing::day;

const RULE: &str = "Input should be a date (YYYY-MM-DD, the whole day in UTC) or an RFC 3339 time";

/// Which end of a stretch of time a field bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    First,
    Last,
}

impl Fields<'_> {
    /// The first and the last instant of a stretch of time, each optional; missing, null and empty all mean open.
    pub(super) fn period(
        &mut self,
        since: &str,
        until: &str,
    ) -> (Option<DateTime<Utc>>, Option<DateTime<Utc>>) {
        let (first, last) = (self.time(since, End::First), self.time(until, End::Last));
        if let (Some(from), Some(to)) = (first, last)
            && from > to
        {
            let msg = format!("Input should not be after '{until}'");
            self.refuse(since, "value_error", msg);
        }
        (first, last)
    }

    fn time(&mut self, name: &str, end: End) -> Option<DateTime<Utc>> {
        let schema =
            || json!({"type": ["string", "null"], "anyOf": [{"format": "date"}, {"format": "date-time"}]});
        match self.optional(name, schema)? {
            Value::String(text) if text.is_empty() => None,
            Value::String(text) => {
                let time = instant(&text, end);
                if time.is_none() {
                    self.refuse(name, "datetime_parsing", RULE);
                }
                time
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                self.refuse(name, "datetime_type", RULE);
                None
            }
        }
    }
}

/// The instant that a text means; of a day, its first or last one.
fn instant(text: &str, end: End) -> Option<DateTime<Utc>> {
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Some(time.with_timezone(&Utc));
    }
    let begin = day(text)?.and_time(NaiveTime::MIN).and_utc();
    match end {
        End::First => Some(begin),
        End::Last => begin.checked_add_signed(TimeDelta::days(1) - TimeDelta::nanoseconds(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_whole_and_a_time_is_an_instant() {
        let shown = |text: &str, end| instant(text, end).map(|time| time.to_rfc3339());
        assert_eq!(
            shown("2024-03-01", End::First).unwrap(),
            "2024-03-01T00:00:00+00:00"
        );
        assert_eq!(
            shown("2024-02-29", End::Last).unwrap(),
            "2024-02-29T23:59:59.999999999+00:00"
        );
        for end in [End::First, End::Last] {
            assert_eq!(
                shown("2024-03-01T10:00:00+02:00", end).unwrap(),
                "2024-03-01T08:00:00+00:00"
            );
        }
        for bad in [
            "2024",
            "2024-3-1",
            "2024-02-30",
            "2023-02-29",
            "yesterday",
            "1.3.2024",
            "2024-03-01T10:00:00",
            "2024-03-01 ",
            " 2024-03-01",
            "+2024-03-1",
            "99999-01-01",
            "2024-03-0\u{661}",
        ] {
            assert_eq!(shown(bad, End::First), None, "{bad}");
        }
    }
}
