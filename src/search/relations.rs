//! The relationships between nodes, so that a question can follow them without asking the database.
//!
//! Each version of a relationship gets a row, like those of a table but without a vector. From every node two chains
//! lead through the rows: of what begins there and of what ends there, the newest first.

use std::hash::BuildHasher;
use std::path::Path;
use std::sync::atomic::AtomicU32;

use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};
use uuid::Uuid;

use super::document::facts::Facts;
use super::document::{GONE, is_passage};
use super::error::SearchError;
use super::vectors::rows::{Extent, NewRow, ROWS_PER_BLOCK, Rows};

/// Where the rows are in the directory of an index.
const DIR: &str = "relations";
/// Share of gone rows from which they are compacted (1 in 4), and their least number.
const GONE_SHARE: usize = 4;
const MIN_GONE: usize = 4096;
/// The end of a chain.
const END: u32 = u32::MAX;

/// The relationships of one workspace.
pub(super) struct Relations {
    rows: Rows,
    /// Row of the newest version of each relationship, even if it has been removed.
    newest: HashTable<u32>,
    /// Place in `chains` of each node with relationships.
    nodes: HashTable<u32>,
    chains: Vec<Chains>,
    /// For each row the next ones in the chains of its source and of its target.
    next: Vec<[u32; 2]>,
    /// For each row the rows of the table in which its ends were met last.
    met: Vec<[AtomicU32; 2]>,
    /// Class of each row, [`GONE`] for those replaced or removed.
    classes: Vec<u8>,
    /// Number of rows that were replaced.
    gone: usize,
    hasher: DefaultHashBuilder,
}

/// Where the chains of a node begin: of what begins at it, and of what ends there.
struct Chains {
    node: Uuid,
    first: [u32; 2],
}

/// The side of a relationship at which a node stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Source,
    Target,
}

impl Side {
    pub(super) const BOTH: [Side; 2] = [Side::Source, Side::Target];

    fn opposite(self) -> Side {
        match self {
            Side::Source => Side::Target,
            Side::Target => Side::Source,
        }
    }

    fn of<T: Copy>(self, pair: [T; 2]) -> T {
        let [source, target] = pair;
        match self {
            Side::Source => source,
            Side::Target => target,
        }
    }

    fn of_mut<T>(self, pair: &mut [T; 2]) -> &mut T {
        let [source, target] = pair;
        match self {
            Side::Source => source,
            Side::Target => target,
        }
    }
}

/// A relationship seen from one of its ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct EdgeView<'a> {
    pub(super) id: Uuid,
    pub(super) facts: Facts,
    /// The other end, and the row of the table in which it was met last.
    pub(super) far: Uuid,
    pub(super) met: &'a AtomicU32,
}

impl Relations {
    /// The first rows of a generation in the directory of an index; in memory without one.
    pub(super) fn open(index: Option<&Path>, extent: Extent) -> Result<Self, SearchError> {
        let dir = index.map(|index| index.join(DIR));
        let relations = Self::of(Rows::open(dir.clone(), extent, 0)?);
        // All rows have just been read, and few are followed. Mapped anew, the others take no memory.
        let rows = Rows::open(dir, extent, 0)?;
        Ok(Relations { rows, ..relations })
    }

    fn of(rows: Rows) -> Self {
        let len = rows.extent().len;
        let mut relations = Relations {
            rows,
            newest: HashTable::with_capacity(len),
            nodes: HashTable::new(),
            chains: Vec::new(),
            next: Vec::with_capacity(len),
            met: Vec::with_capacity(len),
            classes: Vec::with_capacity(len),
            gone: 0,
            hasher: DefaultHashBuilder::default(),
        };
        (0..len).for_each(|row| relations.publish(row));
        relations
    }

    /// Makes an appended row the newest version of its relationship.
    fn publish(&mut self, row: usize) {
        let (Some(head), Ok(number)) = (self.rows.head(row), u32::try_from(row)) else {
            return;
        };
        let ends = self.rows.ends(row).map(|ends| ends.both());
        let class = if ends.is_some() { head.class } else { GONE };
        self.classes.push(class);
        self.next.push([END, END]);
        self.met.push([END, END].map(AtomicU32::new));
        let (rows, hasher) = (&self.rows, &self.hasher);
        let id_at = |row: &u32| rows.node(*row as usize);
        let entry = self.newest.entry(
            hasher.hash_one(head.node),
            |row| id_at(row) == Some(head.node),
            |row| hasher.hash_one(id_at(row).unwrap_or_default()),
        );
        match entry {
            Entry::Occupied(mut entry) => {
                let older = std::mem::replace(entry.get_mut(), number);
                if let Some(class) = self.classes.get_mut(older as usize) {
                    *class = GONE;
                }
                self.gone += 1;
            }
            Entry::Vacant(entry) => {
                entry.insert(number);
            }
        }
        // One that leads back to where it begins leads nowhere.
        let Some([source, target]) = ends.filter(|[source, target]| source != target) else {
            return;
        };
        self.link(source, Side::Source, number);
        self.link(target, Side::Target, number);
    }

