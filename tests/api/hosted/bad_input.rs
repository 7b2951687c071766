//! Invalid input: the error names the field, and valid data in the same request is kept.

use serde_json::{Value, json};

use crate::helpers::{Client, TestApp, run, settings};
use crate::stix::{id, names, object, refusal, relationship, text, with, without};

const STIX: &str = "/api/ingest/stix";

async fn assert_refused(client: &Client, body: impl Into<Vec<u8>>, names_field: &str) {
    let body: Vec<u8> = body.into();
    let shown = String::from_utf8_lossy(&body[..body.len().min(80)]).into_owned();
    let answer = client.post_bytes(STIX, body).await;
    let error = refusal(answer, 400, &shown).await;
    assert!(error.starts_with(names_field), "{shown}: {error}");
    assert!(error.len() < 500, "{shown}: the error repeats the input");
}

#[test]
fn a_body_that_is_no_request_is_400_and_names_the_field() {
    run(async {
        let app = TestApp::shared().await;
        let tool = object("tool", "t");
        let nan = format!("{{\"bundle\":[{tool}],\"default_confidence\":NaN}}");
        for (body, field) in [
            ("", "body: is not valid JSON"),
            ("not json", "body: is not valid JSON"),
            ("{\"bundle\":", "body: is not valid JSON"),
            ("{\"bundle\":[]} trailing", "body: is not valid JSON"),
            ("{\"bundle\":[{\"a\":\"\\ud800\"}]}", "body: is not valid JSON"),
            ("{\"bundle\":[{\"a\":1e999}]}", "body: is not valid JSON"),
            (&nan, "body: is not valid JSON"),
            ("null", "body: must be"),
            ("5", "body: must be"),
            ("\"text\"", "body: must be"),
            ("{}", "bundle: is required"),
            ("{\"bundle\":null}", "bundle: is required"),
            ("{\"bundle\":\"text\"}", "bundle: must be"),
            ("{\"bundle\":true}", "bundle: must be"),
            ("{\"bundle\":{}}", "bundle.type: must be"),
            (
                "{\"bundle\":{\"type\":\"report\",\"objects\":[]}}",
                "bundle.type: must be",
            ),
            ("{\"bundle\":{\"type\":7,\"objects\":[]}}", "bundle.type: must be"),
            (
                "{\"bundle\":{\"type\":\"bundle\",\"objects\":{}}}",
                "bundle.objects: must be an array",
            ),
            (
                "{\"bundle\":{\"type\":\"bundle\",\"objects\":\"\"}}",
                "bundle.objects: must be an array",
            ),
        ] {
            assert_refused(&app.admin, body, field).await;
        }
        assert_refused(
            &app.admin,
            vec![b'"', 0xff, 0xfe, b'"'],
            "body: is not valid JSON",
        )
        .await;
        for (key, value, field) in [
            ("default_tlp", json!("TLP:PINK"), "default_tlp: must be one of"),
            ("default_tlp", json!(""), "default_tlp: must be one of"),
            ("default_tlp", json!(3), "default_tlp: must be a string"),
            ("default_tlp", json!(["TLP:RED"]), "default_tlp: must be a string"),
            (
                "default_confidence",
                json!(1.5),
                "default_confidence: must be a number from 0 to 1",
            ),
            (
                "default_confidence",
                json!(-1),
                "default_confidence: must be a number from 0 to 1",
            ),
            (
                "default_confidence",
                json!(-0.0001),
                "default_confidence: must be a number from 0 to 1",
            ),
            (
                "default_confidence",
                json!("high"),
                "default_confidence: must be a number from 0 to 1",
            ),
            (
                "default_confidence",
                json!({}),
                "default_confidence: must be a number from 0 to 1",
            ),
        ] {
            let body = with(json!({"bundle": [tool]}), json!({key: value}));
            assert_refused(&app.admin, body.to_string(), field).await;
        }
        assert_eq!(
            names(&app.admin.search("t").await),
            Vec::<&str>::new(),
            "a refused body left something"
        );
        app.stop().await;
    });
}

