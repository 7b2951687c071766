//! The only place that starts actors and wires handles; owns start order and shutdown.
//!
//! `hosted` and `local` are two services over one core; what both need stands here.

pub mod hosted;
mod lease;
pub mod local;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use actix_web::dev::ServerHandle;
use actix_web::{App, HttpServer, web};
use metrics_exporter_prometheus::PrometheusHandle;
use secrecy::SecretString;
use tokio::task::JoinHandle;

use crate::actors::audit_writer::{AuditHandle, Drain};
use crate::actors::roster::Roster;
use crate::auth::token;
use crate::config::StorageSettings;
use crate::domain::error::DomainError;
use crate::files;
use crate::http::admin;
use crate::store::{StorageMemory, StorageServer, Store, StoreError};

/// Exit code when an actor dies again and again (sysexits.h, EX_SOFTWARE).
const GAVE_UP: i32 = 70;
const FIGURES_INTERVAL: Duration = Duration::from_secs(5);
const CLOSING_PAUSE: Duration = Duration::from_millis(10);
const CLOSING_TRIES: u32 = 500;

/// Why the service did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("{0}")]
    Store(#[from] StoreError),
    #[error("{0}: {1}")]
    Io(String, std::io::Error),
    #[error("{0}")]
    Setup(String),
}

impl From<DomainError> for StartError {
    fn from(error: DomainError) -> Self {
        if let DomainError::Internal { what, cause } = &error {
            return Self::Setup(format!("{what}: {cause}"));
        }
        Self::Setup(error.to_string())
    }
}

/// Waits, a moment at most, until the store has closed its files: it does so in the background once the last
/// handle is gone, and needs the runtime for it.
async fn closed(store: &Weak<Store>, dir: Option<&Path>, temporary: Option<&Path>) {
    for _ in 0..CLOSING_TRIES {
        let open = dir.is_some_and(files::has_open_files) || temporary.is_some_and(Path::exists);
        if store.strong_count() == 0 && !open {
            return;
        }
        tokio::time::sleep(CLOSING_PAUSE).await;
    }
    tracing::warn!("the store was still closing at exit; it recovers at the next start");
}

async fn drain(audit: &AuditHandle, deadline: Duration) {
    match tokio::time::timeout(deadline, audit.call(Drain)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!(?error, "draining the audit writer failed"),
        Err(_) => tracing::error!("the audit writer was not empty at the deadline"),
    }
}

/// The secret kept in the data directory, made at the first start.
fn stored_secret(dir: Option<&Path>) -> Result<SecretString, StartError> {
    token::secret_of(dir).map_err(|error| {
        let place = dir.map_or_else(|| "token secret".into(), |dir| dir.display().to_string());
        StartError::Io(place, error)
    })
}

/// Opens the database of one service; `owner` is who an external one belongs to.
async fn open_store(
    database: &str,
    engine_url: &str,
    storage: &StorageSettings,
    owner: Option<(String, SecretString)>,
    secret: &SecretString,
) -> Result<Arc<Store>, StartError> {
    let memory = StorageMemory {
        transaction: storage.transaction_mib << 20,
        memtable: storage.memtable_mib << 20,
        block_cache: storage.block_cache_mib << 20,
    };
    let server = owner
        .filter(|_| storage.url.starts_with("ws"))
        .map(|(username, password)| StorageServer {
            username,
            password,
            connections: storage.connections,
            timeout: Duration::from_millis(storage.timeout_ms),
        });
    Ok(Arc::new(
        Store::open(engine_url, database, memory, server.as_ref(), secret).await?,
    ))
}

/// Starts again the actors that die, and ends the process when one dies too often.
fn keep(roster: Roster, max_restarts_per_minute: u32) -> JoinHandle<()> {
    roster.keep(max_restarts_per_minute, |actor| {
        tracing::error!(actor, "actor died too often; the process gives up");
        std::process::exit(GAVE_UP);
    })
}

/// Folds the recorded latencies into their buckets: without it they pile up until somebody reads them.
async fn tidy_figures(recorder: PrometheusHandle) {
    let mut ticks = tokio::time::interval(FIGURES_INTERVAL);
    loop {
        ticks.tick().await;
        recorder.run_upkeep();
    }
}

/// Two listeners that serve: the API and the figures.
struct Listening {
    server: ServerHandle,
    admin_server: ServerHandle,
    address: SocketAddr,
    admin_address: SocketAddr,
    serving: JoinHandle<std::io::Result<()>>,
}

impl Listening {
    /// Stops accepting and waits, up to `deadline`, for what is under way.
    async fn stop(&self, deadline: Duration) {
        let stopping = async {
            self.server.stop(true).await;
            self.admin_server.stop(false).await;
        };
        if tokio::time::timeout(deadline, stopping).await.is_err() {
            tracing::warn!("requests were still under way at the deadline");
        }
        self.serving.abort();
    }
}

/// Serves an API that is bound already, and the figures beside it.
fn serve(
    server: actix_web::dev::Server,
    address: SocketAddr,
    admin_bind: SocketAddr,
    recorder: PrometheusHandle,
    bind_key: &str,
) -> Result<Listening, StartError> {
    let recorder = web::Data::new(recorder);
    let admin_server =
        HttpServer::new(move || App::new().app_data(recorder.clone()).configure(admin::configure))
            .workers(1)
            .disable_signals()
            .bind(admin_bind)
            .map_err(|error| StartError::Io(format!("{bind_key} {admin_bind}"), error))?;
    let admin_address = first(admin_server.addrs())?;
    let admin_server = admin_server.run();
    let handles = (server.handle(), admin_server.handle());
    let serving = actix_web::rt::spawn(async move {
        let (served, _) = tokio::join!(server, admin_server);
        served
    });
    Ok(Listening {
        server: handles.0,
        admin_server: handles.1,
        address,
        admin_address,
        serving,
    })
}

fn first(addresses: Vec<SocketAddr>) -> Result<SocketAddr, StartError> {
    addresses
        .first()
        .copied()
        .ok_or_else(|| StartError::Setup("no address was bound".into()))
}
