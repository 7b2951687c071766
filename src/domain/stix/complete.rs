//! Fills in properties that STIX 2.1 requires and senders often omit, so that ingested objects can be exported.
//!
//! Existing values never change, except that timestamps get the milliseconds that the standard requires.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use super::object::{format_timestamp, text, timestamp};

/// Completes one object in place; `now` becomes `created` if the object has none.
pub fn fill_required(object: &mut Map<String, Value>, now: DateTime<Utc>) {
    let kind = text(object, "type").unwrap_or_default().to_owned();
    // Null and an empty list mean the same as an absent property, and STIX allows neither (section 3.1).
    object.retain(|_, value| !(value.is_null() || value.as_array().is_some_and(Vec::is_empty)));
    if super::sco::is_observable(&kind) {
        return;
    }
    object.entry("spec_version").or_insert_with(|| "2.1".into());
    let versioned = kind != "marking-definition";
    if let Some(modified) = text(object, "modified").map(str::to_owned) {
        object.entry("created").or_insert_with(|| modified.into());
    }
    object
        .entry("created")
        .or_insert_with(|| format_timestamp(now).into());
    if versioned && let Some(created) = text(object, "created").map(str::to_owned) {
        object.entry("modified").or_insert_with(|| created.into());
    }
    for key in ["created", "modified"] {
        pad_milliseconds(object, key);
    }
    match kind.as_str() {
        "malware" => {
            object.entry("is_family").or_insert(Value::Bool(false));
        }
        "indicator" => {
            object.entry("pattern_type").or_insert_with(|| "stix".into());
            if let Some(created) = text(object, "created").map(str::to_owned) {
                object.entry("valid_from").or_insert_with(|| created.into());
            }
        }
        _ => {}
    }
}

/// `created` and `modified` have millisecond precision (STIX 2.1 section 3.2).
fn pad_milliseconds(object: &mut Map<String, Value>, key: &str) {
    let Some(time) = text(object, key) else { return };
    let digits = time
        .split_once('.')
        .map_or(0, |(_, rest)| rest.trim_end_matches('Z').len());
    if (digits < 3 || !time.ends_with('Z'))
        && let Some(parsed) = timestamp(time)
    {
        let padded = format_timestamp(parsed);
        object.insert(key.to_owned(), padded.into());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_bare_malware_object_becomes_valid() {
        let mut object = json!({"type": "malware", "id": "malware--31b940d4-6f7f-459a-80ea-9c1f17b58abc",
            "name": "X", "created": "2020-01-01T00:00:00Z", "description": null});
        fill_required(object.as_object_mut().unwrap(), DateTime::UNIX_EPOCH);
        assert_eq!(
            object,
            json!({"type": "malware", "id": "malware--31b940d4-6f7f-459a-80ea-9c1f17b58abc", "name": "X",
                "spec_version": "2.1", "is_family": false,
                "created": "2020-01-01T00:00:00.000Z", "modified": "2020-01-01T00:00:00.000Z"})
        );
    }

    #[test]
    fn a_complete_object_stays_as_it_is() {
        let mut object = json!({"type": "tool", "id": "x", "spec_version": "2.1", "name": "t",
            "created": "2020-01-01T00:00:00.123456Z", "modified": "2020-01-02T00:00:00.000Z"});
        let before = object.clone();
        fill_required(object.as_object_mut().unwrap(), DateTime::UNIX_EPOCH);
        assert_eq!(object, before);
    }
}
