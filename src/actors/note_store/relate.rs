//! Edges that are written directly, and notes that are read one by one.

use uuid::Uuid;

use super::{FoundNote, IngestRelationship, ReadNote};
use crate::actors::note_store::core::NoteCore;
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::error::DomainError;
use crate::domain::memory::entity::EntityDraft;
use crate::domain::why::MatchedBy;
use crate::store::{NotesWrite, StoredEntity, StoredRelation, WriteSource};

impl NoteCore {
    /// Writes one edge, and its two ends if they are new.
    pub(super) async fn ingest_relationship(&self, message: IngestRelationship) -> Result<Uuid, DomainError> {
        let memory = self.memory().await?;
        let ws = memory.workspace;
        let state = self.notes.state(ws);
        let turn = self.notes.turn(ws, &state).await?;
        memory.refresh(&self.notes.store, &turn).await?;
        let now = clock::now();
        let mut write = NotesWrite {
            source: WriteSource::Relationship,
            ..NotesWrite::default()
        };
        let mut end = |draft: EntityDraft| {
            let id = memory.ids.entity(&draft.key);
            let known = memory.graph().has_entity(id);
            if !known && !write.entities.iter().any(|entity| entity.id == id) {
                write.entities.push(StoredEntity {
                    id,
                    draft,
                    created_at: now,
                    merged_into: None,
                });
            }
            id
        };
        let (source, target) = (end(message.source), end(message.target));
        let id = memory.ids.relation(source, &message.relationship, target);
        let known = memory.graph().relation(id).cloned();
        let confidence = message
            .properties
            .get("confidence")
            .and_then(serde_json::Value::as_f64);
        let relation = StoredRelation {
            id,
            source,
            target,
            relationship: message.relationship,
            confidence: confidence.unwrap_or(1.0).clamp(0.0, 1.0),
            proof: None,
            note: known.as_ref().and_then(|known| known.note),
            properties: Some(message.properties),
            created_at: known.as_ref().map_or(now, |known| known.created_at),
        };
        if known.is_some() {
            write.changed_relations.push(relation);
        } else {
            write.relations.push(relation);
        }
        if (memory.tuning)().audited {
            let entry =
                AuditEntry::anonymous(ws, message.from, "memory.relate", "edge", Outcome::Success, now);
            write.audit.push(entry.on(id));
        }
        let (rev, entries) = self.write_memory(memory, &turn, write, Vec::new()).await?;
        turn.record_unindexed(rev);
        drop(turn);
        self.chain_all(ws, entries).await;
        Ok(id)
    }

    /// Reads one note in full.
    pub(super) async fn read_note(&self, message: ReadNote) -> Result<FoundNote, DomainError> {
        let memory = self.memory().await?;
        let mut found = self
            .notes
            .store
            .notes_by_id(memory.workspace, &[message.0])
            .await?;
        let note = found.pop().ok_or(DomainError::NotFound("note"))?;
        Ok(FoundNote {
            entities: memory.graph().values(&note.mentions),
            score: 1.0,
            matched: MatchedBy::Value,
            conflicts_with: Vec::new(),
            note,
            why: None,
        })
    }
}
