//! Owns the day's telemetry file, and the live streams of telemetry and log.
//!
//! A line is written in full or not at all; a failed write shows in the metrics and never fails the request. A
//! listener gets complete lines, each once, across rotation, truncation, midnight and a reconnect. A listener that is
//! too slow is dropped and affects nobody else. Files are polled only while there are listeners. The log file itself
//! is written by the log subscriber.

mod files;
mod hub;
mod journal;
mod lines;
mod logs;
mod replay;
mod tail;
mod tally;
#[cfg(test)]
pub(crate) mod tests;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use futures_util::future::BoxFuture;
use metrics::counter;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::mpsc;

use self::files::Family;
use self::hub::Hub;
pub use self::hub::{Event, Peer, Subscription};
pub use self::journal::TelemetryEntry;
use self::journal::TelemetryJournal;
pub use self::logs::LogPage;
use self::replay::Opening;
use self::tally::Tally;
pub use self::tally::TelemetryMetrics;
use super::job;
use super::worker::{Access, ActorCore, Work, WorkerHandle, every};
use crate::blocking;
use crate::domain::error::DomainError;

/// Log lines a new listener gets first.
const LOG_OPENING: u64 = 10;
/// Shortest interval between two warnings that telemetry can't be written.
const COMPLAIN_EVERY: TimeDelta = TimeDelta::minutes(1);
/// Entries that may wait to be written; any beyond that are dropped and counted.
const MAX_QUEUED: usize = 4096;
/// Interval of pruning old files.
const TIDY_EVERY: Duration = Duration::from_secs(60);

/// Handle to the telemetry and the streams.
pub type TelemetryHandle = WorkerHandle<TailerCore>;

/// Source of the current time.
pub type Clock = Arc<dyn Fn() -> DateTime<Utc> + Send + Sync>;

/// Settings that may change while the service runs.
#[derive(Debug, Clone)]
pub struct TelemetryLimits {
    pub enabled: bool,
    pub keep_days: u32,
    pub record_queries: bool,
    pub max_file_bytes: u64,
    pub max_streams: usize,
}

/// Reads the current limits.
pub type LimitSource = Arc<dyn Fn() -> TelemetryLimits + Send + Sync>;

/// Records one entry.
#[derive(Debug)]
pub struct Record(pub TelemetryEntry);

impl Work for Record {
    type Core = TailerCore;
    type Reply = ();
    const NAME: &'static str = "record";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) {}

    async fn run(self, core: Arc<TailerCore>) -> Result<Self::Reply, DomainError> {
        core.record(self).await
    }
}

/// Reads today's totals.
#[derive(Debug)]
pub struct ReadMetrics;

impl Work for ReadMetrics {
    type Core = TailerCore;
    type Reply = TelemetryMetrics;
    const NAME: &'static str = "read_metrics";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) {}

    async fn run(self, core: Arc<TailerCore>) -> Result<Self::Reply, DomainError> {
        core.metrics(self).await
    }
}

/// Reads the queries of the last days, newest first.
#[derive(Debug)]
pub struct ReadHistory {
    pub limit: usize,
    pub days: u32,
}

impl Work for ReadHistory {
    type Core = TailerCore;
    type Reply = Vec<Value>;
    const NAME: &'static str = "read_history";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) {}

    async fn run(self, core: Arc<TailerCore>) -> Result<Self::Reply, DomainError> {
        core.history(self).await
    }
}

/// Reads the last lines of the log.
#[derive(Debug)]
pub struct ReadLogs {
    pub lines: usize,
    pub level: Option<String>,
}

impl Work for ReadLogs {
    type Core = TailerCore;
    type Reply = LogPage;
    const NAME: &'static str = "read_logs";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) {}

    async fn run(self, core: Arc<TailerCore>) -> Result<Self::Reply, DomainError> {
        core.read_logs(self).await
    }
}

