//! Replays every recorded request of the peer, the tool whose API this is, against this service. Status, content type
//! and every field of the body must match, unless the list of excuses gives a reason.

mod compare;
mod excuses;

use std::collections::HashSet;
use std::net::IpAddr;
use std::path::Path;

use futures_util::StreamExt;
use reqwest::{Method, Response};
use serde_json::{Value, json};

use self::compare::{Difference, differences};
use self::excuses::EXCUSES;
use crate::helpers::{run, shared};
use crate::local::LocalApp;

/// Product-specific names in the recording and their replacements.
const NAMES: [(&str, &str); 6] = [
    ("ZETTELFORGE_WEB_API_KEY", "LOCAL_WEB_API_KEY"),
    ("typedb_stix_ontology", "graphdb_stix_ontology"),
    ("alias_resolution_typedb", "alias_resolution_graphdb"),
    ("opencti_integration", "platform_integration"),
    (
        "\"edition_name\": \"ZettelForge\"",
        "\"edition_name\": \"Threat Memory Community\"",
    ),
    (
        "\"edition_name\":\"ZettelForge\"",
        "\"edition_name\":\"Threat Memory Community\"",
    ),
];

/// A recorded request and its response.
pub struct Exchange {
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
    let mut text = std::fs::read_to_string(file).unwrap();
    for (theirs, ours) in NAMES {
        text = text.replace(theirs, ours);
    }
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

/// Notes that the peer received in unrecorded requests, but that appear in its responses.
#[derive(Default)]
struct Unrecorded {
    known: HashSet<String>,
}

impl Unrecorded {
    /// Stores the notes that this response shows but no earlier request created.
    async fn bring(&mut self, app: &LocalApp, exchange: &Exchange) {
        let results = exchange.response["results"].as_array().into_iter().flatten();
        let mut found: Vec<&Value> = results.filter(|result| result.get("content").is_some()).collect();
        found.sort_by_key(|note| note["created_at"].to_string());
        for note in found {
            if self.known.insert(note["id"].to_string()) {
                let body = json!({"content": note["content"], "domain": note["domain"], "evolve": false});
                app.client.post("/api/remember", &body).await.expect(200).await;
            }
        }
        let told = exchange.response["results"].as_array().into_iter().flatten();
        for told in told.chain([&exchange.response]) {
            self.known.insert(told["note_id"].to_string());
        }
    }
}

/// The peer's log, rewritten in this program's format.
fn write_log(dir: &Path, exchanges: &[Exchange]) {
    let pages = exchanges
        .iter()
        .filter(|exchange| exchange.run == "restart-logfile");
    let mut lines: Vec<(String, String)> = Vec::new();
    for entry in pages
        .filter_map(|exchange| exchange.response["logs"].as_array())
        .flatten()
    {
        let mut fields = entry.as_object().unwrap().clone();
        let [event, level, time] = ["event", "level", "time"].map(|name| fields.remove(name).unwrap());
        let level = level.as_str().unwrap().replace("warning", "warn").to_uppercase();
        fields.insert("message".into(), event);
        let line = json!({"timestamp": time, "level": level, "fields": fields}).to_string();
        lines.push((time.to_string(), line));
    }
    lines.sort();
    lines.dedup();
    let text: String = lines.iter().map(|(_, line)| format!("{line}\n")).collect();
    std::fs::create_dir_all(dir.join("logs")).unwrap();
    std::fs::write(dir.join("logs/threat-memory.2026-11-21.log"), text).unwrap();
}

fn request(app: &LocalApp, exchange: &Exchange) -> reqwest::RequestBuilder {
    let method = Method::from_bytes(exchange.method.as_bytes()).unwrap();
    let mut client = app.client.clone();
    if exchange.run == "nonloopback" {
        let caller: IpAddr = "127.0.0.5".parse().unwrap();
        let http = reqwest::Client::builder().no_proxy().local_address(caller);
        client.http = http.build().unwrap();
    }
    let mut request = client.request(method, &exchange.path);
    for (header, value) in &exchange.headers {
        request = request.header(header, value);
    }
    match &exchange.body {
        Value::Null => request,
        Value::String(raw) if exchange.note == "bad utf8" => {
            assert!(raw.contains('\u{fffd}'));
            request.body(b"{\"content\":\"\xff\xfe\"}".to_vec())
        }
        Value::String(raw) if raw.starts_with("(long) ") => {
            let text = "filler sentence number one. ".repeat(78) + "C2 203.0.113.77";
            request.json(&json!({"content": format!("Long report about FIN7. {text}")}))
        }
        Value::String(raw) => request.body(raw.clone()),
        body => request.json(body),
    }
}

/// The events of a stream, without their framing.
fn events<'t>(frames: impl Iterator<Item = &'t str>) -> Value {
    let event = |frame: &str| {
        let data = frame.lines().find_map(|line| line.strip_prefix("data: "));
        serde_json::from_str::<Value>(data?).ok()
    };
    frames.filter_map(event).collect::<Vec<_>>().into()
}

