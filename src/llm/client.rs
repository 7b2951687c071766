//! A request to an OpenAI-compatible chat endpoint, with retries.
//!
//! Of an error response only the status reaches logs and messages, as error bodies of such servers repeat parts of keys
//! and prompts.

use std::time::{Duration, Instant};

use chrono::DateTime;
use metrics::counter;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{StatusCode, Url};
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Value, json};

use super::prompt::Message;
use crate::clock;
use crate::config::LlmSettings;
use crate::outbound::{GuardedClient, Limits, OutboundError, Rule};

/// Maximum size of a response in bytes.
const MAX_RESPONSE: usize = 2 << 20;
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const MAX_PAUSE: Duration = Duration::from_secs(8);

/// Why there is no answer, in words without secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LlmError {
    #[error("the endpoint can't be reached")]
    Unreachable,
    /// The host is withheld: users see this text.
    #[error("the endpoint's address is refused ({0})")]
    Refused(Rule),
    #[error("no answer within {0} ms")]
    Slow(u64),
    #[error("no time is left for this text")]
    OutOfTime,
    #[error("the endpoint answered with status {0}")]
    Status(u16),
    #[error("the answer is larger than {MAX_RESPONSE} bytes")]
    TooLarge,
    #[error("the connection broke while the answer came in")]
    Broken,
    #[error("the endpoint's answer is not a chat completion")]
    NotACompletion,
    #[error("the answer is unusable, also after one repair: {0}")]
    Unusable(String),
}

impl LlmError {
    /// Whether the model answered, but unusably.
    pub fn is_answer(&self) -> bool {
        matches!(self, Self::Unusable(_) | Self::TooLarge | Self::NotACompletion)
    }

    /// Whether other requests would fail too. Time-outs and statuses that are not specific to this request count as an
    /// outage.
    pub fn is_outage(&self) -> bool {
        match self {
            Self::Unusable(_) | Self::TooLarge | Self::NotACompletion => false,
            // A wrong key or path, or too many requests, affects every request; 400 or 413 only this one.
            Self::Status(status) => {
                !(400..500).contains(status) || matches!(status, 401..=405 | 407 | 408 | 429)
            }
            Self::Unreachable | Self::Refused(_) | Self::Slow(_) | Self::OutOfTime | Self::Broken => true,
        }
    }
}

/// The model's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    pub content: String,
    /// The output reached the length limit.
    pub cut_off: bool,
}

/// Client of `POST {base_url}/chat/completions`.
pub struct ChatClient {
    settings: LlmSettings,
    url: Url,
    key: Option<SecretString>,
    http: GuardedClient,
}

/// A failed attempt.
struct FailedAttempt {
    error: LlmError,
    /// Whether to retry, and the delay if the endpoint states one.
    retry: bool,
    after: Option<Duration>,
}

impl FailedAttempt {
    fn permanent(error: LlmError) -> Self {
        Self {
            error,
            retry: false,
            after: None,
        }
    }

    fn transient(error: LlmError) -> Self {
        Self {
            error,
            retry: true,
            after: None,
        }
    }
}

#[derive(Deserialize)]
struct Body {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    message: Content,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Content {
    #[serde(default)]
    content: Option<String>,
}

impl ChatClient {
    /// # Errors
    /// When the base URL is no endpoint of [`Policy::for_endpoint`](crate::outbound::Policy::for_endpoint), or TLS can't be set up on this machine.
    pub fn new(settings: LlmSettings, key: Option<SecretString>) -> Result<Self, OutboundError> {
        let limits = Limits {
            // An error's body is never used.
            error_bodies: false,
            ..Limits::new(Duration::from_millis(settings.timeout_ms), MAX_RESPONSE)
        };
        let (http, url) = GuardedClient::of_endpoint(&settings.base_url, "chat/completions", limits)?;
        Ok(Self {
            settings,
            url,
            key,
            http,
        })
    }

    /// Requests an answer in the given format. Retries after 429, 5xx or a time-out, all of it before `until`.
    ///
    /// # Errors
    /// The failure of the last attempt.
    pub async fn complete(
        &self,
        messages: &[Message],
        format: &Value,
        until: Instant,
    ) -> Result<Completion, LlmError> {
        let body = json!({
            "model": self.settings.model,
            "messages": messages,
            "temperature": 0,
            "max_tokens": self.settings.max_tokens,
            "response_format": format,
        });
        let timeout = Duration::from_millis(self.settings.timeout_ms);
        let mut tries = 0;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(LlmError::OutOfTime);
            }
            let failure = match self.attempt(&body, left.min(timeout)).await {
                Ok(completion) => {
                    counter!("llm_requests_total", "outcome" => "answered").increment(1);
                    return Ok(completion);
                }
                Err(failure) => failure,
            };
            counter!("llm_requests_total", "outcome" => "failed").increment(1);
            tracing::debug!(error = %failure.error, tries, "language model request failed");
            let pause = failure.after.unwrap_or_else(|| backoff(tries));
            let left = until.saturating_duration_since(Instant::now());
            // Never retry earlier than the endpoint asks; if that is too late, give up.
            if !failure.retry || tries >= self.settings.retries || pause > timeout || pause >= left {
                return Err(failure.error);
            }
            tokio::time::sleep(pause).await;
            tries += 1;
        }
    }

    async fn attempt(&self, body: &Value, limit: Duration) -> Result<Completion, FailedAttempt> {
        let posted = self
            .http
            .post_json(&self.url, self.key.as_ref(), body, limit)
            .await;
        let answer = posted.map_err(failure_of)?;
        if !answer.status.is_success() {
            return Err(FailedAttempt {
                error: LlmError::Status(answer.status.as_u16()),
                retry: answer.status == StatusCode::TOO_MANY_REQUESTS || answer.status.is_server_error(),
                after: retry_after(&answer.headers),
            });
        }
        completion(&answer.body).ok_or_else(|| FailedAttempt::permanent(LlmError::NotACompletion))
    }
}

fn completion(bytes: &[u8]) -> Option<Completion> {
    let body: Body = serde_json::from_slice(bytes).ok()?;
    let choice = body.choices.into_iter().next()?;
    Some(Completion {
        cut_off: choice.finish_reason.as_deref() == Some("length"),
        // A refusal has no content; the empty answer is later rejected as unusable.
        content: choice.message.content.unwrap_or_default(),
    })
}

fn failure_of(error: OutboundError) -> FailedAttempt {
    match error {
        OutboundError::Refused(refusal) => FailedAttempt::permanent(LlmError::Refused(refusal.rule)),
        OutboundError::Unreachable(_) => FailedAttempt::transient(LlmError::Unreachable),
        OutboundError::Timeout { ms } => FailedAttempt::transient(LlmError::Slow(ms)),
        OutboundError::TooLarge { .. } => FailedAttempt::permanent(LlmError::TooLarge),
        OutboundError::Broken(_) => FailedAttempt::transient(LlmError::Broken),
    }
}

/// Parses Retry-After (RFC 9110 section 10.2.3): seconds, or a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = DateTime::parse_from_rfc2822(value).ok()?;
    let wait = date.signed_duration_since(clock::now());
    // A date in the past means at once.
    Some(wait.to_std().unwrap_or_default())
}

/// Exponential back-off with full jitter, so that many clients don't retry at the same time.
fn backoff(tries: u32) -> Duration {
    let ceiling = FIRST_PAUSE.saturating_mul(1 << tries.min(10)).min(MAX_PAUSE);
    ceiling.mul_f64(rand::random_range(0.0..=1.0))
}

#[cfg(test)]
mod tests;
