//! What is known of a workspace's nodes and passages without asking the text index: the indexed version of each, and the
//! search by meaning.
//!
//! Every version gets a row of its own; the one it replaces becomes *gone*.

mod ends;
mod knn;
mod nearest_rows;
mod scan;

pub(in crate::search) use knn::Depth;

use std::hash::BuildHasher;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use ends::EndRows;
use hashbrown::{DefaultHashBuilder, HashTable};
use uuid::Uuid;

use super::dot::dot;
use super::embed::quantize;
use super::rows::{Extent, Head, NewRow, ROWS_PER_BLOCK, Rows};
use crate::domain::tlp::Tlp;
use crate::search::document::facts::Facts;
use crate::search::document::marking_counts::{MarkingCounts, VisibleGroups};
use crate::search::document::{Candidate, Ends, GONE, RowFilter, is_passage};
use crate::search::error::SearchError;

/// Where the rows are in the directory of an index.
const DIR: &str = "rows";
/// Share of gone rows from which the table is compacted (1 in 4), and their least number.
const GONE_SHARE: usize = 4;
const MIN_GONE: usize = 4096;

/// The indexed version of a node.
#[derive(Debug, Clone, Copy)]
pub(in crate::search) struct NodeState {
    pub(in crate::search) rev: u64,
    pub(in crate::search) has_vector: bool,
}

impl NodeState {
    /// Whether a document with this rev, with or without a vector, replaces the indexed one.
    pub(in crate::search) fn is_replaced_by(&self, rev: u64, vector: bool) -> bool {
        rev > self.rev || (rev == self.rev && vector && !self.has_vector)
    }
}

/// A factor for each marking, the least strict first, for callers who may see nothing stricter.
pub(in crate::search) type Widening = [usize; Tlp::ALL.len()];

/// All rows of one workspace.
pub(in crate::search) struct Table {
    rows: Rows,
    /// Row of the indexed version of each node.
    nodes: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// Class of each row that a search may find, [`GONE`] for all others.
    classes: Vec<u8>,
    ends: EndRows,
    /// Number of rows that were replaced.
    gone: usize,
    /// Number of nodes and passages of each class.
    counts: [usize; GONE as usize + 1],
    /// How many times as many rows as usual are scored for callers with each clearance; see [`crate::search::query::calibration`].
    widening: Widening,
}

impl Table {
    /// The first rows of a generation in the directory of an index; in memory without one.
    pub(in crate::search) fn open(
        index: Option<&Path>,
        extent: Extent,
        dimension: usize,
    ) -> Result<Self, SearchError> {
        let dir = index.map(|index| index.join(DIR));
        Ok(Self::of(Rows::open(dir, extent, dimension)?))
    }

