//! Who sees what: markings, workspaces and API keys.

use serde_json::{Value, json};

use super::review::{RED, marked, pulled};
use super::server::Server;
use super::{BATCHES, FEEDS, all, batch_path, ids, item_path, tools};
use crate::helpers::{Client, TestApp, run};
use crate::stix::{object, relationship, text};

/// The ceiling under which everything is visible.
pub(super) const OPEN: &str = "TLP:RED";

/// Lets a workspace see what is marked up to this level.
pub(super) async fn clear(client: &Client, level: &str) {
    let elevated = level == OPEN;
    client
        .settings(json!({"tlp_ceiling": level, "elevated_clearance": elevated}))
        .await;
}

/// A batch with two items that the workspace may see, and two RED ones of which the first is accepted.
pub(super) async fn half_hidden(app: &TestApp) -> (String, Vec<Value>) {
    let secret = marked(object("tool", "Secret Tool"), RED);
    let mut objects = tools(2);
    objects.insert(1, secret.clone());
    objects.push(marked(relationship(&objects[0], "uses", &secret), RED));
    clear(&app.admin, OPEN).await;
    let (batch, items) = pulled(app, &objects).await;
    assert_eq!(all(&items, "stix_id"), ids(&objects));
    app.admin.review(&items[1], json!({"status": "accepted"})).await;
    assert_eq!(app.admin.feed_batch(&batch).await["item_count"], 4);
    clear(&app.admin, "TLP:AMBER").await;
    (batch, items)
}

#[test]
fn items_above_the_clearance_are_neither_listed_nor_counted() {
    run(async {
        let app = TestApp::shared().await;
        let (batch, every) = half_hidden(&app).await;
        let counts = app.admin.feed_batch(&batch).await;
        for (field, want) in [("item_count", 2), ("pending", 2), ("accepted", 0)] {
            assert_eq!(counts[field], want, "{field} in {counts}");
        }
        let listed = app.admin.get(BATCHES).await.expect(200).await;
        assert_eq!(listed["batches"][0]["item_count"], 2);
        let shown = app.admin.items(&batch).await;
        assert_eq!(ids(&shown), [text(&every[0], "id"), text(&every[2], "id")]);
        let text_of = json!([listed, shown]).to_string();
        assert!(!text_of.contains("Secret"), "{text_of}");
        // A pull of a workspace without clearance stages them all the same.
        let server = Server::start(&[marked(object("tool", "Another Secret"), RED)]).await;
        let blind = app.admin.pull(&app.admin.feed_of(&server).await).await;
        assert_eq!(blind["item_count"], 0, "{blind}");
        clear(&app.admin, OPEN).await;
        assert_eq!(app.admin.items(text(&blind, "id")).await.len(), 1);
        app.stop().await;
    });
}

#[test]
fn items_above_the_clearance_can_be_neither_decided_nor_committed() {
    run(async {
        let app = TestApp::shared().await;
        let (batch, items) = half_hidden(&app).await;
        let hidden = &items[1];
        let made_up = format!("{}/items/{}", batch_path(&batch), uuid::Uuid::new_v4());
        let decision = json!({"status": "rejected"});
        let mut errors = Vec::new();
        for path in [item_path(hidden), made_up] {
            let read = app.admin.get(&path).await.refused(404).await;
            let decided = app.admin.post(&path, &decision).await.refused(404).await;
            errors.push((read, decided));
        }
        assert_eq!(errors[0], errors[1]);

        let (visible, unknown) = (text(&items[0], "id"), uuid::Uuid::new_v4().to_string());
        let mut errors = Vec::new();
        for id in [text(hidden, "id"), &unknown] {
            let answer = app.admin.commits(&batch, Some(&[visible, id])).await;
            errors.push(answer.refused(400).await);
        }
        assert!(errors[0].starts_with("item_ids[1]: "), "{errors:?}");
        assert_eq!(errors[0], errors[1]);
        assert_eq!(app.admin.feed_batch(&batch).await["committed"], 0);
        // The hidden item is accepted, and is not committed along.
        let done = app.admin.commit_items(&batch, None).await;
        assert_eq!(
            (&done["nodes_created"], &done["remaining"]),
            (&json!(0), &json!(2)),
            "{done}"
        );
        clear(&app.admin, OPEN).await;
        assert_eq!(app.admin.feed_batch(&batch).await["accepted"], 1);
        app.stop().await;
    });
}

