//! Hands the lines of one followed family of files to everybody who listens.
//!
//! One reader serves all. It looks only while somebody listens, and a burst is handed out in portions, so that only who
//! is really slow falls behind; who is further behind than the buffer is dropped, loses its place at once, and can
//! come back with the id of its last event. Nothing is lost or doubled between the replay and the live lines: where
//! the one ends and the other begins is decided under one lock.

use std::collections::VecDeque;
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use metrics::counter;
use tokio::sync::{Notify, broadcast, watch};

use super::files::{Family, FileKey, Place};
use super::lines::{Budget, Line};
use super::replay::{Opening, Replay};
use super::tail::Tail;
use super::{Clock, StreamPlace};
use crate::blocking;

/// How often a followed file is looked at.
pub(super) const INTERVAL: Duration = Duration::from_millis(200);
/// How long a burst waits for its listeners before it goes on without the slow ones.
const PATIENCE: u32 = 20;
const PATIENCE_STEP: Duration = Duration::from_millis(1);
/// Lines that a listener may lag behind, at most: each costs memory from the start.
pub const MOST_BUFFERED: usize = 1 << 16;
/// Bytes that a listener may lag behind.
const BEHIND_BYTES: u64 = 8 << 20;
/// Bytes that are handed out before listeners are waited for.
const PORTION_BYTES: u64 = 1 << 20;

/// One line on its way to a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// `<file name>:<offset after the line>`.
    pub id: Arc<str>,
    pub line: Arc<str>,
}

impl Event {
    pub(super) fn of(family: &Family, key: FileKey, line: Line) -> Self {
        let place = Place {
            key,
            offset: line.end,
        };
        Self {
            id: family.id(place).into(),
            line: line.text.into(),
        }
    }
}

/// A client's connection. A server that waits to write to it can't end it, so it is ended from beside.
#[derive(Debug, Clone)]
pub struct Peer(Arc<TcpStream>);

impl Peer {
    /// Takes a second handle of a connection.
    ///
    /// # Errors
    /// When there are no more file descriptors.
    pub fn of(connection: &impl AsFd) -> std::io::Result<Self> {
        let own = connection.as_fd().try_clone_to_owned()?;
        Ok(Self(Arc::new(TcpStream::from(own))))
    }

    fn cut(&self) {
        // It may be gone already.
        self.0.shutdown(Shutdown::Both).ok();
    }
}

/// An event and all that was handed out up to it.
#[derive(Debug, Clone)]
struct Sent {
    event: Event,
    lines: u64,
    bytes: u64,
}

/// How far one listener came.
#[derive(Debug)]
struct Seat {
    lines: AtomicU64,
    bytes: AtomicU64,
    lost: AtomicBool,
    place: Mutex<Option<StreamPlace>>,
    peer: Option<Peer>,
}

impl Seat {
    fn behind(&self, state: &State) -> (u64, u64) {
        let lines = state.lines.saturating_sub(self.lines.load(Ordering::Acquire));
        let bytes = state.bytes.saturating_sub(self.bytes.load(Ordering::Acquire));
        (lines, bytes)
    }

    fn took(&self, sent: &Sent) {
        self.lines.store(sent.lines, Ordering::Release);
        self.bytes.store(sent.bytes, Ordering::Release);
    }

    /// Ends the stream and frees its place, even when the client never asks for a line again.
    fn lose(&self) {
        if !self.lost.swap(true, Ordering::AcqRel) {
            counter!("streams_dropped_total").increment(1);
            drop(self.place.lock().unwrap_or_else(PoisonError::into_inner).take());
            self.peer.iter().for_each(Peer::cut);
        }
    }
}

struct State {
    tail: Tail,
    seats: Vec<Weak<Seat>>,
    /// Connections of listeners; one may outlive its seat.
    peers: Vec<Weak<TcpStream>>,
    watched: bool,
    lines: u64,
    bytes: u64,
}

impl State {
    fn listeners(&self) -> impl Iterator<Item = Arc<Seat>> {
        let seats = self.seats.iter().filter_map(Weak::upgrade);
        seats.filter(|seat| !seat.lost.load(Ordering::Acquire))
    }
}

enum Look {
    /// There may be more to read.
    More,
    Done,
    /// Nobody listens any more.
    Unwatched,
}

/// One followed family of files and its listeners.
pub(super) struct Hub {
    state: Mutex<State>,
    sender: broadcast::Sender<Sent>,
    wake: Notify,
    clock: Clock,
    opening: Opening,
    buffer: u64,
}

