//! The TAXII server over HTTP, in the program as a separate process with a durable store: a page at five places of the
//! collection, a whole pull, and what both do to a search beside them.
//!
//! Run with `cargo bench --bench taxii`; `-- --quick` measures a fiftieth. `--report` also writes the table into
//! docs/benchmarks.md. The data is generated and identical in every run. Without `--bench`, which `cargo bench` passes, it
//! exits at once.

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
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use chrono::SecondsFormat;
use client::Client;
use process::Service;
use report::{Report, thousands};
use serde_json::{Value, json};
use uuid::Uuid;

type Fallible<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Objects of the workspace, of which every fifth is a relationship.
const OBJECTS: usize = 1_000_000;
/// Objects of the whole pull, and of one of its pages.
const PULLED: usize = 100_000;
const PULLED_PAGE: usize = 1000;
/// Objects of a bundle.
const BUNDLE: usize = 10_000;
/// Places at which pages are measured, and pages at each.
const PLACES: usize = 5;
const PAGES: usize = 51;
/// Searches before the pull and beside it.
const SEARCHES: usize = 200;

fn main() -> Fallible<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| args.iter().any(|arg| arg == flag);
    if !has("--bench") || has("--test") || has("--list") {
        return Ok(());
    }
    let report = Report::from_args(&args, "TAXII")?;
    let share = if has("--quick") { 50 } else { 1 };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let rows = runtime.block_on(measure(OBJECTS / share, PULLED / share))?;
    let table = report::table(&rows);
    println!("\n{table}");
    report.map_or(Ok(()), |report| report.write(&table, ""))
}

async fn measure(objects: usize, pulled: usize) -> Fallible<Vec<Vec<String>>> {
    program::head("");
    let dir = tempfile::tempdir()?;
    let (service, _) = Service::start(dir.path()).await?;
    let client = Client::sign_in(service.base()).await?;
    let me: Value = serde_json::from_str(&client.get_path("/api/auth/me").await?)?;
    let all = format!(
        "/taxii2/{}/collections/all/objects/",
        me["workspace"]["id"].as_str().ok_or("no workspace")?
    );
    let places = fill(&client, objects).await?;
    let mut rows = vec![vec!["measured".to_owned(), "p50".to_owned(), "p95".to_owned()]];
    for (place, after) in places.iter().enumerate() {
        let path = format!("{all}?limit=100&added_after={after}");
        let mut took = Vec::new();
        for _ in 0..=PAGES {
            let begun = Instant::now();
            let page: Value = serde_json::from_str(&client.get_path(&path).await?)?;
            took.push(begun.elapsed());
            assert_eq!(page["objects"].as_array().map(Vec::len), Some(100), "{page}");
        }
        took.remove(0);
        let name = format!("page of 100 after {} %", place * 100 / PLACES);
        rows.push(row(&name, &mut took));
    }
    let mut alone = searches(&client, &AtomicBool::new(false)).await?;
    rows.push(row("search, alone", &mut alone));
    let before = service.memory("VmRSS").unwrap_or(0);
    let is_over = Arc::new(AtomicBool::new(false));
    let beside = tokio::spawn({
        let (client, is_over) = (client.clone(), Arc::clone(&is_over));
        async move { searches(&client, &is_over).await }
    });
    let begun = Instant::now();
    let count = pull(&client, &all, pulled).await?;
    let took = begun.elapsed();
    is_over.store(true, Ordering::Relaxed);
    let mut beside = beside.await??;
    rows.push(row("search beside a pull", &mut beside));
    let rate = count as f64 / took.as_secs_f64();
    rows.push(vec![
        format!("pull of {}", thousands(count as f64)),
        format!("{:.1} s", took.as_secs_f64()),
        format!("{} objects/s", thousands(rate)),
    ]);
    let grown = service.memory("VmRSS").unwrap_or(0).saturating_sub(before) >> 20;
    rows.push(vec![
        "memory that the pull added".to_owned(),
        format!("{grown} MiB"),
        String::new(),
    ]);
    service.terminate()?;
    Ok(rows)
}

/// Ingests the objects; returns the times at which each fifth of them was about to be.
async fn fill(client: &Client, objects: usize) -> Fallible<Vec<String>> {
    let bundle = BUNDLE.min(objects / PLACES);
    let (mut places, mut stored) = (Vec::new(), 0);
    while stored < objects {
        if stored * PLACES >= places.len() * objects {
            places.push(threat_memory::clock::now().to_rfc3339_opts(SecondsFormat::Micros, true));
        }
        let next = (stored + bundle).min(objects);
        let bundle: Vec<Value> = (stored..next).map(object).collect();
        client
            .ingest(json!({"bundle": bundle}).to_string().into_bytes())
            .await?;
        stored = next;
    }
    Ok(places)
}

fn object(n: usize) -> Value {
    let id = |kind: &str, n: usize| {
        let uuid = Uuid::new_v5(&Uuid::NAMESPACE_URL, format!("{kind} {n}").as_bytes());
        format!("{kind}--{uuid}")
    };
    let time = "2026-01-01T00:00:00.000Z";
    if n % 5 == 4 {
        return json!({
            "type": "relationship", "spec_version": "2.1", "id": id("relationship", n), "created": time,
            "modified": time, "relationship_type": "related-to", "source_ref": id("indicator", n - 1),
            "target_ref": id("indicator", n - 2),
        });
    }
    json!({
        "type": "indicator", "spec_version": "2.1", "id": id("indicator", n), "pattern_type": "stix",
        "pattern": format!("[domain-name:value = 'host{n}.malicious-domain{}.com']", n % 5_000),
        "name": format!("Indicator {n}"), "created": time, "modified": time, "valid_from": time, "confidence": 60,
    })
}

/// Pulls the collection from its beginning; returns how many objects came.
async fn pull(client: &Client, all: &str, most: usize) -> Fallible<usize> {
    let (mut count, mut next) = (0, String::new());
    while count < most {
        let path = format!("{all}?limit={PULLED_PAGE}{next}");
        let page: Value = serde_json::from_str(&client.get_path(&path).await?)?;
        count += page["objects"].as_array().map_or(0, Vec::len);
        match page["next"].as_str() {
            Some(more) => next = format!("&next={more}"),
            None => break,
        }
    }
    Ok(count)
}

/// The times of searches, until there are enough or something else is over.
async fn searches(client: &Client, is_over: &AtomicBool) -> Fallible<Vec<Duration>> {
    let mut took = Vec::new();
    while took.len() < SEARCHES && !is_over.load(Ordering::Relaxed) {
        let query = format!(
            "host{}.malicious-domain{}.com",
            took.len() * 10,
            took.len() * 10 % 5_000
        );
        let begun = Instant::now();
        client.search("/api/recall/search", &query, 10).await?;
        took.push(begun.elapsed());
    }
    Ok(took)
}

fn row(name: &str, took: &mut [Duration]) -> Vec<String> {
    took.sort_unstable();
    let at = |share: usize| took[(took.len() * share / 100).min(took.len() - 1)];
    let text = |took: Duration| format!("{:.1} ms", took.as_secs_f64() * 1000.0);
    vec![name.to_owned(), text(at(50)), text(at(95))]
}
