//! The web pages of both services, as a browser loads them.

use std::collections::BTreeSet;

use reqwest::Method;

use crate::helpers::{Answer, Client, TestApp, run, settings};
use crate::local::LocalApp;

pub const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'; trusted-types 'none'";
const HTML: &str = "text/html,application/xhtml+xml,*/*;q=0.8";

/// What a text loads: quoted paths after `start`.
fn loaded(text: &str, start: &str) -> Vec<String> {
    let pieces = text.split(start).skip(1);
    pieces
        .filter_map(|piece| piece.split('"').next())
        .map(str::to_owned)
        .collect()
}

/// Loads a page with everything that it and its modules name, and returns the paths.
async fn load(client: &Client, page: &str) -> BTreeSet<String> {
    let answer = client.get(page).await;
    assert_eq!(answer.header("content-security-policy"), Some(POLICY));
    assert_eq!(answer.header("cross-origin-opener-policy"), Some("same-origin"));
    let (status, text) = answer.whole().await;
    assert_eq!(status, 200, "{page}");
    let mut waiting: Vec<String> = ["href=\"/assets", "src=\"/assets"]
        .iter()
        .flat_map(|start| loaded(&text, start))
        .map(|rest| format!("/assets{rest}"))
        .collect();
    let mut seen = BTreeSet::new();
    while let Some(path) = waiting.pop() {
        if !seen.insert(path.clone()) {
            continue;
        }
        let answer = client.get(&path).await;
        assert_eq!(answer.status(), 200, "{path}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(
            answer.header("cache-control"),
            Some("public, max-age=31536000, immutable")
        );
        let kind = answer.header("content-type").unwrap_or_default().to_owned();
        let fits = match path.rsplit_once('.').unwrap().1 {
            "js" => "text/javascript; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            _ => "image/svg+xml",
        };
        assert_eq!(kind, fits, "{path}");
        let base = reqwest::Url::parse(&format!("http://x{path}")).unwrap();
        let (_, text) = answer.whole().await;
        let modules = ["from \".", "import \"."]
            .iter()
            .flat_map(|start| loaded(&text, start));
        waiting.extend(modules.map(|rest| base.join(&format!(".{rest}")).unwrap().path().to_owned()));
    }
    seen
}

#[test]
fn the_management_page_and_its_files_need_no_key() {
    run(async {
        let app = LocalApp::with(None, "web.api_key = \"right key\"").await;
        let files = load(&app.client, "/").await;
        assert!(files.len() > 8, "{files:?}");
        let one = files.first().unwrap();
        let digest = one.split('/').nth(2).unwrap();
        for path in [
            one.replace(digest, "0000000000000000"),
            format!("{one}x"),
            format!("/assets/{digest}/../Cargo.toml"),
            format!("/assets/{digest}/index.html"),
        ] {
            assert_eq!(app.client.get(&path).await.status(), 404, "{path}");
        }
        let head = app.client.request(Method::HEAD, one).send().await.unwrap();
        assert_eq!(head.status(), 200);
        app.stop().await;
    });
}

#[test]
fn the_editor_without_the_key_is_a_refusal_that_a_browser_shows_as_the_page() {
    run(async {
        let app = LocalApp::with(None, "web.api_key = \"right key\"\nweb.rate_limit_per_minute = 5").await;
        let browser = app.client.with_header("accept", HTML);
        let program = app.client.with_header("accept", "application/json");
        let answer = browser.get("/config").await;
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert_eq!(answer.header("vary"), Some("accept"));
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
        assert_eq!(answer.header("content-security-policy"), Some(POLICY));
        let (status, page) = answer.whole().await;
        assert_eq!(status, 401);
        assert_eq!(page, app.client.get("/").await.whole().await.1);
        let unwilling = app.client.with_header("accept", "text/html;q=0, */*");
        for client in [&app.client, &program, &unwilling] {
            let (status, text) = client.get("/config").await.whole().await;
            assert_eq!(
                (status, text.as_str()),
                (401, r#"{"detail":"Valid API key required"}"#)
            );
        }
        // A browser that has the page gets it whole nevertheless.
        let tag = app.client.get("/").await.header("etag").unwrap().to_owned();
        let wrong = browser
            .with_header("x-api-key", "wrong")
            .with_header("if-none-match", &tag);
        assert_eq!(wrong.get("/config").await.whole().await, (401, page.clone()));
        // Refusals count, and the one that is too many says when to come back.
        let refused = wrong.get("/config").await;
        assert!(refused.header("retry-after").is_some());
        assert_eq!(refused.whole().await, (429, page.clone()));
        let right = browser.with_header("x-api-key", "right key");
        assert_eq!(right.get("/config").await.whole().await, (200, page));
        let method = right.request(Method::POST, "/config").send().await.unwrap();
        assert_eq!(Answer(method).whole().await.0, 405);
        app.stop().await;
    });
}

#[test]
fn the_console_can_be_switched_off() {
    run(async {
        let app = TestApp::shared().await;
        let files = load(&app.anonymous(), "/console").await;
        assert!(!files.is_empty());
        app.stop().await;

        let mut settings = settings("mem://");
        settings.server.console = false;
        let app = TestApp::with(settings).await;
        let client = app.anonymous();
        for path in &files {
            assert_eq!(client.get(path).await.refused(404).await, "no such route");
        }
        for path in ["/", "/console", "/console/"] {
            assert_eq!(
                client.get(path).await.refused(404).await,
                "the console is off (server.console); the API is described at /docs"
            );
        }
        app.stop().await;
    });
}

/// Where a path leads to, for GET and HEAD.
async fn lead(client: &Client, path: &str) -> String {
    let mut leads = BTreeSet::new();
    for method in [Method::GET, Method::HEAD] {
        let answer = Answer(client.request(method, path).send().await.unwrap());
        assert_eq!(answer.status(), 302, "{path}");
        leads.insert(answer.header("location").unwrap().to_owned());
    }
    assert_eq!(leads.len(), 1, "{leads:?}");
    leads.pop_first().unwrap()
}

/// A client that does not go where it is led.
fn steady(client: &Client) -> Client {
    let builder = reqwest::Client::builder().no_proxy();
    let http = builder.redirect(reqwest::redirect::Policy::none());
    let mut steady = client.clone();
    steady.http = http.build().unwrap();
    steady
}

#[test]
fn what_a_person_types_leads_to_the_page() {
    run(async {
        let app = TestApp::shared().await;
        let client = steady(&app.anonymous());
        for (path, page) in [("/", "/console"), ("/console/", "/console"), ("/docs/", "/docs")] {
            assert_eq!(lead(&client, path).await, page);
            assert_eq!(client.get(page).await.status(), 200);
            let sent = client.post(path, &serde_json::Value::Null).await;
            assert_eq!(sent.status(), 405, "{path}");
        }
        app.stop().await;

        let app = LocalApp::with(None, "web.api_key = \"right key\"").await;
        assert_eq!(lead(&steady(&app.client), "/docs/").await, "/docs");
        let page = app.client.get("/docs").await;
        assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
        let (status, text) = page.whole().await;
        assert_eq!(status, 200);
        for path in loaded(&text, "\"/docs/") {
            let path = format!("/docs/{path}");
            assert_eq!(app.client.get(&path).await.status(), 200, "{path}");
        }
        // The page holds no data. What it shows is guarded like everything else.
        assert!(text.contains("/api/openapi.json"));
        assert_eq!(app.client.get("/api/openapi.json").await.status(), 401);
        app.stop().await;
    });
}
