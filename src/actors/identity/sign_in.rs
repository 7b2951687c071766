//! Sign-in: exchanges e-mail address and password for a token.
//!
//! An address may have an account in several workspaces. A caller whose password fits none of them can't tell how
//! many there are: the same number of hashes is computed for every address. Failures are counted per account, so a
//! success in one workspace does not allow more guesses at another.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use futures_util::future::try_join_all;
use secrecy::SecretString;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{IdentityCore, run_hashing};
use crate::actors::audit_writer::Append;
use crate::actors::rate_limiter::{
    BeginLogin, EndLogin, GUESSES, LoginGate, LoginPlace, Network, RateKey, RateState, TakeRequest,
};
use crate::actors::worker::{Access, Tenant, Work};
use crate::auth::password;
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::email::MAX_EMAIL;
use crate::domain::error::DomainError;
use crate::domain::principal::Workspace;
use crate::store::UserRecord;

const WRONG_LOGIN: DomainError = DomainError::Unauthenticated("wrong e-mail address or password");
/// Number of accounts of one e-mail address whose password is tried, and of hashes that every sign-in computes. A
/// user with more accounts must name the workspace.
pub(super) const MAX_ACCOUNTS: usize = 4;

/// Exchanges e-mail address and password for a token.
#[derive(Debug)]
pub struct Login {
    pub email: String,
    pub password: SecretString,
    /// Name or id; needed only when address and password fit several workspaces.
    pub workspace: Option<String>,
    pub ip: IpAddr,
}

/// Outcome of a sign-in attempt.
#[derive(Debug)]
pub struct SignInOutcome {
    /// Failures left, or the limit that refused the attempt.
    pub rate: RateState,
    pub outcome: Result<SignInGrant, DomainError>,
}

/// A successful sign-in.
#[derive(Debug)]
pub struct SignInGrant {
    pub token: String,
    pub user: UserRecord,
    pub workspace: Workspace,
}

impl Work for Login {
    type Core = IdentityCore;
    type Reply = SignInOutcome;
    const NAME: &'static str = "login";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Tenant {
        None
    }

    async fn run(self, core: Arc<IdentityCore>) -> Result<Self::Reply, DomainError> {
        core.sign_in(self).await
    }
}

/// Who is signing in, and from where.
struct Attempt {
    email: String,
    ip: IpAddr,
    /// The requested workspace, if named.
    workspace: Option<String>,
    /// Candidate accounts, sorted by id.
    accounts: Vec<UserRecord>,
}

impl Attempt {
    /// Key of the failure count shown to the caller; it reveals nothing about accounts. The address is hashed because
    /// it may be long.
    fn key(&self) -> String {
        format!(
            "{} {}",
            Network::of(self.ip),
            hex::encode(Sha256::digest(&self.email))
        )
    }

    /// Key of the failure count of one account, or of a missing one: both cost the same. Attempts that name the
    /// workspace are counted separately, so that sign-ins elsewhere can't lock the user out.
    fn account_key(&self, at: usize) -> String {
        let account = self
            .accounts
            .get(at)
            .map_or_else(|| format!("{} {at}", self.key()), |user| user.id.to_string());
        format!("{} {account} {}", Network::of(self.ip), self.workspace.is_some())
    }

    /// The audit entry of a failure, in a tenant's log.
    fn failure(&self) -> impl Fn(Uuid) -> AuditEntry {
        let (ip, email, now) = (self.ip, audited_address(&self.email), clock::now());
        move |tenant| {
            AuditEntry::anonymous(tenant, ip, "auth.login", "user", Outcome::Failure, now).of_address(&email)
        }
    }
}

/// An address as recorded in the audit log, truncated if necessary.
fn audited_address(email: &str) -> String {
    if email.len() <= MAX_EMAIL {
        return email.to_owned();
    }
    let start = email.char_indices().take_while(|(at, _)| *at < MAX_EMAIL);
    start.map(|(_, c)| c).chain(['\u{2026}']).collect()
}

