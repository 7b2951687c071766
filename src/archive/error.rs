//! Why an archive can't be written, read or used.

use std::io;

use uuid::Uuid;

/// Why an archive can't be written, read or used, in words for an operator.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error("{0}: {1}")]
    Io(String, io::Error),
    #[error("{0} is no archive of threat-memory")]
    Foreign(String),
    #[error("{file} is an archive of format {found}, this program knows {known}; use a newer program")]
    TooNew { file: String, found: u32, known: u32 },
    #[error("{0} ends before its manifest: it was cut off, or its back-up was not finished")]
    Unfinished(String),
    #[error("{file} is damaged: {what}")]
    Damaged { file: String, what: String },
    #[error("{file} goes on from the archive {needed}, which must be named before it")]
    Needs { file: String, needed: Uuid },
    #[error("{0} was not asked for by the archive that is named last")]
    NotNeeded(String),
    #[error("the secrets in the archive can't be read: the passphrase is another one")]
    Passphrase,
    #[error("the secrets can't be encrypted or decrypted")]
    Cipher,
}

impl ArchiveError {
    pub(super) fn damaged(file: &str, what: impl Into<String>) -> Self {
        Self::Damaged {
            file: file.to_owned(),
            what: what.into(),
        }
    }
}
