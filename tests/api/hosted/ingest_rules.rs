//! How an ingest affects data that is already stored.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::helpers::{TestApp, run};
use crate::stix::{evidence, id, names, object, relationship, statement, text, version, with, without};

#[test]
fn a_newer_version_updates_the_node_and_an_older_one_is_skipped() {
    run(async {
        let app = TestApp::shared().await;
        let base = object("intrusion-set", "Copper Jay");
        let stix_id = text(&base, "id");
        app.admin.ingest(json!([version(&base, 2021, json!({}))])).await;
        let first = app.admin.node("Copper Jay", stix_id).await.unwrap();
        assert_eq!(
            (text(&first, "tlp"), text(&first, "status"), evidence(&first)),
            ("TLP:GREEN", "active", 1)
        );

        let newer = version(
            &base,
            2022,
            json!({"name": "Bronze Jay", "labels": ["tlp:amber"], "confidence": 20}),
        );
        let results = app.admin.ingest(json!([newer])).await;
        assert_eq!(
            (&results["nodes_created"], &results["nodes_updated"]),
            (&json!(0), &json!(1))
        );
        let second = app.admin.node("Bronze Jay", stix_id).await.unwrap();
        assert_eq!(second["id"], first["id"]);
        assert_eq!(
            (text(&second, "name"), text(&second, "tlp")),
            ("Bronze Jay", "TLP:AMBER")
        );
        assert_eq!((second["confidence"].as_f64(), evidence(&second)), (Some(0.2), 2));
        let kept = &second["linked_evidence_ids"].as_array().unwrap()[0];
        assert_eq!(
            kept, &first["linked_evidence_ids"][0],
            "earlier evidence stays linked"
        );

        for (year, name) in [(2022, "Same Jay"), (2021, "Older Jay"), (2020, "Oldest Jay")] {
            let results = app
                .admin
                .ingest(json!([version(&base, year, json!({"name": name}))]))
                .await;
            assert_eq!(
                (&results["nodes_updated"], &results["skipped"]),
                (&json!(0), &json!(1)),
                "{name}"
            );
            assert_eq!(
                results["skipped_by_type"]["intrusion-set"]["reasons"],
                json!({"not newer than the stored version": 1})
            );
            let now = app.admin.node("Bronze Jay", stix_id).await.unwrap();
            assert_eq!(now, second, "{name}");
        }
        app.stop().await;
    });
}

#[test]
fn a_revoked_object_leaves_search_and_export_and_comes_back_when_it_is_not_revoked_any_more() {
    run(async {
        let app = TestApp::shared().await;
        let base = object("campaign", "Operation Winter Gate");
        let stix_id = text(&base, "id");
        app.admin.ingest(json!([base])).await;
        let session = app.admin.search("Winter Gate").await;

        app.admin
            .ingest(json!([version(&base, 2021, json!({"revoked": true}))]))
            .await;
        assert_eq!(app.admin.search("Winter Gate").await["count"], 0);
        assert_eq!(
            app.admin.node("Winter Gate", stix_id).await.unwrap()["status"],
            "rejected"
        );
        let path = format!("/api/recall/sessions/{}/export.stix", text(&session, "recall_id"));
        // Nothing is left to export, and a STIX bundle needs at least one object.
        let refused = app.admin.get(&path).await.expect(422).await;
        assert!(text(&refused, "error").starts_with("the session has no results to export"));
        assert!(!refused.to_string().contains("Winter Gate"), "{refused}");

        app.admin
            .ingest(json!([version(&base, 2022, json!({"revoked": false}))]))
            .await;
        let node = app.admin.node("Winter Gate", stix_id).await.unwrap();
        assert_eq!((text(&node, "status"), evidence(&node)), ("active", 3));
        assert_eq!(app.admin.search("Winter Gate").await["count"], 1);
        app.stop().await;
    });
}

