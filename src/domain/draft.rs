//! The output of every ingest source other than STIX: nodes, evidence and stated relationships, not yet stored.
//!
//! Pure. The store derives a row's id from the draft's identity, so ingesting the same item twice yields one node.
//! Drafts refer to each other by position.

use serde_json::{Map, Value};

use super::confidence::Confidence;
use super::graph::attributes::AttributeEnd;
use super::node::NodeType;
use super::tlp::Tlp;

/// Defaults for an entry without its own marking or confidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ItemDefaults {
    pub tlp: Tlp,
    /// 0 to 1.
    pub confidence: f64,
}

impl ItemDefaults {
    /// The values from the request, or the usual ones of its ingest source.
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

/// A node to create, or to merge into an existing one.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeDraft {
    /// Drafts with the same identity are one node, such as `ioc\0domain\0evil.example`; see [`identity`].
    pub identity: String,
    pub node_type: NodeType,
    pub name: String,
    pub description: String,
    /// The origin of the claim: a collector, an organisation, a report.
    pub source: String,
    /// The ingest source: `osint`, `misp`, `analyst`, `report`, `staged`.
    pub source_type: &'static str,
    pub tlp: Tlp,
    /// 0 to 1.
    pub confidence: f64,
    /// Free-form; `aliases` (strings), `external_ids` (strings) and `value` (string) are searchable as names.
    pub properties: JsonText,
    /// Positions in [`Drafts::evidence`].
    pub evidence: Vec<usize>,
    /// Whether to merge with a node of the same type that has this name or one of the aliases, even if its
    /// identity differs (true for actors, tools, techniques, vulnerabilities; never for indicators).
    pub merge_by_name: bool,
}

/// The source of a fact.
#[derive(Debug, Clone, PartialEq)]
pub struct EvidenceDraft {
    /// Records with the same identity are one.
    pub identity: String,
    /// `osint`, `misp`, `analyst`, `report`, `staged`.
    pub kind: &'static str,
    /// Its id at the source: an event UUID, a URL.
    pub ext_id: Option<String>,
    pub title: String,
    pub source: String,
    pub tlp: Tlp,
    /// The complete original.
    pub raw: JsonText,
}

/// A relationship that the source states; mere co-occurrence does not count.
#[derive(Debug, Clone, PartialEq)]
pub struct EdgeDraft {
    /// Positions in [`Drafts::nodes`].
    pub source: usize,
    pub target: usize,
    /// A STIX relationship type: `uses`, `indicates`, `related-to` and so on.
    pub relationship: String,
    pub tlp: Tlp,
    pub confidence: f64,
    /// The statement: a sentence, a MISP object reference.
    pub proof: String,
    /// Position in [`Drafts::evidence`].
    pub evidence: usize,
}

/// A text about drafted nodes, by which they are found: an excerpt of a report, a comment.
#[derive(Debug, Clone, PartialEq)]
pub struct PassageDraft {
    /// Positions in [`Drafts::nodes`]: what it is about, twice the same if that is one node.
    pub about: [usize; 2],
    pub tlp: Tlp,
    pub text: String,
}

/// The drafts of one request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Drafts {
    pub nodes: Vec<NodeDraft>,
    pub evidence: Vec<EvidenceDraft>,
    pub edges: Vec<EdgeDraft>,
    /// Beside the descriptions of the nodes.
    pub passages: Vec<PassageDraft>,
    /// Attributes that their source states no longer.
    pub withdrawn: Vec<AttributeEnd>,
}

/// Memory in bytes that a node takes while it is written and indexed, not counting its texts; measured.
const NODE: usize = 5 << 10;
/// The same for an evidence record or an edge.
const RECORD: usize = 3 << 9;

/// Memory that a text takes while it is written and indexed, as a multiple of its length: the draft, the
/// transaction, and the copies that the database makes on commit; measured.
pub const COPIES: f64 = 6.2;

impl Drafts {
    /// Estimated bytes of memory needed to write and index these drafts, without the passages.
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

    /// Keeps the first passages, as far as they need no more than this many bytes of memory. The others can still be
    /// read in the evidence.
    pub fn keep_passages(&mut self, room: usize) {
        let mut left = room;
        let fitting = self.passages.iter().take_while(|passage| {
            let needed = RECORD + (passage.text.len() as f64 * COPIES) as usize;
            let fits = needed <= left;
            left = left.saturating_sub(needed);
            fits
        });
        let fitting = fitting.count();
        self.passages.truncate(fitting);
    }
}

/// A JSON object waiting to be stored, kept as text because a map takes several times the memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonText(Box<str>);

impl JsonText {
    /// Wraps the text of a stored object without checking it.
    pub fn from_text(text: String) -> Self {
        Self(text.into())
    }

    /// The object as JSON text.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Whether the object has no members.
    pub fn is_empty(&self) -> bool {
        &*self.0 == "{}"
    }

    /// The parsed object; empty if the text is not an object.
    pub fn map(&self) -> Map<String, Value> {
        serde_json::from_str(&self.0).unwrap_or_default()
    }
}

impl From<Map<String, Value>> for JsonText {
    fn from(map: Map<String, Value>) -> Self {
        Self(Value::Object(map).to_string().into())
    }
}

/// Joins parts into an identity. NUL is removed from the parts, so different parts cannot collide.
pub fn identity<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let parts: Vec<String> = parts.into_iter().map(|part| part.replace('\0', "")).collect();
    parts.join("\0")
}
