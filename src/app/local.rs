//! The local service: its actors, its listeners. The library runs the same actors without the listeners.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use actix_web::middleware::from_fn;
use actix_web::{App, HttpServer, web};
use metrics_exporter_prometheus::PrometheusHandle;
use secrecy::{ExposeSecret, SecretString};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::lease::Lease;
use super::{Listening, StartError, closed, drain, first, keep, serve, stored_secret, tidy_figures};
use crate::actors::audit_writer::{AuditHandle, AuditWriter};
use crate::actors::config_owner::{ConfigCore, ConfigHandle};
use crate::actors::enricher::{EnricherCore, EnricherHandle};
use crate::actors::extractor::{ExtractorCore, ExtractorHandle};
use crate::actors::graph_store::memory::{Memory, PiiAction, Tuning};
use crate::actors::graph_store::{GraphCore, GraphHandle, Holds, Surroundings};
use crate::actors::rate_limiter::{RateLimiter, RateLimiterHandle};
use crate::actors::roster::Roster;
use crate::actors::telemetry_tailer::{
    Flush, Peer, Record, TailerCore, TelemetryEntry, TelemetryHandle, TelemetryLimits, TelemetryTailer,
};
use crate::actors::write_semaphore::{WriteSemaphore, WriteSemaphoreHandle};
use crate::config::EmbeddingProvider;
use crate::config::local::{EVERYWHERE, Editor, LocalSettings, PiiPolicy};
use crate::domain::memory::entity::mentions_in;
use crate::domain::permission::Tier;
use crate::domain::principal::Workspace;
use crate::domain::tlp::Tlp;
use crate::http::local::{self, LocalState};
use crate::memory::MemoryManager;
use crate::search::{IndexSettings, SearchIndex};
use crate::store::Store;
use crate::{blocking, clock, embedding, llm, telemetry};

/// The one workspace of a local installation.
pub const WORKSPACE: Uuid = Uuid::from_u128(0x6c6f_6361_6c00_5000_8000_7468_7265_6174);

/// Time in which streams end by themselves when the service stops.
const STREAMS_END: Duration = Duration::from_secs(1);
/// Telemetry entries on their way to the actor; more are dropped.
const MOST_ENTRIES: usize = 1024;

/// The ways to the actors.
#[derive(Clone)]
pub struct LocalHandles {
    /// The settings in effect.
    pub settings: watch::Receiver<Arc<LocalSettings>>,
    pub graph: GraphHandle,
    pub audit: AuditHandle,
    pub semaphore: WriteSemaphoreHandle,
    pub extractor: ExtractorHandle,
    pub enricher: EnricherHandle,
    pub telemetry: TelemetryHandle,
    /// Takes entries in the order in which they are given, and never holds anybody up.
    pub entries: mpsc::Sender<TelemetryEntry>,
    pub config: ConfigHandle,
    pub limiter: RateLimiterHandle,
}

impl LocalHandles {
    /// The settings of this moment.
    pub fn settings(&self) -> Arc<LocalSettings> {
        Arc::clone(&self.settings.borrow())
    }
}

/// The actors of the local service, started.
pub struct LocalCore {
    handles: LocalHandles,
    store: Arc<Store>,
    core: Arc<GraphCore>,
    tailer: Arc<TailerCore>,
    background: Vec<JoinHandle<()>>,
    /// Of a memory that other processes could reach.
    lease: Option<Lease>,
}

