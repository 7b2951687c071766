//! What a scan of sketches keeps: the rows at the smallest distances.

use super::super::rows::ROWS_PER_BLOCK;

/// A scan first looks at one block of so many, to learn how near the nearest rows are.
pub(super) const SAMPLED: usize = 16;
/// Rows from which a scan drops those that are too far, as a multiple of those wanted.
const DROPPED_FROM: usize = 4;

/// The rows at the smallest distances seen so far.
pub(super) struct Nearest {
    /// Largest distance that still counts.
    pub(super) limit: u16,
    pub(super) wanted: usize,
    /// Number of rows at each distance up to the limit, and in all.
    counts: Vec<usize>,
    pub(super) count: usize,
    rows: Vec<(u32, u16)>,
    /// The sketches of the first rows, one after another: to look them up later costs a page of memory each.
    sketches: Vec<u8>,
    /// Bytes of one, 0 if they aren't kept.
    width: usize,
    /// Number of rows from which those that no longer count are dropped.
    most: usize,
}

impl Nearest {
    pub(super) fn new(dimension: usize, wanted: usize) -> Self {
        Nearest {
            limit: u16::try_from(dimension).unwrap_or(u16::MAX),
            wanted,
            counts: vec![0; dimension + 1],
            count: 0,
            rows: Vec::new(),
            sketches: Vec::new(),
            width: 0,
            most: wanted.saturating_mul(DROPPED_FROM),
        }
    }

    /// What a scan of one block in [`SAMPLED`] looks for, to learn a limit that leaves over enough rows of all blocks.
    /// None if there are too few of them.
    pub(super) fn of_sample(&self, blocks: usize) -> Option<Self> {
        let sampled = self.wanted / SAMPLED;
        let wanted = sampled + sampled / 4 + 32;
        let is_few = wanted.saturating_mul(4) <= blocks / SAMPLED * ROWS_PER_BLOCK;
        is_few.then(|| Nearest::new(usize::from(self.limit), wanted))
    }

    /// The same with rows up to this distance only.
    pub(super) fn up_to(&self, limit: u16) -> Self {
        let near = Nearest::new(self.counts.len() - 1, self.wanted);
        Nearest {
            limit: limit.min(self.limit),
            ..near.with_sketches(self.width)
        }
    }

    /// Keeps the sketches of the rows, which have this many bytes each.
    pub(super) fn with_sketches(self, width: usize) -> Self {
        Nearest { width, ..self }
    }

    pub(super) fn take(&mut self, row: usize, distance: u16) {
        if self.rows.len() >= self.most {
            self.drop_far();
        }
        // A table has fewer than 2^32 rows.
        self.rows.push((row as u32, distance));
        self.count += 1;
        if let Some(count) = self.counts.get_mut(usize::from(distance)) {
            *count += 1;
        }
        self.lower_limit();
    }

    /// Whether the sketch of the row taken last is to be kept. Where very many rows are equally far, those of the first do.
    pub(super) fn keeps_sketches(&self) -> bool {
        let kept = self.rows.len() <= self.wanted.saturating_mul(DROPPED_FROM);
        self.width > 0 && kept && self.sketches.len() == (self.rows.len() - 1) * self.width
    }

    /// Keeps the sketch of the row taken last.
    pub(super) fn take_sketch(&mut self, sketch: &[u8]) {
        self.sketches.extend_from_slice(sketch);
    }

