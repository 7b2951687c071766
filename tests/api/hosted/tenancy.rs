//! Two workspaces with the same STIX ids: nothing in one can be seen or guessed from the other.

use std::collections::HashSet;

use reqwest::Method;
use serde_json::{Value, json};

use crate::helpers::{Answer, Client, TestApp, encode, run};
use crate::stix;

/// The same five ids in every workspace, with the workspace's own word in every text.
fn objects(ids: &[String; 5], word: &str) -> Value {
    let identity = json!({"type": "identity", "id": ids[0], "spec_version": "2.1", "name": format!("Desk {word}"),
        "created": "2020-01-01T00:00:00.000Z", "modified": "2020-01-01T00:00:00.000Z", "identity_class": "organization"});
    let marking = stix::with(stix::statement(&format!("only {word}")), json!({"id": ids[1]}));
    let common = json!({"created_by_ref": ids[0], "object_marking_refs": [ids[1]]});
    let actor = stix::with(
        stix::with(
            stix::object("intrusion-set", &format!("Actor {word}")),
            common.clone(),
        ),
        json!({"id": ids[2], "description": format!("shared story {word}")}),
    );
    let tool = stix::with(
        stix::with(stix::object("tool", &format!("Tool {word}")), common),
        json!({"id": ids[3], "description": format!("shared story {word}")}),
    );
    let uses = stix::with(
        stix::relationship(&actor, "uses", &tool),
        json!({"id": ids[4], "description": format!("edge {word}")}),
    );
    json!([identity, marking, actor, tool, uses])
}

/// Fails if `text` contains the word of the other workspace.
#[track_caller]
fn clean(text: &str, word: &str) {
    assert!(!text.contains(word), "{word} leaks: {text}");
}

async fn text_of(client: &Client, path: &str, status: u16) -> String {
    let (got, text) = client.get(path).await.whole().await;
    assert_eq!(got, status, "{path}: {text}");
    text
}

#[test]
fn the_same_ids_in_two_workspaces_never_meet() {
    run(async {
        let app = TestApp::shared().await;
        let tenants = [app.workspace("first").await, app.workspace("second").await];
        let words = ["heronword", "ottersign"];
        let kinds = [
            "identity",
            "marking-definition",
            "intrusion-set",
            "tool",
            "relationship",
        ];
        let ids = kinds.map(stix::id);
        for (tenant, word) in tenants.iter().zip(words) {
            let done = tenant.ingest(objects(&ids, word)).await;
            // Objects of the other workspace are not duplicates here.
            assert_eq!(
                (
                    &done["nodes_created"],
                    &done["edges_created"],
                    &done["evidence_created"]
                ),
                (&json!(2), &json!(1), &json!(2)),
                "{done}"
            );
        }
        let mut node_ids: Vec<HashSet<String>> = Vec::new();
        for (at, (tenant, own)) in tenants.iter().zip(words).enumerate() {
            let other = words[1 - at];
            let mut seen = HashSet::new();
            // The other workspace's word and exact names, and the shared ids and texts.
            for question in [
                own,
                other,
                "Actor heronword",
                "Tool ottersign",
                "shared story",
                ids[2].as_str(),
            ] {
                for mode in ["blended", "structured"] {
                    let more = [("mode", mode), ("include_rejected", "true")];
                    let found = tenant.search_with(question, &more).await;
                    let results = found["results"].as_array().unwrap();
                    clean(&found["results"].to_string(), other);
                    assert_eq!(found["count"], json!(results.len()));
                    // An actor and a tool with their author.
                    assert!(results.len() <= 3, "{found}");
                    seen.extend(results.iter().map(|node| stix::text(node, "id").to_owned()));

                    let recall = stix::text(&found, "recall_id");
                    let session = tenant.get(&format!("/api/recall/sessions/{recall}")).await;
                    let session = session.expect(200).await;
                    assert_eq!(session["result_count"], json!(results.len()));
                    if !results.is_empty() {
                        let bundle = tenant.export(recall).await;
                        clean(&bundle.to_string(), other);
                    }
                }
                let query = encode(&[("q", question), ("limit", "100")]);
                let found = text_of(tenant, &format!("/api/recall/semantic?{query}"), 200).await;
                clean(&found, other);
            }
            node_ids.push(seen);
        }
        assert_eq!(node_ids[0].len(), 3);
        assert!(node_ids[0].is_disjoint(&node_ids[1]));
        app.stop().await;
    });
}

