//! Reasons for refusing a change, in the shape of the API's validation errors, without secrets or long inputs.

use serde::Serialize;
use serde_json::{Value, json};

use super::super::ConfigError;
use super::tree::{self, HIDDEN};

/// Longest input that an issue echoes, in characters.
const SHOWN: usize = 200;

/// Why one value of a change is refused, in the shape of the API's validation errors.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ConfigIssue {
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub loc: Vec<String>,
    pub msg: String,
    pub input: Value,
    /// The violated bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ctx: Option<Value>,
}

impl ConfigIssue {
    /// An issue with the value at a dotted path; `defaults` tells which sections hold secrets.
    pub(super) fn new(kind: &'static str, path: &str, msg: &str, input: &Value, defaults: &Value) -> Self {
        let mut loc = vec!["body".to_owned()];
        loc.extend(path.split('.').filter(|part| !part.is_empty()).map(str::to_owned));
        let known = tree::get(defaults, path);
        // A value given in place of a section with secrets may itself be a secret.
        let in_place_of_secret = !input.is_object()
            && known.is_some_and(|known| {
                known.is_object() && tree::leaves(known).iter().any(|leaf| tree::is_secret(leaf))
            });
        let input = if in_place_of_secret || path.split('.').any(tree::is_secret) {
            Value::from(HIDDEN)
        } else {
            shorten(tree::quotable(input))
        };
        Self {
            kind,
            loc,
            msg: msg.to_owned(),
            input,
            ctx: None,
        }
    }

    /// A broken rule; `tree` holds the offending value.
    pub(super) fn of_rule(error: &ConfigError, tree: &Value, defaults: &Value) -> Self {
        let (path, rule) = error.key_and_rule();
        let input = tree::get(tree, path).unwrap_or(&Value::Null);
        let Some(((least, most), number)) = error.range.as_ref().zip(input.as_f64()) else {
            return Self::new(
                "value_error",
                path,
                &format!("Value error, {rule}"),
                input,
                defaults,
            );
        };
        let below = least.as_f64().is_some_and(|least| number < least);
        let (kind, rule, ctx) = if below {
            (
                "greater_than_equal",
                format!("greater than or equal to {least}"),
                json!({"ge": least}),
            )
        } else {
            (
                "less_than_equal",
                format!("less than or equal to {most}"),
                json!({"le": most}),
            )
        };
        Self {
            ctx: Some(ctx),
            ..Self::new(kind, path, &format!("Input should be {rule}"), input, defaults)
        }
    }
}

fn shorten(input: Value) -> Value {
    let text = input.as_str().map_or_else(|| input.to_string(), str::to_owned);
    if text.chars().count() <= SHOWN {
        return input;
    }
    Value::from(format!("(not repeated: {} bytes)", input.to_string().len()))
}