impl LocalCore {
    /// Opens the store, loads the memory and starts the actors. Must run inside an actix system whose runtime is
    /// multi-threaded.
    ///
    /// # Errors
    /// Whatever keeps the service from starting, in words an operator can act on.
    pub async fn start(settings: LocalSettings, editor: Editor) -> Result<Self, StartError> {
        let runtime = Handle::current();
        let actors = settings.actors.clone();
        let store = open_store(&settings).await?;
        let lease = if settings.is_shared() {
            Some(Lease::take(&store, &settings.storage.data_dir).await?)
        } else {
            None
        };
        ensure_workspace(&store).await?;
        let key = |secret: &SecretString| Some(secret.clone()).filter(|key| !key.expose_secret().is_empty());
        let embedder =
            embedding::embedder_of(&settings.embedding, key(&settings.embedding_api_key), &runtime)?;
        let index_settings = IndexSettings {
            exact_scan_limit: settings.search.exact_scan_limit,
            fresh_docs: settings.search.fresh_docs,
            ..IndexSettings::default()
        };
        let data_dir = settings.data_dir();
        let index_dir = data_dir.as_ref().map(|dir| dir.join("index"));
        let index = SearchIndex::open(index_dir.as_deref(), embedder, index_settings)
            .map_err(|error| StartError::Setup(format!("search index: {error}")))?;
        let surroundings = Surroundings {
            remote_model: settings.embedding.provider != EmbeddingProvider::Builtin,
            shared_store: settings.is_shared(),
            fill_interval: Duration::from_secs(settings.embedding.fill_seconds),
            idle_writer: Duration::from_secs(settings.search.idle_writer_seconds),
        };
        let model = llm::model_of(&settings.llm, key(&settings.llm_api_key))?;
        let mut roster = Roster::new();
        let extractor = Arc::new(ExtractorCore::new(model, actors.extractor.into()));
        let extractor = roster.worker(&extractor, actors.extractor.into());
        let limiter = roster.stateful(actors.rate_limiter.into(), RateLimiter::default);
        let audited = Arc::clone(&store);
        let audit = roster.stateful(actors.audit_writer, move || {
            AuditWriter::new(Arc::clone(&audited))
        });
        let fixed = settings.clone();
        let (config, watched) = ConfigCore::new(settings, editor, Some((WORKSPACE, audit.clone())));
        let config = roster.worker(&Arc::new(config), actors.config_owner);

        let live = watched.clone();
        let memory = Memory::new(WORKSPACE, Arc::new(move || tuning(&live.borrow())));
        let queue = memory.enrichment();
        let core = Arc::new(GraphCore::new(
            Arc::clone(&store),
            Arc::new(index),
            audit.clone(),
            surroundings,
            Holds::Notes(Box::new(memory)),
        ));
        core.open_memory().await?;
        let graph = roster.worker(&core, actors.graph_store);
        let live = watched.clone();
        let capacity = Arc::new(move || live.borrow().web.write_concurrency);
        let semaphore = WriteSemaphore::new(capacity);
        let semaphore = roster.stateful(actors.write_semaphore.into(), move || semaphore.clone());
        let live = watched.clone();
        let tailer = Arc::new(TailerCore::new(
            data_dir,
            fixed.logging.file,
            fixed.web.stream_buffer,
            Arc::new(clock::now),
            Arc::new(move || limits(&live.borrow())),
        ));
        let telemetry = TelemetryTailer::start(Arc::clone(&tailer), runtime, actors.telemetry_tailer);
        roster.add(telemetry.clone());
        let patience = Duration::from_millis(fixed.enrichment.timeout_ms);
        let enricher = EnricherCore::new(
            graph.clone(),
            extractor.clone(),
            queue,
            fixed.has_model(),
            patience,
        );
        let enricher = roster.worker(&Arc::new(enricher), actors.enricher.into());
        let (entries, recorded) = mpsc::channel(MOST_ENTRIES);
        let handles = LocalHandles {
            settings: watched,
            graph,
            audit,
            semaphore,
            extractor,
            enricher,
            telemetry,
            entries,
            config,
            limiter,
        };
        // The rules compile on first use; the first note shall not wait for it.
        blocking::spawn(|| drop(mentions_in("")));
        let background = vec![
            keep(roster, fixed.keeper.max_restarts_per_minute),
            tokio::spawn(record(recorded, handles.telemetry.clone())),
        ];
        Ok(Self {
            handles,
            store,
            core,
            tailer,
            background,
            lease,
        })
    }

