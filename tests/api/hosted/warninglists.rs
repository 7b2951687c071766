//! What is on a warninglist is kept, marked, warned of and ranked below.

use std::fs;

use serde_json::{Value, json};
use test_support::eventually;

use crate::helpers::{Client, TestApp, run, settings};
use crate::process::{Service, hosted, started_once};
use crate::stix::{object, text, with};

async fn enter(client: &Client, name: &str, description: &str) {
    let node = json!({"name": name, "node_type": "ioc", "description": description, "confidence": 0.8});
    let body = json!({"nodes": [node]});
    client.post("/api/ingest/analyst", &body).await.expect(201).await;
}

fn named<'a>(found: &'a Value, name: &str) -> &'a Value {
    let results = found["results"].as_array().unwrap();
    results.iter().find(|node| node["name"] == name).unwrap()
}

#[test]
fn what_is_listed_is_kept_marked_and_ranked_below() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        enter(
            admin,
            "8.8.8.8",
            "Beacon of the turnstile loader, of the turnstile.",
        )
        .await;
        enter(admin, "45.148.10.9", "Beacon of the turnstile loader.").await;
        let indicator = with(
            object("indicator", "Resolver"),
            json!({"pattern": "[ipv4-addr:value = '1.1.1.1' OR domain-name:value = 'listed-not.com']"}),
        );
        admin.ingest(json!([indicator])).await;

        let found = admin.search("turnstile loader beacon").await;
        let names: Vec<&str> = found["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|node| text(node, "name"))
            .collect();
        assert_eq!(names, ["45.148.10.9", "8.8.8.8"]);
        let lists = json!(["Public DNS resolvers"]);
        assert_eq!(named(&found, "8.8.8.8")["properties"]["warninglists"], lists);
        assert!(named(&found, "45.148.10.9")["properties"]["warninglists"].is_null());
        assert_eq!(named(&found, "8.8.8.8")["confidence"], 0.8);
        let found = admin.search("8.8.8.8").await;
        assert_eq!(found["results"][0]["name"], "8.8.8.8");
        let path = format!("/api/nodes/{}", text(&found["results"][0], "id"));
        let read = admin.get(&path).await.expect(200).await;
        assert_eq!(read["node"]["properties"]["warninglists"], lists);
        let found = admin.search("Resolver").await;
        assert_eq!(named(&found, "Resolver")["properties"]["warninglists"], lists);

        let body = json!({"values": ["8.8.8.8", "8.8.4.4", "www.google.com", "10.0.0.0/8"]});
        let answer = admin.post("/api/recall/lookup", &body).await.expect(200).await;
        let told: Vec<&str> = answer["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|result| text(result, "verdict"))
            .collect();
        assert_eq!(told, ["known", "listed", "listed", "listed"]);
        assert_eq!(answer["results"][0]["warninglists"], lists);
        assert_eq!(
            answer["results"][2]["warninglists"],
            json!(["Well-known domains"])
        );
        app.stop().await;
    });
}

#[test]
fn previews_and_feed_batches_warn() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let body = json!({"text": "The loader resolves names by 8.8.8.8 and beacons to 45.148.10.9.", "ingest_mode": "auto"});
        let preview = admin.post("/api/ingest/preview", &body).await.expect(200).await;
        let entities = preview["entities"].as_array().unwrap();
        let warnings = |name: &str| {
            let entity = entities.iter().find(|entity| entity["name"] == name).unwrap();
            entity["warnings"].clone()
        };
        assert_eq!(
            warnings("8.8.8.8"),
            json!(["on a warninglist: Public DNS resolvers"])
        );
        assert_eq!(warnings("45.148.10.9"), json!([]));
        // It is taken nevertheless.
        assert_eq!(admin.search("8.8.8.8").await["results"][0]["name"], "8.8.8.8");

        let listed = with(
            object("indicator", "Listed"),
            json!({"pattern": "[ipv4-addr:value = '9.9.9.9']"}),
        );
        let body = json!({"input_kind": "stix_bundle", "bundle": [listed]});
        let batch = admin
            .post("/api/threat-intel/batches", &body)
            .await
            .expect(201)
            .await;
        let items = admin.items(text(&batch["batch"], "id")).await;
        let warned = items[0]["warnings"].as_array().unwrap();
        assert!(
            warned.contains(&json!("on a warninglist: Public DNS resolvers")),
            "{warned:?}"
        );
        app.stop().await;
    });
}

