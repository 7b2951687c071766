//! Removes from the files of an open store what was deleted or overwritten. Otherwise it stays there until compaction comes to
//! it, which may be never.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use surrealkv_1::{CompactRangeOptions, Result, Tree};

use crate::commits::canonical;

/// The open stores, by their directories.
static OPEN: Mutex<Vec<(PathBuf, Weak<Tree>)>> = Mutex::new(Vec::new());

pub(crate) fn remember(store: &Path, tree: &Arc<Tree>) {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    open.retain(|(_, tree)| tree.strong_count() > 0);
    open.push((canonical(store), Arc::downgrade(tree)));
}

/// Rewrites the files of the store that is open in this directory without what was deleted or overwritten before; false if
/// none is. Blocks until it is done, in time linear in the size of the store. Values in the value log stay there until all
/// of their file are gone.
///
/// # Errors
/// When a file can't be written; what was rewritten until then stays so.
pub fn purge(store: &Path) -> Result<bool> {
    let store = canonical(store);
    let tree = {
        let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        let found = open.iter().rev().find(|(path, _)| *path == store);
        found.and_then(|(_, tree)| tree.upgrade())
    };
    let Some(tree) = tree else {
        return Ok(false);
    };
    let options = CompactRangeOptions::default();
    tree.compact_range(None, None, &options)?;
    Ok(true)
}
