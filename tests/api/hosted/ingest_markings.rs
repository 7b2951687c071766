//! Who sees what when several sources describe the same thing at different markings.

use serde_json::{Value, json};
use test_support::{extent, is_full};

use crate::helpers::{Client, TestApp, run};
use crate::hosted::ways_in::counts;
use crate::stix::{evidence, text};

/// Restores the default visibility of the workspace.
async fn close(client: &Client) {
    let closed = json!({"tlp_ceiling": "TLP:AMBER", "elevated_clearance": false, "red_export_grant": false});
    client.settings(closed).await;
}

/// A body for one of the ingest routes that describes one subject.
fn told(way: &str, tlp: &str, said: &str) -> Value {
    match way {
        "analyst" => json!({"nodes": [
            {"name": "ZetaMoth", "node_type": "actor", "description": said, "tlp": tlp},
            {"name": "198.51.100.77", "node_type": "ioc", "description": said, "tlp": tlp}]}),
        "osint" => json!({"collector": "rss", "items": [
            {"title": "ZetaMoth", "type": "actor", "description": said, "tlp": tlp, "url": "https://n.example/1"},
            {"title": "Read this", "type": "osint", "description": said, "tlp": tlp, "url": "https://n.example/1"},
            {"title": "198.51.100.77", "type": "ioc", "description": said, "tlp": tlp}]}),
        "report" => json!({"title": "Of moths", "default_tlp": tlp, "content_blocks": [
            {"entity_name": "Fancy Bear", "node_type": "actor", "description": said,
             "excerpt": "APT28 uses X-Agent against ministries."},
            {"entity_name": "X-Agent", "node_type": "tool", "description": said}]}),
        "misp" => {
            let distribution = match tlp {
                "TLP:RED" => "0",
                "TLP:AMBER" => "1",
                _ => "3",
            };
            json!({"default_tlp": tlp, "event": {"uuid": "5d3f036b-0f50-4499-af4c-695a0a016219", "info": "Moths",
                "distribution": distribution, "Orgc": {"name": "CERT"}, "Attribute": [
                    {"type": "filename|md5", "value": "moth.exe|d41d8cd98f00b204e9800998ecf8427e", "comment": said},
                    {"type": "ip-dst", "value": "198.51.100.77", "comment": said,
                     "Tag": [{"name": "misp-galaxy:threat-actor=\"ZetaMoth\""}]}]}})
        }
        other => panic!("{other}"),
    }
}

const WAYS: [&str; 4] = ["analyst", "osint", "report", "misp"];

/// The name of a node described by [`told`].
fn subject(way: &str) -> &'static str {
    match way {
        "report" => "X-Agent",
        "misp" => "198.51.100.77",
        _ => "ZetaMoth",
    }
}

#[test]
fn a_source_that_says_more_at_a_stricter_marking_is_read_at_that_marking() {
    run(async {
        let app = TestApp::shared().await;
        for way in WAYS {
            let client = app.workspace(way).await;
            client
                .send_in(way, &told(way, "TLP:GREEN", "What is known."))
                .await;
            let before = client.one(subject(way)).await;
            assert_eq!(before["tlp"], "TLP:GREEN", "{way}");
            let more = "A source inside tells of a second group.";
            let results = client.send_in(way, &told(way, "TLP:AMBER", more)).await;
            assert_eq!(results["nodes_created"], 0, "{way}: {results}");
            assert!(
                results["evidence_created"].as_u64().unwrap() > 0,
                "{way}: {results}"
            );
            let node = client.one(subject(way)).await;
            assert_eq!(node["tlp"], "TLP:AMBER", "{way}");
            assert!(text(&node, "description").starts_with(more), "{way}: {node}");
            assert_eq!(evidence(&node), 2, "{way}");
            // The new words match only for callers cleared for their marking.
            let found = client.nodes_of("source inside tells second group").await;
            assert!(found.iter().any(|other| other["id"] == node["id"]), "{way}");
            client.settings(json!({"tlp_ceiling": "TLP:GREEN"})).await;
            assert!(client.named(subject(way)).await.is_empty(), "{way}");
        }
        app.stop().await;
    });
}

