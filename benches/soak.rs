//! Stability under a long mixed load: memory, open files, threads and latency at the end, compared with those after the
//! first tenth. The program runs in a separate process with a durable store and is queried over HTTP.
//!
//! Run with `cargo bench --bench soak`: 300,000 requests over 20,000 nodes, once with only reads, sessions, exports and
//! previews, and once with ingest too. `-- --requests 30000`, `-- --nodes 2000` and `-- --only reads|ingest` change
//! that. New nodes take memory: it is printed per node and excluded from the comparison. With `--report`, which is for the
//! benchmarks that write a table, and without `--bench`, which `cargo bench` passes, it exits at once.

#![allow(clippy::unwrap_used, clippy::expect_used)] // A benchmark can only panic on failure.
#![allow(dead_code)] // The modules shared with the service benchmark contain more than is used here.

#[path = "service/client.rs"]
mod client;
#[path = "service/corpus.rs"]
mod corpus;
#[path = "service/process.rs"]
mod process;
#[path = "common/program.rs"]
mod program;
#[path = "common/prose.rs"]
mod prose;
#[path = "service/words.rs"]
mod words;

use std::error::Error;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use client::Client;
use corpus::Corpus;
use process::Service;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use uuid::Uuid;

type Fallible<T> = Result<T, Box<dyn Error + Send + Sync>>;

const REQUESTS: usize = 300_000;
const NODES: usize = 20_000;
const CLIENTS: usize = 6;
/// Number of distinct queries; they repeat, as those of users do.
const QUESTIONS: usize = 2_000;
/// Objects per bundle ingested alongside the reads.
const BUNDLE: usize = 5;
/// Accepted ratio of the end to the first tenth.
const TOLERANCE: f64 = 1.1;

fn main() -> Fallible<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| args.iter().any(|arg| arg == flag);
    if !has("--bench") || has("--test") || has("--list") {
        return Ok(());
    }
    if has("--report") {
        println!("the soak test takes long and writes no table: run it without --report");
        return Ok(());
    }
    let after = |flag: &str| args.iter().skip_while(|arg| *arg != flag).nth(1);
    let number = |flag: &str, default: usize| after(flag).map_or(Ok(default), |text| text.parse());
    let (requests, nodes) = (number("--requests", REQUESTS)?, number("--nodes", NODES)?);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    for (name, ingest) in [("reads", false), ("ingest", true)] {
        if after("--only").is_none_or(|only| only == name) {
            runtime.block_on(soak(name, requests, nodes, ingest))?;
        }
    }
    Ok(())
}

/// Resource use of the service and its latencies.
struct State {
    memory: f64,
    files: usize,
    threads: usize,
    p50: f64,
    p95: f64,
    nodes: usize,
}

/// State shared by the clients.
struct Load {
    left: AtomicUsize,
    nodes: AtomicUsize,
    times: Mutex<Vec<Duration>>,
    questions: Vec<String>,
    ingest: bool,
}

async fn soak(name: &str, requests: usize, nodes: usize, ingest: bool) -> Fallible<()> {
    let dir = tempfile::tempdir()?;
    let (service, _) = Service::start(dir.path()).await?;
    let client = Client::sign_in(service.base()).await?;
    let mut corpus = Corpus::new();
    for bundle in corpus.grow_to(nodes) {
        client.ingest(bundle.body).await?;
    }
    service.settle().await;
    println!("\n{name}: {requests} requests, {CLIENTS} clients, {nodes} nodes at the start");
    println!(
        "  {:>9} {:>9} {:>7} {:>8} {:>9} {:>9} {:>9}",
        "requests", "MB", "files", "threads", "p50 ms", "p95 ms", "new nodes"
    );
    let load = Arc::new(Load {
        left: AtomicUsize::new(0),
        nodes: AtomicUsize::new(0),
        times: Mutex::default(),
        questions: (0..QUESTIONS).map(|_| corpus.query()).collect(),
        ingest,
    });
    let tenth = requests / 10;
    let mut states = Vec::new();
    let begun = Instant::now();
    for part in 0..10 {
        load.left.store(tenth, Ordering::Relaxed);
        let mut clients = JoinSet::new();
        for lane in 0..CLIENTS {
            let (client, load) = (client.clone(), Arc::clone(&load));
            clients.spawn(ask(client, load, (part * CLIENTS + lane) as u64));
        }
        while let Some(done) = clients.join_next().await {
            done??;
        }
        let state = look(&service, &load);
        println!(
            "  {:>9} {:>9.1} {:>7} {:>8} {:>9.2} {:>9.2} {:>9}",
            (part + 1) * tenth,
            state.memory,
            state.files,
            state.threads,
            state.p50,
            state.p95,
            state.nodes
        );
        states.push(state);
    }
    println!(
        "  {:.0} requests/s",
        requests as f64 / begun.elapsed().as_secs_f64()
    );
    judge(&states);
    let chain: Value = serde_json::from_str(&client.get_path("/api/audit/verify").await?)?;
    println!(
        "  audit chain: {} entries, valid: {}",
        chain["entries"], chain["valid"]
    );
    service.terminate()
}

