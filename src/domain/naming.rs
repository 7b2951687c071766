//! Identity of names: when two mentions are one node, independent of the ingest source.
//!
//! A name in the gazetteer has the identity of its entry, a name with an assigned identifier (CVE, ATT&CK)
//! that of the identifier, and an indicator that of its kind and canonical value. A stated kind (a MISP
//! attribute, a hit in a text) decides, through [`indicator_identity`]. Without one, the rules extractor
//! infers the kind from the words.

mod values;

use std::net::IpAddr;

pub use self::values::{
    exact_values, has_value, normal_value, pattern_keys, stated_indicators, value_identities,
    value_of_identity,
};
use super::draft::identity;
use super::extraction::{EntityKind, Extractor, Gazetteer, Mention, canonical_name, refang};
use super::kinds::Case;
use super::network::{self, Network};
use super::node::NodeType;
use super::normal_form::{HIVES, normal_form};

/// The kind of an indicator that has no known kind.
pub const OTHER_KIND: &str = "value";

/// An indicator: its kind and its canonical form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Indicator {
    /// `None` if no rule recognises the text.
    pub kind: Option<EntityKind>,
    pub value: String,
}

impl Indicator {
    /// The wire name of its kind.
    pub fn kind_name(&self) -> &'static str {
        self.kind.map_or(OTHER_KIND, EntityKind::as_str)
    }

    /// The identity of its node.
    pub fn identity(&self) -> String {
        identity_of_value(self.kind, self.kind_name(), &self.value)
    }
}

/// The identity of a name of this type, and whether to merge with a node that has the name but another identity (a
/// CVE from STIX has the identity of its STIX id). Indicators are never merged by name.
pub fn identity_of(node_type: NodeType, name: &str) -> (String, bool) {
    let name = name.trim();
    match node_type {
        NodeType::Ioc => (indicator_of(name).identity(), false),
        NodeType::Cve => match identifier_in(node_type, name) {
            Some(id) => (identity([node_type.as_str(), &id]), true),
            None => (identity_of_name(node_type, name), true),
        },
        // Two reports with the same title are distinct unless everything else agrees.
        NodeType::Osint => (identity_of_name(node_type, name), false),
        // ATT&CK ids keep their dot: T1059.001.
        NodeType::Attck => match identifier_in(node_type, name) {
            Some(id) => (identity([node_type.as_str(), &id]), true),
            None => (identity_of_name(node_type, name), true),
        },
        NodeType::Actor | NodeType::Tool | NodeType::Vulnerability => {
            (identity_of_name(node_type, name), true)
        }
    }
}

/// Classifies an indicator by its text alone.
pub fn indicator_of(text: &str) -> Indicator {
    let text = text.trim_matches(is_quote);
    let text = text
        .strip_prefix('<')
        .and_then(|inner| inner.strip_suffix('>'))
        .unwrap_or(text);
    let of_kind = |kind: EntityKind, value: &str| Indicator {
        kind: Some(kind),
        value: normal_form(kind, value),
    };
    // Most values of a list, and the rules for texts find the same.
    if let Some(kind) = plain_kind(text) {
        return of_kind(kind, text);
    }
    if let Some(hit) = whole_hit(text).filter(|hit| hit.kind.node_type() == NodeType::Ioc) {
        return Indicator {
            kind: Some(hit.kind),
            value: hit.value,
        };
    }
    let plain = refang(text);
    match plain_kind(&plain).or_else(|| kind_alone(&plain)) {
        Some(kind) => of_kind(kind, &plain),
        None => Indicator {
            kind: None,
            value: plain.to_lowercase(),
        },
    }
}

/// The identity of an indicator whose kind is stated: an [`EntityKind`] wire name, or any other name for a kind
/// without one (`mutex`, `user-agent`).
pub fn indicator_identity(kind: &str, value: &str) -> String {
    let known = kind.parse::<EntityKind>().ok();
    let value = match known {
        Some(known) => canonical_value(known, value),
        None => refang(value.trim()).into_owned(),
    };
    match plain_kind(&value) {
        // An IPv4 address in an IPv6 one.
        Some(EntityKind::Ipv4) if known == Some(EntityKind::Ipv6) => {
            identity_of_value(Some(EntityKind::Ipv4), EntityKind::Ipv4.as_str(), &value)
        }
        _ => identity_of_value(known, kind, &value),
    }
}

/// The identity of a value in normal form. Two spellings by case are one file, path or registry key.
fn identity_of_value(known: Option<EntityKind>, kind: &str, value: &str) -> String {
    if known.is_some_and(|known| known.row().case == Case::AsWritten) {
        return identity([NodeType::Ioc.as_str(), kind, &value.to_lowercase()]);
    }
    identity([NodeType::Ioc.as_str(), kind, value])
}

