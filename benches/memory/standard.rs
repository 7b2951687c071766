//! The standard measurement: remember and recall with 500 and 10,000 notes, alone and at once, memory, and start-up.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::ledger::Bound::{AtLeast, AtMost};
use crate::ledger::{Ledger, Measure};
use crate::load::{Contention, contention, load};
use crate::process::Memory;
use crate::program;
use crate::prose::Prose;
use crate::raw_store;
use crate::report::{Report, thousands};
use crate::spread::Spread;
use crate::{Fallible, NOTES, SINGLE, WRITERS};

const QUESTIONS: usize = 500;
/// Notes of one writer when there are `NOTES`.
const MORE: usize = 200;
/// Idle time before memory is measured.
const PAUSE: Duration = Duration::from_secs(5);
const MEGABYTE: f64 = 1e6;

const REMEMBER: [Measure; 2] = [
    Measure::new("remember, one writer, p50", "ms").always(AtMost(5.0)),
    Measure::new("remember, one writer, p95", "ms"),
];
const RATE: Measure = Measure::new("remember, 16 writers", "notes/s").always(AtLeast(800.0));
const RECALL: [Measure; 2] = [
    Measure::new("recall k=10, p50", "ms").always(AtMost(5.0)),
    Measure::new("recall k=10, p95", "ms"),
];
const BESIDE: [Measure; 2] = [
    Measure::new("recall while 16 writers write, p50", "ms"),
    Measure::new("recall while 16 writers write, p95", "ms"),
];
const READERS: Measure = Measure::new(
    "16 readers beside 16 writers, two of them admitted, p95",
    "times that of 16 readers alone",
)
.always(AtMost(2.0));
const START: Measure = Measure::new("start to healthy", "s").always(AtMost(0.5));
const RSS: Measure = Measure::new("memory (RSS) at rest", "MB").always(AtMost(200.0));
const PEAK: Measure = Measure::new("memory (RSS), highest so far", "MB");
const RESTARTED: Measure = Measure::new("memory (RSS) after a restart", "MB").always(AtMost(200.0));

pub async fn run(report: Option<Report>) -> Fallible<()> {
    program::head(" local");
    let raw = raw_store::rows_per_second(&Prose::new()).await?;
    println!("raw speed of the embedded store: {raw:.0} rows/s");
    let dir = tempfile::tempdir()?;
    let mut ledger = Ledger::new("notes");
    ledger.size(0);
    let (memory, healthy) = Memory::start(dir.path(), WRITERS).await?;
    resources(&memory, &mut ledger);
    ledger.note(START, healthy.as_secs_f64());
    let memory = Arc::new(memory);
    ledger.size(SINGLE);
    few(&memory, &mut ledger).await?;
    ledger.size(NOTES);
    many(&memory, &mut ledger).await?;
    resources(&memory, &mut ledger);
    terminate(memory)?;

    let (memory, healthy) = Memory::start(dir.path(), WRITERS).await?;
    ledger.note(START, healthy.as_secs_f64());
    timed(QUESTIONS, |number| memory.recall(number)).await?;
    rss(RESTARTED, "VmRSS", &memory, &mut ledger);
    memory.service.terminate()?;
    let memory = Arc::new(Memory::start(dir.path(), 2).await?.0);
    readers_and_writers(&memory, &mut ledger).await?;
    ledger.close();
    terminate(memory)?;
    let raw = format!("Raw speed of the embedded store: {} rows/s.", thousands(raw));
    let remark = format!("{raw} {}", ledger.misses());
    report.map_or(Ok(()), |report| report.write(&ledger.table(), &remark))
}

/// One writer, then one reader.
async fn few(memory: &Memory, ledger: &mut Ledger) -> Fallible<()> {
    let alone = timed(SINGLE, |number| memory.remember(number)).await?;
    pair(REMEMBER, alone, ledger);
    let idle = timed(QUESTIONS, |number| memory.recall(number)).await?;
    pair(RECALL, idle, ledger);
    Ok(())
}

/// Many writers, up to `NOTES`, with readers; then one reader and one writer.
async fn many(memory: &Arc<Memory>, ledger: &mut Ledger) -> Fallible<()> {
    let (took, waited) = load(memory).await?;
    let written = (NOTES - SINGLE) / WRITERS * WRITERS;
    tokio::time::sleep(PAUSE).await;
    let idle = timed(QUESTIONS, |number| memory.recall(number)).await?;
    let more = timed(MORE, |number| memory.remember(NOTES + 100 + number)).await?;
    pair(REMEMBER, more, ledger);
    ledger.note(RATE, written as f64 / took.as_secs_f64());
    pair(RECALL, idle, ledger);
    pair(BESIDE, waited, ledger);
    tokio::time::sleep(PAUSE).await;
    Ok(())
}

async fn readers_and_writers(memory: &Arc<Memory>, ledger: &mut Ledger) -> Fallible<()> {
    let Contention {
        alone,
        beside,
        written,
        refused,
    } = contention(memory).await?;
    for (name, spread) in [("alone", alone), ("beside 16 writers", beside)] {
        println!(
            "  16 readers {name}: p50 {:.2}, p95 {:.2} ms",
            spread.p50, spread.p95
        );
    }
    println!("  notes written, and refused with 429: {written}, {refused}");
    ledger.note(READERS, beside.p95 / alone.p95);
    Ok(())
}

async fn timed<F: Future<Output = Fallible<()>>>(
    count: usize,
    call: impl Fn(usize) -> F,
) -> Fallible<Spread> {
    let mut times = Vec::with_capacity(count);
    for number in 0..count {
        let begun = Instant::now();
        call(number).await?;
        times.push(begun.elapsed());
    }
    Ok(Spread::of(times))
}

fn pair([p50, p95]: [Measure; 2], spread: Spread, ledger: &mut Ledger) {
    ledger.note(p50, spread.p50);
    ledger.note(p95, spread.p95);
}

fn resources(memory: &Memory, ledger: &mut Ledger) {
    rss(RSS, "VmRSS", memory, ledger);
    rss(PEAK, "VmHWM", memory, ledger);
}

fn rss(measure: Measure, name: &str, memory: &Memory, ledger: &mut Ledger) {
    if let Some(bytes) = memory.service.memory(name) {
        ledger.note(measure, bytes as f64 / MEGABYTE);
    }
}

fn terminate(memory: Arc<Memory>) -> Fallible<()> {
    let memory = Arc::into_inner(memory).ok_or("still in use")?;
    memory.service.terminate()
}
