//! Marking-definitions as other tools write them, and that they leave with what carries them.

use serde_json::{Value, json};

use crate::helpers::{Answer, Client, TestApp, keep_export, run};
use crate::stix::{id, object, relationship, statement, text, with};

const WHITE: &str = "marking-definition--613f2e26-407d-48c7-9eca-b8e91df99dc9";
const GREEN: &str = "marking-definition--34098fce-860f-48ae-8e50-ebd3cc5e41da";
const RED: &str = "marking-definition--5e57c739-391a-4eb3-b6be-7d15ca92d5ed";

fn definition(members: Value) -> Value {
    with(
        json!({"type": "marking-definition", "id": id("marking-definition"), "spec_version": "2.1",
            "created": "2020-01-01T00:00:00.000Z"}),
        members,
    )
}

fn marked(kind: &str, name: &str, marking: &Value) -> Value {
    with(
        object(kind, name),
        json!({"object_marking_refs": [marking["id"]]}),
    )
}

/// How OpenCTI, MISP and others write a level.
fn forms(level: &str) -> Vec<Value> {
    let prefixed = format!("TLP:{level}");
    vec![
        definition(
            json!({"definition_type": "statement", "definition": {"statement": "custom"},
            "x_opencti_definition_type": "TLP", "x_opencti_definition": prefixed}),
        ),
        definition(json!({"name": prefixed, "definition_type": "TLP", "definition": {"TLP": prefixed}})),
        definition(json!({"definition_type": "tlp", "definition": {"tlp": prefixed.to_lowercase()}})),
        definition(json!({"definition_type": "statement", "definition": {"statement": prefixed}})),
        definition(
            json!({"name": prefixed, "definition_type": "statement", "definition": {"statement": "see name"}}),
        ),
        definition(json!({"name": prefixed})),
    ]
}

impl Client {
    async fn open_red(&self) {
        self.settings(json!({"tlp_ceiling": "RED", "elevated_clearance": true, "red_export_grant": true}))
            .await;
    }

    async fn send_bundle(&self, objects: Value, default: &str) -> Value {
        let body = json!({"bundle": objects, "default_tlp": default});
        let answer = self.post("/api/ingest/stix", &body).await.expect(201).await;
        answer["results"].clone()
    }

    /// The number of warnings about an object.
    async fn warned(&self, object: Value) -> usize {
        let results = self.send_bundle(json!([object]), "GREEN").await;
        results["warnings"].as_array().unwrap().len()
    }

    async fn level_of(&self, name: &str) -> Value {
        let found = self.search_with(name, &[]).await;
        let found = found["results"].as_array().unwrap();
        let node = found.iter().find(|node| node["name"] == name);
        node.map_or(Value::Null, |node| node["tlp"].clone())
    }

    async fn export_answer(&self, query: &str) -> Answer {
        let found = self.search_with(query, &[]).await;
        self.get(&format!(
            "/api/recall/sessions/{}/export.stix",
            text(&found, "recall_id")
        ))
        .await
    }
}

fn exported<'a>(bundle: &'a Value, object: &Value) -> Option<&'a Value> {
    let objects = bundle["objects"].as_array().unwrap();
    objects.iter().find(|exported| exported["id"] == object["id"])
}

