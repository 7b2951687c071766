//! Authentication and rate limits of the local service.

use reqwest::Method;
use serde_json::{Value, json};
use test_support::is_full;

use crate::helpers::{Client, run};
use crate::local::LocalApp;
use crate::process::{finish, program};

const KEYED: &str = "web.api_key = \"right key\"";

#[test]
fn every_api_route_asks_for_the_key_and_the_root_page_does_not() {
    run(async {
        let app = LocalApp::with(None, KEYED).await;
        let keyed = app.client.with_header("x-api-key", "right key");
        for (method, path) in [
            (Method::POST, "/api/recall"),
            (Method::POST, "/api/remember"),
            (Method::POST, "/api/ingest"),
            (Method::POST, "/api/synthesize"),
            (Method::GET, "/api/notes/x"),
            (Method::GET, "/api/graph/nodes"),
            (Method::GET, "/api/graph/edges"),
            (Method::GET, "/api/graph/view"),
            (Method::GET, "/api/graph/node?id=actor:apt28"),
            (Method::GET, "/api/entities"),
            (Method::POST, "/api/lookup"),
            (Method::GET, "/api/domains"),
            (Method::GET, "/api/health"),
            (Method::GET, "/api/stats"),
            (Method::GET, "/api/storage"),
            (Method::GET, "/api/version"),
            (Method::GET, "/api/telemetry"),
            (Method::GET, "/api/history"),
            (Method::GET, "/api/logs"),
            (Method::GET, "/api/edition"),
            (Method::GET, "/api/logs/stream"),
            (Method::GET, "/api/telemetry/stream"),
            (Method::GET, "/api/config"),
            (Method::PUT, "/api/config"),
            (Method::GET, "/api/config/meta"),
            (Method::DELETE, "/api/config/pending/llm.model"),
            (Method::POST, "/api/sync"),
            (Method::GET, "/api/openapi.json"),
            (Method::GET, "/api/docs"),
            (Method::GET, "/api/docs/viewer.js"),
            (Method::GET, "/api/docs/nope"),
            (Method::GET, "/config"),
        ] {
            for client in [
                app.client.clone(),
                app.client.with_header("x-api-key", "wrong"),
                app.client.bearer("wrong"),
            ] {
                let answer = client.request(method.clone(), path).send().await.unwrap();
                assert_eq!(answer.status(), 401, "{method} {path}");
                assert_eq!(
                    answer.text().await.unwrap(),
                    r#"{"detail":"Valid API key required"}"#
                );
            }
            let answer = keyed.request(method.clone(), path).send().await.unwrap();
            assert_ne!(answer.status(), 401, "{method} {path}");
        }
        app.client
            .bearer("right key")
            .get("/api/version")
            .await
            .expect(200)
            .await;
        assert_eq!(app.client.get("/").await.status(), 200);
        app.stop().await;
    });
}

#[test]
fn each_key_and_each_address_has_its_window_and_guesses_count() {
    run(async {
        let app = LocalApp::with(None, &format!("{KEYED}\nweb.rate_limit_per_minute = 5")).await;
        let keyed = app.client.with_header("x-api-key", "right key");
        for guess in 0..5 {
            // Requests with invalid keys share the rate limit window of their address.
            let client = app.client.with_header("x-api-key", &format!("guess {guess}"));
            assert_eq!(client.get("/api/version").await.status(), 401);
        }
        let refused = app
            .client
            .with_header("x-api-key", "guess 6")
            .get("/api/version")
            .await;
        assert_eq!(refused.status(), 429);
        assert!(refused.header("retry-after").unwrap().parse::<u64>().unwrap() <= 61);
        assert_eq!(refused.header("ratelimit-remaining"), Some("0"));
        assert_eq!(
            refused.expect(429).await,
            json!({"detail": "Rate limit exceeded"})
        );
        for left in (0..5).rev() {
            let answer = keyed.get("/api/version").await;
            assert_eq!(
                (answer.status(), answer.header("ratelimit-remaining")),
                (200, Some(left.to_string().as_str()))
            );
        }
        assert_eq!(keyed.get("/api/version").await.status(), 429);
        app.stop().await;
    });
}

#[test]
fn without_a_key_pages_from_elsewhere_are_refused() {
    run(async {
        let app = LocalApp::spawn().await;
        for (name, value) in [
            ("origin", "https://evil.example"),
            ("sec-fetch-site", "cross-site"),
            ("host", "evil.example"),
        ] {
            let answer = app.client.with_header(name, value).get("/api/health").await;
            assert_eq!(answer.status(), 403, "{name}");
        }
        let own = app.client.base.clone();
        assert_eq!(
            app.client
                .with_header("origin", &own)
                .get("/api/health")
                .await
                .status(),
            200
        );
        let forwarded = app.client.with_header("x-forwarded-for", "8.8.8.8");
        assert_eq!(
            forwarded.get("/api/health").await.status(),
            200,
            "nobody is believed"
        );
        app.stop().await;
    });
}

#[test]
fn exposing_the_service_without_a_key_is_refused_at_start() {
    for host in ["0.0.0.0", "::"] {
        let output = finish(
            program()
                .args(["local", "--port", "0", "--host", host])
                .env("LOCAL_BACKEND", "mem"),
        );
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.contains("Set LOCAL_WEB_API_KEY before exposing the web API"),
            "{said}"
        );
    }
    let output = finish(
        program()
            .args(["local", "--port", "0"])
            .env("LOCAL_WEB_MAX_K", "zero"),
    );
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("LOCAL_WEB_MAX_K"), "{said}");
}

