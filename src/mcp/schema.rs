//! JSON Schemas of tools, taken from the description of the API (OpenAPI 3.1, whose schemas are JSON Schema 2020-12).

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::api::Verb;

const COMPONENTS: &str = "#/components/schemas/";
const DEFINITIONS: &str = "#/$defs/";
/// Keywords whose values are data and no schemas.
const DATA: [&str; 3] = ["default", "enum", "const"];

pub(crate) type Object = Map<String, Value>;

/// Where a request has a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Path,
    Query,
    Body,
}

/// A field that a request takes.
#[derive(Debug, Clone)]
pub(super) struct Field {
    pub name: String,
    pub place: Place,
    pub required: bool,
    pub schema: Value,
}

/// The description of an API.
#[derive(Clone, Copy)]
pub(super) struct Description<'d>(pub &'d Value);

impl<'d> Description<'d> {
    fn operation(self, verb: Verb, route: &str) -> &'d Value {
        &self.0["paths"][route][verb.key()]
    }

    /// The fields that a request takes, in the order of the description.
    pub fn fields(self, verb: Verb, route: &str) -> Vec<Field> {
        let operation = self.operation(verb, route);
        let mut fields = Vec::new();
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let place = match parameter["in"].as_str() {
                Some("path") => Place::Path,
                Some("query") => Place::Query,
                _ => continue,
            };
            let mut schema = parameter["schema"].clone();
            if let (Some(object), Some(about)) = (schema.as_object_mut(), parameter.get("description")) {
                object.insert("description".into(), about.clone());
            }
            fields.push(Field {
                name: parameter["name"].as_str().unwrap_or_default().to_owned(),
                place,
                required: parameter["required"] == true,
                schema,
            });
        }
        let body = &operation["requestBody"]["content"]["application/json"]["schema"];
        if body.is_object() {
            let (properties, required) = self.object(body);
            fields.extend(properties.into_iter().map(|(name, schema)| Field {
                place: Place::Body,
                required: required.contains(&name),
                schema,
                name,
            }));
        }
        fields
    }

    /// Schema of the answer to a request that succeeded.
    pub fn answer(self, verb: Verb, route: &str) -> Value {
        let responses = self.operation(verb, route)["responses"].as_object();
        let success = responses
            .into_iter()
            .flatten()
            .find(|(status, _)| status.starts_with('2'));
        let content = success.and_then(|(_, response)| response["content"].as_object()?.values().next());
        content.map_or_else(|| json!({"type": "object"}), |content| content["schema"].clone())
    }

    /// The properties of an object, and those that it must have. Of an object of several forms: those of any form, and
    /// those that every form must have.
    pub fn object(self, schema: &Value) -> (Object, BTreeSet<String>) {
        if let Some(target) = self.target(schema) {
            return self.object(target);
        }
        if let Some(forms) = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array()) {
            let forms = forms.iter().filter(|form| form["type"] != "null");
            return forms
                .map(|form| self.object(form))
                .reduce(either)
                .unwrap_or_default();
        }
        let properties = schema["properties"].as_object().cloned().unwrap_or_default();
        let required = schema["required"].as_array().into_iter().flatten();
        let required = required.filter_map(|name| Some(name.as_str()?.to_owned()));
        (properties, required.collect())
    }

    fn target(self, schema: &Value) -> Option<&'d Value> {
        let name = schema["$ref"].as_str()?.strip_prefix(COMPONENTS)?;
        self.0["components"]["schemas"].get(name)
    }

    /// The schema with all that it refers to in `$defs`, and without what is no JSON Schema. `bare` leaves out what only people
    /// read.
    pub fn complete(self, mut schema: Object, bare: bool) -> Object {
        let mut named = BTreeSet::new();
        let mut whole = Value::Object(std::mem::take(&mut schema));
        rewrite(&mut whole, bare, &mut named);
        let mut definitions = Object::new();
        while let Some(name) = named.pop_first() {
            if definitions.contains_key(&name) {
                continue;
            }
            let mut definition = self.0["components"]["schemas"][name.as_str()].clone();
            rewrite(&mut definition, bare, &mut named);
            definitions.insert(name, definition);
        }
        let Value::Object(mut whole) = whole else {
            return Object::new();
        };
        if !definitions.is_empty() {
            whole.insert("$defs".into(), Value::Object(definitions));
        }
        whole
    }
}

/// What is one of two objects.
pub(super) fn either(
    (mut properties, required): (Object, BTreeSet<String>),
    (others, also): (Object, BTreeSet<String>),
) -> (Object, BTreeSet<String>) {
    for (name, schema) in others {
        match properties.get_mut(&name) {
            None => {
                properties.insert(name, schema);
            }
            Some(known) if bare(known) == bare(&schema) => {}
            Some(known) => match known.get_mut("anyOf").and_then(Value::as_array_mut) {
                Some(forms) => forms.push(schema),
                None => *known = json!({"anyOf": [known.take(), schema]}),
            },
        }
    }
    (properties, required.intersection(&also).cloned().collect())
}

/// A schema without what only people read.
fn bare(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Some(object) = schema.as_object_mut() {
        for keyword in ["description", "example", "examples"] {
            object.remove(keyword);
        }
    }
    schema
}

/// Leads references to `$defs`, notes their names, and removes what is not wanted.
fn rewrite(schema: &mut Value, bare: bool, named: &mut BTreeSet<String>) {
    match schema {
        Value::Object(object) => {
            object.retain(|keyword, _| {
                let for_people = matches!(keyword.as_str(), "description" | "examples" | "title");
                !(matches!(keyword.as_str(), "example" | "discriminator" | "xml") || bare && for_people)
            });
            if let Some(Value::String(reference)) = object.get_mut("$ref")
                && let Some(name) = reference.strip_prefix(COMPONENTS)
            {
                named.insert(name.to_owned());
                *reference = format!("{DEFINITIONS}{name}");
            }
            for (keyword, part) in object.iter_mut() {
                if keyword == "properties" {
                    // Their names are no keywords.
                    for property in part.as_object_mut().into_iter().flat_map(Map::values_mut) {
                        rewrite(property, bare, named);
                    }
                } else if !DATA.contains(&keyword.as_str()) {
                    rewrite(part, bare, named);
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|part| rewrite(part, bare, named)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
