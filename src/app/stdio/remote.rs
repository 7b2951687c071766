//! A service at the other end: sends messages to its `POST /mcp`.

use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use rmcp::model::{
    DiscoverResult, ErrorCode, ErrorData, Implementation, ProtocolVersion, RequestMetaObject, ServerConfig,
};
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use url::Url;

use crate::mcp::{Object, said};
use crate::outbound::{GuardedClient, Limits, OutboundError};

/// Time-out of one message. A model may be asked meanwhile.
const PATIENCE: Duration = Duration::from_secs(300);
/// Largest answer: a bundle may be one.
const LARGEST: usize = 256 << 20;
const VERSION: ProtocolVersion = ProtocolVersion::V_2026_07_28;
/// Between these two, a header has what it could not have as it is (SEP-2243).
const ENCODED: [&str; 2] = ["=?base64?", "?="];

/// Why there is no answer.
pub(super) enum Failure {
    /// Nobody listens there: the message was not sent.
    Gone(String),
    /// The service's error.
    Told(ErrorData),
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Gone(why) => why,
            Self::Told(error) => &error.message,
        })
    }
}

/// A service.
pub(super) struct Remote {
    client: GuardedClient,
    url: Url,
    key: Option<SecretString>,
}

impl Remote {
    pub fn new(base: &str, key: Option<SecretString>) -> Result<Self, String> {
        let limits = Limits::new(PATIENCE, LARGEST);
        let (client, url) =
            GuardedClient::of_endpoint(base, "mcp", limits).map_err(|error| format!("--url: {error}"))?;
        Ok(Self { client, url, key })
    }

    /// What the service says of itself.
    ///
    /// # Errors
    /// When it can't be reached or does not take the key.
    pub async fn discover(&self) -> Result<ServerConfig, Failure> {
        let me = Implementation::new("threat-memory", env!("CARGO_PKG_VERSION"));
        let found: DiscoverResult = self.ask("server/discover", Object::new(), None, &me).await?;
        let mut info = ServerConfig::new(found.capabilities.clone());
        if let Some(server) = found.server_info() {
            info = info.with_server_info(server);
        }
        info.instructions = found.instructions;
        Ok(info)
    }

    /// Sends a request and waits for its result. `name` is what the request is about, as the header `Mcp-Name` has it.
    pub async fn ask<T: DeserializeOwned>(
        &self,
        method: &'static str,
        mut params: Object,
        name: Option<&str>,
        client: &Implementation,
    ) -> Result<T, Failure> {
        let meta = RequestMetaObject::with_client_context(VERSION, client.clone(), Default::default());
        params.insert("_meta".into(), serde_json::to_value(meta).unwrap_or_default());
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let headers = self
            .headers(method, name, client)
            .ok_or_else(|| told("the key can't be sent in a header"))?;
        let sent = self
            .client
            .post(&self.url, headers, message.to_string().into_bytes())
            .await;
        let answer = sent.map_err(|error| match &error {
            OutboundError::Unreachable(why) => {
                Failure::Gone(format!("{} can't be reached: {why}", self.place()))
            }
            OutboundError::Refused(_)
            | OutboundError::Timeout { .. }
            | OutboundError::TooLarge { .. }
            | OutboundError::Broken(_) => told(format!("{}: {error}", self.place())),
        })?;
        let mut body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        if let Some(error) = body.get_mut("error").filter(|error| error.is_object()) {
            let error = serde_json::from_value(error.take());
            return Err(error.map_or_else(
                |_| told("the service answered with an unknown error"),
                Failure::Told,
            ));
        }
        let Some(result) = body.get_mut("result").map(Value::take) else {
            return Err(self.refusal(answer.status.as_u16(), &body));
        };
        serde_json::from_value(result)
            .map_err(|error| told(format!("the answer of {} can't be read: {error}", self.place())))
    }

    /// The error for an answer that is no message of the protocol.
    fn refusal(&self, status: u16, body: &Value) -> Failure {
        let said = said(body, &[]);
        let hint = match (status, &self.key) {
            (401, None) => "; set THREAT_MEMORY_API_KEY, or LOCAL_WEB_API_KEY for a local service",
            (401, Some(_)) => "; it does not know the key in THREAT_MEMORY_API_KEY or LOCAL_WEB_API_KEY",
            (404 | 405, _) => "; is it a threat-memory service?",
            _ => "",
        };
        told(format!("{} answered {status}: {said}{hint}", self.place()))
    }

    fn place(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        match self.url.port() {
            Some(port) => format!("the service at {host}:{port}"),
            None => format!("the service at {host}"),
        }
    }

    fn headers(
        &self,
        method: &'static str,
        name: Option<&str>,
        client: &Implementation,
    ) -> Option<HeaderMap> {
        let mut headers = HeaderMap::new();
        let json = HeaderValue::from_static("application/json");
        headers.insert(CONTENT_TYPE, json);
        headers.insert(
            ACCEPT,
            HeaderValue::from_static("application/json, text/event-stream"),
        );
        let version = HeaderValue::from_str(VERSION.as_str()).ok()?;
        headers.insert(HeaderName::from_static("mcp-protocol-version"), version);
        headers.insert(
            HeaderName::from_static("mcp-method"),
            HeaderValue::from_static(method),
        );
        if let Some(name) = name {
            headers.insert(
                HeaderName::from_static("mcp-name"),
                HeaderValue::from_str(&encoded(name)).ok()?,
            );
        }
        if let Ok(agent) = HeaderValue::from_str(&client.name) {
            headers.insert(USER_AGENT, agent);
        }
        if let Some(key) = &self.key {
            let mut value = HeaderValue::try_from(format!("Bearer {}", key.expose_secret())).ok()?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Some(headers)
    }
}

fn told(text: impl Into<std::borrow::Cow<'static, str>>) -> Failure {
    Failure::Told(ErrorData::new(ErrorCode::INTERNAL_ERROR, text, None))
}

/// A value as a header may have it.
fn encoded(value: &str) -> String {
    let is_plain = value.bytes().all(|byte| (0x21..=0x7e).contains(&byte)) && !value.starts_with(ENCODED[0]);
    match is_plain {
        true => value.to_owned(),
        false => format!("{}{}{}", ENCODED[0], STANDARD.encode(value), ENCODED[1]),
    }
}
