//! The search by meaning: a scan of the sketches of all rows that the caller may see, of which the most alike are scored
//! by their vectors.

use uuid::Uuid;

use super::super::document::{Accepts, Candidate, Ends, GONE};
use super::super::dot::dot;
use super::super::facts::Facts;
use super::super::rows::{ROWS_PER_BLOCK, scale_of};
use super::super::sketch::{Estimate, Sketch};
use super::super::top::Top;
use super::Table;

/// Least number of rows that a search takes from the scan of the sketches, and the share of all rows (1 in 128).
const MIN_NEAR: usize = 8192;
const NEAR_SHARE: usize = 128;
/// Least number of those rows that are scored by their vectors, and their number for each result asked for.
const MIN_SCORED: usize = 2048;
const SCORED_PER_RESULT: usize = 20;
/// How many times as many rows as wanted are likely to hold them, where some may prove not to be allowed.
const LIKELY: usize = 2;
/// Rows from which a scan drops those that are too far, as a multiple of those wanted.
const DROPPED_FROM: usize = 4;

impl Table {
    /// The `limit` allowed rows nearest to the query, best first.
    pub(in crate::search) fn nearest(
        &self,
        query: &[i8],
        allowed: &impl Accepts,
        limit: usize,
    ) -> Vec<(Uuid, f32)> {
        self.nearest_within(query, allowed, limit, self.depth(limit).widened(self.widening))
    }

    /// The `limit` accepted passages nearest to the query, best first. Fewer vote than there are results, so the search
    /// looks less deep.
    pub(in crate::search) fn nearest_passages(
        &self,
        query: &[i8],
        accepted: &impl Accepts,
        limit: usize,
    ) -> Vec<(Uuid, f32)> {
        let depth = Depth::SHALLOW.widened(self.widening);
        let near = || self.candidates_at_cost(query, accepted, depth.near);
        self.best_of(query, near, limit, depth.scored)
    }

    /// Some of the allowed rows that are nearest to the query, best first, where not all of the best are needed.
    pub(in crate::search) fn near(
        &self,
        query: &[i8],
        allowed: &impl Accepts,
        limit: usize,
    ) -> Vec<(Uuid, f32)> {
        self.nearest_within(query, allowed, limit, Depth::SHALLOW.widened(self.widening))
    }

    /// How deep a search looks, unless the model needs more.
    pub(in crate::search) fn depth(&self, limit: usize) -> Depth {
        let scored = MIN_SCORED.max(limit.saturating_mul(SCORED_PER_RESULT));
        Depth {
            near: MIN_NEAR.max(self.rows.len() / NEAR_SHARE).max(scored),
            scored,
        }
    }

    /// The nearest rows as far as a search of this depth finds them.
    pub(in crate::search) fn nearest_within(
        &self,
        query: &[i8],
        allowed: &impl Accepts,
        limit: usize,
        depth: Depth,
    ) -> Vec<(Uuid, f32)> {
        let mut near = Nearest::new(query.len(), depth.near);
        if depth.scored < usize::MAX {
            near = near.with_sketches(self.rows.sketch_bytes());
        }
        self.best_of(
            query,
            || self.candidates(query, allowed, near),
            limit,
            depth.scored,
        )
    }

    /// The best of these rows by the vectors of the `scored` that are most alike. A query without a direction has none.
    fn best_of(
        &self,
        query: &[i8],
        near: impl FnOnce() -> Nearest,
        limit: usize,
        scored: usize,
    ) -> Vec<(Uuid, f32)> {
        let scale = scale_of(query);
        if scale == 0.0 || limit == 0 {
            return Vec::new();
        }
        let mut top = Top::new(limit);
        for row in self.most_alike(query, near(), scored) {
            let dot = self.rows.vector(row).and_then(|vector| dot(vector, query));
            if let (Some(dot), Some(head)) = (dot, self.rows.head(row)) {
                top.offer(head.node, dot as f32 * head.scale);
            }
        }
        let sorted = top.into_sorted().into_iter();
        sorted
            .map(|(node, dot)| (node, (dot * scale).clamp(-1.0, 1.0)))
            .collect()
    }

