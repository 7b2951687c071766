//! Overload is refused at once with a `Retry-After` header and does not affect other requests.

use std::time::Duration;

use serde_json::{Value, json};
use test_support::{extent, until};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::helpers::{Client, TestApp, run, settings};
use crate::process::{Service, hosted, started_once};
use crate::stix::{object, text};

const STIX: &str = "/api/ingest/stix";

fn tools(word: &str, n: usize) -> Vec<Value> {
    (0..n)
        .map(|i| object("tool", &format!("{word} part {i}")))
        .collect()
}

/// A word that occurs nowhere else.
fn word() -> String {
    format!("w{}", uuid::Uuid::new_v4().simple())
}

#[test]
fn a_full_write_gate_answers_503_with_retry_after_and_the_others_complete() {
    run(async {
        let mut narrow = settings("mem://");
        narrow.actors.of_mut("graph_store").write_gate = 1;
        let app = TestApp::with(narrow).await;
        let mut tasks = Vec::new();
        for _ in 0..8 {
            let client = app.admin.clone();
            tasks.push(tokio::spawn(async move {
                let word = word();
                let answer = client.post(STIX, &json!({"bundle": tools(&word, 150)})).await;
                let (status, retry) = (
                    answer.0.status().as_u16(),
                    answer.0.headers().get("retry-after").cloned(),
                );
                let body = answer.expect(status).await;
                (word, status, retry, body)
            }));
        }
        let (mut done, mut refused) = (0, 0);
        for task in tasks {
            let (word, status, retry, body) = task.await.unwrap();
            let found = app.admin.search_with(&word, &[]).await;
            let ours = |node: &&Value| text(node, "name").starts_with(&word);
            let there = found["results"].as_array().unwrap().iter().filter(ours).count();
            match status {
                201 => {
                    assert_eq!((&body["results"]["nodes_created"], there), (&json!(150), 100));
                    done += 1;
                }
                503 => {
                    assert!(
                        retry.is_some_and(|seconds| seconds.to_str().unwrap().parse::<u64>().unwrap() >= 1)
                    );
                    assert_eq!(text(&body, "error"), "graph_store is busy; retry shortly");
                    assert_eq!(there, 0, "a refused ingest left something");
                    refused += 1;
                }
                other => panic!("{other}: {body}"),
            }
        }
        assert!(done > 0 && refused > 0, "{done} done, {refused} refused");
        app.admin.ingest(json!(tools("afterwards", 1))).await;
        app.stop().await;
    });
}

#[test]
fn a_full_read_gate_and_waiting_line_answer_503_and_recover() {
    run(async {
        let mut narrow = settings("mem://");
        narrow.actors.of_mut("graph_store").gate = 1;
        narrow.actors.of_mut("graph_store").mailbox = 2;
        let app = TestApp::with(narrow).await;
        app.admin.ingest(json!(tools("crowded", 50))).await;
        let mut tasks = Vec::new();
        for _ in 0..40 {
            let client = app.admin.clone();
            tasks.push(tokio::spawn(async move {
                let answer = client.get("/api/recall/search?q=crowded").await;
                let status = answer.0.status().as_u16();
                assert_eq!(answer.0.headers().contains_key("retry-after"), status == 503);
                answer.expect(status).await;
                status
            }));
        }
        let mut statuses = Vec::new();
        for task in tasks {
            statuses.push(task.await.unwrap());
        }
        let count = |status| statuses.iter().filter(|s| **s == status).count();
        assert!(
            count(200) > 0 && count(503) > 0 && count(200) + count(503) == 40,
            "{statuses:?}"
        );
        assert_eq!(app.admin.search("crowded").await["count"], 20);
        app.stop().await;
    });
}

