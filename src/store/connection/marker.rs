//! Recognises a store that has lost what it acknowledged: a disk that is not mounted, a log that was cut, an old back-up.
//!
//! The rule: a service starts on a store only if the store holds everything that was ever acknowledged from its directory,
//! or if the operator accepts the loss. The engine numbers its syncs. The marker, a file beside the store, holds the last
//! number. It is written after the sync and before the answer, and never waits for the disk itself: a marker that is older
//! than the store is harmless, and one that is newer can't exist.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use surrealkv::CommitObserver;

use super::error::StoreError;
use crate::files;

/// Its place in the data directory.
const FILE: &str = "store.marker";
/// Shows that a directory was in use already. Made after the first store of the directory.
const SECRET: &str = "jwt.secret";
/// How often the marker itself is made durable.
const DURABLE_EVERY: Duration = Duration::from_secs(5);

/// Watches the store of one data directory.
pub(crate) struct StoreMarker {
    store: PathBuf,
    path: PathBuf,
    /// The number that the file had at the start.
    known: Option<u64>,
    /// Whether the store may lack anything, whatever its number is: it was missing although the directory had one, or the
    /// file could not be read.
    is_doubtful: bool,
    accept_loss: bool,
    found: AtomicU64,
    is_refused: AtomicBool,
    open: Mutex<Option<OpenMarker>>,
}

struct OpenMarker {
    file: Arc<File>,
    made_durable: Instant,
    has_failed: bool,
}

/// A loss that the operator accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AcceptedLoss {
    /// The last number in the store.
    pub found: u64,
    /// The last number of which the marker knew. Without one nobody can tell whether the store lacks anything.
    pub known: Option<u64>,
}

impl StoreMarker {
    /// Looks at the store of a data directory before it is opened.
    ///
    /// # Errors
    /// [`StoreError::Gone`] when the directory had a store that is not there, unless the loss is accepted;
    /// [`StoreError::Marker`] and [`StoreError::Unreadable`] when the marker can't be read; [`StoreError::NotOwner`] for root
    /// where the store belongs to another user.
    pub(crate) fn begin(store: &Path, accept_loss: bool) -> Result<Arc<Self>, StoreError> {
        let data_dir = store.parent().unwrap_or(Path::new("."));
        let path = data_dir.join(FILE);
        Self::check_owner(data_dir)?;
        let (known, is_unreadable) = match read(&path) {
            Ok(known) => (known, false),
            // Whose marker can't be read can't write it either, so a loss that is accepted changes nothing.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                return Err(StoreError::Unreadable(path.display().to_string()));
            }
            Err(_) if accept_loss => (None, true),
            Err(error) => {
                let (path, cause) = (path.display().to_string(), error.to_string());
                return Err(StoreError::Marker { path, cause });
            }
        };
        let is_gone = files::is_empty(store) && (known.is_some() || data_dir.join(SECRET).exists());
        if is_gone && !accept_loss {
            return Err(StoreError::Gone {
                store: store.display().to_string(),
                known: known.unwrap_or(0),
            });
        }
        Ok(Arc::new(Self {
            store: store.to_owned(),
            path,
            known,
            is_doubtful: is_gone || is_unreadable,
            accept_loss,
            found: AtomicU64::new(0),
            is_refused: AtomicBool::new(false),
            open: Mutex::default(),
        }))
    }

    /// Checks that the store of a data directory does not belong to another user than the one whose files this process makes.
    ///
    /// # Errors
    /// [`StoreError::NotOwner`] for root.
    pub(crate) fn check_owner(data_dir: &Path) -> Result<(), StoreError> {
        refuse_root(data_dir, &data_dir.join(FILE))
    }

    /// The directory of the store and of what belongs to it.
    pub(in crate::store) fn data_dir(&self) -> &Path {
        self.store.parent().unwrap_or(Path::new("."))
    }

    /// Makes the engine report to this marker when it opens the store next.
    pub(in crate::store) fn watch(self: &Arc<Self>) {
        surrealkv::observe_commits(&self.store, Arc::clone(self) as Arc<dyn CommitObserver>);
    }

    /// The reason why the store was refused, if it was.
    pub(in crate::store) fn refusal(&self) -> Option<StoreError> {
        self.is_refused
            .load(Ordering::Acquire)
            .then(|| StoreError::Behind {
                store: self.store.display().to_string(),
                found: self.found.load(Ordering::Acquire),
                known: self.known.unwrap_or(0),
            })
    }

    /// What the open store lacks, if the operator accepted that it lacks something.
    pub(crate) fn accepted_loss(&self) -> Option<AcceptedLoss> {
        let (found, known) = (self.found.load(Ordering::Acquire), self.known);
        let is_behind = known.is_some_and(|known| found < known);
        (self.is_doubtful || is_behind).then_some(AcceptedLoss { found, known })
    }

    /// Writes the file anew and keeps it open.
    fn create(&self, number: u64) -> io::Result<()> {
        files::write_private(&self.path, &line(number))?;
        let file = OpenOptions::new().write(true).open(&self.path)?;
        *self.open.lock() = Some(OpenMarker {
            file: Arc::new(file),
            made_durable: Instant::now(),
            has_failed: false,
        });
        Ok(())
    }
}

