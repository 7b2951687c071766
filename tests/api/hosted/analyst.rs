//! Manual entry of nodes by analysts.

use serde_json::{Value, json};

use crate::helpers::{TestApp, run};
use crate::hosted::ways_in::counts;
use crate::stix::{evidence, object, text, with};

fn body(nodes: Value) -> Value {
    json!({"nodes": nodes})
}

/// An actor as it arrives over STIX ingest.
fn bear() -> Value {
    let known = json!({"aliases": ["Zeta Moth", "Dust Choir"], "description": "As STIX tells it."});
    with(object("intrusion-set", "ZetaMoth"), known)
}

#[test]
fn a_node_keeps_all_its_fields_and_every_type_is_taken() {
    run(async {
        let app = TestApp::shared().await;
        let node = json!({"name": " zfull ", "node_type": "tool", "description": "All.", "tlp": "tlp:white",
            "confidence": 0.3, "properties": {"first": {"deep": [1, "x", null]}, "tags": ["t"]}});
        let results = app.admin.send_in("analyst", &body(json!([node]))).await;
        assert_eq!(counts(&results), [1, 0, 1]);
        let node = app.admin.one("zfull").await;
        for (key, want) in [
            ("description", json!("All.")),
            ("node_type", json!("tool")),
            ("tlp", json!("TLP:WHITE")),
            ("confidence", json!(0.3)),
            ("source", json!("admin@example.com")),
            ("source_type", json!("analyst")),
            ("status", json!("active")),
        ] {
            assert_eq!(node[key], want, "{key}");
        }
        assert_eq!(node["properties"]["first"], json!({"deep": [1, "x", null]}));
        assert_eq!(node["properties"]["tags"], json!(["t"]));
        for kind in ["actor", "cve", "ioc", "attck", "osint", "tool", "vulnerability"] {
            let name = format!("ztype {kind}");
            let node = json!([{"name": name, "node_type": kind}]);
            app.admin.send_in("analyst", &body(node)).await;
            let node = app.admin.one(&name).await;
            assert_eq!(
                (&node["node_type"], &node["tlp"], &node["confidence"]),
                (&json!(kind), &json!("TLP:GREEN"), &json!(0.8))
            );
        }
        let given = json!({"nodes": [{"name": "zgiven", "node_type": "tool"}], "default_tlp": "AMBER",
            "default_confidence": 0.1});
        app.admin.send_in("analyst", &given).await;
        let node = app.admin.one("zgiven").await;
        assert_eq!(
            (&node["tlp"], &node["confidence"]),
            (&json!("TLP:AMBER"), &json!(0.1))
        );
        app.stop().await;
    });
}

#[test]
fn errors_name_the_field() {
    run(async {
        let app = TestApp::shared().await;
        let node = |change: Value| {
            let mut node = json!({"name": "znever", "node_type": "tool"});
            for (key, value) in change.as_object().unwrap() {
                node[key] = value.clone();
            }
            body(json!([{"name": "znever", "node_type": "tool"}, node]))
        };
        let many: Vec<Value> = (0..10_001)
            .map(|n| json!({"name": format!("znever {n}"), "node_type": "tool"}))
            .collect();
        for (body, want) in [
            (json!({}), "nodes: is required"),
            (body(json!([])), "nodes: must hold from 1 to 10000"),
            (body(json!(many)), "nodes: must hold from 1 to 10000"),
            (body(json!("x")), "nodes: must be"),
            (body(json!([{"node_type": "tool"}])), "nodes[0].name: is required"),
            (
                body(json!([{"name": "znever"}])),
                "nodes[0].node_type: is required",
            ),
            (
                node(json!({"name": ""})),
                "nodes[1].name: must have from 1 to 2000",
            ),
            (
                node(json!({"name": "x".repeat(2001)})),
                "nodes[1].name: must have from 1 to 2000",
            ),
            (
                node(json!({"name": "a\u{0}"})),
                "nodes[1].name: must not hold a NUL",
            ),
            (node(json!({"name": null})), "nodes[1].name: must be"),
            (node(json!({"node_type": "malware"})), "nodes[1].node_type: "),
            (node(json!({"node_type": ""})), "nodes[1].node_type: "),
            (node(json!({"description": []})), "nodes[1].description: must be"),
            (
                node(json!({"description": "\u{0}"})),
                "nodes[1].description: must not hold a NUL",
            ),
            (
                node(json!({"description": "x".repeat((1 << 20) + 1)})),
                "nodes[1].description: must have at most",
            ),
            (node(json!({"tlp": "TLP:BLUE"})), "nodes[1].tlp: must be one of"),
            (
                node(json!({"confidence": 80})),
                "nodes[1].confidence: must be a number from 0 to 1",
            ),
            (node(json!({"confidence": true})), "nodes[1].confidence: must be"),
            (node(json!({"properties": [1]})), "nodes[1].properties: must be"),
        ] {
            let error = app.admin.refuses("analyst", &body).await;
            assert!(error.starts_with(want), "{want}: {error}");
        }
        assert!(app.admin.nodes_of("znever").await.is_empty());
        assert!(app.admin.audited("ingest.analyst").await.is_empty());
        app.stop().await;
    });
}

