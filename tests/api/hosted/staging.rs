//! Preview, review and commit, step by step.

use serde_json::{Value, json};

use crate::helpers::{Client, TestApp, encode, keys_of, run};
use crate::stix::{evidence, object, text, with};

pub const TEXT: &str = "APT28 uses X-Agent. It contacted zq-evil.com and dropped \
    9e107d9d372bb6826bd81d3542a419d6 by way of CVE-2024-3094.";
/// The entities that the rules find in [`TEXT`], in order.
pub const FOUND: [(&str, &str); 5] = [
    ("APT28", "actor"),
    ("X-Agent", "tool"),
    ("zq-evil.com", "ioc"),
    ("9e107d9d372bb6826bd81d3542a419d6", "ioc"),
    ("CVE-2024-3094", "cve"),
];

impl Client {
    pub async fn preview(&self, body: &Value) -> Value {
        self.post("/api/ingest/preview", body).await.expect(200).await
    }

    pub async fn batch(&self, id: &Value) -> Value {
        let path = format!("/api/ingest/batch/{}", id.as_str().unwrap());
        self.get(&path).await.expect(200).await
    }

    /// Commits a batch and returns `results`.
    pub async fn commit(&self, id: &Value) -> Value {
        let path = format!("/api/ingest/batch/{}/commit", id.as_str().unwrap());
        let answer = self.post(&path, &json!({})).await.expect(200).await;
        assert_eq!(answer["success"], true);
        answer["results"].clone()
    }

    pub async fn decide(&self, entity: &Value, body: Value) -> Value {
        let path = format!("/api/ingest/staging/{}", text(entity, "id"));
        let answer = self.patch(&path, &body).await.expect(200).await;
        assert_eq!(keys_of(&answer), ["entity", "success"]);
        answer["entity"].clone()
    }

    pub async fn undecided(&self, entity: &Value, body: Value, status: u16) -> String {
        let path = format!("/api/ingest/staging/{}", text(entity, "id"));
        self.patch(&path, &body).await.refused(status).await
    }
}

pub fn entity<'p>(preview: &'p Value, name: &str) -> &'p Value {
    let entities = preview["entities"].as_array().unwrap();
    let found = entities.iter().find(|entity| entity["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {preview}"))
}

/// The results of a commit: created, updated, evidence, merged, discarded, remaining.
pub fn results(counts: [u64; 6]) -> Value {
    let [created, updated, evidence, merged, discarded, remaining] = counts;
    json!({"nodes_created": created, "nodes_updated": updated, "evidence_created": evidence, "merged": merged,
        "discarded": discarded, "remaining": remaining})
}

