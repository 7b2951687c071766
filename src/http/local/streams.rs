//! Server-sent events (WHATWG HTML, section 9.2): log and telemetry lines as they are written.
//!
//! A frame is `data: <line>`, then `id: <id>`, then a blank line, and holds one line of the file. An idle stream sends
//! a comment at intervals, which keeps the connection open and reveals a disconnected client.

use std::convert::Infallible;
use std::time::Duration;

use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use actix_web::{HttpRequest, HttpResponse, web};
use bytes::{Bytes, BytesMut};
use futures_util::stream::{Stream, unfold};
use utoipa::ToSchema;

use super::body::query_of;
use super::error::LocalError;
use super::{LocalState, stream};
use crate::local::{Event, Peer, StreamKind, Subscription};

const KEEP_ALIVE: Bytes = Bytes::from_static(b": keep-alive\n\n");
/// A client that receives no event within this time is sent a comment, so that it knows it is connected.
const GREETING: Duration = Duration::from_millis(50);
/// Frames that are ready are sent together, up to about this many bytes.
const CHUNK: usize = 32 * 1024;
/// Longest id of an event, in characters.
const MAX_EVENT_ID: usize = 1000;

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(stream("/api/logs/stream").route(web::get().to(logs)));
    cfg.service(stream("/api/telemetry/stream").route(web::get().to(telemetry)));
}

#[derive(utoipa::OpenApi)]
#[openapi(paths(logs, telemetry))]
pub(super) struct Docs;

/// One frame of the stream of the log.
#[derive(ToSchema)]
#[schema(example = json!({
    "data": "{\"timestamp\":\"2026-01-02T03:04:05.678901Z\",\"level\":\"INFO\",\"fields\":{\"message\":\"request answered\"}}",
    "id": "threat-memory.2026-01-02.log:4711",
}))]
#[allow(dead_code, reason = "describes what `write_frame` writes")]
struct LogEvent {
    /// A line of the log: JSON.
    data: String,
    /// Names the line, for `Last-Event-ID`.
    id: String,
}

/// One frame of the stream of the telemetry.
#[derive(ToSchema)]
#[schema(example = json!({
    "data": "{\"event_type\":\"recall\",\"timestamp\":1767323045.678,\"query\":\"APT28\",\"result_count\":5}",
    "id": "telemetry-2026-01-02.jsonl:815",
}))]
#[allow(dead_code, reason = "describes what `write_frame` writes")]
struct TelemetryEvent {
    /// An entry of the telemetry: JSON.
    data: String,
    /// Names the entry, for `Last-Event-ID`.
    id: String,
}

/// Follows the log.
///
/// Server-sent events, one line each, that never end. A new client gets the last ten lines first. The stream goes on
/// after the event named by `Last-Event-ID`.
#[utoipa::path(
    get, path = "/api/logs/stream", tag = "Streams", operation_id = "follow_logs",
    params(
        ("Last-Event-ID" = Option<String>, Header, nullable = false, description = "Id of the last event received."),
        ("last_event_id" = Option<String>, Query, description = "The same, for a page that can't set the header."),
    ),
    responses((status = 200, description = "The stream.", body = LogEvent, content_type = "text/event-stream")),
)]
async fn logs(request: HttpRequest, state: web::Data<LocalState>) -> Result<HttpResponse, LocalError> {
    follow(&request, &state, StreamKind::Logs).await
}

/// Follows the telemetry.
///
/// Server-sent events, one entry each, that never end. A new client gets today's entries first. The stream goes on
/// after the event named by `Last-Event-ID`.
#[utoipa::path(
    get, path = "/api/telemetry/stream", tag = "Streams", operation_id = "follow_telemetry",
    params(
        ("Last-Event-ID" = Option<String>, Header, nullable = false, description = "Id of the last event received."),
        ("last_event_id" = Option<String>, Query, description = "The same, for a page that can't set the header."),
    ),
    responses((status = 200, description = "The stream.", body = TelemetryEvent, content_type = "text/event-stream")),
)]
async fn telemetry(request: HttpRequest, state: web::Data<LocalState>) -> Result<HttpResponse, LocalError> {
    follow(&request, &state, StreamKind::Telemetry).await
}

async fn follow(
    request: &HttpRequest,
    state: &LocalState,
    followed: StreamKind,
) -> Result<HttpResponse, LocalError> {
    let header = request
        .headers()
        .get("last-event-id")
        .and_then(|value| value.to_str().ok());
    // A page that reopens a stream can't set headers.
    let parameter = query_of(request, |fields| {
        fields.optional_text("last_event_id", MAX_EVENT_ID)
    })?;
    let last_event_id = header.map(str::to_owned).or(parameter);
    let peer = request.conn_data::<Peer>().cloned();
    let subscription = state.memory.follow(followed, last_event_id, peer).await?;
    let heartbeat = Duration::from_secs(state.settings().web.heartbeat_seconds);
    Ok(event_stream(subscription, heartbeat))
}

/// The response that streams a followed file until the client disconnects, falls behind, or the service stops. Dropping
/// its body frees the slot. `heartbeat` is the longest idle time between frames.
fn event_stream(subscription: Subscription, heartbeat: Duration) -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, "text/event-stream; charset=utf-8"))
        .insert_header((CACHE_CONTROL, "no-store"))
        // Stops proxies from buffering the stream.
        .insert_header(("x-accel-buffering", "no"))
        .streaming(chunks(subscription, heartbeat))
}

fn chunks(subscription: Subscription, heartbeat: Duration) -> impl Stream<Item = Result<Bytes, Infallible>> {
    let first = (subscription, GREETING.min(heartbeat));
    unfold(first, move |(mut subscription, patience)| async move {
        let chunk = match tokio::time::timeout(patience, subscription.next()).await {
            Err(_) => KEEP_ALIVE,
            Ok(None) => return None,
            Ok(Some(event)) => collect_frames(event, &mut subscription),
        };
        Some((Ok(chunk), (subscription, heartbeat)))
    })
}

/// The frames of an event and of all events that are ready.
fn collect_frames(first: Event, subscription: &mut Subscription) -> Bytes {
    let mut chunk = BytesMut::new();
    write_frame(&mut chunk, &first);
    while chunk.len() < CHUNK {
        let Some(event) = subscription.ready() else { break };
        write_frame(&mut chunk, &event);
    }
    chunk.freeze()
}

/// A carriage return ends a line in the protocol, so each part of the text gets its own `data:` field.
fn write_frame(chunk: &mut BytesMut, event: &Event) {
    for piece in event.line.split(['\r', '\n']) {
        for part in ["data: ", piece, "\n"] {
            chunk.extend_from_slice(part.as_bytes());
        }
    }
    for part in ["id: ", &event.id, "\n\n"] {
        chunk.extend_from_slice(part.as_bytes());
    }
}

#[cfg(test)]
mod tests;
