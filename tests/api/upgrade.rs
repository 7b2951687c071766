//! Data directories of earlier versions: opened by this one, they hold all that they held, and go on.
//!
//! `tests/data/stores` has an archive for each version; `make.py` there made them with the programs of these versions,
//! beside what the programs answered.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::helpers::{Client, run};
use crate::local::durability::local;
use crate::process::{Service, finish, hosted, program};
use crate::stix::{object, text};

/// Archives of data directories, by the number of the last migration.
const VERSIONS: [u32; 2] = [25, 37];

fn unpack(version: u32) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let archive =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/stores/schema-{version}.tar.gz"));
    let done = finish(
        Command::new("tar")
            .arg("-xzf")
            .arg(archive)
            .arg("-C")
            .arg(dir.path()),
    );
    assert!(done.status.success(), "{done:?}");
    dir
}

fn answers(dir: &Path, service: &str) -> Value {
    let all = std::fs::read(dir.join("answers.json")).unwrap();
    let all: Value = serde_json::from_slice(&all).unwrap();
    all[service].clone()
}

/// The ids of results, sorted.
fn ids(results: &Value, key: &str) -> Value {
    let results = results.as_array().unwrap().iter();
    let mut ids: Vec<&str> = results.map(|row| row[key].as_str().unwrap()).collect();
    ids.sort_unstable();
    json!(ids)
}

fn by_id(mut objects: Vec<Value>) -> Vec<Value> {
    objects.sort_by_key(|object| object["id"].as_str().unwrap().to_owned());
    objects
}

/// A node without what an earlier version did not know: merges and warninglists.
fn of_every_version(node: &Value) -> Value {
    let mut node = node.clone();
    node.as_object_mut().unwrap().remove("merged");
    node["node"]["properties"]
        .as_object_mut()
        .unwrap()
        .remove("warninglists");
    node
}

async fn assert_hosted(client: &Client, before: &Value) {
    for (query, found) in before["searches"].as_object().unwrap() {
        // An earlier version returned what is merely like a value, too.
        let is_value = query.contains('.');
        let path = format!(
            "/api/recall/search?limit=20&min_score=0&q={}",
            query.replace(' ', "%20")
        );
        let now = client.get(&path).await.expect(200).await;
        // The last write of the earlier version is found now, too.
        let all = ids(&now["results"], "id");
        for id in found.as_array().unwrap().iter().filter(|_| !is_value) {
            assert!(all.as_array().unwrap().contains(id), "{query}: {id} is not found");
        }
    }
    for (id, node) in before["nodes"].as_object().unwrap() {
        let now = client.get(&format!("/api/nodes/{id}")).await.expect(200).await;
        assert_eq!(now["merged"], json!([]));
        let [now, node] = [&now, node].map(of_every_version);
        assert_eq!(now, node);
    }
    let found = client.search("Fixture Heron of the last moment").await;
    assert_eq!(
        text(&found["results"][0], "name"),
        "Fixture Heron of the last moment"
    );
    let found = client
        .get("/api/recall/search?limit=20&q=Fixture%20Heron")
        .await
        .expect(200)
        .await;
    let bundle = client.export(text(&found, "recall_id")).await;
    let exported = bundle["objects"].as_array().unwrap().clone();
    for object in before["exported"].as_array().unwrap() {
        assert!(exported.contains(object), "{object} does not leave as it did");
    }
    let batch = format!("/api/ingest/batch/{}", text(before, "batch"));
    let batch = client.get(&batch).await.expect(200).await;
    let entities = by_id(batch["entities"].as_array().unwrap().clone());
    assert_eq!(entities, by_id(before["entities"].as_array().unwrap().clone()));
}

#[test]
fn the_hosted_service_opens_what_earlier_versions_wrote() {
    run(async {
        for version in VERSIONS {
            let dir = unpack(version);
            let before = answers(dir.path(), "hosted");
            let service = Service::start(hosted(&dir.path().join("hosted")));
            let client = service.admin().await;
            assert_hosted(&client, &before).await;

            // What waits goes on waiting for the same, and writes go on.
            let definition = json!({"type": "marking-definition", "spec_version": "2.1",
                "id": "marking-definition--31b940d4-6f7f-459a-80ea-9c1f17b58abc",
                "created": "2020-01-01T00:00:00.000Z", "definition_type": "statement",
                "definition": {"statement": "TLP:GREEN"}});
            let done = client
                .ingest(json!([object("tool", "Later Spade"), definition]))
                .await;
            assert_eq!(
                (&done["nodes_created"], &done["remarked"]),
                (&json!(1), &json!(1)),
                "{done}"
            );
            for entity in before["entities"].as_array().unwrap() {
                client.decide(entity, json!({"status": "accepted"})).await;
            }
            let committed = client.commit(&before["batch"]).await;
            assert_eq!(committed["remaining"], 0, "{committed}");
            drop(client);
            service.kill();

            let service = Service::start(hosted(&dir.path().join("hosted")));
            let client = service.admin().await;
            let found = client.search("Later Spade").await;
            assert_eq!(text(&found["results"][0], "name"), "Later Spade");
            let chain = client.get("/api/audit/verify").await.expect(200).await;
            assert_eq!(chain["valid"], true, "{chain}");
            service.stop();
        }
    });
}

