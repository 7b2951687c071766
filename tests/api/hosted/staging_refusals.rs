//! Requests that preview, review and commit refuse.

use reqwest::Method;
use serde_json::json;

use crate::helpers::{Answer, TestApp, run};
use crate::hosted::staging::{FOUND, TEXT, entity, results};
use crate::stix::{object, text, version, with};

const UNKNOWN: &str = "7d4b1a52-6f0c-4f53-9a54-3a5ac1f6ad01";

#[test]
fn a_merge_needs_a_target_that_is_there_for_the_caller() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let revoked = with(object("tool", "ZetaGone"), json!({"revoked": true}));
        admin.ingest(json!([revoked])).await;
        let gone = admin.node("ZetaGone", text(&revoked, "id")).await.unwrap();
        assert_eq!(gone["status"], "rejected");
        let nodes = json!([{"name": "ZetaSecret", "node_type": "tool", "tlp": "RED"}]);
        admin.send_in("analyst", &json!({"nodes": nodes})).await;
        admin.open().await;
        let secret = admin.one("ZetaSecret").await;
        admin
            .settings(json!({"tlp_ceiling": "AMBER", "elevated_clearance": false}))
            .await;
        let other = app.workspace("other").await;
        let foreign = json!({"nodes": [{"name": "ZetaForeign", "node_type": "tool"}]});
        other.send_in("analyst", &foreign).await;
        let foreign = other.one("ZetaForeign").await;

        let preview = admin.preview(&json!({"text": TEXT})).await;
        let tool = entity(&preview, "X-Agent");
        let error = admin.undecided(tool, json!({"status": "merged"}), 400).await;
        assert_eq!(error, "merge_target_id: is required with status merged");
        for target in [
            json!(UNKNOWN),
            gone["id"].clone(),
            secret["id"].clone(),
            foreign["id"].clone(),
            tool["id"].clone(),
        ] {
            for status in ["merged", "accepted"] {
                let body = json!({"status": status, "merge_target_id": target});
                let error = admin.undecided(tool, body, 400).await;
                assert_eq!(error, "merge_target_id: must be an active node of this workspace");
            }
        }
        let body = json!({"nodes": [{"name": "ZetaGroup", "node_type": "actor"}]});
        admin.send_in("analyst", &body).await;
        let group = admin.one("ZetaGroup").await;
        let body = json!({"status": "merged", "merge_target_id": group["id"]});
        let error = admin.undecided(tool, body, 400).await;
        assert_eq!(error, "merge_target_id: must be a node of type tool");
        for (body, want) in [
            (json!({}), "status: is required"),
            (
                json!({"status": "done"}),
                "status: must be one of pending, accepted",
            ),
            (json!({"status": 5}), "status: "),
            (json!({"status": null}), "status: "),
            (
                json!({"status": "accepted", "resolved_tlp": "PINK"}),
                "resolved_tlp: must be one of",
            ),
            (
                json!({"status": "merged", "merge_target_id": "x"}),
                "merge_target_id: ",
            ),
            (
                json!({"status": "merged", "merge_target_id": 5}),
                "merge_target_id: ",
            ),
        ] {
            let error = admin.undecided(tool, body.clone(), 400).await;
            assert!(error.starts_with(want), "{body}: {error}");
        }
        assert_eq!(
            admin.batch(&preview["batch_id"]).await["entities"],
            preview["entities"]
        );
        assert!(admin.audited("ingest.staging_change").await.is_empty());
        app.stop().await;
    });
}

