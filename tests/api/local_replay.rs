//! Every recorded request of the tool this API comes from, sent to our own service: status, content type and the
//! fields of the answer with their types must agree, or the deviation stands in the list with its reason.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::Value;

use crate::helpers::{run, shared};
use crate::local::LocalApp;

/// A recorded exchange in which we answer otherwise.
struct Deviation {
    about: &'static str,
    applies: fn(&Exchange) -> bool,
    /// Our status; the recorded one when it is the body alone that differs.
    status: Option<u16>,
    reason: &'static str,
}

struct Exchange {
    run: String,
    note: String,
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Value,
    status: u16,
    content_type: String,
    response: Value,
}

fn exchanges() -> Option<Vec<Exchange>> {
    let file = shared("reference/local-api-peer-recorded.jsonl")?;
    let text = std::fs::read_to_string(file).unwrap();
    let text_of = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let read = |line: &str| {
        let value: Value = serde_json::from_str(line).unwrap();
        let headers = value["req_headers"].as_object().into_iter().flatten();
        Exchange {
            run: text_of(&value["run"]),
            note: text_of(&value["note"]),
            method: value["method"].as_str().unwrap_or("GET").to_owned(),
            path: text_of(&value["path"]),
            headers: headers
                .map(|(name, value)| (name.clone(), text_of(value)))
                .collect(),
            body: value["body"].clone(),
            status: u16::try_from(value["status"].as_u64().unwrap()).unwrap(),
            content_type: text_of(&value["content_type"]),
            response: value["response"].clone(),
        }
    };
    Some(text.lines().map(read).collect())
}

const DEVIATIONS: &[Deviation] = &[
    Deviation {
        about: "plain-text 500",
        applies: |exchange| exchange.status == 500 && exchange.note != "NaN",
        status: Some(200),
        reason: "defect 3: text that looks like a prompt injection is data",
    },
    Deviation {
        about: "NaN",
        applies: |exchange| exchange.note == "NaN",
        status: Some(422),
        reason: "defect 3: NaN is not JSON, and every error is JSON",
    },
    Deviation {
        about: "no log file by default",
        applies: |exchange| {
            exchange.run == "default-nokey"
                && exchange.path.starts_with("/api/logs")
                && exchange.status == 200
        },
        status: None,
        reason: "the log file is on by default, so the lines of the log take the place of the error",
    },
    Deviation {
        about: "log lines",
        applies: |exchange| exchange.run == "restart-logfile" && exchange.path.starts_with("/api/logs"),
        status: None,
        reason: "the fields of a log line are the program's own; event, level and time are there",
    },
    Deviation {
        about: "unknown configuration keys",
        applies: |exchange| {
            [
                "unknown section",
                "unknown scalar",
                "section replaced by scalar",
                "nested secrets",
            ]
            .contains(&exchange.note.as_str())
        },
        status: Some(422),
        reason: "defect 5: unknown keys and wrong types are refused",
    },
    Deviation {
        about: "sync",
        applies: |exchange| exchange.path == "/api/sync",
        status: Some(501),
        reason: "the contract: always 501, whatever the body; the body of the answer is unspecified",
    },
    Deviation {
        about: "pages and documentation of the peer",
        applies: |exchange| {
            ["/redoc", "/docs", "/openapi.json", "/auth/", "/static/", "/ui/"]
                .iter()
                .any(|path| exchange.path.starts_with(path))
        },
        status: Some(404),
        reason: "not in the contract; the pages come with an issue of their own, and nothing is fetched from outside",
    },
    Deviation {
        about: "bodies of callers without a key or over their limit",
        applies: |exchange| {
            exchange.run == "apikey-rl10" && exchange.method == "POST" && exchange.status == 422
        },
        status: None,
        reason: "a body is not read before the caller is known: 401 or 429 comes first",
    },
    Deviation {
        about: "a path that does not exist, without the key",
        applies: |exchange| exchange.path == "/api/nope" && exchange.note.contains("none sent"),
        status: Some(401),
        reason: "the contract: all paths under /api/ are guarded",
    },
    Deviation {
        about: "loopback network",
        applies: |exchange| exchange.run == "nonloopback" && exchange.status == 503,
        status: Some(200),
        reason: "all of 127.0.0.0/8 is loopback (issue: Guard)",
    },
    Deviation {
        about: "an empty tier filter",
        applies: |exchange| exchange.path.contains("tier=zzz"),
        status: None,
        reason: "the peer echoes the tier that was asked for; here the filter filters",
    },
    Deviation {
        about: "features",
        applies: |exchange| exchange.path == "/api/edition",
        status: None,
        reason: "our own capability names; those that the contract names as false are false",
    },
];

/// What a value is, without its content.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Objects whose keys are data.
const MAPS: [&str; 2] = ["entity_index", "top_intents"];
/// Fields that we add.
const ADDED: [&str; 1] = ["intent"];

