//! Both event streams, read through a client library.

use std::io::Write;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use eventsource_stream::{Event, Eventsource};
use futures_util::{Stream, StreamExt};
use serde_json::Value;
use test_support::eventually;

use crate::helpers::{Client, run};
use crate::local::LocalApp;

type Events = Pin<Box<dyn Stream<Item = Event>>>;

async fn open(client: &Client, path: &str, last: Option<&str>) -> Events {
    let mut request = client.request(reqwest::Method::GET, path);
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(
        answer.headers()["content-type"],
        "text/event-stream; charset=utf-8"
    );
    let events = answer.bytes_stream().eventsource();
    Box::pin(events.filter_map(|event| async move { event.ok() }))
}

async fn next(events: &mut Events) -> Event {
    tokio::time::timeout(Duration::from_secs(10), events.next())
        .await
        .unwrap()
        .unwrap()
}

fn query_of(event: &Event) -> String {
    let entry: Value = serde_json::from_str(&event.data).unwrap();
    entry["query"].as_str().unwrap().to_owned()
}

async fn open_one(client: &Client) -> reqwest::Response {
    let request = client.request(reqwest::Method::GET, "/api/telemetry/stream");
    request.send().await.unwrap()
}

fn append(path: &Path, text: &str) {
    let mut file = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

#[test]
fn telemetry_is_followed_across_a_restart_of_the_service() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let app = LocalApp::durable(dir.path()).await;
        let mut events = open(&app.client, "/api/telemetry/stream", None).await;
        app.client.recall("one").await;
        app.client.recall("two").await;
        assert_eq!(query_of(&next(&mut events).await), "one");
        let two = next(&mut events).await;
        assert_eq!(query_of(&two), "two");
        // Shutdown ends the stream without waiting for the client.
        let begun = std::time::Instant::now();
        app.stop().await;
        assert!(begun.elapsed() < Duration::from_secs(10));
        assert!(events.next().await.is_none());
        let app = LocalApp::durable(dir.path()).await;
        app.client.recall("three").await;
        let mut events = open(&app.client, "/api/telemetry/stream", Some(&two.id)).await;
        assert_eq!(query_of(&next(&mut events).await), "three");
        app.client.recall("four").await;
        assert_eq!(query_of(&next(&mut events).await), "four");
        app.stop().await;
    });
}

/// Waits until a stream can be opened.
async fn a_place(client: &Client) {
    eventually(|| async {
        let status = open_one(client).await.status();
        if status == 200 { Ok(()) } else { Err(status) }
    })
    .await;
}

#[test]
fn the_log_is_followed_across_rotation_truncation_and_a_new_day() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let logs = dir.path().join("logs");
        std::fs::create_dir_all(&logs).unwrap();
        let log = logs.join("threat-memory.2026-01-01.log");
        append(&log, "one\n");
        let app = LocalApp::durable(dir.path()).await;
        let mut events = open(&app.client, "/api/logs/stream", None).await;
        assert_eq!(next(&mut events).await.data, "one");
        append(&log, "tw");
        append(&log, "o\n");
        assert_eq!(next(&mut events).await.data, "two");
        std::fs::rename(&log, logs.join("old")).unwrap();
        append(&log, "three\n");
        assert_eq!(next(&mut events).await.data, "three");
        std::fs::OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(&log)
            .unwrap();
        append(&log, "4\n");
        assert_eq!(next(&mut events).await.data, "4");
        append(&logs.join("threat-memory.2026-01-02.log"), "five\n");
        let five = next(&mut events).await;
        assert_eq!(
            (five.data.as_str(), five.id.as_str()),
            ("five", "threat-memory.2026-01-02.log:5")
        );
        app.stop().await;
    });
}

#[test]
fn quiet_streams_show_signs_of_life_and_are_bounded() {
    run(async {
        let app = LocalApp::with(None, "web.heartbeat_seconds = 1\nweb.max_streams = 2").await;
        let first = open_one(&app.client).await;
        let second = open_one(&app.client).await;
        let third = open_one(&app.client).await;
        assert_eq!((first.status().as_u16(), third.status().as_u16()), (200, 503));
        assert!(third.headers().contains_key("retry-after"));
        let mut bytes = first.bytes_stream();
        for _ in 0..2 {
            let chunk = tokio::time::timeout(Duration::from_secs(5), bytes.next())
                .await
                .unwrap()
                .unwrap()
                .unwrap();
            assert_eq!(&chunk[..], b": keep-alive\n\n");
        }
        drop(second);
        // The place of a client that went away comes back.
        a_place(&app.client).await;
        app.stop().await;
    });
}

#[test]
fn who_does_not_read_loses_the_connection_and_holds_up_no_stop() {
    use std::io::{Read, Write};
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let app = LocalApp::with(Some(dir.path()), "web.stream_buffer = 16\nweb.max_streams = 1").await;
        let address = app.app.address();
        let unread = || {
            let mut connection = std::net::TcpStream::connect(address).unwrap();
            let head = format!("GET /api/telemetry/stream HTTP/1.1\r\nHost: {address}\r\n\r\n");
            connection.write_all(head.as_bytes()).unwrap();
            connection
        };
        let mut lost = unread();
        let query = "a long question ".repeat(60);
        let file = dir.path().join("telemetry");
        app.client.recall(&query).await;
        let journal = eventually(|| async {
            let found = std::fs::read_dir(&file).ok().and_then(|mut files| files.next());
            found
                .map(|found| found.unwrap().path())
                .ok_or("no telemetry file")
        })
        .await;
        // More than the buffers on both sides of a connection can hold.
        let line = format!("{{\"query\": \"{query}\"}}\n");
        append(&journal, &line.repeat(30_000));
        a_place(&app.client).await;
        let ended = tokio::task::spawn_blocking(move || {
            lost.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            let mut buffer = vec![0; 1 << 16];
            loop {
                match lost.read(&mut buffer) {
                    Ok(0) => return true,
                    Ok(_) => {}
                    Err(error) => return error.kind() == std::io::ErrorKind::ConnectionReset,
                }
            }
        });
        assert!(ended.await.unwrap(), "the connection is still open");
        let mut still_there = unread();
        // It has its place once the answer begins.
        let still_there = tokio::task::spawn_blocking(move || {
            still_there.read_exact(&mut [0; 4]).unwrap();
            still_there
        });
        let still_there = still_there.await.unwrap();
        let begun = std::time::Instant::now();
        app.stop().await;
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        drop(still_there);
    });
}
