//! Starts the local service on a free port and talks to it as a client would.
mod api;
mod bodies;
mod browser;
mod config;
pub mod durability;
mod edition;
mod enricher;
mod explore;
mod guard;
mod ingest;
mod logs;
pub mod model;
mod openapi;
mod questions;
mod repeats;
mod replay;
mod streams;

use std::path::Path;

use serde_json::{Value, json};
use threat_memory::app::local::LocalApplication;
use threat_memory::config::local::{Editor, LocalFlags, LocalSettings};

use crate::helpers::Client;

/// Settings for a test: free ports, a rate limit too high to matter, and the overrides in `config` (TOML). In-memory
/// without a directory.
fn settings(dir: Option<&Path>, config: &str) -> (LocalSettings, Editor) {
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
        data_dir: dir.map(Path::to_owned),
        backend: dir.is_none().then(|| "mem".into()),
        ..LocalFlags::default()
    };
    LocalSettings::load(Some(file.path()), &flags).unwrap()
}

/// The local service under test.
pub struct LocalApp {
    pub app: LocalApplication,
    pub client: Client,
}

impl LocalApp {
    /// Starts with an in-memory store.
    pub async fn spawn() -> Self {
        Self::with(None, "").await
    }

    /// Starts with a durable store in `dir`.
    pub async fn durable(dir: &Path) -> Self {
        Self::with(Some(dir), "").await
    }

    /// Starts with custom settings, one dotted key per line.
    pub async fn with(dir: Option<&Path>, config: &str) -> Self {
        let (settings, editor) = settings(dir, config);
        let app = LocalApplication::start(settings, editor).await.unwrap();
        let mut client = Client::at(&format!("http://{}", app.address()));
        client.admin_base = format!("http://{}", app.admin_address());
        Self { app, client }
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
