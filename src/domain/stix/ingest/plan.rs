//! What a bundle becomes: nodes, relationships, and objects that describe others.

use chrono::{DateTime, Utc};

use super::references;
use crate::domain::kinds::is_context_node;
use crate::domain::node::{NodeStatus, NodeType};
use crate::domain::stix::marking::{ConflictReport, SilentReport};
use crate::domain::stix::object::type_of_id;
use crate::domain::stix::skip_report::{SkipReport, SkippedSize, SkipsByMarking};
use crate::domain::tlp::Tlp;

/// A STIX object that becomes a node.
#[derive(Debug, Clone)]
pub struct StixNode {
    pub stix_id: String,
    pub modified: DateTime<Utc>,
    /// Whether it states no time of its own, as observables do: `modified` is when it came.
    pub undated: bool,
    pub node_type: NodeType,
    pub name: String,
    pub description: String,
    pub source: String,
    pub tlp: Tlp,
    /// The marking that the object itself states.
    pub stated: Option<Tlp>,
    /// What versions that came with it state, as far as it counts for this one. It raises a row and never lowers one.
    pub earlier: Option<Tlp>,
    pub confidence: f64,
    pub status: NodeStatus,
    /// JSON text, so that properties are parsed per node, not for the whole bundle at once.
    pub properties: String,
    /// The packed object.
    pub raw: Vec<u8>,
    /// Its undefined markings.
    pub held_by: Vec<String>,
    /// Its markings that others define, the undefined ones included.
    pub carried: Vec<String>,
}

/// A STIX relationship between two objects that become nodes.
#[derive(Debug, Clone)]
pub struct StixRelationship {
    pub stix_id: String,
    pub modified: DateTime<Utc>,
    pub relationship: String,
    pub source_ref: String,
    pub target_ref: String,
    pub tlp: Tlp,
    /// The marking that the object itself states.
    pub stated: Option<Tlp>,
    /// As of a node.
    pub earlier: Option<Tlp>,
    pub confidence: f64,
    pub active: bool,
    /// The packed object.
    pub raw: Vec<u8>,
    /// Its undefined markings.
    pub held_by: Vec<String>,
    /// Its markings that others define, the undefined ones included.
    pub carried: Vec<String>,
}

/// An object that describes others, or, where objects are reviewed, wrote them.
#[derive(Debug, Clone)]
pub struct StixSupport {
    pub stix_id: String,
    pub modified: DateTime<Utc>,
    /// Its marking; of a marking-definition, the level from which this bundle makes it known.
    pub tlp: Tlp,
    /// The level that it states, if it is a marking-definition with a level.
    pub states: Option<Tlp>,
    /// The packed object.
    pub raw: Vec<u8>,
    /// Its undefined markings; of a marking-definition that can't leave as it is, its own id.
    pub held_by: Vec<String>,
    /// As of a node.
    pub carried: Vec<String>,
}

/// The contents of a bundle, ready for the store.
#[derive(Debug, Clone)]
pub struct StixPlan {
    pub nodes: Vec<StixNode>,
    pub relationships: Vec<StixRelationship>,
    pub supporting: Vec<StixSupport>,
    pub skipped: SkipReport,
    /// The same by marking.
    pub skips: SkipsByMarking,
    /// Objects that say another level than their markings.
    pub conflicts: ConflictReport,
    /// Newer versions that state no marking.
    pub silent: SilentReport,
    /// The default marking, also needed for withheld objects that turn out to state none.
    pub default_tlp: Tlp,
}

impl StixNode {
    /// Whether it is a node beside those that an ingest counts.
    pub fn is_context(&self) -> bool {
        is_context_node(&self.stix_id)
    }
}

impl From<&StixNode> for StixSupport {
    /// The object as one that others refer to.
    fn from(node: &StixNode) -> Self {
        Self {
            stix_id: node.stix_id.clone(),
            modified: node.modified,
            tlp: node.tlp,
            states: None,
            raw: node.raw.clone(),
            held_by: node.held_by.clone(),
            carried: node.carried.clone(),
        }
    }
}

impl StixRelationship {
    /// Whether one of its ends is a node beside those that an ingest counts.
    pub fn is_context(&self) -> bool {
        is_context_node(&self.source_ref) || is_context_node(&self.target_ref)
    }

    /// Whether it stands in a property of its source and is no object itself.
    pub fn is_reference(&self) -> bool {
        self.stix_id.starts_with(references::PREFIX)
    }
}

impl StixPlan {
    /// The plan with what is reviewed: references are committed with the objects that they stand in, and authors also with
    /// what they wrote.
    pub fn into_reviewable(mut self) -> Self {
        let nodes = self.nodes.iter();
        let authors = nodes.filter(|node| type_of_id(&node.stix_id) == Some("identity"));
        self.supporting.extend(authors.map(StixSupport::from));
        self.relationships.retain(|edge| !edge.is_reference());
        self
    }

    pub(super) fn keep(&mut self, size: SkippedSize, kind: &str) {
        self.skipped.keep(kind);
        self.skips.keep(size, kind);
    }

    pub(super) fn skip(&mut self, size: SkippedSize, kind: &str, reason: &str) {
        self.skipped.count(kind, reason);
        self.skips.count(size, kind, reason);
    }

    pub(super) fn skip_invalid(&mut self, size: SkippedSize, kind: &str, id: &str, reason: String) {
        self.skipped.add_invalid(kind, id, reason.clone());
        self.skips.add_invalid(size, kind, id, reason);
    }
}
