//! Rules that types can't express.

use std::fmt::Display;
use std::net::IpAddr;
use std::ops::RangeInclusive;

use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use serde_json::json;

use super::feeds::feed_rules;
use super::oauth::oauth_rules;
use super::{
    ActorSettings, ConfigError, EmbeddingProvider, EmbeddingSettings, LlmProvider, LlmSettings, LogSettings,
    Settings, is_log_filter,
};
use crate::domain::destination::Policy;
use crate::domain::email::is_email;
use crate::domain::password;
use crate::domain::permission::Tier;
use crate::domain::secret_name::is_secret_name;
use crate::files;

/// HS256 needs a key at least as long as the digest (RFC 7518 section 3.2).
const SECRET_BYTES: usize = 32;

impl Settings {
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        within("server.workers", self.server.workers, 1..=64)?;
        within("server.body_limit", self.server.body_limit, 1024..=(1 << 30))?;
        let bodies = self.server.bodies_in_flight_mib;
        within("server.bodies_in_flight_mib", bodies, 1..=65_536)?;
        if self.server.bodies_in_flight() / 2 < self.server.body_limit {
            // A workspace gets half of it, so a larger body could never be read.
            return Err(ConfigError::new(format!(
                "server.bodies_in_flight_mib: must hold two bodies of server.body_limit, is {bodies}"
            )));
        }
        let (cert, key) = (&self.server.tls_cert, &self.server.tls_key);
        for (name, other, path, partner) in [
            ("server.tls_cert", "server.tls_key", cert, key),
            ("server.tls_key", "server.tls_cert", key, cert),
        ] {
            if path.as_os_str().is_empty() && !partner.as_os_str().is_empty() {
                return Err(ConfigError::new(format!("{name}: is needed with {other}")));
            }
        }
        origin_rules(&self.server.cors_origins)?;
        host_rules("server.admin_hosts", &self.server.admin_hosts)?;
        within("server.drain_seconds", self.server.drain_seconds, 1..=600)?;
        within(
            "search.idle_writer_seconds",
            self.search.idle_writer_seconds,
            1..=86_400,
        )?;
        within(
            "retention.recall_session_days",
            self.retention.recall_session_days,
            0..=36_500,
        )?;
        within(
            "retention.finished_batch_days",
            self.retention.finished_batch_days,
            0..=36_500,
        )?;
        within("retention.outbox_days", self.retention.outbox_days, 0..=36_500)?;
        within("search.fresh_docs", self.search.fresh_docs, 0..=10_000)?;
        self.log.validate("log")?;
        within(
            "keeper.max_restarts_per_minute",
            self.keeper.max_restarts_per_minute,
            1..=1000,
        )?;
        self.storage_rules()?;
        embedding_rules(&self.embedding)?;
        llm_rules(&self.llm)?;
        feed_rules(&self.feeds)?;
        self.notifier_rules()?;
        oauth_rules(&self.oauth, self.actors.of("identity").timeout_ms)?;
        for tier in Tier::ALL {
            let limit = self.limits.tiers.get(tier.as_str());
            let limit = limit.ok_or_else(|| ConfigError::new(format!("limits.tiers.{tier}: is required")))?;
            within(&format!("limits.tiers.{tier}"), *limit, 1..=u32::MAX)?;
        }
        if let Some(unknown) = self
            .limits
            .tiers
            .keys()
            .find(|name| name.parse::<Tier>().is_err())
        {
            return Err(ConfigError::new(format!(
                "limits.tiers.{unknown}: is not a tier (pilot, team, enterprise)"
            )));
        }
        for (name, actor) in self.actors.sections() {
            actor_rules(name, actor)?;
        }
        for (name, secret) in [
            ("THREAT_MEMORY_JWT_SECRET", &self.jwt_secret),
            ("THREAT_MEMORY_PREVIOUS_JWT_SECRET", &self.previous_jwt_secret),
        ] {
            let is_short = |secret: &SecretString| secret.expose_secret().len() < SECRET_BYTES;
            if secret.as_ref().is_some_and(is_short) {
                return Err(ConfigError::new(format!(
                    "{name}: must have at least {SECRET_BYTES} bytes"
                )));
            }
        }
        if self.is_new() {
            return self.first_admin_rules();
        }
        Ok(())
    }

    /// Whether nothing was ever kept where these settings point to. Of an external database only the database can tell.
    fn is_new(&self) -> bool {
        !self.has_shared_store() && self.data_dir().is_none_or(|dir| files::is_empty(&dir))
    }

    /// The first start makes the administrator. Later the variables count for nothing, whatever they hold. The start itself
    /// checks them again, where an earlier one was interrupted or the database is an external one; here nothing is made yet.
    fn first_admin_rules(&self) -> Result<(), ConfigError> {
        if let Some(email) = &self.admin_email
            && !is_email(email.trim())
        {
            return Err(ConfigError::new(
                "THREAT_MEMORY_ADMIN_EMAIL: must be an e-mail address".into(),
            ));
        }
        let password = self.admin_password.as_ref();
        password.map_or(Ok(()), |password| {
            let email = self.admin_email.as_deref().unwrap_or_default();
            password::check_new("THREAT_MEMORY_ADMIN_PASSWORD", password, email)
                .map_err(|error| ConfigError::new(error.to_string()))
        })
    }

    fn storage_rules(&self) -> Result<(), ConfigError> {
        within(
            "storage.transaction_mib",
            self.storage.transaction_mib,
            16..=4_095,
        )?;
        within("storage.memtable_mib", self.storage.memtable_mib, 4..=16_384)?;
        within(
            "storage.block_cache_mib",
            self.storage.block_cache_mib,
            1..=1_048_576,
        )?;
        server_rules(self.storage.connections, self.storage.timeout_ms)?;
        let url = &self.storage.url;
        let rest = ["surrealkv://", "mem://", "ws://", "wss://"]
            .iter()
            .find_map(|scheme| url.strip_prefix(scheme).map(|rest| (*scheme, rest)));
        match rest {
            None => Err(ConfigError::new(
                "storage.url: must begin with surrealkv://, mem://, ws:// or wss://".into(),
            )),
            Some(("mem://", _)) => Ok(()),
            Some((scheme, "")) => Err(ConfigError::new(format!("storage.url: {scheme} needs what follows it"))),
            // Omits the value, which would otherwise end up in logs.
            Some(("ws://" | "wss://", rest)) if rest.contains('@') => Err(ConfigError::new(
                "storage.url: must not hold credentials; use THREAT_MEMORY_STORAGE_USER and THREAT_MEMORY_STORAGE_PASSWORD".into(),
            )),
            Some(("ws://" | "wss://", _)) if self.storage_user.is_none() || self.storage_password.is_none() => {
                Err(ConfigError::new(
                    "storage.url: an external SurrealDB needs THREAT_MEMORY_STORAGE_USER and THREAT_MEMORY_STORAGE_PASSWORD".into(),
                ))
            }
            Some(_) => Ok(()),
        }
    }
}