#[test]
fn a_level_is_read_wherever_it_is_written_and_its_definition_leaves_with_the_object() {
    run(async {
        let app = TestApp::shared().await;
        app.admin.open_red().await;
        for (level, want) in [
            ("AMBER+STRICT", "TLP:AMBER+PK"),
            ("RED", "TLP:RED"),
            ("CLEAR", "TLP:WHITE"),
        ] {
            for (at, marking) in forms(level).into_iter().enumerate() {
                let name = format!("Quillvane {level} {at}");
                let sent = marked("intrusion-set", &name, &marking);
                app.admin.send_bundle(json!([marking, sent]), "GREEN").await;
                assert_eq!(app.admin.level_of(&name).await, want, "{marking}");
                let bundle = app.admin.export_answer(&name).await.expect(200).await;
                let refs = &exported(&bundle, &sent).unwrap()["object_marking_refs"];
                assert_eq!(refs[0], marking["id"]);
                assert!(exported(&bundle, &marking).is_some(), "{marking}");
                keep_export(&bundle);
                // The definition came first; what it says is known to later bundles.
                let later = marked("tool", &format!("{name} later"), &marking);
                app.admin.send_bundle(json!([later]), "GREEN").await;
                assert_eq!(app.admin.level_of(text(&later, "name")).await, want, "{marking}");
            }
        }
        let strict = json!({"id": "marking-definition--826578e1-40ad-459f-bc73-ede076f81f37"});
        let sent = marked("tool", "Quillvane by id", &strict);
        let results = app.admin.send_bundle(json!([sent]), "GREEN").await;
        assert_eq!(results["warnings"], json!([]));
        assert_eq!(app.admin.level_of("Quillvane by id").await, "TLP:AMBER+PK");
        let bundle = app.admin.export_answer("Quillvane by id").await.expect(200).await;
        assert!(exported(&bundle, &strict).is_some());
        app.stop().await;
    });
}

#[test]
fn a_later_definition_lowers_only_where_it_states_a_level() {
    run(async {
        let app = TestApp::shared().await;
        let unreadable = definition(json!({"definition_type": "statement",
            "definition": {"statement": "custom"}, "x_opencti_definition": "TLP as on the cover"}));
        let cases = forms("AMBER+STRICT")
            .into_iter()
            .map(|marking| (marking, Value::Null, false))
            .chain([
                (unreadable, json!("TLP:AMBER"), true),
                (statement("a licence"), json!("TLP:AMBER"), false),
                (statement("TLP:GREEN"), json!("TLP:GREEN"), false),
            ]);
        for (at, (marking, want, held)) in cases.enumerate() {
            let name = format!("Brassloom {at}");
            let sent = marked("tool", &name, &marking);
            let results = app.admin.send_bundle(json!([sent]), "WHITE").await;
            assert_eq!(results["warnings"].as_array().unwrap().len(), 1, "{results}");
            assert_eq!(app.admin.level_of(&name).await, "TLP:AMBER");
            app.admin.send_bundle(json!([marking]), "WHITE").await;
            assert_eq!(app.admin.level_of(&name).await, want, "{marking}");
            let status = if held { 422 } else { 200 };
            if want != Value::Null {
                assert_eq!(app.admin.export_answer(&name).await.status(), status, "{marking}");
            }
        }
        app.stop().await;
    });
}

#[test]
fn a_definition_is_never_weakened_by_another_one_with_its_id() {
    run(async {
        let app = TestApp::shared().await;
        app.admin.open_red().await;
        let red = definition(json!({"definition_type": "tlp", "definition": {"tlp": "red"}}));
        let created = json!({"created": "2024-01-01T00:00:00.000Z"});
        app.admin
            .send_bundle(json!([red, marked("tool", "Redefined 0", &red)]), "GREEN")
            .await;
        for (at, weaker) in [
            json!({"definition": {"tlp": "white"}}),
            json!({"definition_type": "statement", "definition": {"statement": "free for all"}}),
            json!({"definition_type": "statement", "definition": {"statement": "TLP:CLEAR"}}),
        ]
        .into_iter()
        .enumerate()
        {
            let weaker = with(red.clone(), weaker);
            for (turn, weaker) in [weaker.clone(), with(weaker, created.clone())]
                .into_iter()
                .enumerate()
            {
                let name = format!("Redefined {at} {turn}");
                app.admin
                    .send_bundle(json!([weaker, marked("tool", &name, &red)]), "GREEN")
                    .await;
                assert_eq!(app.admin.level_of(&name).await, "TLP:RED", "{weaker}");
                let name = format!("{name} later");
                app.admin
                    .send_bundle(json!([marked("tool", &name, &red)]), "GREEN")
                    .await;
                assert_eq!(app.admin.level_of(&name).await, "TLP:RED", "{weaker}");
            }
        }
        assert_eq!(app.admin.level_of("Redefined 0").await, "TLP:RED");
        let fake = json!({"type": "marking-definition", "id": RED, "spec_version": "2.1",
            "created": "2017-01-20T00:00:00.000Z", "definition_type": "tlp", "definition": {"tlp": "white"}});
        app.admin
            .send_bundle(json!([fake, marked("tool", "Fake red", &fake)]), "GREEN")
            .await;
        assert_eq!(app.admin.level_of("Fake red").await, "TLP:RED");
        app.stop().await;
    });
}

