//! Ingest endpoints other than STIX and free text: the request body is checked field by field and becomes drafts.
//!
//! Identity (ARCHITECTURE.md, "Identity of things"): an OSINT item of type `osint` is identified by its URL, or by
//! its title if it has none. Everything else, including OSINT items of other types, is identified by
//! [`super::naming::identity_of`] of its type and name; the URL of such an item identifies its evidence. Ingesting
//! the same item twice yields one node; a changed item adds evidence.

mod analyst;
pub mod bounds;
mod osint;
mod report;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

pub use self::analyst::AnalystEntries;
pub use self::osint::OsintItems;
pub use self::report::Report;
use super::draft::{Drafts, JsonText};
use super::error::DomainError;
use super::extraction::{indicator_properties, tlp_hint};
use super::misp::SkipCounts;
use super::naming::indicator_of;
use super::node::NodeType;
use super::tlp::Tlp;

/// The request body of an ingest endpoint. Serde checks its types, `plan` its rules.
pub trait IngestBody: DeserializeOwned + Send + 'static {
    /// Name of the action in the audit log.
    const ACTION: &'static str;
    /// The field that holds the entries. A request that would need too much memory is told to split it.
    const ENTRIES: &'static str;

    /// Checks the body of a request of `size` bytes sent by `by`, and plans its rows.
    ///
    /// # Errors
    /// Names the first field that breaks a rule, and the rule.
    fn plan(self, by: &str, size: usize) -> Result<ItemPlan, DomainError>;
}

/// The drafts of a request body.
#[derive(Debug)]
pub struct ItemPlan {
    pub drafts: Drafts,
    /// Skipped entries, if the endpoint reports them.
    pub skipped: Option<SkipCounts>,
}

impl From<Drafts> for ItemPlan {
    fn from(drafts: Drafts) -> Self {
        Self {
            drafts,
            skipped: None,
        }
    }
}

/// Plans a body and checks that its drafts fit the memory allowed for a request of `size` bytes.
///
/// # Errors
/// As [`IngestBody::plan`].
pub fn plan<W: IngestBody>(body: W, by: &str, size: usize) -> Result<ItemPlan, DomainError> {
    let mut plan = body.plan(by, size)?;
    bounds::weight(W::ENTRIES, &plan.drafts, size)?;
    let room = bounds::room(size).saturating_sub(plan.drafts.weight());
    plan.drafts.keep_passages(room);
    Ok(plan)
}

/// Adds kind, value and pattern to an indicator's properties: search and export rely on them.
fn with_value(node_type: NodeType, name: &str, mut properties: Map<String, Value>) -> Map<String, Value> {
    if node_type == NodeType::Ioc {
        for (key, value) in indicator_properties(&indicator_of(name)) {
            properties.entry(key).or_insert(value);
        }
    }
    properties
}

/// Rule: an item is marked as it says; one that says nothing takes the stricter of the default and what its texts state.
fn marking_of<'t>(own: Option<Tlp>, default: Tlp, texts: impl IntoIterator<Item = &'t str>) -> Tlp {
    own.unwrap_or_else(|| texts.into_iter().filter_map(tlp_hint).fold(default, Tlp::max))
}

fn digest(original: &JsonText) -> String {
    hex::encode(Sha256::digest(original.text()))
}

/// The properties that are not empty.
fn present<const N: usize>(pairs: [(&str, Value); N]) -> Map<String, Value> {
    let empty = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    pairs
        .into_iter()
        .filter(|(_, value)| !empty(value))
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}

fn json_text(object: Value) -> JsonText {
    JsonText::from_text(object.to_string())
}