impl Hub {
    /// `buffer` is how many lines a listener may lag behind.
    pub(super) fn new(family: Family, opening: Opening, buffer: usize, clock: Clock) -> Arc<Self> {
        let buffer = buffer.clamp(2, MOST_BUFFERED);
        let state = State {
            tail: Tail::new(family),
            seats: Vec::new(),
            peers: Vec::new(),
            watched: false,
            lines: 0,
            bytes: 0,
        };
        Arc::new(Self {
            state: Mutex::new(state),
            // With room for a portion more, so that the seats decide who is lost.
            sender: broadcast::channel(buffer * 2).0,
            wake: Notify::new(),
            clock,
            opening,
            buffer: buffer as u64,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(super) fn is_watched(&self) -> bool {
        self.state().watched
    }

    /// Ends the connections of all listeners, also of those whose last lines wait to be read.
    pub(super) fn cut(&self) {
        let peers = std::mem::take(&mut self.state().peers);
        for connection in peers.iter().filter_map(Weak::upgrade) {
            Peer(connection).cut();
        }
    }

    /// Looks at once, if somebody listens.
    pub(super) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Begins to listen. Blocks; must run inside the runtime.
    pub(super) fn listen(
        self: &Arc<Self>,
        last_event_id: Option<&str>,
        peer: Option<Peer>,
        place: StreamPlace,
        closing: watch::Receiver<bool>,
    ) -> Subscription {
        let today = (self.clock)().date_naive();
        let mut state = self.state();
        if !state.watched {
            state.tail.begin(today);
        }
        let replay = Replay::plan(&state.tail, today, last_event_id, self.opening);
        let seat = Arc::new(Seat {
            lines: AtomicU64::new(state.lines),
            bytes: AtomicU64::new(state.bytes),
            lost: AtomicBool::new(false),
            place: Mutex::new(Some(place)),
            peer,
        });
        state.seats.retain(|seat| seat.strong_count() > 0);
        state.seats.push(Arc::downgrade(&seat));
        state.peers.retain(|peer| peer.strong_count() > 0);
        state
            .peers
            .extend(seat.peer.iter().map(|peer| Arc::downgrade(&peer.0)));
        if !state.watched {
            state.watched = true;
            tokio::spawn(Arc::clone(self).watch());
        }
        Subscription {
            replay,
            ready: VecDeque::new(),
            live: self.sender.subscribe(),
            closing,
            seat,
        }
    }

    /// Looks again and again until nobody listens any more.
    async fn watch(self: Arc<Self>) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(INTERVAL) => {}
                () = self.wake.notified() => {}
            }
            loop {
                let hub = Arc::clone(&self);
                match blocking::spawn(move || hub.look()).await {
                    Ok(Look::More) => self.wait_for_listeners().await,
                    Ok(Look::Done) => break,
                    Ok(Look::Unwatched) => return,
                    Err(error) => {
                        tracing::error!(%error, "following a file failed");
                        break;
                    }
                }
            }
        }
    }

    /// Hands out one portion of what is new.
    fn look(&self) -> Look {
        let today = (self.clock)().date_naive();
        let mut guard = self.state();
        let state = &mut *guard;
        if state.listeners().next().is_none() {
            // Under the lock: who begins to listen now is seen, or starts the next watch.
            state.tail.rest();
            state.seats.clear();
            state.watched = false;
            return Look::Unwatched;
        }
        let mut budget = Budget {
            lines: self.buffer / 2,
            bytes: PORTION_BYTES,
        };
        let State {
            tail, lines, bytes, ..
        } = state;
        let family = tail.family().clone();
        let more = tail.read(today, &mut budget, &mut |key, line| {
            *lines += 1;
            *bytes += line.text.len() as u64;
            let sent = Sent {
                event: Event::of(&family, key, line),
                lines: *lines,
                bytes: *bytes,
            };
            // Who went away this moment misses nothing.
            self.sender.send(sent).ok();
        });
        for seat in state.listeners() {
            let (lines, bytes) = seat.behind(state);
            if lines > self.buffer || bytes > BEHIND_BYTES {
                seat.lose();
            }
        }
        if more { Look::More } else { Look::Done }
    }

    /// Gives those who read along the time to do so.
    async fn wait_for_listeners(&self) {
        for _ in 0..PATIENCE {
            if !self.is_crowded() {
                return;
            }
            tokio::time::sleep(PATIENCE_STEP).await;
        }
    }

    /// Whether a listener is half a buffer behind. Never waits: whoever holds the lock reads files.
    fn is_crowded(&self) -> bool {
        let Ok(state) = self.state.try_lock() else {
            return true;
        };
        state.listeners().any(|seat| {
            let (lines, bytes) = seat.behind(&state);
            lines > self.buffer / 2 || bytes > BEHIND_BYTES / 2
        })
    }
}

/// A place among those who listen; dropping it frees the place.
#[derive(Debug)]
pub struct Subscription {
    replay: Replay,
    ready: VecDeque<Event>,
    live: broadcast::Receiver<Sent>,
    closing: watch::Receiver<bool>,
    seat: Arc<Seat>,
}

impl Subscription {
    /// The next line: first what came before, then what comes. `None` when the service is being stopped or the
    /// listener was too slow. Cancelling it loses nothing.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            if self.is_over() {
                return None;
            }
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if !self.replay.is_done() {
                match self.replay.next_block().await {
                    Ok(events) => self.ready = events,
                    Err(error) => {
                        tracing::warn!(%error, "a replay ended early");
                        return None;
                    }
                }
                continue;
            }
            tokio::select! {
                biased;
                _ = self.closing.changed() => return None,
                sent = self.live.recv() => return self.taken(sent.ok()?),
            }
        }
    }

    /// A line that is there without waiting.
    pub fn ready(&mut self) -> Option<Event> {
        if self.is_over() {
            return None;
        }
        if let Some(event) = self.ready.pop_front() {
            return Some(event);
        }
        if !self.replay.is_done() {
            return None;
        }
        let sent = self.live.try_recv().ok()?;
        self.taken(sent)
    }

    fn taken(&mut self, sent: Sent) -> Option<Event> {
        self.seat.took(&sent);
        Some(sent.event)
    }

    fn is_over(&self) -> bool {
        *self.closing.borrow() || self.seat.lost.load(Ordering::Acquire)
    }
}
