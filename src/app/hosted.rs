//! The hosted service: its actors, listeners and first start.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use actix_service::ServiceFactory;
use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::middleware::{Compress, Condition, from_fn};
use actix_web::{App, web};
use metrics_exporter_prometheus::PrometheusHandle;
use secrecy::{ExposeSecret, SecretString};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use super::listener::Listener;
use super::{AdminListener, Listeners, StartError, demo_data, serve, tidy_metrics};
use crate::actors::audit_writer::{AuditHandle, AuditWriter};
use crate::actors::backup_writer::BackupCore;
use crate::actors::extractor::ExtractorCore;
use crate::actors::graph_store::{GraphCore, GraphHandle};
pub use crate::actors::identity::{Account, AccountDone, AccountTask};
use crate::actors::identity::{FirstAdmin, IdentityCore, OauthSignIn, bootstrap, recover_account};
use crate::actors::indexed_store::StoreEnvironment;
use crate::actors::notifier::NotifierCore;
use crate::actors::rate_limiter::{RateLimiter, RateLimiterHandle};
use crate::actors::retention;
use crate::actors::roster::Roster;
use crate::actors::staging::StagingCore;
use crate::actors::taxii_puller::TaxiiPullerCore;
use crate::actors::worker::ActorCore;
use crate::archive::ServiceKind;
use crate::auth::token::{self, Tokens};
use crate::capacity::{Budget, DiskRoom};
use crate::config::{EmbeddingProvider, Settings};
use crate::domain::error::ErrorKind;
use crate::http::mcp::InProcessApi;
use crate::http::tls::ServerCertificate;
use crate::http::{AppState, compression, cors, equalize_refusal_time, hosted, observe};
use crate::lifecycle::hangup::{self, Reload, reload_on_hangup};
use crate::lifecycle::{
    self, drain, keep, load_or_create_secret, requirements, storage_memory, storage_server, wait_until_closed,
};
use crate::mail::Mailer;
use crate::outbound::{GuardedClient, Policy};
use crate::search::{Embedder, IndexSettings, SearchIndex};
use crate::store::{Store, StoreError};
use crate::warninglists::WarninglistsHandle;
use crate::{blocking, embedding, files, llm, telemetry};

/// Size of a value that lies in the engine's value log, where an erased one would stay as long as its file: more than any has.
pub(super) const VALUE_LOG: usize = 1 << 30;

const DATABASE: &str = "hosted";

/// The hosted service, started.
pub struct Application {
    state: AppState,
    store: Arc<Store>,
    core: Arc<GraphCore>,
    pulls: Arc<TaxiiPullerCore>,
    notifications: Arc<NotifierCore>,
    listening: Listeners,
    background: Vec<JoinHandle<()>>,
    first_admin: Option<FirstAdmin>,
}