#[test]
fn reads_go_on_while_a_large_write_is_under_way() {
    run(async {
        let app = TestApp::spawn().await;
        app.admin.ingest(json!(tools("steady", 20))).await;
        let (client, body) = (
            app.admin.clone(),
            json!({"bundle": tools("heavy", extent(1_000, 4_000))}),
        );
        let writing = tokio::spawn(async move { client.post(STIX, &body).await.expect(201).await });
        let mut answered = 0;
        while !writing.is_finished() {
            let asked = std::time::Instant::now();
            assert_eq!(app.admin.search("steady").await["count"], 20);
            assert!(
                asked.elapsed() < Duration::from_secs(10),
                "a read waited {:?}",
                asked.elapsed()
            );
            answered += 1;
        }
        writing.await.unwrap();
        assert!(answered > 2, "only {answered} reads were answered meanwhile");
        app.stop().await;
    });
}

/// The value of the metric with these labels.
fn figure(metrics: &str, name: &str, labels: &[&str]) -> Option<f64> {
    let line = metrics.lines().find(|line| {
        line.starts_with(&format!("{name}{{")) && labels.iter().all(|label| line.contains(label))
    })?;
    line.rsplit(' ').next()?.parse().ok()
}

#[test]
fn the_admin_listener_shows_the_figures_of_every_actor_and_route() {
    run(async {
        let dir = started_once();
        let mut command = hosted(dir.path());
        command.env("THREAT_MEMORY_ACTORS__GRAPH_STORE__WRITE_GATE", "1");
        let service = Service::start(command);
        let anonymous = service.anonymous();
        let metrics = anonymous.metrics().await;
        for actor in ["graph_store", "audit_writer", "identity", "rate_limiter"] {
            let label = format!("actor=\"{actor}\"");
            for name in [
                "actor_in_flight",
                "actor_mailbox_depth",
                "actor_rejected_total",
                "actor_restarts_total",
            ] {
                assert_eq!(
                    figure(&metrics, name, &[&label]),
                    Some(0.0),
                    "{name} of {actor} in\n{metrics}"
                );
            }
        }

        let admin = service.admin().await;
        let sending: Vec<_> = (0..6)
            .map(|_| {
                let (admin, body) = (admin.clone(), json!({"bundle": tools("figure", 100)}));
                tokio::spawn(async move { admin.post(STIX, &body).await.0.status().as_u16() })
            })
            .collect();
        let mut refused = 0.0;
        for task in sending {
            refused += f64::from(u8::from(task.await.unwrap() == 503));
        }
        admin.search("figure").await;
        anonymous.get("/api/recall/search?q=x").await.expect(401).await;
        anonymous.get("/nothing").await.expect(404).await;

        let metrics = anonymous.metrics().await;
        let graph = "actor=\"graph_store\"";
        assert!(refused > 0.0);
        assert_eq!(figure(&metrics, "actor_rejected_total", &[graph]), Some(refused));
        assert_eq!(figure(&metrics, "actor_in_flight", &[graph]), Some(0.0));
        let searched = ["route=\"/api/recall/search\"", "status=\"200\"", "method=\"GET\""];
        assert_eq!(
            figure(&metrics, "http_requests_total", &searched),
            Some(1.0),
            "{metrics}"
        );
        assert_eq!(
            figure(&metrics, "http_requests_total", &[searched[0], "status=\"401\""]),
            Some(1.0)
        );
        assert_eq!(
            figure(
                &metrics,
                "http_requests_total",
                &["route=\"unmatched\"", "status=\"404\""]
            ),
            Some(1.0)
        );
        let busy = figure(
            &metrics,
            "http_requests_total",
            &["route=\"/api/ingest/stix\"", "status=\"503\""],
        );
        assert_eq!(busy, Some(refused));
        assert!(figure(&metrics, "http_request_seconds_count", &[searched[0]]).is_some());
        assert!(
            figure(
                &metrics,
                "actor_latency_seconds_count",
                &[graph, "request=\"recall\""]
            )
            .is_some()
        );
        let elsewhere = anonymous.get("/metrics").await;
        elsewhere.expect(404).await;
        service.kill();
    });
}

