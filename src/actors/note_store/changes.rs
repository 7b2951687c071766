//! What one write changes in the graph.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::graph::{MemoryGraph, NoteState, Slot};
use crate::domain::memory::note;
use crate::domain::memory::tier::Tier;
use crate::store::{NoteHead, NotesWrite, StoredEntity, StoredRelation};

/// The changes of one revision; applying them twice changes nothing more.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Changes {
    /// The number of the write; 0 in all parts of a copy but its last.
    pub(super) rev: u64,
    pub(super) entities: Vec<StoredEntity>,
    pub(super) relations: Vec<StoredRelation>,
    pub(super) notes: Vec<NoteHead>,
    /// Notes with their new tier and confidence.
    pub(super) trust: Vec<(Uuid, Tier, f64)>,
    /// Notes with entities that they mention too.
    pub(super) mentions: Vec<(Uuid, Vec<Uuid>)>,
    /// Superseded notes with their successors.
    pub(super) superseded: Vec<(Uuid, Uuid)>,
}

impl Changes {
    /// The changes of a durable write.
    pub(super) fn of(rev: u64, write: NotesWrite) -> Self {
        let relations = write.relations.into_iter().chain(write.changed_relations);
        let heads = write.notes.into_iter().map(|(note, digest)| NoteHead {
            id: note.id,
            label: note::label(&note.content),
            tier: note.tier.parse().unwrap_or(Tier::C),
            domain: note.domain,
            confidence: note.confidence,
            digest,
            mentions: note.mentions,
            superseded_by: note.superseded_by,
            created_at: note.created_at,
        });
        let trust = write.repeated.iter();
        let trust = trust.map(|note| (note.id, note.tier.parse().unwrap_or(Tier::C), note.confidence));
        Self {
            rev,
            entities: write.entities.into_iter().chain(write.renamed_entities).collect(),
            relations: relations.map(without_proof).collect(),
            notes: heads.collect(),
            trust: trust.collect(),
            mentions: write.mentions,
            superseded: write.superseded,
        }
    }

    /// What rows say that were written after a revision, to a graph that shows everything up to it.
    pub(super) fn since(
        graph: &MemoryGraph,
        heads: Vec<NoteHead>,
        entities: Vec<StoredEntity>,
        relations: Vec<StoredRelation>,
    ) -> Self {
        let mut changes = Self {
            entities,
            relations: relations.into_iter().map(without_proof).collect(),
            ..Self::default()
        };
        for head in heads {
            if graph.note(head.id).is_none() {
                changes.notes.push(head);
                continue;
            }
            changes.trust.push((head.id, head.tier, head.confidence));
            changes.mentions.push((head.id, head.mentions));
            changes
                .superseded
                .extend(head.superseded_by.map(|by| (head.id, by)));
        }
        changes.notes.sort_by_key(|head| (head.created_at, head.id));
        changes
            .entities
            .sort_by_key(|entity| (entity.created_at, entity.id));
        changes
            .relations
            .sort_by_key(|relation| (relation.created_at, relation.id));
        changes
    }

    /// Number of things that change.
    pub(super) fn len(&self) -> usize {
        self.entities.len()
            + self.relations.len()
            + self.notes.len()
            + self.trust.len()
            + self.mentions.len()
            + self.superseded.len()
    }
}

/// Sentences are read from the database; in memory they would take more room than the graph.
pub(super) fn without_proof(relation: StoredRelation) -> StoredRelation {
    StoredRelation {
        proof: None,
        ..relation
    }
}

impl MemoryGraph {
    /// Applies the changes of a durable write.
    pub(super) fn apply(&mut self, changes: Changes) {
        let known = self.entities.len();
        self.apply_unindexed(changes);
        Slot::from(&self.entities, known).for_each(|slot| self.index_entity(slot));
    }

    /// Applies changes without indexing new entities by name and key.
    pub(super) fn apply_unindexed(&mut self, changes: Changes) {
        let Changes {
            rev: _,
            entities,
            relations,
            notes,
            trust,
            mentions,
            superseded,
        } = changes;
        entities.into_iter().for_each(|entity| self.add_entity(entity));
        relations
            .into_iter()
            .for_each(|relation| self.put_relation(relation));
        notes.into_iter().for_each(|note| self.add_note(note));
        for (note, tier, confidence) in trust {
            self.trust(note, tier, confidence);
        }
        for (note, mentions) in mentions {
            self.add_mentions(note, &mentions);
        }
        for (old, by) in superseded {
            self.supersede(old, by);
        }
    }

    /// A note in the form in which it is stored.
    pub(super) fn head(&self, note: &NoteState) -> NoteHead {
        NoteHead {
            id: note.id,
            label: note.label.to_string(),
            domain: note.domain.to_string(),
            tier: note.tier,
            confidence: note.confidence,
            digest: note.digest,
            mentions: self.mentioned_by(note).collect(),
            superseded_by: note.superseded_by,
            created_at: note.created_at,
        }
    }
}