#[test]
fn an_update_to_a_level_above_the_ceiling_hides_the_node_everywhere() {
    run(async {
        let app = TestApp::shared().await;
        let base = object("campaign", "Operation Summer Gate");
        app.admin.ingest(json!([base])).await;
        let session = app.admin.search("Summer Gate").await;
        app.admin
            .ingest(json!([version(&base, 2021, json!({"x_mitre_tlp": "RED"}))]))
            .await;
        for mode in ["blended", "structured"] {
            let found = app
                .admin
                .search_with("Summer Gate", &[("mode", mode), ("include_rejected", "true")])
                .await;
            assert_eq!(
                (&found["count"], text(&found, "max_tlp")),
                (&json!(0), "TLP:WHITE")
            );
        }
        let path = format!("/api/recall/sessions/{}/export.stix", text(&session, "recall_id"));
        let refused = app.admin.get(&path).await.expect(422).await;
        assert!(text(&refused, "error").starts_with("the session has no results to export"));
        assert!(!refused.to_string().contains("Summer Gate"), "{refused}");
        app.stop().await;
    });
}

#[test]
fn relationships_need_both_ends_and_may_arrive_later_than_they() {
    run(async {
        let app = TestApp::shared().await;
        let (actor, tool) = (object("threat-actor", "Slate Crow"), object("tool", "Slate Hook"));
        let uses = relationship(&actor, "uses", &tool);
        let results = app.admin.ingest(json!([actor, uses])).await;
        assert_eq!(
            (&results["nodes_created"], &results["edges_created"]),
            (&json!(1), &json!(0))
        );
        assert_eq!(
            results["skipped_by_type"]["relationship"]["reasons"],
            json!({"an end of the relationship is not in the workspace; it waits for it": 1})
        );
        let results = app.admin.ingest(json!([tool])).await;
        assert_eq!(results["edges_created"], 1);
        let results = app.admin.ingest(json!([uses])).await;
        assert_eq!(
            (&results["edges_created"], &results["skipped"]),
            (&json!(0), &json!(1))
        );
        let objects = [actor.clone(), tool.clone(), uses.clone()];
        assert!(
            app.admin
                .export_of("Slate", &objects)
                .await
                .contains_key(text(&uses, "id"))
        );

        let identity = with(
            object("identity", "Slate Works"),
            json!({"identity_class": "organization"}),
        );
        let odd = relationship(&actor, "targets", &identity);
        let results = app.admin.ingest(json!([odd])).await;
        assert_eq!(
            results["skipped_by_type"]["relationship"]["reasons"],
            json!({"an end of the relationship is not in the workspace; it waits for it": 1})
        );
        let marked = with(
            uses.clone(),
            json!({"id": id("relationship"), "target_ref": id("marking-definition")}),
        );
        let results = app.admin.ingest(json!([marked])).await;
        assert_eq!(
            results["skipped_by_type"]["relationship"]["reasons"],
            json!({"target_ref: marking-definition objects are not nodes": 1})
        );
        for (broken, reason) in [
            (without(uses.clone(), "target_ref"), "target_ref"),
            (with(uses.clone(), json!({"source_ref": "tool--x"})), "source_ref"),
            (without(uses.clone(), "relationship_type"), "relationship_type"),
        ] {
            let results = app
                .admin
                .ingest(json!([with(broken, json!({"id": id("relationship")}))]))
                .await;
            assert!(
                text(&results["skipped_objects"][0], "reason").contains(reason),
                "{results}"
            );
        }
        app.stop().await;
    });
}

