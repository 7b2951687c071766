//! The vector leg of one workspace: the table under its lock, and the thread that builds its graph.
//!
//! A build holds the lock only while it copies a block of vectors, so writes and searches continue.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::JoinHandle;

use super::error::SearchError;
use super::graph::{Graph, RowPrint, print_of_vector};
use super::table::{BLOCK, Table};

/// Share of gone rows above which the table is compacted (1 in 4).
const GONE_SHARE: usize = 4;
/// Rows behind the graph, relative to its size, that are left to the exact scan (1 in 8).
const TAIL_SHARE: usize = 8;

struct Shared {
    table: RwLock<Table>,
    dimension: usize,
    dir: Option<PathBuf>,
    exact_scan_limit: usize,
    stop: AtomicBool,
    building: AtomicBool,
    /// Serialises graph builds across the whole process.
    turn: Arc<Mutex<()>>,
}

/// The rows of a workspace and their graph.
pub(super) struct Vectors {
    shared: Arc<Shared>,
    builder: Mutex<Option<JoinHandle<()>>>,
}

impl Vectors {
    pub(super) fn new(
        mut table: Table,
        dimension: usize,
        dir: Option<&Path>,
        exact_scan_limit: usize,
        turn: Arc<Mutex<()>>,
    ) -> Self {
        table.set_scan_limit(exact_scan_limit);
        let shared = Shared {
            table: RwLock::new(table),
            dimension,
            dir: dir.map(Path::to_owned),
            exact_scan_limit,
            stop: AtomicBool::new(false),
            building: AtomicBool::new(false),
            turn,
        };
        Vectors {
            shared: Arc::new(shared),
            builder: Mutex::new(None),
        }
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, Table> {
        self.shared.read()
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, Table> {
        self.shared.write()
    }

    /// Starts a build in the background if one is due and none is running.
    pub(super) fn maintain(&self) {
        if !self.shared.is_due() || self.shared.building.swap(true, Ordering::SeqCst) {
            return;
        }
        let shared = self.shared.clone();
        let run = move || {
            shared.build_while_due();
            shared.building.store(false, Ordering::SeqCst);
        };
        match std::thread::Builder::new().name("vector-graph".into()).spawn(run) {
            Ok(handle) => *self.builder.lock().unwrap_or_else(PoisonError::into_inner) = Some(handle),
            Err(_) => self.shared.building.store(false, Ordering::SeqCst),
        }
    }

    /// Waits until no build is running.
    pub(super) fn settle(&self) {
        let handle = self.builder.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(handle) = handle {
            let _ = handle.join();
        }
    }
}

impl Drop for Vectors {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        self.settle();
    }
}

impl Shared {
    fn read(&self) -> RwLockReadGuard<'_, Table> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Table> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    fn is_due(&self) -> bool {
        let table = self.read();
        wants_compaction(&table, self.exact_scan_limit) || self.wants_graph(&table)
    }

    fn wants_graph(&self, table: &Table) -> bool {
        let covered = table.graph().map_or(0, |graph| graph.rows());
        let tail = table.rows().saturating_sub(covered);
        table.rows() > self.exact_scan_limit && tail > (covered / TAIL_SHARE).max(self.exact_scan_limit / 4)
    }

    fn build_while_due(&self) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        while !self.stopped() && self.is_due() {
            if wants_compaction(&self.read(), self.exact_scan_limit) {
                self.write().compact();
            }
            if !self.wants_graph(&self.read()) {
                continue;
            }
            if let Err(err) = self.build() {
                tracing::warn!(error = %err, "vector graph not built, scanning instead");
                return;
            }
        }
    }

    /// Builds or extends the graph over the current rows, and installs it.
    fn build(&self) -> Result<(), SearchError> {
        let (epoch, rows, base) = {
            let table = self.read();
            (table.epoch(), table.rows(), table.graph())
        };
        let mut graph = match &base {
            Some(base) => base.grown(rows)?,
            None => Graph::with_capacity(self.dimension, rows)?,
        };
        drop(base);
        let mut block = Vec::with_capacity(BLOCK);
        while graph.rows() < rows {
            let first = graph.rows();
            {
                let table = self.read();
                if self.stopped() || table.epoch() != epoch {
                    return Ok(());
                }
                let chunk = first..rows.min(first + BLOCK);
                block.extend(chunk.map(|row| {
                    table
                        .owner(row)
                        .and_then(|_| table.vector(row))
                        .map(<[i8]>::to_vec)
                }));
            }
            for vector in block.drain(..) {
                if self.stopped() {
                    return Ok(());
                }
                graph.push(vector.as_deref())?;
            }
        }
        self.adopt(graph, epoch)
    }

    fn adopt(&self, graph: Graph, epoch: u64) -> Result<(), SearchError> {
        let graph = Arc::new(graph);
        if !self.write().adopt(graph.clone(), epoch) {
            return Ok(());
        }
        let Some(dir) = &self.dir else { return Ok(()) };
        let prints: Vec<RowPrint> = {
            let table = self.read();
            (0..graph.rows()).map(|row| table.print(row, &graph)).collect()
        };
        graph.save(dir, &prints)
    }
}

fn wants_compaction(table: &Table, exact_scan_limit: usize) -> bool {
    table.gone() > (table.rows() / GONE_SHARE).max(exact_scan_limit / 4).max(BLOCK)
}

impl Table {
    /// The print of a graph row for its file; the graph still holds rows that have since been deleted.
    fn print(&self, row: usize, graph: &Graph) -> RowPrint {
        match self.vector(row).filter(|_| graph.holds(row)) {
            Some(vector) => RowPrint {
                node: self.owner_ever(row),
                vector: print_of_vector(vector),
            },
            None => RowPrint {
                node: uuid::Uuid::nil(),
                vector: 0,
            },
        }
    }
}
