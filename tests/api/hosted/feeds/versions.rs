//! Markings of versions: a stricter one is never lost, and silence lowers none.

use serde_json::{Value, json};

use super::access::{OPEN, clear};
use super::review::{GREEN, RED, marked};
use super::server::Server;
use super::upload::upload;
use super::{PAGE, item_of, tools};
use crate::helpers::{TestApp, run};
use crate::stix::{object, relationship, text, version};

async fn level_of(app: &TestApp, object: &Value) -> Value {
    let node = app.admin.node(text(object, "name"), text(object, "id")).await;
    node.unwrap_or_default()["tlp"].clone()
}

/// Accepts and commits the items of an answer, and returns the results.
async fn committed(app: &TestApp, answer: &Value) -> Value {
    app.admin.commit_all(text(&answer["batch"], "id")).await
}

#[test]
fn the_same_version_with_a_stricter_marking_is_no_repetition() {
    run(async {
        let app = TestApp::shared().await;
        clear(&app.admin, OPEN).await;
        let (actor, tool) = (
            object("threat-actor", "Remarked Actor"),
            object("tool", "Plain Tool"),
        );
        let edge = relationship(&actor, "uses", &tool);
        let first = upload(&app.admin, json!({"bundle": [actor, tool, edge]})).await;
        committed(&app, &first).await;
        assert_eq!(level_of(&app, &actor).await, "TLP:GREEN");

        let stricter = [
            marked(actor.clone(), RED),
            tool.clone(),
            marked(edge.clone(), RED),
        ];
        let second = upload(&app.admin, json!({"bundle": stricter})).await;
        assert_eq!(
            (&second["batch"]["item_count"], &second["batch"]["unchanged"]),
            (&json!(2), &json!(1)),
            "{second}"
        );
        let items = second["items"].as_array().unwrap();
        for object in [&actor, &edge] {
            let item = item_of(items, object);
            assert_eq!(
                (&item["change"], &item["proposed_tlp"]),
                (&json!("update"), &json!("TLP:RED"))
            );
        }
        let done = committed(&app, &second).await;
        assert_eq!(
            (&done["nodes_updated"], &done["edges_updated"]),
            (&json!(1), &json!(1)),
            "{done}"
        );
        assert_eq!(level_of(&app, &actor).await, "TLP:RED");
        let weaker = [marked(actor.clone(), GREEN), tool, edge];
        let third = upload(&app.admin, json!({"bundle": weaker})).await;
        assert_eq!(third["batch"]["unchanged"], 3, "{third}");
        app.stop().await;
    });
}

/// The pages of a pull are staged one by one, so the older version is staged and not stored when the newer one comes.
#[test]
fn a_silent_version_keeps_the_marking_of_one_that_is_staged() {
    run(async {
        let app = TestApp::shared().await;
        clear(&app.admin, OPEN).await;
        let tool = object("tool", "Pulled Twice");
        let newer = version(&tool, 2024, json!({}));
        let mut objects = vec![marked(tool.clone(), RED)];
        objects.extend(tools(PAGE));
        objects.push(newer.clone());
        let server = Server::start(&objects).await;
        let batch = app.admin.pull(&app.admin.feed_of(&server).await).await;
        let items = app.admin.items(text(&batch, "id")).await;
        let of_tool: Vec<&Value> = items
            .iter()
            .filter(|item| item["stix_id"] == tool["id"])
            .collect();
        assert_eq!(of_tool.len(), 2, "{of_tool:?}");
        for item in &of_tool {
            assert_eq!(item["proposed_tlp"], "TLP:RED", "{item}");
        }
        let warning = "states no marking: TLP:RED of an earlier version is proposed";
        assert!(json!(of_tool).to_string().contains(warning), "{of_tool:?}");
        let done = app.admin.commit_all(text(&batch, "id")).await;
        assert_eq!(done["committed"], PAGE + 2, "{done}");
        assert_eq!(level_of(&app, &tool).await, "TLP:RED");
        clear(&app.admin, "TLP:AMBER").await;
        assert_eq!(level_of(&app, &tool).await, Value::Null);
        app.stop().await;
    });
}

