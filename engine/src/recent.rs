//! One filter over the keys of all files that this process has written.
//!
//! A new row's key is looked for in every flushed file, and the filter of each file costs a read of memory that is in no
//! cache of the processor. [`Recent`] is read once for all those files instead: each thread keeps the answer for its last key.

use std::cell::RefCell;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// Names the filter that has the keys of a file.
pub(crate) type Tag = [u8; 8];

/// Bytes and words of a cache line, which has all bits of a key.
const LINE_BYTES: usize = 64;
const LINE_WORDS: usize = LINE_BYTES / size_of::<u64>();
/// Bits that are set for a key, each named by so many bits of its hash.
const PROBES: u32 = 5;
const PROBE_BITS: u32 = (LINE_BYTES * 8).ilog2();
/// Bits of a full filter for each key. It then passes about one key in two hundred that it does not have.
const BITS_PER_KEY: usize = 12;

/// The keys of all files with the current tag. A full filter makes way for an empty one with another tag.
pub(crate) struct Recent {
    lines: usize,
    /// How many keys `current` has. Held while keys are added.
    added: Mutex<usize>,
    current: RwLock<Arc<Keys>>,
    /// Tag of `current`.
    tag: AtomicU64,
    /// Filters of files so far. An answer from before the newest no longer holds.
    filters: AtomicU64,
}

struct Keys {
    /// Random, so that no file of another process has it.
    tag: u64,
    words: Box<[AtomicU64]>,
}

/// The last answer to a thread.
struct Answer {
    tag: u64,
    filters: u64,
    key: Vec<u8>,
    may_contain: bool,
}

thread_local! {
    static LAST: RefCell<Answer> = const {
        RefCell::new(Answer { tag: 0, filters: 0, key: Vec::new(), may_contain: true })
    };
}

impl Recent {
    /// A filter of this many bytes, which it takes once the first file is written.
    pub(crate) fn with_bytes(bytes: usize) -> Self {
        let none = Keys::none(0);
        Recent {
            lines: (bytes / LINE_BYTES).max(1),
            added: Mutex::new(0),
            tag: AtomicU64::new(none.tag),
            current: RwLock::new(Arc::new(none)),
            filters: AtomicU64::new(0),
        }
    }

