//! Methods that a path does not support.

use reqwest::Method;

use crate::helpers::{TestApp, run};

#[test]
fn a_method_that_a_path_does_not_have_is_405_and_names_those_it_has() {
    run(async {
        let app = TestApp::shared().await;
        let id = uuid::Uuid::new_v4();
        for (method, path, allowed) in [
            (Method::POST, "/health".to_owned(), "GET, HEAD"),
            (Method::DELETE, "/api/health".into(), "GET, HEAD"),
            (Method::GET, "/api/auth/login".into(), "POST"),
            (Method::HEAD, "/api/auth/login".into(), "POST"),
            (Method::POST, "/api/auth/me".into(), "GET, HEAD"),
            (Method::GET, "/api/auth/logout".into(), "POST"),
            (
                Method::POST,
                format!("/api/admin/workspaces/{id}"),
                "GET, HEAD, PATCH, DELETE",
            ),
            (Method::POST, "/api/auth/oauth/corp/callback".into(), "GET, HEAD"),
            (Method::DELETE, "/api/admin/users".into(), "GET, HEAD, POST"),
            (Method::GET, format!("/api/admin/users/{id}"), "PATCH"),
            (Method::PUT, "/api/admin/workspace".into(), "GET, HEAD, PATCH"),
            (Method::GET, format!("/api/admin/api-keys/{id}"), "DELETE"),
            (Method::GET, "/api/ingest/stix".into(), "POST"),
            (
                Method::from_bytes(b"BREW").unwrap(),
                "/api/ingest/analyst".into(),
                "POST",
            ),
            (Method::POST, format!("/api/ingest/staging/{id}"), "PATCH"),
            (Method::POST, "/api/recall/search".into(), "GET, HEAD"),
            (Method::DELETE, "/api/audit/logs".into(), "GET, HEAD"),
            (Method::GET, "/mcp".into(), "POST"),
            (Method::DELETE, "/mcp".into(), "POST"),
        ] {
            for client in [&app.anonymous(), &app.admin] {
                let answer = client.request(method.clone(), &path).send().await.unwrap();
                let answer = crate::helpers::Answer(answer);
                assert_eq!(answer.status(), 405, "{method} {path}");
                assert_eq!(answer.header("allow"), Some(allowed), "{method} {path}");
                assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
                if method != Method::HEAD {
                    assert_eq!(answer.refused(405).await, "method not allowed");
                }
            }
        }
        app.anonymous()
            .post("/api/nowhere", &serde_json::json!({}))
            .await
            .refused(404)
            .await;
        app.stop().await;
    });
}

#[test]
fn unknown_paths_and_methods_answer_in_json_whoever_asks() {
    run(async {
        let app = TestApp::shared().await;
        for client in [app.anonymous(), app.admin.clone()] {
            let error = client.get("/api/admin/nothing").await.refused(404).await;
            assert_eq!(error, "no such route");
            let error = client.delete("/api/recall/search").await.refused(405).await;
            assert_eq!(error, "method not allowed");
        }
        app.stop().await;
    });
}
