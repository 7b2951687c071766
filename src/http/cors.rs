//! Cross-origin requests of web pages (Fetch standard, section CORS protocol), for the origins that the operator names.

use actix_cors::{Cors, CorsError};
use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::http::header::{
    AUTHORIZATION, CONTENT_DISPOSITION, CONTENT_TYPE, ETAG, HeaderName, IF_NONE_MATCH, LOCATION, RETRY_AFTER,
};
use actix_web::middleware::Next;
use actix_web::{Error, ResponseError};

use super::hosted::{HELD_BACK, HostedError};
use super::middleware::{RATE_LIMIT, REQUEST_ID};
use crate::domain::error::DomainError;

/// How long a browser may remember that a request is allowed, in seconds.
const MAX_AGE: usize = 600;

/// Headers of no standard of HTTP: the API key, and those of the Model Context Protocol.
const OWN_HEADERS: [&str; 4] = ["x-api-key", "mcp-protocol-version", "mcp-method", "mcp-name"];

/// The rules for pages of these origins. Credentials are headers that the page sets itself, so it is not allowed to
/// send cookies.
pub fn rules(origins: &[String]) -> Cors {
    let exposed = [
        RETRY_AFTER,
        LOCATION,
        ETAG,
        CONTENT_DISPOSITION,
        REQUEST_ID,
        HELD_BACK,
    ];
    let cors = Cors::default()
        .allowed_methods([
            Method::GET,
            Method::HEAD,
            Method::POST,
            Method::PATCH,
            Method::DELETE,
        ])
        .allowed_headers([AUTHORIZATION, CONTENT_TYPE, IF_NONE_MATCH, REQUEST_ID])
        .allowed_headers(OWN_HEADERS.map(HeaderName::from_static))
        .expose_headers(exposed.into_iter().chain(RATE_LIMIT))
        .max_age(MAX_AGE);
    origins
        .iter()
        .fold(cors, |cors, origin| cors.allowed_origin(origin))
}

/// Gives a refused preflight the body of the API.
pub async fn refusals(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let response = next.call(request).await?;
    let error = response.response().error();
    let Some(refusal) = error.and_then(|error| error.as_error::<CorsError>()) else {
        return Ok(response.map_into_boxed_body());
    };
    let refused = HostedError::from(DomainError::Forbidden(refusal.to_string()));
    Ok(response.into_response(refused.error_response()))
}
