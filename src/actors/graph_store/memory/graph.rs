//! The graph in memory: which note mentions what, and which entities are related.
//!
//! It is derived from the database and rebuilt at every start; a write is added as soon as it is durable. It serves
//! the lists and counts of the local API and finds the notes that mention a question's entities.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::iter;

use uuid::Uuid;

use crate::domain::memory::entity::EntityKey;
use crate::domain::memory::note::Note;
use crate::domain::memory::tier::Tier;
use crate::search::canonical_key;
use crate::store::{NoteHead, StoredEntity, StoredRelation};

/// Position of an entity or a relationship in its list; entries are never removed.
type Slot = usize;

/// An entity with its notes and relations.
#[derive(Debug)]
pub(super) struct EntityState {
    pub(super) stored: StoredEntity,
    /// The notes that mention it, oldest first, superseded ones included.
    pub(super) notes: Vec<Uuid>,
    pub(super) relations: Vec<Slot>,
    /// Number of active notes that mention it, by tier, best tier first.
    active: [usize; Tier::ALL.len()],
}

impl EntityState {
    /// Number of notes that mention it, superseded ones excluded.
    pub(super) fn note_count(&self) -> usize {
        self.active.iter().sum()
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

    fn active_of(&mut self, tier: &str) -> Option<&mut usize> {
        let tier = tier.parse().unwrap_or(Tier::C);
        let mut counts = Tier::ALL.iter().zip(&mut self.active);
        counts.find(|(known, _)| **known == tier).map(|(_, count)| count)
    }
}

/// The graph; see the module documentation.
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
    /// The newest active note of each digest of domain and content.
    pub(super) digests: HashMap<String, Uuid>,
    /// Older active notes with the same digest, where a text is kept more than once.
    pub(super) doubles: HashMap<String, Vec<Uuid>>,
    /// The notes that each note superseded.
    pub(super) superseded: HashMap<Uuid, Vec<Uuid>>,
    /// Number of notes in each domain.
    pub(super) domains: HashMap<String, usize>,
    pub(super) relations: Vec<StoredRelation>,
    pub(super) relation_at: HashMap<Uuid, Slot>,
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
            active: Default::default(),
        });
    }

    pub(super) fn add_note(&mut self, head: NoteHead) {
        if self.notes.contains_key(&head.id) {
            return;
        }
        let (note, mentions) = (head.id, head.mentions.clone());
        if let Some(by) = head.superseded_by {
            self.note_edges += 1;
            self.superseded.entry(by).or_default().push(note);
        } else if let Some(older) = self.digests.insert(head.digest.clone(), note) {
            self.doubles.entry(head.digest.clone()).or_default().push(older);
        }
        *self.domains.entry(head.domain.clone()).or_default() += 1;
        self.notes.insert(note, head);
        put_by_age(&self.notes, &mut self.order, note);
        self.link(note, &mentions);
    }

    fn link(&mut self, note: Uuid, mentions: &[Uuid]) {
        self.note_edges += mentions.len();
        for mention in mentions {
            let slot = self.entity_at.get(mention).copied();
            if let Some(entity) = slot.and_then(|slot| self.entities.get_mut(slot)) {
                put_by_age(&self.notes, &mut entity.notes, note);
            }
        }
        let head = self.notes.get(&note).filter(|head| head.superseded_by.is_none());
        if let Some(tier) = head.map(|head| head.tier.clone()) {
            self.recount(mentions, &tier, |count| count + 1);
        }
    }

    /// Changes the number of active notes of a tier of each of these entities.
    fn recount(&mut self, mentioned: &[Uuid], tier: &str, change: impl Fn(usize) -> usize) {
        for id in mentioned {
            let slot = self.entity_at.get(id).copied();
            let entity = slot.and_then(|slot| self.entities.get_mut(slot));
            if let Some(count) = entity.and_then(|entity| entity.active_of(tier)) {
                *count = change(*count);
            }
        }
    }

    /// Adds further mentions to a note.
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

    /// Updates the trust of a note that was repeated.
    pub(super) fn repeat(&mut self, note: &Note) {
        let Some(head) = self.notes.get_mut(&note.id) else {
            return;
        };
        let before = std::mem::replace(&mut head.tier, note.tier.clone());
        head.confidence = note.confidence;
        if head.superseded_by.is_none() {
            let mentions = head.mentions.clone();
            self.recount(&mentions, &before, |count| count.saturating_sub(1));
            self.recount(&mentions, &note.tier, |count| count + 1);
        }
    }

    /// Adds a relationship, or updates the properties of a known one.
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
        // A self-relation appears only once in its entity's list.
        let other = (relation.target != relation.source).then_some(relation.target);
        for end in iter::once(relation.source).chain(other) {
            let at = self.entity_at.get(&end).copied();
            if let Some(entity) = at.and_then(|at| self.entities.get_mut(at)) {
                entity.relations.push(slot);
            }
        }
        self.relations.push(relation);
    }

    /// Records that a note was superseded by another.
    pub(super) fn supersede(&mut self, old: Uuid, by: Uuid) {
        let Some(head) = self.notes.get_mut(&old) else {
            return;
        };
        let before = head.superseded_by.replace(by);
        let (digest, tier, mentions) = (head.digest.clone(), head.tier.clone(), head.mentions.clone());
        self.forget_digest(digest, old);
        if before == Some(by) {
            return;
        }
        self.superseded.entry(by).or_default().push(old);
        match before.map(|other| self.superseded.get_mut(&other)) {
            None => {
                self.note_edges += 1;
                self.recount(&mentions, &tier, |count| count.saturating_sub(1));
            }
            Some(others) => others.into_iter().for_each(|notes| notes.retain(|id| *id != old)),
        }
    }

    /// A superseded note is no longer found by its digest; an older one with the same text may be.
    fn forget_digest(&mut self, digest: String, note: Uuid) {
        let doubles = self.doubles.get_mut(&digest);
        if self.digests.get(&digest) != Some(&note) {
            doubles
                .into_iter()
                .for_each(|doubles| doubles.retain(|id| *id != note));
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
            match self.notes.get(&at)?.superseded_by {
                Some(by) => at = by,
                None => return Some(at),
            }
        }
        None
    }

    /// Whether every note belongs to this domain.
    pub(super) fn is_all_of(&self, domain: &str) -> bool {
        self.domains.keys().all(|known| known == domain)
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

    /// Entities related to this one, at most `limit`, excluding those in `asked`.
    pub(super) fn related(&self, entity: Slot, asked: &[Slot], limit: usize) -> Vec<Slot> {
        let Some(state) = self.entities.get(entity) else {
            return Vec::new();
        };
        let mut seen: HashSet<Slot> = asked.iter().copied().collect();
        seen.insert(entity);
        let relations = state
            .relations
            .iter()
            .filter_map(|slot| self.relations.get(*slot));
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
        self.entities.get(*self.entity_at.get(id)?)
    }
}

/// Inserts a note into a list sorted oldest first; nearly always at its end.
fn put_by_age(notes: &HashMap<Uuid, NoteHead>, list: &mut Vec<Uuid>, note: Uuid) {
    let age = |id: &Uuid| (notes.get(id).map(|head| head.created_at), *id);
    let new = age(&note);
    let newer = list.iter().rev().take_while(|id| age(id) > new).count();
    list.insert(list.len() - newer, note);
}

#[cfg(test)]
pub(super) mod tests;
