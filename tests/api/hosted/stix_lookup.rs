//! A node is read by the id of the STIX object that it came as, or that it is exported as; and the best connected nodes.

use serde_json::{Value, json};

use crate::helpers::{Client, TestApp, encode, run};
use crate::stix::{object, relationship, text, with};

async fn clear(client: &Client, ceiling: &str) {
    let change = json!({"tlp_ceiling": ceiling, "elevated_clearance": true});
    client.settings(change).await;
}

fn path(stix_id: &str) -> String {
    format!("/api/nodes?{}", encode(&[("stix_id", stix_id)]))
}

/// The id with its UUID in upper case.
fn shouted(stix_id: &str) -> String {
    let (kind, uuid) = stix_id.split_once("--").unwrap();
    format!("{kind}--{}", uuid.to_uppercase())
}

#[test]
fn a_node_is_read_by_the_id_of_its_object_in_any_case() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let (tool, actor) = (object("tool", "Heron"), object("intrusion-set", "Cormorant"));
        let uses = relationship(&actor, "uses", &tool);
        admin.ingest(json!([tool, actor, uses])).await;
        for object in [&tool, &actor] {
            let id = text(object, "id");
            let found = admin.get(&path(id)).await.expect(200).await;
            assert_eq!(found["node"]["properties"]["stix_id"], id);
            let by_id = format!("/api/nodes/{}", text(&found["node"], "id"));
            assert_eq!(admin.get(&by_id).await.expect(200).await, found);
            assert_eq!(admin.get(&path(&shouted(id))).await.expect(200).await, found);
        }
        let page = admin
            .get(&format!("{}&limit=1", path(text(&actor, "id"))))
            .await
            .expect(200)
            .await;
        assert_eq!(page["relationships"].as_array().unwrap().len(), 1);

        // A relationship is no node, and another workspace has none of these.
        admin.get(&path(text(&uses, "id"))).await.refused(404).await;
        let other = app.workspace("elsewhere").await;
        other.get(&path(text(&tool, "id"))).await.refused(404).await;
        for wrong in [
            "",
            "tool",
            "tool--1",
            "Tool--31b940d4-6f77-4a6a-9026-81c1046b8f47",
            "31b940d4",
        ] {
            let refusal = admin.get(&path(wrong)).await.refused(400).await;
            assert!(refusal.contains("stix_id"), "{wrong}: {refusal}");
        }
        let refusal = admin.get("/api/nodes").await.refused(400).await;
        assert!(refusal.contains("stix_id"), "{refusal}");
        app.stop().await;
    });
}

#[test]
fn an_exported_node_is_read_by_the_id_that_it_left_with() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let kinds = ["actor", "tool", "ioc", "cve", "attck", "osint", "vulnerability"];
        let nodes: Vec<Value> = kinds
            .iter()
            .map(|kind| json!({"name": format!("Heron {kind}"), "node_type": kind}))
            .collect();
        let body = json!({"nodes": nodes});
        admin.post("/api/ingest/analyst", &body).await.expect(201).await;
        let found = admin.search("Heron").await;
        let bundle = admin.export(text(&found, "recall_id")).await;
        let mut read = 0;
        for object in bundle["objects"].as_array().unwrap() {
            let id = text(object, "id");
            if ["marking-definition", "identity", "relationship"].contains(&text(object, "type")) {
                continue;
            }
            let answer = admin.get(&path(&shouted(id))).await.expect(200).await;
            let name = text(&answer["node"], "name");
            assert!(object["name"].is_null() || object["name"] == name, "{object}");
            read += 1;
            // Neither another type with the same UUID is the object, nor the row's own id.
            let (_, uuid) = id.split_once("--").unwrap();
            admin
                .get(&path(&format!("campaign--{uuid}")))
                .await
                .refused(404)
                .await;
            let row = text(&answer["node"], "id");
            let (kind, _) = id.split_once("--").unwrap();
            admin
                .get(&path(&format!("{kind}--{row}")))
                .await
                .refused(404)
                .await;
        }
        assert_eq!(read, kinds.len());
        app.stop().await;
    });
}

