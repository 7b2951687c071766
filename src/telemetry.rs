//! Logs and metrics: text on the terminal, JSON lines in the log file, Prometheus on the admin listener.

mod log_file;
mod logs;
pub mod traces;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use parking_lot::Mutex;

pub use logs::{LogGuard, init_logs, log_panics};

/// Upper bounds of the latency buckets, in seconds.
const BUCKETS: [f64; 14] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0,
];

/// Installs the metrics recorder of the process once; later calls return the same one.
///
/// # Errors
/// When another recorder is already installed.
pub fn init_metrics() -> Result<PrometheusHandle, String> {
    static HANDLE: Mutex<Option<PrometheusHandle>> = Mutex::new(None);
    let mut handle = HANDLE.lock();
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

/// The text of `/metrics`.
pub fn render(recorder: &PrometheusHandle) -> String {
    metrics::counter!("log_lines_dropped_total").absolute(logs::dropped_lines());
    recorder.render()
}

/// The metrics of both services, with the text that `/metrics` shows.
const COUNTERS: [(&str, &str); 16] = [
    (
        "actor_rejected_total",
        "Requests refused: gate or waiting line full, or timed out",
    ),
    ("actor_restarts_total", "Times the keeper started the actor again"),
    (
        "blocking_tasks_slow_total",
        "Tasks on threads of their own that ran for more than 10 s, by the function that started them",
    ),
    (
        "http_requests_total",
        "Requests answered, by method, route and status",
    ),
    ("llm_requests_total", "Requests to the language model, by outcome"),
    (
        "log_lines_dropped_total",
        "Log lines dropped because the disk or the reader of standard error was too slow",
    ),
    ("backups_total", "Back-ups that ended, by outcome"),
    (
        "notifications_total",
        "Attempts to tell the operator by e-mail, by outcome; dead ones were given up",
    ),
    (
        "oauth_sign_ins_total",
        "Sign-ins that came back from a provider, by provider and outcome",
    ),
    (
        "rate_limit_forgotten_total",
        "Addresses whose requests were forgotten too early, because more addresses called than are remembered",
    ),
    (
        "retention_swept_total",
        "Records deleted because their retention period is over, by kind",
    ),
    (
        "storage_connections_lost",
        "Connections to an external database that broke or fell silent",
    ),
    (
        "storage_connections_opened",
        "Connections opened to an external database",
    ),
    (
        "streams_dropped_total",
        "Clients of event streams that were too slow and were dropped",
    ),
    (
        "telemetry_lost_total",
        "Telemetry entries that could not be written",
    ),
    (
        "write_permits_refused_total",
        "Writes refused because no permit was free",
    ),
];
const GAUGES: [(&str, &str); 11] = [
    ("actor_in_flight", "Requests the actor works on"),
    ("actor_mailbox_depth", "Reads that wait for the actor's gate"),
    (
        "blocking_tasks_overdue",
        "Tasks on threads of their own that have run for more than 10 s and have not ended",
    ),
    (
        "body_bytes_in_flight",
        "Bytes of request bodies whose work has not ended",
    ),
    (
        "api_keys_ending",
        "API keys of all workspaces that expire within 14 days",
    ),
    (
        "backup_last_success_seconds",
        "When the last back-up was finished, in seconds since 1970; 0 before the first since the start",
    ),
    (
        "outbox_pending",
        "E-mails that are still to be sent, all processes together",
    ),
    ("open_streams", "Open event streams of the local service"),
    ("storage_connections", "Open connections to an external database"),
    (
        "storage_writable",
        "1 while the storage takes writes, 0 after a write failed",
    ),
    ("write_permits_free", "Writes that may begin at this moment"),
];
const HISTOGRAMS: [(&str, &str); 2] = [
    (
        "actor_latency_seconds",
        "Time from the gate to the reply, by request",
    ),
    ("http_request_seconds", "Time to answer a request"),
];

/// Describes each metric for readers of `/metrics`.
fn describe() {
    for (name, help) in COUNTERS {
        metrics::describe_counter!(name, help);
    }
    for (name, help) in GAUGES {
        metrics::describe_gauge!(name, help);
    }
    for (name, help) in HISTOGRAMS {
        metrics::describe_histogram!(name, help);
    }
    // Exported from the start, so that an alert can tell zero from missing.
    metrics::gauge!("blocking_tasks_overdue").set(0.0);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    use regex::Regex;

    use super::*;

    /// The names of the metrics that the source records.
    fn recorded() -> BTreeSet<String> {
        let metric = Regex::new(r#"\b(?:counter|gauge|histogram)!\(\s*"(\w+)""#).unwrap();
        let mut names = BTreeSet::new();
        let mut folders = vec![PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/src"))];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let text = std::fs::read_to_string(path).unwrap();
                    names.extend(metric.captures_iter(&text).map(|found| found[1].to_owned()));
                }
            }
        }
        names
    }

    #[test]
    fn every_metric_that_is_recorded_is_described_and_no_other() {
        let recorder = PrometheusBuilder::new().build_recorder();
        let names = recorded();
        metrics::with_local_recorder(&recorder, || {
            describe();
            for name in &names {
                metrics::gauge!(name.clone()).set(1.0);
            }
        });
        let text = recorder.handle().render();
        for name in &names {
            assert!(
                text.contains(&format!("# HELP {name} ")),
                "{name} has no description"
            );
        }
        let described = [&COUNTERS[..], &GAUGES[..], &HISTOGRAMS[..]].concat();
        for (name, _) in described {
            assert!(names.contains(name), "nothing records {name}");
        }
    }
}
