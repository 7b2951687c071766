//! The only place that starts actors and wires handles; owns start order and shutdown.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use actix_web::dev::ServerHandle;
use actix_web::middleware::from_fn;
use actix_web::{App, HttpServer, web};
use metrics_exporter_prometheus::PrometheusHandle;
use secrecy::SecretString;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::actors::audit_writer::{AuditHandle, AuditWriter, Drain};
use crate::actors::extractor::{Extractor, ExtractorCore, ExtractorHandle};
use crate::actors::graph_store::{GraphCore, GraphStore, IngestStix, Surroundings};
use crate::actors::handle::{ActorHandle, Kept};
use crate::actors::identity::{FirstAdmin, Identity, IdentityCore, bootstrap, demo_bundle};
use crate::actors::keeper;
use crate::actors::rate_limiter::RateLimiter;
use crate::actors::staging::{StagingBatches, StagingCore};
use crate::auth::token::{self, Tokens};
use crate::config::{EmbeddingProvider, Settings};
use crate::domain::error::DomainError;
use crate::domain::stix::ingest::Defaults;
use crate::domain::tlp::Tlp;
use crate::http::{AppState, admin, hosted};
use crate::search::{IndexSettings, SearchIndex};
use crate::store::{StorageCredentials, StorageMemory, Store, StoreError};
use crate::{clock, embedding, llm, telemetry};

/// Exit code when an actor dies again and again (sysexits.h, EX_SOFTWARE).
const GAVE_UP: i32 = 70;
/// How often the writes of other processes are looked for, where the database is shared.
const FOLLOW_INTERVAL: Duration = Duration::from_secs(1);
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

/// The hosted service, started.
pub struct Application {
    state: AppState,
    store: Arc<Store>,
    core: Arc<GraphCore>,
    server: ServerHandle,
    admin_server: ServerHandle,
    serving: JoinHandle<std::io::Result<()>>,
    background: Vec<JoinHandle<()>>,
    address: SocketAddr,
    admin_address: SocketAddr,
    first_admin: Option<FirstAdmin>,
}

impl Application {
    /// Opens the store, starts the actors and listens. Must run inside an actix system whose runtime is
    /// multi-threaded.
    ///
    /// # Errors
    /// Whatever keeps the service from starting, in words an operator can act on.
    pub async fn start(settings: Settings) -> Result<Self, StartError> {
        // Before the actors: each announces its figures when it starts.
        let recorder = telemetry::init_metrics().map_err(StartError::Setup)?;
        let runtime = Handle::current();
        let settings = Arc::new(settings);
        let data_dir = settings.data_dir();
        let secret = secret(&settings)?;
        let store = open_store(&settings, &secret).await?;
        let first_admin = bootstrap(
            &store,
            settings.admin_email.as_deref(),
            settings.admin_password.as_ref(),
        )
        .await?;
        let surroundings = Surroundings {
            remote_model: settings.embedding.provider != EmbeddingProvider::Builtin,
            shared_store: settings.storage.url.starts_with("ws"),
        };
        let embedder = embedding::embedder_of(&settings, &runtime)?;
        let index_settings = IndexSettings {
            exact_scan_limit: settings.search.exact_scan_limit,
            ..IndexSettings::default()
        };
        let index_dir = data_dir.as_ref().map(|dir| dir.join("index"));
        let index = SearchIndex::open(index_dir.as_deref(), embedder, index_settings)
            .map_err(|error| StartError::Setup(format!("search index: {error}")))?;

        let actors = settings.actors.clone();
        let limits = actors.rate_limiter;
        let arbiter = actix::Arbiter::current();
        let limiter = ActorHandle::start(
            "rate_limiter",
            limits,
            Box::new(move || actix::Actor::start_in_arbiter(&arbiter, |_| RateLimiter::default())),
        );
        let audit = AuditWriter::start(Arc::clone(&store), runtime.clone(), actors.audit_writer);
        let core = Arc::new(GraphCore::new(
            Arc::clone(&store),
            Arc::new(index),
            audit.clone(),
            surroundings,
        ));
        let graph = GraphStore::start(Arc::clone(&core), runtime.clone(), actors.graph_store);
        let tokens = Tokens::new(&secret);
        let identity = IdentityCore::new(
            Arc::clone(&store),
            tokens,
            audit.clone(),
            limiter.clone(),
            actors.identity.gate,
        );
        let identity = Identity::start(Arc::new(identity), runtime.clone(), actors.identity);

        let model = llm::model_of(&settings)?;
        let extractor = ExtractorCore::new(model, actors.extractor);
        let extractor = Extractor::start(Arc::new(extractor), runtime.clone(), actors.extractor);
        let staging = StagingCore::new(
            Arc::clone(&store),
            extractor.clone(),
            graph.clone(),
            audit.clone(),
        );
        let staging = StagingBatches::start(Arc::new(staging), runtime.clone(), actors.staging_batches);

        let state = AppState {
            settings: Arc::clone(&settings),
            graph,
            staging,
            identity,
            audit,
            limiter,
        };
        load_demo(&store, &state).await?;
        let mut background = background(&state, &extractor, &core, &settings);
        background.push(tokio::spawn(tidy_figures(recorder.clone())));
        let (server, admin_server, address, admin_address, serving) = listen(&state, recorder)?;
        Ok(Self {
            state,
            store,
            core,
            server,
            admin_server,
            serving,
            background,
            address,
            admin_address,
            first_admin,
        })
    }

