//! The document of the API: complete, consistent in itself, and true of the service that serves it.

use std::collections::BTreeSet;
use std::path::Path;

use regex::Regex;
use reqwest::Method;
use serde_json::{Value, json};

use crate::helpers::{Client, encode, run};
use crate::local::LocalApp;
use crate::openapi::{is_consistent, operations, suits_generators};
use crate::wrong_types;

const DOCUMENT: &str = "/api/openapi.json";
const KEYED: &str = "web.api_key = \"right key\"";

async fn document(client: &Client) -> Value {
    client.get(DOCUMENT).await.expect(200).await
}

/// What a reference in the document points to; other values stand for themselves.
fn resolved<'d>(document: &'d Value, value: &'d Value) -> &'d Value {
    match value["$ref"].as_str() {
        None => value,
        Some(target) => {
            let pointer = target.strip_prefix('#').unwrap();
            let found = document.pointer(pointer);
            found.unwrap_or_else(|| panic!("{target} points nowhere"))
        }
    }
}

/// A validator of a schema of the document, whose components it may refer to.
fn validator(document: &Value, schema: &Value) -> jsonschema::Validator {
    let mut whole = schema.clone();
    whole["components"] = document["components"].clone();
    let options = jsonschema::options().should_validate_formats(true);
    options.build(&whole).unwrap()
}

