//! What every way in other than STIX produces: nodes, evidence and stated relationships, not yet stored.
//!
//! Pure. A draft's identity decides whether it is new: the store makes the id of a row from it, so the same
//! item taken in twice is one node. Drafts refer to each other by position.

use serde_json::{Map, Value};

use super::node::NodeType;
use super::tlp::Tlp;

/// A node to be created, or to be merged into the one that is it already.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeDraft {
    /// What makes two drafts one node, such as `ioc\0domain\0evil.example`; see [`identity`].
    pub identity: String,
    pub node_type: NodeType,
    pub name: String,
    pub description: String,
    /// Who says so: a collector, an organisation, a report.
    pub source: String,
    /// Which way in: `osint`, `misp`, `analyst`, `report`, `staged`.
    pub source_type: &'static str,
    pub tlp: Tlp,
    /// 0 to 1.
    pub confidence: f64,
    /// Free-form; `aliases` (strings), `external_ids` (strings) and `value` (string) are searched as names.
    pub properties: Map<String, Value>,
    /// Positions in [`Drafts::evidence`].
    pub evidence: Vec<usize>,
    /// Whether a node of the same type that carries this name or one of the aliases is the same node, also
    /// when its identity differs (actors, tools, techniques, vulnerabilities; never indicators).
    pub merge_by_name: bool,
}

/// Where a fact comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct EvidenceDraft {
    /// What makes two records one.
    pub identity: String,
    /// `osint`, `misp`, `analyst`, `report`, `staged`.
    pub kind: &'static str,
    /// The id it has where it comes from: an event UUID, a URL.
    pub ext_id: Option<String>,
    pub title: String,
    pub source: String,
    pub tlp: Tlp,
    /// The original, kept whole.
    pub raw: Map<String, Value>,
}

/// A relationship that the source states; mere co-occurrence is none.
#[derive(Debug, Clone, PartialEq)]
pub struct EdgeDraft {
    /// Positions in [`Drafts::nodes`].
    pub source: usize,
    pub target: usize,
    /// A STIX relationship type: `uses`, `indicates`, `related-to` and so on.
    pub relationship: String,
    pub tlp: Tlp,
    pub confidence: f64,
    /// What states it: a sentence, a MISP object reference.
    pub proof: String,
    /// Position in [`Drafts::evidence`].
    pub evidence: usize,
}

/// One request's worth of drafts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Drafts {
    pub nodes: Vec<NodeDraft>,
    pub evidence: Vec<EvidenceDraft>,
    pub edges: Vec<EdgeDraft>,
}

/// An identity out of its parts; NUL can't be part of any of them, so different parts never look alike.
pub fn identity<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let parts: Vec<String> = parts.into_iter().map(|part| part.replace('\0', "")).collect();
    parts.join("\0")
}
