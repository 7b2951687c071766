//! A single value of an attribute type: its kind, its canonical form, and the STIX pattern that matches it.
//!
//! Where the text extractor has the same kind, its name is used, so that an address from a report and the same
//! address from MISP are one node. A type without an own kind keeps its MISP name. Case is folded only where it is
//! insignificant: hosts, hexadecimal digests, MAC addresses.

use std::borrow::Cow;
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::domain::extraction::refang;
use crate::domain::node::NodeType;
use crate::domain::stix::pattern::{Observable, literal, pattern};
use crate::domain::stix::properties::is_cve;

/// A single value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AttributeValue {
    pub node_type: NodeType,
    pub kind: Cow<'static, str>,
    pub value: String,
    pub pattern: Option<String>,
    /// The pattern language; a rule (`yara`, `sigma`, `snort`) is its own pattern.
    pub pattern_type: Option<&'static str>,
}

impl AttributeValue {
    fn new(kind: impl Into<Cow<'static, str>>, value: impl Into<String>) -> AttributeValue {
        AttributeValue {
            node_type: NodeType::Ioc,
            kind: kind.into(),
            value: value.into(),
            pattern: None,
            pattern_type: None,
        }
    }

    fn with_pattern(mut self, pattern: Option<String>) -> AttributeValue {
        self.pattern_type = pattern.is_some().then_some("stix");
        self.pattern = pattern;
        self
    }

    fn with_observable(self, observable: Observable) -> AttributeValue {
        let found = pattern(observable, &self.value);
        self.with_pattern(found)
    }

    fn with_type(mut self, node_type: NodeType) -> AttributeValue {
        self.node_type = node_type;
        self
    }

    fn rule(misp_type: &'static str, value: &str) -> AttributeValue {
        let mut part = AttributeValue::new(misp_type, value);
        part.pattern_type = Some(misp_type);
        part
    }
}

/// The value of an attribute of a simple (not composite) type; never empty when `value` is not blank.
pub(super) fn attribute_value(misp_type: &str, value: &str) -> AttributeValue {
    let value = value.trim();
    let part = normalise(misp_type, value);
    match part.value.is_empty() {
        // The value consists only of dots and zero-width characters.
        true => AttributeValue::new(misp_type.to_owned(), value),
        false => part,
    }
}

fn normalise(misp_type: &str, value: &str) -> AttributeValue {
    match misp_type {
        "ip-src" | "ip-dst" | "ip" => address(value),
        "domain" | "hostname" => host(value),
        "url" => AttributeValue::new("url", web_address(value)).with_observable(Observable::Url),
        // A link is a reference to a report; an indicator on it would flag the publisher.
        "link" => AttributeValue::new("link", web_address(value)),
        "uri" if value.contains("://") => {
            AttributeValue::new("url", web_address(value)).with_observable(Observable::Url)
        }
        "email"
        | "email-src"
        | "email-dst"
        | "email-reply-to"
        | "dns-soa-email"
        | "whois-registrant-email" => {
            AttributeValue::new("email", refang(value).to_lowercase()).with_observable(Observable::Email)
        }
        "filename" | "email-attachment" => file(value),
        "regkey" => {
            AttributeValue::new("registry-key", registry_key(value)).with_observable(Observable::RegistryKey)
        }
        "mutex" => AttributeValue::new("mutex", value).with_observable(Observable::Mutex),
        "user-agent" => AttributeValue::new("user-agent", value).with_observable(Observable::UserAgent),
        "AS" => autonomous_system(value),
        "mac-address" => AttributeValue::new("mac-address", mac(value)).with_observable(Observable::Mac),
        "btc" => AttributeValue::new("bitcoin", bitcoin(value)),
        "email-subject" => text_of("email-subject", "email-message:subject", value),
        "email-message-id" => text_of("email-message-id", "email-message:message_id", value),
        "yara" => AttributeValue::rule("yara", value),
        "sigma" => AttributeValue::rule("sigma", value),
        "snort" => AttributeValue::rule("snort", value),
        "stix2-pattern" => stix_pattern(value),
        "vulnerability" => vulnerability(value),
        "threat-actor" => AttributeValue::new("threat-actor", value).with_type(NodeType::Actor),
        _ => digest(misp_type, value).unwrap_or_else(|| AttributeValue::new(misp_type.to_owned(), value)),
    }
}

