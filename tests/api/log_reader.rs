//! Nobody waits for whoever reads the log.

use std::time::Instant;

use futures_util::future::join_all;

use crate::helpers::run;
use crate::process::{Service, hosted, started_once};

/// Requests that log more lines at the level `trace` than may wait.
const REQUESTS: usize = 1_000;
/// Requests at a time: each of them is a refusal, and those are delayed.
const AT_ONCE: usize = 20;
/// Longest stop, in seconds: what still waits is given up after less.
const STOP: u64 = 10;

#[test]
fn a_reader_of_the_log_that_stalls_holds_up_no_request_and_no_stop() {
    let dir = started_once();
    let mut command = hosted(dir.path());
    command.env("THREAT_MEMORY_LOG__FILTER", "trace");
    let mut service = Service::start_unread(command);
    run(async {
        let admin = service.admin().await;
        for _ in 0..REQUESTS / AT_ONCE {
            let paths: Vec<String> = (0..AT_ONCE).map(|number| format!("/api/nodes/{number}")).collect();
            for answer in join_all(paths.iter().map(|path| admin.get(path))).await {
                answer.refused(404).await;
            }
        }
        let metrics = admin.metrics().await;
        let dropped = metrics
            .lines()
            .find_map(|line| line.strip_prefix("log_lines_dropped_total "))
            .unwrap();
        assert_ne!(dropped, "0");
        let since = Instant::now();
        service.terminate();
        assert_eq!(service.ended().await.code(), Some(0));
        assert!(since.elapsed().as_secs() < STOP);
    });
}
