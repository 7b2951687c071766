//! Writing telemetry, its totals, and reading it back.

use std::collections::BTreeSet;

use futures_util::future::join_all;

use super::*;
use crate::actors::handle::{Job, Request};
use crate::actors::worker::Worker;

const TODAY: &str = "telemetry-2026-11-21.jsonl";

#[test]
fn metrics_are_those_of_today_and_true_after_deletion_and_restart() {
    run(async {
        let bench = bench(|_| {});
        assert_eq!(bench.metrics().await, TelemetryMetrics::default());
        for duration in 1..=20 {
            bench.asked("recall", "q", duration).await;
        }
        bench.asked("synthesis", "q", 100).await;
        let found = bench.metrics().await;
        assert_eq!((found.total_queries, found.queries_today), (21, 21));
        assert_eq!(
            (found.recall_count, found.synthesis_count, found.syntheses_today),
            (20, 1, 1)
        );
        assert_eq!((found.p50_ms, found.p95_ms, found.avg_latency_ms), (11, 20, 15));
        assert_eq!(found.top_intents, [("factual".to_owned(), 21)]);
        let bench = bench.restarted();
        assert_eq!(bench.metrics().await, found);
        let file = bench.telemetry(TODAY);
        append(
            &file,
            "not json\n{\"event_type\":\"other\"}\n{\"event_type\":\"recall\"}",
        );
        assert_eq!(
            bench.metrics().await,
            found,
            "a line without its end does not count"
        );
        append(&file, "\n");
        assert_eq!(bench.metrics().await.recall_count, 21);
        fs::remove_file(&file).unwrap();
        assert_eq!(bench.metrics().await, TelemetryMetrics::default());
        bench.asked("recall", "q", 1).await;
        assert_eq!(bench.metrics().await.total_queries, 1);
        bench.pass(120);
        assert_eq!(bench.metrics().await.total_queries, 0, "after midnight");
    });
}

#[test]
fn metrics_follow_a_file_that_is_replaced_and_grows_past_what_was_counted() {
    run(async {
        let bench = bench(|_| {});
        bench.asked("recall", "q", 7).await;
        assert_eq!(bench.metrics().await.recall_count, 1);
        let line = "{\"event_type\":\"synthesis\",\"duration_ms\":3,\"intent\":\"x\"}\n";
        fs::write(bench.telemetry(TODAY), line.repeat(50)).unwrap();
        let found = bench.metrics().await;
        assert_eq!(
            (found.recall_count, found.synthesis_count, found.p95_ms),
            (0, 50, 3)
        );
        assert_eq!(found.top_intents, [("x".to_owned(), 50)]);
    });
}

#[test]
fn top_intents_are_ten_the_most_frequent_first() {
    run(async {
        let bench = bench(|_| {});
        fs::create_dir_all(bench.telemetry("")).unwrap();
        for intent in 0..12 {
            let line = format!("{{\"event_type\":\"recall\",\"intent\":\"i{intent}\"}}\n");
            append(&bench.telemetry(TODAY), line.repeat(intent + 1));
        }
        let metrics = bench.metrics().await;
        assert_eq!(metrics.top_intents.len(), 10);
        assert_eq!(metrics.top_intents[0], ("i11".to_owned(), 12));
        let text = serde_json::to_string(&metrics).unwrap();
        assert!(text.contains("\"top_intents\":{\"i11\":12,\"i10\":11,"), "{text}");
    });
}

#[test]
fn a_full_file_goes_on_in_the_next_part_and_history_is_newest_first_over_all_of_them() {
    run(async {
        let bench = bench(|limits| limits.max_file_bytes = 400);
        for number in 0..6 {
            bench.asked("recall", &format!("evening {number}"), 1).await;
        }
        bench.flush().await;
        let parts = bench.names();
        assert!(parts.len() >= 2, "{parts:?}");
        assert!(
            parts.contains(&"telemetry-2026-11-21.1.jsonl".to_owned()),
            "{parts:?}"
        );
        for name in &parts {
            assert!(fs::metadata(bench.telemetry(name)).unwrap().len() <= 400);
        }
        assert_eq!(bench.metrics().await.recall_count, 6);
        bench.pass(120);
        bench.asked("synthesis", "morning", 1).await;
        bench.flush().await;
        append(
            &bench.telemetry("telemetry-2026-11-22.jsonl"),
            "torn\n{\"event_type\":\"remember\",\"query\":\"content\"}\n",
        );
        let evening = (0..6).rev().map(|number| format!("evening {number}"));
        let all: Vec<String> = ["morning".to_owned()].into_iter().chain(evening).collect();
        assert_eq!(bench.queries(100, 5).await, all);
        assert_eq!(bench.queries(2, 5).await, ["morning", "evening 5"]);
        assert_eq!(bench.queries(100, 1).await, ["morning"]);
    });
}

