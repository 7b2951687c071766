//! Owns sign-in, the credentials and the administration of users, API keys and workspaces.
//!
//! Promises: the caller's rights are read anew for every request, so a change acts at once; a foreign id
//! answers as an unknown one; every change is written with its audit entry in one transaction.

mod admin;
mod bootstrap;
mod sign_in;

use std::sync::Arc;

use actix::{Actor, Context, Handler, ResponseFuture};
use tokio::runtime::Handle;

pub use self::admin::{
    ApiKeyView, ChangeUser, ChangeWorkspace, CreateApiKey, CreateUser, CreateWorkspace, ListApiKeys,
    ListUsers, NewApiKey, NewWorkspace, RevokeApiKey, UserView,
};
pub use self::bootstrap::{FirstAdmin, bootstrap, demo_bundle};
pub use self::sign_in::{Authenticate, Login, Presented, SignedIn};
use super::audit_writer::{AuditHandle, Chain};
use super::handle::{ActorHandle, Job, Request};
use super::job;
use super::rate_limiter::RateLimiterHandle;
use crate::auth::token::Tokens;
use crate::config::ActorSettings;
use crate::domain::audit::AuditEntry;
use crate::domain::error::DomainError;
use crate::store::Store;

/// Way to the identities.
pub type IdentityHandle = ActorHandle<Identity>;

/// What all requests to the identities share.
pub struct IdentityCore {
    store: Arc<Store>,
    tokens: Tokens,
    audit: AuditHandle,
    limiter: RateLimiterHandle,
}

impl IdentityCore {
    /// The identities of a store.
    pub fn new(store: Arc<Store>, tokens: Tokens, audit: AuditHandle, limiter: RateLimiterHandle) -> Self {
        Self {
            store,
            tokens,
            audit,
            limiter,
        }
    }

    async fn chain(&self, entry: AuditEntry) {
        if let Err(error) = self.audit.call(Chain(entry)).await {
            // Not lost: entries without a link are linked at the next start.
            tracing::warn!(?error, "audit entry waits for its link");
        }
    }
}

/// The actor.
pub struct Identity {
    core: Arc<IdentityCore>,
    runtime: Handle,
}

impl Identity {
    /// Starts the actor.
    pub fn start(core: Arc<IdentityCore>, runtime: Handle, settings: ActorSettings) -> IdentityHandle {
        let arbiter = actix::Arbiter::current();
        ActorHandle::start(
            "identity",
            settings,
            Box::new(move || {
                let (core, runtime) = (Arc::clone(&core), runtime.clone());
                Self::start_in_arbiter(&arbiter, move |ctx| {
                    ctx.set_mailbox_capacity(settings.mailbox.max(1));
                    Self { core, runtime }
                })
            }),
        )
    }
}

impl Actor for Identity {
    type Context = Context<Self>;
}

/// Handlers whose work is one async function of the core.
macro_rules! delegate {
    ($($message:ty => $method:ident),+ $(,)?) => { $(
        impl Handler<Job<$message>> for Identity {
            type Result = ResponseFuture<Result<<$message as Request>::Reply, DomainError>>;

            fn handle(&mut self, job: Job<$message>, _: &mut Self::Context) -> Self::Result {
                let (message, guard, span) = job.open();
                let core = Arc::clone(&self.core);
                job::run(&self.runtime, guard, span, async move { core.$method(message).await })
            }
        }
    )+ };
}

delegate! {
    Authenticate => authenticate,
    Login => login,
    ListUsers => list_users,
    CreateUser => create_user,
    ChangeUser => change_user,
    ListApiKeys => list_api_keys,
    CreateApiKey => create_api_key,
    RevokeApiKey => revoke_api_key,
    ChangeWorkspace => change_workspace,
    CreateWorkspace => create_workspace,
}
