//! The actor's guarantees, with files that grow, rotate, shrink and vanish while clients listen.

mod journal;
mod streams;

use std::fs;
use std::future::Future;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::AtomicI64;

use chrono::TimeZone;
use test_support::until;

use super::*;
use crate::actors::roster::Roster;
use crate::config::ActorSettings;

/// A core over its own directory, with a clock that the test controls.
pub(crate) struct Bench {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) core: Arc<TailerCore>,
    seconds: Arc<AtomicI64>,
    limits: Arc<Mutex<TelemetryLimits>>,
}

/// 2026-11-21 23:59:00 UTC.
const EVENING: i64 = 1_795_305_540;
const SETTINGS: ActorSettings = ActorSettings {
    mailbox: 64,
    gate: 8,
    write_gate: 64,
    timeout_ms: 10_000,
    write_timeout_ms: 10_000,
};

pub(crate) fn bench(change: impl FnOnce(&mut TelemetryLimits)) -> Bench {
    let mut limits = TelemetryLimits {
        enabled: true,
        keep_days: 3,
        record_queries: true,
        max_file_bytes: 1 << 20,
        max_streams: 3,
    };
    change(&mut limits);
    let dir = tempfile::tempdir().unwrap();
    let (limits, seconds) = (Arc::new(Mutex::new(limits)), Arc::new(AtomicI64::new(EVENING)));
    let core = core_over(dir.path(), &limits, &seconds);
    Bench {
        core,
        dir,
        seconds,
        limits,
    }
}

fn core_over(dir: &Path, limits: &Arc<Mutex<TelemetryLimits>>, seconds: &Arc<AtomicI64>) -> Arc<TailerCore> {
    let (limits, now) = (Arc::clone(limits), Arc::clone(seconds));
    let clock: Clock = Arc::new(move || Utc.timestamp_opt(now.load(Ordering::Relaxed), 0).unwrap());
    let limits: LimitSource = Arc::new(move || limits.lock().clone());
    Arc::new(TailerCore::new(Some(dir.to_owned()), true, 64, clock, limits))
}

/// Runs a test as production does.
pub(crate) fn run<F: Future<Output = ()>>(test: F) {
    let system = actix::System::with_tokio_rt(|| {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(2).enable_all().build().unwrap()
    });
    system.block_on(async {
        tokio::time::timeout(Duration::from_secs(30), test)
            .await
            .expect("the test hangs");
    });
}

impl Bench {
    fn start(&self) -> TelemetryHandle {
        Roster::new(|_| SETTINGS).worker(&self.core)
    }

    /// The same files under a new process.
    fn restarted(self) -> Self {
        let core = core_over(self.dir.path(), &self.limits, &self.seconds);
        Self { core, ..self }
    }

    fn entry(&self, event_type: &'static str, query: &str, duration: u64) -> TelemetryEntry {
        TelemetryEntry::new(event_type, query, "factual", 1, duration, (self.core.clock)())
    }

    pub(crate) async fn asked(&self, event_type: &'static str, query: &str, duration: u64) {
        let entry = self.entry(event_type, query, duration);
        Arc::clone(&self.core).record(Record(entry)).await.unwrap();
    }

    async fn flush(&self) {
        Arc::clone(&self.core).flush(Flush).await.unwrap();
    }

    async fn metrics(&self) -> TelemetryMetrics {
        Arc::clone(&self.core).metrics(ReadMetrics).await.unwrap()
    }

    /// The queries of the last days, newest first.
    async fn queries(&self, limit: usize, days: u32) -> Vec<String> {
        let message = ReadHistory { limit, days };
        let entries = Arc::clone(&self.core).history(message).await.unwrap();
        entries
            .iter()
            .map(|entry| entry["query"].as_str().unwrap().to_owned())
            .collect()
    }

    async fn logs(&self, lines: usize, level: Option<&str>) -> LogPage {
        let level = level.map(str::to_owned);
        let message = ReadLogs { lines, level };
        Arc::clone(&self.core).read_logs(message).await.unwrap()
    }

    pub(crate) async fn listen(&self, followed: StreamKind, last: Option<&str>) -> Subscription {
        self.try_listen(followed, last).await.unwrap()
    }

    async fn try_listen(
        &self,
        followed: StreamKind,
        last: Option<&str>,
    ) -> Result<Subscription, DomainError> {
        let last_event_id = last.map(str::to_owned);
        let message = Subscribe {
            followed,
            last_event_id,
            peer: None,
        };
        Arc::clone(&self.core).subscribe(message).await
    }

    pub(crate) fn log(&self, name: &str) -> PathBuf {
        let logs = self.dir.path().join("logs");
        fs::create_dir_all(&logs).unwrap();
        logs.join(name)
    }

    fn telemetry(&self, name: &str) -> PathBuf {
        self.dir.path().join("telemetry").join(name)
    }

    /// The names of the telemetry files.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.dir.path().join("telemetry"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn pass(&self, seconds: i64) {
        self.seconds.fetch_add(seconds, Ordering::Relaxed);
    }
}

pub(crate) fn append(path: &Path, text: impl AsRef<[u8]>) {
    let mut file = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .unwrap();
    file.write_all(text.as_ref()).unwrap();
}
