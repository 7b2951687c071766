//! Entities that stand for others. A merge changes nothing of what is stored: the graph shows the notes and relationships of
//! all at the one that stands for them. So undoing it needs to know nothing but that it is undone.

use std::collections::{BTreeSet, HashMap, HashSet};

use uuid::Uuid;

use super::{At, EntityState, MemoryGraph, NoteState, Slot, is_called_by_name};
use crate::domain::memory::entity::EntityKey;
use crate::search::canonical_key;
use crate::store::StoredEntity;

/// The merges, and what is stored in another way than it is shown. Without merges all of it is empty.
#[derive(Debug, Default)]
pub(super) struct Merges {
    /// Merged entities with those that they were merged into.
    into: HashMap<Slot, Slot>,
    /// The entities of all merges as they are stored.
    stored: HashMap<Slot, StoredEntity>,
    /// What notes mention, where others stand for some of it.
    mentions: HashMap<Slot, Vec<Uuid>>,
    /// The ends of relationships, where others stand for them.
    ends: HashMap<Slot, [Uuid; 2]>,
    /// Relationships that others say, too, since a merge.
    hidden: BTreeSet<Slot>,
    /// Merges into entities that are not known yet.
    early: Vec<(Uuid, Uuid)>,
}

impl Merges {
    pub(super) fn is_empty(&self) -> bool {
        self.into.is_empty()
    }

    pub(super) fn count(&self) -> usize {
        self.into.len()
    }

    pub(super) fn is_merged(&self, entity: Slot) -> bool {
        !self.into.is_empty() && self.into.contains_key(&entity)
    }

    /// Whether it is merged, or others are merged into it.
    pub(super) fn involve(&self, entity: Slot) -> bool {
        !self.stored.is_empty() && self.stored.contains_key(&entity)
    }

    /// The entity that stands for this one; itself, if none does.
    pub(super) fn standing(&self, entity: Slot) -> Slot {
        let mut at = entity;
        for _ in 0..self.into.len() {
            match self.into.get(&at) {
                Some(into) => at = *into,
                None => break,
            }
        }
        at
    }

    pub(super) fn own_ends(&self, relation: Slot) -> Option<[Uuid; 2]> {
        self.ends.get(&relation).copied()
    }

    pub(super) fn show_ends(&mut self, relation: Slot, own: [Uuid; 2], shown: [Uuid; 2]) {
        if own == shown {
            self.ends.remove(&relation);
        } else {
            self.ends.insert(relation, own);
        }
    }

    pub(super) fn hide(&mut self, relation: Slot) {
        self.hidden.insert(relation);
    }

    pub(super) fn unhide(&mut self, relation: Slot) {
        self.hidden.remove(&relation);
    }

    pub(super) fn is_hidden(&self, relation: Slot) -> bool {
        self.hidden.contains(&relation)
    }

    /// Oldest first.
    pub(super) fn hidden_relations(&self) -> Vec<Slot> {
        self.hidden.iter().copied().collect()
    }

    pub(super) fn forget_relation(&mut self, relation: Slot) {
        self.ends.remove(&relation);
        self.hidden.remove(&relation);
    }

    pub(super) fn forget_mentions(&mut self, note: Slot) {
        self.mentions.remove(&note);
    }

    /// The entities merged into this one, directly or through others.
    fn merged_into(&self, standing: Slot) -> Vec<Slot> {
        let merged = self.into.keys().copied();
        let mut all: Vec<Slot> = merged.filter(|slot| self.standing(*slot) == standing).collect();
        all.sort_unstable();
        all
    }
}

