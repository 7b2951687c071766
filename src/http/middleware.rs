//! Middleware for every request: its id, span and metrics, and the rate-limit headers of its response.

use std::time::{Duration, Instant};

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderMap, HeaderName, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use actix_web::middleware::Next;
use actix_web::{Error, HttpMessage};
use metrics::{counter, histogram};
use tracing::Instrument;
use uuid::Uuid;

use super::pages;
use super::problem::whole_seconds;
use crate::actors::rate_limiter::RateState;
use crate::telemetry::traces;

/// Refusals of requests that name something by id are sent at multiples of this, which exceeds the lookup time.
const REFUSAL_STEP: Duration = Duration::from_millis(10);
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The limit that applies, the requests that are left, and the seconds until there are more.
pub(super) const RATE_LIMIT: [HeaderName; 3] = [
    HeaderName::from_static("ratelimit-limit"),
    HeaderName::from_static("ratelimit-remaining"),
    HeaderName::from_static("ratelimit-reset"),
];
/// Headers that every answer has unless its handler set others. Nothing may be framed, guessed at or embedded, and no
/// intermediate cache may keep an answer, because answers hold intelligence. Strict-Transport-Security is the business
/// of the proxy that speaks TLS.
const DEFAULTS: [(HeaderName, HeaderValue); 6] = [
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"),
    ),
    (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    // Does not concern requests that CORS allows.
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("same-origin"),
    ),
];

/// Assigns the request an id, logs and counts it, and completes the response headers.
pub async fn observe(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    let id = request_id(request.headers());
    let method = method_label(request.method());
    // The route pattern, not the path: ids in paths would each create a time series.
    let route = request.match_pattern().unwrap_or_else(|| "unmatched".to_owned());
    let span = traces::of_request(method, &route, &id, request.headers());
    let since = Instant::now();
    let mut response = next.call(request).instrument(span.clone()).await?;
    let status = response.status().as_u16();
    traces::answer_request(&span, status);
    let seconds = since.elapsed().as_secs_f64();
    // Before it was routed, a path with percent-encoded letters matched nothing.
    let route = pattern_of(&response).unwrap_or(route);
    let labels = [("method", method.to_owned()), ("route", route)];
    histogram!("http_request_seconds", &labels).record(seconds);
    let labels = [
        labels[0].clone(),
        labels[1].clone(),
        ("status", status.to_string()),
    ];
    counter!("http_requests_total", &labels).increment(1);
    span.in_scope(|| log_answer(&labels[1].1, status, (seconds * 1e6) as u64));
    let rate = response.request().extensions().get::<RateState>().copied();
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(&id) {
        headers.insert(REQUEST_ID, value);
    }
    for (name, value) in DEFAULTS {
        if !headers.contains_key(&name) {
            headers.insert(name, value);
        }
    }
    if let Some(rate) = rate {
        rate_headers(headers, rate);
    }
    Ok(response)
}

/// Logs an answer: those that an operator looks for as warnings, and the files of the pages only where details are wanted.
fn log_answer(route: &str, status: u16, microseconds: u64) {
    match status {
        429 | 500.. => tracing::warn!(status, microseconds, "request answered"),
        ..400 if route.starts_with(pages::FILES_BELOW) => {
            tracing::debug!(status, microseconds, "request answered");
        }
        _ => tracing::info!(status, microseconds, "request answered"),
    }
}

/// Delays a refusal of a request that names something by id, so that response times do not reveal whether something
/// exists that the caller may not see.
pub async fn equalize_refusal_time(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    let since = Instant::now();
    let response = next.call(request).await?;
    let names_something = pattern_of(&response).is_some_and(|pattern| pattern.contains('{'));
    if names_something && response.status().is_client_error() {
        let steps = since.elapsed().as_micros() / REFUSAL_STEP.as_micros() + 1;
        let until = since + REFUSAL_STEP * u32::try_from(steps).unwrap_or(1);
        tokio::time::sleep_until(until.into()).await;
    }
    Ok(response)
}

/// The pattern of the route that answered.
fn pattern_of<B>(response: &ServiceResponse<B>) -> Option<String> {
    response.request().match_pattern()
}

/// The method as a label. Clients may send any token as a method, and each label value costs memory for good.
fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PATCH => "PATCH",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

/// The client's request id if it is safe to log, so that logs on both sides can be correlated; otherwise a new one.
fn request_id(headers: &HeaderMap) -> String {
    let given = headers.get(REQUEST_ID).and_then(|value| value.to_str().ok());
    let harmless = |id: &&str| {
        (1..=64).contains(&id.len())
            && id
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
    };
    given
        .filter(harmless)
        .map_or_else(|| Uuid::now_v7().to_string(), str::to_owned)
}

fn rate_headers(headers: &mut HeaderMap, rate: RateState) {
    let figures = [
        rate.limit.into(),
        rate.remaining.into(),
        whole_seconds(rate.reset),
    ];
    for (name, figure) in RATE_LIMIT.into_iter().zip(figures) {
        headers.insert(name, HeaderValue::from(figure));
    }
}

/// Answers HEAD as GET (RFC 9110 section 9.3.2), whose body the server omits, and lists it beside GET in `Allow`.
pub(super) async fn head_as_get(
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse, Error> {
    if request.method() == Method::HEAD {
        request.head_mut().method = Method::GET;
    }
    let mut response = next.call(request).await?;
    let allow = response
        .headers()
        .get(ALLOW)
        .and_then(|allow| allow.to_str().ok());
    let with_head = allow.map(|allow| HeaderValue::try_from(allow.replacen("GET", "GET, HEAD", 1)));
    if let Some(Ok(with_head)) = with_head {
        response.headers_mut().insert(ALLOW, with_head);
    }
    Ok(response.map_into_boxed_body())
}
