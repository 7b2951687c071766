//! `threat-memory demo`: the main workflow end to end over HTTP, on an in-memory store that leaves nothing behind.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

use crate::app::hosted::Application;
use crate::app::local_address;
use crate::config::{Flags, LogSettings, Settings};
use crate::domain::kinds::StixRow;
use crate::domain::stix::export;
use crate::domain::stix::schema::StixValidator;
use crate::http::hosted::CONSOLE;
use crate::telemetry;

const BUNDLE: &str = include_str!("../assets/demo/bundle.json");
const EMAIL: &str = "demo@localhost";
const QUESTION: &str = "which technique abuses remote services for lateral movement";
/// Environment variable: directory where tests and demos save the bundles they export.
const EXPORT_DIR: &str = "THREAT_MEMORY_EXPORT_DIR";

/// Prints where the service listens.
pub fn announce(app: &Application) {
    let server = &app.state().settings.server;
    let scheme = server.scheme();
    let base = format!("{scheme}://{}", local_address(app.address()));
    if server.console {
        eprintln!("Console on {base}{CONSOLE}");
    } else {
        eprintln!("The console is off (server.console); the API is described on {base}/docs");
    }
    eprintln!(
        "API on {scheme}://{}, metrics on http://{}/metrics",
        app.address(),
        app.admin_address()
    );
}

