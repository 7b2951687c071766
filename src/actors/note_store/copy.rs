//! The file with the copy of the graph, which is read while the database is still being opened.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::journal::{GraphJournal, RecoveredGraph, Replay};
use crate::actors::job;
use crate::blocking;
use crate::domain::error::DomainError;

/// The copy of a workspace's graph.
#[derive(Debug)]
pub struct GraphCopy {
    path: PathBuf,
    workspace: Uuid,
    /// The first reading, until it is asked for.
    reading: Mutex<Option<JoinHandle<Option<Replay>>>>,
    /// Set when nobody wants the copy any more.
    dropped: Arc<AtomicBool>,
}

impl Drop for GraphCopy {
    fn drop(&mut self) {
        self.dropped.store(true, Ordering::Relaxed);
    }
}

impl GraphCopy {
    /// Begins to read a file; needs a tokio runtime. Nothing is written before the graph is loaded: until the database is
    /// open, the file may belong to another process.
    pub fn open(path: PathBuf, workspace: Uuid) -> Self {
        let copy = Self {
            path,
            workspace,
            reading: Mutex::default(),
            dropped: Arc::default(),
        };
        *copy.reading.lock() = Some(copy.read());
        copy
    }

    fn read(&self) -> JoinHandle<Option<Replay>> {
        let (path, workspace) = (self.path.clone(), self.workspace);
        let dropped = Arc::clone(&self.dropped);
        blocking::spawn(move || {
            let replay = GraphJournal::replay(&path, workspace, &dropped);
            replay.inspect_err(unreadable).ok().flatten()
        })
    }

    /// Removes the file, so that the database is read instead.
    ///
    /// # Errors
    /// When it is still there.
    pub(super) fn discard(&self) -> io::Result<()> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%error, "the copy of the graph can't be removed");
                Err(error)
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What the file holds, with the open file to continue it; `None` if it can't be used.
    pub(super) async fn recover(&self) -> Result<Option<RecoveredGraph>, DomainError> {
        let failed = |error| DomainError::internal("reading the copy of the graph failed", error);
        let first = self.reading.lock().take();
        let mut replay = first.unwrap_or_else(|| self.read()).await.map_err(failed)?;
        if replay.as_ref().is_some_and(|replay| !replay.is_of(&self.path)) {
            // A process that has ended meanwhile had shortened it.
            replay = self.read().await.map_err(failed)?;
        }
        let Some(replay) = replay else {
            return Ok(None);
        };
        job::blocking(move || {
            let resumed = replay.resume();
            Ok(resumed.inspect_err(unreadable).ok())
        })
        .await
    }
}

fn unreadable(error: &std::io::Error) {
    tracing::warn!(%error, "the copy of the graph can't be read; reading the database instead");
}
