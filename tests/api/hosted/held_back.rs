//! Objects with an undefined marking are stored, withheld from export, and marked again once the definition arrives.

use serde_json::{Value, json};
use test_support::extent;

use crate::helpers::{Answer, Client, TestApp, keep_export, run};
use crate::stix::{
    assert_faithful, evidence, names, object, relationship, statement, text, version, with, without,
};

const RED: &str = "marking-definition--5e57c739-391a-4eb3-b6be-7d15ca92d5ed";

fn marked(object: Value, marking: &Value) -> Value {
    with(object, json!({"object_marking_refs": [marking["id"]]}))
}

/// A non-standard marking definition that states a TLP level. STIX does not define it, but some producers send it.
fn stating(level: &str) -> Value {
    with(
        statement("x"),
        json!({"definition_type": "tlp", "definition": {"tlp": level}}),
    )
}

impl Client {
    /// Searches and requests the export of the results.
    async fn ask_export(&self, query: &str) -> Answer {
        let found = self.search_with(query, &[]).await;
        self.get(&format!(
            "/api/recall/sessions/{}/export.stix",
            text(&found, "recall_id")
        ))
        .await
    }
}

#[test]
fn an_object_with_a_marking_nobody_defined_is_taken_in_at_amber_at_least_and_named() {
    run(async {
        let app = TestApp::shared().await;
        app.admin
            .settings(json!({"tlp_ceiling": "RED", "elevated_clearance": true}))
            .await;
        let strange = statement("not sent");
        let granular = json!([{"marking_ref": strange["id"], "selectors": ["name"]}]);
        let cases = [
            (json!({"object_marking_refs": [strange["id"]]}), "TLP:AMBER"),
            (json!({"object_marking_refs": [strange["id"], RED]}), "TLP:RED"),
            (
                json!({"object_marking_refs": [strange["id"]], "x_mitre_tlp": "white"}),
                "TLP:AMBER",
            ),
            (json!({"granular_markings": granular}), "TLP:AMBER"),
        ];
        for (changes, want) in cases {
            let technique = with(object("attack-pattern", "Quiet Loading"), changes.clone());
            let results = app.admin.ingest(json!([technique])).await;
            assert_eq!(
                (&results["nodes_created"], &results["skipped"]),
                (&json!(1), &json!(0)),
                "{changes}: {results}"
            );
            let warnings = results["warnings"].as_array().unwrap();
            let warning = warnings[0].as_str().unwrap();
            assert_eq!(warnings.len(), 1, "{results}");
            assert!(
                warning.contains(text(&technique, "id")) && warning.contains(text(&strange, "id")),
                "{warning}"
            );
            assert!(warning.contains(&format!("at {want}")), "{warning}");
            let node = app
                .admin
                .node("Quiet Loading", text(&technique, "id"))
                .await
                .unwrap();
            assert_eq!((text(&node, "tlp"), evidence(&node)), (want, 1), "{changes}");
        }
        let results = app.admin.ingest(json!([object("tool", "Plain")])).await;
        assert_eq!(results["warnings"], json!([]));
        app.stop().await;
    });
}

#[test]
fn what_is_held_back_does_not_leave_and_the_export_says_how_many() {
    run(async {
        let app = TestApp::shared().await;
        let strange = statement("not sent");
        let author = with(
            marked(object("identity", "Night Office"), &strange),
            json!({"identity_class": "organization"}),
        );
        let (one, two) = (object("tool", "Dusk Hook"), object("tool", "Dusk Nail"));
        let one = with(one, json!({"created_by_ref": author["id"]}));
        let held = marked(object("malware", "Dusk Worm"), &strange);
        let open = relationship(&one, "uses", &two);
        let closed = marked(relationship(&one, "related-to", &two), &strange);
        let results = app
            .admin
            .ingest(json!([author, one, two, held, open, closed]))
            .await;
        assert_eq!(results["warnings"].as_array().unwrap().len(), 3, "{results}");

        let answer = app.admin.ask_export("Dusk").await;
        assert_eq!(
            answer.header("x-held-back"),
            Some("3"),
            "node, relationship, author"
        );
        let bundle = answer.expect(200).await;
        keep_export(&bundle);
        let one = without(one, "created_by_ref");
        let exported = assert_faithful(&bundle, &[one.clone(), two.clone(), open.clone()]);
        assert!(
            exported.contains_key(text(&one, "id"))
                && exported.contains_key(text(&open, "id"))
                && !bundle.to_string().contains("Night Office")
        );
        let entry = &app.admin.audited("recall.export").await[0];
        assert_eq!(
            (&entry["metadata"]["nodes"], &entry["metadata"]["held_back"]),
            (&json!(2), &json!(3)),
            "{entry}"
        );
        app.stop().await;
    });
}

