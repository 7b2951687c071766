//! Validates request fields. Every violation is reported, in the words that clients of the API expect.

mod lists;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::error::{Issue, LocalError};
use super::input::{Input, Object, abridge};
use crate::http::query;

const MISSING: &str = "missing";
const NO_OBJECT: &str = "model_attributes_type";

/// The fields of one object, read one by one.
pub(super) struct Fields<'a> {
    source: Source<'a>,
    loc: Vec<Value>,
    issues: Vec<Issue>,
}

enum Source<'a> {
    Body(Object<'a>),
    Query(&'a Map<String, Value>),
    /// There is no request: what is asked for is written down, for the document.
    Nowhere(ReaderSchema),
}

/// The fields that a reader takes, as the properties of a JSON Schema.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct ReaderSchema {
    pub properties: Map<String, Value>,
    pub required: Vec<String>,
}

impl ReaderSchema {
    /// Takes the fields of the entries of a list out of its schema; `None` if it is not a list.
    pub(super) fn of_items(list: &mut Value) -> Option<Self> {
        let items = list.as_object_mut()?.remove("items")?;
        serde_json::from_value(items).ok()
    }
}

impl<'a> Fields<'a> {
    /// The fields that `read` takes, with their types, bounds and defaults.
    pub(super) fn describe<T>(read: impl FnOnce(&mut Fields<'_>) -> T) -> ReaderSchema {
        let mut fields = Fields::at(Source::Nowhere(ReaderSchema::default()), Vec::new());
        read(&mut fields);
        match fields.source {
            Source::Nowhere(described) => described,
            Source::Body(_) | Source::Query(_) => ReaderSchema::default(),
        }
    }

    /// Writes down what is asked for; the last word on a field counts.
    fn note(&mut self, name: &str, schema: impl FnOnce() -> Value) {
        if let Source::Nowhere(described) = &mut self.source {
            described.properties.insert(name.to_owned(), schema());
        }
    }

    /// The fields of a body.
    pub(super) fn of_body(body: &'a RawValue) -> Result<Self, LocalError> {
        let loc = vec![json!("body")];
        match Object::of(body) {
            Some(object) => Ok(Self::at(Source::Body(object), loc)),
            None if body.get() == "null" => Err(no_body()),
            None => Err(LocalError::issues(&[no_object(loc, Input::Json(body))])),
        }
    }

    /// The fields of a query string.
    pub(super) fn of_query(map: &'a Map<String, Value>) -> Self {
        Self::at(Source::Query(map), vec![json!("query")])
    }

    fn at(source: Source<'a>, loc: Vec<Value>) -> Self {
        Self {
            source,
            loc,
            issues: Vec::new(),
        }
    }

    fn get(&self, name: &str) -> Option<Input<'a>> {
        match &self.source {
            Source::Body(object) => object.get(name),
            // The last one of a repeated parameter, as a client of the API expects.
            Source::Query(map) => map.get(name).map(|value| {
                let last = value.as_array().and_then(|all| all.last());
                Input::Parameter(last.unwrap_or(value))
            }),
            Source::Nowhere(_) => None,
        }
    }