#[test]
fn a_body_over_the_limit_is_413_and_the_connection_survives_for_others() {
    run(async {
        let mut small = settings("mem://");
        small.server.body_limit = 4096;
        let app = TestApp::with(small).await;
        let fits =
            json!({"bundle": [with(object("tool", "fits"), json!({"description": "x".repeat(3000)}))]});
        app.admin.post(STIX, &fits).await.expect(201).await;
        let large =
            json!({"bundle": [with(object("tool", "large"), json!({"description": "x".repeat(4096)}))]});
        let error = refusal(app.admin.post(STIX, &large).await, 413, "4 KiB").await;
        assert!(error.contains("4096"), "{error}");
        for _ in 0..10 {
            let error = refusal(
                app.admin.post_bytes(STIX, vec![b' '; 30 << 20]).await,
                413,
                "30 MiB",
            )
            .await;
            assert!(error.contains("4096"), "{error}");
        }
        let login = json!({"email": "a".repeat(100_000), "password": "x"});
        refusal(
            app.anonymous().post("/api/auth/login", &login).await,
            413,
            "login",
        )
        .await;
        app.stop().await;

        let app = TestApp::shared().await;
        let mut body = String::from("{\"bundle\":[{\"type\":\"tool\",\"name\":\"");
        body.push_str(&"x".repeat(65 << 20));
        body.push_str("\"}]}");
        let error = refusal(app.admin.post_bytes(STIX, body).await, 413, "65 MiB").await;
        assert!(error.contains("67108864"), "{error}");
        assert_eq!(
            app.admin.ingest(json!([object("tool", "after")])).await["nodes_created"],
            1
        );
        app.stop().await;
    });
}

#[test]
fn deep_nesting_is_refused_or_kept_but_never_harms() {
    run(async {
        let app = TestApp::shared().await;
        for depth in [200, 100_000] {
            let body = format!("{{\"bundle\":[{{\"x\":{}", "[".repeat(depth));
            assert_refused(&app.admin, body, "body: is not valid JSON: EOF").await;
            let body = format!(
                "{{\"bundle\":[{{\"x\":{}{}}}]}}",
                "[".repeat(depth),
                "]".repeat(depth)
            );
            let rule = "body: is not valid JSON: objects[0]: recursion limit";
            assert_refused(&app.admin, body, rule).await;
            let body = "{\"bundle\":".repeat(depth);
            assert_refused(&app.admin, body, "body: is not valid JSON: EOF").await;
        }
        let mut nested = json!("bottom");
        for _ in 0..100 {
            nested = json!({"deep": nested});
        }
        let tool = with(object("tool", "Deep Well"), json!({"x_nested": nested}));
        let results = app.admin.ingest(json!([tool])).await;
        assert_eq!(results["nodes_created"], 1, "{results}");
        let exported = app
            .admin
            .export_of("Deep Well", std::slice::from_ref(&tool))
            .await;
        assert_eq!(exported[text(&tool, "id")]["x_nested"], tool["x_nested"]);
        app.stop().await;
    });
}

#[test]
fn one_bad_object_is_skipped_with_its_reason_and_loses_nothing_else() {
    run(async {
        let app = TestApp::shared().await;
        let tool = || object("tool", "bad");
        let long = "x".repeat(10_000_000);
        for (bad, reason) in [
            (with(tool(), json!({"name": "a\u{0}b"})), "name: holds a NUL"),
            (
                with(tool(), json!({"x_deep": {"list": ["a\u{0}b"]}})),
                "x_deep.list[0]: holds a NUL",
            ),
            (with(tool(), json!({"x_\u{0}": 1})), "a property name holds a NUL"),
            (
                with(tool(), json!({"description": long})),
                "description: longer than",
            ),
            (
                with(tool(), json!({"labels": ["tlp:pink"]})),
                "labels: must be one of TLP:WHITE",
            ),
            (
                with(tool(), json!({"x_mitre_tlp": "PINK"})),
                "x_mitre_tlp: must be one of TLP:WHITE",
            ),
            (
                with(tool(), json!({"x_mitre_tlp": 4})),
                "x_mitre_tlp: must be a string",
            ),
            (with(tool(), json!({"confidence": 101})), "confidence"),
            (with(tool(), json!({"confidence": -1})), "confidence"),
            (with(tool(), json!({"confidence": "high"})), "confidence"),
            (with(tool(), json!({"name": 5})), "name"),
            (with(tool(), json!({"name": " "})), "name"),
            (without(tool(), "name"), "name"),
            (with(tool(), json!({"modified": "yesterday"})), "modified"),
            (
                with(tool(), json!({"created": "2021-01-01T00:00:00.000Z"})),
                "modified",
            ),
            (with(tool(), json!({"revoked": "no"})), "revoked"),
            (with(tool(), json!({"labels": "one"})), "labels"),
            (
                with(tool(), json!({"object_marking_refs": ["marking-definition--x"]})),
                "object_marking_refs",
            ),
            (
                with(tool(), json!({"external_references": [{"source_name": 1}]})),
                "external_references",
            ),
            (without(tool(), "id"), "id: is required"),
            (with(tool(), json!({"id": 5})), "id: is required"),
            (
                with(tool(), json!({"id": "tool--not-a-uuid"})),
                "id: must be tool--UUID",
            ),
            (
                with(tool(), json!({"id": id("malware")})),
                "id: must be tool--UUID",
            ),
            (
                with(tool(), json!({"id": format!("{}x", id("tool"))})),
                "id: must be tool--UUID",
            ),
            (with(tool(), json!({"type": "Tool"})), "id: must be Tool--UUID"),
            (without(tool(), "type"), "id: must be unknown--UUID"),
            (
                with(object("indicator", "bad"), json!({"pattern": "[not a pattern"})),
                "pattern",
            ),
            (without(object("indicator", "bad"), "pattern"), "pattern"),
            (json!("a text"), "must be an object"),
            (json!(5), "must be an object"),
            (json!(null), "must be an object"),
            (json!([]), "must be an object"),
        ] {
            let shown: String = bad.to_string().chars().take(200).collect();
            let good = object("tool", "good");
            let results = app.admin.ingest(json!([bad, good])).await;
            assert_eq!(results["nodes_created"], 1, "{shown}: {results}");
            assert_eq!(results["skipped"], 1, "{shown}: {results}");
            let got = text(&results["skipped_objects"][0], "reason");
            assert!(got.contains(reason), "{shown}: {got}");
            assert!(got.len() < 500, "{shown}: the reason repeats the input");
            let alone = app.admin.ingest(json!([bad])).await;
            assert_eq!(alone["nodes_created"], 0, "{shown}");
        }
        app.stop().await;
    });
}

