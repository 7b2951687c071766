//! The files of an index, written without fsync.
//!
//! The index can always be rebuilt, so a commit must survive the end of the process but not a power cut. After a power
//! cut, incomplete files fail their checksum at the next start and the index is rebuilt. Skipping fsync makes a small
//! commit several times faster.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    AntiCallToken, Directory, DirectoryLock, FileHandle, Lock, MmapDirectory, TerminatingWrite,
    WatchCallback, WatchHandle, WritePtr,
};

/// A memory-mapped directory that never syncs to disk.
#[derive(Debug, Clone)]
pub(super) struct LazyDirectory {
    mapped: MmapDirectory,
    root: PathBuf,
}

impl LazyDirectory {
    pub(in crate::search) fn open(root: &Path) -> tantivy::Result<Self> {
        Ok(LazyDirectory {
            mapped: MmapDirectory::open(root)?,
            root: root.to_owned(),
        })
    }
}

struct LazyFile(File);

impl Write for LazyFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TerminatingWrite for LazyFile {
    fn terminate_ref(&mut self, _: AntiCallToken) -> io::Result<()> {
        Ok(())
    }
}

impl Directory for LazyDirectory {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        self.mapped.get_file_handle(path)
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        self.mapped.delete(path)
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        self.mapped.exists(path)
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        let opened = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(self.root.join(path));
        let file = opened.map_err(|err| {
            if err.kind() == io::ErrorKind::AlreadyExists {
                return OpenWriteError::FileAlreadyExists(path.to_owned());
            }
            OpenWriteError::wrap_io_error(err, path.to_owned())
        })?;
        Ok(BufWriter::new(Box::new(LazyFile(file))))
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        self.mapped.atomic_read(path)
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        // Only the holder of the writer lock writes here, so a single draft name is enough.
        let target = self.root.join(path);
        let mut draft = target.clone().into_os_string();
        draft.push(".draft");
        std::fs::write(&draft, data)?;
        std::fs::rename(&draft, &target)
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        self.mapped.acquire_lock(lock)
    }

    fn watch(&self, callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        self.mapped.watch(callback)
    }
}
