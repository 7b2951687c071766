//! Answers that are too large, too slow, cut off, or not what they claim to be.

use std::io::Write;
use std::time::Instant;

use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::future::join_all;
use test_support::extent;

use super::server::{Act, Server, answer, send};
use super::*;

const CAP: usize = 10_000;
const TOO_LARGE: OutboundError = OutboundError::TooLarge { cap_bytes: CAP };
const GZIP: &str = "200 OK\r\nContent-Encoding: gzip";

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

async fn exchange(script: Vec<Act>, limits: Limits) -> Result<OutboundResponse, OutboundError> {
    let server = Server::start(vec![script]).await;
    let client = client(ScriptedResolver::new(&[&["127.0.0.1"]]), limits);
    let outcome = client.get(&server.url("/"), HeaderMap::new()).await;
    assert!(server.requests()[0].contains("accept-encoding: gzip\r\n"));
    outcome
}

async fn fetch(script: Vec<Act>) -> Result<OutboundResponse, OutboundError> {
    let since = Instant::now();
    let outcome = exchange(script, limits(CAP)).await;
    // Whatever the server does, the limit on bytes or the end of the connection is found at once.
    assert!(since.elapsed() < PATIENT / 2);
    outcome
}

fn broken(outcome: Result<OutboundResponse, OutboundError>) -> String {
    match outcome {
        Err(OutboundError::Broken(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_limit_is_exact() {
    let body = vec![b'x'; CAP];
    let got = fetch(vec![answer("200 OK", &body)]).await.unwrap();
    assert_eq!(
        (got.body.len(), format!("{got:?}")),
        (CAP, "Answer { status: 200, bytes: 10000, .. }".into())
    );
    assert_eq!(
        fetch(vec![answer("200 OK", &vec![b'x'; CAP + 1])])
            .await
            .unwrap_err(),
        TOO_LARGE
    );
    // Without Content-Length.
    let closed = |length| vec![send("HTTP/1.1 200 OK\r\n\r\n"), Act::Send(vec![b'x'; length])];
    assert_eq!(fetch(closed(CAP)).await.unwrap().body, body);
    assert_eq!(fetch(closed(CAP + 1)).await.unwrap_err(), TOO_LARGE);
    assert_eq!(fetch(vec![answer("204 No Content", b"")]).await.unwrap().body, "");
    // An error is an answer too.
    let error = fetch(vec![answer("503 Unavailable\r\nRetry-After: 7", b"later")])
        .await
        .unwrap();
    assert_eq!((error.status.as_u16(), &error.body[..]), (503, &b"later"[..]));
    assert_eq!(error.headers["retry-after"], "7");
}

#[tokio::test]
async fn reading_stops_at_the_limit() {
    // Nothing of the body comes, so only Content-Length can have told.
    let announced = vec![
        send("HTTP/1.1 200 OK\r\nContent-Length: 10001\r\n\r\n"),
        Act::Pause(PATIENT),
    ];
    assert_eq!(fetch(announced).await.unwrap_err(), TOO_LARGE);
    let endless = |head: &str, chunk: &[u8]| {
        vec![
            send(format!("HTTP/1.1 200 OK\r\n{head}\r\n")),
            Act::Repeat(chunk.to_vec()),
        ]
    };
    assert_eq!(fetch(endless("", &[b'x'; 4096])).await.unwrap_err(), TOO_LARGE);
    let chunked = endless("Transfer-Encoding: chunked\r\n", b"5\r\nhello\r\n");
    assert_eq!(fetch(chunked).await.unwrap_err(), TOO_LARGE);
    // More than the limit in headers alone.
    let header = vec![
        send("HTTP/1.1 200 OK\r\n"),
        Act::Repeat(b"X-Filler: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n".to_vec()),
    ];
    broken(fetch(header).await);
}

#[tokio::test]
async fn gzip_is_decompressed_and_counted_decompressed() {
    let body: Vec<u8> = (0..CAP).map(|at| (at % 251) as u8).collect();
    for coding in ["gzip", "GZIP", "x-gzip"] {
        let head = format!("200 OK\r\nContent-Encoding: {coding}");
        let got = fetch(vec![answer(&head, &gzip(&body))]).await.unwrap();
        assert_eq!(got.body, body);
        assert!(!got.headers.contains_key("content-encoding") && !got.headers.contains_key("content-length"));
    }
    let over = gzip(&vec![0; CAP + 1]);
    assert_eq!(fetch(vec![answer(GZIP, &over)]).await.unwrap_err(), TOO_LARGE);
    // A thousand times as large as it comes.
    let size = extent(4 << 20, 64 << 20);
    let bomb = gzip(&vec![0; size]);
    assert!(bomb.len() < size / 512);
    assert_eq!(
        fetch(vec![send(format!("HTTP/1.1 {GZIP}\r\n\r\n")), Act::Send(bomb)])
            .await
            .unwrap_err(),
        TOO_LARGE
    );
    // Byte by byte, in several members, and with nothing inside.
    let members = [gzip(b"one "), gzip(b""), gzip(b"two")].concat();
    let dripped = vec![
        send(format!("HTTP/1.1 {GZIP}\r\n\r\n")),
        Act::Drip(members, Duration::ZERO),
    ];
    assert_eq!(fetch(dripped).await.unwrap().body, "one two");
    assert_eq!(fetch(vec![answer(GZIP, &gzip(b""))]).await.unwrap().body, "");
    assert_eq!(fetch(vec![answer(GZIP, b"")]).await.unwrap().body, "");
    // Empty members for ever: nothing comes out, but what comes in counts too.
    let empty = vec![send(format!("HTTP/1.1 {GZIP}\r\n\r\n")), Act::Repeat(gzip(b""))];
    assert_eq!(fetch(empty).await.unwrap_err(), TOO_LARGE);
}

#[tokio::test]
async fn what_is_not_whole_or_not_gzip_is_broken() {
    let whole = gzip(&[7; 5000]);
    for end in [1, 5, 10, whole.len() / 2, whole.len() - 8, whole.len() - 1] {
        assert_eq!(
            broken(fetch(vec![answer(GZIP, &whole[..end])]).await),
            "the body is not valid gzip",
            "{end}"
        );
    }
    let mut damaged = whole.clone();
    let checksum = damaged.len() - 8;
    damaged[checksum] ^= 1;
    assert_eq!(
        broken(fetch(vec![answer(GZIP, &damaged)]).await),
        "the body is not valid gzip"
    );
    assert_eq!(
        broken(fetch(vec![answer(GZIP, b"{\"objects\": []}")]).await),
        "the body is not valid gzip"
    );
    for coding in [
        "br",
        "deflate",
        "gzip, gzip",
        "gzip\r\nContent-Encoding: gzip",
        "hunter2",
    ] {
        let head = format!("200 OK\r\nContent-Encoding: {coding}");
        assert_eq!(
            broken(fetch(vec![answer(&head, &whole)]).await),
            "the Content-Encoding is not gzip"
        );
    }
}

#[tokio::test]
async fn a_connection_that_breaks_is_told_from_one_that_never_was() {
    let cut = vec![send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this")];
    broken(fetch(cut).await);
    let chunk = vec![send(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    )];
    broken(fetch(chunk).await);
    broken(fetch(vec![send("HTTP/1.1 200 OK\r\nContent-")]).await);
    broken(fetch(vec![]).await);
    broken(fetch(vec![send("SSH-2.0-OpenSSH_9.6\r\n")]).await);

    let server = Server::start(vec![vec![]]).await;
    let address = server.address;
    drop(server);
    tokio::time::sleep(Duration::from_millis(50)).await;
    let url = format!("http://{address}/path?token=hunter2").parse().unwrap();
    let client = client(ScriptedResolver::new(&[&["127.0.0.1"]]), limits(CAP));
    let error = client.get(&url, HeaderMap::new()).await.unwrap_err();
    assert!(matches!(error, OutboundError::Unreachable(_)), "{error:?}");
    let shown = format!("{error} {error:?}");
    assert!(shown.contains("refused") && !shown.contains("hunter2"), "{shown}");
}

#[tokio::test]
async fn one_time_out_covers_everything() {
    let limit = Duration::from_millis(600);
    let short = Limits {
        total_timeout: limit,
        ..limits(CAP)
    };
    let pause = Duration::from_millis(100);
    let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n".to_vec();
    let since = Instant::now();
    let scripts = [
        // Silent, slow in its headers, slow in its body.
        vec![Act::Pause(PATIENT)],
        vec![Act::Drip(whole.clone(), pause)],
        vec![Act::Send(whole), Act::Drip(vec![b'x'; 20], pause)],
        vec![
            send(format!("HTTP/1.1 {GZIP}\r\n\r\n")),
            Act::Drip(gzip(&[7; 5000]), pause),
        ],
    ];
    let outcomes = scripts.map(|script| exchange(script, short));
    for outcome in join_all(outcomes).await {
        assert_eq!(outcome.unwrap_err(), OutboundError::Timeout { ms: 600 });
    }
    // Each step is quick; all of them are not.
    let step = vec![Act::Pause(limit / 3), answer("302 Found\r\nLocation: /", b"")];
    assert_eq!(
        exchange(step, short).await.unwrap_err(),
        OutboundError::Timeout { ms: 600 }
    );
    let url = "http://feed.example.org/".parse().unwrap();
    let policy = public(&["feed.example.org"], true);
    let client = GuardedClient::with_resolver(policy, short, Arc::new(SilentResolver)).unwrap();
    let outcome = client.get(&url, HeaderMap::new()).await;
    assert_eq!(outcome.unwrap_err(), OutboundError::Timeout { ms: 600 });
    assert!(since.elapsed() < PATIENT, "{:?}", since.elapsed());
}

/// A resolver that never answers.
struct SilentResolver;

impl Resolve for SilentResolver {
    fn resolve(&self, _: Name) -> Resolving {
        Box::pin(std::future::pending())
    }
}
