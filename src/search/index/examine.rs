//! Looks at the files of an index without changing them.

use std::panic::AssertUnwindSafe;
use std::path::Path;

use tantivy::Index;

use super::directory::LazyDirectory;
use super::storage::{check, last_commit};
use crate::search::SearchError;

/// Compares every file of a workspace's index with its checksum; returns the number of the write up to which the index is
/// complete.
///
/// # Errors
/// When a file is damaged or missing.
pub fn examine(dir: &Path) -> Result<u64, SearchError> {
    // Damaged files can make the index library panic.
    let examined = std::panic::catch_unwind(AssertUnwindSafe(|| {
        let index = Index::open(LazyDirectory::open(dir)?)?;
        check(&index, dir)?;
        Ok(last_commit(&index)?.map_or(0, |commit| commit.checkpoint))
    }));
    examined.unwrap_or_else(|_| Err(SearchError::Storage("it can't be read".into())))
}
