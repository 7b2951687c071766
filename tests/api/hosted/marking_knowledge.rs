//! From which level on a marking-definition is known, and markings whose ids are written in upper case.

use serde_json::{Value, json};

use crate::helpers::{Client, TestApp, run};
use crate::stix::{object, statement, text, with};

const WHITE: &str = "marking-definition--613f2e26-407d-48c7-9eca-b8e91df99dc9";

fn marked(name: &str, marking: &Value) -> Value {
    with(
        object("tool", name),
        json!({"object_marking_refs": [marking["id"]]}),
    )
}

async fn see_up_to(client: &Client, level: &str) {
    let elevated = level == "RED";
    client
        .settings(json!({"tlp_ceiling": level, "elevated_clearance": elevated, "red_export_grant": elevated}))
        .await;
}

/// Sends objects with the default GREEN; returns the number of warnings.
async fn send(client: &Client, objects: Value) -> usize {
    let body = json!({"bundle": objects, "default_tlp": "GREEN"});
    let answer = client.post("/api/ingest/stix", &body).await.expect(201).await;
    answer["results"]["warnings"].as_array().unwrap().len()
}

async fn level_of(client: &Client, name: &str) -> Value {
    let found = client.search_with(name, &[]).await;
    let found = found["results"].as_array().unwrap();
    let node = found.iter().find(|node| node["name"] == name);
    node.map_or(Value::Null, |node| node["tlp"].clone())
}

#[test]
fn a_bundle_that_its_own_definition_hides_defines_nothing_for_others() {
    run(async {
        let app = TestApp::shared().await;
        let client = &app.admin;
        let marking = with(statement("do not share"), json!({"name": "TLP:RED"}));
        assert_eq!(send(client, json!([marked("Waiting Heron", &marking)])).await, 1);
        see_up_to(client, "RED").await;
        send(client, json!([marking, marked("Hidden Heron", &marking)])).await;
        assert_eq!(level_of(client, "Hidden Heron").await, "TLP:RED");
        see_up_to(client, "AMBER").await;
        assert_eq!(send(client, json!([marked("New Heron", &marking)])).await, 1);
        for (name, want) in [
            ("Waiting Heron", json!("TLP:AMBER")),
            ("New Heron", json!("TLP:AMBER")),
            ("Hidden Heron", Value::Null),
        ] {
            assert_eq!(level_of(client, name).await, want, "{name}");
        }
        see_up_to(client, "RED").await;
        assert_eq!(send(client, json!([marked("Last Heron", &marking)])).await, 0);
        assert_eq!(level_of(client, "Last Heron").await, "TLP:RED");
        app.stop().await;
    });
}

#[test]
fn a_sender_knows_the_definition_that_hides_what_was_sent() {
    run(async {
        let app = TestApp::shared().await;
        let client = &app.admin;
        let marking = with(statement("do not share"), json!({"name": "TLP:RED"}));
        assert_eq!(
            send(client, json!([marking, marked("Sent Heron", &marking)])).await,
            0
        );
        assert_eq!(level_of(client, "Sent Heron").await, Value::Null);
        assert_eq!(send(client, json!([marked("Next Heron", &marking)])).await, 0);
        assert_eq!(level_of(client, "Next Heron").await, Value::Null);
        // Below the sender's level nothing of it is known. The object is AMBER, so all who see it know the definition, which
        // raises it.
        see_up_to(client, "GREEN").await;
        assert_eq!(send(client, json!([marked("Low Heron", &marking)])).await, 1);
        see_up_to(client, "RED").await;
        for (name, want) in [
            ("Sent Heron", "TLP:RED"),
            ("Next Heron", "TLP:RED"),
            ("Low Heron", "TLP:RED"),
        ] {
            assert_eq!(level_of(client, name).await, want, "{name}");
        }
        app.stop().await;
    });
}

#[test]
fn a_marking_id_in_upper_case_leaves_as_the_standard_writes_it() {
    run(async {
        let app = TestApp::shared().await;
        let id = WHITE.replace("marking-definition--", "").to_uppercase();
        let upper = format!("marking-definition--{id}");
        let sent = with(
            object("tool", "Loud Heron"),
            json!({"object_marking_refs": [upper, WHITE],
                "granular_markings": [{"marking_ref": upper, "selectors": ["name"]}]}),
        );
        assert_eq!(send(&app.admin, json!([sent])).await, 0);
        assert_eq!(level_of(&app.admin, "Loud Heron").await, "TLP:WHITE");
        let found = app.admin.search_with("Loud Heron", &[]).await;
        let path = format!("/api/recall/sessions/{}/export.stix", text(&found, "recall_id"));
        let bundle = app.admin.get(&path).await.expect(200).await;
        let leaving = bundle["objects"].as_array().unwrap();
        let tool = leaving.iter().find(|object| object["id"] == sent["id"]).unwrap();
        assert_eq!(tool["object_marking_refs"], json!([WHITE]));
        assert_eq!(tool["granular_markings"][0]["marking_ref"], WHITE);
        assert!(leaving.iter().any(|object| object["id"] == WHITE));
        app.stop().await;
    });
}
