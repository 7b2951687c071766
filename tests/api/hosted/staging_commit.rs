//! Concurrent commits, the automatic mode, and the markings of committed data.

use serde_json::{Value, json};
use test_support::extent;

use crate::helpers::{TestApp, run};
use crate::hosted::staging::{FOUND, TEXT, entity, results};
use crate::stix::{evidence, text};

const KEYS: [&str; 5] = [
    "nodes_created",
    "nodes_updated",
    "evidence_created",
    "merged",
    "discarded",
];

#[test]
fn commits_at_the_same_time_do_the_work_of_one() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let target = json!({"nodes": [{"name": "ZetaKit", "node_type": "tool"}]});
        admin.send_in("analyst", &target).await;
        let target = admin.one("ZetaKit").await;
        for round in 0..extent(2, 5) {
            let text = format!("{TEXT} It also called zq-evil{round}.com.");
            let preview = admin.preview(&json!({"text": text})).await;
            for (name, body) in [
                ("APT28", json!({"status": "accepted"})),
                (
                    "X-Agent",
                    json!({"status": "merged", "merge_target_id": target["id"]}),
                ),
                ("zq-evil.com", json!({"status": "rejected"})),
                (&format!("zq-evil{round}.com"), json!({"status": "accepted"})),
            ] {
                admin.decide(entity(&preview, name), body).await;
            }
            let commits: Vec<_> = (0..8)
                .map(|_| {
                    let (client, id) = (admin.clone(), preview["batch_id"].clone());
                    tokio::spawn(async move { client.commit(&id).await })
                })
                .collect();
            let mut sums = [0; KEYS.len()];
            for commit in commits {
                let done = commit.await.unwrap();
                assert_eq!(done["remaining"], 2, "{done}");
                for (sum, key) in sums.iter_mut().zip(KEYS) {
                    *sum += done[key].as_u64().unwrap();
                }
            }
            let first = u64::from(round == 0);
            assert_eq!(sums, [1 + first, 2 - first, 1, 1, 1]);
            assert_eq!(
                admin.commit(&preview["batch_id"]).await,
                results([0, 0, 0, 0, 0, 2])
            );
            assert_eq!(evidence(&admin.one("APT28").await), round + 1);
            assert_eq!(evidence(&admin.one("ZetaKit").await), round + 2);
        }
        app.stop().await;
    });
}

/// The same entities in many batches become one node each, however the commits interleave, and their text one record.
#[test]
fn many_batches_of_one_text_committed_at_the_same_time_are_one_set_of_nodes() {
    run(async {
        let app = TestApp::shared().await;
        let body = json!({"text": TEXT, "ingest_mode": "auto"});
        let previews: Vec<_> = (0..6)
            .map(|_| {
                let (client, body) = (app.admin.clone(), body.clone());
                tokio::spawn(async move { client.preview(&body).await })
            })
            .collect();
        for preview in previews {
            let preview = preview.await.unwrap();
            let batch = app.admin.batch(&preview["batch_id"]).await;
            assert_eq!(batch["batch"]["status"], "committed");
        }
        for (name, kind) in FOUND {
            let node = app.admin.one(name).await;
            assert_eq!((&node["node_type"], evidence(&node)), (&json!(kind), 1), "{name}");
        }
        app.stop().await;
    });
}

