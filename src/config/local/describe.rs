//! The settings as JSON Schemas, for the API's document.

use std::borrow::Cow;

use serde_json::{Map, Value, json};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AdditionalProperties, ArrayBuilder, ObjectBuilder, Schema, Type};
use utoipa::{Number, PartialSchema, ToSchema};

use super::rules::{self, AcceptedValues, Kind};
use super::tree::{self, HIDDEN};

/// No control characters, as the editor demands.
const PRINTABLE: &str = r"^[^\u0000-\u001f\u007f-\u009f]*$";

/// All settings, nested by section, with secrets hidden.
pub struct ShownSettings;

/// A change: any settings, nested or with dotted names.
pub struct ChangedSettings;

impl ToSchema for ShownSettings {
    fn name() -> Cow<'static, str> {
        "Settings".into()
    }
}

impl PartialSchema for ShownSettings {
    fn schema() -> RefOr<Schema> {
        let defaults = defaults();
        let section = section_schema(&defaults, &defaults, "");
        let example = tree::redact_secrets(&defaults);
        section
            .description(Some("The settings in effect."))
            .examples([example])
            .into()
    }
}

impl ToSchema for ChangedSettings {
    fn name() -> Cow<'static, str> {
        "SettingsChange".into()
    }
}

impl PartialSchema for ChangedSettings {
    fn schema() -> RefOr<Schema> {
        let defaults = defaults();
        let example =
            json!({"retrieval.default_k": 7, "governance": {"pii": {"enabled": true}}, "llm.model": "m"});
        let description = "Settings and their new values: nested, or with dotted names at any depth.";
        let section = change_schema(&defaults, &defaults, "");
        section.description(Some(description)).examples([example]).into()
    }
}

fn defaults() -> Value {
    super::trees(None)
        .map(|(defaults, _)| defaults)
        .unwrap_or_default()
}

fn entries(section: &Value) -> impl Iterator<Item = (&String, &Value)> {
    section.as_object().into_iter().flat_map(Map::iter)
}

fn section() -> ObjectBuilder {
    let unknown = AdditionalProperties::FreeForm(false);
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .additional_properties(Some(unknown))
}

/// A section in which every setting is given.
fn section_schema(defaults: &Value, at: &Value, prefix: &str) -> ObjectBuilder {
    entries(at).fold(section(), |all, (key, value)| {
        let path = tree::join(prefix, key);
        let schema = match value {
            Value::Object(_) => section_schema(defaults, value, &path).into(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                leaf(defaults, &path)
            }
        };
        all.property(key, schema).required(key)
    })
}

/// A section in which any setting may be given, by its name or by its dotted path from here.
fn change_schema(defaults: &Value, at: &Value, prefix: &str) -> ObjectBuilder {
    below(at, "").into_iter().fold(section(), |all, relative| {
        let path = tree::join(prefix, &relative);
        let schema = match tree::get(at, &relative) {
            Some(value @ Value::Object(_)) => change_schema(defaults, value, &path).into(),
            Some(value) => {
                let mut schema = leaf(defaults, &path);
                if let Schema::Object(object) = &mut schema
                    && value.is_string()
                {
                    object.pattern = Some(PRINTABLE.to_owned());
                }
                schema
            }
            None => return all,
        };
        all.property(relative, schema)
    })
}

/// The dotted paths of all sections and settings below a section.
fn below(at: &Value, prefix: &str) -> Vec<String> {
    let paths = entries(at).flat_map(|(key, value)| {
        let path = tree::join(prefix, key);
        let deeper = below(value, &path);
        std::iter::once(path).chain(deeper)
    });
    paths.collect()
}

/// One setting.
fn leaf(defaults: &Value, path: &str) -> Schema {
    let AcceptedValues { kind, range, choices } = rules::accepted_values(defaults, path);
    let schema = ObjectBuilder::new();
    let schema = match kind {
        Kind::Boolean => schema.schema_type(Type::Boolean),
        Kind::Number => with_range(schema.schema_type(Type::Number), range),
        Kind::Integer => with_range(schema.schema_type(Type::Integer), range),
        Kind::Secret => {
            let description = format!("A secret, shown as `{HIDDEN}`.");
            schema.schema_type(Type::String).description(Some(description))
        }
        Kind::Text => {
            let names = (!choices.is_empty()).then_some(choices);
            schema.schema_type(Type::String).enum_values(names)
        }
        Kind::List => return ArrayBuilder::new().items(schema.schema_type(Type::String)).into(),
    };
    schema.into()
}

fn with_range(schema: ObjectBuilder, range: Option<(Value, Value)>) -> ObjectBuilder {
    let (least, most) = range.unzip();
    schema
        .minimum(least.as_ref().and_then(number))
        .maximum(most.as_ref().and_then(number))
}

fn number(value: &Value) -> Option<Number> {
    let whole = value.as_u64().and_then(|number| usize::try_from(number).ok());
    whole
        .map(Number::UInt)
        .or_else(|| value.as_f64().map(Number::Float))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema_of<T: PartialSchema>() -> Value {
        serde_json::to_value(T::schema()).unwrap()
    }

    #[test]
    fn bounds_and_names_are_those_of_the_rules() {
        let shown = schema_of::<ShownSettings>();
        let setting = |path: &str| {
            let pointer = path.replace('.', "/properties/");
            shown.pointer(&format!("/properties/{pointer}")).unwrap().clone()
        };
        for (path, least, most) in [
            ("web.port", json!(0), json!(65_535)),
            ("web.max_k", json!(1), json!(1000)),
            ("retrieval.default_k", json!(1), json!(50)),
            ("retrieval.graph_weight", json!(0), json!(10)),
            ("search.fresh_docs", json!(0), json!(10_000)),
            ("web.body_limit", json!(1024), json!(1 << 30)),
        ] {
            let schema = setting(path);
            assert_eq!(
                (&schema["minimum"], &schema["maximum"]),
                (&least, &most),
                "{path}"
            );
        }
        assert_eq!(setting("llm.provider")["enum"], json!(["none", "openai"]));
        assert_eq!(
            setting("governance.pii.action")["enum"],
            json!(["log", "redact", "block"])
        );
        assert_eq!(setting("web.host")["enum"], Value::Null);
        assert_eq!(
            setting("web.admin_hosts"),
            json!({"type": "array", "items": {"type": "string"}})
        );
        assert!(
            setting("web.api_key")["description"]
                .as_str()
                .unwrap()
                .contains("***")
        );
    }

    #[test]
    fn a_change_may_be_nested_or_dotted_at_any_depth() {
        let validator = jsonschema::validator_for(&schema_of::<ChangedSettings>()).unwrap();
        for fine in [
            json!({}),
            json!({"governance": {"pii": {"enabled": true}}}),
            json!({"governance": {"pii.enabled": true}}),
            json!({"governance.pii": {"enabled": true}}),
            json!({"governance.pii.enabled": true, "web.max_k": 1000}),
            json!({"web": {"admin_hosts": ["memory.internal"]}}),
        ] {
            assert!(validator.is_valid(&fine), "{fine}");
        }
        for wrong in [
            json!([]),
            json!({"governance": {"governance.pii.enabled": true}}),
            json!({"governance.pii.enabled": 1}),
            json!({"web.max_k": 1001}),
            json!({"web.nope": 1}),
            json!({"web.admin_hosts": "memory.internal"}),
            json!({"web.admin_hosts": [1]}),
            json!({"llm.provider": "other"}),
            json!({"llm.model": "a\u{7f}"}),
        ] {
            assert!(!validator.is_valid(&wrong), "{wrong}");
        }
    }
}
