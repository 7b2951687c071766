//! Error messages of TAXII (section 3.6.1).

use std::fmt;

use actix_web::http::StatusCode;
use actix_web::http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use actix_web::{HttpResponse, ResponseError};
use serde::Serialize;

use super::media_type::MEDIA_TYPE;
use crate::domain::error::DomainError;
use crate::http::problem::{self, Problem};

/// Body of every refusal.
#[derive(Serialize)]
struct ErrorBody {
    title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    http_status: String,
}

/// A refusal of the TAXII server.
#[derive(Debug)]
pub(super) enum TaxiiError {
    /// A status with a fixed text.
    Message(StatusCode, &'static str),
    Domain(DomainError),
}

impl TaxiiError {
    pub(super) const NOT_ACCEPTABLE: Self = Self::Message(
        StatusCode::NOT_ACCEPTABLE,
        "Accept: must allow application/taxii+json;version=2.1",
    );
    pub(super) const UNSUPPORTED: Self = Self::Message(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "Content-Type: must be application/taxii+json;version=2.1, without Content-Encoding",
    );
}

impl Problem for TaxiiError {
    const NO_ROUTE: Self = Self::Message(StatusCode::NOT_FOUND, "no such resource");
    const NO_METHOD: Self = Self::Message(StatusCode::METHOD_NOT_ALLOWED, "method not allowed");
}

impl From<DomainError> for TaxiiError {
    fn from(error: DomainError) -> Self {
        Self::Domain(error)
    }
}

impl fmt::Display for TaxiiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(_, text) => f.write_str(text),
            Self::Domain(error) => error.fmt(f),
        }
    }
}

impl ResponseError for TaxiiError {
    fn status_code(&self) -> StatusCode {
        match self {
            Self::Message(status, _) => *status,
            Self::Domain(error) => problem::status_of(error, StatusCode::BAD_REQUEST),
        }
    }

    fn error_response(&self) -> HttpResponse {
        let status = self.status_code();
        let mut retry_after = None;
        if let Self::Domain(error) = self {
            problem::log(error);
            retry_after = problem::retry_after(error);
        }
        let body = ErrorBody {
            title: status.canonical_reason().unwrap_or("Error").to_owned(),
            description: Some(self.to_string()),
            http_status: status.as_u16().to_string(),
        };
        let mut response = problem::response(status, retry_after, body);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        if status == StatusCode::UNAUTHORIZED {
            let basic = HeaderValue::from_static(r#"Basic realm="TAXII", charset="UTF-8""#);
            headers.insert(WWW_AUTHENTICATE, basic);
            headers.append(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if status == StatusCode::UNSUPPORTED_MEDIA_TYPE {
            headers.insert(ACCEPT, HeaderValue::from_static(MEDIA_TYPE));
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        response
    }
}