#[test]
fn the_automatic_mode_commits_at_once() {
    run(async {
        let app = TestApp::shared().await;
        let body = json!({"text": TEXT, "ingest_mode": "auto", "session_id": "s", "default_tlp": "GREEN"});
        let preview = app.admin.preview(&body).await;
        assert_eq!(preview["auto_ingest"], true);
        for (name, _) in FOUND {
            let node = app.admin.one(name).await;
            let staged = entity(&preview, name);
            assert_eq!(
                (&staged["status"], &staged["node_id"]),
                (&json!("accepted"), &node["id"])
            );
            assert_eq!(
                (&node["tlp"], &node["confidence"]),
                (&json!("TLP:GREEN"), &staged["proposed_confidence"])
            );
        }
        let batch = app.admin.batch(&preview["batch_id"]).await["batch"].clone();
        assert_eq!(
            (&batch["status"], &batch["ingest_mode"], &batch["session_id"]),
            (&json!("committed"), &json!("auto"), &json!("s"))
        );
        assert_eq!(app.admin.commit(&preview["batch_id"]).await, results([0; 6]));
        for action in ["ingest.preview", "ingest.batch_commit"] {
            let audited = app.admin.audited(action).await;
            assert!(!audited.is_empty(), "{action}");
        }
        app.stop().await;
    });
}

#[test]
fn the_automatic_mode_leaves_what_may_be_sensitive() {
    run(async {
        let app = TestApp::shared().await;
        let text = format!("TLP:RED\n{TEXT}");
        let body = json!({"text": text, "ingest_mode": "auto", "default_tlp": "GREEN"});
        let preview = app.admin.preview(&body).await;
        assert_eq!(
            (&preview["auto_ingest"], &preview["summary"]["sensitive_warns"]),
            (&json!(false), &json!(5))
        );
        for (name, _) in FOUND {
            assert!(app.admin.named(name).await.is_empty(), "{name}");
            assert_eq!(entity(&preview, name)["status"], "pending");
        }
        assert_eq!(
            app.admin.batch(&preview["batch_id"]).await["batch"]["status"],
            "open"
        );
        assert_eq!(
            app.admin.commit(&preview["batch_id"]).await,
            results([0, 0, 0, 0, 0, 5])
        );
        app.stop().await;
    });
}

/// A reviewer raises the marking for two open nodes: the sentence and the text get that marking, while the nodes stay
/// open.
#[test]
fn what_a_reviewer_marks_red_does_not_leave_by_its_relation_or_evidence() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let nodes = json!({"nodes": [{"name": "APT28", "node_type": "actor"}, {"name": "X-Agent", "node_type": "tool"}]});
        admin.send_in("analyst", &nodes).await;
        let preview = admin
            .preview(&json!({"text": TEXT, "default_tlp": "GREEN"}))
            .await;
        admin.open().await;
        for name in ["APT28", "X-Agent"] {
            let body = json!({"status": "accepted", "resolved_tlp": "TLP:RED"});
            admin.decide(entity(&preview, name), body).await;
        }
        assert_eq!(
            admin.commit(&preview["batch_id"]).await,
            results([0, 2, 1, 0, 0, 3])
        );
        admin
            .settings(json!({"tlp_ceiling": "AMBER", "elevated_clearance": false}))
            .await;
        let exported = async || {
            let session = admin.search_with("APT28 X-Agent", &[]).await;
            let bundle = admin.export(text(&session, "recall_id")).await;
            bundle.to_string()
        };
        assert!(!exported().await.contains("APT28 uses X-Agent."));
        let actor = admin.one("APT28").await;
        assert_eq!((evidence(&actor), &actor["tlp"]), (1, &json!("TLP:GREEN")));
        admin.open().await;
        assert!(exported().await.contains("APT28 uses X-Agent."));
        assert_eq!(evidence(&admin.one("APT28").await), 2);
        app.stop().await;
    });
}

