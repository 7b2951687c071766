//! Changes of a running service's settings: all of a request or nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::super::ConfigError;
use super::tree::{self, HIDDEN};
use super::{LocalSettings, PENDING_FILE};

/// Sections and keys that take effect at the next start.
const RESTART: [&str; 15] = [
    "backend",
    "storage.",
    "embedding.",
    "llm.",
    "search.",
    "logging.",
    "keeper.",
    "actors.",
    "web.host",
    "web.port",
    "web.workers",
    "web.admin_bind",
    "web.body_limit",
    "web.drain_seconds",
    "web.api_key",
];
/// Longest input that an error repeats, in characters.
const SHOWN: usize = 200;

/// Why one value of a change can't be taken; the shape of a validation error of the API.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ConfigIssue {
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub loc: Vec<String>,
    pub msg: String,
    pub input: Value,
}

/// What a change did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applied {
    /// In effect now.
    pub applied: Vec<String>,
    /// In effect after a restart.
    pub pending_restart: Vec<String>,
}

/// The settings as a tree that may be changed.
#[derive(Clone)]
pub struct Editor {
    defaults: Value,
    running: Value,
    pending: BTreeMap<String, Value>,
    dir: Option<PathBuf>,
}

impl fmt::Debug for Editor {
    /// Without the values: secrets are among them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Editor(..)")
    }
}

impl Editor {
    pub(super) fn new(defaults: Value, running: Value, dir: Option<PathBuf>) -> Self {
        Self {
            defaults,
            running,
            pending: BTreeMap::new(),
            dir,
        }
    }

    /// What is in effect, secrets hidden.
    pub fn shown(&self) -> Value {
        tree::redacted(&self.running)
    }

    /// The dotted paths that take effect at the next start only.
    pub fn restart_required(&self) -> Vec<String> {
        let mut paths = tree::leaves(&self.defaults);
        paths.retain(|path| needs_restart(path));
        paths
    }

    /// Takes a change in and returns the settings in effect after it.
    ///
    /// # Errors
    /// Everything that is wrong with it; then nothing has changed.
    pub fn change(&mut self, changes: &Value) -> Result<(LocalSettings, Applied), Vec<ConfigIssue>> {
        let mut wanted = BTreeMap::new();
        let mut issues = Vec::new();
        match changes {
            Value::Object(map) => self.flatten(map, "", &mut wanted, &mut issues),
            other => issues.push(issue(
                "model_attributes_type",
                "",
                "Input should be a valid dictionary or object to extract fields from",
                other,
            )),
        }
        if !issues.is_empty() {
            return Err(issues);
        }
        let mut next = self.clone();
        let mut done = Applied::default();
        for (path, value) in &wanted {
            if tree::is_secret(path) && value == HIDDEN {
                continue;
            }
            let same = tree::get(&self.running, path) == Some(value);
            if needs_restart(path) && !same {
                next.pending.insert(path.clone(), value.clone());
                done.pending_restart.push(path.clone());
            } else {
                next.pending.remove(path);
                tree::set(&mut next.running, path, value.clone());
                done.applied.push(path.clone());
            }
        }
        // What waits must also be valid together with all the rest.
        let mut later = next.running.clone();
        next.pending
            .iter()
            .for_each(|(path, value)| tree::set(&mut later, path, value.clone()));
        let checked = LocalSettings::of_tree(&later).and_then(|settings| settings.refuse_exposure());
        let settings = checked.and_then(|()| LocalSettings::of_tree(&next.running));
        let settings = settings.map_err(|error| vec![refused(&error, &wanted)])?;
        if next.pending != self.pending {
            next.save().map_err(|error| {
                tracing::error!(%error, "writing the pending settings failed");
                vec![issue(
                    "value_error",
                    "",
                    "The change could not be written to the data directory",
                    &Value::Null,
                )]
            })?;
        }
        *self = next;
        Ok((settings, done))
    }

    /// The leaves of a nested or dotted change.
    fn flatten(
        &self,
        map: &Map<String, Value>,
        prefix: &str,
        wanted: &mut BTreeMap<String, Value>,
        issues: &mut Vec<ConfigIssue>,
    ) {
        for (key, value) in map {
            let path = if prefix.is_empty() {
                key.clone()
            } else {
                format!("{prefix}.{key}")
            };
            match (tree::get(&self.defaults, &path), value) {
                (None, _) => issues.push(issue(
                    "extra_forbidden",
                    &path,
                    "Extra inputs are not permitted",
                    value,
                )),
                (Some(Value::Object(_)), Value::Object(map)) => self.flatten(map, &path, wanted, issues),
                (Some(Value::Object(_)), _) => {
                    issues.push(issue(
                        "dict_type",
                        &path,
                        "Input should be a valid dictionary",
                        value,
                    ));
                }
                (Some(default), _) => match of_type(default, value) {
                    Ok(value) => {
                        wanted.insert(path, value);
                    }
                    Err((kind, msg)) => issues.push(issue(kind, &path, msg, value)),
                },
            }
        }
    }