    /// Address of the API.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Address of `/metrics`.
    pub fn admin_address(&self) -> SocketAddr {
        self.admin_address
    }

    /// The administrator made at this start, if it was the first one.
    pub fn first_admin(&self) -> Option<&FirstAdmin> {
        self.first_admin.as_ref()
    }

    /// The handles, for whoever embeds the service.
    pub fn state(&self) -> &AppState {
        &self.state
    }

    /// Stops accepting, lets what is under way finish, empties the audit writer, closes the store.
    pub async fn stop(self) {
        let deadline = Duration::from_secs(self.state.settings.server.drain_seconds);
        let stopping = async {
            self.server.stop(true).await;
            self.admin_server.stop(false).await;
        };
        if tokio::time::timeout(deadline, stopping).await.is_err() {
            tracing::warn!("requests were still under way at the deadline");
        }
        drain(&self.state.audit, deadline).await;
        for task in &self.background {
            task.abort();
        }
        self.serving.abort();
        self.core.close_idle_indexes(Duration::ZERO).await;
        let store = Arc::downgrade(&self.store);
        let engine_dir = self.state.settings.engine_dir();
        drop(self);
        closed(&store, engine_dir.as_deref()).await;
    }
}

/// Waits, a moment at most, until the store has closed its files: it does so in the background once the last
/// handle is gone, and needs the runtime for it.
async fn closed(store: &Weak<Store>, dir: Option<&Path>) {
    for _ in 0..CLOSING_TRIES {
        if store.strong_count() == 0 && !dir.is_some_and(has_open_files) {
            return;
        }
        tokio::time::sleep(CLOSING_PAUSE).await;
    }
    tracing::warn!("the store was still closing at exit; it recovers at the next start");
}

/// Whether this process has a file under `dir` open.
fn has_open_files(dir: &Path) -> bool {
    let Ok(dir) = dir.canonicalize() else { return false };
    let Ok(open) = std::fs::read_dir("/proc/self/fd") else {
        return false;
    };
    open.flatten()
        .any(|entry| std::fs::read_link(entry.path()).is_ok_and(|path| path.starts_with(&dir)))
}

async fn drain(audit: &AuditHandle, deadline: Duration) {
    match tokio::time::timeout(deadline, audit.call(Drain)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!(?error, "draining the audit writer failed"),
        Err(_) => tracing::error!("the audit writer was not empty at the deadline"),
    }
}

fn secret(settings: &Settings) -> Result<SecretString, StartError> {
    if let Some(secret) = &settings.jwt_secret {
        return Ok(secret.clone());
    }
    let dir = settings.data_dir();
    token::secret_of(dir.as_deref()).map_err(|error| {
        let place = dir.map_or_else(|| "token secret".into(), |dir| dir.display().to_string());
        StartError::Io(place, error)
    })
}

async fn open_store(settings: &Settings, secret: &SecretString) -> Result<Arc<Store>, StartError> {
    let memory = StorageMemory {
        memtable: settings.storage.memtable_mib << 20,
        block_cache: settings.storage.block_cache_mib << 20,
    };
    let owner = match (&settings.storage_user, &settings.storage_password) {
        (Some(username), Some(password)) if settings.storage.url.starts_with("ws") => {
            Some(StorageCredentials {
                username: username.clone(),
                password: password.clone(),
            })
        }
        _ => None,
    };
    Ok(Arc::new(
        Store::open(&settings.engine_url(), "hosted", memory, owner.as_ref(), secret).await?,
    ))
}

