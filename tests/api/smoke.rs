//! The main job over HTTP on a durable store, and what the storage promises.

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
