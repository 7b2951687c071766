//! The filters by which a look-up passes over files without its key.
//!
//! Before a row is inserted, the database looks for it in every flushed file. As the store grows, a bulk write spends more
//! and more on that. SurrealKV's default filter reads several places per key and is wrong for one key in a hundred; then a
//! block is read in vain. [`RibbonFilter`] reads one cache line, and with more bits per key it is rarely wrong.

use std::sync::Arc;

use surrealkv_1::{FilterPolicy, RibbonFilter};

/// Bits of a filter for each key.
const BITS_PER_KEY: usize = 16;
/// Last byte of a cache-line filter. The default kind ends with its number of probes, which is at most 30, and takes any
/// other number for a kind that it does not know: every key may be there.
const CACHE_LINE: u8 = 0xff;

/// Writes cache-line filters. Reads those and filters of the default kind, which older files have.
pub(crate) struct Filters {
    default: Arc<dyn FilterPolicy>,
    cache_line: RibbonFilter,
}

impl Filters {
    pub(crate) fn beside(default: Arc<dyn FilterPolicy>) -> Self {
        Filters {
            default,
            cache_line: RibbonFilter::new(BITS_PER_KEY),
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
            Some((&CACHE_LINE, filter)) => self.cache_line.may_contain(filter, key),
            _ => self.default.may_contain(filter, key),
        }
    }

    fn create_filter(&self, keys: &[Vec<u8>]) -> Vec<u8> {
        marked(self.cache_line.create_filter(keys))
    }

    fn key_hash(&self, key: &[u8]) -> u64 {
        self.cache_line.key_hash(key)
    }

    fn create_filter_from_hashes(&self, hashes: &[u64]) -> Vec<u8> {
        marked(self.cache_line.create_filter_from_hashes(hashes))
    }

    fn filter_keys_per_partition(&self, partition_bytes: usize) -> usize {
        self.cache_line.filter_keys_per_partition(partition_bytes)
    }
}

fn marked(mut filter: Vec<u8>) -> Vec<u8> {
    filter.push(CACHE_LINE);
    filter
}

#[cfg(test)]
mod tests {
    use surrealkv_1::Options;

    use super::*;

    fn keys(of: &str) -> Vec<Vec<u8>> {
        (0..20_000).map(|n| format!("{of}{n}").into_bytes()).collect()
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
        let filters = Filters::beside(default());
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
        let (filters, older) = (Filters::beside(default()), default());
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
        let (filters, older) = (Filters::beside(default()), default());
        let filter = filters.create_filter(&keys("node"));
        let outside = keys("other");
        assert_eq!(passed(&*older, &filter, &outside), outside.len());
    }

    #[test]
    fn nothing_is_in_a_filter_of_nothing() {
        let filters = Filters::beside(default());
        let filter = filters.create_filter(&[]);
        assert_eq!(passed(&filters, &filter, &keys("node")), 0);
    }
}
