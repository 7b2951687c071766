//! The in-memory rows of a workspace: the indexed version of each node, and its vector.
//!
//! Vectors lie in contiguous blocks that never move, so growth copies nothing. A row is written once: a node whose
//! vector changes gets a new row and the old one becomes *gone*. A graph over the first rows thus stays valid while
//! rows are appended.

use std::collections::HashMap;
use std::sync::Arc;

use uuid::Uuid;

use super::document::{Allowed, CLASS_SLOTS, GONE};
use super::dot::dot;
use super::embed::quantize;
use super::graph::Graph;
use super::top::Top;

/// Rows in one block: 256 KiB at 256 dimensions.
pub(super) const BLOCK: usize = 1024;
/// If a filter leaves fewer than this fraction of the graph's rows (1 in 10), an exact scan is faster.
const SCAN_SHARE: usize = 10;

/// The state of a node that is known without querying the text index.
#[derive(Debug, Clone, Copy)]
pub(super) struct NodeState {
    pub(super) rev: u64,
    pub(super) class: u8,
    /// Its row, if it has a vector.
    row: Option<u32>,
}

impl NodeState {
    /// Whether a document with this rev, with or without a vector, replaces the indexed one.
    pub(super) fn is_replaced_by(&self, rev: u64, vector: bool) -> bool {
        rev > self.rev || (rev == self.rev && vector && self.row.is_none())
    }
}

/// All rows of one workspace.
pub(super) struct Table {
    dimension: usize,
    nodes: HashMap<Uuid, NodeState>,
    blocks: Vec<Vec<i8>>,
    owners: Vec<Uuid>,
    classes: Vec<u8>,
    /// 1 / length of each vector.
    scales: Vec<f32>,
    /// Rows per class, to choose between scan and graph.
    counts: [usize; CLASS_SLOTS],
    graph: Option<Arc<Graph>>,
    /// Changes whenever rows are renumbered.
    epoch: u64,
    /// Number of visible rows up to which the scan is used even if there is a graph.
    scan_limit: usize,
}

impl Table {
    pub(super) fn new(dimension: usize) -> Self {
        Table {
            dimension,
            nodes: HashMap::new(),
            blocks: Vec::new(),
            owners: Vec::new(),
            classes: Vec::new(),
            scales: Vec::new(),
            counts: [0; CLASS_SLOTS],
            graph: None,
            epoch: 0,
            scan_limit: 0,
        }
    }

    pub(super) fn set_scan_limit(&mut self, rows: usize) {
        self.scan_limit = rows;
    }

    pub(super) fn node(&self, node: Uuid) -> Option<NodeState> {
        self.nodes.get(&node).copied()
    }

    /// Number of nodes, including merged ones.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Number of rows, including gone ones.
    pub(super) fn rows(&self) -> usize {
        self.owners.len()
    }