#[test]
fn every_step_is_audited_and_the_chain_holds() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let preview = admin.preview(&json!({"text": TEXT})).await;
        let first = entity(&preview, "APT28");
        let body = json!({"status": "accepted", "resolved_tlp": "GREEN"});
        admin.decide(first, body).await;
        admin.commit(&preview["batch_id"]).await;
        let metadata = |entry: &Value| match &entry["metadata"] {
            Value::String(text) => serde_json::from_str(text).unwrap(),
            other => other.clone(),
        };
        for (action, resource, id) in [
            ("ingest.preview", "staging_batch", &preview["batch_id"]),
            ("ingest.staging_change", "staged_entity", &first["id"]),
            ("ingest.batch_commit", "staging_batch", &preview["batch_id"]),
        ] {
            let audited = admin.audited(action).await;
            assert_eq!(audited.len(), 1, "{action}");
            assert_eq!(
                (
                    &audited[0]["resource"],
                    &audited[0]["resource_id"],
                    &audited[0]["outcome"]
                ),
                (&json!(resource), id, &json!("success"))
            );
        }
        let change = metadata(&admin.audited("ingest.staging_change").await[0]);
        assert_eq!(
            (&change["status"], &change["resolved_tlp"]),
            (&json!("accepted"), &json!("TLP:GREEN"))
        );
        let commit = metadata(&admin.audited("ingest.batch_commit").await[0]);
        assert_eq!(
            (&commit["nodes_created"], &commit["remaining"]),
            (&json!(1), &json!(4))
        );
        let chain = admin.get("/api/audit/verify").await.expect(200).await;
        assert_eq!(chain["valid"], true);
        app.stop().await;
    });
}

#[test]
fn the_automatic_mode_leaves_a_name_that_several_nodes_have() {
    run(async {
        let app = TestApp::shared().await;
        let twin = |number: u32| {
            json!({"type": "malware", "spec_version": "2.1", "is_family": true, "name": "TwinLoader",
                "id": format!("malware--00000000-0000-4000-8000-{number:012}"),
                "created": "2026-01-01T00:00:00.000Z", "modified": "2026-01-01T00:00:00.000Z"})
        };
        let bundle = json!({"type": "bundle", "id": "bundle--00000000-0000-4000-8000-000000000009",
            "objects": [twin(1), twin(2)]});
        app.admin
            .send_in("stix", &json!({"bundle": bundle, "default_tlp": "GREEN"}))
            .await;
        let text = "The malware TwinLoader was seen. CVE-2024-3094 was used.";
        let body = json!({"text": text, "ingest_mode": "auto", "default_tlp": "GREEN"});
        let preview = app.admin.preview(&body).await;
        let committed = entity(&preview, "CVE-2024-3094");
        assert_eq!(committed["status"], "accepted");
        assert!(committed["node_id"].is_string(), "{committed}");
        let Some(twin) = preview["entities"]
            .as_array()
            .unwrap()
            .iter()
            .find(|e| e["name"] == "TwinLoader")
        else {
            panic!("TwinLoader is not found: {preview}");
        };
        assert_eq!(twin["status"], "pending");
        let warning = twin["warnings"][0].as_str().unwrap();
        for node in app.admin.named("TwinLoader").await {
            assert!(warning.starts_with("Ambiguous: ") && warning.contains(node["id"].as_str().unwrap()));
        }
        app.stop().await;
    });
}

#[test]
fn a_text_that_is_sent_again_is_no_further_evidence() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let auto =
            |text: &str, level: &str| json!({"text": text, "ingest_mode": "auto", "default_tlp": level});
        for (body, want) in [
            (auto(TEXT, "GREEN"), 1),
            (auto(TEXT, "GREEN"), 1),
            (auto(&format!(" {TEXT}\n"), "GREEN"), 1),
            // Another text, and the same one at another marking, are further sources.
            (auto(&format!("{TEXT} Again."), "GREEN"), 2),
            (auto(TEXT, "AMBER"), 3),
            (auto(TEXT, "AMBER"), 3),
        ] {
            admin.preview(&body).await;
            for (name, _) in FOUND {
                let node = admin.one(name).await;
                assert_eq!(evidence(&node), want, "{name} after {body}");
                let ids = node["linked_evidence_ids"].as_array().unwrap();
                let distinct: std::collections::HashSet<_> = ids.iter().map(Value::to_string).collect();
                assert_eq!(distinct.len(), ids.len(), "{ids:?}");
            }
        }
        app.stop().await;
    });
}