/// The normal form of an indicator's value, without the quotes that may be around it.
pub fn canonical_value(kind: EntityKind, value: &str) -> String {
    normal_form(kind, value.trim_matches(is_quote))
}

fn is_quote(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | '`')
}

/// The extractor's hit that spans the whole text, if any.
pub fn whole_hit(text: &str) -> Option<Mention> {
    let mut hits = Extractor::shared().extract(text);
    let hit = hits.pop().filter(|hit| hit.span == (0..text.len()))?;
    hits.is_empty().then_some(hit)
}

/// The identifier of this type at one end of the name: `PowerShell (T1059.001)`, `T1059.001 PowerShell`.
pub fn identifier_in(node_type: NodeType, name: &str) -> Option<String> {
    let hits = Extractor::shared().extract(name);
    let mut ids = hits
        .iter()
        .filter(|hit| hit.kind.is_identifier() && hit.kind.node_type() == node_type);
    let first = ids.next()?;
    // A name with several identifiers mentions them; it is not one of them.
    if ids.any(|other| other.value != first.value) {
        return None;
    }
    let before = name.get(..first.span.start)?;
    let after = name.get(first.span.end..)?;
    let edge = !before.contains(char::is_alphanumeric) || !after.contains(char::is_alphanumeric);
    edge.then(|| first.value.clone())
}

fn identity_of_name(node_type: NodeType, name: &str) -> String {
    let gazetteer = Gazetteer::shared();
    let id = identifier_in(node_type, name);
    let name = id.as_deref().unwrap_or(name);
    let entry = gazetteer
        .resolve(name)
        .filter(|entry| entry.kind.node_type() == node_type);
    let resolved = entry.map_or(name, |entry| entry.name.as_str());
    let canonical = canonical_name(resolved);
    // A name without letters and digits stands for itself.
    let canonical = if canonical.is_empty() {
        resolved.to_lowercase()
    } else {
        canonical
    };
    identity([node_type.as_str(), &canonical])
}

/// Classifies a value by its form alone, for values too ambiguous for the extractor to accept in running text.
fn plain_kind(value: &str) -> Option<EntityKind> {
    match network::address(value) {
        Some(IpAddr::V4(_)) => return Some(EntityKind::Ipv4),
        Some(IpAddr::V6(_)) => return Some(EntityKind::Ipv6),
        None => {}
    }
    if !value.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    DIGESTS
        .iter()
        .find_map(|(kind, digits)| (value.len() == *digits).then_some(*kind))
}

/// The kind of a value with something around it that a text needs and a list leaves out, or the other way round: a port,
/// brackets, marks between bytes, slashes for backslashes.
fn kind_alone(value: &str) -> Option<EntityKind> {
    let is_address = |kind| plain_kind(&normal_form(kind, value)) == Some(kind);
    let is_digest = |(kind, digits): &(EntityKind, usize)| {
        let digest = normal_form(*kind, value);
        digest.len() == *digits && digest.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let is_key = || {
        let key = normal_form(EntityKind::RegistryKey, value);
        HIVES.iter().any(|(_, hive)| {
            key.strip_prefix(hive)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('\\'))
        })
    };
    let addresses = [EntityKind::Ipv4, EntityKind::Ipv6];
    if let Some(kind) = addresses.into_iter().find(|kind| is_address(*kind)) {
        return Some(kind);
    }
    if value.contains('/') && Network::read(value).is_some() {
        return Some(EntityKind::Cidr);
    }
    if let Some((kind, _)) = DIGESTS.iter().find(|digest| is_digest(digest)) {
        return Some(*kind);
    }
    if is_key() {
        return Some(EntityKind::RegistryKey);
    }
    let is_system = || {
        let number = normal_form(EntityKind::Asn, value);
        let digits = number.strip_prefix("AS").filter(|digits| !digits.is_empty());
        let is_stated = value.starts_with(['a', 'A']);
        is_stated && digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
    };
    if is_system() {
        return Some(EntityKind::Asn);
    }
    let hosts = [EntityKind::Email, EntityKind::Domain];
    hosts.into_iter().find(|kind| {
        let bare = normal_form(*kind, value);
        bare != value && whole_hit(&bare).is_some_and(|hit| hit.kind == *kind)
    })
}

/// The digests with their numbers of hexadecimal digits.
const DIGESTS: [(EntityKind, usize); 4] = [
    (EntityKind::Md5, 32),
    (EntityKind::Sha1, 40),
    (EntityKind::Sha256, 64),
    (EntityKind::Sha512, 128),
];

#[cfg(test)]
mod tests;
