//! Bundles that a person uploads for the same review.

use serde_json::{Value, json};
use test_support::extent;

use super::server::Server;
use super::{BATCHES, all, ids, item_of, tools};
use crate::helpers::{Client, TestApp, run};
use crate::stix::{object, relationship, text, version, with};

/// Uploads a bundle, and returns the answer.
pub(super) async fn upload(client: &Client, body: Value) -> Value {
    let mut request = json!({"input_kind": "stix_bundle"});
    for (key, value) in body.as_object().unwrap() {
        request[key] = value.clone();
    }
    client.post(BATCHES, &request).await.expect(201).await
}

#[test]
fn an_uploaded_bundle_is_reviewed_like_a_pull() {
    run(async {
        let app = TestApp::shared().await;
        let author = with(
            object("identity", "Uploader"),
            json!({"identity_class": "organization"}),
        );
        let actor = with(
            object("threat-actor", "Uploaded Actor"),
            json!({"created_by_ref": author["id"]}),
        );
        let tool = object("tool", "Uploaded Tool");
        let objects = vec![
            relationship(&actor, "uses", &tool),
            tool,
            author,
            actor,
            json!({"type": "tool"}),
        ];
        let bundle = json!({"type": "bundle", "id": crate::stix::id("bundle"), "objects": objects});
        let answer = upload(&app.admin, json!({"bundle": bundle, "default_tlp": "TLP:AMBER"})).await;
        let batch = &answer["batch"];
        for (field, want) in [
            ("input_kind", json!("stix_bundle")),
            ("status", json!("review")),
            ("default_tlp", json!("TLP:AMBER")),
            ("item_count", json!(4)),
            ("pending", json!(4)),
        ] {
            assert_eq!(batch[field], want, "{field} in {batch}");
        }
        assert!(batch.get("feed_source_id").is_none(), "{batch}");
        assert!(batch["skipped_by_type"]["tool"].is_object(), "{batch}");
        assert_eq!(
            all(answer["items"].as_array().unwrap(), "proposed_tlp"),
            ["TLP:AMBER"; 4]
        );
        let done = app.admin.commit_all(text(batch, "id")).await;
        assert_eq!(
            (&done["nodes_created"], &done["edges_created"]),
            (&json!(2), &json!(1)),
            "{done}"
        );
        assert_eq!(
            app.admin.feed_batch(text(batch, "id")).await["status"],
            "committed"
        );
        app.admin.export_of("Uploaded", &objects).await;

        // Without a feed, each upload is staged by itself, but what the workspace has is not new.
        let again = upload(&app.admin, json!({"bundle": objects[..4]})).await;
        assert_eq!(
            (&again["batch"]["item_count"], &again["batch"]["unchanged"]),
            (&json!(0), &json!(4))
        );
        app.stop().await;
    });
}

#[test]
fn an_upload_to_a_feed_shares_its_memory() {
    run(async {
        let app = TestApp::shared().await;
        let objects = tools(4);
        let server = Server::start(&objects[..2]).await;
        let feed = app
            .admin
            .feed_at(&server.url(), json!({"default_tlp": "TLP:AMBER"}))
            .await;
        app.admin.pull(&feed).await;
        let newer = version(&objects[1], 2024, json!({}));
        let bundle = json!([objects[0], newer, objects[2]]);
        let answer = upload(&app.admin, json!({"bundle": bundle, "feed_source_id": feed})).await;
        let items = answer["items"].as_array().unwrap();
        assert_eq!(
            (items.len(), &answer["batch"]["unchanged"]),
            (2, &json!(1)),
            "{answer}"
        );
        assert_eq!(answer["batch"]["feed_source_id"], feed);
        assert_eq!(item_of(items, &newer)["change"], "update");
        assert_eq!(item_of(items, &objects[2])["proposed_tlp"], "TLP:AMBER");
        // The pull finds what the upload brought, and again the last object of the pull before.
        server.add(&objects[2..]);
        let pulled = app.admin.pull(&feed).await;
        assert_eq!(
            (&pulled["item_count"], &pulled["unchanged"]),
            (&json!(1), &json!(2)),
            "{pulled}"
        );
        app.admin
            .post(
                &format!("{}/resume", super::batch_path(text(&answer["batch"], "id"))),
                &json!({}),
            )
            .await
            .refused(409)
            .await;
        app.stop().await;
    });
}

#[test]
fn a_large_bundle_is_staged_whole() {
    run(async {
        let app = TestApp::shared().await;
        let mut objects = tools(extent(300, 1_200));
        let edges: Vec<Value> = objects
            .windows(2)
            .map(|pair| relationship(&pair[0], "related-to", &pair[1]))
            .collect();
        objects.extend(edges);
        let answer = upload(&app.admin, json!({"bundle": objects})).await;
        let batch = &answer["batch"];
        let count = json!(objects.len());
        assert_eq!(
            (&batch["item_count"], &batch["objects"]),
            (&count, &count),
            "{batch}"
        );
        assert_eq!(
            all(&app.admin.items(text(batch, "id")).await, "stix_id"),
            ids(&objects)
        );
        app.stop().await;
    });
}

#[test]
fn wrong_uploads_are_refused() {
    run(async {
        let app = TestApp::shared().await;
        let unknown = uuid::Uuid::new_v4();
        for (body, named) in [
            (json!({}), "input_kind"),
            (json!({"input_kind": "csv"}), "input_kind"),
            (json!({"input_kind": "taxii_2_1_pull"}), "feed_source_id"),
            (
                json!({"input_kind": "taxii_2_1_pull", "feed_source_id": "x"}),
                "feed_source_id",
            ),
            (json!({"input_kind": "stix_bundle"}), "bundle"),
            (json!({"input_kind": "stix_bundle", "bundle": 7}), "bundle"),
            (
                json!({"input_kind": "stix_bundle", "bundle": tools(1), "default_tlp": "x"}),
                "default_tlp",
            ),
            (
                json!({"input_kind": "stix_bundle", "bundle": tools(1), "default_tlp": "TLP:RED"}),
                "default_tlp",
            ),
        ] {
            let error = app.admin.post(BATCHES, &body).await.refused(400).await;
            assert!(error.contains(named), "{body}: {error}");
        }
        for body in [
            json!({"input_kind": "taxii_2_1_pull", "feed_source_id": unknown}),
            json!({"input_kind": "stix_bundle", "bundle": tools(1), "feed_source_id": unknown}),
        ] {
            let error = app.admin.post(BATCHES, &body).await.refused(404).await;
            assert_eq!(error, "feed not found", "{body}");
        }
        assert_eq!(app.admin.get(BATCHES).await.expect(200).await["count"], 0);
        app.stop().await;
    });
}
