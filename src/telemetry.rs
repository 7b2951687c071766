//! Logs and metrics: text on the terminal, JSON lines in the log file, Prometheus on the admin listener.

use std::path::Path;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tracing_appender::non_blocking::WorkerGuard;
use tracing_appender::rolling::{RollingFileAppender, Rotation};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, fmt};

use crate::config::LogSettings;
use crate::files;

/// Upper bounds of the latency buckets, in seconds.
const BUCKETS: [f64; 14] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0,
];

/// The full filter: the operator's filter applies to this program first.
fn directives(filter: &str) -> String {
    format!("warn,threat_memory={filter},{filter}")
}

/// Whether the text is a valid log filter.
pub fn is_filter(text: &str) -> bool {
    EnvFilter::try_new(directives(text)).is_ok()
}

/// Installs the log subscriber; the guard flushes the file when it is dropped. `key` is the setting that names the
/// directory.
///
/// # Errors
/// When the filter is malformed or the log directory can't be written.
pub fn init_logs(
    settings: &LogSettings,
    key: &str,
    data_dir: Option<&Path>,
) -> Result<Option<WorkerGuard>, String> {
    let filter = |text: &str| EnvFilter::try_new(text).map_err(|error| format!("log.filter: {error}"));
    // The database logs routine maintenance at info, which would drown this program's lines.
    let directives = directives(&settings.filter);
    let quiet = format!(
        "{directives},surrealdb=warn,surrealdb_core=warn,surrealkv=error,tantivy=warn,actix_server=warn"
    );
    let terminal = fmt::layer()
        .with_target(false)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .with_writer(std::io::stderr)
        .with_filter(filter(&quiet)?);
    let (file, guard) = match data_dir.filter(|_| settings.file) {
        None => (None, None),
        Some(dir) => {
            let logs = dir.join("logs");
            let unusable =
                |error: &dyn std::fmt::Display| format!("{key}: {} can't be written: {error}", dir.display());
            files::private_dir(&logs)
                .and_then(|()| files::check_writable(&logs))
                .map_err(|error| unusable(&error))?;
            let appender = RollingFileAppender::builder()
                .rotation(Rotation::DAILY)
                .filename_prefix("threat-memory")
                .filename_suffix("log")
                .max_log_files(settings.keep_files)
                .build(logs)
                .map_err(|error| unusable(&error))?;
            let (writer, guard) = tracing_appender::non_blocking(appender);
            let layer = fmt::layer()
                .json()
                .with_writer(writer)
                .with_filter(filter(&quiet)?);
            (Some(layer), Some(guard))
        }
    };
    tracing_subscriber::registry()
        .with(terminal)
        .with(file)
        .try_init()
        .map_err(|error| error.to_string())?;
    Ok(guard)
}

/// Installs the metrics recorder of the process once; later calls return the same one.
///
/// # Errors
/// When another recorder is already installed.
pub fn init_metrics() -> Result<PrometheusHandle, String> {
    use std::sync::{Mutex, PoisonError};
    static HANDLE: Mutex<Option<PrometheusHandle>> = Mutex::new(None);
    let mut handle = HANDLE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(handle) = &*handle {
        return Ok(handle.clone());
    }
    let installed = PrometheusBuilder::new()
        .set_buckets(&BUCKETS)
        .and_then(PrometheusBuilder::install_recorder)
        .map_err(|error| error.to_string())?;
    describe();
    *handle = Some(installed.clone());
    Ok(installed)
}

/// Describes each metric for readers of `/metrics`.
fn describe() {
    use metrics::{describe_counter, describe_gauge, describe_histogram, gauge};
    describe_gauge!(
        "blocking_tasks_overdue",
        "Tasks on threads of their own that have run for more than 10 s and have not ended"
    );
    describe_counter!(
        "blocking_tasks_slow_total",
        "Tasks on threads of their own that ran for more than 10 s, by the function that started them"
    );
    // Exported from the start, so that an alert can tell zero from missing.
    gauge!("blocking_tasks_overdue").set(0.0);
    describe_counter!(
        "http_requests_total",
        "Requests answered, by method, route and status"
    );
    describe_histogram!("http_request_seconds", "Time to answer a request");
    describe_gauge!("actor_mailbox_depth", "Reads that wait for the actor's gate");
    describe_gauge!("actor_in_flight", "Requests the actor works on");
    describe_counter!(
        "actor_rejected_total",
        "Requests refused: gate or waiting line full, or timed out"
    );
    describe_counter!("actor_restarts_total", "Times the keeper started the actor again");
    describe_gauge!("open_streams", "Open event streams of the local service");
    describe_counter!(
        "streams_dropped_total",
        "Clients of event streams that were too slow and were dropped"
    );
    describe_counter!(
        "telemetry_lost_total",
        "Telemetry entries that could not be written"
    );
    describe_gauge!("write_permits_free", "Writes that may begin at this moment");
    describe_counter!(
        "write_permits_refused_total",
        "Writes refused because no permit was free"
    );
    describe_histogram!(
        "actor_latency_seconds",
        "Time from the gate to the reply, by request"
    );
}
