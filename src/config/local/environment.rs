//! Environment variables: `LOCAL_<SECTION>_<KEY>` for every key, and three for the external platform.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;

use serde_json::{Value, json};

use super::super::{ConfigError, secrets};
use super::{LocalSettings, tree};

const PREFIX: &str = "LOCAL_";
/// Settings that hold a secret.
const SECRETS: [&str; 3] = [
    "LOCAL_WEB_API_KEY",
    "LOCAL_LLM_API_KEY",
    "LOCAL_EMBEDDING_API_KEY",
];
const CREDENTIALS: [&str; 2] = ["THREAT_MEMORY_STORAGE_USER", "THREAT_MEMORY_STORAGE_PASSWORD"];

/// Variables by name.
pub(super) type Variables = HashMap<String, OsString>;

/// The variables of this process. A secret that stands in a file is as if its variable held it.
///
/// # Errors
/// When such a file can't be read.
pub(super) fn all() -> Result<Variables, ConfigError> {
    let all = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
    with_files(all.collect())
}

fn with_files(mut variables: Variables) -> Result<Variables, ConfigError> {
    for name in SECRETS.into_iter().chain(CREDENTIALS) {
        let secret = secrets::read(name, &|name| variables.get(name).cloned())?;
        if variables.remove(&format!("{name}_FILE")).is_some()
            && let Some(secret) = secret
        {
            variables.insert(name.to_owned(), secret.into());
        }
    }
    Ok(variables)
}

/// A value that overrides the file and the pending changes.
#[derive(Debug)]
pub(super) struct Override {
    pub(super) path: String,
    /// The variable or flag that sets it.
    pub(super) by: String,
    pub(super) value: Value,
}

/// The leaves that the environment sets. A blank variable counts as unset.
pub(super) fn read(defaults: &Value, variables: &Variables) -> Result<Vec<Override>, ConfigError> {
    let mut set = Vec::new();
    for path in tree::leaves(defaults) {
        let name = name_of(&path);
        let Some(value) = variables.get(&name) else {
            continue;
        };
        // Treating a non-UTF-8 API key as unset would leave the service open.
        let text = value
            .to_str()
            .ok_or_else(|| refusal(&name, &path, "UTF-8 text"))?;
        if text.trim().is_empty() {
            continue;
        }
        let default = tree::get(defaults, &path).unwrap_or(&Value::Null);
        let value = parse(text.trim(), default)
            .ok_or_else(|| refusal(&name, &path, &expected_value(defaults, &path)))?;
        set.push(Override {
            path,
            by: name,
            value,
        });
    }
    Ok(set)
}

/// Variables that look like settings but are none, sorted.
pub(super) fn unknown(defaults: &Value, variables: &Variables) -> Vec<String> {
    let known: HashSet<String> = tree::leaves(defaults).iter().map(|path| name_of(path)).collect();
    let mut unknown: Vec<String> = variables
        .iter()
        .filter(|(name, value)| name.starts_with(PREFIX) && !known.contains(*name) && !value.is_empty())
        .map(|(name, _)| name.clone())
        .collect();
    unknown.sort_unstable();
    unknown
}

/// Whether credentials for an external database are set.
pub(super) fn credentials(variables: &Variables) -> bool {
    CREDENTIALS
        .iter()
        .all(|name| variables.get(*name).is_some_and(|value| !value.is_empty()))
}

/// The variable that sets a key.
pub(super) fn name_of(path: &str) -> String {
    let name = path.replace('.', "_").to_ascii_uppercase();
    if path.starts_with("platform.") {
        name
    } else {
        format!("{PREFIX}{name}")
    }
}

fn refusal(name: &str, path: &str, wanted: &str) -> ConfigError {
    ConfigError::new(format!("{name} ({path}): must be {wanted}"))
}

/// What a key accepts. The range of a number comes from the error for the largest value.
fn expected_value(defaults: &Value, path: &str) -> String {
    let mut probe = defaults.clone();
    let kind = match tree::get(defaults, path).unwrap_or(&Value::Null) {
        Value::Bool(_) => return "true or false".into(),
        Value::Array(_) => return "a list of texts, such as [\"a\", \"b\"]".into(),
        Value::Null | Value::String(_) | Value::Object(_) => return "a text".into(),
        Value::Number(number) if number.is_f64() => {
            tree::set(&mut probe, path, json!(f64::MAX));
            "a number"
        }
        Value::Number(_) => {
            tree::set(&mut probe, path, json!(u64::MAX));
            "a whole number"
        }
    };
    match LocalSettings::of_tree(&probe) {
        Err(ConfigError {
            range: Some((least, most)),
            ..
        }) => format!("{kind} from {least} to {most}"),
        Ok(_) | Err(_) => kind.into(),
    }
}

fn parse(text: &str, default: &Value) -> Option<Value> {
    match default {
        Value::Bool(_) => match text.to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" => Some(json!(true)),
            "false" | "0" | "no" | "off" => Some(json!(false)),
            _ => None,
        },
        Value::Number(number) if number.is_f64() => {
            let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
            number.map(|number| json!(number))
        }
        Value::Number(_) => text.parse::<u64>().ok().map(|number| json!(number)),
        Value::Array(_) => list(text),
        Value::Null | Value::String(_) | Value::Object(_) => Some(json!(text)),
    }
}

/// A list of texts, written as in TOML.
fn list(text: &str) -> Option<Value> {
    let Ok(value) = text.parse::<figment::value::Value>();
    let list = serde_json::to_value(value).ok()?;
    let is_texts = list
        .as_array()
        .is_some_and(|entries| entries.iter().all(Value::is_string));
    is_texts.then_some(list)
}
