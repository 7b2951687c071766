//! Files that grow, turn, shrink and vanish while somebody listens.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::AtomicI64;

use chrono::TimeZone;

use super::*;

struct Bench {
    dir: tempfile::TempDir,
    core: Arc<TailerCore>,
    seconds: Arc<AtomicI64>,
}

/// 2026-11-21 23:59:00 UTC.
const EVENING: i64 = 1_795_305_540;

fn bench(change: impl FnOnce(&mut TelemetryLimits)) -> Bench {
    let dir = tempfile::tempdir().unwrap();
    let mut limits = TelemetryLimits {
        enabled: true,
        keep_days: 3,
        record_queries: true,
        max_file_bytes: 1 << 20,
        max_streams: 3,
    };
    change(&mut limits);
    let seconds = Arc::new(AtomicI64::new(EVENING));
    let now = Arc::clone(&seconds);
    let clock: Clock = Arc::new(move || Utc.timestamp_opt(now.load(Ordering::Relaxed), 0).unwrap());
    let core = TailerCore::new(
        Some(dir.path().to_owned()),
        64,
        clock,
        Arc::new(move || limits.clone()),
    );
    Bench {
        core: Arc::new(core),
        dir,
        seconds,
    }
}

fn run(test: impl Future<Output = ()>) {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(test);
}

impl Bench {
    async fn asked(&self, event_type: &'static str, query: &str, duration: u64) {
        let now = (self.core.clock)();
        let entry = TelemetryEntry::new(event_type, query, "factual", 1, duration, now);
        Arc::clone(&self.core).record(Record(entry)).await.unwrap();
    }

    async fn listen(&self, followed: Followed, last: Option<&str>) -> Subscription {
        let message = Subscribe {
            followed,
            last_event_id: last.map(str::to_owned),
        };
        Arc::clone(&self.core).subscribe(message).await.unwrap()
    }

    fn log(&self, name: &str) -> std::path::PathBuf {
        let logs = self.dir.path().join("logs");
        fs::create_dir_all(&logs).unwrap();
        logs.join(name)
    }
}

