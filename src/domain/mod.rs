//! The domain rules of the service. Pure: no actors, no database, no clock (`now` is passed in).

use serde::{Deserialize, Deserializer};

pub mod audit;
pub mod change;
pub mod confidence;
pub(crate) mod cursor;
pub mod cursor_seal;
pub mod demo;
pub mod destination;
pub mod detail;
pub mod draft;
pub mod email;
pub mod erasure;
pub mod error;
pub mod extraction;
pub mod feed;
pub mod graph;
pub mod ids;
pub mod ingest_result;
pub mod items;
pub mod kinds;
pub mod label;
pub mod lookup;
pub mod memory;
pub mod misp;
pub mod moment;
pub mod naming;
pub mod narrowing;
pub mod nearest;
pub mod network;
pub mod node;
pub mod normal_form;
pub mod packing;
pub mod passage;
pub mod password;
pub mod permission;
pub mod pii;
pub mod pilot;
pub mod principal;
pub mod question;
pub mod schema;
pub mod secret_name;
pub mod session;
pub mod staging;
pub mod stix;
pub mod taxii;
pub mod tlp;
pub mod warninglists;
pub mod why;

/// Reads null as the default: in a body it means that a field is absent.
pub(crate) fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    from: D,
) -> Result<T, D::Error> {
    Option::deserialize(from).map(Option::unwrap_or_default)
}

/// Makes every `\b` in a pattern an ASCII word boundary. With Unicode boundaries the `regex` crate leaves its fast
/// engine at the first non-ASCII character, which makes a text a hundred times slower. The ASCII boundary also
/// matches next to a non-ASCII letter, so it matches more often.
pub(crate) fn with_ascii_edges(pattern: &str) -> String {
    pattern.replace(r"\b", r"(?-u:\b)")
}
