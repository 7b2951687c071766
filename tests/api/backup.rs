//! Back-ups: written while the service goes on, checked, and restored into an empty store.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rand::Rng;
use serde_json::{Value, json};
use test_support::extent;

use crate::durability::{Sent, found, stream};
use crate::helpers::{ADMIN, Client, PASSWORD, run};
use crate::local::durability::local;
use crate::process::{Service, finish, hosted, printed, program, refused, started_once};
use crate::stix::{object, relationship};

const PASSPHRASE: &str = "nine words that nobody else would ever say";

/// A command with the credentials of the first administrator.
fn command(arguments: &[&str]) -> Command {
    let mut command = program();
    command
        .args(arguments)
        .env("THREAT_MEMORY_ADMIN_EMAIL", ADMIN)
        .env("THREAT_MEMORY_ADMIN_PASSWORD", PASSWORD);
    command
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn storage(dir: &Path) -> String {
    format!("surrealkv://{}", dir.display())
}

/// Everything of the graph that its administrator sees, and what was done, by id.
async fn everything(client: &Client) -> Value {
    let mut graph = client.get("/api/graph?limit=200").await.expect(200).await;
    let nodes = graph["nodes"].as_array().unwrap().clone();
    let mut all = Vec::new();
    for node in &nodes {
        let path = format!("/api/nodes/{}", node["id"].as_str().unwrap());
        all.push(client.get(&path).await.expect(200).await);
    }
    let lists = graph.as_object_mut().unwrap().values_mut();
    for list in lists.filter_map(Value::as_array_mut) {
        list.sort_by_key(ToString::to_string);
    }
    let changes = client
        .get("/api/changes?since=0&limit=200")
        .await
        .expect(200)
        .await;
    json!({"graph": graph, "nodes": all, "changes": changes["changes"]})
}

#[test]
fn an_archive_and_its_increments_restore_everything() {
    run(async {
        let files = tempfile::tempdir().unwrap();
        let file = |name: &str| files.path().join(name);
        let dir = started_once();
        let service = Service::start(hosted(dir.path()));
        let admin = service.admin().await;
        let base = admin.base.clone();
        let tools: Vec<Value> = (0..12)
            .map(|at| object("tool", &format!("Kept tool {at}")))
            .collect();
        let edges = tools
            .windows(2)
            .map(|pair| relationship(&pair[0], "uses", &pair[1]));
        admin.ingest(tools.iter().cloned().chain(edges).collect()).await;
        let key = admin.add_key(&["read"]).await.1;
        let in_use = refused(&mut command(&[
            "backup",
            text(&file("0")),
            "--storage",
            &storage(dir.path()),
        ]));
        assert!(in_use.contains("--url"), "{in_use}");

        let whole = file("whole.tar.zst");
        let said = printed(&mut command(&["backup", text(&whole), "--url", &base]));
        assert!(
            said.contains("sound") && said.contains("without secrets"),
            "{said}"
        );
        let again = refused(&mut command(&["backup", text(&whole), "--url", &base]));
        assert!(again.contains("exists already"), "{again}");
        admin.ingest(json!([object("tool", "Tool of later")])).await;
        let (first, second) = (file("first.tar.zst"), file("second.tar.zst"));
        let since = |to: &Path, from: &Path| {
            let arguments = [
                "backup",
                text(to),
                "--url",
                &base,
                "--since",
                text(from),
                "--with-secrets",
            ];
            let mut command = command(&arguments);
            command.env("THREAT_MEMORY_BACKUP_PASSPHRASE", PASSPHRASE);
            command
        };
        printed(&mut since(&first, &whole));
        admin.ingest(json!([object("tool", "Tool of the end")])).await;
        let before = everything(&admin).await;
        printed(&mut since(&second, &first));
        assert_eq!(admin.audited("backup.create").await.len(), 3);
        service.stop();

        for (files, why) in [
            (vec![&whole, &second], "must be named before"),
            (vec![&second], "must be named before"),
            (vec![&first, &whole, &second], "must be named before"),
        ] {
            let target = file("none/store");
            let mut arguments = vec!["restore"];
            arguments.extend(files.iter().map(|file| text(file)));
            let storage = storage(&target);
            arguments.extend(["--storage", &storage]);
            let said = refused(&mut command(&arguments));
            assert!(said.contains(why), "{said}");
            assert!(
                !target.exists(),
                "nothing is written before the archives are checked"
            );
        }
        let target = file("restored");
        let storage = storage(&target);
        let chain = [text(&whole), text(&first), text(&second)];
        printed(&mut command(&[&["verify"][..], &chain].concat()));
        let restore = [&["restore"][..], &chain, &["--storage", &storage]].concat();
        let said = refused(&mut command(&restore));
        assert!(said.contains("THREAT_MEMORY_BACKUP_PASSPHRASE"), "{said}");
        let said = refused(command(&restore).env("THREAT_MEMORY_BACKUP_PASSPHRASE", "another passphrase"));
        assert!(said.contains("passphrase is another one"), "{said}");
        printed(command(&restore).env("THREAT_MEMORY_BACKUP_PASSPHRASE", PASSPHRASE));
        let said = refused(command(&restore).env("THREAT_MEMORY_BACKUP_PASSPHRASE", PASSPHRASE));
        assert!(said.contains("not empty"), "{said}");

        let service = Service::start(hosted(&target));
        let admin = service.admin().await;
        assert_eq!(everything(&admin).await, before);
        let found = service.anonymous().bearer(&key).search("Tool of later").await;
        assert_eq!(
            found["results"][0]["name"], "Tool of later",
            "the key works, and the index is made"
        );
        let chain = admin.get("/api/audit/verify").await.expect(200).await;
        assert_eq!(
            (&chain["valid"], &chain["unchained"]),
            (&json!(true), &json!(0)),
            "{chain}"
        );
        // The same object again is no second node: the ids are made as before.
        let again = admin.ingest(json!([tools[0]])).await;
        assert_eq!(everything(&admin).await["graph"], before["graph"], "{again}");
        service.stop();
    });
}

#[test]
fn without_secrets_accounts_are_there_and_have_no_password() {
    run(async {
        let files = tempfile::tempdir().unwrap();
        let (archive, target) = (files.path().join("a.tar.zst"), files.path().join("restored"));
        let dir = started_once();
        printed(&mut command(&[
            "backup",
            text(&archive),
            "--storage",
            &storage(dir.path()),
        ]));
        let missing = files.path().join("nowhere");
        let said = refused(&mut command(&["backup", "-", "--storage", &storage(&missing)]));
        assert!(said.contains("there is no store"), "{said}");
        let decoder = zstd::Decoder::new(std::fs::File::open(&archive).unwrap()).unwrap();
        let mut all = Vec::new();
        decoder.take(1 << 30).read_to_end(&mut all).unwrap();
        let all = String::from_utf8_lossy(&all);
        assert!(
            all.contains(ADMIN) && !all.contains("argon2"),
            "no hash of a password is in it"
        );
        let said = printed(&mut command(&[
            "restore",
            text(&archive),
            "--storage",
            &storage(&target),
        ]));
        assert!(said.contains("reset-password"), "{said}");
        let mut reset = command(&["admin", "reset-password", ADMIN, "--storage", &storage(&target)]);
        printed(reset.env("THREAT_MEMORY_NEW_PASSWORD", PASSWORD));
        let service = Service::start(hosted(&target));
        service.admin().await;
        service.stop();
    });
}

#[test]
fn what_is_no_sound_archive_is_refused_before_anything_is_written() {
    run(async {
        let files = tempfile::tempdir().unwrap();
        let dir = started_once();
        let sound = files.path().join("sound.tar.zst");
        printed(&mut command(&[
            "backup",
            text(&sound),
            "--storage",
            &storage(dir.path()),
        ]));
        let bytes = std::fs::read(&sound).unwrap();
        let mut flipped = bytes.clone();
        flipped[bytes.len() / 2] ^= 4;
        for (name, bytes, why) in [
            ("empty", &b""[..], "no archive of threat-memory"),
            ("text", b"{\"type\": \"bundle\"}", "no archive of threat-memory"),
            ("short", &bytes[..bytes.len() / 2], "ends before its manifest"),
            ("flipped", &flipped, "damaged"),
        ] {
            let file = files.path().join(name);
            std::fs::write(&file, bytes).unwrap();
            let target = files.path().join("restored");
            for arguments in [
                vec!["verify", text(&file)],
                vec!["restore", text(&file), "--storage", &storage(&target)],
            ] {
                let said = refused(&mut command(&arguments));
                assert!(said.contains(why), "{name}: {said}");
            }
            assert!(!target.exists());
        }
        let to_local = files.path().join("local");
        let said = refused(&mut command(&[
            "restore",
            text(&sound),
            "--data-dir",
            text(&to_local),
        ]));
        assert!(said.contains("hosted service"), "{said}");
        // A refused restore does not make anybody forget what the store has lost.
        let marker = dir.path().join("store.marker");
        let ahead = "00999999999999999999\n";
        std::fs::write(&marker, ahead).unwrap();
        let onto = refused(&mut command(&[
            "restore",
            text(&sound),
            "--storage",
            &storage(dir.path()),
        ]));
        assert!(onto.contains("lost commits"), "{onto}");
        assert_eq!(std::fs::read_to_string(&marker).unwrap(), ahead);
    });
}

#[test]
fn a_restore_that_was_killed_goes_on_where_it_ended() {
    run(async {
        let files = tempfile::tempdir().unwrap();
        let dir = started_once();
        let service = Service::start(hosted(dir.path()));
        let admin = service.admin().await;
        let tools: Value = (0..extent(20, 150))
            .map(|at| object("tool", &format!("Kept tool {at}")))
            .collect();
        admin.ingest(tools).await;
        let before = everything(&admin).await;
        service.stop();
        let archive = files.path().join("a.tar.zst");
        let secret = |command: &mut Command| {
            command.env("THREAT_MEMORY_BACKUP_PASSPHRASE", PASSPHRASE);
            command.stdout(Stdio::null()).stderr(Stdio::null());
        };
        let mut back_up = command(&[
            "backup",
            text(&archive),
            "--with-secrets",
            "--storage",
            &storage(dir.path()),
        ]);
        secret(&mut back_up);
        printed(&mut back_up);
        for round in 0..extent(1, 20) {
            let target = files.path().join(format!("restored-{round}"));
            let mut restore = command(&["restore", text(&archive), "--storage", &storage(&target)]);
            secret(&mut restore);
            let mut killed = restore.spawn().unwrap();
            let moment = rand::rng().random_range(100..1500);
            // The moment of the kill is what the test varies.
            tokio::time::sleep(Duration::from_millis(moment)).await;
            killed.kill().ok();
            let was_done = killed.wait().unwrap().success();
            if !was_done {
                // What is there of it is no memory that anybody should keep.
                for (arguments, done) in [
                    (vec!["check", "--storage", &storage(&target)], "store: sound"),
                    (
                        vec![
                            "backup",
                            text(&files.path().join("half")),
                            "--storage",
                            &storage(&target),
                        ],
                        "sound",
                    ),
                ] {
                    let ended = finish(&mut command(&arguments));
                    let said = [ended.stdout, ended.stderr].concat();
                    let said = String::from_utf8_lossy(&said);
                    assert!(
                        !ended.status.success() && !said.contains(done),
                        "{arguments:?}: {said}"
                    );
                }
                if let Ok(service) = Service::try_start(hosted(&target)) {
                    // Killed before it wrote anything; the service has made a store of its own.
                    let graph = service.admin().await.get("/api/graph").await.expect(200).await;
                    assert_eq!(graph["nodes"], json!([]), "a store restored in part is served");
                    service.stop();
                    std::fs::remove_dir_all(&target).unwrap();
                }
                let ended = finish(&mut restore);
                let said = String::from_utf8_lossy(&ended.stderr).into_owned();
                assert!(ended.status.success(), "round {round} after {moment} ms: {said}");
            }
            let service = Service::start(hosted(&target));
            assert_eq!(
                everything(&service.admin().await).await,
                before,
                "round {round} after {moment} ms"
            );
            service.stop();
        }
    });
}

/// A back-up on its way.
async fn back_up(base: String, file: PathBuf) -> bool {
    let mut command = command(&["backup", text(&file), "--url", &base]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    tokio::task::spawn_blocking(move || finish(&mut command).status.success())
        .await
        .unwrap()
}

/// The restored store holds of each writer a first part of what was sent, whole, and all that was acknowledged before the
/// back-up began.
async fn assert_prefix(archive: &Path, target: &Path, acknowledged: &[Sent], streams: &[Vec<Sent>]) -> usize {
    let restore = [text(archive), "--without-secrets", "--storage", &storage(target)];
    printed(&mut command(&[&["restore"][..], &restore].concat()));
    let mut reset = command(&["admin", "reset-password", ADMIN, "--storage", &storage(target)]);
    printed(reset.env("THREAT_MEMORY_NEW_PASSWORD", PASSWORD));
    let service = Service::start(hosted(target));
    let client = service.admin().await;
    let mut there = 0;
    for sent in acknowledged {
        assert_eq!(
            found(&client, sent).await,
            sent.objects.len(),
            "sent before the back-up"
        );
    }
    for stream in streams {
        let mut is_over = false;
        for sent in stream {
            let count = found(&client, sent).await;
            assert!(
                [0, sent.objects.len()].contains(&count),
                "{count} objects of a bundle"
            );
            assert!(
                count == 0 || !is_over,
                "a later bundle is there, and an earlier one is not"
            );
            is_over = count == 0;
            there += usize::from(count > 0);
        }
    }
    let chain = client.get("/api/audit/verify").await.expect(200).await;
    assert_eq!(chain["valid"], true, "{chain}");
    service.stop();
    there
}

#[test]
fn a_back_up_beside_writers_is_a_first_part_of_what_they_wrote() {
    run(async {
        let dir = started_once();
        let files = tempfile::tempdir().unwrap();
        for round in 0..extent(1, 20) {
            let service = Service::start(hosted(dir.path()));
            let client = service.admin().await;
            let writers = |stop: &Arc<AtomicBool>| -> Vec<_> {
                (0..extent(4, 16))
                    .map(|_| tokio::spawn(stream(client.clone(), Arc::clone(stop))))
                    .collect()
            };
            let (before, beside) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
            let first = writers(&before);
            tokio::time::sleep(Duration::from_millis(300)).await;
            before.store(true, Ordering::Relaxed);
            let mut acknowledged = Vec::new();
            for writer in first {
                acknowledged.extend(writer.await.unwrap().into_iter().filter(|sent| sent.acknowledged));
            }
            let second = writers(&beside);
            let archive = files.path().join(format!("{round}.tar.zst"));
            let writing = tokio::spawn(back_up(client.base.clone(), archive.clone()));
            // Every second service is killed while it writes; the moment is what the test varies.
            let moment = rand::rng().random_range(50..1500);
            let is_killed = round % 2 == 1;
            if is_killed {
                tokio::time::sleep(Duration::from_millis(moment)).await;
                service.kill();
            }
            let is_done = writing.await.unwrap();
            beside.store(true, Ordering::Relaxed);
            let mut streams = Vec::new();
            for writer in second {
                streams.push(writer.await.unwrap());
            }
            assert!(is_done || is_killed);
            assert_eq!(is_done, archive.exists(), "a file is there when it is said to be");
            if is_done {
                let target = files.path().join(format!("restored-{round}"));
                let there = assert_prefix(&archive, &target, &acknowledged, &streams).await;
                println!("round {round}: {there} bundles written beside the back-up are in it");
            }
        }
    });
}

#[test]
fn a_local_memory_is_backed_up_through_its_service_and_restored() {
    run(async {
        let (dir, files) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let archive = files.path().join("memory.tar.zst");
        let service = Service::start(local(dir.path(), 8));
        let client = service.anonymous();
        let note = json!({"content": "Sandworm used Industroyer against the grid of Kyiv."});
        client.post("/api/remember", &note).await.expect(200).await;
        let question = json!({"query": "Who used Industroyer?"});
        let before = client.post("/api/recall", &question).await.expect(200).await;
        let back_up = ["backup", text(&archive), "--data-dir", text(dir.path())];
        // The account of a hosted service in the environment is no credential of a local one.
        let said = printed(&mut command(&back_up));
        assert!(said.contains("local service"), "{said}");
        service.stop();
        let offline = files.path().join("offline.tar.zst");
        printed(&mut command(&[
            "backup",
            text(&offline),
            "--data-dir",
            text(dir.path()),
        ]));
        for archive in [&archive, &offline] {
            let target = archive.with_extension("restored");
            printed(&mut command(&[
                "restore",
                text(archive),
                "--data-dir",
                text(&target),
            ]));
            let service = Service::start(local(&target, 8));
            let now = service
                .anonymous()
                .post("/api/recall", &question)
                .await
                .expect(200)
                .await;
            assert_eq!(now["notes"][0]["id"], before["notes"][0]["id"], "{now}");
            assert_eq!(now["notes"][0]["content"], before["notes"][0]["content"]);
            service.stop();
        }
    });
}
