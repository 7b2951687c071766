//! Commits of reviewed items, and what may leave the workspace afterwards.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::review::pulled;
use super::server::Server;
use super::{FEEDS, PAGE, all, batch_path, ids, tools};
use crate::helpers::{TestApp, run};
use crate::stix::{names, object, relationship, text, version, with};

#[test]
fn a_subset_is_committed_and_the_rest_stays() {
    run(async {
        let app = TestApp::shared().await;
        let objects = tools(6);
        let (batch, items) = pulled(&app, &objects).await;
        app.admin.accept_items(&items[..4]).await;
        let chosen = ids(&items[..2]);
        let first = app.admin.commit_items(&batch, Some(&chosen)).await;
        for (field, want) in [
            ("nodes_created", 2),
            ("nodes_updated", 0),
            ("evidence_created", 2),
            ("edges_created", 0),
            ("committed", 2),
            ("already_committed", 0),
            ("remaining", 4),
        ] {
            assert_eq!(first[field], want, "{field} in {first}");
        }
        assert_eq!((&first["waiting"], &first["warnings"]), (&json!([]), &json!([])));
        let after = app.admin.items(&batch).await;
        let statuses = [
            "committed",
            "committed",
            "accepted",
            "accepted",
            "pending",
            "pending",
        ];
        assert_eq!(all(&after, "status"), statuses);
        let found = app.admin.search_with("Feed Tool", &[]).await;
        assert_eq!(found["results"].as_array().unwrap().len(), 2);

        // The same ids again, with one more.
        let chosen = ids(&items[..3]);
        let second = app.admin.commit_items(&batch, Some(&chosen)).await;
        assert_eq!(
            (&second["committed"], &second["already_committed"]),
            (&json!(1), &json!(2)),
            "{second}"
        );
        let whole = version_of(&app, &objects[0]).await;
        for _ in 0..2 {
            let again = app.admin.commit_items(&batch, Some(&chosen)).await;
            assert_eq!(again["already_committed"], 3, "{again}");
            for field in ["nodes_created", "nodes_updated", "evidence_created", "committed"] {
                assert_eq!(again[field], 0, "{field} in {again}");
            }
        }
        assert_eq!(version_of(&app, &objects[0]).await, whole);
        // All that is accepted.
        let last = app.admin.commit_items(&batch, None).await;
        assert_eq!(
            (&last["committed"], &last["remaining"]),
            (&json!(1), &json!(2)),
            "{last}"
        );
        assert_eq!(app.admin.feed_batch(&batch).await["status"], "review");
        app.admin.export_of("Feed Tool", &objects).await;
        app.stop().await;
    });
}

async fn version_of(app: &TestApp, object: &Value) -> Value {
    app.admin
        .node(text(object, "name"), text(object, "id"))
        .await
        .unwrap()
}

#[test]
fn a_wrong_request_commits_nothing() {
    run(async {
        let app = TestApp::shared().await;
        let (batch, items) = pulled(&app, &tools(2)).await;
        let (_, others) = pulled(&app, &[object("tool", "Of Another Batch")]).await;
        let path = format!("{}/commit", batch_path(&batch));
        let good = items[0]["id"].clone();
        let many: Vec<_> = (0..10_001).map(|_| uuid::Uuid::new_v4().to_string()).collect();
        for (item_ids, named) in [
            (json!([]), "item_ids"),
            (json!(many), "item_ids"),
            (json!("all"), "item_ids"),
            (json!([good, "x"]), "item_ids"),
            (json!([good, 7]), "item_ids"),
            (json!([good, uuid::Uuid::new_v4()]), "item_ids[1]: "),
            (json!([others[0]["id"], good]), "item_ids[0]: "),
        ] {
            let error = app
                .admin
                .post(&path, &json!({"item_ids": item_ids}))
                .await
                .refused(400)
                .await;
            assert!(error.contains(named), "{named}: {error}");
        }
        assert_eq!(app.admin.feed_batch(&batch).await["committed"], 0);
        app.admin.review(&items[1], json!({"status": "rejected"})).await;
        let answer = app.admin.commits(&batch, Some(&ids(&items))).await;
        let error = answer.refused(400).await;
        assert!(error.starts_with("item_ids[1]: is rejected"), "{error}");
        assert_eq!(app.admin.feed_batch(&batch).await["committed"], 0);
        // Named twice is named once.
        let done = app
            .admin
            .commit_items(&batch, Some(&[text(&items[0], "id"); 3]))
            .await;
        assert_eq!(
            (&done["committed"], &done["nodes_created"]),
            (&json!(1), &json!(1)),
            "{done}"
        );
        app.stop().await;
    });
}

