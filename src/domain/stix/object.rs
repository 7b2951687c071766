//! Accessors for STIX objects held as JSON: ids, timestamps, references.

use std::collections::HashSet;

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Map, Value};
use uuid::Uuid;

/// The string property `key`, if present.
pub fn text<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    object.get(key).and_then(Value::as_str)
}

/// The strings of the list property `key`.
pub fn texts<'a>(object: &'a Map<String, Value>, key: &str) -> impl Iterator<Item = &'a str> {
    object
        .get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

/// The boolean property `key`; false if absent.
pub fn flag(object: &Map<String, Value>, key: &str) -> bool {
    object.get(key).and_then(Value::as_bool).unwrap_or(false)
}

/// The type part of an identifier, or `None` if it is malformed (STIX 2.1 section 2.9).
pub fn type_of_id(id: &str) -> Option<&str> {
    let (kind, uuid) = id.split_once("--")?;
    let lower = kind
        .bytes()
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    (!kind.is_empty() && lower && uuid.len() == 36 && Uuid::parse_str(uuid).is_ok()).then_some(kind)
}

/// Whether an identifier spells its UUID with capital letters.
pub fn has_capitals(id: &str) -> bool {
    id.bytes().any(|byte| byte.is_ascii_uppercase()) && type_of_id(id).is_some()
}

