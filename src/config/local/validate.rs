//! Rules of the local service that types can't express.

use secrecy::ExposeSecret;

use super::super::validate::{
    actor_rules, embedding_rules, endpoint, host_rules, is_host, llm_rules, server_rules, within,
};
use super::super::{ActorSettings, ConfigError, LlmProvider};
use super::{LocalSettings, MAX_STREAM_BUFFER, MAX_SYNTHESIS_CHARS};

/// Why the service refuses to start on an address.
pub const EVERYWHERE: &str = "listens on every address. Set LOCAL_WEB_API_KEY before exposing the web API";

/// The default of `retrieval.default_k`.
pub(super) const SHIPPED_K: usize = 10;

impl LocalSettings {
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        self.backend_rules()?;
        self.web_rules()?;
        self.retrieval_rules()?;
        embedding_rules(&self.embedding)?;
        llm_rules(&self.llm)?;
        if !self.platform.url.is_empty() {
            endpoint("platform.url", &self.platform.url)?;
        }
        self.background_rules()?;
        for (name, actor) in self.actors.sections() {
            actor_rules(name, actor)?;
        }
        Ok(())
    }

    fn backend_rules(&self) -> Result<(), ConfigError> {
        let known = self.backend == "surrealkv" || self.backend == "mem";
        let external = ["ws://", "wss://"].iter().any(|scheme| {
            self.backend
                .strip_prefix(scheme)
                .is_some_and(|rest| !rest.is_empty() && !rest.contains('@'))
        });
        if !known && !external {
            return Err(ConfigError::new(
                "backend: must be surrealkv, mem, ws://HOST or wss://HOST, without credentials".into(),
            ));
        }
        let storage = &self.storage;
        if storage.data_dir.as_os_str().is_empty() {
            return Err(ConfigError::new("storage.data_dir: must not be empty".into()));
        }
        within("storage.transaction_mib", storage.transaction_mib, 16..=4_095)?;
        within("storage.memtable_mib", storage.memtable_mib, 4..=16_384)?;
        within("storage.block_cache_mib", storage.block_cache_mib, 1..=1_048_576)?;
        server_rules(storage.connections, storage.timeout_ms)
    }

    fn retrieval_rules(&self) -> Result<(), ConfigError> {
        let (retrieval, evolution, search) = (&self.retrieval, &self.evolution, &self.search);
        // The default value is capped by a lower limit instead of being refused.
        if retrieval.default_k != SHIPPED_K {
            within("retrieval.default_k", retrieval.default_k, 1..=self.web.max_k)?;
        }
        within("retrieval.graph_weight", retrieval.graph_weight, 0.0..=10.0)?;
        within("retrieval.recency_weight", retrieval.recency_weight, 0.0..=10.0)?;
        let half_life = retrieval.recency_half_life_days;
        within("retrieval.recency_half_life_days", half_life, 0.01..=36_500.0)?;
        let (cosine, overlap) = (evolution.near_duplicate_cosine, evolution.near_duplicate_overlap);
        within("evolution.near_duplicate_cosine", cosine, 0.5..=1.0)?;
        within("evolution.near_duplicate_overlap", overlap, 0.5..=1.0)?;
        within(
            "search.idle_writer_seconds",
            search.idle_writer_seconds,
            1..=86_400,
        )?;
        within("search.fresh_docs", search.fresh_docs, 0..=10_000)
    }

    /// Rules for background work: models, files, restarts.
    fn background_rules(&self) -> Result<(), ConfigError> {
        let (synthesis, enrichment) = (&self.synthesis, &self.enrichment);
        let actor = self.actors.extractor.timeout_ms;
        within("actors.extractor.timeout_ms", actor, 1000..=3_600_000)?;
        // The model is queried through that actor.
        let most = ActorSettings::from(self.actors.extractor).model_patience_ms();
        for (key, patience) in [
            ("synthesis.timeout_ms", synthesis.timeout_ms),
            ("enrichment.timeout_ms", enrichment.timeout_ms),
        ] {
            let rule = "at most three quarters of actors.extractor.timeout_ms";
            within(key, patience, 100..=most).map_err(|error| error.with_reason(rule))?;
        }
        let chars = synthesis.max_source_chars;
        within("synthesis.max_source_chars", chars, 100..=MAX_SYNTHESIS_CHARS)?;
        within("enrichment.max_queue", enrichment.max_queue, 0..=10_000_000)?;
        within("telemetry.keep_days", self.telemetry.keep_days, 1..=3650)?;
        within("telemetry.max_file_mib", self.telemetry.max_file_mib, 1..=65_536)?;
        self.logging.validate("logging")?;
        let restarts = self.keeper.max_restarts_per_minute;
        within("keeper.max_restarts_per_minute", restarts, 1..=1000)
    }

    fn web_rules(&self) -> Result<(), ConfigError> {
        let web = &self.web;
        if !is_host(&web.host) {
            return Err(ConfigError::new(
                "web.host: must be an address or a host name".into(),
            ));
        }
        // No other key can be sent: whitespace around a header's value is stripped (RFC 9110 section 5.5).
        let key = web.api_key.expose_secret();
        if key.trim() != key || !key.chars().all(|c| c == ' ' || c.is_ascii_graphic()) {
            let rule = "web.api_key: must be of visible ASCII characters, with blanks only between them";
            return Err(ConfigError::new(rule.into()));
        }
        within(
            "web.rate_limit_per_minute",
            web.rate_limit_per_minute,
            1..=100_000_000,
        )?;
        within("web.write_concurrency", web.write_concurrency, 1..=1024)?;
        within("web.max_query_chars", web.max_query_chars, 1..=100_000)?;
        // Longer content could never be received.
        let most = web.body_limit.min(10_000_000);
        within("web.max_content_chars", web.max_content_chars, 1..=most)?;
        within("web.max_k", web.max_k, 1..=1000)?;
        within("web.max_sync_limit", web.max_sync_limit, 1..=100_000)?;
        within("web.max_streams", web.max_streams, 1..=1_000_000)?;
        within("web.stream_buffer", web.stream_buffer, 16..=MAX_STREAM_BUFFER)?;
        within("web.heartbeat_seconds", web.heartbeat_seconds, 1..=3600)?;
        within("web.workers", web.workers, 1..=64)?;
        within("web.body_limit", web.body_limit, 1024..=(1 << 30))?;
        within("web.drain_seconds", web.drain_seconds, 1..=600)?;
        host_rules("web.admin_hosts", &web.admin_hosts)
    }

    /// Refuses to listen on all addresses without a key, and to use an external database without `credentials`.
    pub(super) fn check_startable(&self, credentials: bool) -> Result<(), ConfigError> {
        if self.backend.starts_with("ws") && !credentials {
            return Err(ConfigError::new(
                "backend: an external SurrealDB needs THREAT_MEMORY_STORAGE_USER and THREAT_MEMORY_STORAGE_PASSWORD"
                    .into(),
            ));
        }
        if !self.web.api_key.expose_secret().is_empty() {
            return Ok(());
        }
        // On any other address the guard refuses remote callers.
        if self.is_everywhere() {
            return Err(ConfigError::new(format!("web.host: {EVERYWHERE}")));
        }
        if self.web.admin_bind.ip().to_canonical().is_loopback() {
            return Ok(());
        }
        Err(ConfigError::new(
            "web.admin_bind: is not a loopback address. Set LOCAL_WEB_API_KEY before exposing the web API"
                .into(),
        ))
    }

    /// Whether a language model is configured.
    pub fn has_model(&self) -> bool {
        self.llm.provider != LlmProvider::None
    }
}
