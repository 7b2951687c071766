//! Texts of objects beside those that an ingest counts: they find what they are about.

use serde_json::json;

use crate::helpers::{TestApp, encode, run};
use crate::stix::{id, object, text, with};

/// The words of a report find what the report names, where the reader may see both.
#[test]
fn a_report_is_a_passage_about_what_it_names() {
    run(async {
        let app = TestApp::shared().await;
        let actor = object("intrusion-set", "Umber Heron");
        let report = with(
            object("report", "Outage"),
            json!({"published": "2026-01-03T00:00:00Z", "object_refs": [actor["id"]],
                "description": "How the exchange was silenced by a wiper that hides in reed beds."}),
        );
        let secret = with(
            object("report", "Secret"),
            json!({"published": "2026-01-03T00:00:00Z", "object_refs": [actor["id"]],
                "object_marking_refs": ["marking-definition--5e57c739-391a-4eb3-b6be-7d15ca92d5ed"],
                "description": "The quicksilver ledger of the ministry was copied in the night."}),
        );
        app.admin.ingest(json!([report, secret, actor])).await;
        let found = app.admin.search("wiper hidden in reed beds").await;
        assert_eq!(found["results"][0]["name"], "Umber Heron", "{found}");
        let found = app.admin.search("quicksilver ledger of the ministry").await;
        let names = crate::stix::names(&found);
        assert!(!names.contains(&"Umber Heron"), "{found}");
        app.stop().await;
    });
}

/// What is translated is found by its translated names, as far as the translation may be seen.
#[test]
fn language_content_is_kept_and_finds_what_it_translates() {
    run(async {
        let app = TestApp::shared().await;
        let malware = object("malware", "Sourveil");
        let german = json!({"type": "language-content", "spec_version": "2.1", "id": id("language-content"),
            "created": "2026-01-02T00:00:00.000Z", "modified": "2026-01-02T00:00:00.000Z", "object_ref": malware["id"],
            "contents": {"de": {"name": "Sauerschleier", "description": "ein Wurm"}}});
        app.admin.ingest(json!([malware, german])).await;
        let found = app.admin.search("Sauerschleier").await;
        assert_eq!(found["results"][0]["name"], "Sourveil", "{found}");
        let query = encode(&[("q", "Sauerschleier"), ("stix_type", "language-content")]);
        let found = app
            .admin
            .get(&format!("/api/recall/search?{query}"))
            .await
            .expect(200)
            .await;
        let bundle = app.admin.export(text(&found, "recall_id")).await;
        let left = crate::stix::by_id(bundle["objects"].as_array().unwrap());
        let left = &left[text(&german, "id")];
        assert_eq!(crate::stix::differences(&german, left), [""; 0], "{left}");
        app.stop().await;
    });
}
