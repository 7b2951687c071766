//! Entries of the list of allowed hosts.

use std::str::FromStr;

use super::spelling;

/// A host that feeds may be pulled from: a host name, an IP address, or `*.` and a suffix for all names below it; with
/// a port, that port only. Names are compared in ASCII form (RFC 5891), in any letter case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPattern {
    /// As [`url::Url::host_str`] shows it, without the `*.`.
    host: String,
    below: bool,
    port: Option<u16>,
}

/// What an entry must look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HostPatternError {
    #[error("must be a host name, *.suffix or an IP address, with a port or without")]
    Form,
    #[error("must not allow all names of a public suffix")]
    Suffix,
}

impl HostPattern {
    /// Whether the entry allows a host, in the form of [`url::Url::host_str`], at a port.
    pub fn allows(&self, host: &str, port: u16) -> bool {
        let matches = if self.below {
            host.strip_suffix(self.host.as_str())
                .and_then(|rest| rest.strip_suffix('.'))
                .is_some_and(|label| !label.is_empty())
        } else {
            host == self.host
        };
        matches && self.port.is_none_or(|only| only == port)
    }
}

impl FromStr for HostPattern {
    type Err = HostPatternError;

    fn from_str(entry: &str) -> Result<Self, HostPatternError> {
        let (below, written) = match entry.strip_prefix("*.") {
            Some(suffix) => (true, suffix),
            None => (false, entry),
        };
        if written.contains(['/', '?', '#', '@', '*']) {
            return Err(HostPatternError::Form);
        }
        let url = spelling::parse(&format!("https://{written}/")).map_err(|_| HostPatternError::Form)?;
        let host = url.host_str().ok_or(HostPatternError::Form)?.to_owned();
        // The parser drops a scheme's default port.
        let port = written
            .rsplit_once(':')
            .filter(|(_, port)| !port.contains(']'))
            .map(|(_, port)| port.parse().map_err(|_| HostPatternError::Form))
            .transpose()?;
        if below && spelling::literal(&url).is_some() {
            return Err(HostPatternError::Form);
        }
        // Anybody can register a name below a public suffix (publicsuffix.org).
        if below && psl::domain_str(&host).is_none() {
            return Err(HostPatternError::Suffix);
        }
        Ok(Self { host, below, port })
    }
}
