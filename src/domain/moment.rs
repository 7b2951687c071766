//! A time as callers give it: a day, or an RFC 3339 date-time.

use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta, Utc};

/// Which end of a stretch of time is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DayBound {
    First,
    Last,
}

/// The instant that a text means; of a day in UTC, its first or last one.
pub fn moment(text: &str, end: DayBound) -> Option<DateTime<Utc>> {
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Some(time.with_timezone(&Utc));
    }
    let begin = day(text)?.and_time(NaiveTime::MIN).and_utc();
    match end {
        DayBound::First => Some(begin),
        DayBound::Last => begin.checked_add_signed(TimeDelta::days(1) - TimeDelta::nanoseconds(1)),
    }
}

/// A day as `2024-03-01`; chrono also takes a sign, and days and months of one digit.
fn day(text: &str) -> Option<NaiveDate> {
    let is_date = text.len() == 10
        && text.bytes().enumerate().all(|(place, byte)| match place {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    let date = text.parse().ok()?;
    is_date.then_some(date)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_whole_and_a_time_is_an_instant() {
        let shown = |text: &str, end| moment(text, end).map(|time| time.to_rfc3339());
        assert_eq!(
            shown("2024-03-01", DayBound::First).unwrap(),
            "2024-03-01T00:00:00+00:00"
        );
        assert_eq!(
            shown("2024-02-29", DayBound::Last).unwrap(),
            "2024-02-29T23:59:59.999999999+00:00"
        );
        for end in [DayBound::First, DayBound::Last] {
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
            assert_eq!(shown(bad, DayBound::First), None, "{bad}");
        }
    }
}
