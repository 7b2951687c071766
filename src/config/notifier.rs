//! `[notifier]`: how the operator is told of pilot requests.

use std::path::PathBuf;

use secrecy::SecretString;
use serde::Deserialize;

use super::validate::within;
use super::{ConfigError, Settings};

/// How the mail server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NotifierMode {
    /// No e-mail; requests are stored only.
    Off,
    /// TLS begins with STARTTLS (RFC 3207); a server that does not offer it gets nothing.
    Starttls,
    /// TLS from the first byte (RFC 8314).
    Tls,
    /// No TLS, to a server on this machine only.
    Plain,
}

/// E-mail to the operator.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotifierSettings {
    pub mode: NotifierMode,
    pub host: String,
    pub port: u16,
    pub from: String,
    pub to: Vec<String>,
    /// Pause after the first failed attempt.
    pub retry_seconds: u64,
    /// Days after which an e-mail that can't be sent is given up.
    pub give_up_days: u64,
    /// Time-out of one attempt, from the look-up of the host to the server's last reply.
    pub timeout_ms: u64,
    /// PEM file with more trusted CA certificates; empty for none.
    pub ca_file: PathBuf,
}

impl Settings {
    /// User and password for the mail server, if it asks for them.
    pub fn smtp_credentials(&self) -> Option<(String, SecretString)> {
        self.smtp_user.clone().zip(self.smtp_password.clone())
    }

    pub(super) fn notifier_rules(&self) -> Result<(), ConfigError> {
        let notifier = &self.notifier;
        within("notifier.retry_seconds", notifier.retry_seconds, 1..=3_600)?;
        within("notifier.give_up_days", notifier.give_up_days, 1..=30)?;
        within("notifier.timeout_ms", notifier.timeout_ms, 100..=600_000)?;
        let pair = ["THREAT_MEMORY_SMTP_USER", "THREAT_MEMORY_SMTP_PASSWORD"];
        let missing = match (&self.smtp_user, &self.smtp_password) {
            (None, Some(_)) => Some((pair[0], pair[1])),
            (Some(_), None) => Some((pair[1], pair[0])),
            (None, None) | (Some(_), Some(_)) => None,
        };
        if let Some((missing, given)) = missing {
            return Err(ConfigError::new(format!("{missing}: is required with {given}")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Flags;
    use super::*;

    fn load(text: &str) -> Result<Settings, ConfigError> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("c.toml");
        std::fs::write(&file, text).unwrap();
        Settings::load(Some(&file), &Flags::default())
    }

    #[test]
    fn nothing_is_mailed_unless_the_operator_says_so() {
        let settings = Settings::load(None, &Flags::default()).unwrap();
        let want = NotifierSettings {
            mode: NotifierMode::Off,
            host: String::new(),
            port: 587,
            from: String::new(),
            to: Vec::new(),
            retry_seconds: 30,
            give_up_days: 7,
            timeout_ms: 20_000,
            ca_file: PathBuf::new(),
        };
        assert_eq!(settings.notifier, want);
    }

    #[test]
    fn credentials_come_in_pairs() {
        for (text, want) in [
            (
                "smtp_user = \"u\"",
                "THREAT_MEMORY_SMTP_PASSWORD: is required with THREAT_MEMORY_SMTP_USER",
            ),
            (
                "smtp_password = \"hunter2\"",
                "THREAT_MEMORY_SMTP_USER: is required with THREAT_MEMORY_SMTP_PASSWORD",
            ),
        ] {
            let error = load(text).unwrap_err().to_string();
            assert!(error.contains(want) && !error.contains("hunter2"), "{error}");
        }
        let settings = load("smtp_user = \"u\"\nsmtp_password = 12345").unwrap();
        let debug = format!("{settings:?}");
        assert!(!debug.contains("12345"), "{debug}");
    }
}
