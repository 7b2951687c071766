//! The client itself.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::dns::Resolve;
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, HOST,
    HeaderMap, HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, LOCATION,
    USER_AGENT as USER_AGENT_HEADER,
};
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url, redirect, retry};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use tokio::time::timeout;
use tracing::Instrument;

use super::resolve::{CheckedResolver, SystemResolver};
use super::{Limits, MAX_REDIRECTS, OutboundError, OutboundResponse, body};
use crate::domain::destination::{Policy, Refusal, Rule};
use crate::telemetry::traces;

/// How the service introduces itself to feeds and providers.
pub const USER_AGENT: &str = concat!("threat-memory/", env!("CARGO_PKG_VERSION"));
/// What a request to a feed may carry; everything else could be a credential.
const FEED_HEADERS: [HeaderName; 5] = [
    ACCEPT,
    ACCEPT_LANGUAGE,
    USER_AGENT_HEADER,
    IF_NONE_MATCH,
    IF_MODIFIED_SINCE,
];
/// Longest cause of a failure that is repeated, in characters.
const MAX_CAUSE: usize = 200;

/// An HTTP client that connects only where its policy allows. It reuses connections; share one per policy.
pub struct GuardedClient {
    policy: Arc<Policy>,
    limits: Limits,
    http: Client,
    is_traced: bool,
}

impl GuardedClient {
    /// # Errors
    /// When TLS can't be set up on this machine.
    pub fn new(policy: Policy, limits: Limits) -> Result<Self, OutboundError> {
        Self::with_resolver(policy, limits, Arc::new(SystemResolver))
    }

    /// A client of the endpoint at `base`, and the URL of `path` below it.
    ///
    /// # Errors
    /// When the URL breaks a rule of [`Policy::for_endpoint`], or TLS can't be set up on this machine.
    pub fn of_endpoint(base: &str, path: &str, limits: Limits) -> Result<(Self, Url), OutboundError> {
        let url = format!("{}/{path}", base.trim_end_matches('/'));
        let url = Url::parse(&url).map_err(|_| Refusal::new(Rule::InvalidUrl, ""))?;
        let client = Self::new(Policy::for_endpoint(&url), limits)?;
        let url = client.check(url.as_str())?;
        Ok((client, url))
    }

    /// A client that resolves names with `resolver`. Its addresses are checked like those of the system's resolver.
    ///
    /// # Errors
    /// When TLS can't be set up on this machine.
    pub fn with_resolver(
        policy: Policy,
        limits: Limits,
        resolver: Arc<dyn Resolve>,
    ) -> Result<Self, OutboundError> {
        let policy = Arc::new(policy);
        let checked = CheckedResolver {
            inner: resolver,
            policy: Arc::clone(&policy),
        };
        let mut builder = Client::builder()
            .connect_timeout(limits.connect_timeout)
            // Followed by this client, which checks every step.
            .redirect(redirect::Policy::none())
            .referer(false)
            .dns_resolver(Arc::new(checked));
        if policy.is_public() {
            // A proxy would resolve the name itself, and connect where it likes.
            builder = builder.no_proxy().retry(retry::never()).user_agent(USER_AGENT);
        }
        let http = builder.build().map_err(|error| exchange_failure(&error))?;
        Ok(Self {
            policy,
            limits,
            http,
            is_traced: true,
        })
    }

    /// The same client, whose calls are in no trace.
    pub fn untraced(mut self) -> Self {
        self.is_traced = false;
        self
    }

    /// Parses a URL and checks all rules that need no network.
    ///
    /// # Errors
    /// The rule that the URL breaks.
    pub fn check(&self, url: &str) -> Result<Url, Refusal> {
        self.policy.check(url)
    }

    /// Reads a URL. Of `headers`, a client of [`Policy::public`] sends only those that can't be credentials. It follows
    /// redirects; a client of [`Policy::for_endpoint`] returns them as answers.
    ///
    /// # Errors
    /// [`OutboundError`]; an answer with an error status is none.
    pub async fn get(&self, url: &Url, headers: HeaderMap) -> Result<OutboundResponse, OutboundError> {
        with_timeout(self.limits.total_timeout, self.follow(url, headers)).await
    }

