//! Streams: complete lines, each once, whatever happens to files, clients and writers.

use super::*;
use crate::actors::telemetry_tailer::hub::INTERVAL;

const LOG: &str = "threat-memory.2026-11-21.log";

async fn next(stream: &mut Subscription) -> Event {
    tokio::time::timeout(Duration::from_secs(5), stream.next())
        .await
        .expect("no line came")
        .expect("the stream ended")
}

async fn lines(stream: &mut Subscription, count: usize) -> Vec<String> {
    let mut found = Vec::new();
    for _ in 0..count {
        found.push(next(stream).await.line.to_string());
    }
    found
}

/// The queries of the next events.
async fn queries(stream: &mut Subscription, count: usize) -> Vec<String> {
    let entries = lines(stream, count).await;
    let query = |line: &String| {
        let entry: Value = serde_json::from_str(line).unwrap();
        entry["query"].as_str().unwrap().to_owned()
    };
    entries.iter().map(query).collect()
}

/// Asserts that nothing more arrives within two polls.
async fn silent(stream: &mut Subscription) {
    let more = tokio::time::timeout(2 * INTERVAL, stream.next()).await;
    assert!(more.is_err(), "{more:?}");
}

#[test]
fn a_listener_gets_whole_lines_once_across_rotation_truncation_and_deletion() {
    run(async {
        let bench = bench(|_| {});
        let log = bench.log(LOG);
        append(&log, "one\ntwo\nthr");
        let mut stream = bench.listen(StreamKind::Logs, None).await;
        assert_eq!(lines(&mut stream, 2).await, ["one", "two"]);
        append(&log, "ee\nfour\r\n");
        assert_eq!(lines(&mut stream, 2).await, ["three", "four"]);
        // Midnight: the next day's file, and a last line in the old one.
        bench.pass(60);
        append(&log, "five\n");
        let next_day = bench.log("threat-memory.2026-11-22.log");
        append(&next_day, "six\n");
        assert_eq!(lines(&mut stream, 2).await, ["five", "six"]);
        // Rotation by renaming.
        append(&next_day, "seven\n");
        fs::rename(&next_day, bench.log("away")).unwrap();
        append(&next_day, "eight\n");
        assert_eq!(lines(&mut stream, 2).await, ["seven", "eight"]);
        // Truncated, and at once longer than before.
        fs::write(&next_day, "9 is longer than all before it\n").unwrap();
        assert_eq!(lines(&mut stream, 1).await, ["9 is longer than all before it"]);
        fs::remove_file(&next_day).unwrap();
        // Long enough that the reader looks while there is no file.
        tokio::time::sleep(2 * INTERVAL).await;
        append(&next_day, b"ten \xff\n");
        assert_eq!(lines(&mut stream, 1).await, ["ten \u{fffd}"]);
        silent(&mut stream).await;
    });
}

#[test]
fn a_log_begins_with_its_last_ten_lines() {
    run(async {
        let bench = bench(|_| {});
        let text: String = (0..25).map(|number| format!("{number}\n")).collect();
        append(&bench.log(LOG), text);
        let mut stream = bench.listen(StreamKind::Logs, None).await;
        let expected: Vec<String> = (15..25).map(|number| number.to_string()).collect();
        assert_eq!(lines(&mut stream, 10).await, expected);
        silent(&mut stream).await;
    });
}

#[test]
fn a_client_that_comes_back_goes_on_where_it_was() {
    run(async {
        let bench = bench(|limits| limits.max_file_bytes = 500);
        for number in 0..5 {
            bench.asked("recall", &number.to_string(), 1).await;
        }
        let mut first = bench.listen(StreamKind::Telemetry, None).await;
        assert_eq!(queries(&mut first, 2).await, ["0", "1"], "the day from its start");
        let seen = next(&mut first).await.id;
        drop(first);
        bench.asked("recall", "5", 1).await;
        bench.pass(120);
        bench.asked("recall", "6", 1).await;
        bench.flush().await;
        assert!(bench.names().len() > 2, "over parts and midnight");
        let bench = bench.restarted();
        let mut again = bench.listen(StreamKind::Telemetry, Some(&seen)).await;
        assert_eq!(queries(&mut again, 4).await, ["3", "4", "5", "6"]);
        bench.asked("recall", "7", 1).await;
        let last = next(&mut again).await;
        assert!(last.line.contains("\"7\""));
        let mut current = bench.listen(StreamKind::Telemetry, Some(&last.id)).await;
        bench.asked("recall", "8", 1).await;
        assert_eq!(queries(&mut current, 1).await, ["8"], "nothing twice");
    });
}

#[test]
fn an_unknown_id_counts_as_none() {
    run(async {
        let bench = bench(|_| {});
        bench.asked("recall", "0", 1).await;
        for unknown in [
            "telemetry-1999-01-01.jsonl:5",
            "telemetry-2026-11-21.jsonl:99999",
            "telemetry-2026-11-21.jsonl:7",
            "../../etc/passwd:0",
            "nonsense",
        ] {
            let mut stream = bench.listen(StreamKind::Telemetry, Some(unknown)).await;
            assert_eq!(queries(&mut stream, 1).await, ["0"], "{unknown}");
        }
    });
}

