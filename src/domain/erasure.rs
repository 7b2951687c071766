//! Erasures: what was asked for, how far it is, and how much was removed where.
//!
//! Rule: an erasure is remembered by ids, counts and a digest of the ids. Ids are made with a secret of the installation
//! (`ids.rs`), so none of that tells what the erased things said.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;
use uuid::Uuid;

use super::node::wire_enum;

wire_enum! {
    /// What an erasure was asked for by.
    ErasureKind, "node_ids, evidence_ids, source" {
        Nodes = "node_ids",
        Evidence = "evidence_ids",
        Source = "source",
    }
}

wire_enum! {
    /// How far an erasure is: `done` once no row, index or file holds anything of it.
    ErasureStatus, "running, done" {
        Running = "running",
        Done = "done",
    }
}

/// How much an erasure has removed so far, of what its administrator may see.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RemovedCounts {
    /// Nodes, with their entries of the search index and their vectors.
    #[schema(example = 1)]
    pub nodes: u64,
    /// Relationships from or to them, and those that erased evidence alone states.
    #[schema(example = 3)]
    pub relationships: u64,
    /// Passages about them.
    #[schema(example = 2)]
    pub passages: u64,
    /// Evidence records that nothing else lists.
    #[schema(example = 1)]
    pub evidence: u64,
    /// Supporting STIX objects with the same ids.
    #[schema(example = 0)]
    pub supporting_objects: u64,
    /// Relationships that waited for their other end.
    #[schema(example = 0)]
    pub waiting_relationships: u64,
    /// Staging batches with their texts and entities.
    #[schema(example = 1)]
    pub staging_batches: u64,
    /// Items of threat-feed batches.
    #[schema(example = 0)]
    pub feed_items: u64,
    /// Merges with other nodes.
    #[schema(example = 0)]
    pub merges: u64,
    /// Recall sessions that lost ids.
    #[schema(example = 4)]
    pub sessions: u64,
    /// Changes in the list of changes.
    #[schema(example = 5)]
    pub changes: u64,
}

impl RemovedCounts {
    /// Adds what a further part has removed.
    pub fn add(&mut self, more: &Self) {
        self.nodes += more.nodes;
        self.relationships += more.relationships;
        self.passages += more.passages;
        self.evidence += more.evidence;
        self.supporting_objects += more.supporting_objects;
        self.waiting_relationships += more.waiting_relationships;
        self.staging_batches += more.staging_batches;
        self.feed_items += more.feed_items;
        self.merges += more.merges;
        self.sessions += more.sessions;
        self.changes += more.changes;
    }
}

/// An erasure, as its receipt shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Erasure {
    pub id: Uuid,
    pub what: ErasureKind,
    pub status: ErasureStatus,
    /// Number of nodes and evidence records that were asked for, or found.
    #[schema(example = 1)]
    pub asked: u64,
    /// SHA-256 of their ids, sorted, one a line; the audit log has the same.
    #[schema(example = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")]
    pub digest: String,
    /// The administrator.
    pub requested_by: Uuid,
    pub requested_at: DateTime<Utc>,
    /// When nothing was left in any file; null until then.
    #[schema(required)]
    pub finished_at: Option<DateTime<Utc>>,
    pub removed: RemovedCounts,
}

/// SHA-256 of ids, in order and one a line.
pub fn digest_of(ids: impl IntoIterator<Item = Uuid>) -> String {
    let mut ids: Vec<String> = ids.into_iter().map(|id| id.to_string()).collect();
    ids.sort_unstable();
    format!("sha256:{}", hex::encode(Sha256::digest(ids.join("\n"))))
}
