//! Isolation between workspaces: one workspace's load does not take another one down, and buffered body bytes are
//! bounded.

use std::time::Duration;

use serde_json::{Value, json};
use test_support::{eventually, extent, until};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::helpers::{Answer, Client, TestApp, run, settings};
use crate::stix::{object, text};

const STIX: &str = "/api/ingest/stix";
/// Objects of a bundle of the loud workspace: so many that they are still being written when the quiet one asks again.
const OBJECTS: usize = 250;

fn tools(word: &str, n: usize) -> Vec<Value> {
    let name = |i| format!("{word} part {i}");
    (0..n).map(|i| object("tool", &name(i))).collect()
}

/// A bundle with one tool of about this many bytes.
fn heavy(word: &str, bytes: usize) -> Value {
    let mut tool = object("tool", word);
    tool["description"] = json!("lorem ipsum ".repeat(bytes / 12));
    json!({"bundle": [tool]})
}

fn retries(answer: &Answer) -> bool {
    answer
        .header("retry-after")
        .is_some_and(|seconds| seconds.parse::<u64>().unwrap() >= 1)
}

/// Sends an ingest whose body stalls after its first bytes.
async fn stalled(client: &Client, body: &[u8], keep: usize) -> TcpStream {
    let address = client.base.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST {STIX} HTTP/1.1\r\nhost: {address}\r\nauthorization: {}\r\ncontent-length: {}\r\n\r\n",
        client.sends("authorization"),
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&body[..keep]).await.unwrap();
    stream.flush().await.unwrap();
    stream
}

#[test]
fn a_loud_workspace_gets_its_503s_and_a_quiet_one_none() {
    run(async {
        let mut narrow = settings("mem://");
        narrow.actors.of_mut("graph_store").write_gate = 4;
        let app = TestApp::with(narrow).await;
        let (loud, quiet) = (app.workspace("loud").await, app.workspace("quiet").await);
        quiet.ingest(json!(tools("steady", 20))).await;
        let sending: Vec<_> = (0..12)
            .map(|n| {
                let client = loud.clone();
                tokio::spawn(async move {
                    let objects = tools(&format!("loud{n}"), OBJECTS);
                    let answer = client.post(STIX, &json!({"bundle": objects})).await;
                    (answer.status(), retries(&answer), objects)
                })
            })
            .collect();
        // One permit of the four is for whoever comes next.
        let held = "actor_gate_held{actor=\"graph_store\",gate=\"write\",workspace=\"";
        eventually(async || {
            let metrics = app.admin.metrics().await;
            let mut shares = metrics
                .lines()
                .filter_map(|line| line.strip_prefix(held)?.split_once("\"} "));
            let is_one = |(id, held): (&str, &str)| uuid::Uuid::parse_str(id).is_ok() && held == "3";
            shares.any(is_one).then_some(()).ok_or(metrics.clone())
        })
        .await;
        let mut written = 0;
        while !sending.iter().all(tokio::task::JoinHandle::is_finished) {
            let node = json!({"nodes": [{"name": format!("quiet {written}"), "node_type": "tool"}]});
            quiet.post("/api/ingest/analyst", &node).await.expect(201).await;
            assert_eq!(quiet.search("steady").await["count"], 20);
            written += 1;
        }
        let mut refused = 0;
        for task in sending {
            let (status, retry, objects) = task.await.unwrap();
            // Acknowledged bundles are stored in full, refused ones not at all.
            let again = loud.ingest(json!(objects)).await;
            let there = objects.len() - usize::try_from(again["nodes_created"].as_u64().unwrap()).unwrap();
            match status {
                201 => assert_eq!(there, objects.len()),
                503 => {
                    assert!(retry, "a 503 without Retry-After");
                    assert_eq!(there, 0);
                    refused += 1;
                }
                other => panic!("{other}"),
            }
        }
        assert!(
            (1..12).contains(&refused) && written > 1,
            "{refused} refused, {written} written"
        );
        let found = quiet.search_with("quiet", &[]).await;
        let own = |node: &&Value| text(node, "name").starts_with("quiet ");
        assert_eq!(
            found["results"].as_array().unwrap().iter().filter(own).count(),
            written.min(100)
        );
        until(|| app.application().state().bodies.used_bytes() == 0).await;
        app.stop().await;
    });
}

#[test]
fn a_workspace_gets_half_of_the_bytes_in_flight_and_the_rest_is_there_for_others() {
    run(async {
        let mut narrow = settings("mem://");
        narrow.server.body_limit = 2 << 20;
        narrow.server.bodies_in_flight_mib = 4;
        let app = TestApp::with(narrow).await;
        let (loud, quiet) = (app.workspace("loud").await, app.workspace("quiet").await);
        let body = heavy("stalled", 1_900_000).to_string();
        let mut stream = stalled(&loud, body.as_bytes(), 1_800_000).await;
        let bodies = &app.application().state().bodies;
        until(|| bodies.used_bytes() == 1_800_000).await;

        let refused = loud.post(STIX, &heavy("refused", 600_000)).await;
        assert!(retries(&refused));
        assert_eq!(refused.refused(503).await, "body reader is busy; retry shortly");
        quiet
            .post(STIX, &heavy("elsewhere", 600_000))
            .await
            .expect(201)
            .await;
        assert_eq!(bodies.used_bytes(), 1_800_000);
        // Reads and small changes do not draw on the body budget.
        loud.search("stalled").await;

        stream.write_all(&body.as_bytes()[1_800_000..]).await.unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 201");
        until(|| bodies.used_bytes() == 0).await;
        loud.post(STIX, &heavy("accepted", 600_000))
            .await
            .expect(201)
            .await;
        app.stop().await;
    });
}

#[test]
fn the_bytes_of_a_body_count_until_its_work_has_ended_also_when_the_client_is_gone() {
    run(async {
        let app = TestApp::spawn().await;
        let body = json!({"bundle": tools("counted", extent(400, 1_500))}).to_string();
        let bodies = &app.application().state().bodies;
        let stream = stalled(&app.admin, body.as_bytes(), body.len()).await;
        until(|| bodies.used_bytes() == body.len()).await;
        // The bytes are counted before the message is sent; nothing outside shows that it was.
        tokio::time::sleep(Duration::from_millis(50)).await;
        drop(stream);
        loop {
            let used = bodies.used_bytes();
            if app.admin.search("counted").await["count"] != 0 {
                break;
            }
            assert_eq!(used, body.len(), "given back before the work was done");
        }
        until(|| bodies.used_bytes() == 0).await;
        app.stop().await;
    });
}

#[test]
fn a_client_that_stalls_in_its_body_gives_its_bytes_back() {
    run(async {
        let app = TestApp::spawn().await;
        let body = heavy("cut off", 400_000).to_string();
        let bodies = &app.application().state().bodies;
        let stream = stalled(&app.admin, body.as_bytes(), 300_000).await;
        until(|| bodies.used_bytes() == 300_000).await;
        drop(stream);
        until(|| bodies.used_bytes() == 0).await;
        app.stop().await;
    });
}
