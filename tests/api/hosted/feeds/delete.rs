//! A feed is deleted: it is gone from every list, its pull ends, and what it brought stays under its rule.

use serde_json::json;
use test_support::eventually;

use super::server::Server;
use super::slow::prompt;
use super::{FEEDS, PAGE, allowing, tools};
use crate::helpers::{TestApp, run, settings};
use crate::stix::text;

#[test]
fn a_deleted_feed_is_gone_and_what_it_brought_stays_under_its_rule() {
    run(async {
        let app = TestApp::with(allowing(settings("mem://"))).await;
        let admin = &app.admin;
        let server = Server::start(&tools(3)).await;
        let feed = admin
            .feed_at(&server.url(), json!({"redistribution_state": "prohibited"}))
            .await;
        let path = format!("{FEEDS}/{feed}");
        let batch = admin.pull(&feed).await;
        let batch = text(&batch, "id");
        let items = admin.items(batch).await;
        admin.commit_items(batch, Some(&[text(&items[0], "id")])).await;

        let other = app.workspace("elsewhere").await;
        other.delete(&path).await.refused(404).await;
        app.user("viewer").await.delete(&path).await.refused(403).await;
        admin.delete(&path).await.expect(204).await;
        let logged = admin.audited("feed.delete").await;
        assert_eq!(logged.len(), 1);
        assert_eq!(
            (
                &logged[0]["resource_id"],
                &logged[0]["metadata"]["redistribution_state"]
            ),
            (&json!(feed), &json!("prohibited"))
        );

        // The feed is not there for anybody.
        admin.get(&path).await.refused(404).await;
        admin
            .patch(&path, &json!({"enabled": true}))
            .await
            .refused(404)
            .await;
        admin.delete(&path).await.refused(404).await;
        assert_eq!(admin.get(FEEDS).await.expect(200).await["count"], 0);
        admin.pulls(&feed).await.refused(404).await;
        let upload = json!({"input_kind": "stix_bundle", "bundle": tools(1), "feed_source_id": feed});
        admin.post(super::BATCHES, &upload).await.refused(404).await;

        // What waits for review can still be committed, and nothing of the feed leaves.
        let known = admin.feed_batch(batch).await;
        assert_eq!(
            (&known["status"], &known["feed_source_id"]),
            (&json!("review"), &json!(feed))
        );
        admin.accept_items(&items[1..]).await;
        let done = admin.commit_items(batch, None).await;
        assert_eq!(done["nodes_created"], 2, "{done}");
        let found = admin.search("Feed Tool").await;
        assert_eq!(found["results"].as_array().unwrap().len(), 3);
        let export = format!("/api/recall/sessions/{}/export.stix", text(&found, "recall_id"));
        let refusal = admin.get(&export).await.refused(403).await;
        assert!(refusal.contains("redistribution"), "{refusal}");

        // The same collection may be registered again, and is read from its beginning.
        let again = admin.feed_of(&server).await;
        assert_ne!(again, feed);
        let batch = admin.pull(&again).await;
        assert_eq!(batch["objects"], 3, "{batch}");
        app.stop().await;
    });
}

#[test]
fn the_pull_of_a_deleted_feed_ends_and_keeps_what_it_staged() {
    run(async {
        let app = prompt(|_| {}).await;
        let admin = &app.admin;
        let server = Server::start(&tools(3 * PAGE)).await;
        server.allow(1);
        let feed = admin.feed_of(&server).await;
        let answer = admin.pulls(&feed).await.expect(201).await;
        let batch = text(&answer["batch"], "id").to_owned();
        eventually(|| async {
            let batch = admin.feed_batch(&batch).await;
            if batch["pages"] == 1 { Ok(()) } else { Err(batch) }
        })
        .await;

        admin.delete(&format!("{FEEDS}/{feed}")).await.expect(204).await;
        let ended = admin.feed_batch(&batch).await;
        assert_eq!(
            (&ended["status"], &ended["error"]),
            (&json!("failed"), &json!("the feed was deleted")),
            "{ended}"
        );
        let failed = admin.audited("feed.pull_failed").await;
        assert_eq!(failed.len(), 1);
        assert_eq!(failed[0]["metadata"]["reason"], "the feed was deleted");
        admin
            .post(&format!("{}/resume", super::batch_path(&batch)), &json!({}))
            .await
            .refused(404)
            .await;

        // The page that the server still owed comes too late.
        server.release();
        let done = admin.commit_all(&batch).await;
        assert_eq!(done["nodes_created"], PAGE, "{done}");
        assert_eq!(
            admin.audited("feed.pull_failed").await.len(),
            1,
            "one end, one entry"
        );
        app.stop().await;
    });
}
