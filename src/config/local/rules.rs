//! What each setting accepts. Types come from the defaults, and bounds from the rules themselves: each rule is asked by
//! breaking it.

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::super::ConfigError;
use super::LocalSettings;
use super::tree;

/// The type of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = SettingType)]
pub enum Kind {
    Boolean,
    /// A whole number.
    Integer,
    Number,
    Text,
    /// A text that is never shown.
    Secret,
    List,
}

impl Kind {
    pub(super) fn of(path: &str, default: &Value) -> Self {
        match default {
            Value::Bool(_) => Self::Boolean,
            Value::Number(number) if number.is_f64() => Self::Number,
            Value::Number(_) => Self::Integer,
            Value::Array(_) => Self::List,
            Value::String(_) if tree::is_secret(path) => Self::Secret,
            Value::Null | Value::String(_) | Value::Object(_) => Self::Text,
        }
    }
}

/// What a setting accepts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AcceptedValues {
    pub(super) kind: Kind,
    /// The smallest and the largest number.
    pub(super) range: Option<(Value, Value)>,
    /// The only texts, if there is a choice.
    pub(super) choices: Vec<String>,
}

/// What the setting at `path` accepts while all others have the values of `tree`, which must be valid.
pub(super) fn accepted_values(tree: &Value, path: &str) -> AcceptedValues {
    let kind = Kind::of(path, tree::get(tree, path).unwrap_or(&Value::Null));
    let broken = |value: Value| broken(tree, path, value);
    let (mut range, mut choices) = (None, Vec::new());
    match kind {
        Kind::Number => range = broken(json!(-1e300)).and_then(|error| error.range),
        Kind::Integer => {
            // The first answer is the range of the type; its ends are outside the rule's range, if there is one.
            let of_type = broken(json!(-1)).and_then(|error| error.range);
            let most = of_type.as_ref().map_or(Value::Null, |(_, most)| most.clone());
            let of_rule = [json!(0), most].into_iter().find_map(|end| broken(end)?.range);
            range = of_rule.or(of_type);
        }
        Kind::Text => {
            let error = broken(json!("\u{1}"));
            choices = error
                .map(|error| quoted_names(error.key_and_rule().1))
                .unwrap_or_default();
        }
        Kind::Boolean | Kind::Secret | Kind::List => {}
    }
    AcceptedValues { kind, range, choices }
}

/// The rule that refuses a value, if one does.
fn broken(tree: &Value, path: &str, value: Value) -> Option<ConfigError> {
    let mut probe = tree.clone();
    tree::set(&mut probe, path, value);
    LocalSettings::of_tree(&probe)
        .err()
        .filter(|error| error.key_and_rule().0 == path)
}

/// The names that a rule allows.
fn quoted_names(rule: &str) -> Vec<String> {
    rule.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}