/// Of two versions in one bundle the newer one counts, with the marking that it would have if they had come one by one.
#[test]
fn a_silent_version_keeps_the_marking_of_one_in_its_bundle() {
    run(async {
        let app = TestApp::shared().await;
        clear(&app.admin, OPEN).await;
        let staged = object("tool", "Staged Pair");
        let pair = |tool: &Value| json!([version(tool, 2024, json!({})), marked(tool.clone(), RED)]);
        let answer = upload(&app.admin, json!({"bundle": pair(&staged)})).await;
        let item = item_of(answer["items"].as_array().unwrap(), &staged);
        assert_eq!(item["proposed_tlp"], "TLP:RED", "{item}");
        assert!(item["warnings"].to_string().contains("earlier version"), "{item}");
        committed(&app, &answer).await;
        assert_eq!(level_of(&app, &staged).await, "TLP:RED");

        let direct = object("tool", "Direct Pair");
        let results = app.admin.ingest(pair(&direct)).await;
        assert_eq!(level_of(&app, &direct).await, "TLP:RED");
        let warnings = results["warnings"].to_string();
        let named = format!(
            "{}: the newer version states no marking, so it keeps TLP:RED",
            text(&direct, "id")
        );
        assert!(warnings.contains(&named), "{results}");

        // The newer version came before. What an older one states raises it, as it does in a bundle of its own.
        let known = object("tool", "Known Newer");
        app.admin.ingest(json!([version(&known, 2024, json!({}))])).await;
        assert_eq!(level_of(&app, &known).await, "TLP:GREEN");
        app.admin.ingest(pair(&known)).await;
        assert_eq!(level_of(&app, &known).await, "TLP:RED");
        let again = upload(&app.admin, json!({"bundle": pair(&known)})).await;
        assert_eq!(again["batch"]["item_count"], 0, "{again}");

        // A newer version that states a marking has it.
        let stating = object("tool", "Stating Newer");
        let newer = marked(version(&stating, 2024, json!({})), GREEN);
        app.admin
            .ingest(json!([marked(stating.clone(), RED), newer]))
            .await;
        assert_eq!(level_of(&app, &stating).await, "TLP:GREEN");
        app.stop().await;
    });
}

fn address(score: u32) -> Value {
    json!({"type": "ipv4-addr", "spec_version": "2.1", "id": "ipv4-addr--28bb3599-77cd-5a82-a950-b5bc3caf07c4",
        "value": "198.51.100.3", "x_score": score})
}

#[test]
fn an_observable_that_says_something_else_is_another_version() {
    run(async {
        let app = TestApp::shared().await;
        let name = json!({"type": "domain-name", "spec_version": "2.1",
            "id": "domain-name--bedb4899-d24b-5401-bc86-8f6b4cc18ec7", "value": "example.com"});
        let counts = |batch: &Value| (batch["item_count"].clone(), batch["unchanged"].clone());
        let server = Server::start(&[address(50), name.clone()]).await;
        let feed = app.admin.feed_of(&server).await;
        let first = app.admin.pull(&feed).await;
        assert_eq!(counts(&first), (json!(2), json!(0)), "{first}");
        app.admin.commit_all(text(&first, "id")).await;

        server.add(&[address(70), name.clone()]);
        let second = app.admin.pull(&feed).await;
        assert_eq!(counts(&second), (json!(1), json!(1)), "{second}");
        let items = app.admin.items(text(&second, "id")).await;
        assert_eq!(item_of(&items, &address(70))["change"], "update", "{items:?}");
        app.admin.commit_all(text(&second, "id")).await;
        let known = app
            .admin
            .export_of("198.51.100.3", &[address(70), name.clone()])
            .await;
        assert_eq!(known[text(&address(70), "id")]["x_score"], 70);

        // What the memory has from elsewhere is not reviewed again, and what it has otherwise is.
        let server = Server::start(&[address(70), name]).await;
        let other = app.admin.feed_of(&server).await;
        let batch = app.admin.pull(&other).await;
        assert_eq!(counts(&batch), (json!(0), json!(2)), "{batch}");
        server.add(&[address(90)]);
        let batch = app.admin.pull(&other).await;
        assert_eq!(batch["item_count"], 1, "{batch}");
        app.stop().await;
    });
}
