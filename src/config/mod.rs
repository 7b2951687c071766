//! Settings: built-in defaults < config file < environment < flags, validated before anything starts.
//!
//! The defaults are `config/hosted.toml` itself, compiled in, so the file can't be out of date.

mod feeds;
pub mod local;
mod notifier;
mod oauth;
mod secrets;
mod validate;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use figment::Figment;
use figment::providers::{Env, Format, Serialized, Toml};
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::Value;
use tracing_subscriber::EnvFilter;

pub use self::feeds::FeedSettings;
pub use self::notifier::{NotifierMode, NotifierSettings};
pub use self::oauth::{OauthSettings, ProviderKind, ProviderSettings};
use self::secrets::SECRETS;
use crate::domain::permission::Tier;
use crate::domain::secret_name::is_secret_name;

/// The default settings of the hosted service.
pub const HOSTED_DEFAULTS: &str = include_str!("../../config/hosted.toml");
const PREFIX: &str = "THREAT_MEMORY_";

/// An unusable setting; the message names the key and the rule.
#[derive(Debug, Clone, thiserror::Error)]
#[error("configuration: {text}")]
pub struct ConfigError {
    text: String,
    /// Minimum and maximum, if the rule is a range.
    range: Option<(Value, Value)>,
}

impl ConfigError {
    /// `text` must start with the key and a colon.
    pub fn new(text: String) -> Self {
        Self { text, range: None }
    }

    /// Appends the reason for the rule.
    fn with_reason(mut self, reason: &str) -> Self {
        self.text.push_str(&format!(" ({reason})"));
        self
    }

    /// The key and its rule.
    fn key_and_rule(&self) -> (&str, &str) {
        self.text.split_once(": ").unwrap_or(("", &self.text))
    }
}

/// All settings of the hosted service.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub server: ServerSettings,
    pub storage: StorageSettings,
    pub limits: LimitSettings,
    pub retention: RetentionSettings,
    pub search: SearchSettings,
    pub embedding: EmbeddingSettings,
    pub llm: LlmSettings,
    pub feeds: FeedSettings,
    pub ingest: IngestSettings,
    pub warninglists: WarninglistSettings,
    pub notifier: NotifierSettings,
    pub oauth: OauthSettings,
    pub log: LogSettings,
    pub keeper: KeeperSettings,
    pub actors: ActorsSettings,
    #[serde(default)]
    pub jwt_secret: Option<SecretString>,
    /// The secret before the last change: tokens that it signed are valid until they expire.
    #[serde(default)]
    pub previous_jwt_secret: Option<SecretString>,
    /// Of the administrator whom the first start makes, as is the password.
    #[serde(default)]
    pub admin_email: Option<String>,
    #[serde(default)]
    pub admin_password: Option<SecretString>,
    #[serde(default)]
    pub storage_user: Option<String>,
    #[serde(default)]
    pub storage_password: Option<SecretString>,
    #[serde(default)]
    pub embedding_api_key: Option<SecretString>,
    #[serde(default)]
    pub llm_api_key: Option<SecretString>,
    #[serde(default)]
    pub smtp_user: Option<String>,
    #[serde(default)]
    pub smtp_password: Option<SecretString>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerSettings {
    pub bind: SocketAddr,
    /// Files of the certificate and its key, in PEM; both empty without TLS.
    pub tls_cert: PathBuf,
    pub tls_key: PathBuf,
    pub admin_bind: SocketAddr,
    /// Names under which the metrics are asked for, besides those of this machine and the bound address.
    pub admin_hosts: Vec<String>,
    pub workers: usize,
    /// Bytes.
    pub body_limit: usize,
    pub bodies_in_flight_mib: usize,
    pub trusted_proxies: Vec<IpAddr>,
    /// Web origins whose pages may call the API.
    pub cors_origins: Vec<String>,
    /// Whether `/console` is served.
    pub console: bool,
    pub drain_seconds: u64,
}

impl ServerSettings {
    /// The files of certificate and key, where the service speaks TLS itself.
    pub fn tls(&self) -> Option<(&Path, &Path)> {
        let files = (self.tls_cert.as_path(), self.tls_key.as_path());
        (!files.0.as_os_str().is_empty()).then_some(files)
    }

