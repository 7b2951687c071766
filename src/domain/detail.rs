//! Detail views: a node with its relationships and evidence, and a single evidence record.

use std::str::FromStr;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use super::confidence::Confidence;
use super::node::{NodeStatus, NodeType, wire_enum};
use super::session::HasTlp;
use super::stix::object;
use super::tlp::Tlp;

/// The id of a STIX object (STIX 2.1 section 2.9), as somebody spells it: the case of its UUID does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StixId {
    given: String,
    /// With its UUID in lower case.
    usual: String,
}

impl StixId {
    /// Its spellings under which an object may be stored.
    pub fn spellings(&self) -> [&str; 2] {
        [&self.usual, &self.given]
    }

    /// With its UUID in lower case.
    pub fn usual(&self) -> &str {
        &self.usual
    }

    /// The UUID in it.
    pub fn uuid(&self) -> Option<Uuid> {
        self.usual.split_once("--")?.1.parse().ok()
    }
}

impl FromStr for StixId {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let given = text.trim();
        match object::type_of_id(given) {
            Some(_) => Ok(Self {
                given: given.to_owned(),
                usual: given.to_ascii_lowercase(),
            }),
            None => Err("must be a STIX id such as malware--31b940d4-6f77-4a6a-9026-81c1046b8f47"),
        }
    }
}

wire_enum! {
    /// Direction of a relationship relative to the requested node.
    Direction, "outgoing, incoming" {
        Outgoing = "outgoing",
        Incoming = "incoming",
    }
}

/// A relationship between two nodes.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct NodeLink {
    pub id: Uuid,
    #[schema(example = "uses")]
    pub relationship_type: String,
    /// The id of the node that it leads from.
    pub source: Uuid,
    /// The id of the node that it leads to.
    pub target: Uuid,
}

/// The node at the other end of a relationship.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct OtherEnd {
    pub id: Uuid,
    #[schema(example = "X-Agent")]
    pub name: String,
    pub node_type: NodeType,
    pub tlp: Tlp,
}

/// A relationship as seen from one of its nodes.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct NodeRelationship {
    pub id: Uuid,
    #[schema(example = "uses")]
    pub relationship_type: String,
    pub direction: Direction,
    pub node: OtherEnd,
    /// 0 to 1.
    #[schema(value_type = Confidence)]
    pub confidence: f64,
    /// `rejected` for a relationship that was rejected by hand, which only `include_rejected` shows; absent of others.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub status: Option<NodeStatus>,
    /// The marking of the relationship itself.
    #[serde(skip)]
    pub tlp: Tlp,
}

impl HasTlp for NodeRelationship {
    fn tlp(&self) -> Tlp {
        self.tlp.max(self.node.tlp)
    }
}

/// A node that is merged into another one.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct MergedNode {
    pub id: Uuid,
    #[schema(example = "Sofacy")]
    pub name: String,
    pub tlp: Tlp,
    /// Always `merged`.
    pub status: NodeStatus,
    /// The node that it was merged into, which may be merged itself.
    pub merged_into: Uuid,
    pub merged_at: DateTime<Utc>,
    /// Why, in the words of whoever merged it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "one group in two reports")]
    pub reason: Option<String>,
}

impl HasTlp for MergedNode {
    fn tlp(&self) -> Tlp {
        self.tlp
    }
}

/// Metadata of an evidence record, without its content.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct EvidenceHead {
    pub id: Uuid,
    /// The ingest source: `stix`, `osint`, `misp`, `analyst`, `report`, `staged`.
    #[schema(example = "stix")]
    pub kind: String,
    #[schema(example = "APT28")]
    pub title: String,
    #[schema(example = "The MITRE Corporation")]
    pub source: String,
    pub tlp: Tlp,
    /// `rejected` for a record that was rejected by hand, which only `include_rejected` shows; absent of others.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub status: Option<NodeStatus>,
    pub created_at: DateTime<Utc>,
}

impl HasTlp for EvidenceHead {
    fn tlp(&self) -> Tlp {
        self.tlp
    }
}

/// An evidence record with its content.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct EvidenceRecord {
    #[serde(flatten)]
    pub head: EvidenceHead,
    /// The readable text of the original; empty if it has none.
    #[schema(example = "A threat group that MITRE ATT&CK lists as G0007.")]
    pub text: String,
    /// The original as stored; for `stix`, the object.
    #[schema(example = json!({"type": "intrusion-set", "name": "APT28"}))]
    pub original: Map<String, Value>,
}

impl EvidenceRecord {
    /// Builds the record of an original.
    pub fn new(head: EvidenceHead, original: Map<String, Value>) -> Self {
        Self {
            text: text_of(&original),
            head,
            original,
        }
    }
}

impl HasTlp for EvidenceRecord {
    fn tlp(&self) -> Tlp {
        self.head.tlp
    }
}

/// The readable text of an original: the text of a preview, the blocks of a report, the description of an object,
/// item or entry, or the info of a MISP event.
fn text_of(original: &Map<String, Value>) -> String {
    if let Some(blocks) = original.get("content_blocks").and_then(Value::as_array) {
        let blocks: Vec<String> = blocks.iter().filter_map(Value::as_object).map(block).collect();
        return blocks.join("\n\n");
    }
    let keys = ["text", "description", "info"];
    let found = keys.iter().find_map(|key| object::text(original, key));
    found.unwrap_or_default().to_owned()
}

fn block(block: &Map<String, Value>) -> String {
    let keys = ["entity_name", "description", "excerpt"];
    let lines: Vec<&str> = keys.iter().filter_map(|key| object::text(block, key)).collect();
    let lines: Vec<&str> = lines.into_iter().filter(|line| !line.is_empty()).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_words_of_every_kind_of_original_are_found() {
        for (original, want) in [
            (json!({"text": "as sent", "source_type": "chat"}), "as sent"),
            (
                json!({"type": "tool", "name": "X", "description": "A tool."}),
                "A tool.",
            ),
            (json!({"uuid": "u", "info": "An event"}), "An event"),
            (
                json!({"title": "t", "content_blocks": [
                    {"entity_name": "A", "description": "one", "excerpt": null},
                    {"entity_name": "B", "description": "", "excerpt": "two"}]}),
                "A\none\n\nB\ntwo",
            ),
            (json!({"type": "tool", "name": "X", "description": 5}), ""),
        ] {
            assert_eq!(text_of(original.as_object().unwrap()), want, "{original}");
        }
    }
}