impl Application {
    /// Opens the store, starts the actors and listens. Must run inside an actix system on a multi-threaded runtime.
    ///
    /// # Errors
    /// When the service can't start, in words an operator can act on.
    pub async fn start(settings: Settings) -> Result<Self, StartError> {
        // Installed before the actors, which register their metrics when they start.
        let recorder = telemetry::init_metrics().map_err(StartError::Setup)?;
        // At once: who is told to read files again while it starts must not end.
        let hangups = hangup::watch();
        let runtime = Handle::current();
        let settings = Arc::new(settings);
        if settings.feeds.local_development {
            tracing::warn!("feeds.local_development is on: feeds may use HTTP and loopback addresses");
        }
        requirements::check(settings.server.workers, settings.data_dir().as_deref())?;
        // Before the store: a setting that can't be used stops the start before anything is written.
        let mailer = mailer(&settings)?;
        let (dir, lowers) = (
            &settings.warninglists.dir,
            settings.ingest.lower_listed_confidence,
        );
        let warninglists = WarninglistsHandle::open_at_start(dir, lowers).await?;
        let (tls, certificate) = tls(settings.server.tls()).await?;
        let reloads = warninglists.on_hangup().into_iter().chain(certificate).collect();
        let embedder = embedding::begin(&settings.embedding, settings.embedding_api_key.clone(), &runtime);
        let store = open_store(&settings).await?;
        // After the store: a directory with a secret and without a store is one that has lost it.
        let secret = secret(&settings)?;
        let first_admin = first_admin(&settings, &store).await?;
        // At once: should anything below fail, the administrator exists already.
        if let Some(admin) = &first_admin {
            announce(admin);
        }
        let actors = &settings.actors;
        let sections = actors.clone();
        let mut roster = Roster::new(move |name| sections.of(name));
        let limiter = roster.stateful(RateLimiter::default);
        let audited = Arc::clone(&store);
        let audit = roster.stateful(move || AuditWriter::new(Arc::clone(&audited)));
        let core = graph_core(&settings, &store, &audit, embedder.await?)?;
        let core = Arc::new(core.with_warninglists(warninglists.clone()));
        let identity = Arc::new(identity_core(&settings, &store, &secret, &audit, &limiter)?);
        let identity = roster.worker(&identity);
        let model = llm::model_of(&settings.llm, settings.llm_api_key.clone())?;
        let extractor = Arc::new(ExtractorCore::new(model, actors.of(ExtractorCore::NAME)));
        let extractor = roster.worker(&extractor);
        let graph = roster.worker(&core);
        let staging = Arc::new(StagingCore::new(
            Arc::clone(&store),
            extractor.clone(),
            graph.clone(),
            audit.clone(),
            warninglists.clone(),
        ));
        let staging = roster.worker(&staging);
        let pulls = puller_core(&settings, &store, &graph, &audit)?;
        let pulls = Arc::new(pulls.with_warninglists(warninglists.clone()));
        let puller = roster.worker(&pulls);
        let notifications = Arc::new(notifications(&settings, &store, &audit, mailer));
        let notifier = roster.worker(&notifications);
        let backup = BackupCore::new(Arc::clone(&store), audit.clone(), ServiceKind::Hosted);
        let backup = roster.worker(&Arc::new(backup));
        if let Some((name, _)) = actors.sections().find(|(name, _)| !roster.has(name)) {
            return Err(StartError::Setup(format!(
                "actors.{name}: there is no actor of this name"
            )));
        }

        let demo = demo_data::load(&store, &graph).await?;
        // The demo workspace is written once; an open index writer would hold its memory for nothing.
        core.close_idle_indexes(Duration::ZERO).await;
        let state = AppState {
            settings: Arc::clone(&settings),
            graph,
            extractor,
            staging,
            puller,
            notifier,
            backup,
            actors: roster.list(),
            identity,
            audit,
            limiter,
            storage: store.health(),
            disk: DiskRoom::new(settings.data_dir(), settings.storage.min_free_mib),
            demo,
            bodies: Budget::new(
                settings.server.bodies_in_flight(),
                settings.server.bodies_in_flight() / 2,
            ),
        };
        let background = vec![
            keep(roster, settings.keeper.max_restarts_per_minute),
            tokio::spawn(tidy_metrics(recorder.clone())),
            tokio::spawn(retention::run(Arc::clone(&store), settings.retention.clone())),
            tokio::spawn(reload_on_hangup(hangups, reloads)),
        ];
        let listening = listen(&state, tls, recorder).await?;
        Ok(Self {
            state,
            store,
            core,
            pulls,
            notifications,
            listening,
            background,
            first_admin,
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

    /// The administrator created at this start, if it was the first.
    pub fn first_admin(&self) -> Option<&FirstAdmin> {
        self.first_admin.as_ref()
    }

    /// The handles, for programs that embed the service.
    pub fn state(&self) -> &AppState {
        &self.state
    }

    /// Stops accepting, lets requests in flight finish, drains the audit writer and closes the store.
    pub async fn stop(self) {
        let deadline = Duration::from_secs(self.state.settings.server.drain_seconds);
        tokio::join!(
            self.listening.stop(deadline),
            self.pulls.stop(deadline),
            self.notifications.stop(deadline)
        );
        drain(&self.state.audit, deadline).await;
        for task in &self.background {
            task.abort();
        }
        self.core.close_idle_indexes(Duration::ZERO).await;
        let temporary = self.store.temporary_dir().map(Path::to_owned);
        let store = Arc::downgrade(&self.store);
        let engine_dir = self.state.settings.engine_dir();
        drop(self);
        wait_until_closed(&store, engine_dir.as_deref(), temporary.as_deref()).await;
    }
}

/// Recovers an account on the machine: opens the store, does it, and closes the store. On an embedded store the service must
/// not run beside it, since one process has it open at a time. There must be a store.
///
/// # Errors
/// In words an operator can act on: the store can't be opened, or nothing was done, and why.
pub async fn recover(
    settings: &Settings,
    task: AccountTask,
    account: Account,
) -> Result<AccountDone, StartError> {
    let store = join_store(settings).await?;
    let done = recover_account(&store, task, account).await;
    let (weak, temporary) = (Arc::downgrade(&store), store.temporary_dir().map(Path::to_owned));
    drop(store);
    wait_until_closed(&weak, settings.engine_dir().as_deref(), temporary.as_deref()).await;
    Ok(done?)
}

/// Makes the administrator if the store is new.
async fn first_admin(settings: &Settings, store: &Store) -> Result<Option<FirstAdmin>, StartError> {
    let (email, password) = (settings.admin_email.as_deref(), settings.admin_password.as_ref());
    bootstrap(store, email, password).await.map_err(|error| {
        if error.kind() == ErrorKind::Invalid {
            return StartError::Configuration(error.to_string());
        }
        error.into()
    })
}

/// Prints the generated password of the first administrator: the only time that it can be shown.
fn announce(admin: &FirstAdmin) {
    if let Some(password) = &admin.generated_password {
        eprintln!("First start: administrator {} was created.", admin.email);
        eprintln!("Its password, shown only now: {}", password.expose_secret());
    }
}

fn graph_core(
    settings: &Settings,
    store: &Arc<Store>,
    audit: &AuditHandle,
    embedder: Arc<dyn Embedder>,
) -> Result<GraphCore, StartError> {
    let index_settings = IndexSettings {
        fresh_docs: settings.search.fresh_docs,
        ..IndexSettings::default()
    };
    let index_dir = settings.data_dir().map(|dir| dir.join("index"));
    let index = SearchIndex::open(index_dir.as_deref(), embedder, index_settings, store.id_secret())
        .map_err(|error| StartError::Setup(format!("search index: {error}")))?;
    let environment = StoreEnvironment {
        remote_model: settings.embedding.provider != EmbeddingProvider::Builtin,
        shared_store: settings.has_shared_store(),
        fill_interval: Duration::from_secs(settings.embedding.fill_seconds),
        idle_writer: Duration::from_secs(settings.search.idle_writer_seconds),
    };
    Ok(GraphCore::new(
        Arc::clone(store),
        Arc::new(index),
        audit.clone(),
        environment,
    ))
}

fn identity_core(
    settings: &Settings,
    store: &Arc<Store>,
    secret: &SecretString,
    audit: &AuditHandle,
    limiter: &RateLimiterHandle,
) -> Result<IdentityCore, StartError> {
    let gate = settings.actors.of(IdentityCore::NAME).gate;
    let oauth = OauthSignIn::new(&settings.oauth, secret, gate / 4)
        .map_err(|error| StartError::Setup(format!("oauth.providers: {error}")))?;
    let core = IdentityCore::new(
        Arc::clone(store),
        Tokens::new(secret).with_previous(settings.previous_jwt_secret.as_ref()),
        audit.clone(),
        limiter.clone(),
        oauth,
        gate,
    )?;
    Ok(core)
}

fn puller_core(
    settings: &Settings,
    store: &Arc<Store>,
    graph: &GraphHandle,
    audit: &AuditHandle,
) -> Result<TaxiiPullerCore, StartError> {
    let feeds = &settings.feeds;
    let client = GuardedClient::new(
        Policy::public(&feeds.allowed_hosts, feeds.local_development),
        feeds.into(),
    )
    .map_err(|error| StartError::Setup(format!("feeds: {error}")))?;
    Ok(TaxiiPullerCore::new(
        Arc::clone(store),
        graph.clone(),
        audit.clone(),
        client,
        feeds.clone(),
        settings.has_shared_store(),
    ))
}

fn mailer(settings: &Settings) -> Result<Option<Mailer>, StartError> {
    let mailer = Mailer::new(&settings.notifier, settings.smtp_credentials())
        .map_err(|error| StartError::Configuration(format!("notifier.{error}")))?;
    if mailer.is_none() {
        tracing::info!("notifier.mode is off: pilot requests are stored, and nobody is told of them");
    }
    Ok(mailer)
}

fn notifications(
    settings: &Settings,
    store: &Arc<Store>,
    audit: &AuditHandle,
    mailer: Option<Mailer>,
) -> NotifierCore {
    NotifierCore::new(
        Arc::clone(store),
        audit.clone(),
        mailer,
        &settings.notifier,
        settings.has_shared_store(),
    )
}

fn secret(settings: &Settings) -> Result<SecretString, StartError> {
    match &settings.jwt_secret {
        Some(secret) => Ok(secret.clone()),
        None => load_or_create_secret(settings.data_dir().as_deref()),
    }
}

async fn open_store(settings: &Settings) -> Result<Arc<Store>, StartError> {
    let url = settings.engine_url();
    let database = (DATABASE, VALUE_LOG);
    lifecycle::open_store(database, &url, &settings.storage, owner(settings), || {
        secret(settings)
    })
    .await
}

/// Name and password of the owner of an external database.
fn owner(settings: &Settings) -> Option<(String, SecretString)> {
    settings
        .storage_user
        .clone()
        .zip(settings.storage_password.clone())
}

/// Opens a store that is there, beside a service that may have it open; of an external one nothing is changed by that.
async fn join_store(settings: &Settings) -> Result<Arc<Store>, StartError> {
    let url = settings.engine_url();
    let Some(server) = owner(settings).and_then(|owner| storage_server(&settings.storage, owner)) else {
        let is_there = settings.engine_dir().is_some_and(|dir| !files::is_empty(&dir));
        return match is_there {
            true => open_store(settings).await,
            false => Err(StoreError::Missing(url).into()),
        };
    };
    let kept = || token::stored_secret(settings.data_dir().as_deref());
    let secret = settings.jwt_secret.clone().or_else(kept).ok_or_else(|| {
        let rule = "must be that of the service, which signs in to this database with it";
        StartError::Configuration(format!("THREAT_MEMORY_JWT_SECRET: {rule}"))
    })?;
    let memory = storage_memory(&settings.storage, VALUE_LOG);
    let store = Store::join(&url, DATABASE, memory, &server, &secret).await?;
    Ok(Arc::new(store))
}

/// What begins TLS on connections, and what reads its certificate again.
async fn tls(files: Option<(&Path, &Path)>) -> Result<(Option<TlsAcceptor>, Option<Reload>), StartError> {
    let Some((chain, key)) = files.map(|(chain, key)| (chain.to_owned(), key.to_owned())) else {
        return Ok((None, None));
    };
    let opened = blocking::spawn(move || ServerCertificate::open(&chain, &key)).await;
    let opened = opened.map_err(|error| error.to_string()).flatten();
    let certificate = Arc::new(opened.map_err(StartError::Configuration)?);
    let acceptor = certificate.acceptor();
    let acceptor = acceptor.map_err(|error| StartError::Setup(format!("TLS: {error}")))?;
    let reload = Reload::new("the certificate of server.tls_cert", move || certificate.reload());
    Ok((Some(acceptor), Some(reload)))
}

/// The API without a listener, for the tools of MCP.
fn in_process(
    state: web::Data<AppState>,
) -> App<
    impl ServiceFactory<
        ServiceRequest,
        Config = (),
        Response = ServiceResponse<impl MessageBody>,
        Error = actix_web::Error,
        InitError = (),
    >,
> {
    App::new()
        .app_data(state)
        .wrap(from_fn(equalize_refusal_time))
        .configure(hosted::configure)
}

/// Binds both listeners and starts serving.
async fn listen(
    state: &AppState,
    tls: Option<TlsAcceptor>,
    recorder: PrometheusHandle,
) -> Result<Listeners, StartError> {
    let settings = &state.settings.server;
    let data = web::Data::new(state.clone());
    let origins = settings.cors_origins.clone();
    let console = settings.console;
    let listener = Listener {
        address: settings.bind,
        tls,
        workers: settings.workers,
        drain_seconds: settings.drain_seconds,
        allows_half_closed: true,
        on_connect: |_, _| (),
        refusal: hosted::refusal,
    };
    let app = move || {
        let inner = data.clone();
        App::new()
            .app_data(data.clone())
            .data_factory(move || InProcessApi::start(in_process(inner.clone())))
            // The last one is the first to see a request.
            .wrap(from_fn(compression::mark_uncompressed))
            .wrap(Compress::default())
            .wrap(from_fn(compression::negotiate))
            .wrap(from_fn(equalize_refusal_time))
            .wrap(Condition::new(!origins.is_empty(), cors::rules(&origins)))
            .wrap(from_fn(cors::refusals))
            .wrap(from_fn(observe))
            .configure(hosted::configure)
            .configure(move |cfg| hosted::console(cfg, console))
    };
    let failed = |error| StartError::Io(format!("server.bind {}", settings.bind), error);
    let (server, address) = listener.serve(app).map_err(failed)?;
    serve(
        server,
        address,
        AdminListener {
            section: "server",
            bind: settings.admin_bind,
            hosts: &settings.admin_hosts,
            actors: state.actors.clone(),
        },
        recorder,
    )
    .await
}
