//! The service with an external database: a real SurrealDB server behind a proxy that fails on demand.

mod erasure;
mod feeds;
mod outages;
mod pilot;
mod proxy;
mod work;

use std::cell::Cell;
use std::future::Future;
use std::path::PathBuf;

use secrecy::SecretString;
use serde_json::json;
use tempfile::TempDir;
use test_support::eventually;
use test_support::server::{self, Server};
use threat_memory::config::Settings;

use crate::helpers::{Answer, Client, TestApp, run, settings};
use proxy::Proxy;

const STIX: &str = "/api/ingest/stix";

/// A server with its directory, a proxy in front of it, and a directory for the service's own files.
struct Database {
    program: PathBuf,
    dir: TempDir,
    server: Server,
    proxy: Proxy,
}

impl Database {
    /// Settings of a service on this database; services with the same `process` share their files.
    fn settings(&self, process: &str) -> Settings {
        let mut settings = settings("mem://");
        settings.storage.url = self.proxy.url();
        settings.storage.data_dir = self.dir.path().join(process);
        settings.storage.timeout_ms = 5_000;
        settings.storage_user = Some(server::USER.into());
        settings.storage_password = Some(SecretString::from(server::PASSWORD));
        settings.jwt_secret = Some(SecretString::from("one secret for all processes of a test"));
        settings
    }

    async fn service(&self) -> TestApp {
        TestApp::with(self.settings("service")).await
    }

    /// Kills the server.
    fn kill(&mut self) {
        self.server.kill();
    }

    /// Restarts the server with its existing data.
    fn restart(&mut self) {
        self.server = Server::start(&self.program, &self.dir.path().join("database"));
        self.proxy.lead_to(self.server.address);
    }
}

/// Runs a test with its own server; skips it where the server binary is missing.
fn with_database(test: impl AsyncFnOnce(&mut Database)) {
    let Some(program) = server::program() else {
        return;
    };
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let server = Server::start(&program, &dir.path().join("database"));
        let proxy = Proxy::to(server.address).await;
        let mut database = Database {
            program,
            dir,
            server,
            proxy,
        };
        test(&mut database).await;
    });
}

/// Asserts a 503 that says when to retry and does not leak the database's error text.
async fn assert_unavailable(answer: Answer) {
    let wait = answer.header("retry-after").map(str::to_owned);
    let text = answer.refused(503).await;
    assert_eq!(wait.as_deref(), Some("1"), "{text}");
    assert!(!text.contains("WebSocket") && !text.contains("ws:"), "{text}");
}

/// Retries a request until the response is something other than a 503; also returns the number of refusals.
async fn until_answered<F: Future<Output = Answer>>(send: impl Fn() -> F) -> (Answer, usize) {
    let refused = Cell::new(0);
    let answer = eventually(|| async {
        let answer = send().await;
        if answer.status() != 503 {
            return Ok(answer);
        }
        assert_unavailable(answer).await;
        refused.set(refused.get() + 1);
        Err("still refused")
    })
    .await;
    (answer, refused.get())
}

/// Waits until every audit entry has its link, and verifies the hash chain.
async fn assert_chain(client: &Client) {
    eventually(|| async {
        let chain = client.get("/api/audit/verify").await.expect(200).await;
        assert_eq!(chain["valid"], true, "{chain}");
        if chain["unchained"] == json!(0) {
            Ok(())
        } else {
            Err(chain)
        }
    })
    .await;
}