/// Which stream is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamKind {
    Logs,
    Telemetry,
}

/// Subscribes to a stream.
#[derive(Debug)]
pub struct Subscribe {
    pub followed: StreamKind,
    /// Id of the last event the client received.
    pub last_event_id: Option<String>,
    /// The client's connection, closed with the stream even if the client does not read.
    pub peer: Option<Peer>,
}

impl Work for Subscribe {
    type Core = TailerCore;
    type Reply = Subscription;
    const NAME: &'static str = "subscribe";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) {}

    async fn run(self, core: Arc<TailerCore>) -> Result<Self::Reply, DomainError> {
        core.subscribe(self).await
    }
}

/// Waits until every entry accepted so far is written.
#[derive(Debug)]
pub struct Flush;

impl Work for Flush {
    type Core = TailerCore;
    type Reply = ();
    const NAME: &'static str = "flush";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) {}

    async fn run(self, core: Arc<TailerCore>) -> Result<Self::Reply, DomainError> {
        core.flush(self).await
    }
}

/// State shared by all requests; it survives a restart of the actor.
pub struct TailerCore {
    has_files: bool,
    clock: Clock,
    limits: LimitSource,
    family: Family,
    log_family: Family,
    /// Queue of entries to be written.
    queue: mpsc::Sender<String>,
    writing_planned: AtomicBool,
    journal: Mutex<TelemetryJournal>,
    tally: Mutex<Tally>,
    logs: Arc<Hub>,
    telemetry: Arc<Hub>,
    /// Held from counting the open streams until the new one is added.
    admission: Mutex<()>,
}

impl ActorCore for TailerCore {
    type Tenant = ();

    const NAME: &'static str = "telemetry_tailer";

    /// Deletes old files periodically.
    fn upkeep(self: &Arc<Self>) -> Vec<BoxFuture<'static, ()>> {
        let core = Arc::clone(self);
        vec![every(TIDY_EVERY, move || {
            let core = Arc::clone(&core);
            async move { blocking::spawn(move || core.tidy()).await.unwrap_or_default() }
        })]
    }
}

impl TailerCore {
    /// Creates the core over the files below a data directory; without a directory nothing is written or followed.
    /// `logged`: whether the log is written there. `buffer`: number of lines a listener may lag behind.
    pub fn new(
        data_dir: Option<PathBuf>,
        logged: bool,
        buffer: usize,
        clock: Clock,
        limits: LimitSource,
    ) -> Self {
        let below = |name: &str| data_dir.as_ref().map(|dir| dir.join(name)).unwrap_or_default();
        let family = Family::new(below("telemetry"), journal::PREFIX, journal::SUFFIX);
        // A log left there by an earlier process is not this one's.
        let log_dir = if logged { below("logs") } else { PathBuf::new() };
        let log_family = Family::new(log_dir, logs::PREFIX, logs::SUFFIX);
        let hub =
            |family: &Family, opening: Opening| Hub::new(family.clone(), opening, buffer, Arc::clone(&clock));
        let (queue, queued) = mpsc::channel(MAX_QUEUED);
        Self {
            has_files: data_dir.is_some(),
            queue,
            writing_planned: AtomicBool::new(false),
            journal: Mutex::new(TelemetryJournal::new(family.clone(), queued)),
            tally: Mutex::default(),
            logs: hub(&log_family, Opening::Last(LOG_OPENING)),
            telemetry: hub(&family, Opening::Today),
            family,
            log_family,
            clock,
            limits,
            admission: Mutex::default(),
        }
    }

    /// Ends every open stream; called at shutdown.
    pub fn close(&self) {
        self.logs.close();
        self.telemetry.close();
    }

    /// Closes the connections of streams that are still open: their clients do not read.
    pub fn cut_streams(&self) {
        self.logs.shut_down();
        self.telemetry.shut_down();
    }

