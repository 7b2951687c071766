//! The best `limit` of many scored nodes, in a bounded heap. Equal scores are ordered by id, so that results are
//! deterministic.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use uuid::Uuid;

#[derive(Debug, Clone, PartialEq)]
struct TopEntry {
    score: f32,
    node: Uuid,
}

impl Eq for TopEntry {}

impl Ord for TopEntry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score
            .total_cmp(&other.score)
            .then_with(|| other.node.cmp(&self.node))
    }
}

impl PartialOrd for TopEntry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Collects the best of the offered nodes.
#[derive(Debug, Clone)]
pub(in crate::search) struct Top {
    limit: usize,
    /// The minimum score even while there are few.
    least: f32,
    heap: BinaryHeap<Reverse<TopEntry>>,
}

impl Top {
    pub(in crate::search) fn new(limit: usize) -> Self {
        Top {
            limit,
            least: f32::MIN,
            heap: BinaryHeap::with_capacity(limit.min(1024) + 1),
        }
    }

    #[inline]
    pub(in crate::search) fn offer(&mut self, node: Uuid, score: f32) {
        if score < self.threshold() {
            return;
        }
        self.heap.push(Reverse(TopEntry { score, node }));
        if self.heap.len() > self.limit {
            self.heap.pop();
        }
    }

    /// The minimum score that is accepted.
    #[inline]
    pub(in crate::search) fn threshold(&self) -> f32 {
        match self.heap.peek() {
            Some(Reverse(last)) if self.heap.len() >= self.limit => last.score,
            _ => self.least,
        }
    }

    pub(in crate::search) fn limit(&self) -> usize {
        self.limit
    }

    pub(in crate::search) fn is_full(&self) -> bool {
        self.heap.len() >= self.limit
    }

    /// The best `limit` of them, now and later.
    pub(super) fn at_most(mut self, limit: usize) -> Self {
        self.limit = self.limit.min(limit);
        while self.heap.len() > self.limit {
            self.heap.pop();
        }
        self
    }

    /// Those that score no less than `least`, now and later.
    pub(in crate::search) fn above(mut self, least: f32) -> Self {
        self.heap.retain(|Reverse(scored)| scored.score >= least);
        self.least = least;
        self
    }

    /// The best of all that were offered to it or to its copies since.
    pub(in crate::search) fn and(mut self, copies: Vec<Top>) -> Self {
        let mut all = std::mem::take(&mut self.heap).into_vec();
        all.extend(copies.into_iter().flat_map(|copy| copy.heap));
        // What was offered before the copies were made is in each of them.
        all.sort_unstable();
        all.dedup();
        all.truncate(self.limit);
        self.heap = all.into();
        self
    }

    /// The collected nodes, best first.
    pub(in crate::search) fn into_sorted(self) -> Vec<(Uuid, f32)> {
        let sorted = self.heap.into_sorted_vec();
        sorted
            .into_iter()
            .map(|Reverse(scored)| (scored.node, scored.score))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn copies_together_have_what_one_would_have(
            scores in prop::collection::vec(0u8..9, 0..60),
            limit in 1usize..20,
            copies in 0usize..4,
        ) {
            let offer = |top: &mut Top, (number, score): (usize, &u8)| {
                top.offer(Uuid::from_u128(number as u128), f32::from(*score));
            };
            let mut whole = Top::new(limit);
            scores.iter().enumerate().for_each(|one| offer(&mut whole, one));
            let mut first = Top::new(limit);
            let is_first = |number: usize| copies == 0 || number.is_multiple_of(copies + 1);
            let all = scores.iter().enumerate();
            all.clone().filter(|(number, _)| is_first(*number)).for_each(|one| offer(&mut first, one));
            let copy = |copy: usize| {
                let mut top = first.clone();
                let own = all.clone().filter(|(number, _)| number % (copies + 1) == copy);
                own.for_each(|one| offer(&mut top, one));
                top
            };
            let copies = (1..=copies).map(copy).collect();
            prop_assert_eq!(first.and(copies).into_sorted(), whole.into_sorted());
        }
    }
}