#[test]
fn an_entry_has_the_shape_that_clients_know() {
    run(async {
        let bench = bench(|_| {});
        bench.asked("recall", "who uses\nMimikatz?", 12).await;
        bench.flush().await;
        let text = fs::read_to_string(bench.telemetry(TODAY)).unwrap();
        let mut entry: Value = serde_json::from_str(text.strip_suffix('\n').unwrap()).unwrap();
        let id = entry["query_id"].take();
        let id = id.as_str().unwrap();
        assert!(
            id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()),
            "{id}"
        );
        let expected = serde_json::json!({
            "event_type": "recall", "timestamp": EVENING as f64, "query_id": null, "actor": null, "caller": null,
            "query": "who uses\nMimikatz?", "result_count": 1, "duration_ms": 12, "intent": "factual",
        });
        assert_eq!(entry, expected);
    });
}

#[test]
fn telemetry_may_be_off_or_without_words_from_one_moment_to_the_next() {
    run(async {
        let bench = bench(|limits| limits.enabled = false);
        bench.asked("recall", "words", 1).await;
        bench.flush().await;
        assert!(!bench.telemetry("").exists());
        {
            let mut limits = bench.limits.lock();
            limits.enabled = true;
            limits.record_queries = false;
        }
        bench.asked("recall", "words", 1).await;
        assert_eq!(bench.queries(5, 1).await, [""]);
    });
}

#[test]
fn old_files_go_at_the_start_at_midnight_and_when_fewer_days_are_kept() {
    run(async {
        let bench = bench(|_| {});
        fs::create_dir_all(bench.telemetry("")).unwrap();
        let files = ["18", "19", "20", "21"].map(|day| format!("telemetry-2026-11-{day}.jsonl"));
        for name in files
            .iter()
            .map(String::as_str)
            .chain(["telemetry-2026-11-18.3.jsonl", "mine.jsonl"])
        {
            fs::write(bench.telemetry(name), "{}\n").unwrap();
        }
        let handle = bench.start();
        until(|| bench.names().len() == 4).await;
        handle.call(Flush).await.unwrap();
        assert_eq!(bench.names()[1..], files[1..]);
        bench.pass(120);
        bench.core.tidy();
        assert_eq!(bench.names()[1..], files[2..], "three days: the 20th to the 22nd");
        bench.limits.lock().keep_days = 1;
        bench.core.tidy();
        assert_eq!(bench.names(), ["mine.jsonl"]);
    });
}

#[test]
fn a_failing_disk_costs_the_metrics_and_never_the_request() {
    run(async {
        let bench = bench(|_| {});
        fs::write(
            bench.telemetry("").parent().unwrap().join("telemetry"),
            "in the way",
        )
        .unwrap();
        let handle = bench.start();
        handle.call(Record(bench.entry("recall", "q", 1))).await.unwrap();
        handle.call(Flush).await.unwrap();
        assert_eq!(
            handle.call(ReadMetrics).await.unwrap(),
            TelemetryMetrics::default()
        );
        fs::remove_file(bench.dir.path().join("telemetry")).unwrap();
        handle.call(Record(bench.entry("recall", "q", 1))).await.unwrap();
        assert_eq!(handle.call(ReadMetrics).await.unwrap().recall_count, 1);
    });
}

#[test]
fn what_does_not_fit_the_queue_is_dropped() {
    run(async {
        let bench = bench(|_| {});
        // Simulates a disk that hangs.
        let journal = bench.core.journal.lock();
        let accepted = (0..MAX_QUEUED + 10).filter(|_| bench.core.queue.try_send("{}".into()).is_ok());
        assert_eq!(accepted.count(), MAX_QUEUED);
        drop(journal);
        bench.flush().await;
        assert!(bench.core.queue.try_send("{}".into()).is_ok());
    });
}