    /// A required value; records an issue if it is missing.
    fn required(&mut self, name: &str) -> Option<Input<'a>> {
        let value = self.get(name);
        if value.is_none() {
            let whole = match &mut self.source {
                Source::Body(object) => object.whole().abridge(),
                Source::Query(map) => abridge(&Value::Object((*map).clone())),
                Source::Nowhere(described) => {
                    described.required.push(name.to_owned());
                    return None;
                }
            };
            let issue = missing(self.place(name), whole);
            self.issues.push(issue);
        }
        value
    }

    /// Returns `value` if no issue was recorded.
    pub(super) fn finish<T>(self, value: T) -> Result<T, LocalError> {
        if self.issues.is_empty() {
            Ok(value)
        } else {
            Err(LocalError::issues(&self.issues))
        }
    }

    /// Fails the request with issues that were returned separately.
    pub(super) fn add_issues(&mut self, broken: impl IntoIterator<Item = Issue>) {
        self.issues.extend(broken);
    }

    fn place(&self, name: &str) -> Vec<Value> {
        let mut loc = self.loc.clone();
        loc.push(json!(name));
        loc
    }

    fn broken(
        &mut self,
        name: &str,
        kind: &'static str,
        msg: impl Into<String>,
        input: Input<'_>,
        ctx: Option<Value>,
    ) {
        let loc = self.place(name);
        self.issues.push(issue(kind, loc, msg, input.abridge(), ctx));
    }

    /// A required text of `min` to `max` characters.
    pub(super) fn text(&mut self, name: &str, min: usize, max: usize) -> String {
        self.note(name, || text_schema(min, max));
        let value = self.required(name);
        value.map_or_else(String::new, |value| self.checked_text(name, value, min, max))
    }

    /// A text with a default.
    pub(super) fn text_or(&mut self, name: &str, default: &str, min: usize, max: usize) -> String {
        self.note(name, || with(text_schema(min, max), "default", json!(default)));
        match self.get(name) {
            Some(value) => self.checked_text(name, value, min, max),
            None => default.to_owned(),
        }
    }

    /// An optional text; missing, null and empty all mean none.
    pub(super) fn optional_text(&mut self, name: &str, max: usize) -> Option<String> {
        self.note(name, || {
            with(text_schema(0, max), "type", json!(["string", "null"]))
        });
        let value = self.get(name).filter(|value| !value.scalar().is_null())?;
        Some(self.checked_text(name, value, 0, max)).filter(|text| !text.is_empty())
    }

    /// A text that may be missing; null means the same.
    pub(super) fn text_if_given(&mut self, name: &str, min: usize, max: usize) -> Option<String> {
        self.note(name, || {
            with(text_schema(min, max), "type", json!(["string", "null"]))
        });
        let value = self.get(name).filter(|value| !value.scalar().is_null())?;
        Some(self.checked_text(name, value, min, max))
    }

    /// Words of a query string, separated by commas or in several parameters of the name; missing means none.
    pub(super) fn words(&mut self, name: &str, max: usize) -> Vec<String> {
        self.note(name, || text_schema(0, max));
        let Source::Query(map) = &self.source else {
            return Vec::new();
        };
        let given = match map.get(name) {
            Some(Value::Array(all)) => all.as_slice(),
            Some(one) => std::slice::from_ref(one),
            None => &[],
        };
        let texts: Vec<&str> = given.iter().filter_map(Value::as_str).collect();
        let joined = texts.join(",");
        if joined.chars().nth(max).is_some() {
            self.too_long(name, Input::Parameter(&Value::from(joined)), max);
            return Vec::new();
        }
        let words = joined.split(',').map(str::trim).filter(|word| !word.is_empty());
        words.map(str::to_owned).collect()
    }

    /// An optional value of any type; missing and null both mean none.
    pub(super) fn optional(&mut self, name: &str, schema: impl FnOnce() -> Value) -> Option<Value> {
        self.note(name, schema);
        Some(self.get(name)?.scalar()).filter(|value| !value.is_null())
    }

    /// Records that a value breaks a rule.
    pub(super) fn refuse(&mut self, name: &str, kind: &'static str, rule: impl Into<String>) {
        if let Some(value) = self.get(name) {
            self.broken(name, kind, rule, value, None);
        }
    }

    fn checked_text(&mut self, name: &str, value: Input<'_>, min: usize, max: usize) -> String {
        if value.is_text_beyond(max) {
            self.too_long(name, value, max);
            return String::new();
        }
        let Value::String(text) = value.scalar() else {
            self.broken(name, "string_type", "Input should be a valid string", value, None);
            return String::new();
        };
        let length = text.chars().count();
        if length < min {
            let msg = format!("String should have at least {min} character{}", plural(min));
            self.broken(
                name,
                "string_too_short",
                msg,
                value,
                Some(json!({"min_length": min})),
            );
        } else if length > max {
            self.too_long(name, value, max);
        }
        text
    }

    fn too_long(&mut self, name: &str, value: Input<'_>, max: usize) {
        let msg = format!("String should have at most {max} character{}", plural(max));
        let ctx = json!({"max_length": max});
        self.broken(name, "string_too_long", msg, value, Some(ctx));
    }

    /// A whole number in a range, with a default.
    pub(super) fn number_or(&mut self, name: &str, default: usize, min: usize, max: usize) -> usize {
        self.note(
            name,
            || json!({"type": "integer", "minimum": min, "maximum": max, "default": default}),
        );
        let Some(value) = self.get(name) else {
            return default;
        };
        let number = match integer(&value.scalar()) {
            Ok(number) => number,
            Err((kind, msg)) => {
                self.broken(name, kind, msg, value, None);
                return default;
            }
        };
        if number < min as i128 {
            let msg = format!("Input should be greater than or equal to {min}");
            self.broken(name, "greater_than_equal", msg, value, Some(json!({"ge": min})));
        } else if number > max as i128 {
            let msg = format!("Input should be less than or equal to {max}");
            self.broken(name, "less_than_equal", msg, value, Some(json!({"le": max})));
        }
        usize::try_from(number).unwrap_or(default)
    }

    /// One of a list of words, with a default.
    pub(super) fn choice_or<T: Copy + fmt::Display>(&mut self, name: &str, choices: &[T], default: T) -> T {
        let words: Vec<String> = choices.iter().map(T::to_string).collect();
        self.note(
            name,
            || json!({"type": "string", "enum": words, "default": default.to_string()}),
        );
        let Some(value) = self.get(name) else {
            return default;
        };
        let given = value.scalar();
        let place = words.iter().position(|word| given == word.as_str());
        if let Some(choice) = place.and_then(|place| choices.get(place)) {
            return *choice;
        }
        let expected = quote_choices(&words);
        let msg = format!("Input should be {expected}");
        self.broken(
            name,
            "literal_error",
            msg,
            value,
            Some(json!({"expected": expected})),
        );
        default
    }

    /// One of a list of words; missing means none.
    pub(super) fn optional_choice<T: Copy + fmt::Display>(&mut self, name: &str, choices: &[T]) -> Option<T> {
        let first = *choices.first()?;
        let chosen = self.choice_or(name, choices, first);
        let words: Vec<String> = choices.iter().map(T::to_string).collect();
        self.note(name, || json!({"type": "string", "enum": words}));
        self.get(name).map(|_| chosen)
    }

    /// A boolean with a default.
    pub(super) fn flag_or(&mut self, name: &str, default: bool) -> bool {
        self.note(name, || json!({"type": "boolean", "default": default}));
        let Some(value) = self.get(name) else {
            return default;
        };
        match truth(&value.scalar()) {
            Ok(truth) => truth,
            Err((kind, msg)) => {
                self.broken(name, kind, msg, value, None);
                default
            }
        }
    }

    /// Like [`Fields::flag_or`], but null also means the default.
    pub(super) fn optional_flag_or(&mut self, name: &str, default: bool) -> bool {
        if self.get(name).is_some_and(|value| value.scalar().is_null()) {
            return default;
        }
        let flag = self.flag_or(name, default);
        self.note(name, || json!({"type": ["boolean", "null"], "default": default}));
        flag
    }
}

