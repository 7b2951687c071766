//! Authentication: resolves a token or an API key to the caller.

use std::net::IpAddr;
use std::sync::Arc;

use secrecy::{ExposeSecret, SecretString};

use super::IdentityCore;
use super::basic::BasicCredential;
use crate::actors::worker::{Access, Tenant, Work};
use crate::auth::api_key;
use crate::clock;
use crate::domain::error::DomainError;
use crate::domain::permission::Permission;
use crate::domain::principal::{Credential, Principal, Workspace};
use crate::store::UserRecord;

pub(super) const REFUSED: DomainError = DomainError::Unauthenticated("invalid or missing credentials");

/// Credential presented by the caller.
#[derive(Debug, Clone)]
pub enum RequestCredential {
    Token(SecretString),
    ApiKey(SecretString),
    /// E-mail address and password, with each request.
    Basic(BasicCredential),
}

/// Authenticates the caller.
#[derive(Debug)]
pub struct Authenticate {
    pub presented: RequestCredential,
    pub ip: IpAddr,
}

impl Work for Authenticate {
    type Core = IdentityCore;
    type Reply = Principal;
    const NAME: &'static str = "authenticate";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Tenant {
        None
    }

    async fn run(self, core: Arc<IdentityCore>) -> Result<Self::Reply, DomainError> {
        let Authenticate { presented, ip } = self;
        let (workspace, credential) = match presented {
            RequestCredential::Token(token) => core.user_of_token(&token).await?,
            RequestCredential::ApiKey(key) => core.owner_of_key(&key).await?,
            RequestCredential::Basic(basic) => core.user_of_password(basic, ip).await?,
        };
        Ok(Principal {
            workspace,
            credential,
            ip,
        })
    }
}

impl IdentityCore {
    pub(super) async fn user_of_token(
        &self,
        token: &SecretString,
    ) -> Result<(Workspace, Credential), DomainError> {
        let claims = self.tokens.read(token.expose_secret()).ok_or(REFUSED)?;
        let found = self
            .store
            .user_in_workspace(claims.sub, claims.ws, Some(claims.id()))
            .await?;
        let (user, workspace) = found.ok_or(REFUSED)?;
        let stale = claims.horizon != user.tokens_after.timestamp_micros();
        if user.disabled || stale {
            return Err(REFUSED);
        }
        let UserRecord { id, email, role, .. } = user;
        Ok((workspace, Credential::User { id, email, role }))
    }

    async fn owner_of_key(&self, key: &SecretString) -> Result<(Workspace, Credential), DomainError> {
        let digest = api_key::digest(key);
        let found = self.store.api_key_by_hash(&digest).await?.ok_or(REFUSED)?;
        let expired = found.expires_at.is_some_and(|at| at <= clock::now());
        if !api_key::same(&digest, &found.key_hash) || found.revoked_at.is_some() || expired {
            return Err(REFUSED);
        }
        let owner = self.store.user_in_workspace(found.owner, found.ws, None).await?;
        let (owner, workspace) = owner.ok_or(REFUSED)?;
        if owner.disabled {
            return Err(REFUSED);
        }
        // A key grants no more than its owner's current role allows.
        let mut scopes = found.scopes;
        scopes.retain(|scope| {
            Permission::ALL
                .iter()
                .any(|p| scope.grants(*p) && owner.role.grants(*p))
        });
        let credential = Credential::ApiKey {
            id: found.id,
            owner: owner.id,
            owner_email: owner.email,
            scopes,
        };
        Ok((workspace, credential))
    }
}