impl IdentityCore {
    /// Signs in with e-mail address and password.
    pub(super) async fn sign_in(&self, login: Login) -> Result<SignInOutcome, DomainError> {
        // Before the attempt is counted: a caller refused here has not guessed.
        let place = self.sign_ins.try_acquire();
        let _place = place.map_err(|_| DomainError::Busy { actor: "identity" })?;
        // One IP address may not try account after account either.
        let tries = self.take_try(login.ip).await?;
        if !tries.allowed {
            return Ok(rate_limited(tries));
        }
        let attempt = self.attempt(login.email, login.workspace, login.ip).await?;
        match self.place(attempt.key()).await? {
            Ok(place) => self.try_password(&attempt, login.password, place).await,
            Err(locked) => {
                self.record_failure(&attempt.accounts, &attempt.failure()).await?;
                Ok(rate_limited(locked))
            }
        }
    }

    /// The attempt with the accounts that it may mean.
    async fn attempt(
        &self,
        email: String,
        workspace: Option<String>,
        ip: IpAddr,
    ) -> Result<Attempt, DomainError> {
        let email = email.trim().to_lowercase();
        let workspace = workspace.map(|text| text.trim().to_owned());
        let workspace = workspace.filter(|text| !text.is_empty());
        let accounts = self.store.accounts_of(&email, workspace.as_deref(), MAX_ACCOUNTS);
        let mut accounts = accounts.await?;
        // Taking slots in a fixed order keeps concurrent attempts from deadlocking.
        accounts.sort_unstable_by_key(|user| user.id);
        Ok(Attempt {
            email,
            ip,
            workspace,
            accounts,
        })
    }

    /// Signs in to the account whose password it is; `place` is the attempt's slot.
    async fn try_password(
        &self,
        attempt: &Attempt,
        password: SecretString,
        place: LoginPlace,
    ) -> Result<SignInOutcome, DomainError> {
        let fitting = self.match_accounts(attempt, password).await?;
        let failed = fitting.is_empty();
        let rate = self.limiter.call(EndLogin { place, failed }).await?;
        let outcome = match fitting.as_slice() {
            [] => {
                self.record_failure(&attempt.accounts, &attempt.failure()).await?;
                if !rate.allowed {
                    return Ok(rate_limited(rate));
                }
                Err(WRONG_LOGIN)
            }
            [user] => {
                let entry = of_user(user, attempt.ip, Outcome::Success);
                self.grant_sign_in((*user).clone(), entry).await
            }
            several => {
                let entry = |user: &UserRecord| of_user(user, attempt.ip, Outcome::Failure);
                let fit = "address and password fit";
                Err(self.ask_for_workspace(several, fit, entry).await?)
            }
        };
        Ok(SignInOutcome { rate, outcome })
    }

