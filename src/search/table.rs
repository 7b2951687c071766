//! What is known of a workspace's nodes and passages without asking the text index: the indexed version of each, and the
//! search by meaning.
//!
//! Every version gets a row of its own; the one it replaces becomes *gone*. A search scans the sketches of all rows
//! that the caller may see and scores the two thousand most alike by their vectors.

use std::hash::{BuildHasher, RandomState};
use std::path::Path;

use hashbrown::HashTable;
use uuid::Uuid;

use super::document::{Accepts, Candidate, Ends, GONE, is_passage};
use super::dot::dot;
use super::embed::quantize;
use super::error::SearchError;
use super::facts::Facts;
use super::rows::{Extent, Head, NewRow, ROWS_PER_BLOCK, Rows, scale_of};
use super::sketch::{Estimate, Sketch};
use super::top::Top;

/// Where the rows are in the directory of an index.
const DIR: &str = "rows";
/// Least number of rows that a search takes from the scan of the sketches, and the share of all rows (1 in 128).
const MIN_NEAR: usize = 8192;
const NEAR_SHARE: usize = 128;
/// Least number of those rows that are scored by their vectors, and their number for each result asked for.
const MIN_SCORED: usize = 2048;
const SCORED_PER_RESULT: usize = 20;
/// Share of gone rows from which the table is compacted (1 in 4), and their least number.
const GONE_SHARE: usize = 4;
const MIN_GONE: usize = 4096;

/// The indexed version of a node.
#[derive(Debug, Clone, Copy)]
pub(super) struct NodeState {
    pub(super) rev: u64,
    pub(super) has_vector: bool,
}

impl NodeState {
    /// Whether a document with this rev, with or without a vector, replaces the indexed one.
    pub(super) fn is_replaced_by(&self, rev: u64, vector: bool) -> bool {
        rev > self.rev || (rev == self.rev && vector && !self.has_vector)
    }
}

/// All rows of one workspace.
pub(super) struct Table {
    rows: Rows,
    /// Row of the indexed version of each node.
    nodes: HashTable<u32>,
    hasher: RandomState,
    /// Class of each row that a search may find, [`GONE`] for all others.
    classes: Vec<u8>,
    /// Number of rows that were replaced.
    gone: usize,
    /// Number of passages.
    passages: usize,
    /// How many times as many rows as usual are scored; see [`super::calibration`].
    widening: usize,
}

impl Table {
    /// The first rows of a generation in the directory of an index; in memory without one.
    pub(super) fn open(index: Option<&Path>, extent: Extent, dimension: usize) -> Result<Self, SearchError> {
        let dir = index.map(|index| index.join(DIR));
        Ok(Self::of(Rows::open(dir, extent, dimension)?))
    }

    fn of(rows: Rows) -> Self {
        let len = rows.len();
        let mut table = Table {
            rows,
            nodes: HashTable::with_capacity(len),
            hasher: RandomState::new(),
            classes: Vec::with_capacity(len),
            gone: 0,
            passages: 0,
            widening: 1,
        };
        (0..len).for_each(|row| table.publish(row));
        table
    }

    /// Makes an appended row the version of its node.
    fn publish(&mut self, row: usize) {
        let (Some(head), Ok(number)) = (self.rows.head(row), u32::try_from(row)) else {
            return;
        };
        self.classes
            .push(if head.has_vector() { head.class } else { GONE });
        let (rows, hasher) = (&self.rows, &self.hasher);
        let node_at = |row: &u32| rows.head(*row as usize).map(|head| head.node);
        let entry = self.nodes.entry(
            hasher.hash_one(head.node),
            |row| node_at(row) == Some(head.node),
            |row| hasher.hash_one(node_at(row).unwrap_or_default()),
        );
        match entry {
            hashbrown::hash_table::Entry::Occupied(mut entry) => {
                let older = std::mem::replace(entry.get_mut(), number);
                let was = rows.head(older as usize);
                self.passages -= usize::from(was.is_some_and(|was| is_passage(was.class)));
                if let Some(class) = self.classes.get_mut(older as usize) {
                    *class = GONE;
                }
                self.gone += 1;
            }
            hashbrown::hash_table::Entry::Vacant(entry) => {
                entry.insert(number);
            }
        }
        self.passages += usize::from(is_passage(head.class));
    }

    fn row_of(&self, node: Uuid) -> Option<usize> {
        let is_its = |row: &u32| {
            self.rows
                .head(*row as usize)
                .is_some_and(|head| head.node == node)
        };
        let row = self.nodes.find(self.hasher.hash_one(node), is_its)?;
        Some(*row as usize)
    }

    pub(super) fn node(&self, node: Uuid) -> Option<NodeState> {
        let head = self.head(node)?;
        Some(NodeState {
            rev: head.rev,
            has_vector: head.has_vector(),
        })
    }

    /// The class of a node's indexed version.
    pub(super) fn class(&self, node: Uuid) -> Option<u8> {
        Some(self.head(node)?.class)
    }

