//! Answers about the service.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use crate::domain::memory::view::TypeCount;
use crate::http::local::validate::Fields;

/// State of the service.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "status": "ok", "version": "2.8.0", "edition": "community", "edition_name": "Threat Memory Community",
    "storage_backend": "surrealkv", "embedding_provider": "builtin", "embedding_model": "minilm-static-256",
    "llm_provider": "none", "llm_model": "", "llm_local_backend": "", "enrichment_queue_depth": 0,
    "queue_status": "idle", "governance_enabled": true, "pii_enabled": false, "uptime_seconds": 12.5,
    "data_dir": "data/local", "graph_node_count": 40, "graph_edge_count": 61,
}))]
pub(super) struct Health<'a> {
    /// `ok`, or `degraded` while the storage refuses writes.
    pub status: &'static str,
    /// Version of the API.
    pub version: &'static str,
    pub edition: &'static str,
    pub edition_name: &'static str,
    /// `surrealkv`, `mem` or `surrealdb`.
    pub storage_backend: &'static str,
    pub embedding_provider: &'static str,
    pub embedding_model: &'a str,
    pub llm_provider: &'static str,
    pub llm_model: &'a str,
    pub llm_local_backend: &'a str,
    /// Notes that wait for the language model.
    pub enrichment_queue_depth: u64,
    /// `idle`, `processing`, `backing_off` or `paused`.
    pub queue_status: &'static str,
    pub governance_enabled: bool,
    pub pii_enabled: bool,
    #[schema(minimum = 0)]
    pub uptime_seconds: f64,
    /// Empty for an in-memory store.
    pub data_dir: String,
    pub graph_node_count: usize,
    pub graph_edge_count: usize,
}

/// Statistics of the memory.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "version": "2.8.0", "edition": "community", "edition_name": "Threat Memory Community", "total_notes": 12,
    "notes_created": 3, "retrievals": 7, "entity_index": {"actor": {"unique_entities": 2, "total_mappings": 5}},
}))]
pub(super) struct Stats {
    pub version: &'static str,
    pub edition: &'static str,
    pub edition_name: &'static str,
    pub total_notes: usize,
    /// Since the service started.
    pub notes_created: u64,
    /// Recalls and syntheses since the service started.
    pub retrievals: u64,
    /// Entities and mentions of each type.
    pub entity_index: BTreeMap<String, TypeCount>,
}

/// Counts of what is stored.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"total_notes": 12, "entity_count": 28, "graph_node_count": 40, "graph_edge_count": 61}))]
pub(super) struct Storage {
    pub total_notes: usize,
    pub entity_count: usize,
    pub graph_node_count: usize,
    pub graph_edge_count: usize,
}

/// The version, for the head of a page.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"version": "2.8.0", "notes": 12, "edition": "community"}))]
pub(super) struct Version {
    pub version: &'static str,
    /// Number of notes.
    pub notes: usize,
    pub edition: &'static str,
}

/// The edition and its features.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "edition": "community", "edition_name": "Threat Memory Community", "version": "2.8.0",
    "features": {"vector_search": true, "multi_tenant_auth": false},
}))]
pub(super) struct Edition {
    pub edition: &'static str,
    pub edition_name: &'static str,
    pub version: &'static str,
    /// Whether each feature is part of this edition.
    pub features: BTreeMap<&'static str, bool>,
}

/// Which entries of the telemetry are wanted.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http::local) struct HistoryQuery {
    /// Most entries in the answer.
    #[param(required = false)]
    pub limit: usize,
    /// Days to look back, today included.
    #[param(required = false)]
    pub days: usize,
}

impl HistoryQuery {
    pub fn read(fields: &mut Fields<'_>) -> Self {
        Self {
            limit: fields.number_or("limit", 100, 1, 500),
            days: fields.number_or("days", 5, 1, 30),
        }
    }
}

/// Which lines of the log are wanted.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http::local) struct LogsQuery {
    /// Most lines in the answer.
    #[param(required = false)]
    pub lines: usize,
    /// Only lines of this level, in any case: `trace`, `debug`, `info`, `warning` or `error`. Any other level has no
    /// lines.
    #[param(example = "info")]
    pub level: Option<String>,
}

impl LogsQuery {
    pub fn read(fields: &mut Fields<'_>) -> Self {
        Self {
            lines: fields.number_or("lines", 100, 1, 10_000),
            level: fields.optional_text("level", 20),
        }
    }
}