    /// Adds the keys of a file that nobody can read yet. Its own filter has to keep the tag.
    pub(crate) fn add(&self, hashes: &[u64]) -> Tag {
        let mut added = self.added.lock().unwrap_or_else(PoisonError::into_inner);
        let mut keys = self.current();
        let room = keys.words.len() * u64::BITS as usize / BITS_PER_KEY;
        if room == 0 || (*added > 0 && *added + hashes.len() > room) {
            *added = 0;
            keys = Arc::new(Keys::none(self.lines));
            *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&keys);
            self.tag.store(keys.tag, Ordering::Release);
        }
        hashes.iter().for_each(|hash| keys.add(*hash));
        *added += hashes.len();
        self.filters.fetch_add(1, Ordering::Release);
        keys.tag.to_le_bytes()
    }

    /// Whether the key may be in a file with this tag. Of files without the current tag nothing is known.
    pub(crate) fn may_contain(&self, tag: Tag, key: &[u8], hash: impl FnOnce(&[u8]) -> u64) -> bool {
        let tag = u64::from_le_bytes(tag);
        if tag != self.tag.load(Ordering::Acquire) {
            return true;
        }
        // Read before the keys: an answer is never taken for newer than it is.
        let filters = self.filters.load(Ordering::Acquire);
        LAST.with_borrow_mut(|last| {
            if (last.tag, last.filters) != (tag, filters) || last.key != key {
                let keys = self.current();
                last.may_contain = keys.tag != tag || keys.contain(hash(key));
                (last.tag, last.filters) = (tag, filters);
                last.key.clear();
                last.key.extend_from_slice(key);
            }
            last.may_contain
        })
    }

    fn current(&self) -> Arc<Keys> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Keys {
    fn none(lines: usize) -> Self {
        Keys {
            tag: RandomState::new().build_hasher().finish(),
            words: (0..lines * LINE_WORDS).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    fn add(&self, hash: u64) {
        for (word, bit) in self.bits(hash) {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    fn contain(&self, hash: u64) -> bool {
        self.bits(hash)
            .all(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0)
    }

    /// The words of a key, all in one line, and its bit in each.
    fn bits(&self, hash: u64) -> impl Iterator<Item = (&AtomicU64, u64)> {
        let lines = (self.words.len() / LINE_WORDS) as u64;
        let first = (((hash >> 32) * lines) >> 32) as usize * LINE_WORDS;
        // The line takes the upper bits of the hash; the product has every bit of it in its own upper bits.
        let mut probes = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (0..PROBES).map(move |_| {
            probes = probes.rotate_left(PROBE_BITS);
            let place = probes as usize % (LINE_BYTES * 8);
            (&self.words[first + place / 64], 1 << (place % 64))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Hashes are as good as random numbers; this is SplitMix64.
    fn hash(key: &[u8]) -> u64 {
        let number = u64::from_le_bytes(key.try_into().unwrap());
        let mixed = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn keys(range: std::ops::Range<u64>) -> Vec<[u8; 8]> {
        range.map(u64::to_le_bytes).collect()
    }

    fn hashes(keys: &[[u8; 8]]) -> Vec<u64> {
        keys.iter().map(|key| hash(key)).collect()
    }

    fn passed(recent: &Recent, tag: Tag, keys: &[[u8; 8]]) -> usize {
        keys.iter()
            .filter(|key| recent.may_contain(tag, *key, hash))
            .count()
    }

    #[test]
    fn a_full_filter_misses_no_key_and_passes_few_others() {
        let recent = Recent::with_bytes(12 * 20_480 / 8);
        let inside = keys(1..20_000);
        let tags: Vec<Tag> = inside
            .chunks(1_000)
            .map(|file| recent.add(&hashes(file)))
            .collect();
        assert!(tags.iter().all(|tag| *tag == tags[0]));
        assert_eq!(passed(&recent, tags[0], &inside), inside.len());
        let outside = keys(1_000_000..1_020_000);
        let wrong = passed(&recent, tags[0], &outside);
        assert!(wrong < outside.len() / 100, "{wrong} of {}", outside.len());
    }

    #[test]
    fn an_answer_ends_with_the_next_file() {
        let recent = Recent::with_bytes(1 << 16);
        let tag = recent.add(&hashes(&keys(1..100)));
        let later = keys(500..501);
        assert_eq!(passed(&recent, tag, &later), 0);
        assert_eq!(passed(&recent, tag, &later), 0);
        assert_eq!(recent.add(&hashes(&later)), tag);
        assert_eq!(passed(&recent, tag, &later), 1);
    }

    #[test]
    fn a_full_filter_makes_way_and_its_files_are_unknown() {
        let recent = Recent::with_bytes(12 * 1_024 / 8);
        let (first, second) = (keys(1..1_000), keys(2_000..2_900));
        let earlier = recent.add(&hashes(&first));
        assert_eq!(passed(&recent, earlier, &second[..1]), 0);
        let later = recent.add(&hashes(&second));
        assert_ne!(earlier, later);
        assert_eq!(passed(&recent, earlier, &first), first.len());
        assert_eq!(passed(&recent, earlier, &second), second.len());
        assert_eq!(passed(&recent, later, &second), second.len());
        assert!(passed(&recent, later, &first) < 50);
    }

    #[test]
    fn more_keys_than_it_has_room_for_are_all_found() {
        let recent = Recent::with_bytes(64);
        for file in [keys(1..500), keys(500..2_000)] {
            let tag = recent.add(&hashes(&file));
            assert_eq!(passed(&recent, tag, &file), file.len());
        }
    }

    #[test]
    fn nothing_is_known_of_files_of_other_filters() {
        let (recent, other) = (Recent::with_bytes(1 << 16), Recent::with_bytes(1 << 16));
        let some = keys(1..10);
        let tag = other.add(&hashes(&some));
        assert_eq!(passed(&recent, tag, &some), some.len());
        recent.add(&[]);
        assert_eq!(passed(&recent, tag, &some), some.len());
    }

    #[test]
    fn threads_see_the_keys_of_each_file_once_it_is_there() {
        let recent = Recent::with_bytes(12 * 30_000 / 8);
        let files: Vec<Vec<[u8; 8]>> = (0..200).map(|n| keys(n * 500..n * 500 + 400)).collect();
        let written = Mutex::new(Vec::<(Tag, usize)>::new());
        thread::scope(|scope| {
            scope.spawn(|| {
                for (n, file) in files.iter().enumerate() {
                    let tag = recent.add(&hashes(file));
                    written.lock().unwrap().push((tag, n));
                }
            });
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut seen = 0;
                    while seen < files.len() {
                        let known = written.lock().unwrap().clone();
                        seen = known.len();
                        for (tag, n) in known.into_iter().rev().take(3) {
                            assert_eq!(passed(&recent, tag, &files[n]), files[n].len());
                        }
                    }
                });
            }
        });
    }
}
