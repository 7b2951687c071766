//! What is corrected or removed: it leaves every list and count. Its slot stays, empty, until the graph is read anew.

use uuid::Uuid;

use super::{At, EntityState, MemoryGraph, NoteState, Slot};
use crate::store::NoteHead;

impl EntityState {
    pub(super) fn is_removed(&self) -> bool {
        self.id.is_nil()
    }
}

impl MemoryGraph {
    /// Replaces what is known of a note.
    pub(super) fn replace_note(&mut self, slot: Slot, head: NoteHead) {
        if self
            .notes
            .get(slot.at())
            .is_some_and(|note| self.head(note) == head)
        {
            return;
        }
        self.unlist_note(slot);
        let state = self.state_of(slot, head);
        if let Some(note) = self.notes.get_mut(slot.at()) {
            *note = state;
        }
        self.list_note(slot);
    }

    /// Removes a note.
    pub(in crate::actors::note_store) fn remove_note(&mut self, id: Uuid) {
        let Some(slot) = self.note_slot(id) else {
            return;
        };
        self.unlist_note(slot);
        self.superseded.remove(&id);
        self.merges.forget_mentions(slot);
        let notes = &self.notes;
        let id_of = |slot: Slot| notes.get(slot.at()).map(|note| note.id);
        self.note_at.remove(&id, id_of);
        if let Some(note) = self.notes.get_mut(slot.at()) {
            note.id = Uuid::nil();
            note.label = Box::default();
            note.mentions = Box::default();
        }
        self.removed.notes += 1;
    }

    /// Takes a note out of every list and count.
    fn unlist_note(&mut self, slot: Slot) {
        let Some(note) = self.notes.get(slot.at()) else {
            return;
        };
        let (digest, tier, mentions) = (note.digest, note.tier, note.mentions.clone());
        let (domain, superseded_by) = (note.domain.clone(), note.superseded_by);
        let age = (note.created_at, note.id);
        let age_of = |slot: &Slot| self.note_in(*slot).map(|note| (note.created_at, note.id));
        let place = self.order.partition_point(|other| age_of(other) < Some(age));
        if self.order.get(place) == Some(&slot) {
            self.order.remove(place);
        }
        if let Some(count) = self.domains.get_mut(&domain) {
            *count -= 1;
            if *count == 0 {
                self.domains.remove(&domain);
            }
        }
        match superseded_by.map(|by| self.superseded.get_mut(&by)) {
            None => {
                self.forget_digest(digest, slot);
                self.recount(&mentions, tier, |count| count.saturating_sub(1));
            }
            Some(others) => {
                self.note_edges -= 1;
                others
                    .into_iter()
                    .for_each(|notes| notes.retain(|other| *other != slot));
            }
        }
        self.note_edges -= mentions.len();
        for mention in mentions {
            if let Some(entity) = self.entities.get_mut(mention.at()) {
                entity.notes.remove(slot);
            }
        }
    }

    /// Removes an entity that no note mentions, that no relationship leads to, and into which none is merged.
    pub(in crate::actors::note_store) fn remove_entity(&mut self, id: Uuid) {
        self.merge(id, None);
        let Some(slot) = self.own_slot(id) else {
            return;
        };
        self.sort_out(slot);
        let entities = &self.entities;
        let id_of = |slot: Slot| entities.get(slot.at()).map(|entity| entity.id);
        self.entity_at.remove(&id, id_of);
        if let Some(entity) = self.entities.get_mut(slot.at()) {
            entity.empty();
        }
        self.removed.entities += 1;
    }

    /// Notes in the order of their slots.
    pub(in crate::actors::note_store) fn present_notes(&self) -> impl Iterator<Item = &NoteState> {
        self.notes.iter().filter(|note| !note.id.is_nil())
    }

    /// Number of entities that stand for themselves.
    pub(in crate::actors::note_store) fn entity_count(&self) -> usize {
        self.entities.len() - self.removed.entities - self.merges.count()
    }

    /// The entities that stand for themselves, oldest first.
    pub(in crate::actors::note_store) fn standing_entities(
        &self,
    ) -> impl Iterator<Item = (Slot, &EntityState)> {
        let all = Slot::from(&self.entities, 0).zip(&self.entities);
        all.filter(|(slot, entity)| !entity.is_removed() && !self.merges.is_merged(*slot))
    }
}
