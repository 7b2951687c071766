//! The entities in the order of their keys.

use std::cmp::Ordering;

use super::{At, EntityState, MemoryGraph, Slot};
use crate::domain::memory::entity::EntityKey;

/// Largest number of slots in a block, and so the most that a new entity moves.
const MAX_BLOCK: usize = 1024;

/// Slots sorted by the entities that they stand for, in blocks. Callers pass a comparison of a slot with the wanted key.
#[derive(Debug, Default)]
pub(super) struct SortedSlots {
    /// No block is empty.
    blocks: Vec<Vec<Slot>>,
}

impl SortedSlots {
    fn of(slots: &[Slot]) -> Self {
        let blocks = slots.chunks(MAX_BLOCK / 2);
        Self {
            blocks: blocks.map(<[Slot]>::to_vec).collect(),
        }
    }

    /// The block and the place in it of the first slot that is not less.
    fn place(&self, order: impl Fn(Slot) -> Ordering) -> (usize, usize) {
        let less = |slot: &Slot| order(*slot).is_lt();
        let block = self
            .blocks
            .partition_point(|block| block.last().is_some_and(less));
        let slots = self.blocks.get(block).map_or(&[][..], Vec::as_slice);
        (block, slots.partition_point(less))
    }

    fn insert(&mut self, slot: Slot, order: impl Fn(Slot) -> Ordering) {
        let (mut at, mut place) = self.place(order);
        if at > 0 && at == self.blocks.len() {
            // Behind all others.
            at -= 1;
            place = usize::MAX;
        }
        let Some(block) = self.blocks.get_mut(at) else {
            self.blocks.push(vec![slot]);
            return;
        };
        block.insert(place.min(block.len()), slot);
        if block.len() > MAX_BLOCK {
            let rest = block.split_off(MAX_BLOCK / 2);
            self.blocks.insert(at + 1, rest);
        }
    }

    /// Takes the slot with exactly this key out.
    fn remove(&mut self, slot: Slot, order: impl Fn(Slot) -> Ordering) {
        let (at, place) = self.place(order);
        if let Some(block) = self
            .blocks
            .get_mut(at)
            .filter(|block| block.get(place) == Some(&slot))
        {
            block.remove(place);
            if block.is_empty() {
                self.blocks.remove(at);
            }
        }
    }

    /// The slots that are not less, in order.
    fn from(&self, order: impl Fn(Slot) -> Ordering) -> impl Iterator<Item = Slot> {
        let (at, place) = self.place(order);
        let blocks = self.blocks.get(at..).unwrap_or_default();
        blocks.iter().flatten().skip(place).copied()
    }
}

impl MemoryGraph {
    /// Adds an entity to those sorted by their keys.
    pub(super) fn sort_in(&mut self, slot: Slot) {
        if self.merges.is_merged(slot) {
            return;
        }
        let entities = &self.entities;
        if let Some(new) = entities.get(slot.at()) {
            let key = (&*new.entity_type, &*new.value);
            self.by_key.insert(slot, |slot| compare(entities, slot, key));
        }
    }

    /// Takes an entity out of those sorted by their keys.
    pub(super) fn sort_out(&mut self, slot: Slot) {
        let entities = &self.entities;
        if let Some(old) = entities.get(slot.at()) {
            let key = (&*old.entity_type, &*old.value);
            self.by_key.remove(slot, |slot| compare(entities, slot, key));
        }
    }

    /// All entities that stand for themselves, sorted at once: that takes less time than one by one.
    pub(super) fn sort_all(&self) -> SortedSlots {
        let keys = self.standing_entities();
        let mut keys: Vec<_> = keys
            .map(|(slot, entity)| (&*entity.entity_type, head(&entity.value), &*entity.value, slot))
            .collect();
        keys.sort_unstable();
        let slots: Vec<Slot> = keys.into_iter().map(|(.., slot)| slot).collect();
        SortedSlots::of(&slots)
    }

    /// The entity with this key, or the one that stands for it.
    pub(in crate::actors::note_store) fn with_key(&self, key: &EntityKey) -> Option<&EntityState> {
        if let Some(standing) = self.standing_for(key) {
            return Some(standing);
        }
        let first = self.entity_in(self.slots_from(&key.entity_type, &key.value).next()?)?;
        let is_it = *first.entity_type == *key.entity_type && *first.value == *key.value;
        is_it.then_some(first)
    }

    /// Entities in the order of their keys.
    pub(in crate::actors::note_store) fn entities_by_key(&self) -> impl Iterator<Item = &EntityState> {
        let slots = self.by_key.blocks.iter().flatten();
        slots.filter_map(|slot| self.entity_in(*slot))
    }

    /// The entities whose keys are not less than this one, in order.
    pub(in crate::actors::note_store) fn slots_from(
        &self,
        entity_type: &str,
        value: &str,
    ) -> impl Iterator<Item = Slot> {
        self.by_key
            .from(|slot| compare(&self.entities, slot, (entity_type, value)))
    }
}

fn compare(entities: &[EntityState], slot: Slot, wanted: (&str, &str)) -> Ordering {
    let key = entities
        .get(slot.at())
        .map(|entity| (&*entity.entity_type, &*entity.value));
    key.cmp(&Some(wanted))
}

/// The beginning of a text as a number: texts with different ones compare as these do.
fn head(text: &str) -> u128 {
    let mut bytes = [0; 16];
    bytes
        .iter_mut()
        .zip(text.bytes())
        .for_each(|(to, from)| *to = from);
    u128::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers from 0 to `most`, each once, in an order without pattern.
    fn shuffled(most: usize) -> Vec<usize> {
        (0..most).map(|number| number * 7_919 % most).collect()
    }

    #[test]
    fn slots_are_sorted_however_they_come() {
        let slots: Vec<Slot> = Slot::from(&[(); 5_000], 0).collect();
        for numbers in [
            shuffled(5_000),
            (0..5_000).collect(),
            (0..5_000).rev().collect(),
            vec![0],
            vec![],
        ] {
            let mut sorted = SortedSlots::default();
            for number in &numbers {
                let new = slots[*number];
                sorted.insert(new, |slot| slot.cmp(&new));
            }
            let expected = &slots[..numbers.len()];
            let is_from = |wanted: Slot| sorted.from(|slot| slot.cmp(&wanted)).collect::<Vec<_>>();
            assert_eq!(is_from(slots[0]), expected);
            for wanted in [1, 511, 512, 513, 4_999] {
                assert_eq!(
                    is_from(slots[wanted]),
                    *expected.get(wanted..).unwrap_or_default()
                );
            }
            assert!(
                sorted
                    .blocks
                    .iter()
                    .all(|block| (1..=MAX_BLOCK).contains(&block.len()))
            );
            let whole = SortedSlots::of(expected);
            assert_eq!(whole.blocks.concat(), sorted.blocks.concat());
        }
    }

    #[test]
    fn heads_compare_as_their_texts_do() {
        let texts = ["", "a", "a\u{1}", "ab", "é", "198.51.100.1", "198.51.100.10", "z"];
        for (a, b) in texts.iter().flat_map(|a| texts.iter().map(move |b| (a, b))) {
            assert_eq!((head(a), a).cmp(&(head(b), b)), a.cmp(b), "{a:?} {b:?}");
        }
    }
}
