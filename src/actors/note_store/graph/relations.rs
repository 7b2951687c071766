//! The relationships between entities, each in the lists of both its ends.

use std::iter;

use uuid::Uuid;

use super::{At, MemoryGraph, Slot};
use crate::store::StoredRelation;

impl MemoryGraph {
    /// Adds a relationship, or updates the properties of a known one.
    pub(in crate::actors::note_store) fn put_relation(&mut self, relation: StoredRelation) {
        if let Some(slot) = self.relation_slot(relation.id) {
            if let Some(known) = self.relations.get_mut(slot.at()) {
                let shown = (known.source, known.target);
                *known = relation;
                (known.source, known.target) = shown;
            }
            return;
        }
        let relations = &self.relations;
        let id_of = |slot: Slot| relations.get(slot.at()).map(|relation| relation.id);
        let slot = Slot::after(&self.relations);
        self.relation_at.insert(&relation.id, slot, id_of);
        self.relations.push(relation);
        self.list_relation(slot);
    }

    /// Removes a relationship. One that was hidden behind it is shown.
    pub(in crate::actors::note_store) fn remove_relation(&mut self, id: Uuid) {
        let Some(slot) = self.relation_slot(id) else {
            return;
        };
        self.unlist_relation(slot);
        self.merges.forget_relation(slot);
        let relations = &self.relations;
        let id_of = |slot: Slot| relations.get(slot.at()).map(|relation| relation.id);
        self.relation_at.remove(&id, id_of);
        if let Some(removed) = self.relations.get_mut(slot.at()) {
            *removed = StoredRelation {
                id: Uuid::nil(),
                source: Uuid::nil(),
                target: Uuid::nil(),
                relationship: String::new(),
                properties: None,
                proof: None,
                note: None,
                ..*removed
            };
        }
        self.removed.relations += 1;
        for hidden in self.merges.hidden_relations() {
            self.list_relation(hidden);
        }
    }

    /// Lists a relationship at both ends, or at those that stand for them. It is hidden where it leads from a thing to itself
    /// only because of a merge, or where another already says the same.
    pub(super) fn list_relation(&mut self, slot: Slot) {
        let Some((source, target)) = self.own_ends(slot) else {
            return;
        };
        let shown = match self.merges.is_empty() {
            true => [source, target],
            false => [source, target].map(|end| self.shown_id(end)),
        };
        let is_double = !self.merges.is_empty() && self.is_said_already(slot, shown);
        let Some(relation) = self.relations.get_mut(slot.at()) else {
            return;
        };
        [relation.source, relation.target] = shown;
        self.merges.show_ends(slot, [source, target], shown);
        if is_double || (shown[0] == shown[1] && source != target) {
            self.merges.hide(slot);
            return;
        }
        self.merges.unhide(slot);
        for end in ends(shown) {
            let at = self.entity_slot(end);
            if let Some(entity) = at.and_then(|slot| self.entities.get_mut(slot.at())) {
                let newer = entity.relations.iter().rev().take_while(|known| **known > slot);
                let newer = newer.count();
                entity.relations.insert_before(newer, slot);
            }
        }
    }

    /// Takes a relationship out of the lists of its ends.
    pub(super) fn unlist_relation(&mut self, slot: Slot) {
        let Some(relation) = self.relations.get(slot.at()) else {
            return;
        };
        for end in ends([relation.source, relation.target]) {
            let at = self.entity_slot(end);
            if let Some(entity) = at.and_then(|slot| self.entities.get_mut(slot.at())) {
                entity.relations.remove(slot);
            }
        }
    }

    /// Whether another relationship that is shown has these ends and the same label.
    fn is_said_already(&self, slot: Slot, [source, target]: [Uuid; 2]) -> bool {
        let own = self.relations.get(slot.at());
        // It would be listed at both ends.
        let lists = [source, target].map(|end| self.entity(&end).map_or(&[][..], |entity| &entity.relations));
        let listed = lists
            .into_iter()
            .min_by_key(|list| list.len())
            .unwrap_or_default();
        let mut others = listed.iter().filter(|other| **other != slot);
        others.any(|other| {
            self.relations
                .get(other.at())
                .zip(own)
                .is_some_and(|(other, own)| {
                    other.source == source && other.target == target && other.relationship == own.relationship
                })
        })
    }

    /// The ends of a relationship as they are stored.
    fn own_ends(&self, slot: Slot) -> Option<(Uuid, Uuid)> {
        let relation = self.relations.get(slot.at())?;
        let stored = self.merges.own_ends(slot);
        Some(
            stored.map_or((relation.source, relation.target), |[source, target]| {
                (source, target)
            }),
        )
    }

    /// A relationship, with the entities that stand for its ends.
    pub(in crate::actors::note_store) fn relation(&self, id: Uuid) -> Option<&StoredRelation> {
        self.relations.get(self.relation_slot(id)?.at())
    }

    /// A relation between the entities that it was stated of, whatever they are merged into.
    pub(in crate::actors::note_store) fn own_relation(&self, id: Uuid) -> Option<StoredRelation> {
        let (source, target) = self.own_ends(self.relation_slot(id)?)?;
        Some(StoredRelation {
            source,
            target,
            ..self.relation(id)?.clone()
        })
    }

    pub(super) fn relation_slot(&self, id: Uuid) -> Option<Slot> {
        let id_of = |slot: Slot| self.relations.get(slot.at()).map(|relation| relation.id);
        self.relation_at.get(&id, id_of)
    }

    /// The relationships that are shown, oldest first.
    pub(in crate::actors::note_store) fn shown_relations(&self) -> impl Iterator<Item = &StoredRelation> {
        let all = Slot::from(&self.relations, 0).zip(&self.relations);
        all.filter(|(slot, relation)| !relation.id.is_nil() && !self.merges.is_hidden(*slot))
            .map(|(_, relation)| relation)
    }

    /// Number of relationships that are shown.
    pub(in crate::actors::note_store) fn relation_count(&self) -> usize {
        self.relations.len() - self.removed.relations - self.merges.hidden_relations().len()
    }

    /// Every relationship as it is stored, oldest first.
    pub(in crate::actors::note_store) fn own_relations(&self) -> impl Iterator<Item = StoredRelation> {
        let all = Slot::from(&self.relations, 0).zip(&self.relations);
        let present = all.filter(|(_, relation)| !relation.id.is_nil());
        present.filter_map(|(slot, relation)| {
            let (source, target) = self.own_ends(slot)?;
            Some(StoredRelation {
                source,
                target,
                ..relation.clone()
            })
        })
    }

    /// The relationships of an entity, and of those that it stands for, as they are stored.
    pub(in crate::actors::note_store) fn own_relations_of(&self, entity: Uuid) -> Vec<StoredRelation> {
        let listed = self.entity(&entity).map(|entity| entity.relations.to_vec());
        let mut slots = listed.unwrap_or_default();
        slots.extend(self.merges.hidden_relations());
        let of_it = slots.into_iter().filter_map(|slot| {
            let (source, target) = self.own_ends(slot)?;
            let is_its = source == entity || target == entity;
            is_its.then(|| {
                Some(StoredRelation {
                    source,
                    target,
                    ..self.relations.get(slot.at())?.clone()
                })
            })?
        });
        of_it.collect()
    }
}

/// A self-relation appears only once in its entity's list.
fn ends([source, target]: [Uuid; 2]) -> impl Iterator<Item = Uuid> {
    iter::once(source).chain((target != source).then_some(target))
}
