//! Which segments are merged while something is written. What is not merged then is left to [`WorkspaceIndex::tidy`].
//!
//! There is one merge at a time. While it runs, each commit adds a small segment, and a search looks into all of them. So
//! each document is merged as few times as possible: a bulk ingest of a million nodes merges each once, into segments of
//! 32,000, and those wait until nothing is written or until there are many.
//!
//! [`WorkspaceIndex::tidy`]: super::WorkspaceIndex::tidy

use tantivy::index::SegmentMeta;
use tantivy::merge_policy::{LogMergePolicy, MergeCandidate, MergePolicy};

/// Documents up to which segments count as of the same size. A bulk ingest writes segments of 2,000; those that become of
/// them must not be merged with the next ones.
const SMALLEST: u32 = 4_000;
/// How many small segments of about the same size are merged.
const MANY_SMALL: usize = 16;
/// Documents of a segment from which it is large.
const LARGE: u32 = 20_000;
/// How many large segments of about the same size are merged.
const MANY_LARGE: usize = 32;

/// Merges [`MANY_SMALL`] small segments of about the same size, or [`MANY_LARGE`] large ones.
#[derive(Debug)]
pub(super) struct WritingMergePolicy {
    small: LogMergePolicy,
    large: LogMergePolicy,
}

impl Default for WritingMergePolicy {
    fn default() -> Self {
        let (mut small, mut large) = (LogMergePolicy::default(), LogMergePolicy::default());
        small.set_min_layer_size(SMALLEST);
        small.set_min_num_segments(MANY_SMALL);
        large.set_min_num_segments(MANY_LARGE);
        WritingMergePolicy { small, large }
    }
}

impl MergePolicy for WritingMergePolicy {
    fn compute_merge_candidates(&self, segments: &[SegmentMeta]) -> Vec<MergeCandidate> {
        let (large, small): (Vec<_>, Vec<_>) = segments
            .iter()
            .cloned()
            .partition(|segment| segment.max_doc() >= LARGE);
        let mut merges = self.small.compute_merge_candidates(&small);
        merges.extend(self.large.compute_merge_candidates(&large));
        merges
    }
}

#[cfg(test)]
mod tests {
    use tantivy::Index;
    use tantivy::index::SegmentId;
    use tantivy::schema::Schema;

    use super::*;

    /// Numbers of segments that are merged with each other.
    fn merged(sizes: impl IntoIterator<Item = u32>) -> Vec<usize> {
        let index = Index::create_in_ram(Schema::builder().build());
        let segments: Vec<SegmentMeta> = sizes
            .into_iter()
            .map(|docs| index.new_segment_meta(SegmentId::generate_random(), docs))
            .collect();
        let merges = WritingMergePolicy::default().compute_merge_candidates(&segments);
        merges.into_iter().map(|merge| merge.0.len()).collect()
    }

    #[test]
    fn large_segments_wait_for_many_of_their_size() {
        let small = |count| std::iter::repeat_n(2000, count);
        let large = |count| std::iter::repeat_n(32_000, count);
        assert!(merged(small(15)).is_empty());
        assert_eq!(merged(small(16)), [16]);
        assert_eq!(merged(small(16).chain(large(31))), [16]);
        assert_eq!(merged(large(32).chain([2_000_000])), [32]);
    }

    /// What a bulk ingest leaves: few segments at any size, and each document merged only a few times.
    #[test]
    fn a_bulk_ingest_leaves_few_segments() {
        let (mut segments, mut written, mut merged) = (Vec::new(), 0u64, 0u64);
        let index = Index::create_in_ram(Schema::builder().build());
        let policy = WritingMergePolicy::default();
        let mut most = 0;
        for _ in 0..5000 {
            segments.push(index.new_segment_meta(SegmentId::generate_random(), 2000));
            written += 2000;
            loop {
                let merges = policy.compute_merge_candidates(&segments);
                let Some(MergeCandidate(ids)) = merges.into_iter().next() else {
                    break;
                };
                let (old, rest): (Vec<_>, Vec<_>) = segments
                    .into_iter()
                    .partition(|segment| ids.contains(&segment.id()));
                segments = rest;
                let docs = old.iter().map(SegmentMeta::max_doc).sum();
                merged += u64::from(docs);
                segments.push(index.new_segment_meta(SegmentId::generate_random(), docs));
            }
            most = most.max(segments.len());
        }
        assert!(most <= 15 + 31 + 10 + 1, "{most} segments");
        assert!(merged <= 2 * written, "{merged} documents merged of {written}");
    }
}
