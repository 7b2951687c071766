//! The graph in memory: which note mentions what, and which entities are related.
//!
//! It is derived from the database and rebuilt at every start; a write is added as soon as it is durable. It serves
//! the lists and counts of the local API and finds the notes that mention a question's entities.

use std::collections::{HashMap, HashSet};
use std::iter;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use uuid::Uuid;

pub(super) use self::names::Slots;
pub(super) use self::slot::{At, Slot};
use crate::domain::memory::digest::Digest;
use crate::domain::memory::entity::EntityKey;
use crate::domain::memory::tier::Tier;
use crate::search::canonical_key;
use crate::store::{NoteHead, StoredEntity, StoredRelation};

mod names;
mod slot;

/// A note as the graph keeps it, in little memory: there may be a million.
#[derive(Debug)]
pub(super) struct NoteState {
    pub(super) id: Uuid,
    pub(super) label: Box<str>,
    /// One text for all notes of a domain.
    pub(super) domain: Arc<str>,
    pub(super) tier: Tier,
    /// 0 to 1.
    pub(super) confidence: f64,
    pub(super) digest: Digest,
    /// The mentioned entities, in text order.
    pub(super) mentions: Box<[Slot]>,
    pub(super) superseded_by: Option<Uuid>,
    pub(super) created_at: DateTime<Utc>,
}

/// An entity with its notes and relations.
#[derive(Debug)]
pub(super) struct EntityState {
    pub(super) stored: StoredEntity,
    /// The notes that mention it, oldest first, superseded ones included.
    pub(super) notes: Vec<Slot>,
    pub(super) relations: Vec<Slot>,
    /// Number of active notes that mention it, by tier, best tier first.
    active: [u32; Tier::ALL.len()],
}

impl EntityState {
    /// Number of notes that mention it, superseded ones excluded.
    pub(super) fn note_count(&self) -> usize {
        self.active.iter().map(|notes| notes.at()).sum()
    }

    /// The best tier of those notes.
    pub(super) fn tier(&self) -> Option<Tier> {
        let mut tiers = Tier::ALL.iter().zip(self.active);
        tiers.find(|(_, notes)| *notes > 0).map(|(tier, _)| *tier)
    }

    /// Number of edges that start or end here.
    pub(super) fn degree(&self) -> usize {
        self.notes.len() + self.relations.len()
    }

    fn active_of(&mut self, tier: Tier) -> Option<&mut u32> {
        let mut counts = Tier::ALL.iter().zip(&mut self.active);
        counts.find(|(known, _)| **known == tier).map(|(_, count)| count)
    }
}

/// The graph; see the module documentation.
#[derive(Debug, Default)]
pub(super) struct MemoryGraph {
    pub(super) entities: Vec<EntityState>,
    pub(super) entity_at: HashMap<Uuid, Slot>,
    /// Entities in the order of their keys.
    by_key: Vec<Slot>,
    /// Canonical names, aliases and values.
    by_name: HashMap<Box<str>, Slots>,
    notes: Vec<NoteState>,
    note_at: HashMap<Uuid, Slot>,
    /// Notes, oldest first.
    order: Vec<Slot>,
    /// The newest active note of each digest of domain and content.
    digests: HashMap<Digest, Slot>,
    /// Older active notes with the same digest, where a text is kept more than once.
    doubles: HashMap<Digest, Vec<Slot>>,
    /// The notes that each note superseded.
    superseded: HashMap<Uuid, Vec<Slot>>,
    /// Number of notes in each domain.
    pub(super) domains: HashMap<Arc<str>, usize>,
    pub(super) relations: Vec<StoredRelation>,
    relation_at: HashMap<Uuid, Slot>,
    /// Number of edges from notes: mentions and supersessions.
    pub(super) note_edges: usize,
}

/// Which entities a list includes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EntityFilter {
    pub entity_type: Option<String>,
    pub tier: Option<String>,
    /// Substring of the value, the name or an alias, case-insensitive.
    pub part: Option<String>,
}

