//! The history of the memory, and what a note said before its corrections.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::core::NoteCore;
use crate::actors::worker::{Access, Work};
use crate::domain::error::DomainError;
use crate::domain::memory::change::{ChangeKind, ChangePlace, MemoryChange};
use crate::store::{ChangePage, StoredVersion, WantedChanges};

/// Where a page of the history begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangesSince {
    Beginning,
    /// With the first write at or after this time.
    Time(DateTime<Utc>),
    /// Behind the page that ended at this place.
    Place(ChangePlace),
}

/// Reads a page of the history, in the order of the writes.
#[derive(Debug)]
pub struct ReadChanges {
    pub since: ChangesSince,
    pub until: Option<DateTime<Utc>>,
    pub kind: Option<ChangeKind>,
    pub limit: usize,
}

impl Work for ReadChanges {
    type Core = NoteCore;
    type Reply = ChangePage;
    const NAME: &'static str = "read_changes";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) {}

    async fn run(self, core: Arc<NoteCore>) -> Result<Self::Reply, DomainError> {
        let (ws, store) = (core.memory().await?.workspace, &core.notes.store);
        let from = match self.since {
            ChangesSince::Beginning => ChangePlace::default(),
            ChangesSince::Place(place) => place,
            ChangesSince::Time(time) => store.place_of_time(ws, time).await?,
        };
        let kind = self.kind;
        let wanted = WantedChanges {
            from,
            until: self.until,
            limit: self.limit,
            is_wanted: move |change: &MemoryChange| kind.is_none_or(|kind| change.kind == kind),
        };
        store.note_changes(ws, wanted).await
    }
}

/// Reads what a note said before its corrections, the first version first.
#[derive(Debug)]
pub struct ReadVersions(pub Uuid);

impl Work for ReadVersions {
    type Core = NoteCore;
    type Reply = Vec<StoredVersion>;
    const NAME: &'static str = "read_versions";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) {}

    async fn run(self, core: Arc<NoteCore>) -> Result<Self::Reply, DomainError> {
        let ws = core.memory().await?.workspace;
        core.notes.store.note_versions(ws, self.0).await
    }
}
