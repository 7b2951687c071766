//! The collections that administrators define, as clients read them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{ask, pull, root_of};
use crate::helpers::{Client, TestApp, run};
use crate::hosted::collections::COLLECTIONS;
use crate::stix::{id, object, relationship, text, with};

async fn define(admin: &Client, more: Value) -> String {
    let new = with(json!({"title": "Filtered"}), more);
    let made = admin.post(COLLECTIONS, &new).await.expect(201).await;
    text(&made["collection"], "id").to_owned()
}

/// Which of these objects a collection gives.
async fn given<'o>(client: &Client, root: &str, collection: &str, of: &'o [Value]) -> BTreeSet<&'o str> {
    let objects = pull(client, &format!("{root}collections/{collection}/objects/")).await;
    let found: BTreeSet<&str> = objects.iter().map(|object| text(object, "id")).collect();
    let of = of.iter().map(|object| text(object, "id"));
    of.filter(|id| found.contains(id)).collect()
}

#[test]
fn a_filter_lets_through_what_meets_all_its_conditions() {
    run(async {
        let app = TestApp::shared().await;
        let (admin, root) = (&app.admin, root_of(&app.admin).await);
        let desk = |name: &str| {
            json!({"type": "identity", "id": id("identity"), "spec_version": "2.1", "name": name,
                "created": "2020-01-01T00:00:00.000Z", "modified": "2020-01-01T00:00:00.000Z"})
        };
        let (north, south) = (desk("North Desk"), desk("South Desk"));
        let made = |kind: &str, name: &str, by: &Value, more: Value| {
            let object = with(object(kind, name), json!({"created_by_ref": by["id"]}));
            with(object, more)
        };
        let green = json!({"labels": ["tlp:green"], "confidence": 80});
        let amber = json!({"labels": ["tlp:amber"], "confidence": 20});
        let hook = made("tool", "Filtered Hook", &north, green.clone());
        let rung = made("malware", "Filtered Rung", &north, amber);
        let crate_ = made("tool", "Filtered Crate", &south, green.clone());
        let inside = with(relationship(&hook, "drops", &rung), green.clone());
        let across = with(relationship(&hook, "related-to", &crate_), green);
        let sent = [
            hook.clone(),
            rung.clone(),
            crate_.clone(),
            inside.clone(),
            across.clone(),
        ];
        let all: Vec<&Value> = sent.iter().chain([&north, &south]).collect();
        admin.ingest(json!(all)).await;
        let found = admin
            .get("/api/recall/search?mode=structured&q=Filtered+Hook&limit=1")
            .await;
        let found = found.expect(200).await;
        assert_eq!(found["results"][0]["name"], "Filtered Hook");
        let session = found["recall_id"].clone();
        let cases = [
            (json!({}), vec![&hook, &rung, &crate_, &inside, &across]),
            (json!({"types": ["tool"]}), vec![&hook, &crate_]),
            (
                json!({"types": ["tool", "relationship"]}),
                vec![&hook, &crate_, &inside, &across],
            ),
            (json!({"sources": ["north desk"]}), vec![&hook, &rung, &inside]),
            (json!({"markings": ["TLP:AMBER"]}), vec![&rung]),
            (
                json!({"min_confidence": 0.5}),
                vec![&hook, &crate_, &inside, &across],
            ),
            (
                json!({"types": ["tool"], "sources": ["South Desk"]}),
                vec![&crate_],
            ),
            (json!({"markings": ["TLP:RED"]}), vec![]),
            (json!({"session": session}), vec![&hook]),
        ];
        for (filter, want) in cases {
            let collection = define(admin, json!({"filter": filter})).await;
            let want: BTreeSet<&str> = want.into_iter().map(|object| text(object, "id")).collect();
            assert_eq!(given(admin, &root, &collection, &sent).await, want, "{filter}");
            let manifest = format!("{root}collections/{collection}/manifest/?limit=1000");
            let manifest = ask(admin, &manifest).await.expect(200).await;
            let listed: BTreeSet<&str> = manifest["objects"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|record| text(record, "id"))
                .collect();
            assert!(want.is_subset(&listed), "{filter}: {manifest}");
        }
        app.stop().await;
    });
}

#[test]
fn only_those_read_a_collection_who_may() {
    run(async {
        let app = TestApp::shared().await;
        let (admin, root) = (&app.admin, root_of(&app.admin).await);
        let sent = [object("tool", "Read By One")];
        admin.ingest(json!(sent)).await;
        let (key, secret) = admin.add_key(&["read"]).await;
        let chosen = app.anonymous().with_header("x-api-key", &secret);
        let other = app.api_key(&["read"]).await;
        let to = define(admin, json!({"readable_by": [key], "alias": "of-one"})).await;
        assert_eq!(given(&chosen, &root, "of-one", &sent).await.len(), 1);
        let list = format!("{root}collections/");
        let shown = ask(&chosen, &list).await.expect(200).await;
        let shown = shown["collections"].as_array().unwrap().clone();
        assert!(
            shown
                .iter()
                .any(|one| one["id"] == *to && one["can_read"] == true && one["can_write"] == false)
        );
        for client in [&other, admin, &app.workspace("elsewhere").await] {
            for part in [
                "",
                "objects/",
                "manifest/",
                &format!("objects/{}/", text(&sent[0], "id")),
            ] {
                let answer = ask(client, &format!("{list}of-one/{part}")).await;
                assert_eq!(answer.status(), 404, "{part}");
            }
        }
        for client in [&other, admin] {
            let shown = ask(client, &list).await.expect(200).await;
            assert!(!shown.to_string().contains(&to));
        }
        admin
            .delete(&format!("{COLLECTIONS}/{to}"))
            .await
            .expect(204)
            .await;
        assert_eq!(
            ask(&chosen, &format!("{list}of-one/objects/")).await.status(),
            404
        );
        app.stop().await;
    });
}

#[test]
fn an_erased_result_of_a_session_is_in_no_collection() {
    run(async {
        let app = TestApp::shared().await;
        let (admin, root) = (&app.admin, root_of(&app.admin).await);
        let sent = [object("tool", "Erased Winch"), object("tool", "Kept Winch")];
        admin.ingest(json!(sent)).await;
        let session = admin.search("Winch").await;
        assert_eq!(session["results"].as_array().unwrap().len(), 2);
        let to = define(admin, json!({"filter": {"session": session["recall_id"]}})).await;
        assert_eq!(given(admin, &root, &to, &sent).await.len(), 2);
        let node = admin.one("Erased Winch").await;
        admin.erase(json!({"node_ids": [node["id"]]})).await;
        // The same object, sent again, has the id of its node again, and is no result of that session.
        admin.ingest(json!(sent)).await;
        assert_eq!(
            given(admin, &root, &to, &sent).await,
            BTreeSet::from([text(&sent[1], "id")])
        );
        app.stop().await;
    });
}
