//! The graph in memory: which note mentions what, and which entities are related.
//!
//! It is derived from the database and rebuilt at every start; a write is added as soon as it is durable. It serves
//! the lists and counts of the local API and finds the notes that mention a question's entities.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use self::by_key::SortedSlots;
pub(super) use self::entity::EntityState;
pub(super) use self::loading::Loading;
use self::loading::is_called_by_name;
use self::lookup::Lookup;
use self::merging::Merges;
use self::names::NameIndex;
pub(super) use self::slot::{At, Slot, Slots};
use super::changes::Changes;
use crate::domain::memory::digest::Digest;
use crate::domain::memory::tier::Tier;
use crate::search::canonical_key;
use crate::store::{NoteHead, StoredEntity, StoredRelation};

mod ask;
mod by_key;
mod entity;
mod loading;
mod lookup;
mod merging;
mod names;
mod relations;
mod removal;
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

/// The graph; see the module documentation.
#[derive(Debug, Default)]
pub(super) struct MemoryGraph {
    pub(super) entities: Vec<EntityState>,
    entity_at: Lookup,
    /// One text for all entities of a type.
    types: HashSet<Arc<str>>,
    by_key: SortedSlots,
    /// Canonical names, aliases and values.
    by_name: NameIndex,
    notes: Vec<NoteState>,
    note_at: Lookup,
    /// Notes, oldest first.
    order: Vec<Slot>,
    /// The newest active note of each digest of domain and content.
    digests: Lookup,
    /// Older active notes with the same digest, where a text is kept more than once.
    doubles: HashMap<Digest, Vec<Slot>>,
    /// The notes that each note superseded.
    superseded: HashMap<Uuid, Vec<Slot>>,
    /// Number of notes in each domain.
    pub(super) domains: HashMap<Arc<str>, usize>,
    relations: Vec<StoredRelation>,
    relation_at: Lookup,
    /// Number of edges from notes: mentions and supersessions.
    pub(super) note_edges: usize,
    /// Entities that stand for others, and what is shown in another way than it is stored because of them.
    merges: Merges,
    removed: Removed,
}

