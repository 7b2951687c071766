//! The graph in memory: which note mentions what, and what is related to what.
//!
//! Derived from the database and rebuilt at every start; a write is added right after it is durable. It answers
//! the lists and counts of the local API and says where a question's entities are mentioned.

use std::collections::{BTreeMap, HashMap};

use uuid::Uuid;

use crate::domain::memory::entity::EntityKey;
use crate::search::canonical_key;
use crate::store::{NoteHead, StoredEntity, StoredRelation};

/// Place of an entity or a relationship in its list; neither is ever taken out.
type Slot = usize;

/// An entity with what is connected to it.
#[derive(Debug)]
pub(super) struct EntityState {
    pub(super) stored: StoredEntity,
    /// The notes that mention it, oldest first, superseded ones included.
    pub(super) notes: Vec<Uuid>,
    pub(super) relations: Vec<Slot>,
}

/// The graph; see the module.
#[derive(Debug, Default)]
pub(super) struct MemoryGraph {
    pub(super) entities: Vec<EntityState>,
    pub(super) entity_at: HashMap<Uuid, Slot>,
    pub(super) by_key: BTreeMap<EntityKey, Slot>,
    /// Canonical names, aliases and values.
    pub(super) by_name: HashMap<String, Vec<Slot>>,
    pub(super) notes: HashMap<Uuid, NoteHead>,
    /// Note ids, oldest first.
    pub(super) order: Vec<Uuid>,
    /// Active notes by the digest of domain and content.
    pub(super) digests: HashMap<String, Uuid>,
    pub(super) relations: Vec<StoredRelation>,
    pub(super) relation_at: HashMap<Uuid, Slot>,
    /// Edges from notes: mentions and supersessions.
    pub(super) note_edges: usize,
}

/// Which entities a list shall hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EntityFilter {
    pub entity_type: Option<String>,
    pub tier: Option<String>,
    /// Part of the value, the name or an alias, in any case.
    pub part: Option<String>,
}

impl MemoryGraph {
    /// The graph of what is stored.
    pub(super) fn of(
        mut heads: Vec<NoteHead>,
        mut entities: Vec<StoredEntity>,
        mut relations: Vec<StoredRelation>,
    ) -> Self {
        let mut graph = Self::default();
        entities.sort_by_key(|entity| (entity.created_at, entity.id));
        relations.sort_by_key(|relation| (relation.created_at, relation.id));
        heads.sort_by_key(|head| (head.created_at, head.id));
        entities.into_iter().for_each(|entity| graph.add_entity(entity));
        relations
            .into_iter()
            .for_each(|relation| graph.put_relation(relation));
        heads.into_iter().for_each(|head| graph.add_note(head));
        graph
    }

    pub(super) fn add_entity(&mut self, entity: StoredEntity) {
        if self.entity_at.contains_key(&entity.id) {
            return;
        }
        let slot = self.entities.len();
        self.entity_at.insert(entity.id, slot);
        let draft = &entity.draft;
        let names = [&draft.key.value, &draft.name].into_iter().chain(&draft.aliases);
        for name in names
            .map(|name| canonical_key(name))
            .filter(|name| !name.is_empty())
        {
            let slots = self.by_name.entry(name).or_default();
            if !slots.contains(&slot) {
                slots.push(slot);
            }
        }
        self.by_key.insert(draft.key.clone(), slot);
        self.entities.push(EntityState {
            stored: entity,
            notes: Vec::new(),
            relations: Vec::new(),
        });
    }

    pub(super) fn add_note(&mut self, head: NoteHead) {
        if self.notes.contains_key(&head.id) {
            return;
        }
        self.link(head.id, &head.mentions);
        if head.superseded_by.is_none() {
            self.digests.insert(head.digest.clone(), head.id);
        } else {
            self.note_edges += 1;
        }
        self.order.push(head.id);
        self.notes.insert(head.id, head);
    }

    fn link(&mut self, note: Uuid, mentions: &[Uuid]) {
        self.note_edges += mentions.len();
        for mention in mentions {
            let slot = self.entity_at.get(mention).copied();
            if let Some(entity) = slot.and_then(|slot| self.entities.get_mut(slot)) {
                entity.notes.push(note);
            }
        }
    }

