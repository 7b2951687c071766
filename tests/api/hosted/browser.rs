//! What browsers and their developers expect of an HTTP service: headers, CORS, HEAD, media types, compression.

use std::io::Read;
use std::time::{Duration, Instant};

use reqwest::{Method, RequestBuilder};
use serde_json::json;

use crate::helpers::{Answer, Client, TestApp, run, settings};
use crate::stix::object;

const PAGE: &str = "https://app.example.org";

async fn sent(request: RequestBuilder) -> Answer {
    Answer(request.send().await.unwrap())
}

/// A service that pages of [`PAGE`] may call.
async fn with_cors() -> TestApp {
    let mut settings = settings("mem://");
    settings.server.cors_origins = vec![PAGE.into(), "http://localhost:3000".into()];
    TestApp::with(settings).await
}

/// A preflight for a request with a bearer token.
async fn preflight(client: &Client, path: &str, origin: &str, method: &str, headers: &str) -> Answer {
    let request = client
        .request(Method::OPTIONS, path)
        .header("origin", origin)
        .header("access-control-request-method", method)
        .header("access-control-request-headers", headers);
    sent(request).await
}

/// A workspace with enough tools that lists of them are worth compressing.
async fn stocked(app: &TestApp) {
    let tools: Vec<_> = (0..20)
        .map(|n| object("tool", &format!("Heron tool {n}")))
        .collect();
    app.admin.ingest(json!(tools)).await;
}

#[test]
fn every_answer_has_the_headers_that_keep_a_browser_from_harm() {
    run(async {
        let mut settings = settings("mem://");
        settings.server.body_limit = 2048;
        settings.server.cors_origins = vec![PAGE.into()];
        settings.limits.tiers.insert("pilot".into(), 1);
        let app = TestApp::with(settings).await;
        let pilot = app.workspace("pilot").await;
        pilot.get("/api/auth/me").await.expect(200).await;
        let (nobody, id) = (app.anonymous(), uuid::Uuid::new_v4());
        let large = "x".repeat(3000);
        for (client, method, path, body, status) in [
            (&nobody, Method::GET, "/health".to_owned(), "", 200),
            (&nobody, Method::HEAD, "/health".into(), "", 200),
            (
                &app.admin,
                Method::POST,
                "/api/ingest/stix".into(),
                r#"{"bundle":[]}"#,
                201,
            ),
            (&app.admin, Method::POST, "/api/ingest/stix".into(), "{", 400),
            (
                &app.admin,
                Method::POST,
                "/api/ingest/stix".into(),
                large.as_str(),
                413,
            ),
            (&nobody, Method::GET, "/api/auth/me".into(), "", 401),
            (&nobody, Method::GET, "/nope".into(), "", 404),
            (&app.admin, Method::GET, format!("/api/nodes/{id}"), "", 404),
            (&nobody, Method::DELETE, "/health".into(), "", 405),
            (&nobody, Method::OPTIONS, "/health".into(), "", 405),
            (&pilot, Method::GET, "/api/auth/me".into(), "", 429),
        ] {
            for origin in [None, Some(PAGE), Some("https://evil.example")] {
                let mut request = client.request(method.clone(), &path).body(body.to_owned());
                request = request.header("x-request-id", "mine-1");
                if let Some(origin) = origin {
                    request = request.header("origin", origin);
                }
                let answer = sent(request).await;
                assert_eq!(answer.status(), status, "{method} {path}");
                for (name, value) in [
                    ("x-request-id", "mine-1"),
                    ("x-content-type-options", "nosniff"),
                    ("cache-control", "no-store"),
                    (
                        "content-security-policy",
                        "default-src 'none'; frame-ancestors 'none'",
                    ),
                    ("x-frame-options", "DENY"),
                    ("referrer-policy", "no-referrer"),
                    ("cross-origin-resource-policy", "same-origin"),
                ] {
                    assert_eq!(answer.header(name), Some(value), "{method} {path}");
                }
                for name in [
                    "server",
                    "x-powered-by",
                    "strict-transport-security",
                    "set-cookie",
                ] {
                    assert_eq!(answer.header(name), None, "{method} {path}");
                }
                let allowed = origin.filter(|origin| *origin == PAGE);
                assert_eq!(
                    answer.header("access-control-allow-origin"),
                    allowed,
                    "{method} {path}"
                );
            }
        }
        let made_up = nobody.get("/nope").await;
        uuid::Uuid::parse_str(made_up.header("x-request-id").unwrap()).unwrap();
        app.stop().await;
    });
}

