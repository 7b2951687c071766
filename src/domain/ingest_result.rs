//! What an ingest of any kind changed.

use serde::Serialize;
use utoipa::ToSchema;

/// STIX objects that are kept, found and related beside the nodes and edges that an ingest counts: reports, observables,
/// identities, sightings and whatever else there is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct KeptCounts {
    pub objects_created: u64,
    pub objects_updated: u64,
    /// Relationships of which one end at least is such an object.
    pub relationships_created: u64,
}

/// Counts of what an ingest changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct IngestResult {
    pub nodes_created: u64,
    pub nodes_updated: u64,
    pub evidence_created: u64,
    pub edges_created: u64,
    pub edges_updated: u64,
    /// What is kept beside them; only of STIX.
    #[serde(skip)]
    pub kept: KeptCounts,
    /// Objects withheld from export until one of their markings is defined; for the audit log.
    #[serde(skip)]
    pub held_back: u64,
}
