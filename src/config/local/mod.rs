//! Settings of the local service: built-in defaults < config file < changes pending at the last stop < environment <
//! flags.
//!
//! They are kept both as a tree, which the API shows and changes, and as the typed settings made from it. A tree that
//! does not make valid settings is never put into effect.

mod describe;
mod edit;
mod environment;
mod issue;
mod manual;
mod meta;
mod pending;
mod probe;
mod rules;
#[cfg(test)]
mod tests;
mod tree;
mod validate;

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use figment::Figment;
use figment::providers::{Format, Serialized, Toml};
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Value, json};

pub use self::describe::{ChangedSettings, ShownSettings};
pub use self::edit::{ChangeOutcome, Editor};
pub use self::issue::ConfigIssue;
pub use self::manual::SectionMeta;
pub use self::meta::{ConfigMeta, FieldMeta};
use self::pending::PendingValues;
pub use self::rules::Kind;
pub use self::validate::EVERYWHERE;
use super::{
    ActorSettings, ConfigError, EmbeddingSettings, KeeperSettings, LlmSettings, LogSettings, SearchSettings,
    StorageSettings, WarninglistSettings, describe, secrets,
};

/// The default settings of the local service.
pub const LOCAL_DEFAULTS: &str = include_str!("../../../config/local.toml");
/// Keys missing from the hosted service's sections; they are stored beside the sections.
/// Most lines that a listener of a stream may lag behind.
pub const MAX_STREAM_BUFFER: usize = 1 << 16;
/// Most characters of all notes in one request to a language model.
pub const MAX_SYNTHESIS_CHARS: usize = 32_000;

const MOVED: [(&str, &str); 3] = [
    ("embedding", "api_key"),
    ("llm", "api_key"),
    ("llm", "local_backend"),
];