#[test]
fn what_another_source_says_at_a_stricter_marking_is_evidence_of_that_marking() {
    run(async {
        let app = TestApp::shared().await;
        for (way, name, node_type) in [
            ("osint", "ZetaMoth", "actor"),
            ("report", "X-Agent", "tool"),
            ("misp", "198.51.100.77", "ioc"),
        ] {
            let client = app.workspace(way).await;
            let open = json!({"nodes": [
                {"name": name, "node_type": node_type, "description": "What is known.", "tlp": "GREEN"}]});
            client.send_in("analyst", &open).await;
            let before = client.one(name).await;
            let restricted = told(way, "TLP:AMBER", "A source inside tells.");
            let results = client.send_in(way, &restricted).await;
            let node = client.one(name).await;
            for key in ["tlp", "description", "source", "properties", "confidence"] {
                assert_eq!(node[key], before[key], "{way}: {key}");
            }
            // MISP adds a record for the event and one for the attribute's text; the other sources add a single record.
            let records = if way == "misp" { 3 } else { 2 };
            assert_eq!(evidence(&node), records, "{way}: {results}");
            assert_eq!(
                counts(&client.send_in(way, &restricted).await),
                [0, 0, 0],
                "{way}"
            );
            client.settings(json!({"tlp_ceiling": "TLP:GREEN"})).await;
            let seen = client.one(name).await;
            assert_eq!(evidence(&seen), 1, "{way}");
        }
        app.stop().await;
    });
}

#[test]
fn a_block_below_the_marking_of_its_report_keeps_a_record_of_its_own() {
    run(async {
        let app = TestApp::shared().await;
        let open = json!({"nodes": [{"name": "X-Agent", "node_type": "tool", "tlp": "GREEN", "description": "Known."}]});
        app.admin.send_in("analyst", &open).await;
        let report = json!({"title": "Z", "content_blocks": [
            {"entity_name": "X-Agent", "node_type": "tool", "tlp": "AMBER", "description": "Told in confidence."},
            {"entity_name": "ZetaMoth", "node_type": "actor", "tlp": "RED", "description": "Told in secret."}]});
        app.admin.send_in("report", &report).await;
        // The report as a whole is RED, but what it says about the tool is AMBER and readable as such.
        assert_eq!(evidence(&app.admin.one("X-Agent").await), 2);
        app.admin.settings(json!({"tlp_ceiling": "TLP:GREEN"})).await;
        assert_eq!(evidence(&app.admin.one("X-Agent").await), 1);
        app.stop().await;
    });
}

#[test]
fn what_a_preview_says_at_a_stricter_marking_is_evidence_of_that_marking() {
    run(async {
        let app = TestApp::shared().await;
        let open = json!({"nodes": [{"name": "X-Agent", "node_type": "tool", "tlp": "GREEN", "description": "Known."}]});
        app.admin.send_in("analyst", &open).await;
        let before = app.admin.one("X-Agent").await;
        let body = json!({"text": "APT28 uses X-Agent against ministries.", "ingest_mode": "auto",
            "default_tlp": "TLP:AMBER"});
        app.admin
            .post("/api/ingest/preview", &body)
            .await
            .expect(200)
            .await;
        let node = app.admin.one("X-Agent").await;
        assert_eq!(
            (&node["tlp"], &node["description"], &node["properties"]),
            (&before["tlp"], &before["description"], &before["properties"])
        );
        assert_eq!(evidence(&node), 2, "its own, and the text");
        app.admin.settings(json!({"tlp_ceiling": "TLP:GREEN"})).await;
        assert_eq!(evidence(&app.admin.one("X-Agent").await), 1);
        app.stop().await;
    });
}

/// The caller's view of the subject, without ids, which differ between workspaces.
async fn seen(client: &Client) -> Vec<Value> {
    let mut seen = Vec::new();
    for name in [
        "ZetaMoth",
        "198.51.100.77",
        "Fancy Bear",
        "X-Agent",
        "moth.exe",
        "Read this",
    ] {
        for node in client.named(name).await {
            seen.push(json!([
                node["name"],
                node["tlp"],
                node["description"],
                node["properties"],
                evidence(&node)
            ]));
        }
    }
    seen
}