#[test]
fn a_torn_line_and_a_file_that_vanished_spoil_nothing_that_comes_after() {
    run(async {
        let bench = bench(|_| {});
        fs::create_dir_all(bench.telemetry("")).unwrap();
        fs::write(bench.telemetry(TODAY), "{\"event_type\":\"rec").unwrap();
        bench.asked("recall", "one", 1).await;
        assert_eq!(bench.queries(9, 1).await, ["one"]);
        fs::rename(bench.telemetry(TODAY), bench.telemetry("away")).unwrap();
        bench.asked("recall", "two", 1).await;
        assert_eq!(bench.queries(9, 1).await, ["two"]);
        fs::remove_dir_all(bench.telemetry("")).unwrap();
        bench.asked("recall", "three", 1).await;
        assert_eq!(bench.queries(9, 1).await, ["three"]);
    });
}

#[test]
fn concurrent_writers_leave_whole_lines_only() {
    run(async {
        let bench = bench(|limits| limits.max_file_bytes = 10_000);
        let handle = bench.start();
        // As many at a time as the write gate admits.
        for round in 0..10 {
            let calls = (0..40).map(|number| {
                let entry = bench.entry("recall", &format!("{round} {number}"), 1);
                handle.call(Record(entry))
            });
            assert!(join_all(calls).await.iter().all(Result::is_ok));
        }
        assert_eq!(handle.call(ReadMetrics).await.unwrap().recall_count, 400);
        let queries: BTreeSet<String> = bench.queries(500, 1).await.into_iter().collect();
        assert_eq!(queries.len(), 400);
        assert!(bench.names().len() > 3);
    });
}

#[test]
fn the_log_is_read_from_its_end() {
    run(async {
        let bench = bench(|_| {});
        let none = bench.logs(5, None).await;
        assert_eq!(
            (none.error, none.truncated),
            (Some("No log file configured"), false)
        );
        append(&bench.log("threat-memory.2026-11-20.log"), "yesterday\n");
        let log = bench.log("threat-memory.2026-11-21.log");
        for number in 0..10 {
            let level = if number % 2 == 0 { "INFO" } else { "WARN" };
            let entry = serde_json::json!({"timestamp": format!("t{number}"), "level": level,
                "fields": {"message": "m", "n": number}, "target": "x"});
            append(&log, format!("{entry}\n"));
        }
        append(&log, "no json\n{\"half a li");
        let page = bench.logs(3, None).await;
        assert!(page.truncated && page.error.is_none());
        assert_eq!(page.logs.len(), 3);
        assert_eq!(
            (&page.logs[0]["n"], &page.logs[2]["raw"]),
            (&8.into(), &"no json".into())
        );
        let today = bench.logs(11, None).await;
        assert_eq!((today.logs.len(), today.truncated), (11, true));
        let all = bench.logs(12, None).await;
        assert_eq!((all.logs.len(), all.truncated), (12, false));
        assert_eq!(all.logs[0]["raw"], "yesterday");
        let warnings = bench.logs(100, Some("Warning")).await;
        assert_eq!((warnings.logs.len(), warnings.truncated), (5, false));
        assert_eq!(
            (&warnings.logs[0]["event"], &warnings.logs[0]["time"]),
            (&"m".into(), &"t1".into())
        );
        assert!(bench.logs(4, Some("warn")).await.truncated);
        assert_eq!(bench.logs(5, Some("nope")).await, LogPage::default());
    });
}

/// Makes the actor die.
#[derive(Debug)]
struct Die;

impl Request for Die {
    type Reply = ();
    const NAME: &'static str = "die";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> crate::capacity::Tenant {
        None
    }
}

impl actix::Handler<Job<Die>> for Worker<TailerCore> {
    type Result = Result<(), DomainError>;

    fn handle(&mut self, _: Job<Die>, ctx: &mut Self::Context) -> Self::Result {
        actix::ActorContext::terminate(ctx);
        Ok(())
    }
}

#[test]
fn an_actor_that_died_and_was_started_again_goes_on() {
    use crate::actors::handle::Restartable;
    run(async {
        let bench = bench(|_| {});
        let handle = bench.start();
        handle.record(bench.entry("recall", "one", 1)).await;
        let mut stream = bench.listen(StreamKind::Telemetry, None).await;
        assert!(stream.next().await.unwrap().line.contains("one"));
        handle.call(Die).await.ok();
        until(|| handle.revive()).await;
        handle.record(bench.entry("recall", "two", 1)).await;
        assert!(stream.next().await.unwrap().line.contains("two"));
        assert_eq!(handle.call(ReadMetrics).await.unwrap().recall_count, 2);
    });
}