/// Every path that the source registers below `/api/`.
fn registered() -> BTreeSet<String> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src/http/local"));
    let route = Regex::new(r#"\b(?:guarded_resource|stream|resource(?:::<\w+>)?)\(\s*"([^"]+)""#).unwrap();
    let mut files = vec![folder.to_owned()];
    let mut found = BTreeSet::new();
    while let Some(file) = files.pop() {
        if file.is_dir() {
            files.extend(
                std::fs::read_dir(file)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        let named = text.matches(".service(").count();
        let paths: Vec<_> = route
            .captures_iter(&text)
            .map(|path| path[1].to_owned())
            .collect();
        let viewers = text.matches(".service(VIEWER").count();
        if viewers > 0 {
            found.extend(["/api/docs".to_owned(), "/api/docs/{file}".to_owned()]);
        }
        // The paths that do not exist are registered in a loop.
        let looped = text.matches("for path in").count();
        assert_eq!(
            named,
            paths.len() + looped + viewers,
            "{}: a way this test does not read",
            file.display()
        );
        found.extend(paths.into_iter().filter(|path| path.starts_with("/api/")));
    }
    assert!(found.len() > 20, "{found:?}");
    found
}

#[test]
fn every_method_of_every_path_is_in_the_document_and_nothing_else() {
    run(async {
        let app = LocalApp::spawn().await;
        let document = document(&app.client).await;
        let documented: BTreeSet<String> = document["paths"].as_object().unwrap().keys().cloned().collect();
        assert_eq!(documented, registered());
        for path in &documented {
            let nonsense = Method::from_bytes(b"NONSENSE").unwrap();
            let asked = path
                .replace("{id}", "0197f3a0-5a58-7c11-8a55-0f6f3f4f6a10")
                .replace("{file}", "viewer.js");
            let answer = app.client.request(nonsense, &asked).send().await.unwrap();
            assert_eq!(answer.status(), 405, "{path}");
            let allow = answer.headers()["allow"].to_str().unwrap().to_lowercase();
            let mut allowed: BTreeSet<&str> = allow.split(", ").collect();
            // HEAD is not described, as it is GET without a body (RFC 9110 section 9.3.2).
            let head = allowed.remove("head");
            let item = &document["paths"][path];
            let methods: BTreeSet<&str> = item.as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(allowed, methods, "{path}");
            let streams = !item["get"]["responses"]["200"]["content"]["text/event-stream"].is_null();
            assert_eq!(head, methods.contains("get") && !streams, "{path}");
        }
        app.stop().await;
    });
}

#[test]
fn the_document_is_written_as_generators_of_clients_read_it() {
    run(async {
        let app = LocalApp::spawn().await;
        suits_generators(&document(&app.client).await);
        app.stop().await;
    });
}

#[test]
fn the_document_is_guarded_like_everything_else() {
    run(async {
        let app = LocalApp::with(None, KEYED).await;
        let refused = app.client.get(DOCUMENT).await.expect(401).await;
        assert_eq!(refused, json!({"detail": "Valid API key required"}));
        let keyed = document(&app.client.bearer("right key")).await;
        assert_eq!(keyed["security"], json!([{"api_key": []}, {"bearer": []}]));
        app.stop().await;
        let app = LocalApp::spawn().await;
        let open = document(&app.client).await;
        assert_eq!(open["security"], json!([{}, {"api_key": []}, {"bearer": []}]));
        let foreign = app.client.with_header("origin", "https://evil.example");
        assert_eq!(foreign.get(DOCUMENT).await.status(), 403);
        app.stop().await;
    });
}

#[test]
fn each_operation_is_named_and_says_what_it_answers() {
    run(async {
        let app = LocalApp::spawn().await;
        let document = document(&app.client).await;
        assert_eq!(document["openapi"], "3.1.0");
        let tags: BTreeSet<&str> = document["tags"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tag| tag["name"].as_str().unwrap())
            .collect();
        let (mut ids, mut linked) = (BTreeSet::new(), BTreeSet::new());
        for (method, path, operation) in operations(&document) {
            let place = format!("{method} {path}");
            assert!(operation["summary"].as_str().unwrap().len() > 5, "{place}");
            assert!(tags.contains(operation["tags"][0].as_str().unwrap()), "{place}");
            let id = operation["operationId"].as_str().unwrap();
            assert!(ids.insert(id), "{id} is there twice");
            let responses = operation["responses"].as_object().unwrap();
            for status in ["401", "403", "405", "429", "500", "503"] {
                assert!(responses.contains_key(status), "{place} {status}");
            }
            let links = responses
                .values()
                .flat_map(|response| response["links"].as_object());
            linked.extend(
                links
                    .flat_map(|links| links.values())
                    .map(|link| link["operationId"].as_str().unwrap()),
            );
            for (status, response) in responses {
                let response = resolved(&document, response);
                assert!(
                    response["description"].as_str().unwrap().len() > 5,
                    "{place} {status}"
                );
            }
        }
        assert_eq!(linked, BTreeSet::from(["read_note"]));
        assert!(linked.is_subset(&ids));
        app.stop().await;
    });
}

#[test]
fn every_body_has_an_example_and_every_example_fits_its_schema() {
    run(async {
        let app = LocalApp::spawn().await;
        let document = document(&app.client).await;
        let mut count = 0;
        let mut check = |place: &str, content: &Value| {
            for media in content
                .as_object()
                .into_iter()
                .flat_map(|content| content.values())
            {
                assert!(!media["example"].is_null(), "{place} has no example");
                count += 1;
            }
        };
        for (method, path, operation) in operations(&document) {
            check(&format!("{method} {path}"), &operation["requestBody"]["content"]);
            for (status, response) in operation["responses"].as_object().unwrap() {
                let place = format!("{method} {path} {status}");
                check(&place, &resolved(&document, response)["content"]);
            }
        }
        assert!(count > 150, "{count}");
        is_consistent(&document);
        app.stop().await;
    });
}

#[test]
fn the_requests_of_the_examples_are_answered_as_documented() {
    run(async {
        let app = LocalApp::spawn().await;
        let document = document(&app.client).await;
        app.client
            .remember("APT28 (Fancy Bear) used X-Agent against 203.0.113.7.")
            .await;
        let note = app.client.recall("APT28").await.remove(0);
        // These have something of their own to change, so that the others find what they ask for.
        let spare = app.client.remember("Turla was seen at 198.51.100.77.").await;
        let spare = spare["note_id"].as_str().unwrap().to_owned();
        let other = app.client.remember("Turla is quiet in spring.").await;
        let other = other["note_id"].as_str().unwrap().to_owned();
        let by = note.clone();
        let changed = |path: &str| match path {
            "/api/notes/{id}/supersede" => Some(json!({"by": by})),
            "/api/entities/merge" => Some(json!({"from": "actor:turla", "into": "actor:apt28"})),
            "/api/entities/unmerge" => Some(json!({"entity": "actor:turla"})),
            _ => None,
        };
        for (method, path, operation) in operations(&document) {
            if path.ends_with("/stream") {
                // They never end; `streams.rs` follows them.
                continue;
            }
            let asked = Method::from_bytes(method.as_bytes()).unwrap();
            let id = match (method.as_str(), path.ends_with("/supersede")) {
                (_, true) => &other,
                ("DELETE", false) => &spare,
                _ => &note,
            };
            let target = path
                .replace("{id}", id)
                .replace("{file}", "viewer.js")
                // The example of a change lets this one wait.
                .replace("{path}", "llm.model");
            let target = format!("{target}?{}", encode(&required(operation)));
            let mut request = app.client.request(asked, &target);
            let content = &operation["requestBody"]["content"]["application/json"];
            if !content.is_null() {
                let changed = changed(&path);
                request = request.json(changed.as_ref().unwrap_or(&content["example"]));
            }
            let answer = request.send().await.unwrap();
            let status = answer.status().as_u16().to_string();
            assert_eq!(status, if path == "/api/sync" { "501" } else { "200" }, "{path}");
            let content = &operation["responses"][&status]["content"];
            let kind = answer.headers()["content-type"]
                .to_str()
                .unwrap()
                .split(';')
                .next()
                .unwrap()
                .to_owned();
            assert!(!content[&kind].is_null(), "{path} answers with {kind}");
            if kind != "application/json" {
                continue;
            }
            let body: Value = answer.json().await.unwrap();
            let schema = &operation["responses"][&status]["content"]["application/json"]["schema"];
            let errors: Vec<_> = validator(&document, schema)
                .iter_errors(&body)
                .map(|error| error.to_string())
                .collect();
            assert!(errors.is_empty(), "{method} {path}: {errors:?} in {body}");
        }
        app.stop().await;
    });
}

/// The query parameters that an operation needs, with their examples.
fn required(operation: &Value) -> Vec<(&str, &str)> {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let needed = parameters.filter(|one| one["in"] == "query" && one["required"] == true);
    needed
        .map(|one| (one["name"].as_str().unwrap(), one["example"].as_str().unwrap()))
        .collect()
}

/// A body or query with one field at a bound, and whether the bound allows it.
fn at_bounds(schema: &Value) -> Vec<(Value, bool)> {
    let number = |keyword: &str| schema[keyword].as_u64();
    let text = |length: u64| json!("x".repeat(usize::try_from(length).unwrap()));
    let mut cases = Vec::new();
    if let Some(least) = number("minimum") {
        cases.push((json!(least), true));
        cases.extend(least.checked_sub(1).map(|below| (json!(below), false)));
    }
    if let Some(most) = number("maximum") {
        cases.extend([(json!(most), true), (json!(most + 1), false)]);
    }
    if let Some(least) = number("minLength") {
        cases.push((text(least), true));
        cases.extend(least.checked_sub(1).map(|below| (text(below), false)));
    }
    if let Some(most) = number("maxLength") {
        cases.extend([(text(most), true), (text(most + 1), false)]);
    }
    cases
}

#[test]
fn the_bounds_are_those_of_the_service_at_this_moment() {
    run(async {
        let app = LocalApp::spawn().await;
        let change = json!({"web.max_query_chars": 70, "web.max_content_chars": 90, "web.max_k": 7});
        let changed = app
            .client
            .request(Method::PUT, "/api/config")
            .json(&change)
            .send()
            .await
            .unwrap();
        assert_eq!(changed.status(), 200);
        let document = document(&app.client).await;
        let schemas = &document["components"]["schemas"];
        assert_eq!(schemas["RecallBody"]["properties"]["query"]["maxLength"], 70);
        assert_eq!(schemas["RecallBody"]["properties"]["k"]["default"], 7);
        assert_eq!(schemas["IngestItem"]["properties"]["content"]["maxLength"], 90);
        app.client.remember("APT28 used X-Agent.").await;
        let mut asked = 0;
        for (path, name) in [
            ("/api/recall", "RecallBody"),
            ("/api/remember", "RememberBody"),
            ("/api/synthesize", "SynthesizeBody"),
        ] {
            let example =
                &document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["example"];
            for (field, schema) in schemas[name]["properties"].as_object().unwrap() {
                for (value, fits) in at_bounds(schema) {
                    let mut body = example.clone();
                    body[field] = value;
                    let answer = app.client.post(path, &body).await;
                    assert_eq!(answer.status(), if fits { 200 } else { 422 }, "{path} {body}");
                    asked += 1;
                }
            }
        }
        for (_, path, operation) in operations(&document) {
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            for parameter in parameters.filter(|parameter| parameter["in"] == "query") {
                for (value, fits) in at_bounds(&parameter["schema"]) {
                    let name = parameter["name"].as_str().unwrap();
                    let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    // The last value of a name counts.
                    let mut query = required(operation);
                    query.push((name, &value));
                    let status = app
                        .client
                        .get(&format!("{path}?{}", encode(&query)))
                        .await
                        .status();
                    // No node has an id like that.
                    let is_unknown = ["id", "around"].contains(&name) && !value.is_empty();
                    let fitting = if is_unknown { 404 } else { 200 };
                    assert_eq!(status, if fits { fitting } else { 422 }, "{path} {name}={value}");
                    asked += 1;
                }
            }
        }
        assert!(asked > 50, "{asked}");
        app.stop().await;
    });
}

#[test]
fn errors_of_wrong_types_are_worded_as_json() {
    run(async {
        let app = LocalApp::spawn().await;
        let document = document(&app.client).await;
        let sent = wrong_types::are_worded_as_json(&document, &app.client, &[], false).await;
        assert!(sent > 100, "{sent}");
        app.stop().await;
    });
}

#[test]
fn unknown_query_parameters_are_refused_on_every_route() {
    run(async {
        let app = LocalApp::spawn().await;
        let document = document(&app.client).await;
        // Pages are no answers of the API, and the last one is 501 whatever is sent.
        let except = ["/api/docs", "/api/docs/{file}", "/api/sync"];
        wrong_types::unknown_parameters_are_refused(&document, &app.client, &except, 422).await;
        app.stop().await;
    });
}

#[test]
fn refusals_of_the_http_layer_have_the_error_object() {
    run(async {
        let app = LocalApp::spawn().await;
        wrong_types::refusals_of_the_http_layer_have_a_body(app.app.address(), "detail").await;
        app.stop().await;
    });
}

#[test]
fn the_bounds_of_an_ingest_hold_for_the_list_and_for_each_item() {
    run(async {
        let app = LocalApp::spawn().await;
        let document = document(&app.client).await;
        let schemas = &document["components"]["schemas"];
        let items = &schemas["IngestBody"]["properties"]["items"];
        assert_eq!((&items["minItems"], &items["maxItems"]), (&json!(1), &json!(100)));
        assert_eq!(schemas["IngestBody"]["required"], json!(["items"]));
        assert_eq!(schemas["IngestItem"]["required"], json!(["content"]));
        for (field, schema) in schemas["IngestItem"]["properties"].as_object().unwrap() {
            for (value, fits) in at_bounds(schema) {
                let mut item = json!({"content": "Turla uses Snake.", "evolve": false});
                item[field] = value;
                let answer = app.client.post("/api/ingest", &json!({"items": [item]})).await;
                let (status, text) = answer.whole().await;
                let failed = status == 422 || text.contains("\"failed\":1");
                assert_eq!(failed, !fits, "{field} {text}");
            }
        }
        app.stop().await;
    });
}
