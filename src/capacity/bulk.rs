//! Threads for bulk work: large ingests, feed pulls, and all heavy pieces of work.
//!
//! They have a lower priority than the threads that answer other requests, so a search does not wait for an ingest to
//! use up its time slice. Bulk work runs at full speed while nothing else wants the cores.

use std::num::NonZero;
use std::sync::LazyLock;
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};

/// Niceness of the threads (nice(2)): beside a thread of normal priority they get a tenth of a core.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;
/// Threads for blocking work for each core, and how long an idle one is kept.
const BLOCKING_THREADS: usize = 4;
const KEEP_ALIVE: Duration = Duration::from_secs(2);
/// SurrealDB evaluates queries recursively.
const STACK_BYTES: usize = 16 << 20;

static RUNTIME: LazyLock<Option<Runtime>> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(2, NonZero::get);
    let started = Builder::new_multi_thread()
        .thread_name("bulk")
        .worker_threads(cores)
        .max_blocking_threads((BLOCKING_THREADS * cores).clamp(8, 64))
        .thread_keep_alive(KEEP_ALIVE)
        .thread_stack_size(STACK_BYTES)
        .on_thread_start(lower_priority)
        .enable_all()
        .build();
    started
        .inspect_err(|error| tracing::warn!(%error, "bulk work runs at normal priority"))
        .ok()
});

/// The runtime for bulk work, or `usual` if there is none.
pub fn bulk_or(usual: &Handle) -> &Handle {
    RUNTIME.as_ref().map_or(usual, Runtime::handle)
}

/// Lowers the priority of the calling thread and of the threads that it will start.
pub fn lower_priority() {
    // Elsewhere a priority belongs to the whole process.
    #[cfg(target_os = "linux")]
    // SAFETY: the call takes three numbers; on Linux 0 means the calling thread. A failure changes nothing.
    #[allow(unsafe_code)]
    unsafe {
        let niceness = std::env::var("TM_NICE")
            .ok()
            .and_then(|v| v.parse().ok())
            .unwrap_or(NICENESS);
        libc::setpriority(libc::PRIO_PROCESS, 0, niceness);
    }
}