#[test]
fn what_an_object_says_of_itself_is_never_weaker_than_its_markings_and_the_difference_is_named() {
    run(async {
        let app = TestApp::shared().await;
        app.admin.open_red().await;
        let granular = json!([{"marking_ref": RED, "selectors": ["name"]}]);
        for (at, (members, want, property)) in [
            (
                json!({"labels": ["tlp:white"], "object_marking_refs": [RED]}),
                "TLP:RED",
                "labels",
            ),
            (
                json!({"labels": ["tlp:clear"], "granular_markings": granular}),
                "TLP:RED",
                "labels",
            ),
            (
                json!({"x_mitre_tlp": "WHITE", "object_marking_refs": [RED]}),
                "TLP:RED",
                "x_mitre_tlp",
            ),
            (
                json!({"labels": ["tlp:red"], "object_marking_refs": [WHITE]}),
                "TLP:RED",
                "labels",
            ),
            (json!({"object_marking_refs": [WHITE, GREEN]}), "TLP:GREEN", ""),
        ]
        .into_iter()
        .enumerate()
        {
            let name = format!("Two minds {at}");
            let sent = with(object("malware", &name), members.clone());
            let results = app.admin.send_bundle(json!([sent]), "AMBER").await;
            assert_eq!(app.admin.level_of(&name).await, want, "{members}");
            let warnings = results["warnings"].as_array().unwrap();
            assert_eq!(warnings.is_empty(), property.is_empty(), "{results}");
            for warning in warnings {
                let warning = warning.as_str().unwrap();
                assert!(warning.starts_with(text(&sent, "id")), "{warning}");
                assert!(warning.contains(&format!("{property} says TLP:")), "{warning}");
            }
        }
        app.stop().await;
    });
}

#[test]
fn no_object_leaves_without_its_markings_whatever_marks_the_definition() {
    run(async {
        let app = TestApp::shared().await;
        for (at, (own, default)) in [
            (json!({"x_mitre_tlp": "TLP:RED"}), "GREEN"),
            (json!({"object_marking_refs": [RED]}), "GREEN"),
            (json!({}), "RED"),
        ]
        .into_iter()
        .enumerate()
        {
            let closed = with(statement("do not share"), own.clone());
            let names = [format!("Carrier {at} one"), format!("Carrier {at} two")];
            let granular = json!([{"marking_ref": closed["id"], "selectors": ["name"]}]);
            let one = with(
                object("tool", &names[0]),
                json!({"object_marking_refs": [closed["id"], GREEN]}),
            );
            let two = with(
                object("tool", &names[1]),
                json!({"object_marking_refs": [GREEN], "granular_markings": granular}),
            );
            let edge = with(
                relationship(&one, "related-to", &two),
                json!({"object_marking_refs": [GREEN, closed["id"]]}),
            );
            app.admin
                .send_bundle(json!([closed, one, two, edge]), default)
                .await;
            let bundle = app
                .admin
                .export_answer(&format!("Carrier {at}"))
                .await
                .expect(200)
                .await;
            assert!(exported(&bundle, &closed).is_some(), "{own}");
            for sent in [&one, &two, &edge] {
                let leaving = exported(&bundle, sent).unwrap();
                for key in ["object_marking_refs", "granular_markings"] {
                    assert_eq!(leaving[key], sent[key], "{own}");
                }
            }
        }
        app.stop().await;
    });
}

