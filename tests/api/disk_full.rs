//! A full disk: acknowledged writes survive, and refused writes do not reappear.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use test_support::extent;

use crate::helpers::{ADMIN, Answer, Client, PASSWORD, run};
use crate::process::{Service, finish, hosted, started_once};

/// File size limits in KiB.
const LOCAL_ROOM: u32 = 600;
/// More than the reserve for audit entries has.
const HOSTED_ROOM: u32 = 4_600;

/// The command under a file size limit that it will hit.
fn cramped(command: &Command, room: u32) -> Command {
    let mut shell = Command::new("bash");
    let script = format!("trap '' XFSZ; ulimit -S -f {room}; exec \"$0\" \"$@\"");
    shell
        .args(["-c", &script])
        .arg(command.get_program())
        .args(command.get_args())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell
}

fn give_room(service: &Service) {
    let pid = service.pid().to_string();
    let done = finish(Command::new("prlimit").args(["--pid", &pid, "--fsize=unlimited"]));
    assert!(done.status.success(), "{done:?}");
}

/// Without a log file, which would hit the limit too.
fn local(dir: &Path) -> Command {
    let mut command = crate::local::durability::local(dir, 2);
    command.env("LOCAL_LOGGING_FILE", "false");
    command
}

fn long_note(number: usize) -> Value {
    let words: Vec<String> = (0..2000)
        .map(|at| format!("{:x}", (at * 7919 + number) * 104_729))
        .collect();
    json!({"content": format!("Note {number}: {}", words.join(" "))})
}

async fn remember(client: &Client, note: &Value) -> Answer {
    client.post("/api/remember", note).await
}

#[test]
fn a_local_service_on_a_full_disk_reads_on_and_takes_no_write_twice() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let service = Service::start(cramped(&local(dir.path()), LOCAL_ROOM));
        let client = service.anonymous();
        let mut told = Vec::new();
        let refused = loop {
            let note = long_note(told.len());
            let answer = remember(&client, &note).await;
            if answer.status() != 200 {
                let error = answer.expect(503).await;
                assert!(
                    error["detail"].as_str().unwrap().contains("is the disk full?"),
                    "{error}"
                );
                break note;
            }
            told.push(answer.expect(200).await["note_id"].as_str().unwrap().to_owned());
            assert!(told.len() < 1000, "the disk never fills");
        };
        // More space helps only after a restart: the engine may still hold the writes it refused.
        give_room(&service);
        for _ in 0..2 {
            remember(&client, &refused).await.expect(503).await;
        }
        assert_eq!(
            client.get("/api/health").await.expect(200).await["status"],
            "degraded"
        );
        assert!(!client.recall("Note 0").await.is_empty());
        // A change that can't be recorded in the audit log is not made.
        let change = client.request(reqwest::Method::PUT, "/api/config");
        let change = change.json(&json!({"retrieval.default_k": 7, "governance.enabled": false}));
        Answer(change.send().await.unwrap()).expect(503).await;
        let config = client.get("/api/config").await.expect(200).await;
        assert_eq!(config["retrieval"]["default_k"], 10);
        assert_eq!(config["governance"]["enabled"], true);
        service.kill();

        let service = Service::start(local(dir.path()));
        let client = service.anonymous();
        for id in &told {
            client.get(&format!("/api/notes/{id}")).await.expect(200).await;
        }
        remember(&client, &refused).await.expect(200).await;
        let storage = client.get("/api/storage").await.expect(200).await;
        assert_eq!(storage["total_notes"], told.len() + 1);
        service.kill();
        let service = Service::start(local(dir.path()));
        let storage = service.anonymous().get("/api/storage").await.expect(200).await;
        assert_eq!(storage["total_notes"], told.len() + 1);
        service.kill();
    });
}

/// The active log segment.
fn last_segment(dir: &Path) -> PathBuf {
    let files = std::fs::read_dir(dir.join("store/wal")).unwrap();
    files.map(|file| file.unwrap().path()).max().unwrap()
}

#[test]
fn what_is_written_behind_a_torn_log_survives_the_next_crash() {
    run(async {
        let dir = crate::local::started_once();
        let mut told = Vec::new();
        for round in 0..extent(2, 4) {
            let service = Service::start(local(dir.path()));
            let client = service.anonymous();
            for number in 0..3 {
                let note = long_note(round * 10 + number);
                told.push(remember(&client, &note).await.expect(200).await["note_id"].clone());
            }
            let storage = client.get("/api/storage").await.expect(200).await;
            assert_eq!(storage["total_notes"], told.len(), "round {round}");
            service.kill();
            // A power cut in the middle of a write leaves a truncated record at the end.
            let segment = last_segment(dir.path());
            let mut log = std::fs::read(&segment).unwrap();
            log.extend_from_within(..1000);
            std::fs::write(&segment, log).unwrap();
        }
        let service = Service::start(local(dir.path()));
        let client = service.anonymous();
        for id in &told {
            let path = format!("/api/notes/{}", id.as_str().unwrap());
            client.get(&path).await.expect(200).await;
        }
        service.kill();
    });
}

