//! What one write changes in the graph.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::graph::{MemoryGraph, NoteState, Slot};
use crate::domain::memory::digest::Digest;
use crate::domain::memory::note::{self, Note};
use crate::domain::memory::tier::Tier;
use crate::store::{NoteHead, NotesWrite, RemovedIds, RowsAtRev, StoredEntity, StoredRelation};

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
    pub(super) removed: RemovedIds,
}

impl Changes {
    /// The changes of a durable write.
    pub(super) fn of(rev: u64, write: NotesWrite) -> Self {
        let relations = write.relations.into_iter().chain(write.changed_relations);
        let relations = relations.chain(write.restated);
        let notes = write.notes.into_iter().chain(write.corrected);
        let heads = notes.map(|(note, digest)| head_of(note, digest));
        let trust = write.repeated.iter();
        let trust = trust.map(|note| (note.id, note.tier.parse().unwrap_or(Tier::C), note.confidence));
        let entities = write.entities.into_iter().chain(write.renamed_entities);
        Self {
            rev,
            entities: entities.chain(write.merged).collect(),
            relations: relations.map(without_proof).collect(),
            notes: heads.collect(),
            trust: trust.collect(),
            mentions: write.mentions,
            superseded: write.superseded,
            removed: write.removed,
        }
    }

    /// What rows say that were written after a revision, to a graph that shows everything up to it.
    pub(super) fn since(
        graph: &MemoryGraph,
        heads: RowsAtRev<NoteHead>,
        entities: RowsAtRev<StoredEntity>,
        relations: Vec<StoredRelation>,
    ) -> Self {
        let known: HashSet<Uuid> = relations.iter().map(|relation| relation.id).collect();
        let written = entities
            .rows
            .iter()
            .map(|entity| entity.id)
            .chain(entities.gone.clone());
        let of_written = written.flat_map(|entity| {
            let own = graph.own_relations_of(entity).into_iter();
            own.filter(move |relation| relation.source == entity)
        });
        let gone = of_written
            .map(|relation| relation.id)
            .filter(|id| !known.contains(id));
        let mut changes = Self {
            removed: RemovedIds {
                notes: heads.gone,
                relations: gone.collect(),
                entities: entities.gone,
            },
            entities: entities.rows,
            relations: relations.into_iter().map(without_proof).collect(),
            notes: heads.rows,
            ..Self::default()
        };
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
            + self.removed.len()
    }
}

fn head_of(note: Note, digest: Digest) -> NoteHead {
    NoteHead {
        id: note.id,
        label: note::label(&note.content),
        tier: note.tier.parse().unwrap_or(Tier::C),
        domain: note.domain,
        confidence: note.confidence,
        digest,
        mentions: note.mentions,
        superseded_by: note.superseded_by,
        created_at: note.created_at,
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
            removed,
        } = changes;
        let merges = entities.iter().map(|entity| (entity.id, entity.merged_into));
        let merges: Vec<(Uuid, Option<Uuid>)> = merges.collect();
        entities.into_iter().for_each(|entity| self.add_entity(entity));
        for (entity, into) in merges {
            if into.is_some() || self.has_merges() {
                self.merge(entity, into);
            }
        }
        self.merge_early_ones();
        relations
            .into_iter()
            .for_each(|relation| self.put_relation(relation));
        notes.into_iter().for_each(|note| self.put_note(note));
        for (note, tier, confidence) in trust {
            self.trust(note, tier, confidence);
        }
        for (note, mentions) in mentions {
            self.add_mentions(note, &mentions);
        }
        for (old, by) in superseded {
            self.supersede(old, by);
        }
        removed.notes.into_iter().for_each(|note| self.remove_note(note));
        let relations = removed.relations.into_iter();
        relations.for_each(|relation| self.remove_relation(relation));
        let entities = removed.entities.into_iter();
        entities.for_each(|entity| self.remove_entity(entity));
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
            mentions: self.own_mentions_of(note),
            superseded_by: note.superseded_by,
            created_at: note.created_at,
        }
    }
}