#[test]
fn a_session_of_which_nothing_may_leave_is_refused_with_the_reason() {
    run(async {
        let app = TestApp::shared().await;
        let strange = statement("not sent");
        app.admin
            .ingest(json!([
                marked(object("tool", "Dawn Hook"), &strange),
                marked(object("tool", "Dawn Nail"), &strange)
            ]))
            .await;
        let answer = app.admin.ask_export("Dawn").await;
        assert_eq!(answer.header("x-held-back"), Some("2"));
        let error = answer.refused(422).await;
        assert!(
            error.starts_with("all 2 objects") && error.contains("is not defined"),
            "{error}"
        );
        let entry = &app.admin.audited("recall.export").await[0];
        assert_eq!(
            (text(entry, "outcome"), &entry["metadata"]["held_back"]),
            ("failure", &json!(2)),
            "{entry}"
        );
        app.stop().await;
    });
}

#[test]
fn the_definition_marks_anew_in_whatever_later_bundle_it_comes() {
    run(async {
        let app = TestApp::shared().await;
        let licence = statement("a licence");
        let author = with(
            marked(object("identity", "The Heron Works"), &licence),
            json!({"identity_class": "organization"}),
        );
        let by = json!({"created_by_ref": author["id"]});
        let one = with(
            marked(object("attack-pattern", "Noon Hook"), &licence),
            by.clone(),
        );
        let two = with(marked(object("attack-pattern", "Noon Nail"), &licence), by);
        let edge = marked(relationship(&one, "related-to", &two), &licence);
        let sent = [author, one, two, edge];
        app.admin.ingest(json!(sent)).await;
        let before = app.admin.node("Noon Hook", text(&sent[1], "id")).await.unwrap();
        assert_eq!(
            (text(&before, "tlp"), text(&before, "source")),
            ("TLP:AMBER", "The Heron Works")
        );

        let other = object("tool", "Unlike");
        let results = app.admin.ingest(json!([licence, other])).await;
        assert_eq!(
            (&results["remarked"], &results["warnings"]),
            (&json!(4), &json!([])),
            "{results}"
        );
        let after = app.admin.node("Noon Hook", text(&sent[1], "id")).await.unwrap();
        // A licence states no level, so it does not lower what was taken in without it.
        assert_eq!(
            (text(&after, "tlp"), text(&after, "source"), evidence(&after)),
            ("TLP:AMBER", "The Heron Works", 1)
        );
        let mut originals = sent.to_vec();
        originals.push(licence.clone());
        let answer = app.admin.ask_export("Noon").await;
        assert_eq!(answer.header("x-held-back"), None);
        let bundle = answer.expect(200).await;
        keep_export(&bundle);
        let mut sent = originals.clone();
        sent.push(other);
        let exported = assert_faithful(&bundle, &sent);
        assert!(
            originals
                .iter()
                .all(|object| exported.contains_key(text(object, "id")))
        );
        let entries = app.admin.audited("ingest.stix_remarked").await;
        let marked: u64 = entries
            .iter()
            .map(|entry| entry["metadata"]["objects"].as_u64().unwrap())
            .sum();
        assert_eq!(marked, 4, "{entries:?}");

        let again = app.admin.ingest(json!([licence])).await;
        assert_eq!(again["remarked"], 0);
        let verified = app.admin.get("/api/audit/verify").await.expect(200).await;
        assert_eq!(verified["valid"], true, "{verified}");
        app.stop().await;
    });
}

