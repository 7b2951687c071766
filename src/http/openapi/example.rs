//! Examples of bodies, composed of the examples that their schemas state for single fields.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use utoipa::openapi::schema::{Array, ArrayItems, KnownFormat, Object, SchemaFormat, SchemaType, Type};
use utoipa::openapi::{RefOr, Schema};

const SCHEMAS: &str = "#/components/schemas/";
/// Stands for any id.
const ID: &str = "6f1c0a52-7d6e-4a8e-9c53-0b1f2d3e4a5b";
/// Stands for any time.
const TIME: &str = "2026-01-31T09:30:00Z";

/// Composes examples with the schemas of a document.
pub(super) struct Examples<'d> {
    schemas: &'d BTreeMap<String, RefOr<Schema>>,
}

impl<'d> Examples<'d> {
    pub(super) fn new(schemas: &'d BTreeMap<String, RefOr<Schema>>) -> Self {
        Self { schemas }
    }

    /// A value that fits the schema. Schemas must not contain themselves.
    pub(super) fn of(&self, schema: &RefOr<Schema>) -> Value {
        match schema {
            RefOr::Ref(target) => {
                let name = target.ref_location.strip_prefix(SCHEMAS);
                let schema = name.and_then(|name| self.schemas.get(name));
                schema.map_or(Value::Null, |schema| self.of(schema))
            }
            RefOr::T(schema) => stated_example(schema).unwrap_or_else(|| self.compose(schema)),
        }
    }

    fn compose(&self, schema: &Schema) -> Value {
        match schema {
            Schema::Array(array) => self.list(array),
            Schema::Object(object) => self.object(object),
            Schema::OneOf(one) => self.first(&one.items),
            Schema::AnyOf(any) => self.first(&any.items),
            Schema::AllOf(all) => self.merge_examples(&all.items),
            _ => Value::Null,
        }
    }

    fn list(&self, array: &Array) -> Value {
        match &array.items {
            ArrayItems::RefOrSchema(item) => json!([self.of(item)]),
            ArrayItems::False => json!([]),
        }
    }

    fn object(&self, object: &Object) -> Value {
        if let Some(value) = object.enum_values.as_ref().and_then(|values| values.first()) {
            return value.clone();
        }
        match main_type(&object.schema_type) {
            Some(Type::String) => json!(text(object)),
            Some(Type::Integer | Type::Number) => json!(0),
            Some(Type::Boolean) => json!(true),
            Some(Type::Array) => json!([]),
            Some(Type::Null) => Value::Null,
            Some(Type::Object) | None => {
                let members = object.properties.iter();
                // A field that takes nothing but null is there to be left out.
                let members = members.map(|(name, schema)| (name.clone(), self.of(schema)));
                Value::Object(members.filter(|(_, value)| !value.is_null()).collect())
            }
        }
    }

    /// The first alternative that is not null.
    fn first(&self, items: &[RefOr<Schema>]) -> Value {
        let mut values = items.iter().map(|item| self.of(item));
        values.find(|value| !value.is_null()).unwrap_or(Value::Null)
    }

    fn merge_examples(&self, items: &[RefOr<Schema>]) -> Value {
        let mut whole = Map::new();
        for item in items {
            if let Value::Object(members) = self.of(item) {
                for (name, value) in members {
                    whole.entry(name).or_insert(value);
                }
            }
        }
        Value::Object(whole)
    }
}

/// The schema's own example or default.
fn stated_example(schema: &Schema) -> Option<Value> {
    let (example, examples, default) = match schema {
        Schema::Array(schema) => (&schema.example, &schema.examples, &schema.default),
        Schema::Object(schema) => (&schema.example, &schema.examples, &schema.default),
        Schema::OneOf(schema) => (&schema.example, &schema.examples, &schema.default),
        Schema::AllOf(schema) => (&schema.example, &schema.examples, &schema.default),
        Schema::AnyOf(schema) => (&schema.example, &schema.examples, &schema.default),
        _ => return None,
    };
    let stated = example.as_ref().or(examples.first()).or(default.as_ref());
    stated.cloned()
}

/// The type that is not null.
fn main_type(kind: &SchemaType) -> Option<Type> {
    match kind {
        SchemaType::Type(one) => Some(one.clone()),
        SchemaType::Array(several) => several.iter().find(|one| **one != Type::Null).cloned(),
        SchemaType::AnyValue => None,
    }
}

fn text(object: &Object) -> &'static str {
    match &object.format {
        Some(SchemaFormat::KnownFormat(KnownFormat::Uuid)) => ID,
        Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)) => TIME,
        Some(SchemaFormat::KnownFormat(_) | SchemaFormat::Custom(_)) | None => "text",
    }
}
