//! Markings of ingested data: where they are read from, and that they survive a round trip.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::helpers::{Client, TestApp, run};
use crate::stix;

const LEVELS: [&str; 5] = ["TLP:WHITE", "TLP:GREEN", "TLP:AMBER", "TLP:AMBER+PK", "TLP:RED"];

async fn open(admin: &Client, grant: bool) {
    let open = json!({"tlp_ceiling": "RED", "elevated_clearance": true, "red_export_grant": grant});
    admin.settings(open).await;
}

#[test]
fn the_marking_of_an_object_is_resolved_in_the_documented_order() {
    run(async {
        let app = TestApp::shared().await;
        open(&app.admin, true).await;
        let well_known = |uuid: &str| format!("marking-definition--{uuid}");
        let (white1, amber1, red1) = (
            well_known("613f2e26-407d-48c7-9eca-b8e91df99dc9"),
            well_known("f88d31f6-486f-44da-b317-01333bde0b82"),
            well_known("5e57c739-391a-4eb3-b6be-7d15ca92d5ed"),
        );
        let strict2 = well_known("939a9414-2ddd-4d32-a0cd-375ea402b003");
        let own = stix::with(
            stix::statement("x"),
            json!({"definition_type": "tlp", "definition": {"tlp": "amber"}}),
        );
        let statement = stix::statement("a licence");
        let granular = |id: &str| json!([{"marking_ref": id, "selectors": ["name"]}]);
        let mut wanted = HashMap::new();
        let mut objects = vec![own.clone(), statement.clone()];
        for (at, (changes, want)) in [
            (
                json!({"x_mitre_tlp": "TLP:GREEN", "labels": ["tlp:red"], "object_marking_refs": [red1]}),
                4,
            ),
            (json!({"x_mitre_tlp": "TLP:GREEN", "labels": ["tlp:red"]}), 1),
            (
                json!({"x_mitre_tlp": "TLP:RED", "object_marking_refs": [white1]}),
                4,
            ),
            (json!({"x_mitre_tlp": "clear"}), 0),
            (json!({"labels": ["tlp:amber"], "object_marking_refs": [red1]}), 4),
            (
                json!({"labels": ["tlp:amber"], "granular_markings": granular(&red1)}),
                4,
            ),
            (json!({"labels": ["tlp:green", "TLP:AMBER+STRICT", "other"]}), 3),
            (json!({"object_marking_refs": [white1, amber1]}), 2),
            (json!({"object_marking_refs": [strict2]}), 3),
            (json!({"object_marking_refs": [own["id"]]}), 2),
            (
                json!({"object_marking_refs": [white1], "granular_markings": granular(&red1)}),
                4,
            ),
            (json!({"object_marking_refs": [statement["id"]]}), 3),
            (json!({"labels": ["phishing"]}), 3),
            (json!({}), 3),
        ]
        .into_iter()
        .enumerate()
        {
            let object = stix::with(stix::object("tool", &format!("Heron {at}")), changes);
            wanted.insert(stix::text(&object, "id").to_owned(), want);
            objects.push(object);
        }
        let body = json!({"bundle": objects, "default_tlp": "amber+strict"});
        let done = app.admin.post("/api/ingest/stix", &body).await.expect(201).await;
        assert_eq!(done["results"]["nodes_created"], json!(wanted.len()), "{done}");
        let found = app.admin.search_with("Heron", &[]).await;
        for node in found["results"].as_array().unwrap() {
            let id = node["properties"]["stix_id"].as_str().unwrap();
            let want = wanted.remove(id).unwrap();
            assert_eq!(node["tlp"], LEVELS[want], "{node}");
        }
        assert!(wanted.is_empty(), "not found: {wanted:?}");
        app.stop().await;
    });
}