/// If the target is revoked between the decision and the commit, the whole commit fails.
#[test]
fn a_merge_target_that_is_gone_by_the_commit_is_a_conflict() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let kit = object("tool", "ZetaKit");
        admin.ingest(json!([kit])).await;
        let target = admin.one("ZetaKit").await;
        let preview = admin.preview(&json!({"text": TEXT})).await;
        let merge = json!({"status": "merged", "merge_target_id": target["id"]});
        admin.decide(entity(&preview, "X-Agent"), merge).await;
        admin
            .decide(entity(&preview, "APT28"), json!({"status": "accepted"}))
            .await;
        let withdrawn = version(&kit, 2030, json!({"revoked": true}));
        admin.ingest(json!([withdrawn])).await;
        let path = format!("/api/ingest/batch/{}/commit", text(&preview, "batch_id"));
        let error = admin.post(&path, &json!({})).await.refused(409).await;
        assert!(error.contains("no active node any more"), "{error}");
        assert!(admin.named("APT28").await.is_empty());
        let again = json!({"status": "rejected"});
        admin.decide(entity(&preview, "X-Agent"), again).await;
        assert_eq!(
            admin.commit(&preview["batch_id"]).await,
            results([1, 0, 1, 0, 1, 3])
        );
        app.stop().await;
    });
}

#[test]
fn a_batch_of_another_workspace_is_not_there() {
    run(async {
        let app = TestApp::shared().await;
        let preview = app.admin.preview(&json!({"text": TEXT})).await;
        let other = app.workspace("other").await;
        let (batch, first) = (text(&preview, "batch_id"), entity(&preview, "APT28"));
        for id in [batch, UNKNOWN, "x", "%00"] {
            let path = format!("/api/ingest/batch/{id}");
            other.get(&path).await.refused(404).await;
            let path = format!("{path}/commit");
            other.post(&path, &json!({})).await.refused(404).await;
        }
        for id in [text(first, "id"), UNKNOWN, "x", batch] {
            let path = format!("/api/ingest/staging/{id}");
            other
                .patch(&path, &json!({"status": "accepted"}))
                .await
                .refused(404)
                .await;
        }
        assert_eq!(
            app.admin.batch(&preview["batch_id"]).await["entities"],
            preview["entities"]
        );
        app.stop().await;
    });
}

#[test]
fn a_wrong_preview_is_refused_with_the_field() {
    run(async {
        let app = TestApp::shared().await;
        for (body, want) in [
            (json!({}), "text: is required"),
            (json!({"text": 5}), "text: must be"),
            (json!({"text": ""}), "text: must have at least 10 characters"),
            (
                json!({"text": "123456789"}),
                "text: must have at least 10 characters",
            ),
            (
                json!({"text": "ääääääääö"}),
                "text: must have at least 10 characters",
            ),
            (
                json!({"text": "APT28 \u{0} uses X-Agent"}),
                "text: must not hold a NUL",
            ),
            (
                json!({"text": "x".repeat((1 << 20) + 1)}),
                "text: must have at most",
            ),
            (json!({"text": TEXT, "source_type": "email"}), "source_type: "),
            (json!({"text": TEXT, "ingest_mode": "now"}), "ingest_mode: "),
            (
                json!({"text": TEXT, "session_id": ""}),
                "session_id: must have from 1",
            ),
            (
                json!({"text": TEXT, "session_id": "x".repeat(201)}),
                "session_id: must have from 1",
            ),
            (json!({"text": TEXT, "session_id": 5}), "session_id: must be"),
            (
                json!({"text": TEXT, "default_tlp": "x"}),
                "default_tlp: must be one of",
            ),
            (
                json!({"text": TEXT, "default_confidence": 7}),
                "default_confidence: must be",
            ),
        ] {
            let error = app.admin.refuses("preview", &body).await;
            assert!(error.starts_with(want), "{want}: {error}");
        }
        for kind in [
            "manual_text",
            "analyst_report",
            "osint_feed",
            "incident_writeup",
            "chat",
        ] {
            app.admin
                .preview(&json!({"text": "0123456789", "source_type": kind}))
                .await;
        }
        assert_eq!(app.admin.audited("ingest.preview").await.len(), 5);
        app.stop().await;
    });
}

