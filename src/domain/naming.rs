//! Identity of names: when two mentions are one node, independent of the ingest source.
//!
//! A name in the gazetteer has the identity of its entry, a name with an assigned identifier (CVE, ATT&CK)
//! that of the identifier, and an indicator that of its kind and canonical value. A stated kind (a MISP
//! attribute, a hit in a text) decides, through [`indicator_identity`]. Without one, the rules extractor
//! infers the kind from the words.

mod values;

use std::net::{Ipv4Addr, Ipv6Addr};

pub use self::values::{has_value, pattern_keys, value_identities, value_of_identity};
use super::draft::identity;
use super::extraction::{EntityKind, Extractor, Gazetteer, Mention, canonical_name, refang};
use super::kinds::Case;
use super::node::NodeType;
use super::normal_form::normal_form;

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
    if let Some(hit) = whole_hit(text).filter(|hit| hit.kind.node_type() == NodeType::Ioc) {
        return Indicator {
            kind: Some(hit.kind),
            value: hit.value,
        };
    }
    let plain = refang(text);
    match plain_kind(&plain) {
        Some(kind) => Indicator {
            kind: Some(kind),
            value: normal_form(kind, &plain),
        },
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
    identity_of_value(known, kind, &value)
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
    if value.parse::<Ipv4Addr>().is_ok() {
        return Some(EntityKind::Ipv4);
    }
    if value.parse::<Ipv6Addr>().is_ok() {
        return Some(EntityKind::Ipv6);
    }
    if !value.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    match value.len() {
        32 => Some(EntityKind::Md5),
        40 => Some(EntityKind::Sha1),
        64 => Some(EntityKind::Sha256),
        128 => Some(EntityKind::Sha512),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