#[test]
fn what_is_known_of_a_definition_does_not_depend_on_hidden_bundles() {
    run(async {
        let app = TestApp::shared().await;
        let mut answers = Vec::new();
        for (at, hidden) in [
            None,
            Some((json!({}), json!({}), "RED")),
            Some((json!({"x_mitre_tlp": "RED"}), json!({}), "RED")),
            Some((json!({}), json!({"x_mitre_tlp": "RED"}), "GREEN")),
            Some((
                json!({"name": "TLP:GREEN"}),
                json!({"object_marking_refs": [RED]}),
                "GREEN",
            )),
        ]
        .into_iter()
        .enumerate()
        {
            let client = app.workspace(&format!("observer {at}")).await;
            let marking = statement("do not share");
            let early = marked("tool", "Early Heron", &marking);
            let mut told = vec![client.warned(early).await];
            if let Some((of_definition, of_object, default)) = hidden {
                client.open_red().await;
                let definition = with(marking.clone(), of_definition);
                let secret = with(marked("tool", "Hidden Heron", &marking), of_object.clone());
                let secret = match of_object.get("object_marking_refs") {
                    Some(_) => with(secret, json!({"object_marking_refs": [marking["id"], RED]})),
                    None => secret,
                };
                client.send_bundle(json!([definition, secret]), default).await;
                client
                    .settings(json!({"tlp_ceiling": "AMBER", "elevated_clearance": false,
                        "red_export_grant": false}))
                    .await;
            }
            let late = marked("tool", "Late Heron", &marking);
            told.push(client.warned(late).await);
            let levels = [
                client.level_of("Early Heron").await,
                client.level_of("Late Heron").await,
            ];
            let export = client.export_answer("Heron").await;
            let held = export.header("x-held-back").map(str::to_owned);
            answers.push((told, levels, export.status(), held));
        }
        for answer in &answers {
            assert_eq!(answer, &answers[0], "{answers:?}");
        }
        app.stop().await;
    });
}

#[test]
fn an_export_judges_by_what_leaves_and_not_by_the_row() {
    run(async {
        let app = TestApp::shared().await;
        let sent = with(
            object("tool", "Two Faced Heron"),
            json!({"x_mitre_tlp": "TLP:WHITE", "labels": ["tlp:red"]}),
        );
        app.admin.send_bundle(json!([sent]), "GREEN").await;
        assert_eq!(app.admin.level_of("Two Faced Heron").await, "TLP:WHITE");
        app.admin
            .export_answer("Two Faced Heron")
            .await
            .refused(403)
            .await;
        assert_eq!(app.admin.audited("recall.export_denied").await.len(), 1);
        app.stop().await;
    });
}

