//! Who is asking.

use std::net::IpAddr;
use std::time::Duration;

use secrecy::SecretString;
use uuid::Uuid;

use super::{IdentityCore, hashing};
use crate::actors::audit_writer::Append;
use crate::actors::handle::{Access, Request};
use crate::actors::rate_limiter::{BeginLogin, ClearLogin, LoginGate, TakeRequest};
use crate::auth::{api_key, password};
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::error::DomainError;
use crate::domain::permission::Permission;
use crate::domain::principal::{Credential, Principal, Workspace};
use crate::store::UserRecord;

const REFUSED: DomainError = DomainError::Unauthenticated("invalid or missing credentials");
const WRONG_LOGIN: DomainError = DomainError::Unauthenticated("wrong e-mail address or password");
/// Sign-in attempts from one address, whatever the account.
const TRIES_PER_ADDRESS: u32 = 300;
const TRIES_WINDOW: Duration = Duration::from_secs(15 * 60);
/// Longest e-mail address (RFC 5321 section 4.5.3.1).
const MAX_EMAIL: usize = 254;

/// What the caller shows.
#[derive(Debug, Clone)]
pub enum Presented {
    Token(SecretString),
    ApiKey(SecretString),
}

/// Finds out who the caller is.
#[derive(Debug)]
pub struct Authenticate {
    pub presented: Presented,
    pub ip: IpAddr,
}

impl Request for Authenticate {
    type Reply = Principal;
    const NAME: &'static str = "authenticate";
    const ACCESS: Access = Access::Read;
}

/// Exchanges e-mail address and password for a token.
#[derive(Debug)]
pub struct Login {
    pub email: String,
    pub password: SecretString,
    pub ip: IpAddr,
}

/// A successful sign-in.
#[derive(Debug)]
pub struct SignedIn {
    pub token: String,
    pub user: UserRecord,
    pub workspace: Workspace,
}

impl Request for Login {
    type Reply = SignedIn;
    const NAME: &'static str = "login";
    const ACCESS: Access = Access::Read;
}

impl IdentityCore {
    pub(super) async fn authenticate(&self, message: Authenticate) -> Result<Principal, DomainError> {
        use secrecy::ExposeSecret;
        let Authenticate { presented, ip } = message;
        let (workspace, credential) = match presented {
            Presented::Token(token) => {
                let claims = self.tokens.read(token.expose_secret()).ok_or(REFUSED)?;
                let found = self.store.user_in_workspace(claims.sub, claims.ws).await?;
                let (user, workspace) = found.ok_or(REFUSED)?;
                let stale = claims.horizon != user.tokens_after.timestamp_micros();
                if user.disabled || stale {
                    return Err(REFUSED);
                }
                let UserRecord { id, email, role, .. } = user;
                (workspace, Credential::User { id, email, role })
            }
            Presented::ApiKey(key) => {
                let digest = api_key::digest(&key);
                let found = self.store.api_key_by_hash(&digest).await?.ok_or(REFUSED)?;
                let expired = found.expires_at.is_some_and(|at| at <= clock::now());
                if !api_key::same(&digest, &found.key_hash) || found.revoked_at.is_some() || expired {
                    return Err(REFUSED);
                }
                let owner = self.store.user_in_workspace(found.owner, found.ws).await?;
                let (owner, workspace) = owner.ok_or(REFUSED)?;
                if owner.disabled {
                    return Err(REFUSED);
                }
                // A key can do no more than its owner may do now.
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

    pub(super) async fn login(&self, message: Login) -> Result<SignedIn, DomainError> {
        let Login { email, password, ip } = message;
        // Before the attempt counts: who is turned away here has not guessed.
        let place = self.sign_ins.try_acquire();
        let _place = place.map_err(|_| DomainError::Busy { actor: "identity" })?;
        let email = email.trim().to_lowercase();
        if email.len() > MAX_EMAIL {
            return Err(WRONG_LOGIN);
        }
        // One address may not try account after account either.
        let bucket = TakeRequest {
            bucket: format!("login {ip}"),
            limit: TRIES_PER_ADDRESS,
            window: TRIES_WINDOW,
        };
        let tries = self.limiter.call(bucket).await?;
        if !tries.allowed {
            return Err(DomainError::RateLimited {
                retry_after: tries.reset,
            });
        }
        let key = format!("{ip} {email}");
        let gate = self.limiter.call(BeginLogin { key: key.clone() }).await?;
        let user = self.store.user_by_email(&email).await?;
        // Asked for whether the account is known or not: both must take as long.
        let operator = self.store.operator_workspace().await?;
        let tenant = user.as_ref().map(|user| user.ws).or(operator);
        let user = user.filter(|user| !user.disabled);
        if let LoginGate::Locked { retry_after } = gate {
            self.record_failure(tenant, &email, ip).await?;
            return Err(DomainError::RateLimited { retry_after });
        }
        let stored = user.as_ref().and_then(|user| user.password_hash.clone());
        let fits = hashing(move || Ok(password::verify(&password, stored.as_deref()))).await?;
        match user {
            Some(user) if fits => {
                self.limiter.call(ClearLogin { key }).await?;
                self.signed_in(user, ip).await
            }
            _ => {
                self.record_failure(tenant, &email, ip).await?;
                match gate {
                    LoginGate::LastTry { retry_after } => Err(DomainError::RateLimited { retry_after }),
                    LoginGate::Open | LoginGate::Locked { .. } => Err(WRONG_LOGIN),
                }
            }
        }
    }

    async fn signed_in(&self, user: UserRecord, ip: IpAddr) -> Result<SignedIn, DomainError> {
        let workspace = self.store.workspace(user.ws).await?.ok_or(WRONG_LOGIN)?;
        let now = clock::now();
        let token = self.tokens.issue(user.id, user.ws, user.tokens_after, now)?;
        let mut entry = AuditEntry::anonymous(user.ws, ip, "auth.login", "user", Outcome::Success, now);
        entry.user_id = Some(user.id);
        entry.user_email = Some(user.email.clone());
        self.audit.call(Append(entry.on(user.id))).await?;
        Ok(SignedIn {
            token,
            user,
            workspace,
        })
    }

    /// Failures of unknown accounts go to the operator's log: they belong to no other workspace.
    async fn record_failure(&self, tenant: Option<Uuid>, email: &str, ip: IpAddr) -> Result<(), DomainError> {
        let Some(tenant) = tenant else { return Ok(()) };
        let mut entry =
            AuditEntry::anonymous(tenant, ip, "auth.login", "user", Outcome::Failure, clock::now());
        entry.user_email = Some(email.to_owned());
        self.audit.call(Append(entry)).await
    }
}
