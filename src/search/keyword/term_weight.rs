//! What a word adds to the score of a document: BM25, rounded so that sums do not depend on their order.
//!
//! In which order the words of a query are added up depends on segments and bounds, and so on rows that the caller may not
//! see. Sums of rounded scores are exact, and so the same in any order.

use tantivy::query::Bm25Weight;

/// Bits of a sum that are left for what it rounds to, out of the 24 of a number.
const BITS: i32 = 21;

/// The multiples that scores are rounded to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ScoreGrid {
    step: f32,
    /// A number so large that its neighbours are one step away: added and taken away again, it rounds.
    rounding: f32,
}

impl ScoreGrid {
    /// The grid for sums up to this: of what all words of a query add at most.
    pub(super) fn for_sums_up_to(most: f32) -> Self {
        let bits = most.clamp(1e-12, 1e12).log2().ceil() as i32;
        let step = 2f32.powi(bits - BITS);
        ScoreGrid {
            step,
            rounding: step * 1.5 * (1 << 23) as f32,
        }
    }

    /// The nearest multiple above zero: a word that is there counts, however common it is.
    #[inline]
    fn round(self, score: f32) -> f32 {
        ((score + self.rounding) - self.rounding).max(self.step)
    }
}

/// The weight of a word in a query.
#[derive(Clone)]
pub(super) struct TermWeight {
    bm25: Bm25Weight,
    grid: ScoreGrid,
}

impl TermWeight {
    pub(in crate::search) fn new(bm25: Bm25Weight, grid: ScoreGrid) -> Self {
        TermWeight { bm25, grid }
    }

    /// What the word adds to a document of this length, in the form in which the text index keeps it.
    #[inline]
    pub(in crate::search) fn score(&self, length: u8, times: u32) -> f32 {
        self.grid.round(self.bm25.score(length, times))
    }

    /// The same before it is rounded.
    #[inline]
    pub(super) fn exact_score(&self, length: u8, times: u32) -> f32 {
        self.bm25.score(length, times)
    }

    /// The most that BM25 allows, before it is rounded.
    pub(super) fn max_score(&self) -> f32 {
        self.bm25.max_score()
    }

    /// A bound on rounded scores, given one on the others.
    pub(super) fn bound(&self, exact: f32) -> f32 {
        self.grid.round(exact) + self.grid.step
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn sums_are_the_same_in_any_order(
            scores in prop::collection::vec(1e-9f32..40.0, 1..96),
            turn in 0usize..96,
        ) {
            let grid = ScoreGrid::for_sums_up_to(scores.iter().sum());
            let mut rounded: Vec<f32> = scores.iter().map(|score| grid.round(*score)).collect();
            for (rounded, score) in rounded.iter().zip(&scores) {
                prop_assert!(*rounded > 0.0 && (rounded - score).abs() <= grid.step, "{} {}", rounded, score);
            }
            let sum: f32 = rounded.iter().sum();
            let len = rounded.len();
            rounded.rotate_left(turn % len);
            prop_assert_eq!(rounded.iter().sum::<f32>().to_bits(), sum.to_bits());
            rounded.sort_unstable_by(f32::total_cmp);
            prop_assert_eq!(rounded.iter().sum::<f32>().to_bits(), sum.to_bits());
        }
    }
}