/// Sends requests until this part of the load is used up.
async fn ask(client: Client, load: Arc<Load>, seed: u64) -> Fallible<()> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut session: Option<String> = None;
    while load
        .left
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
        .is_ok()
    {
        let question = &load.questions[rng.random_range(0..QUESTIONS)];
        let kind = rng.random_range(0..100);
        let begun = Instant::now();
        match (kind, &session) {
            (0..10, _) if load.ingest => {
                client.ingest(bundle(&mut rng)).await?;
                load.nodes.fetch_add(BUNDLE, Ordering::Relaxed);
            }
            (0..25, Some(id)) => {
                client.get_path(&format!("/api/recall/sessions/{id}")).await?;
            }
            (25..35, Some(id)) => {
                client.export(id).await?;
            }
            (35..40, _) => {
                let text = format!(
                    "{question} It called 198.51.100.{} at night.",
                    rng.random_range(1..255)
                );
                client
                    .post(
                        "/api/ingest/preview",
                        json!({"text": text}).to_string().into_bytes(),
                    )
                    .await?;
            }
            (40..45, _) => {
                client.get_path("/api/audit/logs?limit=50").await?;
            }
            (45..60, _) => {
                client.search("/api/recall/semantic", question, 20).await?;
            }
            (60..70, _) => {
                client
                    .search("/api/recall/search?mode=structured", question, 20)
                    .await?;
            }
            _ => {
                let answer: Value =
                    serde_json::from_str(&client.search("/api/recall/search", question, 20).await?)?;
                // A session without results can't be exported.
                if answer["count"] != 0 {
                    session = answer["recall_id"].as_str().map(str::to_owned);
                }
            }
        }
        load.times.lock().unwrap().push(begun.elapsed());
    }
    Ok(())
}

fn bundle(rng: &mut StdRng) -> Vec<u8> {
    let time = "2024-01-01T00:00:00.000Z";
    let objects: Vec<Value> = (0..BUNDLE)
        .map(|_| {
            let id = uuid::Builder::from_random_bytes(rng.random()).into_uuid();
            json!({"type": "malware", "spec_version": "2.1", "id": format!("malware--{id}"), "created": time,
                "modified": time, "name": format!("Soak {}", Uuid::simple(id)), "is_family": false,
                "description": "A sample that was seen once, on one machine, and never again."})
        })
        .collect();
    json!({"bundle": objects}).to_string().into_bytes()
}

/// The current state of the service, with the latencies since the last call.
fn look(service: &Service, load: &Load) -> State {
    let mut times = std::mem::take(&mut *load.times.lock().unwrap());
    times.sort_unstable();
    let percentile = |share: f64| {
        let at = (times.len() as f64 * share) as usize;
        times.get(at).map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
    };
    State {
        memory: service
            .memory("VmRSS")
            .map_or(f64::NAN, |bytes| bytes as f64 / 1e6),
        files: service.count("fd"),
        threads: service.count("task"),
        p50: percentile(0.50),
        p95: percentile(0.95),
        nodes: load.nodes.load(Ordering::Relaxed),
    }
}

/// Prints the ratio of the end to the first tenth.
fn judge(states: &[State]) {
    let (Some(first), Some(last)) = (states.first(), states.last()) else {
        return;
    };
    let new = last.nodes - first.nodes;
    let mut grown = last.memory - first.memory;
    if new > 0 {
        println!("  memory per new node: {:.0} bytes", grown * 1e6 / new as f64);
        grown = 0.0;
    }
    let say = |name: &str, before: f64, after: f64| {
        let ratio = after / before;
        let verdict = if ratio <= TOLERANCE { "as it was" } else { "MORE" };
        println!("  {name:<10} {ratio:>5.2} of the first tenth: {verdict}");
    };
    say("memory", first.memory, first.memory + grown);
    say("files", first.files as f64, last.files as f64);
    say("threads", first.threads as f64, last.threads as f64);
    say("p50", first.p50, last.p50);
    say("p95", first.p95, last.p95);
}
