//! The main use case over HTTP with a durable store, and the guarantees of the storage.

use serde_json::json;

use crate::helpers::{TestApp, run};

fn actor(name: &str) -> serde_json::Value {
    json!({"type": "intrusion-set", "id": format!("intrusion-set--{}", uuid::Uuid::new_v4()), "spec_version": "2.1",
        "created": "2020-01-01T00:00:00.000Z", "modified": "2020-01-01T00:00:00.000Z", "name": name})
}

#[test]
fn what_was_acknowledged_is_there_after_a_restart() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let app = TestApp::durable(dir.path()).await;
        let results = app.admin.ingest(json!([actor("Quiet Heron")])).await;
        assert_eq!(results["nodes_created"], 1);
        let found = app.admin.search("Quiet Heron").await;
        assert_eq!(found["results"][0]["name"], "Quiet Heron");
        app.stop().await;

        let app = TestApp::durable(dir.path()).await;
        let again = app.admin.search("quiet heron").await;
        assert_eq!(again["results"][0]["id"], found["results"][0]["id"]);
        let bundle = app.admin.export(found["recall_id"].as_str().unwrap()).await;
        assert!(
            bundle["objects"]
                .as_array()
                .unwrap()
                .iter()
                .any(|o| o["name"] == "Quiet Heron")
        );
        let chain = app.admin.get("/api/audit/verify").await.expect(200).await;
        assert_eq!(
            (chain["valid"].clone(), chain["unchained"].clone()),
            (json!(true), json!(0))
        );
        app.stop().await;
    });
}

fn object(kind: &str, name: &str) -> serde_json::Value {
    json!({"type": kind, "id": format!("{kind}--{}", uuid::Uuid::new_v4()), "name": name})
}

fn uses(source: &serde_json::Value, target: &serde_json::Value) -> serde_json::Value {
    json!({"type": "relationship", "id": format!("relationship--{}", uuid::Uuid::new_v4()),
        "relationship_type": "uses", "source_ref": source["id"], "target_ref": target["id"]})
}

#[test]
fn a_structured_question_follows_the_relationships_of_what_it_names() {
    run(async {
        let app = TestApp::shared().await;
        let group = object("intrusion-set", "Sandworm Team");
        let malware = object("malware", "Industroyer");
        let technique = object("attack-pattern", "Remote Services");
        let other = object("malware", "PlugX");
        let edges = [uses(&group, &malware), uses(&group, &technique)];
        app.admin
            .ingest(json!([group, malware, technique, other, edges[0], edges[1]]))
            .await;
        let query = crate::helpers::encode(&[("q", "malware used by Voodoo Bear"), ("mode", "structured")]);
        let found = app
            .admin
            .get(&format!("/api/recall/search?{query}"))
            .await
            .expect(200)
            .await;
        let names: Vec<_> = found["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|node| &node["name"])
            .collect();
        assert_eq!(names, ["Industroyer"]);
        app.stop().await;
    });
}