fn digest(misp_type: &str, value: &str) -> Option<AttributeValue> {
    let lower = value.to_ascii_lowercase();
    let (kind, observable) = match misp_type {
        "md5" => ("md5", Observable::Md5),
        "sha1" => ("sha1", Observable::Sha1),
        "sha256" => ("sha256", Observable::Sha256),
        "sha512" => ("sha512", Observable::Sha512),
        "tlsh" => ("tlsh", Observable::Tlsh),
        "x509-fingerprint-md5" => ("x509-fingerprint-md5", Observable::CertificateMd5),
        "x509-fingerprint-sha1" => ("x509-fingerprint-sha1", Observable::CertificateSha1),
        "x509-fingerprint-sha256" => ("x509-fingerprint-sha256", Observable::CertificateSha256),
        // Contains Base64, where case is significant.
        "ssdeep" => return Some(AttributeValue::new("ssdeep", value).with_observable(Observable::Ssdeep)),
        "sha224"
        | "sha384"
        | "sha512/224"
        | "sha512/256"
        | "sha3-224"
        | "sha3-256"
        | "sha3-384"
        | "sha3-512"
        | "authentihash"
        | "imphash"
        | "pehash"
        | "cdhash"
        | "telfhash"
        | "jarm-fingerprint"
        | "ja3-fingerprint-md5"
        | "hassh-md5"
        | "hasshserver-md5"
        | "git-commit-id"
        | "mac-eui-64" => {
            return Some(AttributeValue::new(misp_type.to_owned(), lower));
        }
        _ => return None,
    };
    // Certificate digests are often written with colons.
    let lower = if kind.starts_with("x509") {
        lower.replace(':', "")
    } else {
        lower
    };
    Some(AttributeValue::new(kind, lower).with_observable(observable))
}

/// An IP address or network; anything else keeps its text and gets no pattern.
fn address(value: &str) -> AttributeValue {
    let plain = refang(value);
    let plain = plain.trim_matches(['[', ']']);
    let (host, prefix) = match plain.split_once('/') {
        Some((host, prefix)) => (host, Some(prefix)),
        None => (plain, None),
    };
    let (text, observable) = if let Ok(v4) = host.parse::<Ipv4Addr>() {
        (v4.to_string(), Observable::Ipv4)
    } else if let Ok(v6) = host.parse::<Ipv6Addr>() {
        (v6.to_string(), Observable::Ipv6)
    } else {
        return AttributeValue::new("ip", plain);
    };
    match (prefix, observable) {
        (Some(prefix), _) => {
            AttributeValue::new("cidr", format!("{text}/{prefix}")).with_observable(observable)
        }
        (None, Observable::Ipv4) => AttributeValue::new("ipv4", text).with_observable(observable),
        (None, _) => AttributeValue::new("ipv6", text).with_observable(observable),
    }
}

/// A host name; sensors also report addresses here.
fn host(value: &str) -> AttributeValue {
    let plain = refang(value).to_lowercase();
    let plain = plain.trim_end_matches('.');
    if plain.parse::<Ipv4Addr>().is_ok() || plain.parse::<Ipv6Addr>().is_ok() {
        return address(plain);
    }
    AttributeValue::new("domain", plain).with_observable(Observable::Domain)
}

