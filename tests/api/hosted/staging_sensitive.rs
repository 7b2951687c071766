//! What has a sensitivity warning is taken only by a decision on its marking, and no text takes another one's nodes away.

use serde_json::{Value, json};

use crate::helpers::{TestApp, run};
use crate::hosted::staging::{FOUND, TEXT, entity, results};
use crate::stix::{evidence, text};

#[test]
fn an_entity_with_a_sensitivity_warning_is_taken_only_by_a_decision_on_its_marking() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        admin
            .send_in(
                "analyst",
                &json!({"nodes": [{"name": "ZetaKit", "node_type": "tool"}]}),
            )
            .await;
        let target = admin.one("ZetaKit").await["id"].clone();
        for layout in [
            "TLP:RED",
            "**TLP:** RED",
            "<b>TLP:</b>&nbsp;RED",
            "TLP\u{2236}\u{a0}ＲＥＤ",
        ] {
            let preview = admin.preview(&json!({"text": format!("{layout}\n{TEXT}")})).await;
            let tool = entity(&preview, "X-Agent");
            for body in [
                json!({"status": "accepted"}),
                json!({"status": "accepted", "accept_marking": false}),
                json!({"status": "accepted", "accept_marking": null, "resolved_tlp": null}),
                json!({"status": "merged", "merge_target_id": target}),
            ] {
                let error = admin.undecided(tool, body, 400).await;
                assert!(
                    error.starts_with("accept_marking: must be true, or resolved_tlp"),
                    "{error}"
                );
                assert!(error.contains("X-Agent") && error.contains("TLP:RED"), "{error}");
            }
            let error = admin
                .undecided(tool, json!({"status": "accepted", "accept_marking": "yes"}), 400)
                .await;
            assert!(error.starts_with("accept_marking: "), "{error}");
            assert_eq!(
                admin.batch(&preview["batch_id"]).await["entities"],
                preview["entities"]
            );
            for status in ["pending", "uncertain", "rejected"] {
                admin.decide(tool, json!({"status": status})).await;
            }
            let confirmed = json!({"status": "accepted", "accept_marking": true});
            assert_eq!(admin.decide(tool, confirmed).await["status"], "accepted");
            let marked = json!({"status": "accepted", "resolved_tlp": "AMBER"});
            admin.decide(entity(&preview, "APT28"), marked).await;
            // A marking that was given before is a decision too.
            let host = entity(&preview, "zq-evil.com");
            admin
                .decide(host, json!({"status": "pending", "resolved_tlp": "GREEN"}))
                .await;
            admin.decide(host, json!({"status": "accepted"})).await;
        }
        app.stop().await;
    });
}

#[test]
fn a_marking_above_what_the_workspace_sees_is_refused() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let preview = admin.preview(&json!({"text": TEXT})).await;
        let tool = entity(&preview, "X-Agent");
        for (ceiling, elevated, level) in [
            ("AMBER", false, "TLP:RED"),
            ("AMBER", true, "TLP:AMBER+PK"),
            ("RED", false, "TLP:AMBER+PK"),
            ("AMBER+PK", true, "TLP:RED"),
        ] {
            admin
                .settings(json!({"tlp_ceiling": ceiling, "elevated_clearance": elevated}))
                .await;
            for status in ["accepted", "uncertain", "pending"] {
                let body = json!({"status": status, "resolved_tlp": level});
                let error = admin.undecided(tool, body, 400).await;
                let want =
                    format!("resolved_tlp: is marked {level}, which nobody in this workspace could review");
                assert_eq!(error, want);
            }
        }
        let batch = admin.batch(&preview["batch_id"]).await;
        assert_eq!(batch["entities"].as_array().unwrap().len(), FOUND.len());
        app.stop().await;
    });
}

/// Each text is a source of its own: a strict one adds evidence with its marking, and the open node stays.
#[test]
fn a_red_text_leaves_a_green_node_where_it_is() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        admin.open().await;
        for level in ["GREEN", "AMBER", "RED"] {
            let told = format!("TLP:{level}\n\n{TEXT}");
            let preview = admin.preview(&json!({"text": told})).await;
            for found in preview["entities"].as_array().unwrap() {
                assert_eq!(found["proposed_tlp"], format!("TLP:{level}"));
                admin.decide(found, json!({"status": "accepted"})).await;
            }
            admin.commit(&preview["batch_id"]).await;
        }
        assert_eq!(evidence(&admin.one("APT28").await), 3);
        admin
            .settings(json!({"tlp_ceiling": "AMBER", "elevated_clearance": false}))
            .await;
        for (name, _) in FOUND {
            let node = admin.one(name).await;
            assert_eq!(
                (&node["tlp"], evidence(&node)),
                (&json!("TLP:GREEN"), 2),
                "{name}"
            );
        }
        app.stop().await;
    });
}