#[test]
fn the_answer_to_a_write_does_not_depend_on_what_the_caller_may_not_see() {
    run(async {
        let app = TestApp::shared().await;
        let (red, green) = ("TLP:RED", "TLP:GREEN");
        for way in WAYS {
            for (n, steps) in [
                &[red][..],
                &[green],
                &[red, green],
                &[green, red],
                &[red, red, green, red, green],
            ]
            .into_iter()
            .enumerate()
            .skip(extent(2, 0))
            .take(extent(1, 5))
            {
                let knowing = app.workspace(&format!("{way} {n} knowing")).await;
                let fresh = app.workspace(&format!("{way} {n} fresh")).await;
                knowing.open().await;
                knowing.send_in(way, &told(way, red, "Hidden.")).await;
                // Another hidden node, which has these names as aliases.
                let alias = json!({"nodes": [{"name": "Dust Choir", "node_type": "actor", "tlp": "RED",
                    "properties": {"aliases": ["ZetaMoth"]}}]});
                knowing.send_in("analyst", &alias).await;
                close(&knowing).await;
                close(&fresh).await;
                for (at, tlp) in steps.iter().enumerate() {
                    let body = told(way, tlp, &format!("Said {tlp}."));
                    let (one, other) = (knowing.send_in(way, &body).await, fresh.send_in(way, &body).await);
                    assert_eq!(one, other, "{way} {steps:?} step {at}");
                    if is_full() || at + 1 == steps.len() {
                        assert_eq!(
                            seen(&knowing).await,
                            seen(&fresh).await,
                            "{way} {steps:?} step {at}"
                        );
                    }
                }
                let audited = |client: Client| async move {
                    let entries = client.audited(&format!("ingest.{way}")).await;
                    let told = entries
                        .iter()
                        .take(steps.len())
                        .map(|entry| entry["metadata"].clone());
                    told.collect::<Vec<_>>()
                };
                assert_eq!(audited(knowing).await, audited(fresh).await, "{way} {steps:?}");
            }
        }
        app.stop().await;
    });
}

#[test]
fn the_answer_to_a_bundle_does_not_depend_on_objects_that_the_caller_may_not_see() {
    let object = |kind: &str, number: u32, year: u32, more: Value| {
        let mut object = json!({"type": kind, "spec_version": "2.1",
            "id": format!("{kind}--00000000-0000-4000-8000-{number:012}"),
            "created": "2020-01-01T00:00:00.000Z", "modified": format!("{year}-01-01T00:00:00.000Z")});
        for (key, value) in more.as_object().unwrap() {
            object[key] = value.clone();
        }
        object
    };
    let id = |number: u32| format!("tool--00000000-0000-4000-8000-{number:012}");
    let red = |number: u32, year: u32| {
        let more = json!({"name": format!("Tool {number}"), "x_mitre_tlp": "RED"});
        object("tool", number, year, more)
    };
    let seen = |number: u32| object("tool", number, 2021, json!({"name": format!("Tool {number}")}));
    let uses = |number: u32, from: u32, to: u32, more: Value| {
        let mut edge = json!({"relationship_type": "uses", "source_ref": id(from), "target_ref": id(to)});
        for (key, value) in more.as_object().unwrap() {
            edge[key] = value.clone();
        }
        object("relationship", number, 2021, edge)
    };
    let secret = || uses(9, 1, 2, json!({"x_mitre_tlp": "RED"}));
    let bundles = [
        vec![red(1, 2021)],
        vec![red(1, 2022), red(2, 2021)],
        vec![red(1, 2022), red(2, 2022), secret()],
        vec![seen(3), uses(10, 3, 1, json!({}))],
        vec![seen(3), seen(4), uses(11, 3, 4, json!({}))],
    ];
    run(async move {
        let app = TestApp::shared().await;
        for (at, bundle) in bundles.into_iter().enumerate() {
            let knowing = app.workspace(&format!("stix {at} knowing")).await;
            let fresh = app.workspace(&format!("stix {at} fresh")).await;
            knowing.open().await;
            let hidden = json!({"bundle": [red(1, 2021), red(2, 2021), secret()]});
            knowing.send_in("stix", &hidden).await;
            close(&knowing).await;
            close(&fresh).await;
            let body = json!({ "bundle": bundle });
            let (one, other) = (
                knowing.send_in("stix", &body).await,
                fresh.send_in("stix", &body).await,
            );
            assert_eq!(one, other, "bundle {at}");
        }
        app.stop().await;
    });
}

#[test]
fn a_secret_entry_sent_twice_is_answered_alike_and_kept_once() {
    run(async {
        let app = TestApp::shared().await;
        let entry = json!({"nodes": [{"name": "ZetaMoth", "node_type": "actor", "tlp": "RED",
            "description": "Secret."}]});
        for _ in 0..3 {
            assert_eq!(counts(&app.admin.send_in("analyst", &entry).await), [1, 0, 1]);
            assert!(app.admin.named("ZetaMoth").await.is_empty());
        }
        app.admin.open().await;
        let node = app.admin.one("ZetaMoth").await;
        assert_eq!((evidence(&node), text(&node, "description")), (1, "Secret."));
        assert_eq!(counts(&app.admin.send_in("analyst", &entry).await), [0, 0, 0]);
        app.stop().await;
    });
}
