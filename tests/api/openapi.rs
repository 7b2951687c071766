//! What must hold of the OpenAPI document of either service.

use std::collections::BTreeSet;
use std::path::PathBuf;

use regex::Regex;
use reqwest::Method;
use serde_json::{Value, json};

use crate::helpers::Client;

const METHODS: [&str; 8] = [
    "get", "put", "post", "delete", "options", "head", "patch", "trace",
];

/// The operations of a document: method, path and description.
pub fn operations(document: &Value) -> Vec<(String, String, &Value)> {
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if METHODS.contains(&method.as_str()) {
                found.push((method.to_uppercase(), path.clone(), operation));
            }
        }
    }
    found
}

/// The paths that the files of a folder under `src/http` register with `resource("…")`.
fn registered(folder: &str) -> BTreeSet<String> {
    let route = Regex::new(r#"\bresource\(\s*"([^"]+)""#).unwrap();
    let mut paths = BTreeSet::new();
    let mut folders = vec![
        PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("src/http")
            .join(folder),
    ];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let text = std::fs::read_to_string(path).unwrap();
                paths.extend(route.captures_iter(&text).map(|found| found[1].to_owned()));
            }
        }
    }
    paths
}

/// Its description is that of a protocol.
const ELSEWHERE: &str = "/mcp";

/// Every route is in the document and the reverse. A route's methods are those that it names when asked with another.
/// HEAD is part of GET (RFC 9110 section 9.3.2).
pub async fn covers_every_route(document: &Value, folder: &str, client: &Client) {
    let described: BTreeSet<(String, String)> = operations(document)
        .into_iter()
        .map(|(method, path, _)| (method, path))
        .collect();
    let mut served = BTreeSet::new();
    let placeholder = Regex::new(r"\{\w+\}").unwrap();
    for path in registered(folder).into_iter().filter(|path| path != ELSEWHERE) {
        let one = placeholder.replace_all(&path, uuid::Uuid::nil().to_string());
        let brew = Method::from_bytes(b"BREW").unwrap();
        let answer = client.request(brew, &one).send().await.unwrap();
        assert_eq!(answer.status(), 405, "{path}");
        let allowed = answer.headers()["allow"].to_str().unwrap().to_owned();
        let methods = allowed.split(", ").filter(|method| *method != "HEAD");
        served.extend(methods.map(|method| (method.to_owned(), path.clone())));
    }
    assert!(!served.is_empty());
    assert_eq!(described, served);
}

/// Every operation is named, grouped and described, and shows what a success looks like.
pub fn describes_every_operation(document: &Value) {
    let tags: Vec<&Value> = document["tags"].as_array().unwrap().iter().collect();
    let mut ids = BTreeSet::new();
    for (method, path, operation) in operations(document) {
        let place = format!("{method} {path}");
        let summary = operation["summary"].as_str().unwrap_or_default();
        assert!(!summary.is_empty(), "{place} has no summary");
        let id = operation["operationId"].as_str().unwrap();
        assert!(ids.insert(id.to_owned()), "{place} shares the id {id}");
        let tag = &operation["tags"][0];
        assert!(tags.iter().any(|known| known["name"] == *tag), "{place}: {tag}");
        let responses = operation["responses"].as_object().unwrap();
        for status in ["500", "503"] {
            assert!(responses.contains_key(status), "{place} lacks {status}");
        }
        let success: Vec<_> = responses
            .iter()
            // A sign-in begins with a redirect.
            .filter(|(status, _)| status.starts_with('2') || *status == "302")
            .collect();
        assert_eq!(success.len(), 1, "{place}");
        for (status, response) in responses {
            let response = resolved(document, response);
            let text = response["description"].as_str().unwrap_or_default();
            assert!(!text.is_empty(), "{place} does not say what {status} means");
            for (kind, content) in response["content"].as_object().into_iter().flatten() {
                assert!(
                    !content["example"].is_null(),
                    "{place} {status} {kind} has no example"
                );
            }
        }
    }
}

/// Every link leads to an operation, with parameters that it has.
pub fn links_lead_somewhere(document: &Value) {
    let all = operations(document);
    let mut links = 0;
    for (method, path, operation) in &all {
        for response in operation["responses"].as_object().unwrap().values() {
            for (name, link) in response["links"].as_object().into_iter().flatten() {
                let place = format!("{method} {path} {name}");
                let mut targets = all.iter().map(|(_, _, target)| *target);
                let target = targets.find(|target| target["operationId"] == link["operationId"]);
                let known =
                    target.unwrap_or_else(|| panic!("{place} leads nowhere"))["parameters"].as_array();
                for parameter in link["parameters"].as_object().unwrap().keys() {
                    let has = known.unwrap().iter().any(|known| known["name"] == **parameter);
                    assert!(has, "{place}: {parameter}");
                }
                links += 1;
            }
        }
    }
    assert!(links > 0);
}

/// Every reference has a target, and every example and default fits its schema.
pub fn is_consistent(document: &Value) {
    let mut pending = vec![(String::new(), document)];
    let mut examples = 0;
    while let Some((place, value)) = pending.pop() {
        match value {
            Value::Object(members) => {
                if let Some(Value::String(target)) = members.get("$ref") {
                    let found = document.pointer(target.strip_prefix('#').unwrap());
                    assert!(found.is_some(), "{place} refers to {target}, which is not there");
                }
                examples += fits(document, &place, value);
                // What stands inside an example is no schema.
                let inner = members
                    .iter()
                    .filter(|(key, _)| !["example", "examples", "default"].contains(&key.as_str()));
                pending.extend(inner.map(|(key, inner)| (format!("{place}/{key}"), inner)));
            }
            Value::Array(items) => {
                pending.extend(items.iter().map(|item| (format!("{place}[]"), item)));
            }
            _ => {}
        }
    }
    assert!(examples > 50, "only {examples} examples were checked");
}

