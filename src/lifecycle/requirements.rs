//! What a service needs of the machine, checked before anything is opened: a clock, file descriptors, private files.

use std::fs::read_dir;
use std::path::Path;

use rlimit::Resource;

use super::StartError;
use crate::{clock, files};

/// File descriptors of a new service without HTTP workers: the database, two open search indexes, listeners and logs.
const OWN_FILES: u64 = 192;
/// File descriptors of an HTTP worker: its poller, its wakers and its share of connections.
const WORKER_FILES: u64 = 8;
/// Folder of the database in a data directory. All its files stay open.
const STORE: &str = "store";

/// Checks the limit of open files before anything is known of the service that is to start: one without a store and with a
/// single HTTP worker needs so many.
///
/// # Errors
/// The limit, the number that is needed, and what to do.
pub fn check_open_files() -> Result<(), StartError> {
    check_limit(needed_files(1, 0))
}

/// Checks the clock and the limit of open files, and takes the access of other users to the data directory away.
///
/// # Errors
/// The requirement that is not met, and what to do.
pub(crate) fn check(workers: usize, data_dir: Option<&Path>) -> Result<(), StartError> {
    clock::check().map_err(StartError::Setup)?;
    let store = data_dir.map_or(0, |dir| count_files(&dir.join(STORE)));
    check_limit(needed_files(workers, store))?;
    match data_dir {
        Some(dir) => files::close_to_others(dir)
            .map_err(|(path, error)| StartError::Io(path.display().to_string(), error)),
        None => Ok(()),
    }
}

fn check_limit(needed: u64) -> Result<(), StartError> {
    // Where the system doesn't tell the limit, the service may be lucky.
    let Ok((limit, _)) = rlimit::getrlimit(Resource::NOFILE) else {
        return Ok(());
    };
    judge_limit(limit, needed).map_err(StartError::Setup)
}

fn needed_files(workers: usize, store: u64) -> u64 {
    OWN_FILES + WORKER_FILES * workers as u64 + store
}

fn judge_limit(limit: u64, needed: u64) -> Result<(), String> {
    if limit >= needed {
        return Ok(());
    }
    Err(format!(
        "too few file descriptors: the limit of open files is {limit}, and at least {needed} are needed, plus one for each \
         connection; raise it with `ulimit -n {needed}`, LimitNOFILE= of systemd or --ulimit nofile= of a container"
    ))
}

/// Number of files in a directory and its folders, as far as they can be read.
fn count_files(dir: &Path) -> u64 {
    let Ok(entries) = read_dir(dir) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.file_type() {
            Ok(kind) if kind.is_dir() => count_files(&entry.path()),
            Ok(_) | Err(_) => 1,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_descriptors_are_refused_with_the_number_that_is_needed() {
        let needed = needed_files(4, 30);
        assert!((200..1024).contains(&needed), "{needed}");
        assert_eq!(judge_limit(needed, needed), Ok(()));
        for limit in [0, 64, needed - 1] {
            let text = judge_limit(limit, needed).unwrap_err();
            assert!(
                text.contains(&format!("is {limit}")) && text.contains(&needed.to_string()),
                "{text}"
            );
        }
    }

    #[test]
    fn a_larger_store_needs_more_descriptors() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(count_files(&dir.path().join(STORE)), 0);
        for folder in ["store/sstables", "store/vlog"] {
            std::fs::create_dir_all(dir.path().join(folder)).unwrap();
            for file in ["1", "2", "3"] {
                std::fs::write(dir.path().join(folder).join(file), "").unwrap();
            }
        }
        assert_eq!(count_files(&dir.path().join(STORE)), 6);
    }
}
