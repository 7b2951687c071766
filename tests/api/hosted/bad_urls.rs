//! Unknown routes, methods and query parameters: a JSON error that names what is wrong.

use reqwest::Method;
use serde_json::json;

use crate::helpers::{Answer, TestApp, encode, run};
use crate::stix::refusal;
use crate::wrong_types::raw;

const STIX: &str = "/api/ingest/stix";

#[test]
fn query_parameters_are_checked_and_named() {
    run(async {
        let app = TestApp::shared().await;
        let long = "x".repeat(4001);
        for route in ["search", "semantic"] {
            for (pairs, field) in [
                (vec![], "q: is required"),
                (vec![("q", "")], "q: is required"),
                (vec![("q", "   ")], "q: is required"),
                (vec![("q", "a\u{0}b")], "q: must not hold a NUL"),
                (vec![("q", long.as_str())], "q: must have at most"),
                (
                    vec![("q", "x"), ("limit", "0")],
                    "limit: must be a whole number from 1 to 100",
                ),
                (
                    vec![("q", "x"), ("limit", "101")],
                    "limit: must be a whole number from 1 to 100",
                ),
                (
                    vec![("q", "x"), ("limit", "x")],
                    "limit: must be a whole number from 1 to 100",
                ),
                (vec![("q", "x"), ("limit", "-1")], "limit: must be"),
                (vec![("q", "x"), ("limit", "1.5")], "limit: must be"),
                (
                    vec![("q", "x"), ("limit", "99999999999999999999")],
                    "limit: must be",
                ),
                (vec![("q", "x"), ("limit", "")], "limit: must be"),
                (
                    vec![("q", "x"), ("include_rejected", "maybe")],
                    "include_rejected: must be true or false",
                ),
            ] {
                let path = format!("/api/recall/{route}?{}", encode(&pairs));
                let error = refusal(app.admin.get(&path).await, 400, &path).await;
                assert!(error.starts_with(field), "{path}: {error}");
            }
        }
        let error = refusal(app.admin.get("/api/recall/search?q=x&mode=x").await, 400, "mode").await;
        assert!(
            error.starts_with("mode: must be one of blended, structured"),
            "{error}"
        );
        // Query parser operators are treated as plain characters.
        for query in [
            "\"",
            "(((",
            "a AND",
            "name:[* TO *]",
            "\\",
            "-",
            "*",
            "'; DROP TABLE node; --",
            "🦊",
            "%",
            "\u{202e}",
        ] {
            for mode in ["blended", "structured"] {
                app.admin.search_with(query, &[("mode", mode)]).await;
            }
        }
        app.admin.search_with(&"T1059 ".repeat(600), &[]).await;
        app.stop().await;
    });
}

#[test]
fn lists_may_be_repeated_and_truth_values_are_read_in_any_usual_spelling() {
    run(async {
        let app = TestApp::shared().await;
        let nodes: Vec<_> = ["tool", "actor", "vulnerability"]
            .map(|kind| json!({"name": format!("Manykind {kind}"), "node_type": kind}))
            .into();
        app.admin
            .post("/api/ingest/analyst", &json!({"nodes": nodes}))
            .await
            .expect(201)
            .await;
        for (types, count) in [
            ("node_type=tool", 1),
            ("node_type=tool&node_type=actor", 2),
            ("node_type=tool,actor&node_type=actor&node_type=vulnerability", 3),
        ] {
            let path = format!("/api/recall/search?q=Manykind&{types}");
            assert_eq!(
                app.admin.get(&path).await.expect(200).await["count"],
                count,
                "{types}"
            );
        }
        let path = "/api/recall/search?q=Manykind&node_type=tool&node_type=gadget";
        assert!(
            app.admin
                .get(path)
                .await
                .refused(400)
                .await
                .starts_with("node_type: each must be")
        );
        for (text, want) in [
            ("True", true),
            ("1", true),
            ("yes", true),
            ("FALSE", false),
            ("off", false),
        ] {
            let path = format!("/api/recall/search?q=x&include_rejected={text}");
            assert_eq!(
                app.admin.get(&path).await.expect(200).await["include_rejected"],
                want,
                "{text}"
            );
        }
        for (query, want) in [
            ("q=%ff", "q: must be UTF-8"),
            ("q=x%C3", "q: must be UTF-8"),
            ("q=x&limit=1&limit=2", "limit: must be given once"),
            (
                "q=x&limt=1",
                "limt: is no parameter of this request; did you mean limit?",
            ),
            (
                "q=x&nodeType=tool",
                "nodeType: is no parameter of this request; did you mean node_type?",
            ),
            ("q=x&=1", "query string: is no parameter"),
        ] {
            let error = app
                .admin
                .get(&format!("/api/recall/search?{query}"))
                .await
                .refused(400)
                .await;
            assert!(error.starts_with(want), "{query}: {error}");
        }
        app.stop().await;
    });
}

#[test]
fn a_body_that_announces_too_much_is_refused_before_it_is_sent() {
    run(async {
        let app = TestApp::spawn().await;
        let address = app.application().address();
        let credential = app.admin.sends("authorization").to_owned();
        let request = format!(
            "POST /api/ingest/stix HTTP/1.1\r\nhost: {address}\r\nauthorization: {credential}\r\n\
             content-type: application/json\r\ncontent-length: 99999999999\r\n\r\n"
        );
        let answer = tokio::task::spawn_blocking(move || raw(address, request.as_bytes()))
            .await
            .unwrap();
        assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
        app.stop().await;
    });
}

#[test]
fn unknown_routes_methods_and_odd_urls_are_answered_in_json() {
    run(async {
        let app = TestApp::shared().await;
        for path in [
            "/api",
            "/api/nothing",
            "/api/ingest/stix/",
            "/api/%zz",
            "/api/%ff%fe",
            "/..%2f..%2fetc/passwd",
        ] {
            refusal(app.admin.get(path).await, 404, path).await;
        }
        let session = uuid::Uuid::new_v4();
        for path in [
            format!("/api/recall/sessions/{session}"),
            format!("/api/recall/sessions/{session}/export.stix"),
            "/api/recall/sessions/%zz".into(),
            "/api/recall/sessions/%00".into(),
            "/api/recall/sessions/not-a-uuid/export.stix".into(),
        ] {
            let error = refusal(app.admin.get(&path).await, 404, &path).await;
            assert_eq!(error, "session not found", "{path}");
        }
        for (method, path) in [
            (Method::GET, STIX),
            (Method::PUT, STIX),
            (Method::POST, "/api/recall/search"),
            (Method::DELETE, "/health"),
            (Method::PATCH, "/api/audit/logs"),
            (Method::from_bytes(b"BREW").unwrap(), "/api/health"),
        ] {
            let answer = Answer(app.admin.request(method.clone(), path).send().await.unwrap());
            refusal(answer, 405, &format!("{method} {path}")).await;
        }
        for query in ["q=%", "q=%zz", "q=%ff", "q=a&q=b", "q=x&=y&&", "q=a+b%20c"] {
            let answer = app.admin.get(&format!("/api/recall/search?{query}")).await;
            let status = answer.0.status().as_u16();
            assert!([200, 400].contains(&status), "{query}: {status}");
            answer.expect(status).await.as_object().unwrap();
        }
        refusal(
            app.anonymous().get("/api/recall/search?q=x").await,
            401,
            "anonymous",
        )
        .await;
        refusal(
            app.anonymous().post_bytes(STIX, "not json").await,
            401,
            "anonymous",
        )
        .await;
        app.stop().await;
    });
}
