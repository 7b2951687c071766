//! Persistence in SurrealDB, the source of truth, behind small functions. No actors, no HTTP.
//!
//! Invariants: every statement that reads or writes tenant data filters by workspace; every write that can conflict
//! is retried with jitter within a budget; rows that belong together are written in one transaction.

mod archive;
mod audit;
mod check;
mod connection;
mod drafts;
mod feeds;
mod graph;
mod identity;
mod migrations;
mod notes;
mod open;
mod outbox;
mod retention;
mod rows;
mod staging;
mod stix;

#[cfg(test)]
pub(crate) mod tests;

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use tokio::sync::RwLock;
use uuid::Uuid;

pub use archive::{
    BackUp, BackUpError, RestoreError, RestoreSummary, Snapshot, StoreGuard, StoreTarget, restore,
};
pub use audit::AuditFilter;
use audit::Chain;
pub use audit::relink::RelinkReport;
use audit::reserve::AuditReserve;
pub use check::StoreReport;
use connection::database::{Database, WriteBreaker};
pub use connection::error::StoreError;
pub use connection::lease::Holder;
pub(crate) use connection::marker::StoreMarker;
use connection::temporary::TemporaryDir;
pub use drafts::{Corrections, DraftsIngestOutcome, DraftsWrite, EndedAttribute};
pub use feeds::batches::{INTERRUPTED, NewFeedBatch, PULL_SILENCE, PullStart, interrupted_entry};
pub use feeds::choice::{Choice, ChosenItem};
pub use feeds::commit::{Review, ReviewOutcome, ReviewedItem, StixOrigin};
pub use feeds::items::ItemDecision;
pub use feeds::staging::{PageWrite, ReceivedPage};
pub use feeds::waiting::ItemRenewal;
pub use feeds::{BlockedFeed, DELETED};
pub use graph::added::{AdditionsState, DatedAddition, LeavingRows, NamedRows};
pub use graph::change_log::{CLOCK_DIFFERENCE, ChangeAuthor, ChangePosition, ChangeReader, ChangeRow};
pub use graph::corrections::{CorrectedEdge, CorrectedNode, Corrector};
pub use graph::erasure::{ErasedPart, ErasedSubjects, ErasureJob, ErasurePart, NewErasure};
pub use graph::evidence_status::CorrectedEvidence;
pub use graph::exportable::{ExportableEdge, ExportableSupport, ObjectVersion};
pub use graph::journal::{Change, Changes};
pub use graph::links::Link;
pub use graph::merges::DistinctPair;
pub use graph::neighbours::{NeighbourQuery, Neighbours, Page};
pub use graph::nodes::{StoredNode, WithheldNode};
pub use graph::object_facts::StoredFacts;
pub use graph::passages::{StoredEdge, StoredPassage};
pub use graph::paths::{NodeOfType, StixFacts};
pub use graph::sessions::{EdgeRecord, SessionRecord, Withholding};
pub use graph::told::{EdgeOfChange, NodeOfChange};
pub use graph::write::{GraphWritten, RowIds};
pub use identity::{ApiKeyRecord, Oversight, UserChange, UserRecord, WorkspaceChange};
pub use notes::history::{ChangePage, NoteVersion, RewrittenChanges, StoredVersion, WantedChanges};
pub use notes::since::RowsAtRev;
pub use notes::write::{NotesWrite, RemovedIds, WriteSource};
pub use notes::{NoteHead, StoredEntity, StoredNote, StoredRelation};
pub(crate) use open::embedded_dir;
pub use open::{StorageMemory, StorageServer};
pub use outbox::{AfterFailure, ClaimedMail};
pub use staging::parts::{NewBatch, StagedText};
pub use staging::{BatchCommit, Chosen, Decided, Decision, EntityFilter, MAX_DECIDED};
pub use stix::NOT_NEWER;
pub use stix::held::HeldReport;
pub use stix::known_definitions::Definitions;
pub use stix::remarking::RemarkedObjects;
pub use stix::rises::RiseProgress;
pub use stix::waiting::WAITS;
pub use stix::{LeftOutReport, StixIngestOutcome};

use crate::domain::error::DomainError;
use crate::domain::ids::IdSecret;

/// The database as the service uses it: as a user without DDL rights.
#[derive(Debug)]
pub struct Store {
    db: Database,
    id_secret: Arc<IdSecret>,
    /// Each workspace's audit chain, as far as this process knows it.
    chains: Mutex<HashMap<Uuid, Chain>>,
    /// When the store was opened.
    opened: DateTime<Utc>,
    /// Takes the audit entries of reads when nothing else can be written.
    reserve: Option<Arc<AuditReserve>>,
    /// Recall sessions that could not be stored, newest last.
    unsaved: Mutex<VecDeque<(Uuid, SessionRecord)>>,
    /// Held by snapshots, which keep what is deleted after them; exclusively while files are rewritten.
    snapshots: Arc<RwLock<()>>,
    /// The files of an embedded store.
    dir: Option<PathBuf>,
    /// Dropped last: waits for the engine to close.
    temporary: Option<TemporaryDir>,
}

impl Store {
    /// Whether writes are accepted: after a disk failure, none are until the store is reopened.
    pub fn is_writable(&self) -> bool {
        !self.db.breaker().is_open()
    }

    /// Whether this store takes writes, for those who must not hold the store.
    pub fn health(&self) -> StoreHealth {
        StoreHealth(self.db.breaker().clone())
    }

    /// How many replies of an external database have been lost; the statements may have taken effect.
    pub fn losses(&self) -> u64 {
        self.db.losses()
    }
}

/// Whether a store takes writes.
#[derive(Debug, Clone)]
pub struct StoreHealth(WriteBreaker);

impl StoreHealth {
    /// Why writes are refused, if they are.
    pub fn write_refusal(&self) -> Option<DomainError> {
        self.0.is_open().then_some(DomainError::StorageFailed)
    }
}

/// Converts a database failure into the domain error; the cause goes to the log only.
fn failed(what: &'static str) -> impl Fn(surrealdb::Error) -> DomainError {
    move |error| {
        if connection::database::is_disk_failure(&error) {
            DomainError::StorageFailed
        } else if let Some(place) = connection::database::damaged_place(&error) {
            tracing::error!(place, what, "a part of the store is damaged; restore a back-up");
            DomainError::StorageDamaged { place }
        } else if connection::database::has_too_many_files(&error) {
            tracing::error!(%error, what, "too many files are open; raise the limit of open files");
            DomainError::Busy { actor: "storage" }
        } else if connection::pool::is_unreachable(&error) {
            tracing::warn!(%error, what);
            DomainError::StorageUnreachable
        } else if connection::retry::lost_race(&error) {
            DomainError::Busy { actor: "storage" }
        } else {
            connection::size::size_error(&error).unwrap_or_else(|| DomainError::internal(what, error))
        }
    }
}
