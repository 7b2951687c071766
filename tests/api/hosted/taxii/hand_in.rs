//! What clients hand in, and what they are told of it.

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use super::{MEDIA_TYPE, ask, root_of};
use crate::helpers::{Answer, Client, TestApp, run, settings};
use crate::hosted::collections::COLLECTIONS;
use crate::hosted::feeds::item_of;
use crate::stix::{id, object, relationship, statement, text, version, with};

/// Hands an envelope in to a collection.
pub async fn hand_in(client: &Client, root: &str, collection: &str, envelope: &Value) -> Answer {
    let path = format!("{root}collections/{collection}/objects/");
    let request = client.request(Method::POST, &path);
    let request = request
        .header("accept", MEDIA_TYPE)
        .header("content-type", MEDIA_TYPE);
    Answer(request.body(envelope.to_string()).send().await.unwrap())
}

async fn collection(admin: &Client, more: Value) -> String {
    let new = with(json!({"title": "Handed in", "writable_by": "everyone"}), more);
    let made = admin.post(COLLECTIONS, &new).await.expect(201).await;
    text(&made["collection"], "id").to_owned()
}

async fn status(client: &Client, root: &str, id: &str) -> Value {
    ask(client, &format!("{root}status/{id}/"))
        .await
        .expect(200)
        .await
}

/// The numbers of a status: successes, failures, pending ones.
fn counts(status: &Value) -> [u64; 3] {
    let count = |name: &str| status[name].as_u64().unwrap();
    let counts = [
        count("success_count"),
        count("failure_count"),
        count("pending_count"),
    ];
    assert_eq!(count("total_count"), counts.iter().sum::<u64>(), "{status}");
    for (list, count) in ["successes", "failures", "pendings"].into_iter().zip(counts) {
        let listed = status[list].as_array().map_or(0, Vec::len) as u64;
        assert!(listed == 0 || listed == count, "{status}");
    }
    let is_complete = counts[2] == 0;
    assert_eq!(status["status"] == "complete", is_complete, "{status}");
    counts
}

fn ids<'s>(status: &'s Value, list: &str) -> Vec<&'s str> {
    let list = status[list].as_array().into_iter().flatten();
    list.map(|entry| text(entry, "id")).collect()
}

/// The batches of the workspace.
async fn batches(admin: &Client) -> Vec<Value> {
    let listed = admin.get("/api/threat-intel/batches").await.expect(200).await;
    listed["batches"].as_array().unwrap().clone()
}

#[test]
fn what_is_reviewed_is_pending_until_it_is_decided() {
    run(async {
        let app = TestApp::shared().await;
        let (admin, root) = (&app.admin, root_of(&app.admin).await);
        let to = collection(admin, json!({"alias": "inbox"})).await;
        let writer = app.api_key(&["ingest"]).await;
        let statement = statement("for the readers of this test");
        let group = object("intrusion-set", "Handed Heron");
        let tool = with(
            object("tool", "Handed Hammer"),
            json!({"object_marking_refs": [statement["id"]]}),
        );
        let uses = relationship(&group, "uses", &tool);
        let bad = json!({"type": "malware", "id": id("malware"), "name": 7});
        let nameless = json!({"type": "malware"});
        let envelope = json!({"objects": [statement, group, tool, uses, bad, nameless, group]});
        let answer = hand_in(&writer, &root, "inbox", &envelope).await;
        assert_eq!(answer.header("content-type"), Some(MEDIA_TYPE));
        let first = answer.expect(202).await;
        assert_eq!(counts(&first), [1, 2, 4]);
        assert_eq!(ids(&first, "failures"), [text(&bad, "id"), "objects[5]"]);
        let why = text(&first["failures"][0], "message");
        assert!(why.starts_with("name: "), "{why}");
        assert_eq!(ids(&first, "successes"), [text(&statement, "id")]);
        assert_eq!(first["pendings"][0]["version"], group["modified"]);
        assert!(
            admin.search("Handed Heron").await["results"]
                .as_array()
                .unwrap()
                .is_empty()
        );

        // The same again changes nothing and is told the same, also by the id in place of the alias.
        for name in ["inbox", &to] {
            let again = hand_in(&writer, &root, name, &envelope).await.expect(202).await;
            assert_eq!(again, first);
        }
        let all = batches(admin).await;
        assert_eq!(all.len(), 1);
        let batch = text(&all[0], "id");
        let items = admin.items(batch).await;
        assert_eq!(items.len(), 3);
        let told = text(&first, "id");
        let (rejected, accepted) = (item_of(&items, &tool), item_of(&items, &group));
        admin.review(rejected, json!({"status": "rejected"})).await;
        assert_eq!(counts(&status(&writer, &root, told).await), [1, 3, 3]);
        admin
            .review(item_of(&items, &uses), json!({"status": "rejected"}))
            .await;
        admin.accept_items(std::slice::from_ref(accepted)).await;
        assert_eq!(
            counts(&status(&writer, &root, told).await),
            [1, 4, 2],
            "accepted is not stored"
        );
        admin.commit_items(batch, None).await;
        let last = status(&writer, &root, told).await;
        assert_eq!(counts(&last), [3, 4, 0]);
        assert!(ids(&last, "failures").contains(&text(&tool, "id")));
        admin.one("Handed Heron").await;

        let logged = admin.audited("taxii.hand_in").await;
        assert_eq!(logged.len(), 1);
        assert_eq!(logged[0]["metadata"]["collection_id"], to);
        app.stop().await;
    });
}

