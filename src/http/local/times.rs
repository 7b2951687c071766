//! Times in request fields: a day or an RFC 3339 time.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::validate::Fields;
use crate::domain::moment::{DayBound, moment};
use crate::http::openapi::readable::DAY_OR_TIME;

const RULE: &str = "Input should be a date (YYYY-MM-DD, the whole day in UTC) or an RFC 3339 time";

impl Fields<'_> {
    /// The first and the last instant of a stretch of time, each optional; missing, null and empty all mean open.
    pub(super) fn period(
        &mut self,
        since: &str,
        until: &str,
    ) -> (Option<DateTime<Utc>>, Option<DateTime<Utc>>) {
        let (first, last) = (
            self.time(since, DayBound::First),
            self.time(until, DayBound::Last),
        );
        if let (Some(from), Some(to)) = (first, last)
            && from > to
        {
            let msg = format!("Input should not be after '{until}'");
            self.refuse(since, "value_error", msg);
        }
        (first, last)
    }

    /// An instant: the first or the last of a day, or a time; missing, null and empty all mean none.
    pub(super) fn time(&mut self, name: &str, end: DayBound) -> Option<DateTime<Utc>> {
        let schema = || json!({"type": ["string", "null"], "pattern": format!("^$|{DAY_OR_TIME}"), "example": "2024-05-01"});
        match self.optional(name, schema)? {
            Value::String(text) if text.is_empty() => None,
            Value::String(text) => {
                let time = moment(&text, end);
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