#[test]
fn pages_of_the_listed_origins_may_call_the_api_and_read_its_headers() {
    run(async {
        let app = with_cors().await;
        let nobody = app.anonymous();
        let before = app.admin.get("/api/auth/me").await;
        for (origin, method, headers) in [
            (PAGE, "GET", "authorization"),
            (PAGE, "POST", "Authorization, Content-Type, X-Request-Id"),
            (PAGE, "PATCH", "x-api-key"),
            (PAGE, "POST", "mcp-protocol-version, mcp-method, mcp-name"),
            ("http://localhost:3000", "DELETE", "authorization"),
        ] {
            // Also for a path that nobody without a credential is told anything about.
            for path in ["/api/recall/search", "/api/nope"] {
                let answer = preflight(&nobody, path, origin, method, headers).await;
                assert_eq!(answer.status(), 200, "{origin} {method}");
                assert_eq!(answer.header("access-control-allow-origin"), Some(origin));
                let methods = answer.header("access-control-allow-methods").unwrap();
                assert!(methods.contains(method), "{methods}");
                let allowed = answer
                    .header("access-control-allow-headers")
                    .unwrap()
                    .to_lowercase();
                for name in headers.to_lowercase().split(", ") {
                    assert!(allowed.contains(name), "{allowed}");
                }
                assert_eq!(answer.header("access-control-max-age"), Some("600"));
                assert_eq!(answer.header("access-control-allow-credentials"), None);
                assert!(answer.header("vary").unwrap().contains("Origin"));
                assert_eq!(answer.header("ratelimit-limit"), None);
            }
        }
        let page = app.admin.with_header("origin", PAGE);
        let answer = page.get("/api/auth/me").await;
        let left = |answer: &Answer| {
            answer
                .header("ratelimit-remaining")
                .unwrap()
                .parse::<u64>()
                .unwrap()
        };
        assert_eq!(left(&before) - left(&answer), 1, "preflights are not counted");
        let exposed = answer
            .header("access-control-expose-headers")
            .unwrap()
            .to_lowercase();
        for name in [
            "ratelimit-limit",
            "ratelimit-remaining",
            "ratelimit-reset",
            "retry-after",
            "x-request-id",
            "x-held-back",
            "location",
        ] {
            assert!(exposed.split(", ").any(|one| one == name), "{name}: {exposed}");
        }
        // A page must be able to read why it was refused.
        for (client, path, status) in [
            (&nobody, "/api/auth/me", 401),
            (&page, "/api/recall/search", 400),
            (&page, "/nope", 404),
        ] {
            let answer = client.with_header("origin", PAGE).get(path).await;
            assert_eq!(answer.header("access-control-allow-origin"), Some(PAGE), "{path}");
            answer.refused(status).await;
        }
        app.stop().await;
    });
}

#[test]
fn pages_of_other_origins_get_no_permission() {
    run(async {
        let app = with_cors().await;
        for origin in [
            "https://evil.example",
            "http://app.example.org",
            "https://app.example.org:8443",
            "https://app.example.org.evil.example",
            "https://sub.app.example.org",
            "HTTPS://APP.EXAMPLE.ORG",
            "null",
        ] {
            let answer = preflight(&app.admin, "/api/auth/me", origin, "GET", "authorization").await;
            assert_eq!(answer.header("access-control-allow-origin"), None, "{origin}");
            let error = answer.refused(403).await;
            assert_eq!(error, "Origin is not allowed to make this request");
            let answer = app.admin.with_header("origin", origin).get("/api/auth/me").await;
            assert_eq!(answer.header("access-control-allow-origin"), None, "{origin}");
            answer.expect(200).await;
        }
        for (method, headers) in [("PUT", "authorization"), ("GET", "x-evil")] {
            let answer = preflight(&app.admin, "/api/auth/me", PAGE, method, headers).await;
            answer.refused(403).await;
        }
        app.stop().await;
        let app = TestApp::shared().await;
        let answer = preflight(&app.admin, "/api/auth/me", PAGE, "GET", "authorization").await;
        assert_eq!(answer.header("access-control-allow-origin"), None);
        assert_eq!(answer.refused(405).await, "method not allowed");
        let answer = app.admin.with_header("origin", PAGE).get("/api/auth/me").await;
        assert_eq!(answer.header("access-control-allow-origin"), None);
        app.stop().await;
    });
}

