//! OpenID Connect: discovery, the code exchange, and the verification of ID tokens.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::TimeDelta;
use openidconnect::core::{
    CoreAuthenticationFlow, CoreClient, CoreClientAuthMethod, CoreErrorResponseType, CoreIdTokenClaims,
    CoreIdTokenVerifier, CoreJsonWebKeySet, CoreJwsSigningAlgorithm, CoreProviderMetadata, CoreTokenResponse,
    CoreUserInfoClaims,
};
use openidconnect::{
    AccessTokenHash, AuthType, AuthorizationCode, ClaimsVerificationError, ClientId, ClientSecret, CsrfToken,
    DiscoveryError, EndpointMaybeSet, EndpointNotSet, EndpointSet, IssuerUrl, Nonce, OAuth2TokenResponse,
    PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, RequestTokenError, Scope, SignatureVerificationError,
    StandardErrorResponse, SubjectIdentifier, TokenResponse, UserInfoError,
};
use parking_lot::Mutex;
use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};

use super::provider_client::ProviderClient;
use super::{OauthError, PendingSignIn};
use crate::clock;
use crate::config::ProviderSettings;
use crate::outbound::{OutboundError, Refusal, Rule};

/// How long a discovery document and its keys are used before they are read again.
const FRESH: Duration = Duration::from_secs(3600);
/// Shortest time between two readings of the keys because a token did not fit them.
const REFRESH_PAUSE: Duration = Duration::from_secs(60);
/// Difference of clocks that is tolerated.
const LEEWAY: TimeDelta = TimeDelta::seconds(60);
/// Asymmetric only: the key of an HMAC would be a secret that more than the provider knows.
const ALGORITHMS: [CoreJwsSigningAlgorithm; 9] = [
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha384,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha512,
    CoreJwsSigningAlgorithm::RsaSsaPssSha256,
    CoreJwsSigningAlgorithm::RsaSsaPssSha384,
    CoreJwsSigningAlgorithm::RsaSsaPssSha512,
    CoreJwsSigningAlgorithm::EcdsaP256Sha256,
    CoreJwsSigningAlgorithm::EcdsaP384Sha384,
    CoreJwsSigningAlgorithm::EdDsa,
];

const DISCOVERY: &str = "its discovery document";
const KEYS: &str = "its key set";
const TOKEN: &str = "its token endpoint";
const USER_INFO: &str = "its UserInfo endpoint";

/// A client whose endpoints are known.
type Client = CoreClient<
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;

pub(super) struct Oidc {
    issuer: IssuerUrl,
    client_id: ClientId,
    secret: Option<SecretString>,
    scopes: Vec<Scope>,
    redirect: RedirectUrl,
    door: ProviderClient,
    known: Mutex<Option<Arc<CachedMetadata>>>,
    /// When keys were last read again; held while they are.
    refreshed: tokio::sync::Mutex<Option<Instant>>,
}

/// What the provider says about itself.
struct CachedMetadata {
    metadata: CoreProviderMetadata,
    since: Instant,
}

impl Oidc {
    /// # Errors
    /// When TLS can't be set up on this machine, or an address is refused.
    pub(super) fn new(
        name: &str,
        settings: &ProviderSettings,
        redirect: String,
        timeout: Duration,
    ) -> Result<Self, OutboundError> {
        let invalid = || OutboundError::from(Refusal::new(Rule::InvalidUrl, ""));
        let issuer = settings.issuer.clone().unwrap_or_default();
        // The client adds this scope itself.
        let scopes = settings.scopes().into_iter().filter(|scope| scope != "openid");
        Ok(Self {
            door: ProviderClient::new(name, &issuer, timeout)?,
            issuer: IssuerUrl::new(issuer).map_err(|_| invalid())?,
            client_id: ClientId::new(settings.client_id.clone()),
            secret: settings.client_secret.clone(),
            scopes: scopes.map(Scope::new).collect(),
            redirect: RedirectUrl::new(redirect).map_err(|_| invalid())?,
            known: Mutex::new(None),
            refreshed: tokio::sync::Mutex::new(None),
        })
    }

