//! A bulk ingest by two streams. A thread of its own makes the bundles, so that neither the clock nor memory holds all
//! of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, mpsc};
use tokio::task::JoinSet;

use crate::Fallible;
use crate::client::Client;
use crate::corpus::{Bundle, Corpus, STREAMS};

/// Nodes of a bundle.
pub const NODES: usize = 2_000;
/// Bundles that wait for a stream.
const WAITING: usize = 2;
/// Fewest bundles over which a rate is taken: two of each stream, as the streams may finish at the same moment.
const WINDOW: usize = 2 * STREAMS;

/// A clock that can stand still.
pub struct Clock(Mutex<(Duration, Option<Instant>)>);

impl Clock {
    pub fn running() -> Self {
        Self(Mutex::new((Duration::ZERO, Some(Instant::now()))))
    }

    pub fn time(&self) -> Duration {
        let (before, since) = *self.0.lock();
        before + since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    pub fn stop(&self) {
        let time = self.time();
        *self.0.lock() = (time, None);
    }

    pub fn go_on(&self) {
        let time = self.time();
        *self.0.lock() = (time, Some(Instant::now()));
    }
}

/// An ingest under way.
pub struct Bulk {
    stopped: Arc<AtomicBool>,
    maker: JoinHandle<Corpus>,
    streams: JoinSet<Fallible<Vec<Done>>>,
}

/// When a bundle was acknowledged, since the beginning, and its nodes.
type Done = (Duration, usize);

/// What an ingest achieved, in nodes per second.
pub struct Pace {
    pub nodes: usize,
    pub time: Duration,
    pub overall: f64,
    pub slowest_tenth: f64,
    pub last_tenth: f64,
    done: Vec<Done>,
}

impl Bulk {
    /// Ingests until the corpus has this many nodes, or until it is stopped.
    pub fn start(client: &Client, corpus: Corpus, until: usize) -> Self {
        Self::timed(client, corpus, until, Arc::new(Clock::running()))
    }

    /// [`Bulk::start`], timed by a clock that may stand still.
    pub fn timed(client: &Client, corpus: Corpus, until: usize, clock: Arc<Clock>) -> Self {
        let stopped = Arc::new(AtomicBool::new(false));
        let (made, wanted) = mpsc::channel(WAITING);
        let (flag, wanted) = (Arc::clone(&stopped), Arc::new(AsyncMutex::new(wanted)));
        let maker = std::thread::spawn(move || make(corpus, until, &flag, &made));
        let begun = clock.time();
        let mut streams = JoinSet::new();
        for _ in 0..STREAMS {
            let clock = Arc::clone(&clock);
            let time = move || clock.time().saturating_sub(begun);
            streams.spawn(stream(client.clone(), Arc::clone(&wanted), time));
        }
        Self {
            stopped,
            maker,
            streams,
        }
    }

    /// Makes no more bundles, and finishes.
    pub async fn stop(self) -> Fallible<(Corpus, Pace)> {
        self.stopped.store(true, Ordering::Relaxed);
        self.finish().await
    }

    /// Waits until everything is ingested.
    pub async fn finish(mut self) -> Fallible<(Corpus, Pace)> {
        let mut done = Vec::new();
        while let Some(stream) = self.streams.join_next().await {
            done.extend(stream??);
        }
        let corpus = self.maker.join().map_err(|_| "no bundle could be made")?;
        done.sort_unstable();
        Ok((corpus, Pace::of(done)))
    }
}

impl Pace {
    /// The rates of bundles in the order in which they were acknowledged.
    fn of(done: Vec<Done>) -> Self {
        let sum = |part: &[Done]| part.iter().map(|(_, nodes)| nodes).sum::<usize>();
        let time = done.last().map_or(Duration::ZERO, |(at, _)| *at);
        let window = (done.len() / 10).max(WINDOW).min(done.len()).max(1);
        let mut begun = Duration::ZERO;
        let (mut slowest_tenth, mut last_tenth) = (f64::INFINITY, f64::NAN);
        for part in done.windows(window) {
            let ended = part.last().map_or(begun, |(at, _)| *at);
            last_tenth = sum(part) as f64 / (ended - begun).as_secs_f64();
            slowest_tenth = slowest_tenth.min(last_tenth);
            begun = part.first().map_or(begun, |(at, _)| *at);
        }
        Self {
            nodes: sum(&done),
            time,
            overall: sum(&done) as f64 / time.as_secs_f64(),
            slowest_tenth,
            last_tenth,
            done,
        }
    }

    /// The pace of an ingest in two parts, without the time between them.
    pub fn and(mut self, next: Self) -> Self {
        let later = next.done.into_iter().map(|(at, nodes)| (self.time + at, nodes));
        self.done.extend(later);
        Self::of(self.done)
    }
}

/// Makes bundles until there are enough nodes or nobody wants more.
fn make(mut corpus: Corpus, until: usize, stopped: &AtomicBool, made: &mpsc::Sender<Bundle>) -> Corpus {
    while corpus.nodes() < until && !stopped.load(Ordering::Relaxed) {
        let bundle = corpus.bundle_of(NODES.min(until - corpus.nodes()));
        if made.blocking_send(bundle).is_err() {
            break;
        }
    }
    corpus
}

/// Ingests one bundle after the other over a connection of its own.
async fn stream(
    client: Client,
    wanted: Arc<AsyncMutex<mpsc::Receiver<Bundle>>>,
    time: impl Fn() -> Duration,
) -> Fallible<Vec<Done>> {
    let mut done = Vec::new();
    loop {
        let next = wanted.lock().await.recv().await;
        let Some(bundle) = next else {
            return Ok(done);
        };
        let results = client.ingest(bundle.body).await?;
        if results["nodes_created"] != bundle.nodes || results["skipped"] != 1 {
            return Err(format!("not everything was taken: {results}").into());
        }
        done.push((time(), bundle.nodes));
    }
}