#[test]
fn an_unknown_marking_is_never_taken_for_the_default() {
    run(async {
        let app = TestApp::shared().await;
        for name in ["PINK", "", "TLP:", "TLP:AMBER+"] {
            let body = json!({"bundle": [stix::object("tool", "Heron")], "default_tlp": name});
            let error = app.admin.post("/api/ingest/stix", &body).await.refused(400).await;
            assert!(error.starts_with("default_tlp: must be one of"), "{error}");
        }
        let pink = stix::with(
            stix::statement("x"),
            json!({"definition_type": "tlp", "definition": {"tlp": "pink"}}),
        );
        let bad = [
            json!({"x_mitre_tlp": "TLP:PINK"}),
            json!({"x_mitre_tlp": 4}),
            json!({"labels": ["tlp:pink"]}),
        ];
        let mut objects = vec![pink.clone()];
        objects.extend(
            bad.iter()
                .map(|changes| stix::with(stix::object("tool", "Heron"), changes.clone())),
        );
        let done = app.admin.ingest(Value::from(objects)).await;
        assert_eq!(done["nodes_created"], 0, "{done}");
        let skipped = done["skipped_objects"].as_array().unwrap();
        assert!(skipped.len() >= bad.len(), "{done}");
        assert_eq!(app.admin.search("Heron").await["count"], 0);

        // A definition with an unknown level is ignored: objects that refer to it are AMBER and not exported.
        let marked = stix::with(
            stix::object("tool", "Heron"),
            json!({"object_marking_refs": [pink["id"]]}),
        );
        let body = json!({"bundle": [pink, marked], "default_tlp": "white"});
        let done = app.admin.post("/api/ingest/stix", &body).await.expect(201).await;
        assert_eq!(done["results"]["warnings"].as_array().unwrap().len(), 1, "{done}");
        assert_eq!(app.admin.search("Heron").await["max_tlp"], "TLP:AMBER");
        app.stop().await;
    });
}

#[test]
fn amber_pk_comes_back_from_a_round_trip_as_amber_pk() {
    run(async {
        let app = TestApp::shared().await;
        open(&app.admin, false).await;
        let tool = stix::object("tool", "Heron");
        for default in ["TLP:AMBER+PK", "AMBER+STRICT"] {
            let tool = stix::with(tool.clone(), json!({"id": stix::id("tool")}));
            let body = json!({"bundle": [tool], "default_tlp": default});
            app.admin.post("/api/ingest/stix", &body).await.expect(201).await;
        }
        let found = app.admin.search("Heron").await;
        assert_eq!(
            (&found["max_tlp"], &found["count"]),
            (&json!("TLP:AMBER+PK"), &json!(2))
        );
        let bundle = app.admin.export(stix::text(&found, "recall_id")).await;
        assert!(bundle.to_string().contains("TLP:AMBER+PK"));

        let other = app.workspace("receiver").await;
        open(&other, false).await;
        let taken = other.post("/api/ingest/stix", &json!({"bundle": bundle})).await;
        assert_eq!(taken.expect(201).await["results"]["nodes_created"], 2);
        let again = other.search("Heron").await;
        assert_eq!(
            (&again["max_tlp"], &again["count"]),
            (&json!("TLP:AMBER+PK"), &json!(2))
        );
        assert!(
            again["results"]
                .as_array()
                .unwrap()
                .iter()
                .all(|n| n["tlp"] == "TLP:AMBER+PK")
        );
        other.settings(json!({"elevated_clearance": false})).await;
        assert_eq!(other.search("Heron").await["count"], 0);

        // Even without the strict marking, the statement alone still applies.
        let mut cut: Value = bundle["objects"].clone();
        let objects = cut.as_array_mut().unwrap();
        objects.retain(|object| object["type"] == "tool");
        for object in objects.iter_mut() {
            let refs = object["object_marking_refs"].as_array_mut().unwrap();
            refs.retain(|id| *id == "marking-definition--6c1f4e0a-5b0d-4c7e-9a55-3f6d1e8b7a42");
            assert_eq!(refs.len(), 1);
        }
        let third = app.workspace("third").await;
        third.ingest(cut).await;
        assert_eq!(third.search("Heron").await["count"], 0);
        open(&third, false).await;
        let found = third.search("Heron").await;
        assert_eq!(
            (&found["max_tlp"], &found["count"]),
            (&json!("TLP:AMBER+PK"), &json!(2))
        );
        let bundle = third.export(stix::text(&found, "recall_id")).await.to_string();
        assert!(
            bundle.contains("939a9414-2ddd-4d32-a0cd-375ea402b003"),
            "{bundle}"
        );
        app.stop().await;
    });
}
