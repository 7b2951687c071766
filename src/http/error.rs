//! The hosted API's errors: `{error, details?}` and the status of each kind, in one match.

use std::fmt;

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::StatusCode;
use actix_web::http::header::{ALLOW, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use actix_web::middleware::Next;
use actix_web::{Error, HttpResponse, ResponseError};
use serde::Serialize;

use crate::domain::error::{DomainError, ErrorKind};

/// Seconds a client should wait after a 503.
const RETRY_SECONDS: u64 = 1;

/// How many objects an export left out because a marking of theirs is not defined.
pub const HELD_BACK: HeaderName = HeaderName::from_static("x-held-back");

/// Body of every non-2xx answer of the hosted API.
#[derive(Debug, Serialize)]
pub struct ErrorBody {
    pub error: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
}

/// A [`DomainError`] on its way to a client of the hosted API.
#[derive(Debug)]
pub struct HostedError(pub DomainError);

impl From<DomainError> for HostedError {
    fn from(error: DomainError) -> Self {
        Self(error)
    }
}

impl fmt::Display for HostedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl ResponseError for HostedError {
    fn status_code(&self) -> StatusCode {
        match self.0.kind() {
            ErrorKind::Invalid => StatusCode::BAD_REQUEST,
            ErrorKind::Unauthenticated => StatusCode::UNAUTHORIZED,
            ErrorKind::Forbidden => StatusCode::FORBIDDEN,
            ErrorKind::NotFound => StatusCode::NOT_FOUND,
            ErrorKind::Conflict => StatusCode::CONFLICT,
            ErrorKind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            ErrorKind::TooSlow => StatusCode::REQUEST_TIMEOUT,
            ErrorKind::InvalidBundle => StatusCode::UNPROCESSABLE_ENTITY,
            ErrorKind::RateLimited => StatusCode::TOO_MANY_REQUESTS,
            ErrorKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            ErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn error_response(&self) -> HttpResponse {
        if let DomainError::Internal { what, cause } = &self.0 {
            tracing::error!(what, cause, "request failed");
        }
        let details = if let DomainError::InvalidBundle { details } = &self.0 {
            Some(details.clone())
        } else {
            None
        };
        let mut response = HttpResponse::build(self.status_code()).json(ErrorBody {
            error: self.0.to_string(),
            details,
        });
        if self.0.kind() == ErrorKind::Unauthenticated {
            // A 401 must say how to do better (RFC 9110 section 15.5.2).
            response
                .headers_mut()
                .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let DomainError::HeldBack { count } = self.0 {
            response.headers_mut().insert(HELD_BACK, HeaderValue::from(count));
        }
        if let Some(seconds) = self.retry_after() {
            response
                .headers_mut()
                .insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

impl HostedError {
    fn retry_after(&self) -> Option<u64> {
        match &self.0 {
            // Rounded up: who comes back a moment too early is refused again.
            DomainError::RateLimited { retry_after } => Some(retry_after.as_secs() + 1),
            DomainError::Busy { .. } | DomainError::Timeout { .. } | DomainError::StorageUnreachable => {
                Some(RETRY_SECONDS)
            }
            DomainError::Invalid { .. }
            | DomainError::Unauthenticated(_)
            | DomainError::Forbidden(_)
            | DomainError::NotFound(_)
            | DomainError::Conflict(_)
            | DomainError::TooLarge { .. }
            | DomainError::TransactionTooLarge { .. }
            | DomainError::HeldBack { .. }
            | DomainError::TooSlow
            | DomainError::InvalidBundle { .. }
            | DomainError::StorageFailed
            | DomainError::Internal { .. } => None,
        }
    }
}

/// Answer to a path that does not exist.
pub async fn no_route() -> HttpResponse {
    HttpResponse::NotFound().json(ErrorBody {
        error: "no such route".into(),
        details: None,
    })
}

/// Gives the answer to a method that a path does not have its body; which methods there are the framework has said.
pub(super) async fn no_method(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let response = next.call(request).await?;
    if response.status() != StatusCode::METHOD_NOT_ALLOWED {
        return Ok(response.map_into_boxed_body());
    }
    let body = ErrorBody {
        error: "method not allowed".into(),
        details: None,
    };
    let mut answer = HttpResponse::MethodNotAllowed().json(body);
    if let Some(allow) = response.headers().get(ALLOW) {
        answer.headers_mut().insert(ALLOW, allow.clone());
    }
    Ok(response.into_response(answer))
}
