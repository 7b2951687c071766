//! GitHub: OAuth 2.0 without ID tokens. The e-mail address comes from its REST API.

use std::time::Duration;

use openidconnect::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use openidconnect::http::{Method, Request, Response};
use openidconnect::url::form_urlencoded;
use openidconnect::{PkceCodeChallenge, PkceCodeVerifier};
use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use super::provider_client::ProviderClient;
use super::{OauthError, PendingSignIn};
use crate::config::ProviderSettings;
use crate::outbound::{OutboundError, Refusal, Rule};

const BASE_URL: &str = "https://github.com";
const API_URL: &str = "https://api.github.com";
/// GitHub lists the addresses of a user in pages of at most this many.
const PAGE: &str = "100";

pub(super) struct Github {
    client_id: String,
    secret: Option<SecretString>,
    scopes: String,
    redirect: String,
    authorize: Url,
    token: Url,
    emails: Url,
    web: ProviderClient,
    api: ProviderClient,
}

/// The answer to a code: an error has status 200 too.
#[derive(Deserialize)]
struct TokenAnswer {
    access_token: Option<SecretString>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Email {
    email: String,
    primary: bool,
    verified: bool,
}

impl Github {
    /// # Errors
    /// When TLS can't be set up on this machine, or an address is refused.
    pub(super) fn new(
        name: &str,
        settings: &ProviderSettings,
        redirect: String,
        timeout: Duration,
    ) -> Result<Self, OutboundError> {
        let base = settings.base_url.as_deref().unwrap_or(BASE_URL);
        let api = settings.api_url.as_deref().unwrap_or(API_URL);
        Ok(Self {
            client_id: settings.client_id.clone(),
            secret: settings.client_secret.clone(),
            scopes: settings.scopes().join(" "),
            redirect,
            authorize: below(base, "login/oauth/authorize")?,
            token: below(base, "login/oauth/access_token")?,
            emails: below(api, &format!("user/emails?per_page={PAGE}"))?,
            web: ProviderClient::new(name, base, timeout)?,
            api: ProviderClient::new(name, api, timeout)?,
        })
    }

    pub(super) fn authorize_url(&self, pending: &PendingSignIn) -> Url {
        let verifier = PkceCodeVerifier::new(pending.verifier.clone());
        let challenge = PkceCodeChallenge::from_code_verifier_sha256(&verifier);
        let mut url = self.authorize.clone();
        url.query_pairs_mut().extend_pairs([
            ("response_type", "code"),
            ("client_id", &self.client_id),
            ("redirect_uri", &self.redirect),
            ("scope", &self.scopes),
            ("state", &pending.state),
            ("code_challenge", challenge.as_str()),
            ("code_challenge_method", challenge.method().as_str()),
        ]);
        url
    }

    /// The primary address, if GitHub has verified it.
    pub(super) async fn email_of(
        &self,
        code: &SecretString,
        pending: &PendingSignIn,
    ) -> Result<String, OauthError> {
        const STEP: &str = "its list of e-mail addresses";
        let token = self.redeem(code, pending).await?;
        let bearer = format!("Bearer {}", token.expose_secret());
        let request = Request::builder()
            .method(Method::GET)
            .uri(self.emails.as_str())
            .header(ACCEPT, "application/vnd.github+json")
            .header(AUTHORIZATION, bearer)
            .body(Vec::new());
        // The only part that can be malformed is the token.
        let request = request.map_err(|_| self.api.answer_error(STEP, "the token fits no header"))?;
        let sent = self.api.send(request).await;
        let answer = sent.map_err(|error| self.api.exchange_error(STEP, &error))?;
        let read = |answer: &Response<Vec<u8>>| serde_json::from_slice::<Vec<Email>>(answer.body()).ok();
        let emails = Some(&answer)
            .filter(|answer| answer.status().is_success())
            .and_then(read);
        let emails = emails.ok_or_else(|| self.api.answer_error(STEP, "no list came"))?;
        let primary = emails.into_iter().find(|email| email.primary && email.verified);
        primary
            .map(|email| email.email)
            .ok_or(OauthError::NoVerifiedEmail)
    }

    async fn redeem(&self, code: &SecretString, pending: &PendingSignIn) -> Result<SecretString, OauthError> {
        const STEP: &str = "its token endpoint";
        let mut request = Request::new(self.form(code, pending));
        *request.method_mut() = Method::POST;
        let uri = self.token.as_str().parse();
        *request.uri_mut() = uri.map_err(|_| self.web.answer_error(STEP, "its address is no URI"))?;
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        headers.insert(CONTENT_TYPE, form);
        let sent = self.web.send(request).await;
        let answer = sent.map_err(|error| self.web.exchange_error(STEP, &error))?;
        self.token_in(answer.body())
    }

    /// The body of the token request (RFC 6749 section 4.1.3).
    fn form(&self, code: &SecretString, pending: &PendingSignIn) -> Vec<u8> {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.extend_pairs([
            ("grant_type", "authorization_code"),
            ("client_id", &self.client_id),
            ("code", code.expose_secret()),
            ("redirect_uri", &self.redirect),
            ("code_verifier", &pending.verifier),
        ]);
        if let Some(secret) = &self.secret {
            form.append_pair("client_secret", secret.expose_secret());
        }
        form.finish().into_bytes()
    }

    fn token_in(&self, body: &[u8]) -> Result<SecretString, OauthError> {
        const STEP: &str = "its token endpoint";
        let answer = serde_json::from_slice::<TokenAnswer>(body);
        let answer = answer.map_err(|_| self.web.answer_error(STEP, "the answer is not JSON of a token"))?;
        match (answer.access_token, answer.error.as_deref()) {
            (Some(token), None) => Ok(token),
            (_, Some("bad_verification_code")) => Err(OauthError::CodeRefused),
            (_, Some("incorrect_client_credentials")) => {
                Err(self.web.answer_error(STEP, "the client id or secret is wrong"))
            }
            (_, Some("redirect_uri_mismatch")) => {
                Err(self.web.answer_error(STEP, "the redirect URI is not registered"))
            }
            (_, Some(_)) => Err(self.web.answer_error(STEP, "it answered with an error")),
            (None, None) => Err(self.web.answer_error(STEP, "the answer holds no token")),
        }
    }
}

fn below(base: &str, path: &str) -> Result<Url, OutboundError> {
    let url = format!("{}/{path}", base.trim_end_matches('/'));
    Url::parse(&url).map_err(|_| Refusal::new(Rule::InvalidUrl, "").into())
}