fn text_schema(min: usize, max: usize) -> Value {
    json!({"type": "string", "minLength": min, "maxLength": max})
}

fn with(mut schema: Value, keyword: &str, value: Value) -> Value {
    schema[keyword] = value;
    schema
}

/// Quoted words in a sentence: `'a', 'b' or 'c'`.
fn quote_choices(words: &[String]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        Some(_) | None => quoted.concat(),
    }
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// One issue; `input` is the value as an error may show it.
pub(super) fn issue(
    kind: &'static str,
    loc: Vec<Value>,
    msg: impl Into<String>,
    input: Value,
    ctx: Option<Value>,
) -> Issue {
    Issue {
        kind,
        loc,
        msg: msg.into(),
        input,
        ctx,
    }
}

/// Whether an entry lacks what makes it one: it is no object, or has no required field.
pub(super) fn is_no_entry(issues: &[Issue]) -> bool {
    issues
        .iter()
        .any(|issue| [MISSING, NO_OBJECT].contains(&issue.kind))
}

/// The error for a missing body.
pub(super) fn no_body() -> LocalError {
    LocalError::issues(&[missing(vec![json!("body")], Value::Null)])
}

fn missing(loc: Vec<Value>, input: Value) -> Issue {
    issue(MISSING, loc, "Field required", input, None)
}

fn no_object(loc: Vec<Value>, input: Input<'_>) -> Issue {
    let msg = "Input should be a valid dictionary or object to extract fields from";
    issue(NO_OBJECT, loc, msg, input.abridge(), None)
}

type TypeIssue = (&'static str, &'static str);

/// Parses a whole number, also from text or with a zero fraction.
fn integer(value: &Value) -> Result<i128, TypeIssue> {
    let from_float = |number: f64| {
        if number.fract() == 0.0 {
            // Values beyond i128 saturate, which is outside every range.
            Ok(number as i128)
        } else {
            Err((
                "int_from_float",
                "Input should be a valid integer, got a number with a fractional part",
            ))
        }
    };
    match value {
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Ok(i128::from(number)),
            (None, Some(number)) => Ok(i128::from(number)),
            (None, None) => from_float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::Bool(truth) => Ok(i128::from(*truth)),
        Value::String(text) => {
            let text = text.trim();
            let whole = text
                .split_once('.')
                .filter(|(_, zeros)| zeros.bytes().all(|b| b == b'0'));
            let digits = whole.map_or(text, |(whole, _)| whole);
            digits.parse::<i128>().map_err(|_| {
                (
                    "int_parsing",
                    "Input should be a valid integer, unable to parse string as an integer",
                )
            })
        }
        Value::Null | Value::Array(_) | Value::Object(_) => {
            Err(("int_type", "Input should be a valid integer"))
        }
    }
}

/// Parses a boolean, also from the usual words and numbers.
fn truth(value: &Value) -> Result<bool, TypeIssue> {
    let unclear = (
        "bool_parsing",
        "Input should be a valid boolean, unable to interpret input",
    );
    match value {
        Value::Bool(truth) => Ok(*truth),
        Value::Number(number) if number.as_f64() == Some(1.0) => Ok(true),
        Value::Number(number) if number.as_f64() == Some(0.0) => Ok(false),
        Value::Number(_) => Err(unclear),
        Value::String(text) => query::truth(text).ok_or(unclear),
        Value::Null | Value::Array(_) | Value::Object(_) => {
            Err(("bool_type", "Input should be a valid boolean"))
        }
    }
}

#[cfg(test)]
mod tests;
