//! Owns the telemetry file of the day and the follow-up of it and of the log file.
//!
//! Promises: a line is written whole or not at all, and a failure to write it costs the figures and never the request;
//! a listener gets whole lines, each once, across rotation, truncation, midnight and a reconnect; one that is too slow
//! is dropped and hurts nobody else. Files are looked at only while somebody listens.

mod files;
mod journal;
mod logs;
mod tail;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix::{Actor, Context};
use chrono::{DateTime, Utc};
use metrics::{counter, gauge};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::{broadcast, watch};

use self::journal::{Journal, history};
pub use self::journal::{TelemetryEntry, TelemetryFigures};
pub use self::logs::LogPage;
use self::tail::Beginning;
pub use self::tail::Event;
use self::tail::Tail;
use super::handle::{Access, ActorHandle, Request};
use super::job;
use crate::config::ActorSettings;
use crate::domain::error::DomainError;

/// How often a followed file is looked at.
const INTERVAL: Duration = Duration::from_millis(200);
/// Lines of the log that a new listener is given first.
const LOG_BEGINNING: usize = 10;
/// Seconds between two complaints that telemetry can't be written.
const COMPLAIN_EVERY: i64 = 60;

/// Way to the telemetry and the streams.
pub type TelemetryHandle = ActorHandle<TelemetryTailer>;

/// Who tells the time.
pub type Clock = Arc<dyn Fn() -> DateTime<Utc> + Send + Sync>;

/// What may change while the service runs.
#[derive(Debug, Clone)]
pub struct TelemetryLimits {
    pub enabled: bool,
    pub keep_days: u32,
    pub record_queries: bool,
    pub max_file_bytes: u64,
    pub max_streams: usize,
}

/// Where the limits of this moment are read.
pub type LimitSource = Arc<dyn Fn() -> TelemetryLimits + Send + Sync>;

/// Writes one entry.
#[derive(Debug)]
pub struct Record(pub TelemetryEntry);

impl Request for Record {
    type Reply = ();
    const NAME: &'static str = "record";
    const ACCESS: Access = Access::Write;
}

/// What today's questions add up to.
#[derive(Debug)]
pub struct ReadFigures;

impl Request for ReadFigures {
    type Reply = TelemetryFigures;
    const NAME: &'static str = "read_figures";
    const ACCESS: Access = Access::Read;
}

/// The questions of the last days, newest first.
#[derive(Debug)]
pub struct ReadHistory {
    pub limit: usize,
    pub days: u32,
}

impl Request for ReadHistory {
    type Reply = Vec<Value>;
    const NAME: &'static str = "read_history";
    const ACCESS: Access = Access::Read;
}

/// The last lines of the log.
#[derive(Debug)]
pub struct ReadLogs {
    pub lines: usize,
    pub level: Option<String>,
}

impl Request for ReadLogs {
    type Reply = LogPage;
    const NAME: &'static str = "read_logs";
    const ACCESS: Access = Access::Read;
}

/// Which file is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Followed {
    Logs,
    Telemetry,
}

/// Begins to follow a file.
#[derive(Debug)]
pub struct Subscribe {
    pub followed: Followed,
    /// The id of the last event that the client has.
    pub last_event_id: Option<String>,
}

impl Request for Subscribe {
    type Reply = Subscription;
    const NAME: &'static str = "subscribe";
    const ACCESS: Access = Access::Read;
}

/// A place among those who listen: first what came before, then what comes.
#[derive(Debug)]
pub struct Subscription {
    pub before: Vec<Event>,
    pub events: broadcast::Receiver<Event>,
    /// True when the service is being stopped.
    pub closing: watch::Receiver<bool>,
    pub place: StreamPlace,
}

/// Counts as one open stream while it lives.
#[derive(Debug)]
pub struct StreamPlace(Arc<AtomicUsize>);

impl Drop for StreamPlace {
    fn drop(&mut self) {
        let open = self.0.fetch_sub(1, Ordering::AcqRel) - 1;
        gauge!("open_streams").set(open as f64);
    }
}

/// One followed family of files.
struct Stream {
    tail: Mutex<Tail>,
    watched: AtomicBool,
    beginning: Beginning,
}

/// What all requests share.
pub struct TailerCore {
    data_dir: Option<PathBuf>,
    clock: Clock,
    limits: LimitSource,
    journal: Mutex<Journal>,
    logs: Arc<Stream>,
    telemetry: Arc<Stream>,
    open: Arc<AtomicUsize>,
    closing: watch::Sender<bool>,
    complained: AtomicU64,
    pruned: AtomicU64,
}

/// The actor.
pub struct TelemetryTailer {
    core: Arc<TailerCore>,
    runtime: Handle,
}

impl TailerCore {
    /// The files below a data directory; without one nothing is written and nothing can be followed. `buffer` is how
    /// many lines a listener may lag behind.
    pub fn new(data_dir: Option<PathBuf>, buffer: usize, clock: Clock, limits: LimitSource) -> Self {
        let below = |name: &str| data_dir.as_ref().map(|dir| dir.join(name)).unwrap_or_default();
        let stream = |tail: Tail, beginning: Beginning| {
            Arc::new(Stream {
                tail: Mutex::new(tail),
                watched: AtomicBool::new(false),
                beginning,
            })
        };
        Self {
            journal: Mutex::new(Journal::new(below("telemetry"))),
            logs: stream(
                Tail::new(below("logs"), logs::PREFIX, logs::SUFFIX, buffer),
                Beginning::Last(LOG_BEGINNING),
            ),
            telemetry: stream(
                Tail::new(below("telemetry"), journal::PREFIX, journal::SUFFIX, buffer),
                Beginning::Today,
            ),
            data_dir,
            clock,
            limits,
            open: Arc::default(),
            closing: watch::channel(false).0,
            complained: AtomicU64::new(0),
            pruned: AtomicU64::new(0),
        }
    }