/// Checks the examples of a schema, a body or a parameter, and counts them.
fn fits(document: &Value, place: &str, value: &Value) -> usize {
    let is_schema =
        place.contains("schema") && !place.ends_with("/properties") && !place.ends_with("/schemas");
    let schema = match value.get("schema") {
        Some(schema) if !is_schema => schema,
        _ if is_schema => value,
        _ => return 0,
    };
    let one = ["example", "default"]
        .into_iter()
        .filter_map(|key| value.get(key));
    let many = value
        .get("examples")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let examples: Vec<&Value> = one.chain(many).collect();
    if examples.is_empty() {
        return 0;
    }
    let mut root = schema.clone();
    root["components"] = document["components"].clone();
    let validator = jsonschema::draft202012::new(&root).unwrap_or_else(|error| panic!("{place}: {error}"));
    for example in &examples {
        let wrong: Vec<String> = validator
            .iter_errors(example)
            .map(|error| error.to_string())
            .collect();
        assert!(wrong.is_empty(), "{place}: {example} does not fit: {wrong:?}");
    }
    examples.len()
}

fn resolved<'d>(document: &'d Value, value: &'d Value) -> &'d Value {
    let target = value["$ref"].as_str().and_then(|target| target.strip_prefix('#'));
    target.map_or(value, |target| document.pointer(target).unwrap())
}

/// Whether the operation takes a caller without a credential.
pub fn is_open(operation: &Value) -> bool {
    operation["security"] == json!([])
}

/// Names that languages have themselves: generators rename what is called so, with a warning.
const RESERVED: [&str; 10] = [
    "Error",
    "File",
    "Interface",
    "List",
    "Map",
    "Object",
    "Set",
    "String",
    "Type",
    "list",
];

/// The document is written in the forms that generators of clients and linters read (`.ci/clients`, which runs them).
pub fn suits_generators(document: &Value) {
    let mut schemas = 0;
    visit_objects("", document, &mut |place, object| {
        let of = |keyword: &str| object.get(keyword);
        for (name, property) in of("properties").and_then(Value::as_object).into_iter().flatten() {
            assert_ne!(property["type"], "null", "{place}: {name} may only be null");
            schemas += 1;
        }
        if let Some(Value::Array(types)) = of("type") {
            let types: Vec<&Value> = types.iter().filter(|one| *one != "null").collect();
            assert_eq!(types.len(), 1, "{place} has several types");
        }
        for keyword in ["items", "additionalProperties"] {
            assert_ne!(of(keyword), Some(&json!({})), "{place}: {keyword} says nothing");
        }
        assert!(of("allOf").is_none(), "{place}: what is composed is one object");
        assert!(of("propertyNames").is_none(), "{place}: names are always texts");
    });
    assert!(schemas > 100, "{schemas}");
    assert!(document["info"]["contact"].is_object());
    let text = document.to_string();
    for name in document["components"]["schemas"].as_object().unwrap().keys() {
        assert!(
            !RESERVED.contains(&name.as_str()),
            "{name} is a word of a language"
        );
        let used = text.contains(&format!("\"#/components/schemas/{name}\""));
        assert!(used, "{name} is not used");
    }
    for (method, path, operation) in operations(document) {
        let place = format!("{method} {path}");
        for part in ["operationId", "summary", "description"] {
            let said = operation[part].as_str().unwrap_or_default();
            assert!(!said.trim().is_empty(), "{place} has no {part}");
            assert!(!RESERVED.contains(&said), "{place}: {said}");
        }
        assert!(operation["tags"][0].is_string(), "{place} has no tag");
        let statuses: Vec<&String> = operation["responses"].as_object().unwrap().keys().collect();
        let has = |start: char| statuses.iter().any(|status| status.starts_with(start));
        assert!(
            has('2') || statuses.iter().any(|status| *status == "default"),
            "{place} never succeeds"
        );
        assert!(has('4'), "{place} never refuses");
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            states_its_default(&place, parameter);
        }
    }
}

/// What a client may leave out of a query, and what then holds, stands in the schema.
fn states_its_default(place: &str, parameter: &Value) {
    let (name, schema) = (parameter["name"].as_str().unwrap(), &parameter["schema"]);
    let described = parameter["description"].as_str().unwrap_or_default();
    let has_one =
        ["limit", "offset"].contains(&name) || schema["type"] == "boolean" || described.contains("if absent");
    if parameter["in"] == "query" && has_one {
        assert!(!schema["default"].is_null(), "{place}: {name} has no default");
    }
}

/// Visits every object of a document but its examples.
fn visit_objects(place: &str, value: &Value, visit: &mut impl FnMut(&str, &serde_json::Map<String, Value>)) {
    match value {
        Value::Object(object) => {
            visit(place, object);
            for (name, part) in object {
                let is_data = ["example", "examples", "default", "enum"].contains(&name.as_str());
                if !is_data || place.ends_with("/properties") {
                    visit_objects(&format!("{place}/{name}"), part, visit);
                }
            }
        }
        Value::Array(list) => {
            for (at, part) in list.iter().enumerate() {
                visit_objects(&format!("{place}/{at}"), part, visit);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
