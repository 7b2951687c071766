//! One service for all tests of this process that need nothing but a workspace of their own.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{OnceLock, mpsc};

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use threat_memory::app::hosted::Application;
use threat_memory::auth::token::{Tokens, secret_of};
use threat_memory::config::Settings;
use uuid::Uuid;

use crate::helpers::{ADMIN, Client, PASSWORD, run, settings};
use crate::hosted::feeds;
use crate::process::copy_started_once;

/// Beginning of the names of data directories; the process id follows.
const DIRECTORY: &str = "shared-service-";
/// The first address of a client: each test has one of its own, for what is counted by address.
const FIRST_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// How many tests share an actor. Each is to have about the permits and the time that a service of its own would give it.
const NEIGHBOURS: usize = 8;

/// The running service.
pub struct SharedService {
    base: String,
    admin_base: String,
    /// The `Authorization` header of the operator's administrator.
    operator: String,
    tokens: Tokens,
    clients: AtomicU32,
}

impl SharedService {
    /// The service; the first call starts it.
    pub fn get() -> &'static Self {
        static SERVICE: OnceLock<SharedService> = OnceLock::new();
        SERVICE.get_or_init(Self::start)
    }

    /// Starts the service on a thread of its own, where it runs until the process ends: no test knows that it is the
    /// last one.
    fn start() -> Self {
        let dir = directory();
        copy_started_once(&dir);
        let tokens = Tokens::new(&secret_of(Some(dir.as_path())).unwrap());
        let (sender, started) = mpsc::channel();
        let serving = move || {
            run(async move {
                let app = Application::start(shared_settings(&dir)).await.unwrap();
                sender
                    .send(Client::anonymous(&app).sign_in(ADMIN, PASSWORD).await)
                    .unwrap();
                std::future::pending::<()>().await;
            });
        };
        let thread = std::thread::Builder::new().name("shared service".into());
        thread.stack_size(16 << 20).spawn(serving).unwrap();
        let operator = started.recv().expect("the shared service starts");
        Self {
            operator: operator.sends("authorization").to_owned(),
            base: operator.base,
            admin_base: operator.admin_base,
            tokens,
            clients: AtomicU32::new(0),
        }
    }

    /// A client without credentials, from an address that no other one has.
    pub fn client(&self) -> Client {
        let number = self.clients.fetch_add(1, Ordering::Relaxed);
        let address = Ipv4Addr::from(u32::from(FIRST_ADDRESS) + number);
        let mut client = Client::at(&self.base);
        client.admin_base.clone_from(&self.admin_base);
        client.with_header("x-forwarded-for", &address.to_string())
    }

    /// Makes a workspace. Returns its id, and `client` as its administrator.
    pub async fn workspace(&self, client: &Client, name: &str, admin: &str) -> (Uuid, Client) {
        let operator = client.with_header("authorization", &self.operator);
        let body = json!({"name": name, "admin_email": admin, "admin_password": PASSWORD});
        let made = operator.post("/api/admin/workspaces", &body).await;
        let made = made.expect(201).await;
        let workspace = made["workspace"]["id"].as_str().unwrap().parse().unwrap();
        (workspace, self.signed_in(client, workspace, &made["admin"]))
    }

    /// `client` as a user who has just been made. The token is the one that a sign-in would give; a sign-in computes
    /// four password hashes.
    pub fn signed_in(&self, client: &Client, workspace: Uuid, user: &Value) -> Client {
        let part = |name: &str| user[name].as_str().unwrap();
        // Tokens of a new user are valid from the moment at which the user was made.
        let made: DateTime<Utc> = part("created_at").parse().unwrap();
        let id = part("id").parse().unwrap();
        let token = self.tokens.issue(id, workspace, made, Utc::now()).unwrap();
        client.bearer(&token)
    }
}

fn shared_settings(dir: &Path) -> Settings {
    let mut settings = feeds::allowing(settings(&format!("surrealkv://{}", dir.display())));
    settings.server.trusted_proxies = vec![Ipv4Addr::LOCALHOST.into()];
    for actor in ["graph_store", "identity", "staging_batches", "taxii_puller"] {
        let limits = settings.actors.of_mut(actor);
        limits.write_gate *= NEIGHBOURS;
        limits.timeout_ms *= u64::try_from(NEIGHBOURS).unwrap();
    }
    settings
}

/// An empty data directory. The end of the process does not remove it, so the next process does.
fn directory() -> PathBuf {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
    for entry in std::fs::read_dir(place).unwrap().map(Result::unwrap) {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(DIRECTORY));
        if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            // Another process may be removing it, too.
            std::fs::remove_dir_all(entry.path()).ok();
        }
    }
    let dir = place.join(format!("{DIRECTORY}{}", std::process::id()));
    std::fs::remove_dir_all(&dir).ok();
    std::fs::create_dir(&dir).unwrap();
    dir
}
