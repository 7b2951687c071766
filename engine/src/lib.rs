//! SurrealKV 1 under the names by which SurrealDB 3.3 calls it. `docs/engine.md` of threat-memory says why, what it costs,
//! and when this crate goes away.

mod commits;
mod purge;

use std::ops::{Deref, RangeInclusive};
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

pub use commits::{CommitObserver, observe_commits};
use commits::{SyncNumbers, take_observer};
pub use purge::purge;
pub use surrealkv_1::{Durability, Error, HistoryOptions, LSMIterator, Mode, Result, Transaction};
use surrealkv_1::{Options, RibbonFilter, VLogChecksumLevel};
use tokio::runtime::Handle;

/// Flushed files from which they are merged into level 1: one for so many bytes of the block cache, which has to hold their
/// indexes and filters.
const LEVEL_0_SHARE: u64 = 4 << 20;
const LEVEL_0_FILES: RangeInclusive<u64> = 16..=32;
/// How many times as many there may be before writers wait.
const LEVEL_0_STALL: usize = 3;
/// Bytes of level 1. A bulk write of 3 GB is merged into it and no further; each further level rewrites everything again.
const LEVEL_1_BYTES: u64 = 4 << 30;

/// Share of the block cache, and bounds, of a partition of a file's index or filter. A look-up searches the partitions of each
/// file, so few large ones are faster. The cache consists of many parts, and a partition must fit into one.
const PARTITION_SHARE: u64 = 512;
const PARTITION_BYTES: RangeInclusive<u64> = 16 << 10..=256 << 10;
/// Bits of a file's filter for each key. A filter of SurrealKV's other kind reads several places per key instead of one cache
/// line, and with its ten bits it is wrong for one key in a hundred; then a block is read in vain.
const FILTER_BITS_PER_KEY: usize = 16;

/// An open store. All but the sync of its log is SurrealKV's own.
#[derive(Clone)]
pub struct Tree {
    tree: Arc<surrealkv_1::Tree>,
    /// Set for a store with an observer.
    numbers: Option<Arc<SyncNumbers>>,
}

impl Deref for Tree {
    type Target = surrealkv_1::Tree;

    fn deref(&self) -> &surrealkv_1::Tree {
        &self.tree
    }
}

impl Tree {
    /// Writes the log out. With `sync` it is on disk afterwards, and the observer of the store knows.
    pub fn flush_wal(&self, sync: bool) -> Result<()> {
        match &self.numbers {
            Some(numbers) if sync => numbers.sync(&self.tree),
            Some(_) | None => self.tree.flush_wal(sync),
        }
    }
}

/// The builder of SurrealKV 0.21, which also had an option for a second index of versions.
pub struct TreeBuilder {
    options: Options,
    cache_bytes: u64,
}

macro_rules! forward {
    ($($name:ident($($arg:ident: $kind:ty),*);)*) => {
        $(
            #[must_use]
            pub fn $name(self, $($arg: $kind),*) -> Self {
                Self { options: self.options.$name($($arg),*), ..self }
            }
        )*
    };
}

impl Default for TreeBuilder {
    fn default() -> Self {
        let filter = Arc::new(RibbonFilter::new(FILTER_BITS_PER_KEY));
        // By default a value in the value log is answered as it is read, even where a byte of it has changed on disk.
        let mut options = Options::new()
            .with_filter_policy(Some(filter))
            .with_vlog_checksum_verification(VLogChecksumLevel::Full);
        options.max_bytes_for_level = LEVEL_1_BYTES;
        Self {
            options,
            cache_bytes: 0,
        }
    }
}

impl TreeBuilder {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    forward! {
        with_block_size(bytes: usize);
        with_enable_vlog(enable: bool);
        with_max_memtable_size(bytes: usize);
        with_path(path: PathBuf);
        with_versioning(enable: bool, retention_ns: u64);
        with_vlog_max_file_size(bytes: u64);
        with_vlog_value_threshold(bytes: usize);
    }

    #[must_use]
    pub fn with_block_cache_capacity(self, bytes: u64) -> Self {
        Self {
            options: self.options.with_block_cache_capacity(bytes),
            cache_bytes: bytes,
        }
    }

    /// No effect: SurrealKV 1 keeps versions without a separate index.
    #[must_use]
    pub fn with_versioned_index(self, _enable: bool) -> Self {
        self
    }

    /// Opens the store on a separate thread: SurrealKV 1 replays its log with `block_in_place`, which panics inside the
    /// `block_on` in which an actix system runs its main task.
    pub fn build(self) -> Result<Tree> {
        let runtime = Handle::try_current();
        let options = self.sized_by_cache();
        let path = options.path.clone();
        let observer = take_observer(&path);
        let open = || {
            let _context = runtime.as_ref().ok().map(Handle::enter);
            surrealkv_1::TreeBuilder::with_options(options).build()
        };
        let opened = thread::scope(|scope| {
            thread::Builder::new()
                .name("store-open".into())
                .spawn_scoped(scope, open)
                .map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
        });
        let tree = opened
            .unwrap_or_else(|error| Err(Error::Other(format!("no thread to open the store: {error}"))))?;
        let numbers = match (observer, runtime) {
            (Some(observer), Ok(runtime)) => Some(SyncNumbers::begin(&tree, observer, runtime)?),
            (Some(_), Err(_)) => return Err(Error::Other("an observed store needs a runtime".into())),
            (None, _) => None,
        };
        let numbers = numbers.map(Arc::new);
        let tree = Arc::new(tree);
        purge::remember(&path, &tree);
        Ok(Tree { tree, numbers })
    }

    fn sized_by_cache(mut self) -> Options {
        let part = |share: u64, bounds: RangeInclusive<u64>| {
            (self.cache_bytes / share).clamp(*bounds.start(), *bounds.end()) as usize
        };
        self.options.level0_max_files = part(LEVEL_0_SHARE, LEVEL_0_FILES);
        self.options.l0_stall_threshold = LEVEL_0_STALL * self.options.level0_max_files;
        self.options.index_partition_size = part(PARTITION_SHARE, PARTITION_BYTES);
        self.options
    }
}