#[test]
fn the_answer_says_whether_the_automatic_mode_wrote_something() {
    run(async {
        let app = TestApp::shared().await;
        let auto = async |told: &str| {
            let body = json!({"text": told, "ingest_mode": "auto"});
            app.admin.preview(&body).await["auto_ingest"].clone()
        };
        assert_eq!(auto(&format!("TLP: **RED**\n{TEXT}")).await, false);
        assert_eq!(auto("Nothing that is known stands in here.").await, false);
        assert_eq!(auto(TEXT).await, true);
        assert_eq!(
            app.admin.preview(&json!({"text": TEXT})).await["auto_ingest"],
            false
        );
        app.stop().await;
    });
}

/// What was marked before the ceiling was lowered is neither committed nor counted until somebody may see it again.
#[test]
fn what_is_hidden_from_the_caller_waits_and_is_not_counted() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let preview = admin
            .preview(&json!({"text": "zq-open.com and zq-secret.com were called."}))
            .await;
        admin.open().await;
        let red = json!({"status": "accepted", "resolved_tlp": "RED"});
        admin.decide(entity(&preview, "zq-secret.com"), red).await;
        admin
            .settings(json!({"tlp_ceiling": "AMBER", "elevated_clearance": false}))
            .await;
        admin
            .decide(entity(&preview, "zq-open.com"), json!({"status": "accepted"}))
            .await;
        let id = &preview["batch_id"];
        assert_eq!(admin.commit(id).await["nodes_created"], 1);
        let batch = admin.batch(id).await;
        assert_eq!(batch["batch"]["status"], "committed", "{batch}");
        assert!(!batch.to_string().contains("zq-secret"), "{batch}");
        assert_eq!(admin.commit(id).await, results([0; 6]));
        admin.open().await;
        assert_eq!(admin.commit(id).await["nodes_created"], 1);
        assert_eq!(text(&admin.one("zq-secret.com").await, "tlp"), "TLP:RED");
        app.stop().await;
    });
}

/// A value without what differs between workspaces: ids and times.
fn without_ids(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let field = |(key, value): (&String, &Value)| {
                let is_own = key.ends_with("_at") || key.ends_with("id");
                let value = if is_own {
                    json!(value.is_string())
                } else {
                    without_ids(value)
                };
                (key.clone(), value)
            };
            Value::Object(fields.iter().map(field).collect())
        }
        Value::Array(items) => items.iter().map(without_ids).collect(),
        plain => plain.clone(),
    }
}

/// What a caller is told of a batch, and where the next text of its session goes, follows from what the caller sees.
#[test]
fn a_batch_is_as_if_what_is_hidden_from_the_caller_were_not_in_it() {
    run(async {
        let app = TestApp::shared().await;
        let closed = json!({"tlp_ceiling": "AMBER", "elevated_clearance": false});
        let mut seen = Vec::new();
        for secret in ["", " zq-secret.com was called."] {
            let client = app.workspace(&format!("batch{secret}")).await;
            client.open().await;
            let preview = async |told: &str| {
                let body = json!({"text": told, "session_id": "s", "default_tlp": "AMBER"});
                client.preview(&body).await
            };
            let first = preview(&format!("zq-open.com and zq-left.com were called.{secret}")).await;
            let id = &first["batch_id"];
            if !secret.is_empty() {
                let red = json!({"status": "pending", "resolved_tlp": "RED"});
                client.decide(entity(&first, "zq-secret.com"), red).await;
            }
            client.settings(closed.clone()).await;
            let mut told = vec![client.batch(id).await];
            for (name, status) in [("zq-open.com", "accepted"), ("zq-left.com", "rejected")] {
                let decision = json!({ "status": status });
                told.push(client.decide(entity(&first, name), decision).await);
            }
            told.extend([client.commit(id).await, client.batch(id).await]);
            let done = told.last().unwrap()["batch"].clone();
            assert_eq!(done["status"], "committed", "{done}");
            let more = preview("zq-more.com was called.").await;
            assert_ne!(more["batch_id"], *id);
            let (again, after) = (client.commit(id).await, client.batch(id).await);
            told.extend([more.clone(), again, after.clone()]);
            assert_eq!(after["batch"]["committed_at"], done["committed_at"]);
            seen.push(told.iter().map(without_ids).collect::<Vec<_>>());
            if secret.is_empty() {
                continue;
            }
            // Whoever may see it finds it and decides on it.
            client.open().await;
            let found = client.batch(id).await;
            assert_eq!(found["batch"]["status"], "open", "{found}");
            assert!(found["batch"]["committed_at"].is_null(), "{found}");
            assert_ne!(preview("zq-most.com was called.").await["batch_id"], *id);
            let hidden = entity(&found, "zq-secret.com");
            client.decide(hidden, json!({"status": "accepted"})).await;
            assert_eq!(client.commit(id).await["nodes_created"], 1);
            assert_eq!(client.batch(id).await["batch"]["status"], "committed");
            client.settings(closed.clone()).await;
            assert_eq!(client.batch(id).await["batch"], after["batch"]);
        }
        assert_eq!(seen[0], seen[1]);
        app.stop().await;
    });
}