#[test]
fn the_same_entry_is_one_node_and_a_changed_one_adds_evidence() {
    run(async {
        let app = TestApp::shared().await;
        let first = json!({"name": "zrepeat", "node_type": "actor"});
        let twice = body(json!([first, first]));
        assert_eq!(counts(&app.admin.send_in("analyst", &twice).await), [1, 0, 1]);
        assert_eq!(counts(&app.admin.send_in("analyst", &twice).await), [0, 0, 0]);
        let mut more = first.clone();
        more["description"] = json!("More is known.");
        more["properties"] = json!({"aliases": ["zother name"]});
        let results = app.admin.send_in("analyst", &body(json!([more]))).await;
        assert_eq!(counts(&results), [0, 1, 1]);
        let node = app.admin.one("zrepeat").await;
        assert_eq!(
            (evidence(&node), text(&node, "description")),
            (2, "More is known.")
        );
        let results = app
            .admin
            .send_in(
                "analyst",
                &body(json!([{"name": "ZOTHER-NAME", "node_type": "actor"}])),
            )
            .await;
        assert_eq!(counts(&results), [0, 1, 1], "known by the alias given before");
        // The same name with another type is a different node.
        let tool = body(json!([{"name": "zrepeat", "node_type": "tool"}]));
        assert_eq!(counts(&app.admin.send_in("analyst", &tool).await), [1, 0, 1]);
        app.stop().await;
    });
}

#[test]
fn an_entry_merges_into_an_actor_that_came_in_as_stix_by_name_and_alias() {
    run(async {
        let app = TestApp::shared().await;
        app.admin.ingest(json!([bear()])).await;
        let mut links = 1;
        for name in ["ZetaMoth", "zetamoth", "Zeta-Moth", "Zeta Moth", "DUST CHOIR"] {
            let entry = body(json!([{"name": name, "node_type": "actor"}]));
            let results = app.admin.send_in("analyst", &entry).await;
            links += 1;
            assert_eq!(counts(&results), [0, 1, 1], "{name}");
            let node = app.admin.one("ZetaMoth").await;
            assert_eq!(evidence(&node), links, "{name}");
            assert_eq!(node["description"], "As STIX tells it.");
        }
        app.stop().await;
    });
}

#[test]
fn the_known_names_of_a_known_actor_are_one_node_whichever_comes_first() {
    run(async {
        let app = TestApp::shared().await;
        let names = ["APT28", "APT 28", "apt-28", "Fancy Bear", "FANCY BEAR", "Sofacy"];
        for (n, first) in names.iter().enumerate() {
            let client = app.workspace(&format!("w{n}")).await;
            let entry = |name: &str| body(json!([{"name": name, "node_type": "actor"}]));
            let results = client.send_in("analyst", &entry(first)).await;
            assert_eq!(counts(&results), [1, 0, 1], "{first}");
            for name in names.iter().filter(|name| *name != first) {
                let results = client.send_in("analyst", &entry(name)).await;
                assert_eq!(counts(&results), [0, 1, 1], "{name} after {first}");
            }
            for name in names {
                let found = client.nodes_of(name).await;
                assert_eq!(found.len(), 1, "{name}: {found:?}");
            }
        }
        // The name also matches a node that arrived over STIX.
        let client = app.workspace("stix").await;
        client
            .ingest(json!([object("intrusion-set", "Fancy Bear")]))
            .await;
        let entry = body(json!([{"name": "APT 28", "node_type": "actor"}]));
        let results = client.send_in("analyst", &entry).await;
        assert_eq!(counts(&results), [0, 1, 1], "APT 28 is Fancy Bear");
        app.stop().await;
    });
}