#[test]
fn the_hosted_service_opens_what_the_first_version_wrote() {
    run(async {
        let dir = unpack(1);
        let before = answers(dir.path(), "hosted");
        let service = Service::start(hosted(&dir.path().join("hosted")));
        let client = service.admin().await;
        let key = service.anonymous().bearer(text(&before, "key"));
        for (query, found) in before["searches"].as_object().unwrap() {
            let now = key.search(query).await;
            for id in found.as_array().unwrap() {
                assert!(
                    ids(&now["results"], "id").as_array().unwrap().contains(id),
                    "{query}: {id} is not found"
                );
            }
        }
        let found = client.search("Fixture Heron").await;
        let exported = client.export(text(&found, "recall_id")).await;
        let exported = exported["objects"].as_array().unwrap();
        for object in before["exported"].as_array().unwrap() {
            assert!(
                exported.contains(object),
                "{object} does not leave as it did: {exported:?}"
            );
        }
        client.ingest(json!([object("tool", "Later Spade")])).await;
        let chain = client.get("/api/audit/verify").await.expect(200).await;
        assert_eq!(chain["valid"], true, "{chain}");
        service.kill();
        let service = Service::start(hosted(&dir.path().join("hosted")));
        let found = service.admin().await.search("Later Spade").await;
        assert_eq!(text(&found["results"][0], "name"), "Later Spade");
        service.stop();
    });
}

#[test]
fn an_archive_of_an_earlier_version_is_brought_up_to_date() {
    run(async {
        for version in VERSIONS {
            let dir = unpack(version);
            let before = answers(dir.path(), "hosted");
            let archive = dir.path().join("archive.tar.zst");
            let archive = archive.to_str().unwrap();
            let restored = dir.path().join("restored");
            for (arguments, store) in [
                (
                    vec!["backup", "--with-secrets", archive],
                    &dir.path().join("hosted"),
                ),
                (vec!["restore", archive], &restored),
            ] {
                let mut command = program();
                command.args(arguments).arg("--storage");
                command.arg(format!("surrealkv://{}", store.display()));
                let done = finish(command.env("THREAT_MEMORY_BACKUP_PASSPHRASE", "a passphrase of the test"));
                assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            }
            let service = Service::start(hosted(&restored));
            assert_hosted(&service.admin().await, &before).await;
            service.stop();
        }
    });
}

async fn assert_local(client: &Client, before: &Value) {
    for path in ["entities", "graph/nodes", "graph/edges"] {
        let now = client.get(&format!("/api/{path}")).await.expect(200).await;
        assert_eq!(now, before[path], "{path}");
    }
    for (query, found) in before["recalls"].as_object().unwrap() {
        let body = json!({"query": query, "k": 20, "min_score": 0});
        let now = client.post("/api/recall", &body).await.expect(200).await;
        let all = ids(&now["results"], "id");
        if query.contains('.') {
            // An earlier version returned what is merely like a value, too.
            assert!(
                all.as_array()
                    .unwrap()
                    .iter()
                    .all(|id| found.as_array().unwrap().contains(id)),
                "{query}"
            );
            assert_ne!(all, json!([]), "{query}");
        } else {
            assert_eq!(all, *found, "{query}");
        }
    }
}

#[test]
fn the_local_service_opens_what_earlier_versions_wrote() {
    run(async {
        for version in VERSIONS {
            for derived in ["", "graph", "index"] {
                let dir = unpack(version);
                let before = answers(dir.path(), "local");
                let data = dir.path().join("local");
                if !derived.is_empty() {
                    std::fs::remove_dir_all(data.join(derived)).unwrap();
                }
                let service = Service::start(local(&data, 2));
                assert_local(&service.anonymous(), &before).await;
                let note = json!({"content": "A later note: Fixture Heron talks to 198.51.100.8."});
                service
                    .anonymous()
                    .post("/api/remember", &note)
                    .await
                    .expect(200)
                    .await;
                service.kill();
                let service = Service::start(local(&data, 2));
                let query = json!({"query": "198.51.100.8", "k": 3});
                let found = service
                    .anonymous()
                    .post("/api/recall", &query)
                    .await
                    .expect(200)
                    .await;
                assert!(found["results"].to_string().contains("A later note"), "{found}");
                service.stop();
            }
        }
    });
}
