//! Markings, identities and relationships that arrive on other pages than the objects that name them.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use test_support::eventually;

use super::server::Server;
use super::{PAGE, all, allowing, batch_path, item_of, tools};
use crate::helpers::{TestApp, run, settings};
use crate::stix::{object, relationship, statement, text, version, with};

/// An object that names an author and a marking, its author, and its marking.
fn authored() -> (Value, Value, Value) {
    let author = with(
        object("identity", "Feed Author"),
        json!({"identity_class": "organization"}),
    );
    let licence = with(
        statement("Copyright: the Feed Author"),
        json!({"created_by_ref": author["id"]}),
    );
    let tool = with(
        object("tool", "Authored Spade"),
        json!({"created_by_ref": author["id"], "object_marking_refs": [licence["id"]]}),
    );
    (tool, author, licence)
}

/// Puts each object on a page of its own, filled up with others.
fn on_pages(objects: &[Value]) -> Vec<Value> {
    let page = |object: &Value| {
        std::iter::once(object.clone())
            .chain(tools(PAGE - 1))
            .collect::<Vec<_>>()
    };
    objects.iter().flat_map(page).collect()
}

#[test]
fn what_an_object_refers_to_may_be_on_any_page() {
    run(async {
        let (tool, author, licence) = authored();
        let orders = [
            [&tool, &author, &licence],
            [&author, &tool, &licence],
            [&licence, &author, &tool],
        ];
        for order in orders {
            let app = TestApp::shared().await;
            let objects = on_pages(&order.map(Clone::clone));
            let server = Server::start(&objects).await;
            let batch = app.admin.pull(&app.admin.feed_of(&server).await).await;
            let id = text(&batch, "id");
            let items = app.admin.items(id).await;
            assert_eq!(items.len(), 3 * PAGE - 1);
            let item = item_of(&items, &tool);
            assert_eq!(item["proposed_tlp"], "TLP:GREEN", "{item}");
            assert!(!item["warnings"].to_string().contains("undefined"), "{item}");
            app.admin.commit_items(id, Some(&[text(item, "id")])).await;
            let exported = app.admin.export_of("Authored Spade", &objects).await;
            for object in [&tool, &author, &licence] {
                assert!(exported.contains_key(text(object, "id")), "{}", object["id"]);
            }
            app.stop().await;
        }
    });
}

/// While the definition is missing, the object is handled as the strictest reading allows.
#[test]
fn a_marking_that_arrives_later_changes_the_proposal() {
    run(async {
        let mut settings = allowing(settings("mem://"));
        settings.feeds.answer_ms = 200;
        settings.feeds.timeout_ms = 60_000;
        let app = TestApp::with(settings).await;
        let (tool, author, licence) = authored();
        let kept = with(
            tool.clone(),
            json!({"id": crate::stix::id("tool"), "name": "Kept Strict"}),
        );
        let mut objects = vec![tool.clone(), kept.clone(), author];
        objects.extend(tools(PAGE - 3));
        objects.push(licence.clone());
        let server = Server::start(&objects).await;
        server.allow(1);
        let answer = app
            .admin
            .pulls(&app.admin.feed_of(&server).await)
            .await
            .expect(201)
            .await;
        let batch = text(&answer["batch"], "id").to_owned();
        let items = eventually(|| async {
            let items = app.admin.items(&batch).await;
            if items.is_empty() {
                Err("no item yet")
            } else {
                Ok(items)
            }
        })
        .await;
        for object in [&tool, &kept] {
            let item = item_of(&items, object);
            assert_eq!(item["proposed_tlp"], "TLP:AMBER", "{item}");
            let warning = format!("undefined marking: {}", text(&licence, "id"));
            assert!(
                item["warnings"].as_array().unwrap().contains(&json!(warning)),
                "{item}"
            );
        }
        app.admin
            .review(
                item_of(&items, &kept),
                json!({"resolved_tlp": "TLP:AMBER", "status": "accepted"}),
            )
            .await;
        server.release();
        app.admin.pulled(&batch).await;
        let items = eventually(|| async {
            let items = app.admin.items(&batch).await;
            let waits = json!(items).to_string().contains("undefined marking");
            if waits { Err(items) } else { Ok(items) }
        })
        .await;
        for object in [&tool, &kept] {
            assert_eq!(item_of(&items, object)["proposed_tlp"], "TLP:GREEN");
        }
        // A reviewer's decision stands.
        let item = item_of(&items, &kept);
        assert_eq!(
            (&item["resolved_tlp"], &item["status"]),
            (&json!("TLP:AMBER"), &json!("accepted"))
        );
        app.stop().await;
    });
}