#[test]
fn a_newer_relationship_replaces_the_edge_even_with_other_ends() {
    run(async {
        let app = TestApp::shared().await;
        let (actor, one, two) = (
            object("threat-actor", "Umber Crow"),
            object("tool", "Umber Hook"),
            object("tool", "Umber Nail"),
        );
        let edge = relationship(&actor, "uses", &one);
        app.admin.ingest(json!([actor, one, two, edge])).await;
        let moved = version(
            &edge,
            2021,
            json!({"target_ref": two["id"], "description": "moved"}),
        );
        let results = app.admin.ingest(json!([moved])).await;
        assert_eq!(
            (&results["edges_created"], &results["edges_updated"]),
            (&json!(0), &json!(1)),
            "{results}"
        );
        let objects = [actor.clone(), one, two, moved.clone()];
        assert!(
            app.admin
                .export_of("Umber", &objects)
                .await
                .contains_key(text(&edge, "id"))
        );
        let results = app.admin.ingest(json!([edge, moved])).await;
        assert_eq!(
            (&results["edges_updated"], &results["skipped"]),
            (&json!(0), &json!(2))
        );
        let revoked = version(&moved, 2022, json!({"revoked": true}));
        app.admin.ingest(json!([revoked])).await;
        assert!(
            !app.admin
                .export_of("Umber", &objects)
                .await
                .contains_key(text(&edge, "id"))
        );
        app.stop().await;
    });
}

#[test]
fn the_level_comes_from_the_object_then_its_labels_then_its_markings_then_the_default() {
    run(async {
        let app = TestApp::shared().await;
        let all = json!({"tlp_ceiling": "TLP:RED", "elevated_clearance": true, "red_export_grant": true});
        app.admin
            .patch("/api/admin/workspace", &all)
            .await
            .expect(200)
            .await;
        let (green, red) = (
            "marking-definition--34098fce-860f-48ae-8e50-ebd3cc5e41da",
            "marking-definition--5e57c739-391a-4eb3-b6be-7d15ca92d5ed",
        );
        let own = with(
            statement("x"),
            json!({"definition_type": "tlp", "definition": {"tlp": "red"}, "name": "house rule"}),
        );
        let says_nothing = statement("no level");
        let granular = json!([{"marking_ref": red, "selectors": ["name"]}]);
        for (changes, default, want) in [
            (json!({}), "TLP:AMBER", "TLP:AMBER"),
            (json!({}), "clear", "TLP:WHITE"),
            (json!({}), "tlp:amber+strict", "TLP:AMBER+PK"),
            (json!({"object_marking_refs": [green]}), "TLP:RED", "TLP:GREEN"),
            (
                json!({"object_marking_refs": [green, red]}),
                "TLP:WHITE",
                "TLP:RED",
            ),
            (
                json!({"object_marking_refs": [green], "granular_markings": granular}),
                "TLP:WHITE",
                "TLP:RED",
            ),
            (
                json!({"object_marking_refs": [says_nothing["id"]]}),
                "TLP:AMBER",
                "TLP:AMBER",
            ),
            (
                json!({"object_marking_refs": [own["id"]]}),
                "TLP:WHITE",
                "TLP:RED",
            ),
            (
                json!({"labels": ["TLP:Green", "tlp:amber", "other"]}),
                "TLP:WHITE",
                "TLP:AMBER",
            ),
            (
                json!({"labels": ["TLP:Green", "tlp:amber", "other"], "object_marking_refs": [red]}),
                "TLP:WHITE",
                "TLP:RED",
            ),
            (
                json!({"x_mitre_tlp": "white", "labels": ["tlp:red"]}),
                "TLP:AMBER",
                "TLP:WHITE",
            ),
        ] {
            let tool = with(object("tool", "Level Gauge"), changes.clone());
            let body = json!({"bundle": [own, says_nothing, tool], "default_tlp": default});
            app.admin.post("/api/ingest/stix", &body).await.expect(201).await;
            // A custom TLP definition is not a valid STIX marking, but the level it states still counts.
            let node = app.admin.node("Level Gauge", text(&tool, "id")).await.unwrap();
            assert_eq!(text(&node, "tlp"), want, "{changes}");
        }
        app.stop().await;
    });
}

