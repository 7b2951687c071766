//! Changes to a running service's settings: each request is applied as a whole or not at all.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::super::ConfigError;
use super::LocalSettings;
use super::issue::ConfigIssue;
use super::manual;
use super::pending::{self, PendingValues};
use super::tree::{self, HIDDEN};

/// Sections and keys that take effect only after a restart.
const RESTART: [&str; 19] = [
    "backend",
    "storage.",
    "embedding.",
    "llm.",
    "search.",
    "warninglists.",
    "logging.",
    "keeper.",
    "actors.",
    "web.host",
    "web.port",
    "web.workers",
    "web.admin_bind",
    "web.admin_hosts",
    "web.body_limit",
    "web.drain_seconds",
    "web.api_key",
    // Both are read once, when their actors start.
    "web.stream_buffer",
    "enrichment.timeout_ms",
];
/// Maximum number of issues in one response.
const MAX_ISSUES: usize = 100;
/// The limit up to which floating-point numbers represent every whole number exactly.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The outcome of a change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangeOutcome {
    /// Keys already in effect.
    pub applied: Vec<String>,
    /// Keys in effect after a restart.
    pub pending_restart: Vec<String>,
}

/// The settings as an editable tree.
#[derive(Clone)]
pub struct Editor {
    pub(super) defaults: Value,
    pub(super) running: Value,
    /// Values taken over from an earlier process. They stay in the file, or the next start would lose them.
    pub(super) kept: PendingValues,
    /// Values that wait for the next start.
    pub(super) pending: PendingValues,
    /// Where the next start looks for pending values, even if the data directory itself is pending.
    pub(super) home: Option<PathBuf>,
    /// Whether credentials for an external database are set.
    pub(super) credentials: bool,
    /// The variables and flags that set values, by dotted path.
    pub(super) above: BTreeMap<String, String>,
}

impl fmt::Debug for Editor {
    /// Omits the values, as some are secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Editor(..)")
    }
}

impl Editor {
    /// The effective settings, with secrets hidden.
    pub fn redacted_settings(&self) -> Value {
        tree::redact_secrets(&self.running)
    }

    /// The dotted paths that take effect only after a restart.
    pub fn restart_required(&self) -> Vec<String> {
        let mut paths = tree::leaves(&self.defaults);
        paths.retain(|path| needs_restart(path));
        paths
    }

    /// The settings as the file of a next start: those in effect and those that wait, without secrets.
    pub fn text(&self) -> String {
        manual::render_file(&self.later(), &self.defaults)
    }

    /// The change that takes back what waits at a dotted path, if anything does.
    pub fn withdrawal(&self, path: &str) -> Option<Value> {
        self.pending.get(path)?;
        let running = tree::get(&self.running, path)?;
        Some(json!({ path: running }))
    }

    /// The settings after the next start, as far as this process decides them.
    pub(super) fn later(&self) -> Value {
        let mut later = self.running.clone();
        self.pending
            .iter()
            .for_each(|(path, value)| tree::set(&mut later, path, value.clone()));
        later
    }

    /// The editor after a change, the effective settings, and the outcome. Nothing is changed or written yet.
    ///
    /// # Errors
    /// Everything that is wrong with the change.
    pub fn plan(&self, changes: &Value) -> Result<(Self, LocalSettings, ChangeOutcome), Vec<ConfigIssue>> {
        let wanted = self.read_change(changes)?;
        let mut next = self.clone();
        let done = next.take(&wanted);
        let settings = self.check_all(&next, &wanted)?;
        Ok((next, settings, done))
    }

    /// Whether the same values wait for a restart in both.
    pub fn waits_as(&self, other: &Self) -> bool {
        (&self.pending, &self.kept) == (&other.pending, &other.kept)
    }

