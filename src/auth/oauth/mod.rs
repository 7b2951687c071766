//! Sign-in with a provider: the authorization code flow (RFC 6749 section 4.1) with PKCE (RFC 7636) and state, of
//! OpenID Connect Core 1.0 or of GitHub.
//!
//! - [`Providers`]: the configured providers; [`Provider`] builds the URL of its sign-in page and turns a code into a
//!   verified e-mail address.
//! - [`PendingSignIn`]: what the browser keeps between the two requests of a sign-in, signed by [`Seal`]; [`UsedStates`]
//!   admits each one once.
//!
//! A provider proves an e-mail address and nothing else. Who has an account is decided by the caller.

mod github;
mod oidc;
mod pending;
mod provider_client;

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use reqwest::Url;
use secrecy::SecretString;
use tokio::sync::{Semaphore, SemaphorePermit};

use self::github::Github;
use self::oidc::Oidc;
pub use self::pending::{LIFETIME, PendingSignIn, Seal, UsedStates};
use crate::config::{OauthSettings, ProviderKind, ProviderSettings};
use crate::domain::email::account_address;
use crate::outbound::OutboundError;

/// Why a provider did not prove an e-mail address. The texts hold nothing that a provider or browser sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OauthError {
    #[error("did not answer in time")]
    Slow,
    /// The provider, or what the operator configured for it.
    #[error("failed: {0}")]
    Failed(&'static str),
    /// The code is made up, expired, used before, or belongs to another sign-in.
    #[error("refused the authorization code")]
    CodeRefused,
    /// The ID token breaks a rule of OpenID Connect Core 1.0 section 3.1.3.7.
    #[error("sent an ID token that is not acceptable: {0}")]
    Untrusted(&'static str),
    #[error("has not verified an e-mail address of the user")]
    NoVerifiedEmail,
}

/// The configured providers.
pub struct Providers(BTreeMap<String, Provider>);

impl Providers {
    /// `places` is the number of requests that may wait for providers at a time, at least one for each provider.
    ///
    /// # Errors
    /// When TLS can't be set up on this machine, or an address is refused.
    pub fn new(settings: &OauthSettings, places: usize) -> Result<Self, OutboundError> {
        let timeout = Duration::from_millis(settings.timeout_ms);
        // A provider that hangs takes no places from the others.
        let places = (places / settings.providers.len().max(1)).max(1);
        let provider = |(name, own): (&String, &ProviderSettings)| {
            let redirect = settings.redirect_uri(name);
            let flow = match own.kind {
                ProviderKind::Oidc => Flow::Oidc(Box::new(Oidc::new(name, own, redirect, timeout)?)),
                ProviderKind::Github => Flow::Github(Box::new(Github::new(name, own, redirect, timeout)?)),
            };
            let provider = Provider {
                name: name.clone(),
                timeout,
                places: Semaphore::new(places),
                flow,
            };
            Ok((name.clone(), provider))
        };
        settings
            .providers
            .iter()
            .map(provider)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// The provider of this name.
    pub fn get(&self, name: &str) -> Option<&Provider> {
        self.0.get(name)
    }
}

/// One provider.
pub struct Provider {
    name: String,
    timeout: Duration,
    places: Semaphore,
    flow: Flow,
}

enum Flow {
    Oidc(Box<Oidc>),
    Github(Box<Github>),
}

impl Provider {
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A place among the requests that may wait for this provider; `None` when all are taken.
    pub fn place(&self) -> Option<SemaphorePermit<'_>> {
        self.places.try_acquire().ok()
    }

    /// The URL of the provider's sign-in page for one sign-in.
    ///
    /// # Errors
    /// When the provider's endpoints can't be discovered.
    pub async fn authorize_url(&self, pending: &PendingSignIn) -> Result<Url, OauthError> {
        match &self.flow {
            Flow::Oidc(oidc) => self.in_time(oidc.authorize_url(pending)).await,
            Flow::Github(github) => Ok(github.authorize_url(pending)),
        }
    }

    /// Whether `iss` of a callback (RFC 9207) is the issuer. GitHub, which is no OpenID provider, has none to check.
    pub fn is_issuer(&self, iss: &str) -> bool {
        match &self.flow {
            Flow::Oidc(oidc) => oidc.is_issuer(iss),
            Flow::Github(_) => true,
        }
    }

    /// Exchanges an authorization code for the user's verified e-mail address, in the form of [`account_address`].
    ///
    /// # Errors
    /// [`OauthError`].
    pub async fn email_of(&self, code: &SecretString, pending: &PendingSignIn) -> Result<String, OauthError> {
        let email = match &self.flow {
            Flow::Oidc(oidc) => self.in_time(oidc.email_of(code, pending)).await?,
            Flow::Github(github) => self.in_time(github.email_of(code, pending)).await?,
        };
        account_address(&email).ok_or(OauthError::NoVerifiedEmail)
    }

    /// One time-out for everything that a request asks of the provider.
    async fn in_time<T>(&self, work: impl Future<Output = Result<T, OauthError>>) -> Result<T, OauthError> {
        tokio::time::timeout(self.timeout, work)
            .await
            .unwrap_or(Err(OauthError::Slow))
    }
}
