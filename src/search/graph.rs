//! The approximate index (HNSW) over the first rows of a large workspace.
//!
//! It is built off the write path and never changed once in use. Rows added later are scanned exactly until the next
//! build, and deleted rows are excluded by the predicate. Its file records the node and vector hash of every row, so
//! that rows that still match can be identified at start-up.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;

use usearch::ffi::{IndexOptions, MetricKind, ScalarKind};
use uuid::Uuid;

use super::error::SearchError;

const CONNECTIVITY: usize = 16;
const EXPANSION_ADD: usize = 96;
const EXPANSION_SEARCH: usize = 192;
/// Maximum number of concurrent searches; further ones fall back to the exact scan.
const SEARCHERS: usize = 64;

const GRAPH_FILE: &str = "graph.bin";
const ROWS_FILE: &str = "graph.rows";
const ROW_BYTES: usize = 24;

/// A graph over rows `0..rows()`.
pub(super) struct Graph {
    index: usearch::Index,
    rows: usize,
}

/// The node and vector hash of a row in a saved graph; nil for a row without a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RowPrint {
    pub(super) node: Uuid,
    pub(super) vector: u64,
}

fn failed(err: impl std::fmt::Display) -> SearchError {
    SearchError::Index(format!("vector graph: {err}").into())
}

impl Graph {
    /// An empty graph with capacity for this many rows.
    pub(super) fn with_capacity(dimension: usize, rows: usize) -> Result<Self, SearchError> {
        let options = IndexOptions {
            dimensions: dimension,
            metric: MetricKind::Cos,
            quantization: ScalarKind::I8,
            connectivity: CONNECTIVITY,
            expansion_add: EXPANSION_ADD,
            expansion_search: EXPANSION_SEARCH,
            multi: false,
        };
        let index = usearch::Index::new(&options).map_err(failed)?;
        index
            .reserve_capacity_and_threads(rows, SEARCHERS)
            .map_err(failed)?;
        Ok(Graph { index, rows: 0 })
    }

    /// A copy with capacity for more rows; the original stays in use meanwhile.
    pub(super) fn grown(&self, rows: usize) -> Result<Self, SearchError> {
        let mut bytes = vec![0u8; self.index.serialized_length()];
        self.index.save_to_buffer(&mut bytes).map_err(failed)?;
        let copy = Graph::with_capacity(self.index.dimensions(), 0)?;
        copy.index.load_from_buffer(&bytes).map_err(failed)?;
        copy.index
            .reserve_capacity_and_threads(rows, SEARCHERS)
            .map_err(failed)?;
        Ok(Graph {
            index: copy.index,
            rows: self.rows,
        })
    }

    /// Number of rows that the graph covers.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Whether the row has a vector in the graph.
    pub(super) fn holds(&self, row: usize) -> bool {
        self.index.contains(row as u64)
    }

    /// Adds the next row; a row without a vector is only counted.
    pub(super) fn push(&mut self, vector: Option<&[i8]>) -> Result<(), SearchError> {
        if let Some(vector) = vector {
            self.index.add(self.rows as u64, vector).map_err(failed)?;
        }
        self.rows += 1;
        Ok(())
    }

    /// The rows nearest to the query that satisfy `pass`; `None` when too many searches are running.
    pub(super) fn search(
        &self,
        query: &[i8],
        limit: usize,
        pass: impl Fn(usize) -> bool,
    ) -> Option<Vec<usize>> {
        let row = |key: u64| usize::try_from(key).ok();
        let found = self
            .index
            .filtered_search(query, limit, |key| row(key).is_some_and(&pass))
            .ok()?;
        Some(found.keys.into_iter().filter_map(row).collect())
    }

    /// Writes the graph and the prints of its rows; each file is replaced atomically.
    pub(super) fn save(&self, dir: &Path, prints: &[RowPrint]) -> Result<(), SearchError> {
        let mut rows = Vec::with_capacity(prints.len() * ROW_BYTES);
        for print in prints {
            rows.extend_from_slice(print.node.as_bytes());
            rows.extend_from_slice(&print.vector.to_le_bytes());
        }
        let part = dir.join("graph.part");
        let text = part.to_str().ok_or_else(|| failed("the path is not text"))?;
        // A graph without its rows file is not loaded, so an interruption here loses only the graph.
        let _ = fs::remove_file(dir.join(ROWS_FILE));
        self.index.save(text).map_err(failed)?;
        fs::rename(&part, dir.join(GRAPH_FILE))?;
        let mut file = fs::File::create(&part)?;
        file.write_all(&rows)?;
        file.sync_all()?;
        fs::rename(&part, dir.join(ROWS_FILE))?;
        Ok(())
    }

    /// Reads a saved graph; `None` if there is none or it is incompatible.
    pub(super) fn load(dir: &Path, dimension: usize) -> Option<(Self, Vec<RowPrint>)> {
        let mut bytes = Vec::new();
        fs::File::open(dir.join(ROWS_FILE))
            .ok()?
            .read_to_end(&mut bytes)
            .ok()?;
        let (entries, rest) = bytes.as_chunks::<ROW_BYTES>();
        let prints: Vec<RowPrint> = entries.iter().filter_map(print_of).collect();
        let path = dir.join(GRAPH_FILE);
        let path = path.to_str()?;
        let head = usearch::Index::metadata(path).ok()?;
        let kept = prints.iter().filter(|print| !print.node.is_nil()).count();
        if !rest.is_empty() || head.dimensions != dimension as u64 || head.count_present != kept as u64 {
            return None;
        }
        let graph = Graph::with_capacity(dimension, 0).ok()?;
        graph.index.load(path).ok()?;
        graph
            .index
            .reserve_capacity_and_threads(graph.index.size(), SEARCHERS)
            .ok()?;
        Some((
            Graph {
                index: graph.index,
                rows: prints.len(),
            },
            prints,
        ))
    }

    /// Removes a saved graph.
    pub(super) fn forget(dir: &Path) {
        let _ = fs::remove_file(dir.join(ROWS_FILE));
        let _ = fs::remove_file(dir.join(GRAPH_FILE));
    }
}

fn print_of(entry: &[u8; ROW_BYTES]) -> Option<RowPrint> {
    let (node, vector) = entry.split_at_checked(16)?;
    let node = Uuid::from_slice(node).ok()?;
    Some(RowPrint {
        node,
        vector: u64::from_le_bytes(vector.try_into().ok()?),
    })
}

/// Hash of a vector.
pub(super) fn print_of_vector(vector: &[i8]) -> u64 {
    super::text::fnv1a(vector.iter().map(|&x| x.to_le_bytes()[0]))
}