    /// Writes what waits for a restart: whole or not at all, and readable by the owner only.
    fn save(&self) -> std::io::Result<()> {
        let Some(dir) = &self.dir else { return Ok(()) };
        std::fs::create_dir_all(dir)?;
        let (file, new) = (dir.join(PENDING_FILE), dir.join(format!("{PENDING_FILE}.new")));
        // What waited since an earlier start still does, unless it is in effect now.
        let mut waiting: BTreeMap<String, Value> = read_pending(Some(dir)).into_iter().collect();
        waiting.retain(|path, value| tree::get(&self.running, path) == Some(value));
        waiting.extend(self.pending.clone());
        let mut out = std::fs::OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .open(&new)?;
        out.write_all(json!(waiting).to_string().as_bytes())?;
        out.sync_all()?;
        std::fs::rename(&new, &file)
    }
}

/// What an earlier process left waiting for this start; unreadable is nothing, and said so.
pub(super) fn read_pending(dir: Option<&Path>) -> Vec<(String, Value)> {
    let Some(file) = dir.map(|dir| dir.join(PENDING_FILE)) else {
        return Vec::new();
    };
    let Ok(text) = std::fs::read(&file) else {
        return Vec::new();
    };
    match serde_json::from_slice::<BTreeMap<String, Value>>(&text) {
        Ok(pending) => pending.into_iter().collect(),
        Err(error) => {
            eprintln!(
                "configuration: {} can't be read and is ignored: {error}",
                file.display()
            );
            Vec::new()
        }
    }
}

fn needs_restart(path: &str) -> bool {
    RESTART
        .iter()
        .any(|rule| path == *rule || (rule.ends_with('.') && path.starts_with(rule)))
}

/// The value, if it has the type of the default.
fn of_type(default: &Value, value: &Value) -> Result<Value, (&'static str, &'static str)> {
    match (default, value) {
        (Value::Bool(_), Value::Bool(_))
        | (Value::String(_), Value::String(_))
        | (Value::Array(_), Value::Array(_)) => Ok(value.clone()),
        (Value::Number(default), Value::Number(number)) if default.is_f64() => Ok(json!(number.as_f64())),
        (Value::Number(_), Value::Number(number)) if number.is_u64() || number.is_i64() => Ok(value.clone()),
        (Value::Bool(_), _) => Err(("bool_type", "Input should be a valid boolean")),
        (Value::Number(default), _) if default.is_f64() => {
            Err(("float_type", "Input should be a valid number"))
        }
        (Value::Number(_), _) => Err(("int_type", "Input should be a valid integer")),
        (Value::Array(_), _) => Err(("list_type", "Input should be a valid list")),
        (Value::String(_) | Value::Null | Value::Object(_), _) => {
            Err(("string_type", "Input should be a valid string"))
        }
    }
}

/// A broken rule as an issue of the value that breaks it.
fn refused(error: &ConfigError, wanted: &BTreeMap<String, Value>) -> ConfigIssue {
    let (path, rule) = error.0.split_once(": ").unwrap_or(("", error.0.as_str()));
    let input = wanted.get(path).cloned().unwrap_or(Value::Null);
    issue("value_error", path, &format!("Value error, {rule}"), &input)
}

fn issue(kind: &'static str, path: &str, msg: &str, input: &Value) -> ConfigIssue {
    let mut loc = vec!["body".to_owned()];
    loc.extend(path.split('.').filter(|part| !part.is_empty()).map(str::to_owned));
    let hidden = path.split('.').any(tree::is_secret);
    let text = input.to_string();
    let input = if hidden {
        Value::from(HIDDEN)
    } else if text.chars().count() > SHOWN {
        Value::from(format!(
            "{}\u{2026}",
            text.chars().take(SHOWN).collect::<String>()
        ))
    } else {
        tree::redacted(input)
    };
    ConfigIssue {
        kind,
        loc,
        msg: msg.to_owned(),
        input,
    }
}
