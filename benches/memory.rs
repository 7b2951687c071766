//! The local service from a client's view: remember, recall, start-up, memory; release build, durable store, real HTTP.
//!
//! Run with `cargo bench --bench memory`. Compare ratios within one run only: absolute times depend on the machine.
//! `-- --growth` grows one service to 1,000, 10,000 and 100,000 notes (`--growth 1000,10000` sets other sizes) and prints
//! how cost grows, with targets. `--report` also writes the table into docs/benchmarks.md: the section of the local
//! service, or with `--growth` that of notes. Without `--bench`, which `cargo bench` passes, it exits at once.
//!
//! `THREAT_MEMORY_BINARY=PATH` measures another binary than the one just built, so that two can be compared in
//! alternating runs without a rebuild.

#![allow(dead_code)] // The modules shared with the service benchmark contain more than is used here.

#[path = "memory/growth.rs"]
mod growth;
#[path = "common/ledger.rs"]
mod ledger;
#[path = "memory/load.rs"]
mod load;
#[path = "memory/notes.rs"]
mod notes;
#[path = "memory/process.rs"]
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
#[path = "memory/standard.rs"]
mod standard;
#[path = "memory/turns.rs"]
mod turns;
#[path = "memory/wire.rs"]
mod wire;
#[path = "service/words.rs"]
mod words;
#[path = "memory/writers.rs"]
mod writers;

use ledger::sizes;
use report::Report;

type Fallible<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Notes that one writer stores, all notes, and writers at once.
const SINGLE: usize = 500;
const NOTES: usize = 10_000;
const WRITERS: usize = 16;

fn main() -> Fallible<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| args.iter().any(|arg| arg == flag);
    if !has("--bench") || has("--test") || has("--list") {
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    if has("--growth") {
        let sizes = sizes(&args, "--growth", &growth::SIZES)?;
        return growth::run(&runtime, &sizes, Report::from_args(&args, "notes")?);
    }
    runtime.block_on(standard::run(Report::from_args(&args, "local")?))
}
