//! What this front needs of the service that it stands in front of.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;

use crate::domain::audit::Outcome;
use crate::domain::error::DomainError;
use crate::domain::permission::Permission;

/// Methods of the requests that tools send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    Post,
    Patch,
}

impl Verb {
    /// Name of the method in a description of the API.
    pub(super) const fn key(self) -> &'static str {
        match self {
            Verb::Get => "get",
            Verb::Post => "post",
            Verb::Patch => "patch",
        }
    }
}

/// A request of the HTTP API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiRequest {
    pub verb: Verb,
    /// Path and query string.
    pub path: String,
    /// JSON, if the request has a body.
    pub body: Option<Vec<u8>>,
}

/// Its answer.
#[derive(Debug, Clone)]
pub(crate) struct ApiAnswer {
    pub status: u16,
    /// Seconds after which a retry may succeed.
    pub retry_after: Option<u64>,
    pub body: Bytes,
}

/// The HTTP API for one caller.
pub(crate) trait Api: Send + Sync {
    /// Sends a request with the caller's credential.
    fn send(&self, request: ApiRequest) -> BoxFuture<'static, ApiAnswer>;
}

/// A call that is over.
#[derive(Debug, Clone)]
pub(crate) struct CallRecord {
    /// What was called: `mcp.search`.
    pub action: String,
    /// How the client calls itself.
    pub client: Option<String>,
    pub outcome: Outcome,
}

/// The audit log for one caller.
pub(crate) trait CallLog: Send + Sync {
    /// Writes an entry.
    ///
    /// # Errors
    /// When the log takes none; the call is then refused.
    fn record(&self, call: CallRecord) -> BoxFuture<'static, Result<(), DomainError>>;
}

/// Who sent a message.
#[derive(Clone)]
pub(crate) struct Caller {
    pub api: Arc<dyn Api>,
    pub log: Arc<dyn CallLog>,
    /// What the credential allows.
    pub permissions: Vec<Permission>,
    /// The header `User-Agent`, for clients that don't introduce themselves.
    pub user_agent: Option<String>,
}