impl MemoryGraph {
    /// Merges an entity into another, or undoes that. Into one that is not known yet it is merged as soon as it is.
    pub(in crate::actors::note_store) fn merge(&mut self, entity: Uuid, into: Option<Uuid>) {
        let Some(slot) = self.own_slot(entity) else {
            return;
        };
        let wanted = into.and_then(|id| self.own_slot(id));
        if let Some(into) = into.filter(|_| wanted.is_none()) {
            self.merges.early.push((entity, into));
        }
        if self.merges.into.get(&slot).copied() == wanted {
            return;
        }
        let before: BTreeSet<Slot> = [Some(slot), wanted]
            .into_iter()
            .flatten()
            .map(|slot| self.merges.standing(slot))
            .collect();
        let (notes, relations) = self.take_lists(&before);
        for involved in [Some(slot), wanted].into_iter().flatten() {
            if !self.merges.involve(involved)
                && let Some(stored) = self.entity_in(involved).map(EntityState::stored)
            {
                self.merges.stored.insert(involved, stored);
            }
        }
        if let Some(into) = wanted {
            self.sort_out(slot);
            self.merges.into.insert(slot, into);
        } else {
            self.merges.into.remove(&slot);
            self.sort_in(slot);
        }
        let after: HashSet<Slot> = before.into_iter().chain([slot]).collect();
        after.iter().for_each(|slot| self.show_names(*slot));
        relations.into_iter().for_each(|slot| self.list_relation(slot));
        self.list_notes_again(&notes, &after);
    }

    pub(in crate::actors::note_store) fn has_merges(&self) -> bool {
        !self.merges.is_empty()
    }

    /// Merges what had to wait for the other entity.
    pub(in crate::actors::note_store) fn merge_early_ones(&mut self) {
        for (entity, into) in std::mem::take(&mut self.merges.early) {
            self.merge(entity, Some(into));
        }
    }

    /// Empties the lists of entities; returns their notes and relationships, with those that are hidden, oldest first.
    fn take_lists(&mut self, entities: &BTreeSet<Slot>) -> (Vec<Slot>, Vec<Slot>) {
        let mut relations: BTreeSet<Slot> = self.merges.hidden.clone();
        let mut notes: BTreeSet<Slot> = BTreeSet::new();
        for slot in entities {
            let listed = self.entity_in(*slot);
            relations.extend(listed.into_iter().flat_map(|entity| entity.relations.iter()));
            notes.extend(listed.into_iter().flat_map(|entity| entity.notes.iter()));
        }
        relations.iter().for_each(|slot| self.unlist_relation(*slot));
        for slot in entities {
            if let Some(entity) = self.entities.get_mut(slot.at()) {
                entity.clear();
            }
        }
        let age = |slot: &Slot| self.note_in(*slot).map(|note| (note.created_at, note.id));
        let mut notes: Vec<Slot> = notes.into_iter().collect();
        notes.sort_by_key(age);
        (notes, relations.into_iter().collect())
    }

    /// Lists notes, oldest first, at those of these entities that they mention now.
    fn list_notes_again(&mut self, notes: &[Slot], entities: &HashSet<Slot>) {
        for slot in notes {
            let own: Vec<Uuid> = self.own_mentions(*slot).collect();
            let shown = self.shown_mentions(*slot, &own);
            let Some(note) = self.notes.get_mut(slot.at()) else {
                continue;
            };
            let (active, tier) = (note.is_active(), note.tier);
            self.note_edges = self.note_edges + shown.len() - note.mentions.len();
            note.mentions.clone_from(&shown);
            let listed: Vec<Slot> = shown.into_iter().filter(|slot| entities.contains(slot)).collect();
            for mention in &listed {
                if let Some(entity) = self.entities.get_mut(mention.at()) {
                    entity.notes.push(*slot);
                }
            }
            if active {
                self.recount(&listed, tier, |count| count + 1);
            }
        }
    }

