//! What a scan of sketches keeps: the rows at the smallest distances.

use super::super::rows::ROWS_PER_BLOCK;

/// A scan first looks at one block of so many, to learn how near the nearest rows are.
pub(super) const SAMPLED: usize = 16;
/// Rows from which a scan drops those that are too far, as a multiple of those wanted.
const DROPPED_FROM: usize = 4;

/// A row that was near enough when it was met.
#[derive(Debug, Clone, Copy)]
pub(super) struct NearRow {
    row: u32,
    distance: u16,
    /// How much it is like the query, if that was asked while its sketch was at hand.
    pub(super) alike: Option<i32>,
}

impl NearRow {
    pub(super) fn new(row: usize, distance: u16, alike: Option<i32>) -> Self {
        // A table has fewer than 2^32 rows.
        let row = row as u32;
        NearRow { row, distance, alike }
    }

    pub(super) fn row(&self) -> usize {
        self.row as usize
    }
}

/// The rows at the smallest distances seen so far.
pub(super) struct NearestRows {
    /// Largest distance that still counts.
    pub(super) limit: u16,
    pub(super) wanted: usize,
    /// Number of rows at each distance up to the limit, and in all.
    counts: Vec<usize>,
    pub(super) count: usize,
    rows: Vec<NearRow>,
    /// Number of rows from which those that no longer count are dropped.
    most: usize,
}

impl NearestRows {
    pub(super) fn new(dimension: usize, wanted: usize) -> Self {
        NearestRows {
            limit: u16::try_from(dimension).unwrap_or(u16::MAX),
            wanted,
            counts: vec![0; dimension + 1],
            count: 0,
            rows: Vec::new(),
            most: wanted.saturating_mul(DROPPED_FROM),
        }
    }

    /// What a scan of one block in [`SAMPLED`] looks for, to learn a limit that leaves over enough rows of all blocks.
    /// None if there are too few of them.
    pub(super) fn of_sample(&self, blocks: usize) -> Option<Self> {
        let sampled = self.wanted / SAMPLED;
        let wanted = sampled + sampled / 4 + 32;
        let is_few = wanted.saturating_mul(4) <= blocks / SAMPLED * ROWS_PER_BLOCK;
        is_few.then(|| NearestRows::new(usize::from(self.limit), wanted))
    }

    /// The same with rows up to this distance only.
    pub(super) fn up_to(&self, limit: u16) -> Self {
        NearestRows {
            limit: limit.min(self.limit),
            ..NearestRows::new(self.counts.len() - 1, self.wanted)
        }
    }

    pub(super) fn take(&mut self, met: NearRow) {
        if self.rows.len() >= self.most {
            self.drop_beyond_limit();
        }
        self.rows.push(met);
        self.count += 1;
        if let Some(count) = self.counts.get_mut(usize::from(met.distance)) {
            *count += 1;
        }
        self.lower_limit();
    }

    /// Both together, found among different rows with the same wishes.
    pub(super) fn and(mut self, other: Self) -> Self {
        // Either has taken all of its rows up to the smaller limit.
        self.limit = self.limit.min(other.limit);
        self.rows.extend_from_slice(&other.rows);
        for (count, others) in self.counts.iter_mut().zip(&other.counts) {
            *count += others;
        }
        let counted = self.counts.iter().take(usize::from(self.limit) + 1);
        self.count = counted.sum();
        self.lower_limit();
        self
    }

    /// The rows at the largest distance are dropped once the nearer ones suffice.
    fn lower_limit(&mut self) {
        while let Some(farthest) = self.counts.get(usize::from(self.limit))
            && self.count - farthest >= self.wanted
            && self.limit > 0
        {
            self.count -= farthest;
            self.limit -= 1;
        }
    }

    /// Drops the rows beyond the limit.
    fn drop_beyond_limit(&mut self) {
        self.rows.retain(|met| met.distance <= self.limit);
        // Where many rows are equally far, few can be dropped.
        self.most = self.wanted.saturating_mul(DROPPED_FROM).max(2 * self.rows.len());
    }

    /// The rows that count.
    pub(super) fn rows(&self) -> impl Iterator<Item = &NearRow> {
        self.rows.iter().filter(|met| met.distance <= self.limit)
    }

    /// The rows that count, by number, with their distances.
    pub(super) fn distances(&self) -> impl Iterator<Item = (usize, u16)> {
        self.rows().map(|met| (met.row(), met.distance))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_nearest_are_kept(
            distances in prop::collection::vec(0u16..=8, 0..2_000),
            wanted in 1usize..40,
        ) {
            let mut near = NearestRows::new(8, wanted);
            let most = DROPPED_FROM * wanted;
            let mut largest = 0;
            for (row, &distance) in distances.iter().enumerate() {
                if distance <= near.limit {
                    largest = largest.max(near.count);
                    near.take(NearRow::new(row, distance, Some(row as i32)));
                }
            }
            // All rows that are no farther than the last one wanted, in their order.
            let mut sorted = distances.clone();
            sorted.sort_unstable();
            let limit = sorted.get(wanted - 1).copied().unwrap_or(u16::MAX);
            let expected: Vec<(usize, u16)> = distances.into_iter().enumerate().filter(|(_, far)| *far <= limit).collect();
            prop_assert_eq!(near.count, expected.len());
            prop_assert_eq!(near.distances().collect::<Vec<_>>(), expected);
            prop_assert!(near.rows().all(|met| met.alike == Some(met.row() as i32)));
            prop_assert!(near.rows.len() <= most.max(2 * largest), "{} of {}", near.rows.len(), largest);
        }

        #[test]
        fn what_parts_of_the_rows_keep_is_together_what_all_keep(
            distances in prop::collection::vec(0u16..=8, 0..600),
            wanted in 1usize..40,
            parts in 1usize..5,
        ) {
            let kept_of = |rows: &[(usize, u16)]| {
                let mut near = NearestRows::new(8, wanted);
                for &(row, distance) in rows {
                    if distance <= near.limit {
                        near.take(NearRow::new(row, distance, None));
                    }
                }
                near
            };
            let rows: Vec<(usize, u16)> = distances.into_iter().enumerate().collect();
            let whole = kept_of(&rows);
            let parts = rows.chunks((rows.len() / parts).max(1)).map(kept_of);
            let joined = parts.reduce(NearestRows::and).unwrap_or_else(|| kept_of(&[]));
            prop_assert_eq!((joined.limit, joined.count), (whole.limit, whole.count));
            let sorted = |near: &NearestRows| {
                let mut rows: Vec<(usize, u16)> = near.distances().collect();
                rows.sort_unstable();
                rows
            };
            prop_assert_eq!(sorted(&joined), sorted(&whole));
        }
    }
}
