//! Look-up of lists over HTTP, against a store of a tenth of the indicators and then of all, in the program as a separate
//! process with a durable store.
//!
//! Run with `cargo bench --bench lookup`; `-- --quick` measures a fiftieth, and `-- --indicators 200000` sets the number of
//! the larger store. `--report` also writes the table into docs/benchmarks.md. The data is generated and identical in every
//! run. Without `--bench`, which `cargo bench` passes, it exits at once.

#![allow(clippy::unwrap_used, clippy::expect_used)] // A benchmark can only panic on failure.
#![allow(dead_code)] // The modules shared with the service benchmark contain more than is used here.

#[path = "service/client.rs"]
mod client;
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

type Fallible<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Makes the value at a place of a list for a store of this size.
type MakeValue = fn(usize, usize) -> String;

/// Indicators of the larger store; the smaller one has a tenth.
const INDICATORS: usize = 1_000_000;
/// Objects of a bundle.
const BUNDLE: usize = 10_000;
/// Values of a list, and how many of a list that are mixed one is known.
const VALUES: usize = 10_000;
const ONE_KNOWN_OF: usize = 10;
/// A network of some million addresses, in which no other indicator lies.
const WIDE: &str = "128.0.0.0/9";
/// Look-ups of each list, and of a single value.
const LISTS: usize = 11;
const SINGLES: usize = 51;

fn main() -> Fallible<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| args.iter().any(|arg| arg == flag);
    if !has("--bench") || has("--test") || has("--list") {
        return Ok(());
    }
    let report = Report::from_args(&args, "look-up")?;
    let share = if has("--quick") { 50 } else { 1 };
    let given = args.iter().skip_while(|arg| *arg != "--indicators").nth(1);
    let indicators = given.map_or(Ok(INDICATORS / share), |text| text.parse())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let rows = runtime.block_on(measure(indicators))?;
    let table = report::table(&rows);
    println!("\n{table}");
    report.map_or(Ok(()), |report| report.write(&table, ""))
}

/// Measures a store that grows; returns the rows of the table.
async fn measure(indicators: usize) -> Fallible<Vec<Vec<String>>> {
    program::head("");
    let dir = tempfile::tempdir()?;
    let (service, _) = Service::start(dir.path()).await?;
    let client = Client::sign_in(service.base()).await?;
    let lists: [(&str, MakeValue); 4] = [
        ("10,000 values, a tenth known", mixed),
        ("all in one network", in_one_network),
        ("all URLs of one host", of_one_host),
        ("none known", unheard),
    ];
    let mut head = vec!["indicators".to_owned(), "ingested in".to_owned()];
    head.extend(lists.iter().map(|(name, _)| (*name).to_owned()));
    head.push("one value".to_owned());
    let mut rows = vec![head];
    let mut stored = 0;
    for size in [indicators / 10, indicators] {
        let begun = Instant::now();
        while stored < size {
            let next = (stored + BUNDLE).min(size);
            let objects: Vec<Value> = (stored..next).map(indicator).collect();
            let answer = client
                .ingest(json!({"bundle": objects}).to_string().into_bytes())
                .await?;
            assert_eq!(answer["nodes_created"], next - stored, "{answer}");
            stored = next;
        }
        let mut row = vec![thousands(size as f64), seconds(begun.elapsed())];
        for (_, value) in lists {
            let values: Vec<String> = (0..VALUES).map(|n| value(n, size)).collect();
            let body = json!({"values": values}).to_string().into_bytes();
            let took = median(&client, &body, LISTS).await?;
            row.push(millis(took));
        }
        let one = json!({"values": [mixed(0, size)]}).to_string().into_bytes();
        row.push(millis(median(&client, &one, SINGLES).await?));
        rows.push(row);
    }
    service.terminate()?;
    Ok(rows)
}

/// The median time of a look-up, after one that is not counted.
async fn median(client: &Client, body: &[u8], count: usize) -> Fallible<Duration> {
    let mut took = Vec::with_capacity(count);
    for _ in 0..=count {
        let begun = Instant::now();
        let answer = client.post("/api/recall/lookup", body.to_vec()).await?;
        took.push(begun.elapsed());
        assert!(answer["results"].is_array());
    }
    took.remove(0);
    took.sort_unstable();
    Ok(took[took.len() / 2])
}

fn seconds(took: Duration) -> String {
    format!("{:.1} s", took.as_secs_f64())
}

fn millis(took: Duration) -> String {
    format!("{:.1} ms", took.as_secs_f64() * 1000.0)
}

fn digest(text: &str) -> String {
    hex::encode(Sha256::digest(text))
}

/// The value of an indicator: addresses, networks, domains, URLs and hashes, as feeds have them.
fn value(n: usize) -> String {
    match n % 20 {
        _ if n == 8 => WIDE.to_owned(),
        0..8 => format!(
            "{}.{}.{}.{}",
            11 + n / 10_000_000,
            n / 65_536 % 256,
            n / 256 % 256,
            n % 256
        ),
        8 => format!("{}.{}.{}.0/24", 150 + n / 65_536 % 50, n / 256 % 256, n % 256),
        9..14 => format!("host{n}.malicious-domain{}.com", n % 5_000),
        14..17 => format!("http://host{n}.distribution{}.net/{n}/payload.bin", n % 5_000),
        _ => digest(&n.to_string()),
    }
}

fn indicator(n: usize) -> Value {
    let value = value(n);
    let pattern = match n % 20 {
        0..8 => format!("[ipv4-addr:value = '{value}']"),
        8 => format!("[ipv4-addr:value ISSUBSET '{value}']"),
        9..14 => format!("[domain-name:value = '{value}']"),
        14..17 => format!("[url:value = '{value}']"),
        _ => format!("[file:hashes.'SHA-256' = '{value}']"),
    };
    let id = digest(&format!("indicator {n}"));
    let id = format!(
        "{}-{}-5{}-a{}-{}",
        &id[..8],
        &id[8..12],
        &id[12..15],
        &id[15..18],
        &id[18..30]
    );
    json!({
        "type": "indicator", "spec_version": "2.1", "id": format!("indicator--{id}"), "pattern": pattern,
        "pattern_type": "stix", "name": format!("Indicator {n}"), "created": "2026-01-01T00:00:00.000Z",
        "modified": "2026-01-01T00:00:00.000Z", "valid_from": "2026-01-01T00:00:00Z", "confidence": 60,
    })
}

/// A value of the list of which a tenth is known.
fn mixed(n: usize, size: usize) -> String {
    if n.is_multiple_of(ONE_KNOWN_OF) {
        return value(n * 7919 % size);
    }
    unheard(n, size)
}

/// A value that nobody has heard of.
fn unheard(n: usize, _: usize) -> String {
    match n % 4 {
        0 => format!("211.{}.{}.{}", n / 65_536 % 256, n / 256 % 256, n % 256),
        1 => format!("www.customer{n}.org"),
        2 => format!("https://www.customer{n}.org/index/{n}"),
        _ => digest(&format!("unheard {n}")),
    }
}

/// Addresses inside the widest network that is known.
fn in_one_network(n: usize, _: usize) -> String {
    format!("128.{}.{}.{}", n / 65_536 % 128, n / 256 % 256, n % 256)
}

/// URLs of one host that is known.
fn of_one_host(n: usize, _: usize) -> String {
    format!("http://{}/{n}/{n}", value(9))
}