    /// Ends every open stream: the service is being stopped.
    pub fn close(&self) {
        self.closing.send_replace(true);
    }

    /// Open streams.
    pub fn open_streams(&self) -> usize {
        self.open.load(Ordering::Acquire)
    }

    async fn record(self: Arc<Self>, message: Record) -> Result<(), DomainError> {
        let (limits, now) = ((self.limits)(), (self.clock)());
        if !limits.enabled || self.data_dir.is_none() {
            return Ok(());
        }
        let mut entry = message.0;
        if !limits.record_queries {
            entry.query.clear();
        }
        let core = Arc::clone(&self);
        job::blocking(move || {
            let line = serde_json::to_string(&entry)
                .map_err(|error| DomainError::internal("a telemetry entry can't be written", error))?;
            let mut journal = core.journal();
            if let Err(error) = journal.append(&line, now, limits.max_file_bytes) {
                counter!("telemetry_lost_total").increment(1);
                core.complain(now, &error);
            }
            let day = u64::try_from(now.timestamp() / 86_400).unwrap_or(0);
            if core.pruned.swap(day, Ordering::Relaxed) != day {
                journal.prune(now, limits.keep_days);
            }
            drop(journal);
            core.telemetry.look();
            Ok(())
        })
        .await
    }

    fn complain(&self, now: DateTime<Utc>, error: &std::io::Error) {
        let minute = u64::try_from(now.timestamp() / COMPLAIN_EVERY).unwrap_or(0);
        if self.complained.swap(minute, Ordering::Relaxed) != minute {
            tracing::warn!(%error, "telemetry can't be written");
        }
    }

    async fn figures(self: Arc<Self>, _: ReadFigures) -> Result<TelemetryFigures, DomainError> {
        let now = (self.clock)();
        job::blocking(move || Ok(self.journal().figures(now))).await
    }

    async fn history(self: Arc<Self>, message: ReadHistory) -> Result<Vec<Value>, DomainError> {
        let now = (self.clock)();
        let Some(dir) = self.data_dir.as_ref().map(|dir| dir.join("telemetry")) else {
            return Ok(Vec::new());
        };
        job::blocking(move || {
            history(&dir, now, message.days, message.limit)
                .map_err(|error| DomainError::internal("reading the telemetry failed", error))
        })
        .await
    }

    async fn read_logs(self: Arc<Self>, message: ReadLogs) -> Result<LogPage, DomainError> {
        let dir = self.data_dir.as_ref().map(|dir| dir.join("logs"));
        job::blocking(move || {
            Ok(logs::last_lines(
                dir.as_deref(),
                message.lines,
                message.level.as_deref(),
            ))
        })
        .await
    }

    async fn subscribe(self: Arc<Self>, message: Subscribe) -> Result<Subscription, DomainError> {
        let place = self.place()?;
        let stream = match message.followed {
            Followed::Logs => Arc::clone(&self.logs),
            Followed::Telemetry => Arc::clone(&self.telemetry),
        };
        let closing = self.closing.subscribe();
        let followed = Arc::clone(&stream);
        let (before, events) = job::blocking(move || {
            let beginning = followed.beginning;
            Ok(followed
                .tail()
                .listen(message.last_event_id.as_deref(), beginning))
        })
        .await?;
        stream.watch();
        Ok(Subscription {
            before,
            events,
            closing,
            place,
        })
    }

    fn place(&self) -> Result<StreamPlace, DomainError> {
        let most = (self.limits)().max_streams;
        let taken = self
            .open
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |open| {
                (open < most).then_some(open + 1)
            });
        let open = taken.map_err(|_| DomainError::Busy {
            actor: "event streams",
        })?;
        gauge!("open_streams").set((open + 1) as f64);
        Ok(StreamPlace(Arc::clone(&self.open)))
    }

    fn journal(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stream {
    fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks now, if somebody listens; blocks.
    fn look(&self) {
        if self.watched.load(Ordering::Acquire) {
            self.tail().poll();
        }
    }

    /// Looks again and again until nobody listens any more.
    fn watch(self: Arc<Self>) {
        if self.watched.swap(true, Ordering::AcqRel) {
            return;
        }
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(INTERVAL).await;
                let stream = Arc::clone(&self);
                let listened = tokio::task::spawn_blocking(move || {
                    let mut tail = stream.tail();
                    tail.poll();
                    // Under the lock: who begins to listen now is seen, or starts the next watch.
                    if tail.listeners() == 0 {
                        tail.rest();
                        stream.watched.store(false, Ordering::Release);
                        return false;
                    }
                    true
                });
                if !listened.await.unwrap_or(true) {
                    return;
                }
            }
        });
    }
}

impl TelemetryTailer {
    /// Starts the actor.
    pub fn start(core: Arc<TailerCore>, runtime: Handle, settings: ActorSettings) -> TelemetryHandle {
        let arbiter = actix::Arbiter::current();
        ActorHandle::start(
            "telemetry_tailer",
            settings,
            Box::new(move || {
                let (core, runtime) = (Arc::clone(&core), runtime.clone());
                Self::start_in_arbiter(&arbiter, move |ctx| {
                    ctx.set_mailbox_capacity(settings.mailbox.max(1));
                    Self { core, runtime }
                })
            }),
        )
    }
}

impl Actor for TelemetryTailer {
    type Context = Context<Self>;
}

job::delegate! {
    TelemetryTailer:
    Record => record,
    ReadFigures => figures,
    ReadHistory => history,
    ReadLogs => read_logs,
    Subscribe => subscribe,
}
