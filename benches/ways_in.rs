//! Throughput of ways in other than STIX: MISP events and text previews, sent over HTTP to the release program in a
//! separate process with a durable store, and threat feeds that it pulls over TAXII.
//!
//! Run with `cargo bench --bench ways_in`; `-- --quick` measures a tenth, and `-- --objects 20000` sets the size of the
//! larger feed. `--report` also writes the table into docs/benchmarks.md. The data is generated and identical in every run.
//! Without `--bench`, which `cargo bench` passes, it exits at once.

#![allow(clippy::unwrap_used, clippy::expect_used)] // A benchmark can only panic on failure.
#![allow(dead_code)] // The modules shared with the service benchmark contain more than is used here.

#[path = "service/client.rs"]
mod client;
#[path = "ways_in/feeds.rs"]
mod feeds;
#[path = "service/process.rs"]
mod process;
#[path = "common/program.rs"]
mod program;
#[path = "common/report.rs"]
mod report;

use std::error::Error;
use std::time::{Duration, Instant};

use client::Client;
use process::Service;
use report::{Report, thousands};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::task::JoinSet;
use uuid::Uuid;

type Fallible<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Number of connections over which events and texts are sent.
const CONNECTIONS: usize = 2;
const EVENTS: usize = 40;
const ATTRIBUTES: usize = 1000;
const TEXTS: usize = 400;
/// Size of a text in bytes.
const LENGTH: usize = 2048;
/// Entities in a text.
const ENTITIES: usize = 10;
/// Objects of the larger feed; the smaller one has a tenth.
const OBJECTS: usize = 100_000;

fn main() -> Fallible<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| args.iter().any(|arg| arg == flag);
    if !has("--bench") || has("--test") || has("--list") {
        return Ok(());
    }
    let report = Report::from_args(&args, "ways in")?;
    let share = if has("--quick") { 10 } else { 1 };
    let given = args.iter().skip_while(|arg| *arg != "--objects").nth(1);
    let objects = given.map_or(Ok(OBJECTS / share), |text| text.parse())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut figures = runtime.block_on(posted(share))?;
    figures.extend(runtime.block_on(pulled(objects))?);
    let (head, row): (Vec<String>, Vec<String>) = figures.into_iter().unzip();
    let table = report::table(&[head, row]);
    println!("\n{table}");
    report.map_or(Ok(()), |report| report.write(&table, ""))
}

/// Measures events and texts; returns names and values of figures.
async fn posted(share: usize) -> Fallible<Vec<(String, String)>> {
    program::head("");
    let dir = tempfile::tempdir()?;
    let (service, _) = Service::start(dir.path()).await?;
    let client = Client::sign_in(service.base()).await?;

    let events: Vec<Vec<u8>> = (0..EVENTS / share)
        .map(|n| event(n).to_string().into_bytes())
        .collect();
    let count = events.len() * ATTRIBUTES;
    let taken = |answer: &Value| answer["results"]["nodes_created"] == ATTRIBUTES;
    let (took, slowest) = send(&client, "/api/ingest/misp", events, taken).await?;
    println!("  MISP, slowest event: {:.0} ms", slowest.as_secs_f64() * 1e3);
    let attributes = (
        format!("attributes/s, MISP events of {}", thousands(ATTRIBUTES as f64)),
        thousands(count as f64 / took.as_secs_f64()),
    );

    let texts: Vec<Vec<u8>> = (0..TEXTS / share)
        .map(|n| json!({"text": report_text(n)}).to_string().into_bytes())
        .collect();
    let count = texts.len();
    let taken = |answer: &Value| answer["summary"]["total_parsed"] == ENTITIES;
    let (took, slowest) = send(&client, "/api/ingest/preview", texts, taken).await?;
    println!("  preview, slowest text: {:.0} ms", slowest.as_secs_f64() * 1e3);
    let texts = (
        format!(
            "previews/s, texts of {} bytes with {ENTITIES} entities",
            thousands(LENGTH as f64)
        ),
        thousands(count as f64 / took.as_secs_f64()),
    );
    service.terminate()?;
    Ok(vec![attributes, texts])
}