    /// Puts a row in front of a chain.
    fn link(&mut self, node: Uuid, side: Side, row: u32) {
        let chains = &self.chains;
        let node_at = |at: &u32| chains.get(*at as usize).map(|chains| chains.node);
        let entry = self.nodes.entry(
            self.hasher.hash_one(node),
            |at| node_at(at) == Some(node),
            |at| self.hasher.hash_one(node_at(at).unwrap_or_default()),
        );
        let at = match entry {
            Entry::Occupied(entry) => *entry.get() as usize,
            Entry::Vacant(entry) => {
                // Every row adds two nodes at most, and numbers of rows fit in 31 bits.
                let at = self.chains.len();
                entry.insert(at as u32);
                let first = [END, END];
                self.chains.push(Chains { node, first });
                at
            }
        };
        let first = self
            .chains
            .get_mut(at)
            .map(|chains| side.of_mut(&mut chains.first));
        let next = self.next.get_mut(row as usize).map(|next| side.of_mut(next));
        if let (Some(first), Some(next)) = (first, next) {
            *next = std::mem::replace(first, row);
        }
    }

    fn row_of(&self, id: Uuid) -> Option<usize> {
        let is_its = |row: &u32| self.rows.node(*row as usize) == Some(id);
        let row = self.newest.find(self.hasher.hash_one(id), is_its)?;
        Some(*row as usize)
    }

    /// The revision of a relationship's newest version.
    pub(super) fn rev(&self, id: Uuid) -> Option<u64> {
        Some(self.rows.head(self.row_of(id)?)?.rev)
    }

    /// The relationships of a node on one side of it whose class is accepted, the newest first.
    pub(super) fn at(
        &self,
        node: Uuid,
        side: Side,
        accepts: impl Fn(u8) -> bool,
    ) -> impl Iterator<Item = EdgeView<'_>> {
        let node_at = |at: &u32| self.chains.get(*at as usize).map(|chains| chains.node);
        let chains = self
            .nodes
            .find(self.hasher.hash_one(node), |at| node_at(at) == Some(node))
            .and_then(|at| self.chains.get(*at as usize));
        let first = chains.map_or(END, |chains| side.of(chains.first));
        let known = |row: u32| Some(row).filter(|row| *row != END);
        let rows = std::iter::successors(known(first), move |row| {
            known(side.of(*self.next.get(*row as usize)?))
        });
        let shown = rows.filter(move |row| {
            self.classes
                .get(*row as usize)
                .is_some_and(|class| accepts(*class))
        });
        shown.filter_map(move |row| self.edge_view(row as usize, side))
    }

    fn edge_view(&self, row: usize, near: Side) -> Option<EdgeView<'_>> {
        let head = self.rows.head(row)?;
        let (ends, [source, target]) = (self.rows.ends_of_passage(row)?.both(), self.met.get(row)?);
        Some(EdgeView {
            id: head.node,
            facts: head.facts,
            far: near.opposite().of(ends),
            met: near.opposite().of([source, target]),
        })
    }

    /// The rows behind them.
    pub(super) fn rows(&self) -> &Rows {
        &self.rows
    }

    /// Records versions of relationships: all of them or, on an error, none.
    pub(super) fn put(&mut self, new: &[NewRow<'_>]) -> Result<(), SearchError> {
        let first = self.rows.extent().len;
        // Half of what fits, since each may bring two nodes.
        if u32::try_from(2 * (first + new.len())).is_err() {
            return Err(SearchError::Index("too many relationships".into()));
        }
        self.rows.append(new)?;
        (first..first + new.len()).for_each(|row| self.publish(row));
        Ok(())
    }

    /// Forgets the rows from `len` on, and what they replaced counts again.
    pub(super) fn truncate_rows(&mut self, len: usize) {
        self.rows.truncate(len);
        self.newest.clear();
        self.nodes.clear();
        self.chains.clear();
        self.next.clear();
        self.met.clear();
        self.classes.clear();
        self.gone = 0;
        (0..self.rows.extent().len).for_each(|row| self.publish(row));
    }

    /// Whether so many rows are gone that [`Relations::compact_copy`] pays.
    pub(super) fn wants_compaction(&self) -> bool {
        self.gone > (self.classes.len() / GONE_SHARE).max(MIN_GONE)
    }

    /// A copy without replaced rows, in files of its own. Removed ones stay, so that no older version reappears.
    pub(super) fn compact_copy(&self) -> Result<Self, SearchError> {
        let mut rows = self.rows.next_generation();
        let mut kept: Vec<usize> = self.newest.iter().map(|row| *row as usize).collect();
        kept.sort_unstable();
        for chunk in kept.chunks(ROWS_PER_BLOCK) {
            let new: Vec<NewRow<'_>> = chunk.iter().filter_map(|row| self.new_row(*row)).collect();
            rows.append(&new)?;
        }
        Ok(Self::of(rows))
    }

    fn new_row(&self, row: usize) -> Option<NewRow<'_>> {
        let head = self.rows.head(row)?;
        Some(NewRow {
            facts: head.facts,
            ends: self.rows.ends(row).filter(|_| is_passage(head.class)),
            ..NewRow::new(head.node, head.rev, head.class, None)
        })
    }
}
