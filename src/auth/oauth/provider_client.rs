//! Requests to a provider, in the form that the `openidconnect` crate asks for them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use openidconnect::http::Method;
use openidconnect::http::header::{AUTHORIZATION, HeaderValue, USER_AGENT as USER_AGENT_HEADER};
use openidconnect::{AsyncHttpClient, HttpRequest, HttpResponse};
use parking_lot::Mutex;
use reqwest::Url;

use super::OauthError;
use crate::domain::destination::is_loopback;
use crate::outbound::{self, GuardedClient, Limits, OutboundError, OutboundResponse, Policy};

/// Largest answer of a provider, in bytes. Discovery documents and key sets have some kilobytes.
const MAX_ANSWER: usize = 512 << 10;
/// Most origins of one provider. Google has two: its issuer, and its token endpoint and keys.
const MAX_ORIGINS: usize = 8;

/// The way to one provider. Its endpoints may be on several hosts: each origin has a guarded client of its own.
pub(super) struct ProviderClient {
    provider: String,
    limits: Limits,
    /// Only if the operator configured the provider itself that way.
    plain_loopback: bool,
    /// Origin of the provider itself, and whether it is on this machine.
    own: (String, bool),
    clients: Mutex<HashMap<String, Arc<GuardedClient>>>,
}

impl ProviderClient {
    /// A door for the provider at `base`.
    ///
    /// # Errors
    /// When TLS can't be set up on this machine, or the address is refused.
    pub(super) fn new(provider: &str, base: &str, timeout: Duration) -> Result<Self, OutboundError> {
        let limits = Limits::new(timeout, MAX_ANSWER);
        let (client, url) = GuardedClient::of_endpoint(base, "", limits)?;
        let origin = url.origin().ascii_serialization();
        Ok(Self {
            provider: provider.to_owned(),
            limits,
            plain_loopback: url.scheme() == "http",
            own: (origin.clone(), is_loopback(&url)),
            clients: Mutex::new(HashMap::from([(origin, Arc::new(client))])),
        })
    }

    /// Whether an endpoint that the provider names may be used: HTTPS, or a loopback address if the operator
    /// configured one.
    pub(super) fn allows(&self, url: &Url) -> bool {
        url.scheme() == "https" || (url.scheme() == "http" && self.plain_loopback && is_loopback(url))
    }

    /// Sends a request to an endpoint of the provider.
    ///
    /// # Errors
    /// [`OutboundError`]; an answer with an error status is none.
    pub(super) async fn send(&self, request: HttpRequest) -> Result<HttpResponse, OutboundError> {
        let (parts, body) = request.into_parts();
        let url = Url::parse(&parts.uri.to_string())
            .ok()
            .filter(|url| self.allows(url))
            .ok_or_else(|| OutboundError::Broken("the provider names an endpoint without HTTPS".into()))?;
        let client = self.client_of(&url)?;
        let mut headers = parts.headers;
        if let Some(credentials) = headers.get_mut(AUTHORIZATION) {
            credentials.set_sensitive(true);
        }
        // GitHub refuses requests without one.
        headers.insert(USER_AGENT_HEADER, HeaderValue::from_static(outbound::USER_AGENT));
        let answer = if parts.method == Method::POST {
            client.post(&url, headers, body).await?
        } else {
            client.get(&url, headers).await?
        };
        Ok(response(answer))
    }

    fn client_of(&self, url: &Url) -> Result<Arc<GuardedClient>, OutboundError> {
        let origin = url.origin().ascii_serialization();
        let mut clients = self.clients.lock();
        if let Some(client) = clients.get(&origin) {
            return Ok(Arc::clone(client));
        }
        if clients.len() >= MAX_ORIGINS {
            // A provider that names ever new hosts: start again.
            clients.clear();
        }
        let client = Arc::new(GuardedClient::new(self.policy_of(url, &origin), self.limits)?);
        clients.insert(origin, Arc::clone(&client));
        Ok(client)
    }

    /// Endpoints on other hosts than the configured one must have public addresses, unless the provider is on this machine.
    fn policy_of(&self, url: &Url, origin: &str) -> Policy {
        let (own, local) = &self.own;
        if *local || own == origin {
            Policy::for_endpoint(url)
        } else {
            Policy::for_discovered_endpoint(url)
        }
    }

    /// What a failed exchange means; its cause, which holds no secret, is only logged.
    pub(super) fn exchange_error(&self, step: &'static str, error: &OutboundError) -> OauthError {
        tracing::warn!(provider = self.provider, step, %error, "a sign-in provider failed");
        match error {
            OutboundError::Timeout { .. } => OauthError::Slow,
            OutboundError::Refused(_)
            | OutboundError::Unreachable(_)
            | OutboundError::TooLarge { .. }
            | OutboundError::Broken(_) => OauthError::Failed(step),
        }
    }

    /// An answer that can't be used. Of its text nothing is logged: it may hold tokens.
    pub(super) fn answer_error(&self, step: &'static str, why: &'static str) -> OauthError {
        tracing::warn!(provider = self.provider, step, why, "a sign-in provider failed");
        OauthError::Failed(step)
    }
}

/// The client of the `openidconnect` crate.
impl<'c> AsyncHttpClient<'c> for ProviderClient {
    type Error = OutboundError;
    type Future = BoxFuture<'c, Result<HttpResponse, OutboundError>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(self.send(request))
    }
}

fn response(answer: OutboundResponse) -> HttpResponse {
    let mut response = HttpResponse::new(answer.body.to_vec());
    *response.status_mut() = answer.status;
    *response.headers_mut() = answer.headers;
    response
}
