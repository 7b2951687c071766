//! The JSON schema of an answer, used both for the request and for the check of the response.
//!
//! Fields missing from the schema are dropped before anything reads them, so an answer can't inject a marking, id or
//! status; not every local server enforces the schema. Complaints never quote the answer.

use jsonschema::Validator;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::client::Completion;

/// Maximum length of a complaint, which is shown to the model and possibly to a person, in characters.
const MAX_COMPLAINT: usize = 300;

/// A JSON schema in the strict form that servers accept: objects with `properties`, all of them required.
#[derive(Debug)]
pub struct ResponseSchema {
    name: &'static str,
    schema: Value,
    /// `None` if the schema itself is invalid.
    validator: Option<Validator>,
}

impl ResponseSchema {
    pub fn new(name: &'static str, mut schema: Value) -> Self {
        let validator = jsonschema::validator_for(&schema).ok();
        if let Some(schema) = schema.as_object_mut() {
            // Servers refuse unknown keywords.
            schema.remove("$schema");
            schema.remove("title");
        }
        Self {
            name,
            schema,
            validator,
        }
    }

    /// The request parameter that makes the server enforce the schema.
    pub fn response_format(&self) -> Value {
        json!({
            "type": "json_schema",
            "json_schema": {"name": self.name, "strict": true, "schema": self.schema},
        })
    }

    /// Parses the model's output.
    ///
    /// # Errors
    /// What is wrong with it, without quoting it.
    pub fn parse<T: DeserializeOwned>(&self, completion: &Completion) -> Result<T, String> {
        let json = json_part(&completion.content);
        let mut value: Value = serde_json::from_str(json).map_err(|error| {
            let reason = if completion.cut_off {
                "it was cut off at the length limit; list less, with shorter texts"
            } else if error.is_eof() {
                "it ends before the JSON does"
            } else {
                "it is not JSON"
            };
            format!("{reason} (line {}, column {})", error.line(), error.column())
        })?;
        prune(&mut value, &self.schema);
        let validator = self.validator.as_ref().ok_or("the schema could not be read")?;
        if let Err(error) = validator.validate(&value) {
            let complaint = format!("{} at {}", error.masked(), error.instance_path());
            return Err(complaint.chars().take(MAX_COMPLAINT).collect());
        }
        serde_json::from_value(value).map_err(|_| "it does not fit the schema".to_owned())
    }
}

/// The JSON of an answer that is wrapped in a code fence or preceded by the model's reasoning.
fn json_part(content: &str) -> &str {
    let content = content
        .rsplit_once("</think>")
        .map_or(content, |(_, after)| after)
        .trim();
    let Some(fenced) = content.strip_prefix("```") else {
        return content;
    };
    let body = fenced.strip_prefix("json").unwrap_or(fenced);
    body.trim_end().strip_suffix("```").unwrap_or(body).trim()
}

/// Drops everything that the schema does not define.
fn prune(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(object) => {
            let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
                return;
            };
            object.retain(|key, _| properties.contains_key(key));
            for (key, inner) in object {
                prune(inner, properties.get(key).unwrap_or(&Value::Null));
            }
        }
        Value::Array(items) => {
            let of_items = schema.get("items").unwrap_or(&Value::Null);
            items.iter_mut().for_each(|item| prune(item, of_items));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
