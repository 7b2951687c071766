//! Numbers what a store has synced, so that a program can tell at the next start whether all of it is still there.
//!
//! A log that was cut, or that is gone, looks like a shorter log: the store by itself can't know that anything is missing.
//! So each sync first writes a row with the next number behind the commits that it covers. When it has succeeded, an
//! observer is told the number and keeps it outside of the store. A store whose row has a smaller number than the observer
//! remembers has lost commits that were acknowledged.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use surrealkv_1::{Durability, Error, Mode, Result, Tree};
use tokio::runtime::Handle;

/// The row with the number, eight bytes with the highest first. It stands before all rows of SurrealDB, which takes a row
/// behind its version for that of an old store.
const ROW: &[u8] = b"\0threat-memory: syncs";
/// Longest wait for the row. A store that stalls its writers meanwhile syncs without a number.
const PATIENCE: Duration = Duration::from_millis(50);

/// Is told how far a store has come.
pub trait CommitObserver: Send + Sync {
    /// The store was opened; `number` is the number of its last sync, 0 if it has none.
    ///
    /// # Errors
    /// The reason why the store must not be used. Opening it then fails.
    fn opened(&self, number: u64) -> std::result::Result<(), String>;

    /// Everything up to this number is on disk. Called before the commits are acknowledged, and never with a number that
    /// is not on disk.
    fn synced(&self, number: u64);
}

static OBSERVERS: Mutex<Vec<(PathBuf, Arc<dyn CommitObserver>)>> = Mutex::new(Vec::new());

/// Names the observer of the store that is opened next in this directory. A store without one has no numbers.
pub fn observe_commits(store: &Path, observer: Arc<dyn CommitObserver>) {
    let store = canonical(store);
    let mut observers = OBSERVERS.lock().unwrap_or_else(PoisonError::into_inner);
    observers.retain(|(path, _)| *path != store);
    observers.push((store, observer));
}

/// The observer named for this directory, which is then forgotten.
pub(crate) fn take_observer(store: &Path) -> Option<Arc<dyn CommitObserver>> {
    let store = canonical(store);
    let mut observers = OBSERVERS.lock().unwrap_or_else(PoisonError::into_inner);
    let found = observers.iter().position(|(path, _)| *path == store)?;
    Some(observers.swap_remove(found).1)
}

pub(crate) fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// The numbers of an open store.
pub(crate) struct SyncNumbers {
    /// The highest number that was ever given to a row. Held while a sync runs.
    last: Mutex<u64>,
    observer: Arc<dyn CommitObserver>,
    runtime: Handle,
}

impl SyncNumbers {
    /// Reads the number of a store that was just opened, and asks the observer whether it may be used.
    pub(crate) fn begin(tree: &Tree, observer: Arc<dyn CommitObserver>, runtime: Handle) -> Result<Self> {
        let row = tree.begin_with_mode(Mode::ReadOnly)?.get(ROW)?;
        let number = match row {
            None => 0,
            Some(bytes) => <[u8; 8]>::try_from(bytes.as_slice())
                .map(u64::from_be_bytes)
                .map_err(|_| Error::Corruption("the number of the last sync is malformed".into()))?,
        };
        observer.opened(number).map_err(Error::Other)?;
        Ok(Self {
            last: Mutex::new(number),
            observer,
            runtime,
        })
    }

    /// Syncs the log with a number behind its commits.
    pub(crate) fn sync(&self, tree: &Tree) -> Result<()> {
        // The commit of the row is done by a task of the runtime, so a thread of the runtime must not wait for it.
        if Handle::try_current().is_ok() {
            return tree.flush_wal(true);
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        // A row that was given up may still be written, so its number is never used again.
        *last += 1;
        let number = *last;
        let is_written = self.write(tree, number).is_some_and(|written| written.is_ok());
        tree.flush_wal(true)?;
        if is_written {
            self.observer.synced(number);
        }
        Ok(())
    }

    /// Writes the row; `None` if that takes too long.
    fn write(&self, tree: &Tree, number: u64) -> Option<Result<()>> {
        let _context = self.runtime.enter();
        wait_for(
            async {
                let mut transaction = tree.begin_with_mode(Mode::WriteOnly)?;
                transaction.set_durability(Durability::Eventual);
                transaction.set(ROW, &number.to_be_bytes())?;
                transaction.commit().await
            },
            PATIENCE,
        )
    }
}

/// Wakes a thread that waits for a future.
struct ThreadWaker(Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Blocks the thread until the future is ready, at most for so long.
fn wait_for<F: Future>(future: F, limit: Duration) -> Option<F::Output> {
    let waker = Waker::from(Arc::new(ThreadWaker(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    let until = Instant::now() + limit;
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Some(output);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        thread::park_timeout(left);
    }
}
