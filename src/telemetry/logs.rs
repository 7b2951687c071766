//! The log: text on the terminal and JSON lines in a file, each written by a thread of its own.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::Write;
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, fmt};

use super::log_file::LogFile;
use super::traces::{self, TraceGuard};
use crate::config::{LogSettings, log_directives};
use crate::files;
use crate::lifecycle::give_up;

/// Most log lines that wait for the disk or the terminal; further ones are dropped. A queue takes its memory, 32 bytes
/// for each, at once.
const MAX_WAITING_LINES: usize = 16_384;

/// In the path of each source file of the crate whose threads accept connections and answer them.
const LISTENER_CRATE: &str = "actix-server";

/// How long a stop waits for them. Each guard gives up after 1.1 s by itself.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(1500);

/// Writes what still waits when it is dropped, unless whoever reads it has stalled.
#[derive(Debug)]
pub struct LogGuard {
    writers: Vec<WorkerGuard>,
    traces: Option<TraceGuard>,
}

impl Drop for LogGuard {
    fn drop(&mut self) {
        // First, because it may have something to tell.
        drop(self.traces.take());
        let until = Instant::now() + FLUSH_TIMEOUT;
        let (flushed, done) = mpsc::channel();
        // With a full queue a guard writes to standard output, whose reader may have stalled, too. The file's must not wait
        // for that.
        for guard in self.writers.drain(..) {
            let flushed = flushed.clone();
            std::thread::spawn(move || {
                drop(guard);
                flushed.send(()).ok();
            });
        }
        drop(flushed);
        // Ends with an error when all guards are dropped or the time is over.
        while let Ok(()) = done.recv_timeout(until.saturating_duration_since(Instant::now())) {}
    }
}

/// The numbers of lines that the queues of the log have dropped.
static DROPPED: Mutex<Vec<ErrorCounter>> = Mutex::new(Vec::new());

/// Lines dropped since the start.
pub(super) fn dropped_lines() -> u64 {
    let queues = DROPPED.lock();
    queues.iter().map(|queue| queue.dropped_lines() as u64).sum()
}

/// A queue in front of a writer that may be slow.
fn non_blocking_writer(writer: impl Write + Send + 'static) -> (NonBlocking, WorkerGuard) {
    let queue = NonBlockingBuilder::default().buffered_lines_limit(MAX_WAITING_LINES);
    let (writer, guard) = queue.finish(writer);
    DROPPED.lock().push(writer.error_counter());
    (writer, guard)
}

/// Logs panics like any other error: the standard library writes them to standard error itself, and waits for its reader.
/// A panic of a listener ends the process.
pub fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        let thread = thread.name().unwrap_or_default();
        match Backtrace::capture() {
            trace if trace.status() == BacktraceStatus::Captured => {
                tracing::error!(thread, "{panic}\n{trace}");
            }
            _ => tracing::error!(thread, "{panic}"),
        }
        // Such a panic ends an acceptor or an HTTP worker for good; those of handlers are caught.
        let place = panic.location().map_or("", |place| place.file());
        if place.contains(LISTENER_CRATE) {
            give_up(&format!("a thread of a listener died: {panic}"));
        }
    }));
}

/// Installs the log subscriber. `key` is the setting that names the directory. No request waits for whoever reads the log,
/// such as a pager or a journal that has stalled.
///
/// # Errors
/// When the filter is malformed or the log directory can't be written.
pub fn init_logs(settings: &LogSettings, key: &str, data_dir: Option<&Path>) -> Result<LogGuard, String> {
    let filter = |text: &str| EnvFilter::try_new(text).map_err(|error| format!("log.filter: {error}"));
    // The database logs routine maintenance at info, and the protocol of agents every message, which would drown this program's lines.
    let directives = log_directives(&settings.filter);
    // A log line names the spans around it, and those of traces stand between it and its request.
    let traces = if settings.traces_url.is_empty() {
        "off"
    } else {
        "info"
    };
    let quiet = format!(
        "{directives},surrealdb=warn,surrealdb_core=warn,surrealkv=error,rmcp=warn,tantivy=warn,actix_server=warn,{}={traces}",
        traces::TARGET
    );
    let (writer, guard) = non_blocking_writer(std::io::stderr());
    let mut guards = vec![guard];
    let terminal = fmt::layer()
        .with_target(false)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .with_writer(writer)
        .with_filter(filter(&quiet)?);
    // A list of layers with a filter each. An absent one (`Option`) counts as a layer without a filter, beside which a callsite
    // that every filter has turned off leaves its mark on the next one, whose event or span is lost then.
    let mut layers = vec![terminal.boxed()];
    if let Some(dir) = data_dir.filter(|_| settings.file) {
        let logs = dir.join("logs");
        let unusable =
            |error: &dyn std::fmt::Display| format!("{key}: {} can't be written: {error}", dir.display());
        files::private_dir(&logs)
            .and_then(|()| files::check_writable(&logs))
            .map_err(|error| unusable(&error))?;
        let log_file = LogFile::new(logs, settings.keep_files).map_err(|error| unusable(&error))?;
        let (writer, guard) = non_blocking_writer(log_file);
        guards.push(guard);
        let layer = fmt::layer()
            .json()
            .with_writer(writer)
            .with_filter(filter(&quiet)?);
        layers.push(layer.boxed());
    }
    let mut trace_guard = None;
    if !settings.traces_url.is_empty() {
        let layer = traces::layer(&settings.traces_url, settings.traces_percent);
        let (layer, guard) = layer.map_err(|error| format!("log.traces_url: {error}"))?;
        layers.push(layer.boxed());
        trace_guard = Some(guard);
    }
    tracing_subscriber::registry()
        .with(layers)
        .try_init()
        .map_err(|error| error.to_string())?;
    Ok(LogGuard {
        writers: guards,
        traces: trace_guard,
    })
}
