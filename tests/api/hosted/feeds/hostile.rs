//! Servers that lead astray, flood, stall or talk nonsense. Each pull fails with a clear error, keeps the pages staged
//! before, and goes on once the server has come to its senses.

use std::collections::BTreeSet;
use std::io::Write;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use test_support::is_full;

use super::server::{Reply, Sending, Server, TAXII};
use super::{FEEDS, all, allowing, batch_path, ids, tools};
use crate::helpers::{Client, TestApp, run, settings};
use crate::stix::text;

/// Objects on a page. These tests stage many pages; what is on them does not matter.
const SMALL_PAGE: usize = 2;
const OBJECTS: usize = 3 * SMALL_PAGE;
/// In the quick round, so many tricks are played for one that is watched to the end.
const WATCHED: usize = 4;
/// Requests that are answered correctly before the server misbehaves.
const GOOD: usize = 2;
/// Time-out of a request where servers stall.
const TIMEOUT: Duration = Duration::from_secs(1);

/// What a server does from its third reply on, and what is said about it.
struct Trick {
    name: String,
    status: u16,
    says: &'static str,
    reply: Box<dyn Fn(Reply) -> Reply + Send + Sync>,
}

fn trick(
    name: &str,
    (status, says): (u16, &'static str),
    reply: impl Fn(Reply) -> Reply + Send + Sync + 'static,
) -> Trick {
    Trick {
        name: name.to_owned(),
        status,
        says,
        reply: Box::new(reply),
    }
}

/// A service that gives up on a server soon.
async fn impatient() -> TestApp {
    let mut settings = allowing(settings("mem://"));
    settings.feeds.timeout_ms = u64::try_from(TIMEOUT.as_millis()).unwrap();
    TestApp::with(settings).await
}

/// Plays a trick and checks the answer; if it is watched to the end, after good pages, and with the batch and its
/// resumption.
async fn play(client: &Client, trick: Trick, is_watched: bool) {
    let Trick {
        name,
        status,
        says,
        reply,
    } = trick;
    let objects = tools(OBJECTS);
    let server = Server::start(&objects).await;
    server.misbehave(move |request, honest| {
        if is_watched && request.number < GOOD {
            honest
        } else {
            reply(honest)
        }
    });
    let url = format!("{}?limit={SMALL_PAGE}", server.url());
    let feed = client.feed_at(&url, json!({})).await;
    let batch = refused(client, &feed, (&name, status, says)).await;
    if !is_watched {
        return;
    }
    assert_failed(client, &feed, &batch, (&name, says)).await;

    server.behave();
    let resume = format!("{}/resume", batch_path(&batch));
    let resumed = client.post(&resume, &json!({})).await.expect(200).await;
    assert_eq!(resumed["batch"]["status"], "review", "{name}: {resumed}");
    assert!(resumed["batch"].get("error").is_none(), "{name}: {resumed}");
    assert_eq!(
        all(&client.items(&batch).await, "stix_id"),
        ids(&objects),
        "{name}"
    );
    client.post(&resume, &json!({})).await.refused(409).await;
}

/// Asks for a pull, and checks its refusal. Returns the batch.
async fn refused(client: &Client, feed: &str, (name, status, says): (&str, u16, &str)) -> String {
    let answer = client.pulls(feed).await;
    let location = answer.header("location").map(str::to_owned);
    let (got, body) = answer.whole().await;
    assert_eq!(got, status, "{name}: {body}");
    let body: Value = serde_json::from_str(&body).unwrap();
    let error = text(&body, "error");
    assert!(error.starts_with("the pull failed: "), "{name}: {body}");
    assert!(error.contains(says), "{name}: {body}");
    assert!(
        error.len() < 600 && !error.chars().any(char::is_control),
        "{name}: {body}"
    );

    let listed = client
        .get(&format!("/api/threat-intel/batches?feed={feed}"))
        .await
        .expect(200)
        .await;
    let batch = text(&listed["batches"][0], "id").to_owned();
    assert_eq!(location, Some(batch_path(&batch)), "{name}");
    assert!(text(&body, "details").contains(&batch), "{name}: {body}");
    batch
}

/// The batch is failed with the pages before, the feed is free, and the audit log has the reason.
async fn assert_failed(client: &Client, feed: &str, batch: &str, (name, says): (&str, &str)) {
    let failed = client.feed_batch(batch).await;
    assert_eq!(failed["status"], "failed", "{name}: {failed}");
    assert!(text(&failed, "error").contains(says), "{name}: {failed}");
    assert!(failed["ended_at"].is_string(), "{name}: {failed}");
    assert_eq!(
        (&failed["pages"], &failed["item_count"]),
        (&json!(GOOD), &json!(GOOD * SMALL_PAGE)),
        "{name}"
    );
    let known = client.get(&format!("{FEEDS}/{feed}")).await.expect(200).await;
    assert!(known["feed"].get("running_batch_id").is_none(), "{name}: {known}");
    let logged = client.audited("feed.pull_failed").await;
    let reason = text(&logged[0]["metadata"], "reason");
    assert!(reason.contains(says), "{name}: {reason}");
}

/// Plays all tricks against one service, which stays healthy.
fn play_all(service: impl AsyncFnOnce() -> TestApp, tricks: impl FnOnce() -> Vec<Trick>) {
    run(async {
        let app = service().await;
        for (at, trick) in tricks().into_iter().enumerate() {
            play(&app.admin, trick, is_full() || at % WATCHED == 0).await;
        }
        app.admin.get("/health").await.expect(200).await;
        app.admin.ingest(json!(tools(1))).await;
        app.stop().await;
    });
}

#[test]
fn redirects_are_checked_like_the_first_url() {
    let destinations = [
        ("http://10.0.0.1/objects/", "(private-address), after a redirect"),
        ("http://192.168.0.1/", "(private-address)"),
        ("http://169.254.169.254/latest/meta-data/", "(metadata-address)"),
        ("//169.254.169.254/latest/meta-data/", "(metadata-address)"),
        ("http://0.0.0.0/", "(unspecified-address)"),
        ("http://[::ffff:127.0.0.1]/", "(embedded-address)"),
        ("http://[::ffff:a9fe:a9fe]/", "(embedded-address)"),
        ("http://[fe80::1]/", "(link-local-address)"),
        ("http://[fc00::1]/", "(unique-local-address)"),
        ("http://2130706433/", "(address-spelling)"),
        ("http://0x7f.1/", "(address-spelling)"),
        ("http://0177.0.0.1/", "(address-spelling)"),
        ("//127.1/", "(address-spelling)"),
        ("http://localhost/", "(host-not-allowed)"),
        ("http://127.0.0.2/", "(host-not-allowed)"),
        ("http://8.8.8.8/", "(host-not-allowed)"),
        ("//feeds.example.com/", "(host-not-allowed)"),
        ("http://127.0.0.1@feeds.example.com/", "(userinfo)"),
        ("http://user:secret@127.0.0.1/", "(userinfo)"),
        ("https://127.0.0.1/", "(redirect-scheme)"),
        ("file:///etc/passwd", "(scheme)"),
        ("gopher://127.0.0.1/", "(scheme)"),
        ("/\\feeds.example.com/", "(invalid-url)"),
        ("\\\\feeds.example.com/", "(invalid-url)"),
        ("http://127.0.0.1:0/", "(port)"),
    ];
    play_all(TestApp::shared, || {
        let tricks = destinations
            .into_iter()
            .map(|(to, says)| trick(to, (400, says), move |_| Reply::redirect(to)));
        let mut tricks: Vec<Trick> = tricks.collect();
        tricks.push(trick("endless redirects", (400, "(too-many-redirects)"), |_| {
            Reply::redirect("?more")
        }));
        for status in [301, 303, 307, 308] {
            tricks.push(trick("another status", (400, "(private-address)"), move |_| {
                let mut reply = Reply::redirect("http://10.0.0.1/");
                reply.status = status;
                reply
            }));
        }
        tricks
    });
}

/// Five redirects on the server itself are followed, with the same headers.
#[test]
fn a_few_redirects_are_followed() {
    run(async {
        let app = TestApp::shared().await;
        let server = Server::start(&tools(1)).await;
        server.misbehave(
            |request, honest| match request.query.get("hop").map_or("0", String::as_str) {
                "0" => Reply::redirect("?hop=1"),
                "1" => Reply::redirect("/elsewhere/objects/?hop=2"),
                "2" => Reply::redirect("./?hop=3"),
                "3" => Reply::redirect("../objects/?hop=4"),
                "4" => Reply::redirect("?hop=5"),
                _ => honest,
            },
        );
        let feed = app.admin.feed_of(&server).await;
        assert_eq!(app.admin.pull(&feed).await["item_count"], 1);
        let requests = server.requests();
        assert!(requests.len() >= 6, "{requests:?}");
        for request in &requests {
            let names = request.headers.iter().map(|(name, _)| name.as_str());
            let names: BTreeSet<&str> = names.collect();
            assert_eq!(
                names,
                BTreeSet::from(["accept", "accept-encoding", "host", "user-agent"])
            );
        }
        app.stop().await;
    });
}

/// Compresses a body.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn floods_end_at_the_limit() {
    const LARGE: usize = (512 << 10) + 1;
    const CAP: &str = "larger than the limit of 524288 bytes";
    play_all(TestApp::shared, || {
        let bomb = gzip(&vec![b' '; 64 << 20]);
        let nested = gzip(&vec![b'['; 400 << 10]);
        vec![
            trick("too large, measured", (502, CAP), |reply| {
                reply.with_body(vec![b' '; LARGE])
            }),
            trick("too large, unmeasured", (502, CAP), |reply| {
                reply.with_body(vec![b' '; LARGE]).sent(Sending::Unmeasured)
            }),
            trick("endless", (502, CAP), |reply| {
                reply.with_body(vec![b' '; 64 << 10]).sent(Sending::Endless)
            }),
            trick("gzip bomb", (502, CAP), move |reply| {
                reply.header("content-encoding", "gzip").with_body(bomb.clone())
            }),
            trick("deep nesting", (502, "not valid JSON"), move |reply| {
                reply.header("content-encoding", "gzip").with_body(nested.clone())
            }),
            trick("endless tokens", (502, "not TAXII 2.1"), |reply| {
                reply.envelope(|body| body["next"] = json!("x".repeat(100_000)))
            }),
        ]
    });
}