#[test]
fn other_types_are_counted_as_skipped_and_kept() {
    run(async {
        let app = TestApp::shared().await;
        let tool = object("tool", "t");
        let location = json!({"type": "location", "id": id("location"), "region": "africa"});
        let objects = json!([
            tool, location,
            {"type": "x-own-thing", "id": id("x-own-thing")},
            {"type": "x-own-thing", "id": id("x-own-thing")},
            relationship(&tool, "located-at", &location),
        ]);
        let results = app.admin.ingest(objects).await;
        assert_eq!(
            (&results["nodes_created"], &results["skipped"]),
            (&json!(1), &json!(4)),
            "{results}"
        );
        let types = &results["skipped_by_type"];
        let kept = |number: u64| json!({"count": number, "kept": number, "reasons": {}});
        assert_eq!(types["x-own-thing"], kept(2));
        assert_eq!(types["location"], kept(1));
        assert_eq!(types["relationship"], kept(1));
        assert_eq!(
            results["kept"],
            json!({"objects_created": 3, "objects_updated": 0, "relationships_created": 1})
        );
        assert_eq!(types.as_object().unwrap().len(), 3);
        app.stop().await;
    });
}

#[test]
fn the_newest_of_duplicate_ids_wins_whatever_the_order() {
    run(async {
        let app = TestApp::shared().await;
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            let base = object("tool", "Version");
            let versions: Vec<Value> = (0..3)
                .map(|n| with(base.clone(), json!({"name": format!("Version {n}"), "modified": format!("2021-01-0{}T00:00:00.000Z", n + 1)})))
                .collect();
            let sent: Vec<&Value> = order.iter().map(|i| &versions[*i]).collect();
            let results = app.admin.ingest(json!(sent)).await;
            assert_eq!(
                (&results["nodes_created"], &results["skipped"]),
                (&json!(1), &json!(2)),
                "{results}"
            );
            let node = app.admin.node("Version", text(&base, "id")).await.unwrap();
            assert_eq!(node["name"], "Version 2");
        }
        app.stop().await;
    });
}

#[test]
fn lists_in_place_of_bundles_are_taken_and_unknown_fields_ignored() {
    run(async {
        let app = TestApp::shared().await;
        let bodies = [
            json!({"bundle": [object("tool", "in a list")]}),
            json!([object("tool", "bare list")]),
            json!({"bundle": {"type": "bundle", "objects": [object("tool", "no id")]}, "surprise": {"a": 1}}),
            json!({"bundle": {"type": "bundle", "id": "bundle--x", "spec_version": "2.0", "surprise": 1,
                "objects": [object("tool", "old")]}, "default_tlp": null, "default_confidence": null}),
        ];
        for body in bodies {
            let answer = app.admin.post(STIX, &body).await.expect(201).await;
            assert_eq!(
                (&answer["success"], &answer["results"]["nodes_created"]),
                (&json!(true), &json!(1))
            );
        }
        app.stop().await;
    });
}
