//! Owns sign-in, the credentials and the administration of users, API keys and workspaces.
//!
//! Promises: the caller's rights are read anew for every request, so a change acts at once; a foreign id
//! answers as an unknown one; every change is written with its audit entry in one transaction; sign-ins, which
//! anybody can ask for, never take up more than half of what the actor does at a time.

mod admin;
mod authenticate;
mod bootstrap;
mod sign_in;

use std::num::NonZero;
use std::sync::{Arc, LazyLock};

use tokio::sync::Semaphore;

pub use self::admin::{
    ApiKeyView, ChangeUser, ChangeWorkspace, CreateApiKey, CreateUser, CreateWorkspace, ListApiKeys,
    ListUsers, NewApiKey, NewWorkspace, RevokeApiKey, UserView,
};
pub use self::authenticate::{Authenticate, Presented};
pub use self::bootstrap::{FirstAdmin, bootstrap, demo_bundle};
pub use self::sign_in::{Attempted, Login, SignedIn};
use super::audit_writer::{AuditHandle, Chain};
use super::job;
use super::rate_limiter::RateLimiterHandle;
use super::worker::{ActorCore, WorkerHandle};
use crate::auth::token::Tokens;
use crate::domain::audit::AuditEntry;
use crate::domain::error::DomainError;
use crate::store::Store;

/// Way to the identities.
pub type IdentityHandle = WorkerHandle<IdentityCore>;

/// What all requests to the identities share.
pub struct IdentityCore {
    store: Arc<Store>,
    tokens: Tokens,
    audit: AuditHandle,
    limiter: RateLimiterHandle,
    /// Places for sign-ins under way.
    sign_ins: Semaphore,
}

impl IdentityCore {
    /// The identities of a store; `gate` is how many reads the actor does at a time.
    pub fn new(
        store: Arc<Store>,
        tokens: Tokens,
        audit: AuditHandle,
        limiter: RateLimiterHandle,
        gate: usize,
    ) -> Self {
        Self {
            store,
            tokens,
            audit,
            limiter,
            sign_ins: Semaphore::new((gate / 2).max(1)),
        }
    }

    async fn chain(&self, entry: AuditEntry) {
        if let Err(error) = self.audit.call(Chain(entry)).await {
            // Not lost: entries without a link are linked at the next start.
            tracing::warn!(?error, "audit entry waits for its link");
        }
    }
}

/// Runs password work beside the async threads, as much at a time as there are cores: each takes 19 MiB.
async fn hashing<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, DomainError> + Send + 'static,
) -> Result<T, DomainError> {
    static TURNS: LazyLock<Semaphore> =
        LazyLock::new(|| Semaphore::new(std::thread::available_parallelism().map_or(2, NonZero::get)));
    let turn = TURNS.acquire().await;
    let _turn = turn.map_err(|error| DomainError::internal("the request failed unexpectedly", error))?;
    job::blocking(work).await
}

impl ActorCore for IdentityCore {
    const NAME: &'static str = "identity";
}
