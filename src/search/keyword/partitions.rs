//! Divides the documents of a large text index among threads.
//!
//! A search first looks for the best of a sample, which has a few of every so many documents. Their scores give a guess of
//! the lowest score among the best of all. The other documents are searched side by side with this guess as the threshold,
//! which few of them reach. If there are too few, the search begins again without a guess. The parts do not share their
//! thresholds, so the same question is always summed up in the same order.

use std::ops::Range;

use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use tantivy::DocId;

use super::top::Top;
use crate::capacity::search_pool;

/// How documents are divided.
#[derive(Debug, Clone, Copy)]
pub(super) struct PartitionPolicy {
    /// Documents from which an index is divided.
    many: u64,
    /// The sample has the first `sampled` of every `stride` documents.
    sampled: u64,
    stride: u64,
    /// Strides in a part for one thread.
    strides: usize,
}

impl PartitionPolicy {
    pub(super) const USUAL: PartitionPolicy = PartitionPolicy {
        many: 300_000,
        sampled: 4096,
        stride: 65_536,
        strides: 4,
    };
}

/// Documents of one segment.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DocRanges {
    /// Number of the segment.
    pub(in crate::search) segment: usize,
    /// In ascending order.
    pub(in crate::search) docs: Vec<Range<DocId>>,
}

/// The documents of all segments, in their order.
#[derive(Debug)]
pub(super) struct Partitions {
    /// The sample, or all documents if they are few.
    first: Vec<DocRanges>,
    others: Vec<Vec<DocRanges>>,
    /// How many times as many documents there are as in the sample.
    times: f64,
}

impl Partitions {
    /// Divides segments with these numbers of documents.
    pub(in crate::search) fn of(segments: &[DocId], division: PartitionPolicy) -> Self {
        let all: u64 = segments.iter().copied().map(u64::from).sum();
        let PartitionPolicy { sampled, stride, .. } = division;
        if all < division.many {
            return Partitions {
                first: spans(segments, std::slice::from_ref(&(0..all))),
                others: Vec::new(),
                times: 1.0,
            };
        }
        let starts: Vec<u64> = (0..all).step_by(stride as usize).collect();
        let sample: Vec<Range<u64>> = starts
            .iter()
            .map(|start| *start..all.min(start + sampled))
            .collect();
        let other = |starts: &[u64]| {
            let docs = starts
                .iter()
                .map(|start| all.min(start + sampled)..all.min(start + stride));
            spans(segments, &docs.collect::<Vec<_>>())
        };
        Partitions {
            first: spans(segments, &sample),
            others: starts.chunks(division.strides).map(other).collect(),
            times: all as f64 / sample.iter().map(|docs| docs.end - docs.start).sum::<u64>() as f64,
        }
    }

    /// The best of all documents. `look_through` offers those of some spans to what it gets, as far as they score no less
    /// than its threshold.
    pub(in crate::search) fn best<E: Send>(
        &self,
        top: Top,
        look_through: impl Fn(&[DocRanges], Top) -> Result<Top, E> + Sync,
    ) -> Result<Top, E> {
        if self.others.is_empty() {
            return look_through(&self.first, top);
        }
        let with_others = |start: Top| -> Result<Top, E> {
            let part = |part: &Vec<DocRanges>| look_through(part, start.clone());
            let others: Result<Vec<Top>, E> = match search_pool() {
                Some(threads) => threads.install(|| self.others.par_iter().map(part).collect()),
                None => self.others.iter().map(part).collect(),
            };
            Ok(start.clone().and(others?))
        };
        let few = self.sample_of(top.limit());
        let sample = look_through(&self.first, top.clone().at_most(few))?;
        let guess = sample.threshold();
        let found = with_others(top.clone().and(vec![sample]).above(guess))?;
        if guess == f32::MIN || found.is_full() && found.threshold() > guess {
            return Ok(found);
        }
        if found.is_full() {
            // The sample gave up documents that score the same as the last one it kept, and may come before it by their id.
            let tied = look_through(&self.first, top.above(guess))?;
            return Ok(found.and(vec![tied]));
        }
        with_others(look_through(&self.first, top)?)
    }

