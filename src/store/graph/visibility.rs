//! The conditions under which a caller may see rows that connect nodes.

use surrealdb::types::{SurrealValue, Value};
use uuid::Uuid;

use super::nodes::statuses;
use crate::domain::tlp::Tlp;

/// The condition that a caller may see a row and the nodes in both of these fields.
pub(super) fn sees_both(one: &str, other: &str) -> String {
    let sees =
        |end: &str| format!("{end}.ws = $ws AND {end}.tlp_rank <= $highest AND {end}.status IN $statuses");
    format!(
        "ws = $ws AND tlp_rank <= $highest AND {} AND {}",
        sees(one),
        sees(other)
    )
}

/// The parameters of such conditions, for a caller that may see up to this marking, and rejected nodes or not.
pub(in crate::store) fn parameters(
    ws: Uuid,
    (highest, include_rejected): (Tlp, bool),
) -> [(&'static str, Value); 3] {
    [
        ("ws", ws.into_value()),
        ("highest", i64::from(highest.rank()).into_value()),
        ("statuses", statuses(include_rejected).into_value()),
    ]
}
