//! Sign-in with a provider: a verified e-mail address instead of a password.
//!
//! A sign-in has two requests, and the browser carries it from one to the other. A provider can be slow: requests that
//! wait for one have few places of their own, and are refused when these are taken.

use std::net::IpAddr;
use std::sync::Arc;

use metrics::counter;
use secrecy::SecretString;
use uuid::Uuid;

use super::IdentityCore;
use super::sign_in::{MAX_ACCOUNTS, SignInGrant, SignInOutcome, of_user, rate_limited};
use crate::actors::worker::{Access, Tenant, Work};
use crate::auth::oauth::{OauthError, PendingSignIn, Provider, Providers, Seal, UsedStates};
use crate::clock;
use crate::config::OauthSettings;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::error::DomainError;
use crate::outbound::OutboundError;
use crate::store::UserRecord;

const NO_PROVIDER: DomainError = DomainError::NotFound("provider");
const NO_PENDING: DomainError = DomainError::Unauthenticated(
    "this sign-in was not begun in this browser, has expired or is already finished: begin again",
);
/// The same for unknown and disabled users.
const NO_ACCOUNT: DomainError =
    DomainError::Unauthenticated("no account may be used with the e-mail address of this sign-in");

/// What the identities need for sign-in with providers.
pub struct OauthSignIn {
    providers: Providers,
    seal: Seal,
    used: UsedStates,
}

impl OauthSignIn {
    /// `places` is the number of requests that may wait for providers at a time.
    ///
    /// # Errors
    /// When TLS can't be set up on this machine, or the address of a provider is refused.
    pub fn new(
        settings: &OauthSettings,
        secret: &SecretString,
        places: usize,
    ) -> Result<Self, OutboundError> {
        Ok(Self {
            providers: Providers::new(settings, places)?,
            seal: Seal::new(secret),
            used: UsedStates::default(),
        })
    }

    /// The sign-in that a callback belongs to, if this browser began it.
    fn pending_of(&self, provider: &Provider, callback: &FinishOauth) -> Option<PendingSignIn> {
        let pending = self.seal.open(callback.cookie.as_ref()?)?;
        pending.fits(provider.name(), &callback.state).then_some(pending)
    }
}

/// Begins a sign-in with a provider.
#[derive(Debug)]
pub struct BeginOauth {
    pub provider: String,
    /// Name or id; needed only by users with accounts in several workspaces.
    pub workspace: Option<String>,
}

/// Where the browser goes next, and what it keeps.
#[derive(Debug)]
pub struct OauthRedirect {
    /// URL of the provider's sign-in page.
    pub location: String,
    /// The sealed sign-in.
    pub cookie: SecretString,
}

impl Work for BeginOauth {
    type Core = IdentityCore;
    type Reply = OauthRedirect;
    const NAME: &'static str = "begin_oauth";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Tenant {
        None
    }

    async fn run(self, core: Arc<IdentityCore>) -> Result<Self::Reply, DomainError> {
        let provider = core.oauth.providers.get(&self.provider).ok_or(NO_PROVIDER)?;
        let _place = provider.place().ok_or(DomainError::Busy { actor: "identity" })?;
        let pending = PendingSignIn::begin(provider.name(), self.workspace, clock::now())?;
        let location = provider.authorize_url(&pending).await.map_err(refusal)?;
        Ok(OauthRedirect {
            location: location.into(),
            cookie: core.oauth.seal.close(&pending)?,
        })
    }
}

/// What the provider sent along with the browser (RFC 6749 section 4.1.2).
#[derive(Debug)]
pub enum OauthReply {
    Code(SecretString),
    /// The error code.
    Error(String),
}

/// Finishes a sign-in with what the browser brings back from the provider.
#[derive(Debug)]
pub struct FinishOauth {
    pub provider: String,
    pub state: SecretString,
    pub reply: OauthReply,
    /// Issuer that the reply names (RFC 9207), if any.
    pub iss: Option<String>,
    /// The sealed sign-in.
    pub cookie: Option<SecretString>,
    pub ip: IpAddr,
}

impl Work for FinishOauth {
    type Core = IdentityCore;
    type Reply = SignInOutcome;
    const NAME: &'static str = "finish_oauth";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Tenant {
        None
    }

    async fn run(self, core: Arc<IdentityCore>) -> Result<Self::Reply, DomainError> {
        let provider = core.oauth.providers.get(&self.provider).ok_or(NO_PROVIDER)?;
        // Any web page can make a browser send a callback. Without a sign-in that this browser began it is neither
        // counted as an attempt of its network nor recorded.
        let pending = core.oauth.pending_of(provider, &self).ok_or(NO_PENDING)?;
        // Before the attempt is counted: a caller refused here can come again with the same sign-in.
        let _place = provider.place().ok_or(DomainError::Busy { actor: "identity" })?;
        let rate = core.take_try(self.ip).await?;
        if !rate.allowed {
            return Ok(rate_limited(rate));
        }
        let ip = self.ip;
        let outcome = match core.prove_email(provider, self, &pending).await? {
            Ok(email) => core.account_of(provider, &email, pending.workspace(), ip).await,
            Err(failure) => Err(core.audit_refusal(provider, failure, ip).await?),
        };
        let label = if outcome.is_ok() { "signed_in" } else { "refused" };
        counter!("oauth_sign_ins_total", "provider" => provider.name().to_owned(), "outcome" => label)
            .increment(1);
        Ok(SignInOutcome { rate, outcome })
    }
}