/// Writes the UUIDs of an object's id and references in lower case, as RFC 4122 has them: two spellings are one id.
pub fn write_ids_in_lower_case(object: &mut Map<String, Value>) {
    for (key, value) in object {
        match value {
            Value::String(id) if (key == "id" || is_ref_key(key)) && has_capitals(id) => {
                id.make_ascii_lowercase()
            }
            Value::Array(items) if key.ends_with("_refs") => {
                for item in items {
                    if let Value::String(id) = item
                        && has_capitals(id)
                    {
                        id.make_ascii_lowercase();
                    }
                }
            }
            Value::Array(items) => {
                let inner = items.iter_mut().filter_map(Value::as_object_mut);
                inner.for_each(write_ids_in_lower_case);
            }
            Value::Object(inner) => write_ids_in_lower_case(inner),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// A STIX timestamp (section 2.16), which is RFC 3339 in UTC.
pub fn timestamp(text: &str) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(text)
        .ok()
        .map(|time| time.with_timezone(&Utc))
}

/// `modified`, or `created` for objects without versions.
pub fn modified_of(object: &Map<String, Value>) -> Option<DateTime<Utc>> {
    text(object, "modified")
        .or_else(|| text(object, "created"))
        .and_then(timestamp)
}

/// Formats a time for `created` and `modified`: milliseconds and `Z`.
pub fn format_timestamp(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Calls `visit` with every identifier referenced by `object`, at any depth.
pub fn visit_refs<'a>(object: &'a Map<String, Value>, visit: &mut impl FnMut(&'a str)) {
    for (key, value) in object {
        match value {
            Value::String(id) if is_ref_key(key) => visit(id),
            Value::Array(items) if key.ends_with("_refs") => {
                items.iter().filter_map(Value::as_str).for_each(&mut *visit);
            }
            Value::Array(items) => {
                items
                    .iter()
                    .filter_map(Value::as_object)
                    .for_each(|inner| visit_refs(inner, visit));
            }
            Value::Object(inner) => visit_refs(inner, visit),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// Gives every reference another id that `renamed` has one for, and lists no id twice; whether that changes anything.
pub fn rename_refs<'r>(object: &mut Map<String, Value>, renamed: &impl Fn(&str) -> Option<&'r str>) -> bool {
    let rename = |id: &mut String| {
        let other = renamed(id);
        if let Some(other) = other {
            other.clone_into(id);
        }
        other.is_some()
    };
    let mut is_changed = false;
    for (key, value) in object.iter_mut() {
        match value {
            Value::String(id) if is_ref_key(key) => is_changed |= rename(id),
            Value::Array(items) if key.ends_with("_refs") && items.iter().any(Value::is_string) => {
                for item in &mut *items {
                    if let Value::String(id) = item {
                        is_changed |= rename(id);
                    }
                }
                let mut known = HashSet::new();
                items.retain(|item| item.as_str().is_none_or(|id| known.insert(id.to_owned())));
            }
            Value::Array(items) => {
                for inner in items.iter_mut().filter_map(Value::as_object_mut) {
                    is_changed |= rename_refs(inner, renamed);
                }
            }
            Value::Object(inner) => is_changed |= rename_refs(inner, renamed),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    is_changed
}

/// Removes every reference rejected by `keep`, and lists and properties that are left empty. An entry of a list that loses its
/// reference goes whole: a part of a message without its body, a line of a table of contents.
pub fn retain_refs(object: &mut Map<String, Value>, keep: &impl Fn(&str) -> bool) {
    object.retain(|key, value| match value {
        Value::String(id) if is_ref_key(key) => is_kept(id, keep),
        Value::Array(items) => {
            let was_empty = items.is_empty();
            if key.ends_with("_refs") {
                items.retain(|item| item.as_str().is_none_or(|id| is_kept(id, keep)));
            }
            items.retain_mut(|item| retain_in_item(key, item, keep));
            was_empty || !items.is_empty()
        }
        Value::Object(inner) => {
            let was_empty = inner.is_empty();
            retain_refs(inner, keep);
            was_empty || !inner.is_empty()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    });
}

fn is_kept(id: &str, keep: &impl Fn(&str) -> bool) -> bool {
    type_of_id(id).is_none() || keep(id)
}

fn retain_in_item(key: &str, item: &mut Value, keep: &impl Fn(&str) -> bool) -> bool {
    let Some(inner) = item.as_object_mut() else {
        return true;
    };
    let has_all = inner.iter().all(|(property, value)| match value {
        Value::String(id) if is_ref_key(property) => is_kept(id, keep),
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => true,
    });
    retain_refs(inner, keep);
    // A granular marking may state a language instead (STIX 2.1 section 7.2.3.1).
    has_all || key == "granular_markings" && inner.contains_key("lang")
}

fn is_ref_key(key: &str) -> bool {
    key.ends_with("_ref")
}

/// The dotted path of a string that contains a NUL character or is longer than `limit` bytes, with the broken rule.
pub fn unfit_text(value: &Value, limit: usize) -> Option<String> {
    let (path, rule) = unfit(value, limit)?;
    Some(format!("{}: {rule}", path.strip_prefix('.').unwrap_or(&path)))
}

/// The path is built on the way back, as nearly all objects need none.
fn unfit(value: &Value, limit: usize) -> Option<(String, String)> {
    match value {
        Value::String(text) if text.contains('\0') => Some((String::new(), "holds a NUL character".into())),
        Value::String(text) if text.len() > limit => {
            Some((String::new(), format!("longer than {limit} bytes")))
        }
        Value::Array(items) => items.iter().enumerate().find_map(|(place, item)| {
            let (path, rule) = unfit(item, limit)?;
            Some((format!("[{place}]{path}"), rule))
        }),
        Value::Object(map) => map.iter().find_map(|(key, item)| {
            if key.contains('\0') {
                return Some((String::new(), "a property name holds a NUL character".into()));
            }
            let (path, rule) = unfit(item, limit)?;
            Some((format!(".{key}{path}"), rule))
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn references_are_found_and_dropped_at_any_depth() {
        let known = "identity--11111111-1111-4111-8111-111111111111";
        let gone = "identity--22222222-2222-4222-8222-222222222222";
        let mut object = map(json!({
            "created_by_ref": gone,
            "object_marking_refs": [known, gone],
            "sample_refs": [gone],
            "granular_markings": [{"marking_ref": gone, "selectors": ["name"]}],
            "extensions": {"x": {"inner_ref": known}},
            "odd_ref": "not an id",
            "x_contents": [{"object_ref": known, "x": 1}, {"object_ref": gone, "x": 2}],
            "x_empty": [{}, {"list": []}],
        }));
        let mut seen = Vec::new();
        visit_refs(&object, &mut |id| seen.push(id.to_owned()));
        assert_eq!(seen.iter().filter(|id| *id == gone).count(), 5);
        assert_eq!(seen.iter().filter(|id| *id == known).count(), 3);
        retain_refs(&mut object, &|id| id == known);
        assert_eq!(
            Value::Object(object),
            json!({
                "object_marking_refs": [known],
                "extensions": {"x": {"inner_ref": known}},
                "odd_ref": "not an id",
                "x_contents": [{"object_ref": known, "x": 1}],
                "x_empty": [{}, {"list": []}],
            })
        );
    }

    #[test]
    fn two_spellings_of_a_uuid_are_one_id() {
        let (upper, lower) = (
            "identity--AAAAAAAA-1111-4111-8111-11111111111B",
            "identity--aaaaaaaa-1111-4111-8111-11111111111b",
        );
        let spelled = |id: &str, other: &str| {
            map(json!({
                "id": id, "created_by_ref": id, "object_refs": [id, 5], "name": other,
                "granular_markings": [{"marking_ref": id}], "extensions": {"x": {"inner_ref": id}},
                "odd_ref": "NOT an id", "external_references": [{"external_id": other}],
            }))
        };
        let mut object = spelled(upper, upper);
        write_ids_in_lower_case(&mut object);
        assert_eq!(object, spelled(lower, upper));
        assert!(has_capitals(upper) && !has_capitals(lower) && !has_capitals("NOT an id"));
    }

    #[test]
    fn unfit_text_is_named_by_its_path() {
        let value = json!({"a": {"b": ["ok", "x\u{0}y"]}});
        assert_eq!(
            unfit_text(&value, 10),
            Some("a.b[1]: holds a NUL character".into())
        );
        assert_eq!(
            unfit_text(&json!({"a": "0123456789x"}), 10),
            Some("a: longer than 10 bytes".into())
        );
    }

    #[test]
    fn ids_and_times_are_parsed_strictly() {
        assert_eq!(
            type_of_id("malware--31b940d4-6f7f-459a-80ea-9c1f17b58abc"),
            Some("malware")
        );
        for bad in [
            "malware",
            "malware--",
            "Malware--31b940d4-6f7f-459a-80ea-9c1f17b58abc",
            "a--b",
        ] {
            assert_eq!(type_of_id(bad), None, "{bad}");
        }
        let time = timestamp("2017-05-31T21:32:05.217Z").unwrap();
        assert_eq!(format_timestamp(time), "2017-05-31T21:32:05.217Z");
    }
}
