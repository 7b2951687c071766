//! Owns the telemetry file of the day and the follow-up of it and of the log file.
//!
//! Promises: a line is written whole or not at all, and a failure to write it costs the figures and never the request;
//! a listener gets whole lines, each once, across rotation, truncation, midnight and a reconnect; one that is too slow
//! is dropped and hurts nobody else. Files are looked at only while somebody listens. The log file itself is written
//! by the log subscriber.

mod figures;
mod files;
mod history;
mod hub;
mod journal;
mod lines;
mod logs;
mod replay;
mod tail;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix::{Actor, AsyncContext, Context};
use chrono::{DateTime, NaiveDate, Utc};
use metrics::{counter, gauge};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::watch;

use self::figures::Figures;
pub use self::figures::TelemetryFigures;
use self::files::Family;
use self::hub::Hub;
pub use self::hub::{Event, MOST_BUFFERED, Peer, Subscription};
use self::journal::Journal;
pub use self::journal::TelemetryEntry;
pub use self::logs::LogPage;
use self::replay::Opening;
use super::handle::{Access, ActorHandle, Request};
use super::job;
use crate::blocking;
use crate::capacity::Party;
use crate::config::ActorSettings;
use crate::domain::error::DomainError;

/// Lines of the log that a new listener is given first.
const LOG_OPENING: u64 = 10;
/// Seconds between two complaints that telemetry can't be written.
const COMPLAIN_EVERY: i64 = 60;
/// Entries that may wait for the disk; one more is dropped and counted.
const MOST_QUEUED: usize = 4096;
/// How often it is looked whether a new day began.
const TIDY_EVERY: Duration = Duration::from_secs(60);

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

    fn party(&self) -> Party {
        None
    }
}

/// What today's questions add up to.
#[derive(Debug)]
pub struct ReadFigures;

impl Request for ReadFigures {
    type Reply = TelemetryFigures;
    const NAME: &'static str = "read_figures";
    const ACCESS: Access = Access::Read;

    fn party(&self) -> Party {
        None
    }
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

    fn party(&self) -> Party {
        None
    }
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

    fn party(&self) -> Party {
        None
    }
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
    /// The client's connection, ended with the stream even when nobody reads it.
    pub peer: Option<Peer>,
}

impl Request for Subscribe {
    type Reply = Subscription;
    const NAME: &'static str = "subscribe";
    const ACCESS: Access = Access::Read;

    fn party(&self) -> Party {
        None
    }
}

/// Waits until every entry that was accepted before is written.
#[derive(Debug)]
pub struct Flush;

impl Request for Flush {
    type Reply = ();
    const NAME: &'static str = "flush";
    const ACCESS: Access = Access::Read;

    fn party(&self) -> Party {
        None
    }
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

/// What all requests share; it outlives a restart of the actor.
pub struct TailerCore {
    has_files: bool,
    clock: Clock,
    limits: LimitSource,
    family: Family,
    log_family: Family,
    /// Entries on their way to the file.
    queue: Mutex<VecDeque<String>>,
    writing_planned: AtomicBool,
    journal: Mutex<Journal>,
    figures: Mutex<Figures>,
    logs: Arc<Hub>,
    telemetry: Arc<Hub>,
    open: Arc<AtomicUsize>,
    closing: watch::Sender<bool>,
    /// The minute of the last complaint.
    complained: AtomicU64,
    /// The day, and the number of days to keep, of the last pruning.
    pruned: Mutex<Option<(NaiveDate, u32)>>,
}

/// The actor.
pub struct TelemetryTailer {
    core: Arc<TailerCore>,
    runtime: Handle,
}

impl TailerCore {
    /// The files below a data directory; without one nothing is written and nothing can be followed. `logged`: whether
    /// a log is kept there. `buffer` is how many lines a listener may lag behind.
    pub fn new(
        data_dir: Option<PathBuf>,
        logged: bool,
        buffer: usize,
        clock: Clock,
        limits: LimitSource,
    ) -> Self {
        let below = |name: &str| data_dir.as_ref().map(|dir| dir.join(name)).unwrap_or_default();
        let family = Family::new(below("telemetry"), journal::PREFIX, journal::SUFFIX);
        // What an earlier process left there is not the log of this one.
        let log_dir = if logged { below("logs") } else { PathBuf::new() };
        let log_family = Family::new(log_dir, logs::PREFIX, logs::SUFFIX);
        let hub =
            |family: &Family, opening: Opening| Hub::new(family.clone(), opening, buffer, Arc::clone(&clock));
        Self {
            has_files: data_dir.is_some(),
            queue: Mutex::default(),
            writing_planned: AtomicBool::new(false),
            journal: Mutex::new(Journal::new(family.clone())),
            figures: Mutex::new(Figures::new(family.clone())),
            logs: hub(&log_family, Opening::Last(LOG_OPENING)),
            telemetry: hub(&family, Opening::Today),
            family,
            log_family,
            clock,
            limits,
            open: Arc::default(),
            closing: watch::channel(false).0,
            complained: AtomicU64::new(0),
            pruned: Mutex::new(None),
        }
    }

    /// Ends every open stream: the service is being stopped.
    pub fn close(&self) {
        self.closing.send_replace(true);
    }

