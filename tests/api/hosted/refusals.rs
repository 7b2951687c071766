//! Refusals in the exact wording of each API: field, rule, and which rule is reported when several are broken.

use reqwest::Method;
use serde_json::{Value, json};

use crate::helpers::{TestApp, encode, run};
use crate::local::LocalApp;

const LEVELS: &str = "must be one of TLP:WHITE, TLP:GREEN, TLP:AMBER, TLP:AMBER+PK, TLP:RED";

#[test]
fn each_way_in_names_the_first_broken_rule() {
    run(async {
        let app = TestApp::shared().await;
        let osint = |item: Value| json!({"collector": "c", "items": [item]});
        let analyst = |node: Value| json!({"nodes": [node]});
        let report = |block: Value| json!({"title": "t", "content_blocks": [block]});
        let text = "a text that is long enough";
        for (way, body, want) in [
            ("osint", json!({}), "collector: is required"),
            ("osint", json!({"collector": "c"}), "items: is required"),
            (
                "osint",
                json!({"collector": " ", "items": []}),
                "collector: must have from 1 to 500 characters",
            ),
            (
                "osint",
                json!({"collector": "c", "items": []}),
                "items: must hold from 1 to 10000 entries",
            ),
            ("osint", osint(json!({})), "items[0].title: is required"),
            (
                "osint",
                osint(json!({"title": " ", "description": "\u{0}"})),
                "items[0].title: must have from 1 to 2000 characters",
            ),
            (
                "osint",
                osint(json!({"title": "t", "description": null, "url": "\u{0}", "tags": [""]})),
                "items[0].url: must not hold a NUL character",
            ),
            (
                "osint",
                osint(json!({"title": "t", "tags": ["one", "x".repeat(201)]})),
                "items[0].tags[1]: must have from 1 to 200 characters",
            ),
            (
                "osint",
                osint(json!({"title": "t", "tags": {}})),
                "items[0].tags: must be an array",
            ),
            (
                "osint",
                osint(json!({"title": "t", "description": 5})),
                "items[0].description: must be a string",
            ),
            (
                "osint",
                osint(json!({"title": "t", "published": "soon"})),
                "items[0].published: must be an RFC 3339 date-time",
            ),
            (
                "osint",
                osint(json!({"title": "t", "type": "thing"})),
                "items[0].type: must be one of actor, cve, ioc, attck, osint, tool, vulnerability",
            ),
            ("misp", json!({}), "event: is required"),
            ("misp", json!({"event": 5}), "event: must be an object"),
            ("misp", json!({"event": []}), "event: holds no event"),
            (
                "misp",
                json!({"event": {}, "default_confidence": 2}),
                "default_confidence: must be a number from 0 to 1",
            ),
            ("analyst", json!({}), "nodes: is required"),
            ("analyst", analyst(json!({})), "nodes[0].name: is required"),
            (
                "analyst",
                analyst(json!({"name": "n"})),
                "nodes[0].node_type: is required",
            ),
            (
                "analyst",
                analyst(
                    json!({"name": "n", "node_type": "tool", "properties": {"x": "y".repeat(64 * 1024)}}),
                ),
                "nodes[0].properties: must have at most 65536 bytes as JSON",
            ),
            (
                "analyst",
                json!({"nodes": [], "default_confidence": "x"}),
                "default_confidence: must be a number",
            ),
            (
                "analyst",
                json!({"nodes": [], "default_tlp": 3}),
                "default_tlp: must be a string",
            ),
            ("report", json!({}), "title: is required"),
            ("report", json!({"title": "t"}), "content_blocks: is required"),
            (
                "report",
                json!({"title": "\u{0}", "source_name": "\u{0}", "content_blocks": []}),
                "title: must not hold a NUL character",
            ),
            (
                "report",
                json!({"title": "t", "source_name": "x".repeat(501), "content_blocks": []}),
                "source_name: must have from 1 to 500 characters",
            ),
            (
                "report",
                json!({"title": "t", "source_name": " ", "content_blocks": []}),
                "content_blocks: must hold from 1 to 10000 entries",
            ),
            (
                "report",
                report(json!({"entity_name": "e"})),
                "content_blocks[0].node_type: is required",
            ),
            (
                "report",
                report(
                    json!({"entity_name": "e", "node_type": "tool", "source_url": "\u{0}", "excerpt": "\u{0}"}),
                ),
                "content_blocks[0].source_url: must not hold a NUL character",
            ),
            (
                "preview",
                json!({"text": "short", "session_id": ""}),
                "text: must have at least 10 characters",
            ),
            (
                "preview",
                json!({"text": "\u{0}".repeat((1 << 20) + 1)}),
                "text: must have at most 1048576 bytes",
            ),
            (
                "preview",
                json!({"text": format!("{text}\u{0}"), "session_id": ""}),
                "text: must not hold a NUL character",
            ),
            (
                "preview",
                json!({"text": text, "session_id": "a\u{0}"}),
                "session_id: must have from 1 to 200 characters, none of them NUL",
            ),
            (
                "preview",
                json!({"text": text, "default_confidence": -1}),
                "default_confidence: must be a number from 0 to 1",
            ),
            (
                "stix",
                json!({"default_tlp": 3, "default_confidence": "x"}),
                "default_tlp: must be a string",
            ),
            (
                "stix",
                json!({"default_confidence": "x"}),
                "default_confidence: must be a number from 0 to 1",
            ),
            ("stix", json!({"default_tlp": null}), "bundle: is required"),
        ] {
            assert_eq!(app.admin.refuses(way, &body).await, want, "{way}");
        }
        for way in ["stix", "osint", "misp", "analyst", "report", "preview"] {
            let required = json!({"bundle": [], "collector": "c", "items": [], "event": {}, "nodes": [],
                "title": "t", "content_blocks": [], "text": text, "default_tlp": "PINK"});
            assert_eq!(
                app.admin.refuses(way, &required).await,
                format!("default_tlp: {LEVELS}")
            );
        }
        app.stop().await;
    });
}