/// The headers of an answer that are the same each time.
fn lasting(answer: &Answer) -> Vec<(String, String)> {
    let changing = ["date", "x-request-id", "ratelimit-remaining", "ratelimit-reset"];
    let headers = answer.0.headers().iter();
    let headers = headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
    let mut headers: Vec<_> = headers
        .filter(|(name, _)| !changing.contains(&name.as_str()))
        .collect();
    headers.sort();
    headers
}

#[test]
fn head_answers_as_get_does_without_the_body() {
    run(async {
        let app = TestApp::shared().await;
        stocked(&app).await;
        let found = app.admin.search("Heron tool").await;
        let id = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        let session = id(&found["recall_id"]);
        for path in [
            "/health".to_owned(),
            "/api/health".into(),
            "/api/auth/me".into(),
            "/api/recall/search?q=Heron&limit=20".into(),
            "/api/recall/semantic?q=Heron&limit=20".into(),
            format!("/api/recall/sessions/{session}"),
            format!("/api/recall/sessions/{session}/export.stix"),
            format!("/api/nodes/{}", id(&found["results"][0]["id"])),
            format!("/api/nodes/{}", uuid::Uuid::new_v4()),
            "/api/recall/search".into(),
            "/api/admin/users".into(),
            "/api/admin/workspace".into(),
            "/api/threat-intel/feeds".into(),
            "/nope".into(),
        ] {
            for encoding in ["identity", "gzip"] {
                let client = app.admin.with_header("accept-encoding", encoding);
                let get = client.get(&path).await;
                let head = sent(client.request(Method::HEAD, &path)).await;
                assert_eq!(head.status(), get.status(), "{path}");
                assert_eq!(lasting(&head), lasting(&get), "{path} {encoding}");
                assert_eq!(head.whole().await.1, "", "{path}");
            }
            let nobody = sent(app.anonymous().request(Method::HEAD, &path)).await;
            let get = app.anonymous().get(&path).await;
            assert_eq!(nobody.status(), get.status(), "{path}");
        }
        app.stop().await;
    });
}

