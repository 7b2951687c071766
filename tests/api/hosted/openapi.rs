//! `/openapi.json`.

use serde_json::Value;

use crate::helpers::{Answer, TestApp, run};
use crate::{openapi, wrong_types};

async fn document(app: &TestApp) -> Value {
    app.anonymous().get("/openapi.json").await.expect(200).await
}

#[test]
fn every_route_is_described_and_nothing_else() {
    run(async {
        let app = TestApp::shared().await;
        let document = document(&app).await;
        if let Ok(file) = std::env::var("SHOW_DOCUMENT") {
            std::fs::write(file, document.to_string()).unwrap();
        }
        openapi::covers_every_route(&document, "hosted", &app.anonymous()).await;
        openapi::describes_every_operation(&document);
        openapi::links_lead_somewhere(&document);
        openapi::is_consistent(&document);
        app.stop().await;
    });
}

#[test]
fn errors_of_wrong_types_are_worded_as_json_and_null_is_absent() {
    run(async {
        let app = TestApp::spawn().await;
        let document = document(&app).await;
        // Taken in by anybody, five times a minute.
        let limited = ["/api/pilot", "/api/public/demo-recall"];
        let sent = wrong_types::are_worded_as_json(&document, &app.admin, &limited, true).await;
        assert!(sent > 300, "{sent}");
        app.stop().await;
    });
}

#[test]
fn unknown_query_parameters_are_refused_on_every_route_but_the_callback() {
    run(async {
        let app = TestApp::spawn().await;
        let document = document(&app).await;
        let except = ["/api/auth/oauth/{provider}/callback", "/api/pilot"];
        wrong_types::unknown_parameters_are_refused(&document, &app.admin, &except, 400).await;
        app.stop().await;
    });
}

#[test]
fn refusals_of_the_http_layer_have_the_error_object() {
    run(async {
        let app = TestApp::spawn().await;
        let address = app.application().address();
        wrong_types::refusals_of_the_http_layer_have_a_body(address, "error").await;
        app.stop().await;
    });
}

#[test]
fn what_needs_a_credential_says_so() {
    run(async {
        let app = TestApp::shared().await;
        let document = document(&app).await;
        assert_eq!(document["openapi"], "3.1.0");
        assert_eq!(document["info"]["version"], "1.0.0");
        assert_eq!(document["servers"][0]["url"], "/");
        let schemes = &document["components"]["securitySchemes"];
        assert_eq!(schemes["bearer"]["scheme"], "bearer");
        assert_eq!(schemes["api_key"]["name"], "X-API-Key");
        for (method, path, operation) in openapi::operations(&document) {
            let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
            let path = path
                .replace("{id}", &uuid::Uuid::nil().to_string())
                .replace("{item}", "x");
            let answer = app
                .anonymous()
                .request(method.clone(), &path)
                .send()
                .await
                .unwrap();
            let refused = operation["responses"].get("401").is_some() && answer.status() == 401;
            assert_eq!(openapi::is_open(operation), !refused, "{method} {path}");
        }
        app.stop().await;
    });
}

#[test]
fn the_document_is_written_as_generators_of_clients_read_it() {
    run(async {
        let app = TestApp::shared().await;
        openapi::suits_generators(&document(&app).await);
        app.stop().await;
    });
}

#[test]
fn a_client_that_has_the_document_is_told_so_and_sixty_requests_a_minute_are_enough() {
    run(async {
        let app = TestApp::spawn().await;
        let client = app.anonymous();
        let first = client.get("/openapi.json").await;
        assert_eq!(first.header("content-type"), Some("application/json"));
        assert_eq!(first.header("cache-control"), Some("no-cache"));
        assert_eq!(first.header("ratelimit-limit"), Some("60"));
        let etag = first.header("etag").unwrap().to_owned();
        let length = first.0.text().await.unwrap().len();
        let again = client
            .with_header("if-none-match", &etag)
            .get("/openapi.json")
            .await;
        assert_eq!(again.status(), 304);
        assert_eq!(again.header("etag"), Some(etag.as_str()));
        assert_eq!(again.0.text().await.unwrap(), "");
        let other = client
            .with_header("if-none-match", "\"x\"")
            .get("/openapi.json")
            .await;
        assert_eq!(other.status(), 200);
        let head = client
            .request(reqwest::Method::HEAD, "/openapi.json")
            .send()
            .await
            .unwrap();
        let head = Answer(head);
        assert_eq!(head.status(), 200);
        assert_eq!(head.header("content-length"), Some(length.to_string().as_str()));
        for _ in 4..60 {
            assert_eq!(client.get("/openapi.json").await.status(), 200);
        }
        let refused = client.get("/openapi.json").await;
        assert!(refused.header("retry-after").is_some());
        assert_eq!(refused.refused(429).await, "rate limit exceeded");
        app.stop().await;
    });
}

#[test]
fn the_page_loads_nothing_from_elsewhere() {
    run(async {
        let app = TestApp::shared().await;
        let client = app.anonymous();
        for (path, kind) in [
            ("/docs", "text/html; charset=utf-8"),
            ("/docs/viewer.js", "text/javascript; charset=utf-8"),
            ("/docs/swagger-ui-bundle.js", "text/javascript; charset=utf-8"),
            ("/docs/swagger-ui.css", "text/css; charset=utf-8"),
            ("/docs/favicon-32x32.png", "image/png"),
        ] {
            let answer = client.get(path).await;
            assert_eq!(answer.status(), 200, "{path}");
            assert_eq!(answer.header("content-type"), Some(kind), "{path}");
            assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
            let policy = answer.header("content-security-policy").unwrap();
            assert!(
                policy.starts_with("default-src 'none'; script-src 'self'; "),
                "{policy}"
            );
            assert!(!policy.contains("http"), "{policy}");
            let etag = answer.header("etag").unwrap().to_owned();
            let known = client.with_header("if-none-match", &etag).get(path).await;
            assert_eq!(known.status(), 304, "{path}");
        }
        assert_eq!(
            client
                .get("/docs/swagger-initializer.js")
                .await
                .refused(404)
                .await,
            "no such route"
        );
        assert_eq!(
            client.post("/docs", &Value::Null).await.refused(405).await,
            "method not allowed"
        );
        app.stop().await;
    });
}
