//! The room that the disk must keep.
//!
//! An engine that meets a full disk refuses writes until it is restarted. Below the watermark writes are refused before it does, and
//! reads go on: what they leave in the audit log is small.

use std::path::{Path, PathBuf};

use crate::domain::error::DomainError;

const MIB: u64 = 1 << 20;

/// The disk of a data directory, and the room that it must keep.
#[derive(Debug, Clone, Default)]
pub struct DiskRoom {
    /// Nothing is kept on a disk of this machine without one.
    dir: Option<PathBuf>,
    least_mib: u64,
}

impl DiskRoom {
    /// The disk that has the directory; with `least_mib` of 0 everything is allowed.
    pub fn new(dir: Option<PathBuf>, least_mib: u64) -> Self {
        Self { dir, least_mib }
    }

    /// Whether a write may begin. Asks the operating system, which takes microseconds.
    ///
    /// # Errors
    /// [`DomainError::DiskLow`] when less is free. A disk that can't be asked does not stop writes: the engine tells of its
    /// failures.
    pub fn require(&self) -> Result<(), DomainError> {
        let free = self
            .dir
            .as_deref()
            .filter(|_| self.least_mib > 0)
            .and_then(free_mib);
        match free {
            Some(free_mib) if free_mib < self.least_mib => Err(DomainError::DiskLow {
                free_mib,
                least_mib: self.least_mib,
            }),
            Some(_) | None => Ok(()),
        }
    }
}

/// What an ordinary user may still write to the disk of a directory, in MiB.
pub fn free_mib(dir: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(dir).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize) / MIB)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_need_the_room_that_is_set() {
        let dir = tempfile::tempdir().unwrap();
        let room = |least| DiskRoom::new(Some(dir.path().to_owned()), least).require();
        assert!(room(0).is_ok() && room(1).is_ok());
        let refused = room(u64::MAX).unwrap_err();
        assert!(matches!(
            refused,
            DomainError::DiskLow {
                least_mib: u64::MAX,
                ..
            }
        ));
        assert!(DiskRoom::new(None, u64::MAX).require().is_ok());
        let gone = DiskRoom::new(Some(dir.path().join("gone")), u64::MAX);
        assert!(gone.require().is_ok());
    }
}