#[test]
fn a_red_remark_on_a_green_actor_changes_nothing_that_others_see() {
    run(async {
        let app = TestApp::shared().await;
        app.admin
            .ingest(json!([with(bear(), json!({"labels": ["tlp:green"]}))]))
            .await;
        let before = app.admin.one("ZetaMoth").await;
        assert_eq!(before["tlp"], "TLP:GREEN");
        let asked = app.admin.nodes_of("Secret Name inside").await;
        let remark = json!([{"name": "Zeta Moth", "node_type": "actor", "tlp": "RED", "confidence": 1,
            "description": "Our source sits inside.", "properties": {"aliases": ["Secret Name"], "handler": "X"}}]);
        let results = app.admin.send_in("analyst", &body(remark)).await;
        assert_eq!(
            (&results["nodes_created"], &results["evidence_created"]),
            (&json!(0), &json!(1))
        );
        let mut after = app.admin.one("ZetaMoth").await;
        let mut same = before.clone();
        for node in [&mut after, &mut same] {
            node.as_object_mut().unwrap().remove("score");
        }
        assert_eq!(after, same);
        // The hidden remark must not influence the ranking either.
        assert_eq!(app.admin.nodes_of("Secret Name inside").await, asked);
        let session = app.admin.search("ZetaMoth").await;
        let bundle = app.admin.export(text(&session, "recall_id")).await;
        assert!(!bundle.to_string().contains("inside") && !bundle.to_string().contains("Secret Name"));
        app.admin.open().await;
        let seen = app.admin.one("ZetaMoth").await;
        assert_eq!(evidence(&seen), evidence(&before) + 1);
        assert_eq!(seen["tlp"], "TLP:GREEN");
        assert_eq!(seen["properties"], before["properties"]);
        app.stop().await;
    });
}

#[test]
fn indicators_are_known_by_their_value_and_carry_a_pattern() {
    run(async {
        let app = TestApp::shared().await;
        let node = |name: &str| body(json!([{"name": name, "node_type": "ioc"}]));
        assert_eq!(
            counts(
                &app.admin
                    .send_in("analyst", &node("hxxp://zq.example[.]com/A"))
                    .await
            ),
            [1, 0, 1]
        );
        let results = app
            .admin
            .send_in("analyst", &node("http://zq.example.com/A"))
            .await;
        assert_eq!(counts(&results), [0, 1, 1]);
        let session = app.admin.search("http://zq.example.com/A").await;
        let bundle = app.admin.export(text(&session, "recall_id")).await;
        let objects = bundle["objects"].as_array().unwrap();
        assert!(
            objects
                .iter()
                .any(|object| object["pattern"] == "[url:value = 'http://zq.example.com/A']"),
            "{bundle}"
        );
        // An invalid pattern is never exported and does not block the export.
        for (n, pattern) in ["[broken", "", "[ipv4-addr:value = 'x'] OR ["].iter().enumerate() {
            let value = format!("192.0.2.{n}");
            let node = json!([{"name": value, "node_type": "ioc", "properties": {"pattern": pattern}}]);
            app.admin.send_in("analyst", &body(node)).await;
            let session = app.admin.search(&value).await;
            let bundle = app.admin.export(text(&session, "recall_id")).await;
            let objects = bundle["objects"].as_array().unwrap();
            let wanted = format!("[ipv4-addr:value = '{value}']");
            assert!(
                objects.iter().any(|object| object["pattern"] == wanted.as_str()),
                "{bundle}"
            );
        }
        app.stop().await;
    });
}

#[test]
fn an_entry_is_audited_with_its_counters() {
    run(async {
        let app = TestApp::shared().await;
        let analyst = app.user("analyst").await;
        let entry =
            body(json!([{"name": "zaudit", "node_type": "tool"}, {"name": "zaudit2", "node_type": "tool"}]));
        analyst.send_in("analyst", &entry).await;
        let audited = app.admin.audited("ingest.analyst").await;
        assert_eq!(audited.len(), 1);
        assert!(text(&audited[0], "user_email").starts_with("analyst-"));
        let metadata: Value = match &audited[0]["metadata"] {
            Value::String(text) => serde_json::from_str(text).unwrap(),
            other => other.clone(),
        };
        assert_eq!(counts(&metadata), [2, 0, 2]);
        assert_eq!(app.admin.one("zaudit").await["source"], audited[0]["user_email"]);
        app.stop().await;
    });
}
