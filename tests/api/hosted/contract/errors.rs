//! Section Errors: every status of the contract with the conditions that its row names.

use serde_json::{Value, json};

use super::{Row, World, rows};
use crate::helpers::{Answer, Client};
use crate::stix::text;

async fn bad(client: &Client, path: &str, body: Value, field: &str) {
    let refused = client.post(path, &body).await.refused(400).await;
    assert!(refused.starts_with(field), "{path} {body}: {refused}");
}

async fn red_session(world: &World) -> String {
    world.admin().settings(json!({"red_export_grant": false})).await;
    let found = world.admin().search("Contract Heron").await;
    format!("/api/recall/sessions/{}/export.stix", text(&found, "recall_id"))
}

async fn read_key(world: &World) -> Client {
    world.app.api_key(&["read"]).await
}

pub(super) fn rows() -> Vec<Row> {
    let mut rows = invalid();
    rows.extend(refused());
    rows
}

fn invalid() -> Vec<Row> {
    rows! {
        "400: q" => |world| {
            for path in ["/api/recall/search", "/api/recall/semantic", "/api/public/demo-export.stix"] {
                let refused = world.admin().with_header("x-forwarded-for", "192.0.2.77").get(path).await;
                assert!(refused.refused(400).await.starts_with("q: "), "{path}");
            }
        }
        "400: query" => |world| {
            bad(&world.visitor(), "/api/public/demo-recall", json!({}), "query").await;
        }
        "400: bundle, collector, items, event, nodes, title, content_blocks" => |world| {
            for (path, body, field) in [
                ("/api/ingest/stix", json!({}), "bundle"),
                ("/api/ingest/osint", json!({"items": [{"title": "x"}]}), "collector"),
                ("/api/ingest/osint", json!({"collector": "x"}), "items"),
                ("/api/ingest/osint", json!({"collector": "x", "items": []}), "items"),
                ("/api/ingest/misp", json!({}), "event"),
                ("/api/ingest/analyst", json!({}), "nodes"),
                ("/api/ingest/analyst", json!({"nodes": []}), "nodes"),
                ("/api/ingest/analyst", json!({"nodes": [{"name": "x", "node_type": "planet"}]}), "nodes[0].node_type"),
                ("/api/ingest/report", json!({"content_blocks": [{"entity_name": "x", "node_type": "tool"}]}), "title"),
                ("/api/ingest/report", json!({"title": "x"}), "content_blocks"),
                ("/api/ingest/report", json!({"title": "x", "content_blocks": []}), "content_blocks"),
            ] {
                bad(world.admin(), path, body, field).await;
            }
        }
        "400: text shorter than 10 characters" => |world| {
            bad(world.admin(), "/api/ingest/preview", json!({"text": "123456789"}), "text").await;
        }
        "400: invalid staging status" => |world| {
            let staged = world.staged().await;
            let path = format!("/api/ingest/staging/{}", text(&staged["entities"][0], "id"));
            let refused = world.admin().patch(&path, &json!({"status": "done"})).await.refused(400).await;
            assert!(refused.starts_with("status"), "{refused}");
        }
        "400: personal data in a public demo query" => |world| {
            let secrets = ["jane@example.org", "078-05-1120", "+1 212 555 0123", "4111 1111 1111 1111"];
            for secret in secrets {
                bad(&world.visitor(), "/api/public/demo-recall", json!({"query": secret}), "query").await;
            }
        }
        "400: pilot validation failure" => |world| {
            let good = json!({"name": "Ada", "email": "ada@example.org", "org": "Example", "role": "other"});
            for (field, value) in [
                ("name", json!("")),
                ("name", Value::Null),
                ("email", json!("nobody")),
                ("org", json!(7)),
                ("role", json!("king")),
                ("cti_stack", json!("x".repeat(501))),
            ] {
                let mut body = good.clone();
                body[field] = value;
                bad(&world.visitor(), "/api/pilot", body, field).await;
            }
        }
    }
}

