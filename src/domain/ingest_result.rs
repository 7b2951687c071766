//! What an ingest of any kind changed.

use serde::Serialize;
use utoipa::ToSchema;

/// Counts of what an ingest changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct IngestResult {
    pub nodes_created: u64,
    pub nodes_updated: u64,
    pub evidence_created: u64,
    pub edges_created: u64,
    pub edges_updated: u64,
    /// Objects withheld from export until one of their markings is defined; for the audit log.
    #[serde(skip)]
    pub held_back: u64,
}
