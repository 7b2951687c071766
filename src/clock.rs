//! The one place that reads the wall clock; the domain is given `now`.
#![allow(clippy::disallowed_methods)]

use chrono::{DateTime, SubsecRound, Utc};

/// The current time, to the microsecond: no more digits than the API shows and the store keeps.
pub fn now() -> DateTime<Utc> {
    Utc::now().trunc_subsecs(6)
}
