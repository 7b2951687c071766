//! Error responses: status, headers and logging of each kind. Each API words its own errors.

use std::time::Duration;

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::http::StatusCode;
use actix_web::http::header::{ACCEPT, ALLOW, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use actix_web::middleware::{Next, from_fn};
use actix_web::{Error, HttpResponse, Resource, ResponseError, web};
use serde::Serialize;

use crate::domain::error::{DomainError, ErrorKind};

/// Seconds a client should wait after a 503, or when too many writes are pending.
pub(super) const RETRY_SECONDS: u64 = 1;

/// The errors of one API.
pub(super) trait Problem: ResponseError + Sized + 'static {
    /// The path does not exist.
    const NO_ROUTE: Self;
    /// The path does not support the method.
    const NO_METHOD: Self;
}

/// A route as it is registered.
pub(super) trait Endpoint:
    ServiceFactory<ServiceRequest, Config = (), Response = ServiceResponse, Error = Error, InitError = ()>
{
}

impl<T> Endpoint for T where
    T: ServiceFactory<ServiceRequest, Config = (), Response = ServiceResponse, Error = Error, InitError = ()>
{
}

/// The status of an error; `invalid` is the one for `Invalid`.
pub(super) fn status_of(error: &DomainError, invalid: StatusCode) -> StatusCode {
    match error.kind() {
        ErrorKind::Invalid => invalid,
        ErrorKind::Unauthenticated => StatusCode::UNAUTHORIZED,
        ErrorKind::Forbidden => StatusCode::FORBIDDEN,
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::Conflict => StatusCode::CONFLICT,
        ErrorKind::Outdated => StatusCode::PRECONDITION_FAILED,
        ErrorKind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorKind::TooSlow => StatusCode::REQUEST_TIMEOUT,
        ErrorKind::InvalidBundle => StatusCode::UNPROCESSABLE_ENTITY,
        ErrorKind::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        ErrorKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        ErrorKind::NoRoom => StatusCode::INSUFFICIENT_STORAGE,
        ErrorKind::FarSide => StatusCode::BAD_GATEWAY,
        ErrorKind::FarSideSlow => StatusCode::GATEWAY_TIMEOUT,
        ErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Seconds after which a retry may succeed.
pub(super) fn retry_after(error: &DomainError) -> Option<u64> {
    match error {
        DomainError::RateLimited { retry_after } => Some(whole_seconds(*retry_after)),
        DomainError::Busy { .. }
        | DomainError::Overtaken
        | DomainError::Timeout { .. }
        | DomainError::StorageUnreachable => Some(RETRY_SECONDS),
        // A failed disk needs an operator; a retry does not help.
        DomainError::StorageFailed
        | DomainError::AuditFull
        | DomainError::DiskLow { .. }
        | DomainError::StorageDamaged { .. }
        | DomainError::Invalid { .. }
        | DomainError::Unauthenticated(_)
        | DomainError::Forbidden(_)
        | DomainError::NotFound(_)
        | DomainError::Conflict(_)
        | DomainError::Outdated
        | DomainError::TooLarge { .. }
        | DomainError::TransactionTooLarge { .. }
        | DomainError::HeldBack { .. }
        | DomainError::NothingToExport
        | DomainError::TooSlow
        | DomainError::InvalidBundle { .. }
        | DomainError::PullFailed { .. }
        | DomainError::ProviderFailed { .. }
        | DomainError::Internal { .. } => None,
    }
}

/// Rounded up, because a client that retries a moment too early is refused again.
pub(super) fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

/// Logs details that the client does not see.
pub(super) fn log(error: &DomainError) {
    if let DomainError::Internal { what, cause } = error {
        tracing::error!(what, cause, "request failed");
    }
}

/// A response with a body, and the headers that its status requires.
pub(super) fn response(status: StatusCode, retry_after: Option<u64>, body: impl Serialize) -> HttpResponse {
    let mut response = HttpResponse::build(status).json(body);
    let headers = response.headers_mut();
    if status == StatusCode::UNAUTHORIZED {
        // A 401 must name a scheme to authenticate by (RFC 9110 section 15.5.2).
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if status == StatusCode::UNSUPPORTED_MEDIA_TYPE {
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    }
    if let Some(seconds) = retry_after {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Answers a path that does not exist.
pub(super) async fn no_route<P: Problem>() -> HttpResponse {
    P::NO_ROUTE.error_response()
}

/// A resource that answers unsupported methods with 405, in the format of its API.
pub(super) fn resource<P: Problem>(path: &'static str) -> Resource<impl Endpoint> {
    refuse_methods::<P>(web::resource(path))
}

/// Has a resource answer unsupported methods with 405, in the format of its API.
pub(super) fn refuse_methods<P: Problem>(resource: Resource) -> Resource<impl Endpoint> {
    resource.wrap(from_fn(no_method::<P>))
}

/// Gives the router's 405 the body of the API and keeps its `Allow` header (RFC 9110 section 15.5.6).
async fn no_method<P: Problem>(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let response = next.call(request).await?;
    if response.status() != StatusCode::METHOD_NOT_ALLOWED {
        return Ok(response.map_into_boxed_body());
    }
    let mut answer = P::NO_METHOD.error_response();
    if let Some(allow) = response.headers().get(ALLOW) {
        answer.headers_mut().insert(ALLOW, allow.clone());
    }
    Ok(response.into_response(answer))
}
