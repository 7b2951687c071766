//! The only place that reads the wall clock; domain code receives `now` as an argument.
#![allow(clippy::disallowed_methods)]

use std::time::{SystemTime, UNIX_EPOCH};

use chrono::{DateTime, Datelike, SubsecRound, Utc};

/// The last year that a timestamp of STIX can hold.
const LAST_YEAR: i32 = 9999;

/// The current time in microseconds, the precision of the API and the store. A clock that shows a time before 1970 reads
/// as 1970.
pub fn now() -> DateTime<Utc> {
    of(SystemTime::now())
}

/// Checks that the clock shows a time that the service can work with.
///
/// # Errors
/// When it is before 1970 or after 9999, with what it shows.
pub(crate) fn check() -> Result<(), String> {
    judge(SystemTime::now())
}

fn judge(time: SystemTime) -> Result<(), String> {
    let year = of(time).year();
    if time >= UNIX_EPOCH && year <= LAST_YEAR {
        return Ok(());
    }
    let shown = match UNIX_EPOCH.duration_since(time) {
        Ok(before) => format!("{} s before 1970", before.as_secs()),
        Err(_) => format!("the year {year}"),
    };
    Err(format!(
        "the system clock shows {shown}; set it to a time between 1970 and {LAST_YEAR}"
    ))
}

fn of(time: SystemTime) -> DateTime<Utc> {
    let Ok(since) = time.duration_since(UNIX_EPOCH) else {
        return DateTime::UNIX_EPOCH;
    };
    i64::try_from(since.as_secs())
        .ok()
        .and_then(|seconds| DateTime::from_timestamp(seconds, since.subsec_nanos()))
        .unwrap_or(DateTime::<Utc>::MAX_UTC)
        .trunc_subsecs(6)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_clock_out_of_range_is_an_error_and_no_panic() {
        let day = Duration::from_secs(86_400);
        for (time, is_usable) in [
            (UNIX_EPOCH - day * 20_000, false),
            (UNIX_EPOCH - Duration::from_nanos(1), false),
            (UNIX_EPOCH, true),
            (UNIX_EPOCH + day * 20_000, true),
            (UNIX_EPOCH + day * 2_932_896, true),
            (UNIX_EPOCH + day * 2_932_897, false),
            (UNIX_EPOCH + day * 1_000_000_000, false),
        ] {
            let judged = judge(time);
            assert_eq!(judged.is_ok(), is_usable, "{time:?}: {judged:?}");
            assert!(of(time) >= DateTime::UNIX_EPOCH);
        }
        assert_eq!(check(), Ok(()));
    }

    #[test]
    fn the_time_has_microseconds() {
        let time = UNIX_EPOCH + Duration::from_nanos(1_700_000_000_123_456_789);
        assert_eq!(of(time).timestamp_micros(), 1_700_000_000_123_456);
        assert_eq!(of(time).timestamp_subsec_nanos(), 123_456_000);
    }
}
