//! What a caller with a lower clearance is told of feeds and batches: what there is to see, and nothing else.

use reqwest::Method;
use serde_json::{Value, json};

use super::access::{OPEN, clear, half_hidden};
use super::review::{GREEN, RED, marked};
use super::server::{Reply, Server};
use super::slow::prompt;
use super::upload::upload;
use super::{BATCHES, FEEDS, PAGE, batch_path, item_path, tools};
use crate::helpers::{Answer, Client, TestApp, run};
use crate::stix::{object, text, without};

const LOWERED: &str = "TLP:AMBER";
/// What a batch tells of its contents.
const TOLD: [&str; 8] = [
    "objects",
    "pages",
    "bytes",
    "unchanged",
    "unreadable",
    "skipped_by_type",
    "skipped_objects",
    "item_count",
];

/// What a batch tells of its contents.
fn told(batch: &Value) -> Vec<(&'static str, &Value)> {
    TOLD.map(|field| (field, &batch[field])).to_vec()
}

/// The batches that are listed with these parameters.
async fn listed(client: &Client, parameters: &str) -> Vec<Value> {
    let path = format!("{BATCHES}?{parameters}");
    let answer = client.get(&path).await.expect(200).await;
    answer["batches"].as_array().unwrap().clone()
}

#[test]
fn a_batch_tells_the_same_as_if_what_is_hidden_had_not_come() {
    run(async {
        let app = TestApp::shared().await;
        let green = tools(2);
        let mut objects = green.clone();
        objects.push(marked(object("tool", "Secret Tool"), RED));
        objects.push(marked(without(object("tool", "No Name"), "name"), RED));
        objects.push(marked(object("x-other", "Secret Other"), RED));
        clear(&app.admin, OPEN).await;
        let whole = upload(&app.admin, json!({"bundle": objects})).await;
        assert_eq!(
            (&whole["batch"]["objects"], &whole["batch"]["item_count"]),
            (&json!(5), &json!(4)),
            "{whole}"
        );
        clear(&app.admin, LOWERED).await;
        let lowered = app.admin.feed_batch(text(&whole["batch"], "id")).await;
        let other = app.workspace("elsewhere").await;
        let want = upload(&other, json!({"bundle": green})).await;
        assert_eq!(told(&lowered), told(&want["batch"]));
        app.stop().await;
    });
}

#[test]
fn repetitions_of_hidden_objects_are_not_counted() {
    run(async {
        let app = TestApp::shared().await;
        let server = Server::start(&[]).await;
        let feed = app.admin.feed_of(&server).await;
        let mut objects = tools(2);
        objects.push(marked(object("tool", "Secret Tool"), RED));
        let body = json!({"bundle": objects, "feed_source_id": feed});
        clear(&app.admin, OPEN).await;
        upload(&app.admin, body.clone()).await;
        let again = upload(&app.admin, body).await;
        assert_eq!(again["batch"]["unchanged"], 3, "{again}");
        clear(&app.admin, LOWERED).await;
        let batch = app.admin.feed_batch(text(&again["batch"], "id")).await;
        assert_eq!(
            (&batch["unchanged"], &batch["objects"]),
            (&json!(2), &json!(2)),
            "{batch}"
        );
        app.stop().await;
    });
}

#[test]
fn a_batch_is_committed_once_all_that_is_visible_is() {
    run(async {
        let app = TestApp::shared().await;
        let (batch, items) = half_hidden(&app).await;
        let visible = [&items[0], &items[2]].map(|item| text(item, "id"));
        app.admin.commit_items(&batch, Some(&visible)).await;
        let shown = app.admin.feed_batch(&batch).await;
        assert_eq!(shown["status"], "committed", "{shown}");
        assert!(shown["committed_at"].is_string(), "{shown}");
        let ids = |batches: Vec<Value>| -> Vec<String> {
            batches.iter().map(|batch| text(batch, "id").to_owned()).collect()
        };
        assert_eq!(
            ids(listed(&app.admin, "status=committed").await),
            [batch.as_str()]
        );
        assert!(listed(&app.admin, "status=review").await.is_empty());
        clear(&app.admin, OPEN).await;
        let whole = app.admin.feed_batch(&batch).await;
        assert_eq!(whole["status"], "review", "{whole}");
        assert!(whole.get("committed_at").is_none(), "{whole}");
        assert_eq!(ids(listed(&app.admin, "status=review").await), [batch.as_str()]);
        assert!(listed(&app.admin, "status=committed").await.is_empty());
        app.stop().await;
    });
}

