//! Request bodies of the local API: size limits that fit the field limits, low memory overhead, and errors that do not
//! echo long input.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use test_support::extent;

use crate::helpers::{Client, run};
use crate::local::{LocalApp, started_once};
use crate::process::{Service, program};

/// The status and text of the response to a raw JSON body.
async fn send(client: &Client, path: &str, body: String) -> (u16, String) {
    client.post_bytes(path, body).await.whole().await
}

#[test]
fn each_route_takes_what_its_fields_can_hold_and_no_more() {
    run(async {
        let app = LocalApp::spawn().await;
        let zeros = |bytes: usize| format!("{{\"query\": [{}0]}}", "0,".repeat(bytes / 2));
        for (path, fits, beyond) in [
            ("/api/recall", 60_000, 100_000),
            ("/api/synthesize", 60_000, 100_000),
            ("/api/remember", 600_000, 1_000_000),
        ] {
            let (status, text) = send(&app.client, path, zeros(fits)).await;
            assert_eq!(status, 422, "{path}: {text}");
            let (status, text) = send(&app.client, path, zeros(beyond)).await;
            assert_eq!(status, 413, "{path}: {text}");
            assert!(text.contains("body exceeds the limit of"), "{text}");
        }
        let padded = format!("{{\"retrieval.default_k\": 5{}}}", " ".repeat(300_000));
        let answer = app
            .client
            .request(reqwest::Method::PUT, "/api/config")
            .body(padded);
        assert_eq!(answer.send().await.unwrap().status(), 413);
        let items = json!({"items": [{"content": "Turla uses Snake."}], "note": "x".repeat(2_000_000)});
        app.client.post("/api/ingest", &items).await.expect(200).await;
        app.stop().await;
    });
}

#[test]
fn the_longest_texts_fit_however_they_are_escaped() {
    run(async {
        let app = LocalApp::with(None, "web.max_content_chars = 2000").await;
        // The longest JSON encoding of a character: two six-byte escapes.
        let longest = |chars: usize| "\\ud83d\\ude00".repeat(chars);
        let body = format!("{{\"content\": \"{}\"}}", longest(2000));
        let (status, text) = send(&app.client, "/api/remember", body).await;
        assert_eq!(status, 200, "{text}");
        let body = format!("{{\"query\": \"{}\"}}", longest(1000));
        let (status, text) = send(&app.client, "/api/recall", body).await;
        assert_eq!(status, 200, "{text}");
        let body = format!("{{\"query\": \"{}\"}}", longest(1001));
        let (status, text) = send(&app.client, "/api/recall", body).await;
        assert_eq!(status, 422, "{text}");
        assert!(text.contains("string_too_long"), "{text}");
        app.stop().await;
    });
}

#[test]
fn an_error_repeats_short_inputs_and_no_long_one() {
    run(async {
        let app = LocalApp::spawn().await;
        let long = "n".repeat(60_000);
        for (path, body, kind) in [
            ("/api/remember", json!({"content": long}), "string_too_long"),
            ("/api/remember", json!({"domain": "d".repeat(201)}), "missing"),
            (
                "/api/remember",
                json!({"content": "a", "domain": "d".repeat(201)}),
                "string_too_long",
            ),
            ("/api/recall", json!({"query": ["n".repeat(300)]}), "string_type"),
            (
                "/api/recall",
                json!({"query": "q", "k": "n".repeat(300)}),
                "int_parsing",
            ),
            ("/api/ingest", json!({"items": {"a": long}}), "list_type"),
            ("/api/ingest", json!({"items": [long]}), "model_attributes_type"),
            ("/api/ingest", json!({"items": [{"note": long}]}), "missing"),
            ("/api/ingest", json!([long]), "model_attributes_type"),
        ] {
            let answer = app.client.post(path, &body).await.expect(422).await;
            let issue = &answer["detail"][0];
            assert_eq!(issue["type"], kind, "{path}: {issue}");
            let input = issue["input"].as_str().unwrap();
            assert!(
                input.starts_with("(not repeated: ") && input.ends_with(" bytes)"),
                "{input}"
            );
            assert!(!answer.to_string().contains("nnn") && !answer.to_string().contains("ddd"));
        }
        let body = json!({"content": "a", "domain": "d".repeat(200)});
        let answer = app.client.post("/api/remember", &body).await.expect(422).await;
        assert_eq!(
            answer["detail"][0]["input"], body["domain"],
            "two hundred characters are short"
        );
        let body = json!({"k": 5});
        let answer = app.client.post("/api/recall", &body).await.expect(422).await;
        assert_eq!(answer["detail"][0]["input"], body);
        let items = vec![json!({"content": "x"}); 101];
        let answer = app
            .client
            .post("/api/ingest", &json!({"items": items}))
            .await
            .expect(422)
            .await;
        assert_eq!(answer["detail"][0]["ctx"]["actual_length"], 101);
        let change = json!({"web.max_k": "n".repeat(300)});
        let answer = app
            .client
            .request(reqwest::Method::PUT, "/api/config")
            .json(&change);
        let answer: Value = answer.send().await.unwrap().json().await.unwrap();
        assert_eq!(answer["detail"][0]["input"], "(not repeated: 302 bytes)");
        app.stop().await;
    });
}

/// Peak memory of a process in MB.
fn peak(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

fn local(dir: &Path) -> Command {
    let mut command = program();
    command
        .args(["local", "--port", "0", "--data-dir"])
        .arg(dir)
        .env("LOCAL_WEB_ADMIN_BIND", "127.0.0.1:0")
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

#[test]
fn megabytes_of_zeros_cost_little_more_than_themselves() {
    run(async {
        let dir = started_once();
        let service = Service::start(local(dir.path()));
        let client = service.anonymous();
        client.get("/api/health").await.expect(200).await;
        let before = peak(service.pid());
        let (megabytes, most) = extent((4, 40), (16, 100));
        let zeros = "0,".repeat(megabytes << 19);
        for body in [
            format!("{{\"items\": [{zeros}0]}}"),
            format!("{{\"other\": [{zeros}0]}}"),
            format!("[{zeros}0]"),
            format!("{{\"items\": [{zeros}"),
        ] {
            let (status, text) = send(&client, "/api/ingest", body).await;
            assert_eq!(status, 422, "{text}");
            assert!(text.len() < 1000, "{text}");
        }
        let (status, _) = send(&client, "/api/recall", format!("{{\"query\": [{zeros}0]}}")).await;
        assert_eq!(status, 413);
        let grown = peak(service.pid()) - before;
        assert!(grown < most, "{megabytes} MB of zeros cost {grown} MB");
        service.kill();
    });
}
