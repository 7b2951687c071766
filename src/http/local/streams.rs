//! Server-sent events (WHATWG HTML, section 9.2): the lines of the log and of the telemetry as they are written.
//!
//! A frame is `data: <line>`, then `id: <id>`, then a blank line, and holds one line of the file. A silent stream gets a
//! comment now and then, which keeps it open and shows when the client is gone.

use std::convert::Infallible;
use std::time::Duration;

use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use actix_web::{HttpRequest, HttpResponse, web};
use bytes::{Bytes, BytesMut};
use futures_util::stream::{Stream, unfold};

use super::body::query;
use super::error::LocalError;
use super::{LocalState, stream};
use crate::local::{Event, Followed, Peer, Subscription};

const KEEP_ALIVE: Bytes = Bytes::from_static(b": keep-alive\n\n");
/// A client that is given nothing for so long is sent a sign of life, to know that it is connected.
const GREETING: Duration = Duration::from_millis(50);
/// Frames that are there already go out together, about so many bytes of them.
const CHUNK: usize = 32 * 1024;

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(stream("/api/logs/stream").route(web::get().to(logs)));
    cfg.service(stream("/api/telemetry/stream").route(web::get().to(telemetry)));
}

async fn logs(request: HttpRequest, state: web::Data<LocalState>) -> Result<HttpResponse, LocalError> {
    follow(&request, &state, Followed::Logs).await
}

async fn telemetry(request: HttpRequest, state: web::Data<LocalState>) -> Result<HttpResponse, LocalError> {
    follow(&request, &state, Followed::Telemetry).await
}

async fn follow(
    request: &HttpRequest,
    state: &LocalState,
    followed: Followed,
) -> Result<HttpResponse, LocalError> {
    let header = request
        .headers()
        .get("last-event-id")
        .and_then(|value| value.to_str().ok());
    // A page that opens a stream anew can't send headers.
    let given = query(request);
    let parameter = given.get("last_event_id").and_then(serde_json::Value::as_str);
    let last_event_id = header.or(parameter).map(str::to_owned);
    let peer = request.conn_data::<Peer>().cloned();
    let subscription = state.memory.follow(followed, last_event_id, peer).await?;
    let heartbeat = Duration::from_secs(state.settings().web.heartbeat_seconds);
    Ok(event_stream(subscription, heartbeat))
}

/// The answer that streams a followed file until the client goes away, is too slow, or the service stops. Dropping
/// its body frees the place. `heartbeat` is the longest silence.
fn event_stream(subscription: Subscription, heartbeat: Duration) -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, "text/event-stream; charset=utf-8"))
        .insert_header((CACHE_CONTROL, "no-store"))
        // Proxies must not collect what is meant for now.
        .insert_header(("x-accel-buffering", "no"))
        .streaming(chunks(subscription, heartbeat))
}

fn chunks(subscription: Subscription, heartbeat: Duration) -> impl Stream<Item = Result<Bytes, Infallible>> {
    let first = (subscription, GREETING.min(heartbeat));
    unfold(first, move |(mut subscription, patience)| async move {
        let chunk = match tokio::time::timeout(patience, subscription.next()).await {
            Err(_) => KEEP_ALIVE,
            Ok(None) => return None,
            Ok(Some(event)) => collected(event, &mut subscription),
        };
        Some((Ok(chunk), (subscription, heartbeat)))
    })
}

/// The frames of an event and of those that are there already.
fn collected(first: Event, subscription: &mut Subscription) -> Bytes {
    let mut chunk = BytesMut::new();
    write_frame(&mut chunk, &first);
    while chunk.len() < CHUNK {
        let Some(event) = subscription.ready() else { break };
        write_frame(&mut chunk, &event);
    }
    chunk.freeze()
}

/// A carriage return ends a line of the protocol, so each piece of the text gets a `data:` of its own.
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
