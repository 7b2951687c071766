//! Converts errors of the schema engine to [`Violation`]s: short, with the position, without the value.

use jsonschema::error::ValidationErrorKind;
use jsonschema::{ValidationError, Validator};
use serde_json::Value;

use super::Violation;

const MAX_RULE_CHARS: usize = 240;
const MAX_ALTERNATIVES: usize = 16;

/// A violation in `object` at a JSON pointer.
pub(super) fn at(object: &Value, path: impl Into<String>, rule: impl Into<String>) -> Violation {
    let object_id = object
        .get("id")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    Violation {
        object_id,
        path: path.into(),
        rule: rule.into(),
    }
}

/// Validates against one schema; error details are computed only on failure.
pub(super) fn schema_violations(
    schema: &Validator,
    object: &Value,
    limit: usize,
    found: &mut Vec<Violation>,
) {
    if schema.is_valid(object) {
        return;
    }
    let before = found.len();
    for error in schema.iter_errors(object) {
        let violation = at(object, place(&error), shorten(&rule(&error)));
        // `allOf` may reach the same definition twice.
        if !found[before..].contains(&violation) {
            found.push(violation);
        }
        if found.len() - before >= limit {
            break;
        }
    }
}

/// The pointer of the offending property; for an invalid name, the property with that name.
#[allow(clippy::wildcard_enum_match_arm)] // The other kinds concern the value itself.
fn place(error: &ValidationError<'_>) -> String {
    let parent = error.instance_path().to_string();
    let name = match error.kind() {
        ValidationErrorKind::PropertyNames { error } => error.instance().as_str(),
        ValidationErrorKind::Required { property } => property.as_str(),
        _ => None,
    };
    match name {
        Some(name) => format!("{parent}/{}", pointer_segment(name)),
        None => parent,
    }
}

/// Escapes a name as a JSON pointer token (RFC 6901 section 3).
pub(super) fn pointer_segment(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[allow(clippy::wildcard_enum_match_arm)] // For other kinds the engine's message will do.
fn rule(error: &ValidationError<'_>) -> String {
    match error.kind() {
        ValidationErrorKind::PropertyNames { error } => format!("bad property name: {}", error.masked()),
        ValidationErrorKind::Type { .. } if error.instance().is_null() => {
            "null is not a value: leave the property out".to_owned()
        }
        ValidationErrorKind::FalseSchema => "this property is not allowed here".to_owned(),
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            alternatives(context)
        }
        ValidationErrorKind::OneOfMultipleValid { .. } => {
            "more than one of the exclusive forms at once".to_owned()
        }
        _ => error.masked().to_string(),
    }
}

/// The first reason why each alternative failed, without duplicates.
fn alternatives(context: &[Vec<ValidationError<'static>>]) -> String {
    let mut reasons: Vec<String> = Vec::new();
    for error in context
        .iter()
        .filter_map(|errors| errors.first())
        .take(MAX_ALTERNATIVES)
    {
        let reason = error.masked().to_string();
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    format!("none of the allowed forms: {}", reasons.join("; or "))
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_RULE_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
