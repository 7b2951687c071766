//! What questions look up in the graph.

use chrono::{DateTime, Utc};

use super::{At, EntityState, MemoryGraph, NoteState, Slot};
use crate::store::StoredRelation;

impl MemoryGraph {
    pub(in crate::actors::note_store) fn relation_in(&self, slot: Slot) -> Option<&StoredRelation> {
        self.relations.get(slot.at())
    }

    /// The newest active notes that mention an entity and were created in a stretch of time.
    pub(in crate::actors::note_store) fn notes_about_in(
        &self,
        entity: Slot,
        since: Option<DateTime<Utc>>,
        until: Option<DateTime<Utc>>,
    ) -> impl Iterator<Item = &NoteState> {
        let all = self.entity_in(entity).map_or(&[][..], |entity| &entity.notes);
        self.active_in(all, since, until)
    }

    /// The newest active notes that were created in a stretch of time.
    pub(in crate::actors::note_store) fn notes_in(
        &self,
        since: Option<DateTime<Utc>>,
        until: Option<DateTime<Utc>>,
    ) -> impl Iterator<Item = &NoteState> {
        self.active_in(&self.order, since, until)
    }

    /// Of a list of notes, oldest first, the active ones of a stretch of time, newest first.
    fn active_in<'g>(
        &'g self,
        list: &'g [Slot],
        since: Option<DateTime<Utc>>,
        until: Option<DateTime<Utc>>,
    ) -> impl Iterator<Item = &'g NoteState> {
        let created = |slot: &Slot| self.note_in(*slot).map(|note| note.created_at);
        let first = since.map_or(0, |since| {
            list.partition_point(|slot| created(slot) < Some(since))
        });
        let behind = until.map_or(list.len(), |until| {
            list.partition_point(|slot| created(slot) <= Some(until))
        });
        let notes = list.get(first..behind.max(first)).unwrap_or_default();
        let states = notes.iter().rev().filter_map(|slot| self.note_in(*slot));
        states.filter(|note| note.is_active())
    }

    /// The entities of a type, with their slots, by their values.
    pub(in crate::actors::note_store) fn entities_of_type<'g>(
        &'g self,
        entity_type: &'g str,
    ) -> impl Iterator<Item = (Slot, &'g EntityState)> {
        let after = self.slots_from(entity_type, "");
        let entities = after.filter_map(|slot| Some((slot, self.entity_in(slot)?)));
        entities.take_while(move |(_, entity)| *entity.entity_type == *entity_type)
    }
}