    /// Those `count` of the rows that are most like the query by its own components and their signs, in their order.
    fn most_alike(&self, query: &[i8], near: Nearest, count: usize) -> Vec<usize> {
        if near.count <= count {
            return near.into_near().map(|(row, _)| row).collect();
        }
        let estimate = Estimate::of(query);
        let mut rated: Vec<(f32, usize)> = near
            .with_their_sketches()
            .map(|(row, kept)| {
                let sketch = kept.unwrap_or_else(|| self.rows.sketch(row));
                (estimate.for_sketch(sketch), row)
            })
            .collect();
        if count < rated.len() {
            rated.select_nth_unstable_by(count, |(a, row), (b, other)| {
                b.total_cmp(a).then_with(|| row.cmp(other))
            });
            rated.truncate(count);
        }
        let mut rows: Vec<usize> = rated.into_iter().map(|(_, row)| row).collect();
        rows.sort_unstable();
        rows
    }

    /// The allowed rows whose sketches are nearest to the query's, as many as `near` wants at least, or all of them.
    fn candidates(&self, query: &[i8], allowed: &impl Accepts, mut near: Nearest) -> Nearest {
        self.scan(query, allowed, |row, class, distance| {
            let scanned = Scanned { table: self, row };
            if distance <= near.limit && allowed.row(class, &scanned) {
                near.take(row, distance);
                if near.keeps_sketches() {
                    near.take_sketch(self.rows.sketch(row));
                }
            }
        });
        near
    }

    /// The same where it costs much to tell whether a row is allowed: only the nearest of those whose class is.
    fn candidates_at_cost(&self, query: &[i8], allowed: &impl Accepts, wanted: usize) -> Nearest {
        let mut likely = wanted.saturating_mul(LIKELY);
        loop {
            let mut met = Nearest::new(query.len(), likely);
            self.scan(query, allowed, |row, class, distance| {
                if distance <= met.limit && allowed.class(class) {
                    met.take(row, distance);
                }
            });
            let is_all = met.count < likely;
            let mut near = Nearest::new(query.len(), wanted);
            for (row, distance) in met.into_near() {
                let scanned = Scanned { table: self, row };
                let class = self.classes.get(row).copied().unwrap_or(GONE);
                if distance <= near.limit && allowed.row(class, &scanned) {
                    near.take(row, distance);
                }
            }
            if near.count >= wanted || is_all {
                return near;
            }
            likely = likely.saturating_mul(LIKELY * LIKELY);
        }
    }

    /// Passes each row, with its class and distance from the query, in their order. Blocks without an allowed class are
    /// left out.
    fn scan(&self, query: &[i8], allowed: &impl Accepts, mut each: impl FnMut(usize, u8, u16)) {
        let sketch = Sketch::of(query);
        let mut distances = [0u16; ROWS_PER_BLOCK];
        for (block, classes) in (0..self.rows.blocks()).zip(self.classes.chunks(ROWS_PER_BLOCK)) {
            // Nodes and passages are mostly written apart.
            if !classes.iter().any(|class| allowed.class(*class)) {
                continue;
            }
            sketch.distances(self.rows.sketches(block), &mut distances);
            let first = block * ROWS_PER_BLOCK;
            for (place, (&class, &distance)) in classes.iter().zip(&distances).enumerate() {
                each(first + place, class, distance);
            }
        }
    }
}

/// A row met by a scan.
struct Scanned<'a> {
    table: &'a Table,
    row: usize,
}

impl Candidate for Scanned<'_> {
    fn node(&self) -> Uuid {
        self.table.rows.node(self.row).unwrap_or_default()
    }

    fn ends(&self) -> Option<Ends> {
        self.table.rows.ends(self.row)
    }

    fn classes_of_ends(&self) -> Option<[u8; 2]> {
        self.table.classes_of_ends_at(self.row)
    }

    fn facts(&self) -> Option<Facts> {
        self.table.rows.head(self.row).map(|head| head.facts)
    }
}