fn refused() -> Vec<Row> {
    rows! {
        "401: no credentials, or wrong ones" => |world| {
            for client in [world.visitor(), world.visitor().bearer("x.y.z"), world.visitor().with_header("x-api-key", "tm_x")] {
                let answer = client.get("/api/recall/search?q=x").await;
                assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
                answer.refused(401).await;
            }
            world.visitor().login("nobody@example.org", "wrong").await.refused(401).await;
        }
        "403: recall:write, with nothing ingested" => |world| {
            let body = json!({"bundle": [crate::stix::object("tool", "Forbidden Plover")]});
            let refused = read_key(world).await.post("/api/ingest/stix", &body).await.refused(403).await;
            assert_eq!(refused, "permission recall:write required");
            assert_ne!(world.admin().search("Forbidden Plover").await["results"][0]["name"], "Forbidden Plover");
        }
        "403: recall:read" => |world| {
            let key = world.app.api_key(&["ingest"]).await;
            assert_eq!(key.get("/api/recall/search?q=x").await.refused(403).await, "permission recall:read required");
        }
        "403: audit:read, audit:export" => |world| {
            let key = read_key(world).await;
            assert_eq!(key.get("/api/audit/logs").await.refused(403).await, "permission audit:read required");
            assert_eq!(key.get("/api/audit/export").await.refused(403).await, "permission audit:export required");
        }
        "403: ingest feature unavailable" => |world| {
            let bare = world.app.workspace("Contract without features").await;
            bare.settings(json!({"features": []})).await;
            let refused = bare.post("/api/ingest/analyst", &json!({"nodes": []})).await.refused(403).await;
            assert!(refused.contains("knowledge_graph"), "{refused}");
        }
        "403: TLP:RED export without red_export_grant" => |world| {
            let path = red_session(world).await;
            let refused = world.admin().get(&path).await.refused(403).await;
            assert!(refused.contains("red_export_grant"), "{refused}");
            assert_eq!(world.admin().audited("recall.export_denied").await[0]["outcome"], "denied");
            world.admin().settings(json!({"red_export_grant": true})).await;
            world.admin().get(&path).await.expect(200).await;
        }
        "404: session, batch, staging record" => |world| {
            let id = uuid::Uuid::new_v4();
            for path in [
                format!("/api/recall/sessions/{id}"),
                format!("/api/recall/sessions/{id}/export.stix"),
                format!("/api/ingest/batch/{id}"),
            ] {
                world.admin().get(&path).await.refused(404).await;
            }
            let path = format!("/api/ingest/staging/{id}");
            world.admin().patch(&path, &json!({"status": "accepted"})).await.refused(404).await;
        }
        "404: no results for the public export" => |world| {
            world.visitor().get("/api/public/demo-export.stix?q=zzzyyyxxx").await.refused(404).await;
        }
        "422" => |world| {
            // The one object waits for the definition of its marking, so no valid bundle can be made.
            let marked = json!({"object_marking_refs": [crate::stix::id("marking-definition")]});
            let held = crate::stix::with(crate::stix::object("tool", "Undefined Marking Egret"), marked);
            world.admin().ingest(json!([held])).await;
            let found = world.admin().get("/api/recall/search?q=Undefined+Marking+Egret&limit=1").await.expect(200).await;
            let path = format!("/api/recall/sessions/{}/export.stix", text(&found, "recall_id"));
            world.admin().get(&path).await.refused(422).await;
        }
        "429" => |world| {
            let visitor = world.visitor();
            let mut last: Option<Answer> = None;
            for _ in 0..11 {
                last = Some(visitor.post("/api/public/demo-recall", &json!({"query": "APT28"})).await);
            }
            let refused = last.unwrap();
            assert!(refused.header("retry-after").is_some());
            assert_eq!(refused.refused(429).await, "rate limit exceeded");
        }
        "500: nothing that a client sends leads to one" => |world| {
            for body in ["", "{", "null", "[]", "\"x\"", "{\"bundle\":", "\u{0}", "{\"bundle\":{\"objects\":[{}]}}"] {
                let answer = world.admin().post_bytes("/api/ingest/stix", body).await;
                assert!(answer.status() < 500, "{body:?}: {}", answer.status());
            }
        }
    }
}