/// The first frames of an endless response.
async fn first_frames(answer: Response) -> String {
    let mut text = String::new();
    let mut chunks = answer.bytes_stream();
    let read = async {
        while let Some(chunk) = chunks.next().await {
            text.push_str(&String::from_utf8_lossy(&chunk.unwrap()));
        }
    };
    tokio::time::timeout(std::time::Duration::from_millis(500), read)
        .await
        .ok();
    text
}

/// Every field in which our response differs from the recorded one.
async fn replay(app: &LocalApp, exchange: &Exchange) -> Vec<Difference> {
    let answer = request(app, exchange).send().await.unwrap();
    let main = |text: &str| text.split(';').next().unwrap_or_default().trim().to_owned();
    let status = answer.status().as_u16();
    let content_type = main(answer.headers()["content-type"].to_str().unwrap());
    let mut found = Vec::new();
    if status != exchange.status {
        found.push(Difference::of("status", exchange.status, status));
    }
    if content_type != main(&exchange.content_type) {
        found.push(Difference::of(
            "content-type",
            main(&exchange.content_type),
            content_type.clone(),
        ));
    }
    if content_type == "text/event-stream" {
        let theirs = exchange.response.as_array().into_iter().flatten();
        let theirs = events(theirs.map(|frame| frame.as_str().unwrap()));
        let ours = first_frames(answer).await;
        found.extend(differences(&theirs, &events(ours.split_inclusive("\n\n"))));
        return found;
    }
    let text = answer.text().await.unwrap();
    let ours: Value = serde_json::from_str(&text).unwrap_or_else(|_| text.into());
    if status == exchange.status {
        found.extend(differences(&exchange.response, &ours));
    } else {
        // Bodies of different content types have no fields in common.
        found.push(Difference::of("body", exchange.response.clone(), ours));
    }
    found
}

/// The differences without an excuse; records which excuses were used.
fn unexcused(exchange: &Exchange, found: Vec<Difference>, used: &mut HashSet<usize>) -> Vec<String> {
    let mut problems = Vec::new();
    for difference in found {
        let excuse = EXCUSES.iter().position(|excuse| {
            excuse.field == difference.field
                && (excuse.on)(exchange)
                && (excuse.holds)(difference.theirs.as_ref(), difference.ours.as_ref())
        });
        match excuse {
            Some(excuse) => drop(used.insert(excuse)),
            None => {
                let side =
                    |value: Option<Value>| value.map_or("nothing".to_owned(), |value| value.to_string());
                problems.push(format!(
                    "{} {} {} ({}): {} is {}, recorded {}",
                    exchange.run,
                    exchange.method,
                    exchange.path,
                    exchange.note,
                    difference.field,
                    side(difference.ours),
                    side(difference.theirs)
                ));
            }
        }
    }
    problems
}

#[test]
fn every_recorded_exchange_is_answered_alike_field_by_field_or_excused() {
    let Some(exchanges) = exchanges() else { return };
    assert_eq!(exchanges.len(), 138);
    run(async move {
        let (mut problems, mut used) = (Vec::new(), HashSet::new());
        let mut unrecorded = Unrecorded::default();
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for (name, dir, config) in [
            ("default-nokey", &dir, ""),
            ("restart-logfile", &dir, ""),
            (
                "apikey-rl10",
                &dir,
                "web.rate_limit_per_minute = 10\nweb.api_key = \"sekret-key\"",
            ),
            ("nonloopback", &dir, ""),
            (
                "default-ollama-unreachable",
                &other,
                "llm.provider = \"openai\"\nllm.model = \"m\"\nllm.base_url = \"http://127.0.0.1:9/v1\"",
            ),
        ] {
            if name == "restart-logfile" {
                write_log(dir.path(), &exchanges);
            }
            let app = LocalApp::with(Some(dir.path()), config).await;
            for exchange in exchanges.iter().filter(|exchange| exchange.run == name) {
                if name != "default-ollama-unreachable" && name != "apikey-rl10" {
                    unrecorded.bring(&app, exchange).await;
                }
                if exchange.status == 429 || exchange.note.starts_with("rate limited") {
                    // Only some of the requests that exhausted the rate limit were recorded.
                    for _ in 0..10 {
                        let version = app.client.request(Method::GET, "/api/version");
                        version.header("x-api-key", "sekret-key").send().await.unwrap();
                    }
                }
                let found = replay(&app, exchange).await;
                problems.extend(unexcused(exchange, found, &mut used));
            }
            app.stop().await;
        }
        for (place, excuse) in EXCUSES.iter().enumerate() {
            if !used.contains(&place) {
                problems.push(format!(
                    "nothing needs to be excused at {}: {}",
                    excuse.field, excuse.reason
                ));
            }
        }
        assert!(
            problems.is_empty(),
            "{} problems:\n{}",
            problems.len(),
            problems.join("\n")
        );
    });
}
