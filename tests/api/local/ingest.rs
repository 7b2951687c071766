//! A batch ingest stores every valid item and reports the outcome of each one.

use serde_json::{Value, json};

use crate::helpers::run;
use crate::local::LocalApp;

/// The errors in a response, null for stored items.
fn errors(done: &Value) -> Vec<&Value> {
    let results = done["results"].as_array().unwrap();
    results.iter().map(|result| &result["error"]).collect()
}

#[test]
fn an_item_that_breaks_a_rule_has_its_own_error_and_the_others_go_in() {
    run(async {
        let app = LocalApp::spawn().await;
        let items = [
            json!({"content": "one about 10.0.0.1"}),
            json!({"content": "two", "source_ref": 5}),
            json!({"content": "three", "source_ref": "r".repeat(501), "evolve": "maybe"}),
            json!({"content": "four", "domain": "d".repeat(101)}),
            json!({"content": "five", "domain": ["cti"], "source_type": {}}),
            json!({"content": "six about 10.0.0.6", "source_ref": "a report"}),
        ];
        let done = app.client.ingest_notes(&items).await;
        assert_eq!(
            (&done["total"], &done["succeeded"], &done["failed"]),
            (&json!(6), &json!(2), &json!(4))
        );
        assert_eq!(
            errors(&done),
            [
                &Value::Null,
                &json!("source_ref: Input should be a valid string"),
                &json!(
                    "source_ref: String should have at most 500 characters; \
                     evolve: Input should be a valid boolean, unable to interpret input"
                ),
                &json!("domain: String should have at most 100 characters"),
                &json!("source_type: Input should be a valid string; domain: Input should be a valid string"),
                &Value::Null,
            ]
        );
        assert_eq!(
            done["results"][1],
            json!({"note_id": null, "status": "error", "entities": [], "success": false,
                   "error": "source_ref: Input should be a valid string"})
        );
        // Each result has the same position as its item.
        for (place, entity) in [(0, "10.0.0.1"), (5, "10.0.0.6")] {
            assert_eq!(done["results"][place]["entities"], json!([entity]));
            let path = format!(
                "/api/notes/{}",
                done["results"][place]["note_id"].as_str().unwrap()
            );
            let note = app.client.get(&path).await.expect(200).await;
            assert_eq!(note["content"], items[place]["content"]);
        }
        let storage = app.client.get("/api/storage").await.expect(200).await;
        assert_eq!(storage["total_notes"], 2);
        app.stop().await;
    });
}

#[test]
fn null_and_empty_fields_of_an_item_mean_the_default() {
    run(async {
        let app = LocalApp::spawn().await;
        let items = [
            json!({"content": "nulls", "source_ref": null, "domain": null, "source_type": null, "evolve": null}),
            json!({"content": "empty", "source_ref": "", "domain": "", "source_type": ""}),
        ];
        let done = app.client.ingest_notes(&items).await;
        assert_eq!(done["succeeded"], 2, "{done}");
        for result in done["results"].as_array().unwrap() {
            let path = format!("/api/notes/{}", result["note_id"].as_str().unwrap());
            let note = app.client.get(&path).await.expect(200).await;
            assert_eq!(
                (&note["domain"], &note["source_type"], &note["source_ref"]),
                (&json!("cti"), &json!("manual"), &json!(""))
            );
        }
        app.stop().await;
    });
}

#[test]
fn a_bad_item_never_refuses_the_others_whatever_is_wrong_with_it() {
    run(async {
        let app = LocalApp::spawn().await;
        for (bad, error) in [
            (
                json!({"content": ""}),
                "content: String should have at least 1 character",
            ),
            (
                json!({"content": "z".repeat(50_001)}),
                "content: String should have at most 50000 characters",
            ),
            (
                json!({"content": null}),
                "content: Input should be a valid string",
            ),
            (json!({"content": 5}), "content: Input should be a valid string"),
            (
                json!({"content": ["x"]}),
                "content: Input should be a valid string",
            ),
            (json!({"note": "x"}), "content: Field required"),
            (json!({}), "content: Field required"),
            (
                json!(7),
                "Input should be a valid dictionary or object to extract fields from",
            ),
            (
                json!(null),
                "Input should be a valid dictionary or object to extract fields from",
            ),
            (
                json!("text"),
                "Input should be a valid dictionary or object to extract fields from",
            ),
        ] {
            let items = [json!({"content": "fine", "evolve": false}), bad.clone()];
            let done = app.client.ingest_notes(&items).await;
            assert_eq!(
                (&done["succeeded"], &done["failed"]),
                (&json!(1), &json!(1)),
                "{done}"
            );
            assert_eq!(errors(&done), [&Value::Null, &json!(error)]);
            if bad.get("content").is_some() {
                let done = app.client.ingest_notes(&[bad]).await;
                assert_eq!(
                    (&done["succeeded"], &done["failed"]),
                    (&json!(0), &json!(1)),
                    "{done}"
                );
            }
        }
        app.stop().await;
    });
}

#[test]
fn a_list_without_any_content_is_refused_and_every_broken_rule_named() {
    run(async {
        let app = LocalApp::spawn().await;
        let items = json!({"items": [7, {"domain": 5}]});
        let refused = app.client.post("/api/ingest", &items).await.expect(422).await;
        let places: Vec<String> = refused["detail"]
            .as_array()
            .unwrap()
            .iter()
            .map(|issue| issue["loc"].to_string())
            .collect();
        assert_eq!(
            places,
            [
                r#"["body","items",0]"#,
                r#"["body","items",1,"content"]"#,
                r#"["body","items",1,"domain"]"#
            ]
        );
        let storage = app.client.get("/api/storage").await.expect(200).await;
        assert_eq!(storage["total_notes"], 0);
        app.stop().await;
    });
}