    /// Shows an entity under its own names and those of what it stands for.
    fn show_names(&mut self, slot: Slot) {
        let members = match self.merges.is_merged(slot) {
            true => Vec::new(),
            false => self.merges.merged_into(slot),
        };
        let Some(own) = self.merges.stored.get(&slot) else {
            return;
        };
        let name = own.draft.name.clone();
        let mut aliases = own.draft.aliases.clone();
        let mut known: HashSet<String> = aliases.iter().chain([&name]).cloned().collect();
        for draft in members.iter().filter_map(|slot| self.merges.stored.get(slot)) {
            let draft = &draft.draft;
            for alias in [&draft.name, &draft.key.value].into_iter().chain(&draft.aliases) {
                if known.insert(alias.clone()) {
                    aliases.push(alias.clone());
                }
            }
        }
        let Some(entity) = self.entities.get_mut(slot.at()) else {
            return;
        };
        entity.show_names(&name, aliases);
        let in_texts = is_called_by_name(entity);
        for name in entity.all_names() {
            self.by_name.add(&canonical_key(name), slot, in_texts);
        }
        if members.is_empty() && !self.merges.is_merged(slot) {
            self.merges.stored.remove(&slot);
        }
    }

    /// Adds aliases to an entity of a merge.
    pub(super) fn add_own_aliases(&mut self, slot: Slot, aliases: &[String]) {
        if let Some(stored) = self.merges.stored.get_mut(&slot) {
            let draft = &mut stored.draft;
            for alias in aliases {
                if *alias != draft.name && !draft.aliases.contains(alias) {
                    draft.aliases.push(alias.clone());
                }
            }
        }
        self.show_names(slot);
        self.show_names(self.merges.standing(slot));
    }

    /// What a note shows as mentioned: each entity, or the one that stands for it, once.
    pub(super) fn shown_mentions(&mut self, note: Slot, own: &[Uuid]) -> Box<[Slot]> {
        let slots: Vec<Slot> = own.iter().filter_map(|id| self.own_slot(*id)).collect();
        if self.merges.is_empty() {
            self.merges.mentions.remove(&note);
            return slots.into_boxed_slice();
        }
        let mut shown: Vec<Slot> = Vec::with_capacity(slots.len());
        for slot in &slots {
            let standing = self.merges.standing(*slot);
            if !shown.contains(&standing) {
                shown.push(standing);
            }
        }
        if shown == slots {
            self.merges.mentions.remove(&note);
        } else {
            self.merges.mentions.insert(note, own.to_vec());
        }
        shown.into_boxed_slice()
    }

    /// The ids of the entities that a note mentions, as they are stored.
    pub(in crate::actors::note_store) fn own_mentions(
        &self,
        note: Slot,
    ) -> impl Iterator<Item = Uuid> + use<> {
        let stored = self.merges.mentions.get(&note).cloned();
        let shown = || {
            let note = self.note_in(note);
            let slots = note.into_iter().flat_map(|note| note.mentions.iter());
            let ids = slots.filter_map(|slot| self.entity_in(*slot).map(|entity| entity.id));
            ids.collect()
        };
        stored.unwrap_or_else(shown).into_iter()
    }

    pub(in crate::actors::note_store) fn own_mentions_of(&self, note: &NoteState) -> Vec<Uuid> {
        match self.note_slot(note.id).filter(|_| !self.merges.is_empty()) {
            Some(slot) => self.own_mentions(slot).collect(),
            None => self.mentioned_by(note).collect(),
        }
    }

    /// The entity with this id as it is stored.
    pub(in crate::actors::note_store) fn own_entity(&self, id: Uuid) -> Option<StoredEntity> {
        self.stored_in(self.own_slot(id)?)
    }

    fn stored_in(&self, slot: Slot) -> Option<StoredEntity> {
        let stored = self.merges.stored.get(&slot).cloned();
        let mut stored = stored.or_else(|| self.entity_in(slot).map(EntityState::stored))?;
        let into = self.merges.into.get(&slot);
        stored.merged_into = into.and_then(|into| self.entity_in(*into)).map(|into| into.id);
        Some(stored)
    }