impl CommitObserver for StoreMarker {
    fn opened(&self, number: u64) -> Result<(), String> {
        self.found.store(number, Ordering::Release);
        if self.known.is_some_and(|known| number < known) && !self.accept_loss {
            self.is_refused.store(true, Ordering::Release);
            return Err("the store has lost commits".into());
        }
        self.create(number)
            .map_err(|error| format!("{}: {error}", self.path.display()))
    }

    fn synced(&self, number: u64) {
        let mut open = self.open.lock();
        let Some(marker) = open.as_mut() else { return };
        if let Err(error) = marker.file.write_all_at(line(number).as_bytes(), 0) {
            if !std::mem::replace(&mut marker.has_failed, true) {
                tracing::warn!(%error, file = %self.path.display(), "the marker of the store can't be written");
            }
            return;
        }
        marker.has_failed = false;
        if marker.made_durable.elapsed() < DURABLE_EVERY {
            return;
        }
        let file = Arc::clone(&marker.file);
        // No commit waits for the disk. Without a thread the file only stays older on disk, and the next commit tries again.
        let syncing = thread::Builder::new().spawn(move || file.sync_data());
        if syncing.is_ok() {
            marker.made_durable = Instant::now();
        }
    }
}

impl Drop for StoreMarker {
    fn drop(&mut self) {
        if let Some(marker) = self.open.get_mut() {
            marker.file.sync_data().ok();
        }
    }
}

/// Always of one length, so that a shorter number doesn't leave digits of a longer one behind.
fn line(number: u64) -> String {
    format!("{number:020}\n")
}

