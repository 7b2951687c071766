//! A single value of an attribute type: its kind, its canonical form, and the STIX pattern that matches it.
//!
//! Where the text extractor has the same kind, its name is used, so that an address from a report and the same
//! address from MISP are one node. A type without an own kind keeps its MISP name. Case is folded only where it is
//! insignificant: hosts, hexadecimal digests, MAC addresses.

use std::borrow::Cow;
use std::net::IpAddr;

use crate::domain::extraction::refang;
use crate::domain::kinds::EntityKind;
use crate::domain::node::NodeType;
use crate::domain::normal_form::{normal_form, own_spelling};
use crate::domain::stix::pattern::{Observable, literal, pattern};
use crate::domain::stix::properties::is_cve;

/// A single value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AttributeValue {
    pub node_type: NodeType,
    pub kind: Cow<'static, str>,
    pub value: String,
    /// How the attribute spells it, if the value is the punycode of an internationalised host.
    pub spelled: Option<String>,
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
            spelled: None,
            pattern: None,
            pattern_type: None,
        }
    }

    /// A value of a kind that texts have too, in the same normal form.
    fn of(kind: EntityKind, value: &str) -> AttributeValue {
        AttributeValue {
            spelled: own_spelling(kind, value),
            ..AttributeValue::new(kind.as_str(), normal_form(kind, value))
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
        "url" => AttributeValue::of(EntityKind::Url, value).with_observable(Observable::Url),
        // A link is a reference to a report; an indicator on it would flag the publisher.
        "link" => AttributeValue::new("link", normal_form(EntityKind::Url, value)),
        "uri" if value.contains("://") => {
            AttributeValue::of(EntityKind::Url, value).with_observable(Observable::Url)
        }
        "email"
        | "email-src"
        | "email-dst"
        | "email-reply-to"
        | "dns-soa-email"
        | "whois-registrant-email" => {
            AttributeValue::of(EntityKind::Email, value).with_observable(Observable::Email)
        }
        "filename" | "email-attachment" => file(value),
        "regkey" => {
            AttributeValue::of(EntityKind::RegistryKey, value).with_observable(Observable::RegistryKey)
        }
        "mutex" => AttributeValue::new("mutex", value).with_observable(Observable::Mutex),
        "user-agent" => AttributeValue::new("user-agent", value).with_observable(Observable::UserAgent),
        "AS" => autonomous_system(value),
        "mac-address" => AttributeValue::new("mac-address", mac(value)).with_observable(Observable::Mac),
        "btc" => AttributeValue::of(EntityKind::Bitcoin, value),
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
    let file = match misp_type {
        "md5" => Some((EntityKind::Md5, Observable::Md5)),
        "sha1" => Some((EntityKind::Sha1, Observable::Sha1)),
        "sha256" => Some((EntityKind::Sha256, Observable::Sha256)),
        "sha512" => Some((EntityKind::Sha512, Observable::Sha512)),
        _ => None,
    };
    if let Some((kind, observable)) = file {
        return Some(AttributeValue::of(kind, value).with_observable(observable));
    }
    let lower = value.to_ascii_lowercase();
    let (kind, observable) = match misp_type {
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
    let is_ip = |text: &str| text.parse::<IpAddr>().ok();
    let ip = normal_form(EntityKind::Ipv6, &normal_form(EntityKind::Ipv4, value));
    let network = normal_form(EntityKind::Cidr, value);
    let network_of = network.split_once('/').and_then(|(ip, _)| is_ip(ip));
    match (is_ip(&ip), network_of) {
        (Some(IpAddr::V4(_)), _) => AttributeValue::new("ipv4", ip).with_observable(Observable::Ipv4),
        (Some(IpAddr::V6(_)), _) => AttributeValue::new("ipv6", ip).with_observable(Observable::Ipv6),
        (None, Some(IpAddr::V4(_))) => AttributeValue::new("cidr", network).with_observable(Observable::Ipv4),
        (None, Some(IpAddr::V6(_))) => AttributeValue::new("cidr", network).with_observable(Observable::Ipv6),
        (None, None) => AttributeValue::new("ip", refang(value)),
    }
}

/// A host name; sensors also report addresses here.
fn host(value: &str) -> AttributeValue {
    let host = AttributeValue::of(EntityKind::Domain, value);
    if host.value.parse::<IpAddr>().is_ok() {
        return address(&host.value);
    }
    host.with_observable(Observable::Domain)
}

/// A file name, or a path: STIX has separate properties for the name and its directory (section 6.7).
fn file(value: &str) -> AttributeValue {
    let Some(at) = value.rfind(['/', '\\']) else {
        return AttributeValue::new("file-name", value).with_observable(Observable::FileName);
    };
    let (directory, name) = value.split_at(at);
    let name = name.trim_start_matches(['/', '\\']);
    let part = AttributeValue::of(EntityKind::FilePath, value);
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

fn autonomous_system(value: &str) -> AttributeValue {
    let system = AttributeValue::of(EntityKind::Asn, value);
    match system
        .value
        .strip_prefix("AS")
        .is_some_and(|digits| digits.parse::<u32>().is_ok())
    {
        true => system.with_observable(Observable::AutonomousSystem),
        false => AttributeValue::new("asn", value),
    }
}

fn mac(value: &str) -> String {
    value.to_ascii_lowercase().replace('-', ":")
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
        true => AttributeValue::of(EntityKind::Cve, value).with_type(NodeType::Cve),
        false => AttributeValue::new("vulnerability", value).with_type(NodeType::Vulnerability),
    }
}
