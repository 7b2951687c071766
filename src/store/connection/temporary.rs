//! The directory of a store that is discarded when the process ends (`mem://`).
//!
//! The engine's own in-memory store takes time quadratic in the size of a transaction. So this is the durable engine
//! without fsync, in a directory that only its owner can read.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::files;

const PREFIX: &str = "threat-memory-";
/// Lock file held for as long as the directory is in use.
const LOCK: &str = "in-use";
/// Polling interval while the engine closes its files in the background.
const CLOSING_PAUSE: Duration = Duration::from_millis(5);
const CLOSING_TRIES: u32 = 2_000;

/// A directory that is removed once none of its files is open any more.
#[derive(Debug)]
pub(in crate::store) struct TemporaryDir {
    dir: PathBuf,
    _lock: File,
}

impl TemporaryDir {
    /// Creates a directory, and removes those of killed processes.
    pub(in crate::store) fn new() -> std::io::Result<Self> {
        let place = std::env::temp_dir();
        remove_orphans(&place);
        let dir = tempfile::Builder::new()
            .prefix(PREFIX)
            .rand_bytes(16)
            .tempdir_in(place)?
            .keep();
        // A process starting at this moment must not see the file before it is locked.
        let unlocked = dir.join("new");
        let lock = File::create_new(&unlocked)?;
        lock.lock()?;
        fs::rename(unlocked, dir.join(LOCK))?;
        Ok(Self { dir, _lock: lock })
    }

    /// Directory of the engine's files.
    pub(in crate::store) fn store(&self) -> PathBuf {
        self.dir.join("store")
    }

    pub(in crate::store) fn dir(&self) -> &Path {
        &self.dir
    }
}

impl Drop for TemporaryDir {
    fn drop(&mut self) {
        let (dir, store) = (self.dir.clone(), self.store());
        std::thread::spawn(move || {
            for _ in 0..CLOSING_TRIES {
                if !files::has_open_files(&store) {
                    break;
                }
                // Not an actor's thread, so blocking is fine.
                #[allow(clippy::disallowed_methods)]
                std::thread::sleep(CLOSING_PAUSE);
            }
            if let Err(error) = fs::remove_dir_all(&dir) {
                tracing::warn!(dir = %dir.display(), %error, "the temporary store was not removed");
            }
        });
    }
}

/// Removes the directories of processes that were killed and could not clean up.
fn remove_orphans(place: &Path) {
    let Ok(entries) = fs::read_dir(place) else { return };
    for entry in entries.flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let lock = File::open(entry.path().join(LOCK));
        if lock.is_ok_and(|lock| lock.try_lock().is_ok()) {
            fs::remove_dir_all(entry.path()).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_removed(dir: &Path) -> bool {
        (0..400).any(|_| {
            #[allow(clippy::disallowed_methods)]
            std::thread::sleep(CLOSING_PAUSE);
            !dir.exists()
        })
    }

    #[test]
    fn it_is_removed_when_it_is_let_go_and_only_then() {
        let kept = TemporaryDir::new().unwrap();
        let gone = TemporaryDir::new().unwrap();
        let dir = gone.dir().to_owned();
        drop(gone);
        assert!(is_removed(&dir));
        drop(TemporaryDir::new().unwrap());
        assert!(kept.dir().exists());
    }

    #[test]
    fn what_a_killed_process_left_is_removed_by_the_next() {
        let place = tempfile::tempdir().unwrap();
        let orphan = place.path().join(format!("{PREFIX}orphan"));
        let other = place.path().join("other");
        for dir in [&orphan, &other] {
            fs::create_dir(dir).unwrap();
            File::create_new(dir.join(LOCK)).unwrap();
        }
        remove_orphans(place.path());
        assert!(!orphan.exists());
        assert!(other.exists());
    }
}
