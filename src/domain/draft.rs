//! What every way in other than STIX produces: nodes, evidence and stated relationships, not yet stored.
//!
//! Pure. A draft's identity decides whether it is new: the store makes the id of a row from it, so the same
//! item taken in twice is one node. Drafts refer to each other by position.

use serde_json::{Map, Value};

use super::confidence::Confidence;
use super::node::NodeType;
use super::tlp::Tlp;

/// What an entry without its own marking or confidence gets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ItemDefaults {
    pub tlp: Tlp,
    /// 0 to 1.
    pub confidence: f64,
}

impl ItemDefaults {
    /// What the request says, or else what is usual for its way in.
    pub fn or(
        tlp: Option<Tlp>,
        usual_tlp: Tlp,
        confidence: Option<Confidence>,
        usual_confidence: f64,
    ) -> Self {
        Self {
            tlp: tlp.unwrap_or(usual_tlp),
            confidence: confidence.map_or(usual_confidence, Confidence::value),
        }
    }
}

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
    pub properties: Compact,
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
    pub raw: Compact,
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

/// What a node takes of memory while it is written and indexed, beside its texts, in bytes; measured.
const NODE: usize = 5 << 10;
/// The same for an evidence record or an edge.
const RECORD: usize = 3 << 9;

/// What a text takes while it is written and indexed, as a multiple of its length: the draft, the transaction, and the
/// copies that the database makes of one to commit it; measured.
pub const COPIES: f64 = 6.2;

impl Drafts {
    /// About how many bytes of memory it takes to write and index these drafts.
    pub fn weight(&self) -> usize {
        let node = |node: &NodeDraft| {
            let texts = [&node.identity, &node.name, &node.description, &node.source];
            texts.into_iter().map(String::len).sum::<usize>() + node.properties.text().len()
        };
        let record = |record: &EvidenceDraft| {
            let texts = [&record.identity, &record.title, &record.source];
            let texts = texts.into_iter().map(String::len).sum::<usize>();
            texts + record.ext_id.as_ref().map_or(0, String::len) + record.raw.text().len()
        };
        let texts = self.nodes.iter().map(node).sum::<usize>()
            + self.evidence.iter().map(record).sum::<usize>()
            + self.edges.iter().map(|edge| edge.proof.len()).sum::<usize>();
        let records = self.evidence.len() + self.edges.len();
        self.nodes.len() * NODE + records * RECORD + (texts as f64 * COPIES) as usize
    }
}

/// A JSON object while it waits to be stored: as text, because a map takes several times as much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compact(Box<str>);

impl Compact {
    /// The text of a stored object, taken as it is.
    pub fn from_text(text: String) -> Self {
        Self(text.into())
    }

    /// The object as JSON text.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        &*self.0 == "{}"
    }

    /// The object; a text that is none gives an empty one.
    pub fn map(&self) -> Map<String, Value> {
        serde_json::from_str(&self.0).unwrap_or_default()
    }
}

impl From<Map<String, Value>> for Compact {
    fn from(map: Map<String, Value>) -> Self {
        Self(Value::Object(map).to_string().into())
    }
}

/// An identity out of its parts; NUL can't be part of any of them, so different parts never look alike.
pub fn identity<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let parts: Vec<String> = parts.into_iter().map(|part| part.replace('\0', "")).collect();
    parts.join("\0")
}