/// Origins are compared as text, so each must be written as browsers write it (RFC 6454 section 6.2).
fn origin_rules(origins: &[String]) -> Result<(), ConfigError> {
    for (at, origin) in origins.iter().enumerate() {
        let refuse = |rule: &str| {
            Err(ConfigError::new(format!(
                "server.cors_origins: entry {} {rule}",
                at + 1
            )))
        };
        if origin == "*" {
            return refuse(
                "must name one origin: with * any page could use a credential that it has got hold of",
            );
        }
        let url = url::Url::parse(origin).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https"));
        if url.is_none_or(|url| url.origin().ascii_serialization() != *origin) {
            return refuse(
                "must be an origin such as https://app.example.org: scheme, host, and a port that is not the \
                 default one, in lower case, without a path",
            );
        }
    }
    Ok(())
}

/// Host headers are compared with these without their port.
pub(super) fn host_rules(key: &str, hosts: &[String]) -> Result<(), ConfigError> {
    match hosts.iter().position(|host| !is_host(host)) {
        None => Ok(()),
        Some(at) => Err(ConfigError::new(format!(
            "{key}: entry {} must be a host name or an address, without a port",
            at + 1
        ))),
    }
}

/// An IP address, or a name of letters, digits, `-`, `_` and `.` (RFC 1123 section 2.1, and what resolvers accept) that
/// does not end in a number: resolvers read `0` and `127.0x1` as addresses.
pub(super) fn is_host(host: &str) -> bool {
    let in_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let last = host.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    let hexadecimal = last.strip_prefix("0x").or_else(|| last.strip_prefix("0X"));
    let number = match hexadecimal {
        Some(digits) => digits.chars().all(|c| c.is_ascii_hexdigit()),
        None => last.chars().all(|c| c.is_ascii_digit()),
    };
    let is_name = (1..=253).contains(&host.len()) && host.chars().all(in_name) && !number;
    host.parse::<IpAddr>().is_ok() || is_name
}