#[test]
fn a_hidden_object_is_not_there_and_of_two_rows_the_visible_one_is_read() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        clear(admin, "TLP:RED").await;
        let red = with(
            object("tool", "Heron"),
            json!({"x_mitre_tlp": "TLP:RED", "description": "secret"}),
        );
        let id = text(&red, "id");
        admin.ingest(json!([red])).await;
        let hidden = admin.get(&path(id)).await.expect(200).await;
        clear(admin, "TLP:AMBER").await;
        let unknown = admin
            .get(&path("tool--31b940d4-6f77-4a6a-9026-81c1046b8f47"))
            .await;
        assert_eq!(
            admin.get(&path(id)).await.refused(404).await,
            unknown.refused(404).await
        );

        let own = with(
            object("tool", "Heron"),
            json!({"id": id, "x_mitre_tlp": "TLP:GREEN"}),
        );
        admin.ingest(json!([own])).await;
        let seen = admin.get(&path(id)).await.expect(200).await;
        assert_eq!(seen["node"]["tlp"], "TLP:GREEN");
        assert_ne!(seen["node"]["id"], hidden["node"]["id"]);
        app.stop().await;
    });
}

#[test]
fn a_revoked_object_is_read_by_those_who_ask_for_rejected_ones() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let revoked = with(object("tool", "Heron"), json!({"revoked": true}));
        let id = text(&revoked, "id");
        admin.ingest(json!([revoked])).await;
        admin.get(&path(id)).await.refused(404).await;
        let asked = format!("{}&include_rejected=true", path(id));
        let found = admin.get(&asked).await.expect(200).await;
        assert_eq!(found["node"]["status"], "rejected");
        let viewer = app.user("viewer").await;
        viewer.get(&asked).await.refused(404).await;
        app.stop().await;
    });
}

#[test]
fn the_graph_begins_with_the_best_connected_nodes_as_far_as_they_are_seen() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let empty = admin.get("/api/graph").await.expect(200).await;
        assert_eq!(empty, json!({"nodes": [], "relationships": []}));
        clear(admin, "TLP:RED").await;
        let actors: Vec<Value> = (0..4)
            .map(|at| object("intrusion-set", &format!("Heron {at}")))
            .collect();
        let mut objects = actors.clone();
        // The first actor has most relationships, but most of them lead to what is RED.
        for (at, (open, hidden)) in [(1, 9), (3, 0), (2, 0), (0, 0)].into_iter().enumerate() {
            for number in 0..open + hidden {
                let tool = object("tool", &format!("Tool {at} {number}"));
                let level = if number < open { "TLP:GREEN" } else { "TLP:RED" };
                let tool = with(tool, json!({"x_mitre_tlp": level}));
                objects.push(relationship(&actors[at], "uses", &tool));
                objects.push(tool);
            }
        }
        admin.ingest(json!(objects)).await;
        let names = |graph: &Value| -> Vec<String> {
            let nodes = graph["nodes"].as_array().unwrap();
            nodes.iter().map(|node| text(node, "name").to_owned()).collect()
        };
        let whole = admin.get("/api/graph?limit=3").await.expect(200).await;
        assert_eq!(names(&whole), ["Heron 0", "Heron 1", "Heron 2"]);
        assert_eq!(whole["relationships"], json!([]));

        clear(admin, "TLP:AMBER").await;
        let seen = admin.get("/api/graph?limit=2").await.expect(200).await;
        assert_eq!(names(&seen), ["Heron 1", "Heron 2"]);
        let seen = admin.get("/api/graph").await.expect(200).await;
        assert_eq!(
            (
                names(&seen).len(),
                seen["relationships"].as_array().unwrap().len()
            ),
            (10, 6)
        );
        for link in seen["relationships"].as_array().unwrap() {
            assert_eq!(link["relationship_type"], "uses");
            for end in ["source", "target"] {
                let nodes = seen["nodes"].as_array().unwrap();
                assert!(nodes.iter().any(|node| node["id"] == link[end]), "{link}");
            }
        }
        let other = app.workspace("elsewhere").await;
        assert_eq!(other.get("/api/graph").await.expect(200).await, empty);
        for wrong in ["0", "201", "x"] {
            let refusal = admin
                .get(&format!("/api/graph?limit={wrong}"))
                .await
                .refused(400)
                .await;
            assert!(refusal.contains("limit"), "{refusal}");
        }
        app.stop().await;
    });
}