    pub(super) fn is_issuer(&self, iss: &str) -> bool {
        self.issuer.as_str() == iss
    }

    pub(super) async fn authorize_url(&self, pending: &PendingSignIn) -> Result<Url, OauthError> {
        let known = self.current_metadata().await?;
        let verifier = PkceCodeVerifier::new(pending.verifier.clone());
        let (state, nonce) = (pending.state.clone(), pending.nonce.clone());
        let flow = CoreAuthenticationFlow::AuthorizationCode;
        let client = self.client(&known.metadata);
        let request = client.authorize_url(flow, move || CsrfToken::new(state), move || Nonce::new(nonce));
        let request = request
            .add_scopes(self.scopes.clone())
            .set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(&verifier));
        Ok(request.url().0)
    }

    pub(super) async fn email_of(
        &self,
        code: &SecretString,
        pending: &PendingSignIn,
    ) -> Result<String, OauthError> {
        let mut known = self.current_metadata().await?;
        let answer = self.redeem(&known.metadata, code, pending).await?;
        let nonce = Nonce::new(pending.nonce.clone());
        let mut verified = self.verify_claims(&known.metadata, &answer, &nonce);
        if verified.as_ref().is_err_and(TokenRejection::is_about_keys)
            && let Some(fresh) = self.with_new_keys(&known).await?
        {
            known = fresh;
            verified = self.verify_claims(&known.metadata, &answer, &nonce);
        }
        let claims = verified.map_err(|TokenRejection(_, why)| OauthError::Untrusted(why))?;
        let email = match (claims.email(), claims.email_verified()) {
            (Some(email), Some(verified)) => verified.then(|| email.to_string()),
            _ => {
                self.fetch_email(&known.metadata, &answer, claims.subject())
                    .await?
            }
        };
        email.ok_or(OauthError::NoVerifiedEmail)
    }

    /// The verified address from the UserInfo endpoint: a provider need not put it into the ID token (OpenID Connect
    /// Core 1.0 section 5.4).
    async fn fetch_email(
        &self,
        metadata: &CoreProviderMetadata,
        answer: &CoreTokenResponse,
        subject: &SubjectIdentifier,
    ) -> Result<Option<String>, OauthError> {
        let token = answer.access_token();
        if metadata.userinfo_endpoint().is_none() {
            return Ok(None);
        }
        // The crate panics on a token that fits no header.
        if !token.secret().bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(self.door.answer_error(TOKEN, "the access token fits no header"));
        }
        let client = self.client(metadata);
        let request = client.user_info(token.clone(), Some(subject.clone()));
        let request = request.map_err(|_| self.door.answer_error(USER_INFO, "it is not known"))?;
        let told: Result<CoreUserInfoClaims, _> = request.request_async(&self.door).await;
        let claims = told.map_err(|error| match error {
            UserInfoError::Request(error) => self.door.exchange_error(USER_INFO, &error),
            UserInfoError::ClaimsVerification(_) => OauthError::Untrusted("UserInfo is of another user"),
            UserInfoError::Parse(_) | UserInfoError::Response(..) | UserInfoError::Other(_) | _ => {
                self.door.answer_error(USER_INFO, "it can't be read")
            }
        })?;
        let email = claims.email().filter(|_| claims.email_verified() == Some(true));
        Ok(email.map(|email| email.to_string()))
    }

    /// The discovery document and its keys, read again after [`FRESH`].
    async fn current_metadata(&self) -> Result<Arc<CachedMetadata>, OauthError> {
        let known = self.fresh_metadata();
        if let Some(known) = known.filter(|known| known.since.elapsed() < FRESH) {
            return Ok(known);
        }
        let metadata = CoreProviderMetadata::discover_async(self.issuer.clone(), &self.door).await;
        let metadata = metadata.map_err(|error| self.discovery_error(DISCOVERY, &error))?;
        let token = metadata.token_endpoint().map(|url| url.url());
        // The browser is sent to the first one; it may as little be `javascript:` as a page without TLS.
        let endpoints = [Some(metadata.authorization_endpoint().url()), token];
        if !endpoints
            .iter()
            .all(|url| url.is_some_and(|url| self.door.allows(url)))
        {
            return Err(self
                .door
                .answer_error(DISCOVERY, "an endpoint is missing or has no HTTPS"));
        }
        Ok(self.remember(metadata))
    }

    fn fresh_metadata(&self) -> Option<Arc<CachedMetadata>> {
        self.known.lock().clone()
    }

    fn remember(&self, metadata: CoreProviderMetadata) -> Arc<CachedMetadata> {
        let since = Instant::now();
        let known = Arc::new(CachedMetadata { metadata, since });
        *self.known.lock() = Some(Arc::clone(&known));
        known
    }

    /// The provider with keys that are newer than those of `known`; `None` when they were read a moment ago.
    async fn with_new_keys(
        &self,
        known: &Arc<CachedMetadata>,
    ) -> Result<Option<Arc<CachedMetadata>>, OauthError> {
        let mut refreshed = self.refreshed.lock().await;
        if let Some(newer) = self.fresh_metadata().filter(|newer| !Arc::ptr_eq(newer, known)) {
            return Ok(Some(newer));
        }
        if refreshed.is_some_and(|at| at.elapsed() < REFRESH_PAUSE) {
            return Ok(None);
        }
        *refreshed = Some(Instant::now());
        let keys = CoreJsonWebKeySet::fetch_async(known.metadata.jwks_uri(), &self.door).await;
        let keys = keys.map_err(|error| self.discovery_error(KEYS, &error))?;
        Ok(Some(self.remember(known.metadata.clone().set_jwks(keys))))
    }

    fn discovery_error(&self, step: &'static str, error: &DiscoveryError<OutboundError>) -> OauthError {
        match error {
            DiscoveryError::Request(error) => self.door.exchange_error(step, error),
            DiscoveryError::Response(..) => self.door.answer_error(step, "the status or type is wrong"),
            DiscoveryError::Validation(_) => self.door.answer_error(step, "it names another issuer"),
            DiscoveryError::Parse(_) | DiscoveryError::UrlParse(_) | DiscoveryError::Other(_) | _ => {
                self.door.answer_error(step, "it can't be read")
            }
        }
    }

    fn client(&self, metadata: &CoreProviderMetadata) -> Client {
        let secret = self.secret.as_ref();
        let secret = secret.map(|secret| ClientSecret::new(secret.expose_secret().to_owned()));
        let client = CoreClient::from_provider_metadata(metadata.clone(), self.client_id.clone(), secret);
        let methods = metadata.token_endpoint_auth_methods_supported();
        // Basic is the default (OpenID Connect Discovery 1.0 section 3).
        let basic = methods.is_none_or(|methods| methods.contains(&CoreClientAuthMethod::ClientSecretBasic));
        let auth = if basic {
            AuthType::BasicAuth
        } else {
            AuthType::RequestBody
        };
        client.set_redirect_uri(self.redirect.clone()).set_auth_type(auth)
    }

    async fn redeem(
        &self,
        metadata: &CoreProviderMetadata,
        code: &SecretString,
        pending: &PendingSignIn,
    ) -> Result<CoreTokenResponse, OauthError> {
        let client = self.client(metadata);
        let request = client.exchange_code(AuthorizationCode::new(code.expose_secret().to_owned()));
        let request = request.map_err(|_| self.door.answer_error(TOKEN, "it is not known"))?;
        request
            .set_pkce_verifier(PkceCodeVerifier::new(pending.verifier.clone()))
            .request_async(&self.door)
            .await
            .map_err(|error| self.redeem_error(&error))
    }

    fn redeem_error(
        &self,
        error: &RequestTokenError<OutboundError, StandardErrorResponse<CoreErrorResponseType>>,
    ) -> OauthError {
        match error {
            RequestTokenError::Request(error) => self.door.exchange_error(TOKEN, error),
            RequestTokenError::ServerResponse(refusal) => {
                let code = refusal.error();
                if *code == CoreErrorResponseType::InvalidGrant {
                    OauthError::CodeRefused
                } else if *code == CoreErrorResponseType::InvalidClient {
                    self.door.answer_error(TOKEN, "the client id or secret is wrong")
                } else {
                    self.door.answer_error(TOKEN, "it answered with an error")
                }
            }
            RequestTokenError::Parse(..) => self.door.answer_error(TOKEN, "the answer can't be read"),
            RequestTokenError::Other(_) => self.door.answer_error(TOKEN, "the type or body is wrong"),
        }
    }

    /// The claims of the ID token, after all checks of OpenID Connect Core 1.0 section 3.1.3.7.
    fn verify_claims<'a>(
        &self,
        metadata: &CoreProviderMetadata,
        answer: &'a CoreTokenResponse,
        nonce: &Nonce,
    ) -> Result<&'a CoreIdTokenClaims, TokenRejection> {
        let token = answer
            .id_token()
            .ok_or(TokenRejection(false, "there is no ID token"))?;
        let verifier = CoreIdTokenVerifier::new_public_client(
            self.client_id.clone(),
            self.issuer.clone(),
            metadata.jwks().clone(),
        )
        .set_allowed_algs(ALGORITHMS)
        .set_time_fn(|| clock::now() - LEEWAY)
        .set_issue_time_verifier_fn(|issued| {
            if issued > clock::now() + LEEWAY {
                return Err("issued in the future".into());
            }
            Ok(())
        });
        let claims = token.claims(&verifier, nonce).map_err(TokenRejection::from)?;
        // Steps 4 and 5, which the crate leaves to its users.
        if claims
            .authorized_party()
            .is_some_and(|party| *party != self.client_id)
        {
            return Err(TokenRejection(false, "it was issued to another client"));
        }
        if let Some(expected) = claims.access_token_hash() {
            let unfit = |_| TokenRejection(false, "at_hash can't be checked");
            let algorithm = token.signing_alg().map_err(unfit)?;
            let key = token.signing_key(&verifier).map_err(unfit)?;
            let hash = AccessTokenHash::from_token(answer.access_token(), algorithm, key);
            if hash.ok().as_ref() != Some(expected) {
                return Err(TokenRejection(false, "at_hash belongs to another access token"));
            }
        }
        Ok(claims)
    }
}

