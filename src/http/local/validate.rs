//! Request fields with their rules. Every broken rule of a request is reported, in the words its clients know.

use serde_json::{Map, Value, json};

use super::error::{Issue, LocalError};

/// Longest input that an error repeats, in characters of its JSON.
const SHOWN: usize = 200;

/// The fields of one object, read one after the other.
pub(super) struct Fields<'a> {
    map: &'a Map<String, Value>,
    loc: Vec<Value>,
    issues: Vec<Issue>,
}

impl<'a> Fields<'a> {
    /// The fields of a body.
    pub(super) fn of_body(body: &'a Value) -> Result<Self, LocalError> {
        let loc = vec![json!("body")];
        match body {
            Value::Object(map) => Ok(Self::at(map, loc)),
            Value::Null => Err(LocalError::issues(&[missing(loc, &Value::Null)])),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Err(LocalError::issues(&[no_object(loc, body)]))
            }
        }
    }

    /// The fields of a query string.
    pub(super) fn of_query(map: &'a Map<String, Value>) -> Self {
        Self::at(map, vec![json!("query")])
    }

    fn at(map: &'a Map<String, Value>, loc: Vec<Value>) -> Self {
        Self {
            map,
            loc,
            issues: Vec::new(),
        }
    }

    /// The value read, if every rule was kept.
    pub(super) fn done<T>(self, value: T) -> Result<T, LocalError> {
        if self.issues.is_empty() {
            Ok(value)
        } else {
            Err(LocalError::issues(&self.issues))
        }
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
        input: &Value,
        ctx: Option<Value>,
    ) {
        let loc = self.place(name);
        self.issues.push(issue(kind, loc, msg, input, ctx));
    }

    /// A required text of a length in characters.
    pub(super) fn text(&mut self, name: &str, min: usize, max: usize) -> String {
        let Some(value) = self.map.get(name) else {
            let whole = Value::Object(self.map.clone());
            let issue = missing(self.place(name), &whole);
            self.issues.push(issue);
            return String::new();
        };
        self.checked_text(name, value, min, max)
    }

    /// A text with a default.
    pub(super) fn text_or(&mut self, name: &str, default: &str, min: usize, max: usize) -> String {
        match self.map.get(name) {
            Some(value) => self.checked_text(name, value, min, max),
            None => default.to_owned(),
        }
    }

    /// A text that may be missing, null or empty, all of which mean none.
    pub(super) fn optional_text(&mut self, name: &str, max: usize) -> Option<String> {
        let value = self.map.get(name).filter(|value| !value.is_null())?;
        Some(self.checked_text(name, value, 0, max)).filter(|text| !text.is_empty())
    }

    fn checked_text(&mut self, name: &str, value: &Value, min: usize, max: usize) -> String {
        let Value::String(text) = value else {
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
            let msg = format!("String should have at most {max} character{}", plural(max));
            self.broken(
                name,
                "string_too_long",
                msg,
                value,
                Some(json!({"max_length": max})),
            );
        }
        text.clone()
    }

    /// A whole number in a range, with a default.
    pub(super) fn number_or(&mut self, name: &str, default: usize, min: usize, max: usize) -> usize {
        let Some(value) = self.map.get(name) else {
            return default;
        };
        let number = match integer(value) {
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

    /// A truth value with a default.
    pub(super) fn flag_or(&mut self, name: &str, default: bool) -> bool {
        let Some(value) = self.map.get(name) else {
            return default;
        };
        match truth(value) {
            Ok(truth) => truth,
            Err((kind, msg)) => {
                self.broken(name, kind, msg, value, None);
                default
            }
        }
    }

    /// A required list of objects; `read` takes the fields of each.
    pub(super) fn list<T>(
        &mut self,
        name: &str,
        min: usize,
        max: usize,
        mut read: impl FnMut(&mut Fields<'_>) -> T,
    ) -> Vec<T> {
        let Some(value) = self.map.get(name) else {
            let whole = Value::Object(self.map.clone());
            let issue = missing(self.place(name), &whole);
            self.issues.push(issue);
            return Vec::new();
        };
        let Value::Array(items) = value else {
            self.broken(name, "list_type", "Input should be a valid list", value, None);
            return Vec::new();
        };
        let count = items.len();
        if count < min {
            let msg = format!(
                "List should have at least {min} item{} after validation, not {count}",
                plural(min)
            );
            let ctx = json!({"field_type": "List", "min_length": min, "actual_length": count});
            self.broken(name, "too_short", msg, value, Some(ctx));
        } else if count > max {
            let msg = format!(
                "List should have at most {max} item{} after validation, not {count}",
                plural(max)
            );
            let ctx = json!({"field_type": "List", "max_length": max, "actual_length": count});
            self.broken(name, "too_long", msg, value, Some(ctx));
            return Vec::new();
        }
        let mut found = Vec::with_capacity(count);
        for (place, item) in items.iter().enumerate() {
            let mut loc = self.place(name);
            loc.push(json!(place));
            let Value::Object(map) = item else {
                self.issues.push(no_object(loc, item));
                continue;
            };
            let mut fields = Fields::at(map, loc);
            found.push(read(&mut fields));
            self.issues.append(&mut fields.issues);
        }
        found
    }
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// One broken rule; a long input is not repeated whole.
pub(super) fn issue(
    kind: &'static str,
    loc: Vec<Value>,
    msg: impl Into<String>,
    input: &Value,
    ctx: Option<Value>,
) -> Issue {
    let text = input.as_str().map_or_else(|| input.to_string(), str::to_owned);
    let input = if text.chars().count() > SHOWN {
        Value::from(format!(
            "{}\u{2026}",
            text.chars().take(SHOWN).collect::<String>()
        ))
    } else {
        input.clone()
    };
    Issue {
        kind,
        loc,
        msg: msg.into(),
        input,
        ctx,
    }
}

fn missing(loc: Vec<Value>, input: &Value) -> Issue {
    issue("missing", loc, "Field required", input, None)
}

fn no_object(loc: Vec<Value>, input: &Value) -> Issue {
    let msg = "Input should be a valid dictionary or object to extract fields from";
    issue("model_attributes_type", loc, msg, input, None)
}

type Wrong = (&'static str, &'static str);

/// Whole numbers, also as text or with a zero fraction.
fn integer(value: &Value) -> Result<i128, Wrong> {
    let from_float = |number: f64| {
        if number.fract() == 0.0 {
            // Beyond i128 it saturates, and every range ends before.
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

/// Truth values, also as the usual words and numbers.
fn truth(value: &Value) -> Result<bool, Wrong> {
    let unclear = (
        "bool_parsing",
        "Input should be a valid boolean, unable to interpret input",
    );
    match value {
        Value::Bool(truth) => Ok(*truth),
        Value::Number(number) if number.as_f64() == Some(1.0) => Ok(true),
        Value::Number(number) if number.as_f64() == Some(0.0) => Ok(false),
        Value::Number(_) => Err(unclear),
        Value::String(text) => match text.to_ascii_lowercase().as_str() {
            "true" | "t" | "yes" | "y" | "on" | "1" => Ok(true),
            "false" | "f" | "no" | "n" | "off" | "0" => Ok(false),
            _ => Err(unclear),
        },
        Value::Null | Value::Array(_) | Value::Object(_) => {
            Err(("bool_type", "Input should be a valid boolean"))
        }
    }
}