#[test]
fn an_export_holds_the_own_supporting_objects_and_not_those_of_the_same_id_elsewhere() {
    run(async {
        let app = TestApp::shared().await;
        let tenants = [app.workspace("first").await, app.workspace("second").await];
        let kinds = [
            "identity",
            "marking-definition",
            "intrusion-set",
            "tool",
            "relationship",
        ];
        let ids = kinds.map(stix::id);
        let objects = ["heronword", "ottersign"].map(|word| objects(&ids, word));
        for (tenant, objects) in tenants.iter().zip(&objects) {
            tenant.ingest(objects.clone()).await;
        }
        for (tenant, objects) in tenants.iter().zip(&objects) {
            let exported = tenant
                .export_of("shared story", objects.as_array().unwrap())
                .await;
            assert!(ids.iter().all(|id| exported.contains_key(id)), "{exported:?}");
        }
        app.stop().await;
    });
}

#[test]
fn a_marking_that_only_another_workspace_knows_is_unknown() {
    run(async {
        let app = TestApp::shared().await;
        let (first, second) = (app.workspace("first").await, app.workspace("second").await);
        let marking = stix::statement("a licence");
        let marked = |name: &str| {
            stix::with(
                stix::object("tool", name),
                json!({"object_marking_refs": [marking["id"]]}),
            )
        };
        first.ingest(json!([marking, marked("Knows")])).await;
        let known = first.ingest(json!([marked("Knows too")])).await;
        assert_eq!(
            (&known["nodes_created"], &known["warnings"]),
            (&json!(1), &json!([]))
        );
        let unknown = second.ingest(json!([marked("Does not know")])).await;
        let warning = unknown["warnings"][0].as_str().unwrap();
        assert!(warning.contains("held back"), "{warning}");
        // A definition that arrives in one workspace does not release objects in the other.
        let released = first.ingest(json!([marking])).await;
        assert_eq!(released["remarked"], 0);
        let found = second.search("Does not know").await;
        assert_eq!(found["results"][0]["tlp"], "TLP:AMBER");
        app.stop().await;
    });
}

#[test]
fn a_relationship_does_not_reach_nodes_of_another_workspace() {
    run(async {
        let app = TestApp::shared().await;
        let (first, second) = (app.workspace("first").await, app.workspace("second").await);
        let (actor, tool) = (stix::object("intrusion-set", "A"), stix::object("tool", "T"));
        first.ingest(json!([actor, tool])).await;
        let done = second
            .ingest(json!([actor, stix::relationship(&actor, "uses", &tool)]))
            .await;
        assert_eq!(
            (&done["nodes_created"], &done["edges_created"]),
            (&json!(1), &json!(0))
        );
        app.stop().await;
    });
}