    /// The ways to the actors.
    pub fn handles(&self) -> &LocalHandles {
        &self.handles
    }

    /// Empties the audit writer, writes the index out and closes the store.
    pub async fn stop(mut self, deadline: Duration) {
        drain(&self.handles.audit, deadline).await;
        // All places are free once all entries are on their way.
        let sent = self.handles.entries.reserve_many(MOST_ENTRIES);
        tokio::time::timeout(STREAMS_END, sent).await.map(drop).ok();
        if let Err(error) = self.handles.telemetry.call(Flush).await {
            tracing::warn!(?error, "the last telemetry may be missing");
        }
        for task in &self.background {
            task.abort();
        }
        self.core.close_idle_indexes(Duration::ZERO).await;
        if let Some(lease) = self.lease.take() {
            lease.release(&self.store).await;
        }
        let temporary = self.store.temporary_dir().map(Path::to_owned);
        let store = Arc::downgrade(&self.store);
        let engine_dir = self.handles.settings().engine_dir();
        drop(self);
        closed(&store, engine_dir.as_deref(), temporary.as_deref()).await;
    }
}

/// The local service with its HTTP API.
pub struct LocalApplication {
    core: LocalCore,
    listening: Listening,
    figures: JoinHandle<()>,
    drain: Duration,
}

impl LocalApplication {
    /// Starts the actors and listens.
    ///
    /// # Errors
    /// As [`LocalCore::start`], or when an address can't be bound.
    pub async fn start(settings: LocalSettings, editor: Editor) -> Result<Self, StartError> {
        // Before the actors: each announces its figures when it starts.
        let recorder = telemetry::init_metrics().map_err(StartError::Setup)?;
        let web = settings.web.clone();
        let core = LocalCore::start(settings, editor).await?;
        let figures = tokio::spawn(tidy_figures(recorder.clone()));
        let state = LocalState::new(MemoryManager::over(core.handles().clone()), &web.api_key);
        let listening = listen(&state, &web, recorder)?;
        Ok(Self {
            core,
            listening,
            figures,
            drain: Duration::from_secs(web.drain_seconds),
        })
    }

    /// Address of the API.
    pub fn address(&self) -> SocketAddr {
        self.listening.address
    }

    /// Address of `/metrics`.
    pub fn admin_address(&self) -> SocketAddr {
        self.listening.admin_address
    }

    /// The ways to the actors, for whoever embeds the service.
    pub fn handles(&self) -> &LocalHandles {
        self.core.handles()
    }

    /// Ends the streams, lets what is under way finish, and closes the store.
    pub async fn stop(self) {
        self.core.tailer.close();
        let tailer = Arc::clone(&self.core.tailer);
        let unread = async move {
            tokio::time::sleep(STREAMS_END).await;
            tailer.cut_streams();
        };
        let unread = tokio::spawn(unread);
        self.listening.stop(self.drain).await;
        unread.abort();
        self.figures.abort();
        self.core.stop(self.drain).await;
    }
}

/// Hands telemetry entries to their actor, one after the other.
async fn record(mut entries: mpsc::Receiver<TelemetryEntry>, telemetry: TelemetryHandle) {
    while let Some(entry) = entries.recv().await {
        if let Err(error) = telemetry.call(Record(entry)).await {
            tracing::debug!(?error, "a telemetry entry was dropped");
        }
    }
}

/// What the memory reads of the settings.
fn tuning(settings: &LocalSettings) -> Tuning {
    let pii = &settings.governance.pii;
    let action = match pii.action {
        PiiPolicy::Log => PiiAction::Log,
        PiiPolicy::Redact => PiiAction::Redact,
        PiiPolicy::Block => PiiAction::Block,
    };
    Tuning {
        graph_weight: settings.retrieval.graph_weight as f32,
        recency_weight: settings.retrieval.recency_weight as f32,
        half_life_days: settings.retrieval.recency_half_life_days,
        near_cosine: settings.evolution.near_duplicate_cosine as f32,
        near_overlap: settings.evolution.near_duplicate_overlap,
        audited: settings.governance.enabled,
        pii: pii.enabled.then_some(action),
        most_waiting: if settings.has_model() {
            settings.enrichment.max_queue
        } else {
            0
        },
    }
}

