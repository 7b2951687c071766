//! Lenient readers for what MISP instances and feeds really send: numbers as strings, nulls, a
//! single value for a list.
//!
//! Nothing here fails: unreadable values are absent. Distributions are the exception, because "unreadable" and
//! "absent" lead to different decisions. NUL characters are removed, because the storage cannot hold them.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// A string, or a number as text; empty is `None`.
pub(super) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(as_text(&Value::deserialize(deserializer)?))
}

/// A string, or a number as text.
pub(super) fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(without_nul(text.trim())),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
    .filter(|text| !text.is_empty())
}

/// Reads `true`, `1`, `"1"` and `"true"` as true.
pub(super) fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Bool(flag) => flag,
        Value::Number(number) => number.as_f64().is_some_and(|number| number != 0.0),
        Value::String(text) => matches!(text.trim().to_ascii_lowercase().as_str(), "1" | "true"),
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    })
}

/// The readable items of a list; a single item counts as a list of one.
pub(super) fn list<'de, T: DeserializeOwned, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let items = match Value::deserialize(deserializer)? {
        Value::Array(items) => items,
        one @ (Value::Object(_) | Value::String(_)) => vec![one],
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    };
    Ok(items
        .into_iter()
        .filter_map(|item| serde_json::from_value(item).ok())
        .collect())
}

/// An object; anything else is read as empty (PHP encodes an empty map as `[]`).
pub(super) fn object<'de, T: DeserializeOwned + Default, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(if value.is_object() {
        serde_json::from_value(value).unwrap_or_default()
    } else {
        T::default()
    })
}

/// The strings under a key of a galaxy cluster's `meta`: a list, or a single string.
pub(super) fn meta_texts(meta: &Map<String, Value>, key: &str) -> Vec<String> {
    match meta.get(key) {
        Some(Value::Array(items)) => items.iter().filter_map(as_text).collect(),
        Some(one) => as_text(one).into_iter().collect(),
        None => Vec::new(),
    }
}

/// The text without NUL characters.
pub(super) fn without_nul(text: &str) -> String {
    text.replace('\0', "")
}

/// A copy of the JSON without NUL characters, nulls, empty strings and empty lists.
pub(super) fn scrub(value: &Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::Bool(_) | Value::Number(_) => Some(value.clone()),
        Value::String(text) => Some(without_nul(text))
            .filter(|text| !text.is_empty())
            .map(Value::String),
        Value::Array(items) => {
            let kept: Vec<Value> = items.iter().filter_map(scrub).collect();
            (!kept.is_empty()).then_some(Value::Array(kept))
        }
        Value::Object(members) => {
            let kept = scrub_map(members, &[]);
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
    }
}

/// [`scrub`] for an object, leaving out the named members.
pub(super) fn scrub_map(members: &Map<String, Value>, without: &[&str]) -> Map<String, Value> {
    members
        .iter()
        .filter(|(key, _)| !without.contains(&key.as_str()))
        .filter_map(|(key, value)| Some((without_nul(key), scrub(value)?)))
        .collect()
}