#[test]
fn an_operators_lists_count_and_may_lower_the_confidence() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let list = json!({"name": "Own", "description": "", "version": 1, "type": "hostname", "list": ["own-office.net"]});
        fs::write(dir.path().join("own.json"), list.to_string()).unwrap();
        let mut settings = settings("mem://");
        settings.warninglists.dir = dir.path().to_owned();
        settings.ingest.lower_listed_confidence = true;
        let app = TestApp::with(settings).await;
        let admin = &app.admin;
        enter(admin, "mail.own-office.net", "").await;
        enter(admin, "elsewhere-office.net", "").await;
        let indicator = with(
            object("indicator", "Ours"),
            json!({"pattern": "[domain-name:value = 'www.own-office.net']", "confidence": 80}),
        );
        admin.ingest(json!([indicator])).await;
        for (name, confidence, lists) in [
            ("mail.own-office.net", 0.4, json!(["Own"])),
            ("elsewhere-office.net", 0.8, Value::Null),
            ("Ours", 0.4, json!(["Own"])),
        ] {
            let found = admin.search(name).await;
            let node = named(&found, name);
            assert_eq!(node["confidence"], confidence, "{name}");
            assert_eq!(node["properties"]["warninglists"], lists, "{name}");
        }
        app.stop().await;
    });
}

#[test]
fn a_bad_list_stops_the_start_with_its_file() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        fs::write(
            dir.path().join("bad.json"),
            "{\"name\":\"x\",\"type\":\"string\"}",
        )
        .unwrap();
        let mut settings = settings("mem://");
        settings.warninglists.dir = dir.path().to_owned();
        let error = threat_memory::app::hosted::Application::start(settings)
            .await
            .err()
            .unwrap();
        let error = error.to_string();
        assert!(
            error.contains("warninglists.dir") && error.contains("bad.json: missing field `list`"),
            "{error}"
        );
    });
}

#[test]
fn a_hangup_reads_the_lists_again_and_a_bad_one_changes_nothing() {
    run(async {
        let (data, lists) = (started_once(), tempfile::tempdir().unwrap());
        let file = lists.path().join("own.json");
        let write = |hosts: &[&str]| {
            let list =
                json!({"name": "Own", "description": "", "version": 1, "type": "hostname", "list": hosts});
            fs::write(&file, list.to_string()).unwrap();
        };
        write(&["first-office.net"]);
        let mut command = hosted(data.path());
        command.env("THREAT_MEMORY_WARNINGLISTS__DIR", lists.path());
        let service = Service::start(command);
        let admin = service.admin().await;
        let hosts = ["first-office.net", "second-office.net"];
        let listed = || async {
            let asked = json!({"values": hosts});
            let found = admin.post("/api/recall/lookup", &asked).await.expect(200).await;
            let verdicts = found["results"].as_array().unwrap().iter();
            verdicts
                .map(|one| one["verdict"] == "listed")
                .collect::<Vec<bool>>()
        };
        let hang_up = || {
            let sent = std::process::Command::new("kill")
                .args(["-HUP", &service.pid().to_string()])
                .status();
            assert!(sent.unwrap().success());
        };
        assert_eq!(listed().await, [true, false]);
        write(&["second-office.net"]);
        hang_up();
        eventually(|| async {
            let now = listed().await;
            (now == [false, true]).then_some(()).ok_or(now)
        })
        .await;
        // A test can't wait for what does not happen: this is long enough for a list of one host.
        fs::write(&file, "{}").unwrap();
        hang_up();
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        assert_eq!(listed().await, [false, true]);
        write(&hosts);
        hang_up();
        eventually(|| async {
            let now = listed().await;
            (now == [true, true]).then_some(()).ok_or(now)
        })
        .await;
        service.stop();
    });
}
