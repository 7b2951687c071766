//! A file that a command writes, whole or not at all.

use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::files;
use crate::lifecycle::StartError;

/// A file that appears once it is complete. Until then it lies beside it, readable by its owner alone, and locked; what an
/// interrupted command left there is written over.
pub(super) struct PartFile {
    pub path: PathBuf,
    wanted: PathBuf,
    file: File,
    /// Whether it stays where it is.
    is_kept: bool,
}

impl PartFile {
    /// # Errors
    /// When there is a file of this name, another command writes it at this moment, or it can't be made.
    pub fn begin(wanted: &Path) -> Result<Self, StartError> {
        let failed = |error| StartError::Io(wanted.display().to_string(), error);
        if wanted.exists() {
            return Err(failed(exists()));
        }
        let mut name = wanted.file_name().unwrap_or_default().to_owned();
        name.push(".part");
        let path = wanted.with_file_name(name);
        let file = open_alone(&path).map_err(failed)?;
        Ok(Self {
            path,
            wanted: wanted.to_owned(),
            file,
            is_kept: false,
        })
    }

    /// The file to write to.
    ///
    /// # Errors
    /// When the system gives no other handle.
    pub fn writer(&self) -> Result<File, StartError> {
        let writer = self.file.try_clone();
        writer.map_err(|error| StartError::Io(self.path.display().to_string(), error))
    }

    /// Gives the file its name, durably.
    ///
    /// # Errors
    /// When the disk fails; or there is a file of this name by now, or none can get it: what was written stays then, and the
    /// error names it.
    pub fn finish(mut self) -> Result<(), StartError> {
        let synced = self.file.sync_all();
        synced.map_err(|error| StartError::Io(self.path.display().to_string(), error))?;
        self.is_kept = true;
        let named = self.give_name().and_then(|()| {
            match self.wanted.parent().filter(|dir| !dir.as_os_str().is_empty()) {
                Some(dir) => File::open(dir)?.sync_all(),
                None => File::open(".")?.sync_all(),
            }
        });
        named.map_err(|error| {
            let place = format!(
                "{} (what was written is in {})",
                self.wanted.display(),
                self.path.display()
            );
            StartError::Io(place, error)
        })
    }

    /// Never replaces a file; where the file system has no hard links, as on a memory stick, not one that is seen.
    fn give_name(&self) -> io::Result<()> {
        match std::fs::hard_link(&self.path, &self.wanted) {
            Ok(()) => std::fs::remove_file(&self.path),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(exists()),
            Err(_) if self.wanted.exists() => Err(exists()),
            Err(_) => std::fs::rename(&self.path, &self.wanted),
        }
    }
}

impl Drop for PartFile {
    /// Leaves nothing of a file that was not finished.
    fn drop(&mut self) {
        if !self.is_kept {
            std::fs::remove_file(&self.path).ok();
        }
    }
}

/// Opens a file that no other command has open, and empties it.
fn open_alone(path: &Path) -> io::Result<File> {
    let busy = || io::Error::new(ErrorKind::ResourceBusy, "another command is writing it");
    let file = files::open_private(path)?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => return Err(busy()),
        // Not every file system has locks.
        Ok(()) | Err(TryLockError::Error(_)) => {}
    }
    // The command that had the lock may just have given this file its name.
    let there = std::fs::metadata(path).map_err(|_| busy())?;
    if there.ino() != file.metadata()?.ino() {
        return Err(busy());
    }
    file.set_len(0)?;
    Ok(file)
}

fn exists() -> io::Error {
    io::Error::new(ErrorKind::AlreadyExists, "it exists already")
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn two_commands_never_write_the_same_file_and_none_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let wanted = dir.path().join("monday.tar.zst");
        std::fs::write(
            dir.path().join("monday.tar.zst.part"),
            "of an interrupted command",
        )
        .unwrap();
        let first = PartFile::begin(&wanted).unwrap();
        let second = PartFile::begin(&wanted).err().unwrap().to_string();
        assert!(second.contains("another command"), "{second}");
        first.writer().unwrap().write_all(b"first").unwrap();
        first.finish().unwrap();
        assert_eq!(std::fs::read(&wanted).unwrap(), b"first");
        assert!(PartFile::begin(&wanted).is_err());
        let other = dir.path().join("tuesday.tar.zst");
        let late = PartFile::begin(&other).unwrap();
        late.writer().unwrap().write_all(b"late").unwrap();
        std::fs::write(&other, "somebody else's").unwrap();
        let said = late.finish().unwrap_err().to_string();
        assert!(
            said.contains("tuesday.tar.zst.part") && said.contains("exists"),
            "{said}"
        );
        assert_eq!(std::fs::read(&other).unwrap(), b"somebody else's");
        drop(PartFile::begin(&dir.path().join("gone")).unwrap());
        let mut left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().flatten().collect();
        left.sort_by_key(|entry| entry.file_name());
        let left: Vec<_> = left.iter().map(|entry| entry.file_name()).collect();
        assert_eq!(
            left,
            ["monday.tar.zst", "tuesday.tar.zst", "tuesday.tar.zst.part"]
        );
    }
}
