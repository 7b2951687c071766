//! The local service from a client's view: remember, recall, start-up, memory; release build, durable store, real HTTP.
//!
//! Run with `cargo bench --bench memory`. Compare ratios within one run only: absolute times depend on the machine.
//! `-- --growth` grows one service to 1,000, 10,000 and 100,000 notes (`--growth 1000,10000` sets other sizes) and prints
//! how cost grows, with targets. Without `--bench`, which `cargo bench` passes, it exits at once.
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
#[path = "common/spread.rs"]
mod spread;
#[path = "memory/turns.rs"]
mod turns;
#[path = "memory/wire.rs"]
mod wire;
#[path = "service/words.rs"]
mod words;
#[path = "memory/writers.rs"]
mod writers;

use std::sync::Arc;
use std::time::{Duration, Instant};

use ledger::sizes;
use load::{contention, load};
use process::Memory;
use spread::Spread;

type Fallible<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

const NOTES: usize = 10_000;
const WRITERS: usize = 16;
const SINGLE: usize = 500;
const QUESTIONS: usize = 500;
/// Idle time before memory is measured.
const BREATH: Duration = Duration::from_secs(5);

fn main() -> Fallible<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| args.iter().any(|arg| arg == flag);
    if !has("--bench") || has("--test") || has("--list") {
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    if has("--growth") {
        return growth::run(&runtime, &sizes(&args, "--growth", &growth::SIZES)?);
    }
    runtime.block_on(run())
}

fn line(name: &str, value: &str) {
    println!("  {name:<46} {value:>32}");
}

fn millis(time: Duration) -> String {
    format!("{:.0} ms", time.as_secs_f64() * 1e3)
}

fn spread(times: Vec<Duration>) -> String {
    let Spread { p50, p95 } = Spread::of(times);
    format!("p50 {p50:.2}, p95 {p95:.2} ms")
}

async fn timed<F: Future<Output = Fallible<()>>>(
    count: usize,
    call: impl Fn(usize) -> F,
) -> Fallible<Vec<Duration>> {
    let mut times = Vec::with_capacity(count);
    for number in 0..count {
        let begun = Instant::now();
        call(number).await?;
        times.push(begun.elapsed());
    }
    Ok(times)
}

async fn run() -> Fallible<()> {
    let dir = tempfile::tempdir()?;
    program::head(" local");
    let (memory, healthy) = Memory::start(dir.path(), WRITERS).await?;
    line("first start to healthy", &millis(healthy));
    line("memory (RSS), empty", &memory.rss());
    let memory = Arc::new(memory);
    grow(&memory).await?;
    full(&memory).await?;
    terminate(memory)?;

    let (memory, healthy) = Memory::start(dir.path(), WRITERS).await?;
    line("start to healthy, 10,000 notes", &millis(healthy));
    timed(QUESTIONS, |number| memory.recall(number)).await?;
    line("memory (RSS), 10,000 notes, after a restart", &memory.rss());
    memory.service.terminate()?;
    let memory = Arc::new(Memory::start(dir.path(), 2).await?.0);
    contention(&memory).await?;
    terminate(memory)
}

/// One writer, then many, up to `NOTES`.
async fn grow(memory: &Arc<Memory>) -> Fallible<()> {
    let alone = timed(SINGLE, |number| memory.remember(number)).await?;
    line("remember, one writer, first 500", &spread(alone));
    let idle = timed(QUESTIONS, |number| memory.recall(number)).await?;
    line("recall, nobody writes, 500 notes", &spread(idle));
    let (took, waited) = load(memory).await?;
    let written = (NOTES - SINGLE) / WRITERS * WRITERS;
    let rate = written as f64 / took.as_secs_f64();
    line("remember, 16 writers", &format!("{rate:.0} notes/s"));
    line("recall meanwhile, two readers", &spread(waited));
    line("memory (RSS) right after", &memory.rss());
    Ok(())
}

/// One reader and one writer with `NOTES` stored.
async fn full(memory: &Arc<Memory>) -> Fallible<()> {
    tokio::time::sleep(BREATH).await;
    let idle = timed(QUESTIONS, |number| memory.recall(number)).await?;
    line("recall k=10, 10,000 notes", &spread(idle));
    let more = timed(200, |number| memory.remember(NOTES + 100 + number)).await?;
    line("remember, one writer, 10,000 notes", &spread(more));
    tokio::time::sleep(BREATH).await;
    line("memory (RSS), 10,000 notes", &memory.rss());
    Ok(())
}

fn terminate(memory: Arc<Memory>) -> Fallible<()> {
    let memory = Arc::into_inner(memory).ok_or("still in use")?;
    memory.service.terminate()
}
