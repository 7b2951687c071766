//! Review: reading items page by page, and deciding about them.

use serde_json::{Value, json};

use test_support::{eventually, extent};

use super::server::Server;
use super::{PAGE, allowing, batch_path, ids, item_of, item_path, tools};
use crate::helpers::{TestApp, run, settings};
use crate::stix::{object, text, with};

pub const GREEN: &str = "marking-definition--34098fce-860f-48ae-8e50-ebd3cc5e41da";
const AMBER: &str = "marking-definition--f88d31f6-486f-44da-b317-01333bde0b82";
pub const RED: &str = "marking-definition--5e57c739-391a-4eb3-b6be-7d15ca92d5ed";

pub fn marked(object: Value, marking: &str) -> Value {
    with(object, json!({"object_marking_refs": [marking]}))
}

/// Pulls these objects. Returns the batch's id and the items.
pub async fn pulled(app: &TestApp, objects: &[Value]) -> (String, Vec<Value>) {
    let server = Server::start(objects).await;
    let batch = app.admin.pull(&app.admin.feed_of(&server).await).await;
    let id = text(&batch, "id").to_owned();
    let items = app.admin.items(&id).await;
    (id, items)
}

#[test]
fn decisions_are_counted_and_can_be_taken_back() {
    run(async {
        let app = TestApp::shared().await;
        let (batch, items) = pulled(&app, &tools(4)).await;
        let decide = async |at: usize, status: &str| {
            let item = app.admin.review(&items[at], json!({"status": status})).await;
            assert_eq!(item["status"], status);
            assert_eq!(item["id"], items[at]["id"]);
        };
        decide(0, "accepted").await;
        decide(1, "rejected").await;
        decide(2, "accepted").await;
        decide(2, "pending").await;
        decide(0, "accepted").await;
        let counts = app.admin.feed_batch(&batch).await;
        let of = |field: &str| counts[field].as_u64().unwrap();
        assert_eq!(
            [
                of("item_count"),
                of("pending"),
                of("accepted"),
                of("rejected"),
                of("committed")
            ],
            [4, 2, 1, 1, 0]
        );
        assert_eq!(counts["status"], "review");
        let done = app.admin.commit_items(&batch, None).await;
        assert_eq!(
            (&done["committed"], &done["remaining"]),
            (&json!(1), &json!(2)),
            "{done}"
        );
        let error = app
            .admin
            .post(&item_path(&items[0]), &json!({"status": "rejected"}))
            .await
            .refused(409)
            .await;
        assert!(error.contains("committed"), "{error}");
        decide(2, "rejected").await;
        decide(3, "rejected").await;
        let closed = app.admin.feed_batch(&batch).await;
        assert_eq!(closed["status"], "committed", "{closed}");
        assert!(closed["committed_at"].is_string());
        // A decision that is taken back opens the batch again.
        decide(3, "pending").await;
        assert_eq!(app.admin.feed_batch(&batch).await["status"], "review");
        app.stop().await;
    });
}

/// A page in a browser may send all decisions at once, while further pages arrive.
#[test]
fn many_decisions_at_once_are_all_made() {
    run(async {
        let mut settings = allowing(settings("mem://"));
        settings.feeds.answer_ms = 100;
        settings.feeds.timeout_ms = 60_000;
        let app = TestApp::with(settings).await;
        let pages = extent(9, 30);
        let objects = tools(pages * PAGE);
        let server = Server::start(&objects).await;
        server.allow(pages / 3);
        let answer = app
            .admin
            .pulls(&app.admin.feed_of(&server).await)
            .await
            .expect(201)
            .await;
        let batch = text(&answer["batch"], "id").to_owned();
        eventually(|| async {
            let batch = app.admin.feed_batch(&batch).await;
            if batch["pages"] == pages / 3 {
                Ok(())
            } else {
                Err(batch)
            }
        })
        .await;
        let items = app.admin.items(&batch).await;
        server.release();
        let deciding = items
            .chunks(items.len().div_ceil(6))
            .map(|items| app.admin.accept_items(items));
        futures_util::future::join_all(deciding).await;
        let done = app.admin.pulled(&batch).await;
        assert_eq!(
            (&done["item_count"], &done["accepted"]),
            (&json!(pages * PAGE), &json!(pages / 3 * PAGE)),
            "{done}"
        );
        app.stop().await;
    });
}

