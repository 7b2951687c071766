//! The log file of the day.
//!
//! Rule: lines go to the file that has the configured name. Tools that rotate logs rename the file or put another one in
//! its place; whoever writes on into the old one writes where nobody looks.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use chrono::NaiveDate;
use tracing_appender::rolling::{RollingFileAppender, Rotation};

use crate::clock;

const PREFIX: &str = "threat-memory";
const SUFFIX: &str = "log";

/// Appends to the file of the day, and opens it again when another one, or none, has its name.
#[derive(Debug)]
pub(super) struct LogFile {
    dir: PathBuf,
    keep_files: usize,
    appender: RollingFileAppender,
    /// The day and inode of the file that was last written to.
    open: Option<(NaiveDate, u64)>,
}

impl LogFile {
    /// Opens the file of the day in a directory.
    ///
    /// # Errors
    /// When it can't be created.
    pub fn new(dir: PathBuf, keep_files: usize) -> Result<Self, tracing_appender::rolling::InitError> {
        Ok(Self {
            appender: appender(&dir, keep_files)?,
            dir,
            keep_files,
            open: None,
        })
    }

    /// Inode of the file that has the name of a day.
    fn inode(&self, day: NaiveDate) -> Option<u64> {
        let path = self.dir.join(format!("{PREFIX}.{day}.{SUFFIX}"));
        fs::metadata(path).ok().map(|metadata| metadata.ino())
    }
}

fn appender(
    dir: &PathBuf,
    keep_files: usize,
) -> Result<RollingFileAppender, tracing_appender::rolling::InitError> {
    RollingFileAppender::builder()
        .rotation(Rotation::DAILY)
        .filename_prefix(PREFIX)
        .filename_suffix(SUFFIX)
        .max_log_files(keep_files)
        .build(dir)
}

impl Write for LogFile {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let today = clock::now().date_naive();
        let named = self.inode(today);
        // A new day's file is opened by the appender itself.
        let is_replaced = self
            .open
            .is_some_and(|(day, inode)| day == today && named != Some(inode));
        if is_replaced {
            self.appender = appender(&self.dir, self.keep_files).map_err(io::Error::other)?;
        }
        let written = self.appender.write(line)?;
        if is_replaced || self.open.is_none_or(|(day, _)| day != today) {
            self.open = self.inode(today).map(|inode| (today, inode));
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.appender.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_go_to_the_configured_name_whatever_becomes_of_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = LogFile::new(dir.path().to_owned(), 5).unwrap();
        let current = || {
            let entries = fs::read_dir(dir.path())
                .unwrap()
                .map(|entry| entry.unwrap().path());
            let mut logs = entries.filter(|path| path.extension().is_some_and(|end| end == SUFFIX));
            logs.next().unwrap()
        };
        log.write_all(b"one\n").unwrap();
        let path = current();
        let rotated = dir.path().join("rotated.1");
        fs::rename(&path, &rotated).unwrap();
        log.write_all(b"two\n").unwrap();
        log.write_all(b"three\n").unwrap();
        assert_eq!(fs::read_to_string(&rotated).unwrap(), "one\n");
        assert_eq!(fs::read_to_string(current()).unwrap(), "two\nthree\n");
        // As a tool does that creates the new file itself.
        fs::rename(&path, dir.path().join("rotated.2")).unwrap();
        fs::write(&path, "").unwrap();
        log.write_all(b"four\n").unwrap();
        assert_eq!(fs::read_to_string(current()).unwrap(), "four\n");
        fs::remove_file(&path).unwrap();
        log.write_all(b"five\n").unwrap();
        assert_eq!(fs::read_to_string(current()).unwrap(), "five\n");
    }
}
