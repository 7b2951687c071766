//! Sign-out: revokes the token that the request presents, until it expires by itself.

use std::sync::Arc;

use chrono::DateTime;
use secrecy::ExposeSecret;

use super::IdentityCore;
use super::authenticate::{REFUSED, RequestCredential};
use crate::actors::worker::{Access, Tenant, Work};
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::error::DomainError;
use crate::domain::principal::Principal;

/// Revokes a token; what else the user has signed in to stays.
#[derive(Debug)]
pub struct Logout {
    /// The caller, authenticated by this credential.
    pub by: Principal,
    pub presented: RequestCredential,
}

impl Work for Logout {
    type Core = IdentityCore;
    type Reply = ();
    const NAME: &'static str = "logout";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) -> Tenant {
        Some(self.by.workspace.id)
    }

    async fn run(self, core: Arc<IdentityCore>) -> Result<Self::Reply, DomainError> {
        let RequestCredential::Token(token) = self.presented else {
            return Err(DomainError::Forbidden(
                "only a user's token can be signed out: an API key is revoked by an administrator".into(),
            ));
        };
        let claims = core.tokens.read(token.expose_secret()).ok_or(REFUSED)?;
        let expires_at = DateTime::from_timestamp(claims.exp, 0).ok_or(REFUSED)?;
        let token = claims.id();
        let entry =
            AuditEntry::by(&self.by, "auth.logout", "token", Outcome::Success, clock::now()).on(token);
        core.store.revoke_token(token, expires_at, &entry).await?;
        core.chain(entry).await;
        Ok(())
    }
}
