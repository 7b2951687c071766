//! Parts that STIX allows a bundle or an object to omit.

use reqwest::Method;
use serde_json::{Value, json};

use crate::helpers::{Answer, TestApp, run};
use crate::stix::{evidence, object, text, with, without};

#[test]
fn a_bundle_without_objects_changes_nothing_and_is_201() {
    run(async {
        let app = TestApp::shared().await;
        for body in [
            json!([]),
            json!({"bundle": []}),
            json!({"bundle": {"type": "bundle", "objects": []}}),
            json!({"bundle": {"type": "bundle", "id": "bundle--0c0ff1ce-0000-4000-8000-000000000000"}}),
            json!({"bundle": {"type": "bundle", "objects": null}}),
        ] {
            let answer = app.admin.post("/api/ingest/stix", &body).await.expect(201).await;
            let results = &answer["results"];
            for counter in [
                "nodes_created",
                "nodes_updated",
                "evidence_created",
                "edges_created",
                "skipped",
            ] {
                assert_eq!(results[counter], 0, "{body}: {counter}");
            }
            assert_eq!(
                (&answer["success"], &results["skipped_by_type"]),
                (&json!(true), &json!({})),
                "{body}"
            );
        }
        assert_eq!(app.admin.audited("ingest.stix").await.len(), 5);
        app.stop().await;
    });
}

#[test]
fn a_bundle_may_be_the_whole_body() {
    run(async {
        let app = TestApp::shared().await;
        let whole = json!({"type": "bundle", "id": "bundle--0c0ff1ce-0000-4000-8000-000000000000",
            "objects": [object("malware", "Plainbundle Loader")]});
        let answer = app.admin.post("/api/ingest/stix", &whole).await.expect(201).await;
        assert_eq!(answer["results"]["nodes_created"], 1, "{answer}");
        for body in [
            json!({"type": "report", "objects": []}),
            json!({"objects": []}),
            json!({"bundle": null}),
        ] {
            let error = app.admin.post("/api/ingest/stix", &body).await.refused(400).await;
            assert_eq!(error, "bundle: is required", "{body}");
        }
        let wrong = json!({"type": "bundle", "objects": 5});
        let error = app
            .admin
            .post("/api/ingest/stix", &wrong)
            .await
            .refused(400)
            .await;
        assert_eq!(error, "bundle.objects: must be an array");
        app.stop().await;
    });
}

#[test]
fn the_export_of_a_session_without_results_says_so() {
    run(async {
        let app = TestApp::shared().await;
        let found = app
            .admin
            .search_with("Nothing Anywhere", &[("mode", "structured")])
            .await;
        assert_eq!(found["count"], 0);
        let path = format!("/api/recall/sessions/{}/export.stix", text(&found, "recall_id"));
        let error = app.admin.get(&path).await.refused(422).await;
        assert_eq!(
            error,
            "the session has no results to export, and a STIX bundle needs at least one object"
        );
        app.stop().await;
    });
}

#[test]
fn a_malware_instance_needs_no_name_and_comes_out_without_one() {
    run(async {
        let app = TestApp::shared().await;
        let sample = json!(["file--30038539-3eb6-44bc-a59e-d0d3fe84695a"]);
        let bare = without(object("malware", "x"), "name");
        let nameless = [
            (bare.clone(), format!("unnamed {}", text(&bare, "id"))),
            (
                with(
                    without(object("malware", "x"), "name"),
                    json!({"aliases": ["Nightjar Loader"]}),
                ),
                "Nightjar Loader".into(),
            ),
            (
                with(
                    without(object("malware", "x"), "name"),
                    json!({"sample_refs": sample}),
                ),
                "malware of file--30038539-3eb6-44bc-a59e-d0d3fe84695a".into(),
            ),
        ];
        for (malware, name) in nameless {
            let results = app.admin.ingest(json!([malware])).await;
            assert_eq!(
                (&results["nodes_created"], &results["skipped"]),
                (&json!(1), &json!(0)),
                "{results}"
            );
            let node = app.admin.node(&name, text(&malware, "id")).await.unwrap();
            assert_eq!(
                (text(&node, "name"), text(&node, "node_type"), evidence(&node)),
                (name.as_str(), "tool", 1)
            );
            let found = app.admin.search_with(&name, &[]).await;
            let bundle = app.admin.export(text(&found, "recall_id")).await;
            let objects = bundle["objects"].as_array().unwrap();
            let exported = objects
                .iter()
                .find(|object| object["id"] == malware["id"])
                .unwrap();
            assert_eq!(exported["name"], Value::Null, "{exported}");
        }
        let family = with(
            without(object("malware", "x"), "name"),
            json!({"is_family": true}),
        );
        let results = app.admin.ingest(json!([family])).await;
        assert_eq!(
            (&results["nodes_created"], &results["skipped"]),
            (&json!(0), &json!(1)),
            "a family is known by its name: {results}"
        );
        app.stop().await;
    });
}

#[test]
fn a_body_may_begin_with_a_byte_order_mark() {
    run(async {
        let app = TestApp::shared().await;
        let bundle = json!([object("malware", "Markfirst Loader")]).to_string();
        let request = app.admin.request(Method::POST, "/api/ingest/stix");
        let marked = [b"\xef\xbb\xbf", bundle.as_bytes()].concat();
        let answer = request.header("Content-Type", "application/json").body(marked);
        let answer = Answer(answer.send().await.unwrap()).expect(201).await;
        assert_eq!(answer["results"]["nodes_created"], 1, "{answer}");
        app.stop().await;
    });
}