#[test]
fn what_is_ingested_is_there_at_once_with_all_its_versions() {
    run(async {
        let app = TestApp::shared().await;
        let (admin, root) = (&app.admin, root_of(&app.admin).await);
        let to = collection(admin, json!({"hand_in": "ingest"})).await;
        let group = object("intrusion-set", "Ingested Heron");
        let newer = version(&group, 2026, json!({"name": "Ingested Egret"}));
        let address = json!({"type": "ipv4-addr", "spec_version": "2.1", "id": id("ipv4-addr"), "value": "198.51.100.77"});
        let elsewhere = object("tool", "Not Here");
        let waiting = relationship(&group, "uses", &elsewhere);
        let bad = json!({"type": "malware", "id": id("malware"), "name": 7});
        let envelope = json!({"objects": [newer, group, address, waiting, bad]});
        let first = hand_in(admin, &root, &to, &envelope).await.expect(202).await;
        assert_eq!(counts(&first), [4, 1, 0]);
        assert_eq!(ids(&first, "failures"), [text(&bad, "id")]);
        let node = admin.one("Ingested Egret").await;
        assert_eq!(node["linked_evidence_ids"].as_array().unwrap().len(), 2, "{node}");
        let again = hand_in(admin, &root, &to, &envelope).await.expect(202).await;
        assert_eq!(again, first);
        assert_eq!(status(admin, &root, text(&first, "id")).await, first);
        assert_eq!(admin.audited("taxii.hand_in").await.len(), 1);
        assert!(batches(admin).await.is_empty());
        // What is there in this or a newer version is no failure.
        let other = object("tool", "Ingested Later");
        let repeated = json!({"objects": [group, newer, other, bad]});
        let repeated = hand_in(admin, &root, &to, &repeated).await.expect(202).await;
        assert_eq!(counts(&repeated), [3, 1, 0]);
        assert_eq!(ids(&repeated, "failures"), [text(&bad, "id")]);
        assert_eq!(ids(&repeated, "successes").len(), 3, "{repeated}");
        let empty = hand_in(admin, &root, &to, &json!({})).await.expect(202).await;
        assert_eq!(counts(&empty), [0, 0, 0]);
        app.stop().await;
    });
}

