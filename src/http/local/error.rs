//! The local API's errors: `{"detail": …}`, always JSON, and the status of each kind in one match.

use std::fmt;
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::http::header::{ALLOW, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use actix_web::{HttpRequest, HttpResponse, ResponseError};
use serde::Serialize;
use serde_json::{Value, json};

use crate::domain::error::{DomainError, ErrorKind};

pub(super) const KEY_REQUIRED: &str = "Valid API key required";
pub(super) const SET_A_KEY: &str = "Set LOCAL_WEB_API_KEY before exposing the web API";
pub(super) const RATE_LIMITED: &str = "Rate limit exceeded";
pub(super) const NO_CAPACITY: &str = "Write capacity exhausted; retry shortly";
pub(super) const BAD_FORMAT: &str = "Unsupported synthesis format";
pub(super) const UNREADABLE: &str = "There was an error parsing the body";
/// Seconds after which a write may be tried again.
const RETRY_SECONDS: u64 = 1;

/// One broken rule of a request, in the shape that clients of the API know.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Issue {
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub loc: Vec<Value>,
    pub msg: String,
    pub input: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ctx: Option<Value>,
}

/// An error on its way to a client of the local API.
#[derive(Debug)]
pub enum LocalError {
    /// A status with a text of the contract.
    Says(StatusCode, &'static str),
    /// 422.
    Issues(Vec<Value>),
    RateLimited(Duration),
    Domain(DomainError),
}

impl LocalError {
    /// 422 for these issues.
    pub fn issues<T: Serialize>(issues: &[T]) -> Self {
        Self::Issues(issues.iter().map(|issue| json!(issue)).collect())
    }

    fn retry_after(&self) -> Option<u64> {
        match self {
            // Rounded up: who comes back a moment too early is refused again.
            Self::RateLimited(wait) => Some(wait.as_secs() + 1),
            Self::Says(StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE, text) => {
                (*text != SET_A_KEY).then_some(RETRY_SECONDS)
            }
            // That takes a person, not a second.
            Self::Domain(DomainError::StorageFailed) => None,
            Self::Domain(error) if error.kind() == ErrorKind::Unavailable => Some(RETRY_SECONDS),
            Self::Says(..) | Self::Issues(_) | Self::Domain(_) => None,
        }
    }
}

impl From<DomainError> for LocalError {
    fn from(error: DomainError) -> Self {
        if let DomainError::RateLimited { retry_after } = error {
            return Self::RateLimited(retry_after);
        }
        Self::Domain(error)
    }
}

impl fmt::Display for LocalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Says(_, text) => f.write_str(text),
            Self::Issues(issues) => write!(f, "{} invalid fields", issues.len()),
            Self::RateLimited(_) => f.write_str(RATE_LIMITED),
            Self::Domain(error) => error.fmt(f),
        }
    }
}

impl ResponseError for LocalError {
    fn status_code(&self) -> StatusCode {
        let error = match self {
            Self::Says(status, _) => return *status,
            Self::Issues(_) => return StatusCode::UNPROCESSABLE_ENTITY,
            Self::RateLimited(_) => return StatusCode::TOO_MANY_REQUESTS,
            Self::Domain(error) => error,
        };
        match error.kind() {
            ErrorKind::Invalid | ErrorKind::InvalidBundle => StatusCode::UNPROCESSABLE_ENTITY,
            ErrorKind::Unauthenticated => StatusCode::UNAUTHORIZED,
            ErrorKind::Forbidden => StatusCode::FORBIDDEN,
            ErrorKind::NotFound => StatusCode::NOT_FOUND,
            ErrorKind::Conflict => StatusCode::CONFLICT,
            ErrorKind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            ErrorKind::TooSlow => StatusCode::REQUEST_TIMEOUT,
            ErrorKind::RateLimited => StatusCode::TOO_MANY_REQUESTS,
            ErrorKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            ErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn error_response(&self) -> HttpResponse {
        let detail = match self {
            Self::Issues(issues) => json!(issues),
            Self::Domain(DomainError::Internal { what, cause }) => {
                tracing::error!(what, cause, "request failed");
                json!("Internal Server Error")
            }
            Self::Domain(DomainError::Invalid { field, rule }) => {
                let mut loc = vec![json!("body")];
                loc.extend(field.split('.').map(|part| json!(part)));
                json!([{"type": "value_error", "loc": loc, "msg": format!("Value error, {rule}"), "input": null}])
            }
            Self::Says(..) | Self::RateLimited(_) | Self::Domain(_) => json!(self.to_string()),
        };
        let mut response = HttpResponse::build(self.status_code()).json(json!({"detail": detail}));
        if self.status_code() == StatusCode::UNAUTHORIZED {
            // A 401 must say how to do better (RFC 9110 section 15.5.2).
            response
                .headers_mut()
                .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(seconds) = self.retry_after() {
            response
                .headers_mut()
                .insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// Answer to a path that does not exist.
pub(super) async fn no_route() -> HttpResponse {
    LocalError::Says(StatusCode::NOT_FOUND, "Not Found").error_response()
}

/// Answer to a method that a path does not have.
pub(super) async fn no_method(request: HttpRequest) -> HttpResponse {
    // Which methods there are is part of the answer (RFC 9110 section 15.5.6).
    let allowed = match request.path() {
        "/api/remember" | "/api/ingest" | "/api/recall" | "/api/synthesize" | "/api/sync" => "POST",
        "/api/config" => "GET, HEAD, PUT",
        path if path.ends_with("/stream") => "GET",
        _ => "GET, HEAD",
    };
    let mut response =
        LocalError::Says(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed").error_response();
    let headers = response.headers_mut();
    headers.insert(ALLOW, HeaderValue::from_static(allowed));
    response
}