#[test]
fn stalls_end_at_the_time_out() {
    let says = "did not answer within 1000 ms";
    let start = Instant::now();
    play_all(impatient, || {
        vec![
            trick("silence", (504, says), |reply| reply.sent(Sending::Silence)),
            trick("slow drip", (504, says), |reply| {
                reply.sent(Sending::Drip(Duration::from_millis(50)))
            }),
            // Each is quick enough by itself.
            trick("slow redirects", (504, says), |_| {
                Reply::redirect("?more").sent(Sending::Late(Duration::from_millis(500)))
            }),
        ]
    });
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

#[test]
fn error_statuses_are_named() {
    play_all(TestApp::shared, || {
        let status =
            |status: u16| move |_: Reply| Reply::new(status, TAXII, r#"{"title": "no\u001b[31m thanks"}"#);
        vec![
            trick(
                "unauthorised",
                (502, "401 Unauthorized; this service sends no credentials"),
                status(401),
            ),
            trick("forbidden", (502, "403 Forbidden"), status(403)),
            trick("gone", (502, "404 Not Found"), status(404)),
            trick("an error", (502, "500 Internal Server Error"), status(500)),
            trick("too many requests", (502, "asks to wait 3600 s"), |_| {
                Reply::new(429, TAXII, "{}").header("retry-after", "3600")
            }),
        ]
    });
}

#[test]
fn nonsense_is_named() {
    play_all(TestApp::shared, || {
        let envelope = |change: fn(&mut Value)| move |reply: Reply| reply.envelope(change);
        let body = |body: &'static str| move |reply: Reply| reply.with_body(body);
        vec![
            trick(
                "not JSON",
                (502, "not valid JSON at line 1"),
                body("{\"objects\": ["),
            ),
            trick("not UTF-8", (502, "not valid JSON"), |reply| {
                reply.with_body(b"{\"objects\": \"\xff\"}")
            }),
            trick("a list", (502, "not TAXII 2.1"), body("[]")),
            trick(
                "a bundle of nothing",
                (502, "not TAXII 2.1"),
                body("{\"hello\": \"world\"}"),
            ),
            trick(
                "objects is text",
                (502, "not TAXII 2.1"),
                envelope(|body| body["objects"] = json!("none")),
            ),
            trick(
                "next is an object",
                (502, "not TAXII 2.1"),
                envelope(|body| {
                    body["more"] = json!(true);
                    body["next"] = json!({});
                }),
            ),
            trick("HTML", (502, "Content-Type is \"text/html\""), |_| {
                Reply::new(200, "text/html; charset=utf-8", "<html>Sign in</html>")
            }),
            trick("no media type", (502, "no Content-Type"), |reply| {
                reply.without_header("content-type").with_body("<html>")
            }),
            trick("not gzip", (502, "broke off"), |reply| {
                reply.header("content-encoding", "gzip")
            }),
            trick("brotli", (502, "not gzip"), |reply| {
                reply.header("content-encoding", "br")
            }),
            trick("cut", (502, "broke off"), |reply| reply.sent(Sending::Cut)),
            trick("cut without a length", (502, "not valid JSON"), |reply| {
                let half = reply.body[..reply.body.len() / 2].to_vec();
                reply.with_body(half).sent(Sending::Unmeasured)
            }),
            trick("more of nothing", (502, "can't be followed"), |_| {
                Reply::json(&json!({"more": true}))
            }),
        ]
    });
}
