//! Where the versions of a supporting object stand: an identity, a report and so on, which nodes refer to.
//!
//! Rule: an object has a row for each level at which it was received, and a caller knows the newest version up to the
//! caller's clearance. So a version that the caller can't see takes nothing away.

use surrealdb::types::RecordId;
use uuid::Uuid;

use super::rows::support_id;
use crate::domain::tlp::Tlp;
use crate::store::rows::record;

/// The row of an object that was received at this level.
pub(super) fn support_row(ws: Uuid, stix_id: &str, level: Tlp) -> RecordId {
    record("stix_support", support_id(ws, &format!("{stix_id}\0at {level}")))
}

/// The row of this level where a row above the writer's clearance has the usual one.
pub(super) fn support_row_beside(ws: Uuid, stix_id: &str, level: Tlp) -> RecordId {
    record(
        "stix_support",
        support_id(ws, &format!("{stix_id}\0beside {level}")),
    )
}

/// The row of what writers with this clearance sent without being allowed to see it.
pub(super) fn support_row_above(ws: Uuid, stix_id: &str, highest: Tlp) -> RecordId {
    record(
        "stix_support",
        support_id(ws, &format!("{stix_id}\0above {highest}")),
    )
}

/// The rows of an object, as far as they exist; the last one is that of earlier versions of this program. Who sees a row
/// follows from its marking, which may have fallen below the level that the row was made for.
pub(in crate::store) fn support_rows(ws: Uuid, stix_id: &str) -> Vec<RecordId> {
    let mut rows = Vec::new();
    for level in Tlp::ALL {
        rows.push(support_row(ws, stix_id, level));
        rows.push(support_row_beside(ws, stix_id, level));
        rows.push(support_row_above(ws, stix_id, level));
    }
    rows.push(record("stix_support", support_id(ws, stix_id)));
    rows
}
