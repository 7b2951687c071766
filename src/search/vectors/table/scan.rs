//! The scan of sketches: which rows are nearest to a query by Hamming distance.
//!
//! A large table is scanned by several threads.

use rayon::iter::ParallelIterator;
use rayon::slice::ParallelSlice;

use super::super::binary_code::{BinaryCode, CodeScorer, ROWS_AT_ONCE};
use super::super::rows::ROWS_PER_BLOCK;
use super::Table;
use super::nearest_rows::{NearRow, NearestRows, SAMPLED};
use crate::capacity::search_pool;
use crate::search::document::RowFilter;

/// Blocks from which a scan is divided, and blocks that one thread scans at a time.
pub(super) const MANY_BLOCKS: usize = 256;
const BLOCKS_AT_ONCE: usize = 32;

/// What a scan looks for, and which rows may be taken.
struct Scan<'a, A> {
    table: &'a Table,
    sketch: BinaryCode,
    /// How much a row is like the query, for all rows met within a limit that leaves few.
    estimate: Option<&'a CodeScorer>,
    /// Whether to take a row, by number and class.
    accepts: A,
}

impl Table {
    /// Takes the nearest rows that `accepts` lets pass by number and class, in no particular order. Blocks without an
    /// allowed class are left out. Rows of a large table are estimated while their sketches are at hand: to look these
    /// up later costs a page of memory each.
    pub(super) fn scan(
        &self,
        query: &[i8],
        allowed: &impl RowFilter,
        near: NearestRows,
        estimate: Option<&CodeScorer>,
        accepts: impl Fn(usize, u8) -> bool + Sync,
    ) -> NearestRows {
        // Nodes and passages are mostly written apart.
        let has_allowed = |classes: &[u8]| classes.iter().any(|class| allowed.class(*class));
        let blocks: Vec<usize> = (0..self.rows.blocks())
            .zip(self.classes.chunks(ROWS_PER_BLOCK))
            .filter_map(|(block, classes)| has_allowed(classes).then_some(block))
            .collect();
        let mut scan = Scan {
            table: self,
            sketch: BinaryCode::of(query),
            estimate: None,
            accepts,
        };
        if let Some(sample) = near.of_sample(blocks.len()) {
            let sample = scan.blocks(blocks.iter().copied().step_by(SAMPLED), sample);
            let guessed = near.up_to(sample.limit);
            let is_whole = guessed.limit == near.limit;
            scan.estimate = estimate;
            let found = scan.all(&blocks, guessed);
            if is_whole || found.count >= found.wanted {
                return found;
            }
        }
        scan.blocks(blocks.iter().copied(), near)
    }
}

impl<A: Fn(usize, u8) -> bool + Sync> Scan<'_, A> {
    /// Scans the blocks, with several threads if there are many of them.
    fn all(&self, blocks: &[usize], near: NearestRows) -> NearestRows {
        let threads = (blocks.len() >= MANY_BLOCKS).then(search_pool).flatten();
        let Some(threads) = threads else {
            return self.blocks(blocks.iter().copied(), near);
        };
        let none = || near.up_to(near.limit);
        let scanned = |near, blocks: &[usize]| self.blocks(blocks.iter().copied(), near);
        threads.install(|| {
            let parts = blocks.par_chunks(BLOCKS_AT_ONCE).fold(none, scanned);
            parts.reduce(none, NearestRows::and)
        })
    }

    fn blocks(&self, blocks: impl Iterator<Item = usize>, mut near: NearestRows) -> NearestRows {
        let rows = &self.table.rows;
        let mut distances = [0u16; ROWS_AT_ONCE];
        let bytes = ROWS_AT_ONCE * rows.code_bytes();
        for block in blocks {
            let parts = rows.binary_codes(block).chunks(bytes);
            let numbers = (block * ROWS_PER_BLOCK..).step_by(ROWS_AT_ONCE);
            for (part, first) in parts.zip(numbers) {
                let places = self.sketch.distances(part, &mut distances, near.limit);
                self.take_within(places, first, part, &distances, &mut near);
            }
        }
        near
    }

    /// Takes those of successive rows that are near enough: at most those at these places, one bit for each. The last part
    /// of a table has fewer rows than there are distances.
    fn take_within(
        &self,
        mut places: u64,
        first: usize,
        part: &[u8],
        distances: &[u16; ROWS_AT_ONCE],
        near: &mut NearestRows,
    ) {
        let classes = self.table.classes.get(first..).unwrap_or_default();
        while places != 0 {
            let place = places.trailing_zeros() as usize;
            places &= places - 1;
            let (Some(&distance), Some(&class)) = (distances.get(place), classes.get(place)) else {
                return;
            };
            let row = first + place;
            // The limit falls while rows are taken.
            if distance <= near.limit && (self.accepts)(row, class) {
                let alike = self
                    .estimate
                    .and_then(|estimate| Some(estimate.score(self.table.rows.binary_code_in(part, place)?)));
                near.take(NearRow::new(row, distance, alike));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use test_support::extent;
    use uuid::Uuid;

    use super::super::super::rows::{Extent, NewRow};
    use super::*;
    use crate::domain::node::{NodeStatus, NodeType};
    use crate::domain::tlp::Tlp;
    use crate::search::document::{Population, class_of};

    #[test]
    fn many_threads_find_what_one_finds() {
        const DIMENSION: usize = 8;
        let mut table = Table::open(None, Extent::default(), DIMENSION).unwrap();
        let class = class_of(Population::Main, NodeType::Actor, NodeStatus::Active, Tlp::White);
        for block in 0..extent(20, MANY_BLOCKS + 3) {
            let rows = block * ROWS_PER_BLOCK..(block + 1) * ROWS_PER_BLOCK;
            let vector = |row: usize| {
                [0; DIMENSION].map(|_| -1).map({
                    let mut bits = row * 7919 % 251;
                    move |sign: i8| {
                        bits /= 2;
                        if bits % 2 == 1 { -sign } else { sign }
                    }
                })
            };
            let vectors: Vec<(usize, [i8; DIMENSION])> = rows.map(|row| (row, vector(row))).collect();
            let new = vectors
                .iter()
                .map(|(row, vector)| NewRow::new(Uuid::from_u128(*row as u128), 1, class, Some(vector)));
            table.put(&new.collect::<Vec<_>>()).unwrap();
        }
        let estimate = CodeScorer::of(&[1; DIMENSION]);
        let scan = Scan {
            table: &table,
            sketch: BinaryCode::of(&[1; DIMENSION]),
            estimate: Some(&estimate),
            accepts: |row: usize, _| !row.is_multiple_of(3),
        };
        // A smaller table is scanned again and again.
        let blocks = (0..table.rows.blocks()).cycle().take(MANY_BLOCKS + 3);
        let blocks: Vec<usize> = blocks.collect();
        let sorted = |near: NearestRows| {
            let mut rows: Vec<(usize, u16)> = near.distances().collect();
            // Each sign that differs takes two from the sum of the signs.
            let estimated =
                |met: &NearRow, far: u16| met.alike == Some(DIMENSION as i32 - 2 * i32::from(far));
            let mut both = near.rows().zip(&rows);
            assert!(both.all(|(met, (_, distance))| estimated(met, *distance)));
            rows.sort_unstable();
            rows
        };
        for wanted in [1, 500, 100_000] {
            let near = || NearestRows::new(DIMENSION, wanted);
            let one = sorted(scan.blocks(blocks.iter().copied(), near()));
            assert!(one.len() >= wanted);
            assert_eq!(sorted(scan.all(&blocks, near())), one);
        }
    }
}
