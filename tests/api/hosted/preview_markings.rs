//! The markings under which a text is staged.

use serde_json::json;

use crate::helpers::{TestApp, run};
use crate::hosted::staging::{TEXT, results};
use crate::stix::text;

#[test]
fn an_unmarked_text_is_amber_or_the_highest_that_the_workspace_sees() {
    run(async {
        let app = TestApp::shared().await;
        for (ceiling, want) in [
            ("WHITE", "TLP:WHITE"),
            ("GREEN", "TLP:GREEN"),
            ("AMBER", "TLP:AMBER"),
            ("RED", "TLP:AMBER"),
        ] {
            let change = json!({"tlp_ceiling": ceiling, "elevated_clearance": true});
            app.admin.settings(change).await;
            let preview = app.admin.preview(&json!({"text": TEXT})).await;
            assert_eq!(preview["summary"]["missing_tlp"], 5);
            for found in preview["entities"].as_array().unwrap() {
                assert_eq!(found["proposed_tlp"], want, "{ceiling}");
            }
            let batch = app.admin.batch(&preview["batch_id"]).await;
            assert_eq!(batch["entities"], preview["entities"], "{ceiling}");
        }
        // An explicit default above the ceiling is still refused.
        let change = json!({"tlp_ceiling": "GREEN"});
        app.admin.settings(change).await;
        let body = json!({"text": TEXT, "default_tlp": "AMBER"});
        let error = app.admin.refuses("preview", &body).await;
        assert!(error.starts_with("default_tlp: is marked TLP:AMBER"), "{error}");
        app.stop().await;
    });
}

#[test]
fn a_text_that_states_more_than_the_caller_sees_is_staged_with_a_warning_and_waits() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        for (ceiling, stated, staged) in [
            ("AMBER", "TLP:RED", "TLP:AMBER"),
            ("AMBER", "TLP:AMBER+STRICT", "TLP:AMBER"),
            ("GREEN", "TLP:AMBER", "TLP:GREEN"),
        ] {
            admin.settings(json!({"tlp_ceiling": ceiling})).await;
            for mode in ["review", "auto"] {
                let body = json!({"text": format!("{stated}\n{TEXT}"), "ingest_mode": mode});
                let preview = admin.preview(&body).await;
                let counters = &preview["summary"];
                assert_eq!(
                    (&counters["sensitive_warns"], &counters["missing_tlp"]),
                    (&json!(5), &json!(0))
                );
                for found in preview["entities"].as_array().unwrap() {
                    assert_eq!(
                        (&found["proposed_tlp"], &found["status"]),
                        (&json!(staged), &json!("pending"))
                    );
                    let named = match stated {
                        "TLP:AMBER+STRICT" => "TLP:AMBER+PK",
                        plain => plain,
                    };
                    let warnings = found["warnings"].as_array().unwrap().iter();
                    let warned = |warning: &str| {
                        warning.starts_with("TLP sensitivity: ")
                            && warning.contains(&format!("states {named}"))
                    };
                    let warnings: Vec<&str> = warnings.map(|warning| warning.as_str().unwrap()).collect();
                    assert!(warnings.iter().any(|warning| warned(warning)), "{warnings:?}");
                    assert!(admin.named(text(found, "name")).await.is_empty());
                }
                let commit = admin.commit(&preview["batch_id"]).await;
                assert_eq!(commit, results([0, 0, 0, 0, 0, 5]));
            }
        }
        app.stop().await;
    });
}

#[test]
fn the_characters_of_a_text_are_counted_as_they_were_sent() {
    run(async {
        let app = TestApp::shared().await;
        for told in [
            "APT28\n\n\n\n\n",
            "          ",
            "\u{e4}\u{e4}\u{e4}\u{e4}\u{e4} 12 x",
        ] {
            assert_eq!(told.chars().count(), 10);
            app.admin.preview(&json!({"text": told})).await;
            let short: String = told.chars().skip(1).collect();
            let error = app.admin.refuses("preview", &json!({"text": short})).await;
            assert_eq!(error, "text: must have at least 10 characters");
        }
        app.stop().await;
    });
}
