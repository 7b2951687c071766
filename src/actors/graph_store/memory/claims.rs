//! What a group of notes writes and builds on. Groups whose claims don't meet can be written at the same time, and one
//! may fail without the other.

use std::collections::HashSet;
use std::sync::Arc;

use super::evolution::NearDuplicates;
use super::prepare::PreparedNote;
use super::queue::PendingRequest;
use super::state::Memory;
use super::tuning::Tuning;
use super::wording::Wording;
use crate::store::relation_id;

/// What one group, or one request, writes and builds on.
#[derive(Default)]
pub(super) struct Claims {
    /// Ids and digests.
    things: HashSet<[u8; 16]>,
    wordings: Vec<Arc<Wording>>,
}

impl Claims {
    pub(super) fn of(memory: &Memory, request: &PendingRequest, known: &NearDuplicates) -> Self {
        let mut claims = Self::default();
        for note in request.notes.iter().flatten() {
            claims.claim(memory, note, known);
        }
        claims
    }

    /// Adds the note itself, its text, the stored note with the same text, the note it supersedes, and the entities and
    /// relationships that the graph does not have.
    fn claim(&mut self, memory: &Memory, new: &PreparedNote, known: &NearDuplicates) {
        let graph = memory.graph();
        let same = graph.duplicate_of(&new.digest);
        let notes = [Some(new.note.id), same, known.near_duplicate(new.note.id)];
        let mentions = &new.note.mentions;
        let entities = mentions.iter().filter(|entity| !graph.has_entity(**entity));
        let relations = new.mentions.relations.iter().filter_map(|relation| {
            let (source, target) = (mentions.get(relation.source)?, mentions.get(relation.target)?);
            let id = relation_id(memory.workspace, *source, &relation.relationship, *target);
            graph.relation(id).is_none().then_some(id)
        });
        let ids = notes
            .into_iter()
            .flatten()
            .chain(entities.copied())
            .chain(relations);
        self.things.extend(ids.map(|id| id.into_bytes()));
        self.things.insert(new.digest);
        self.wordings.push(Arc::clone(&new.wording));
    }

    /// Whether a newer group touches what these claims hold, or repeats one of their notes in nearly the same words.
    pub(super) fn meet(&self, newer: &Self, tuning: &Tuning) -> bool {
        let repeats = |new: &Arc<Wording>| self.wordings.iter().any(|old| new.repeats(old, tuning));
        !self.things.is_disjoint(&newer.things) || newer.wordings.iter().any(repeats)
    }

    pub(super) fn add(&mut self, more: Self) {
        self.things.extend(more.things);
        self.wordings.extend(more.wordings);
    }
}
