//! The graph types of the local API.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::domain::node::wire_enum;

/// Node type of notes in the graph.
pub const NOTE_TYPE: &str = "note";
/// Edge types: from a note to what it mentions, and from a note to the one it supersedes.
pub const MENTIONS: &str = "mentions";
pub const SUPERSEDES: &str = "supersedes";

/// A node of the graph: a note or an entity.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(example = json!({
    "id": "4c3f1a0e-66d1-5a0c-8a43-0b1c2d3e4f50", "label": "apt28", "type": "actor", "tier": "b",
    "aliases": ["fancy-bear"], "confidence": 1.0, "created_at": "2026-01-02T03:04:05.678901Z",
}))]
pub struct GraphNode {
    pub id: String,
    pub label: String,
    #[serde(rename = "type")]
    pub node_type: String,
    #[schema(required)]
    pub tier: Option<String>,
    pub aliases: Vec<String>,
    /// 0 to 1.
    #[schema(minimum = 0, maximum = 1)]
    pub confidence: f64,
    pub created_at: DateTime<Utc>,
}

/// An edge of the graph.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(example = json!({
    "id": "8f0e2b6a-1d47-5c7e-9a51-5d6c7b8a9f01", "source": "0197f3a0-5a58-7c11-8a55-0f6f3f4f6a10",
    "target": "4c3f1a0e-66d1-5a0c-8a43-0b1c2d3e4f50", "relationship": "mentions",
    "created_at": "2026-01-02T03:04:05.678901Z",
}))]
pub struct GraphEdge {
    pub id: Uuid,
    pub source: String,
    pub target: String,
    pub relationship: String,
    pub created_at: DateTime<Utc>,
}

/// One entity of the entity index.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(example = json!({
    "id": "4c3f1a0e-66d1-5a0c-8a43-0b1c2d3e4f50", "name": "apt28", "type": "actor", "aliases": ["fancy-bear"],
    "confidence": 1.0, "connected_count": 3, "entity_type": "actor", "entity_value": "apt28", "note_count": 2,
    "tier": "b",
}))]
pub struct EntityView {
    pub id: String,
    pub name: String,
    #[serde(rename = "type")]
    pub node_type: String,
    pub aliases: Vec<String>,
    /// 0 to 1.
    #[schema(minimum = 0, maximum = 1)]
    pub confidence: f64,
    /// Number of edges that start or end here.
    pub connected_count: usize,
    pub entity_type: String,
    pub entity_value: String,
    /// Number of notes that mention it, not counting superseded ones.
    pub note_count: usize,
    /// The best tier of those notes.
    #[schema(required)]
    pub tier: Option<String>,
    /// The ids of the entities that are merged into it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub merged: Vec<String>,
}

wire_enum! {
    /// What a list of entities is ordered by. Equal ones are ordered by type, then value.
    EntitySort, "name, type, notes, connections, tier" {
        Name = "name",
        Type = "type",
        Notes = "notes",
        Connections = "connections",
        Tier = "tier",
    }
}

wire_enum! {
    /// The direction of an order. The best tier comes first in ascending order.
    SortDirection, "asc, desc" {
        Ascending = "asc",
        Descending = "desc",
    }
}

/// A node with the number of its edges.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(example = json!({
    "id": "actor:apt28", "label": "apt28", "type": "actor", "tier": "b", "aliases": ["fancy-bear"], "confidence": 1.0,
    "created_at": "2026-01-02T03:04:05.678901Z", "degree": 3,
}))]
pub struct ConnectedNode {
    #[serde(flatten)]
    pub node: GraphNode,
    /// Number of edges that start or end here, in the whole graph.
    pub degree: usize,
}

/// A part of the graph.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct GraphView {
    pub nodes: Vec<ConnectedNode>,
    /// Edges between these nodes, at most 20,000.
    pub edges: Vec<GraphEdge>,
    /// Number of nodes in the whole graph.
    pub total_nodes: usize,
    /// Number of edges in the whole graph.
    pub total_edges: usize,
    /// Whether nodes that match, or edges between the nodes, were left out.
    pub truncated: bool,
}

/// A note in short.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(example = json!({
    "id": "0197f3a0-5a58-7c11-8a55-0f6f3f4f6a10", "context": "APT28 used X-Agent", "domain": "cti", "tier": "b",
    "confidence": 0.8, "created_at": "2026-01-02T03:04:05.678901Z",
}))]
pub struct NoteSummary {
    pub id: Uuid,
    /// The first sentence, at most 150 characters of it.
    pub context: String,
    pub domain: String,
    pub tier: String,
    /// 0 to 1.
    #[schema(minimum = 0, maximum = 1)]
    pub confidence: f64,
    pub created_at: DateTime<Utc>,
}

/// An edge of a node, with the node at its other end.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Neighbour {
    pub edge_id: Uuid,
    pub relationship: String,
    /// Whether the requested node is the source.
    pub outgoing: bool,
    pub node: GraphNode,
}

/// A node with a page of its notes and a page of its neighbours.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct NodeDetails {
    pub node: ConnectedNode,
    /// The notes that mention an entity, newest first, superseded ones excluded. None for a note.
    pub notes: Vec<NoteSummary>,
    pub total_notes: usize,
    /// The entities related to an entity. What a note mentions, the notes that it superseded and the one that superseded
    /// it.
    pub neighbours: Vec<Neighbour>,
    pub total_neighbours: usize,
}

/// Number of notes in one domain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(example = json!({"name": "cti", "notes": 42}))]
pub struct DomainCount {
    pub name: String,
    /// Superseded notes included.
    pub notes: usize,
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
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