    /// Adds what a note mentions besides.
    pub(super) fn add_mentions(&mut self, note: Uuid, more: &[Uuid]) {
        let Some(head) = self.notes.get_mut(&note) else {
            return;
        };
        let new: Vec<Uuid> = more
            .iter()
            .copied()
            .filter(|id| !head.mentions.contains(id))
            .collect();
        head.mentions.extend(&new);
        self.link(note, &new);
    }

    /// Adds a relationship, or gives a known one its new properties.
    pub(super) fn put_relation(&mut self, relation: StoredRelation) {
        if let Some(known) = self
            .relation_at
            .get(&relation.id)
            .and_then(|slot| self.relations.get_mut(*slot))
        {
            *known = relation;
            return;
        }
        let slot = self.relations.len();
        self.relation_at.insert(relation.id, slot);
        for end in [relation.source, relation.target] {
            let at = self.entity_at.get(&end).copied();
            if let Some(entity) = at.and_then(|at| self.entities.get_mut(at)) {
                entity.relations.push(slot);
            }
        }
        self.relations.push(relation);
    }

    /// Notes that another note took the place of one.
    pub(super) fn supersede(&mut self, old: Uuid, by: Uuid) {
        let Some(head) = self.notes.get_mut(&old) else {
            return;
        };
        if head.superseded_by.replace(by).is_none() {
            self.note_edges += 1;
        }
        if self.digests.get(&head.digest) == Some(&old) {
            self.digests.remove(&head.digest);
        }
    }

    /// The active note with this digest.
    pub(super) fn duplicate_of(&self, digest: &str) -> Option<Uuid> {
        self.digests.get(digest).copied()
    }

    pub(super) fn note(&self, id: Uuid) -> Option<&NoteHead> {
        self.notes.get(&id)
    }

    pub(super) fn has_entity(&self, id: Uuid) -> bool {
        self.entity_at.contains_key(&id)
    }

    pub(super) fn relation(&self, id: Uuid) -> Option<&StoredRelation> {
        self.relations.get(*self.relation_at.get(&id)?)
    }

    pub(super) fn is_active(&self, note: Uuid) -> bool {
        self.notes
            .get(&note)
            .is_some_and(|head| head.superseded_by.is_none())
    }

    /// The entities that carry one of these names, aliases or values, in any spelling.
    pub(super) fn named<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Vec<Slot> {
        let mut found = Vec::new();
        for name in names {
            for slot in self.by_name.get(&canonical_key(name)).into_iter().flatten() {
                if !found.contains(slot) {
                    found.push(*slot);
                }
            }
        }
        found
    }

    /// The newest active notes that mention the entity, at most `limit`.
    pub(super) fn notes_about(&self, entity: Slot, limit: usize) -> Vec<Uuid> {
        let notes = self.entities.get(entity).map(|entity| entity.notes.as_slice());
        let newest = notes.unwrap_or_default().iter().rev();
        newest
            .copied()
            .filter(|note| self.is_active(*note))
            .take(limit)
            .collect()
    }

    /// The entities that a relationship connects with this one.
    pub(super) fn related(&self, entity: Slot) -> Vec<Slot> {
        let Some(state) = self.entities.get(entity) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for relation in state
            .relations
            .iter()
            .filter_map(|slot| self.relations.get(*slot))
        {
            let other = if relation.source == state.stored.id {
                relation.target
            } else {
                relation.source
            };
            if let Some(slot) = self
                .entity_at
                .get(&other)
                .filter(|slot| **slot != entity && !found.contains(*slot))
            {
                found.push(*slot);
            }
        }
        found
    }

    /// The canonical values of these entities.
    pub(super) fn values(&self, ids: &[Uuid]) -> Vec<String> {
        let value = |id: &Uuid| Some(self.entity(id)?.stored.draft.key.value.clone());
        ids.iter().filter_map(value).collect()
    }

    pub(super) fn entity(&self, id: &Uuid) -> Option<&EntityState> {
        self.entities.get(*self.entity_at.get(id)?)
    }

    pub(super) fn active_notes<'a>(&'a self, entity: &'a EntityState) -> impl Iterator<Item = &'a NoteHead> {
        let heads = entity.notes.iter().filter_map(|id| self.notes.get(id));
        heads.filter(|head| head.superseded_by.is_none())
    }
}

#[cfg(test)]
#[path = "graph_tests.rs"]
mod tests;