/// Of parallel commits of the same items each item is committed once.
#[test]
fn parallel_commits_commit_every_item_once() {
    run(async {
        let app = TestApp::shared().await;
        let objects = tools(3 * PAGE);
        let (batch, items) = pulled(&app, &objects).await;
        let chosen = ids(&items);
        let commits = (0..6).map(|_| app.admin.commit_items(&batch, Some(&chosen)));
        let results = futures_util::future::join_all(commits).await;
        let sum = |field: &str| {
            results
                .iter()
                .map(|done| done[field].as_u64().unwrap())
                .sum::<u64>()
        };
        assert_eq!((sum("committed"), sum("nodes_created")), (30, 30), "{results:?}");
        let found = app.admin.search_with("Feed Tool", &[]).await;
        assert_eq!(found["results"].as_array().unwrap().len(), 30);
        for node in found["results"].as_array().unwrap() {
            assert_eq!(crate::stix::evidence(node), 1);
        }
        app.stop().await;
    });
}

#[test]
fn an_update_becomes_the_new_version_of_its_node() {
    run(async {
        let app = TestApp::shared().await;
        let (actor, tool) = (object("threat-actor", "Old Name"), object("tool", "Old Tool"));
        let edge = relationship(&actor, "uses", &tool);
        let server = Server::start(&[actor.clone(), tool.clone(), edge.clone()]).await;
        let feed = app.admin.feed_of(&server).await;
        let first = app.admin.pull(&feed).await;
        app.admin.commit_all(text(&first, "id")).await;
        let newer = [
            version(&actor, 2024, json!({"name": "New Name"})),
            version(&edge, 2024, json!({"description": "seen again"})),
            with(version(&tool, 2024, json!({})), json!({"revoked": true})),
        ];
        server.add(&newer);
        let second = app.admin.pull(&feed).await;
        let items = app.admin.items(text(&second, "id")).await;
        assert_eq!(all(&items, "change"), ["update"; 3]);
        let withdrawn = super::item_of(&items, &newer[2]);
        assert!(
            withdrawn["warnings"].to_string().contains("withdrawn"),
            "{withdrawn}"
        );
        app.admin.accept_items(&items).await;
        let done = app.admin.commit_items(text(&second, "id"), None).await;
        assert_eq!(
            (&done["nodes_updated"], &done["edges_updated"]),
            (&json!(2), &json!(1)),
            "{done}"
        );
        assert_eq!(version_of(&app, &newer[0]).await["name"], "New Name");
        assert_eq!(version_of(&app, &newer[2]).await["status"], "rejected");
        app.admin.export_of("New Name", &newer).await;
        app.stop().await;
    });
}

/// An item that is older than what the workspace got in the meantime changes nothing.
#[test]
fn a_stale_item_does_not_replace_a_newer_node() {
    run(async {
        let app = TestApp::shared().await;
        let old = object("tool", "Stale");
        let (batch, items) = pulled(&app, std::slice::from_ref(&old)).await;
        app.admin
            .ingest(json!([version(&old, 2024, json!({"name": "Fresh"}))]))
            .await;
        let done = app.admin.commit_items(&batch, Some(&ids(&items))).await;
        assert_eq!(
            (&done["committed"], &done["nodes_updated"]),
            (&json!(1), &json!(0)),
            "{done}"
        );
        assert_eq!(
            version_of(&app, &with(old, json!({"name": "Fresh"}))).await["name"],
            "Fresh"
        );
        app.stop().await;
    });
}