/// Runs the demo; the exit code is 0 only if every step worked.
pub async fn run(bundle: Option<&Path>) -> ExitCode {
    // The steps print their own progress, so only errors are logged. An existing subscriber is fine.
    let quiet = LogSettings {
        filter: "error".into(),
        file: false,
        keep_files: 1,
        traces_url: String::new(),
        traces_percent: 0,
    };
    let _flush = telemetry::init_logs(&quiet, "", None);
    match steps(bundle).await {
        Ok(()) => {
            println!("\nEvery step worked. Start the service with: threat-memory hosted");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("demo failed: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn steps(path: Option<&Path>) -> Result<(), String> {
    let bundle = read_bundle(path)?;
    let since = Instant::now();
    let (app, password) = start().await?;
    println!(
        "1. Started on http://{} over mem:// in {}",
        app.address(),
        elapsed(since)
    );
    let outcome = job(&app, &password, bundle, path.is_some()).await;
    app.stop().await;
    outcome
}

async fn job(app: &Application, password: &SecretString, bundle: Value, own: bool) -> Result<(), String> {
    let client = Client::sign_in(app, password).await?;

    let since = Instant::now();
    let sent = bundle
        .pointer("/objects")
        .and_then(Value::as_array)
        .map_or(0, Vec::len);
    let answer = client
        .post("/api/ingest/stix", &json!({"bundle": bundle}))
        .await?;
    let results = &answer["results"];
    println!(
        "2. Ingested a STIX bundle of {sent} objects in {}: {} nodes, {} relationships, {} other objects kept",
        elapsed(since),
        results["nodes_created"],
        results["edges_created"],
        results["kept"]["objects_created"]
    );
    if results["nodes_created"].as_u64() == Some(0) {
        return Err(format!("no node was created: {results}"));
    }

    let question = if own {
        first_name(&bundle).unwrap_or(QUESTION)
    } else {
        QUESTION
    };
    let since = Instant::now();
    let found = client
        .get_json("/api/recall/search", &[("q", question), ("limit", "10")])
        .await?;
    println!(
        "3. Asked \"{question}\": {} results in {}",
        found["count"],
        elapsed(since)
    );
    let results = found["results"].as_array().map_or(&[][..], Vec::as_slice);
    for (rank, node) in results.iter().take(3).enumerate() {
        let text = |key: &str| node[key].as_str().unwrap_or_default().to_owned();
        println!(
            "   {}. {:.2}  {} ({}, {})",
            rank + 1,
            node["score"].as_f64().unwrap_or(0.0),
            text("name"),
            text("node_type"),
            text("tlp")
        );
    }
    if results.is_empty() {
        return Err("the search found nothing".into());
    }

    let session = found["recall_id"].as_str().unwrap_or_default();
    let since = Instant::now();
    let text = client
        .get(&format!("/api/recall/sessions/{session}/export.stix"), &[])
        .await?;
    let exported: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let objects = exported["objects"].as_array().map_or(0, Vec::len);
    println!(
        "4. Exported the recall session as a STIX bundle of {objects} objects in {}",
        elapsed(since)
    );

    let since = Instant::now();
    StixValidator::shared()
        .bundle(&exported)
        .map_err(|violations| export::summary(&violations))?;
    println!(
        "5. Validated the bundle against the STIX 2.1 schemas and rules in {}: no violation",
        elapsed(since)
    );

    let chain = client.get_json("/api/audit/verify", &[]).await?;
    println!(
        "6. Checked the audit chain: {} entries, valid: {}",
        chain["entries"], chain["valid"]
    );
    if chain["valid"] != Value::Bool(true) {
        return Err(format!("the audit chain is broken: {chain}"));
    }
    keep("demo.json", &text)
}

async fn start() -> Result<(Application, SecretString), String> {
    let flags = Flags {
        bind: Some("127.0.0.1:0".into()),
        storage: Some("mem://".into()),
        ..Flags::default()
    };
    let mut settings = Settings::load(None, &flags).map_err(|error| error.to_string())?;
    settings.server.admin_bind.set_port(0);
    let password = crate::auth::password::generate().map_err(|error| error.to_string())?;
    settings.admin_email = Some(EMAIL.into());
    settings.admin_password = Some(password.clone());
    settings.jwt_secret = None;
    let app = Application::start(settings)
        .await
        .map_err(|error| error.to_string())?;
    Ok((app, password))
}

fn read_bundle(path: Option<&Path>) -> Result<Value, String> {
    let text = match path {
        None => BUNDLE.to_owned(),
        Some(path) => {
            std::fs::read_to_string(path).map_err(|error| format!("--bundle {}: {error}", path.display()))?
        }
    };
    serde_json::from_str(&text).map_err(|error| format!("--bundle: is not valid JSON: {error}"))
}

/// The first name in a user-supplied bundle, which the search must find again.
fn first_name(bundle: &Value) -> Option<&str> {
    let objects = bundle.pointer("/objects").or(Some(bundle))?.as_array()?;
    let named = |object: &&Value| {
        object["type"]
            .as_str()
            .is_some_and(|kind| StixRow::of(kind).is_some_and(|row| !row.is_context()))
            && object["revoked"].as_bool() != Some(true)
    };
    objects
        .iter()
        .filter(named)
        .find_map(|object| object["name"].as_str())
}

fn keep(name: &str, text: &str) -> Result<(), String> {
    let Some(dir) = std::env::var_os(EXPORT_DIR) else {
        return Ok(());
    };
    std::fs::write(Path::new(&dir).join(name), text).map_err(|error| format!("{EXPORT_DIR}: {error}"))
}

fn elapsed(since: Instant) -> String {
    format!("{:.0} ms", since.elapsed().as_secs_f64() * 1000.0)
}

/// A plain REST client.
struct Client {
    http: reqwest::Client,
    base: String,
    token: String,
}

impl Client {
    async fn sign_in(app: &Application, password: &SecretString) -> Result<Self, String> {
        // Loopback only, so proxy settings of the environment are ignored.
        let http = reqwest::Client::builder()
            .no_proxy()
            .build()
            .map_err(|error| error.to_string())?;
        let mut client = Self {
            http,
            base: format!("http://{}", app.address()),
            token: String::new(),
        };
        let body = json!({"email": EMAIL, "password": password.expose_secret()});
        let answer = client.post("/api/auth/login", &body).await?;
        client.token = answer["access_token"].as_str().unwrap_or_default().to_owned();
        Ok(client)
    }

    async fn post(&self, path: &str, body: &Value) -> Result<Value, String> {
        let request = self
            .http
            .post(format!("{}{path}", self.base))
            .bearer_auth(&self.token)
            .json(body);
        parse(&send(path, request).await?)
    }

    async fn get_json(&self, path: &str, query: &[(&str, &str)]) -> Result<Value, String> {
        parse(&self.get(path, query).await?)
    }

    async fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<String, String> {
        let mut url =
            reqwest::Url::parse(&format!("{}{path}", self.base)).map_err(|error| error.to_string())?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        send(path, self.http.get(url).bearer_auth(&self.token)).await
    }
}

async fn send(path: &str, request: reqwest::RequestBuilder) -> Result<String, String> {
    let response = request.send().await.map_err(|error| format!("{path}: {error}"))?;
    let status = response.status();
    let text = response
        .text()
        .await
        .map_err(|error| format!("{path}: {error}"))?;
    if status.is_success() {
        Ok(text)
    } else {
        Err(format!("{path} answered {status}: {text}"))
    }
}

fn parse(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}
