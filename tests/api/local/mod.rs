//! Starts the local service on a free port and talks to it as a client would.
mod api;
mod bodies;
mod browser;
mod changes;
mod config;
mod corrections;
pub mod durability;
mod edition;
mod enricher;
mod explore;
mod guard;
mod ingest;
mod logs;
mod lookup;
mod mcp;
pub mod model;
mod openapi;
mod questions;
mod repeats;
mod replay;
mod streams;

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;
use test_support::copy_of;
use threat_memory::app::local::LocalApplication;
use threat_memory::config::local::{Editor, LocalFlags, LocalSettings};

use crate::helpers::Client;
use crate::process::{Service, program};

/// A data directory of `threat-memory local` that was started once.
pub fn started_once() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    copy_started_once(dir.path());
    dir
}

/// Makes `dir` such a directory.
fn copy_started_once(dir: &Path) {
    let program = program();
    copy_of(
        "local-started-once",
        Path::new(program.get_program()),
        dir,
        |dir| {
            Service::start(durability::local(dir, 2)).stop();
            std::fs::remove_dir_all(dir.join("logs")).unwrap();
        },
    );
}

/// Settings for a test: free ports, a rate limit too high to matter, and the overrides in `config` (TOML).
fn settings(dir: &Path, config: &str) -> (LocalSettings, Editor) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut text = String::from("web.rate_limit_per_minute = 1000000\nweb.admin_bind = \"127.0.0.1:0\"\n");
    for line in config.lines() {
        let key = line.split('=').next().unwrap().trim();
        text = text
            .lines()
            .filter(|old| !old.starts_with(key) || key.is_empty())
            .map(|old| format!("{old}\n"))
            .collect();
        text.push_str(line);
        text.push('\n');
    }
    std::fs::write(file.path(), text).unwrap();
    let flags = LocalFlags {
        port: Some(0),
        data_dir: Some(dir.to_owned()),
        ..LocalFlags::default()
    };
    LocalSettings::load(Some(file.path()), &flags).unwrap()
}

/// The local service under test.
pub struct LocalApp {
    pub app: LocalApplication,
    pub client: Client,
    /// Removed with the test.
    _dir: Option<TempDir>,
}

impl LocalApp {
    /// Starts with a store of its own.
    pub async fn spawn() -> Self {
        Self::with(None, "").await
    }

    /// Starts with a durable store in `dir`.
    pub async fn durable(dir: &Path) -> Self {
        Self::with(Some(dir), "").await
    }

    /// Starts with custom settings, one dotted key per line, and a durable store in `dir`, if that is given. Instead of a
    /// new store, whose schema takes a debug build a second, the service gets a copy of one that was started before.
    pub async fn with(dir: Option<&Path>, config: &str) -> Self {
        let own = dir.is_none().then(started_once);
        let dir = dir.or(own.as_ref().map(TempDir::path)).unwrap();
        if std::fs::read_dir(dir).unwrap().next().is_none() {
            copy_started_once(dir);
        }
        let (settings, editor) = settings(dir, config);
        let app = LocalApplication::start(settings, editor).await.unwrap();
        let mut client = Client::at(&format!("http://{}", app.address()));
        client.admin_base = format!("http://{}", app.admin_address());
        Self {
            app,
            client,
            _dir: own,
        }
    }

    pub async fn stop(self) {
        self.app.stop().await;
    }
}

impl Client {
    /// Stores a text and returns the response.
    pub async fn remember(&self, content: &str) -> Value {
        self.post("/api/remember", &json!({"content": content}))
            .await
            .expect(200)
            .await
    }

    /// Stores many notes at once and returns the response.
    pub async fn ingest_notes(&self, items: &[Value]) -> Value {
        self.post("/api/ingest", &json!({"items": items}))
            .await
            .expect(200)
            .await
    }

    /// The ids of the notes that a query finds.
    pub async fn recall(&self, query: &str) -> Vec<String> {
        let found = self
            .post("/api/recall", &json!({"query": query}))
            .await
            .expect(200)
            .await;
        let results = found["results"].as_array().unwrap();
        results
            .iter()
            .map(|note| note["id"].as_str().unwrap().to_owned())
            .collect()
    }
}
