//! Persistence in SurrealDB, the source of truth, behind small functions. No actors, no HTTP.
//!
//! Invariants: every statement that reads or writes tenant data filters by workspace; every write that can conflict
//! is retried with jitter within a budget; rows that belong together are written in one transaction.

mod audit;
mod audit_migration;
mod audit_rows;
mod connect;
mod database;
mod demo;
mod drafts;
mod evidence;
mod feed_batches;
mod feed_choice;
mod feed_commit;
mod feed_items;
mod feed_memory;
mod feed_retention;
mod feed_rows;
mod feed_staging;
mod feed_waiting;
mod feeds;
mod id_secret;
mod identity;
mod lease;
mod linked_entries;
mod links;
mod marker;
mod migrate;
mod narrowing;
mod neighbours;
mod node_writes;
mod nodes;
mod notes;
mod notes_rows;
mod notes_since;
mod outbox;
mod pages;
mod passages;
mod paths;
mod pilot;
mod pool;
mod relink;
mod retention;
mod retry;
mod rows;
mod sessions;
mod size;
mod staging;
mod staging_commit;
mod staging_parts;
mod staging_rows;
mod stix;
mod stix_definitions;
mod stix_feeds;
mod stix_held;
mod stix_remarking;
mod stix_rises;
mod stix_rows;
mod stix_support;
mod temporary;
mod tx;
mod visibility;

#[cfg(test)]
pub(crate) mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use uuid::Uuid;

pub use audit::AuditFilter;
use audit::Chain;
pub(crate) use connect::embedded_dir;
pub use connect::{StorageMemory, StorageServer, StoreError};
use database::Database;
pub use drafts::{DraftsIngestOutcome, DraftsWrite};
pub use feed_batches::{INTERRUPTED, NewFeedBatch, PULL_SILENCE, PullStart, interrupted_entry};
pub use feed_choice::{Choice, ChosenItem};
pub use feed_commit::{Review, ReviewOutcome, ReviewedItem, StixOrigin};
pub use feed_items::ItemDecision;
pub use feed_staging::{PageWrite, ReceivedPage};
pub use feed_waiting::ItemRenewal;
pub use feeds::BlockedFeed;
pub use identity::{ApiKeyRecord, Oversight, UserChange, UserRecord, WorkspaceChange};
pub use lease::Holder;
pub use links::Link;
pub(crate) use marker::StoreMarker;
pub use neighbours::{NeighbourQuery, Neighbours, Page};
pub use node_writes::{Change, Changes};
pub use nodes::{StoredNode, WithheldNode};
pub use notes::{NoteHead, NotesWrite, StoredEntity, StoredNote, StoredRelation};
pub use notes_since::RowsAtRev;
pub use outbox::{AfterFailure, ClaimedMail};
pub use passages::{StoredEdge, StoredPassage};
pub use paths::{NodeOfType, StixFacts};
pub use relink::RelinkReport;
pub use sessions::{EdgeRecord, SessionRecord, Withholding};
pub use staging::{BatchCommit, Decision};
pub use staging_parts::{NewBatch, StagedText};
pub use stix::{IngestResult, LeftOutReport, RowIds, StixIngestOutcome, StixPart};
pub use stix_definitions::Definitions;
pub use stix_held::HeldReport;
pub use stix_remarking::RemarkedObjects;
pub use stix_rises::RiseProgress;
use temporary::TemporaryDir;

use crate::domain::error::DomainError;
use crate::domain::ids::IdSecret;

/// The database as the service uses it: as a user without DDL rights.
#[derive(Debug)]
pub struct Store {
    db: Database,
    clock: AtomicU64,
    id_secret: Arc<IdSecret>,
    /// Each workspace's audit chain, as far as this process knows it.
    chains: Mutex<HashMap<Uuid, Chain>>,
    /// When the store was opened.
    opened: DateTime<Utc>,
    /// Dropped last: waits for the engine to close.
    temporary: Option<TemporaryDir>,
}

impl Store {
    /// Records an existing revision: after the wall clock steps back, new revisions must still be higher.
    pub fn observe_rev(&self, rev: u64) {
        self.clock.fetch_max(rev, Ordering::AcqRel);
    }

    /// Whether writes are accepted: after a disk failure, none are until the store is reopened.
    pub fn is_writable(&self) -> bool {
        !self.db.breaker().is_open()
    }

    /// How many replies of an external database have been lost; the statements may have taken effect.
    pub fn losses(&self) -> u64 {
        self.db.losses()
    }

    /// The next value of the hybrid logical clock: microseconds since 1970, strictly increasing.
    pub fn next_rev(&self) -> u64 {
        let now = u64::try_from(crate::clock::now().timestamp_micros()).unwrap_or(0);
        let last = self
            .clock
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |last| {
                Some(now.max(last + 1))
            })
            .unwrap_or(now);
        now.max(last + 1)
    }
}

/// Converts a database failure into the domain error; the cause goes to the log only.
fn failed(what: &'static str) -> impl Fn(surrealdb::Error) -> DomainError {
    move |error| {
        if database::is_disk_failure(&error) {
            DomainError::StorageFailed
        } else if let Some(place) = database::damaged_place(&error) {
            tracing::error!(place, what, "a part of the store is damaged; restore a back-up");
            DomainError::StorageDamaged { place }
        } else if database::has_too_many_files(&error) {
            tracing::error!(%error, what, "too many files are open; raise the limit of open files");
            DomainError::Busy { actor: "storage" }
        } else if pool::is_unreachable(&error) {
            tracing::warn!(%error, what);
            DomainError::StorageUnreachable
        } else if retry::lost_race(&error) {
            DomainError::Busy { actor: "storage" }
        } else {
            size::size_error(&error).unwrap_or_else(|| DomainError::internal(what, error))
        }
    }
}
