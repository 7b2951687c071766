//! Notes that a user deletes.

use std::net::IpAddr;
use std::sync::Arc;

use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;
use uuid::Uuid;

use super::core::NoteCore;
use super::correct::entry;
use super::documents;
use super::state::Memory;
use crate::actors::job::blocking;
use crate::actors::worker::{Access, Work};
use crate::domain::error::DomainError;
use crate::domain::memory::change::{ChangeKind, ErasedThings, MemoryChange};
use crate::domain::memory::digest;
use crate::domain::memory::entity::{EntityKey, mentions_in};
use crate::domain::memory::note::Note;
use crate::search::IndexDoc;
use crate::store::NotesWrite;

/// Deletes a note, with what it alone stated. The notes that it superseded stand again, or are superseded by its successor.
#[derive(Debug)]
pub struct DeleteNote {
    pub id: Uuid,
    /// Whether nothing of its text may be left in any file.
    pub erase: bool,
    pub from: IpAddr,
    pub permit: Option<OwnedSemaphorePermit>,
}

/// What became of the notes that a deleted note had superseded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoteDeletion {
    /// Those that are found again.
    pub restored: Vec<Uuid>,
}

impl Work for DeleteNote {
    type Core = NoteCore;
    type Reply = NoteDeletion;
    const NAME: &'static str = "delete_note";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) {}

    async fn run(self, core: Arc<NoteCore>) -> Result<Self::Reply, DomainError> {
        core.delete_note(self).await
    }
}

impl NoteCore {
    async fn delete_note(&self, message: DeleteNote) -> Result<NoteDeletion, DomainError> {
        let DeleteNote {
            id,
            erase,
            from,
            permit: _permit,
        } = message;
        let deleted = self.change(async move |core, memory, write, docs| {
            let note = core.stored_note(memory, id).await?;
            core.release(memory, write, &note, (&[], &[])).await?;
            let restored = core.restore_older(memory, (write, docs), &note).await?;
            write.removed.notes.push(id);
            docs.push(IndexDoc::removal(id, 0));
            if core.notes.store.is_waiting(memory.workspace, id).await? {
                write.enriched.push(id);
            }
            write
                .history
                .push(MemoryChange::of_note(ChangeKind::Deleted, id, "user"));
            let entry = entry(memory.workspace, from, "memory.delete", id);
            write.audit.push(entry.with("erased", erase));
            if erase {
                let gone = core.erased_with(memory, write, &note).await?;
                for change in &mut write.history {
                    change.erase(&gone);
                }
                write.rewritten = core.notes.store.changes_without(memory.workspace, &gone).await?;
                write.erased.push(id);
            }
            Ok(NoteDeletion { restored })
        });
        let deleted = deleted.await;
        match deleted {
            Ok(deleted) if erase => {
                self.finish_erasures().await?;
                Ok(deleted)
            }
            // The deletion was done, but what it left was not erased yet.
            Err(DomainError::NotFound(_)) if erase && self.is_unfinished(id).await? => {
                self.finish_erasures().await?;
                Ok(NoteDeletion { restored: Vec::new() })
            }
            other => other,
        }
    }

    /// The note, the entities that go with it, and those that went when it was corrected.
    async fn erased_with(
        &self,
        memory: &Memory,
        write: &NotesWrite,
        note: &Note,
    ) -> Result<ErasedThings, DomainError> {
        let versions = self.notes.store.note_versions(memory.workspace, note.id).await?;
        let texts = versions.into_iter().map(|stored| stored.version.content);
        let texts: Vec<String> = texts.chain([note.content.clone()]).collect();
        let keys = blocking(move || {
            let found = texts.iter().flat_map(|text| mentions_in(text).entities);
            Ok(found.map(|draft| draft.key).collect::<Vec<EntityKey>>())
        });
        let keys = keys.await?;
        let mut erased = ErasedThings::default();
        erased.ids.insert(note.id);
        let graph = memory.graph();
        for id in &write.removed.entities {
            if let Some(entity) = graph.own_entity(*id) {
                erased.add_entity(*id, &entity.draft.key);
            }
        }
        for key in keys {
            let id = memory.ids.entity(&key);
            if !graph.has_entity(id) {
                erased.add_entity(id, &key);
            }
        }
        Ok(erased)
    }

    /// The notes that a deleted note had superseded get its successor; without one they stand again.
    async fn restore_older(
        &self,
        memory: &Memory,
        (write, docs): (&mut NotesWrite, &mut Vec<IndexDoc>),
        deleted: &Note,
    ) -> Result<Vec<Uuid>, DomainError> {
        let older: Vec<Uuid> = {
            let graph = memory.graph();
            let slots = graph.older_than(deleted.id);
            slots.filter_map(|slot| Some(graph.note_in(slot)?.id)).collect()
        };
        let notes = self.notes.store.notes_by_id(memory.workspace, &older).await?;
        let mut restored = Vec::new();
        for mut note in notes {
            note.superseded_by = deleted.superseded_by;
            if note.superseded_by.is_none() {
                docs.push(documents::of_note(&note, 0));
                restored.push(note.id);
            }
            let change = MemoryChange::of_note(ChangeKind::Changed, note.id, "user");
            let before = json!({"superseded_by": deleted.id});
            let after = json!({"superseded_by": note.superseded_by});
            write.history.push(change.from_to(Some(before), Some(after)));
            let digest = digest::digest(&note.domain, &note.content);
            write.corrected.push((note, digest));
        }
        Ok(restored)
    }
}
