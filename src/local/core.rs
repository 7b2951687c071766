//! Starts the actors of the local memory and stops them, in order.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::handles::LocalHandles;
use super::lease::Lease;
use crate::actors::audit_writer::AuditWriter;
use crate::actors::backup_writer::BackupCore;
use crate::actors::config_owner::ConfigCore;
use crate::actors::enricher::EnricherCore;
use crate::actors::extractor::ExtractorCore;
use crate::actors::indexed_store::StoreEnvironment;
use crate::actors::note_store::{GraphCopy, Memory, NoteCore, PiiAction, Tuning};
use crate::actors::rate_limiter::RateLimiter;
use crate::actors::roster::{ActorList, Roster};
use crate::actors::telemetry_tailer::{
    Flush, Record, TailerCore, TelemetryEntry, TelemetryHandle, TelemetryLimits,
};
use crate::actors::worker::ActorCore;
use crate::actors::write_semaphore::WriteSemaphore;
use crate::archive::ServiceKind;
use crate::config::EmbeddingProvider;
use crate::config::local::{Editor, LocalSettings, PiiPolicy};
use crate::config::secret_variable;
use crate::domain::memory::entity::mentions_in;
use crate::domain::permission::Tier;
use crate::domain::principal::Workspace;
use crate::domain::tlp::Tlp;
use crate::lifecycle::hangup::{self, reload_on_hangup};
use crate::lifecycle::{
    self, StartError, drain, keep, load_or_create_secret, requirements, wait_until_closed,
};
use crate::search::{IndexSettings, SearchIndex};
use crate::store::Store;
use crate::warninglists::WarninglistsHandle;
use crate::{blocking, clock, embedding, llm};

/// The only workspace of a local installation.
pub(super) const WORKSPACE: Uuid = Uuid::from_u128(0x6c6f_6361_6c00_5000_8000_7468_7265_6174);

/// Time for streams to end by themselves when the service stops.
const STREAMS_END: Duration = Duration::from_secs(1);
/// Capacity of the telemetry queue; entries beyond it are dropped.
const MAX_ENTRIES: usize = 1024;
/// Larger than any note: in the value log an erased one would stay.
pub(crate) const VALUE_LOG: usize = 16 << 20;

/// The running actors of the local service.
pub(crate) struct LocalCore {
    handles: LocalHandles,
    /// How busy the actors are.
    pub actors: ActorList,
    store: Arc<Store>,
    core: Arc<NoteCore>,
    tailer: Arc<TailerCore>,
    background: Vec<JoinHandle<()>>,
    /// Held if other processes can reach the database.
    lease: Option<Lease>,
}

impl LocalCore {
    /// Opens the store, loads the memory and starts the actors. Must run inside an actix system on a multi-threaded
    /// runtime.
    ///
    /// # Errors
    /// When the service can't start, in words an operator can act on.
    pub(crate) async fn start(settings: LocalSettings, editor: Editor) -> Result<Self, StartError> {
        let runtime = Handle::current();
        let actors = settings.actors.clone();
        let data_dir = settings.data_dir();
        requirements::check(settings.web.workers, data_dir.as_deref())?;
        let warninglists = WarninglistsHandle::open_at_start(&settings.warninglists.dir, false).await?;
        // Another process that takes over an external database would not write to this process's copy.
        let copy = data_dir.as_ref().filter(|_| !settings.is_shared());
        let copy = copy.map(|dir| GraphCopy::open(dir.join("graph").join("log"), WORKSPACE));
        let key = |secret: &SecretString| Some(secret.clone()).filter(|key| !key.expose_secret().is_empty());
        let embedder = embedding::begin(&settings.embedding, key(&settings.embedding_api_key), &runtime);
        let store = open_store(&settings).await?;
        let lease = if settings.is_shared() {
            Some(Lease::take(&store, &settings.storage.data_dir).await?)
        } else {
            None
        };
        ensure_workspace(&store).await?;
        let index_settings = IndexSettings {
            fresh_docs: settings.search.fresh_docs,
            ..IndexSettings::default()
        };
        let index_dir = data_dir.as_ref().map(|dir| dir.join("index"));
        let secret = store.id_secret();
        let index = SearchIndex::open(index_dir.as_deref(), embedder.await?, index_settings, secret)
            .map_err(|error| StartError::Setup(format!("search index: {error}")))?;
        let environment = StoreEnvironment {
            remote_model: settings.embedding.provider != EmbeddingProvider::Builtin,
            shared_store: settings.is_shared(),
            fill_interval: Duration::from_secs(settings.embedding.fill_seconds),
            idle_writer: Duration::from_secs(settings.search.idle_writer_seconds),
        };
        let model = llm::model_of(&settings.llm, key(&settings.llm_api_key))?;
        let sections = actors.clone();
        let mut roster = Roster::new(move |name| sections.of(name));
        let extractor = Arc::new(ExtractorCore::new(model, actors.of(ExtractorCore::NAME)));
        let extractor = roster.worker(&extractor);
        let limiter = roster.stateful(RateLimiter::default);
        let audited = Arc::clone(&store);
        let audit = roster.stateful(move || AuditWriter::new(Arc::clone(&audited)));
        let fixed = settings.clone();
        let (config, watched) = ConfigCore::new(settings, editor, Some((WORKSPACE, audit.clone())));
        let config = roster.worker(&Arc::new(config));

        let live = watched.clone();
        let ids = store.ids_of(WORKSPACE);
        let memory = Memory::new(WORKSPACE, ids, Arc::new(move || tuning(&live.borrow())), copy);
        let queue = memory.enrichment();
        let core = NoteCore::new(
            Arc::clone(&store),
            Arc::new(index),
            audit.clone(),
            environment,
            memory,
        );
        let core = Arc::new(core.with_warninglists(warninglists.clone()));
        core.open().await?;
        let notes = roster.worker(&core);
        let live = watched.clone();
        let capacity = Arc::new(move || live.borrow().web.write_concurrency);
        let semaphore = WriteSemaphore::new(capacity);
        let semaphore = roster.stateful(move || semaphore.clone());
        let live = watched.clone();
        let tailer = Arc::new(TailerCore::new(
            data_dir,
            fixed.logging.file,
            fixed.web.stream_buffer,
            Arc::new(clock::now),
            Arc::new(move || limits(&live.borrow())),
        ));
        let telemetry = roster.worker(&tailer);
        let patience = Duration::from_millis(fixed.enrichment.timeout_ms);
        let enricher = EnricherCore::new(
            notes.clone(),
            extractor.clone(),
            queue,
            fixed.has_model(),
            patience,
        );
        let enricher = roster.worker(&Arc::new(enricher));
        let backup = BackupCore::new(Arc::clone(&store), audit.clone(), ServiceKind::Local);
        let backup = roster.worker(&Arc::new(backup));
        let (entries, recorded) = mpsc::channel(MAX_ENTRIES);
        let handles = LocalHandles {
            settings: watched,
            notes,
            audit,
            backup,
            semaphore,
            extractor,
            enricher,
            telemetry,
            entries,
            config,
            limiter,
        };
        // The rules compile on first use; doing so now spares the first note the wait.
        blocking::spawn(|| drop(mentions_in("")));
        let actors = roster.list();
        let mut background = vec![
            keep(roster, fixed.keeper.max_restarts_per_minute),
            tokio::spawn(record(recorded, handles.telemetry.clone())),
        ];
        // With nothing to read again, the signal ends a program whose terminal is closed, as it does others.
        if let Some(reload) = warninglists.on_hangup() {
            background.push(tokio::spawn(reload_on_hangup(hangup::watch(), vec![reload])));
        }
        Ok(Self {
            handles,
            actors,
            store,
            core,
            tailer,
            background,
            lease,
        })
    }

