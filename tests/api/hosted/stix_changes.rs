//! `modified` of what an export holds: it grows with every change that the export shows, and with no other.

use serde_json::{Value, json};

use crate::helpers::{Client, TestApp, run};
use crate::stix::{self, text};

/// The marking-definition of TLP:AMBER.
const AMBER: &str = "marking-definition--f88d31f6-486f-44da-b317-01333bde0b82";

async fn say(client: &Client, node: Value) {
    let body = json!({"nodes": [node]});
    client.post("/api/ingest/analyst", &body).await.expect(201).await;
}

/// The exported object with this name.
async fn exported(client: &Client, name: &str) -> Value {
    let recall = client.search(name).await;
    let bundle = client.export(text(&recall, "recall_id")).await;
    let objects = bundle["objects"].as_array().unwrap();
    let of_name = objects.iter().find(|object| object["name"] == name);
    of_name.unwrap().clone()
}

#[test]
fn an_exported_object_is_newer_after_each_change_that_it_shows() {
    run(async {
        let app = TestApp::shared().await;
        let open = json!({"tlp_ceiling": "RED", "elevated_clearance": true, "red_export_grant": true});
        app.admin.settings(open).await;
        let heron = |more: Value| stix::with(json!({"name": "Heron Kit", "node_type": "tool"}), more);
        say(&app.admin, heron(json!({"tlp": "TLP:GREEN", "confidence": 0.4}))).await;
        let mut before = exported(&app.admin, "Heron Kit").await;
        assert_eq!(before["created"], before["modified"]);
        for change in [
            json!({"tlp": "TLP:GREEN", "confidence": 0.4, "description": "A kit."}),
            json!({"tlp": "TLP:GREEN", "confidence": 0.8}),
            json!({"tlp": "TLP:GREEN", "properties": {"aliases": ["Heron Case"]}}),
            json!({"tlp": "TLP:AMBER", "description": "A kit of theirs."}),
        ] {
            say(&app.admin, heron(change.clone())).await;
            let after = exported(&app.admin, "Heron Kit").await;
            assert_ne!(
                stix::without(before.clone(), "modified"),
                stix::without(after.clone(), "modified")
            );
            assert!(
                text(&before, "modified") < text(&after, "modified"),
                "{change}: {before} {after}"
            );
            assert_eq!(before["created"], after["created"]);
            // The same again changes nothing.
            say(&app.admin, heron(change)).await;
            assert_eq!(exported(&app.admin, "Heron Kit").await, after);
            before = after;
        }
        app.stop().await;
    });
}

#[test]
fn hidden_additions_leave_modified_as_it_is() {
    run(async {
        let app = TestApp::shared().await;
        let open = json!({"tlp_ceiling": "RED", "elevated_clearance": true});
        app.admin.settings(open).await;
        let osint =
            json!({"items": [{"title": "Heron Kit", "content": "A public note.", "item_type": "tool"}]});
        say(
            &app.admin,
            json!({"name": "Heron Kit", "node_type": "tool", "tlp": "TLP:GREEN"}),
        )
        .await;
        let before = exported(&app.admin, "Heron Kit").await;
        let secret = stix::with(osint, json!({"default_tlp": "TLP:RED"}));
        app.admin.post("/api/ingest/osint", &secret).await;
        assert_eq!(exported(&app.admin, "Heron Kit").await, before);
        app.stop().await;
    });
}

#[test]
fn an_object_that_came_in_as_stix_keeps_its_time_until_it_is_changed_here() {
    run(async {
        let app = TestApp::shared().await;
        let tool = stix::object("tool", "Stork Kit");
        app.admin.ingest(json!([tool])).await;
        let unchanged = exported(&app.admin, "Stork Kit").await;
        assert_eq!(unchanged["modified"], tool["modified"]);

        // The same version with a stricter marking.
        let stricter = stix::with(tool.clone(), json!({"x_mitre_tlp": "TLP:AMBER"}));
        app.admin.ingest(json!([stricter])).await;
        let raised = exported(&app.admin, "Stork Kit").await;
        assert!(text(&raised, "modified") > text(&tool, "modified"), "{raised}");
        assert!(raised.to_string().contains(AMBER), "{raised}");

        // A newer version is not older than what left before.
        let newer = stix::version(&tool, 2022, json!({"description": "newer"}));
        app.admin.ingest(json!([newer])).await;
        let left = exported(&app.admin, "Stork Kit").await;
        assert_eq!(left["description"], "newer");
        assert!(text(&left, "modified") > text(&raised, "modified"), "{left}");
        app.stop().await;
    });
}
