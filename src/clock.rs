//! The only place that reads the wall clock; domain code receives `now` as an argument.
#![allow(clippy::disallowed_methods)]

use chrono::{DateTime, SubsecRound, Utc};

/// The current time in microseconds, the precision of the API and the store.
pub fn now() -> DateTime<Utc> {
    Utc::now().trunc_subsecs(6)
}