#[test]
fn confidence_is_read_as_percent_and_defaults_apply_without_it() {
    run(async {
        let app = TestApp::shared().await;
        let mut sent = Vec::new();
        for (changes, default, want) in [
            (json!({"confidence": 0}), json!(0.9), 0.0),
            (json!({"confidence": 42}), json!(0.9), 0.42),
            (json!({"confidence": 100}), json!(0.1), 1.0),
            (json!({}), json!(0.25), 0.25),
            (json!({}), json!(0), 0.0),
            (json!({}), Value::Null, 0.7),
        ] {
            let tool = with(object("tool", "Sure Scale"), changes);
            let body = json!({"bundle": [tool], "default_confidence": default});
            app.admin.post("/api/ingest/stix", &body).await.expect(201).await;
            let node = app.admin.node("Sure Scale", text(&tool, "id")).await.unwrap();
            assert!(
                (node["confidence"].as_f64().unwrap() - want).abs() < 1e-9,
                "{node}"
            );
            sent.push(tool.clone());
            let exported = app.admin.export_of("Sure Scale", &sent).await;
            let percent = (want * 100.0).round() as u64;
            assert_eq!(exported[text(&tool, "id")]["confidence"], json!(percent));
        }
        app.stop().await;
    });
}

#[test]
fn every_type_becomes_its_node_type_with_evidence_of_its_own() {
    run(async {
        let app = TestApp::shared().await;
        let cve = json!([{"source_name": "cve", "external_id": "CVE-2024-3094"}]);
        let cases = [
            (object("threat-actor", "Type Probe a"), "actor"),
            (object("intrusion-set", "Type Probe b"), "actor"),
            (object("campaign", "Type Probe c"), "actor"),
            (object("malware", "Type Probe d"), "tool"),
            (object("tool", "Type Probe e"), "tool"),
            (object("attack-pattern", "Type Probe f"), "attck"),
            (object("course-of-action", "Type Probe g"), "attck"),
            (object("indicator", "Type Probe h"), "ioc"),
            (object("vulnerability", "Type Probe i"), "vulnerability"),
            (
                with(
                    object("vulnerability", "Type Probe j"),
                    json!({"external_references": cve}),
                ),
                "cve",
            ),
            (object("vulnerability", "CVE-2021-44228"), "cve"),
        ];
        let sent: Vec<&Value> = cases.iter().map(|(object, _)| object).collect();
        let results = app.admin.ingest(json!(sent)).await;
        assert_eq!(
            (&results["nodes_created"], &results["evidence_created"]),
            (&json!(11), &json!(11))
        );
        let mut seen = BTreeSet::new();
        for (object, node_type) in &cases {
            let node = app
                .admin
                .node(text(object, "name"), text(object, "id"))
                .await
                .unwrap();
            assert_eq!(text(&node, "node_type"), *node_type, "{}", object["name"]);
            assert_eq!(evidence(&node), 1);
            assert_eq!(text(&node, "source_type"), "stix");
            assert!(
                seen.insert(node["linked_evidence_ids"][0].to_string()),
                "evidence is shared"
            );
        }
        app.stop().await;
    });
}

#[test]
fn two_workspaces_with_the_same_objects_never_see_each_other() {
    run(async {
        let app = TestApp::shared().await;
        let other = app.workspace("Elsewhere").await;
        let tool = object("tool", "Twin Lantern");
        app.admin.ingest(json!([tool])).await;
        assert_eq!(names(&other.search("Twin Lantern").await), Vec::<&str>::new());
        let results = other
            .ingest(json!([version(
                &tool,
                2021,
                json!({"name": "Twin Lantern there"})
            )]))
            .await;
        assert_eq!(results["nodes_created"], 1);
        assert_eq!(names(&app.admin.search("Twin Lantern").await), ["Twin Lantern"]);
        let here = app.admin.search("Twin Lantern").await;
        let there = other.search("Twin Lantern").await;
        assert_ne!(here["results"][0]["id"], there["results"][0]["id"]);
        let session = format!("/api/recall/sessions/{}", text(&here, "recall_id"));
        other.get(&session).await.expect(404).await;
        other
            .get(&format!("{session}/export.stix"))
            .await
            .expect(404)
            .await;
        app.stop().await;
    });
}
