//! Nodes entered by an analyst.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::bounds::{LongText, NodeName};
use super::{IngestBody, ItemPlan, bounds, digest, json_text, marking_of, with_value};
use crate::domain::confidence::Confidence;
use crate::domain::draft::{Drafts, EvidenceDraft, ItemDefaults, NodeDraft, identity};
use crate::domain::error::DomainError;
use crate::domain::naming::identity_of;
use crate::domain::node::NodeType;
use crate::domain::or_default;
use crate::domain::tlp::{Tlp, TlpInput};

/// The request body of an analyst.
#[derive(Debug, Deserialize, ToSchema)]
pub struct AnalystEntries {
    #[schema(min_items = 1, max_items = 10000)]
    nodes: Vec<AnalystNode>,
    /// TLP:GREEN if absent. An entry whose text states a stricter marking takes that one.
    #[schema(value_type = Option<TlpInput>)]
    default_tlp: Option<Tlp>,
    /// 0.8 if absent.
    default_confidence: Option<Confidence>,
}

#[derive(Debug, Deserialize, ToSchema)]
pub struct AnalystNode {
    #[schema(value_type = NodeName)]
    name: String,
    node_type: NodeType,
    #[serde(default, deserialize_with = "or_default")]
    #[schema(value_type = Option<LongText>)]
    description: String,
    #[schema(value_type = Option<TlpInput>)]
    tlp: Option<Tlp>,
    confidence: Option<Confidence>,
    /// At most 64 KiB of JSON.
    #[serde(default, deserialize_with = "or_default")]
    #[schema(value_type = Option<Map<String, Value>>, example = json!({"sector": "energy"}))]
    properties: Map<String, Value>,
}

impl IngestBody for AnalystEntries {
    const ACTION: &'static str = "ingest.analyst";
    const ENTRIES: &'static str = "nodes";

    fn plan(mut self, by: &str, _: usize) -> Result<ItemPlan, DomainError> {
        bounds::entries(Self::ENTRIES, self.nodes.len())?;
        for (i, node) in self.nodes.iter_mut().enumerate() {
            bounds::name(&format!("nodes[{i}].name"), &node.name)?;
            bounds::text(&format!("nodes[{i}].description"), &*node.description)?;
            bounds::properties(&format!("nodes[{i}].properties"), &node.properties)?;
            node.name = node.name.trim().into();
        }
        let defaults = ItemDefaults::or(self.default_tlp, Tlp::Green, self.default_confidence, 0.8);
        Ok(drafts_of(by, &self.nodes, defaults).into())
    }
}

/// Drafts one node and one evidence record per entry; `by` is the analyst.
fn drafts_of(by: &str, nodes: &[AnalystNode], defaults: ItemDefaults) -> Drafts {
    let mut drafts = Drafts::default();
    for entry in nodes {
        let tlp = marking_of(entry.tlp, defaults.tlp, [&*entry.name, &*entry.description]);
        let (key, merge_by_name) = identity_of(entry.node_type, &entry.name);
        let raw = json_text(json!({
            "name": entry.name, "node_type": entry.node_type, "description": entry.description, "tlp": tlp,
            "confidence": entry.confidence, "properties": entry.properties, "analyst": by,
        }));
        let evidence = drafts.evidence.len();
        drafts.evidence.push(EvidenceDraft {
            identity: identity(["analyst", &key, &digest(&raw)]),
            kind: "analyst",
            ext_id: None,
            title: entry.name.clone(),
            source: by.into(),
            tlp,
            raw,
        });
        drafts.nodes.push(NodeDraft {
            identity: key,
            node_type: entry.node_type,
            name: entry.name.clone(),
            description: entry.description.clone(),
            source: by.into(),
            source_type: "analyst",
            tlp,
            confidence: entry.confidence.map_or(defaults.confidence, Confidence::value),
            properties: with_value(entry.node_type, &entry.name, entry.properties.clone()).into(),
            evidence: vec![evidence],
            merge_by_name,
        });
    }
    drafts
}
