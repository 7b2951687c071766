//! Threat feeds with an external database.

use serde_json::json;

use super::{assert_chain, with_database};
use crate::helpers::TestApp;
use crate::hosted::feeds::server::Server;
use crate::hosted::feeds::{allowing, tools};
use crate::stix::{object, relationship, text, version};

#[test]
fn a_feed_is_pulled_reviewed_and_committed_over_a_server() {
    with_database(async |database| {
        let app = TestApp::with(allowing(database.settings("service"))).await;
        let mut objects = tools(24);
        objects.push(object("threat-actor", "Feed Tool User"));
        objects.push(relationship(&objects[24], "uses", &objects[0]));
        let server = Server::start(&objects).await;
        let feed = app.admin.feed_of(&server).await;
        let first = app.admin.pull(&feed).await;
        assert_eq!(
            (&first["pages"], &first["item_count"]),
            (&json!(3), &json!(26)),
            "{first}"
        );
        let id = text(&first, "id");
        let items = app.admin.items(id).await;
        app.admin.review(&items[1], json!({"status": "rejected"})).await;
        app.admin.accept_items(&items[2..]).await;
        let done = app.admin.commit_items(id, None).await;
        assert_eq!(
            (&done["nodes_created"], &done["edges_created"]),
            (&json!(23), &json!(0)),
            "{done}"
        );
        let chosen = [text(&items[0], "id"), text(&items[25], "id")];
        let done = app.admin.commit_items(id, Some(&chosen)).await;
        assert_eq!(
            (&done["nodes_created"], &done["edges_created"]),
            (&json!(1), &json!(1)),
            "{done}"
        );
        assert_eq!(app.admin.feed_batch(id).await["status"], "committed");
        app.admin.export_of("Feed Tool", &objects).await;

        server.add(&[version(&objects[0], 2024, json!({})), objects[3].clone()]);
        server.add(&tools(1));
        let second = app.admin.pull(&feed).await;
        // One that was added again, and the last object of the first pull.
        assert_eq!(
            (&second["item_count"], &second["unchanged"]),
            (&json!(2), &json!(2)),
            "{second}"
        );
        let done = app.admin.commit_all(text(&second, "id")).await;
        assert_eq!(
            (&done["nodes_created"], &done["nodes_updated"]),
            (&json!(1), &json!(1)),
            "{done}"
        );
        assert_chain(&app.admin).await;
        app.stop().await;
    });
}