/// The definition may come with a later pull, also after the object was committed.
#[test]
fn a_marking_that_arrives_with_a_later_pull_counts_too() {
    run(async {
        let app = TestApp::shared().await;
        let (tool, author, licence) = authored();
        let early = with(
            tool.clone(),
            json!({"id": crate::stix::id("tool"), "name": "Committed Early"}),
        );
        let mut objects = vec![tool.clone(), early.clone(), author];
        let server = Server::start(&objects).await;
        let feed = app.admin.feed_of(&server).await;
        let first = app.admin.pull(&feed).await;
        let id = text(&first, "id");
        let items = app.admin.items(id).await;
        assert_eq!(item_of(&items, &tool)["proposed_tlp"], "TLP:AMBER");
        let done = app
            .admin
            .commit_items(id, Some(&[text(item_of(&items, &early), "id")]))
            .await;
        assert!(!done["warnings"].as_array().unwrap().is_empty(), "{done}");

        server.add(std::slice::from_ref(&licence));
        objects.push(licence);
        let second = app.admin.pull(&feed).await;
        // The last object of the first pull comes again.
        assert_eq!(
            (&second["objects"], &second["item_count"]),
            (&json!(2), &json!(0))
        );
        // The definition counts at once for what was committed before. It states no level, so nothing is lowered.
        let node = app
            .admin
            .node("Committed Early", text(&early, "id"))
            .await
            .unwrap();
        assert_eq!(node["tlp"], "TLP:AMBER", "{node}");
        let items = app.admin.items(id).await;
        assert_eq!(item_of(&items, &tool)["proposed_tlp"], "TLP:AMBER");
        app.admin
            .commit_items(id, Some(&[text(item_of(&items, &tool), "id")]))
            .await;
        let exported = app.admin.export_of("Authored Spade", &objects).await;
        assert!(exported.contains_key(text(&tool, "id")));
        app.stop().await;
    });
}

/// A new version of an author serves what is committed afterwards.
#[test]
fn the_newest_version_of_an_author_is_used() {
    run(async {
        let app = TestApp::shared().await;
        let (tool, author, licence) = authored();
        let newer = version(&author, 2024, json!({"name": "Renamed Author"}));
        let server = Server::start(&[author.clone(), licence.clone(), tool.clone()]).await;
        let feed = app.admin.feed_of(&server).await;
        let batch = app.admin.pull(&feed).await;
        server.add(std::slice::from_ref(&newer));
        app.admin.pull(&feed).await;
        app.admin.commit_all(text(&batch, "id")).await;
        let exported = app
            .admin
            .export_of("Authored Spade", &[newer.clone(), licence, tool])
            .await;
        assert_eq!(exported[text(&author, "id")]["name"], "Renamed Author");
        app.stop().await;
    });
}

#[test]
fn a_relationship_waits_until_both_ends_are_committed() {
    run(async {
        let app = TestApp::shared().await;
        let nodes = [
            object("threat-actor", "Waiting Actor"),
            object("tool", "Waiting Tool"),
        ];
        let edge = relationship(&nodes[0], "uses", &nodes[1]);
        let dangling = relationship(&nodes[0], "uses", &object("tool", "Never Sent"));
        // The relationship is two pages ahead of its ends.
        let objects = on_pages(&[edge.clone(), nodes[0].clone(), nodes[1].clone(), dangling.clone()]);
        let server = Server::start(&objects).await;
        let batch = app.admin.pull(&app.admin.feed_of(&server).await).await;
        let id = text(&batch, "id");
        let items = app.admin.items(id).await;
        let item = item_of(&items, &edge);
        assert_eq!(
            (&item["source_ref"], &item["target_ref"]),
            (&nodes[0]["id"], &nodes[1]["id"])
        );
        let chosen: Vec<Value> = [&edge, &nodes[0], &dangling]
            .map(|o| item_of(&items, o).clone())
            .to_vec();
        app.admin.accept_items(&chosen).await;

        let first = app.admin.commit_items(id, None).await;
        assert_eq!(
            (&first["nodes_created"], &first["edges_created"]),
            (&json!(1), &json!(0)),
            "{first}"
        );
        let told = first["waiting"].as_array().unwrap().iter();
        let told: BTreeSet<&str> = told.filter_map(Value::as_str).collect();
        let waiting = [&chosen[0], &chosen[2]].map(|item| text(item, "id"));
        assert_eq!(told, BTreeSet::from(waiting), "{first}");
        let path = format!("{}?status=accepted", batch_path(id));
        let still = app.admin.get(&path).await.expect(200).await;
        assert_eq!(still["items"].as_array().unwrap().len(), 2);

        app.admin
            .accept_items(&[item_of(&items, &nodes[1]).clone()])
            .await;
        let second = app.admin.commit_items(id, None).await;
        assert_eq!(
            (&second["nodes_created"], &second["edges_created"]),
            (&json!(1), &json!(1)),
            "{second}"
        );
        assert_eq!(
            second["waiting"],
            json!([text(item_of(&items, &dangling), "id")]),
            "{second}"
        );
        let exported = app.admin.export_of("Waiting", &objects).await;
        assert!(exported.contains_key(text(&edge, "id")));
        assert!(!exported.contains_key(text(&dangling, "id")));
        let items = app.admin.items(id).await;
        assert_eq!(all(&[item_of(&items, &edge).clone()], "status"), ["committed"]);
        app.stop().await;
    });
}
