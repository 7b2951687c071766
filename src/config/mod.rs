//! Settings: built-in defaults < config file < environment < flags, validated before anything starts.
//!
//! The defaults are `config/hosted.toml` itself, compiled in, so the file can't be out of date.

mod feeds;
pub mod local;
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

pub use self::feeds::FeedSettings;
use self::secrets::SECRETS;
use crate::auth::is_secret_name;
use crate::domain::permission::Tier;

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
    fn new(text: String) -> Self {
        Self { text, range: None }
    }

    /// Appends the reason for the rule.
    fn explained(mut self, reason: &str) -> Self {
        self.text.push_str(&format!(" ({reason})"));
        self
    }

    /// The key and its rule.
    fn parts(&self) -> (&str, &str) {
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
    pub log: LogSettings,
    pub keeper: KeeperSettings,
    pub actors: ActorsSettings,
    #[serde(default)]
    pub jwt_secret: Option<SecretString>,
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
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerSettings {
    pub bind: SocketAddr,
    pub admin_bind: SocketAddr,
    pub workers: usize,
    /// Bytes.
    pub body_limit: usize,
    pub bodies_in_flight_mib: usize,
    pub trusted_proxies: Vec<IpAddr>,
    pub drain_seconds: u64,
}

impl ServerSettings {
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
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchSettings {
    pub exact_scan_limit: usize,
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
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogSettings {
    pub filter: String,
    pub file: bool,
    pub keep_files: usize,
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
            for (key, text) in secrets::unquoted(path, |path| SECRETS.contains(&path))? {
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
        if let Some(bind) = &flags.bind {
            figment = figment.merge(Serialized::default("server.bind", bind));
        }
        if let Some(url) = &flags.storage {
            figment = figment.merge(Serialized::default("storage.url", url));
        }
        let settings: Settings = figment
            .extract()
            .map_err(|error| ConfigError::new(describe(error)))?;
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
mod tests {
    use super::*;

    #[test]
    fn the_shipped_file_is_valid_and_flags_win() {
        let flags = Flags {
            bind: Some("127.0.0.1:0".into()),
            storage: Some("mem://".into()),
        };
        let settings = Settings::load(None, &flags).unwrap();
        assert_eq!(settings.server.bind.port(), 0);
        // Avoids the port of a Prometheus on the same machine.
        assert_eq!(settings.server.admin_bind.to_string(), "127.0.0.1:9464");
        assert_eq!(settings.data_dir(), None);
        assert_eq!(settings.tier_limit(Tier::Team), 1000);
    }

    #[test]
    fn a_bad_value_is_named_with_its_key() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("c.toml");
        for (text, want) in [
            ("[server]\nbind = \"nowhere\"", "server.bind"),
            ("[server]\nworkers = -1", "server.workers"),
            ("[server]\nworkers = 0", "server.workers: must be from 1 to 64"),
            ("[server]\nportt = 1", "portt"),
            ("[storage]\nurl = \"file://x\"", "storage.url: must begin with"),
            (
                "[server]\nbodies_in_flight_mib = 0",
                "server.bodies_in_flight_mib: must be from 1 to 65536, is 0",
            ),
            (
                "[server]\nbodies_in_flight_mib = 127",
                "server.bodies_in_flight_mib: must hold two bodies of server.body_limit",
            ),
            (
                "[storage]\nurl = \"ws://owner:hidden@host\"",
                "storage.url: must not hold credentials",
            ),
            (
                "[storage]\nconnections = 0",
                "storage.connections: must be from 1 to 64",
            ),
            (
                "[storage]\ntimeout_ms = 99",
                "storage.timeout_ms: must be from 100 to 600000",
            ),
            (
                "[actors.graph_store]\ngate = 0",
                "actors.graph_store.gate: must be from 1",
            ),
            ("[limits.tiers]\npilot = 0", "limits.tiers.pilot: must be from 1"),
            ("[llm]\nprovider = \"openai\"", "llm.model: is required"),
            (
                "[llm]\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"ftp://x\"",
                "llm.base_url: must be a URL that begins with",
            ),
            (
                "[llm]\nprovider = \"openai\"\nmodel = \"m\"\noverlap_chars = 7000",
                "llm.overlap_chars: must be from 0 to 4000",
            ),
            (
                "admin_password = \"short\"",
                "THREAT_MEMORY_ADMIN_PASSWORD: must have at least 12 characters",
            ),
            (
                "admin_email = \"nobody\"",
                "THREAT_MEMORY_ADMIN_EMAIL: must be an e-mail address",
            ),
        ] {
            std::fs::write(&file, text).unwrap();
            let error = Settings::load(Some(&file), &Flags::default())
                .unwrap_err()
                .to_string();
            assert!(error.contains(want), "{text} gave {error}");
            assert!(!error.contains("hidden"), "{error}");
        }
    }

    #[test]
    fn a_secret_is_text_in_a_file_too_and_no_message_shows_it() {
        use secrecy::ExposeSecret;
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("c.toml");
        std::fs::write(&file, "admin_password = 202401019999").unwrap();
        let settings = Settings::load(Some(&file), &Flags::default()).unwrap();
        assert_eq!(settings.admin_password.unwrap().expose_secret(), "202401019999");
        for (text, want) in [
            ("admin_password = [\"hidden-1\"]", "admin_password: must be "),
            ("jwt_secret = { x = \"hidden-1\" }", "jwt_secret: must be "),
            ("llm_api_key = 1_111_111", "llm_api_key: must be a text in quotes"),
            ("jwt_secret = hidden-1", "line 1"),
            ("jwt_secret = \"hidden-1\"", "must have at least 32 bytes"),
            ("llm.max_tokens = \"hidden-1\"", "llm.max_tokens: must be "),
            (
                "llm = { provider = \"openai\", model = \"m\", max_tokens = 63 }",
                "llm.max_tokens: must be from 64",
            ),
            ("[a.tokens]\nb = \"hidden-1\"", "unknown field"),
        ] {
            std::fs::write(&file, text).unwrap();
            let error = Settings::load(Some(&file), &Flags::default()).unwrap_err();
            let error = error.to_string();
            assert!(error.contains(want), "{text} gave {error}");
            let shown = ["hidden-1", "1111111", "1_111_111", "is 63"];
            assert!(!shown.iter().any(|value| error.contains(value)), "{error}");
        }
    }

    #[test]
    fn the_engine_lives_inside_the_data_directory() {
        let flags = Flags {
            bind: None,
            storage: Some("surrealkv://some/where?sync=every".into()),
        };
        let settings = Settings::load(None, &flags).unwrap();
        assert_eq!(settings.data_dir(), Some(PathBuf::from("some/where")));
        assert_eq!(settings.engine_url(), "surrealkv://some/where/store?sync=every");
    }
}