#[test]
fn only_those_hand_in_who_may_and_others_learn_nothing() {
    run(async {
        let app = TestApp::shared().await;
        let (admin, root) = (&app.admin, root_of(&app.admin).await);
        let (key, secret) = admin.add_key(&["ingest"]).await;
        let chosen = app.anonymous().with_header("x-api-key", &secret);
        let to = collection(admin, json!({"writable_by": [key], "readable_by": "everyone"})).await;
        let hidden = collection(admin, json!({"writable_by": [key], "readable_by": []})).await;
        let (reader, other) = (app.api_key(&["read"]).await, app.api_key(&["ingest"]).await);
        let viewer = app.user("viewer").await;
        let foreign = app.workspace("elsewhere").await;
        let envelope = json!({"objects": [object("tool", "Handed Chisel")]});
        for (client, of_open, of_hidden) in [
            (&reader, 403, 404),
            (&viewer, 403, 404),
            (admin, 403, 404),
            (&other, 404, 404),
            (&foreign, 404, 404),
            (&app.anonymous(), 401, 401),
        ] {
            for (collection, want) in [(&to, of_open), (&hidden, of_hidden)] {
                let answer = hand_in(client, &root, collection, &envelope).await;
                assert_eq!(answer.header("content-type"), Some(MEDIA_TYPE));
                assert_eq!(answer.status(), want);
            }
        }
        let unknown = uuid::Uuid::new_v4().to_string();
        for (standing, want) in [
            ("all", 403),
            ("tlp-green", 403),
            ("tlp-red", 404),
            (&*unknown, 404),
        ] {
            let answer = hand_in(&chosen, &root, standing, &envelope).await;
            assert_eq!(answer.status(), want, "{standing}");
        }
        assert!(batches(admin).await.is_empty());
        let told = hand_in(&chosen, &root, &hidden, &envelope)
            .await
            .expect(202)
            .await;
        assert_eq!(counts(&told), [0, 0, 1]);
        // The key is the administrator's: its owner is told, too.
        let path = format!("{root}status/{}/", text(&told, "id"));
        ask(admin, &path).await.expect(200).await;
        for client in [&viewer, &foreign] {
            assert_eq!(ask(client, &path).await.status(), 404);
        }
        for unknown in [&uuid::Uuid::new_v4().to_string(), "x"] {
            let path = format!("{root}status/{unknown}/");
            assert_eq!(ask(&chosen, &path).await.status(), 404);
        }
        // What one user hands in is not another's, even if it is the same.
        let analyst = app.user("analyst").await;
        admin
            .patch(
                &format!("{COLLECTIONS}/{to}"),
                &json!({"writable_by": "everyone"}),
            )
            .await
            .expect(200)
            .await;
        let of_analyst = hand_in(&analyst, &root, &to, &envelope).await.expect(202).await;
        assert_ne!(of_analyst["id"], told["id"]);
        app.stop().await;
    });
}

#[test]
fn what_is_no_envelope_or_too_large_is_refused() {
    run(async {
        let mut settings = settings("mem://");
        settings.server.body_limit = 100_000;
        let app = TestApp::with(settings).await;
        let (admin, root) = (&app.admin, root_of(&app.admin).await);
        let to = collection(admin, json!({})).await;
        let found = ask(admin, &root).await.expect(200).await;
        assert_eq!(found["max_content_length"], 100_000);
        let bare = object("tool", "In no envelope");
        for bad in [
            json!([]),
            json!("x"),
            json!({"objects": {}}),
            json!({"object": [bare]}),
            bare,
        ] {
            assert_eq!(hand_in(admin, &root, &to, &bad).await.status(), 400, "{bad}");
        }
        let large = with(
            object("tool", "Large"),
            json!({"description": "x".repeat(100_000)}),
        );
        let answer = hand_in(admin, &root, &to, &json!({"objects": [large]})).await;
        assert_eq!(answer.header("content-type"), Some(MEDIA_TYPE));
        assert_eq!(answer.status(), 413);
        let path = format!("{root}collections/{to}/objects/");
        for wrong in ["application/json", "application/stix+json;version=2.1"] {
            let request = admin.request(Method::POST, &path).header("content-type", wrong);
            let answer = Answer(request.body("{}").send().await.unwrap());
            assert_eq!(answer.status(), 415, "{wrong}");
        }
        assert!(batches(admin).await.is_empty());
        app.stop().await;
    });
}

#[test]
fn an_envelope_that_comes_many_times_at_once_is_taken_in_once() {
    run(async {
        let app = TestApp::shared().await;
        let (admin, root) = (&app.admin, root_of(&app.admin).await);
        let to = collection(admin, json!({})).await;
        let objects: Vec<Value> = (0..30)
            .map(|n| object("tool", &format!("Handed Tool {n}")))
            .collect();
        let envelope = json!({"objects": objects});
        let answers = join_all((0..8).map(|_| hand_in(admin, &root, &to, &envelope))).await;
        let mut told = Vec::new();
        for answer in answers {
            told.push(answer.expect(202).await);
        }
        assert_eq!(counts(&told[0]), [0, 0, 30]);
        assert!(told.iter().all(|one| *one == told[0]));
        let all = batches(admin).await;
        assert_eq!(all.len(), 1);
        assert_eq!(all[0]["item_count"], 30);
        app.stop().await;
    });
}