fn append(path: &Path, text: &str) {
    let mut file = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

async fn next(events: &mut broadcast::Receiver<Event>) -> Event {
    tokio::time::timeout(Duration::from_secs(5), events.recv())
        .await
        .unwrap()
        .unwrap()
}

async fn lines(events: &mut broadcast::Receiver<Event>, count: usize) -> Vec<String> {
    let mut found = Vec::new();
    for _ in 0..count {
        found.push(next(events).await.line.to_string());
    }
    found
}

#[test]
fn figures_are_those_of_today_and_true_after_deletion_and_restart() {
    run(async {
        let bench = bench(|_| {});
        let figures = || async { Arc::clone(&bench.core).figures(ReadFigures).await.unwrap() };
        assert_eq!(figures().await, TelemetryFigures::default());
        for duration in 1..=20 {
            bench.asked("recall", "q", duration).await;
        }
        bench.asked("synthesis", "q", 100).await;
        let found = figures().await;
        assert_eq!(
            (found.total_queries, found.recall_count, found.synthesis_count),
            (21, 20, 1)
        );
        assert_eq!((found.p50_ms, found.p95_ms, found.avg_latency_ms), (11, 20, 14));
        assert_eq!(found.top_intents["factual"], 21);
        assert_eq!(figures().await, found);
        let file = bench.dir.path().join("telemetry/telemetry-2026-11-21.jsonl");
        append(
            &file,
            "not json\n{\"event_type\":\"other\"}\n{\"event_type\":\"recall\"}",
        );
        assert_eq!(figures().await, found, "a line without its end does not count");
        append(&file, "\n");
        assert_eq!(figures().await.recall_count, 21);
        fs::remove_file(&file).unwrap();
        assert_eq!(figures().await, TelemetryFigures::default());
        bench.asked("recall", "q", 1).await;
        bench.seconds.fetch_add(120, Ordering::Relaxed);
        assert_eq!(figures().await.total_queries, 0, "after midnight");
    });
}

#[test]
fn history_is_newest_first_over_days_and_parts() {
    run(async {
        let bench = bench(|limits| limits.max_file_bytes = 400);
        for number in 0..6 {
            bench.asked("recall", &format!("evening {number}"), 1).await;
        }
        bench.seconds.fetch_add(120, Ordering::Relaxed);
        bench.asked("synthesis", "morning", 1).await;
        assert!(fs::read_dir(bench.dir.path().join("telemetry")).unwrap().count() >= 3);
        let ask = |limit: usize, days: u32| Arc::clone(&bench.core).history(ReadHistory { limit, days });
        let queries = |entries: Vec<Value>| -> Vec<String> {
            entries
                .iter()
                .map(|entry| entry["query"].as_str().unwrap().to_owned())
                .collect()
        };
        let all = queries(ask(100, 5).await.unwrap());
        assert_eq!(
            all,
            [
                "morning",
                "evening 5",
                "evening 4",
                "evening 3",
                "evening 2",
                "evening 1",
                "evening 0"
            ]
        );
        assert_eq!(queries(ask(2, 5).await.unwrap()), ["morning", "evening 5"]);
        assert_eq!(queries(ask(100, 1).await.unwrap()), ["morning"]);
    });
}

#[test]
fn old_files_go_and_telemetry_may_be_off_or_without_words() {
    run(async {
        let bench = bench(|limits| limits.record_queries = false);
        let dir = bench.dir.path().join("telemetry");
        fs::create_dir_all(&dir).unwrap();
        for day in ["2026-11-18", "2026-11-19", "2026-11-20"] {
            fs::write(dir.join(format!("telemetry-{day}.jsonl")), "{}\n").unwrap();
        }
        bench.asked("recall", "words", 1).await;
        let mut names: Vec<_> = fs::read_dir(&dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        assert_eq!(names.len(), 3, "{names:?}");
        let text = fs::read_to_string(dir.join("telemetry-2026-11-21.jsonl")).unwrap();
        assert!(!text.contains("words"));
    });
    run(async {
        let off = bench(|limits| limits.enabled = false);
        off.asked("recall", "q", 1).await;
        assert!(!off.dir.path().join("telemetry").exists());
    });
}

#[test]
fn a_listener_gets_whole_lines_once_across_rotation_truncation_and_deletion() {
    run(async {
        let bench = bench(|_| {});
        let log = bench.log("threat-memory.2026-11-21.log");
        append(&log, "one\ntwo\nthr");
        let mut stream = bench.listen(Followed::Logs, None).await;
        let before: Vec<_> = stream.before.iter().map(|event| event.line.to_string()).collect();
        assert_eq!(before, ["one", "two"]);
        append(&log, "ee\nfour\r\n");
        assert_eq!(lines(&mut stream.events, 2).await, ["three", "four"]);
        // Midnight: the next day's file, and a last line in the old one.
        append(&log, "five\n");
        let next_day = bench.log("threat-memory.2026-11-22.log");
        append(&next_day, "six\n");
        assert_eq!(lines(&mut stream.events, 2).await, ["five", "six"]);
        // Rotation by renaming.
        append(&next_day, "seven\n");
        fs::rename(&next_day, bench.log("away")).unwrap();
        append(&next_day, "eight\n");
        assert_eq!(lines(&mut stream.events, 2).await, ["seven", "eight"]);
        // Truncation.
        fs::OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(&next_day)
            .unwrap();
        append(&next_day, "9\n");
        assert_eq!(lines(&mut stream.events, 1).await, ["9"]);
        fs::remove_file(&next_day).unwrap();
        tokio::time::sleep(2 * INTERVAL).await;
        append(&next_day, "ten \u{fffd}\n");
        assert_eq!(lines(&mut stream.events, 1).await, ["ten \u{fffd}"]);
        assert!(stream.events.try_recv().is_err());
    });
}

#[test]
fn a_client_that_comes_back_goes_on_where_it_was() {
    run(async {
        let bench = bench(|_| {});
        for number in 0..5 {
            bench.asked("recall", &number.to_string(), 1).await;
        }
        let first = bench.listen(Followed::Telemetry, None).await;
        assert_eq!(first.before.len(), 5, "the day from its start");
        let seen = first.before[2].id.clone();
        drop(first);
        bench.asked("recall", "5", 1).await;
        bench.seconds.fetch_add(120, Ordering::Relaxed);
        bench.asked("recall", "6", 1).await;
        let mut again = bench.listen(Followed::Telemetry, Some(&seen)).await;
        let query = |event: &Event| {
            serde_json::from_str::<Value>(&event.line).unwrap()["query"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        let queries: Vec<_> = again.before.iter().map(query).collect();
        assert_eq!(queries, ["3", "4", "5", "6"]);
        bench.asked("recall", "7", 1).await;
        assert_eq!(query(&next(&mut again.events).await), "7");
        for unknown in [
            "telemetry-1999-01-01.jsonl:5",
            "telemetry-2026-11-22.jsonl:99999",
            "nonsense",
        ] {
            let fresh = bench.listen(Followed::Telemetry, Some(unknown)).await;
            assert_eq!(fresh.before.len(), 2, "{unknown}: today from its start");
        }
    });
}

#[test]
fn nothing_is_lost_or_doubled_while_somebody_writes() {
    run(async {
        let bench = bench(|limits| limits.max_streams = 100);
        let log = bench.log("threat-memory.2026-11-21.log");
        let writer = {
            let log = log.clone();
            tokio::task::spawn_blocking(move || {
                for number in 0..400 {
                    append(&log, &format!("{number}\n"));
                    if number % 20 == 0 {
                        std::thread::yield_now();
                    }
                }
            })
        };
        let mut streams = Vec::new();
        for _ in 0..5 {
            streams.push(
                bench
                    .listen(Followed::Logs, Some("threat-memory.2026-11-21.log:0"))
                    .await,
            );
        }
        writer.await.unwrap();
        for mut stream in streams {
            let mut found: Vec<String> = stream.before.iter().map(|event| event.line.to_string()).collect();
            while found.last().is_none_or(|last| last != "399") {
                match tokio::time::timeout(Duration::from_secs(5), stream.events.recv())
                    .await
                    .unwrap()
                {
                    Ok(event) => found.push(event.line.to_string()),
                    Err(broadcast::error::RecvError::Lagged(_)) => break,
                    Err(error) => panic!("{error}"),
                }
            }
            let wanted: Vec<String> = (0..found.len()).map(|number| number.to_string()).collect();
            assert_eq!(found, wanted);
        }
    });
}

#[test]
fn a_slow_listener_is_told_and_others_are_not_hurt() {
    run(async {
        let bench = bench(|_| {});
        let log = bench.log("threat-memory.2026-11-21.log");
        let mut slow = bench.listen(Followed::Logs, None).await;
        let mut quick = bench.listen(Followed::Logs, None).await;
        for batch in 0..4 {
            let text: String = (0..40).map(|number| format!("{batch} {number}\n")).collect();
            append(&log, &text);
            assert_eq!(lines(&mut quick.events, 40).await.len(), 40);
        }
        assert!(matches!(
            slow.events.recv().await,
            Err(broadcast::error::RecvError::Lagged(_))
        ));
    });
}

#[test]
fn places_are_bounded_and_come_back() {
    run(async {
        let bench = bench(|_| {});
        let mut streams = Vec::new();
        for _ in 0..3 {
            streams.push(bench.listen(Followed::Logs, None).await);
        }
        let message = Subscribe {
            followed: Followed::Telemetry,
            last_event_id: None,
        };
        let refused = Arc::clone(&bench.core).subscribe(message).await;
        assert!(matches!(refused, Err(DomainError::Busy { .. })));
        streams.pop();
        assert_eq!(bench.core.open_streams(), 2);
        bench.listen(Followed::Telemetry, None).await;
    });
}

#[test]
fn the_log_is_read_from_its_end() {
    run(async {
        let bench = bench(|_| {});
        let read = |lines: usize, level: Option<&str>| {
            Arc::clone(&bench.core).read_logs(ReadLogs {
                lines,
                level: level.map(str::to_owned),
            })
        };
        assert_eq!(read(5, None).await.unwrap().error, Some("No log file configured"));
        let log = bench.log("threat-memory.2026-11-21.log");
        for number in 0..10 {
            let level = if number % 2 == 0 { "INFO" } else { "WARN" };
            append(
                &log,
                &format!(
                    "{{\"timestamp\":\"t{number}\",\"level\":\"{level}\",\"fields\":{{\"message\":\"m\",\"n\":{number}}},\"target\":\"x\"}}\n"
                ),
            );
        }
        append(&log, "no json\n");
        let page = read(3, None).await.unwrap();
        assert!(page.truncated && page.error.is_none());
        assert_eq!(page.logs.len(), 3);
        assert_eq!(
            (&page.logs[0]["n"], &page.logs[2]["raw"]),
            (&Value::from(8), &Value::from("no json"))
        );
        let warnings = read(100, Some("Warning")).await.unwrap();
        assert_eq!((warnings.logs.len(), warnings.truncated), (5, false));
        assert_eq!(
            (&warnings.logs[0]["event"], &warnings.logs[0]["time"]),
            (&Value::from("m"), &Value::from("t1"))
        );
        assert!(read(5, Some("nope")).await.unwrap().logs.is_empty());
    });
}