    /// How many of the sample's documents are most likely among the `limit` best of all: three standard deviations more than
    /// expected.
    fn sample_of(&self, limit: usize) -> usize {
        let expected = limit as f64 / self.times;
        (expected + 3.0 * expected.sqrt()) as usize + 5
    }
}

/// The spans of documents that are given by their places in a row of all.
fn spans(segments: &[DocId], docs: &[Range<u64>]) -> Vec<DocRanges> {
    let mut before = 0;
    let span = |(segment, &count): (usize, &DocId)| {
        let own = before..before + u64::from(count);
        before = own.end;
        let place = |at: u64| (at.clamp(own.start, own.end) - own.start) as DocId;
        let docs = docs.iter().map(|docs| place(docs.start)..place(docs.end));
        let docs: Vec<Range<DocId>> = docs.filter(|docs| !docs.is_empty()).collect();
        (!docs.is_empty()).then_some(DocRanges { segment, docs })
    };
    segments.iter().enumerate().filter_map(span).collect()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Mutex;

    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;

    const SMALL: PartitionPolicy = PartitionPolicy {
        many: 300,
        sampled: 20,
        stride: 100,
        strides: 2,
    };

    #[test]
    fn each_document_is_in_one_part() {
        let cases: [&[DocId]; 6] = [
            &[],
            &[0, 299],
            &[300],
            &[1_000],
            &[700, 0, 40, 9, 30],
            &[10, 200, 90, 0, 1],
        ];
        for segments in cases {
            let parts = Partitions::of(segments, SMALL);
            assert_eq!(parts.others.is_empty(), segments.iter().sum::<DocId>() < 300);
            for (number, docs) in segments.iter().enumerate() {
                let spans = parts.others.iter().flatten().chain(&parts.first);
                let own = spans.filter(|span| span.segment == number);
                let mut own: Vec<Range<DocId>> = own.flat_map(|span| span.docs.clone()).collect();
                own.sort_by_key(|docs| docs.start);
                let end = own.into_iter().fold(0, |end, docs| {
                    assert_eq!(docs.start, end);
                    docs.end
                });
                assert_eq!(end, *docs);
            }
        }
        let parts = Partitions::of(&[950, 50], SMALL);
        assert_eq!((parts.others.len(), parts.times), (5, 5.0));
        assert_eq!(
            parts.first.iter().map(|span| span.docs.len()).collect::<Vec<_>>(),
            [10]
        );
    }

    /// The best documents, and how many were looked through.
    fn best(scores: &[u16], limit: usize) -> (Vec<(Uuid, f32)>, usize) {
        let looked = Mutex::new(0);
        let found =
            Partitions::of(&[scores.len() as DocId], SMALL).best(Top::new(limit), |spans, mut top| {
                for doc in spans.iter().flat_map(|span| span.docs.iter().cloned()).flatten() {
                    *looked.lock().unwrap() += 1;
                    top.offer(Uuid::from_u128(u128::from(doc)), f32::from(scores[doc as usize]));
                }
                Ok::<_, Infallible>(top)
            });
        (found.unwrap().into_sorted(), looked.into_inner().unwrap())
    }

    #[test]
    fn a_guess_that_is_too_high_costs_a_second_look() {
        let even: Vec<u16> = (0..1_000u16)
            .map(|doc| (u32::from(doc) * 7919 % 1_009) as u16)
            .collect();
        assert_eq!(best(&even, 50).1, 1_000);
        let in_the_sample: Vec<u16> = (0..1_000)
            .map(|doc| if doc % 100 < 20 { doc } else { 0 })
            .collect();
        assert_eq!(best(&in_the_sample, 100).1, 2_000);
    }

    proptest! {
        #[test]
        fn the_best_are_found_wherever_they_are(
            scores in prop::collection::vec(0u16..400, 0..1_200),
            sampled in 0u16..400,
            limit in 1usize..130,
        ) {
            let raised = scores.iter().enumerate().map(|(doc, score)| score + if doc % 100 < 20 { sampled } else { 0 });
            let scores: Vec<u16> = raised.collect();
            let mut all = Top::new(limit);
            for (doc, score) in scores.iter().enumerate() {
                all.offer(Uuid::from_u128(doc as u128), f32::from(*score));
            }
            prop_assert_eq!(best(&scores, limit).0, all.into_sorted());
        }
    }
}