    /// What the row of a node's indexed version says about it.
    pub(super) fn head(&self, node: Uuid) -> Option<Head> {
        self.rows.head(self.row_of(node)?)
    }

    /// What a passage is about.
    pub(super) fn ends(&self, passage: Uuid) -> Option<Ends> {
        self.rows.ends(self.row_of(passage)?)
    }

    /// Number of passages.
    pub(super) fn passages(&self) -> usize {
        self.passages
    }

    /// Number of nodes and passages, including merged ones.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The rows that back the table.
    pub(super) fn rows(&self) -> &Rows {
        &self.rows
    }

    /// Multiplies the number of rows scored exactly.
    pub(super) fn widen(&mut self, widening: usize) {
        self.widening = widening;
    }

    pub(super) fn widening(&self) -> usize {
        self.widening
    }

    /// Records versions of nodes: all of them or, on an error, none.
    pub(super) fn put(&mut self, new: &[NewRow<'_>]) -> Result<(), SearchError> {
        let first = self.rows.len();
        if u32::try_from(first + new.len()).is_err() {
            return Err(SearchError::Index("too many rows".into()));
        }
        self.rows.append(new)?;
        (first..self.rows.len()).for_each(|row| self.publish(row));
        Ok(())
    }

    /// Forgets the rows from `len` on, and what they replaced counts again.
    pub(super) fn cut(&mut self, len: usize) {
        self.rows.truncate(len);
        self.classes.clear();
        self.nodes.clear();
        (self.gone, self.passages) = (0, 0);
        (0..self.rows.len()).for_each(|row| self.publish(row));
    }

    /// Whether so many rows are gone that [`Table::compacted`] pays.
    pub(super) fn wants_compaction(&self) -> bool {
        self.gone > (self.rows.len() / GONE_SHARE).max(MIN_GONE)
    }

    /// A copy without the gone rows, in files of its own.
    pub(super) fn compacted(&self) -> Result<Self, SearchError> {
        let mut rows = self.rows.next_generation();
        let mut kept: Vec<usize> = self.nodes.iter().map(|row| *row as usize).collect();
        kept.sort_unstable();
        for chunk in kept.chunks(ROWS_PER_BLOCK) {
            let new: Vec<NewRow<'_>> = chunk.iter().filter_map(|row| self.new_row(*row)).collect();
            rows.append(&new)?;
        }
        let mut table = Self::of(rows);
        table.widening = self.widening;
        Ok(table)
    }

    fn new_row(&self, row: usize) -> Option<NewRow<'_>> {
        let Head {
            node,
            rev,
            class,
            facts,
            scale,
            ..
        } = self.rows.head(row)?;
        let vector = self.rows.vector(row).filter(|_| scale > 0.0);
        Some(NewRow {
            node,
            rev,
            class,
            facts,
            vector: vector.map(|vector| (vector, scale)),
            ends: self.rows.ends(row),
        })
    }

    /// The cosine of one node with the query.
    pub(super) fn cosine(&self, node: Uuid, query: &[i8], query_scale: f32) -> Option<f32> {
        let row = self.row_of(node)?;
        let head = self.rows.head(row).filter(Head::has_vector)?;
        let dot = dot(self.rows.vector(row)?, query)?;
        Some(dot as f32 * head.scale * query_scale)
    }

    /// The query without its components along the vectors of these nodes, that is, the rest of its meaning.
    pub(super) fn without(&self, query: &[i8], nodes: impl Iterator<Item = Uuid>) -> Vec<i8> {
        let mut nodes: Vec<Uuid> = nodes.collect();
        if nodes.is_empty() {
            return query.to_vec();
        }
        // In a fixed order, since each subtraction affects the next.
        nodes.sort_unstable();
        let mut rest: Vec<f32> = query.iter().map(|&x| f32::from(x)).collect();
        for row in nodes.into_iter().filter_map(|node| self.row_of(node)) {
            let (Some(head), Some(vector)) = (self.rows.head(row), self.rows.vector(row)) else {
                continue;
            };
            let products = rest.iter().zip(vector).map(|(x, &y)| x * f32::from(y));
            let along = products.sum::<f32>() * head.scale * head.scale;
            rest.iter_mut()
                .zip(vector)
                .for_each(|(x, &y)| *x -= along * f32::from(y));
        }
        quantize(&rest)
    }

    /// The `limit` allowed rows nearest to the query, best first.
    pub(super) fn nearest(&self, query: &[i8], allowed: &impl Accepts, limit: usize) -> Vec<(Uuid, f32)> {
        self.nearest_within(query, allowed, limit, self.depth(limit).widened(self.widening))
    }

    /// The `limit` accepted passages nearest to the query, best first. Fewer vote than there are results, so the search
    /// looks less deep.
    pub(super) fn nearest_passages(
        &self,
        query: &[i8],
        accepted: &impl Accepts,
        limit: usize,
    ) -> Vec<(Uuid, f32)> {
        self.nearest_within(query, accepted, limit, Depth::OF_PASSAGES.widened(self.widening))
    }