/// Where our answer has other fields, or other types of them.
fn differences(path: &str, theirs: &Value, ours: &Value, found: &mut Vec<String>) {
    match (theirs, ours) {
        (Value::Object(theirs), Value::Object(ours)) => {
            let last = path.rsplit('.').next().unwrap_or_default();
            let names =
                |map: &serde_json::Map<String, Value>| -> BTreeSet<String> { map.keys().cloned().collect() };
            if !MAPS.contains(&last) {
                for name in names(theirs).symmetric_difference(&names(ours)) {
                    if !ADDED.contains(&name.as_str()) {
                        found.push(format!("{path}.{name} is on one side only"));
                    }
                }
            }
            for (name, theirs) in theirs {
                if let Some(ours) = ours.get(name) {
                    differences(&format!("{path}.{name}"), theirs, ours, found);
                } else if last == "entity_index" {
                    found.push(format!("{path}.{name} is missing"));
                }
            }
        }
        (Value::Array(theirs), Value::Array(ours)) => {
            if let (Some(theirs), Some(ours)) = (theirs.first(), ours.first()) {
                differences(&format!("{path}[]"), theirs, ours, found);
            }
        }
        // What was null there may have a value here.
        (Value::Null, _) => {}
        (theirs, ours) if kind(theirs) == kind(ours) => {}
        (theirs, ours) => found.push(format!(
            "{path} is {} there and {} here",
            kind(theirs),
            kind(ours)
        )),
    }
}

async fn replay(app: &LocalApp, exchange: &Exchange, problems: &mut Vec<String>) {
    let name = format!("{} {} ({})", exchange.method, exchange.path, exchange.note);
    if exchange.status == 429 || exchange.note.starts_with("rate limited") {
        // Of the requests that used the window up only some were recorded.
        for _ in 0..10 {
            let version = app.client.request(Method::GET, "/api/version");
            version.header("x-api-key", "sekret-key").send().await.unwrap();
        }
    }
    let method = Method::from_bytes(exchange.method.as_bytes()).unwrap();
    let mut request = app.client.request(method, &exchange.path);
    for (header, value) in &exchange.headers {
        request = request.header(header, value);
    }
    request = match &exchange.body {
        Value::Null => request,
        Value::String(raw) if exchange.note == "bad utf8" => {
            assert!(raw.contains('\u{fffd}'));
            request.body(b"{\"content\":\"\xff\xfe\"}".to_vec())
        }
        Value::String(raw) if raw.starts_with("(long) ") => {
            let text = "filler sentence number one. ".repeat(78) + "C2 203.0.113.77";
            request.json(&serde_json::json!({"content": format!("Long report about FIN7. {text}")}))
        }
        Value::String(raw) => request.body(raw.clone()),
        body => request.json(body),
    };
    let answer = request.send().await.unwrap();
    let status = answer.status().as_u16();
    let content_type = answer.headers()["content-type"].to_str().unwrap().to_owned();
    let deviation = DEVIATIONS.iter().find(|deviation| (deviation.applies)(exchange));
    let expected = deviation.and_then(|deviation| deviation.status);
    let refused_first = deviation.is_some_and(|deviation| deviation.about.starts_with("bodies of"));
    if refused_first {
        if status != 401 && status != 429 {
            problems.push(format!("{name}: status {status}"));
        }
    } else if status != expected.unwrap_or(exchange.status) {
        let reason = deviation.map_or("", |deviation| deviation.reason);
        problems.push(format!(
            "{name}: status {status}, recorded {} {reason}",
            exchange.status
        ));
    }
    let main = |text: &str| text.split(';').next().unwrap_or_default().trim().to_owned();
    if deviation.is_some() {
        if main(&content_type) != "application/json" && !content_type.starts_with("text/html") {
            problems.push(format!("{name}: {content_type}"));
        }
        return;
    }
    if main(&content_type) != main(&exchange.content_type) {
        problems.push(format!(
            "{name}: {content_type}, recorded {}",
            exchange.content_type
        ));
    }
    if main(&content_type) != "application/json" {
        return;
    }
    let ours: Value = answer.json().await.unwrap();
    let mut found = Vec::new();
    differences("", &exchange.response, &ours, &mut found);
    // An empty list there: what a remembered note puts into the graph is the point of defect 1.
    problems.extend(found.into_iter().map(|what| format!("{name}: {what}")));
    if status == 422 && exchange.response != ours {
        problems.push(format!("{name}: 422 is {ours}, recorded {}", exchange.response));
    }
}

#[test]
fn every_recorded_exchange_is_answered_alike_or_listed() {
    let Some(exchanges) = exchanges() else { return };
    assert_eq!(exchanges.len(), 138);
    for deviation in DEVIATIONS {
        assert!(
            exchanges.iter().any(|exchange| (deviation.applies)(exchange)),
            "{} deviates from nothing",
            deviation.about
        );
    }
    run(async move {
        let mut problems = Vec::new();
        let dir = tempfile::tempdir().unwrap();
        for name in [
            "default-nokey",
            "restart-logfile",
            "apikey-rl10",
            "nonloopback",
            "default-ollama-unreachable",
        ] {
            let limited = "web.rate_limit_per_minute = 10\nweb.api_key = \"sekret-key\"";
            let config = if name == "apikey-rl10" { limited } else { "" };
            let app = LocalApp::with(Some(dir.path()), config).await;
            for exchange in exchanges.iter().filter(|exchange| exchange.run == name) {
                // An endless answer; tests of the streams read it.
                if !exchange.path.ends_with("/stream") {
                    replay(&app, exchange, &mut problems).await;
                }
            }
            app.stop().await;
        }
        assert!(
            problems.is_empty(),
            "{} problems:\n{}",
            problems.len(),
            problems.join("\n")
        );
    });
}
