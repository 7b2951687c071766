//! A value of a wrong type in any field of any body: the error speaks of JSON, and null in an optional field is an absent
//! one. The fields come from the OpenAPI document, so that those of new routes are tried too.

use regex::Regex;
use reqwest::Method;
use serde_json::{Value, json};

use crate::helpers::{Client, encode};
use crate::openapi::operations;

/// Words of the language and the libraries that the program is made with.
const FOREIGN: &str = r"(?i)expected |invalid type|invalid value|\b[fiu](8|16|32|64|128)\b|\busize\b|\bstruct\b|\bsequence\b|\benum\b|\bvariant\b|\bborrowed\b|UUID parsing|premature|\ba map\b|\bserde\b|Option<";
/// A variable that was not set is no request to commit everything.
const NEVER_NULL: &str = "item_ids";

/// A field: where it is, its types, and whether it may be absent.
struct Field {
    pointer: String,
    types: Vec<String>,
    is_optional: bool,
}

fn resolved<'d>(document: &'d Value, schema: &'d Value) -> &'d Value {
    match schema["$ref"].as_str() {
        Some(target) => resolved(document, document.pointer(&target[1..]).unwrap()),
        None => schema,
    }
}

/// The types that a schema allows.
fn types(document: &Value, schema: &Value) -> Vec<String> {
    let schema = resolved(document, schema);
    let own = match &schema["type"] {
        Value::String(one) => vec![one.clone()],
        Value::Array(all) => all.iter().map(|one| one.as_str().unwrap().to_owned()).collect(),
        _ => Vec::new(),
    };
    let parts = ["oneOf", "anyOf", "allOf"]
        .into_iter()
        .filter_map(|key| schema[key].as_array());
    let inner = parts.flatten().flat_map(|part| types(document, part));
    own.into_iter().chain(inner).collect()
}

/// The fields that an example has, with what the schema says of each.
fn fields(document: &Value, schema: &Value, example: &Value, pointer: &str, found: &mut Vec<Field>) {
    let schema = resolved(document, schema);
    for key in ["oneOf", "anyOf", "allOf"] {
        for part in schema[key].as_array().into_iter().flatten() {
            fields(document, part, example, pointer, found);
        }
    }
    if let Some(items) = schema.get("items")
        && let Some(first) = example.get(0)
    {
        fields(document, items, first, &format!("{pointer}/0"), found);
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let pointer = format!("{pointer}/{name}");
        let required = schema["required"].as_array().into_iter().flatten();
        let types = types(document, property);
        if types.is_empty() || found.iter().any(|known| known.pointer == pointer) {
            continue;
        }
        fields(document, property, &example[name], &pointer, found);
        found.push(Field {
            pointer,
            types,
            is_optional: !required.into_iter().any(|required| required == name.as_str()),
        });
    }
}

/// The example with another value in one place; `None` if its parent isn't there.
fn with(example: &Value, pointer: &str, value: &Value) -> Option<Value> {
    let mut changed = example.clone();
    let (parent, name) = pointer.rsplit_once('/')?;
    changed
        .pointer_mut(parent)?
        .as_object_mut()?
        .insert(name.to_owned(), value.clone());
    Some(changed)
}

fn is_of(value: &Value, types: &[String]) -> bool {
    types.iter().any(|name| match name.as_str() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" | "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        _ => value.is_object(),
    })
}

/// Sends wrong types to every field of every JSON body; returns how many. `null_is_absent` says whether null in an optional
/// field must be taken.
pub async fn are_worded_as_json(
    document: &Value,
    client: &Client,
    except: &[&str],
    null_is_absent: bool,
) -> usize {
    let foreign = Regex::new(FOREIGN).unwrap();
    let id = Regex::new(r"\{\w+\}").unwrap();
    let wrong = [
        json!(null),
        json!(true),
        json!(5),
        json!(1.5),
        json!("x"),
        json!([]),
        json!([5]),
        json!({}),
    ];
    let mut sent = 0;
    for (method, path, operation) in operations(document) {
        let content = &operation["requestBody"]["content"]["application/json"];
        if content.is_null() || except.contains(&path.as_str()) {
            continue;
        }
        let mut all = Vec::new();
        let example = &content["example"];
        fields(document, &content["schema"], example, "", &mut all);
        assert!(!all.is_empty(), "{method} {path} has no field");
        let url = id.replace_all(&path, uuid::Uuid::nil().to_string());
        for field in all {
            for value in &wrong {
                let name = field.pointer.rsplit_once('/').unwrap().1;
                let is_null = null_is_absent && value.is_null() && field.is_optional && name != NEVER_NULL;
                if is_of(value, &field.types) && !is_null {
                    continue;
                }
                let Some(body) = with(example, &field.pointer, value) else {
                    continue;
                };
                let method = Method::from_bytes(method.as_bytes()).unwrap();
                let answer = client
                    .request(method.clone(), &url)
                    .json(&body)
                    .send()
                    .await
                    .unwrap();
                let status = answer.status().as_u16();
                // An archive is no text.
                let is_error = (400..).contains(&status);
                let text = answer.text().await.unwrap();
                let text = if is_error { text } else { String::new() };
                let place = format!("{method} {path} {} {value}: {status} {text}", field.pointer);
                assert!(status < 500, "{place}");
                assert!(!foreign.is_match(&text), "{place}");
                if is_null {
                    let said = text.split(": ").next().unwrap_or_default();
                    assert!(![400, 422].contains(&status) || !said.contains(name), "{place}");
                }
                sent += 1;
            }
        }
    }
    sent
}

