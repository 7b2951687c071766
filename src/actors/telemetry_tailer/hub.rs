//! Hands the lines of one followed family of files to everybody who listens.
//!
//! One reader serves all. It looks only while somebody listens, and hands out a burst in portions that listeners get
//! the time to take. Each listener has a queue with bounded room: one whose queue is full is dropped, loses its place
//! and its connection at once, and can come back with the id of its last event. A broadcast channel would not do: it
//! tells only the receiver that it lags, and nobody polls the receiver of a client that does not read. Nothing is lost
//! or doubled between the replay and the live lines: where the one ends and the other begins is decided under one lock.

use std::collections::VecDeque;
use std::io;
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::sync::{Arc, Weak};
use std::time::Duration;

use metrics::{counter, gauge};
use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::timeout;

use super::Clock;
use super::files::{Family, FileKey, FilePosition};
use super::lines::{Line, ReadLimit};
use super::replay::{Opening, Segment, plan};
use super::tail::Tail;
use crate::blocking;
use crate::config::local::MAX_STREAM_BUFFER;

/// Polling interval of a followed file.
pub(super) const INTERVAL: Duration = Duration::from_millis(200);
/// How long a burst waits for its listeners before it continues without the slow ones.
const PATIENCE: Duration = Duration::from_millis(20);
/// Bytes a listener may lag behind, without those it is taking.
const ROOM: u32 = 8 << 20;
/// Bytes handed out before waiting for listeners.
const PORTION_BYTES: u64 = 1 << 20;

/// One line to be sent to a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// `<file name>:<offset after the line>`.
    pub id: Arc<str>,
    pub line: Arc<str>,
}

impl Event {
    fn of(family: &Family, key: FileKey, Line { text, end: offset }: Line) -> Self {
        let id = family.id(FilePosition { key, offset }).into();
        let line = text.into();
        Self { id, line }
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
    pub fn of(connection: &impl AsFd) -> io::Result<Self> {
        let own = connection.as_fd().try_clone_to_owned()?;
        Ok(Self(Arc::new(TcpStream::from(own))))
    }
}

fn shut_down(peer: &Weak<TcpStream>) {
    if let Some(connection) = peer.upgrade() {
        // The client may be gone already.
        connection.shutdown(Shutdown::Both).ok();
    }
}

/// Lines and their share of the listener's buffer, released when the lines are taken.
type QueuedEvents = (Arc<[Event]>, OwnedSemaphorePermit);

/// The sending side of one stream.
struct Listener {
    queue: mpsc::UnboundedSender<QueuedEvents>,
    room: Arc<Semaphore>,
    /// Weak: the connection must close when the server lets go of it.
    peer: Weak<TcpStream>,
}

impl Listener {
    /// False when the client is gone, or was too slow and has been dropped.
    fn send(&self, portion: &Arc<[Event]>, share: u32) -> bool {
        let Ok(share) = Arc::clone(&self.room).try_acquire_many_owned(share) else {
            counter!("streams_dropped_total").increment(1);
            self.room.close();
            shut_down(&self.peer);
            return false;
        };
        self.queue.send((Arc::clone(portion), share)).is_ok()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        gauge!("open_streams").decrement(1.0);
    }
}

struct State {
    tail: Tail,
    listeners: Vec<Listener>,
    is_watched: bool,
    is_closed: bool,
    /// Connections whose last lines may wait to be read.
    ended: Vec<Weak<TcpStream>>,
}

/// One followed family of files and its listeners.
pub(super) struct Hub {
    state: Mutex<State>,
    wake: Notify,
    clock: Clock,
    opening: Opening,
    buffer: u32,
}

impl Hub {
    /// `buffer` is how many lines a listener may lag behind.
    pub(super) fn new(family: Family, opening: Opening, buffer: usize, clock: Clock) -> Arc<Self> {
        let state = State {
            tail: Tail::new(family),
            listeners: Vec::new(),
            is_watched: false,
            is_closed: false,
            ended: Vec::new(),
        };
        Arc::new(Self {
            state: Mutex::new(state),
            wake: Notify::new(),
            clock,
            opening,
            buffer: buffer.clamp(4, MAX_STREAM_BUFFER) as u32,
        })
    }

    #[cfg(test)]
    pub(super) fn is_watched(&self) -> bool {
        self.state.lock().is_watched
    }

    /// Clients that are there and keep up.
    pub(super) fn open_streams(&self) -> usize {
        let state = self.state.lock();
        state
            .listeners
            .iter()
            .filter(|listener| !listener.queue.is_closed())
            .count()
    }