/// Ingests until the disk is full; returns the number of bundles that were taken.
async fn fill(client: &Client) -> usize {
    let mut told = 0;
    loop {
        let tools: Vec<Value> = (0..20)
            .map(|at| {
                let description = long_note(told * 100 + at)["content"].clone();
                let id = format!("tool--{}", uuid::Uuid::new_v4());
                json!({"type": "tool", "id": id, "name": format!("tool {told} {at}"), "description": description})
            })
            .collect();
        let bundle =
            json!({"type": "bundle", "id": format!("bundle--{}", uuid::Uuid::new_v4()), "objects": tools});
        let answer = client.post("/api/ingest/stix", &json!({"bundle": bundle})).await;
        if answer.status() != 201 {
            answer.expect(503).await;
            return told;
        }
        told += 1;
        assert!(told < 200, "the disk never fills");
    }
}

/// The number of entries with this action.
async fn logged(client: &Client, action: &str) -> usize {
    let path = format!("/api/audit/logs?limit=1000&action={action}");
    let logs = client.get(&path).await.expect(200).await;
    logs["logs"].as_array().unwrap().len()
}

/// What each of the reads below leaves in the audit log.
const READ: [&str; 6] = [
    "recall.search",
    "recall.semantic",
    "node.read",
    "recall.export",
    "demo.recall",
    "auth.login",
];

/// Reads, searches, exports and signs in.
async fn read_all(client: &Client) {
    let found = client.search("tool 0 0").await;
    let session = format!("/api/recall/sessions/{}", found["recall_id"].as_str().unwrap());
    let node = format!("/api/nodes/{}", found["results"][0]["id"].as_str().unwrap());
    let export = format!("{session}/export.stix");
    let paths = [
        &session,
        &export,
        &node,
        "/api/recall/semantic?q=tool",
        "/api/audit/verify",
        "/api/ingest/batch",
    ];
    for path in paths {
        client.get(path).await.expect(200).await;
    }
    let query = json!({"query": "Sandworm"});
    client
        .post("/api/public/demo-recall", &query)
        .await
        .expect(200)
        .await;
    client.sign_in(ADMIN, PASSWORD).await;
}

#[test]
fn a_hosted_service_on_a_full_disk_reads_on_and_keeps_its_audit_log() {
    run(async {
        let dir = started_once();
        let service = Service::start(cramped(&hosted(dir.path()), HOSTED_ROOM));
        let client = service.admin().await;
        let health = client.get("/api/health").await.expect(200).await;
        assert_eq!((&health["status"], health.get("reason")), (&json!("ok"), None));
        let told = fill(&client).await;
        let mut before = Vec::new();
        for action in READ {
            before.push(logged(&client, action).await);
        }
        for room in [false, true] {
            if room {
                give_room(&service);
            }
            read_all(&client).await;
            let tool = json!({"nodes": [{"name": "Heron", "node_type": "tool"}]});
            client.post("/api/ingest/analyst", &tool).await.expect(503).await;
            let health = client.get("/api/health").await.expect(200).await;
            assert_eq!(health["status"], "degraded");
            assert!(
                health["reason"].as_str().unwrap().contains("is the disk full?"),
                "{health}"
            );
            client.get("/health").await.expect(200).await;
        }
        service.kill();

        let service = Service::start(hosted(dir.path()));
        let client = service.admin().await;
        let health = client.get("/api/health").await.expect(200).await;
        assert_eq!(health["status"], "ok");
        let verified = client.get("/api/audit/verify").await.expect(200).await;
        assert_eq!(verified["valid"], true, "{verified}");
        for (action, before) in READ.into_iter().zip(before) {
            // The sign-in after the restart is one more.
            let own = usize::from(action == "auth.login");
            assert_eq!(logged(&client, action).await, before + 2 + own, "{action}");
        }
        for number in 0..told {
            let name = format!("tool {number} 0");
            let found = client.search(&name).await;
            assert!(
                found["results"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .any(|row| row["name"] == name.as_str()),
                "{name}"
            );
        }
        service.kill();
    });
}