#[test]
fn a_preview_has_the_shape_of_the_contract() {
    run(async {
        let app = TestApp::shared().await;
        let answer = app
            .admin
            .preview(
                &json!({"text": TEXT, "session_id": "part 1", "source_type": "chat",
                "default_tlp": "green", "default_confidence": 0.35}),
            )
            .await;
        assert_eq!(
            keys_of(&answer),
            [
                "auto_ingest",
                "batch_id",
                "entities",
                "success",
                "summary",
                "warnings"
            ]
        );
        assert_eq!(
            (&answer["success"], &answer["auto_ingest"]),
            (&json!(true), &json!(false))
        );
        assert_eq!(
            keys_of(&answer["summary"]),
            [
                "duplicates",
                "missing_tlp",
                "sensitive_warns",
                "total_parsed",
                "total_to_add",
                "total_to_update"
            ]
        );
        let named: Vec<(&str, &str)> = answer["entities"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entity| (text(entity, "name"), text(entity, "node_type")))
            .collect();
        assert_eq!(named, FOUND);
        for entity in answer["entities"].as_array().unwrap() {
            assert_eq!(
                keys_of(entity),
                [
                    "batch_id",
                    "description",
                    "duplicate_candidates",
                    "extraction_reasoning",
                    "id",
                    "name",
                    "node_type",
                    "proposed_confidence",
                    "proposed_tlp",
                    "status",
                    "warnings"
                ]
            );
            assert_eq!(
                (
                    &entity["status"],
                    &entity["proposed_tlp"],
                    &entity["proposed_confidence"]
                ),
                (&json!("pending"), &json!("TLP:GREEN"), &json!(0.35))
            );
            assert!(entity["duplicate_candidates"].as_array().unwrap().is_empty());
            assert!(!text(entity, "extraction_reasoning").is_empty());
            assert!(
                entity["warnings"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .all(Value::is_string)
            );
        }
        let batch = app.admin.batch(&answer["batch_id"]).await;
        assert_eq!(keys_of(&batch), ["batch", "entities"]);
        assert_eq!(batch["entities"], answer["entities"]);
        for (key, want) in [
            ("id", &answer["batch_id"]),
            ("summary", &answer["summary"]),
            ("session_id", &json!("part 1")),
            ("source_type", &json!("chat")),
            ("ingest_mode", &json!("review")),
            ("status", &json!("open")),
        ] {
            assert_eq!(batch["batch"][key], *want, "{key}");
        }
        // Nothing becomes a node before the commit.
        assert!(app.admin.nodes_of("zq-evil.com").await.is_empty());
        assert_eq!(app.admin.audited("ingest.preview").await.len(), 1);
        app.stop().await;
    });
}

#[test]
fn the_counters_are_exact() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let summary = |parsed: u64, add: u64, duplicates: u64, missing: u64, sensitive: u64| {
            json!({"total_parsed": parsed, "total_to_add": add, "total_to_update": parsed - add,
                "duplicates": duplicates, "missing_tlp": missing, "sensitive_warns": sensitive})
        };
        let first = admin.preview(&json!({"text": TEXT})).await;
        assert_eq!(first["summary"], summary(5, 5, 0, 5, 0));
        assert_eq!(entity(&first, "APT28")["proposed_tlp"], "TLP:AMBER");
        // Matched by alias, by identifier and by value; the node that is hidden from this workspace does not count.
        admin
            .ingest(json!([
                object("intrusion-set", "Fancy Bear"),
                with(
                    object("vulnerability", "The xz backdoor"),
                    json!({"external_references": [{"source_name": "cve", "external_id": "CVE-2024-3094"}]})
                )
            ]))
            .await;
        let nodes = json!([{"name": "zq-evil[.]com", "node_type": "ioc"},
            {"name": "9e107d9d372bb6826bd81d3542a419d6", "node_type": "ioc", "tlp": "RED"}]);
        admin.send_in("analyst", &json!({"nodes": nodes})).await;
        let second = admin.preview(&json!({"text": TEXT})).await;
        assert_eq!(second["summary"], summary(5, 2, 3, 5, 0));
        for (name, matched) in [("APT28", "alias"), ("CVE-2024-3094", "id"), ("zq-evil.com", "id")] {
            let candidate = &entity(&second, name)["duplicate_candidates"][0];
            assert_eq!(
                keys_of(candidate),
                ["match", "name", "node_id", "node_type", "score"]
            );
            assert_eq!(text(candidate, "match"), matched, "{name}: {candidate}");
            assert!(candidate["score"].as_f64().unwrap() > 0.5);
        }
        // A marking in the text is the proposed marking, unless the request sets a lower default.
        let marked = format!("TLP:GREEN\n{TEXT}");
        let third = admin.preview(&json!({"text": marked})).await;
        assert_eq!(third["summary"], summary(5, 2, 3, 0, 0));
        assert_eq!(entity(&third, "APT28")["proposed_tlp"], "TLP:GREEN");
        let marked = format!("TLP:AMBER+STRICT\n{TEXT}");
        let fourth = admin
            .preview(&json!({"text": marked, "default_tlp": "TLP:GREEN"}))
            .await;
        assert_eq!(fourth["summary"], summary(5, 2, 3, 0, 5));
        for entity in fourth["entities"].as_array().unwrap() {
            let warnings = entity["warnings"].as_array().unwrap().iter();
            let warned =
                warnings.filter(|warning| warning.as_str().unwrap().starts_with("TLP sensitivity: "));
            assert_eq!(warned.count(), 1, "{entity}");
        }
        let none = admin
            .preview(&json!({"text": "Nothing of note happened here."}))
            .await;
        assert_eq!(none["summary"], summary(0, 0, 0, 0, 0));
        assert_eq!(admin.commit(&none["batch_id"]).await, results([0; 6]));
        app.stop().await;
    });
}

