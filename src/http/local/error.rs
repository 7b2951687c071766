//! The local API's errors: `{"detail": …}`, always JSON.

use std::fmt;

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, ResponseError};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::domain::error::DomainError;
use crate::http::problem::{self, Problem, RETRY_SECONDS};
use crate::http::wire;
use crate::local::MemoryError;

pub(super) const KEY_REQUIRED: &str = "Valid API key required";
pub(super) const SET_A_KEY: &str = "Set LOCAL_WEB_API_KEY before exposing the web API";
pub(super) const RATE_LIMITED: &str = "Rate limit exceeded";
pub(super) const NO_CAPACITY: &str = "Write capacity exhausted; retry shortly";
pub(super) const BAD_FORMAT: &str = "Unsupported synthesis format";
pub(super) const BAD_BODY: &str = "There was an error parsing the body";
const INTERNAL: &str = "Internal Server Error";

/// An error of the local API.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ErrorAnswer)]
pub(super) struct ErrorBody {
    /// What went wrong.
    detail: String,
}

impl ErrorBody {
    pub fn new(detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Self { detail }
    }
}

/// Body of a refusal of the HTTP layer, which no handler has seen.
pub fn refusal(status: StatusCode) -> String {
    // A text can always be serialised.
    serde_json::to_string(&ErrorBody::new(wire::meaning(status))).unwrap_or_default()
}

/// Every invalid field of a request.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Invalid)]
pub(super) struct InvalidBody {
    detail: Vec<Issue>,
}

/// A field that breaks a rule.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Issue {
    /// The rule in a word.
    #[serde(rename = "type")]
    #[schema(example = "missing")]
    pub kind: &'static str,
    /// Where the field is: `body` or `query`, then its name, with the position of each list item on the way.
    #[schema(value_type = Vec<Place>, example = json!(["body", "query"]))]
    pub loc: Vec<Value>,
    /// The rule.
    #[schema(example = "Field required")]
    pub msg: String,
    /// The value that was sent, or its size if it is longer than 200 characters.
    #[schema(example = json!({"k": 5}))]
    pub input: Value,
    /// The bound that was violated, or where a JSON text is broken.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>, required = false, example = json!({"max_length": 1000}))]
    pub ctx: Option<Value>,
}

/// One step on the way to a field.
#[derive(Debug, ToSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "describes the entries of `loc`")]
enum Place {
    Name(String),
    Position(usize),
}

/// An error response of the local API.
#[derive(Debug)]
pub enum LocalError {
    /// A status with a fixed text defined by the API contract.
    Message(StatusCode, &'static str),
    /// 422 Unprocessable Content.
    Issues(Vec<Value>),
    Domain(DomainError),
    /// 400 Bad Request: a field names something that can't be done.
    BadRequest {
        field: String,
        rule: String,
    },
}

impl LocalError {
    /// The body is not UTF-8, or not readable JSON.
    pub(super) const UNREADABLE: Self = Self::Message(StatusCode::BAD_REQUEST, BAD_BODY);

    /// A 422 with these issues.
    pub fn issues<T: Serialize>(issues: &[T]) -> Self {
        Self::Issues(issues.iter().map(|issue| json!(issue)).collect())
    }

    /// The error of a request that is well formed: a field that breaks a rule of the memory is a 400.
    pub(super) fn bad_request(error: MemoryError) -> Self {
        match error {
            MemoryError::Domain(DomainError::Invalid { field, rule }) => Self::BadRequest { field, rule },
            MemoryError::Domain(_) | MemoryError::WriteCapacity | MemoryError::Open(_) => error.into(),
        }
    }

    fn retry_after(&self) -> Option<u64> {
        match self {
            Self::Message(StatusCode::TOO_MANY_REQUESTS, _) => Some(RETRY_SECONDS),
            Self::Domain(error) => problem::retry_after(error),
            Self::Message(..) | Self::Issues(_) | Self::BadRequest { .. } => None,
        }
    }
}

impl Problem for LocalError {
    const NO_ROUTE: Self = Self::Message(StatusCode::NOT_FOUND, "Not Found");
    const NO_METHOD: Self = Self::Message(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed");
}

impl From<DomainError> for LocalError {
    fn from(error: DomainError) -> Self {
        Self::Domain(error)
    }
}

impl fmt::Display for LocalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(_, text) => f.write_str(text),
            Self::Issues(issues) => write!(f, "{} invalid fields", issues.len()),
            Self::BadRequest { field, rule } => write!(f, "{field}: {rule}"),
            Self::Domain(DomainError::RateLimited { .. }) => f.write_str(RATE_LIMITED),
            Self::Domain(DomainError::Internal { .. }) => f.write_str(INTERNAL),
            Self::Domain(error) => error.fmt(f),
        }
    }
}

impl ResponseError for LocalError {
    fn status_code(&self) -> StatusCode {
        match self {
            Self::Message(status, _) => *status,
            Self::Issues(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::BadRequest { .. } => StatusCode::BAD_REQUEST,
            Self::Domain(error) => problem::status_of(error, StatusCode::UNPROCESSABLE_ENTITY),
        }
    }

    fn error_response(&self) -> HttpResponse {
        if let Self::Domain(error) = self {
            problem::log(error);
        }
        let detail = match self {
            Self::Issues(issues) => json!(issues),
            Self::Domain(DomainError::Invalid { field, rule }) => {
                let mut loc = vec![json!("body")];
                loc.extend(field.split('.').map(|part| json!(part)));
                json!([{"type": "value_error", "loc": loc, "msg": format!("Value error, {rule}"), "input": null}])
            }
            Self::Message(..) | Self::Domain(_) | Self::BadRequest { .. } => json!(self.to_string()),
        };
        problem::response(self.status_code(), self.retry_after(), json!({"detail": detail}))
    }
}
