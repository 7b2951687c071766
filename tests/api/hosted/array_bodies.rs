//! An array is never accepted in place of an object, neither as the body nor nested in it.

use serde_json::{Value, json};

use crate::helpers::{ADMIN, PASSWORD, TestApp, run};
use crate::local::LocalApp;

const ID: &str = "00000000-0000-4000-8000-000000000000";

#[test]
fn an_array_in_place_of_an_object_is_400_and_names_the_field_on_every_hosted_route() {
    run(async {
        let app = TestApp::shared().await;
        let node = json!(["Emotet", "tool", null, null, null, {}]);
        for (path, body, want) in [
            ("/api/auth/login", json!([ADMIN, PASSWORD]), "body"),
            ("/api/admin/users", json!(["a@b", PASSWORD, "viewer"]), "body"),
            ("/api/admin/api-keys", json!(["name", ["read"], null]), "body"),
            ("/api/admin/workspaces", json!(["name", "a@b", PASSWORD]), "body"),
            (
                "/api/ingest/osint",
                json!(["c", [{"title": "t"}], null, null]),
                "body",
            ),
            (
                "/api/ingest/osint",
                json!({"collector": "c", "items": [{"title": "t"}, ["t"]]}),
                "items[1]",
            ),
            (
                "/api/ingest/misp",
                json!([{"uuid": ID, "Attribute": []}, null, null]),
                "body",
            ),
            ("/api/ingest/analyst", json!([[node], null, null]), "body"),
            ("/api/ingest/analyst", json!({"nodes": [node]}), "nodes[0]"),
            (
                "/api/ingest/analyst",
                json!({"nodes": [{"name": "n", "node_type": "tool", "properties": ["a"]}]}),
                "nodes[0].properties",
            ),
            (
                "/api/ingest/report",
                json!(["t", null, [{"entity_name": "e", "node_type": "tool"}], null, null]),
                "body",
            ),
            (
                "/api/ingest/report",
                json!({"title": "t", "content_blocks": [["e", "tool"]]}),
                "content_blocks[0]",
            ),
            (
                "/api/ingest/preview",
                json!(["a text that is long enough", null, null, null, null, null]),
                "body",
            ),
        ] {
            let error = app.admin.post(path, &body).await.refused(400).await;
            assert!(error.starts_with(&format!("{want}: ")), "{path} {body}: {error}");
            let rule = "must be an object";
            assert!(error.contains(rule) || want.ends_with("properties"), "{error}");
        }
        for (path, body) in [
            (
                format!("/api/admin/users/{ID}"),
                json!([PASSWORD, "admin", false]),
            ),
            (format!("/api/admin/users/{ID}"), json!([])),
            (
                "/api/admin/workspace".into(),
                json!(["TLP:RED", true, true, "team", []]),
            ),
            (
                format!("/api/ingest/staging/{ID}"),
                json!(["accepted", null, null]),
            ),
        ] {
            let error = app.admin.patch(&path, &body).await.refused(400).await;
            assert_eq!(error, "body: must be an object", "{path} {body}");
        }
        let found = app.admin.search("Emotet").await;
        assert_eq!(found["count"], 0, "{found}");
        app.stop().await;
    });
}

#[test]
fn an_array_in_place_of_an_object_is_422_on_every_local_route() {
    run(async {
        let app = LocalApp::spawn().await;
        for (path, body, loc) in [
            ("/api/remember", json!(["a note"]), json!(["body"])),
            ("/api/recall", json!(["a question"]), json!(["body"])),
            ("/api/synthesize", json!(["a question"]), json!(["body"])),
            ("/api/ingest", json!([[{"content": "a note"}]]), json!(["body"])),
            (
                "/api/ingest",
                json!({"items": [["a note"]]}),
                json!(["body", "items", 0]),
            ),
        ] {
            let answer = app.client.post(path, &body).await.expect(422).await;
            let at: Vec<&Value> = answer["detail"]
                .as_array()
                .unwrap()
                .iter()
                .map(|one| &one["loc"])
                .collect();
            assert_eq!(at, [&loc], "{path} {body}: {answer}");
        }
        app.stop().await;
    });
}