#[test]
fn a_level_that_is_stated_later_raises_what_carries_the_marking() {
    run(async {
        let app = TestApp::shared().await;
        app.admin.open_red().await;
        let later = json!({"created": "2024-01-01T00:00:00.000Z"});
        let level = json!({"name": "TLP:RED"});
        for (at, redefined) in [
            json!({"name": "TLP:RED"}),
            with(level.clone(), later.clone()),
            json!({"definition": {"statement": "TLP:RED"}}),
        ]
        .into_iter()
        .enumerate()
        {
            let marking = statement("a licence");
            let name = format!("Risen Heron {at}");
            let (one, two) = (
                marked("tool", &name, &marking),
                object("tool", &format!("Low Heron {at}")),
            );
            let edge = with(
                relationship(&one, "related-to", &two),
                json!({"object_marking_refs": [marking["id"]]}),
            );
            app.admin
                .send_bundle(json!([marking, one, two, edge]), "GREEN")
                .await;
            assert_eq!(app.admin.level_of(&name).await, "TLP:GREEN");
            let redefined = with(marking.clone(), redefined);
            let results = app.admin.send_bundle(json!([redefined]), "GREEN").await;
            assert_eq!(results["remarked"], 2, "{redefined}");
            assert_eq!(app.admin.level_of(&name).await, "TLP:RED", "{redefined}");
            let bundle = app
                .admin
                .export_answer(&format!("Heron {at}"))
                .await
                .expect(200)
                .await;
            let refs = |object: &Value| exported(&bundle, object).unwrap()["object_marking_refs"].clone();
            assert_eq!(refs(&edge), json!([marking["id"], RED]));
            let definition = exported(&bundle, &marking).unwrap().to_string();
            assert!(definition.contains("TLP:RED"), "{definition}");
            keep_export(&bundle);
            // A weaker text takes nothing back, neither from the rows nor from what leaves.
            let weaker = with(
                marking.clone(),
                json!({"created": "2025-01-01T00:00:00.000Z", "definition": {"statement": "free"}}),
            );
            let results = app.admin.send_bundle(json!([weaker]), "GREEN").await;
            assert_eq!(results["remarked"], 0, "{redefined}");
            let bundle = app
                .admin
                .export_answer(&format!("Heron {at}"))
                .await
                .expect(200)
                .await;
            let definition = exported(&bundle, &marking).unwrap().to_string();
            assert!(definition.contains("TLP:RED"), "{definition}");
            keep_export(&bundle);
        }
        app.stop().await;
    });
}

#[test]
fn a_level_that_is_known_from_red_alone_changes_nothing_for_others() {
    run(async {
        let app = TestApp::shared().await;
        app.admin.open_red().await;
        let marking = statement("a licence");
        let sent = marked("tool", "Calm Heron", &marking);
        app.admin.send_bundle(json!([marking, sent]), "GREEN").await;
        let stricter = with(marking, json!({"name": "TLP:RED", "x_mitre_tlp": "TLP:RED"}));
        let results = app.admin.send_bundle(json!([stricter]), "GREEN").await;
        assert_eq!(results["remarked"], 0, "{results}");
        assert_eq!(app.admin.level_of("Calm Heron").await, "TLP:GREEN");
        app.admin
            .settings(json!({"tlp_ceiling": "RED", "elevated_clearance": true, "red_export_grant": false}))
            .await;
        app.admin.export_answer("Calm Heron").await.refused(403).await;
        app.admin
            .settings(json!({"tlp_ceiling": "AMBER", "elevated_clearance": false}))
            .await;
        app.admin.export_answer("Calm Heron").await.expect(200).await;
        app.stop().await;
    });
}

#[test]
fn a_version_that_comes_again_with_a_marking_that_it_lacked_is_named() {
    run(async {
        let app = TestApp::shared().await;
        let (known, strange) = (statement("a licence"), statement("not sent"));
        let (one, two) = (object("tool", "Again Hook"), object("tool", "Again Nail"));
        let edge = relationship(&one, "related-to", &two);
        app.admin
            .send_bundle(json!([known, one, two, edge]), "GREEN")
            .await;
        for marking in [&known, &strange] {
            let refs = json!({"object_marking_refs": [marking["id"]]});
            let again = json!([with(one.clone(), refs.clone()), with(edge.clone(), refs)]);
            let results = app.admin.send_bundle(again, "GREEN").await;
            let warnings = results["warnings"].as_array().unwrap();
            assert_eq!(warnings.len(), 2, "{results}");
            for (sent, warning) in [&one, &edge].into_iter().zip(warnings) {
                let warning = warning.as_str().unwrap();
                assert!(
                    warning.contains(text(sent, "id")) && warning.contains(text(marking, "id")),
                    "{warning}"
                );
            }
        }
        let carrying = marked("tool", "Again Pin", &known);
        app.admin.send_bundle(json!([carrying]), "GREEN").await;
        let results = app.admin.send_bundle(json!([carrying]), "GREEN").await;
        assert_eq!(results["warnings"], json!([]), "{results}");
        app.stop().await;
    });
}