#[test]
fn a_foreign_session_answers_as_a_made_up_one() {
    run(async {
        let app = TestApp::shared().await;
        let (first, second) = (app.workspace("first").await, app.workspace("second").await);
        first.ingest(json!([stix::object("tool", "Heronword")])).await;
        let recall = first.search("Heronword").await["recall_id"].clone();
        let made_up = uuid::Uuid::new_v4().to_string();
        for suffix in ["", "/export.stix"] {
            let mut bodies = HashSet::new();
            for id in [recall.as_str().unwrap(), &made_up, "no-id", "00000000"] {
                let path = format!("/api/recall/sessions/{id}{suffix}");
                let answer = second.get(&path).await;
                assert_eq!(answer.header("content-type"), Some("application/json"));
                bodies.insert(answer.whole().await);
            }
            assert_eq!(
                bodies,
                HashSet::from([(404, r#"{"error":"session not found"}"#.to_owned())])
            );
        }
        // Neither audit log records an export or a denied export.
        for tenant in [&first, &second] {
            let logs = tenant.audit_logs().await;
            let exports = logs
                .iter()
                .filter(|e| stix::text(e, "action").starts_with("recall.export"));
            assert_eq!(exports.count(), 0);
        }
        app.stop().await;
    });
}

#[test]
fn the_audit_log_its_export_and_its_chain_hold_the_own_entries_only() {
    run(async {
        let app = TestApp::spawn().await;
        let tenants = [app.workspace("first").await, app.workspace("second").await];
        let words = ["heronword", "ottersign"];
        let mut people = Vec::new();
        for (tenant, word) in tenants.iter().zip(words) {
            let me = tenant.get("/api/auth/me").await.expect(200).await;
            people.push((me["user"]["id"].clone(), me["workspace"]["id"].clone()));
            tenant.ingest(json!([stix::object("tool", word)])).await;
            tenant.search(word).await;
            // A failed sign-in is recorded in the workspace of the account.
            let email = me["user"]["email"].as_str().unwrap();
            app.anonymous().login(email, "wrong").await.refused(401).await;
        }
        for (at, tenant) in tenants.iter().enumerate() {
            let (own, other) = (&people[at], &people[1 - at]);
            let logs = tenant.audit_logs().await;
            let actions: Vec<_> = logs.iter().map(|entry| stix::text(entry, "action")).collect();
            assert_eq!(
                actions,
                ["auth.login", "recall.search", "ingest.stix", "auth.login"]
            );
            assert!(logs.iter().all(|entry| entry["tenant_id"] == own.1));
            let query = format!("user_id={}", other.0.as_str().unwrap());
            let of_other = tenant
                .get(&format!("/api/audit/logs?{query}"))
                .await
                .expect(200)
                .await;
            assert_eq!(of_other["count"], 0);
            let csv = text_of(tenant, "/api/audit/export", 200).await;
            clean(&csv, words[1 - at]);
            clean(&csv, other.1.as_str().unwrap());
            let chain = tenant.get("/api/audit/verify").await.expect(200).await;
            assert_eq!((&chain["valid"], &chain["entries"]), (&json!(true), &json!(5)));
        }
        app.stop().await;
    });
}

#[test]
fn a_key_and_a_setting_count_in_their_own_workspace_only() {
    run(async {
        let app = TestApp::shared().await;
        let (first, second) = (app.workspace("first").await, app.workspace("second").await);
        for tenant in [&first, &second] {
            let secret = stix::with(stix::object("tool", "Heronword"), json!({"labels": ["tlp:red"]}));
            tenant.ingest(json!([secret])).await;
        }
        let open = json!({"tlp_ceiling": "RED", "elevated_clearance": true, "red_export_grant": true});
        first.settings(open).await;
        let (_, key) = second.add_key(&["read"]).await;
        let key = app.anonymous().with_header("x-api-key", &key);
        assert_eq!(first.search("Heronword").await["count"], 1);
        for client in [&second, &key, &app.admin] {
            let found = client.search("Heronword").await;
            assert_eq!(
                (&found["count"], &found["max_tlp"]),
                (&json!(0), &json!("TLP:WHITE"))
            );
        }
        // No parameter or header switches a caller to another workspace.
        let id = first.get("/api/auth/me").await.expect(200).await["workspace"]["id"].clone();
        let id = id.as_str().unwrap();
        for name in ["ws", "workspace", "workspace_id", "tenant_id"] {
            let request = key.request(
                Method::GET,
                &format!("/api/recall/search?q=Heronword&{name}={id}"),
            );
            let answer = Answer(request.header(format!("x-{name}"), id).send().await.unwrap());
            let refused = answer.refused(400).await;
            assert!(refused.starts_with(name), "{refused}");
            let request = key.request(Method::GET, "/api/recall/search?q=Heronword");
            let answer = Answer(request.header(format!("x-{name}"), id).send().await.unwrap());
            assert_eq!(answer.expect(200).await["count"], 0);
        }
        app.stop().await;
    });
}
