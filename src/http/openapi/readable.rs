//! The forms of a document that generators of clients and linters read. They take the parts of JSON Schema that OpenAPI
//! 3.0 has too, and little else: a schema that says the same in one of these forms is written in that one.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

const COMPONENTS: &str = "#/components/schemas/";
/// Keywords whose values are data and no schemas.
const DATA: [&str; 5] = ["example", "examples", "default", "enum", "const"];
/// A day or a time (RFC 3339, section 5.6). Generators know no schema that is one of two formats.
pub(in crate::http) const DAY_OR_TIME: &str =
    "^[0-9]{4}-[0-9]{2}-[0-9]{2}([Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2}))?$";

type Schemas = Map<String, Value>;

/// Rewrites a document. Calls of it after the first change nothing.
pub(in crate::http) fn simplify(document: &mut Value) {
    let schemas = document["components"]["schemas"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    each_object(document, &mut |object| simplify_schema(object, &schemas));
    describe_operations(document);
    state_defaults(document, &schemas);
    remove_unused(document);
}

/// Visits every object of a document, innermost first, and none of its examples.
fn each_object(value: &mut Value, visit: &mut impl FnMut(&mut Map<String, Value>)) {
    match value {
        Value::Object(object) => {
            for (name, part) in object.iter_mut() {
                if name == "properties" {
                    // Their names are no keywords.
                    for property in part.as_object_mut().into_iter().flat_map(Map::values_mut) {
                        each_object(property, visit);
                    }
                } else if !DATA.contains(&name.as_str()) {
                    each_object(part, visit);
                }
            }
            visit(object);
        }
        Value::Array(list) => list.iter_mut().for_each(|part| each_object(part, visit)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn simplify_schema(schema: &mut Map<String, Value>, schemas: &Schemas) {
    merge_parts(schema, schemas);
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        // One that may only be null is one to leave out.
        properties.retain(|_, property| property["type"] != "null");
    }
    if schema.get("propertyNames") == Some(&json!({"type": "string"})) {
        schema.remove("propertyNames");
    }
    if schema.get("additionalProperties") == Some(&json!({})) {
        schema.insert("additionalProperties".into(), json!(true));
    }
    if schema.get("items") == Some(&json!({})) {
        let any = json!({"type": "object", "additionalProperties": true});
        schema.insert("items".into(), any);
    }
    name_words(schema);
    join_times(schema);
    let first = schema.get("examples").and_then(|all| all.get(0)).cloned();
    if let Some(first) = first
        && schema.contains_key("type")
    {
        schema.entry("example").or_insert(first);
    }
}

/// Makes one object of the parts of `allOf`, if all of them are objects.
fn merge_parts(schema: &mut Map<String, Value>, schemas: &Schemas) {
    let Some(Value::Array(parts)) = schema.get("allOf") else {
        return;
    };
    let mut whole = Map::new();
    for part in parts.clone() {
        if add_part(&mut whole, &part, schemas).is_none() {
            return;
        }
    }
    schema.remove("allOf");
    for (keyword, value) in whole {
        schema.entry(keyword).or_insert(value);
    }
}

/// Adds the fields of an object to another; `None` if the part is no object.
fn add_part(whole: &mut Map<String, Value>, part: &Value, schemas: &Schemas) -> Option<()> {
    if let Some(name) = part["$ref"].as_str() {
        let mut target = schemas.get(name.strip_prefix(COMPONENTS)?)?.clone();
        each_object(&mut target, &mut |object| simplify_schema(object, schemas));
        return add_part(whole, &target, schemas);
    }
    let object = part.as_object().filter(|_| part["type"] == "object")?;
    for (keyword, value) in object {
        let entry = whole.entry(keyword.clone());
        let known = entry.or_insert_with(|| value.clone());
        match (known, value) {
            (Value::Object(known), Value::Object(more)) => known.extend(more.clone()),
            (Value::Array(known), Value::Array(more)) if keyword == "required" => {
                known.extend(more.clone());
                let mut seen = BTreeSet::new();
                known.retain(|name| seen.insert(name.to_string()));
            }
            _ => {}
        }
    }
    // Examples of parts are none of the whole.
    for part_only in ["example", "examples", "description", "title"] {
        whole.remove(part_only);
    }
    Some(())
}

/// A pattern that only lists words becomes an enumeration.
fn name_words(schema: &mut Map<String, Value>) {
    let Some(pattern) = schema.get("pattern").and_then(Value::as_str) else {
        return;
    };
    let Some(inner) = pattern.strip_prefix('^').and_then(|rest| rest.strip_suffix('$')) else {
        return;
    };
    let inner = inner
        .strip_prefix("(?:")
        .and_then(|rest| rest.strip_suffix(')'))
        .unwrap_or(inner);
    let words: Vec<&str> = inner.split('|').collect();
    let is_word =
        |word: &&str| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if schema.get("type") == Some(&json!("string")) && words.iter().all(is_word) {
        let words = json!(words);
        schema.remove("pattern");
        schema.entry("enum").or_insert(words);
    }
}

/// A text of one of two formats of time becomes one with a pattern.
fn join_times(schema: &mut Map<String, Value>) {
    let Some(Value::Array(forms)) = schema.get("anyOf") else {
        return;
    };
    if forms
        .iter()
        .all(|form| form["format"] == "date" || form["format"] == "date-time")
    {
        schema.remove("anyOf");
        schema.entry("type").or_insert_with(|| json!("string"));
        schema.insert("pattern".into(), json!(DAY_OR_TIME));
        schema.entry("example").or_insert_with(|| json!("2024-05-01"));
    }
}

/// Each operation without a longer description says what it requires, as its group does.
fn describe_operations(document: &mut Value) {
    let groups: Map<String, Value> = document["tags"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|tag| Some((tag["name"].as_str()?.to_owned(), tag["description"].clone())))
        .collect();
    for operation in operations(document) {
        let group = operation["tags"][0].as_str().and_then(|tag| groups.get(tag));
        let group = group.and_then(Value::as_str).unwrap_or_default();
        let required = group
            .split_inclusive(". ")
            .find(|said| said.starts_with("Requires "));
        let text = match required {
            _ if operation["security"] == json!([]) => "Needs no credential.",
            Some(required) => required.trim(),
            None => "Needs a credential of this service, where it asks for one.",
        };
        let text = json!(text);
        if let Some(operation) = operation.as_object_mut() {
            operation.entry("description").or_insert(text);
        }
    }
}

/// What a parameter is without a value stands in its schema: `…; 20 if absent` in its description, and `false` for a switch.
fn state_defaults(document: &mut Value, schemas: &Schemas) {
    let parameters = operations(document)
        .filter_map(|operation| operation.get_mut("parameters")?.as_array_mut())
        .flatten();
    for parameter in parameters.filter(|parameter| parameter["in"] == "query") {
        let said = parameter["description"].as_str().unwrap_or_default();
        let stated = said
            .split_once("; ")
            .and_then(|(_, rest)| rest.strip_suffix(" if absent."));
        let default = match stated {
            Some(word) => word
                .parse()
                .map_or_else(|_| json!(word), |number: u64| json!(number)),
            None if parameter["schema"]["type"] == "boolean" => json!(false),
            None => continue,
        };
        // Beside a reference, generators read no default, or no reference.
        let target = parameter["schema"]["$ref"].as_str();
        let target = target.and_then(|target| schemas.get(target.strip_prefix(COMPONENTS)?));
        if let Some(target) = target.cloned() {
            parameter["schema"] = target;
        }
        if let Some(schema) = parameter["schema"].as_object_mut() {
            schema.entry("default").or_insert(default);
        }
    }
}

/// The operations of a document.
fn operations(document: &mut Value) -> impl Iterator<Item = &mut Value> {
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    let items = paths.filter_map(|(_, item)| item.as_object_mut());
    items.flatten().map(|(_, operation)| operation)
}

/// Removes components that nothing refers to.
fn remove_unused(document: &mut Value) {
    loop {
        let mut used = BTreeSet::new();
        each_object(document, &mut |object| {
            let target = object.get("$ref").and_then(Value::as_str);
            used.extend(
                target
                    .and_then(|target| target.strip_prefix(COMPONENTS))
                    .map(str::to_owned),
            );
        });
        let Some(schemas) = document["components"]["schemas"].as_object_mut() else {
            return;
        };
        let before = schemas.len();
        schemas.retain(|name, _| used.contains(name));
        if schemas.len() == before {
            return;
        }
    }
}

/// Makes components of the objects within a component, named after where they are: generators name them by their fields,
/// and a field with a point in its name would share a name with a field of a field.
pub(in crate::http) fn name_inner_objects(document: &mut Value, component: &str) {
    let Some(schemas) = document["components"]["schemas"].as_object_mut() else {
        return;
    };
    if let Some(mut whole) = schemas.remove(component) {
        let mut named = Map::new();
        name_objects_of(&mut whole, component, &mut named);
        schemas.extend(named);
        schemas.insert(component.to_owned(), whole);
    }
}

fn name_objects_of(schema: &mut Value, place: &str, named: &mut Map<String, Value>) {
    let properties = schema["properties"].as_object_mut().into_iter().flatten();
    for (name, property) in properties.filter(|(_, property)| property["properties"].is_object()) {
        let words = name.split(['.', '_']).map(|word| {
            let (first, rest) = word.split_at(word.len().min(1));
            first.to_uppercase() + rest
        });
        let own = format!("{place}{}", words.collect::<String>());
        name_objects_of(property, &own, named);
        let object = std::mem::replace(property, json!({"$ref": format!("{COMPONENTS}{own}")}));
        named.insert(own, object);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn simple(mut schema: Value, schemas: &Value) -> Value {
        let schemas = schemas.as_object().unwrap();
        each_object(&mut schema, &mut |object| simplify_schema(object, schemas));
        schema
    }

    #[test]
    fn a_schema_is_written_in_the_form_that_generators_read() {
        let schemas =
            json!({"Base": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}}});
        for (given, simplified) in [
            (
                json!({"type": "object", "properties": {"gone": {"type": "null"}, "default": {"items": {}, "type": "array"}}}),
                json!({"type": "object", "properties": {"default": {"type": "array",
                    "items": {"type": "object", "additionalProperties": true}}}}),
            ),
            (
                json!({"type": "object", "additionalProperties": {}, "propertyNames": {"type": "string"}}),
                json!({"type": "object", "additionalProperties": true}),
            ),
            (
                json!({"type": "string", "pattern": "^(?:pending|accepted)$"}),
                json!({"type": "string", "enum": ["pending", "accepted"]}),
            ),
            (
                json!({"type": "string", "pattern": "^a+$"}),
                json!({"type": "string", "pattern": "^a+$"}),
            ),
            (
                json!({"anyOf": [{"type": "string", "format": "date"}, {"type": "string", "format": "date-time"}]}),
                json!({"type": "string", "pattern": DAY_OR_TIME, "example": "2024-05-01"}),
            ),
            (
                json!({"description": "Both.", "allOf": [{"$ref": "#/components/schemas/Base"},
                    {"type": "object", "required": ["id", "name"], "properties": {"name": {"type": "string"}}}]}),
                json!({"description": "Both.", "type": "object", "required": ["id", "name"],
                    "properties": {"id": {"type": "string"}, "name": {"type": "string"}}}),
            ),
            (
                json!({"allOf": [{"type": "string"}]}),
                json!({"allOf": [{"type": "string"}]}),
            ),
        ] {
            assert_eq!(simple(given.clone(), &schemas), simplified, "{given}");
        }
    }

    #[test]
    fn the_pattern_of_a_day_or_time_knows_both() {
        let pattern = regex::Regex::new(DAY_OR_TIME).unwrap();
        for time in [
            "2024-05-01",
            "2024-05-01T10:00:00Z",
            "2024-05-01t10:00:00.25+02:00",
        ] {
            assert!(pattern.is_match(time), "{time}");
        }
        for other in ["2024-05", "2024-05-01T10:00", "yesterday", "2024-05-01T10:00:00"] {
            assert!(!pattern.is_match(other), "{other}");
        }
    }

    #[test]
    fn a_field_with_a_point_and_a_field_of_a_field_share_a_component() {
        let inner = json!({"type": "object", "properties": {"gate": {"type": "integer"}}});
        let mut document = json!({"components": {"schemas": {"Change": {"type": "object", "properties": {
            "actors": {"type": "object", "properties": {"writer": inner}}, "actors.writer": inner}}}}});
        name_inner_objects(&mut document, "Change");
        let target = json!({"$ref": "#/components/schemas/ChangeActorsWriter"});
        let schemas = &document["components"]["schemas"];
        assert_eq!(schemas["Change"]["properties"]["actors.writer"], target);
        assert_eq!(schemas["ChangeActors"]["properties"]["writer"], target);
        assert_eq!(schemas["ChangeActorsWriter"], inner);
    }
}