/// Sends a parameter that no route has to all of them.
pub async fn unknown_parameters_are_refused(document: &Value, client: &Client, except: &[&str], status: u16) {
    let id = Regex::new(r"\{\w+\}").unwrap();
    let mut asked = 0;
    for (method, path, operation) in operations(document) {
        if except.contains(&path.as_str()) {
            continue;
        }
        let url = id.replace_all(&path, uuid::Uuid::nil().to_string());
        let known = operation["parameters"].as_array().into_iter().flatten();
        let known = known.filter(|parameter| parameter["in"] == "query");
        let names = known.map(|parameter| parameter["name"].as_str().unwrap());
        let mistyped = names.map(|name| (format!("{name}x"), Some(name)));
        for (name, meant) in mistyped.chain([("wibble".to_owned(), None)]) {
            let url = format!("{url}?{}", encode(&[(&name, "1")]));
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            let answer = client.request(method.clone(), &url).send().await.unwrap();
            let (got, text) = (answer.status().as_u16(), answer.text().await.unwrap());
            assert_eq!(got, status, "{method} {url}: {text}");
            assert!(text.contains(&name), "{method} {url}: {text}");
            if let Some(meant) = meant.filter(|meant| meant.len() > 1) {
                assert!(
                    text.contains("did you mean") && text.contains(meant),
                    "{method} {url}: {text}"
                );
            }
            asked += 1;
        }
    }
    assert!(asked > 20, "only {asked} were asked");
}

/// The bytes that a service answers to these, read to the end of the connection.
pub fn raw(address: std::net::SocketAddr, bytes: &[u8]) -> String {
    use std::io::{Read, Write};
    let mut connection = std::net::TcpStream::connect(address).unwrap();
    connection
        .set_read_timeout(Some(std::time::Duration::from_secs(30)))
        .unwrap();
    connection.write_all(bytes).unwrap();
    let mut answer = Vec::new();
    // A connection that is reset after the answer has given it all.
    connection.read_to_end(&mut answer).ok();
    String::from_utf8_lossy(&answer).into_owned()
}

/// What is no HTTP is refused with the error object of the API, under `key`.
pub async fn refusals_of_the_http_layer_have_a_body(address: std::net::SocketAddr, key: &'static str) {
    let long = "x".repeat(70_000);
    for (request, status) in [
        ("rubbish\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/1.1\r\nhost: a\r\nbad header\r\n\r\n".to_owned(), 400),
        (format!("GET /{long} HTTP/1.1\r\nhost: a\r\n\r\n"), 400),
        (
            format!("GET / HTTP/1.1\r\nhost: a\r\nx-long: {long}{long}\r\n\r\n"),
            431,
        ),
    ] {
        let answer = tokio::task::spawn_blocking(move || (raw(address, request.as_bytes()), request));
        let (answer, request) = answer.await.unwrap();
        let shown = &request[..request.len().min(60)];
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let got: u16 = head.split(' ').nth(1).unwrap().parse().unwrap();
        // How far the overlong ones are read depends on how their bytes arrive.
        assert!(
            got == status || (request.len() > 1000 && [400, 431].contains(&got)),
            "{shown}: {head}"
        );
        assert!(
            head.to_lowercase().contains("content-type: application/json"),
            "{shown}: {head}"
        );
        let body: Value = serde_json::from_str(body).unwrap();
        assert!(!body[key].as_str().unwrap().is_empty(), "{shown}: {body}");
    }
}