    /// Number of open streams.
    pub fn open_streams(&self) -> usize {
        self.logs.open_streams() + self.telemetry.open_streams()
    }

    fn today(&self) -> NaiveDate {
        (self.clock)().date_naive()
    }

    /// Queues the entry without waiting for the disk.
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
        if self.queue.try_send(line).is_err() {
            counter!("telemetry_lost_total").increment(1);
            return Ok(());
        }
        if !self.writing_planned.swap(true, Ordering::AcqRel) {
            blocking::spawn(move || {
                // Cleared first, so that entries queued from here on schedule the next write.
                self.writing_planned.store(false, Ordering::Release);
                self.write_queued();
            });
        }
        Ok(())
    }

    /// Writes all queued entries; everything accepted before the call is in the file when it returns. Blocks.
    fn write_queued(&self) {
        // Locked first, so that a caller that finds the queue empty knows its lines are written.
        let mut journal = self.journal.lock();
        let max_bytes = (self.limits)().max_file_bytes;
        while let Ok(line) = journal.queued.try_recv() {
            let now = (self.clock)();
            if let Err(error) = journal.append(&line, now, max_bytes) {
                counter!("telemetry_lost_total").increment(1);
                if journal.complained.is_none_or(|last| now - last >= COMPLAIN_EVERY) {
                    journal.complained = Some(now);
                    tracing::warn!(%error, "telemetry can't be written");
                }
            }
        }
        drop(journal);
        self.telemetry.wake();
    }

    /// Reads the telemetry files once everything accepted so far has been written.
    async fn reading<T: Send + 'static>(
        self: Arc<Self>,
        read: impl FnOnce(&Self) -> io::Result<T> + Send + 'static,
    ) -> Result<T, DomainError> {
        job::blocking(move || {
            self.write_queued();
            read(&self).map_err(|error| DomainError::internal("reading the telemetry failed", error))
        })
        .await
    }

    async fn flush(self: Arc<Self>, _: Flush) -> Result<(), DomainError> {
        self.reading(|_| Ok(())).await
    }

    async fn metrics(self: Arc<Self>, _: ReadMetrics) -> Result<TelemetryMetrics, DomainError> {
        self.reading(|core| core.tally.lock().read(&core.family, core.today()))
            .await
    }

    async fn history(self: Arc<Self>, message: ReadHistory) -> Result<Vec<Value>, DomainError> {
        let ReadHistory { limit, days } = message;
        self.reading(move |core| journal::history(&core.family, core.today(), days, limit))
            .await
    }

    async fn read_logs(self: Arc<Self>, message: ReadLogs) -> Result<LogPage, DomainError> {
        let ReadLogs { lines, level } = message;
        job::blocking(move || {
            let level = level.as_deref();
            Ok(logs::last_lines(&self.log_family, self.today(), lines, level))
        })
        .await
    }

    async fn subscribe(self: Arc<Self>, message: Subscribe) -> Result<Subscription, DomainError> {
        job::blocking(move || {
            // Entries accepted earlier belong to the replay.
            self.write_queued();
            let _admission = self.admission.lock();
            if self.open_streams() >= (self.limits)().max_streams {
                let actor = "event streams";
                return Err(DomainError::Busy { actor });
            }
            let hub = match message.followed {
                StreamKind::Logs => &self.logs,
                StreamKind::Telemetry => &self.telemetry,
            };
            Ok(hub.listen(message.last_event_id.as_deref(), message.peer.as_ref()))
        })
        .await
    }

    /// Deletes old files. Blocks.
    fn tidy(&self) {
        journal::prune(&self.family, self.today(), (self.limits)().keep_days);
    }
}

impl TelemetryHandle {
    /// Records an entry; a failure is counted and never reported to the caller.
    pub async fn record(&self, entry: TelemetryEntry) {
        if self.call(Record(entry)).await.is_err() {
            counter!("telemetry_lost_total").increment(1);
        }
    }
}
