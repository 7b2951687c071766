//! Data ingested as STIX is exported unchanged.

use std::collections::HashSet;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::helpers::{Client, TestApp, read_json, run, shared};
use crate::stix::{assert_faithful, id, is_node, object, objects_of, relationship, statement, text, with};

/// Lets the workspace see and export everything.
async fn clear_everything(admin: &Client) {
    let all = json!({"tlp_ceiling": "TLP:RED", "elevated_clearance": true, "red_export_grant": true});
    admin.patch("/api/admin/workspace", &all).await.expect(200).await;
}

fn documents() -> Vec<PathBuf> {
    let folders = ["data/stix", "data/golden"].map(shared);
    let mut files: Vec<PathBuf> = folders
        .into_iter()
        .flatten()
        .flat_map(|folder| std::fs::read_dir(folder).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    files
}

/// Whether the object refers to a marking definition whose id ends in `5ec` and that the document does not define.
fn undefined_markings(object: &Value, defined: &[Value]) -> bool {
    let known: HashSet<&str> = defined.iter().map(|o| text(o, "id")).collect();
    let refs = object["object_marking_refs"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    refs.iter()
        .filter_map(Value::as_str)
        .any(|id| !known.contains(id) && id.ends_with("5ec"))
}

#[test]
fn every_example_document_comes_out_as_it_went_in() {
    let documents = documents();
    run(async move {
        for path in documents {
            let app = TestApp::shared().await;
            clear_everything(&app.admin).await;
            let mut objects = objects_of(&read_json(&path));
            for object in &mut objects {
                // Ids are kept in lower case.
                object["id"] = json!(text(object, "id").to_lowercase());
            }
            let results = app.admin.ingest(json!(objects)).await;
            println!("{}: {results}", path.display());
            let nodes = objects.iter().filter(|o| is_node(o)).count();
            assert_eq!(results["nodes_created"], nodes, "{}: {results}", path.display());
            let mut left: Vec<&Value> = objects
                .iter()
                .filter(|o| is_node(o) && !undefined_markings(o, &objects))
                .collect();
            let mut whole = std::collections::HashMap::new();
            while let Some(next) = left.first() {
                let name = if text(next, "name").is_empty() {
                    text(next, "pattern")
                } else {
                    text(next, "name")
                };
                let found = app.admin.search_with(name, &[("include_rejected", "true")]).await;
                let bundle = app.admin.export(text(&found, "recall_id")).await;
                let exported = assert_faithful(&bundle, &objects);
                let missing = next["id"].clone();
                assert!(
                    exported.contains_key(text(next, "id")),
                    "{missing} is not in the export of its name"
                );
                for edge in objects.iter().filter(|o| o["type"] == "relationship") {
                    let is_exported = exported.contains_key(text(edge, "id"));
                    let is_there = |end: &str| exported.contains_key(text(edge, end));
                    let is_result = |end: &str| exported.get(text(edge, end)).is_some_and(is_node);
                    assert!(
                        is_exported || !(is_result("source_ref") && is_result("target_ref")),
                        "{edge}"
                    );
                    assert!(
                        !is_exported || (is_there("source_ref") && is_there("target_ref")),
                        "{edge}"
                    );
                }
                left.retain(|object| !exported.contains_key(text(object, "id")));
                whole.extend(exported);
            }
            for object in objects.iter().filter(|o| o["type"] == "identity") {
                let author = |other: &&Value| other["created_by_ref"] == object["id"];
                if whole.values().any(|other| author(&other)) {
                    assert!(
                        whole.contains_key(text(object, "id")),
                        "{} is missing",
                        object["id"]
                    );
                }
            }
            app.stop().await;
        }
    });
}

/// Sends the objects, searches for the name of the first and compares everything that comes out.
async fn there_and_back(objects: &[Value], query: &str) -> std::collections::HashMap<String, Value> {
    let app = TestApp::shared().await;
    clear_everything(&app.admin).await;
    let results = app.admin.ingest(json!(objects)).await;
    let nodes = objects.iter().filter(|o| is_node(o)).count();
    assert_eq!(results["nodes_created"], nodes, "{results}");
    let exported = app.admin.export_of(query, objects).await;
    app.stop().await;
    exported
}

#[test]
fn custom_markings_creators_granular_markings_and_extensions_survive() {
    run(async {
        let identity = with(
            object("identity", "Field Office"),
            json!({"identity_class": "organization", "sectors": ["energy"]}),
        );
        let licence = with(
            statement("Copyright: the Field Office"),
            json!({"created_by_ref": identity["id"]}),
        );
        let extension = with(
            object("extension-definition", "Watch list"),
            json!({"created_by_ref": identity["id"], "schema": "https://example.com/schema.json",
                "version": "1.0", "extension_types": ["property-extension"]}),
        );
        let inside = json!({text(&extension, "id"): {"extension_type": "property-extension",
            "rank": 5, "ratio": 0.1, "nested": {"deep": [1, 2.5, {"x": true}]}}});
        let tool = with(
            object("tool", "Grey Lantern"),
            json!({"created_by_ref": identity["id"], "object_marking_refs": [licence["id"]],
                "granular_markings": [{"marking_ref": licence["id"], "selectors": ["description", "name"]}],
                "description": "Une lanterne grise", "lang": "en", "extensions": inside, "confidence": 42,
                "external_references": [{"source_name": "report", "url": "https://example.com/r",
                    "hashes": {"SHA-256": "6db12788c37247f2316052e142f42f4b259d6561751e5f401a1ae2a6df9c674b"}}],
                "kill_chain_phases": [{"kill_chain_name": "lockheed", "phase_name": "delivery"}],
                "x_custom_number": 12345678901234567890u64, "x_custom_text": "kept"}),
        );
        let actor = with(
            object("threat-actor", "Grey Keeper"),
            json!({"lang": "ja", "aliases": ["灰色の番人"]}),
        );
        let edge = with(
            relationship(&actor, "uses", &tool),
            json!({"description": "seen twice", "start_time": "2020-01-01T00:00:00Z", "object_marking_refs": [licence["id"]]}),
        );
        let objects = [identity, licence, extension, tool, actor, edge];
        let exported = there_and_back(&objects, "Grey").await;
        for object in &objects {
            let kind = text(object, "type");
            // The definition of an extension is not named like a STIX reference, so it may be missing.
            if kind != "extension-definition" {
                assert!(exported.contains_key(text(object, "id")), "the {kind} is missing");
            }
        }
    });
}

#[test]
fn amber_strict_comes_back_as_amber_pk_with_its_own_marking() {
    run(async {
        let app = TestApp::shared().await;
        clear_everything(&app.admin).await;
        let strict = "marking-definition--939a9414-2ddd-4d32-a0cd-375ea402b003";
        let objects = [
            with(
                object("tool", "Strict Lantern"),
                json!({"object_marking_refs": [strict]}),
            ),
            with(
                object("tool", "Pale Lantern"),
                json!({"object_marking_refs":
                ["marking-definition--94868c89-83c2-464b-929b-a1a8aa3c8487"]}),
            ),
        ];
        app.admin.ingest(json!(objects)).await;
        let found = app.admin.search_with("Lantern", &[]).await;
        let levels: HashSet<String> = found["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|node| format!("{} {}", text(node, "name"), text(node, "tlp")))
            .collect();
        assert!(levels.contains("Strict Lantern TLP:AMBER+PK"), "{levels:?}");
        assert!(levels.contains("Pale Lantern TLP:WHITE"), "{levels:?}");
        let bundle = app.admin.export(text(&found, "recall_id")).await;
        let exported = assert_faithful(&bundle, &objects);
        assert!(exported.contains_key(strict));
        assert_eq!(
            exported[text(&objects[1], "id")],
            with(objects[1].clone(), json!({"confidence": 70}))
        );

        let again = TestApp::shared().await;
        clear_everything(&again.admin).await;
        again.admin.ingest(bundle["objects"].clone()).await;
        let node = again
            .admin
            .node("Strict Lantern", text(&objects[0], "id"))
            .await
            .unwrap();
        assert_eq!(node["tlp"], "TLP:AMBER+PK");
        again.stop().await;
        app.stop().await;
    });
}

#[test]
fn unicode_quotes_backslashes_and_long_texts_survive() {
    run(async {
        let long = "Lange Beschreibung mit Umlauten äöü und 漢字. ".repeat(18_000);
        assert!((800_000..1 << 20).contains(&long.len()));
        let objects = [
            with(
                object("campaign", "Ünïcødé Öperation 漢字 🦊 \u{202e}reversed"),
                json!({"description": "e\u{301} \t\r\n end"}),
            ),
            with(
                object("malware", "Long Story Öperation"),
                json!({"description": long}),
            ),
            with(
                object("indicator", "Quoted Öperation"),
                json!({
                "pattern": r"[file:name = 'it\'s \\ here' AND windows-registry-key:key = 'HKEY_LOCAL_MACHINE\\Software\\X']"}),
            ),
            with(
                object("indicator", "Yara Öperation"),
                json!({"pattern_type": "yara",
                "pattern": "rule a { strings: $a = \"x\\\"y\\\\z\" condition: $a }"}),
            ),
            with(
                object("attack-pattern", "Precise Öperation"),
                json!({
                "created": "2020-01-01T00:00:00.123456Z", "modified": "2020-01-02T00:00:00.654321Z"}),
            ),
        ];
        let exported = there_and_back(&objects, "Öperation").await;
        for object in &objects {
            assert!(
                exported.contains_key(text(object, "id")),
                "{} is missing",
                object["name"]
            );
        }
    });
}

#[test]
fn times_keep_every_digit_they_came_with() {
    run(async {
        let app = TestApp::shared().await;
        let precise = with(
            object("attack-pattern", "Nanosecond Lantern"),
            json!({"created": "2020-01-01T00:00:00.123456Z", "modified": "2020-01-02T00:00:00.123456789Z"}),
        );
        app.admin.ingest(json!([precise])).await;
        let found = app.admin.search("Nanosecond Lantern").await;
        // Not saved for the conformance check: STIX allows nine fractional digits, but python-stix2 reads only six.
        let path = format!("/api/recall/sessions/{}/export.stix", text(&found, "recall_id"));
        let bundle = app.admin.get(&path).await.expect(200).await;
        let objects = bundle["objects"].as_array().unwrap();
        let out = objects
            .iter()
            .find(|object| object["id"] == precise["id"])
            .unwrap();
        assert_eq!(
            (&out["created"], &out["modified"]),
            (&precise["created"], &precise["modified"])
        );
        app.stop().await;
    });
}

#[test]
fn markings_and_creators_of_an_earlier_bundle_are_still_known() {
    run(async {
        let app = TestApp::shared().await;
        let identity = with(
            object("identity", "Early Office"),
            json!({"identity_class": "organization"}),
        );
        let marking = statement("sent ahead");
        let tool = with(
            object("tool", "Late Lantern"),
            json!({"created_by_ref": identity["id"], "object_marking_refs": [marking["id"]]}),
        );
        // A TAXII collection arrives in pages, so a referenced object may have come in an earlier one.
        app.admin.ingest(json!([identity, marking])).await;
        let results = app.admin.ingest(json!([tool])).await;
        assert_eq!(results["nodes_created"], 1, "{results}");
        let objects = [identity, marking, tool];
        let exported = app.admin.export_of("Late Lantern", &objects).await;
        for object in &objects {
            assert!(
                exported.contains_key(text(object, "id")),
                "{} is missing",
                object["id"]
            );
        }
        app.stop().await;
    });
}

#[test]
fn references_to_what_was_never_sent_are_left_out_of_the_export() {
    run(async {
        let app = TestApp::shared().await;
        let gone = id("identity");
        let objects = [
            with(object("tool", "Orphan Lantern"), json!({"created_by_ref": gone})),
            with(
                object("malware", "Orphan Moth"),
                json!({"sample_refs": [id("file")], "created_by_ref": gone}),
            ),
        ];
        app.admin.ingest(json!(objects)).await;
        let found = app.admin.search_with("Orphan", &[]).await;
        let bundle = app.admin.export(text(&found, "recall_id")).await;
        let mut refs = Vec::new();
        crate::stix::references(&bundle, &mut refs);
        let ids: HashSet<&str> = bundle["objects"]
            .as_array()
            .unwrap()
            .iter()
            .map(|o| text(o, "id"))
            .collect();
        assert!(refs.iter().all(|id| ids.contains(id.as_str())), "{refs:?}");
        assert!(
            bundle["objects"]
                .as_array()
                .unwrap()
                .iter()
                .all(|o| o.get("sample_refs").is_none())
        );
        app.stop().await;
    });
}
