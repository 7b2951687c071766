//! The graph types of the local API.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::Serialize;
use uuid::Uuid;

/// Node type of notes in the graph.
pub const NOTE_TYPE: &str = "note";
/// Edge types: from a note to what it mentions, and from a note to the one it supersedes.
pub const MENTIONS: &str = "mentions";
pub const SUPERSEDES: &str = "supersedes";

/// A node of the graph: a note or an entity.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GraphNode {
    pub id: String,
    pub label: String,
    #[serde(rename = "type")]
    pub node_type: String,
    pub tier: Option<String>,
    pub aliases: Vec<String>,
    /// 0 to 1.
    pub confidence: f64,
    pub created_at: DateTime<Utc>,
}

/// An edge of the graph.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GraphEdge {
    pub id: Uuid,
    pub source: String,
    pub target: String,
    pub relationship: String,
    pub created_at: DateTime<Utc>,
}

/// One entity of the entity index.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EntityView {
    pub id: String,
    pub name: String,
    #[serde(rename = "type")]
    pub node_type: String,
    pub aliases: Vec<String>,
    /// 0 to 1.
    pub confidence: f64,
    /// Number of edges that start or end here.
    pub connected_count: usize,
    pub entity_type: String,
    pub entity_value: String,
    /// Number of notes that mention it, not counting superseded ones.
    pub note_count: usize,
    /// The best tier of those notes.
    pub tier: Option<String>,
}

/// A relationship of an entity, with the entity at its other end.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EntityRelationship {
    pub relationship: String,
    /// Whether the requested entity is the source.
    pub outgoing: bool,
    pub properties: serde_json::Map<String, serde_json::Value>,
    pub node: EntityView,
}

/// The requested page of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    pub offset: usize,
    pub limit: usize,
}

/// Number of entities of one type, and of their mentions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct TypeCount {
    pub unique_entities: usize,
    /// Number of mentions by notes.
    pub total_mappings: usize,
}

/// Size of the memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryCounts {
    pub notes: usize,
    /// Since this process started.
    pub notes_created: u64,
    pub entities: usize,
    pub graph_nodes: usize,
    pub graph_edges: usize,
    /// Whether the storage accepts writes.
    pub is_writable: bool,
    pub by_type: BTreeMap<String, TypeCount>,
}
