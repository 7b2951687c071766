//! Nobody waits for whoever reads the log.

use std::time::Instant;

use futures_util::future::join_all;

use crate::helpers::run;
use crate::process::{Service, hosted, started_once};

/// Requests at a time: each of them is a refusal, and those are delayed.
const AT_ONCE: usize = 50;
/// So many times as many requests log more lines at the level `trace` than may wait.
const MAX_BATCHES: usize = 100;
/// Longest stop, in seconds: what still waits is given up after less.
const STOP: u64 = 10;

fn has_dropped(metrics: &str) -> bool {
    let mut lines = metrics.lines();
    let dropped = lines.find_map(|line| line.strip_prefix("log_lines_dropped_total "));
    dropped.unwrap() != "0"
}

#[test]
fn a_reader_of_the_log_that_stalls_holds_up_no_request_and_no_stop() {
    let dir = started_once();
    let mut command = hosted(dir.path());
    command.env("THREAT_MEMORY_LOG__FILTER", "trace");
    let mut service = Service::start_unread(command);
    run(async {
        let admin = service.admin().await;
        let mut batches = 0;
        while !has_dropped(&admin.metrics().await) {
            batches += 1;
            assert!(batches < MAX_BATCHES, "no line was dropped");
            for answer in join_all((0..AT_ONCE).map(|_| admin.get("/api/nodes/none"))).await {
                answer.refused(404).await;
            }
        }
        let since = Instant::now();
        service.terminate();
        assert_eq!(service.ended().await.code(), Some(0));
        assert!(since.elapsed().as_secs() < STOP);
    });
}
