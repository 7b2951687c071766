//! A user's change of the own password.

use std::sync::Arc;

use secrecy::{ExposeSecret, SecretString};

use super::{IdentityCore, run_hashing};
use crate::actors::audit_writer::Append;
use crate::actors::rate_limiter::{EndLogin, Network};
use crate::actors::worker::{Access, Tenant, Work};
use crate::auth::password;
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::error::DomainError;
use crate::domain::password::check_new;
use crate::domain::principal::{Credential, Principal};

/// Changes the password of the caller, who proves to know the present one: somebody who has found an open session must
/// not be able to keep the account.
#[derive(Debug)]
pub struct ChangeOwnPassword {
    pub by: Principal,
    pub current: SecretString,
    pub new: SecretString,
}

impl Work for ChangeOwnPassword {
    type Core = IdentityCore;
    type Reply = ();
    const NAME: &'static str = "change_own_password";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) -> Tenant {
        Some(self.by.workspace.id)
    }

    async fn run(self, core: Arc<IdentityCore>) -> Result<Self::Reply, DomainError> {
        core.change_own_password(self).await
    }
}

impl IdentityCore {
    /// The guesses at the present password are counted per user and network, as at a sign-in: five failures lock it for a while,
    /// and who has stolen a token can't keep its owner from ending it. All tokens issued before end, that of the request too.
    async fn change_own_password(&self, change: ChangeOwnPassword) -> Result<(), DomainError> {
        let ChangeOwnPassword { by, current, new } = change;
        let Credential::User { id, email, .. } = &by.credential else {
            return Err(DomainError::Forbidden("an API key has no password".into()));
        };
        check_new("new_password", &new, email)?;
        if new.expose_secret() == current.expose_secret() {
            return Err(DomainError::invalid(
                "new_password",
                "must differ from the current one",
            ));
        }
        let user = self.store.user(*id).await?.ok_or(DomainError::NotFound("user"))?;
        let key = format!("own password {id} {}", Network::of(by.ip));
        let place = match self.place(key).await? {
            Ok(place) => place,
            Err(locked) => {
                return Err(DomainError::RateLimited {
                    retry_after: locked.reset,
                });
            }
        };
        let present = user.password_hash.clone();
        let known = present.clone();
        let fits = run_hashing(move || Ok(password::verify(&current, known.as_deref()))).await?;
        let rate = self.limiter.call(EndLogin { place, failed: !fits }).await?;
        let (action, now) = ("auth.password_change", clock::now());
        let entry = |outcome| AuditEntry::by(&by, action, "user", outcome, now).on(*id);
        let Some(present) = present.filter(|_| fits) else {
            self.audit.call(Append(entry(Outcome::Failure))).await?;
            if !rate.allowed {
                return Err(DomainError::RateLimited {
                    retry_after: rate.reset,
                });
            }
            let rule = "is not the password of this account";
            return Err(DomainError::invalid("current_password", rule));
        };
        let hash = run_hashing(move || password::hash(&new)).await?;
        let entry = entry(Outcome::Success);
        self.store
            .change_own_password(*id, (present, hash), now, &entry)
            .await?;
        self.chain(entry).await;
        Ok(())
    }
}
