//! The filters of a caller as conditions of a query.

use surrealdb::types::{SurrealValue, Value};

use crate::domain::narrowing::Narrowing;

/// Conditions on the node whose fields are read as `{node}field`, each after an `AND`. They refer to [`parameters`].
pub(in crate::store) fn conditions(narrowing: &Narrowing, node: &str) -> String {
    let Narrowing {
        node_types,
        // Who shows results compares it: rows have it only inside their properties.
        stix_types: _,
        source,
        since,
        until,
        min_confidence,
    } = narrowing;
    let all = [
        (node_types.is_some(), format!("{node}node_type IN $asked_types")),
        (
            source.is_some(),
            format!("string::lowercase(string::trim({node}source)) = $asked_source"),
        ),
        (since.is_some(), format!("{node}ingested_at >= $asked_since")),
        (until.is_some(), format!("{node}ingested_at <= $asked_until")),
        (
            min_confidence.is_some(),
            format!("{node}confidence >= $asked_confidence"),
        ),
    ];
    let set = all.into_iter().filter(|(is_set, _)| *is_set);
    set.map(|(_, condition)| format!(" AND {condition}")).collect()
}

/// The values that [`conditions`] compare with.
pub(in crate::store) fn parameters(narrowing: &Narrowing) -> Vec<(&'static str, Value)> {
    let types = narrowing.node_types.as_ref();
    let types = types.map(|types| types.iter().map(|kind| kind.to_string()).collect::<Vec<_>>());
    let source = narrowing.source.as_ref().map(|source| source.folded().to_owned());
    let all = [
        ("asked_types", types.map(SurrealValue::into_value)),
        ("asked_source", source.map(SurrealValue::into_value)),
        ("asked_since", narrowing.since.map(SurrealValue::into_value)),
        ("asked_until", narrowing.until.map(SurrealValue::into_value)),
        (
            "asked_confidence",
            narrowing.min_confidence.map(SurrealValue::into_value),
        ),
    ];
    let set = all.into_iter();
    set.filter_map(|(name, value)| Some((name, value?))).collect()
}