    /// Ends every stream, also those that are still to come.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        for listener in std::mem::take(&mut state.listeners) {
            listener.room.close();
            state.ended.push(Weak::clone(&listener.peer));
        }
    }

    /// Ends the connections of streams that were closed and are still there: their clients do not read.
    pub(super) fn shut_down(&self) {
        self.state.lock().ended.iter().for_each(shut_down);
    }

    /// Looks at once, if somebody listens.
    pub(super) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Begins to listen. Blocks; must run inside the runtime.
    pub(super) fn listen(self: &Arc<Self>, last_event_id: Option<&str>, peer: Option<&Peer>) -> Subscription {
        let today = (self.clock)().date_naive();
        let (queue, live) = mpsc::unbounded_channel();
        let room = Arc::new(Semaphore::new((ROOM + ROOM / 4) as usize));
        let mut state = self.state.lock();
        if !state.is_watched {
            state.tail.begin(today);
        }
        let subscription = Subscription {
            family: state.tail.family.clone(),
            replay: plan(&state.tail, today, last_event_id, self.opening),
            ready: VecDeque::new(),
            share: None,
            live,
            room: Arc::clone(&room),
        };
        if state.is_closed {
            room.close();
            return subscription;
        }
        gauge!("open_streams").increment(1.0);
        let peer = peer.map(|peer| Arc::downgrade(&peer.0)).unwrap_or_default();
        state.listeners.push(Listener { queue, room, peer });
        if !state.is_watched {
            state.is_watched = true;
            tokio::spawn(Arc::clone(self).watch());
        }
        subscription
    }

    /// Looks again and again until nobody listens any more.
    async fn watch(self: Arc<Self>) {
        loop {
            let hub = Arc::clone(&self);
            match blocking::spawn(move || hub.look()).await {
                Ok(None) => return,
                Ok(Some(rooms)) if !rooms.is_empty() => {
                    let has_room = async {
                        for room in rooms {
                            room.acquire_many(ROOM / 2).await.ok();
                        }
                    };
                    timeout(PATIENCE, has_room).await.ok();
                    continue;
                }
                Ok(Some(_)) => {}
                Err(error) => tracing::error!(%error, "following a file failed"),
            }
            timeout(INTERVAL, self.wake.notified()).await.ok();
        }
    }

    /// Hands out one portion of what is new; returns who needs room for the next one, and `None` when nobody listens.
    fn look(&self) -> Option<Vec<Arc<Semaphore>>> {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        state.listeners.retain(|listener| !listener.queue.is_closed());
        if state.listeners.is_empty() {
            // Under the lock: who begins to listen now is seen, or starts the next watch.
            state.tail.rest();
            state.is_watched = false;
            return None;
        }
        // A quarter of the room, or half of it when lines are long.
        let mut budget = ReadLimit {
            lines: u64::from(self.buffer / 4),
            bytes: PORTION_BYTES,
        };
        let family = state.tail.family.clone();
        let today = (self.clock)().date_naive();
        let (mut portion, mut share) = (Vec::new(), 0);
        let more = state.tail.read(today, &mut budget, &mut |key, line| {
            // A full buffer of short lines takes the whole room, and so do fewer long ones.
            share += (line.text.len() as u32).max(ROOM / self.buffer);
            portion.push(Event::of(&family, key, line));
        });
        let listeners = &mut state.listeners;
        if share > 0 {
            let portion = portion.into();
            listeners.retain(|listener| listener.send(&portion, share));
        }
        let waiting = listeners.iter().filter(|_| more);
        Some(waiting.map(|listener| Arc::clone(&listener.room)).collect())
    }
}

/// A place among those who listen; dropping it frees the place.
#[derive(Debug)]
pub struct Subscription {
    family: Family,
    replay: VecDeque<Segment>,
    ready: VecDeque<Event>,
    /// Given back when all that is ready is taken.
    share: Option<OwnedSemaphorePermit>,
    live: mpsc::UnboundedReceiver<QueuedEvents>,
    /// Closed when the stream is over.
    room: Arc<Semaphore>,
}

impl Subscription {
    /// The next line: first what came before, then what comes. `None` when the service is being stopped or the
    /// listener was too slow. Cancelling it loses nothing.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready() {
                return Some(event);
            }
            if self.room.is_closed() {
                return None;
            }
            let Some(segment) = self.replay.front_mut() else {
                let queued = self.live.recv().await?;
                self.take(queued);
                continue;
            };
            let lines = segment.read().await;
            let lines = lines.inspect_err(|error| tracing::warn!(%error, "a replay ended early"));
            let event = |line| Event::of(&self.family, segment.key, line);
            self.ready.extend(lines.ok()?.into_iter().map(event));
            if segment.is_done() {
                self.replay.pop_front();
            }
        }
    }

    /// A line that is there without waiting.
    pub fn ready(&mut self) -> Option<Event> {
        if self.room.is_closed() {
            return None;
        }
        if self.ready.is_empty() && self.replay.is_empty() {
            self.share = None;
            let queued = self.live.try_recv().ok()?;
            self.take(queued);
        }
        self.ready.pop_front()
    }

    fn take(&mut self, (portion, share): QueuedEvents) {
        self.ready.extend(portion.iter().cloned());
        self.share = Some(share);
    }
}