/// Sends a request over a raw socket, so that the connection can be cut at any byte.
async fn send_raw(client: &Client, body: &[u8], keep: usize) -> tokio::net::TcpStream {
    let address = client.base.trim_start_matches("http://");
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let bearer = client.sends("authorization");
    let head = format!(
        "POST {STIX} HTTP/1.1\r\nhost: {address}\r\nauthorization: {bearer}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&body[..keep]).await.unwrap();
    stream.flush().await.unwrap();
    stream
}

#[test]
fn a_client_that_goes_away_leaves_a_whole_bundle_or_none() {
    run(async {
        let app = TestApp::spawn().await;
        for pause in [None, Some(0), Some(5), Some(30), Some(100)] {
            let word = word();
            let objects = tools(&word, 60);
            let body = json!({"bundle": objects}).to_string();
            // Without a pause, the connection is cut in the middle of the body.
            let keep = if pause.is_some() {
                body.len()
            } else {
                body.len() / 2
            };
            let stream = send_raw(&app.admin, body.as_bytes(), keep).await;
            // The moment at which the client leaves is what the test varies.
            tokio::time::sleep(Duration::from_millis(pause.unwrap_or(0))).await;
            drop(stream);
            // The service may not have begun to read what it has received, which nothing shows.
            tokio::time::sleep(Duration::from_millis(200)).await;
            // Writes of a workspace are serialised, so this ingest completes after a running one.
            let bodies = &app.application().state().bodies;
            until(|| bodies.used_bytes() == 0).await;
            app.admin.ingest(json!([object("tool", "next in line")])).await;
            let found = app.admin.search_with(&word, &[]).await;
            let ours = |node: &&Value| text(node, "name").starts_with(&word);
            let there = found["results"].as_array().unwrap().iter().filter(ours).count();
            assert!(
                there == 0 || (there == 60 && pause.is_some()),
                "{there} of 60 after {pause:?}"
            );
            let again = app.admin.ingest(json!(objects)).await;
            assert_eq!(again["nodes_created"], 60 - there);
        }
        let chain = app.admin.get("/api/audit/verify").await.expect(200).await;
        assert_eq!((&chain["valid"], &chain["unchained"]), (&json!(true), &json!(0)));
        app.stop().await;
    });
}

#[test]
fn a_client_that_goes_away_gives_its_place_back() {
    run(async {
        let mut narrow = settings("mem://");
        narrow.actors.of_mut("graph_store").write_gate = 1;
        let app = TestApp::with(narrow).await;
        for _ in 0..5 {
            let body = json!({"bundle": tools("leaving", 30)}).to_string();
            drop(send_raw(&app.admin, body.as_bytes(), body.len()).await);
        }
        let until = std::time::Instant::now() + Duration::from_secs(10);
        loop {
            let answer = app
                .admin
                .post(STIX, &json!({"bundle": tools("staying", 1)}))
                .await;
            if answer.0.status() == 201 {
                break;
            }
            assert_eq!(answer.0.status(), 503);
            assert!(std::time::Instant::now() < until, "the gate stays shut");
        }
        app.stop().await;
    });
}

#[test]
fn a_request_that_is_no_http_costs_its_connection_only() {
    run(async {
        let app = TestApp::shared().await;
        let address = app.admin.base.trim_start_matches("http://").to_owned();
        for noise in [
            &b"\x00\x01\x02\xff\r\n\r\n"[..],
            b"GET / HTTP/9.9\r\n\r\n",
            b"GET \x00 HTTP/1.1\r\n\r\n",
        ] {
            let mut stream = tokio::net::TcpStream::connect(&address).await.unwrap();
            stream.write_all(noise).await.unwrap();
            let mut answer = Vec::new();
            let read = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut answer)).await;
            read.expect("the connection stays open").ok();
            let answer = String::from_utf8_lossy(&answer).into_owned();
            assert!(
                answer.is_empty() || answer.starts_with("HTTP/1.1 400"),
                "{answer}"
            );
        }
        app.anonymous().get("/health").await.expect(200).await;
        app.stop().await;
    });
}