    /// The leaves of a nested or dotted change, checked for their types.
    fn read_change(&self, changes: &Value) -> Result<BTreeMap<String, Value>, Vec<ConfigIssue>> {
        let (mut wanted, mut issues) = (BTreeMap::new(), Vec::new());
        if let Some(map) = changes.as_object() {
            self.flatten(map, "", &mut wanted, &mut issues);
        } else {
            let (kind, rule) = if changes.is_null() {
                ("missing", "Field required")
            } else {
                let rule = "Input should be a valid dictionary or object to extract fields from";
                ("model_attributes_type", rule)
            };
            issues.push(self.issue(kind, "", rule, changes));
        }
        if issues.is_empty() {
            Ok(wanted)
        } else {
            Err(issues)
        }
    }

    fn flatten(
        &self,
        map: &Map<String, Value>,
        prefix: &str,
        wanted: &mut BTreeMap<String, Value>,
        issues: &mut Vec<ConfigIssue>,
    ) {
        for (key, value) in map {
            if issues.len() >= MAX_ISSUES {
                return;
            }
            let path = tree::join(prefix, key);
            let checked = match (tree::get(&self.defaults, &path), value) {
                (None, _) => Err(("extra_forbidden", "Extra inputs are not permitted")),
                (Some(Value::Object(_)), Value::Object(map)) => {
                    self.flatten(map, &path, wanted, issues);
                    continue;
                }
                (Some(Value::Object(_)), _) => Err(("dict_type", "Input should be a valid dictionary")),
                (Some(default), _) => of_type(default, value),
            };
            let checked = checked.and_then(|value| match wanted.get(&path) {
                Some(other) if *other != value => Err(("value_error", "Value error, is given twice")),
                _ => Ok(value),
            });
            match checked {
                Ok(value) => match self.overriding_source(&path, &value) {
                    None => drop(wanted.insert(path, value)),
                    Some(rule) => issues.push(self.issue("value_error", &path, &rule, &value)),
                },
                Err((kind, msg)) => issues.push(self.issue(kind, &path, msg, value)),
            }
        }
    }

    /// Why a value would have no effect even after a restart, if so.
    fn overriding_source(&self, path: &str, value: &Value) -> Option<String> {
        let hidden = tree::is_secret(path) && value == HIDDEN;
        if hidden || !needs_restart(path) || tree::get(&self.running, path) == Some(value) {
            return None;
        }
        let by = self.above.get(path)?;
        Some(format!(
            "Value error, is set by {by}, which counts more than this; change it there"
        ))
    }

    /// Stores each value where it takes effect: now or at the next start.
    fn take(&mut self, wanted: &BTreeMap<String, Value>) -> ChangeOutcome {
        let mut done = ChangeOutcome::default();
        for (path, value) in wanted {
            if tree::is_secret(path) && value == HIDDEN {
                continue;
            }
            if needs_restart(path) && tree::get(&self.running, path) != Some(value) {
                self.pending.insert(path.clone(), value.clone());
                done.pending_restart.push(path.clone());
                continue;
            }
            self.pending.remove(path);
            // A kept value that the environment overrode; the latest request is for the running value.
            if self.kept.get(path) != Some(value) {
                self.kept.remove(path);
            }
            tree::set(&mut self.running, path, value.clone());
            done.applied.push(path.clone());
        }
        done
    }

    /// The effective settings after a change, provided they and the pending values are valid; otherwise every broken
    /// rule.
    fn check_all(
        &self,
        next: &Self,
        wanted: &BTreeMap<String, Value>,
    ) -> Result<LocalSettings, Vec<ConfigIssue>> {
        let mut later = next.later();
        let (mut issues, mut blamed) = (Vec::new(), BTreeSet::new());
        while let Err(error) = self.check_startable(&later) {
            let (path, _) = error.key_and_rule();
            if issues.len() >= MAX_ISSUES || !blamed.insert(path.to_owned()) {
                break;
            }
            issues.push(ConfigIssue::of_rule(
                &add_bounds(error.clone(), &later),
                &later,
                &self.defaults,
            ));
            // Restoring the previous value reveals the next broken rule.
            let before = wanted.get(path).and_then(|_| tree::get(&self.running, path));
            let Some(before) = before.cloned() else { break };
            tree::set(&mut later, path, before);
        }
        if !issues.is_empty() {
            return Err(issues);
        }
        LocalSettings::of_tree(&next.running)
            .map_err(|error| vec![ConfigIssue::of_rule(&error, &next.running, &self.defaults)])
    }