    fn of(rows: Rows) -> Self {
        let len = rows.len();
        let mut table = Table {
            rows,
            nodes: HashTable::with_capacity(len),
            hasher: DefaultHashBuilder::default(),
            classes: Vec::with_capacity(len),
            ends: EndRows::default(),
            gone: 0,
            counts: [0; GONE as usize + 1],
            widening: [1; Tlp::ALL.len()],
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
        let node_at = |row: &u32| rows.node(*row as usize);
        let entry = self.nodes.entry(
            hasher.hash_one(head.node),
            |row| node_at(row) == Some(head.node),
            |row| hasher.hash_one(node_at(row).unwrap_or_default()),
        );
        match entry {
            hashbrown::hash_table::Entry::Occupied(mut entry) => {
                let older = std::mem::replace(entry.get_mut(), number);
                let class = rows.class(older as usize).unwrap_or(GONE);
                let count = self.counts.get_mut(usize::from(class));
                count
                    .into_iter()
                    .for_each(|count| *count = count.saturating_sub(1));
                if let Some(class) = self.classes.get_mut(older as usize) {
                    *class = GONE;
                }
                self.gone += 1;
            }
            hashbrown::hash_table::Entry::Vacant(entry) => {
                entry.insert(number);
            }
        }
        let count = self.counts.get_mut(usize::from(head.class));
        count.into_iter().for_each(|count| *count += 1);
        if is_passage(head.class)
            && let Some(ends) = self.rows.ends_of_passage(row)
        {
            let rows = ends.both().map(|end| self.row_of(end));
            self.ends.put(row, rows);
        }
    }

    fn row_of(&self, node: Uuid) -> Option<usize> {
        let is_its = |row: &u32| self.rows.node(*row as usize) == Some(node);
        let row = self.nodes.find(self.hasher.hash_one(node), is_its)?;
        Some(*row as usize)
    }

    pub(in crate::search) fn node(&self, node: Uuid) -> Option<NodeState> {
        let head = self.head(node)?;
        Some(NodeState {
            rev: head.rev,
            has_vector: head.has_vector(),
        })
    }

    /// The class of a node's indexed version.
    pub(in crate::search) fn class(&self, node: Uuid) -> Option<u8> {
        self.rows.class(self.row_of(node)?)
    }

    /// What the row of a node's indexed version says about it.
    pub(in crate::search) fn head(&self, node: Uuid) -> Option<Head> {
        self.rows.head(self.row_of(node)?)
    }

    /// The same. `hint` is the row in which the node was last met; it is corrected if the node has moved since.
    pub(in crate::search) fn head_hinted(&self, node: Uuid, hint: &AtomicU32) -> Option<Head> {
        let row = hint.load(Ordering::Relaxed) as usize;
        let is_current = self.classes.get(row).is_some_and(|class| *class != GONE);
        if is_current && let Some(head) = self.rows.head(row).filter(|head| head.node == node) {
            return Some(head);
        }
        let row = self.row_of(node)?;
        // A table has fewer than 2^32 rows.
        hint.store(row as u32, Ordering::Relaxed);
        self.rows.head(row)
    }

    /// What a passage is about.
    pub(in crate::search) fn ends(&self, passage: Uuid) -> Option<Ends> {
        self.rows.ends(self.row_of(passage)?)
    }

    /// The classes of what a passage is about.
    pub(in crate::search) fn classes_of_ends(&self, passage: Uuid) -> Option<[u8; 2]> {
        self.classes_of_ends_at(self.row_of(passage)?)
    }

    /// The same for the row of a passage. An end that has changed since the passage came is looked up.
    fn classes_of_ends_at(&self, row: usize) -> Option<[u8; 2]> {
        let class_at = |row: u32| self.classes.get(row as usize).filter(|class| **class != GONE);
        if let Some([source, target]) = self.ends.of(row)
            && let (Some(source), Some(target)) = (class_at(source), class_at(target))
        {
            return Some([*source, *target]);
        }
        let [source, target] = self.rows.ends(row)?.both();
        Some([self.class(source)?, self.class(target)?])
    }

    /// Number of nodes or passages whose classes are allowed.
    pub(in crate::search) fn count(&self, allowed: &impl RowFilter) -> usize {
        let classes = (0..GONE).zip(&self.counts);
        let allowed = classes.filter(|(class, _)| allowed.class(*class));
        allowed.map(|(_, count)| count).sum()
    }

    /// The nodes or passages whose classes are allowed, with vectors or without, in no order.
    pub(in crate::search) fn ids_of(&self, allowed: &impl RowFilter) -> Vec<Uuid> {
        let rows = self.nodes.iter().map(|row| *row as usize);
        let allowed = rows.filter(|row| self.rows.class(*row).is_some_and(|class| allowed.class(class)));
        allowed.filter_map(|row| self.rows.node(row)).collect()
    }

    /// Number of nodes in these groups.
    pub(in crate::search) fn nodes(&self, groups: VisibleGroups) -> u64 {
        let mut nodes = MarkingCounts::default();
        let classes = (0..GONE).zip(&self.counts);
        classes.for_each(|(class, count)| nodes.add(class, *count as u64));
        nodes.seen_by(groups)
    }

    /// The rows with vectors whose classes are allowed, in ascending order.
    pub(in crate::search) fn rows_of(&self, allowed: &impl RowFilter) -> impl Iterator<Item = usize> {
        let classes = self.classes.iter().enumerate();
        classes.filter_map(|(row, class)| allowed.class(*class).then_some(row))
    }

    /// Number of nodes and passages, including merged ones.
    pub(in crate::search) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The rows that back the table.
    pub(in crate::search) fn rows(&self) -> &Rows {
        &self.rows
    }

    /// Multiplies the numbers of rows scored exactly.
    pub(in crate::search) fn widen(&mut self, widening: Widening) {
        self.widening = widening;
    }

    pub(in crate::search) fn widening(&self) -> Widening {
        self.widening
    }

    /// Records versions of nodes: all of them or, on an error, none.
    pub(in crate::search) fn put(&mut self, new: &[NewRow<'_>]) -> Result<(), SearchError> {
        let first = self.rows.len();
        if u32::try_from(first + new.len()).is_err() {
            return Err(SearchError::Index("too many rows".into()));
        }
        self.rows.append(new)?;
        (first..self.rows.len()).for_each(|row| self.publish(row));
        Ok(())
    }

    /// Forgets the rows from `len` on, and what they replaced counts again.
    pub(in crate::search) fn truncate_rows(&mut self, len: usize) {
        self.rows.truncate(len);
        self.classes.clear();
        self.ends.clear();
        self.nodes.clear();
        self.gone = 0;
        self.counts.fill(0);
        (0..self.rows.len()).for_each(|row| self.publish(row));
    }

    /// Whether so many rows are gone that [`Table::compact_copy`] pays.
    pub(in crate::search) fn wants_compaction(&self) -> bool {
        self.gone > (self.rows.len() / GONE_SHARE).max(MIN_GONE)
    }

    /// A copy without the gone rows, in files of its own.
    pub(in crate::search) fn compact_copy(&self) -> Result<Self, SearchError> {
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
    pub(in crate::search) fn cosine(&self, node: Uuid, query: &[i8], query_scale: f32) -> Option<f32> {
        let row = self.row_of(node)?;
        let head = self.rows.head(row).filter(Head::has_vector)?;
        let dot = dot(self.rows.vector(row)?, query)?;
        Some(dot as f32 * head.scale * query_scale)
    }

    /// The query without its components along the vectors of these nodes, that is, the rest of its meaning.
    pub(in crate::search) fn without(&self, query: &[i8], nodes: impl Iterator<Item = Uuid>) -> Vec<i8> {
        let mut rows: Vec<usize> = nodes.filter_map(|node| self.row_of(node)).collect();
        if rows.is_empty() {
            return query.to_vec();
        }
        // In the order of the vectors, since each subtraction affects the next and the order of ids is random.
        rows.sort_unstable_by_key(|row| self.rows.vector(*row));
        let mut rest: Vec<f32> = query.iter().map(|&x| f32::from(x)).collect();
        for row in rows {
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
}

/// A node or passage that is not known by its row.
pub(in crate::search) struct TableEntry<'a> {
    pub(in crate::search) table: &'a Table,
    pub(in crate::search) node: Uuid,
}

impl Candidate for TableEntry<'_> {
    fn node(&self) -> Uuid {
        self.node
    }

    fn ends(&self) -> Option<Ends> {
        self.table.ends(self.node)
    }

    fn classes_of_ends(&self) -> Option<[u8; 2]> {
        self.table.classes_of_ends(self.node)
    }

    fn facts(&self) -> Option<Facts> {
        Some(self.table.head(self.node)?.facts)
    }
}