#[test]
fn review_commits_what_is_accepted_and_merged_and_keeps_what_is_not_decided() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let target = json!({"nodes": [{"name": "ZetaKit", "node_type": "tool", "tlp": "AMBER"}]});
        admin.send_in("analyst", &target).await;
        let target = admin.one("ZetaKit").await;
        let preview = admin.preview(&json!({"text": TEXT})).await;
        let id = &preview["batch_id"];
        let of = |name| entity(&preview, name);
        let changed = admin
            .decide(
                of("APT28"),
                json!({"status": "accepted", "resolved_tlp": "clear"}),
            )
            .await;
        assert_eq!(
            (
                &changed["status"],
                &changed["resolved_tlp"],
                &changed["proposed_tlp"]
            ),
            (&json!("accepted"), &json!("TLP:WHITE"), &json!("TLP:AMBER"))
        );
        let merge = json!({"status": "merged", "merge_target_id": target["id"]});
        let changed = admin.decide(of("X-Agent"), merge).await;
        assert_eq!(
            (&changed["status"], &changed["merge_target_id"]),
            (&json!("merged"), &target["id"])
        );
        let hash = of("9e107d9d372bb6826bd81d3542a419d6");
        admin
            .decide(of("zq-evil.com"), json!({"status": "rejected"}))
            .await;
        admin
            .decide(of("CVE-2024-3094"), json!({"status": "uncertain"}))
            .await;
        admin.decide(hash, json!({"status": "accepted"})).await;
        admin.decide(hash, json!({"status": "pending"})).await;

        assert_eq!(admin.commit(id).await, results([1, 1, 1, 1, 1, 2]));
        let batch = admin.batch(id).await;
        assert_eq!(batch["batch"]["status"], "open");
        assert_eq!(batch["entities"].as_array().unwrap().len(), 4);
        let actor = admin.one("APT28").await;
        assert_eq!(
            (&actor["tlp"], &actor["node_type"]),
            (&json!("TLP:WHITE"), &json!("actor"))
        );
        assert_eq!(entity(&batch, "APT28")["node_id"], actor["id"]);
        assert_eq!(entity(&batch, "X-Agent")["node_id"], target["id"]);
        let merged = admin.one("ZetaKit").await;
        assert_eq!(evidence(&merged), 2);
        assert_eq!(merged["linked_evidence_ids"][1], actor["linked_evidence_ids"][0]);
        assert!(admin.named("X-Agent").await.is_empty());
        assert!(admin.named("zq-evil.com").await.is_empty());
        for name in ["APT28", "X-Agent"] {
            let error = admin
                .undecided(of(name), json!({"status": "rejected"}), 409)
                .await;
            assert!(error.contains("already committed"), "{error}");
        }
        admin
            .undecided(of("zq-evil.com"), json!({"status": "accepted"}), 404)
            .await;

        // A second commit changes nothing.
        assert_eq!(admin.commit(id).await, results([0, 0, 0, 0, 0, 2]));
        assert_eq!(
            admin.one("APT28").await["linked_evidence_ids"],
            actor["linked_evidence_ids"]
        );
        // With the rest decided, the batch is complete; its text stays a single evidence record.
        admin
            .decide(of("CVE-2024-3094"), json!({"status": "accepted"}))
            .await;
        admin.decide(hash, json!({"status": "rejected"})).await;
        assert_eq!(admin.commit(id).await, results([1, 0, 0, 0, 1, 0]));
        let batch = admin.batch(id).await;
        assert_eq!(batch["batch"]["status"], "committed");
        assert!(batch["batch"]["committed_at"].is_string());
        assert_eq!(admin.commit(id).await, results([0; 6]));
        let cve = admin.one("CVE-2024-3094").await;
        assert_eq!(cve["linked_evidence_ids"], actor["linked_evidence_ids"]);
        assert_eq!(admin.audited("ingest.staging_change").await.len(), 8);
        assert_eq!(admin.audited("ingest.batch_commit").await.len(), 4);
        app.stop().await;
    });
}

/// Relationships stated by a text are created once both nodes are committed, in whichever commit.
#[test]
fn a_stated_relation_is_an_edge_once_both_ends_are_committed() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let preview = admin.preview(&json!({"text": TEXT})).await;
        let edges = async || {
            let path = format!(
                "/api/recall/search?{}",
                encode(&[("q", "APT28 X-Agent"), ("limit", "100")])
            );
            let session = admin.get(&path).await.expect(200).await;
            let bundle = admin.export(text(&session, "recall_id")).await;
            let objects = bundle["objects"].as_array().unwrap().iter();
            let edges: Vec<Value> = objects
                .filter(|object| object["type"] == "relationship")
                .cloned()
                .collect();
            edges
        };
        for (name, want) in [("APT28", 0), ("X-Agent", 1)] {
            admin
                .decide(entity(&preview, name), json!({"status": "accepted"}))
                .await;
            admin.commit(&preview["batch_id"]).await;
            let edges = edges().await;
            assert_eq!(edges.len(), want, "{edges:?}");
            if want == 1 {
                assert_eq!(
                    (&edges[0]["relationship_type"], &edges[0]["description"]),
                    (&json!("uses"), &json!("APT28 uses X-Agent."))
                );
            }
        }
        app.stop().await;
    });
}

#[test]
fn a_node_of_another_name_and_the_same_meaning_is_a_candidate() {
    run(async {
        let app = TestApp::shared().await;
        let known = json!([{"type": "tool", "name": "Cobalt Strike Payload",
            "id": "tool--31b940d4-6f7f-459a-80ea-9c1f17b58abc"}]);
        app.admin.ingest(known).await;
        let body = json!({"text": "The intruders ran Cobalt Strike there.", "default_tlp": "TLP:GREEN"});
        let preview = app
            .admin
            .post("/api/ingest/preview", &body)
            .await
            .expect(200)
            .await;
        let candidates = preview["entities"][0]["duplicate_candidates"].as_array().unwrap();
        let shown: Vec<_> = candidates.iter().map(|c| (&c["name"], &c["match"])).collect();
        assert_eq!(
            shown,
            [(&json!("Cobalt Strike Payload"), &json!("semantic"))],
            "{preview}"
        );
        // A match by similarity alone is a candidate, not an update.
        let counters = &preview["summary"];
        assert_eq!(
            (&counters["duplicates"], &counters["total_to_update"]),
            (&json!(1), &json!(0))
        );
        app.stop().await;
    });
}