    /// Every entity as it is stored, oldest first.
    pub(in crate::actors::note_store) fn own_entities(&self) -> impl Iterator<Item = StoredEntity> {
        let all = Slot::from(&self.entities, 0).zip(&self.entities);
        let present = all.filter(|(_, entity)| !entity.is_removed());
        present.filter_map(|(slot, _)| self.stored_in(slot))
    }

    /// The entities with a name, alias or value of this canonical form of their own, as they are stored.
    pub(in crate::actors::note_store) fn own_entities_named(&self, key: &str) -> Vec<StoredEntity> {
        let entities = self.by_name.maybe(key).into_iter().filter_map(|slot| {
            let entity = self.entity_in(slot)?;
            if !self.merges.involve(slot) && !self.is_named(slot, key) {
                return None;
            }
            Some(entity).filter(|entity| !entity.is_removed())?;
            self.stored_in(slot)
        });
        let is_named = |entity: &StoredEntity| {
            let draft = &entity.draft;
            let mut names = [&draft.key.value, &draft.name].into_iter().chain(&draft.aliases);
            names.any(|name| canonical_key(name) == key)
        };
        entities.filter(is_named).collect()
    }

    /// The entity that stands for the one with this id: its id.
    pub(super) fn shown_id(&self, id: Uuid) -> Uuid {
        self.entity(&id).map_or(id, |entity| entity.id)
    }

    /// The entity that stands for the one with this key, if another does.
    pub(super) fn standing_for(&self, key: &EntityKey) -> Option<&EntityState> {
        let mut merged = self.merges.into.keys();
        let slot = merged.find(|slot| {
            self.entity_in(**slot)
                .is_some_and(|entity| *entity.entity_type == *key.entity_type && *entity.value == *key.value)
        })?;
        self.entity_in(self.merges.standing(*slot))
    }

    /// The values of the merged entities of a type, with the entities that stand for them.
    pub(in crate::actors::note_store) fn merged_of_type(
        &self,
        entity_type: &str,
    ) -> impl Iterator<Item = (&str, &EntityState)> {
        self.merges.into.keys().filter_map(move |slot| {
            let entity = self.entity_in(*slot)?;
            let standing = self.entity_in(self.merges.standing(*slot))?;
            (*entity.entity_type == *entity_type).then_some((&*entity.value, standing))
        })
    }

    /// The entity with the id that clients see, as it is stored: `type:value` in any spelling.
    pub(in crate::actors::note_store) fn own_entity_of(&self, id: &str) -> Option<StoredEntity> {
        let (entity_type, value) = id.split_once(':')?;
        let exact = EntityKey {
            entity_type: entity_type.to_owned(),
            value: value.to_owned(),
        };
        let canonical = EntityKey::new(entity_type, value).ok();
        [Some(exact), canonical].into_iter().flatten().find_map(|key| {
            let mut merged = self.merges.stored.iter();
            let of_merge = merged.find(|(_, entity)| entity.draft.key == key);
            match of_merge {
                Some((slot, _)) => self.stored_in(*slot),
                None => self.own_entity(self.with_key(&key)?.id),
            }
        })
    }

    /// The ids, as clients see them, of the entities that are merged into this one itself.
    pub(in crate::actors::note_store) fn merged_into(&self, id: Uuid) -> Vec<String> {
        if self.merges.is_empty() {
            return Vec::new();
        }
        let into = self.own_slot(id);
        let merged = self.merges.into.iter().filter(|(_, at)| Some(**at) == into);
        let entities = merged.filter_map(|(slot, _)| self.entity_in(*slot));
        let mut ids: Vec<String> = entities.map(EntityState::public_id).collect();
        ids.sort_unstable();
        ids
    }

    /// Whether others are merged into the entity with this id.
    pub(in crate::actors::note_store) fn is_merged_into(&self, id: Uuid) -> bool {
        let slot = self.own_slot(id);
        slot.is_some_and(|slot| self.merges.into.values().any(|into| *into == slot))
    }
}