impl MemoryGraph {
    /// Builds the graph from what is stored.
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
        let slot = Slot::after(&self.entities);
        self.entity_at.insert(entity.id, slot);
        let draft = &entity.draft;
        let names = [&draft.key.value, &draft.name].into_iter().chain(&draft.aliases);
        for name in names
            .map(|name| canonical_key(name))
            .filter(|name| !name.is_empty())
        {
            match self.by_name.get_mut(name.as_str()) {
                Some(slots) => slots.add(slot),
                None => drop(self.by_name.insert(name.into_boxed_str(), Slots::One(slot))),
            }
        }
        let place = self.place_of(&draft.key).unwrap_or_else(|place| place);
        self.by_key.insert(place, slot);
        self.entities.push(EntityState {
            stored: entity,
            notes: Vec::new(),
            relations: Vec::new(),
            active: Default::default(),
        });
    }

    /// The place of a key among the sorted ones, or where it belongs.
    fn place_of(&self, key: &EntityKey) -> Result<usize, usize> {
        let key_of = |slot: &Slot| Some(&self.entities.get(slot.at())?.stored.draft.key);
        self.by_key.binary_search_by(|slot| key_of(slot).cmp(&Some(key)))
    }

    pub(super) fn with_key(&self, key: &EntityKey) -> Option<&EntityState> {
        let place = self.place_of(key).ok()?;
        self.entities.get(self.by_key.get(place)?.at())
    }

    /// Entities in the order of their keys.
    pub(super) fn entities_by_key(&self) -> impl Iterator<Item = &EntityState> {
        self.by_key.iter().filter_map(|slot| self.entities.get(slot.at()))
    }

    pub(super) fn add_note(&mut self, head: NoteHead) {
        if self.note_at.contains_key(&head.id) {
            return;
        }
        let slot = Slot::after(&self.notes);
        if let Some(by) = head.superseded_by {
            self.note_edges += 1;
            self.superseded.entry(by).or_default().push(slot);
        } else if let Some(older) = self.digests.insert(head.digest, slot) {
            self.doubles.entry(head.digest).or_default().push(older);
        }
        self.note_at.insert(head.id, slot);
        let mentions: Box<[Slot]> = self.slots_of(&head.mentions);
        let note = NoteState {
            id: head.id,
            label: head.label.into_boxed_str(),
            domain: self.counted(&head.domain),
            tier: head.tier,
            confidence: head.confidence,
            digest: head.digest,
            mentions: mentions.clone(),
            superseded_by: head.superseded_by,
            created_at: head.created_at,
        };
        self.notes.push(note);
        put_by_age(&self.notes, &mut self.order, slot);
        self.link(slot, &mentions);
    }

    /// Counts a note of a domain; returns the text that all its notes share.
    fn counted(&mut self, domain: &str) -> Arc<str> {
        let known = self
            .domains
            .get_key_value(domain)
            .map(|(name, _)| Arc::clone(name));
        let name = known.unwrap_or_else(|| domain.into());
        *self.domains.entry(Arc::clone(&name)).or_default() += 1;
        name
    }

    fn slots_of(&self, entities: &[Uuid]) -> Box<[Slot]> {
        let slots = entities.iter().filter_map(|id| self.entity_at.get(id));
        slots.copied().collect()
    }

    fn link(&mut self, note: Slot, mentions: &[Slot]) {
        self.note_edges += mentions.len();
        for mention in mentions {
            if let Some(entity) = self.entities.get_mut(mention.at()) {
                put_by_age(&self.notes, &mut entity.notes, note);
            }
        }
        let state = self.notes.get(note.at());
        if let Some(tier) = state.filter(|note| note.is_active()).map(|note| note.tier) {
            self.recount(mentions, tier, |count| count + 1);
        }
    }

    /// Changes the number of active notes of a tier of each of these entities.
    fn recount(&mut self, mentioned: &[Slot], tier: Tier, change: impl Fn(u32) -> u32) {
        for slot in mentioned {
            let entity = self.entities.get_mut(slot.at());
            if let Some(count) = entity.and_then(|entity| entity.active_of(tier)) {
                *count = change(*count);
            }
        }
    }

    /// Adds further mentions to a note.
    pub(super) fn add_mentions(&mut self, note: Uuid, more: &[Uuid]) {
        let more = self.slots_of(more);
        let Some((slot, state)) = self.note_mut(note) else {
            return;
        };
        let is_new = |mention: &&Slot| !state.mentions.contains(mention);
        let new: Vec<Slot> = more.iter().filter(is_new).copied().collect();
        state.mentions = state.mentions.iter().chain(&new).copied().collect();
        self.link(slot, &new);
    }

    /// Updates the trust of a note that was repeated.
    pub(super) fn trust(&mut self, note: Uuid, tier: Tier, confidence: f64) {
        let Some((_, state)) = self.note_mut(note) else {
            return;
        };
        let before = std::mem::replace(&mut state.tier, tier);
        state.confidence = confidence;
        if state.is_active() {
            let mentions = state.mentions.clone();
            self.recount(&mentions, before, |count| count.saturating_sub(1));
            self.recount(&mentions, tier, |count| count + 1);
        }
    }

    fn note_mut(&mut self, id: Uuid) -> Option<(Slot, &mut NoteState)> {
        let slot = *self.note_at.get(&id)?;
        Some((slot, self.notes.get_mut(slot.at())?))
    }

    /// Adds a relationship, or updates the properties of a known one.
    pub(super) fn put_relation(&mut self, relation: StoredRelation) {
        if let Some(known) = self
            .relation_at
            .get(&relation.id)
            .and_then(|slot| self.relations.get_mut(slot.at()))
        {
            *known = relation;
            return;
        }
        let slot = Slot::after(&self.relations);
        self.relation_at.insert(relation.id, slot);
        // A self-relation appears only once in its entity's list.
        let other = (relation.target != relation.source).then_some(relation.target);
        for end in iter::once(relation.source).chain(other) {
            let at = self.entity_at.get(&end).copied();
            if let Some(entity) = at.and_then(|slot| self.entities.get_mut(slot.at())) {
                entity.relations.push(slot);
            }
        }
        self.relations.push(relation);
    }

    /// Records that a note was superseded by another.
    pub(super) fn supersede(&mut self, old: Uuid, by: Uuid) {
        let Some((slot, state)) = self.note_mut(old) else {
            return;
        };
        let before = state.superseded_by.replace(by);
        let (digest, tier, mentions) = (state.digest, state.tier, state.mentions.clone());
        self.forget_digest(digest, slot);
        if before == Some(by) {
            return;
        }
        self.superseded.entry(by).or_default().push(slot);
        match before.map(|other| self.superseded.get_mut(&other)) {
            None => {
                self.note_edges += 1;
                self.recount(&mentions, tier, |count| count.saturating_sub(1));
            }
            Some(others) => others
                .into_iter()
                .for_each(|notes| notes.retain(|note| *note != slot)),
        }
    }

    /// A superseded note is no longer found by its digest; an older one with the same text may be.
    fn forget_digest(&mut self, digest: Digest, note: Slot) {
        let doubles = self.doubles.get_mut(&digest);
        if self.digests.get(&digest) != Some(&note) {
            doubles
                .into_iter()
                .for_each(|doubles| doubles.retain(|slot| *slot != note));
        } else if let Some(older) = doubles.and_then(Vec::pop) {
            self.digests.insert(digest, older);
        } else {
            self.digests.remove(&digest);
        }
    }

    /// The active note at the end of this note's chain of successors; itself, if it was not superseded.
    pub(super) fn current(&self, note: Uuid) -> Option<Uuid> {
        let mut at = note;
        for _ in 0..=self.notes.len() {
            match self.note(at)?.superseded_by {
                Some(by) => at = by,
                None => return Some(at),
            }
        }
        None
    }

    /// Whether every note belongs to this domain.
    pub(super) fn is_all_of(&self, domain: &str) -> bool {
        self.domains.keys().all(|known| &**known == domain)
    }

    /// The active note with this digest.
    pub(super) fn duplicate_of(&self, digest: &Digest) -> Option<Uuid> {
        Some(self.note_in(*self.digests.get(digest)?)?.id)
    }

    pub(super) fn note(&self, id: Uuid) -> Option<&NoteState> {
        self.note_in(*self.note_at.get(&id)?)
    }

    pub(super) fn note_in(&self, slot: Slot) -> Option<&NoteState> {
        self.notes.get(slot.at())
    }

    /// The ids of the entities that a note mentions.
    pub(super) fn mentioned_by<'a>(&'a self, note: &'a NoteState) -> impl Iterator<Item = Uuid> + 'a {
        let entities = note.mentions.iter().filter_map(|slot| self.entity_in(*slot));
        entities.map(|entity| entity.stored.id)
    }

    /// Number of notes, superseded ones included.
    pub(super) fn note_count(&self) -> usize {
        self.notes.len()
    }

    /// Notes in the order of their slots.
    pub(super) fn notes(&self) -> &[NoteState] {
        &self.notes
    }

    /// Notes, oldest first.
    pub(super) fn notes_by_age(&self) -> impl Iterator<Item = &NoteState> {
        self.order.iter().filter_map(|slot| self.note_in(*slot))
    }

    /// The notes that this one superseded.
    pub(super) fn older_than(&self, note: Uuid) -> impl ExactSizeIterator<Item = Slot> {
        let slots = self.superseded.get(&note).map_or(&[][..], Vec::as_slice);
        slots.iter().copied()
    }

    pub(super) fn has_entity(&self, id: Uuid) -> bool {
        self.entity_at.contains_key(&id)
    }

    pub(super) fn relation(&self, id: Uuid) -> Option<&StoredRelation> {
        self.relations.get(self.relation_at.get(&id)?.at())
    }

    pub(super) fn is_active(&self, note: Uuid) -> bool {
        self.note(note).is_some_and(NoteState::is_active)
    }

    /// The entities that carry one of these names, aliases or values, in any spelling.
    pub(super) fn named<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Vec<Slot> {
        let mut found = Vec::new();
        for name in names {
            let known = self.by_name.get(canonical_key(name).as_str());
            for slot in known.map_or(&[][..], Slots::as_slice) {
                if !found.contains(slot) {
                    found.push(*slot);
                }
            }
        }
        found
    }

    /// The newest active notes that mention the entity, at most `limit`.
    pub(super) fn notes_about(&self, entity: Slot, limit: usize) -> impl Iterator<Item = &NoteState> {
        let notes = self.entity_in(entity).map(|entity| entity.notes.as_slice());
        let newest = notes.unwrap_or_default().iter().rev();
        let states = newest.filter_map(|slot| self.note_in(*slot));
        states.filter(|note| note.is_active()).take(limit)
    }

    /// Entities related to this one, at most `limit`, excluding those in `asked`.
    pub(super) fn related(&self, entity: Slot, asked: &[Slot], limit: usize) -> Vec<Slot> {
        let Some(state) = self.entity_in(entity) else {
            return Vec::new();
        };
        let mut seen: HashSet<Slot> = asked.iter().copied().collect();
        seen.insert(entity);
        let relations = state
            .relations
            .iter()
            .filter_map(|slot| self.relations.get(slot.at()));
        let others = relations.filter_map(|relation| {
            let other = if relation.source == state.stored.id {
                relation.target
            } else {
                relation.source
            };
            self.entity_at.get(&other).copied()
        });
        others.filter(|slot| seen.insert(*slot)).take(limit).collect()
    }

    /// The canonical values of these entities.
    pub(super) fn values(&self, ids: &[Uuid]) -> Vec<String> {
        let value = |id: &Uuid| Some(self.entity(id)?.stored.draft.key.value.clone());
        ids.iter().filter_map(value).collect()
    }

    pub(super) fn entity(&self, id: &Uuid) -> Option<&EntityState> {
        self.entity_in(*self.entity_at.get(id)?)
    }

    pub(super) fn entity_in(&self, slot: Slot) -> Option<&EntityState> {
        self.entities.get(slot.at())
    }
}

impl NoteState {
    pub(super) fn is_active(&self) -> bool {
        self.superseded_by.is_none()
    }
}

/// Inserts a note into a list sorted oldest first; nearly always at its end.
fn put_by_age(notes: &[NoteState], list: &mut Vec<Slot>, note: Slot) {
    let age = |slot: &Slot| notes.get(slot.at()).map(|note| (note.created_at, note.id));
    let new = age(&note);
    let newer = list.iter().rev().take_while(|slot| age(slot) > new).count();
    list.insert(list.len() - newer, note);
}

#[cfg(test)]
pub(super) mod tests;