/// What the telemetry reads of the settings.
fn limits(settings: &LocalSettings) -> TelemetryLimits {
    let telemetry = &settings.telemetry;
    TelemetryLimits {
        enabled: telemetry.enabled,
        keep_days: telemetry.keep_days,
        record_queries: telemetry.record_queries,
        max_file_bytes: telemetry.max_file_mib << 20,
        max_streams: settings.web.max_streams,
    }
}

async fn open_store(settings: &LocalSettings) -> Result<Arc<Store>, StartError> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let password = variable("THREAT_MEMORY_STORAGE_PASSWORD").map(SecretString::from);
    let owner = variable("THREAT_MEMORY_STORAGE_USER").zip(password);
    // Whoever may own an external database shares one user in it: a process that is refused must not lock the other one
    // out with a password of its own.
    let secret = match &owner {
        Some((_, password)) if settings.is_shared() => password.clone(),
        Some(_) | None => stored_secret(settings.data_dir().as_deref())?,
    };
    super::open_store(
        "local",
        &settings.engine_url(),
        &settings.storage(),
        owner,
        &secret,
    )
    .await
}

/// The workspace that the rows of a local installation belong to.
async fn ensure_workspace(store: &Store) -> Result<(), StartError> {
    if store.workspace(WORKSPACE).await?.is_some() {
        return Ok(());
    }
    let now = clock::now();
    let workspace = Workspace {
        id: WORKSPACE,
        name: "local".into(),
        tier: Tier::Enterprise,
        tlp_ceiling: Tlp::White,
        elevated_clearance: false,
        red_export_grant: false,
        features: Vec::new(),
        created_at: now,
        is_operator: true,
    };
    Ok(store.create_workspace(&workspace, false, None, None, now).await?)
}

/// Binds both listeners and starts serving.
fn listen(
    state: &LocalState,
    web_settings: &crate::config::local::WebSettings,
    recorder: PrometheusHandle,
) -> Result<Listening, StartError> {
    let place = format!("web.host {} port {}", web_settings.host, web_settings.port);
    let failed = |error| StartError::Io(place.clone(), error);
    let address = match web_settings.host.parse::<IpAddr>() {
        Ok(ip) => SocketAddr::new(ip, web_settings.port),
        Err(_) => (web_settings.host.as_str(), web_settings.port)
            .to_socket_addrs()
            .map_err(failed)?
            .next()
            .ok_or_else(|| StartError::Setup(format!("{place}: no address")))?,
    };
    // A name may mean that too.
    if address.ip().to_canonical().is_unspecified() && web_settings.api_key.expose_secret().is_empty() {
        return Err(StartError::Setup(format!("web.host: {EVERYWHERE}")));
    }
    let data = web::Data::new(state.clone());
    let server = HttpServer::new(move || {
        App::new()
            .app_data(data.clone())
            .wrap(from_fn(crate::http::observe))
            .configure(local::configure)
    })
    .workers(web_settings.workers)
    .disable_signals()
    .on_connect(|connection, data| {
        let connection = connection.downcast_ref::<actix_web::rt::net::TcpStream>();
        if let Some(peer) = connection.and_then(|connection| Peer::of(connection).ok()) {
            data.insert(peer);
        }
    })
    // A client of a stream that went away frees its place at once, not with the next line.
    .h1_allow_half_closed(false)
    .shutdown_timeout(web_settings.drain_seconds)
    .bind(address)
    .map_err(|error| StartError::Io(place.clone(), error))?;
    let address = first(server.addrs())?;
    serve(
        server.run(),
        address,
        web_settings.admin_bind,
        recorder,
        "web.admin_bind",
    )
}