/// Loads the public demo workspace once.
async fn load_demo(store: &Store, state: &AppState) -> Result<(), StartError> {
    let Some((by, objects)) = demo_bundle(store).await? else {
        return Ok(());
    };
    let defaults = Defaults {
        tlp: Tlp::White,
        confidence: 0.9,
        now: clock::now(),
    };
    let done = state
        .graph
        .call(IngestStix {
            by,
            objects,
            defaults,
        })
        .await?;
    tracing::info!(nodes = done.result.nodes_created, "public demo workspace loaded");
    Ok(())
}

/// The keeper, and the upkeep of the indexes.
fn background(
    state: &AppState,
    extractor: &ExtractorHandle,
    core: &Arc<GraphCore>,
    settings: &Settings,
) -> Vec<JoinHandle<()>> {
    let kept: Vec<Box<dyn Kept>> = vec![
        Box::new(state.graph.clone()),
        Box::new(state.staging.clone()),
        Box::new(extractor.clone()),
        Box::new(state.audit.clone()),
        Box::new(state.identity.clone()),
        Box::new(state.limiter.clone()),
    ];
    let give_up = |actor: &'static str| {
        tracing::error!(actor, "actor died too often; the process gives up");
        std::process::exit(GAVE_UP);
    };
    let keeper = tokio::spawn(keeper::watch(
        kept,
        settings.keeper.max_restarts_per_minute,
        give_up,
    ));
    let warm = Arc::clone(core);
    let warm_up = tokio::spawn(async move { warm.warm_up().await });
    let follow = Arc::clone(core);
    let following = tokio::spawn(async move {
        let mut ticks = tokio::time::interval(FOLLOW_INTERVAL);
        loop {
            ticks.tick().await;
            follow.follow().await;
        }
    });
    let fill = Arc::clone(core);
    let fill_interval = Duration::from_secs(settings.embedding.fill_seconds);
    let filling = tokio::spawn(async move {
        let mut ticks = tokio::time::interval(fill_interval);
        loop {
            ticks.tick().await;
            fill.fill_vectors().await;
        }
    });
    let (core, idle) = (
        Arc::clone(core),
        Duration::from_secs(settings.search.idle_writer_seconds),
    );
    let upkeep = tokio::spawn(async move {
        let mut ticks = tokio::time::interval(idle);
        loop {
            ticks.tick().await;
            core.close_idle_indexes(idle).await;
        }
    });
    vec![keeper, warm_up, upkeep, filling, following]
}

/// Folds the recorded latencies into their buckets: without it they pile up until somebody reads them.
async fn tidy_figures(recorder: PrometheusHandle) {
    let mut ticks = tokio::time::interval(FIGURES_INTERVAL);
    loop {
        ticks.tick().await;
        recorder.run_upkeep();
    }
}

type Listening = (
    ServerHandle,
    ServerHandle,
    SocketAddr,
    SocketAddr,
    JoinHandle<std::io::Result<()>>,
);

/// Binds both listeners and starts serving.
fn listen(state: &AppState, recorder: PrometheusHandle) -> Result<Listening, StartError> {
    let settings = &state.settings.server;
    let data = web::Data::new(state.clone());
    let server = HttpServer::new(move || {
        App::new()
            .app_data(data.clone())
            .wrap(from_fn(crate::http::observe))
            .configure(hosted::configure)
    })
    .workers(settings.workers)
    .disable_signals()
    .shutdown_timeout(settings.drain_seconds)
    .bind(settings.bind)
    .map_err(|error| StartError::Io(format!("server.bind {}", settings.bind), error))?;
    let address = first(server.addrs())?;
    let recorder = web::Data::new(recorder);
    let admin_server =
        HttpServer::new(move || App::new().app_data(recorder.clone()).configure(admin::configure))
            .workers(1)
            .disable_signals()
            .bind(settings.admin_bind)
            .map_err(|error| StartError::Io(format!("server.admin_bind {}", settings.admin_bind), error))?;
    let admin_address = first(admin_server.addrs())?;
    let (server, admin_server) = (server.run(), admin_server.run());
    let handles = (server.handle(), admin_server.handle());
    let serving = actix_web::rt::spawn(async move {
        let (served, _) = tokio::join!(server, admin_server);
        served
    });
    Ok((handles.0, handles.1, address, admin_address, serving))
}

fn first(addresses: Vec<SocketAddr>) -> Result<SocketAddr, StartError> {
    addresses
        .first()
        .copied()
        .ok_or_else(|| StartError::Setup("no address was bound".into()))
}
