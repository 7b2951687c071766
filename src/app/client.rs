//! A service that runs, for commands that speak to it.

use std::io::Write;
use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use serde_json::{Value, json};

use crate::lifecycle::StartError;
use crate::mcp::said;
use crate::outbound::{GuardedClient, Limits, OutboundError, OutboundResponse, OutboundStream};

/// Longest time without a byte.
const PATIENCE: Duration = Duration::from_secs(180);
/// Largest answer that is read whole.
const LARGEST: usize = 256 << 20;
/// Longest wait for more requests where the limit of the workspace is reached, and the wait if the service names none.
const LONGEST_WAIT: u64 = 3600;
const USUAL_WAIT: u64 = 60;

/// Who speaks to a service.
pub enum Credential {
    /// An API key of a hosted service, or the key of a local one.
    Key(SecretString),
    /// A user of a hosted one.
    Account { email: String, password: SecretString },
}

/// A service, and who speaks to it.
pub(super) struct ServiceClient {
    base: String,
    token: Option<SecretString>,
}

impl ServiceClient {
    /// Signs in where that is needed.
    pub async fn new(base: &str, credential: Option<&Credential>) -> Result<Self, StartError> {
        let mut client = Self {
            base: base.to_owned(),
            token: None,
        };
        client.token = match credential {
            None => None,
            Some(Credential::Key(key)) => Some(key.clone()),
            Some(Credential::Account { email, password }) => {
                let body = json!({"email": email, "password": password.expose_secret()});
                let body = client.post("api/auth/login", &body).await?;
                let token = body["access_token"].as_str();
                let missing = || StartError::Setup(format!("{base} answered a sign-in without a token"));
                Some(token.ok_or_else(missing)?.into())
            }
        };
        Ok(client)
    }

    /// Posts to the first of the routes that the service has, and writes its answer to `out` while it comes.
    pub async fn download(
        &self,
        routes: &[&str],
        body: &Value,
        mut out: Box<dyn Write + Send>,
    ) -> Result<(), StartError> {
        for (at, route) in routes.iter().enumerate() {
            let mut answer = self.post_for_stream(route, body).await?;
            if answer.status() == StatusCode::NOT_FOUND && at + 1 < routes.len() {
                continue;
            }
            if !answer.status().is_success() {
                let bytes = answer.rest(LARGEST).await;
                let bytes = bytes.map_err(|error| self.failure(&error))?;
                return Err(self.refusal(answer.status(), &bytes));
            }
            let failed = |error| StartError::Io("the answer".into(), error);
            while let Some(piece) = answer.next().await.map_err(|error| self.failure(&error))? {
                out.write_all(&piece).map_err(failed)?;
            }
            return out.flush().map_err(failed);
        }
        Ok(())
    }

    /// Posts JSON, and returns the JSON of the answer.
    pub async fn post(&self, path: &str, body: &impl Serialize) -> Result<Value, StartError> {
        let body = serde_json::to_vec(body).map_err(|error| StartError::Setup(error.to_string()))?;
        let (client, url) = self.endpoint(path)?;
        let headers = self.headers("application/json")?;
        let answer = self
            .send(async || client.post(&url, headers.clone(), body.clone()).await)
            .await?;
        let no_json = |error| {
            format!(
                "{} answered {} without JSON: {error}",
                self.base,
                answer.status.as_u16()
            )
        };
        serde_json::from_slice(&answer.body).map_err(|error| StartError::Setup(no_json(error)))
    }

    /// Reads an answer of a media type.
    pub async fn get(&self, path: &str, media_type: &'static str) -> Result<OutboundResponse, StartError> {
        let (client, url) = self.endpoint(path)?;
        let mut headers = self.headers("application/json")?;
        headers.insert(ACCEPT, HeaderValue::from_static(media_type));
        self.send(async || client.get(&url, headers.clone()).await).await
    }

    /// Sends a request, again for as long as the limit of requests of the workspace is reached. Signing in is not tried again.
    async fn send(
        &self,
        request: impl AsyncFn() -> Result<OutboundResponse, OutboundError>,
    ) -> Result<OutboundResponse, StartError> {
        loop {
            let answer = request().await;
            let answer = answer.map_err(|error| self.failure(&error))?;
            if answer.status == StatusCode::TOO_MANY_REQUESTS && self.token.is_some() {
                let wait = answer.headers.get(RETRY_AFTER);
                let wait = wait.and_then(|seconds| seconds.to_str().ok()?.parse().ok());
                let seconds = wait.unwrap_or(USUAL_WAIT).clamp(1, LONGEST_WAIT);
                eprintln!("the workspace's limit of requests is reached: going on in {seconds} s");
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                continue;
            }
            return match answer.status.is_success() {
                true => Ok(answer),
                false => Err(self.refusal(answer.status, &answer.body)),
            };
        }
    }

    async fn post_for_stream(&self, path: &str, body: &Value) -> Result<OutboundStream, StartError> {
        let (client, url) = self.endpoint(path)?;
        let headers = self.headers("application/json")?;
        let sent = client.post_for_stream(&url, headers, body.to_string().into_bytes());
        sent.await.map_err(|error| self.failure(&error))
    }

    fn endpoint(&self, path: &str) -> Result<(GuardedClient, reqwest::Url), StartError> {
        let mut limits = Limits::new(PATIENCE, LARGEST);
        limits.error_bodies = true;
        GuardedClient::of_endpoint(&self.base, path, limits).map_err(|error| self.failure(&error))
    }

    fn headers(&self, media_type: &'static str) -> Result<HeaderMap, StartError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        if let Some(token) = &self.token {
            let value = HeaderValue::try_from(format!("Bearer {}", token.expose_secret()));
            let mut value =
                value.map_err(|_| StartError::Setup("the key can't be sent in a header".into()))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Ok(headers)
    }

    fn failure(&self, error: &OutboundError) -> StartError {
        StartError::Setup(format!("{}: {error}", self.base))
    }

    fn refusal(&self, status: StatusCode, body: &[u8]) -> StartError {
        let hint = match (status.as_u16(), &self.token) {
            (401, None) => {
                "; set THREAT_MEMORY_ADMIN_EMAIL and THREAT_MEMORY_ADMIN_PASSWORD, or THREAT_MEMORY_API_KEY, of a hosted \
                 service, or LOCAL_WEB_API_KEY of a local one"
            }
            (404 | 405, _) => "; is it a threat-memory service of this version?",
            _ => "",
        };
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let why = said(&body, &[]);
        StartError::Setup(format!("{} answered {}: {why}{hint}", self.base, status.as_u16()))
    }
}