    /// Ends the connections of streams that are still open: their clients do not read.
    pub fn cut_streams(&self) {
        self.logs.cut();
        self.telemetry.cut();
    }

    /// Open streams.
    pub fn open_streams(&self) -> usize {
        self.open.load(Ordering::Acquire)
    }

    fn today(&self) -> NaiveDate {
        (self.clock)().date_naive()
    }

    /// Takes the entry over; the disk is not waited for.
    #[expect(
        clippy::unused_async,
        reason = "every request is answered by an async function"
    )]
    async fn record(self: Arc<Self>, message: Record) -> Result<(), DomainError> {
        let limits = (self.limits)();
        if !limits.enabled || !self.has_files {
            return Ok(());
        }
        let mut entry = message.0;
        if !limits.record_queries {
            entry.query.clear();
        }
        let line = serde_json::to_string(&entry)
            .map_err(|error| DomainError::internal("a telemetry entry can't be written", error))?;
        if !self.enqueue(line) {
            counter!("telemetry_lost_total").increment(1);
            return Ok(());
        }
        if !self.writing_planned.swap(true, Ordering::AcqRel) {
            blocking::spawn(move || {
                // First, so that who comes from here on plans the next writing.
                self.writing_planned.store(false, Ordering::Release);
                self.write_queued();
            });
        }
        Ok(())
    }

    /// False when too many wait already.
    fn enqueue(&self, line: String) -> bool {
        let mut queue = lock(&self.queue);
        let room = queue.len() < MOST_QUEUED;
        if room {
            queue.push_back(line);
        }
        room
    }

    /// Writes everything that waits; when it returns, all that was accepted before is in the file. Blocks.
    fn write_queued(&self) {
        // Taken first, so that who finds the queue empty knows that its lines are written.
        let mut journal = lock(&self.journal);
        let most = (self.limits)().max_file_bytes;
        loop {
            let Some(line) = lock(&self.queue).pop_front() else {
                break;
            };
            let now = (self.clock)();
            if let Err(error) = journal.append(&line, now, most) {
                counter!("telemetry_lost_total").increment(1);
                self.complain(now, &error);
            }
        }
        drop(journal);
        self.telemetry.wake();
    }

    fn complain(&self, now: DateTime<Utc>, error: &std::io::Error) {
        let minute = u64::try_from(now.timestamp() / COMPLAIN_EVERY).unwrap_or(0);
        if self.complained.swap(minute, Ordering::Relaxed) != minute {
            tracing::warn!(%error, "telemetry can't be written");
        }
    }

    async fn flush(self: Arc<Self>, _: Flush) -> Result<(), DomainError> {
        job::blocking(move || {
            self.write_queued();
            Ok(())
        })
        .await
    }

    async fn figures(self: Arc<Self>, _: ReadFigures) -> Result<TelemetryFigures, DomainError> {
        job::blocking(move || {
            self.write_queued();
            lock(&self.figures)
                .read(self.today())
                .map_err(|error| DomainError::internal("reading the telemetry failed", error))
        })
        .await
    }

    async fn history(self: Arc<Self>, message: ReadHistory) -> Result<Vec<Value>, DomainError> {
        job::blocking(move || {
            self.write_queued();
            history::read(&self.family, self.today(), message.days, message.limit)
                .map_err(|error| DomainError::internal("reading the telemetry failed", error))
        })
        .await
    }

    async fn read_logs(self: Arc<Self>, message: ReadLogs) -> Result<LogPage, DomainError> {
        let ReadLogs { lines, level } = message;
        job::blocking(move || {
            let page = logs::last_lines(&self.log_family, self.today(), lines, level.as_deref());
            Ok(page)
        })
        .await
    }

    async fn subscribe(self: Arc<Self>, message: Subscribe) -> Result<Subscription, DomainError> {
        let place = self.place()?;
        let hub = Arc::clone(match message.followed {
            Followed::Logs => &self.logs,
            Followed::Telemetry => &self.telemetry,
        });
        let closing = self.closing.subscribe();
        job::blocking(move || {
            // What was accepted before belongs to what the listener is given first.
            self.write_queued();
            Ok(hub.listen(message.last_event_id.as_deref(), message.peer, place, closing))
        })
        .await
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

    /// Deletes old files when a day began or the number of days to keep changed. Blocks.
    fn tidy(&self) {
        let wanted = (self.today(), (self.limits)().keep_days);
        if lock(&self.pruned).replace(wanted) != Some(wanted) {
            journal::prune(&self.family, wanted.0, wanted.1);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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

    fn tidy(&self) {
        let core = Arc::clone(&self.core);
        blocking::spawn_on(&self.runtime, move || core.tidy());
    }
}

impl TelemetryHandle {
    /// Hands an entry over; what goes wrong is counted and never the caller's business.
    pub async fn record(&self, entry: TelemetryEntry) {
        if self.call(Record(entry)).await.is_err() {
            counter!("telemetry_lost_total").increment(1);
        }
    }
}

impl Actor for TelemetryTailer {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.tidy();
        ctx.run_interval(TIDY_EVERY, |tailer, _| tailer.tidy());
    }
}

job::delegate! {
    TelemetryTailer:
    Record => record,
    ReadFigures => figures,
    ReadHistory => history,
    ReadLogs => read_logs,
    Subscribe => subscribe,
    Flush => flush,
}