    async fn follow(&self, url: &Url, headers: HeaderMap) -> Result<OutboundResponse, OutboundError> {
        let mut headers = allowed_headers(&self.policy, headers);
        if self.policy.is_public() {
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        }
        let mut url = self.policy.check(url.as_str())?;
        let mut redirects = 0;
        loop {
            let request = self.http.get(url.clone()).headers(headers.clone());
            let sent = self.send(request).await;
            let response = sent.map_err(|error| count_redirects(exchange_failure(&error), redirects))?;
            let Some(location) = self.location(&response) else {
                return self.answer(response).await;
            };
            if redirects == MAX_REDIRECTS {
                let host = url.host_str().unwrap_or_default();
                return Err(Refusal::new(Rule::TooManyRedirects, host).after(redirects).into());
            }
            redirects += 1;
            let next = self.policy.next(&url, location.as_bytes());
            url = next.map_err(|refusal| refusal.after(redirects))?;
        }
    }

    /// Where a redirect leads, if it is to be followed.
    fn location(&self, response: &Response) -> Option<HeaderValue> {
        let follows = matches!(
            response.status(),
            StatusCode::MOVED_PERMANENTLY
                | StatusCode::FOUND
                | StatusCode::SEE_OTHER
                | StatusCode::TEMPORARY_REDIRECT
                | StatusCode::PERMANENT_REDIRECT
        );
        let location = response.headers().get(LOCATION);
        location.filter(|_| follows && self.policy.is_public()).cloned()
    }