/// The number in the file; `None` without a file.
fn read(path: &Path) -> io::Result<Option<u64>> {
    match fs::read_to_string(path) {
        Ok(text) => text
            .trim()
            .parse()
            .map(Some)
            .map_err(|_| io::Error::new(ErrorKind::InvalidData, "it does not hold a number")),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Refuses to let root make files in a directory whose `belongings` are another user's.
pub(in crate::store) fn refuse_root(dir: &Path, belongings: &Path) -> Result<(), StoreError> {
    files::refuse_root(dir, belongings).map_err(|owner| StoreError::NotOwner {
        dir: dir.display().to_string(),
        owner,
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use rlimit::Resource;

    use super::*;

    /// Set only in the process that a test below starts: its limit is one of the whole process.
    const MAY_LIMIT: &str = "THREAT_MEMORY_TEST_MAY_LIMIT";

    fn data_dir() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        (dir, store)
    }

    fn fill(store: &Path) {
        fs::create_dir_all(store).unwrap();
        fs::write(store.join("some file"), "of the engine").unwrap();
    }

    /// Opens a store whose last sync has this number.
    fn open(store: &Path, accept_loss: bool, number: u64) -> Result<Arc<StoreMarker>, StoreError> {
        let marker = StoreMarker::begin(store, accept_loss)?;
        match marker.opened(number) {
            Ok(()) => Ok(marker),
            Err(_) => Err(marker.refusal().unwrap()),
        }
    }

    #[test]
    fn a_store_that_is_behind_its_marker_is_refused_until_the_loss_is_accepted() {
        let (_dir, store) = data_dir();
        let marker = open(&store, false, 0).ok().unwrap();
        fill(&store);
        marker.synced(41);
        marker.synced(107);
        drop(marker);
        for number in [107, 110] {
            assert_eq!(open(&store, false, number).ok().unwrap().accepted_loss(), None);
            fs::write(store.with_file_name(FILE), line(107)).unwrap();
        }
        let refused = open(&store, false, 106).err().unwrap();
        assert!(
            matches!(
                refused,
                StoreError::Behind {
                    found: 106,
                    known: 107,
                    ..
                }
            ),
            "{refused:?}"
        );
        let text = refused.to_string();
        for part in ["106", "107", "--accept-loss", "store"] {
            assert!(text.contains(part), "{text}");
        }
        let accepted = open(&store, true, 106).ok().unwrap();
        let loss = AcceptedLoss {
            found: 106,
            known: Some(107),
        };
        assert_eq!(accepted.accepted_loss(), Some(loss));
        assert_eq!(open(&store, false, 106).ok().unwrap().accepted_loss(), None);
    }

    #[test]
    fn a_store_that_is_gone_is_told_from_one_that_never_was() {
        for beside in [SECRET, FILE] {
            for is_there in [false, true] {
                let (dir, store) = data_dir();
                assert!(StoreMarker::begin(&store, false).is_ok(), "a new directory");
                fs::write(dir.path().join(beside), line(7)).unwrap();
                if is_there {
                    fs::create_dir(&store).unwrap();
                }
                let refused = StoreMarker::begin(&store, false).err().unwrap();
                assert!(matches!(refused, StoreError::Gone { .. }), "{refused:?}");
                assert!(refused.to_string().contains("--accept-loss"), "{refused}");
                let accepted = open(&store, true, 0).ok().unwrap();
                assert!(accepted.accepted_loss().is_some());
                fill(&store);
                assert!(open(&store, false, 0).is_ok());
            }
        }
    }

    #[test]
    fn a_marker_that_is_no_number_is_named() {
        let (dir, store) = data_dir();
        fill(&store);
        for text in ["", "many", "-1"] {
            fs::write(dir.path().join(FILE), text).unwrap();
            let refused = StoreMarker::begin(&store, false).err().unwrap();
            assert!(refused.to_string().contains(FILE), "{refused}");
        }
        // The store may have been rolled back, and what was derived from it must not stay.
        let accepted = open(&store, true, 3).ok().unwrap();
        let loss = AcceptedLoss {
            found: 3,
            known: None,
        };
        assert_eq!(accepted.accepted_loss(), Some(loss));
        assert_eq!(read(&dir.path().join(FILE)).unwrap(), Some(3));
        assert_eq!(open(&store, true, 3).ok().unwrap().accepted_loss(), None);
    }

    #[test]
    fn a_shorter_number_leaves_nothing_of_a_longer_one() {
        let (dir, store) = data_dir();
        let marker = open(&store, false, 0).ok().unwrap();
        for number in [1, 999, u64::MAX, 5] {
            marker.synced(number);
            assert_eq!(read(&dir.path().join(FILE)).unwrap(), Some(number));
        }
    }

    /// Run by the test below, in a process of its own.
    #[test]
    #[ignore = "limits the memory of the process"]
    fn syncs_without_a_thread() {
        if std::env::var_os(MAY_LIMIT).is_none() {
            return;
        }
        let (dir, store) = data_dir();
        let marker = open(&store, false, 0).ok().unwrap();
        let is_due = || marker.open.lock().as_ref().unwrap().made_durable.elapsed() >= DURABLE_EVERY;
        let long_ago = Instant::now().checked_sub(DURABLE_EVERY).unwrap();
        marker.open.lock().as_mut().unwrap().made_durable = long_ago;
        let (_, most) = rlimit::getrlimit(Resource::AS).unwrap();
        // There is no memory left for a stack.
        rlimit::setrlimit(Resource::AS, 1, most).unwrap();
        let refused = thread::Builder::new().spawn(|| {}).is_err();
        marker.synced(41);
        rlimit::setrlimit(Resource::AS, most, most).unwrap();
        assert!(refused && is_due());
        assert_eq!(read(&dir.path().join(FILE)).unwrap(), Some(41));
        marker.synced(42);
        assert!(!is_due());
    }

    #[test]
    fn a_commit_for_which_there_is_no_thread_is_noted_all_the_same() {
        let ended = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "store::connection::marker::tests::syncs_without_a_thread",
                "--ignored",
                "--nocapture",
            ])
            .env(MAY_LIMIT, "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ended.stdout).into_owned();
        assert!(ended.status.success() && said.contains("1 passed"), "{ended:?}");
    }
}
