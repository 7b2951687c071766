//! Limits the number of workspaces open for writing.
//!
//! An open writer costs a few megabytes and three threads, so only the most recently used stay open; opening another
//! closes the one idle longest. A writer in use is never closed, so the limit may be exceeded while that many
//! workspaces are written at the same time.

use std::sync::{Arc, Weak};
use std::time::Instant;

use parking_lot::Mutex;
use tantivy::index::SegmentMeta;
use tantivy::{FutureResult, IndexWriter};

use super::storage::Commit;
use crate::domain::tlp::Tlp;

/// The write side of a workspace, used by one thread at a time.
pub(super) struct WriterState {
    /// Opened by the first write; dropped when idle or after a failure.
    pub(in crate::search) writer: Option<IndexWriter>,
    /// Whether the writer holds documents that it has not committed.
    pub(super) staged: bool,
    /// Set by a failed commit, which may have left documents that the table does not know.
    pub(super) suspect: bool,
    /// The last commit.
    pub(in crate::search) committed: Commit,
    /// Numbers of nodes visible with each clearance when the sketches were last checked.
    pub(super) calibrated: [usize; Tlp::ALL.len()],
    pub(in crate::search) used: Instant,
    /// A merge that was begun while nothing was written.
    pub(super) tidying: Option<FutureResult<Option<SegmentMeta>>>,
}

impl WriterState {
    /// The state of an index that was opened with this commit and so many nodes visible with each clearance.
    pub(in crate::search) fn new(committed: Commit, visible: [usize; Tlp::ALL.len()]) -> Self {
        WriterState {
            writer: None,
            staged: false,
            suspect: false,
            calibrated: visible.map(|nodes| nodes / 2),
            committed,
            used: Instant::now(),
            tidying: None,
        }
    }
}

/// The open writers of the process.
pub(in crate::search) struct WriterPool {
    limit: usize,
    open: Mutex<Vec<Weak<Mutex<WriterState>>>>,
}

impl WriterPool {
    pub(in crate::search) fn new(limit: usize) -> Self {
        WriterPool {
            limit: limit.max(1),
            open: Mutex::new(Vec::new()),
        }
    }

    /// Makes room for one more open writer and registers it.
    pub(super) fn admit(&self, opening: &Arc<Mutex<WriterState>>) {
        let mut open = self.open.lock();
        let itself = Arc::downgrade(opening);
        open.retain(|other| other.strong_count() > 0 && !other.ptr_eq(&itself));
        let mut idle: Vec<(Instant, Arc<Mutex<WriterState>>)> = Vec::new();
        let mut busy = 0;
        open.retain(|other| {
            let Some(other) = other.upgrade() else {
                return false;
            };
            let used = match other.try_lock() {
                Some(writing) if !writing.staged => writing.writer.is_some().then_some(writing.used),
                _ => {
                    busy += 1;
                    return true;
                }
            };
            idle.extend(used.map(|used| (used, other)));
            used.is_some()
        });
        idle.sort_unstable_by_key(|(used, _)| *used);
        let excess = (busy + idle.len() + 1).saturating_sub(self.limit);
        for (_, other) in idle.into_iter().take(excess) {
            // Never blocks: a workspace that is writing again keeps its writer.
            if let Some(mut writing) = other.try_lock()
                && !writing.staged
            {
                writing.writer = None;
            }
        }
        open.push(itself);
    }
}