#[test]
fn a_definition_that_states_a_level_hides_what_waited_for_it_with_its_evidence() {
    run(async {
        let app = TestApp::shared().await;
        let red = stating("red");
        let tool = marked(object("tool", "Ember Hook"), &red);
        app.admin.ingest(json!([tool])).await;
        assert_eq!(app.admin.search("Ember Hook").await["count"], 1);
        let results = app.admin.ingest(json!([red])).await;
        assert_eq!(results["remarked"], 1, "{results}");
        for mode in ["blended", "structured"] {
            let found = app.admin.search_with("Ember Hook", &[("mode", mode)]).await;
            assert_eq!(found["count"], 0, "{mode}");
        }
        app.admin
            .settings(json!({"tlp_ceiling": "RED", "elevated_clearance": true, "red_export_grant": true}))
            .await;
        let node = app.admin.node("Ember Hook", text(&tool, "id")).await.unwrap();
        assert_eq!((text(&node, "tlp"), evidence(&node)), ("TLP:RED", 1));
        let answer = app.admin.ask_export("Ember Hook").await;
        assert_eq!(answer.header("x-held-back"), None);
        let bundle = answer.expect(200).await;
        let exported = bundle["objects"].as_array().unwrap();
        let exported = exported.iter().find(|object| object["id"] == tool["id"]).unwrap();
        assert_eq!(exported["object_marking_refs"], json!([red["id"], RED]));
        // What its producer sent is not valid STIX, so the definition leaves as a statement of its level.
        let exported = bundle["objects"].as_array().unwrap();
        let definition = exported.iter().find(|object| object["id"] == red["id"]).unwrap();
        assert_eq!(definition["definition"], json!({"statement": "TLP:RED"}));
        // Later bundles use the level too.
        let another = marked(object("tool", "Ember Nail"), &red);
        let results = app.admin.ingest(json!([another])).await;
        assert_eq!(results["warnings"], json!([]));
        let node = app.admin.node("Ember Nail", text(&another, "id")).await.unwrap();
        assert_eq!(text(&node, "tlp"), "TLP:RED");
        app.stop().await;
    });
}

#[test]
fn a_workspace_with_a_green_ceiling_sees_it_only_once_it_is_marked_green() {
    run(async {
        let app = TestApp::shared().await;
        app.admin.settings(json!({"tlp_ceiling": "GREEN"})).await;
        let licence = statement("TLP:GREEN");
        let tool = marked(object("tool", "Moss Hook"), &licence);
        let results = app.admin.ingest(json!([tool])).await;
        assert_eq!(results["nodes_created"], 1, "{results}");
        assert_eq!(app.admin.search("Moss Hook").await["count"], 0);
        app.admin.ingest(json!([licence])).await;
        assert_eq!(names(&app.admin.search("Moss Hook").await), ["Moss Hook"]);
        let bundle = app.admin.ask_export("Moss Hook").await.expect(200).await;
        let exported = assert_faithful(&bundle, &[tool.clone(), licence]);
        assert!(exported.contains_key(text(&tool, "id")));
        app.stop().await;
    });
}

#[test]
fn an_object_waits_until_all_its_markings_are_defined() {
    run(async {
        let app = TestApp::shared().await;
        let (first, second) = (statement("a licence"), statement("another"));
        let refs = json!({"object_marking_refs": [first["id"], second["id"]]});
        let tool = with(object("tool", "Slow Hook"), refs);
        app.admin.ingest(json!([tool])).await;
        app.admin.ingest(json!([first])).await;
        app.admin.ask_export("Slow Hook").await.refused(422).await;
        app.admin.ingest(json!([second])).await;
        let bundle = app.admin.ask_export("Slow Hook").await.expect(200).await;
        assert_faithful(&bundle, &[tool.clone(), first, second]);
        let node = app.admin.node("Slow Hook", text(&tool, "id")).await.unwrap();
        assert_eq!(text(&node, "tlp"), "TLP:AMBER");
        app.stop().await;
    });
}

