//! Files readable only by the user of the service, as they hold notes and secrets.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Creates a directory and its parents with access for the owner only. An existing directory is left unchanged.
///
/// # Errors
/// When it can't be created.
pub fn private_dir(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// # Errors
/// When no file can be created in the directory.
pub fn check_writable(dir: &Path) -> io::Result<()> {
    let probe = dir.join(".writable");
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&probe)?;
    std::fs::remove_file(probe)
}

/// Writes a file that only its owner may read, atomically and durably.
///
/// # Errors
/// When the directory can't be written; the file is then unchanged.
pub fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let part = path.with_extension("part");
    // A leftover of an interrupted write may have other permissions.
    match std::fs::remove_file(&part) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let written = write_new(&part, text).and_then(|()| std::fs::rename(&part, path));
    if written.is_err() {
        std::fs::remove_file(&part).ok();
    }
    written?;
    match path.parent() {
        // The rename is durable only once the directory is synced.
        Some(dir) => File::open(dir)?.sync_all(),
        None => Ok(()),
    }
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Whether this process has a file open under `dir`, as far as `/proc` tells.
pub(crate) fn has_open_files(dir: &Path) -> bool {
    let Ok(dir) = dir.canonicalize() else { return false };
    let Ok(open) = std::fs::read_dir("/proc/self/fd") else {
        return false;
    };
    open.flatten()
        .any(|entry| std::fs::read_link(entry.path()).is_ok_and(|path| path.starts_with(&dir)))
}
