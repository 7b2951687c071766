//! The filters by which a look-up passes over files without its key.
//!
//! Before a row is inserted, the database looks for it in every flushed file. As the store grows, a bulk write spends more
//! and more on that. SurrealKV's default filter reads several places per key and is wrong for one key in a hundred; then a
//! block is read in vain. [`RibbonFilter`] reads one cache line, and with more bits per key it is rarely wrong.

use std::sync::Arc;

use surrealkv_1::{FilterPolicy, RibbonFilter};

use crate::recent::{Recent, Tag};

/// Bits of a filter for each key.
const BITS_PER_KEY: usize = 16;
/// Last byte of a cache-line filter, and of one with a tag before that byte. The default kind ends with its number of probes,
/// which is at most 30, and takes any other number for a kind that it does not know: every key may be there.
const CACHE_LINE: u8 = 0xff;
const TAGGED: u8 = 0xfe;

/// Writes cache-line filters with tags. Reads those, those without a tag and filters of the default kind, which older files
/// have.
pub(crate) struct Filters {
    default: Arc<dyn FilterPolicy>,
    cache_line: RibbonFilter,
    recent: Recent,
}

impl Filters {
    /// `recent_bytes` is the memory of the filter over all files that this process writes.
    pub(crate) fn beside(default: Arc<dyn FilterPolicy>, recent_bytes: usize) -> Self {
        Filters {
            default,
            cache_line: RibbonFilter::new(BITS_PER_KEY),
            recent: Recent::with_bytes(recent_bytes),
        }
    }
}

impl FilterPolicy for Filters {
    /// The default's name: a filter with another one is not read.
    fn name(&self) -> &str {
        self.default.name()
    }

    fn may_contain(&self, filter: &[u8], key: &[u8]) -> bool {
        match filter.split_last() {
            Some((&TAGGED, tagged)) => match tagged.split_last_chunk() {
                Some((filter, tag)) => {
                    self.recent.may_contain(*tag, key, |key| self.key_hash(key))
                        && self.cache_line.may_contain(filter, key)
                }
                None => true,
            },
            Some((&CACHE_LINE, filter)) => self.cache_line.may_contain(filter, key),
            _ => self.default.may_contain(filter, key),
        }
    }

    fn create_filter(&self, keys: &[Vec<u8>]) -> Vec<u8> {
        let hashes: Vec<u64> = keys.iter().map(|key| self.key_hash(key)).collect();
        self.create_filter_from_hashes(&hashes)
    }

    fn key_hash(&self, key: &[u8]) -> u64 {
        self.cache_line.key_hash(key)
    }

    fn create_filter_from_hashes(&self, hashes: &[u64]) -> Vec<u8> {
        let tag = self.recent.add(hashes);
        tagged(self.cache_line.create_filter_from_hashes(hashes), tag)
    }

    fn filter_keys_per_partition(&self, partition_bytes: usize) -> usize {
        self.cache_line.filter_keys_per_partition(partition_bytes)
    }
}

fn tagged(mut filter: Vec<u8>, tag: Tag) -> Vec<u8> {
    filter.extend(tag);
    filter.push(TAGGED);
    filter
}

#[cfg(test)]
mod tests {
    use surrealkv_1::Options;

    use super::*;

    fn keys(of: &str) -> Vec<Vec<u8>> {
        (0..20_000).map(|n| format!("{of}{n}").into_bytes()).collect()
    }

    fn filters() -> Filters {
        Filters::beside(default(), 1 << 20)
    }

    fn default() -> Arc<dyn FilterPolicy> {
        Options::new().filter_policy.unwrap()
    }

    /// How many of the keys may be in the filter.
    fn passed(filters: &dyn FilterPolicy, filter: &[u8], keys: &[Vec<u8>]) -> usize {
        keys.iter().filter(|key| filters.may_contain(filter, key)).count()
    }

    #[test]
    fn a_filter_misses_no_key_and_passes_few_others() {
        let filters = filters();
        let (inside, outside) = (keys("node"), keys("other"));
        let filter = filters.create_filter(&inside);
        assert_eq!(passed(&filters, &filter, &inside), inside.len());
        let wrong = passed(&filters, &filter, &outside);
        assert!(wrong < outside.len() / 200, "{wrong} of {}", outside.len());
        let hashes: Vec<u64> = inside.iter().map(|key| filters.key_hash(key)).collect();
        assert_eq!(filters.create_filter_from_hashes(&hashes), filter);
    }

    #[test]
    fn filters_of_older_files_are_read() {
        let (filters, older) = (filters(), default());
        let (inside, outside) = (keys("node"), keys("other"));
        let filter = older.create_filter(&inside);
        assert_eq!(passed(&filters, &filter, &inside), inside.len());
        assert_eq!(
            passed(&filters, &filter, &outside),
            passed(&*older, &filter, &outside)
        );
        assert_eq!(filters.name(), older.name());
    }

    #[test]
    fn an_older_version_takes_every_key_for_possible() {
        let (filters, older) = (filters(), default());
        let filter = filters.create_filter(&keys("node"));
        let outside = keys("other");
        assert_eq!(passed(&*older, &filter, &outside), outside.len());
    }

    /// A file of another process has another tag, and one of the version before has none.
    #[test]
    fn files_of_earlier_processes_are_read() {
        let (earlier, filters) = (filters(), filters());
        let (inside, outside) = (keys("node"), keys("other"));
        let tagged = earlier.create_filter(&inside);
        let mut untagged = RibbonFilter::new(BITS_PER_KEY).create_filter(&inside);
        untagged.push(CACHE_LINE);
        filters.create_filter(&outside);
        for filter in [tagged, untagged] {
            assert_eq!(passed(&filters, &filter, &inside), inside.len());
            let wrong = passed(&filters, &filter, &outside);
            assert!(wrong < outside.len() / 200, "{wrong} of {}", outside.len());
        }
    }

    #[test]
    fn a_key_of_a_later_file_is_not_in_an_earlier_one() {
        let filters = filters();
        let (inside, later) = (keys("node"), keys("other"));
        let filter = filters.create_filter(&inside);
        filters.create_filter(&later);
        assert_eq!(passed(&filters, &filter, &inside), inside.len());
        let wrong = passed(&filters, &filter, &later);
        assert!(wrong < later.len() / 200, "{wrong} of {}", later.len());
    }

    #[test]
    fn nothing_is_in_a_filter_of_nothing() {
        let filters = filters();
        let filter = filters.create_filter(&[]);
        assert_eq!(passed(&filters, &filter, &keys("node")), 0);
    }
}