    pub(super) fn gone(&self) -> usize {
        self.counts.get(usize::from(GONE)).copied().unwrap_or(0)
    }

    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }

    pub(super) fn graph(&self) -> Option<Arc<Graph>> {
        self.graph.clone()
    }

    /// Installs a graph over the first rows, unless rows were renumbered since its build began.
    pub(super) fn adopt(&mut self, graph: Arc<Graph>, epoch: u64) -> bool {
        if epoch == self.epoch && graph.rows() <= self.rows() {
            self.graph = Some(graph);
            return true;
        }
        false
    }

    /// Records the indexed version of a node. A node whose vector is missing or all zeroes gets no row.
    pub(super) fn put(&mut self, node: Uuid, rev: u64, class: u8, vector: Option<&[i8]>) {
        let old = self.nodes.get(&node).and_then(|state| state.row);
        let kept = old.filter(|&row| vector.is_some_and(|vector| self.vector(row as usize) == Some(vector)));
        let row = match (kept, vector) {
            (Some(row), _) => {
                self.reclass(row as usize, class);
                Some(row)
            }
            (None, vector) => {
                if let Some(row) = old {
                    self.reclass(row as usize, GONE);
                }
                vector.and_then(|vector| self.push(node, class, vector))
            }
        };
        self.nodes.insert(node, NodeState { rev, class, row });
    }

    /// Appends a gone row to preserve the row numbers of a saved graph; see [`Table::claim`].
    pub(super) fn push_gone(&mut self, node: Uuid) {
        let zeroes = vec![0; self.dimension];
        self.append(node, GONE, &zeroes, 0.0);
    }

    /// Records a node whose vector is known to be at this row of a saved graph.
    pub(super) fn claim(&mut self, row: usize, node: Uuid, rev: u64, class: u8, vector: &[i8]) {
        let at = row % BLOCK * self.dimension;
        let slot = self
            .blocks
            .get_mut(row / BLOCK)
            .and_then(|block| block.get_mut(at..at + self.dimension));
        let (Some(slot), Some(scale), Ok(number)) = (slot, self.scales.get_mut(row), u32::try_from(row))
        else {
            return self.put(node, rev, class, Some(vector));
        };
        slot.copy_from_slice(vector);
        *scale = scale_of(vector);
        self.reclass(row, class);
        self.nodes.insert(
            node,
            NodeState {
                rev,
                class,
                row: Some(number),
            },
        );
    }

    fn push(&mut self, node: Uuid, class: u8, vector: &[i8]) -> Option<u32> {
        let scale = scale_of(vector);
        if scale == 0.0 || vector.len() != self.dimension {
            return None;
        }
        let row = u32::try_from(self.rows()).ok()?;
        self.append(node, class, vector, scale);
        Some(row)
    }

    fn append(&mut self, node: Uuid, class: u8, vector: &[i8], scale: f32) {
        match self
            .blocks
            .last_mut()
            .filter(|block| block.len() < BLOCK * self.dimension)
        {
            Some(block) => block.extend_from_slice(vector),
            None => self.blocks.push(vector.to_vec()),
        }
        self.owners.push(node);
        self.classes.push(class);
        self.scales.push(scale);
        if let Some(count) = self.counts.get_mut(usize::from(class)) {
            *count += 1;
        }
    }

    fn reclass(&mut self, row: usize, class: u8) {
        let Some(slot) = self.classes.get_mut(row) else {
            return;
        };
        let before = std::mem::replace(slot, class);
        if let Some(count) = self.counts.get_mut(usize::from(before)) {
            *count = count.saturating_sub(1);
        }
        if let Some(count) = self.counts.get_mut(usize::from(class)) {
            *count += 1;
        }
    }

    /// The vector of a row.
    pub(super) fn vector(&self, row: usize) -> Option<&[i8]> {
        let at = row % BLOCK * self.dimension;
        self.blocks.get(row / BLOCK)?.get(at..at + self.dimension)
    }

    /// The node of a row that is still in use.
    pub(super) fn owner(&self, row: usize) -> Option<Uuid> {
        let class = *self.classes.get(row)?;
        self.owners.get(row).copied().filter(|_| class != GONE)
    }

    /// The node that a row was written for, even if the row is gone.
    pub(super) fn owner_ever(&self, row: usize) -> Uuid {
        self.owners.get(row).copied().unwrap_or_default()
    }

    /// Drops the gone rows, and the graph, as its row numbers become invalid.
    pub(super) fn compact(&mut self) {
        let mut fresh = Table::new(self.dimension);
        fresh.epoch = self.epoch + 1;
        fresh.scan_limit = self.scan_limit;
        for row in 0..self.rows() {
            let (Some(node), Some(vector)) = (self.owner(row), self.vector(row)) else {
                continue;
            };
            if let Some(state) = self.nodes.get(&node) {
                fresh.put(node, state.rev, state.class, Some(vector));
            }
        }
        let rest = self.nodes.iter().filter(|(_, state)| state.row.is_none());
        fresh.nodes.extend(rest.map(|(node, state)| (*node, *state)));
        *self = fresh;
    }

    /// The cosine of one node with the query.
    pub(super) fn cosine(&self, node: Uuid, query: &[i8], query_scale: f32) -> Option<f32> {
        let row = self.nodes.get(&node)?.row? as usize;
        let dot = dot(self.vector(row)?, query)?;
        Some(dot as f32 * self.scales.get(row)? * query_scale)
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
        for row in nodes.iter().filter_map(|node| self.nodes.get(node)?.row) {
            let (Some(vector), Some(scale)) = (self.vector(row as usize), self.scales.get(row as usize))
            else {
                continue;
            };
            let along = rest
                .iter()
                .zip(vector)
                .map(|(x, &y)| x * f32::from(y))
                .sum::<f32>()
                * scale
                * scale;
            rest.iter_mut()
                .zip(vector)
                .for_each(|(x, &y)| *x -= along * f32::from(y));
        }
        quantize(&rest)
    }

    /// The `limit` allowed rows nearest to the query, best first.
    pub(super) fn nearest(&self, query: &[i8], allowed: &Allowed, limit: usize) -> Vec<(Uuid, f32)> {
        let scale = scale_of(query);
        if scale == 0.0 || limit == 0 {
            return Vec::new();
        }
        let mut top = Top::new(limit);
        let visible = self.count(allowed);
        let graph = self
            .graph
            .as_ref()
            .filter(|graph| visible > self.scan_limit.max(graph.rows() / SCAN_SHARE));
        let found = graph.and_then(|graph| {
            graph.search(query, limit, |row| {
                self.class(row)
                    .is_some_and(|class| allowed.row(class, || self.owner_ever(row)))
            })
        });
        let mut first = 0;
        if let (Some(graph), Some(rows)) = (graph, found) {
            first = graph.rows();
            for row in rows {
                self.offer(row, query, &mut top);
            }
        }
        self.scan(first, query, allowed, &mut top);
        top.into_sorted()
            .into_iter()
            .map(|(node, dot)| (node, (dot * scale).clamp(-1.0, 1.0)))
            .collect()
    }

    fn class(&self, row: usize) -> Option<u8> {
        self.classes.get(row).copied()
    }

    /// Number of rows in the allowed classes.
    fn count(&self, allowed: &Allowed) -> usize {
        (0u8..)
            .zip(&self.counts)
            .filter(|&(class, _)| allowed.class(class))
            .map(|(_, &count)| count)
            .sum()
    }

    fn offer(&self, row: usize, query: &[i8], top: &mut Top) {
        let dot = self.vector(row).and_then(|vector| dot(vector, query));
        if let (Some(dot), Some(scale), Some(&node)) = (dot, self.scales.get(row), self.owners.get(row)) {
            top.offer(node, dot as f32 * scale);
        }
    }

    /// Offers every allowed row from `first` on.
    fn scan(&self, first: usize, query: &[i8], allowed: &Allowed, top: &mut Top) {
        for (number, block) in self.blocks.iter().enumerate().skip(first / BLOCK) {
            let base = number * BLOCK;
            let rows = base..(base + BLOCK).min(self.rows());
            let (Some(classes), Some(scales), Some(owners)) = (
                self.classes.get(rows.clone()),
                self.scales.get(rows.clone()),
                self.owners.get(rows),
            ) else {
                continue;
            };
            let skipped = first.saturating_sub(base);
            let rows = block
                .chunks_exact(self.dimension)
                .zip(classes)
                .zip(scales)
                .zip(owners)
                .skip(skipped);
            for (((vector, &class), scale), node) in rows {
                if allowed.class(class)
                    && let Some(dot) = dot(vector, query)
                {
                    let score = dot as f32 * scale;
                    // The row condition costs more than the dot product, and few rows get this far.
                    if score >= top.threshold() && allowed.row(class, || *node) {
                        top.offer(*node, score);
                    }
                }
            }
        }
    }
}

/// 1 / length of a vector, or 0 for the zero vector.
pub(super) fn scale_of(vector: &[i8]) -> f32 {
    let length = vector
        .iter()
        .map(|&x| f32::from(x) * f32::from(x))
        .sum::<f32>()
        .sqrt();
    if length > 0.0 { 1.0 / length } else { 0.0 }
}
