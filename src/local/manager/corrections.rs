//! Correcting the memory: notes that change, are replaced or go, entities that are one, and what happened when.

use std::net::IpAddr;

use tokio::sync::OwnedSemaphorePermit;
use uuid::Uuid;

use super::{HERE, MemoryError, MemoryManager};
use crate::actors::note_store::{
    ChangesSince, CorrectNote, DeleteNote, MergeEntities, NoteCorrection, NoteDeletion, ReadChanges,
    ReadVersions, SupersedeNote, UnmergeEntity,
};
use crate::actors::write_semaphore::TakePermit;
use crate::capacity::DiskRoom;
use crate::domain::error::DomainError;
use crate::domain::memory::change::ChangeKind;
use crate::domain::memory::view::EntityView;
use crate::store::{ChangePage, StoredVersion};

impl MemoryManager {
    /// Corrects a note; what is absent of the correction stays. What the note said before is kept as a version
    /// ([`MemoryManager::versions`]).
    ///
    /// ```
    /// use threat_memory::{MemoryManager, NoteCorrection};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let memory = MemoryManager::in_memory().await?;
    /// let told = memory.remember("Turla uses Snake.").await?;
    /// let content = Some("Turla uses Kazuar.".into());
    /// memory.correct_note(told.note_id, NoteCorrection { content, ..NoteCorrection::default() }).await?;
    ///
    /// assert_eq!(memory.note(told.note_id).await?.note.content, "Turla uses Kazuar.");
    /// assert_eq!(memory.versions(told.note_id).await?[0].version.content, "Turla uses Snake.");
    /// # memory.close().await;
    /// # Ok::<(), threat_memory::MemoryError>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// `NotFound` when there is no such note, `Invalid` when the content is refused, [`MemoryError::WriteCapacity`] when
    /// too many writes are in progress.
    pub async fn correct_note(&self, id: Uuid, correction: NoteCorrection) -> Result<(), MemoryError> {
        self.correct_note_for(id, correction, HERE).await
    }

    pub(crate) async fn correct_note_for(
        &self,
        id: Uuid,
        correction: NoteCorrection,
        from: IpAddr,
    ) -> Result<(), MemoryError> {
        self.require_room()?;
        let permit = self.write_permit().await?;
        let message = CorrectNote {
            id,
            correction,
            from,
            permit,
        };
        Ok(self.handles.notes.call(message).await?)
    }

    /// What a note said before its corrections, the first version first.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn versions(&self, id: Uuid) -> Result<Vec<StoredVersion>, MemoryError> {
        Ok(self.handles.notes.call(ReadVersions(id)).await?)
    }

    /// Replaces a note by another, as a near-duplicate does: recall finds the other one instead.
    ///
    /// # Errors
    /// `NotFound` when there is no such note, `Invalid` when the other one is the same or was superseded by it.
    pub async fn supersede_note(&self, id: Uuid, by: Uuid) -> Result<(), MemoryError> {
        self.supersede_note_for(id, by, HERE).await
    }

    pub(crate) async fn supersede_note_for(
        &self,
        id: Uuid,
        by: Uuid,
        from: IpAddr,
    ) -> Result<(), MemoryError> {
        self.require_room()?;
        let permit = self.write_permit().await?;
        let message = SupersedeNote { id, by, from, permit };
        Ok(self.handles.notes.call(message).await?)
    }

    /// Deletes a note, with the entities and relationships that it alone stated. With `erase` nothing of its text is left in
    /// any file when this returns; should the process die before, the next start goes on.
    ///
    /// # Errors
    /// `NotFound` when there is no such note.
    pub async fn delete_note(&self, id: Uuid, erase: bool) -> Result<NoteDeletion, MemoryError> {
        self.delete_note_for(id, erase, HERE).await
    }

    pub(crate) async fn delete_note_for(
        &self,
        id: Uuid,
        erase: bool,
        from: IpAddr,
    ) -> Result<NoteDeletion, MemoryError> {
        let permit = self.write_permit().await?;
        let message = DeleteNote {
            id,
            erase,
            from,
            permit,
        };
        Ok(self.handles.notes.call(message).await?)
    }

    /// Lets an entity stand for another one of its type: whatever is asked of either answers with what is known of both.
    /// Entities are named as in the graph, `type:value`. Returns the entity that stands for both.
    ///
    /// # Errors
    /// `NotFound` when there is no such entity; `Invalid` when the types differ, or both are one already.
    pub async fn merge_entities(&self, entity: &str, into: &str) -> Result<EntityView, MemoryError> {
        self.merge_entities_for(entity, into, HERE).await
    }

    pub(crate) async fn merge_entities_for(
        &self,
        entity: &str,
        into: &str,
        from: IpAddr,
    ) -> Result<EntityView, MemoryError> {
        self.require_room()?;
        let permit = self.write_permit().await?;
        let message = MergeEntities {
            entity: entity.to_owned(),
            into: into.to_owned(),
            from,
            permit,
        };
        Ok(self.handles.notes.call(message).await?)
    }

    /// Lets a merged entity stand for itself again, with everything that names it, before the merge and since.
    ///
    /// # Errors
    /// `NotFound` when there is no such entity, `Invalid` when it is not merged into another.
    pub async fn unmerge_entity(&self, entity: &str) -> Result<EntityView, MemoryError> {
        self.unmerge_entity_for(entity, HERE).await
    }

    pub(crate) async fn unmerge_entity_for(
        &self,
        entity: &str,
        from: IpAddr,
    ) -> Result<EntityView, MemoryError> {
        self.require_room()?;
        let permit = self.write_permit().await?;
        let message = UnmergeEntity {
            entity: entity.to_owned(),
            from,
            permit,
        };
        Ok(self.handles.notes.call(message).await?)
    }

    /// A page of what happened to notes and entities, in the order of the writes.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn changes(
        &self,
        since: ChangesSince,
        until: Option<chrono::DateTime<chrono::Utc>>,
        kind: Option<ChangeKind>,
        limit: usize,
    ) -> Result<ChangePage, MemoryError> {
        let message = ReadChanges {
            since,
            until,
            kind,
            limit,
        };
        Ok(self.handles.notes.call(message).await?)
    }

    /// Fails when the disk has less room than it must keep. What only removes needs none.
    pub(super) fn require_room(&self) -> Result<(), DomainError> {
        let settings = self.settings();
        DiskRoom::new(settings.data_dir(), settings.storage.min_free_mib).require()
    }

    async fn write_permit(&self) -> Result<Option<OwnedSemaphorePermit>, MemoryError> {
        let permit = self.handles.semaphore.call(TakePermit).await?;
        Ok(Some(permit.ok_or(MemoryError::WriteCapacity)?))
    }
}
