//! The search by meaning: a scan of the sketches of all rows that the caller may see, of which the most alike are scored
//! by their vectors.

use rayon::iter::ParallelIterator;
use rayon::slice::ParallelSlice;
use uuid::Uuid;

use super::super::binary_code::CodeScorer;
use super::super::dot::dot;
use super::super::rows::scale_of;
use super::Table;
use super::nearest_rows::{NearRow, NearestRows};
use super::scan::MANY_BLOCKS;
use crate::capacity::search_pool;
use crate::search::document::facts::Facts;
use crate::search::document::{Candidate, Ends, GONE, RowFilter};
use crate::search::keyword::top::Top;

/// Least number of rows that a search takes from the scan of the sketches, and the share of the allowed rows (1 in 128).
const MIN_NEAR: usize = 8192;
const NEAR_SHARE: usize = 128;
/// Least number of those rows that are scored by their vectors, and their number for each result asked for.
const MIN_SCORED: usize = 2048;
const SCORED_PER_RESULT: usize = 20;
/// How many times as many rows as wanted are likely to hold them, where some may prove not to be allowed.
const LIKELY: usize = 2;
/// Rows of a large table that one thread scores at a time.
const SCORED_AT_ONCE: usize = 512;

impl Table {
    /// The `limit` allowed rows nearest to the query, best first.
    pub(in crate::search) fn nearest(
        &self,
        query: &[i8],
        allowed: &impl RowFilter,
        limit: usize,
    ) -> Vec<(Uuid, f32)> {
        let depth = self.depth(allowed, limit).widen_by(self.widening_for(allowed));
        self.nearest_within(query, allowed, limit, depth)
    }

    /// The `limit` accepted passages nearest to the query, best first. Fewer vote than there are results, so the search
    /// looks less deep.
    pub(in crate::search) fn nearest_passages(
        &self,
        query: &[i8],
        accepted: &impl RowFilter,
        limit: usize,
    ) -> Vec<(Uuid, f32)> {
        let depth = Depth::SHALLOW.widen_by(self.widening_for(accepted));
        let rows = || {
            let near = self.candidates_at_cost(query, accepted, depth.near);
            near.rows().map(NearRow::row).collect()
        };
        self.best_of(query, rows, limit)
    }

    /// Some of the allowed rows that are nearest to the query, best first, where not all of the best are needed.
    pub(in crate::search) fn nearest_approximate(
        &self,
        query: &[i8],
        allowed: &impl RowFilter,
        limit: usize,
    ) -> Vec<(Uuid, f32)> {
        let depth = Depth::SHALLOW.widen_by(self.widening_for(allowed));
        self.nearest_within(query, allowed, limit, depth)
    }

    /// What the model needs where these rows are searched.
    fn widening_for(&self, allowed: &impl RowFilter) -> usize {
        let highest = usize::from(allowed.highest_tlp().rank());
        self.widening.get(highest).copied().unwrap_or(1)
    }

    /// How deep a search of these rows looks, unless the model needs more.
    pub(in crate::search) fn depth(&self, allowed: &impl RowFilter, limit: usize) -> Depth {
        let scored = MIN_SCORED.max(limit.saturating_mul(SCORED_PER_RESULT));
        Depth {
            near: MIN_NEAR.max(self.count(allowed) / NEAR_SHARE).max(scored),
            scored,
        }
    }

    /// The nearest rows as far as a search of this depth finds them.
    pub(in crate::search) fn nearest_within(
        &self,
        query: &[i8],
        allowed: &impl RowFilter,
        limit: usize,
        depth: Depth,
    ) -> Vec<(Uuid, f32)> {
        let rows = || {
            let near = NearestRows::new(query.len(), depth.near);
            if depth.scored == usize::MAX {
                let near = self.candidates(query, allowed, near, None);
                return near.rows().map(NearRow::row).collect();
            }
            let estimate = CodeScorer::of(query);
            let near = self.candidates(query, allowed, near, Some(&estimate));
            self.rescore(&near, &estimate, depth.scored)
        };
        self.best_of(query, rows, limit)
    }

    /// The best of these rows by their vectors. A query without a direction has none.
    fn best_of(&self, query: &[i8], rows: impl FnOnce() -> Vec<usize>, limit: usize) -> Vec<(Uuid, f32)> {
        let scale = scale_of(query);
        if scale == 0.0 || limit == 0 {
            return Vec::new();
        }
        let best_of = |rows: &[usize]| {
            let mut top = Top::new(limit);
            for &row in rows {
                let dot = self.rows.vector(row).and_then(|vector| dot(vector, query));
                if let (Some(dot), Some(head)) = (dot, self.rows.head(row)) {
                    top.offer(head.node, dot as f32 * head.scale);
                }
            }
            top
        };
        let rows = rows();
        let is_shared = self.rows.blocks() >= MANY_BLOCKS && rows.len() > SCORED_AT_ONCE;
        let top = match is_shared.then(search_pool).flatten() {
            None => best_of(&rows),
            Some(threads) => {
                let parts = rows.par_chunks(SCORED_AT_ONCE).map(best_of);
                Top::new(limit).and(threads.install(|| parts.collect()))
            }
        };
        let sorted = top.into_sorted().into_iter();
        sorted
            .map(|(node, dot)| (node, (dot * scale).clamp(-1.0, 1.0)))
            .collect()
    }

