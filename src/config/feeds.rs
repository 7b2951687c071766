//! `[feeds]`: which servers intelligence may be pulled from, and how much of it at a time.

use std::ffi::OsString;

use serde::Deserialize;
use serde_json::{Value, json};

use super::ConfigError;
use super::validate::within;
use crate::domain::destination::HostPattern;

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
        let entries = list.split(',').map(str::trim);
        // A comma at the end is no entry.
        let entries: Vec<&str> = entries.filter(|entry| !entry.is_empty()).collect();
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

#[cfg(test)]
mod tests {
    use super::super::{Flags, Settings};
    use super::*;

    fn of(name: &str, value: &str) -> Result<Vec<(&'static str, Value)>, ConfigError> {
        of_environment(|asked| (asked == name).then(|| OsString::from(value)))
    }

    #[test]
    fn nothing_may_be_pulled_unless_the_operator_says_so() {
        let feeds = Settings::load(None, &Flags::default()).unwrap().feeds;
        let want = FeedSettings {
            allowed_hosts: Vec::new(),
            local_development: false,
            timeout_ms: 8_000,
            response_kib: 512,
            page_objects: 100,
            max_pages: 10_000,
            concurrent_pulls: 32,
            answer_ms: 20_000,
        };
        assert_eq!(feeds, want);
    }

    #[test]
    fn two_variables_need_no_section() {
        let hosts = of(ALLOWED_HOSTS, "taxii.example.org, *.example.net:8443,").unwrap();
        let want = json!(["taxii.example.org", "*.example.net:8443"]);
        assert_eq!(hosts, [("feeds.allowed_hosts", want)]);
        for (text, on) in [("true", true), ("1", true), ("False", false), ("off", false)] {
            let switch = of(LOCAL_DEVELOPMENT, text).unwrap();
            assert_eq!(switch, [("feeds.local_development", json!(on))]);
        }
        assert_eq!(of_environment(|_| Some(OsString::new())).unwrap(), []);
        assert_eq!(of_environment(|_| None).unwrap(), []);
        for (name, value, want) in [
            (
                ALLOWED_HOSTS,
                "a.example.org,https://u:hunter2@b/",
                "TAXII_ALLOWED_HOSTS: entry 2 must be a host name",
            ),
            (
                ALLOWED_HOSTS,
                "*.com",
                "TAXII_ALLOWED_HOSTS: entry 1 must not allow all names of a public suffix",
            ),
            (
                LOCAL_DEVELOPMENT,
                "hunter2",
                "THREAT_MEMORY_LOCAL_DEVELOPMENT: must be true or false",
            ),
        ] {
            let error = of(name, value).unwrap_err().to_string();
            assert!(error.contains(want) && !error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn a_bad_setting_is_named_with_its_key_and_rule() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("c.toml");
        for (text, want) in [
            (
                "allowed_hosts = [\"a.example.org\", \"http://x\"]",
                "feeds.allowed_hosts: entry 2 must be a host name",
            ),
            (
                "allowed_hosts = [\"127.1\"]",
                "feeds.allowed_hosts: entry 1 must be a host name",
            ),
            ("allowed_hosts = [\"*\"]", "feeds.allowed_hosts: entry 1 must be"),
            ("allowed_hosts = \"a\"", "feeds.allowed_hosts: "),
            ("local_development = 1", "feeds.local_development: "),
            ("timeout_ms = 99", "feeds.timeout_ms: must be from 100 to 600000"),
            ("response_kib = 0", "feeds.response_kib: must be from 1 to 65536"),
            ("page_objects = 0", "feeds.page_objects: must be from 1 to"),
            ("max_pages = 0", "feeds.max_pages: must be from 1 to"),
            (
                "concurrent_pulls = 0",
                "feeds.concurrent_pulls: must be from 1 to 64",
            ),
            ("answer_ms = 1", "feeds.answer_ms: must be from 100 to"),
            ("hosts = []", "hosts"),
        ] {
            std::fs::write(&file, format!("[feeds]\n{text}")).unwrap();
            let error = Settings::load(Some(&file), &Flags::default()).unwrap_err();
            assert!(error.to_string().contains(want), "{text} gave {error}");
        }
        let text = "[llm]\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"http://169.254.169.254/v1\"";
        std::fs::write(&file, text).unwrap();
        let error = Settings::load(Some(&file), &Flags::default()).unwrap_err();
        let want = "llm.base_url: must not lead to a cloud's metadata address";
        assert!(error.to_string().contains(want), "{error}");
    }
}
