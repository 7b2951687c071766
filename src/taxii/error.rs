//! Why a pull failed.

use std::fmt;
use std::time::Duration;

use reqwest::StatusCode;
use serde::Deserialize;
use thiserror::Error;

use crate::outbound::{OutboundError, Refusal};

/// Longest text of the far side in an error, in characters.
const MAX_QUOTE_CHARS: usize = 200;

/// Who has to act on a [`PullError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PullErrorKind {
    /// The operator: the request is against this service's rules.
    Policy,
    /// Nobody yet: the far side took too long.
    Timeout,
    /// The far side: it can't be reached, refuses, or does not speak TAXII 2.1.
    FarSide,
}

/// Why a pull failed: one sentence on what the far side did. Pages delivered before stay valid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PullError {
    /// The request, or a redirect, breaks a rule on where this service connects to.
    #[error("the collection may not be read: {0}")]
    Refused(Refusal),
    #[error("the collection did not answer within {ms} ms")]
    Timeout { ms: u64 },
    #[error("the collection can't be reached: {0}")]
    Unreachable(String),
    #[error("the collection's response broke off: {0}")]
    Broken(String),
    /// A status other than success, after the retries and waits that it allows.
    #[error("{}", status_message(*.status, *.retry_after, .title.as_deref()))]
    Status {
        status: StatusCode,
        /// How long the far side asked to be left alone.
        retry_after: Option<Duration>,
        /// The title of its TAXII error message (section 3.6.1), shortened.
        title: Option<String>,
    },
    #[error("the collection's page of {objects} objects is larger than the limit of {cap_bytes} bytes")]
    TooLarge { cap_bytes: usize, objects: u32 },
    /// Not a TAXII envelope, for the reason in the text.
    #[error("the collection's answer is not TAXII 2.1: {0}")]
    NotTaxii(String),
    #[error("the collection's answer is not valid JSON at line {line}, column {column}")]
    InvalidJson { line: usize, column: usize },
    /// The pages lead nowhere, for the reason in the text.
    #[error("the collection's pages can't be followed: {0}")]
    Stuck(String),
    #[error("the collection has more than {max_pages} pages, the limit of one pull")]
    TooManyPages { max_pages: u32 },
}

impl PullError {
    /// Who has to act.
    pub fn kind(&self) -> PullErrorKind {
        match self {
            PullError::Refused(_) => PullErrorKind::Policy,
            PullError::Timeout { .. } => PullErrorKind::Timeout,
            PullError::Unreachable(_)
            | PullError::Broken(_)
            | PullError::Status { .. }
            | PullError::TooLarge { .. }
            | PullError::NotTaxii(_)
            | PullError::InvalidJson { .. }
            | PullError::Stuck(_)
            | PullError::TooManyPages { .. } => PullErrorKind::FarSide,
        }
    }

    /// The error of a request for a page of `objects` objects.
    pub(super) fn of_request(error: OutboundError, objects: u32) -> Self {
        match error {
            OutboundError::Refused(refusal) => PullError::Refused(refusal),
            OutboundError::Unreachable(reason) => PullError::Unreachable(reason),
            OutboundError::Timeout { ms } => PullError::Timeout { ms },
            OutboundError::TooLarge { cap_bytes } => PullError::TooLarge { cap_bytes, objects },
            OutboundError::Broken(reason) => PullError::Broken(reason),
        }
    }

    /// Whether a server that no longer knows a page token answers like this.
    pub(super) fn refuses_token(&self) -> bool {
        let PullError::Status {
            status, retry_after, ..
        } = self
        else {
            return false;
        };
        matches!(status.as_u16(), 400 | 404 | 410 | 416)
            || (status.is_server_error() && retry_after.is_none())
    }
}

fn status_message(status: StatusCode, retry_after: Option<Duration>, title: Option<&str>) -> String {
    let mut text = format!("the collection answered {}", StatusName(status));
    match status.as_u16() {
        401 | 403 => text.push_str("; this service sends no credentials"),
        404 => text.push_str("; check the feed's URL"),
        406 => text.push_str("; it does not offer application/taxii+json;version=2.1"),
        _ => {}
    }
    if let Some(wait) = retry_after {
        text.push_str(&format!(
            "; it asks to wait {} s, which is more than this pull may still wait",
            wait.as_secs()
        ));
    }
    if let Some(title) = title {
        text.push_str(&format!("; it says \"{title}\""));
    }
    text
}

/// A status with its usual name, if it has one.
struct StatusName(StatusCode);

impl fmt::Display for StatusName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.canonical_reason() {
            Some(reason) => write!(f, "{} {reason}", self.0.as_u16()),
            None => write!(f, "{}", self.0.as_u16()),
        }
    }
}

/// The title of a TAXII error message (section 3.6.1), safe to show. `None` for any other body.
pub(super) fn title_of(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct ErrorMessage {
        title: String,
    }
    let message: ErrorMessage = serde_json::from_slice(body).ok()?;
    Some(quote(&message.title)).filter(|title| !title.is_empty())
}

/// At most [`MAX_QUOTE_CHARS`] characters of a text of the far side, without those that steer a terminal or reorder
/// text.
pub(super) fn quote(text: &str) -> String {
    let steers = |c: &char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    let clean: String = text
        .chars()
        .filter(|c| !steers(c))
        .take(MAX_QUOTE_CHARS)
        .collect();
    clean.trim().to_owned()
}