    /// The accounts whose password matches.
    async fn match_accounts<'a>(
        &self,
        attempt: &'a Attempt,
        password: SecretString,
    ) -> Result<Vec<&'a UserRecord>, DomainError> {
        let mut places = Vec::with_capacity(MAX_ACCOUNTS);
        for at in 0..MAX_ACCOUNTS {
            places.push(self.place(attempt.account_key(at)).await?.ok());
        }
        // A locked account is not tried; the caller is not told, since it may be somebody else's.
        let hash_of = |(at, place): (usize, &Option<LoginPlace>)| {
            let user = attempt
                .accounts
                .get(at)
                .filter(|user| place.is_some() && !user.disabled);
            user.and_then(|user| user.password_hash.clone())
        };
        let hashes: Vec<Option<String>> = places.iter().enumerate().map(hash_of).collect();
        let verify = move || {
            let fits = |hash: &Option<String>| password::verify(&password, hash.as_deref());
            Ok(hashes.iter().map(fits).collect::<Vec<bool>>())
        };
        let fits = run_hashing(verify).await?;
        let mut fitting = Vec::new();
        for (at, (place, fits)) in places.into_iter().zip(fits).enumerate() {
            if let Some(place) = place {
                self.limiter.call(EndLogin { place, failed: !fits }).await?;
            }
            fitting.extend(attempt.accounts.get(at).filter(|_| fits));
        }
        Ok(fitting)
    }

    /// Waits for an attempt slot under this key; the inner error is the state of a locked one.
    pub(super) async fn place(&self, key: String) -> Result<Result<LoginPlace, RateState>, DomainError> {
        loop {
            match self.limiter.call(BeginLogin { key: key.clone() }).await? {
                LoginGate::Locked(state) => return Ok(Err(state)),
                LoginGate::Open(line) => {
                    if let Some(place) = line.place().await {
                        return Ok(Ok(place));
                    }
                }
            }
        }
    }

    /// Takes one sign-in attempt from the limit of an IP address, whatever the account and the way.
    pub(super) async fn take_try(&self, ip: IpAddr) -> Result<RateState, DomainError> {
        let attempt = TakeRequest {
            counted: RateKey::Address("sign-in", Network::of(ip)),
            limits: GUESSES.to_vec(),
        };
        self.limiter.call(attempt).await
    }

    /// Issues a token, after its audit entry is written. Refused with 403 if the workspace is suspended.
    pub(super) async fn grant_sign_in(
        &self,
        user: UserRecord,
        entry: AuditEntry,
    ) -> Result<SignInGrant, DomainError> {
        let workspace = self.store.workspace(user.ws).await?.ok_or(WRONG_LOGIN)?;
        if let Err(refused) = workspace.require_active() {
            let mut entry = entry.with("reason", "workspace suspended");
            entry.outcome = Outcome::Denied;
            self.audit.call(Append(entry)).await?;
            return Err(refused);
        }
        let token = self
            .tokens
            .issue(user.id, user.ws, user.tokens_after, clock::now())?;
        self.audit.call(Append(entry)).await?;
        Ok(SignInGrant {
            token,
            user,
            workspace,
        })
    }

    /// Lists the workspaces of these accounts; who has proved to own all of them is entitled to that. `fit` says what
    /// fits them, and `entry` makes the audit entry of one.
    pub(super) async fn ask_for_workspace(
        &self,
        users: &[&UserRecord],
        fit: &str,
        entry: impl Fn(&UserRecord) -> AuditEntry,
    ) -> Result<DomainError, DomainError> {
        let mut names = Vec::with_capacity(users.len());
        for user in users {
            let entry = entry(user).with("reason", "workspace required");
            self.audit.call(Append(entry)).await?;
            let workspace = self.store.workspace(user.ws).await?.ok_or(WRONG_LOGIN)?;
            names.push(format!("{} ({})", workspace.name, workspace.id));
        }
        let rule = format!("is required, as name or id: {fit} {}", names.join(", "));
        Ok(DomainError::invalid("workspace", rule))
    }

    /// Audits a failure in each workspace whose account was tried; for an unknown account in the operator's
    /// workspace, as no other applies.
    pub(super) async fn record_failure(
        &self,
        accounts: &[UserRecord],
        entry: &impl Fn(Uuid) -> AuditEntry,
    ) -> Result<(), DomainError> {
        // Queried whether or not there is an account: both cases must take equally long.
        let operator = self.store.operator_workspace().await?;
        let mut tenants: BTreeSet<Uuid> = accounts.iter().map(|user| user.ws).collect();
        if tenants.is_empty() {
            tenants.extend(operator);
        }
        let entries = tenants
            .into_iter()
            .map(|tenant| self.audit.call(Append(entry(tenant))));
        try_join_all(entries).await.map(drop)
    }
}

pub(super) fn rate_limited(rate: RateState) -> SignInOutcome {
    let refused = DomainError::RateLimited {
        retry_after: rate.reset,
    };
    SignInOutcome {
        rate,
        outcome: Err(refused),
    }
}

/// The audit entry of a sign-in to one account.
pub(super) fn of_user(user: &UserRecord, ip: IpAddr, outcome: Outcome) -> AuditEntry {
    let mut entry = AuditEntry::anonymous(user.ws, ip, "auth.login", "user", outcome, clock::now());
    entry.user_id = Some(user.id);
    entry.on(user.id)
}
