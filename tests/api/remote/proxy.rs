//! A proxy between the service and its database that drops, stalls, delays and cuts connections.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// How long the server may process a message before its connection is cut.
const WORK: Duration = Duration::from_millis(1500);

/// When to cut a connection.
#[derive(Clone, Copy, PartialEq)]
pub enum Cut {
    /// The server never receives the message.
    Before,
    /// The server processes the message, but its response is lost.
    After,
}

pub struct Proxy {
    pub address: SocketAddr,
    state: Arc<State>,
    accepting: AbortHandle,
}

struct State {
    target: Mutex<SocketAddr>,
    connections: Mutex<Vec<AbortHandle>>,
    accepted: AtomicUsize,
    stalled: watch::Sender<bool>,
    delay: Mutex<Duration>,
    cut: Mutex<Option<(&'static str, Cut)>>,
    /// Size of the largest response so far, in bytes.
    largest: AtomicUsize,
}

impl Proxy {
    pub async fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            target: Mutex::new(target),
            connections: Mutex::default(),
            accepted: AtomicUsize::new(0),
            stalled: watch::Sender::new(false),
            delay: Mutex::default(),
            cut: Mutex::default(),
            largest: AtomicUsize::new(0),
        });
        let shared = Arc::clone(&state);
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                shared.accepted.fetch_add(1, Ordering::Relaxed);
                let task = tokio::spawn(carry(client, Arc::clone(&shared)));
                shared.connections.lock().unwrap().push(task.abort_handle());
            }
        });
        Self {
            address,
            state,
            accepting: accepting.abort_handle(),
        }
    }

    pub fn url(&self) -> String {
        format!("ws://{}", self.address)
    }

    /// Redirects new connections to `target`.
    pub fn lead_to(&self, target: SocketAddr) {
        *self.state.target.lock().unwrap() = target;
    }

    /// Drops every connection.
    pub fn drop_all(&self) {
        for connection in self.state.connections.lock().unwrap().drain(..) {
            connection.abort();
        }
    }

    /// Blocks all traffic in both directions while the connections stay open.
    pub fn stall(&self, stalled: bool) {
        self.state.stalled.send_replace(stalled);
    }

    /// Delays each response by this long.
    pub fn delay(&self, delay: Duration) {
        *self.state.delay.lock().unwrap() = delay;
    }

    /// Cuts the connection of the next message that contains `text`.
    pub fn cut(&self, text: &'static str, when: Cut) {
        *self.state.cut.lock().unwrap() = Some((text, when));
    }

    /// Whether a requested cut is still pending.
    pub fn is_whole(&self) -> bool {
        self.state.cut.lock().unwrap().is_some()
    }

    /// Number of connections accepted so far.
    pub fn accepted(&self) -> usize {
        self.state.accepted.load(Ordering::Relaxed)
    }

    /// Size of the largest response since the last call, in bytes.
    pub fn largest(&self) -> usize {
        self.state.largest.swap(0, Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.drop_all();
    }
}

async fn carry(client: TcpStream, state: Arc<State>) {
    let target = *state.target.lock().unwrap();
    let Ok(server) = TcpStream::connect(target).await else {
        return;
    };
    client.set_nodelay(true).unwrap();
    server.set_nodelay(true).unwrap();
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let muted = AtomicBool::new(false);
    // Both sockets close as soon as one side closes.
    tokio::select! {
        _ = requests(from_client, to_server, &state, &muted) => {}
        _ = answers(from_server, to_client, &state, &muted) => {}
    }
}

async fn requests<R: AsyncRead + Unpin, W: AsyncWriteExt + Unpin>(
    mut from: R,
    mut to: W,
    state: &State,
    muted: &AtomicBool,
) -> std::io::Result<()> {
    let head = head(&mut from).await?;
    to.write_all(&head).await?;
    loop {
        let frame = Frame::read(&mut from).await?;
        passable(state).await;
        let cut = state.cut.lock().unwrap().take_if(|(text, _)| frame.holds(text));
        match cut {
            None => to.write_all(&frame.raw).await?,
            Some((_, Cut::Before)) => return Ok(()),
            Some((_, Cut::After)) => {
                muted.store(true, Ordering::Relaxed);
                to.write_all(&frame.raw).await?;
                tokio::time::sleep(WORK).await;
                return Ok(());
            }
        }
    }
}

async fn answers<R: AsyncRead + Unpin, W: AsyncWriteExt + Unpin>(
    mut from: R,
    mut to: W,
    state: &State,
    muted: &AtomicBool,
) -> std::io::Result<()> {
    let head = head(&mut from).await?;
    to.write_all(&head).await?;
    loop {
        let frame = Frame::read(&mut from).await?;
        state.largest.fetch_max(frame.raw.len(), Ordering::Relaxed);
        let delay = *state.delay.lock().unwrap();
        // A slow network.
        tokio::time::sleep(delay).await;
        passable(state).await;
        if !muted.load(Ordering::Relaxed) {
            to.write_all(&frame.raw).await?;
        }
    }
}

async fn passable(state: &State) {
    let mut stalled = state.stalled.subscribe();
    stalled.wait_for(|stalled| !*stalled).await.unwrap();
}

/// The head of an HTTP message, up to the empty line.
async fn head<R: AsyncRead + Unpin>(from: &mut R) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(from.read_u8().await?);
    }
    Ok(head)
}

/// A WebSocket frame (RFC 6455 section 5.2).
struct Frame {
    raw: Vec<u8>,
    payload: Vec<u8>,
}

impl Frame {
    async fn read<R: AsyncRead + Unpin>(from: &mut R) -> std::io::Result<Self> {
        let mut raw = vec![0; 2];
        from.read_exact(&mut raw).await?;
        let extra = match raw[1] & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let masked = raw[1] & 0x80 != 0;
        let mut length = u64::from(raw[1] & 0x7f);
        let mut rest = vec![0; extra + if masked { 4 } else { 0 }];
        from.read_exact(&mut rest).await?;
        if extra > 0 {
            length = rest[..extra]
                .iter()
                .fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        }
        let mask = rest.split_off(extra);
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        from.read_exact(&mut payload).await?;
        raw.extend_from_slice(&rest);
        raw.extend_from_slice(&mask);
        raw.extend_from_slice(&payload);
        if masked {
            for (at, byte) in payload.iter_mut().enumerate() {
                *byte ^= mask[at % 4];
            }
        }
        Ok(Self { raw, payload })
    }

    fn holds(&self, text: &str) -> bool {
        self.payload
            .windows(text.len())
            .any(|part| part == text.as_bytes())
    }
}