/// How many rows a search looks at.
#[derive(Debug, Clone, Copy)]
pub(in crate::search) struct Depth {
    /// Rows whose sketches are nearest to the query's.
    near: usize,
    /// Those of them that are scored by their vectors.
    pub(in crate::search) scored: usize,
}

impl Depth {
    /// Every row is scored.
    pub(in crate::search) const EXACT: Depth = Depth {
        near: usize::MAX,
        scored: usize::MAX,
    };

    /// For the passages that vote, and the nodes that a question may mean: few, so that all of them are scored.
    const SHALLOW: Depth = Depth {
        near: 512,
        scored: usize::MAX,
    };

    pub(in crate::search) fn widened(self, by: usize) -> Self {
        Depth {
            near: self.near.saturating_mul(by),
            scored: self.scored.saturating_mul(by),
        }
    }
}

/// The rows at the smallest distances seen so far.
struct Nearest {
    /// Largest distance that still counts.
    limit: u16,
    wanted: usize,
    /// Number of rows at each distance up to the limit, and in all.
    counts: Vec<usize>,
    count: usize,
    rows: Vec<(u32, u16)>,
    /// The sketches of the first rows, one after another: to look them up later costs a page of memory each.
    sketches: Vec<u8>,
    /// Bytes of one, 0 if they aren't kept.
    width: usize,
    /// Number of rows from which those that no longer count are dropped.
    most: usize,
}

impl Nearest {
    fn new(dimension: usize, wanted: usize) -> Self {
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

    /// Keeps the sketches of the rows, which have this many bytes each.
    fn with_sketches(self, width: usize) -> Self {
        Nearest { width, ..self }
    }

    fn take(&mut self, row: usize, distance: u16) {
        if self.rows.len() >= self.most {
            self.drop_far();
        }
        // A table has fewer than 2^32 rows.
        self.rows.push((row as u32, distance));
        self.count += 1;
        if let Some(count) = self.counts.get_mut(usize::from(distance)) {
            *count += 1;
        }
        // The rows at the largest distance are dropped once the nearer ones suffice.
        while let Some(farthest) = self.counts.get(usize::from(self.limit))
            && self.count - farthest >= self.wanted
            && self.limit > 0
        {
            self.count -= farthest;
            self.limit -= 1;
        }
    }

    /// Whether the sketch of the row taken last is to be kept. Where very many rows are equally far, those of the first do.
    fn keeps_sketches(&self) -> bool {
        let kept = self.rows.len() <= self.wanted.saturating_mul(DROPPED_FROM);
        self.width > 0 && kept && self.sketches.len() == (self.rows.len() - 1) * self.width
    }

    /// Keeps the sketch of the row taken last.
    fn take_sketch(&mut self, sketch: &[u8]) {
        self.sketches.extend_from_slice(sketch);
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

    /// The rows with their distances, in their order.
    fn into_near(self) -> impl Iterator<Item = (usize, u16)> {
        let near = self.rows.into_iter();
        near.filter(move |(_, distance)| *distance <= self.limit)
            .map(|(row, distance)| (row as usize, distance))
    }

    /// The rows with their sketches as far as these were kept.
    fn with_their_sketches(&self) -> impl Iterator<Item = (usize, Option<&[u8]>)> {
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
            let mut was_full = false;
            for (row, &distance) in distances.iter().enumerate() {
                if distance <= near.limit {
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
            prop_assert!(near.rows.len() <= most.max(2 * expected.len()) + 1, "{} of {}", near.rows.len(), expected.len());
            prop_assert!(near.sketches.len() <= 3 * most);
            let rows: Vec<usize> = near.into_near().map(|(row, _)| row).collect();
            prop_assert_eq!(rows, expected);
        }
    }
}