    /// Both together, found among different rows with the same wishes.
    pub(super) fn and(mut self, other: Self) -> Self {
        // Either has taken all of its rows up to the smaller limit.
        self.limit = self.limit.min(other.limit);
        if self.sketches.len() == self.rows.len() * self.width {
            self.sketches.extend_from_slice(&other.sketches);
        }
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
    fn drop_far(&mut self) {
        let (mut kept, mut sketches) = (0, 0);
        for at in 0..self.rows.len() {
            let Some(row) = self.rows.get(at).filter(|(_, distance)| *distance <= self.limit) else {
                continue;
            };
            let row = *row;
            if let Some(place) = self.rows.get_mut(kept) {
                *place = row;
            }
            let sketch = at * self.width..(at + 1) * self.width;
            if sketch.end <= self.sketches.len() {
                self.sketches.copy_within(sketch, kept * self.width);
                sketches = (kept + 1) * self.width;
            }
            kept += 1;
        }
        self.rows.truncate(kept);
        self.sketches.truncate(sketches);
        // Where many rows are equally far, few can be dropped.
        self.most = self.wanted.saturating_mul(DROPPED_FROM).max(2 * kept);
    }

    /// The rows with their distances.
    pub(super) fn into_near(self) -> impl Iterator<Item = (usize, u16)> {
        let near = self.rows.into_iter();
        near.filter(move |(_, distance)| *distance <= self.limit)
            .map(|(row, distance)| (row as usize, distance))
    }

    /// The rows with their sketches as far as these were kept.
    pub(super) fn with_their_sketches(&self) -> impl Iterator<Item = (usize, Option<&[u8]>)> {
        let kept = self.sketches.chunks_exact(self.width.max(1)).map(Some);
        let rows = self.rows.iter().zip(kept.chain(std::iter::repeat(None)));
        rows.filter(|((_, distance), _)| *distance <= self.limit)
            .map(|((row, _), sketch)| (*row as usize, sketch))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_nearest_are_kept_with_their_sketches(
            distances in prop::collection::vec(0u16..=8, 0..2_000),
            wanted in 1usize..40,
        ) {
            let mut near = Nearest::new(8, wanted).with_sketches(3);
            let most = DROPPED_FROM * wanted;
            let (mut was_full, mut largest) = (false, 0);
            for (row, &distance) in distances.iter().enumerate() {
                if distance <= near.limit {
                    largest = largest.max(near.count);
                    near.take(row, distance);
                    was_full |= near.rows.len() > most;
                    if near.keeps_sketches() {
                        let [low, high] = (row as u16).to_le_bytes();
                        near.take_sketch(&[low, high, distance as u8]);
                    }
                }
            }
            // All rows that are no farther than the last one wanted, in their order.
            let mut sorted = distances.clone();
            sorted.sort_unstable();
            let limit = sorted.get(wanted - 1).copied().unwrap_or(u16::MAX);
            let expected: Vec<usize> = (0..distances.len()).filter(|row| distances[*row] <= limit).collect();
            let kept: Vec<usize> = near.with_their_sketches().map(|(row, _)| row).collect();
            prop_assert_eq!(near.count, expected.len());
            prop_assert_eq!(&kept, &expected);
            for (row, sketch) in near.with_their_sketches() {
                let [low, high] = (row as u16).to_le_bytes();
                prop_assert!(sketch.is_some() || was_full);
                let is_its = sketch.is_none_or(|sketch| sketch == [low, high, distances[row] as u8]);
                prop_assert!(is_its);
            }
            prop_assert!(near.rows.len() <= most.max(2 * largest), "{} of {}", near.rows.len(), largest);
            prop_assert!(near.sketches.len() <= 3 * most);
            let rows: Vec<usize> = near.into_near().map(|(row, _)| row).collect();
            prop_assert_eq!(rows, expected);
        }

        #[test]
        fn what_parts_of_the_rows_keep_is_together_what_all_keep(
            distances in prop::collection::vec(0u16..=8, 0..600),
            wanted in 1usize..40,
            parts in 1usize..5,
        ) {
            let kept_of = |rows: &[(usize, u16)]| {
                let mut near = Nearest::new(8, wanted).with_sketches(2);
                for &(row, distance) in rows.iter().filter(|(_, distance)| *distance <= 8) {
                    if distance <= near.limit {
                        near.take(row, distance);
                        if near.keeps_sketches() {
                            near.take_sketch(&(row as u16).to_le_bytes());
                        }
                    }
                }
                near
            };
            let rows: Vec<(usize, u16)> = distances.into_iter().enumerate().collect();
            let whole = kept_of(&rows);
            let parts = rows.chunks((rows.len() / parts).max(1)).map(kept_of);
            let joined = parts.reduce(Nearest::and).unwrap_or_else(|| kept_of(&[]));
            prop_assert_eq!((joined.limit, joined.count), (whole.limit, whole.count));
            for (row, sketch) in joined.with_their_sketches() {
                prop_assert!(sketch.is_none_or(|sketch| sketch == (row as u16).to_le_bytes()));
            }
            let sorted = |near: Nearest| {
                let mut rows: Vec<(usize, u16)> = near.into_near().collect();
                rows.sort_unstable();
                rows
            };
            prop_assert_eq!(sorted(joined), sorted(whole));
        }
    }
}
