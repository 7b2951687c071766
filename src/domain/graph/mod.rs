//! What becomes of a write beside what the graph holds already. Pure: the store reads what these functions need, and writes
//! what they decide.

pub mod alias_sources;
pub mod attributes;
pub mod correction;
pub mod draft;
pub mod duplicates;
pub mod merge;
pub mod merging;
pub mod place;
pub mod record;

use chrono::{DateTime, TimeDelta, Utc};

/// The time of a change: now, but later than any time under which the row may have left in an export, which tells
/// milliseconds apart.
pub fn later_than(left: Option<DateTime<Utc>>, now: DateTime<Utc>) -> DateTime<Utc> {
    left.map_or(now, |left| now.max(left + TimeDelta::milliseconds(1)))
}
