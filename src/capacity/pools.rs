//! Threads for CPU-bound work: parsing, planning and embedding of ingested data.

use std::num::NonZero;
use std::sync::LazyLock;

use tokio::runtime::Handle;

use super::{Shares, Tenant, bulk_runtime_or};
use crate::blocking;
use crate::domain::error::DomainError;

/// One permit per core but one, which is left to reads.
static HEAVY: LazyLock<Shares> = LazyLock::new(|| Shares::new(threads(), 0, usize::MAX));
/// Two per core, and never more than half of the blocking threads: reads need threads too.
static INDEXING: LazyLock<Shares> = LazyLock::new(|| Shares::new((2 * cores()).min(32), 1, usize::MAX));
/// One large body per thread for heavy work, one that is being written meanwhile, and one for another workspace.
static LARGE_BODIES: LazyLock<Shares> = LazyLock::new(|| Shares::new(threads() + 2, 1, usize::MAX));

/// Asked for once: the system reads the answer from the files of the control groups each time.
static CORES: LazyLock<usize> =
    LazyLock::new(|| std::thread::available_parallelism().map_or(2, NonZero::get));

/// Number of cores that the process may use, as of its start.
pub fn cores() -> usize {
    *CORES
}

fn threads() -> usize {
    cores().saturating_sub(1).max(1)
}

/// Runs one piece of heavy work on a blocking thread once its workspace has a permit. Long work should come in pieces
/// of some tens of milliseconds, so that others get their turn in between.
///
/// # Errors
/// Those of the work; `Internal` when it panics.
pub async fn run_heavy<T, W>(tenant: Tenant, work: W) -> Result<T, DomainError>
where
    T: Send + 'static,
    W: FnOnce() -> Result<T, DomainError> + Send + 'static,
{
    let turn = HEAVY.take(tenant).await;
    let run = move || {
        // Released when the work ends, even if the caller stops waiting.
        let _turn = turn;
        work()
    };
    let threads = Handle::current();
    let done = blocking::spawn_as_on(bulk_runtime_or(&threads), blocking::name_of::<W>(), run).await;
    done.unwrap_or_else(|error| Err(DomainError::internal("the request failed unexpectedly", error)))
}

/// Permits for search-index writes, which wait for each other and for the disk on a blocking thread.
pub fn index_permits() -> &'static Shares {
    &INDEXING
}

/// Permits for large bodies from parsing to the end of their work: a parsed body takes many times its size.
pub fn large_body_permits() -> &'static Shares {
    &LARGE_BODIES
}
