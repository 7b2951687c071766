//! The collections that administrators define: their rules, and who may define them.

use serde_json::{Value, json};
use uuid::Uuid;

use super::feeds;
use crate::helpers::{TestApp, keys_of, run, settings};
use crate::stix::{object, text};

pub const COLLECTIONS: &str = "/api/admin/collections";

fn path_of(collection: &Value) -> String {
    format!("{COLLECTIONS}/{}", text(collection, "id"))
}

#[test]
fn a_collection_is_defined_listed_changed_and_deleted() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let none = admin.get(COLLECTIONS).await.expect(200).await;
        assert_eq!(none, json!({"collections": [], "count": 0}));
        let (key, _) = admin.add_key(&["read"]).await;
        admin.ingest(json!([object("tool", "Collected Tool")])).await;
        let session = admin.search("Collected Tool").await["recall_id"].clone();
        let body = json!({
            "title": " Firewalls ", "description": "For the north site", "alias": "firewalls", "hand_in": "ingest",
            "filter": {
                "types": ["ipv4-addr", "domain-name"], "sources": ["The MITRE Corporation"], "markings": ["green", "CLEAR"],
                "min_confidence": 0.5, "session": session,
            },
            "readable_by": [key], "writable_by": "everyone",
        });
        let made = admin.post(COLLECTIONS, &body).await.expect(201).await;
        assert_eq!(keys_of(&made), ["collection"]);
        let made = &made["collection"];
        assert_eq!(made["title"], "Firewalls");
        assert_eq!(made["filter"]["markings"], json!(["TLP:WHITE", "TLP:GREEN"]));
        assert_eq!(made["filter"]["session"], session);
        assert_eq!(
            (&made["readable_by"], &made["writable_by"]),
            (&json!([key]), &json!("everyone"))
        );
        let least = admin
            .post(COLLECTIONS, &json!({"title": "Rest"}))
            .await
            .expect(201)
            .await;
        let least = &least["collection"];
        assert_eq!(
            keys_of(least),
            [
                "created_at",
                "filter",
                "hand_in",
                "id",
                "readable_by",
                "title",
                "updated_at",
                "writable_by"
            ]
        );
        assert_eq!(
            (
                &least["filter"],
                &least["readable_by"],
                &least["writable_by"],
                &least["hand_in"]
            ),
            (&json!({}), &json!("everyone"), &json!([]), &json!("review"))
        );
        let all = admin.get(COLLECTIONS).await.expect(200).await;
        assert_eq!(all, json!({"collections": [made, least], "count": 2}));

        let path = path_of(made);
        let change = json!({"title": "Others", "alias": "", "filter": {"types": ["tool"]}, "x": 1});
        let changed = admin.patch(&path, &change).await.expect(200).await;
        assert!(
            changed["warnings"][0]
                .as_str()
                .unwrap()
                .starts_with("filter: clients")
        );
        let mut want = made.clone();
        want["title"] = json!("Others");
        want["filter"] = json!({"types": ["tool"]});
        want.as_object_mut().unwrap().remove("alias");
        want["updated_at"] = changed["collection"]["updated_at"].clone();
        assert_eq!(changed["collection"], want);
        let change = json!({"hand_in": "review"});
        let changed = admin.patch(&path, &change).await.expect(200).await;
        assert_eq!(keys_of(&changed), ["collection"]);
        admin.delete(&path).await.expect(204).await;
        admin.delete(&path).await.refused(404).await;
        admin.get(&path).await.refused(404).await;
        app.stop().await;
    });
}

#[test]
fn a_refusal_names_the_field_and_what_is_not_there() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let other = app.workspace("of other collections").await;
        let (foreign, _) = other.add_key(&["read"]).await;
        let unknown = Uuid::new_v4();
        for (field, value) in [
            ("title", json!({"title": ""})),
            ("title", json!({})),
            ("alias", json!({"alias": "all"})),
            ("hand_in", json!({"hand_in": "drop"})),
            ("readable_by", json!({"readable_by": "nobody"})),
            ("readable_by[0]", json!({"readable_by": [unknown]})),
            ("writable_by[0]", json!({"writable_by": [foreign]})),
            ("filter.feeds[0]", json!({"filter": {"feeds": [unknown]}})),
            ("filter.session", json!({"filter": {"session": unknown}})),
            ("filter.min_confidence", json!({"filter": {"min_confidence": 50}})),
            ("filter.markings[0]", json!({"filter": {"markings": ["PINK"]}})),
        ] {
            let mut body = value.clone();
            if field != "title" {
                body["title"] = json!("A");
            }
            let refused = admin.post(COLLECTIONS, &body).await.refused(400).await;
            assert!(refused.starts_with(&format!("{field}: ")), "{value}: {refused}");
        }
        // A condition that nobody knows would let everything through.
        let body = json!({"title": "A", "filter": {"type": ["tool"]}});
        admin.post(COLLECTIONS, &body).await.refused(400).await;

        let named = json!({"title": "A", "alias": "one"});
        let made = admin.post(COLLECTIONS, &named).await.expect(201).await;
        let path = path_of(&made["collection"]);
        admin.post(COLLECTIONS, &named).await.refused(409).await;
        let second = admin
            .post(COLLECTIONS, &json!({"title": "B"}))
            .await
            .expect(201)
            .await;
        let second = path_of(&second["collection"]);
        admin
            .patch(&second, &json!({"alias": "one"}))
            .await
            .refused(409)
            .await;
        admin
            .patch(&path, &json!({"alias": "one"}))
            .await
            .expect(200)
            .await;
        admin.patch(&path, &json!({})).await.refused(400).await;
        // Another workspace has names of its own, and sees nothing of this one.
        other.post(COLLECTIONS, &named).await.expect(201).await;
        other.get(&path).await.refused(404).await;
        other
            .patch(&path, &json!({"title": "Mine"}))
            .await
            .refused(404)
            .await;
        other.delete(&path).await.refused(404).await;
        app.stop().await;
    });
}

#[test]
fn what_a_change_does_not_name_may_be_gone() {
    run(async {
        let app = TestApp::with(feeds::allowing(settings("mem://"))).await;
        let admin = &app.admin;
        let (key, _) = admin.add_key(&["read"]).await;
        let feed = admin.feed_at("http://127.0.0.1:9/objects/", json!({})).await;
        let body = json!({"title": "A", "readable_by": [key], "filter": {"feeds": [feed]}});
        let made = admin.post(COLLECTIONS, &body).await.expect(201).await;
        admin
            .delete(&format!("/api/threat-intel/feeds/{feed}"))
            .await
            .expect(204)
            .await;
        let path = path_of(&made["collection"]);
        let change = json!({"filter": {"feeds": [feed], "types": ["tool"]}});
        admin.patch(&path, &change).await.expect(200).await;
        admin.patch(&path, &json!({"filter": {}})).await.expect(200).await;
        let refused = admin.patch(&path, &change).await.refused(400).await;
        assert!(refused.starts_with("filter.feeds[0]: "), "{refused}");
        app.stop().await;
    });
}