/// Why an ID token is refused, and whether newer keys might fit.
struct TokenRejection(bool, &'static str);

impl TokenRejection {
    fn is_about_keys(&self) -> bool {
        self.0
    }
}

impl From<ClaimsVerificationError> for TokenRejection {
    fn from(error: ClaimsVerificationError) -> Self {
        let because = |why| Self(false, why);
        match error {
            ClaimsVerificationError::Expired(_) => because("it has expired, or is from the future"),
            ClaimsVerificationError::InvalidAudience(_) => because("the audience is wrong"),
            ClaimsVerificationError::InvalidIssuer(_) => because("the issuer is wrong"),
            ClaimsVerificationError::InvalidNonce(_) => because("the nonce is wrong"),
            ClaimsVerificationError::SignatureVerification(error) => error.into(),
            ClaimsVerificationError::InvalidAuthContext(_)
            | ClaimsVerificationError::InvalidAuthTime(_)
            | ClaimsVerificationError::InvalidSubject(_)
            | ClaimsVerificationError::Unsupported(_)
            | ClaimsVerificationError::Other(_)
            | _ => because("it has a form that is not supported"),
        }
    }
}

impl From<SignatureVerificationError> for TokenRejection {
    fn from(error: SignatureVerificationError) -> Self {
        match error {
            SignatureVerificationError::NoMatchingKey => Self(true, "no key of the provider fits"),
            SignatureVerificationError::CryptoError(_) => Self(true, "the signature is wrong"),
            SignatureVerificationError::NoSignature => Self(false, "it is not signed"),
            SignatureVerificationError::DisallowedAlg(_) => Self(false, "the algorithm is not allowed"),
            SignatureVerificationError::AmbiguousKeyId(_)
            | SignatureVerificationError::InvalidKey(_)
            | SignatureVerificationError::UnsupportedAlg(_)
            | SignatureVerificationError::Other(_)
            | _ => Self(false, "the signature can't be checked"),
        }
    }
}