#[test]
fn a_body_that_says_it_is_no_json_is_415() {
    run(async {
        let app = TestApp::shared().await;
        let send = |client: &Client, path: &str, media_type: Option<&str>| {
            let mut request = client.request(Method::POST, path).body(r#"{"bundle":[]}"#);
            if let Some(media_type) = media_type {
                request = request.header("content-type", media_type);
            }
            sent(request)
        };
        let stix = "/api/ingest/stix";
        for media_type in [
            None,
            Some("application/json"),
            Some("application/json; charset=UTF-8"),
            Some("application/stix+json;version=2.1"),
            Some("application/taxii+json;version=2.1"),
        ] {
            send(&app.admin, stix, media_type).await.expect(201).await;
            // The body is read, and found wanting. Without a type any web page could send it.
            let status = if media_type.is_some() { 400 } else { 415 };
            send(&app.anonymous(), "/api/auth/login", media_type)
                .await
                .refused(status)
                .await;
        }
        for media_type in [
            "application/x-www-form-urlencoded",
            "text/plain",
            "multipart/form-data; boundary=x",
            "application/json; charset=utf-16",
            "nonsense",
        ] {
            for path in [
                stix,
                "/api/ingest/preview",
                "/api/admin/users",
                "/api/threat-intel/feeds",
            ] {
                let answer = send(&app.admin, path, Some(media_type)).await;
                assert_eq!(answer.header("accept"), Some("application/json"));
                let error = answer.refused(415).await;
                assert_eq!(
                    error, "Content-Type: must be application/json, in UTF-8",
                    "{path}"
                );
                // Who may not send a body is not told what it should have been.
                send(&app.anonymous(), path, Some(media_type))
                    .await
                    .refused(401)
                    .await;
            }
            send(&app.anonymous(), "/api/auth/login", Some(media_type))
                .await
                .refused(415)
                .await;
        }
        // Without a body its type does not matter: curl -X POST -d '' sends one.
        let batch = format!("/api/ingest/batch/{}/commit", uuid::Uuid::new_v4());
        let request = app.admin.request(Method::POST, &batch).body("");
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        sent(request).await.refused(404).await;
        app.stop().await;
    });
}

#[test]
fn large_answers_are_compressed_if_the_client_asks_for_it() {
    run(async {
        let app = TestApp::shared().await;
        stocked(&app).await;
        let search = "/api/recall/semantic?q=Heron&limit=20";
        let plain = app.admin.get(search).await;
        assert_eq!(plain.header("content-encoding"), None);
        assert_eq!(plain.header("vary"), Some("accept-encoding"));
        let length: usize = plain.header("content-length").unwrap().parse().unwrap();
        let plain = plain.whole().await.1;
        assert_eq!(plain.len(), length);
        for (accepted, coding) in [
            ("gzip", Some("gzip")),
            // What browsers send: of equals, the one that takes less time.
            ("gzip, deflate, br, zstd", Some("zstd")),
            ("gzip, zstd;q=0.9", Some("gzip")),
            ("gzip;q=0.5, zstd", Some("zstd")),
            ("br, zstd;q=0.1", Some("zstd")),
            ("gzip;q=0", None),
            ("identity", None),
            ("br", None),
            // Nothing of it can be had; an answer is better than none.
            ("identity;q=0, br", None),
            ("", None),
        ] {
            let answer = app
                .admin
                .with_header("accept-encoding", accepted)
                .get(search)
                .await;
            assert_eq!(answer.status(), 200, "{accepted}");
            assert_eq!(answer.header("content-encoding"), coding, "{accepted}");
            assert_eq!(answer.header("vary"), Some("accept-encoding"), "{accepted}");
            let bytes = answer.0.bytes().await.unwrap();
            match coding {
                Some("gzip") => {
                    let mut text = String::new();
                    flate2::read::GzDecoder::new(&bytes[..])
                        .read_to_string(&mut text)
                        .unwrap();
                    assert_eq!(text, plain);
                }
                Some(_) => assert_eq!(bytes[..4], [0x28, 0xb5, 0x2f, 0xfd], "RFC 8878 section 3.1.1"),
                None => assert_eq!(bytes, plain.as_bytes()),
            }
            assert!(coding.is_none() || bytes.len() * 2 < plain.len());
        }
        app.stop().await;
    });
}

#[test]
fn secrets_and_small_answers_are_not_compressed() {
    run(async {
        let app = TestApp::shared().await;
        for _ in 0..10 {
            app.admin.add_user("viewer").await;
        }
        let gzip = app.admin.with_header("accept-encoding", "gzip");
        for path in ["/api/admin/users", "/api/adm%69n/users"] {
            let answer = gzip.get(path).await;
            assert_eq!(answer.header("content-encoding"), None, "{path}");
            assert_eq!(answer.header("vary"), None, "{path}");
            assert!(answer.expect(200).await.to_string().len() > 1024);
        }
        // The answer repeats the name, so it can be made large.
        let body = json!({"name": "n".repeat(200), "scopes": ["read"]});
        let made = gzip.post("/api/admin/api-keys", &body).await;
        assert_eq!(made.header("content-encoding"), None);
        for path in ["/api/health", "/api/auth/me", "/nope"] {
            let answer = gzip.get(path).await;
            assert_eq!(answer.header("content-encoding"), None, "{path}");
        }
        app.stop().await;
    });
}

#[test]
fn a_refusal_is_delayed_however_its_path_is_written() {
    run(async {
        let app = TestApp::shared().await;
        for path in ["/api/nodes/", "/api/nod%65s/"] {
            for _ in 0..5 {
                let asked = Instant::now();
                let answer = app.admin.get(&format!("{path}{}", uuid::Uuid::new_v4())).await;
                assert!(asked.elapsed() >= Duration::from_millis(10), "{path}");
                answer.refused(404).await;
            }
        }
        app.stop().await;
    });
}