    /// Those `count` of the rows that are most like the query by its own components and their signs, in their order.
    fn rescore(&self, near: &NearestRows, estimate: &CodeScorer, count: usize) -> Vec<usize> {
        if near.count <= count {
            return near.rows().map(NearRow::row).collect();
        }
        let mut rated: Vec<(i32, usize)> = near
            .rows()
            .map(|met| {
                let own = || estimate.score(self.rows.binary_code(met.row()));
                (met.alike.unwrap_or_else(own), met.row())
            })
            .collect();
        if count < rated.len() {
            rated.select_nth_unstable_by(count, |(a, row), (b, other)| {
                b.cmp(a).then_with(|| row.cmp(other))
            });
            rated.truncate(count);
        }
        let mut rows: Vec<usize> = rated.into_iter().map(|(_, row)| row).collect();
        rows.sort_unstable();
        rows
    }

    /// The allowed rows whose sketches are nearest to the query's, as many as `near` wants at least, or all of them.
    fn candidates(
        &self,
        query: &[i8],
        allowed: &impl RowFilter,
        near: NearestRows,
        estimate: Option<&CodeScorer>,
    ) -> NearestRows {
        self.scan(query, allowed, near, estimate, |row, class| {
            allowed.row(class, &ScannedRow { table: self, row })
        })
    }

    /// The same where it costs much to tell whether a row is allowed: only the nearest of those whose class is.
    fn candidates_at_cost(&self, query: &[i8], allowed: &impl RowFilter, wanted: usize) -> NearestRows {
        let mut likely = wanted.saturating_mul(LIKELY);
        loop {
            let met = NearestRows::new(query.len(), likely);
            let met = self.scan(query, allowed, met, None, |_, class| allowed.class(class));
            let is_all = met.count < likely;
            let mut near = NearestRows::new(query.len(), wanted);
            for (row, distance) in met.distances() {
                let scanned = ScannedRow { table: self, row };
                let class = self.classes.get(row).copied().unwrap_or(GONE);
                if distance <= near.limit && allowed.row(class, &scanned) {
                    near.take(NearRow::new(row, distance, None));
                }
            }
            if near.count >= wanted || is_all {
                return near;
            }
            likely = likely.saturating_mul(LIKELY * LIKELY);
        }
    }
}

/// A row met by a scan.
struct ScannedRow<'a> {
    table: &'a Table,
    row: usize,
}

impl Candidate for ScannedRow<'_> {
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

    pub(in crate::search) fn widen_by(self, by: usize) -> Self {
        Depth {
            near: self.near.saturating_mul(by),
            scored: self.scored.saturating_mul(by),
        }
    }
}

#[cfg(test)]
mod tests {
    use test_support::extent;

    use super::super::super::rows::{Extent, NewRow, ROWS_PER_BLOCK};
    use super::super::nearest_rows::SAMPLED;
    use super::*;
    use crate::domain::node::{NodeStatus, NodeType};
    use crate::domain::tlp::Tlp;
    use crate::search::document::{CompiledFilter, Filter, Population, class_of};

    /// All near rows lie in the sampled blocks, in the others, or evenly; the filter lets some classes pass.
    #[test]
    fn a_guessed_limit_loses_no_row() {
        let blocks = extent(18, 40);
        let dimension = 64;
        let query = vec![1i8; dimension];
        let is_sampled = |row: usize| (row / ROWS_PER_BLOCK).is_multiple_of(SAMPLED);
        let places: [&dyn Fn(usize) -> bool; 3] =
            [&is_sampled, &|row| !is_sampled(row), &|row| row.is_multiple_of(3)];
        let allowed = CompiledFilter::of(&Filter::up_to(Tlp::Green));
        for is_near in places {
            let mut table = Table::open(None, Extent::default(), dimension).unwrap();
            let rows = blocks * ROWS_PER_BLOCK - 300;
            // Distances from 0 to 40, and from 20 to 60.
            let distance = |row: usize| row * 7919 % 41 + if is_near(row) { 0 } else { 20 };
            let vectors: Vec<Vec<i8>> = (0..rows)
                .map(|row| {
                    (0..dimension)
                        .map(|at| if at < distance(row) { -1 } else { 1 })
                        .collect()
                })
                .collect();
            let tlp = |row: usize| Tlp::ALL[row % Tlp::ALL.len()];
            let class = |row| class_of(Population::Main, NodeType::Actor, NodeStatus::Active, tlp(row));
            let new = vectors
                .iter()
                .enumerate()
                .map(|(row, vector)| NewRow::new(Uuid::from_u128(row as u128), 1, class(row), Some(vector)));
            table.put(&new.collect::<Vec<_>>()).unwrap();
            for wanted in [1, 200, 1_000, 20_000, usize::MAX] {
                let near = NearestRows::new(dimension, wanted);
                let found = table.candidates(&query, &allowed, near, None);
                let mut seen: Vec<(usize, usize)> = (0..rows)
                    .filter(|row| allowed.class(class(*row)))
                    .map(|row| (distance(row), row))
                    .collect();
                seen.sort_unstable();
                let limit = seen.get(wanted - 1).map_or(usize::MAX, |(distance, _)| *distance);
                seen.retain(|(distance, _)| *distance <= limit);
                let mut expected: Vec<usize> = seen.into_iter().map(|(_, row)| row).collect();
                expected.sort_unstable();
                let found: Vec<usize> = found.rows().map(NearRow::row).collect();
                assert!(
                    found == expected,
                    "{wanted}: {} of {}",
                    found.len(),
                    expected.len()
                );
            }
        }
    }
}