#[test]
fn administration_and_queries_name_the_rule() {
    run(async {
        let app = TestApp::shared().await;
        let name = "name: must have 1 to 200 characters and no NUL character";
        for (path, body, want) in [
            ("api-keys", json!({"name": " ", "scopes": []}), name),
            (
                "api-keys",
                json!({"name": "n", "scopes": []}),
                "scopes: must hold at least one of ingest, read",
            ),
            (
                "workspaces",
                json!({"name": "a\u{0}", "admin_email": "x", "admin_password": "y"}),
                name,
            ),
        ] {
            let answer = app.admin.post(&format!("/api/admin/{path}"), &body).await;
            assert_eq!(answer.refused(400).await, want);
        }
        for features in [
            json!([""]),
            json!(["x".repeat(201)]),
            json!(["\u{0}"]),
            json!(vec!["x"; 101]),
        ] {
            let body = json!({"features": features});
            let answer = app.admin.patch("/api/admin/workspace", &body).await;
            let want = "features: must hold at most 100 names of 1 to 200 characters, none of them NUL";
            assert_eq!(answer.refused(400).await, want);
        }
        let long = "q".repeat(4001);
        for (path, name, value, want) in [
            ("recall/search", "q", &*long, "must have at most 4000 characters"),
            ("recall/search", "q", " ", "is required and must not be empty"),
            ("recall/semantic", "q", "\u{0}", "must not hold a NUL character"),
            ("audit/logs", "user_id", "x", "must be a UUID"),
            (
                "audit/logs",
                "from",
                "x",
                "must be a date such as 2024-03-01 or an RFC 3339 date-time",
            ),
            (
                "audit/logs",
                "limit",
                "0",
                "must be a whole number from 1 to 1000",
            ),
        ] {
            let path = format!("/api/{path}?{}", encode(&[(name, value)]));
            let error = app.admin.get(&path).await.refused(400).await;
            assert_eq!(error, format!("{name}: {want}"));
        }
        for path in ["recall/sessions/x", "nodes/x", "evidence/x", "ingest/batch/x"] {
            let error = app.admin.get(&format!("/api/{path}")).await.refused(404).await;
            assert!(error.ends_with(" not found"), "{error}");
        }
        app.stop().await;
    });
}

#[test]
fn what_no_route_has_is_told_alike_on_every_path() {
    run(async {
        let app = TestApp::shared().await;
        let answer = app.anonymous().get("/api/nowhere").await;
        assert_eq!(answer.refused(404).await, "no such route");
        let answer = app.anonymous().get("/api/auth/me").await;
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
        assert_eq!(
            answer.expect(401).await,
            json!({"error": "invalid or missing credentials"})
        );
        app.stop().await;

        let app = LocalApp::spawn().await;
        for (method, path, allowed) in [
            (Method::GET, "/api/remember", "POST"),
            (Method::HEAD, "/api/ingest", "POST"),
            (Method::PUT, "/api/synthesize", "POST"),
            (Method::GET, "/api/sync", "POST"),
            (Method::DELETE, "/api/config", "GET, HEAD, PUT"),
            (Method::PUT, "/api/config/meta", "GET, HEAD"),
            (Method::POST, "/config", "GET, HEAD"),
            (Method::POST, "/api/notes/x", "GET, HEAD, PATCH, DELETE"),
            (Method::POST, "/api/graph/nodes", "GET, HEAD"),
            (Method::POST, "/api/telemetry/stream", "GET"),
            (Method::HEAD, "/api/telemetry/stream", "GET"),
            (Method::from_bytes(b"BREW").unwrap(), "/api/entities", "GET, HEAD"),
        ] {
            let head = method == Method::HEAD;
            let answer = app.client.request(method, path).send().await.unwrap();
            assert_eq!(
                (answer.status().as_u16(), &answer.headers()["allow"]),
                (405, &allowed.parse().unwrap())
            );
            assert_eq!(answer.headers()["content-type"], "application/json");
            let text = answer.text().await.unwrap();
            assert_eq!(
                text,
                if head {
                    ""
                } else {
                    "{\"detail\":\"Method Not Allowed\"}"
                },
                "{path}"
            );
        }
        app.stop().await;
    });
}