/// A URL with lower-case scheme and host; path and query keep their case.
fn web_address(value: &str) -> String {
    let plain = refang(value);
    let Some((scheme, rest)) = plain.split_once("://") else {
        return plain.into_owned();
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let authority = match authority.rsplit_once('@') {
        Some((user, host)) => format!("{user}@{}", host.to_lowercase()),
        None => authority.to_lowercase(),
    };
    format!("{}://{authority}{path}", scheme.to_ascii_lowercase())
}

/// A file name, or a path: STIX has separate properties for the name and its directory (section 6.7).
fn file(value: &str) -> AttributeValue {
    let Some(at) = value.rfind(['/', '\\']) else {
        return AttributeValue::new("file-name", value).with_observable(Observable::FileName);
    };
    let (directory, name) = value.split_at(at);
    let name = name.trim_start_matches(['/', '\\']);
    let part = AttributeValue::new("file-path", value);
    if name.is_empty() {
        return part.with_observable(Observable::DirectoryPath);
    }
    // "/x" is in "/" and "C:\x" in "C:\": in a root directory the separator belongs to the directory.
    let root = directory.is_empty() || directory.ends_with(':');
    let directory = if root {
        value.get(..=at).unwrap_or(directory)
    } else {
        directory
    };
    let fits = !value.chars().any(char::is_control);
    part.with_pattern(fits.then(|| {
        let (name, directory) = (literal(name), literal(directory));
        format!("[file:name = {name} AND file:parent_directory_ref.path = {directory}]")
    }))
}

/// Registry hives, written out as STIX 2.1 section 6.17 requires.
const HIVES: [(&str, &str); 5] = [
    ("HKLM", "HKEY_LOCAL_MACHINE"),
    ("HKCU", "HKEY_CURRENT_USER"),
    ("HKCR", "HKEY_CLASSES_ROOT"),
    ("HKU", "HKEY_USERS"),
    ("HKCC", "HKEY_CURRENT_CONFIG"),
];

fn registry_key(value: &str) -> String {
    let (hive, rest) = match value.split_once('\\') {
        Some((hive, rest)) => (hive, Some(rest)),
        None => (value, None),
    };
    let short = hive.trim_end_matches(':').to_ascii_uppercase();
    let full = HIVES.iter().find(|(from, to)| *from == short || *to == short);
    match (full, rest) {
        (Some((_, full)), Some(rest)) => format!("{full}\\{rest}"),
        _ => value.to_owned(),
    }
}

fn autonomous_system(value: &str) -> AttributeValue {
    let digits = value.trim_start_matches(['A', 'S', 'a', 's']).trim();
    match digits.parse::<u32>() {
        Ok(number) => {
            AttributeValue::new("asn", format!("AS{number}")).with_observable(Observable::AutonomousSystem)
        }
        Err(_) => AttributeValue::new("asn", value),
    }
}

fn mac(value: &str) -> String {
    value.to_ascii_lowercase().replace('-', ":")
}

/// Bech32 addresses are case-insensitive; older formats are not.
fn bitcoin(value: &str) -> String {
    match value.get(..3) {
        Some(start) if start.eq_ignore_ascii_case("bc1") => value.to_ascii_lowercase(),
        Some(_) | None => value.to_owned(),
    }
}

fn text_of(kind: &'static str, path: &str, value: &str) -> AttributeValue {
    let fits = !value.is_empty() && !value.chars().any(char::is_control);
    AttributeValue::new(kind, value).with_pattern(fits.then(|| format!("[{path} = {}]", literal(value))))
}

fn stix_pattern(value: &str) -> AttributeValue {
    let fits = crate::domain::stix::pattern::is_well_formed(value);
    AttributeValue::new("stix2-pattern", value).with_pattern(fits.then(|| value.to_owned()))
}

fn vulnerability(value: &str) -> AttributeValue {
    match is_cve(value) {
        true => AttributeValue::new("cve", value.to_ascii_uppercase()).with_type(NodeType::Cve),
        false => AttributeValue::new("vulnerability", value).with_type(NodeType::Vulnerability),
    }
}