#[test]
fn what_may_not_be_redistributed_does_not_leave() {
    run(async {
        let app = TestApp::shared().await;
        let server = Server::start(&[object("tool", "Kept Inside")]).await;
        let more = json!({"name": "Closed Circle", "redistribution_state": "internal_only"});
        let feed = app.admin.feed_at(&server.url(), more).await;
        let batch = app.admin.pull(&feed).await;
        app.admin.commit_all(text(&batch, "id")).await;
        let found = app.admin.search("Kept Inside").await;
        assert_eq!(names(&found), ["Kept Inside"]);
        let export = format!("/api/recall/sessions/{}/export.stix", text(&found, "recall_id"));
        for state in ["internal_only", "prohibited"] {
            let path = format!("{FEEDS}/{feed}");
            app.admin
                .patch(&path, &json!({"redistribution_state": state}))
                .await
                .expect(200)
                .await;
            let denied = app.admin.audited("recall.export_denied").await.len();
            let error = app.admin.get(&export).await.refused(403).await;
            assert!(error.contains("Closed Circle"), "{error}");
            let logged = app.admin.audited("recall.export_denied").await;
            assert_eq!(logged.len(), denied + 1);
            assert!(logged[0].to_string().contains(&feed), "{}", logged[0]);
        }
        // A session without anything from the feed may leave.
        app.admin.ingest(json!([object("tool", "Open Lantern")])).await;
        let path = "/api/recall/search?q=Open+Lantern&limit=1";
        let open = app.admin.get(path).await.expect(200).await;
        assert_eq!(names(&open), ["Open Lantern"]);
        app.admin.export(text(&open, "recall_id")).await;
        app.admin
            .patch(
                &format!("{FEEDS}/{feed}"),
                &json!({"redistribution_state": "allowed"}),
            )
            .await
            .expect(200)
            .await;
        app.admin.export(text(&found, "recall_id")).await;
        app.stop().await;
    });
}

#[test]
fn a_disabled_feed_is_not_pulled() {
    run(async {
        let app = TestApp::shared().await;
        let server = Server::start(&tools(1)).await;
        let feed = app.admin.feed_of(&server).await;
        let path = format!("{FEEDS}/{feed}");
        app.admin
            .patch(&path, &json!({"enabled": false}))
            .await
            .expect(200)
            .await;
        let error = app.admin.pulls(&feed).await.refused(409).await;
        assert!(error.contains("disabled"), "{error}");
        assert!(server.requests().is_empty());
        app.admin
            .patch(&path, &json!({"enabled": true}))
            .await
            .expect(200)
            .await;
        assert_eq!(app.admin.pull(&feed).await["item_count"], 1);
        app.stop().await;
    });
}

#[test]
fn every_action_is_audited_and_the_actor_is_measured() {
    run(async {
        let app = TestApp::shared().await;
        let server = Server::start(&tools(2)).await;
        let feed = app.admin.feed_of(&server).await;
        app.admin
            .patch(&format!("{FEEDS}/{feed}"), &json!({"name": "Audited"}))
            .await
            .expect(200)
            .await;
        let batch = app.admin.pull(&feed).await;
        let id = text(&batch, "id");
        app.admin.commit_all(id).await;
        server.misbehave(|_, _| super::server::Reply::redirect("http://10.0.0.1/"));
        app.admin.pulls(&feed).await.refused(400).await;
        let upload = json!({"input_kind": "stix_bundle", "bundle": tools(1)});
        app.admin.post(super::BATCHES, &upload).await.expect(201).await;
        for (action, times, names) in [
            ("feed.register", 1, feed.as_str()),
            ("feed.change", 1, feed.as_str()),
            ("feed.pull", 2, feed.as_str()),
            ("feed.pull_done", 1, id),
            ("feed.pull_failed", 1, "private-address"),
            ("feed.item_change", 2, id),
            ("feed.commit", 1, id),
            ("feed.upload", 1, ""),
            ("feed.upload_done", 1, ""),
        ] {
            let entries = app.admin.audited(action).await;
            assert_eq!(entries.len(), times, "{action}: {entries:?}");
            for entry in &entries {
                assert!(entry.to_string().contains(names), "{action}: {entry}");
                assert!(entry["user_id"].is_string(), "{entry}");
            }
        }
        let chain = app.admin.get("/api/audit/verify").await.expect(200).await;
        assert_eq!(chain["valid"], true, "{chain}");
        let metrics = app.admin.metrics().await;
        let lines = metrics
            .lines()
            .filter(|line| line.contains("actor=\"taxii_puller\""));
        let measured: BTreeSet<&str> = lines
            .filter_map(|line| line.split_once('{'))
            .map(|(name, _)| name)
            .collect();
        assert!(measured.len() > 1, "{measured:?}");
        app.stop().await;
    });
}
