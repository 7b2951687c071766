//! Starts the real application on a free port and talks to it as a client would.

use std::future::Future;
use std::path::Path;
use std::time::Duration;

use reqwest::{Method, Response};
use secrecy::SecretString;
use serde_json::{Value, json};
use tempfile::TempDir;
use threat_memory::app::hosted::Application;
use threat_memory::config::{Flags, Settings};

pub use test_support::shared;
use uuid::Uuid;

use crate::process::{copy_started_once, started_once};
use crate::shared_service::SharedService;

pub const ADMIN: &str = "admin@example.com";
pub const PASSWORD: &str = "a long enough password";

/// Runs one test inside an actix system on a multi-threaded runtime, as the program does.
pub fn run<F: Future<Output = ()>>(test: F) {
    let system = actix::System::with_tokio_rt(|| {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .thread_stack_size(16 << 20)
            .build()
            .unwrap()
    });
    system.block_on(test);
}

/// Settings for a test: free ports and generous rate limits per tier.
pub fn settings(storage: &str) -> Settings {
    let flags = Flags {
        bind: Some("127.0.0.1:0".into()),
        storage: Some(storage.into()),
        ..Flags::default()
    };
    let mut settings = Settings::load(None, &flags).unwrap();
    settings.server.admin_bind.set_port(0);
    settings.admin_email = Some(ADMIN.into());
    settings.admin_password = Some(SecretString::from(PASSWORD));
    settings
        .limits
        .tiers
        .values_mut()
        .for_each(|limit| *limit = 1_000_000);
    settings
}

/// The service under test with a signed-in administrator.
pub struct TestApp {
    pub admin: Client,
    service: Service,
}

enum Service {
    /// A service of the test's own, with its directory if the test has not made that itself.
    Own(Box<Application>, Option<TempDir>),
    /// A workspace of the service that tests share, and a client without credentials.
    Shared(Uuid, Client),
}

impl TestApp {
    /// A new workspace in the service that the tests of this process share, with its administrator: for a test that neither
    /// needs settings, a start or the operator's rights of its own nor looks at what a process counts as a whole. The
    /// administrator has the address [`ADMIN`] in each of these workspaces, so it can't sign in by address and password
    /// alone.
    pub async fn shared() -> Self {
        let client = SharedService::get().client();
        let name = format!("Workspace {}", Uuid::new_v4());
        let (workspace, admin) = SharedService::get().workspace(&client, &name, ADMIN).await;
        Self {
            admin,
            service: Service::Shared(workspace, client),
        }
    }

    /// Starts with a store of its own.
    pub async fn spawn() -> Self {
        Self::with(settings("mem://")).await
    }

    /// Starts with a durable store in `dir`. An empty directory becomes a copy of one that was started before.
    pub async fn durable(dir: &Path) -> Self {
        if std::fs::read_dir(dir).unwrap().next().is_none() {
            copy_started_once(dir);
        }
        Self::with(settings(&format!("surrealkv://{}", dir.display()))).await
    }

    /// Starts with these settings. Instead of a new store at `mem://`, whose schema and demo take a debug build seconds,
    /// the service gets a copy of one that was started before.
    pub async fn with(mut settings: Settings) -> Self {
        let dir = (settings.storage.url == "mem://").then(started_once);
        if let Some(dir) = &dir {
            settings.storage.url = format!("surrealkv://{}", dir.path().display());
        }
        let app = Application::start(settings).await.unwrap();
        let admin = Client::anonymous(&app).sign_in(ADMIN, PASSWORD).await;
        Self {
            admin,
            service: Service::Own(Box::new(app), dir),
        }
    }

    /// The service itself.
    ///
    /// # Panics
    /// When it is the shared one.
    pub fn application(&self) -> &Application {
        match &self.service {
            Service::Own(app, _) => app,
            Service::Shared(..) => panic!("the shared service belongs to no test"),
        }
    }

    /// Stops the service; the shared one goes on.
    pub async fn stop(self) {
        match self.service {
            Service::Own(app, _dir) => app.stop().await,
            Service::Shared(..) => {}
        }
    }

    /// A client without credentials.
    pub fn anonymous(&self) -> Client {
        match &self.service {
            Service::Own(app, _) => Client::anonymous(app),
            Service::Shared(_, client) => client.clone(),
        }
    }

    /// Adds a user to the administrator's workspace and signs in as that user.
    pub async fn user(&self, role: &str) -> Client {
        let email = format!("{role}-{}@example.com", Uuid::new_v4());
        let body = json!({"email": email, "password": PASSWORD, "role": role});
        let made = self.admin.post("/api/admin/users", &body).await.expect(201).await;
        match &self.service {
            Service::Own(..) => self.anonymous().sign_in(&email, PASSWORD).await,
            Service::Shared(workspace, client) => {
                SharedService::get().signed_in(client, *workspace, &made["user"])
            }
        }
    }

