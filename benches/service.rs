//! Speed and resource use of the hosted service: the release program in a separate process with a durable store,
//! queried over HTTP.
//!
//! Run with `cargo bench --bench service`. `-- --quick` measures only 2,000 nodes, `-- --nodes 10000` sets other sizes,
//! and `-- --neighbour` measures only how one workspace's load affects another. `-- --growth` grows one service to
//! 10,000, 100,000 and 1,000,000 nodes with texts of 60 to 110 words (`--growth 10000,100000` sets other sizes) and
//! prints how cost grows, with targets. `-- --graph` ingests 100,000 nodes with 200,000 relationships (`--graph 10000`
//! sets other numbers of nodes) and measures questions that are answered from the graph. The corpus is generated and
//! identical in every run. The service and this client share the cores. Without `--bench`, which `cargo bench` passes, it
//! exits at once.
//!
//! `THREAT_MEMORY_BINARY=PATH` measures another binary than the one just built, so that two can be compared in
//! alternating runs without a rebuild.

#![allow(clippy::unwrap_used, clippy::expect_used)] // A benchmark can only panic on failure.

#[path = "service/bulk.rs"]
mod bulk;
#[path = "service/client.rs"]
mod client;
#[path = "service/corpus.rs"]
mod corpus;
#[path = "service/graph.rs"]
mod graph;
#[path = "service/growth.rs"]
mod growth;
#[path = "common/ledger.rs"]
mod ledger;
#[path = "service/load.rs"]
mod load;
#[path = "service/neighbour.rs"]
mod neighbour;
#[path = "service/paces.rs"]
mod paces;
#[path = "service/process.rs"]
mod process;
#[path = "common/program.rs"]
mod program;
#[path = "common/prose.rs"]
mod prose;
#[path = "common/raw_store.rs"]
mod raw_store;
#[path = "service/report.rs"]
mod report;
#[path = "common/spread.rs"]
mod spread;
#[path = "service/turns.rs"]
mod turns;
#[path = "service/words.rs"]
mod words;
#[path = "service/world.rs"]
mod world;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use client::Client;
use corpus::Corpus;
use ledger::sizes;
use process::Service;

type Fallible<T> = Result<T, Box<dyn Error + Send + Sync>>;

const SIZES: [usize; 2] = [10_000, 100_000];
const QUICK: [usize; 1] = [2_000];
/// Queries after a restart before memory is measured.
const FEW: usize = 20;
/// Idle time before memory is measured.
const BREATH: Duration = Duration::from_secs(2);

fn main() -> Fallible<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| args.iter().any(|arg| arg == flag);
    if !has("--bench") || has("--test") || has("--list") {
        return Ok(());
    }
    if has("--growth") {
        // Two threads, so that a reader does not wait for the client's own ingest.
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(2).enable_all().build()?;
        return runtime.block_on(growth::run(&sizes(&args, "--growth", &growth::SIZES)?));
    }
    let graph_sizes = sizes(&args, "--graph", &graph::SIZES)?;
    let default = if has("--quick") { &QUICK[..] } else { &SIZES };
    let sizes = sizes(&args, "--nodes", default)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    if has("--neighbour") {
        return runtime.block_on(neighbour::run());
    }
    if has("--graph") {
        return runtime.block_on(graph::run(&graph_sizes));
    }
    runtime.block_on(run(&sizes))
}

async fn run(sizes: &[usize]) -> Fallible<()> {
    program::head("");
    let dir = tempfile::tempdir()?;
    empty(&dir.path().join("empty")).await?;

    let dir = dir.path().join("grown");
    let mut corpus = Corpus::new();
    let (mut service, _) = Service::start(&dir).await?;
    let mut client = Client::sign_in(service.base()).await?;
    for &size in sizes {
        report::size(size);
        let bundles = corpus.grow_to(size);
        let before = service.cpu();
        let grown = load::ingest(&client, bundles).await?;
        report::ingest(
            &grown,
            service.cpu().zip(before).map(|(after, before)| after - before),
        );
        service.settle().await;
        measure(&client, &mut corpus).await?;
        report::resources(&service, &dir);
        service = restart(service, &dir, &client, &mut corpus).await?;
        client = client.at(service.base());
    }
    service.terminate()?;
    Ok(())
}

/// Measures a service without data, and the first bundle it ingests.
async fn empty(dir: &Path) -> Fallible<()> {
    report::title("empty");
    let (service, healthy) = Service::start(dir).await?;
    report::line("start to healthy, first start", &report::millis(healthy));
    tokio::time::sleep(BREATH).await;
    report::resources(&service, dir);
    let path = PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../shared/data/attack/ics-attack.json"
    ));
    if let Ok(text) = std::fs::read_to_string(path) {
        let client = Client::sign_in(service.base()).await?;
        let bundle: serde_json::Value = serde_json::from_str(&text)?;
        let objects = bundle["objects"].as_array().map_or(0, Vec::len);
        let body = format!("{{\"bundle\":{text}}}").into_bytes();
        let begun = Instant::now();
        client.ingest(body).await?;
        report::attack(objects, text.len(), begun.elapsed());
    }
    service.terminate()
}

/// Measures latencies and throughput at the current size.
async fn measure(client: &Client, corpus: &mut Corpus) -> Fallible<()> {
    report::latency_head();
    for (name, path) in load::SEARCHES {
        let series = load::searches(client, path, corpus).await?;
        report::latency(name, &series);
    }
    report::latency("export, 100 nodes", &load::exports(client, corpus).await?);
    Ok(())
}

/// Stops the service by SIGTERM and by SIGKILL, and measures the restarts.
async fn restart(service: Service, dir: &Path, client: &Client, corpus: &mut Corpus) -> Fallible<Service> {
    service.terminate()?;
    let (service, back) = comeback(dir, client, corpus).await?;
    report::comeback("after SIGTERM", &back);
    report::resources(&service, dir);
    // A recently acknowledged write must still be there.
    let client = client.at(service.base());
    client.ingest(corpus.bundle().body).await?;
    service.kill()?;
    let (service, back) = comeback(dir, &client, corpus).await?;
    report::comeback("after kill -9", &back);
    Ok(service)
}

async fn comeback(dir: &Path, client: &Client, corpus: &mut Corpus) -> Fallible<(Service, report::Comeback)> {
    let begun = Instant::now();
    let (service, healthy) = Service::start(dir).await?;
    let client = client.at(service.base());
    let first = corpus.query();
    client.search(load::BLENDED, &first, load::LIMIT).await?;
    let answered = begun.elapsed();
    for _ in 0..FEW {
        client.search(load::BLENDED, &corpus.query(), load::LIMIT).await?;
    }
    Ok((service, report::Comeback { healthy, answered }))
}