/// All requests about a batch and one of its items, and their errors.
async fn errors_of(client: &Client, batch: &str, item: &str) -> Vec<String> {
    let path = batch_path(batch);
    let item = format!("{path}/items/{item}");
    let requests = [
        (Method::GET, path.clone(), json!(null)),
        (Method::POST, format!("{path}/commit"), json!({})),
        (
            Method::POST,
            format!("{path}/commit"),
            json!({"item_ids": [uuid::Uuid::nil()]}),
        ),
        (Method::POST, format!("{path}/resume"), json!({})),
        (Method::GET, item.clone(), json!(null)),
        (Method::POST, item, json!({"status": "accepted"})),
    ];
    let mut errors = Vec::new();
    for (method, path, body) in requests {
        let answer = client.request(method, &path).json(&body).send().await.unwrap();
        errors.push(Answer(answer).refused(404).await);
    }
    errors
}

#[test]
fn a_batch_of_a_hidden_default_does_not_exist_until_something_in_it_is_visible() {
    run(async {
        let app = TestApp::shared().await;
        clear(&app.admin, OPEN).await;
        let hidden = upload(&app.admin, json!({"bundle": tools(1), "default_tlp": "TLP:RED"})).await;
        let mut objects = tools(1);
        objects.push(marked(object("tool", "Green Tool"), GREEN));
        let mixed = upload(&app.admin, json!({"bundle": objects, "default_tlp": "TLP:RED"})).await;
        clear(&app.admin, LOWERED).await;
        let id = text(&mixed["batch"], "id");
        let batches = listed(&app.admin, "").await;
        assert_eq!(batches.len(), 1, "{batches:?}");
        assert_eq!(
            (&batches[0]["id"], &batches[0]["item_count"]),
            (&json!(id), &json!(1)),
            "{batches:?}"
        );
        assert_eq!(app.admin.items(id).await.len(), 1);
        let errors = errors_of(
            &app.admin,
            text(&hidden["batch"], "id"),
            text(&hidden["items"][0], "id"),
        );
        let errors = errors.await;
        let made_up = uuid::Uuid::new_v4().to_string();
        let item = uuid::Uuid::new_v4().to_string();
        assert_eq!(errors, errors_of(&app.admin, &made_up, &item).await);
        app.stop().await;
    });
}

#[test]
fn an_object_that_came_at_a_hidden_marking_is_new_at_a_visible_one() {
    run(async {
        let app = TestApp::shared().await;
        let server = Server::start(&[]).await;
        let feed = app.admin.feed_of(&server).await;
        let tool = object("tool", "Twice Marked");
        let body = |marking: &str| {
            let object = marked(tool.clone(), marking);
            json!({"bundle": [object], "feed_source_id": feed})
        };
        clear(&app.admin, OPEN).await;
        let red = upload(&app.admin, body(RED)).await;
        clear(&app.admin, LOWERED).await;
        let green = upload(&app.admin, body(GREEN)).await;
        assert_eq!(
            (&green["batch"]["item_count"], &green["batch"]["unchanged"]),
            (&json!(1), &json!(0)),
            "{green}"
        );
        assert_eq!(green["items"][0]["change"], "new", "{green}");
        let again = upload(&app.admin, body(GREEN)).await;
        assert_eq!(
            (&again["batch"]["item_count"], &again["batch"]["unchanged"]),
            (&json!(0), &json!(1)),
            "{again}"
        );
        clear(&app.admin, OPEN).await;
        for (batch, level) in [(&red, "TLP:RED"), (&green, "TLP:GREEN")] {
            let items = app.admin.items(text(&batch["batch"], "id")).await;
            assert_eq!(items.len(), 1, "{items:?}");
            assert_eq!(items[0]["proposed_tlp"], level, "{items:?}");
        }
        assert_eq!(listed(&app.admin, "").await.len(), 3);
        app.stop().await;
    });
}

#[test]
fn counts_follow_an_item_that_is_marked_differently() {
    run(async {
        let app = TestApp::shared().await;
        let (long, short) = (object("tool", "A Tool With A Long Name"), object("tool", "Short"));
        clear(&app.admin, OPEN).await;
        let both = upload(&app.admin, json!({"bundle": [long, short]})).await;
        let id = text(&both["batch"], "id");
        let items = app.admin.items(id).await;
        let raised = super::item_of(&items, &long);
        app.admin.review(raised, json!({"resolved_tlp": "TLP:RED"})).await;
        clear(&app.admin, LOWERED).await;
        let other = app.workspace("elsewhere").await;
        let one = upload(&other, json!({"bundle": [short]})).await;
        let shown = app.admin.feed_batch(id).await;
        assert_eq!(told(&shown), told(&one["batch"]));
        assert_eq!(shown["pending"], 1);
        app.admin.get(&item_path(raised)).await.refused(404).await;

        clear(&app.admin, OPEN).await;
        app.admin
            .review(raised, json!({"resolved_tlp": "TLP:GREEN"}))
            .await;
        clear(&app.admin, LOWERED).await;
        assert_eq!(told(&app.admin.feed_batch(id).await), told(&both["batch"]));
        app.stop().await;
    });
}

