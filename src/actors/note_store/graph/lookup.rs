//! From a key to a slot, in a quarter of the memory of a map with the keys in it.

use std::hash::{BuildHasher, Hash};

use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};

use super::Slot;

/// Slots by a key that stands in the list of the slot; each call is told how to read it there.
#[derive(Debug, Default)]
pub(super) struct Lookup {
    slots: HashTable<Slot>,
    /// Fast and good enough for ids and digests, which are hashes or random already.
    hasher: DefaultHashBuilder,
}

impl Lookup {
    pub(super) fn get<K: Hash + Eq>(&self, key: &K, key_of: impl Fn(Slot) -> Option<K>) -> Option<Slot> {
        let is_its = |slot: &Slot| key_of(*slot).as_ref() == Some(key);
        self.slots.find(self.hasher.hash_one(key), is_its).copied()
    }

    /// Sets the slot of a key; returns the one before.
    pub(super) fn insert<K: Hash + Eq>(
        &mut self,
        key: &K,
        slot: Slot,
        key_of: impl Fn(Slot) -> Option<K>,
    ) -> Option<Slot> {
        let hasher = &self.hasher;
        let entry = self.slots.entry(
            hasher.hash_one(key),
            |slot| key_of(*slot).as_ref() == Some(key),
            |slot| key_of(*slot).map_or(0, |key| hasher.hash_one(key)),
        );
        match entry {
            Entry::Occupied(mut known) => Some(std::mem::replace(known.get_mut(), slot)),
            Entry::Vacant(vacant) => {
                vacant.insert(slot);
                None
            }
        }
    }

    pub(super) fn remove<K: Hash + Eq>(&mut self, key: &K, key_of: impl Fn(Slot) -> Option<K>) {
        let is_its = |slot: &Slot| key_of(*slot).as_ref() == Some(key);
        if let Ok(known) = self.slots.find_entry(self.hasher.hash_one(key), is_its) {
            known.remove();
        }
    }
}