    /// How URLs of the API begin where no proxy stands before it.
    pub fn scheme(&self) -> &'static str {
        if self.tls().is_some() { "https" } else { "http" }
    }

    /// Most bytes of bodies in flight.
    pub fn bodies_in_flight(&self) -> usize {
        self.bodies_in_flight_mib << 20
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StorageSettings {
    pub url: String,
    pub data_dir: PathBuf,
    pub transaction_mib: usize,
    pub memtable_mib: usize,
    pub block_cache_mib: usize,
    /// Connections to an external database.
    pub connections: usize,
    /// Time-out of one statement to an external database.
    pub timeout_ms: u64,
    /// Free space below which writes are refused, in MiB; 0 refuses none.
    pub min_free_mib: u64,
    /// Whether to start on a store that has lost acknowledged commits. A flag only: as a setting it would stay on.
    #[serde(skip)]
    pub accept_loss: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitSettings {
    /// Requests per hour and workspace.
    pub tiers: BTreeMap<String, u32>,
}

/// Retention in days; 0 means forever.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetentionSettings {
    pub recall_session_days: u32,
    pub finished_batch_days: u32,
    pub outbox_days: u32,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchSettings {
    pub idle_writer_seconds: u64,
    pub fresh_docs: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EmbeddingProvider {
    Builtin,
    Openai,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmbeddingSettings {
    pub provider: EmbeddingProvider,
    pub base_url: String,
    pub model: String,
    pub dimension: usize,
    pub timeout_ms: u64,
    pub batch: usize,
    pub fill_seconds: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LlmProvider {
    /// No model; extraction uses rules only.
    None,
    Openai,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IngestSettings {
    /// Whether indicators on warninglists are stored with half of the confidence that is stated.
    pub lower_listed_confidence: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WarninglistSettings {
    /// Directory of lists besides the built-in ones; empty for none.
    pub dir: PathBuf,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LlmSettings {
    pub provider: LlmProvider,
    pub base_url: String,
    pub model: String,
    /// Time-out of one request, without retries.
    pub timeout_ms: u64,
    pub retries: u32,
    pub max_chunk_chars: usize,
    pub overlap_chars: usize,
    pub max_tokens: u32,
    /// How long a question that the rules do not understand may wait for the model; 0 never asks it.
    pub question_ms: u64,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogSettings {
    pub filter: String,
    pub file: bool,
    pub keep_files: usize,
    /// The receiver of traces over OTLP/HTTP; empty: none.
    pub traces_url: String,
    /// How many traces of a hundred are sent.
    pub traces_percent: u8,
}

/// The full log filter: the operator's filter applies to this program first.
pub fn log_directives(filter: &str) -> String {
    format!("warn,threat_memory={filter},{filter}")
}

/// Whether the text is a valid log filter.
fn is_log_filter(text: &str) -> bool {
    EnvFilter::try_new(log_directives(text)).is_ok()
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeeperSettings {
    pub max_restarts_per_minute: u32,
}

/// `[actors.<name>]`, one section per actor. The service refuses to start if a section belongs to no actor.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub struct ActorsSettings(BTreeMap<String, ActorSettings>);

impl ActorsSettings {
    /// The limits of one actor.
    pub fn of(&self, name: &str) -> ActorSettings {
        self.0.get(name).copied().unwrap_or_default()
    }

    /// Mutable limits of one actor.
    pub fn of_mut(&mut self, name: &str) -> &mut ActorSettings {
        self.0.entry(name.to_owned()).or_default()
    }

    /// All sections, by actor name.
    pub fn sections(&self) -> impl Iterator<Item = (&str, ActorSettings)> {
        self.0.iter().map(|(name, actor)| (name.as_str(), *actor))
    }
}

/// Capacity of one actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ActorSettings {
    /// Reads that may wait for the gate.
    pub mailbox: usize,
    /// Concurrent reads.
    pub gate: usize,
    /// Concurrent writes; further ones are refused.
    pub write_gate: usize,
    pub timeout_ms: u64,
    pub write_timeout_ms: u64,
}

impl ActorSettings {
    /// Milliseconds of a request that a language model may use; the rest is for waiting for a permit and for the rules.
    pub fn model_patience_ms(self) -> u64 {
        self.timeout_ms / 4 * 3
    }
}

/// The limits of an actor that the default file does not list.
impl Default for ActorSettings {
    fn default() -> Self {
        Self {
            mailbox: 256,
            gate: 16,
            write_gate: 32,
            timeout_ms: 10_000,
            write_timeout_ms: 60_000,
        }
    }
}

/// Command-line overrides.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    pub bind: Option<String>,
    pub storage: Option<String>,
    /// Start on a store that has lost acknowledged commits.
    pub accept_loss: bool,
}

impl Settings {
    /// Loads and validates the settings.
    ///
    /// # Errors
    /// Names the key, the rule for its value and, if there is one, the file.
    pub fn load(file: Option<&Path>, flags: &Flags) -> Result<Self, ConfigError> {
        let mut figment = Figment::from(Toml::string(HOSTED_DEFAULTS));
        if let Some(path) = file {
            if !path.is_file() {
                return Err(ConfigError::new(format!(
                    "--config: {} is not a file",
                    path.display()
                )));
            }
            figment = figment.merge(Toml::file(path));
            for (key, text) in
                secrets::find_unquoted(path, |path| SECRETS.contains(&path) || oauth::is_secret(path))?
            {
                figment = figment.merge(Serialized::default(&key, text));
            }
        }
        figment = figment.merge(environment());
        for (key, text) in secrets::of_environment(|name| std::env::var_os(name))? {
            figment = figment.merge(Serialized::default(key, text));
        }
        for (key, value) in feeds::of_environment(|name| std::env::var_os(name))? {
            figment = figment.merge(Serialized::default(key, value));
        }
        for (key, text) in oauth::of_environment(&figment, |name| std::env::var_os(name))? {
            figment = figment.merge(Serialized::default(&key, text));
        }
        if let Some(bind) = &flags.bind {
            figment = figment.merge(Serialized::default("server.bind", bind));
        }
        if let Some(url) = &flags.storage {
            figment = figment.merge(Serialized::default("storage.url", url));
        }
        let mut settings: Settings = figment
            .extract()
            .map_err(|error| ConfigError::new(describe(error)))?;
        settings.storage.accept_loss = flags.accept_loss;
        settings.validate()?;
        Ok(settings)
    }

    /// Requests per hour for a tier.
    pub fn tier_limit(&self, tier: Tier) -> u32 {
        self.limits.tiers.get(tier.as_str()).copied().unwrap_or(100)
    }

    /// The directory for everything on disk; `None` for an in-memory store.
    pub fn data_dir(&self) -> Option<PathBuf> {
        match self.storage.url.split_once("://") {
            Some(("mem", _)) => None,
            Some(("surrealkv", path)) => {
                Some(PathBuf::from(path.split_once('?').map_or(path, |(path, _)| path)))
            }
            _ => Some(self.storage.data_dir.clone()),
        }
    }

    /// Whether other processes can use the database too: an external one.
    pub fn has_shared_store(&self) -> bool {
        self.storage.url.starts_with("ws")
    }

    /// The directory of an embedded database's own files.
    pub fn engine_dir(&self) -> Option<PathBuf> {
        self.engine_url()
            .strip_prefix("surrealkv://")
            .map(|rest| PathBuf::from(rest.split_once('?').map_or(rest, |(path, _)| path)))
    }

    /// The address of the database itself; an embedded one lies in a folder inside the data directory.
    pub fn engine_url(&self) -> String {
        match self.storage.url.split_once("://") {
            Some(("surrealkv", path)) => {
                let (path, query) = path
                    .split_once('?')
                    .map_or((path, ""), |(path, query)| (path, query));
                let query = if query.is_empty() {
                    String::new()
                } else {
                    format!("?{query}")
                };
                format!("surrealkv://{}/store{query}", path.trim_end_matches('/'))
            }
            _ => self.storage.url.clone(),
        }
    }
}

/// The secret in a variable of this process, or in the file that the variable of this name with `_FILE` names.
///
/// # Errors
/// Names the variable, and the rule that its value breaks.
pub fn secret_variable(name: &str) -> Result<Option<SecretString>, ConfigError> {
    let secret = secrets::read(name, &|name: &str| std::env::var_os(name))?;
    Ok(secret.map(SecretString::from))
}

/// `THREAT_MEMORY_SERVER__BIND` is `server.bind`; names without `__` are secrets or not settings.
fn environment() -> Env {
    Env::prefixed(PREFIX)
        .filter(|key| key.as_str().contains("__"))
        .split("__")
}

fn describe(error: figment::Error) -> String {
    let mut lines = Vec::new();
    for error in error {
        let source = error.metadata.as_ref().map_or_else(String::new, |metadata| {
            metadata.source.as_ref().map_or_else(
                || format!(" (from {})", metadata.name),
                |source| format!(" (from {source})"),
            )
        });
        let path = error.path.join(".");
        let rule = if is_secret_name(&path) {
            secrets::rule_of(&error.kind)
        } else {
            without_excerpt(&error.kind.to_string())
        };
        let path = if path.is_empty() {
            String::new()
        } else {
            format!("{path}: ")
        };
        lines.push(format!("{path}{rule}{source}"));
    }
    lines.join("; ")
}

/// A TOML parser message without its source excerpt, which may contain a secret.
fn without_excerpt(message: &str) -> String {
    let quoted = |line: &&str| {
        line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ')
            .starts_with('|')
    };
    let kept: Vec<&str> = message.lines().filter(|line| !quoted(line)).collect();
    kept.join(": ")
}

#[cfg(test)]
mod tests;
