//! Owns sign-in, credentials and the administration of users, API keys and workspaces.
//!
//! The caller's rights are read again for every request, so a change takes effect at once. An id of another workspace
//! is answered like an unknown one. Every change is written in one transaction with its audit entry. Sign-ins, which
//! anyone can request, never use more than half of the actor's concurrency, and those that wait for a provider no more
//! than a quarter.

mod admin;
mod authenticate;
mod basic;
mod bootstrap;
mod collections;
mod logout;
mod oauth;
mod operator;
mod own_password;
mod recovery;
mod sign_in;

use std::sync::{Arc, LazyLock};

use tokio::sync::Semaphore;

pub use self::admin::{
    ApiKeyView, ChangeUser, ChangeWorkspace, CreateApiKey, CreateUser, ListApiKeys, ListUsers, NewApiKey,
    RevokeApiKey, TIER_OF_OPERATOR, UserView,
};
pub use self::authenticate::{Authenticate, RequestCredential};
pub use self::basic::BasicCredential;
pub use self::bootstrap::{FirstAdmin, bootstrap, demo_workspace};
pub use self::collections::{
    ChangeCollection, DefineCollection, DeleteCollection, ListCollections, ReadCollection,
};
pub use self::logout::Logout;
pub use self::oauth::{BeginOauth, FinishOauth, OauthRedirect, OauthReply, OauthSignIn};
pub use self::operator::{
    CreateWorkspace, ListWorkspaces, NewWorkspace, OverseeWorkspace, ReadWorkspace, WorkspaceView,
};
pub use self::own_password::ChangeOwnPassword;
pub use self::recovery::{Account, AccountDone, AccountTask, recover_account};
pub use self::sign_in::{Login, SignInGrant, SignInOutcome};
use super::audit_writer::{AuditHandle, Chain};
use super::job;
use super::rate_limiter::RateLimiterHandle;
use super::worker::{ActorCore, Tenant, WorkerHandle};
use crate::auth::token::Tokens;
use crate::capacity::cores;
use crate::domain::audit::AuditEntry;
use crate::domain::error::DomainError;
use crate::store::Store;

/// Handle to the identities.
pub type IdentityHandle = WorkerHandle<IdentityCore>;

/// State shared by all requests to the identities.
pub struct IdentityCore {
    store: Arc<Store>,
    tokens: Tokens,
    audit: AuditHandle,
    limiter: RateLimiterHandle,
    /// Slots for concurrent sign-ins.
    sign_ins: Semaphore,
    oauth: OauthSignIn,
    basic: basic::BasicSignIns,
}

impl IdentityCore {
    /// Creates the core over a store; `gate` is the actor's number of concurrent reads.
    ///
    /// # Errors
    /// `Internal` if the machine gives no random bytes.
    pub fn new(
        store: Arc<Store>,
        tokens: Tokens,
        audit: AuditHandle,
        limiter: RateLimiterHandle,
        oauth: OauthSignIn,
        gate: usize,
    ) -> Result<Self, DomainError> {
        Ok(Self {
            store,
            tokens,
            audit,
            limiter,
            sign_ins: Semaphore::new((gate / 2).max(1)),
            oauth,
            basic: basic::BasicSignIns::new(gate / 4)?,
        })
    }

    async fn chain(&self, entry: AuditEntry) {
        if let Err(error) = self.audit.call(Chain(entry)).await {
            // Not lost: unlinked entries are linked at the next start.
            tracing::warn!(?error, "audit entry waits for its link");
        }
    }
}

/// Runs password hashing off the async threads, at most one hash per core at a time: each takes 19 MiB.
async fn run_hashing<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, DomainError> + Send + 'static,
) -> Result<T, DomainError> {
    static TURNS: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(cores()));
    let turn = TURNS.acquire().await;
    let _turn = turn.map_err(|error| DomainError::internal("the request failed unexpectedly", error))?;
    job::blocking(work).await
}

impl ActorCore for IdentityCore {
    type Tenant = Tenant;

    const NAME: &'static str = "identity";
}
