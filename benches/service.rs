//! Speed and resource use of the hosted service: the release program in a separate process with a durable store,
//! queried over HTTP.
//!
//! Run with `cargo bench --bench service`. `-- --quick` measures only 2,000 nodes, `-- --nodes 10000` sets other sizes,
//! and `-- --neighbour` measures only how one workspace's load affects another. `-- --growth` grows one service to
//! 10,000, 100,000 and 1,000,000 nodes with texts of 60 to 110 words (`--growth 10000,100000` sets other sizes) and
//! prints how cost grows, with targets. `-- --graph` ingests 100,000 nodes with 200,000 relationships (`--graph 10000`
//! sets other numbers of nodes) and measures questions that are answered from the graph. `--report` also writes the table
//! into docs/benchmarks.md: without another flag the section of the hosted service, with `--growth` that of nodes. The
//! corpus is generated and identical in every run. The service and this client share the cores. Without `--bench`, which
//! `cargo bench` passes, it exits at once.
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
#[path = "common/report.rs"]
mod report;
#[path = "common/spread.rs"]
mod spread;
#[path = "service/standard.rs"]
mod standard;
#[path = "service/turns.rs"]
mod turns;
#[path = "service/words.rs"]
mod words;
#[path = "service/world.rs"]
mod world;

use std::error::Error;

use ledger::sizes;
use report::Report;

type Fallible<T> = Result<T, Box<dyn Error + Send + Sync>>;

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
        let sizes = sizes(&args, "--growth", &growth::SIZES)?;
        return runtime.block_on(growth::run(&sizes, Report::from_args(&args, "nodes")?));
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    if has("--neighbour") {
        return runtime.block_on(neighbour::run());
    }
    if has("--graph") {
        return runtime.block_on(graph::run(&sizes(&args, "--graph", &graph::SIZES)?));
    }
    let default = match has("--quick") {
        true => &standard::QUICK[..],
        false => &standard::SIZES,
    };
    let sizes = sizes(&args, "--nodes", default)?;
    runtime.block_on(standard::run(&sizes, Report::from_args(&args, "hosted")?))
}
