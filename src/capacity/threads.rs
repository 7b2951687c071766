//! The threads of the process: those that answer requests, those that share a large search, and those for bulk work
//! (large ingests, feed pulls, all heavy pieces of work).
//!
//! The last have a lower priority and longer time slices, so a search does not wait for an ingest to use up its time
//! slice. Bulk work runs at full speed while nothing else wants the cores.

use std::sync::LazyLock;
use std::time::Duration;

use rayon::{ThreadPool, ThreadPoolBuilder};
use tokio::runtime::{Builder, Handle, Runtime};

use super::pools::cores;

/// Niceness of threads for bulk work (nice(2)): beside a thread of normal priority they get a quarter of a core.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 5;
/// Shortest time slice that the kernel grants (sched_setattr(2)).
#[cfg(target_os = "linux")]
const MIN_SLICE: Duration = Duration::from_micros(100);
/// Blocking threads per core; more only hold memory.
const BLOCKING_THREADS: usize = 4;
/// How long an idle blocking thread waits for work.
const KEEP_ALIVE: Duration = Duration::from_secs(2);
/// SurrealDB evaluates queries recursively.
pub const STACK_BYTES: usize = 16 << 20;

static BULK: LazyLock<Option<Runtime>> = LazyLock::new(|| {
    let started = runtime()
        .thread_name("bulk")
        .on_thread_start(lower_priority)
        .build();
    started
        .inspect_err(|error| tracing::warn!(%error, "bulk work runs at normal priority"))
        .ok()
});

static SEARCH_POOL: LazyLock<Option<ThreadPool>> = LazyLock::new(|| {
    let started = ThreadPoolBuilder::new().thread_name(|_| "search".into()).build();
    started
        .inspect_err(|error| tracing::warn!(%error, "large searches run on one thread each"))
        .ok()
});

/// A runtime as the service needs it, with a worker per core.
pub fn runtime() -> Builder {
    let mut builder = Builder::new_multi_thread();
    builder
        .enable_all()
        .max_blocking_threads((BLOCKING_THREADS * cores()).clamp(8, 64))
        .thread_keep_alive(KEEP_ALIVE)
        .thread_stack_size(STACK_BYTES);
    builder
}

/// The runtime for bulk work, or `usual` if there is none.
pub fn bulk_runtime_or(usual: &Handle) -> &Handle {
    BULK.as_ref().map_or(usual, Runtime::handle)
}

/// A thread per core for the parts of one large search; `None` if there are none to be had.
pub fn search_pool() -> Option<&'static ThreadPool> {
    SEARCH_POOL.as_ref()
}

/// Shortens the time slice of the calling thread and of the threads that it will start. From Linux 6.12 on, a thread that
/// wakes up interrupts one with a longer slice at once. Otherwise it can wait for the next tick of the clock, up to 10 ms.
pub fn shorten_slice() {
    #[cfg(target_os = "linux")]
    set_slice(MIN_SLICE);
}

/// Lowers the priority of the calling thread and of the threads that it will start, and gives them slices of the usual
/// length.
pub fn lower_priority() {
    // Elsewhere a priority belongs to the whole process.
    #[cfg(target_os = "linux")]
    {
        // On Linux no process means the calling thread. A failure changes nothing.
        rustix::process::setpriority_process(None, NICENESS).ok();
        set_slice(Duration::ZERO);
    }
}

/// Sets the time slice of the calling thread; zero stands for the usual one. Kernels before 6.12 have no such setting
/// and change nothing.
#[cfg(target_os = "linux")]
fn set_slice(slice: Duration) {
    let niceness = rustix::process::getpriority_process(None).unwrap_or_default();
    // SAFETY: a structure of numbers, in which 0 means that nothing is set; the calls read it and nothing else, and 0 is
    // the calling thread. A failure changes nothing.
    #[allow(unsafe_code)]
    unsafe {
        let mut wanted: libc::sched_attr = std::mem::zeroed();
        wanted.size = size_of::<libc::sched_attr>() as u32;
        wanted.sched_flags = libc::SCHED_FLAG_KEEP_POLICY as u64;
        wanted.sched_nice = niceness;
        wanted.sched_runtime = slice.as_nanos() as u64;
        libc::syscall(libc::SYS_sched_setattr, 0, &raw const wanted, 0);
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// Priority of the calling thread.
    fn niceness() -> i32 {
        rustix::process::getpriority_process(None).unwrap_or(i32::MIN)
    }

    /// Time slice of the calling thread, in nanoseconds; 0 if the kernel has no such setting.
    fn slice() -> u64 {
        // SAFETY: the call writes at most as many bytes as the structure has.
        #[allow(unsafe_code)]
        unsafe {
            let mut found: libc::sched_attr = std::mem::zeroed();
            let size = size_of::<libc::sched_attr>();
            libc::syscall(libc::SYS_sched_getattr, 0, &raw mut found, size, 0);
            found.sched_runtime
        }
    }

    #[test]
    fn started_threads_have_the_short_slice_unless_they_are_for_bulk_work() {
        let slices = std::thread::spawn(|| {
            let usual = slice();
            shorten_slice();
            let priority = niceness();
            let short = std::thread::spawn(|| (slice(), niceness())).join().unwrap();
            let bulk = std::thread::spawn(|| {
                lower_priority();
                (slice(), niceness())
            });
            (usual, priority, short, bulk.join().unwrap())
        });
        let (usual, priority, short, bulk) = slices.join().unwrap();
        // Kernels before 6.12 report no slice.
        let shortest = if usual == 0 { 0 } else { 100_000 };
        assert_eq!(short, (shortest, priority));
        assert_eq!(bulk, (usual, NICENESS));
    }

    #[tokio::test]
    async fn only_bulk_work_has_a_low_priority() {
        let usual = Handle::current();
        let before = niceness();
        let bulk = bulk_runtime_or(&usual);
        let on_worker = bulk.spawn(async { niceness() }).await.unwrap();
        let blocking = bulk.spawn_blocking(niceness).await.unwrap();
        assert_eq!((on_worker, blocking), (before + NICENESS, before + NICENESS));
        assert_eq!(usual.spawn_blocking(niceness).await.unwrap(), before);
    }
}
