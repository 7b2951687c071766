//! How far a collection has been read, in the form that is stored.

use serde::{Deserialize, Serialize};

/// How far a collection has been read. The default is a collection of which nothing has been read.
///
/// It is stored by the caller, as JSON, after the page that it came with is durable. Its fields are the client's own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PullCursor {
    /// Where the next pull begins. Everything that the collection added up to this date has been delivered, and a
    /// little more: it is one step before the latest date, because others may be added at that instant.
    pub(super) added_after: Option<String>,
    /// A pull that has not reached the end.
    pub(super) unfinished: Option<ResumePoint>,
}

/// The page to come of a pull that has not reached the end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ResumePoint {
    /// The `added_after` of its pages, if they are told apart by date and this differs from where the pull began.
    pub from: Option<String>,
    /// The `limit` of its pages. It must stay the same: some servers number pages of this size.
    pub limit: Option<u32>,
    /// The server's token for the page to come, if each page has its own. Others are not stored: the pull begins again.
    pub next: Option<String>,
    /// The latest date among the objects delivered so far, as the server wrote it.
    pub newest: Option<String>,
}

impl PullCursor {
    /// The date up to which everything has been delivered: one step before the latest object. `None` before the end of
    /// the first pull, and for a server that does not tell dates.
    pub fn added_after(&self) -> Option<&str> {
        self.added_after.as_deref()
    }

    /// Whether the pull that it belongs to has more pages to read.
    pub fn is_unfinished(&self) -> bool {
        self.unfinished.is_some()
    }
}