    /// How deep a search looks, unless the model needs more.
    pub(super) fn depth(&self, limit: usize) -> Depth {
        let scored = MIN_SCORED.max(limit.saturating_mul(SCORED_PER_RESULT));
        Depth {
            near: MIN_NEAR.max(self.rows.len() / NEAR_SHARE).max(scored),
            scored,
        }
    }

    /// The nearest rows as far as a search of this depth finds them.
    pub(super) fn nearest_within(
        &self,
        query: &[i8],
        allowed: &impl Accepts,
        limit: usize,
        depth: Depth,
    ) -> Vec<(Uuid, f32)> {
        let scale = scale_of(query);
        if scale == 0.0 || limit == 0 {
            return Vec::new();
        }
        let near = self.candidates(query, allowed, depth.near);
        let mut top = Top::new(limit);
        for row in self.most_alike(query, near, depth.scored) {
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
    fn most_alike(&self, query: &[i8], rows: Vec<usize>, count: usize) -> Vec<usize> {
        if rows.len() <= count {
            return rows;
        }
        let estimate = Estimate::of(query);
        let mut rated: Vec<(f32, usize)> = rows
            .into_iter()
            .map(|row| (estimate.for_sketch(self.rows.sketch(row)), row))
            .collect();
        rated.select_nth_unstable_by(count, |(a, row), (b, other)| {
            b.total_cmp(a).then_with(|| row.cmp(other))
        });
        rated.truncate(count);
        let mut rows: Vec<usize> = rated.into_iter().map(|(_, row)| row).collect();
        rows.sort_unstable();
        rows
    }

    /// At least `wanted` allowed rows whose sketches are nearest to the query's, or all of them, in their order.
    fn candidates(&self, query: &[i8], allowed: &impl Accepts, wanted: usize) -> Vec<usize> {
        let sketch = Sketch::of(query);
        let mut near = Nearest::new(query.len(), wanted);
        let mut distances = [0u16; ROWS_PER_BLOCK];
        for (block, classes) in (0..self.rows.blocks()).zip(self.classes.chunks(ROWS_PER_BLOCK)) {
            // Nodes and passages are mostly written apart.
            if !classes.iter().any(|class| allowed.class(*class)) {
                continue;
            }
            sketch.distances(self.rows.sketches(block), &mut distances);
            let first = block * ROWS_PER_BLOCK;
            for (place, (&class, &distance)) in classes.iter().zip(&distances).enumerate() {
                let row = first + place;
                let scanned = Scanned {
                    rows: &self.rows,
                    row,
                };
                if distance <= near.limit && allowed.class(class) && allowed.row(class, &scanned) {
                    near.take(row, distance);
                }
            }
        }
        near.into_rows().collect()
    }
}

/// A row met by a scan.
struct Scanned<'a> {
    rows: &'a Rows,
    row: usize,
}

impl Candidate for Scanned<'_> {
    fn node(&self) -> Uuid {
        self.rows.head(self.row).map(|head| head.node).unwrap_or_default()
    }

    fn facts(&self) -> Option<Facts> {
        self.rows.head(self.row).map(|head| head.facts)
    }
}

impl Candidate for Head {
    fn node(&self) -> Uuid {
        self.node
    }

    fn facts(&self) -> Option<Facts> {
        Some(self.facts)
    }
}

/// A node or passage that is not known by its row.
pub(super) struct Known<'a> {
    pub(super) table: &'a Table,
    pub(super) node: Uuid,
}

impl Candidate for Known<'_> {
    fn node(&self) -> Uuid {
        self.node
    }

    fn facts(&self) -> Option<Facts> {
        Some(self.table.head(self.node)?.facts)
    }
}

/// How many rows a search looks at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Depth {
    /// Rows whose sketches are nearest to the query's.
    near: usize,
    /// Those of them that are scored by their vectors.
    pub(super) scored: usize,
}

impl Depth {
    /// Every row is scored.
    pub(super) const EXACT: Depth = Depth {
        near: usize::MAX,
        scored: usize::MAX,
    };

    /// For the passages that vote.
    const OF_PASSAGES: Depth = Depth {
        near: 512,
        scored: 256,
    };

    pub(super) fn widened(self, by: usize) -> Self {
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
}

impl Nearest {
    fn new(dimension: usize, wanted: usize) -> Self {
        Nearest {
            limit: u16::try_from(dimension).unwrap_or(u16::MAX),
            wanted,
            counts: vec![0; dimension + 1],
            count: 0,
            rows: Vec::new(),
        }
    }

    fn take(&mut self, row: usize, distance: u16) {
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

    fn into_rows(self) -> impl Iterator<Item = usize> {
        let near = self.rows.into_iter();
        near.filter(move |(_, distance)| *distance <= self.limit)
            .map(|(row, _)| row as usize)
    }
}
