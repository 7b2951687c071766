//! One request and one repair: an unusable answer is sent back once with the reason.

use std::time::Instant;

use serde_json::Value;

use super::client::{ChatClient, Completion, LlmError};
use super::prompt::{self, Message};

/// Sends the request, parses the answer, and asks once more if it can't be parsed. Everything must finish by `until`.
///
/// # Errors
/// The failure of the endpoint, or [`LlmError::Unusable`] when the second answer is also unusable.
pub async fn ask<T>(
    client: &ChatClient,
    mut messages: Vec<Message>,
    format: &Value,
    until: Instant,
    read: impl Fn(&Completion) -> Result<T, String>,
) -> Result<T, LlmError> {
    let first = client.complete(&messages, format, until).await?;
    let wrong = match read(&first) {
        Ok(answer) => return Ok(answer),
        Err(wrong) => wrong,
    };
    tracing::debug!(%wrong, "language model answer is sent back for repair");
    messages.extend(prompt::repair(&first.content, &wrong));
    let second = client.complete(&messages, format, until).await?;
    read(&second).map_err(LlmError::Unusable)
}