#[test]
fn a_newer_version_with_known_markings_is_not_touched_by_what_its_predecessor_waited_for() {
    run(async {
        let app = TestApp::shared().await;
        let red = stating("red");
        let tool = object("tool", "Swift Hook");
        app.admin
            .ingest(json!([marked(version(&tool, 2021, json!({})), &red)]))
            .await;
        let newer = version(&tool, 2022, json!({"object_marking_refs": null}));
        let newer = without(newer, "object_marking_refs");
        app.admin.ingest(json!([newer])).await;
        // It states no marking of its own, so it keeps the level of its predecessor.
        let node = app.admin.node("Swift Hook", text(&tool, "id")).await.unwrap();
        assert_eq!((text(&node, "tlp"), evidence(&node)), ("TLP:AMBER", 2));
        app.admin.ingest(json!([red])).await;
        let node = app.admin.node("Swift Hook", text(&tool, "id")).await.unwrap();
        assert_eq!(
            (text(&node, "tlp"), evidence(&node)),
            ("TLP:AMBER", 1),
            "the older version is RED now, and hidden"
        );
        app.admin.ask_export("Swift Hook").await.expect(200).await;
        app.stop().await;
    });
}

#[test]
fn what_others_added_at_amber_does_not_fall_with_the_new_marking() {
    run(async {
        let app = TestApp::shared().await;
        let licence = statement("TLP:GREEN");
        let actor = marked(object("intrusion-set", "Marsh Owl"), &licence);
        app.admin.ingest(json!([actor])).await;
        let added = json!({"nodes": [{"name": "Marsh Owl", "node_type": "actor", "tlp": "AMBER",
            "description": "Secretly a heron.", "properties": {"aliases": ["Reed Owl"]}}]});
        app.admin
            .post("/api/ingest/analyst", &added)
            .await
            .expect(201)
            .await;
        let before = app.admin.node("Marsh Owl", text(&actor, "id")).await.unwrap();
        assert!(before.to_string().contains("Reed Owl"), "{before}");
        app.admin.ingest(json!([licence])).await;
        let after = app.admin.node("Marsh Owl", text(&actor, "id")).await.unwrap();
        assert_eq!(text(&after, "tlp"), "TLP:GREEN");
        assert!(
            !after.to_string().contains("Reed Owl") && !after.to_string().contains("heron"),
            "{after}"
        );
        app.stop().await;
    });
}

#[test]
fn a_hundred_are_named_the_rest_is_counted_and_all_are_marked_anew() {
    run(async {
        let app = TestApp::shared().await;
        let licence = statement("a licence");
        let count = extent(150, 600);
        let tools: Vec<Value> = (0..count)
            .map(|n| marked(object("tool", &format!("Crowd {n}")), &licence))
            .collect();
        let results = app.admin.ingest(json!(tools)).await;
        assert_eq!(results["nodes_created"], count);
        let warnings = results["warnings"].as_array().unwrap();
        assert_eq!(warnings.len(), 101);
        assert!(
            warnings[100]
                .as_str()
                .unwrap()
                .starts_with(&format!("{} more objects", count - 100)),
            "{}",
            warnings[100]
        );
        let results = app.admin.ingest(json!([licence])).await;
        assert_eq!(results["remarked"], count);
        let answer = app.admin.ask_export("Crowd").await;
        assert_eq!((answer.status(), answer.header("x-held-back")), (200, None));
        app.stop().await;
    });
}

#[test]
fn a_definition_that_is_not_valid_defines_nothing() {
    run(async {
        let app = TestApp::shared().await;
        let empty = without(statement("x"), "definition");
        let tool = marked(object("tool", "Hollow Hook"), &empty);
        let results = app.admin.ingest(json!([empty, tool])).await;
        assert_eq!(results["warnings"].as_array().unwrap().len(), 1, "{results}");
        app.admin.ask_export("Hollow Hook").await.refused(422).await;
        let whole = with(empty, json!({"definition": {"statement": "x"}}));
        app.admin.ingest(json!([whole])).await;
        app.admin.ask_export("Hollow Hook").await.expect(200).await;
        app.stop().await;
    });
}

