//! The error type of the core. Each API maps [`ErrorKind`] to a status in one exhaustive match.

use std::time::Duration;

use uuid::Uuid;

/// What went wrong, in words for the client. Code decides by [`DomainError::kind`].
#[derive(Debug, Clone, thiserror::Error)]
pub enum DomainError {
    /// A value in the request breaks a rule; `field` is its dotted path.
    #[error("{field}: {rule}")]
    Invalid { field: String, rule: String },
    #[error("{0}")]
    Unauthenticated(&'static str),
    #[error("{0}")]
    Forbidden(String),
    #[error("{0} not found")]
    NotFound(&'static str),
    #[error("{0}")]
    Conflict(String),
    /// The thing to be changed is not the one that the caller has read (RFC 9110 section 13.1.1).
    #[error("If-Match: somebody else has changed it; read it again")]
    Outdated,
    #[error("body exceeds the limit of {limit} bytes")]
    TooLarge { limit: usize },
    /// A request is written in one transaction, and this one is too large for the store.
    #[error(
        "{} than the {limit_mib} MiB that one transaction may hold (storage.transaction_mib): split the bundle; what has an id \
         can be sent again without harm", too_much(*needed_mib)
    )]
    TransactionTooLarge {
        /// The size needed, if known.
        needed_mib: Option<u64>,
        limit_mib: u64,
    },
    #[error("the body was not sent in time")]
    TooSlow,
    /// The bundle built for export breaks a STIX rule, so nothing is exported.
    #[error("STIX bundle failed validation")]
    InvalidBundle { details: String },
    /// The session found nothing that may leave now.
    #[error("the session has no results to export, and a STIX bundle needs at least one object")]
    NothingToExport,
    /// Every object of the session is withheld from export until its markings are defined.
    #[error(
        "all {count} objects of this session are held back, because a marking of theirs is not defined: send its \
         marking-definition and export again"
    )]
    HeldBack { count: u64 },
    #[error("rate limit exceeded")]
    RateLimited { retry_after: Duration },
    /// The actor has no free permit, or is being restarted.
    #[error("{actor} is busy; retry shortly")]
    Busy { actor: &'static str },
    /// A write was planned before another process wrote to the workspace; it has to be planned again.
    #[error("another process is writing; retry shortly")]
    Overtaken,
    #[error("{actor} did not answer in time")]
    Timeout { actor: &'static str },
    /// A disk write failed. Everything acknowledged before is safe and readable.
    #[error(
        "the storage can't be written (is the disk full?); writes are refused until the service is restarted"
    )]
    StorageFailed,
    /// The disk has less room than the operator wants kept.
    #[error(
        "the disk has {free_mib} MiB left, less than storage.min_free_mib ({least_mib}): nothing is written until there is \
         more; reading goes on"
    )]
    DiskLow { free_mib: u64, least_mib: u64 },
    /// The same, and there is no room left to remember that something was read.
    #[error(
        "the storage can't be written (is the disk full?), and what was read can't be recorded in the audit log any \
         more: free space on the disk and restart the service"
    )]
    AuditFull,
    /// What was read from the disk is not what was written to it; `place` names the file and the offset.
    #[error("a part of the store is damaged, so nothing of it is answered ({place}); restore a back-up")]
    StorageDamaged { place: String },
    /// A threat feed could not be pulled; `batch` keeps what was staged before.
    #[error("the pull failed: {what}")]
    PullFailed {
        failure: PullFailure,
        what: String,
        batch: Option<Uuid>,
    },
    /// A sign-in provider failed, or took too long; `what` holds nothing that it sent.
    #[error("the sign-in provider {what}")]
    ProviderFailed { what: String, slow: bool },
    /// The external database did not answer.
    #[error(
        "the database can't be reached; what was sent may or may not have taken effect, and can be sent again"
    )]
    StorageUnreachable,
    /// The client sees `what`; `cause` is only logged.
    #[error("{what}")]
    Internal { what: &'static str, cause: String },
}

/// Who has to act on a failed pull.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PullFailure {
    /// The operator: the address is against the rules for outgoing requests.
    Refused,
    /// The far side, which failed or does not speak TAXII 2.1.
    FarSide,
    /// Nobody yet: the far side took too long.
    Slow,
}

/// The closed set of failure kinds; every API has a status for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    Invalid,
    Unauthenticated,
    Forbidden,
    NotFound,
    Conflict,
    Outdated,
    TooLarge,
    TooSlow,
    InvalidBundle,
    RateLimited,
    Unavailable,
    /// There is no room to store what was sent.
    NoRoom,
    /// A server that this one depends on failed.
    FarSide,
    /// A server that this one depends on took too long.
    FarSideSlow,
    Internal,
}

impl DomainError {
    /// A 400-class error that names the field and the rule it breaks.
    pub fn invalid(field: impl Into<String>, rule: impl Into<String>) -> Self {
        Self::Invalid {
            field: field.into(),
            rule: rule.into(),
        }
    }

    /// An internal failure; `cause` is logged and never sent to the client.
    pub fn internal(what: &'static str, cause: impl std::fmt::Display) -> Self {
        Self::Internal {
            what,
            cause: cause.to_string(),
        }
    }

    /// The kind that decides the status.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Invalid { .. } => ErrorKind::Invalid,
            Self::Unauthenticated(_) => ErrorKind::Unauthenticated,
            Self::Forbidden(_) => ErrorKind::Forbidden,
            Self::NotFound(_) => ErrorKind::NotFound,
            Self::Conflict(_) => ErrorKind::Conflict,
            Self::Outdated => ErrorKind::Outdated,
            Self::TooLarge { .. } | Self::TransactionTooLarge { .. } => ErrorKind::TooLarge,
            Self::TooSlow => ErrorKind::TooSlow,
            Self::InvalidBundle { .. } | Self::HeldBack { .. } | Self::NothingToExport => {
                ErrorKind::InvalidBundle
            }
            Self::RateLimited { .. } => ErrorKind::RateLimited,
            Self::Busy { .. }
            | Self::Overtaken
            | Self::Timeout { .. }
            | Self::StorageFailed
            | Self::AuditFull
            | Self::StorageUnreachable => ErrorKind::Unavailable,
            Self::DiskLow { .. } => ErrorKind::NoRoom,
            Self::PullFailed { failure, .. } => match failure {
                PullFailure::Refused => ErrorKind::Invalid,
                PullFailure::FarSide => ErrorKind::FarSide,
                PullFailure::Slow => ErrorKind::FarSideSlow,
            },
            Self::ProviderFailed { slow: true, .. } => ErrorKind::FarSideSlow,
            Self::ProviderFailed { slow: false, .. } => ErrorKind::FarSide,
            Self::StorageDamaged { .. } | Self::Internal { .. } => ErrorKind::Internal,
        }
    }
}

fn too_much(needed_mib: Option<u64>) -> String {
    needed_mib.map_or_else(
        || "the request holds more".into(),
        |needed| format!("the request takes about {needed} MiB, more"),
    )
}
