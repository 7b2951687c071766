//! A file that a command writes, whole or not at all.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::lifecycle::StartError;

/// A file that appears once it is complete.
pub(super) struct PartFile {
    pub path: PathBuf,
    wanted: PathBuf,
}

impl PartFile {
    /// # Errors
    /// When there is a file of this name.
    pub fn begin(wanted: &Path) -> Result<Self, StartError> {
        let failed = |error| StartError::Io(wanted.display().to_string(), error);
        if wanted.exists() {
            return Err(failed(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "it exists already",
            )));
        }
        let mut name = wanted.file_name().unwrap_or_default().to_owned();
        name.push(".part");
        Ok(Self {
            path: wanted.with_file_name(name),
            wanted: wanted.to_owned(),
        })
    }

    /// The file to write to, readable by its owner alone.
    ///
    /// # Errors
    /// When it can't be made.
    pub fn open(&self) -> Result<File, StartError> {
        std::fs::remove_file(&self.path).ok();
        let mut options = OpenOptions::new();
        let opened = options.write(true).create_new(true).mode(0o600).open(&self.path);
        opened.map_err(|error| StartError::Io(self.path.display().to_string(), error))
    }

    /// Gives the file its name, durably.
    ///
    /// # Errors
    /// When the disk fails, or there is a file of this name by now.
    pub fn finish(self) -> Result<(), StartError> {
        let named = File::open(&self.path)
            .and_then(|file| file.sync_all())
            .and_then(|()| std::fs::hard_link(&self.path, &self.wanted))
            .and_then(|()| std::fs::remove_file(&self.path))
            .and_then(
                |()| match self.wanted.parent().filter(|dir| !dir.as_os_str().is_empty()) {
                    Some(dir) => File::open(dir)?.sync_all(),
                    None => File::open(".")?.sync_all(),
                },
            );
        named.map_err(|error| StartError::Io(self.wanted.display().to_string(), error))
    }
}

impl Drop for PartFile {
    /// Leaves nothing of a file that was not finished.
    fn drop(&mut self) {
        std::fs::remove_file(&self.path).ok();
    }
}
