//! Whether a stored node really has a value: the index folds more than a value may lose, such as the case of a path.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::domain::kinds::{Case, EntityKind};
use crate::domain::naming::{canonical_value, exact_values};
use crate::domain::network::Network;
use crate::domain::node::KgNode;

/// Most other hashes of a file that are looked up.
const MAX_DIGESTS: usize = 16;
const ADDRESSES: [EntityKind; 3] = [EntityKind::Ipv4, EntityKind::Ipv6, EntityKind::Cidr];
const DIGESTS: [(EntityKind, usize); 4] = [
    (EntityKind::Md5, 32),
    (EntityKind::Sha1, 40),
    (EntityKind::Sha256, 64),
    (EntityKind::Sha512, 128),
];

/// Whether a node has this value in normal form; of a value of no known kind, whether it has the words.
pub fn carries(node: &KgNode, kind: Option<EntityKind>, value: &str) -> bool {
    let wanted = comparable(kind, value);
    stated_by(node).any(|stated| comparable(kind, &stated) == wanted)
}

/// The form in which values of a kind are compared.
fn comparable(kind: Option<EntityKind>, value: &str) -> String {
    let Some(kind) = kind else {
        return value.trim().to_lowercase();
    };
    if let Some(network) = Network::read(value).filter(|_| ADDRESSES.contains(&kind)) {
        return network.to_string();
    }
    let normal = canonical_value(kind, value);
    // It may be stored with a scheme that a text leaves out.
    let normal = match normal.split_once("://") {
        Some(("http" | "https", rest)) if kind == EntityKind::Url => rest.to_owned(),
        Some(_) | None => normal,
    };
    match kind.row().case {
        Case::AsWritten => normal.to_lowercase(),
        Case::Lower | Case::Upper | Case::Significant | Case::Ipv6 | Case::AsNumber => normal,
    }
}

/// The texts by which a node is known.
fn stated_by(node: &KgNode) -> impl Iterator<Item = String> {
    let properties = &node.properties;
    let listed = ["value", "aliases", "external_ids"]
        .into_iter()
        .filter_map(|key| properties.get(key))
        .flat_map(|value| {
            value
                .as_array()
                .map_or(std::slice::from_ref(value), Vec::as_slice)
        });
    let listed = listed.filter_map(Value::as_str).map(str::to_owned);
    std::iter::once(node.name.clone())
        .chain(listed)
        .chain(exact_values(properties))
}

/// The hashes of the file that a node stands for, besides this one.
pub fn other_digests(node: &KgNode, value: &str) -> Vec<(EntityKind, String)> {
    let digest = |stated: String| {
        let kind = DIGESTS.iter().find(|(_, digits)| {
            stated.len() == *digits && stated.bytes().all(|byte| byte.is_ascii_hexdigit())
        });
        kind.map(|(kind, _)| (*kind, stated.to_ascii_lowercase()))
    };
    let digests: BTreeSet<(EntityKind, String)> = stated_by(node).filter_map(digest).collect();
    let others = digests.into_iter().filter(|(_, digest)| digest != value);
    others.take(MAX_DIGESTS).collect()
}
