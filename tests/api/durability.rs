//! Acknowledged writes survive any kind of process exit; unacknowledged ones are stored in full or not at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rand::Rng;
use serde_json::{Value, json};
use test_support::{extent, until};

use crate::helpers::{ADMIN, Client, PASSWORD, TestApp, encode, run};
use crate::process::{Service, finish, hosted, program, started_once};
use crate::stix::{by_id, object, relationship, text, with};

const STIX: &str = "/api/ingest/stix";
const NODES: usize = 7;

/// One bundle of a stream; its nodes and edges share a word that occurs nowhere else.
pub struct Sent {
    pub word: String,
    pub objects: Vec<Value>,
    pub acknowledged: bool,
}

fn bundle() -> Sent {
    let word = format!("w{}", uuid::Uuid::new_v4().simple());
    let mut objects: Vec<Value> = (0..NODES)
        .map(|i| object("tool", &format!("{word} part {i}")))
        .collect();
    let edges: Vec<Value> = objects
        .windows(2)
        .map(|pair| relationship(&pair[0], "uses", &pair[1]))
        .collect();
    objects.extend(edges);
    Sent {
        word,
        objects,
        acknowledged: false,
    }
}

/// Ingests and searches until the service is gone; returns what was sent and whether it was acknowledged.
pub async fn stream(client: Client, stop: Arc<AtomicBool>) -> Vec<Sent> {
    let mut all = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let mut sent = bundle();
        let body = json!({"bundle": sent.objects});
        let answer = client
            .request(reqwest::Method::POST, STIX)
            .json(&body)
            .send()
            .await;
        sent.acknowledged = matches!(&answer, Ok(answer) if answer.status() == 201);
        if let Ok(answer) = &answer {
            assert!(
                [201, 503].contains(&answer.status().as_u16()),
                "{}",
                answer.status()
            );
            if !sent.acknowledged {
                // A client that is refused asks again later; at once, it would send hundreds in an outage.
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
        let path = format!("/api/recall/search?q={}", sent.word);
        all.push(sent);
        if answer.is_err() || client.request(reqwest::Method::GET, &path).send().await.is_err() {
            break;
        }
    }
    all
}

/// Counts the bundle's objects in an export of a search for its word.
pub async fn found(client: &Client, sent: &Sent) -> usize {
    let pairs = [("q", sent.word.as_str()), ("limit", "100")];
    let answer = client
        .get(&format!("/api/recall/search?{}", encode(&pairs)))
        .await
        .expect(200)
        .await;
    let ours = |node: &&Value| text(node, "name").starts_with(&sent.word);
    let hits = answer["results"].as_array().unwrap().iter().filter(ours).count();
    if hits == 0 {
        return 0;
    }
    let bundle = client.export(text(&answer, "recall_id")).await;
    let exported = by_id(bundle["objects"].as_array().unwrap());
    let there = sent
        .objects
        .iter()
        .filter(|object| exported.contains_key(text(object, "id")))
        .count();
    assert_eq!(hits, NODES, "the index knows {hits} nodes of {}", sent.word);
    there
}

pub async fn assert_whole(client: &Client, all: &[Sent]) -> (usize, usize) {
    let (mut whole, mut absent) = (0, 0);
    for sent in all {
        match found(client, sent).await {
            0 if !sent.acknowledged => absent += 1,
            n if n == sent.objects.len() => whole += 1,
            n => panic!(
                "{} of {} objects, acknowledged: {}",
                n,
                sent.objects.len(),
                sent.acknowledged
            ),
        }
    }
    (whole, absent)
}

async fn assert_chain(client: &Client) {
    let chain = client.get("/api/audit/verify").await.expect(200).await;
    assert_eq!(
        (&chain["valid"], &chain["unchained"]),
        (&json!(true), &json!(0)),
        "{chain}"
    );
}

#[test]
fn killed_at_any_moment_nothing_acknowledged_is_lost_and_nothing_is_half_there() {
    run(async {
        let dir = started_once();
        let mut earlier: Vec<Sent> = Vec::new();
        let rounds = extent(1, 5);
        for round in 0..rounds {
            let service = Service::start(hosted(dir.path()));
            let client = service.admin().await;
            let stop = Arc::new(AtomicBool::new(false));
            let streams: Vec<_> = (0..3)
                .map(|_| tokio::spawn(stream(client.clone(), Arc::clone(&stop))))
                .collect();
            let moment = rand::rng().random_range(50..900);
            // The moment of the kill is what the test varies.
            tokio::time::sleep(Duration::from_millis(moment)).await;
            service.kill();
            stop.store(true, Ordering::Relaxed);
            let mut now = Vec::new();
            for stream in streams {
                now.extend(stream.await.unwrap());
            }

            let mut service = Service::start(hosted(dir.path()));
            let client = service.admin().await;
            let (whole, absent) = assert_whole(&client, &now).await;
            println!("round {round}: killed after {moment} ms, {whole} whole, {absent} absent");
            assert_chain(&client).await;
            earlier.extend(now.into_iter().take(5));
            if round + 1 == rounds {
                assert_whole(&client, &earlier).await;
            }
            service.terminate();
            assert_eq!(service.ended().await.code(), Some(0));
        }
    });
}

/// An object of about this many bytes that can't be compressed.
fn noise(name: &str, size: usize) -> Value {
    let mut noise = vec![0; size / 2];
    rand::rng().fill(&mut noise[..]);
    with(object("tool", name), json!({"x_noise": hex::encode(noise)}))
}

/// Enough data to rotate the engine's memtable, with a single write that spans two of them. Values of 4 KiB would not stand
/// in it.
#[test]
fn killed_after_the_memtable_has_been_flushed_nothing_acknowledged_is_lost() {
    run(async {
        let dir = started_once();
        let service = || {
            let mut command = hosted(dir.path());
            command.env("THREAT_MEMORY_STORAGE__MEMTABLE_MIB", "4");
            Service::start(command)
        };
        let running = service();
        let client = running.admin().await;
        let files = || std::fs::read_dir(dir.path().join("store/sstables")).map_or(0, Iterator::count);
        let before = files();
        let bundles: Vec<Vec<Value>> = (0..4)
            .map(|bundle| {
                (0..400)
                    .map(|at| noise(&format!("tool {bundle} {at}"), 3_000))
                    .collect()
            })
            .collect();
        for objects in &bundles {
            client
                .post(STIX, &json!({"bundle": objects}))
                .await
                .expect(201)
                .await;
        }
        // The engine flushes a full memtable beside the writes that follow.
        until(|| files() > before).await;
        // Gives the engine time to delete the log of the flushed data.
        tokio::time::sleep(Duration::from_secs(1)).await;
        running.kill();
        let running = service();
        let client = running.admin().await;
        for (number, objects) in bundles.iter().enumerate() {
            let answer = client
                .post(STIX, &json!({"bundle": objects}))
                .await
                .expect(201)
                .await;
            assert_eq!(
                answer["results"]["skipped"],
                objects.len(),
                "bundle {number}: {answer}"
            );
        }
        running.kill();
    });
}

#[test]
fn killed_while_a_large_bundle_is_written_it_is_whole_or_absent() {
    run(async {
        let dir = started_once();
        let (size, moments) = extent((600, &[200][..]), (3_000, &[60, 200, 400, 700]));
        for &moment in moments {
            let service = Service::start(hosted(dir.path()));
            let client = service.admin().await;
            let word = format!("w{}", uuid::Uuid::new_v4().simple());
            let objects: Vec<Value> = (0..size)
                .map(|i| object("tool", &format!("{word} part {i}")))
                .collect();
            let body = json!({"bundle": objects});
            let sending = tokio::spawn(async move {
                let answer = client
                    .request(reqwest::Method::POST, STIX)
                    .json(&body)
                    .send()
                    .await;
                answer.is_ok_and(|answer| answer.status() == 201)
            });
            // The moment of the kill is what the test varies.
            tokio::time::sleep(Duration::from_millis(moment)).await;
            service.kill();
            let acknowledged = sending.await.unwrap();

            let service = Service::start(hosted(dir.path()));
            let client = service.admin().await;
            let again = client.ingest(json!(objects)).await;
            let created = again["nodes_created"].as_u64().unwrap();
            println!("killed after {moment} ms, acknowledged: {acknowledged}, created again: {created}");
            assert!(created == 0 || (created == size && !acknowledged), "{again}");
            let last = format!("{word} part {}", size - 1);
            let found = client.search_with(&last, &[]).await;
            assert_eq!(text(&found["results"][0], "name"), last);
            assert_chain(&client).await;
            service.kill();
        }
    });
}

#[test]
fn sigterm_lets_the_ingest_under_way_finish_and_the_exit_code_is_0() {
    run(async {
        let dir = started_once();
        let mut service = Service::start(hosted(dir.path()));
        let client = service.admin().await;
        let word = format!("w{}", uuid::Uuid::new_v4().simple());
        let size = extent(400, 2_000);
        let objects: Vec<Value> = (0..size)
            .map(|i| object("tool", &format!("{word} part {i}")))
            .collect();
        let (sender, body) = (client.clone(), json!({"bundle": objects}));
        let sending = tokio::spawn(async move { sender.post(STIX, &body).await.expect(201).await });
        // The metrics show when the ingest is running.
        while !client
            .metrics()
            .await
            .contains("actor_in_flight{actor=\"graph_store\"} 1")
        {
            assert!(
                !sending.is_finished(),
                "the ingest was too quick to be interrupted"
            );
            tokio::task::yield_now().await;
        }
        service.terminate();
        let answer = sending.await.unwrap();
        assert_eq!(answer["results"]["nodes_created"], size);
        assert_eq!(service.ended().await.code(), Some(0));

        let service = Service::start(hosted(dir.path()));
        let client = service.admin().await;
        let again = client.ingest(json!(objects)).await;
        assert_eq!(
            (&again["nodes_created"], &again["nodes_updated"]),
            (&json!(0), &json!(0))
        );
        assert_chain(&client).await;
        service.kill();
    });
}

#[test]
fn a_service_that_has_told_its_address_stops_in_order() {
    run(async {
        let dir = started_once();
        for _ in 0..5 {
            let mut service = Service::start(hosted(dir.path()));
            service.terminate();
            let ended = service.ended().await;
            assert!(ended.success(), "{ended}");
        }
    });
}

#[test]
fn a_second_process_on_the_same_directory_says_so_and_ends() {
    run(async {
        let dir = started_once();
        let service = Service::start(hosted(dir.path()));
        let client = service.admin().await;
        client.ingest(json!([object("tool", "First Come")])).await;
        let second = finish(&mut hosted(dir.path()));
        let said = String::from_utf8_lossy(&second.stderr).into_owned();
        assert_eq!(second.status.code(), Some(1), "{said}");
        assert!(said.contains("is in use by another process"), "{said}");
        assert!(said.contains(&dir.path().display().to_string()), "{said}");
        assert_eq!(
            client.search("First Come").await["count"],
            1,
            "the first one serves on"
        );
        client.ingest(json!([object("tool", "Second Come")])).await;
        service.kill();
    });
}

#[test]
fn a_lost_index_is_rebuilt_from_the_store() {
    run(async {
        let dir = started_once();
        let mut service = Service::start(hosted(dir.path()));
        let sent = bundle();
        service.admin().await.ingest(json!(sent.objects)).await;
        service.terminate();
        service.ended().await;
        std::fs::remove_dir_all(dir.path().join("index")).unwrap();

        let mut service = Service::start(hosted(dir.path()));
        assert_eq!(found(&service.admin().await, &sent).await, sent.objects.len());
        service.terminate();
        service.ended().await;
        // A truncated index file is as useless as a missing one.
        for file in files(&dir.path().join("index")) {
            let length = std::fs::metadata(&file).unwrap().len();
            std::fs::OpenOptions::new()
                .write(true)
                .open(&file)
                .unwrap()
                .set_len(length / 2)
                .unwrap();
        }
        let service = Service::start(hosted(dir.path()));
        assert_eq!(found(&service.admin().await, &sent).await, sent.objects.len());
        service.kill();
    });
}

fn files(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

#[test]
fn the_token_secret_is_private_and_tokens_outlive_a_restart() {
    use std::os::unix::fs::PermissionsExt;
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let app = TestApp::durable(dir.path()).await;
        let login = json!({"email": ADMIN, "password": PASSWORD});
        let answer = app
            .anonymous()
            .post("/api/auth/login", &login)
            .await
            .expect(200)
            .await;
        let bearer = format!("Bearer {}", text(&answer, "access_token"));
        app.stop().await;
        let mode = std::fs::metadata(dir.path().join("jwt.secret"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        let app = TestApp::durable(dir.path()).await;
        app.anonymous()
            .with_header("authorization", &bearer)
            .get("/api/auth/me")
            .await
            .expect(200)
            .await;
        app.stop().await;
    });
}

#[test]
fn bad_configuration_ends_with_code_2_and_names_the_key() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("settings.toml");
    let refused = |command: &mut std::process::Command, names: &str| {
        let output = finish(command);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{names}: {said}");
        assert!(said.contains(names), "{names}: {said}");
        assert!(!said.contains("panicked"), "{said}");
    };
    for (content, names) in [
        ("[server]\nworkers = 0", "server.workers"),
        ("[server]\nbind = \"nowhere\"", "server.bind"),
        ("[server]\nbody_limit = \"64 MiB\"", "server.body_limit"),
        ("[surprise]\na = 1", "surprise"),
        ("[actors.graph_store]\ngate = 0", "actors.graph_store.gate"),
        ("[limits.tiers]\ngold = 5", "limits.tiers.gold"),
        ("[log]\nfilter = \"=,=\"", "log.filter"),
        ("this is no TOML", "settings.toml"),
    ] {
        std::fs::write(&file, content).unwrap();
        let storage = format!("surrealkv://{}", dir.path().join("data").display());
        refused(
            program()
                .args(["hosted", "--storage", &storage, "--config"])
                .arg(&file),
            names,
        );
    }
    for (name, value, names) in [
        ("THREAT_MEMORY_SERVER__WORKERS", "many", "server.workers"),
        ("THREAT_MEMORY_SERVER__BIND", "nowhere", "server.bind"),
        ("THREAT_MEMORY_SERVER__SURPRISE", "1", "surprise"),
        ("THREAT_MEMORY_JWT_SECRET", "short", "THREAT_MEMORY_JWT_SECRET"),
        ("THREAT_MEMORY_EMBEDDING__PROVIDER", "magic", "embedding.provider"),
    ] {
        refused(
            program().args(["hosted", "--storage", "mem://"]).env(name, value),
            names,
        );
    }
    for (arguments, names) in [
        (["hosted", "--bind", "nowhere"], "server.bind"),
        (["hosted", "--storage", "file://x"], "storage.url"),
        (
            ["hosted", "--storage", "ws://127.0.0.1:1"],
            "THREAT_MEMORY_STORAGE_USER",
        ),
        (["hosted", "--config", "not-there.toml"], "not-there.toml"),
        (["hosted", "--surprise", "1"], "--surprise"),
    ] {
        refused(program().args(arguments), names);
    }
    assert!(
        !dir.path().join("data").join("store").exists(),
        "a refused start left a store"
    );
}

#[test]
fn help_tells_a_stranger_every_command_and_where_the_secrets_come_from() {
    let output = finish(program().arg("--help"));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success());
    for word in [
        "demo",
        "hosted",
        "--version",
        "THREAT_MEMORY_ADMIN_EMAIL",
        "THREAT_MEMORY_JWT_SECRET",
        "config/hosted.toml",
    ] {
        assert!(said.contains(word), "{word}: {said}");
    }
    let output = finish(program().args(["hosted", "--help"]));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    for word in [
        "--config",
        "--bind",
        "--storage",
        "surrealkv://",
        "127.0.0.1:8080",
    ] {
        assert!(said.contains(word), "{word}: {said}");
    }
}
