//! Section Limits: each limit at its border.

use serde_json::{Value, json};
use threat_memory::auth::token;

use super::{Row, World, rows};
use crate::helpers::{Answer, Client, TestApp, settings};
use crate::stix::text;

const PILOT: &str = "/api/pilot";

/// Sends `allowed` requests that count, then one that is refused; each answer carries the headers.
async fn limited<F: Future<Output = Answer>>(allowed: u32, send: impl Fn() -> F) {
    for sent in 1..=allowed {
        let answer = send().await;
        assert_ne!(answer.status(), 429, "request {sent}");
        assert_eq!(
            answer.header("ratelimit-limit"),
            Some(allowed.to_string().as_str())
        );
        assert_eq!(
            answer.header("ratelimit-remaining"),
            Some((allowed - sent).to_string().as_str())
        );
        assert!(answer.header("ratelimit-reset").is_some());
    }
    let refused = send().await;
    assert!(refused.header("retry-after").is_some());
    assert_eq!(refused.header("ratelimit-remaining"), Some("0"));
    assert_eq!(refused.refused(429).await, "rate limit exceeded");
}

fn pilot(field: &str, value: String) -> Value {
    let mut body = json!({"name": "Ada", "email": "ada@example.org", "org": "Example", "role": "other"});
    body[field] = value.into();
    body
}

/// A text of `most` characters is taken, and one more is refused.
async fn bounded(world: &World, field: &str, most: usize) {
    let post = async |length| {
        world
            .visitor()
            .post(PILOT, &pilot(field, "é".repeat(length)))
            .await
    };
    post(most).await.expect(200).await;
    let refused = post(most + 1).await.refused(400).await;
    assert!(refused.starts_with(field), "{refused}");
}

/// Each of these values of a parameter is taken or refused.
async fn numbers(client: &Client, path: &str, name: &str, good: &[u32], bad: &[&str]) {
    let join = if path.contains('?') { '&' } else { '?' };
    for value in good {
        assert_eq!(
            client.get(&format!("{path}{join}{name}={value}")).await.status(),
            200,
            "{path} {value}"
        );
    }
    for value in bad {
        let refused = client
            .get(&format!("{path}{join}{name}={value}"))
            .await
            .refused(400)
            .await;
        assert!(refused.starts_with(name), "{path} {value}: {refused}");
    }
}

pub(super) fn rows() -> Vec<Row> {
    let mut rows = rates();
    rows.extend(sizes());
    rows
}

fn rates() -> Vec<Row> {
    rows! {
        "/openapi.json" => |world| {
            let visitor = world.visitor();
            limited(60, || visitor.get("/openapi.json")).await;
        }
        "/api/public/demo-*" => |world| {
            let visitor = world.visitor();
            let body = json!({"query": "APT28"});
            limited(10, || visitor.post("/api/public/demo-recall", &body)).await;
            visitor.get("/api/public/demo-export.stix?q=APT28").await.refused(429).await;
        }
        "POST /api/pilot" => |world| {
            let visitor = world.visitor();
            limited(5, || visitor.post(PILOT, &Value::Null)).await;
        }
        "Authenticated API" => |_world| {
            let mut own = settings("mem://");
            own.limits.tiers = threat_memory::config::Settings::load(None, &Default::default()).unwrap().limits.tiers;
            let app = TestApp::with(own).await;
            let other = app.workspace("Pilot tier").await;
            for (tier, limit) in [("pilot", "100"), ("team", "1000"), ("enterprise", "5000")] {
                app.admin.oversees(&other, json!({"tier": tier})).await;
                assert_eq!(other.get("/api/auth/me").await.header("ratelimit-limit"), Some(limit));
            }
            app.stop().await;
        }
    }
}

fn sizes() -> Vec<Row> {
    rows! {
        "Public demo query" => |world| {
            let ask = async |length| {
                let body = json!({"query": "é".repeat(length)});
                world.visitor().post("/api/public/demo-recall", &body).await
            };
            ask(1).await.expect(200).await;
            ask(300).await.expect(200).await;
            for length in [0, 301] {
                assert!(ask(length).await.refused(400).await.starts_with("query"));
            }
        }
        "Search and export limit parameters" => |world| {
            for path in ["/api/recall/search?q=a", "/api/recall/semantic?q=a"] {
                numbers(world.admin(), path, "limit", &[1, 100], &["0", "101", "-1", "x", "1.5"]).await;
            }
            numbers(&world.visitor(), "/api/public/demo-export.stix?q=APT28", "limit", &[1, 100], &["0", "101", "x"]).await;
            let found = world.visitor().get("/api/public/demo-export.stix?q=group").await.expect(200).await;
            let graph = ["relationship", "identity", "marking-definition"];
            let of_graph = |object: &&Value| !graph.contains(&text(object, "type"));
            assert_eq!(found["objects"].as_array().unwrap().iter().filter(of_graph).count(), 20);
        }
        "Audit export limit" => |world| {
            numbers(world.admin(), "/api/audit/export", "limit", &[1, 5000], &["0", "5001", "x"]).await;
        }
        "Audit logs" => |world| {
            numbers(world.admin(), "/api/audit/logs", "limit", &[1, 1000], &["0", "1001", "x"]).await;
            numbers(world.admin(), "/api/audit/logs", "offset", &[0, 7], &["-1", "x"]).await;
        }
        "Preview text" => |world| {
            for (length, status) in [(9, 400), (10, 200)] {
                let body = json!({"text": "é".repeat(length)});
                assert_eq!(world.admin().post("/api/ingest/preview", &body).await.status(), status);
            }
        }
        "Array inputs (items, nodes, content_blocks)" => |world| {
            for (path, body, field) in [
                ("/api/ingest/osint", json!({"collector": "x", "items": []}), "items"),
                ("/api/ingest/analyst", json!({"nodes": []}), "nodes"),
                ("/api/ingest/report", json!({"title": "x", "content_blocks": []}), "content_blocks"),
            ] {
                let refused = world.admin().post(path, &body).await.refused(400).await;
                assert!(refused.starts_with(field), "{refused}");
            }
        }
        "Pilot fields" => |world| {
            bounded(world, "name", 200).await;
            bounded(world, "org", 200).await;
            bounded(world, "cti_stack", 500).await;
        }
        "TAXII pull" => |_world| {
            // Pulls that exceed them are in `hosted/feeds/slow.rs` and `hostile.rs`.
            let feeds = settings("mem://").feeds;
            assert_eq!((feeds.timeout_ms, feeds.response_kib), (8_000, 512));
        }
        "Access token" => |world| {
            assert_eq!(token::LIFETIME, 24 * 60 * 60);
            let claims = world.admin().sends("authorization").split('.').nth(1).unwrap();
            let claims = base64::Engine::decode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, claims).unwrap();
            let claims: Value = serde_json::from_slice(&claims).unwrap();
            assert_eq!(claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(), 86_400);
        }
    }
}