#[test]
fn wrong_decisions_are_refused_by_name() {
    run(async {
        let app = TestApp::shared().await;
        let (_, items) = pulled(&app, &tools(1)).await;
        for (body, named) in [
            (json!({}), "status"),
            (json!({"status": "committed"}), "status"),
            (json!({"status": "merged"}), "status"),
            (json!({"status": 1}), "status"),
            (json!({"resolved_tlp": "TLP:PUCE"}), "resolved_tlp"),
            (json!({"resolved_tlp": "TLP:RED"}), "resolved_tlp"),
            (
                json!({"resolved_tlp": "TLP:AMBER+STRICT", "status": "accepted"}),
                "resolved_tlp",
            ),
        ] {
            let error = app
                .admin
                .post(&item_path(&items[0]), &body)
                .await
                .refused(400)
                .await;
            assert!(error.contains(named), "{body}: {error}");
        }
        let read = app.admin.get(&item_path(&items[0])).await.expect(200).await;
        assert_eq!(read["item"]["status"], "pending", "{read}");
        app.stop().await;
    });
}

#[test]
fn a_marking_is_never_weaker_than_the_object_states() {
    run(async {
        let app = TestApp::shared().await;
        let objects = [
            object("tool", "States Nothing"),
            marked(object("tool", "States Green"), GREEN),
            marked(object("tool", "States Amber"), AMBER),
        ];
        let (batch, items) = pulled(&app, &objects).await;
        let of = |at: usize| item_of(&items, &objects[at]);
        // Items are numbered by marking, so they need not come in the order of the objects.
        let proposed = [0, 1, 2].map(|at| text(of(at), "proposed_tlp"));
        assert_eq!(proposed, ["TLP:GREEN", "TLP:GREEN", "TLP:AMBER"]);
        assert!(of(0)["warnings"].to_string().contains("default"), "{}", of(0));
        assert_eq!(of(1)["warnings"], json!([]));
        for (at, level) in [(1, "TLP:WHITE"), (2, "TLP:GREEN"), (2, "clear")] {
            let body = json!({"resolved_tlp": level});
            let error = app.admin.post(&item_path(of(at)), &body).await.refused(400).await;
            assert!(error.starts_with("resolved_tlp: must not be weaker"), "{error}");
        }
        // The default of the feed is no statement of the object.
        for (at, level) in [(0, "TLP:WHITE"), (1, "TLP:AMBER"), (2, "TLP:AMBER")] {
            let item = app
                .admin
                .review(of(at), json!({"resolved_tlp": level, "status": "accepted"}))
                .await;
            assert_eq!(item["resolved_tlp"], level);
        }
        app.admin.commit_items(&batch, None).await;
        for (object, level) in objects.iter().zip(["TLP:WHITE", "TLP:AMBER", "TLP:AMBER"]) {
            let node = app
                .admin
                .node(text(object, "name"), text(object, "id"))
                .await
                .unwrap();
            assert_eq!(text(&node, "tlp"), level, "{node}");
        }
        app.stop().await;
    });
}

#[test]
fn items_are_read_page_by_page_and_by_status() {
    run(async {
        let app = TestApp::shared().await;
        let objects = tools(25);
        let (batch, items) = pulled(&app, &objects).await;
        let accepted: Vec<Value> = items.iter().step_by(3).cloned().collect();
        app.admin.accept_items(&accepted).await;
        let mut read = Vec::new();
        let mut after = String::new();
        loop {
            let path = format!("{}?limit=4&status=accepted{after}", batch_path(&batch));
            let page = app.admin.get(&path).await.expect(200).await;
            assert_eq!(page["batch"]["item_count"], 25);
            read.extend(page["items"].as_array().unwrap().iter().cloned());
            match page["next"].as_str() {
                Some(next) => after = format!("&after={next}"),
                None => break,
            }
        }
        assert_eq!(ids(&read), ids(&accepted));
        for wrong in ["limit=0", "limit=1001", "status=done", "after=x"] {
            let path = format!("{}?{wrong}", batch_path(&batch));
            app.admin.get(&path).await.refused(400).await;
        }
        // An item of another batch is no place in this one.
        let (_, others) = pulled(&app, &tools(1)).await;
        let path = format!("{}?after={}", batch_path(&batch), text(&others[0], "id"));
        app.admin.get(&path).await.refused(400).await;
        app.stop().await;
    });
}

#[test]
fn an_item_names_nodes_that_it_may_be_a_duplicate_of() {
    run(async {
        let app = TestApp::shared().await;
        let known = object("intrusion-set", "Twin Bear");
        app.admin.ingest(json!([known])).await;
        let twin = with(
            object("intrusion-set", "TWIN BEAR"),
            json!({"description": "the same"}),
        );
        let (_, items) = pulled(&app, &[twin, object("tool", "Unlike Anything")]).await;
        let candidates = items[0]["duplicate_candidates"].as_array().unwrap();
        assert_eq!(candidates[0]["name"], "Twin Bear", "{}", items[0]);
        assert_eq!(items[1]["duplicate_candidates"], json!([]));
        let read = app.admin.get(&item_path(&items[0])).await.expect(200).await;
        assert_eq!(
            &read["item"]["duplicate_candidates"],
            &items[0]["duplicate_candidates"]
        );
        app.stop().await;
    });
}