/// Why a sign-in did not prove an e-mail address.
enum Failure {
    /// There is no such sign-in in this browser.
    NotPending,
    /// The user or the provider refused, or asks for something else first.
    Denied,
    /// The provider failed, by its own account.
    Error,
    Provider(OauthError),
}

impl Failure {
    /// As recorded in the audit log.
    fn reason(&self) -> &'static str {
        match self {
            Self::NotPending => "no such sign-in pending",
            Self::Denied => "denied at the provider",
            Self::Error | Self::Provider(OauthError::Failed(_)) => "provider failed",
            Self::Provider(OauthError::Slow) => "provider too slow",
            Self::Provider(OauthError::CodeRefused) => "code refused",
            Self::Provider(OauthError::Untrusted(why)) => why,
            Self::Provider(OauthError::NoVerifiedEmail) => "no verified e-mail address",
        }
    }
}

impl From<Failure> for DomainError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::NotPending => NO_PENDING,
            Failure::Denied => Self::Unauthenticated("the sign-in was cancelled or refused at the provider"),
            Failure::Error => Self::ProviderFailed {
                what: "reports a failure of its own, or of its configuration".into(),
                slow: false,
            },
            Failure::Provider(error) => refusal(error),
        }
    }
}

/// What the caller is told about a provider.
fn refusal(error: OauthError) -> DomainError {
    match error {
        OauthError::Slow | OauthError::Failed(_) => DomainError::ProviderFailed {
            slow: error == OauthError::Slow,
            what: error.to_string(),
        },
        OauthError::CodeRefused => DomainError::Unauthenticated(
            "the provider refused the authorization code, which is wrong, expired or already used: begin again",
        ),
        OauthError::Untrusted(_) => {
            DomainError::Unauthenticated("the provider's ID token is not acceptable for this sign-in")
        }
        OauthError::NoVerifiedEmail => {
            DomainError::Unauthenticated("the provider has not verified an e-mail address of this user")
        }
    }
}

/// An error code of RFC 6749 section 4.1.2.1 or OpenID Connect Core 1.0 section 3.1.2.6.
fn failure_of(code: &str) -> Failure {
    match code {
        "access_denied"
        | "login_required"
        | "consent_required"
        | "interaction_required"
        | "account_selection_required" => Failure::Denied,
        _ => Failure::Error,
    }
}

impl IdentityCore {
    /// The e-mail address that a callback proves. A sign-in whose code was sent to the provider can't be used again.
    async fn prove_email(
        &self,
        provider: &Provider,
        callback: FinishOauth,
        pending: &PendingSignIn,
    ) -> Result<Result<String, Failure>, DomainError> {
        let FinishOauth { reply, iss, .. } = callback;
        if iss.is_some_and(|iss| !provider.is_issuer(&iss)) {
            let mixed_up = OauthError::Untrusted("the reply names another issuer");
            return Ok(Err(Failure::Provider(mixed_up)));
        }
        let code = match reply {
            OauthReply::Code(code) => code,
            OauthReply::Error(code) => return Ok(Err(failure_of(&code))),
        };
        if !self.oauth.used.mark(pending, clock::now())? {
            return Ok(Err(Failure::NotPending));
        }
        Ok(provider.email_of(&code, pending).await.map_err(Failure::Provider))
    }

    /// Signs in to the account of a verified address.
    async fn account_of(
        &self,
        provider: &Provider,
        email: &str,
        workspace: Option<&str>,
        ip: IpAddr,
    ) -> Result<SignInGrant, DomainError> {
        let accounts = self.store.accounts_of(email, workspace, MAX_ACCOUNTS).await?;
        let enabled: Vec<&UserRecord> = accounts.iter().filter(|user| !user.disabled).collect();
        let entry = |user: &UserRecord, outcome| of_user(user, ip, outcome).with("provider", provider.name());
        // An administrator of any workspace can create an account for any address. So an account is taken without a
        // question only if it is the only one, disabled ones included.
        match enabled.as_slice() {
            [] => {
                let failure = |tenant| failure_entry(tenant, provider, "no account", ip).of_address(email);
                self.record_failure(&accounts, &failure).await?;
                Err(NO_ACCOUNT)
            }
            [user] if accounts.len() == 1 => {
                self.grant_sign_in((*user).clone(), entry(user, Outcome::Success))
                    .await
            }
            several => {
                let entry = |user: &UserRecord| entry(user, Outcome::Failure);
                let fit = "begin again with it; the address has accounts in";
                Err(self.ask_for_workspace(several, fit, entry).await?)
            }
        }
    }

    /// Audits a sign-in that proved no address, in the operator's workspace; no other is known.
    async fn audit_refusal(
        &self,
        provider: &Provider,
        failure: Failure,
        ip: IpAddr,
    ) -> Result<DomainError, DomainError> {
        let entry = |tenant| failure_entry(tenant, provider, failure.reason(), ip);
        self.record_failure(&[], &entry).await?;
        Ok(failure.into())
    }
}

fn failure_entry(tenant: Uuid, provider: &Provider, reason: &str, ip: IpAddr) -> AuditEntry {
    AuditEntry::anonymous(tenant, ip, "auth.login", "user", Outcome::Failure, clock::now())
        .with("provider", provider.name())
        .with("reason", reason)
}