    pub(super) fn handles(&self) -> &LocalHandles {
        &self.handles
    }

    /// Ends the open streams. The returned task later closes the connections of clients that do not read.
    pub(crate) fn end_streams(&self) -> JoinHandle<()> {
        self.tailer.close();
        let tailer = Arc::clone(&self.tailer);
        tokio::spawn(async move {
            tokio::time::sleep(STREAMS_END).await;
            tailer.cut_streams();
        })
    }

    /// Drains the audit writer, flushes the index and closes the store.
    pub(crate) async fn stop(mut self, deadline: Duration) {
        drain(&self.handles.audit, deadline).await;
        // Reserving the whole capacity waits until all queued entries have been taken.
        let sent = self.handles.entries.reserve_many(MAX_ENTRIES);
        tokio::time::timeout(STREAMS_END, sent).await.map(drop).ok();
        if let Err(error) = self.handles.telemetry.call(Flush).await {
            tracing::warn!(?error, "the last telemetry may be missing");
        }
        for task in &self.background {
            task.abort();
        }
        self.core.close_idle_index(Duration::ZERO).await;
        if let Some(lease) = self.lease.take() {
            lease.release(&self.store).await;
        }
        let temporary = self.store.temporary_dir().map(Path::to_owned);
        let store = Arc::downgrade(&self.store);
        let engine_dir = self.handles.settings().engine_dir();
        drop(self);
        wait_until_closed(&store, engine_dir.as_deref(), temporary.as_deref()).await;
    }
}

/// Forwards telemetry entries to their actor, one by one.
async fn record(mut entries: mpsc::Receiver<TelemetryEntry>, telemetry: TelemetryHandle) {
    while let Some(entry) = entries.recv().await {
        if let Err(error) = telemetry.call(Record(entry)).await {
            tracing::debug!(?error, "a telemetry entry was dropped");
        }
    }
}

/// The settings that the memory uses.
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

/// The settings that telemetry uses.
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

/// Name and password of the owner of an external database.
pub(crate) fn storage_owner() -> Result<Option<(String, SecretString)>, StartError> {
    let variable =
        |name: &str| secret_variable(name).map_err(|error| StartError::Configuration(error.to_string()));
    let user = variable("THREAT_MEMORY_STORAGE_USER")?.map(|user| user.expose_secret().to_owned());
    Ok(user.zip(variable("THREAT_MEMORY_STORAGE_PASSWORD")?))
}

async fn open_store(settings: &LocalSettings) -> Result<Arc<Store>, StartError> {
    let owner = storage_owner()?;
    // All candidate owners of an external database share one user in it. A process that is refused must not lock the
    // owner out with a password of its own.
    let of_owner = owner.as_ref().map(|(_, password)| password.clone());
    let data_dir = settings.data_dir();
    let secret = || match of_owner {
        Some(password) if settings.is_shared() => Ok(password),
        Some(_) | None => load_or_create_secret(data_dir.as_deref()),
    };
    let url = settings.engine_url();
    let store = lifecycle::open_store(("local", VALUE_LOG), &url, &settings.storage(), owner, secret).await?;
    if settings.engine_dir().is_some() {
        // After the store: a directory with a secret and without a store is one that has lost it.
        load_or_create_secret(data_dir.as_deref())?;
    }
    Ok(store)
}

/// Creates the workspace of a local installation if it is missing.
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
        suspended: false,
    };
    Ok(store.create_workspace(&workspace, false, None, None, now).await?)
}