#[test]
fn a_feed_does_not_name_a_hidden_batch_that_is_being_pulled() {
    run(async {
        let app = prompt(|_| {}).await;
        let server = Server::start(&tools(1)).await;
        server.allow(0);
        clear(&app.admin, OPEN).await;
        let feed = app
            .admin
            .feed_at(&server.url(), json!({"default_tlp": "TLP:RED"}))
            .await;
        let started = app.admin.pulls(&feed).await.expect(201).await;
        let batch = text(&started["batch"], "id");
        let path = format!("{FEEDS}/{feed}");
        let known = app.admin.get(&path).await.expect(200).await;
        assert_eq!(known["feed"]["running_batch_id"], batch);

        clear(&app.admin, LOWERED).await;
        let read = app.admin.get(&path).await.expect(200).await;
        let every = app.admin.get(FEEDS).await.expect(200).await;
        let error = app.admin.pulls(&feed).await.refused(400).await;
        assert!(error.starts_with("default_tlp: "), "{error}");
        let change = json!({"default_tlp": "TLP:GREEN"});
        let changed = app.admin.patch(&path, &change).await.expect(200).await;
        for feed in [&read["feed"], &every["feeds"][0], &changed["feed"]] {
            assert!(feed.get("running_batch_id").is_none(), "{feed}");
        }
        let error = app.admin.pulls(&feed).await.refused(409).await;
        assert!(
            error.contains("is being pulled") && !error.contains(batch),
            "{error}"
        );
        server.release();
        clear(&app.admin, OPEN).await;
        assert_eq!(app.admin.pulled(batch).await["item_count"], 1);
        app.stop().await;
    });
}

/// A pull that brings what nobody in the workspace could review goes no further.
#[test]
fn a_pull_with_a_hidden_default_is_not_resumed() {
    run(async {
        let app = TestApp::shared().await;
        let mut objects = tools(2 * PAGE);
        objects[0] = marked(object("tool", "Green Tool"), GREEN);
        let server = Server::start(&objects).await;
        server.misbehave(|request, reply| match request.query.contains_key("next") {
            true => Reply::new(503, "text/plain", ""),
            false => reply,
        });
        clear(&app.admin, OPEN).await;
        let default = json!({"default_tlp": "TLP:RED"});
        let feed = app.admin.feed_at(&server.url(), default).await;
        app.admin.pulls(&feed).await.refused(502).await;
        server.behave();
        clear(&app.admin, LOWERED).await;
        let failed = listed(&app.admin, "status=failed").await;
        assert_eq!(failed[0]["item_count"], 1, "{failed:?}");
        let resume = format!("{}/resume", batch_path(text(&failed[0], "id")));
        let error = app.admin.post(&resume, &json!({})).await.refused(400).await;
        assert!(error.starts_with("default_tlp: "), "{error}");
        clear(&app.admin, OPEN).await;
        let resumed = app.admin.post(&resume, &json!({})).await.expect(200).await;
        assert_eq!(resumed["batch"]["item_count"], 2 * PAGE, "{resumed}");
        app.stop().await;
    });
}

/// A mistake in the body is no request to commit everything.
#[test]
fn a_commit_needs_no_body_or_one_that_it_knows() {
    run(async {
        let app = TestApp::shared().await;
        for body in [None, Some(json!({}))] {
            let uploaded = upload(&app.admin, json!({"bundle": tools(2)})).await;
            let batch = text(&uploaded["batch"], "id");
            let items = app.admin.items(batch).await;
            app.admin.accept_items(&items).await;
            let path = format!("{}/commit", batch_path(batch));
            for (wrong, named) in [
                (json!({"item_id": items[0]["id"]}), "item_id: "),
                (json!({"item_ids": null}), "item_ids: "),
                (json!({"item_ids": null, "x": 1}), "item_ids: "),
                (json!({"x": 1}), "x: "),
            ] {
                let error = app.admin.post(&path, &wrong).await.refused(400).await;
                assert!(error.starts_with(named), "{wrong}: {error}");
                assert_eq!(app.admin.feed_batch(batch).await["committed"], 0, "{wrong}");
            }
            let request = app.admin.request(Method::POST, &path);
            let request = body.iter().fold(request, |request, body| request.json(body));
            let done = Answer(request.send().await.unwrap()).expect(200).await;
            assert_eq!(done["results"]["committed"], 2, "{done}");
        }
        app.stop().await;
    });
}