    /// Creates an API key in the administrator's workspace.
    pub async fn api_key(&self, scopes: &[&str]) -> Client {
        let body = json!({"name": "test", "scopes": scopes});
        let made = self
            .admin
            .post("/api/admin/api-keys", &body)
            .await
            .expect(201)
            .await;
        self.anonymous()
            .with_header("x-api-key", made["key"].as_str().unwrap())
    }

    /// Creates another workspace and signs in as its administrator.
    pub async fn workspace(&self, name: &str) -> Client {
        let email = format!("{}@example.com", Uuid::new_v4());
        if let Service::Shared(_, client) = &self.service {
            return SharedService::get().workspace(client, name, &email).await.1;
        }
        let body = json!({"name": name, "admin_email": email, "admin_password": PASSWORD, "tier": "pilot"});
        self.admin
            .post("/api/admin/workspaces", &body)
            .await
            .expect(201)
            .await;
        self.anonymous().sign_in(&email, PASSWORD).await
    }
}

/// A REST client with or without a credential.
#[derive(Clone)]
pub struct Client {
    pub http: reqwest::Client,
    pub base: String,
    pub admin_base: String,
    headers: Vec<(String, String)>,
}

/// Connections that were idle for a second are not used again: on a busy machine the service may be closing them.
pub fn http_client() -> reqwest::Client {
    let builder = reqwest::Client::builder().no_proxy();
    builder.pool_idle_timeout(Duration::from_secs(1)).build().unwrap()
}

impl Client {
    pub fn anonymous(app: &Application) -> Self {
        Self {
            http: http_client(),
            base: format!("http://{}", app.address()),
            admin_base: format!("http://{}", app.admin_address()),
            headers: Vec::new(),
        }
    }

    pub fn with_header(&self, name: &str, value: &str) -> Self {
        let mut client = self.clone();
        client.headers.push((name.into(), value.into()));
        client
    }

    pub async fn sign_in(&self, email: &str, password: &str) -> Self {
        let body = json!({"email": email, "password": password});
        let answer = self.post("/api/auth/login", &body).await.expect(200).await;
        self.with_header(
            "authorization",
            &format!("Bearer {}", answer["access_token"].as_str().unwrap()),
        )
    }

    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let mut request = self.http.request(method, format!("{}{path}", self.base));
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        request
    }

    pub async fn get(&self, path: &str) -> Answer {
        Answer(self.request(Method::GET, path).send().await.unwrap())
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        Answer(self.request(Method::POST, path).json(body).send().await.unwrap())
    }

    pub async fn patch(&self, path: &str, body: &Value) -> Answer {
        Answer(self.request(Method::PATCH, path).json(body).send().await.unwrap())
    }

    pub async fn delete(&self, path: &str) -> Answer {
        Answer(self.request(Method::DELETE, path).send().await.unwrap())
    }

    /// Sends raw bytes as a JSON body.
    pub async fn post_bytes(&self, path: &str, body: impl Into<reqwest::Body>) -> Answer {
        let request = self
            .request(Method::POST, path)
            .header("content-type", "application/json");
        Answer(request.body(body).send().await.unwrap())
    }

    /// Ingests STIX objects and returns `results`.
    pub async fn ingest(&self, objects: Value) -> Value {
        let bundle =
            json!({"type": "bundle", "id": format!("bundle--{}", Uuid::new_v4()), "objects": objects});
        let answer = self
            .post("/api/ingest/stix", &json!({"bundle": bundle}))
            .await
            .expect(201)
            .await;
        answer["results"].clone()
    }

    /// Searches and returns the whole response body.
    pub async fn search(&self, query: &str) -> Value {
        self.get(&format!("/api/recall/search?{}", encode(&[("q", query)])))
            .await
            .expect(200)
            .await
    }

    /// Exports a recall session, saves the bundle for the conformance check, and returns it.
    pub async fn export(&self, recall_id: &str) -> Value {
        let path = format!("/api/recall/sessions/{recall_id}/export.stix");
        let bundle = self.get(&path).await.expect(200).await;
        keep_export(&bundle);
        bundle
    }
}

/// A response whose status has not been checked yet.
pub struct Answer(pub Response);

impl Answer {
    /// The JSON body, provided the status is the expected one.
    #[track_caller]
    pub fn expect(self, status: u16) -> impl Future<Output = Value> {
        let caller = std::panic::Location::caller();
        async move {
            let got = self.0.status().as_u16();
            let text = self.0.text().await.unwrap();
            assert_eq!(got, status, "at {caller}: {text}");
            serde_json::from_str(&text).unwrap_or(Value::String(text))
        }
    }
}

