//! Environment variables: `LOCAL_<SECTION>_<KEY>` for every key, and three of the external platform.

use serde_json::{Value, json};

use super::super::ConfigError;
use super::tree;

/// The leaves that the environment sets. An empty variable counts as unset.
pub(super) fn read(
    defaults: &Value,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Vec<(String, Value)>, ConfigError> {
    let mut set = Vec::new();
    for path in tree::leaves(defaults) {
        let name = name_of(&path);
        let Some(text) = variable(&name).filter(|text| !text.is_empty()) else {
            continue;
        };
        let default = tree::get(defaults, &path).unwrap_or(&Value::Null);
        let value = parse(&text, default).ok_or_else(|| {
            let wanted = match default {
                Value::Bool(_) => "true or false",
                Value::Number(number) if number.is_f64() => "a number",
                Value::Number(_) => "a whole number from 0",
                Value::Null | Value::String(_) | Value::Array(_) | Value::Object(_) => "a text",
            };
            ConfigError(format!("{name} ({path}): must be {wanted}"))
        })?;
        set.push((path, value));
    }
    Ok(set)
}

/// The variable that sets a key.
pub(super) fn name_of(path: &str) -> String {
    let name = path.replace('.', "_").to_ascii_uppercase();
    if path.starts_with("platform.") {
        name
    } else {
        format!("LOCAL_{name}")
    }
}

fn parse(text: &str, default: &Value) -> Option<Value> {
    let text = text.trim();
    match default {
        Value::Bool(_) => match text.to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" => Some(json!(true)),
            "false" | "0" | "no" | "off" => Some(json!(false)),
            _ => None,
        },
        Value::Number(number) if number.is_f64() => text.parse::<f64>().ok().map(|number| json!(number)),
        Value::Number(_) => text.parse::<u64>().ok().map(|number| json!(number)),
        Value::Null | Value::String(_) | Value::Array(_) | Value::Object(_) => Some(json!(text)),
    }
}
