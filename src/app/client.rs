//! A service that runs, for commands that speak to it.

use std::io::Write;
use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
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
        let sent = client.post(&url, self.headers("application/json")?, body).await;
        let answer = self.succeed(sent)?;
        Ok(serde_json::from_slice(&answer.body).unwrap_or_default())
    }

    /// Reads an answer of a media type.
    pub async fn get(&self, path: &str, media_type: &'static str) -> Result<OutboundResponse, StartError> {
        let (client, url) = self.endpoint(path)?;
        let mut headers = self.headers("application/json")?;
        headers.insert(ACCEPT, HeaderValue::from_static(media_type));
        self.succeed(client.get(&url, headers).await)
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

    fn succeed(
        &self,
        answer: Result<OutboundResponse, OutboundError>,
    ) -> Result<OutboundResponse, StartError> {
        let answer = answer.map_err(|error| self.failure(&error))?;
        match answer.status.is_success() {
            true => Ok(answer),
            false => Err(self.refusal(answer.status, &answer.body)),
        }
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
