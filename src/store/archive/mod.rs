//! A store into an archive and out of one: rows as JSON, whatever the tables are.

mod back_up;
mod restore;
mod row_json;
mod snapshot;
mod target;

pub use back_up::{BackUp, BackUpError};
pub(in crate::store) use restore::refuse_half_restored;
pub use restore::{RestoreError, RestoreSummary, restore};
pub use snapshot::Snapshot;
pub(in crate::store) use target::Purpose;
pub use target::{StoreGuard, StoreTarget};