    fn check_startable(&self, tree: &Value) -> Result<(), ConfigError> {
        LocalSettings::of_tree(tree)?.check_startable(self.credentials)
    }

    /// Writes the values that wait for a restart.
    ///
    /// # Errors
    /// When the data directory can't be written; the file is then unchanged.
    pub fn save(&self) -> std::io::Result<()> {
        let Some(home) = &self.home else { return Ok(()) };
        let mut waiting = self.kept.clone();
        waiting.extend(self.pending.clone());
        pending::write(home, &waiting)
    }

    fn issue(&self, kind: &'static str, path: &str, msg: &str, input: &Value) -> ConfigIssue {
        ConfigIssue::new(kind, path, msg, input, &self.defaults)
    }
}

/// Adds the bounds of the key to an error about a negative number, which fails before its range is checked.
fn add_bounds(error: ConfigError, tree: &Value) -> ConfigError {
    let (path, _) = error.key_and_rule();
    if !tree::get(tree, path)
        .and_then(Value::as_i64)
        .is_some_and(i64::is_negative)
    {
        return error;
    }
    let mut probe = tree.clone();
    tree::set(&mut probe, path, json!(0));
    match LocalSettings::of_tree(&probe) {
        Err(other) if other.key_and_rule().0 == path => other,
        Ok(_) | Err(_) => error,
    }
}

pub(super) fn needs_restart(path: &str) -> bool {
    RESTART
        .iter()
        .any(|rule| path == *rule || (rule.ends_with('.') && path.starts_with(rule)))
}

/// Whether the key needs a restart and the value has its type.
pub(super) fn may_wait(defaults: &Value, path: &str, value: &Value) -> bool {
    needs_restart(path)
        && tree::get(defaults, path)
            .is_some_and(|default| !default.is_object() && of_type(default, value).is_ok())
}

/// The value, if it has the type of the default.
fn of_type(default: &Value, value: &Value) -> Result<Value, (&'static str, &'static str)> {
    match (default, value) {
        (Value::String(_), Value::String(text)) if text.contains(char::is_control) => {
            Err(("value_error", "Value error, must not hold control characters"))
        }
        (Value::Array(_), Value::Array(entries)) if entries.iter().all(Value::is_string) => Ok(value.clone()),
        (Value::Bool(_), Value::Bool(_)) | (Value::String(_), Value::String(_)) => Ok(value.clone()),
        (Value::Number(default), Value::Number(number)) if default.is_f64() => Ok(json!(number.as_f64())),
        (Value::Number(_), Value::Number(number)) if number.is_u64() || number.is_i64() => Ok(value.clone()),
        (Value::Number(_), Value::Number(number)) => whole(number.as_f64().unwrap_or(f64::NAN)),
        (Value::Bool(_), _) => Err(("bool_type", "Input should be a valid boolean")),
        (Value::Number(default), _) if default.is_f64() => {
            Err(("float_type", "Input should be a valid number"))
        }
        (Value::Number(_), _) => Err(("int_type", "Input should be a valid integer")),
        (Value::Array(_), _) => Err(("list_type", "Input should be a valid list of strings")),
        (Value::String(_) | Value::Null | Value::Object(_), _) => {
            Err(("string_type", "Input should be a valid string"))
        }
    }
}

/// Converts a whole number that was written as a float.
fn whole(number: f64) -> Result<Value, (&'static str, &'static str)> {
    if number.abs() >= EXACT {
        return Err(("int_type", "Input should be a valid integer"));
    }
    if number.fract() != 0.0 {
        let rule = "Input should be a valid integer, got a number with a fractional part";
        return Err(("int_from_float", rule));
    }
    Ok(json!(number as i64))
}
