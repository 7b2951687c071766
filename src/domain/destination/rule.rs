//! The rules that a request or its destination can break.

use std::fmt;

/// Longest host that a refusal repeats, in characters (RFC 1035 section 2.3.4: 253 for a name).
const MAX_HOST: usize = 253;

/// Why a destination is refused. The names are stable: clients and alerts may match on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    /// Not an absolute URL, or one that parsers read differently.
    InvalidUrl,
    /// Not HTTPS (or HTTP, where that is allowed).
    Scheme,
    /// A user name or password in the URL.
    Userinfo,
    /// Port 0.
    Port,
    /// An IP address that is not in its usual notation: decimal, octal, hexadecimal, shortened, percent-encoded.
    AddressSpelling,
    /// A host name that ends with a dot.
    TrailingDot,
    /// A host that the operator has not allowed.
    HostNotAllowed,
    /// Not the endpoint that the operator configured: another scheme, host or port.
    OtherEndpoint,
    /// Feeds are read with GET only.
    Method,
    /// More than [`MAX_REDIRECTS`](crate::outbound::MAX_REDIRECTS).
    TooManyRedirects,
    /// A redirect from one scheme to another.
    RedirectScheme,
    /// 0.0.0.0 and `::`.
    UnspecifiedAddress,
    LoopbackAddress,
    /// RFC 1918.
    PrivateAddress,
    /// 100.64.0.0/10 (RFC 6598).
    SharedAddress,
    LinkLocalAddress,
    /// Where clouds offer credentials to the machines in them.
    MetadataAddress,
    /// `fc00::/7` (RFC 4193), and the site-local range before it.
    UniqueLocalAddress,
    MulticastAddress,
    BroadcastAddress,
    DocumentationAddress,
    /// 198.18.0.0/15 and `2001:2::/48`.
    BenchmarkAddress,
    /// An IPv6 address that carries an IPv4 address: mapped, compatible, NAT64, 6to4, Teredo, ISATAP.
    EmbeddedAddress,
    /// Every other range that the registries of special-purpose addresses list (RFC 6890).
    ReservedAddress,
}

impl Rule {
    /// The stable name, in kebab case.
    pub fn name(self) -> &'static str {
        match self {
            Self::InvalidUrl => "invalid-url",
            Self::Scheme => "scheme",
            Self::Userinfo => "userinfo",
            Self::Port => "port",
            Self::AddressSpelling => "address-spelling",
            Self::TrailingDot => "trailing-dot",
            Self::HostNotAllowed => "host-not-allowed",
            Self::OtherEndpoint => "other-endpoint",
            Self::Method => "method",
            Self::TooManyRedirects => "too-many-redirects",
            Self::RedirectScheme => "redirect-scheme",
            Self::UnspecifiedAddress => "unspecified-address",
            Self::LoopbackAddress => "loopback-address",
            Self::PrivateAddress => "private-address",
            Self::SharedAddress => "shared-address",
            Self::LinkLocalAddress => "link-local-address",
            Self::MetadataAddress => "metadata-address",
            Self::UniqueLocalAddress => "unique-local-address",
            Self::MulticastAddress => "multicast-address",
            Self::BroadcastAddress => "broadcast-address",
            Self::DocumentationAddress => "documentation-address",
            Self::BenchmarkAddress => "benchmark-address",
            Self::EmbeddedAddress => "embedded-address",
            Self::ReservedAddress => "reserved-address",
        }
    }

    /// What the rule demands, in words that follow "the URL" or "the host".
    pub fn demand(self) -> &'static str {
        match self {
            Self::InvalidUrl => "must be an absolute URL, without blanks, backslashes or encoded host names",
            Self::Scheme => "must begin with https://",
            Self::Userinfo => "must not hold a user name or password",
            Self::Port => "must not name port 0",
            Self::AddressSpelling => "must write an IP address in its usual notation",
            Self::TrailingDot => "must not end its host name with a dot",
            Self::HostNotAllowed => "must name a host that the operator has allowed",
            Self::OtherEndpoint => "must stay with the configured scheme, host and port",
            Self::Method => "may only be read",
            Self::TooManyRedirects => "must not redirect more than five times",
            Self::RedirectScheme => "must not redirect to another scheme",
            Self::UnspecifiedAddress => "must not lead to the unspecified address",
            Self::LoopbackAddress => "must not lead to a loopback address",
            Self::PrivateAddress => "must not lead to a private address",
            Self::SharedAddress => "must not lead to a shared address",
            Self::LinkLocalAddress => "must not lead to a link-local address",
            Self::MetadataAddress => "must not lead to a cloud's metadata address",
            Self::UniqueLocalAddress => "must not lead to a unique-local address",
            Self::MulticastAddress => "must not lead to a multicast address",
            Self::BroadcastAddress => "must not lead to the broadcast address",
            Self::DocumentationAddress => "must not lead to a documentation address",
            Self::BenchmarkAddress => "must not lead to a benchmark address",
            Self::EmbeddedAddress => "must not lead to an IPv6 address that carries an IPv4 address",
            Self::ReservedAddress => "must not lead to a reserved address",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// A destination that the policy forbids.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Refusal {
    /// The rule that the destination breaks.
    pub rule: Rule,
    /// The host in ASCII form; empty when the URL can't be read. The rest of the URL is withheld: it may hold secrets.
    pub host: String,
    /// How many redirects led there; 0 for the URL of the request itself.
    pub redirects: usize,
}

impl Refusal {
    pub(crate) fn new(rule: Rule, host: &str) -> Self {
        Self {
            rule,
            host: host.chars().take(MAX_HOST).collect(),
            redirects: 0,
        }
    }

    pub(crate) fn after(mut self, redirects: usize) -> Self {
        self.redirects = redirects;
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.is_empty() {
            out.write_str("the URL ")?;
        } else {
            write!(out, "the URL of host {} ", self.host)?;
        }
        write!(out, "{} ({})", self.rule.demand(), self.rule)?;
        match self.redirects {
            0 => Ok(()),
            1 => out.write_str(", after a redirect"),
            many => write!(out, ", after {many} redirects"),
        }
    }
}