/// A reviewer who marks an item higher than the workspace may see would lose sight of it.
#[test]
fn a_marking_above_the_ceiling_is_refused() {
    run(async {
        let app = TestApp::shared().await;
        clear(&app.admin, "TLP:GREEN").await;
        let (_, items) = pulled(&app, &tools(1)).await;
        let error = app
            .admin
            .post(&item_path(&items[0]), &json!({"resolved_tlp": "TLP:AMBER"}))
            .await;
        let error = error.refused(400).await;
        assert!(error.contains("TLP:GREEN"), "{error}");
        app.stop().await;
    });
}

#[test]
fn what_belongs_to_another_workspace_is_not_found() {
    run(async {
        let app = TestApp::shared().await;
        let server = Server::start(&tools(2)).await;
        let feed = app.admin.feed_of(&server).await;
        let batch = app.admin.pull(&feed).await;
        let id = text(&batch, "id");
        let items = app.admin.items(id).await;
        let foreign = app.workspace("elsewhere").await;
        let (path, made_up) = (batch_path(id), batch_path(&uuid::Uuid::new_v4().to_string()));
        for (own, unknown) in [
            (path.clone(), made_up.clone()),
            (
                item_path(&items[0]),
                format!("{made_up}/items/{}", text(&items[0], "id")),
            ),
        ] {
            let error = foreign.get(&own).await.refused(404).await;
            assert_eq!(foreign.get(&unknown).await.refused(404).await, error);
        }
        let accept = json!({"status": "accepted"});
        foreign
            .post(&item_path(&items[0]), &accept)
            .await
            .refused(404)
            .await;
        for (action, body) in [
            ("resume", json!({})),
            ("commit", json!({})),
            ("commit", json!({"item_ids": ids(&items)})),
        ] {
            let error = foreign
                .post(&format!("{path}/{action}"), &body)
                .await
                .refused(404)
                .await;
            let other = foreign
                .post(&format!("{made_up}/{action}"), &body)
                .await
                .refused(404)
                .await;
            assert_eq!(error, other, "{action}");
        }
        let of_feed = format!("{FEEDS}/{feed}");
        foreign.get(&of_feed).await.refused(404).await;
        foreign
            .patch(&of_feed, &json!({"enabled": false}))
            .await
            .refused(404)
            .await;
        foreign.pulls(&feed).await.refused(404).await;
        let upload = json!({"input_kind": "stix_bundle", "feed_source_id": feed, "bundle": tools(1)});
        let error = foreign.post(BATCHES, &upload).await.refused(404).await;
        assert_eq!(error, "feed not found");
        for path in [FEEDS, BATCHES] {
            assert_eq!(foreign.get(path).await.expect(200).await["count"], 0);
        }
        let path = format!("{BATCHES}?feed={feed}");
        assert_eq!(foreign.get(&path).await.expect(200).await["count"], 0);

        // The same collection brings the same objects to each workspace.
        let theirs = foreign.pull(&foreign.feed_of(&server).await).await;
        assert_eq!(theirs["item_count"], 2);
        app.stop().await;
    });
}

#[test]
fn a_key_needs_the_scope_ingest() {
    run(async {
        let app = TestApp::shared().await;
        let server = Server::start(&tools(1)).await;
        let key = app.api_key(&["ingest"]).await;
        let feed = key.feed_of(&server).await;
        let batch = key.pull(&feed).await;
        let id = text(&batch, "id");
        let items = key.items(id).await;
        assert_eq!(key.commit_all(id).await["nodes_created"], 1);
        let body = json!({"input_kind": "taxii_2_1_pull", "feed_source_id": feed});
        let requests: [(&str, String, Value); 9] = [
            ("GET", FEEDS.into(), json!(null)),
            ("POST", FEEDS.into(), json!({})),
            ("PATCH", format!("{FEEDS}/{feed}"), json!({"enabled": false})),
            ("POST", BATCHES.into(), body),
            ("GET", batch_path(id), json!(null)),
            ("POST", format!("{}/resume", batch_path(id)), json!({})),
            ("POST", format!("{}/commit", batch_path(id)), json!({})),
            ("GET", item_path(&items[0]), json!(null)),
            ("POST", item_path(&items[0]), json!({"status": "accepted"})),
        ];
        let asked = server.requests().len();
        for (client, status) in [
            (app.api_key(&["read"]).await, 403),
            (app.anonymous(), 401),
            (app.user("viewer").await, 403),
        ] {
            for (method, path, body) in &requests {
                let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
                let answer = client.request(method, path).json(body).send().await.unwrap();
                crate::helpers::Answer(answer).refused(status).await;
            }
        }
        assert_eq!(server.requests().len(), asked);
        app.user("analyst").await.pull(&feed).await;
        app.stop().await;
    });
}
