//! The entities of a name, in little memory.

use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;

use super::Slot;
use crate::search::KeyStarts;

/// Entities by a hash of each of their names: the names stand in the entities.
#[derive(Debug, Default)]
pub(super) struct NameIndex {
    slots: HashTable<(u32, Slot)>,
    hasher: RandomState,
    /// How the names begin of what texts call by name.
    starts: KeyStarts,
}

impl NameIndex {
    /// With room for so many names.
    pub(super) fn with_capacity(names: usize) -> Self {
        Self {
            slots: HashTable::with_capacity(names),
            ..Self::default()
        }
    }

    /// Adds a name of an entity, unless nothing of it is left in the form that is compared. `in_texts` says whether texts
    /// call such entities by name.
    pub(super) fn add(&mut self, name: &str, slot: Slot, in_texts: bool) {
        if name.is_empty() {
            return;
        }
        if in_texts {
            self.starts.add(name);
        }
        let entry = (self.short(name), slot);
        let hash = spread(entry.0);
        if self.slots.find(hash, |known| *known == entry).is_none() {
            self.slots.insert_unique(hash, entry, |(short, _)| spread(*short));
        }
    }

    /// The entities that may have this name, oldest first; nearly always those that do.
    pub(super) fn maybe(&self, name: &str) -> Vec<Slot> {
        let wanted = self.short(name);
        let near = self.slots.iter_hash(spread(wanted));
        let equal = near.filter(|(short, _)| *short == wanted);
        let mut slots: Vec<Slot> = equal.map(|(_, slot)| *slot).collect();
        slots.sort_unstable();
        slots
    }

    /// Whether such a name may begin a text.
    pub(super) fn may_begin(&self, text: &str) -> bool {
        self.starts.may_begin(text)
    }

    fn short(&self, name: &str) -> u32 {
        // Half of the hash tells names apart well enough.
        self.hasher.hash_one(name) as u32
    }
}

/// A hash for the table: it also looks at the upper bits.
fn spread(short: u32) -> u64 {
    u64::from(short).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_its_entities_oldest_first_and_each_once() {
        let mut names = NameIndex::default();
        let slots: Vec<Slot> = (0..100).map(|number| Slot::after(&vec![(); number])).collect();
        for slot in slots.iter().rev() {
            names.add("the same", *slot, true);
            names.add("the same", *slot, true);
            names.add(&format!("{slot:?}"), *slot, true);
        }
        assert_eq!(names.maybe("the same"), slots);
        for slot in &slots {
            assert!(names.maybe(&format!("{slot:?}")).contains(slot));
        }
        assert!(names.maybe("unknown").len() < 2);
    }
}
