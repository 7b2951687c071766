//! Server-sent events (WHATWG HTML, section 9.2): the lines of the log and of the telemetry as they are written.

use std::collections::VecDeque;
use std::time::Duration;

use actix_web::{HttpRequest, HttpResponse, web};
use bytes::Bytes;
use futures_util::stream;
use tokio::sync::{broadcast, watch};
use tokio::time::{Instant, Interval, MissedTickBehavior};

use super::body::query;
use super::error::LocalError;
use super::{LocalState, guarded};
use crate::actors::telemetry_tailer::{Event, Followed, StreamPlace, Subscribe, Subscription};

const HEARTBEAT: Bytes = Bytes::from_static(b": keep-alive\n\n");

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(guarded("/api/logs/stream").route(web::get().to(logs)));
    cfg.service(guarded("/api/telemetry/stream").route(web::get().to(telemetry)));
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
    let message = Subscribe {
        followed,
        last_event_id: header.or(parameter).map(str::to_owned),
    };
    let subscription = state.memory.handles().telemetry.call(message).await?;
    let heartbeat = Duration::from_secs(state.settings().web.heartbeat_seconds);
    Ok(HttpResponse::Ok()
        .content_type("text/event-stream; charset=utf-8")
        .insert_header(("x-accel-buffering", "no"))
        .streaming(body(subscription, heartbeat)))
}

/// What one client is being sent.
struct Sending {
    before: VecDeque<Event>,
    events: broadcast::Receiver<Event>,
    closing: watch::Receiver<bool>,
    heartbeat: Interval,
    /// Sent at once, so that the client knows that it is connected.
    greeted: bool,
    _place: StreamPlace,
}

fn body(
    subscription: Subscription,
    every: Duration,
) -> impl futures_util::Stream<Item = Result<Bytes, actix_web::Error>> {
    let mut heartbeat = tokio::time::interval_at(Instant::now() + every, every);
    heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let sending = Sending {
        before: subscription.before.into(),
        events: subscription.events,
        closing: subscription.closing,
        heartbeat,
        greeted: false,
        _place: subscription.place,
    };
    stream::unfold(sending, |mut sending| async move {
        let frame = sending.next().await?;
        Some((Ok(frame), sending))
    })
}

impl Sending {
    /// The next frame; none when the client was too slow or the service is being stopped.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(event) = self.before.pop_front() {
            self.greeted = true;
            return Some(frame(&event));
        }
        if !self.greeted {
            self.greeted = true;
            return Some(HEARTBEAT);
        }
        if *self.closing.borrow() {
            return None;
        }
        tokio::select! {
            event = self.events.recv() => match event {
                Ok(event) => Some(frame(&event)),
                Err(broadcast::error::RecvError::Lagged(lines)) => {
                    tracing::warn!(lines, "a client of a stream was too slow and is dropped");
                    None
                }
                Err(broadcast::error::RecvError::Closed) => None,
            },
            _ = self.closing.changed() => None,
            _ = self.heartbeat.tick() => Some(HEARTBEAT),
        }
    }
}

/// One line as a frame; a carriage return inside would end it.
fn frame(event: &Event) -> Bytes {
    let mut frame = String::with_capacity(event.line.len() + event.id.len() + 16);
    for line in event.line.split('\r') {
        frame.push_str("data: ");
        frame.push_str(line);
        frame.push('\n');
    }
    frame.push_str("id: ");
    frame.push_str(&event.id);
    frame.push_str("\n\n");
    frame.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_begins_with_data_and_ends_with_a_blank_line() {
        let event = Event {
            id: "a.log:7".into(),
            line: "one\rtwo".into(),
        };
        assert_eq!(frame(&event), "data: one\ndata: two\nid: a.log:7\n\n");
    }
}
