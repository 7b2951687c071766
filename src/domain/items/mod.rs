//! Ways in other than STIX and free text: the body of a request is checked field by field and becomes drafts.
//!
//! Identity (ARCHITECTURE.md, "Identity of things"): an OSINT item of type `osint` is its URL, or without one its
//! title; everything else is what [`super::naming::identity_of`] says of its type and name, an OSINT item of another
//! type too, and its URL is its evidence. The same item taken in twice is one node; a changed one adds evidence.

mod analyst;
pub(super) mod bounds;
mod osint;
mod report;

use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

pub use self::analyst::AnalystEntries;
pub use self::osint::OsintItems;
pub use self::report::Report;
use super::draft::{Compact, Drafts};
use super::error::DomainError;
use super::extraction::indicator_properties;
use super::misp::Skipped;
use super::naming::indicator_of;
use super::node::NodeType;

/// The body of a way in. Serde reads its types; its rules are checked by `plan`.
pub trait WayIn: DeserializeOwned + Send + 'static {
    /// Name of the action in the audit log.
    const ACTION: &'static str;
    /// The field that holds the entries: what a request that would need too much memory is told to split.
    const ENTRIES: &'static str;

    /// Checks the body of a request of `size` bytes that `by` sent, and plans what becomes of it.
    ///
    /// # Errors
    /// The first field that breaks a rule, and the rule.
    fn plan(self, by: &str, size: usize) -> Result<Plan, DomainError>;
}

/// What the body of a way in becomes.
#[derive(Debug)]
pub struct Plan {
    pub drafts: Drafts,
    /// What was not taken, where the way in tells of it.
    pub skipped: Option<Skipped>,
}

impl From<Drafts> for Plan {
    fn from(drafts: Drafts) -> Self {
        Self {
            drafts,
            skipped: None,
        }
    }
}

/// Plans a body and checks that what it becomes can be written in the memory that a request of `size` bytes may use.
///
/// # Errors
/// As [`WayIn::plan`].
pub fn plan<W: WayIn>(body: W, by: &str, size: usize) -> Result<Plan, DomainError> {
    let plan = body.plan(by, size)?;
    bounds::weight(W::ENTRIES, &plan.drafts, size)?;
    Ok(plan)
}

/// Reads null as the default, like a field that is missing.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Option::deserialize(from).map(Option::unwrap_or_default)
}

/// An indicator shows its kind, value and pattern, so that it is found and exported by them.
fn with_value(node_type: NodeType, name: &str, mut properties: Map<String, Value>) -> Map<String, Value> {
    if node_type == NodeType::Ioc {
        for (key, value) in indicator_properties(&indicator_of(name)) {
            properties.entry(key).or_insert(value);
        }
    }
    properties
}

fn digest(original: &Compact) -> String {
    hex::encode(Sha256::digest(original.text()))
}

/// The properties that have something to say.
fn present<const N: usize>(pairs: [(&str, Value); N]) -> Map<String, Value> {
    let empty = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    pairs
        .into_iter()
        .filter(|(_, value)| !empty(value))
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}

fn compact(object: Value) -> Compact {
    Compact::from_text(object.to_string())
}
