//! Where a client may connect to.

use std::net::IpAddr;

use url::Url;

use super::address::{class, unwrap_embedded};
use super::pattern::HostPattern;
use super::rule::{Refusal, Rule};
use super::spelling;

/// Where a client may connect to.
#[derive(Debug, Clone)]
pub struct Policy(Kind);

#[derive(Debug, Clone)]
enum Kind {
    Public {
        hosts: Vec<HostPattern>,
        local_development: bool,
    },
    Configured {
        scheme: String,
        host: String,
        port: Option<u16>,
        /// Whether private and loopback addresses are refused too.
        public_only: bool,
    },
}

impl Policy {
    /// For URLs that users choose: HTTPS, allowed hosts and public addresses only, up to
    /// [`MAX_REDIRECTS`](crate::outbound::MAX_REDIRECTS) redirects under the same rules, no credentials, no proxy. An entry of
    /// `feeds.allowed_hosts` that is not a [`HostPattern`] allows nothing; the settings are checked at the start.
    pub fn public(allowed_hosts: &[String], local_development: bool) -> Self {
        let entries = allowed_hosts.iter();
        Self(Kind::Public {
            hosts: entries.filter_map(|entry| entry.parse().ok()).collect(),
            local_development,
        })
    }

    /// For an endpoint that the operator configured: this scheme, host and port, no redirects. Private and loopback
    /// addresses are fine; link-local, metadata, multicast, broadcast and unspecified ones are not.
    pub fn for_endpoint(url: &Url) -> Self {
        Self(Kind::Configured {
            scheme: url.scheme().to_owned(),
            host: url.host_str().unwrap_or_default().to_owned(),
            port: url.port_or_known_default(),
            public_only: false,
        })
    }

    /// For an endpoint that a configured one names: as [`for_endpoint`](Self::for_endpoint), but public addresses only.
    pub fn for_discovered_endpoint(url: &Url) -> Self {
        Self(Kind::Configured {
            scheme: url.scheme().to_owned(),
            host: url.host_str().unwrap_or_default().to_owned(),
            port: url.port_or_known_default(),
            public_only: true,
        })
    }

    /// Whether URLs come from users.
    pub(crate) fn is_public(&self) -> bool {
        matches!(self.0, Kind::Public { .. })
    }

    /// Parses a URL and checks all rules that need no network.
    ///
    /// # Errors
    /// The rule that the URL breaks.
    pub fn check(&self, text: &str) -> Result<Url, Refusal> {
        match &self.0 {
            Kind::Public {
                hosts,
                local_development,
            } => self.check_public(text, hosts, *local_development),
            Kind::Configured {
                scheme, host, port, ..
            } => self.check_configured(text, (scheme, host, *port)),
        }
    }

    fn check_configured(&self, text: &str, endpoint: (&str, &str, Option<u16>)) -> Result<Url, Refusal> {
        let url = Url::parse(text).map_err(|_| Refusal::new(Rule::InvalidUrl, ""))?;
        let host = url.host_str().unwrap_or_default();
        let refuse = |rule| Err(Refusal::new(rule, host));
        if !matches!(url.scheme(), "http" | "https") {
            return refuse(Rule::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return refuse(Rule::Userinfo);
        }
        if url.port() == Some(0) {
            return refuse(Rule::Port);
        }
        if (url.scheme(), host, url.port_or_known_default()) != endpoint {
            return refuse(Rule::OtherEndpoint);
        }
        self.check_literal(&url)?;
        Ok(url)
    }

    fn check_public(&self, text: &str, hosts: &[HostPattern], local: bool) -> Result<Url, Refusal> {
        let url = spelling::parse(text)?;
        let host = url.host_str().unwrap_or_default();
        let refuse = |rule| Err(Refusal::new(rule, host));
        if url.scheme() != "https" && !(local && url.scheme() == "http") {
            return refuse(Rule::Scheme);
        }
        self.check_literal(&url)?;
        // RFC 6761 section 6.3.
        if !local && (host == "localhost" || host.ends_with(".localhost")) {
            return refuse(Rule::LoopbackAddress);
        }
        let port = url.port_or_known_default().unwrap_or_default();
        if !hosts.iter().any(|pattern| pattern.allows(host, port)) {
            return refuse(Rule::HostNotAllowed);
        }
        Ok(url)
    }

    fn check_literal(&self, url: &Url) -> Result<(), Refusal> {
        let rule = spelling::literal(url).and_then(|address| self.refuses(address));
        rule.map_or(Ok(()), |rule| {
            Err(Refusal::new(rule, url.host_str().unwrap_or_default()))
        })
    }

    /// Checks where a redirect from `url` leads.
    ///
    /// # Errors
    /// The rule that the destination breaks.
    pub(crate) fn next(&self, url: &Url, location: &[u8]) -> Result<Url, Refusal> {
        let invalid = || Refusal::new(Rule::InvalidUrl, "");
        let location = str::from_utf8(location).map_err(|_| invalid())?;
        // Parsers drop blanks and read backslashes as slashes, so that `/\host` is another host.
        if !location
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'\\')
        {
            return Err(invalid());
        }
        let next = if location.starts_with("//") {
            self.check(&format!("{}:{location}", url.scheme()))?
        } else if has_scheme(location) {
            self.check(location)?
        } else {
            self.check(url.join(location).map_err(|_| invalid())?.as_str())?
        };
        if next.scheme() != url.scheme() {
            return Err(Refusal::new(
                Rule::RedirectScheme,
                next.host_str().unwrap_or_default(),
            ));
        }
        Ok(next)
    }

    /// The rule that forbids connecting to an address.
    pub(crate) fn refuses(&self, address: IpAddr) -> Option<Rule> {
        match &self.0 {
            Kind::Public {
                local_development, ..
            } => class(address).filter(|rule| !(*local_development && *rule == Rule::LoopbackAddress)),
            Kind::Configured {
                public_only: true, ..
            } => class(address),
            Kind::Configured { .. } => class(unwrap_embedded(address)).filter(|rule| {
                matches!(
                    rule,
                    Rule::LinkLocalAddress
                        | Rule::MetadataAddress
                        | Rule::MulticastAddress
                        | Rule::BroadcastAddress
                        | Rule::UnspecifiedAddress
                )
            }),
        }
    }
}

/// Whether a reference begins with a scheme (RFC 3986 section 3.1).
fn has_scheme(reference: &str) -> bool {
    let end = reference.find([':', '/', '?', '#']).unwrap_or(reference.len());
    reference.get(end..).is_some_and(|rest| rest.starts_with(':'))
}
