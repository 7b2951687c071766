//! The rules of the service, pure: no actors, no database, no clock (`now` is passed in).

pub mod audit;
pub mod confidence;
pub(crate) mod cursor;
pub mod detail;
pub mod draft;
pub mod email;
pub mod error;
pub mod extraction;
pub mod items;
pub mod memory;
pub mod misp;
pub mod naming;
pub mod node;
pub mod packed;
pub mod permission;
pub mod principal;
pub mod session;
pub mod staging;
pub mod stix;
pub mod tlp;

/// A regular expression with word edges of ASCII (`\b`): Unicode's cost the `regex` crate its fast engine at the first
/// letter beyond ASCII, and a text a hundred times the time. Edges beside such a letter count more often so.
pub(crate) fn with_ascii_edges(pattern: &str) -> String {
    pattern.replace(r"\b", r"(?-u:\b)")
}