#[test]
fn a_replay_gives_the_newest_ten_thousand_lines() {
    run(async {
        let bench = bench(|_| {});
        let text: String = (0..12_000).map(|number| format!("{number}\n")).collect();
        append(&bench.log(LOG), text);
        let mut stream = bench.listen(StreamKind::Logs, Some(&format!("{LOG}:0"))).await;
        let found = lines(&mut stream, 10_000).await;
        assert_eq!((found[0].as_str(), found[9_999].as_str()), ("2000", "11999"));
    });
}

#[test]
fn nothing_is_lost_or_doubled_while_somebody_writes() {
    const COUNT: usize = 3000;
    run(async {
        let bench = bench(|limits| limits.max_streams = 100);
        let log = bench.log(LOG);
        let writer = tokio::task::spawn_blocking(move || {
            for number in 0..COUNT {
                append(&log, format!("{number}\n"));
                if number == COUNT / 2 {
                    fs::rename(&log, log.with_extension("away")).unwrap();
                }
            }
        });
        while !bench.log(LOG).exists() {
            tokio::task::yield_now().await;
        }
        let start = format!("{LOG}:0");
        let mut listeners = Vec::new();
        for _ in 0..5 {
            let mut stream = bench.listen(StreamKind::Logs, Some(&start)).await;
            listeners.push(tokio::spawn(async move {
                let first: usize = next(&mut stream).await.line.parse().unwrap();
                let rest = lines(&mut stream, COUNT - 1 - first).await;
                (first, rest)
            }));
        }
        writer.await.unwrap();
        for listener in listeners {
            let (first, rest) = listener.await.unwrap();
            assert!(first == 0 || first == COUNT / 2 + 1, "{first}");
            let wanted = (first + 1..COUNT).map(|number| number.to_string());
            assert!(rest.into_iter().eq(wanted));
        }
    });
}

#[test]
fn a_burst_larger_than_the_buffer_reaches_who_reads_along() {
    run(async {
        let bench = bench(|_| {});
        append(&bench.log(LOG), "");
        let mut stream = bench.listen(StreamKind::Logs, None).await;
        let text: String = (0..5000).map(|number| format!("{number}\n")).collect();
        append(&bench.log(LOG), text);
        let wanted: Vec<String> = (0..5000).map(|number| number.to_string()).collect();
        assert_eq!(lines(&mut stream, 5000).await, wanted);
    });
}

#[test]
fn a_slow_listener_loses_its_place_and_comes_back_and_others_are_not_hurt() {
    run(async {
        let bench = bench(|_| {});
        append(&bench.log(LOG), "");
        let mut slow = bench.listen(StreamKind::Logs, None).await;
        let mut quick = bench.listen(StreamKind::Logs, None).await;
        append(&bench.log(LOG), "first\n");
        let seen = next(&mut slow).await.id;
        assert_eq!(lines(&mut quick, 1).await, ["first"]);
        for batch in 0..4 {
            let text: String = (0..40).map(|number| format!("{batch} {number}\n")).collect();
            append(&bench.log(LOG), &text);
            assert!(lines(&mut quick, 40).await.iter().eq(text.lines()));
        }
        assert_eq!(bench.core.open_streams(), 1, "before the slow one asks again");
        assert!(slow.next().await.is_none());
        let mut again = bench.listen(StreamKind::Logs, Some(&seen)).await;
        let found = lines(&mut again, 160).await;
        assert_eq!((found[0].as_str(), found[159].as_str()), ("0 0", "3 39"));
    });
}

#[test]
fn places_are_bounded_and_come_back_and_nothing_is_done_for_nobody() {
    run(async {
        let bench = bench(|_| {});
        append(&bench.log(LOG), "one\n");
        let mut streams = Vec::new();
        for _ in 0..3 {
            streams.push(bench.listen(StreamKind::Logs, None).await);
        }
        let refused = bench.try_listen(StreamKind::Telemetry, None).await;
        assert!(matches!(refused, Err(DomainError::Busy { .. })));
        streams.pop();
        assert_eq!(bench.core.open_streams(), 2);
        drop(bench.listen(StreamKind::Telemetry, None).await);
        drop(streams);
        assert_eq!(bench.core.open_streams(), 0);
        let watched = || bench.core.logs.is_watched() || bench.core.telemetry.is_watched();
        until(|| !watched()).await;
        // Watching resumes for the next listener.
        let mut stream = bench.listen(StreamKind::Logs, None).await;
        append(&bench.log(LOG), "two\n");
        assert_eq!(lines(&mut stream, 2).await, ["one", "two"]);
    });
}

#[test]
fn streams_end_when_the_service_stops() {
    run(async {
        let bench = bench(|_| {});
        let mut waiting = bench.listen(StreamKind::Logs, None).await;
        let waiting = tokio::spawn(async move { waiting.next().await });
        tokio::task::yield_now().await;
        bench.core.close();
        assert!(waiting.await.unwrap().is_none());
        assert!(bench.listen(StreamKind::Logs, None).await.next().await.is_none());
    });
}

#[test]
fn our_own_entries_do_not_wait_for_the_next_look() {
    run(async {
        let bench = bench(|_| {});
        let mut stream = bench.listen(StreamKind::Telemetry, None).await;
        let mut taken = Vec::new();
        for number in 0..10 {
            let since = std::time::Instant::now();
            bench.asked("recall", &number.to_string(), 1).await;
            assert_eq!(queries(&mut stream, 1).await, [number.to_string()]);
            taken.push(since.elapsed());
        }
        // A busy machine slows some of them; polling alone would slow all but the first.
        taken.sort();
        assert!(taken[2] < INTERVAL / 2, "{taken:?}");
    });
}
