//! What browsers expect of the local service.

use futures_util::StreamExt;
use reqwest::Method;
use serde_json::json;

use crate::helpers::{Answer, run};
use crate::local::LocalApp;

const KEYED: &str = "web.api_key = \"right key\"";

#[test]
fn every_answer_has_the_headers_that_keep_a_browser_from_harm() {
    run(async {
        let app = LocalApp::with(None, KEYED).await;
        let keyed = app.client.with_header("x-api-key", "right key");
        let strict = "default-src 'none'; frame-ancestors 'none'";
        let page = crate::pages::POLICY;
        for (client, method, path, status, policy, cache) in [
            (&keyed, Method::GET, "/api/version", 200, strict, "no-store"),
            (&keyed, Method::HEAD, "/api/version", 200, strict, "no-store"),
            (&keyed, Method::POST, "/api/recall", 422, strict, "no-store"),
            (&keyed, Method::GET, "/api/nope", 404, strict, "no-store"),
            (&keyed, Method::DELETE, "/api/version", 405, strict, "no-store"),
            (&app.client, Method::GET, "/api/version", 401, strict, "no-store"),
            (&app.client, Method::GET, "/nope", 404, strict, "no-store"),
            (&app.client, Method::GET, "/", 200, page, "no-cache"),
        ] {
            let request = client
                .request(method.clone(), path)
                .header("x-request-id", "mine-1");
            let answer = Answer(request.send().await.unwrap());
            assert_eq!(answer.status(), status, "{method} {path}");
            for (name, value) in [
                ("x-request-id", "mine-1"),
                ("x-content-type-options", "nosniff"),
                ("cache-control", cache),
                ("content-security-policy", policy),
                ("x-frame-options", "DENY"),
                ("referrer-policy", "no-referrer"),
                ("cross-origin-resource-policy", "same-origin"),
            ] {
                assert_eq!(answer.header(name), Some(value), "{method} {path}");
            }
            assert_eq!(answer.header("server"), None);
        }
        app.stop().await;
    });
}

#[test]
fn no_other_origin_is_given_permission() {
    run(async {
        let app = LocalApp::with(None, KEYED).await;
        let page = app.client.with_header("origin", "https://app.example.org");
        let asked = page
            .request(Method::OPTIONS, "/api/recall")
            .header("access-control-request-method", "POST");
        let preflight = Answer(asked.send().await.unwrap());
        assert_eq!(preflight.header("access-control-allow-origin"), None);
        assert_ne!(preflight.status(), 200);
        let answer = page
            .with_header("x-api-key", "right key")
            .get("/api/version")
            .await;
        assert_eq!(answer.header("access-control-allow-origin"), None);
        app.stop().await;
    });
}

#[test]
fn a_page_that_the_browser_has_is_not_sent_again() {
    run(async {
        let app = LocalApp::spawn().await;
        for path in ["/", "/config"] {
            let first = app.client.get(path).await;
            let tag = first.header("etag").unwrap().to_owned();
            assert!(first.whole().await.1.starts_with("<!DOCTYPE html>"));
            let again = app.client.with_header("if-none-match", &tag).get(path).await;
            assert_eq!((again.status(), again.header("etag")), (304, Some(tag.as_str())));
            assert!(
                again
                    .header("content-security-policy")
                    .unwrap()
                    .contains("style-src")
            );
            assert_eq!(again.whole().await.1, "");
            let other = app
                .client
                .with_header("if-none-match", "\"other\"")
                .get(path)
                .await;
            assert_eq!(other.status(), 200);
        }
        app.stop().await;
    });
}

#[test]
fn large_answers_are_compressed_and_streams_are_not() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let app = LocalApp::durable(dir.path()).await;
        let gzip = app.client.with_header("accept-encoding", "gzip");
        let large = gzip.get("/api/config").await;
        assert_eq!(large.header("content-encoding"), Some("gzip"));
        assert_eq!(large.header("vary"), Some("accept-encoding"));
        let small = gzip.get("/api/version").await;
        assert_eq!(small.header("content-encoding"), None);
        let stream = gzip.get("/api/telemetry/stream").await;
        assert_eq!(stream.header("content-encoding"), None);
        let first = stream.0.bytes_stream().next().await.unwrap().unwrap();
        assert!(
            first.starts_with(b"data: ") || first.starts_with(b": "),
            "{first:?}"
        );
        app.stop().await;
    });
}

#[test]
fn the_type_of_a_body_does_not_matter_as_in_the_tool_that_this_replaces() {
    run(async {
        let app = LocalApp::spawn().await;
        for media_type in ["application/x-www-form-urlencoded", "text/plain", "nonsense"] {
            let request = app.client.request(Method::POST, "/api/remember");
            let request = request.header("content-type", media_type);
            let body = json!({"content": format!("sent as {media_type}")}).to_string();
            Answer(request.body(body).send().await.unwrap()).expect(200).await;
        }
        app.stop().await;
    });
}