/// A client that connects from this address.
fn client_from(app: &LocalApp, address: &str) -> Client {
    let address: std::net::IpAddr = address.parse().unwrap();
    let http = reqwest::Client::builder().no_proxy().local_address(address);
    let mut client = app.client.clone();
    client.http = http.build().unwrap();
    client
}

#[test]
fn without_a_key_only_the_loopback_addresses_of_the_contract_are_served() {
    run(async {
        // An address outside the contract's loopback addresses, so that the start-up is tested too.
        let app = LocalApp::with(None, "web.host = \"127.0.0.9\"").await;
        client_from(&app, "127.0.0.1")
            .get("/api/health")
            .await
            .expect(200)
            .await;
        for address in ["127.0.0.5", "127.0.0.9"] {
            let foreign = client_from(&app, address);
            for client in [
                foreign.clone(),
                foreign.with_header("x-api-key", "x"),
                foreign.with_header("x-forwarded-for", "127.0.0.1"),
            ] {
                for path in ["/api/health", "/api/nope", "/config"] {
                    let answer = client.get(path).await;
                    assert_eq!(answer.header("retry-after"), None, "only a person can help");
                    assert_eq!(
                        answer.expect(503).await,
                        json!({"detail": "Set LOCAL_WEB_API_KEY before exposing the web API"})
                    );
                }
            }
            assert_eq!(
                foreign.get("/").await.status(),
                200,
                "the root page is not guarded"
            );
        }
        app.stop().await;
    });
}

#[test]
fn with_a_key_every_address_is_served() {
    run(async {
        let app = LocalApp::with(None, KEYED).await;
        let foreign = client_from(&app, "127.0.0.5");
        assert_eq!(foreign.get("/api/health").await.status(), 401);
        let keyed = foreign.with_header("x-api-key", "right key");
        keyed.get("/api/health").await.expect(200).await;
        app.stop().await;
    });
}

#[test]
fn what_does_not_exist_is_guarded_and_methods_are_told() {
    run(async {
        let app = LocalApp::with(None, KEYED).await;
        let keyed = app.client.with_header("x-api-key", "right key");
        for path in ["/api", "/api/", "/api/nope", "/api/health/"] {
            assert_eq!(app.client.get(path).await.status(), 401, "{path}");
            let answer = keyed.get(path).await.expect(404).await;
            assert_eq!(answer, json!({"detail": "Not Found"}), "{path}");
        }
        assert_eq!(app.client.get("/nope").await.status(), 404);
        for (method, path, allowed) in [
            (Method::DELETE, "/api/health", "GET, HEAD"),
            (Method::GET, "/api/recall", "POST"),
            (Method::POST, "/api/config", "GET, HEAD, PUT"),
            (Method::HEAD, "/api/logs/stream", "GET"),
            (Method::POST, "/", "GET, HEAD"),
        ] {
            let answer = keyed.request(method.clone(), path).send().await.unwrap();
            assert_eq!(answer.status(), 405, "{method} {path}");
            assert_eq!(answer.headers()["allow"], allowed, "{method} {path}");
        }
        for path in [
            "/",
            "/api/health",
            "/api/graph/nodes",
            "/api/graph/view",
            "/api/domains",
            "/config",
        ] {
            let answer = keyed.request(Method::HEAD, path).send().await.unwrap();
            assert_eq!(answer.status(), 200, "{path}");
            assert_eq!(answer.text().await.unwrap(), "", "{path}");
        }
        app.stop().await;
    });
}

#[test]
fn a_body_that_stalls_keeps_no_place_from_others() {
    use std::io::{Read, Write};
    run(async {
        let app = LocalApp::spawn().await;
        let address = app.app.address();
        let stalled: Vec<_> = (0..8)
            .map(|_| {
                let mut connection = std::net::TcpStream::connect(address).unwrap();
                let head = format!(
                    "POST /api/ingest HTTP/1.1\r\nHost: {address}\r\nContent-Length: 1000000\r\n\r\n"
                );
                connection.write_all(head.as_bytes()).unwrap();
                connection.write_all(&[b' '; 300_000]).unwrap();
                connection
            })
            .collect();
        let items: Vec<_> = (0..8)
            .map(|n| json!({"content": format!("{n} {}", "word ".repeat(9000))}))
            .collect();
        let done = app.client.ingest_notes(&items).await;
        assert_eq!(done["succeeded"], 8);
        // The service gives up on them after ten seconds.
        if !is_full() {
            drop(stalled);
            app.stop().await;
            return;
        }
        let answers = tokio::task::spawn_blocking(move || {
            stalled
                .into_iter()
                .map(|mut connection| {
                    let mut answer = [0; 12];
                    connection.read_exact(&mut answer).unwrap();
                    String::from_utf8_lossy(&answer).into_owned()
                })
                .collect::<Vec<_>>()
        });
        assert!(
            answers
                .await
                .unwrap()
                .iter()
                .all(|answer| answer == "HTTP/1.1 408")
        );
        app.stop().await;
    });
}

#[test]
fn the_metrics_answer_the_hosts_that_the_settings_name_and_no_other() {
    run(async {
        let app = LocalApp::with(None, "web.admin_hosts = [\"memory.internal\"]").await;
        let ask = |host: &'static str| {
            let request = app.client.http.get(format!("{}/metrics", app.client.admin_base));
            async move { request.header("host", host).send().await.unwrap() }
        };
        for host in ["memory.internal", "Memory.Internal:9465", "localhost"] {
            assert_eq!(ask(host).await.status(), 200, "{host}");
        }
        let refused = ask("evil.example").await;
        assert_eq!(refused.status(), 421);
        let body: Value = refused.json().await.unwrap();
        let said = body["error"].as_str().unwrap();
        assert!(said.ends_with("nor one of web.admin_hosts"), "{said}");
        app.stop().await;
    });
}
