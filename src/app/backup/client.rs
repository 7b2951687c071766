//! Fetches the archive of a service that runs.

use std::io::Write;
use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

use crate::archive::SoundArchive;
use crate::lifecycle::StartError;
use crate::mcp::said;
use crate::outbound::{GuardedClient, Limits, OutboundError, OutboundStream};

/// Longest time without a byte.
const PATIENCE: Duration = Duration::from_secs(180);
/// Largest answer that is no archive.
const LARGEST: usize = 1 << 20;
/// Where the services write archives: the hosted one, and the local one.
const ROUTES: [&str; 2] = ["api/admin/backup", "api/backup"];

/// Who backs a service up.
pub enum Credential {
    /// The key of a local service.
    Key(SecretString),
    /// An administrator of the operator's workspace of a hosted one.
    Account { email: String, password: SecretString },
}

/// A service.
pub(super) struct ArchiveClient {
    base: String,
    token: Option<SecretString>,
}

impl ArchiveClient {
    /// Signs in where that is needed.
    pub(super) async fn new(base: &str, credential: Option<&Credential>) -> Result<Self, StartError> {
        let mut client = Self {
            base: base.to_owned(),
            token: None,
        };
        client.token = match credential {
            None => None,
            Some(Credential::Key(key)) => Some(key.clone()),
            Some(Credential::Account { email, password }) => {
                let body = json!({"email": email, "password": password.expose_secret()});
                let mut answer = client.post("api/auth/login", &body).await?;
                let body = client.body_of(&mut answer).await?;
                let token = body["access_token"]
                    .as_str()
                    .filter(|_| answer.status().is_success());
                let refused = || client.refusal(answer.status(), &body);
                Some(token.ok_or_else(refused)?.into())
            }
        };
        Ok(client)
    }

    /// Writes the archive to `out`.
    pub(super) async fn fetch(
        &self,
        base: Option<&SoundArchive>,
        passphrase: Option<&SecretString>,
        mut out: Box<dyn Write + Send>,
    ) -> Result<(), StartError> {
        let mut body = json!({});
        if let Some(passphrase) = passphrase {
            body["passphrase"] = passphrase.expose_secret().into();
        }
        if let Some(base) = base {
            let chunks = base
                .state
                .iter()
                .map(|line| format!("{}:{}", line.archive, line.digest));
            body["archives"] = json!(base.header.archives);
            body["chunks"] = chunks.collect();
        }
        let mut answer = self.post(ROUTES[0], &body).await?;
        if answer.status() == StatusCode::NOT_FOUND {
            answer = self.post(ROUTES[1], &body).await?;
        }
        if !answer.status().is_success() {
            let body = self.body_of(&mut answer).await?;
            return Err(self.refusal(answer.status(), &body));
        }
        let failed = |error| StartError::Io("the archive".into(), error);
        while let Some(piece) = answer.next().await.map_err(|error| self.failure(&error))? {
            out.write_all(&piece).map_err(failed)?;
        }
        out.flush().map_err(failed)
    }

    async fn post(&self, path: &str, body: &Value) -> Result<OutboundStream, StartError> {
        let limits = Limits::new(PATIENCE, LARGEST);
        let (client, url) =
            GuardedClient::of_endpoint(&self.base, path, limits).map_err(|error| self.failure(&error))?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(token) = &self.token {
            let value = HeaderValue::try_from(format!("Bearer {}", token.expose_secret()));
            let mut value =
                value.map_err(|_| StartError::Setup("the key can't be sent in a header".into()))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let sent = client.post_for_stream(&url, headers, body.to_string().into_bytes());
        sent.await.map_err(|error| self.failure(&error))
    }

    async fn body_of(&self, answer: &mut OutboundStream) -> Result<Value, StartError> {
        let bytes = answer.rest(LARGEST).await.map_err(|error| self.failure(&error))?;
        Ok(serde_json::from_slice(&bytes).unwrap_or_default())
    }

    fn failure(&self, error: &OutboundError) -> StartError {
        StartError::Setup(format!("{}: {error}", self.base))
    }

    fn refusal(&self, status: StatusCode, body: &Value) -> StartError {
        let hint = match (status.as_u16(), &self.token) {
            (401, None) => {
                "; set THREAT_MEMORY_ADMIN_EMAIL and THREAT_MEMORY_ADMIN_PASSWORD of a hosted service, or \
                 LOCAL_WEB_API_KEY of a local one"
            }
            (404 | 405, _) => "; is it a threat-memory service of this version?",
            _ => "",
        };
        let why = said(body, &[]);
        StartError::Setup(format!("{} answered {}: {why}{hint}", self.base, status.as_u16()))
    }
}