#[test]
fn a_commit_that_names_entities_is_refused_and_commits_nothing() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let preview = admin.preview(&json!({"text": TEXT})).await;
        admin
            .decide(entity(&preview, "X-Agent"), json!({"status": "accepted"}))
            .await;
        let path = format!("/api/ingest/batch/{}/commit", text(&preview, "batch_id"));
        for (body, want) in [
            (json!({"entity_ids": []}), "entity_ids: is not known here"),
            (json!({"item_ids": ["x"]}), "item_ids: is not known here"),
            (json!([]), "body: must be an object"),
            (json!(null), "body: must be an object"),
        ] {
            let error = admin.post(&path, &body).await.refused(400).await;
            assert!(error.starts_with(want), "{error}");
        }
        assert!(admin.named("X-Agent").await.is_empty());
        assert!(admin.audited("ingest.batch_commit").await.is_empty());
        let bare = admin.request(Method::POST, &path).send().await.unwrap();
        let done = Answer(bare).expect(200).await;
        assert_eq!(done["results"]["nodes_created"], 1);
        app.stop().await;
    });
}

#[test]
fn a_batch_above_what_the_workspace_may_see_is_nobodys_until_it_may() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        admin.open().await;
        let preview = admin.preview(&json!({"text": TEXT, "default_tlp": "RED"})).await;
        let (batch, tool) = (text(&preview, "batch_id"), entity(&preview, "X-Agent"));
        let closed = json!({"tlp_ceiling": "AMBER", "elevated_clearance": false});
        admin.settings(closed.clone()).await;
        let path = format!("/api/ingest/batch/{batch}");
        assert_eq!(admin.get(&path).await.refused(404).await, "batch not found");
        let commit = admin.post(&format!("{path}/commit"), &json!({})).await;
        assert_eq!(commit.refused(404).await, "batch not found");
        let error = admin.undecided(tool, json!({"status": "accepted"}), 404).await;
        assert_eq!(error, "staging record not found");
        admin.open().await;
        let entities = admin.batch(&preview["batch_id"]).await["entities"].clone();
        assert_eq!(entities, preview["entities"]);

        // An entity that was marked more strictly than its text is hidden on its own.
        let preview = admin
            .preview(&json!({"text": TEXT, "default_tlp": "AMBER"}))
            .await;
        let tool = entity(&preview, "X-Agent");
        admin
            .decide(tool, json!({"status": "uncertain", "resolved_tlp": "RED"}))
            .await;
        admin.settings(closed).await;
        let shown = admin.batch(&preview["batch_id"]).await;
        assert_eq!(shown["entities"].as_array().unwrap().len(), FOUND.len() - 1);
        assert_eq!(shown["batch"]["summary"]["total_parsed"], FOUND.len() - 1);
        assert!(!shown.to_string().contains("X-Agent"));
        admin.undecided(tool, json!({"status": "accepted"}), 404).await;
        app.stop().await;
    });
}

#[test]
fn a_candidate_that_was_hidden_since_the_preview_is_shown_by_no_route() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        admin.open().await;
        let nodes = json!([{"name": "X-Agent", "node_type": "tool", "tlp": "RED"}]);
        admin.send_in("analyst", &json!({"nodes": nodes})).await;
        let preview = admin
            .preview(&json!({"text": TEXT, "default_tlp": "AMBER"}))
            .await;
        let tool = entity(&preview, "X-Agent");
        assert_eq!(tool["duplicate_candidates"].as_array().unwrap().len(), 1);
        assert_eq!(preview["summary"]["total_to_update"], 1);
        admin
            .settings(json!({"tlp_ceiling": "AMBER", "elevated_clearance": false}))
            .await;
        let shown = admin.batch(&preview["batch_id"]).await;
        assert_eq!(entity(&shown, "X-Agent")["duplicate_candidates"], json!([]));
        assert_eq!(shown["batch"]["summary"]["total_to_update"], 0);
        assert_eq!(shown["batch"]["summary"]["total_parsed"], FOUND.len());
        let decided = admin.decide(tool, json!({"status": "uncertain"})).await;
        assert_eq!(decided["duplicate_candidates"], json!([]));
        app.stop().await;
    });
}
