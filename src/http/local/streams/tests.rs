//! Frames, and a stream over a real connection.

use std::sync::Arc;

use actix_web::{App, HttpServer};
use test_support::until;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;
use crate::actors::telemetry_tailer::tests::{append, bench, run};

const LOG: &str = "threat-memory.2026-11-21.log";

#[test]
fn a_frame_begins_with_data_and_ends_with_a_blank_line() {
    let frame = |line: &str| {
        let mut chunk = BytesMut::new();
        let event = Event {
            id: "a.log:7".into(),
            line: line.into(),
        };
        write_frame(&mut chunk, &event);
        String::from_utf8(chunk.to_vec()).unwrap()
    };
    assert_eq!(frame("one"), "data: one\nid: a.log:7\n\n");
    assert_eq!(
        frame("one\rid: x\rtwo"),
        "data: one\ndata: id: x\ndata: two\nid: a.log:7\n\n"
    );
}

/// Reads until `wanted` arrives; returns everything received.
async fn read_until(stream: &mut TcpStream, wanted: &str) -> String {
    let mut text = String::new();
    let mut block = [0; 4096];
    while !text.contains(wanted) {
        let reading = tokio::time::timeout(Duration::from_secs(5), stream.read(&mut block));
        let size = reading.await.expect("nothing came").unwrap();
        assert!(size > 0, "closed after {text}");
        text += &String::from_utf8_lossy(&block[..size]);
    }
    text
}

#[test]
fn a_client_reads_along_and_frees_its_place_when_it_goes() {
    run(async {
        let bench = Arc::new(bench(|_| {}));
        append(&bench.log(LOG), "one\n");
        let served = web::Data::new(Arc::clone(&bench));
        let answer = |bench: web::Data<Arc<crate::actors::telemetry_tailer::tests::Bench>>| async move {
            event_stream(
                bench.listen(StreamKind::Logs, None).await,
                Duration::from_millis(200),
            )
        };
        let server = HttpServer::new(move || {
            App::new()
                .app_data(served.clone())
                .route("/", web::get().to(answer))
        })
        .workers(1)
        .disable_signals()
        .h1_allow_half_closed(false)
        .bind("127.0.0.1:0")
        .unwrap();
        let address = server.addrs()[0];
        let server = server.run();
        let control = server.handle();
        let server = tokio::spawn(server);
        let mut client = TcpStream::connect(address).await.unwrap();
        client
            .write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            .await
            .unwrap();
        let text = read_until(&mut client, "id: threat-memory.2026-11-21.log:4\n\n").await;
        for part in [
            "content-type: text/event-stream; charset=utf-8\r\n",
            "cache-control: no-store\r\n",
            "x-accel-buffering: no\r\n",
            "\ndata: one\nid: ",
        ] {
            assert!(text.contains(part), "{text}");
        }
        read_until(&mut client, ": keep-alive\n\n").await;
        append(&bench.log(LOG), "two\nthree\n");
        read_until(&mut client, "data: three\n").await;
        assert_eq!(bench.core.open_streams(), 1);
        drop(client);
        until(|| bench.core.open_streams() == 0).await;
        control.stop(false).await;
        server.await.unwrap().unwrap();
    });
}
