//! Section Endpoints: the 25 routes of the contract.

use serde_json::{Value, json};

use super::{Row, World, rows};
use crate::helpers::keys_of;
use crate::hosted::feeds::FEEDS;
use crate::stix::{object, text};

const NODE: [&str; 14] = [
    "confidence",
    "description",
    "id",
    "ingested_at",
    "linked_evidence_ids",
    "matched",
    "name",
    "node_type",
    "properties",
    "score",
    "source",
    "source_type",
    "status",
    "tlp",
];
const STIX: &str = "application/stix+json;version=2.1";

/// An ingest answers 201 with at least the two counters of the contract.
async fn ingests(world: &World, path: &str, body: Value) -> Value {
    let answer = world.admin().post(path, &body).await.expect(201).await;
    assert_eq!(answer["success"], true);
    let results = answer["results"].clone();
    assert!(
        results["nodes_created"].is_u64() && results["evidence_created"].is_u64(),
        "{results}"
    );
    results
}

pub(super) fn rows() -> Vec<Row> {
    let mut rows = open();
    rows.extend(recall());
    rows.extend(ingest());
    rows.extend(rest());
    rows
}

fn open() -> Vec<Row> {
    rows! {
        "GET /health" => |world| {
            let answer = world.visitor().get("/health").await.expect(200).await;
            assert_eq!(answer, json!({"status": "healthy"}));
        }
        "GET /api/health" => |world| {
            let answer = world.visitor().get("/api/health").await.expect(200).await;
            assert_eq!(answer, json!({"status": "ok", "service": "threat-memory", "version": "1.0.0"}));
        }
        "GET /openapi.json" => |world| {
            let answer = world.visitor().get("/openapi.json").await.expect(200).await;
            assert!(answer["openapi"].as_str().unwrap().starts_with("3.1"));
        }
        "POST /api/public/demo-recall" => |world| {
            let body = json!({"query": "Sandworm"});
            let answer = world.visitor().post("/api/public/demo-recall", &body).await.expect(200).await;
            assert_eq!(keys_of(&answer), ["latency_ms", "query", "result_count", "results", "seeded"]);
            assert_eq!(answer["seeded"], true);
            assert!(answer["result_count"].as_u64().unwrap() > 0);
        }
        "GET /api/public/demo-export.stix" => |world| {
            let answer = world.visitor().get("/api/public/demo-export.stix?q=Sandworm&limit=3").await;
            assert_eq!(answer.header("content-type"), Some(STIX));
            let bundle = answer.expect(200).await;
            assert!(bundle["id"].as_str().unwrap().starts_with("bundle--"));
        }
        "POST /api/pilot" => |world| {
            let body = json!({"name": "Ada", "email": "ada@example.org", "org": "Example", "role": "ciso"});
            let answer = world.visitor().post("/api/pilot", &body).await.expect(200).await;
            assert_eq!(answer, json!({"success": true}));
        }
        "POST /api/auth/login" => |world| {
            let answer = world.visitor().login(crate::helpers::ADMIN, crate::helpers::PASSWORD).await.expect(200).await;
            assert_eq!(keys_of(&answer), ["access_token", "expires_in", "token_type", "user", "workspace"]);
            assert_eq!((&answer["token_type"], &answer["expires_in"]), (&json!("Bearer"), &json!(86_400)));
        }
    }
}

fn recall() -> Vec<Row> {
    rows! {
        "GET /api/recall/search" => |world| {
            let answer = world.admin().get("/api/recall/search?q=Contract+Hook&limit=1").await.expect(200).await;
            let keys = ["count", "include_rejected", "max_tlp", "mode", "query", "recall_id", "results"];
            assert_eq!(keys_of(&answer), keys);
            assert_eq!(keys_of(&answer["results"][0]), NODE);
            assert_eq!((&answer["count"], &answer["mode"]), (&json!(1), &json!("blended")));
            let answer = world.admin().get("/api/recall/search?q=Contract+Hook&mode=structured").await.expect(200).await;
            assert_eq!(answer["mode"], "structured");
        }
        "GET /api/recall/sessions/{id}" => |world| {
            let found = world.admin().search("Contract Hook").await;
            let path = format!("/api/recall/sessions/{}", text(&found, "recall_id"));
            let session = world.admin().get(&path).await.expect(200).await;
            let keys = ["created_at", "has_red_node", "id", "max_tlp", "mode", "node_ids", "query", "result_count"];
            assert_eq!(keys_of(&session), keys);
        }
        "GET /api/recall/sessions/{id}/export.stix" => |world| {
            let found = world.admin().get("/api/recall/search?q=Contract+Hook&limit=1").await.expect(200).await;
            let path = format!("/api/recall/sessions/{}/export.stix", text(&found, "recall_id"));
            let answer = world.admin().get(&path).await;
            assert_eq!(answer.header("content-type"), Some(STIX));
            let bundle = answer.expect(200).await;
            assert_eq!((&bundle["type"], &bundle["spec_version"]), (&json!("bundle"), &json!("2.1")));
            crate::helpers::keep_export(&bundle);
        }
        "GET /api/recall/semantic" => |world| {
            let answer = world.admin().get("/api/recall/semantic?q=Contract+Hook&limit=1").await.expect(200).await;
            assert_eq!(keys_of(&answer), ["count", "results"]);
            assert_eq!(keys_of(&answer["results"][0]), NODE);
        }
    }
}