#[test]
fn what_a_reviewer_hides_or_an_administrator_erases_is_not_told_any_more() {
    run(async {
        let app = TestApp::shared().await;
        let (admin, root) = (&app.admin, root_of(&app.admin).await);
        let to = collection(admin, json!({"hand_in": "ingest"})).await;
        let objects = [object("tool", "Erased Tool"), object("tool", "Kept Tool")];
        let uses = relationship(&objects[0], "related-to", &objects[1]);
        let envelope = json!({"objects": [objects[0], objects[1], uses]});
        let told = hand_in(admin, &root, &to, &envelope).await.expect(202).await;
        assert_eq!(counts(&told), [3, 0, 0]);
        let node = admin.one("Erased Tool").await;
        admin.erase(json!({"node_ids": [node["id"]]})).await;
        let left = status(admin, &root, text(&told, "id")).await;
        assert_eq!(ids(&left, "successes"), [text(&objects[1], "id")]);
        assert_eq!(counts(&left), [1, 0, 0]);
        app.stop().await;
    });
}

/// Deletes an object of a collection.
async fn delete(client: &Client, root: &str, collection: &str, object: &Value) -> Answer {
    let path = format!("{root}collections/{collection}/objects/{}/", text(object, "id"));
    let request = client.request(Method::DELETE, &path).header("accept", MEDIA_TYPE);
    Answer(request.send().await.unwrap())
}

#[test]
fn an_object_that_is_deleted_is_rejected_and_can_be_restored() {
    run(async {
        let app = TestApp::shared().await;
        let (admin, root) = (&app.admin, root_of(&app.admin).await);
        let open = json!({"hand_in": "ingest", "filter": {"types": ["tool", "relationship"]}});
        let to = collection(admin, open).await;
        let (tool, other) = (object("tool", "Deleted Tool"), object("tool", "Other Tool"));
        let group = object("intrusion-set", "Deleted Heron");
        let uses = relationship(&group, "uses", &tool);
        let hidden = with(object("tool", "Hidden Tool"), json!({"labels": ["tlp:red"]}));
        let envelope = json!({"objects": [tool, other, group, uses, hidden]});
        hand_in(admin, &root, &to, &envelope).await.expect(202).await;
        let node = admin.one("Deleted Tool").await;
        for missing in [
            &group,
            &hidden,
            &object("tool", "Never Sent"),
            &json!({"id": "nothing"}),
        ] {
            let answer = delete(admin, &root, &to, missing).await;
            assert_eq!(answer.header("content-type"), Some(MEDIA_TYPE));
            assert_eq!(answer.status(), 404, "{missing}");
        }
        for (client, collection, want) in [
            (&app.api_key(&["read"]).await, &*to, 403),
            (admin, "all", 403),
            (&app.workspace("elsewhere").await, &*to, 404),
            (&app.anonymous(), &*to, 401),
        ] {
            assert_eq!(delete(client, &root, collection, &tool).await.status(), want);
        }
        let path = format!("{root}collections/{to}/objects/{}/", text(&tool, "id"));
        for (query, want) in [
            ("match[version]=first", 400),
            ("match[version]=2024-01-01T00:00:00Z", 400),
            ("match[spec_version]=2.0", 404),
            ("added_after=2999-01-01T00:00:00Z", 400),
            ("limit=1", 400),
        ] {
            let path = format!("{path}?{query}");
            let answer = Answer(admin.request(Method::DELETE, &path).send().await.unwrap());
            assert_eq!(answer.status(), want);
        }
        admin.one("Deleted Tool").await;
        delete(admin, &root, &to, &uses).await.expect(200).await;
        delete(admin, &root, &to, &tool).await.expect(200).await;
        assert_eq!(delete(admin, &root, &to, &tool).await.status(), 404);
        let node = format!("/api/nodes/{}", text(&node, "id"));
        admin.get(&node).await.refused(404).await;
        let shown = admin
            .get(&format!("{node}?include_rejected=true"))
            .await
            .expect(200)
            .await;
        assert_eq!(shown["node"]["status"], "rejected");
        admin.one("Other Tool").await;
        for action in ["node.correct", "edge.correct"] {
            assert_eq!(admin.audited(action).await.len(), 1, "{action}");
        }
        admin
            .patch(&node, &json!({"status": "active"}))
            .await
            .expect(200)
            .await;
        admin.one("Deleted Tool").await;
        app.stop().await;
    });
}
