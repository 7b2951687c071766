//! Threads for heavy work: parsing, planning and embedding of what comes in.

use std::num::NonZero;
use std::sync::LazyLock;

use super::{Party, Shares};
use crate::blocking;
use crate::domain::error::DomainError;

/// As many as there are cores but one, which is left to reads.
static LANE: LazyLock<Shares> = LazyLock::new(|| Shares::new(threads(), 0, usize::MAX));
/// Half of the threads that a process has for blocking calls: reads need them too.
static INDEXING: LazyLock<Shares> = LazyLock::new(|| Shares::new(2 * cores(), 1, usize::MAX));
/// One large body on each thread for heavy work, one that is being written meanwhile, and one for another workspace.
static PLACES: LazyLock<Shares> = LazyLock::new(|| Shares::new(threads() + 2, 1, usize::MAX));

fn cores() -> usize {
    std::thread::available_parallelism().map_or(2, NonZero::get)
}

fn threads() -> usize {
    cores().saturating_sub(1).max(1)
}

/// Runs one piece of heavy work on a thread of its own when it is its workspace's turn. Long work should come in
/// pieces of some tens of milliseconds: between them others have their turn.
///
/// # Errors
/// Those of the work; `Internal` when it panics.
pub async fn heavy<T, W>(party: Party, work: W) -> Result<T, DomainError>
where
    T: Send + 'static,
    W: FnOnce() -> Result<T, DomainError> + Send + 'static,
{
    let turn = LANE.take(party).await;
    let run = move || {
        // Ends with the work, not with whoever waits for it.
        let _turn = turn;
        work()
    };
    let done = blocking::spawn_as(blocking::name_of::<W>(), run).await;
    done.unwrap_or_else(|error| Err(DomainError::internal("the request failed unexpectedly", error)))
}

/// Places for writes into a search index, which wait for each other and for the disk on a thread of their own.
pub fn indexing() -> &'static Shares {
    &INDEXING
}

/// Places for large bodies between parsing and the end of their work: parsed, one takes many times its size.
pub fn large_places() -> &'static Shares {
    &PLACES
}
