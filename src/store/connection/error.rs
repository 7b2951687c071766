//! Why the store can't be opened, or a statement fails.

use crate::domain::error::DomainError;

/// Reason why the store could not be opened or a statement failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("the data directory {0} is in use by another process; stop it first or choose another directory")]
    InUse(String),
    #[error(
        "the memory in this database is in use by another process ({place}); stop it first, or wait {seconds} seconds \
         after it ended unexpectedly"
    )]
    Held { place: String, seconds: u64 },
    #[error("storage {url}: {cause}")]
    Open { url: String, cause: String },
    #[error(
        "the store {store} has lost commits that were acknowledged: the last one in it has the number {found}, and \
         store.marker beside it knows of number {known}. Is a disk missing, or was an older back-up put in place? Put the \
         right store back, or start once with --accept-loss to go on with what is there"
    )]
    Behind { store: String, found: u64, known: u64 },
    #[error(
        "there is no store in {store} (its last commit would have the number 0), although this data directory had one \
         (the last commit known has the number {known}). Is a disk not mounted? Put the store back, or start once with \
         --accept-loss to begin without it"
    )]
    Gone { store: String, known: u64 },
    #[error(
        "{path}: {cause}, so nobody can tell whether the store has lost anything; start once with --accept-loss to go on \
         with what is there"
    )]
    Marker { path: String, cause: String },
    #[error(
        "{dir} belongs to the user with the id {owner}, who could not open what root writes there: run this as that user, as \
         with sudo -u '#{owner}', or give the directory to root (chown -R)"
    )]
    NotOwner { dir: String, owner: u32 },
    #[error(
        "{0}: Permission denied; it belongs to another user: give the directory to the user of the service (chown -R)"
    )]
    Unreadable(String),
    #[error("the schema is version {found}, this program knows {known}; use a newer program")]
    TooNew { found: i64, known: i64 },
    #[error(
        "an archive was restored into this store in part; run threat-memory restore again with the same archive to finish it"
    )]
    HalfRestored,
    #[error(
        "the schema is version {found}, this program makes {known}: start the service of this version once"
    )]
    TooOld { found: i64, known: i64 },
    #[error("there is no store in {0}")]
    Missing(String),
    #[error("database: {0}")]
    Database(#[from] surrealdb::Error),
    #[error(transparent)]
    Domain(#[from] DomainError),
}

impl StoreError {
    /// Converts to the domain error; `what` is all a client learns of a database failure.
    pub(in crate::store) fn into_domain(self, what: &'static str) -> DomainError {
        match self {
            StoreError::Domain(error) => error,
            StoreError::Database(error) => crate::store::failed(what)(error),
            StoreError::InUse(_)
            | StoreError::Held { .. }
            | StoreError::Open { .. }
            | StoreError::Behind { .. }
            | StoreError::Gone { .. }
            | StoreError::Marker { .. }
            | StoreError::NotOwner { .. }
            | StoreError::Unreadable(_)
            | StoreError::TooNew { .. }
            | StoreError::TooOld { .. }
            | StoreError::HalfRestored
            | StoreError::Missing(_) => DomainError::internal(what, self),
        }
    }
}