/// Number of entries in the lists whose things were removed: their slots stay.
#[derive(Debug, Default)]
struct Removed {
    entities: usize,
    notes: usize,
    relations: usize,
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
        entities.sort_by_key(|entity| (entity.created_at, entity.id));
        relations.sort_by_key(|relation| (relation.created_at, relation.id));
        heads.sort_by_key(|head| (head.created_at, head.id));
        let mut loading = Loading::default();
        loading.apply(Changes {
            entities,
            relations,
            notes: heads,
            ..Changes::default()
        });
        loading.end()
    }

    /// Adds an entity; [`MemoryGraph::index_entity`] lets it be found by name and key. One that is known gets the aliases that
    /// are new.
    pub(super) fn add_entity(&mut self, entity: StoredEntity) {
        if let Some(slot) = self.own_slot(entity.id) {
            self.add_aliases(slot, entity.draft.aliases);
            return;
        }
        let slot = Slot::after(&self.entities);
        let entities = &self.entities;
        let id_of = |slot: Slot| entities.get(slot.at()).map(|entity| entity.id);
        self.entity_at.insert(&entity.id, slot, id_of);
        let entity_type = self.type_of(&entity.draft.key.entity_type);
        self.entities.push(EntityState::new(entity, entity_type));
    }

    fn add_aliases(&mut self, slot: Slot, aliases: Vec<String>) {
        if self.merges.involve(slot) {
            self.add_own_aliases(slot, &aliases);
            return;
        }
        let known = self.entities.get_mut(slot.at());
        let added = known.map(|known| (known.add_aliases(aliases), is_called_by_name(known)));
        let (added, in_texts) = added.unwrap_or_default();
        for alias in added {
            self.by_name.add(&canonical_key(&alias), slot, in_texts);
        }
    }

    /// The text that all entities of a type share.
    fn type_of(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.types.get(name) {
            return Arc::clone(known);
        }
        let new: Arc<str> = name.into();
        self.types.insert(Arc::clone(&new));
        new
    }

    /// Adds a note, or replaces what is known of it.
    pub(super) fn put_note(&mut self, head: NoteHead) {
        if let Some(slot) = self.note_slot(head.id) {
            self.replace_note(slot, head);
            return;
        }
        let slot = Slot::after(&self.notes);
        let notes = &self.notes;
        let id_of = |slot: Slot| notes.get(slot.at()).map(|note| note.id);
        self.note_at.insert(&head.id, slot, id_of);
        let state = self.state_of(slot, head);
        self.notes.push(state);
        self.list_note(slot);
    }

    /// A note as the graph keeps it; it is counted in its domain.
    fn state_of(&mut self, slot: Slot, head: NoteHead) -> NoteState {
        NoteState {
            id: head.id,
            label: head.label.into_boxed_str(),
            domain: self.count_domain(&head.domain),
            tier: head.tier,
            confidence: head.confidence,
            digest: head.digest,
            mentions: self.shown_mentions(slot, &head.mentions),
            superseded_by: head.superseded_by,
            created_at: head.created_at,
        }
    }

    /// Adds a note to the lists that it belongs to.
    fn list_note(&mut self, slot: Slot) {
        let Some(note) = self.notes.get(slot.at()) else {
            return;
        };
        let (digest, mentions) = (note.digest, note.mentions.clone());
        let notes = &self.notes;
        let digest_of = |slot: Slot| notes.get(slot.at()).map(|note| note.digest);
        if let Some(by) = note.superseded_by {
            self.note_edges += 1;
            self.superseded.entry(by).or_default().push(slot);
        } else if let Some(older) = self.digests.insert(&digest, slot, digest_of) {
            self.doubles.entry(digest).or_default().push(older);
        }
        let newer = newer_than(&self.notes, &self.order, slot);
        self.order.insert(self.order.len() - newer, slot);
        self.link(slot, &mentions);
    }

    /// Counts a note of a domain; returns the text that all its notes share.
    fn count_domain(&mut self, domain: &str) -> Arc<str> {
        let known = self
            .domains
            .get_key_value(domain)
            .map(|(name, _)| Arc::clone(name));
        let name = known.unwrap_or_else(|| domain.into());
        *self.domains.entry(Arc::clone(&name)).or_default() += 1;
        name
    }

    fn link(&mut self, note: Slot, mentions: &[Slot]) {
        self.note_edges += mentions.len();
        for mention in mentions {
            if let Some(entity) = self.entities.get_mut(mention.at()) {
                let newer = newer_than(&self.notes, &entity.notes, note);
                entity.notes.insert_before(newer, note);
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
        let Some(slot) = self.note_slot(note) else {
            return;
        };
        let own = self.own_mentions(slot).chain(more.iter().copied());
        let mut seen = HashSet::new();
        let own: Vec<Uuid> = own.filter(|id| seen.insert(*id)).collect();
        let shown = self.shown_mentions(slot, &own);
        let Some(state) = self.notes.get_mut(slot.at()) else {
            return;
        };
        let before = std::mem::replace(&mut state.mentions, shown);
        let is_new = |mention: &&Slot| !before.contains(mention);
        let new: Vec<Slot> = state.mentions.iter().filter(is_new).copied().collect();
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
        let slot = self.note_slot(id)?;
        Some((slot, self.notes.get_mut(slot.at())?))
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
        let notes = &self.notes;
        let digest_of = |slot: Slot| notes.get(slot.at()).map(|note| note.digest);
        let doubles = self.doubles.get_mut(&digest);
        if self.digests.get(&digest, digest_of) != Some(note) {
            doubles
                .into_iter()
                .for_each(|doubles| doubles.retain(|slot| *slot != note));
        } else if let Some(older) = doubles.and_then(Vec::pop) {
            self.digests.insert(&digest, older, digest_of);
        } else {
            self.digests.remove(&digest, digest_of);
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

    /// Whether a note is this one, or superseded by it directly or through others.
    pub(super) fn is_or_becomes(&self, note: Uuid, this: Uuid) -> bool {
        let mut at = Some(note);
        for _ in 0..=self.notes.len() {
            match at {
                Some(id) if id == this => return true,
                Some(id) => at = self.note(id).and_then(|note| note.superseded_by),
                None => return false,
            }
        }
        false
    }

    /// Whether every note belongs to this domain.
    pub(super) fn is_all_of(&self, domain: &str) -> bool {
        self.domains.keys().all(|known| &**known == domain)
    }

    /// The active note with this digest.
    pub(super) fn duplicate_of(&self, digest: &Digest) -> Option<Uuid> {
        let digest_of = |slot: Slot| self.note_in(slot).map(|note| note.digest);
        let slot = self.digests.get(digest, digest_of)?;
        Some(self.note_in(slot)?.id)
    }

    pub(super) fn note(&self, id: Uuid) -> Option<&NoteState> {
        self.note_in(self.note_slot(id)?)
    }

    fn note_slot(&self, id: Uuid) -> Option<Slot> {
        self.note_at
            .get(&id, |slot| self.note_in(slot).map(|note| note.id))
    }

    pub(super) fn note_in(&self, slot: Slot) -> Option<&NoteState> {
        self.notes.get(slot.at())
    }

    /// The ids of the entities that a note mentions, or of those that stand for them.
    pub(super) fn mentioned_by<'a>(&'a self, note: &'a NoteState) -> impl Iterator<Item = Uuid> + 'a {
        let entities = note.mentions.iter().filter_map(|slot| self.entity_in(*slot));
        entities.map(|entity| entity.id)
    }

    /// Number of notes, superseded ones included.
    pub(super) fn note_count(&self) -> usize {
        self.notes.len() - self.removed.notes
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
        self.own_slot(id).is_some()
    }

    /// The entity with this id, or the one that stands for it.
    pub(super) fn entity_slot(&self, id: Uuid) -> Option<Slot> {
        Some(self.merges.standing(self.own_slot(id)?))
    }

    fn own_slot(&self, id: Uuid) -> Option<Slot> {
        let id_of = |slot: Slot| self.entity_in(slot).map(|entity| entity.id);
        self.entity_at.get(&id, id_of)
    }

    pub(super) fn is_active(&self, note: Uuid) -> bool {
        self.note(note).is_some_and(NoteState::is_active)
    }

    /// The entities that carry one of these names, aliases or values, in any spelling.
    pub(super) fn slots_named<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Vec<Slot> {
        let mut found = Vec::new();
        for name in names {
            for slot in self.slots_with_key(&canonical_key(name)) {
                if !found.contains(&slot) {
                    found.push(slot);
                }
            }
        }
        found
    }

    /// Whether the name of something that texts call by name may begin a text.
    pub(super) fn may_begin_name(&self, text: &str) -> bool {
        self.by_name.may_begin(text)
    }

    /// The entities with a name, alias or value of this canonical form, oldest first.
    pub(super) fn slots_with_key(&self, key: &str) -> Vec<Slot> {
        let mut slots = self.by_name.maybe(key);
        slots.retain(|slot| !self.merges.is_merged(*slot) && self.is_named(*slot, key));
        slots
    }

    fn is_named(&self, entity: Slot, key: &str) -> bool {
        let entity = self.entity_in(entity);
        entity.is_some_and(|entity| entity.all_names().any(|name| canonical_key(name) == key))
    }

    /// Entities related to this one, at most `limit`, excluding those in `asked`.
    pub(super) fn related_entities(&self, entity: Slot, asked: &[Slot], limit: usize) -> Vec<Slot> {
        let Some(state) = self.entity_in(entity) else {
            return Vec::new();
        };
        let mut seen: HashSet<Slot> = asked.iter().copied().collect();
        seen.insert(entity);
        let relations = state.relations.iter().filter_map(|slot| self.relation_in(*slot));
        let others = relations.filter_map(|relation| {
            let other = if relation.source == state.id {
                relation.target
            } else {
                relation.source
            };
            self.entity_slot(other)
        });
        others.filter(|slot| seen.insert(*slot)).take(limit).collect()
    }

    /// The canonical values of these entities, or of those that stand for them.
    pub(super) fn values(&self, ids: &[Uuid]) -> Vec<String> {
        let mut seen = HashSet::new();
        let slots = ids.iter().filter_map(|id| self.entity_slot(*id));
        let entities = slots
            .filter(|slot| seen.insert(*slot))
            .filter_map(|slot| self.entity_in(slot));
        entities.map(|entity| entity.value.to_string()).collect()
    }

    pub(super) fn entity(&self, id: &Uuid) -> Option<&EntityState> {
        self.entity_in(self.entity_slot(*id)?)
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

/// How many of a list of notes, sorted oldest first, are newer than a note: nearly always none.
fn newer_than(notes: &[NoteState], list: &[Slot], note: Slot) -> usize {
    let age = |slot: &Slot| notes.get(slot.at()).map(|note| (note.created_at, note.id));
    let new = age(&note);
    list.iter().rev().take_while(|slot| age(slot) > new).count()
}

#[cfg(test)]
pub(super) mod tests;
