//! `[feeds]`: which servers intelligence may be pulled from, and how much of it at a time.

use std::ffi::OsString;

use serde::Deserialize;
use serde_json::{Value, json};

use super::ConfigError;
use super::validate::within;
use crate::outbound::HostPattern;

/// The variable of `feeds.allowed_hosts`: entries separated by commas.
const ALLOWED_HOSTS: &str = "TAXII_ALLOWED_HOSTS";
/// The variable of `feeds.local_development`.
const LOCAL_DEVELOPMENT: &str = "THREAT_MEMORY_LOCAL_DEVELOPMENT";

/// Pulling of feeds.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeedSettings {
    /// Entries in the form of [`HostPattern`]; an empty list allows no host.
    pub allowed_hosts: Vec<String>,
    /// Allows HTTP and loopback addresses. The host must be allowed nevertheless.
    pub local_development: bool,
    /// Time-out of one request, its redirects included.
    pub timeout_ms: u64,
    /// Largest decompressed response.
    pub response_kib: usize,
    /// Objects asked for per page.
    pub page_objects: usize,
    /// Most pages of one pull.
    pub max_pages: usize,
    /// Pulls that run at the same time.
    pub concurrent_pulls: usize,
    /// How long the request that starts a pull waits for its end.
    pub answer_ms: u64,
}

/// The settings that variables without a section set. An empty variable counts as unset.
///
/// # Errors
/// Names the variable and the rule.
pub(super) fn of_environment(
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<Vec<(&'static str, Value)>, ConfigError> {
    let text = |name: &str| {
        let value = variable(name).filter(|value| !value.is_empty());
        value
            .map(OsString::into_string)
            .transpose()
            .map_err(|_| ConfigError::new(format!("{name}: must be UTF-8 text")))
    };
    let mut found = Vec::new();
    if let Some(list) = text(ALLOWED_HOSTS)? {
        let entries: Vec<&str> = list.split(',').map(str::trim).collect();
        // A comma at the end is no entry.
        let entries: Vec<&str> = entries.into_iter().filter(|entry| !entry.is_empty()).collect();
        host_rules(ALLOWED_HOSTS, &entries)?;
        found.push(("feeds.allowed_hosts", json!(entries)));
    }
    if let Some(switch) = text(LOCAL_DEVELOPMENT)? {
        let on = match switch.trim().to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" => true,
            "false" | "0" | "no" | "off" => false,
            _ => {
                let rule = format!("{LOCAL_DEVELOPMENT}: must be true or false");
                return Err(ConfigError::new(rule));
            }
        };
        found.push(("feeds.local_development", json!(on)));
    }
    Ok(found)
}

fn host_rules(key: &str, entries: &[impl AsRef<str>]) -> Result<(), ConfigError> {
    for (at, entry) in entries.iter().enumerate() {
        if let Err(rule) = entry.as_ref().parse::<HostPattern>() {
            // The entry itself may be a URL with a password.
            return Err(ConfigError::new(format!("{key}: entry {} {rule}", at + 1)));
        }
    }
    Ok(())
}

pub(super) fn feed_rules(feeds: &FeedSettings) -> Result<(), ConfigError> {
    host_rules("feeds.allowed_hosts", &feeds.allowed_hosts)?;
    within("feeds.timeout_ms", feeds.timeout_ms, 100..=600_000)?;
    within("feeds.response_kib", feeds.response_kib, 1..=65_536)?;
    within("feeds.page_objects", feeds.page_objects, 1..=10_000)?;
    within("feeds.max_pages", feeds.max_pages, 1..=1_000_000)?;
    within("feeds.concurrent_pulls", feeds.concurrent_pulls, 1..=64)?;
    within("feeds.answer_ms", feeds.answer_ms, 100..=600_000)
}
