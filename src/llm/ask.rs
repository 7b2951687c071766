//! One question and one repair: an answer that can't be used is sent back once with what is wrong with it.

use std::time::Instant;

use serde_json::Value;

use super::client::{ChatClient, Completion, LlmError};
use super::prompt::{self, Message};

/// Asks, reads the answer, and asks once more when it can't be read. All of it ends at `until`.
///
/// # Errors
/// The failure of the endpoint, or [`LlmError::Unusable`] when the second answer is no better.
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