/// Encodes a query string.
pub fn encode(pairs: &[(&str, &str)]) -> String {
    let mut url = reqwest::Url::parse("http://x").unwrap();
    url.query_pairs_mut().extend_pairs(pairs);
    url.query().unwrap_or_default().to_owned()
}

/// Reads a JSON file.
pub fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Saves a bundle for the conformance check if one was requested.
pub fn keep_export(bundle: &Value) {
    if let Some(dir) = std::env::var_os("THREAT_MEMORY_EXPORT_DIR") {
        let name = format!("{}.json", Uuid::new_v4());
        std::fs::write(Path::new(&dir).join(name), bundle.to_string()).unwrap();
    }
}

impl Answer {
    pub fn status(&self) -> u16 {
        self.0.status().as_u16()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.0.headers().get(name).and_then(|value| value.to_str().ok())
    }

    /// The status, and the body as text.
    pub async fn whole(self) -> (u16, String) {
        (self.status(), self.0.text().await.unwrap())
    }

    /// The error text, provided the status is the expected one and the body is the error object.
    #[track_caller]
    pub fn refused(self, status: u16) -> impl Future<Output = String> {
        let body = self.expect(status);
        async move {
            let body = body.await;
            let keys = keys_of(&body);
            assert!(
                keys.iter().all(|key| ["error", "details"].contains(key)),
                "{body}"
            );
            body["error"].as_str().unwrap().to_owned()
        }
    }
}

impl Client {
    /// A client of a service started elsewhere, such as in a separate process.
    pub fn at(base: &str) -> Self {
        Self {
            http: http_client(),
            base: base.to_owned(),
            admin_base: String::new(),
            headers: Vec::new(),
        }
    }

    /// The same client with this bearer credential instead of its own.
    pub fn bearer(&self, credential: &str) -> Self {
        let mut client = self.clone();
        client
            .headers
            .retain(|(name, _)| !["authorization", "x-api-key"].contains(&name.as_str()));
        client.with_header("authorization", &format!("Bearer {credential}"))
    }

    /// The value of a header this client sends.
    pub fn sends(&self, name: &str) -> &str {
        let header = self.headers.iter().find(|(own, _)| own == name);
        header.map(|(_, value)| value.as_str()).unwrap()
    }

    pub async fn login(&self, email: &str, password: &str) -> Answer {
        self.post("/api/auth/login", &json!({"email": email, "password": password}))
            .await
    }

    /// Changes settings of the caller's workspace.
    pub async fn settings(&self, change: Value) -> Value {
        let answer = self.patch("/api/admin/workspace", &change).await;
        answer.expect(200).await["workspace"].clone()
    }

    /// As the operator: decides about the workspace of another client, and returns what the operator sees of it.
    pub async fn oversees(&self, other: &Client, decision: Value) -> Value {
        let me = other.get("/api/auth/me").await.expect(200).await;
        let path = format!(
            "/api/admin/workspaces/{}",
            me["workspace"]["id"].as_str().unwrap()
        );
        self.patch(&path, &decision).await.expect(200).await["workspace"].clone()
    }

    /// Adds a user to the caller's workspace, and returns its id and e-mail address.
    pub async fn add_user(&self, role: &str) -> (String, String) {
        let email = format!("{role}-{}@example.com", Uuid::new_v4());
        let body = json!({"email": email, "password": PASSWORD, "role": role});
        let made = self.post("/api/admin/users", &body).await.expect(201).await;
        (made["user"]["id"].as_str().unwrap().to_owned(), email)
    }

    /// Creates an API key in the caller's workspace; returns its id and secret.
    pub async fn add_key(&self, scopes: &[&str]) -> (String, String) {
        let body = json!({"name": "test", "scopes": scopes});
        let made = self.post("/api/admin/api-keys", &body).await.expect(201).await;
        let part = |key: &str| made[key].as_str().unwrap().to_owned();
        (part("id"), part("key"))
    }

    /// The newest thousand audit entries of the caller's workspace.
    pub async fn audit_logs(&self) -> Vec<Value> {
        let answer = self.get("/api/audit/logs?limit=1000").await.expect(200).await;
        answer["logs"].as_array().unwrap().clone()
    }

    /// Audit entries with this action, newest first.
    pub async fn audited(&self, action: &str) -> Vec<Value> {
        let mut logs = self.audit_logs().await;
        logs.retain(|entry| entry["action"] == action);
        logs
    }
}

/// The field names of an object, sorted.
pub fn keys_of(object: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = object.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

impl Client {
    /// The metrics page of the admin listener.
    pub async fn metrics(&self) -> String {
        let answer = self
            .http
            .get(format!("{}/metrics", self.admin_base))
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), 200);
        answer.text().await.unwrap()
    }
}
