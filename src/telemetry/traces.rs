//! Traces: where the time of a request goes, sent to a receiver over OTLP/HTTP (OpenTelemetry protocol 1.x, protobuf).
//!
//! A request is a span, and below it each message to an actor (`wait` for its gate, `work`, and `store` for each statement
//! of it) and each call to another server. The spans have a target of their own, which is off without a receiver, so that they
//! cost nothing then. They name actors, messages, routes and hosts; they never hold what somebody sent or is shown.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actix_web::http::header::HeaderMap as RequestHeaders;
use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use opentelemetry::propagation::{Extractor, Injector, TextMapPropagator};
use opentelemetry::trace::TracerProvider;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use tokio::runtime::Handle;
use tracing::field::Empty;
use tracing::{Span, Subscriber, info_span};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;
use url::Url;

use crate::outbound::{GuardedClient, Limits};

/// Target of the spans of traces.
pub const TARGET: &str = "traces";
/// Where a receiver takes spans, below its URL.
const PATH: &str = "v1/traces";
const TIMEOUT: Duration = Duration::from_secs(10);
/// Largest answer of a receiver, in bytes.
const ANSWER: usize = 64 << 10;
/// How long a stop waits for the last spans.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Sends the spans that still wait when it is dropped.
#[derive(Debug)]
pub(super) struct TraceGuard(SdkTracerProvider);

impl Drop for TraceGuard {
    fn drop(&mut self) {
        // A receiver that is away was told of before.
        self.0.shutdown_with_timeout(FLUSH_TIMEOUT).ok();
    }
}

/// The layer that sends spans of `percent` of all traces to the receiver at `url`.
///
/// # Errors
/// When the URL breaks a rule of endpoints, or there is no runtime.
pub(super) fn layer<S>(url: &str, percent: u8) -> Result<(impl Layer<S>, TraceGuard), String>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let (client, url) =
        GuardedClient::of_endpoint(url, PATH, Limits::new(TIMEOUT, ANSWER)).map_err(|error| text(&error))?;
    let receiver = Receiver {
        client: Arc::new(client.untraced()),
        url: url.clone(),
        runtime: Handle::try_current().map_err(|error| text(&error))?,
        is_away: Arc::default(),
    };
    let exporter = SpanExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpBinary)
        .with_http_client(receiver)
        .with_endpoint(url)
        .build()
        .map_err(|error| text(&error))?;
    let resource = Resource::builder_empty()
        .with_service_name(env!("CARGO_PKG_NAME"))
        .with_attribute(opentelemetry::KeyValue::new(
            "service.version",
            env!("CARGO_PKG_VERSION"),
        ))
        .build();
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_sampler(Sampler::TraceIdRatioBased(f64::from(percent) / 100.0))
        .with_resource(resource)
        .build();
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer(env!("CARGO_PKG_NAME")))
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        .with_tracked_inactivity(false)
        .with_filter(filter_fn(|metadata| metadata.target() == TARGET));
    Ok((layer, TraceGuard(provider)))
}

/// The receiver of spans, reached through the guarded client.
#[derive(Clone)]
struct Receiver {
    client: Arc<GuardedClient>,
    url: Url,
    /// Spans are sent from a thread without a runtime.
    runtime: Handle,
    is_away: Arc<AtomicBool>,
}

impl std::fmt::Debug for Receiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Receiver").finish_non_exhaustive()
    }
}

impl Receiver {
    /// Tells the operator once that spans are lost, and once that they arrive again.
    fn note(&self, failure: Option<&str>) {
        let was_away = self.is_away.swap(failure.is_some(), Ordering::Relaxed);
        match failure {
            Some(error) if !was_away => tracing::warn!(error, "traces don't arrive at log.traces_url"),
            None if was_away => tracing::info!("traces arrive again"),
            Some(_) | None => {}
        }
    }
}

#[async_trait]
impl HttpClient for Receiver {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (client, url) = (Arc::clone(&self.client), self.url.clone());
        let (head, body) = request.into_parts();
        let sent = self
            .runtime
            .spawn(async move { client.post(&url, head.headers, body.to_vec()).await });
        let answer = match sent.await? {
            Ok(answer) => answer,
            Err(error) => {
                self.note(Some(&error.to_string()));
                return Err(error.into());
            }
        };
        let status = answer.status;
        self.note((!status.is_success()).then(|| status.to_string()).as_deref());
        Ok(Response::builder().status(status).body(answer.body)?)
    }
}

/// The span of a request, in the trace that its caller names (W3C Trace Context). Where nobody traces, it is for the log alone.
pub fn of_request(method: &str, route: &str, id: &str, headers: &RequestHeaders) -> Span {
    let span = info_span!(
        target: TARGET, parent: None, "request", otel.kind = "server", otel.name = format!("{method} {route}"),
        http.request.method = method, http.route = route, request_id = id, http.response.status_code = Empty,
        otel.status_code = Empty,
    );
    if span.is_disabled() {
        return info_span!("request", request_id = %id, method, %route);
    }
    let caller = TraceContextPropagator::new().extract(&CallerHeaders(headers));
    // Fails only for a span that has begun.
    span.set_parent(caller).ok();
    span
}

/// Records how a request ended.
pub fn answer_request(span: &Span, status: u16) {
    span.record("http.response.status_code", status);
    if status >= 500 {
        span.record("otel.status_code", "ERROR");
    }
}

/// The span of a message to an actor, from the caller's side.
pub fn of_message(actor: &'static str, message: &'static str) -> Span {
    info_span!(target: TARGET, "message", otel.name = format!("{actor} {message}"), actor, message)
}

/// The span of a message's wait for a permit of its actor.
pub fn of_wait() -> Span {
    info_span!(target: TARGET, "wait")
}

/// The span of a message's work; the message's own where nobody traces.
pub fn of_work(message: Span) -> Span {
    let work = info_span!(target: TARGET, parent: &message, "work");
    if work.is_disabled() { message } else { work }
}

/// The span of a statement. Upkeep that belongs to no request has none.
pub fn of_statement() -> Span {
    match Span::current().is_none() {
        true => Span::none(),
        false => info_span!(target: TARGET, "store", otel.kind = "client"),
    }
}

/// The span of a call to another server.
pub fn of_call(method: &str, host: &str) -> Span {
    info_span!(
        target: TARGET, "call", otel.kind = "client", otel.name = format!("{method} {host}"),
        http.request.method = method, server.address = host,
    )
}

/// Adds the place of `span` in its trace to the headers of a call.
pub fn pass_on(span: &Span, headers: &mut HeaderMap) {
    if !span.is_disabled() {
        let propagator = TraceContextPropagator::new();
        propagator.inject_context(&span.context(), &mut CallHeaders(headers));
    }
}

struct CallerHeaders<'a>(&'a RequestHeaders);

impl Extractor for CallerHeaders<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(|name| name.as_str()).collect()
    }
}

struct CallHeaders<'a>(&'a mut HeaderMap);

impl Injector for CallHeaders<'_> {
    fn set(&mut self, key: &str, value: String) {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(key), HeaderValue::try_from(value)) {
            self.0.insert(name, value);
        }
    }
}
