//! Settings as a tree of JSON values, addressed by dotted paths.

use serde_json::{Map, Value};

use super::super::ConfigError;
use crate::domain::secret_name::is_secret_name;

/// What is shown in place of a secret.
pub(super) const HIDDEN: &str = "***";

/// The dotted path of a key below another path.
pub(super) fn join(prefix: &str, key: &str) -> String {
    if prefix.is_empty() {
        key.to_owned()
    } else {
        format!("{prefix}.{key}")
    }
}

/// The value at a dotted path.
pub(super) fn get<'a>(tree: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(tree, |value, key| value.get(key))
}

/// Sets the value at a dotted path, creating missing sections.
pub(super) fn set(tree: &mut Value, path: &str, value: Value) {
    let mut at = tree;
    for key in path.split('.') {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        let Some(map) = at.as_object_mut() else { return };
        at = map.entry(key).or_insert(Value::Null);
    }
    *at = value;
}

/// The dotted paths of all leaves, sorted.
pub(super) fn leaves(tree: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect(tree, String::new(), &mut found);
    found.sort_unstable();
    found
}

fn collect(value: &Value, path: String, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                collect(value, join(&path, key), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            found.push(path)
        }
    }
}

/// Whether the last part of a path names a secret.
pub(super) fn is_secret(path: &str) -> bool {
    is_secret_name(path.rsplit('.').next().unwrap_or(path))
}

/// The tree with every secret hidden, at every depth. An empty secret stays visible, to show that none is set. Numbers
/// such as `max_tokens` are not secrets.
pub(super) fn redact_secrets(tree: &Value) -> Value {
    let hide = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    redact(tree, false, &hide)
}

/// User input with every value under a secret's name hidden, including numbers.
pub(super) fn quotable(input: &Value) -> Value {
    redact(input, false, &|_| true)
}

/// `hide` decides which values under a secret's name are hidden.
fn redact(value: &Value, secret: bool, hide: &dyn Fn(&Value) -> bool) -> Value {
    let inside = |(key, value): (&String, &Value)| {
        let secret = secret || is_secret(key);
        (key.clone(), redact(value, secret, hide))
    };
    match value {
        Value::Object(map) => Value::Object(map.iter().map(inside).collect()),
        Value::Array(items) => items.iter().map(|item| redact(item, secret, hide)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) if secret && hide(value) => {
            Value::from(HIDDEN)
        }
        Value::String(text) if text.contains("://") => Value::from(without_credentials(text)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// A URL without user information (RFC 3986 section 3.2.1) and without its query.
fn without_credentials(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let (rest, query) = match rest.split_once('?') {
        Some((rest, _)) => (rest, format!("?{HIDDEN}")),
        None => (rest, String::new()),
    };
    let host_end = rest.find(['/', '#']).unwrap_or(rest.len());
    match rest.get(..host_end).and_then(|authority| authority.rfind('@')) {
        Some(at) => format!("{scheme}://{HIDDEN}{}{query}", rest.get(at..).unwrap_or_default()),
        None => format!("{scheme}://{rest}{query}"),
    }
}

/// The deserializer's error without the value it quotes, which may be secret or long.
pub(super) fn type_error(path: &str, message: &str) -> ConfigError {
    let about_key = ["unknown field", "missing field", "duplicate field"];
    let expected = message.rsplit_once("expected ").map(|(_, expected)| expected);
    let Some(expected) = expected.filter(|_| !about_key.iter().any(|start| message.starts_with(start)))
    else {
        return ConfigError::new(format!("{path}: {message}"));
    };
    let most = match expected {
        "u16" => u64::from(u16::MAX),
        "u32" => u64::from(u32::MAX),
        "u64" | "usize" => u64::MAX,
        "f64" => return ConfigError::new(format!("{path}: must be a number")),
        other if other.starts_with("struct ") => {
            return ConfigError::new(format!("{path}: must be a section"));
        }
        other => return ConfigError::new(format!("{path}: must be {other}")),
    };
    ConfigError {
        text: format!("{path}: must be from 0 to {most}"),
        range: Some((0.into(), most.into())),
    }
}
