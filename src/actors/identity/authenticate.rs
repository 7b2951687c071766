//! Authentication: resolves a token or an API key to the caller.

use std::net::IpAddr;
use std::sync::Arc;

use secrecy::SecretString;

use super::IdentityCore;
use crate::actors::worker::{Access, Tenant, Work};
use crate::auth::api_key;
use crate::clock;
use crate::domain::error::DomainError;
use crate::domain::permission::Permission;
use crate::domain::principal::{Credential, Principal};
use crate::store::UserRecord;

pub(super) const REFUSED: DomainError = DomainError::Unauthenticated("invalid or missing credentials");

/// Credential presented by the caller.
#[derive(Debug, Clone)]
pub enum RequestCredential {
    Token(SecretString),
    ApiKey(SecretString),
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
        use secrecy::ExposeSecret;
        let Authenticate { presented, ip } = self;
        let (workspace, credential) = match presented {
            RequestCredential::Token(token) => {
                let claims = core.tokens.read(token.expose_secret()).ok_or(REFUSED)?;
                let found = core
                    .store
                    .user_in_workspace(claims.sub, claims.ws, Some(claims.id()))
                    .await?;
                let (user, workspace) = found.ok_or(REFUSED)?;
                let stale = claims.horizon != user.tokens_after.timestamp_micros();
                if user.disabled || stale {
                    return Err(REFUSED);
                }
                let UserRecord { id, email, role, .. } = user;
                (workspace, Credential::User { id, email, role })
            }
            RequestCredential::ApiKey(key) => {
                let digest = api_key::digest(&key);
                let found = core.store.api_key_by_hash(&digest).await?.ok_or(REFUSED)?;
                let expired = found.expires_at.is_some_and(|at| at <= clock::now());
                if !api_key::same(&digest, &found.key_hash) || found.revoked_at.is_some() || expired {
                    return Err(REFUSED);
                }
                let owner = core.store.user_in_workspace(found.owner, found.ws, None).await?;
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
                (workspace, credential)
            }
        };
        Ok(Principal {
            workspace,
            credential,
            ip,
        })
    }
}