fn ingest() -> Vec<Row> {
    rows! {
        "POST /api/ingest/stix" => |world| {
            let bundle = json!({"type": "bundle", "id": crate::stix::id("bundle"), "objects": [object("tool", "A")]});
            let body = json!({"bundle": bundle, "default_tlp": "TLP:GREEN", "default_confidence": 0.7});
            let results = ingests(world, "/api/ingest/stix", body.clone()).await;
            assert_eq!((&results["nodes_created"], &results["skipped"]), (&json!(1), &json!(0)));
            let again = ingests(world, "/api/ingest/stix", body).await;
            assert_eq!((&again["nodes_created"], &again["skipped"]), (&json!(0), &json!(1)));
            ingests(world, "/api/ingest/stix", json!({"bundle": [object("malware", "B")]})).await;
        }
        "POST /api/ingest/osint" => |world| {
            let item = json!({"title": "Contract item", "url": "https://example.org/a", "tags": ["x"]});
            let body = json!({"collector": "contract", "items": [item]});
            ingests(world, "/api/ingest/osint", body).await;
        }
        "POST /api/ingest/misp" => |world| {
            let attribute = json!({"uuid": uuid::Uuid::new_v4(), "type": "domain", "value": "contract.example"});
            let event = json!({"uuid": uuid::Uuid::new_v4(), "info": "Contract", "Attribute": [attribute]});
            let results = ingests(world, "/api/ingest/misp", json!({"event": event})).await;
            assert_eq!((&results["nodes_created"], &results["evidence_created"]), (&json!(1), &json!(1)));
        }
        "POST /api/ingest/analyst" => |world| {
            let body = json!({"nodes": [{"name": "Contract Actor", "node_type": "actor"}]});
            ingests(world, "/api/ingest/analyst", body).await;
        }
        "POST /api/ingest/report" => |world| {
            let block = json!({"entity_name": "Contract Tool", "node_type": "tool", "excerpt": "seen"});
            ingests(world, "/api/ingest/report", json!({"title": "Contract", "content_blocks": [block]})).await;
        }
        "POST /api/ingest/preview" => |world| {
            let staged = world.staged().await;
            assert_eq!(staged["auto_ingest"], false);
            let summary = ["duplicates", "missing_tlp", "sensitive_warns", "total_parsed", "total_to_add", "total_to_update"];
            assert_eq!(keys_of(&staged["summary"]), summary);
            for key in ["id", "status", "node_type", "name", "proposed_tlp", "proposed_confidence",
                "duplicate_candidates", "warnings", "extraction_reasoning"] {
                assert!(!staged["entities"][0][key].is_null(), "{key}");
            }
        }
        "GET /api/ingest/batch/{id}" => |world| {
            let staged = world.staged().await;
            let path = format!("/api/ingest/batch/{}", text(&staged, "batch_id"));
            let answer = world.admin().get(&path).await.expect(200).await;
            assert_eq!(keys_of(&answer), ["batch", "entities"]);
        }
        "POST /api/ingest/batch/{id}/commit" => |world| {
            let staged = world.staged().await;
            let path = format!("/api/ingest/batch/{}/commit", text(&staged, "batch_id"));
            let answer = world.admin().post(&path, &json!({})).await.expect(200).await;
            assert_eq!(answer["success"], true);
        }
        "PATCH /api/ingest/staging/{id}" => |world| {
            let staged = world.staged().await;
            for status in ["uncertain", "rejected", "accepted", "pending"] {
                let path = format!("/api/ingest/staging/{}", text(&staged["entities"][0], "id"));
                let body = json!({"status": status});
                let answer = world.admin().patch(&path, &body).await.expect(200).await;
                assert_eq!((&answer["success"], &answer["entity"]["status"]), (&json!(true), &json!(status)));
            }
        }
    }
}

fn rest() -> Vec<Row> {
    rows! {
        "POST /api/threat-intel/feeds" => |world| {
            let body = json!({"name": "Contract", "connector_config_ref": world.taxii.url(),
                "default_tlp": "TLP:GREEN", "redistribution_state": "allowed"});
            let answer = world.admin().post(FEEDS, &body).await.expect(201).await;
            assert_eq!(answer["feed"]["redistribution_state"], "allowed");
        }
        "POST /api/threat-intel/batches" => |world| {
            let feed = world.admin().feed_of(&world.taxii).await;
            let batch = world.admin().pull(&feed).await;
            assert_eq!(batch["item_count"], 3);
        }
        "POST /api/threat-intel/batches/{batch_id}/commit" => |world| {
            let feed = world.admin().feed_of(&world.taxii).await;
            let batch = world.admin().pull(&feed).await;
            let id = text(&batch, "id");
            let items = world.admin().items(id).await;
            let results = world.admin().commit_items(id, Some(&[text(&items[0], "id")])).await;
            assert!(results.is_object(), "{results}");
        }
        "GET /api/audit/export" => |world| {
            let answer = world.admin().get("/api/audit/export?limit=2").await;
            assert!(answer.header("content-type").unwrap().starts_with("text/csv"));
            let (_, csv) = answer.whole().await;
            let header = "id,tenant_id,user_id,user_email,action,resource,resource_id,outcome,ip_address,metadata,created_at\r\n";
            assert!(csv.starts_with(header), "{csv}");
        }
        "GET /api/audit/logs" => |world| {
            let answer = world.admin().get("/api/audit/logs?limit=1&offset=0").await.expect(200).await;
            assert_eq!(keys_of(&answer), ["count", "logs"]);
            assert_eq!(answer["count"], 1);
        }
    }
}