/// All settings of the local service.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocalSettings {
    pub backend: String,
    pub web: WebSettings,
    pub storage: LocalStorage,
    pub retrieval: RetrievalSettings,
    pub evolution: EvolutionSettings,
    pub search: SearchSettings,
    pub warninglists: WarninglistSettings,
    pub embedding: EmbeddingSettings,
    pub llm: LlmSettings,
    pub synthesis: SynthesisSettings,
    pub enrichment: EnrichmentSettings,
    pub governance: GovernanceSettings,
    pub telemetry: TelemetrySettings,
    pub logging: LogSettings,
    pub platform: PlatformSettings,
    pub keeper: KeeperSettings,
    pub actors: LocalActors,
    /// `embedding.api_key`, `llm.api_key` and `llm.local_backend`, which the hosted service's sections lack.
    pub embedding_api_key: SecretString,
    pub llm_api_key: SecretString,
    pub llm_local_backend: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebSettings {
    pub host: String,
    pub port: u16,
    pub api_key: SecretString,
    pub rate_limit_per_minute: u32,
    pub write_concurrency: usize,
    pub max_query_chars: usize,
    pub max_content_chars: usize,
    pub max_k: usize,
    pub max_sync_limit: usize,
    pub max_streams: usize,
    pub stream_buffer: usize,
    pub heartbeat_seconds: u64,
    pub workers: usize,
    /// Bytes.
    pub body_limit: usize,
    pub drain_seconds: u64,
    pub admin_bind: SocketAddr,
    /// Names under which the metrics are asked for, besides those of this machine and the bound address.
    pub admin_hosts: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocalStorage {
    pub data_dir: PathBuf,
    pub transaction_mib: usize,
    pub memtable_mib: usize,
    pub block_cache_mib: usize,
    pub connections: usize,
    pub timeout_ms: u64,
    /// Free space below which writes are refused, in MiB; 0 refuses none.
    pub min_free_mib: u64,
    /// Whether to start on a store that has lost acknowledged commits. A flag only: as a setting it would stay on.
    #[serde(skip)]
    pub accept_loss: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetrievalSettings {
    pub default_k: usize,
    pub graph_weight: f64,
    pub recency_weight: f64,
    pub recency_half_life_days: f64,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvolutionSettings {
    pub near_duplicate_cosine: f64,
    pub near_duplicate_overlap: f64,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SynthesisSettings {
    pub timeout_ms: u64,
    pub max_source_chars: usize,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnrichmentSettings {
    pub max_queue: u64,
    pub timeout_ms: u64,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GovernanceSettings {
    pub enabled: bool,
    pub pii: PiiSettings,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PiiSettings {
    pub enabled: bool,
    pub action: PiiPolicy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PiiPolicy {
    Log,
    Redact,
    Block,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TelemetrySettings {
    pub enabled: bool,
    pub keep_days: u32,
    pub record_queries: bool,
    pub max_file_mib: u64,
}

/// An external threat platform; inactive in this edition.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlatformSettings {
    pub url: String,
    pub token: SecretString,
    /// Seconds.
    pub sync_interval: u64,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocalActors {
    pub graph_store: ActorSettings,
    pub audit_writer: ActorSettings,
    pub rate_limiter: ReaderSettings,
    pub extractor: ReaderSettings,
    pub write_semaphore: ReaderSettings,
    pub config_owner: ActorSettings,
    pub telemetry_tailer: ActorSettings,
    pub enricher: ReaderSettings,
}

impl LocalActors {
    /// All sections, by actor name.
    pub fn sections(&self) -> [(&'static str, ActorSettings); 8] {
        [
            ("graph_store", self.graph_store),
            ("audit_writer", self.audit_writer),
            ("rate_limiter", self.rate_limiter.into()),
            ("extractor", self.extractor.into()),
            ("write_semaphore", self.write_semaphore.into()),
            ("config_owner", self.config_owner),
            ("telemetry_tailer", self.telemetry_tailer),
            ("enricher", self.enricher.into()),
        ]
    }

    /// The limits of one actor.
    pub fn of(&self, name: &str) -> ActorSettings {
        let section = self.sections().into_iter().find(|(of, _)| *of == name);
        section.map(|(_, actor)| actor).unwrap_or_default()
    }
}

/// Capacity of an actor whose requests may all wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReaderSettings {
    /// Requests that may wait for the gate.
    pub mailbox: usize,
    /// Concurrent requests.
    pub gate: usize,
    pub timeout_ms: u64,
}

impl From<ReaderSettings> for ActorSettings {
    fn from(settings: ReaderSettings) -> Self {
        let ReaderSettings {
            mailbox,
            gate,
            timeout_ms,
        } = settings;
        Self {
            mailbox,
            gate,
            write_gate: 1,
            timeout_ms,
            write_timeout_ms: timeout_ms,
        }
    }
}

/// Command-line overrides.
#[derive(Debug, Clone, Default)]
pub struct LocalFlags {
    pub host: Option<String>,
    pub port: Option<u16>,
    pub data_dir: Option<PathBuf>,
    pub backend: Option<String>,
    /// Start on a store that has lost acknowledged commits.
    pub accept_loss: bool,
}

impl LocalSettings {
    /// Loads and validates the settings. The editor can change them later.
    ///
    /// # Errors
    /// Names the key or variable and the rule, never the value of a secret.
    pub fn load(file: Option<&Path>, flags: &LocalFlags) -> Result<(Self, Editor), ConfigError> {
        Self::load_with(file, flags, &environment::all()?)
    }

    fn load_with(
        file: Option<&Path>,
        flags: &LocalFlags,
        variables: &environment::Variables,
    ) -> Result<(Self, Editor), ConfigError> {
        let (defaults, file) = trees(file)?;
        for name in environment::unknown(&defaults, variables) {
            eprintln!("configuration: {name} is not a setting and is ignored");
        }
        let mut above = environment::read(&defaults, variables)?;
        above.extend(flags.leaves()?);
        let credentials = environment::credentials(variables);
        let layered = |waiting: &PendingValues| {
            let mut tree = file.clone();
            let layers = waiting
                .iter()
                .chain(above.iter().map(|set| (&set.path, &set.value)));
            layers.for_each(|(path, value)| tree::set(&mut tree, path, value.clone()));
            tree
        };
        // The location of the pending changes depends on all other layers.
        let base = Self::of_tree(&layered(&PendingValues::new()))?;
        let wrong = base.check_startable(credentials).err().map(|error| error.text);
        let home = base.data_dir();
        let kept = pending::usable_values(pending::read(home.as_deref()), &defaults, |waiting| {
            let settings = Self::of_tree(&layered(waiting))?;
            match settings.check_startable(credentials) {
                // An error that also occurs without the pending changes is not caused by them.
                Err(error) if wrong.as_ref() != Some(&error.text) => Err(error),
                Ok(()) | Err(_) => probe::check_usable(&settings, waiting),
            }
        });
        let running = layered(&kept);
        let mut settings = Self::of_tree(&running)?;
        settings.storage.accept_loss = flags.accept_loss;
        settings.check_startable(credentials)?;
        let editor = Editor {
            defaults,
            running,
            kept,
            pending: PendingValues::new(),
            home,
            credentials,
            above: above.into_iter().map(|set| (set.path, set.by)).collect(),
        };
        Ok((settings, editor))
    }

    /// Builds the settings from a tree.
    fn of_tree(tree: &Value) -> Result<Self, ConfigError> {
        let mut tree = tree.clone();
        for (section, key) in MOVED {
            let name = format!("{section}_{key}");
            if tree.get(&name).is_some() {
                return Err(ConfigError::new(format!("{name}: is no key, {section}.{key} is")));
            }
            let moved = tree
                .get_mut(section)
                .and_then(Value::as_object_mut)
                .and_then(|map| map.remove(key));
            tree::set(&mut tree, &name, moved.unwrap_or_else(|| json!("")));
        }
        let settings: Self = serde_path_to_error::deserialize(tree).map_err(|error| {
            let path = error.path().to_string();
            let moved = MOVED
                .iter()
                .find(|(section, key)| path == format!("{section}_{key}"));
            let path = moved.map_or(path, |(section, key)| format!("{section}.{key}"));
            let message = error.into_inner().to_string();
            // These three are stored outside their sections.
            let message = MOVED.iter().fold(message, |message, (section, key)| {
                message.replace(&format!(", `{section}_{key}`"), "")
            });
            tree::type_error(&path, &message)
        })?;
        settings.validate()?;
        Ok(settings)
    }

    /// Default number of notes in a response, capped by `web.max_k`.
    pub fn default_k(&self) -> usize {
        self.retrieval.default_k.min(self.web.max_k)
    }

    /// The directory for everything on disk; `None` for an in-memory store.
    pub fn data_dir(&self) -> Option<PathBuf> {
        (self.backend != "mem").then(|| self.storage.data_dir.clone())
    }

    /// The directory of an embedded database's own files.
    pub fn engine_dir(&self) -> Option<PathBuf> {
        (self.backend == "surrealkv").then(|| self.storage.data_dir.join("store"))
    }

    /// Whether other processes can reach the database.
    pub fn is_shared(&self) -> bool {
        self.backend.starts_with("ws")
    }

    /// The address of the database.
    pub fn engine_url(&self) -> String {
        match self.engine_dir() {
            Some(dir) => format!("surrealkv://{}", dir.display()),
            None if self.backend == "mem" => "mem://".into(),
            None => self.backend.clone(),
        }
    }

    /// The storage settings in the form that the database expects.
    pub fn storage(&self) -> StorageSettings {
        StorageSettings {
            url: self.engine_url(),
            data_dir: self.storage.data_dir.clone(),
            transaction_mib: self.storage.transaction_mib,
            memtable_mib: self.storage.memtable_mib,
            block_cache_mib: self.storage.block_cache_mib,
            connections: self.storage.connections,
            timeout_ms: self.storage.timeout_ms,
            min_free_mib: self.storage.min_free_mib,
            accept_loss: self.storage.accept_loss,
        }
    }

    /// Whether the service would listen on all addresses.
    fn is_everywhere(&self) -> bool {
        let address = self.web.host.parse::<IpAddr>();
        address.is_ok_and(|address| address.to_canonical().is_unspecified())
    }
}

/// The tree of the defaults, and the same with the file applied.
fn trees(file: Option<&Path>) -> Result<(Value, Value), ConfigError> {
    let tree = |figment: &Figment| {
        let tree = figment.extract();
        tree.map_err(|error| ConfigError::new(describe(error)))
    };
    let mut figment = Figment::from(Toml::string(LOCAL_DEFAULTS));
    let defaults = tree(&figment)?;
    if let Some(path) = file {
        if !path.is_file() {
            let rule = format!("--config: {} is not a file", path.display());
            return Err(ConfigError::new(rule));
        }
        figment = figment.merge(Toml::file(path));
        let is_text =
            |path: &str| tree::is_secret(path) && tree::get(&defaults, path).is_some_and(Value::is_string);
        for (path, text) in secrets::find_unquoted(path, is_text)? {
            figment = figment.merge(Serialized::default(&path, text));
        }
    }
    let whole = tree(&figment)?;
    Ok((defaults, whole))
}

impl LocalFlags {
    fn leaves(&self) -> Result<Vec<environment::Override>, ConfigError> {
        let mut leaves = Vec::new();
        let mut set = |path: &str, by: &str, value: Option<Value>| {
            leaves.extend(value.map(|value| environment::Override {
                path: path.to_owned(),
                by: by.to_owned(),
                value,
            }));
        };
        let dir = self.data_dir.as_ref().map(|dir| dir.to_str());
        if dir == Some(None) {
            return Err(ConfigError::new("--data-dir: must be UTF-8 text".into()));
        }
        set("web.host", "--host", self.host.as_ref().map(|host| json!(host)));
        set("web.port", "--port", self.port.map(|port| json!(port)));
        set("storage.data_dir", "--data-dir", dir.map(|dir| json!(dir)));
        set(
            "backend",
            "the program",
            self.backend.as_ref().map(|backend| json!(backend)),
        );
        Ok(leaves)
    }
}
