//! The hosted API's errors: `{error, details?}`.

use std::fmt;

use actix_web::http::StatusCode;
use actix_web::http::header::{ACCEPT, ACCEPT_ENCODING, HeaderName, HeaderValue, LOCATION};
use actix_web::{HttpResponse, ResponseError};
use serde::Serialize;
use uuid::Uuid;

use crate::domain::error::DomainError;
use crate::http::problem::{self, Problem};
use crate::http::wire;

/// Response header with the number of objects withheld from an export because one of their markings is undefined.
pub const HELD_BACK: HeaderName = HeaderName::from_static("x-held-back");

/// Path of a threat-feed batch.
pub(super) fn batch_path(batch: Uuid) -> String {
    format!("/api/threat-intel/batches/{batch}")
}

/// Body of every non-2xx response.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = ErrorAnswer)]
pub(super) struct ErrorBody {
    /// What is wrong; for an invalid field, its path and the rule that it breaks.
    #[schema(example = "the request failed unexpectedly")]
    error: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    details: Option<String>,
}

/// Body of a refusal of the HTTP layer, which no handler has seen.
pub fn refusal(status: StatusCode) -> String {
    let (error, details) = (wire::meaning(status).to_owned(), None);
    // Two texts can always be serialised.
    serde_json::to_string(&ErrorBody { error, details }).unwrap_or_default()
}

/// An error response of the hosted API.
#[derive(Debug)]
pub enum HostedError {
    /// A status with a fixed text defined by the API contract.
    Message(StatusCode, &'static str),
    /// The body is compressed. The answer names the codings that are taken, and no media type, so that a client can tell
    /// which of the two it has to change (RFC 9110 section 12.5.3).
    Encoded,
    Domain(DomainError),
}

impl HostedError {
    /// The console was asked for while it is off.
    pub(super) const NO_CONSOLE: Self = Self::Message(
        StatusCode::NOT_FOUND,
        "the console is off (server.console); the API is described at /docs",
    );
}

impl Problem for HostedError {
    const NO_ROUTE: Self = Self::Message(StatusCode::NOT_FOUND, "no such route");
    const NO_METHOD: Self = Self::Message(StatusCode::METHOD_NOT_ALLOWED, "method not allowed");
}

impl From<DomainError> for HostedError {
    fn from(error: DomainError) -> Self {
        Self::Domain(error)
    }
}

impl fmt::Display for HostedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(_, text) => f.write_str(text),
            Self::Encoded => f.write_str("Content-Encoding: must be identity"),
            Self::Domain(error) => error.fmt(f),
        }
    }
}

impl ResponseError for HostedError {
    fn status_code(&self) -> StatusCode {
        match self {
            Self::Message(status, _) => *status,
            Self::Encoded => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Domain(error) => problem::status_of(error, StatusCode::BAD_REQUEST),
        }
    }

    fn error_response(&self) -> HttpResponse {
        let (mut retry_after, mut details, mut held_back, mut kept_in) = (None, None, None, None);
        if let Self::Domain(error) = self {
            problem::log(error);
            retry_after = problem::retry_after(error);
            if let DomainError::InvalidBundle { details: found } = error {
                details = Some(found.clone());
            }
            if let DomainError::PullFailed { batch, .. } = error {
                let kept = "keeps what was staged before and can be resumed";
                details = batch.map(|batch| format!("batch {batch} {kept}"));
                kept_in = *batch;
            }
            if let DomainError::HeldBack { count } = error {
                held_back = Some(*count);
            }
        }
        let error = self.to_string();
        let mut response = problem::response(self.status_code(), retry_after, ErrorBody { error, details });
        if matches!(self, Self::Encoded) {
            let headers = response.headers_mut();
            headers.remove(ACCEPT);
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        if let Some(count) = held_back {
            response.headers_mut().insert(HELD_BACK, HeaderValue::from(count));
        }
        let location = kept_in.map(|batch| HeaderValue::try_from(batch_path(batch)));
        if let Some(Ok(location)) = location {
            response.headers_mut().insert(LOCATION, location);
        }
        response
    }
}
