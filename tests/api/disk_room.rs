//! Little room on the disk: writes are refused before the engine meets a full disk, and everything else goes on.

use reqwest::Method;
use serde_json::json;

use crate::helpers::{Answer, TestApp, run, settings};
use crate::local::LocalApp;
use crate::stix::{object, text};

/// More than any disk has, in MiB.
const NEVER: u64 = 1 << 40;

#[test]
fn without_room_writes_are_507_and_reads_and_deletions_go_on() {
    run(async {
        let mut settings = settings("mem://");
        settings.storage.min_free_mib = NEVER;
        let app = TestApp::with(settings).await;
        let admin = &app.admin;
        let tool = object("tool", "Roomy Spade");
        for (path, body) in [
            ("/api/ingest/stix", json!({"bundle": [tool]})),
            ("/api/ingest/preview", json!({"text": "APT28 and more"})),
            (
                "/api/threat-intel/batches",
                json!({"input_kind": "stix_bundle", "bundle": [tool]}),
            ),
        ] {
            let said = admin.post(path, &body).await.refused(507).await;
            assert!(said.contains("less than storage.min_free_mib"), "{path}: {said}");
        }
        let missing = format!("/api/threat-intel/feeds/{}", uuid::Uuid::nil());
        let deleted = Answer(admin.request(Method::DELETE, &missing).send().await.unwrap());
        assert_eq!(deleted.status(), 404);
        admin.search("anything").await;
        admin.get("/api/ingest/batch").await.expect(200).await;
        let said = admin
            .refused_tool("submit_text", json!({"text": "APT28 and more"}))
            .await;
        assert!(said.contains("nothing is written until there is more"), "{said}");
        app.stop().await;
    });
}

#[test]
fn without_room_no_note_is_taken_and_notes_are_found_and_deleted() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let app = LocalApp::durable(dir.path()).await;
        let kept = app.client.remember("APT28 uses X-Agent.").await;
        app.stop().await;
        let app = LocalApp::with(Some(dir.path()), &format!("storage.min_free_mib = {NEVER}")).await;
        let body = json!({"content": "APT29 uses Brute Ratel."});
        let refused = app.client.post("/api/remember", &body).await.expect(507).await;
        assert!(
            text(&refused, "detail").contains("storage.min_free_mib"),
            "{refused}"
        );
        assert_eq!(app.client.recall("X-Agent").await, [text(&kept, "note_id")]);
        let path = format!("/api/notes/{}", text(&kept, "note_id"));
        let deleted = Answer(app.client.request(Method::DELETE, &path).send().await.unwrap());
        assert!((200..300).contains(&deleted.status()), "{}", deleted.status());
        app.stop().await;
    });
}