/// Measures a feed of a tenth of these objects and one of all; returns names and values of figures.
async fn pulled(objects: usize) -> Fallible<Vec<(String, String)>> {
    let (small, large) = (feeds::pull(objects / 10).await?, feeds::pull(objects).await?);
    for pull in [&small, &large] {
        println!(
            "  feed: a page of items in {:.1} ms (median), {} MiB above the memory before",
            pull.page,
            pull.memory >> 20
        );
    }
    let both = |[small, large]: [f64; 2]| format!("{} / {}", thousands(small), thousands(large));
    let sizes = both([(objects / 10) as f64, objects as f64]);
    let commit = thousands(feeds::COMMIT as f64);
    Ok(vec![
        (
            format!("objects/s staged, TAXII feeds of {sizes}"),
            both([small.staged, large.staged]),
        ),
        (
            format!("items/s committed of these, {commit} at a time"),
            both([small.committed, large.committed]),
        ),
    ])
}

/// Sends the bodies, divided among the connections; returns the total time and the slowest request.
async fn send(
    client: &Client,
    path: &'static str,
    bodies: Vec<Vec<u8>>,
    taken: fn(&Value) -> bool,
) -> Fallible<(Duration, Duration)> {
    let mut shares: Vec<Vec<Vec<u8>>> = vec![Vec::new(); CONNECTIONS];
    for (n, body) in bodies.into_iter().enumerate() {
        shares[n % CONNECTIONS].push(body);
    }
    let begun = Instant::now();
    let mut connections = JoinSet::new();
    for share in shares {
        let client = client.clone();
        connections.spawn(async move {
            let mut slowest = Duration::ZERO;
            for body in share {
                let sent = Instant::now();
                let answer = client.post(path, body).await?;
                if !taken(&answer) {
                    return Err(format!("not everything was taken: {answer}").into());
                }
                slowest = slowest.max(sent.elapsed());
            }
            Fallible::Ok(slowest)
        });
    }
    let mut slowest = Duration::ZERO;
    while let Some(done) = connections.join_next().await {
        slowest = slowest.max(done??);
    }
    Ok((begun.elapsed(), slowest))
}

/// An event whose attributes occur in no other event.
fn event(n: usize) -> Value {
    let attributes: Vec<Value> = (n * ATTRIBUTES..(n + 1) * ATTRIBUTES)
        .map(|at| {
            let (kind, value) = match at % 4 {
                0 => ("ip-dst", format!("10.{}.{}.{}", at >> 16, at >> 8 & 255, at & 255)),
                1 => ("domain", format!("host{at}.example.com")),
                2 => ("sha256", digest(at, 64)),
                _ => ("url", format!("http://example.com/{at}")),
            };
            json!({"uuid": id(at), "type": kind, "value": value, "category": "Network activity", "to_ids": true,
                "distribution": "5", "comment": "generated"})
        })
        .collect();
    let event = json!({"uuid": id(n), "info": format!("Campaign {n}"), "distribution": "1",
        "Tag": [{"name": "tlp:green"}], "Attribute": attributes});
    json!({"event": {"Event": event}})
}

/// A string of hexadecimal digits that looks like a digest.
fn digest(n: usize, digits: usize) -> String {
    let mut text = hex::encode(Sha256::digest(n.to_le_bytes()));
    text.truncate(digits);
    text
}

fn id(n: usize) -> String {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, &n.to_le_bytes()).to_string()
}

/// A report-like text: ten entities and filler words.
fn report_text(n: usize) -> String {
    let mut text = format!(
        "APT28 uses X-Agent against ministries. The group then exploited CVE-2024-{:04} and moved on with Mimikatz. \
         Hosts called badhost{n}.com and worse{n}.net, and 45.77.{}.{}. The loader has the digest {}, its \
         configuration {}. Analysts saw T1059.001. ",
        1000 + n,
        n / 250 + 1,
        n % 250 + 1,
        digest(n, 64),
        digest(n + TEXTS, 32),
    );
    let filler =
        "The operators worked during office hours, and what they took was of little use to anybody else. ";
    while text.len() + filler.len() <= LENGTH {
        text.push_str(filler);
    }
    text
}
