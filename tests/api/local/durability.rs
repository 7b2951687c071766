//! Acknowledged notes survive any kind of process exit. Writes are limited, and reads continue meanwhile.

use std::collections::HashSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use test_support::{extent, until};

use crate::helpers::{Client, run};
use crate::local::{LocalApp, started_once};
use crate::process::{Service, finish, program};

/// `threat-memory local` on free ports with the data directory `dir`.
pub fn local(dir: &Path, concurrency: usize) -> Command {
    let mut command = program();
    command
        .args(["local", "--port", "0", "--data-dir"])
        .arg(dir)
        .env("LOCAL_WEB_ADMIN_BIND", "127.0.0.1:0")
        .env("LOCAL_WEB_RATE_LIMIT_PER_MINUTE", "1000000")
        .env("LOCAL_WEB_WRITE_CONCURRENCY", concurrency.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

/// Writes until the service is gone; returns the acknowledged ids, which `count` counts, and the number of refusals.
async fn write_on(client: Client, writer: usize, count: Arc<AtomicUsize>) -> (HashSet<String>, usize) {
    let (mut told, mut refused) = (HashSet::new(), 0);
    for number in 0.. {
        let text = format!(
            "APT28 report {writer}-{number} from 10.{writer}.{}.{}",
            number / 256,
            number % 256
        );
        let request = client
            .request(reqwest::Method::POST, "/api/remember")
            .json(&json!({"content": text}));
        let Ok(answer) = request.send().await else { break };
        match answer.status().as_u16() {
            200 => {
                let Ok(body) = answer.json::<Value>().await else {
                    break;
                };
                told.insert(body["note_id"].as_str().unwrap().to_owned());
                count.fetch_add(1, Ordering::Relaxed);
            }
            429 => {
                let body = answer.text().await.unwrap_or_default();
                assert_eq!(body, r#"{"detail":"Write capacity exhausted; retry shortly"}"#);
                refused += 1;
                // As a client that was told to retry shortly.
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            other => panic!("{other}"),
        }
    }
    (told, refused)
}

#[test]
fn everything_acknowledged_survives_a_kill() {
    run(async {
        let dir = started_once();
        let mut all = HashSet::new();
        for round in 0..extent(1, 2) {
            let service = Service::start(local(dir.path(), 16));
            let client = service.anonymous();
            let count = Arc::new(AtomicUsize::new(0));
            let writers: Vec<_> = (0..8)
                .map(|writer| tokio::spawn(write_on(client.clone(), round * 8 + writer, Arc::clone(&count))))
                .collect();
            until(|| count.load(Ordering::Relaxed) > 50).await;
            service.kill();
            for writer in writers {
                all.extend(writer.await.unwrap().0);
            }
        }
        assert!(all.len() > 50, "{} notes", all.len());
        let service = Service::start(local(dir.path(), 2));
        let client = service.anonymous();
        for id in &all {
            client.get(&format!("/api/notes/{id}")).await.expect(200).await;
        }
        let storage = client.get("/api/storage").await.expect(200).await;
        let nodes = client.get("/api/graph/nodes?type=note").await.expect(200).await;
        assert_eq!(storage["total_notes"], nodes["count"]);
        assert!(storage["total_notes"].as_u64().unwrap() >= all.len() as u64);
        let found = client.recall("10.0.0.0").await;
        assert!(all.contains(&found[0]), "the index agrees with the store");
        let from_copy = graph_of(&client).await;
        service.kill();
        std::fs::remove_dir_all(dir.path().join("graph")).unwrap();
        let service = Service::start(local(dir.path(), 2));
        let from_store = graph_of(&service.anonymous()).await;
        assert!(
            from_copy == from_store,
            "the copy of the graph agrees with the store"
        );
        service.kill();
    });
}

/// Every node, edge and entity.
async fn graph_of(client: &Client) -> [Value; 3] {
    let list = async |path: &str| client.get(path).await.expect(200).await;
    [
        list("/api/graph/nodes").await,
        list("/api/graph/edges").await,
        list("/api/entities").await,
    ]
}

#[test]
fn a_second_process_on_the_same_directory_says_so() {
    let dir = started_once();
    let service = Service::start(local(dir.path(), 2));
    let output = finish(&mut local(dir.path(), 2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("in use by another process"), "{said}");
    service.kill();
}

#[test]
fn with_two_permits_writers_are_refused_and_readers_go_on() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let app = LocalApp::durable(dir.path()).await;
        for number in 0..50 {
            app.client
                .remember(&format!("ransomware note {number} about 10.9.9.{number}"))
                .await;
        }
        let client = Arc::new(app.client.clone());
        let writers: Vec<_> = (0..16)
            .map(|writer| {
                let client = Arc::clone(&client);
                tokio::spawn(async move {
                    let (mut told, mut refused) = (0, 0);
                    for number in 0..15 {
                        let body = json!({"content": format!("writer {writer} note {number} 10.{writer}.0.{number}")});
                        match client.post("/api/remember", &body).await.status() {
                            200 => told += 1,
                            429 => refused += 1,
                            other => panic!("{other}"),
                        }
                    }
                    (told, refused)
                })
            })
            .collect();
        let readers: Vec<_> = (0..16)
            .map(|_| {
                let client = Arc::clone(&client);
                tokio::spawn(async move {
                    for _ in 0..15 {
                        assert_eq!(client.recall("ransomware").await.len(), 10);
                    }
                })
            })
            .collect();
        let (mut told, mut refused) = (0, 0);
        for writer in writers {
            let (done, turned_away) = writer.await.unwrap();
            told += done;
            refused += turned_away;
        }
        for reader in readers {
            reader.await.unwrap();
        }
        assert_eq!(told + refused, 240);
        assert!(refused > 0, "16 writers fit into 2 permits");
        let storage = client.get("/api/storage").await.expect(200).await;
        assert_eq!(storage["total_notes"], 50 + told);
        app.stop().await;
    });
}
