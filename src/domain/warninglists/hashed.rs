//! Texts by their hashes, with the set of lists that each is on.

use std::hash::{BuildHasher, RandomState};

use super::{ListId, SetId};

/// The hashes of texts, in order. Nobody outside knows the keys of the hash, so nobody can make two texts collide.
#[derive(Debug, Default)]
pub(super) struct Hashed {
    hasher: RandomState,
    hashes: Vec<u64>,
    sets: Vec<SetId>,
}

impl Hashed {
    pub(super) fn hash(hasher: &RandomState, text: &str) -> u64 {
        hasher.hash_one(text)
    }

    /// The table of these hashes, each with its list.
    pub(super) fn of(
        hasher: RandomState,
        mut entries: Vec<(u64, ListId)>,
        mut set_of: impl FnMut(&[ListId]) -> SetId,
    ) -> Self {
        entries.sort_unstable();
        entries.dedup();
        let count = entries.chunk_by(|(one, _), (other, _)| one == other).count();
        let (mut hashes, mut sets) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let mut lists = Vec::new();
        for same in entries.chunk_by(|(one, _), (other, _)| one == other) {
            lists.clear();
            lists.extend(same.iter().map(|(_, list)| *list));
            hashes.extend(same.first().map(|(hash, _)| *hash));
            sets.push(set_of(&lists));
        }
        Self { hasher, hashes, sets }
    }

    /// The set of a text.
    pub(super) fn get(&self, text: &str) -> Option<SetId> {
        if self.hashes.is_empty() {
            return None;
        }
        let place = self.hashes.binary_search(&Self::hash(&self.hasher, text)).ok()?;
        self.sets.get(place).copied()
    }
}