/// Connection settings of an external database.
pub(super) fn server_rules(connections: usize, timeout_ms: u64) -> Result<(), ConfigError> {
    within("storage.connections", connections, 1..=64)?;
    within("storage.timeout_ms", timeout_ms, 100..=600_000)
}

pub(super) fn embedding_rules(embedding: &EmbeddingSettings) -> Result<(), ConfigError> {
    within("embedding.fill_seconds", embedding.fill_seconds, 1..=3600)?;
    if embedding.provider == EmbeddingProvider::Builtin {
        return Ok(());
    }
    endpoint("embedding.base_url", &embedding.base_url)?;
    if embedding.model.is_empty() {
        return Err(ConfigError::new(
            "embedding.model: is required with provider \"openai\"".into(),
        ));
    }
    within("embedding.dimension", embedding.dimension, 1..=8192)?;
    within("embedding.batch", embedding.batch, 1..=2048)?;
    within("embedding.timeout_ms", embedding.timeout_ms, 100..=600_000)
}

impl LogSettings {
    /// Checks the settings of a section.
    pub(super) fn validate(&self, section: &str) -> Result<(), ConfigError> {
        if !is_log_filter(&self.filter) {
            let text = format!("{section}.filter: must be a tracing filter");
            return Err(ConfigError::new(text));
        }
        within(&format!("{section}.keep_files"), self.keep_files, 1..=1000)?;
        within(&format!("{section}.traces_percent"), self.traces_percent, 1..=100)?;
        match self.traces_url.as_str() {
            "" => Ok(()),
            url => endpoint(&format!("{section}.traces_url"), url),
        }
    }
}

/// A base URL to which a path can be added. It is shown and logged, so it must hold no secret.
pub(super) fn endpoint(key: &str, url: &str) -> Result<(), ConfigError> {
    let refuse = |rule: &str| Err(ConfigError::new(format!("{key}: {rule}")));
    let fits = |url: &url::Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    let Some(url) = url::Url::parse(url).ok().filter(fits) else {
        return refuse("must be a URL that begins with http:// or https:// and names a host");
    };
    if !url.username().is_empty() || url.password().is_some() {
        return refuse("must not hold a user name or password");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return refuse("must not hold a query or fragment");
    }
    let checked = Policy::for_endpoint(&url).check(url.as_str());
    checked.map_or_else(|refusal| refuse(refusal.rule.demand()), |_| Ok(()))
}

pub(super) fn llm_rules(llm: &LlmSettings) -> Result<(), ConfigError> {
    if llm.provider == LlmProvider::None {
        return Ok(());
    }
    endpoint("llm.base_url", &llm.base_url)?;
    if llm.model.is_empty() {
        return Err(ConfigError::new(
            "llm.model: is required with provider \"openai\"".into(),
        ));
    }
    within("llm.timeout_ms", llm.timeout_ms, 100..=600_000)?;
    within("llm.retries", llm.retries, 0..=10)?;
    within("llm.max_chunk_chars", llm.max_chunk_chars, 500..=200_000)?;
    // A larger overlap would read most of the text twice.
    within(
        "llm.overlap_chars",
        llm.overlap_chars,
        0..=llm.max_chunk_chars / 2,
    )?;
    within("llm.max_tokens", llm.max_tokens, 64..=131_072)?;
    within("llm.question_ms", llm.question_ms, 0..=60_000)
}

pub(super) fn actor_rules(name: &str, actor: ActorSettings) -> Result<(), ConfigError> {
    let key = |key: &str| format!("actors.{name}.{key}");
    within(&key("mailbox"), actor.mailbox, 0..=1_000_000)?;
    within(&key("gate"), actor.gate, 1..=10_000)?;
    within(&key("write_gate"), actor.write_gate, 1..=10_000)?;
    within(&key("timeout_ms"), actor.timeout_ms, 10..=3_600_000)?;
    within(&key("write_timeout_ms"), actor.write_timeout_ms, 10..=3_600_000)
}

pub(super) fn within<T: PartialOrd + Display + Serialize>(
    key: &str,
    value: T,
    range: RangeInclusive<T>,
) -> Result<(), ConfigError> {
    if range.contains(&value) {
        return Ok(());
    }
    let (least, most) = (range.start(), range.end());
    let is = if is_secret_name(key) {
        String::new()
    } else {
        format!(", is {value}")
    };
    Err(ConfigError {
        text: format!("{key}: must be from {least} to {most}{is}"),
        range: Some((json!(least), json!(most))),
    })
}
