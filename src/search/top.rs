//! The best `limit` of many scored nodes, in a bounded heap. Equal scores are ordered by id, so that results are
//! deterministic.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use uuid::Uuid;

#[derive(PartialEq)]
struct Scored {
    score: f32,
    node: Uuid,
}

impl Eq for Scored {}

impl Ord for Scored {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score
            .total_cmp(&other.score)
            .then_with(|| other.node.cmp(&self.node))
    }
}

impl PartialOrd for Scored {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Collects the best of the offered nodes.
pub(super) struct Top {
    limit: usize,
    heap: BinaryHeap<Reverse<Scored>>,
}

impl Top {
    pub(super) fn new(limit: usize) -> Self {
        Top {
            limit,
            heap: BinaryHeap::with_capacity(limit.min(1024) + 1),
        }
    }

    #[inline]
    pub(super) fn offer(&mut self, node: Uuid, score: f32) {
        if self.heap.len() >= self.limit && score < self.threshold() {
            return;
        }
        self.heap.push(Reverse(Scored { score, node }));
        if self.heap.len() > self.limit {
            self.heap.pop();
        }
    }

    /// The minimum score that is accepted.
    #[inline]
    pub(super) fn threshold(&self) -> f32 {
        match self.heap.peek() {
            Some(Reverse(last)) if self.heap.len() >= self.limit => last.score,
            _ => f32::MIN,
        }
    }

    /// The collected nodes, best first.
    pub(super) fn into_sorted(self) -> Vec<(Uuid, f32)> {
        let sorted = self.heap.into_sorted_vec();
        sorted
            .into_iter()
            .map(|Reverse(scored)| (scored.node, scored.score))
            .collect()
    }
}