#[test]
fn a_marking_that_refers_to_a_strange_marking_is_still_a_definition() {
    run(async {
        let app = TestApp::shared().await;
        let nested = statement("of the licence");
        let licence = with(
            statement("a licence"),
            json!({"object_marking_refs": [nested["id"]]}),
        );
        let tool = marked(object("tool", "Nested Hook"), &licence);
        let results = app.admin.ingest(json!([licence, tool])).await;
        assert_eq!(results["warnings"], json!([]), "{results}");
        // The definition can't leave with its marking, so neither can what carries it.
        let answer = app.admin.ask_export("Nested Hook").await;
        assert_eq!(answer.header("x-held-back"), Some("1"));
        answer.refused(422).await;
        app.admin.ingest(json!([nested])).await;
        let bundle = app.admin.ask_export("Nested Hook").await.expect(200).await;
        assert_faithful(&bundle, &[tool, licence.clone(), nested.clone()]);
        let leaving = bundle["objects"].as_array().unwrap();
        let of = |id: &str| leaving.iter().find(|object| object["id"] == id).unwrap();
        assert_eq!(
            of(text(&licence, "id"))["object_marking_refs"],
            licence["object_marking_refs"]
        );
        assert_eq!(of(text(&nested, "id"))["definition"], nested["definition"]);
        app.stop().await;
    });
}

#[test]
fn a_definition_does_not_lower_below_what_was_stated_beside_the_original() {
    run(async {
        let app = TestApp::shared().await;
        app.admin
            .settings(json!({"tlp_ceiling": "RED", "elevated_clearance": true}))
            .await;
        let licence = statement("TLP:GREEN");
        let (one, two) = (object("tool", "Floor Hook"), object("tool", "Floor Nail"));
        let (one, two) = (marked(one, &licence), marked(two, &licence));
        let edge = marked(relationship(&one, "related-to", &two), &licence);
        app.admin.ingest(json!([one, two, edge])).await;
        let stated = json!({"x_mitre_tlp": "RED"});
        let again = json!([with(one.clone(), stated.clone()), with(edge.clone(), stated)]);
        app.admin.ingest(again).await;
        let results = app.admin.ingest(json!([licence])).await;
        assert_eq!(results["remarked"], 3, "{results}");
        for (tool, want) in [(&one, "TLP:RED"), (&two, "TLP:GREEN")] {
            let node = app.admin.node("Floor", text(tool, "id")).await.unwrap();
            assert_eq!(text(&node, "tlp"), want);
        }
        app.stop().await;
    });
}

#[test]
fn it_does_not_matter_in_which_order_the_markings_of_a_row_are_defined() {
    run(async {
        let app = TestApp::shared().await;
        app.admin.settings(json!({"tlp_ceiling": "GREEN"})).await;
        // The ids are random, and with them the order in which the markings of a bundle are looked at.
        for turn in 0..6 {
            let (green, licence) = (statement("TLP:GREEN"), statement("a licence"));
            let refs = json!({"object_marking_refs": [licence["id"], green["id"]]});
            let (one, two) = (
                object("tool", &format!("Order{turn} Hook")),
                object("tool", &format!("Order{turn} Nail")),
            );
            let edge = with(relationship(&one, "related-to", &two), refs.clone());
            let held = with(object("malware", &format!("Order{turn} Worm")), refs);
            app.admin.ingest(json!([one, two, edge, held])).await;
            let definitions = match turn {
                0 => vec![json!([green]), json!([licence])],
                1 => vec![json!([licence]), json!([green])],
                _ => vec![json!([licence, green])],
            };
            for definitions in definitions {
                app.admin.ingest(definitions).await;
            }
            let bundle = app
                .admin
                .ask_export(&format!("Order{turn}"))
                .await
                .expect(200)
                .await
                .to_string();
            for sent in [&edge, &held] {
                assert!(bundle.contains(text(sent, "id")), "{turn}");
            }
        }
        app.stop().await;
    });
}