    /// Posts JSON to the configured endpoint, within `patience` and the client's own time-out. A client of
    /// [`Policy::public`] refuses.
    ///
    /// # Errors
    /// [`OutboundError`]; an answer with an error status is none.
    pub async fn post_json(
        &self,
        url: &Url,
        bearer: Option<&SecretString>,
        body: &impl Serialize,
        patience: Duration,
    ) -> Result<OutboundResponse, OutboundError> {
        let mut request = self.http.post(self.check_postable(url)?).json(body);
        if let Some(key) = bearer {
            let value = HeaderValue::try_from(format!("Bearer {}", key.expose_secret()));
            let mut value =
                value.map_err(|_| OutboundError::Broken("the key can't be sent in a header".into()))?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        with_timeout(patience.min(self.limits.total_timeout), self.execute(request)).await
    }

    /// Posts bytes to the configured endpoint. The headers name their type and may hold credentials. A client of
    /// [`Policy::public`] refuses.
    ///
    /// # Errors
    /// [`OutboundError`]; an answer with an error status is none.
    pub async fn post(
        &self,
        url: &Url,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<OutboundResponse, OutboundError> {
        let request = self.post_request(url, headers, body)?;
        with_timeout(self.limits.total_timeout, self.execute(request)).await
    }

    /// Like [`GuardedClient::post`], for an answer whose body is read piece by piece: it may have any size and take any time, as
    /// long as a piece comes within the client's time-out.
    ///
    /// # Errors
    /// [`OutboundError`]; an answer with an error status is none.
    pub async fn post_for_stream(
        &self,
        url: &Url,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<OutboundStream, OutboundError> {
        let request = self.post_request(url, headers, body)?;
        let limit = self.limits.total_timeout;
        let sent = timeout(limit, self.send(request)).await;
        let response = sent.map_err(|_| timed_out(limit))?;
        Ok(OutboundStream {
            response: response.map_err(|error| exchange_failure(&error))?,
            limit,
        })
    }

    fn post_request(&self, url: &Url, headers: HeaderMap, body: Vec<u8>) -> Result<RequestBuilder, Refusal> {
        let request = self.http.post(self.check_postable(url)?).body(body);
        Ok(request.headers(allowed_headers(&self.policy, headers)))
    }

    /// The URL, if this client may post there.
    fn check_postable(&self, url: &Url) -> Result<Url, Refusal> {
        if self.policy.is_public() {
            let host = url.host_str().unwrap_or_default();
            return Err(Refusal::new(Rule::Method, host));
        }
        self.policy.check(url.as_str())
    }

    async fn execute(&self, request: RequestBuilder) -> Result<OutboundResponse, OutboundError> {
        let response = self
            .send(request)
            .await
            .map_err(|error| exchange_failure(&error))?;
        self.answer(response).await
    }

    /// Sends a request, as a span of the trace. A configured endpoint is told its place there; a feed is not, which is a
    /// stranger's.
    async fn send(&self, request: RequestBuilder) -> reqwest::Result<Response> {
        let mut request = request.build()?;
        if !self.is_traced {
            return self.http.execute(request).await;
        }
        let host = request.url().host_str().unwrap_or_default();
        let span = traces::of_call(request.method().as_str(), host);
        if !self.policy.is_public() {
            traces::pass_on(&span, request.headers_mut());
        }
        self.http.execute(request).instrument(span).await
    }

    async fn answer(&self, mut response: Response) -> Result<OutboundResponse, OutboundError> {
        let status = response.status();
        let body = if status.is_success() || self.limits.error_bodies {
            body::read(&mut response, self.limits.response_cap).await?
        } else {
            Default::default()
        };
        let mut headers = std::mem::take(response.headers_mut());
        // They describe the body as it was sent.
        if headers.remove(CONTENT_ENCODING).is_some() {
            headers.remove(CONTENT_LENGTH);
        }
        Ok(OutboundResponse {
            status,
            headers,
            body,
        })
    }
}

/// An answer whose body is read piece by piece.
pub struct OutboundStream {
    response: Response,
    limit: Duration,
}

impl OutboundStream {
    pub fn status(&self) -> StatusCode {
        self.response.status()
    }

    /// The next piece of the body; `None` at its end.
    ///
    /// # Errors
    /// When the connection breaks, or nothing comes within the time-out.
    pub async fn next(&mut self) -> Result<Option<Bytes>, OutboundError> {
        let piece = timeout(self.limit, self.response.chunk()).await;
        let piece = piece.map_err(|_| timed_out(self.limit))?;
        piece.map_err(|error| exchange_failure(&error))
    }

    /// A small body, whole.
    ///
    /// # Errors
    /// As of [`OutboundStream::next`], or when it is larger.
    pub async fn rest(&mut self, cap: usize) -> Result<Bytes, OutboundError> {
        body::read(&mut self.response, cap).await
    }
}

fn timed_out(limit: Duration) -> OutboundError {
    let ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
    OutboundError::Timeout { ms }
}

/// The headers that a client of this policy sends.
pub(super) fn allowed_headers(policy: &Policy, mut headers: HeaderMap) -> HeaderMap {
    if policy.is_public() {
        let allowed = headers.iter().filter(|(name, _)| FEED_HEADERS.contains(name));
        return allowed
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
    }
    // Would choose another server behind the same address.
    headers.remove(HOST);
    headers
}

/// The one time-out of an exchange.
async fn with_timeout(
    limit: Duration,
    exchange: impl Future<Output = Result<OutboundResponse, OutboundError>>,
) -> Result<OutboundResponse, OutboundError> {
    timeout(limit, exchange)
        .await
        .unwrap_or_else(|_| Err(timed_out(limit)))
}

/// What a failed exchange means. The resolver's refusal travels inside the error.
pub(super) fn exchange_failure(error: &reqwest::Error) -> OutboundError {
    let mut cause = error.source();
    while let Some(at) = cause {
        if let Some(refusal) = at.downcast_ref::<Refusal>() {
            return refusal.clone().into();
        }
        cause = at.source();
    }
    // Nothing was sent. A connection that dies later, also by a time-out of the system, may have carried the request.
    if error.is_connect() {
        return OutboundError::Unreachable(root_cause(error));
    }
    OutboundError::Broken(root_cause(error))
}

/// The last of the causes of an error. The first one names the URL.
pub(super) fn root_cause(error: &reqwest::Error) -> String {
    let mut cause = error.source();
    while let Some(next) = cause.and_then(Error::source) {
        cause = Some(next);
    }
    let text = cause.map_or_else(|| "no cause is known".to_owned(), ToString::to_string);
    let shown = text.chars().filter(|c| !c.is_control());
    shown.take(MAX_CAUSE).collect()
}

fn count_redirects(error: OutboundError, redirects: usize) -> OutboundError {
    if let OutboundError::Refused(refusal) = error {
        return refusal.after(redirects).into();
    }
    error
}
