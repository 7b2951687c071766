//! How cost grows with the number of notes: one service, measured at one size after the other.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::ledger::Bound::{AtLeast, AtMost};
use crate::ledger::{Ledger, Measure};
use crate::notes::prose_question;
use crate::process::Memory;
use crate::program::{self, Service, disk};
use crate::prose::Prose;
use crate::raw_store;
use crate::report::Report;
use crate::spread::Spread;
use crate::turns::{Smaller, Written};
use crate::wire::Wire;
use crate::writers::Writers;
use crate::{Fallible, WRITERS};

pub const SIZES: [usize; 3] = [1_000, 10_000, 100_000];
/// The size to which the largest is compared.
const REFERENCE: usize = 10_000;
const LARGEST: usize = 100_000;
/// Questions of a series, and after a restart before such a series.
const MEASURED: usize = 300;
const FIRST: usize = 100;
const SEED: u64 = 11;
const MEGABYTE: f64 = 1e6;
const MICROSECONDS: f64 = 1e6;
/// From milliseconds to nanoseconds.
const NANOSECONDS: f64 = 1e6;

const RAW: Measure = Measure::new("raw speed of the embedded store", "rows/s");
const REMEMBER: Measure = Measure::new("remember, 16 writers", "notes/s");
const LAST: Measure =
    Measure::new("remember, 16 writers, last tenth", "notes/s").at_size(REFERENCE, AtLeast(2_000.0));
const WRITE: [Measure; 2] = [
    Measure::new("remember, 16 writers, p50", "ms"),
    Measure::new("remember, 16 writers, p95", "ms"),
];
const CORES: Measure = Measure::new("cores used by the service meanwhile", "");
const OWN_CORES: Measure = Measure::new("cores used by this client meanwhile", "");
/// Unlike times, CPU times can be compared while other programs use the machine.
const EFFORT: Measure = Measure::new("CPU time of the service per note", "us");
const RSS: Measure = Measure::new("memory (RSS) at rest", "MB")
    .at_size(LARGEST, AtMost(250.0))
    .per_row(MEGABYTE, "bytes");
const PEAK: Measure = Measure::new("memory (RSS), highest so far", "MB");
const DISK_TOTAL: Measure = Measure::new("data directory", "MB").per_row(MEGABYTE, "bytes");
const DISK: Measure = Measure::new("bytes on disk per note", "");
const IDLE: [Measure; 2] = [
    Measure::new("recall k=10, p50", "ms"),
    Measure::new("recall k=10, p95", "ms"),
];
const IDLE_EFFORT: Measure =
    Measure::new("recall k=10, CPU time of the service", "ms").per_row(NANOSECONDS, "ns");
const BESIDE: [Measure; 2] = [
    Measure::new("recall while 16 writers write, p50", "ms"),
    Measure::new("recall while 16 writers write, p95", "ms"),
];
const BESIDE_RATIO: Measure =
    Measure::new("recall while 16 writers write", "times the idle p95").always(AtMost(3.0));
const BESIDE_WRITE: Measure = Measure::new("remember while questions are asked", "notes/s");
const STOPPED: [Measure; 2] = [
    Measure::new("start to first answer after SIGTERM", "s").at_size(LARGEST, AtMost(0.6)),
    Measure::new(
        "first 100 questions after SIGTERM, p50",
        "times that of later ones",
    )
    .always(AtMost(2.0)),
];
const KILLED: [Measure; 2] = [
    Measure::new("start to first answer after kill -9", "s").at_size(LARGEST, AtMost(0.6)),
    Measure::new(
        "first 100 questions after kill -9, p50",
        "times that of later ones",
    )
    .always(AtMost(2.0)),
];
const FRESH: Measure = Measure::new("memory (RSS) after a restart", "MB");
/// What the page shows of each size.
const ON_PAGE: [Measure; 9] = [
    REMEMBER,
    IDLE[0],
    IDLE[1],
    IDLE_EFFORT,
    RSS,
    FRESH,
    DISK_TOTAL,
    KILLED[0],
    RAW,
];

/// A service that grows, and what is asked of it.
struct Growth<'a> {
    runtime: &'a Runtime,
    dir: PathBuf,
    prose: Arc<Prose>,
    rng: StdRng,
    asked: HashSet<String>,
    notes: usize,
    ledger: Ledger,
}

/// Measures one service at each of the sizes.
pub fn run(runtime: &Runtime, sizes: &[usize], report: Option<Report>) -> Fallible<()> {
    program::head(" local, growth");
    let dir = tempfile::tempdir()?;
    let mut growth = Growth {
        runtime,
        dir: dir.path().join("grown"),
        prose: Arc::new(Prose::new()),
        rng: StdRng::seed_from_u64(SEED),
        asked: HashSet::new(),
        notes: 0,
        ledger: Ledger::new("notes"),
    };
    let (mut service, _) = growth.start()?;
    let before = sizes.iter().rev().nth(1).copied();
    for &size in sizes {
        if growth.notes >= size {
            println!("\nskipped {size} notes: there are {} already", growth.notes);
            continue;
        }
        growth.ledger.size(size);
        let before = before.filter(|_| Some(&size) == sizes.last());
        service = growth.measure(service, size, before)?;
    }
    let ledger = &growth.ledger;
    ledger.compare_sizes(REFERENCE);
    ledger.close();
    service.terminate()?;
    let remark = ledger.remark_on_growth(&RSS, &DISK_TOTAL, &IDLE_EFFORT);
    report.map_or(Ok(()), |report| {
        report.write(&ledger.table_by_size(&ON_PAGE), &remark)
    })
}

impl Growth<'_> {
    fn start(&self) -> Fallible<(Service, Duration)> {
        let (memory, healthy) = self.runtime.block_on(Memory::start(&self.dir, WRITERS))?;
        Ok((memory.service, healthy))
    }

    /// `before` is the size to compare writers with.
    fn measure(&mut self, service: Service, size: usize, before: Option<usize>) -> Fallible<Service> {
        self.write(&service, size, before)?;
        self.runtime.block_on(service.settle());
        self.resources(&service, size);
        let raw = raw_store::rows_per_second(&self.prose);
        self.ledger.note(RAW, self.runtime.block_on(raw)?);
        let before = service.cpu();
        let idle = self.series(&service, MEASURED)?;
        self.pair(IDLE, &idle);
        if let Some((after, before)) = service.cpu().zip(before) {
            self.ledger
                .note(IDLE_EFFORT, (after - before) * 1e3 / MEASURED as f64);
        }
        self.beside(&service, &idle)?;
        self.runtime.block_on(service.settle());
        service.terminate()?;

        let service = self.comeback(STOPPED)?;
        if let Some(bytes) = service.memory("VmRSS") {
            self.ledger.note(FRESH, bytes as f64 / MEGABYTE);
        }
        // Recently acknowledged notes must still be there.
        let until = self.notes + WRITERS;
        self.notes += Writers::start(service.base(), &self.prose, self.notes, until)
            .finish()?
            .notes;
        service.kill()?;
        self.comeback(KILLED)
    }

    /// Writes up to `size` notes.
    fn write(&mut self, service: &Service, size: usize, before: Option<usize>) -> Fallible<()> {
        let written = match before {
            Some(before) => {
                let smaller = Smaller {
                    runtime: self.runtime,
                    prose: Arc::clone(&self.prose),
                    size: before,
                };
                smaller.in_turn(service, self.notes, size, &mut self.ledger)?
            }
            None => Written::by(service, &self.prose, self.notes, size)?,
        };
        let pace = &written.pace;
        self.notes = size;
        self.ledger.note(REMEMBER, pace.overall);
        self.ledger.note(LAST, pace.last_tenth);
        self.pair(WRITE, &pace.spread);
        if let Some([service, own]) = written.cpu {
            let seconds = pace.time.as_secs_f64();
            self.ledger.note(CORES, service / seconds);
            self.ledger.note(OWN_CORES, own / seconds);
        }
        if let Some(effort) = written.effort() {
            self.ledger.note(EFFORT, effort * MICROSECONDS);
        }
        Ok(())
    }

    fn resources(&mut self, service: &Service, size: usize) {
        for (measure, name) in [(RSS, "VmRSS"), (PEAK, "VmHWM")] {
            if let Some(bytes) = service.memory(name) {
                self.ledger.note(measure, bytes as f64 / MEGABYTE);
            }
        }
        let bytes = disk(&self.dir) as f64;
        self.ledger.note(DISK_TOTAL, bytes / MEGABYTE);
        self.ledger.note(DISK, bytes / size as f64);
    }

    /// Latencies while 16 writers write, as many notes as it takes to ask all questions.
    fn beside(&mut self, service: &Service, idle: &Spread) -> Fallible<()> {
        let writers = Writers::start(service.base(), &self.prose, self.notes, usize::MAX);
        let asked = self.series(service, MEASURED);
        let pace = writers.stop()?;
        self.notes += pace.notes;
        let asked = asked?;
        self.pair(BESIDE, &asked);
        self.ledger.note(BESIDE_RATIO, asked.p95 / idle.p95);
        self.ledger.note(BESIDE_WRITE, pace.overall);
        Ok(())
    }

    /// Starts the service again, and asks.
    fn comeback(&mut self, [answer, warmth]: [Measure; 2]) -> Fallible<Service> {
        let (service, healthy) = self.start()?;
        let begun = Instant::now();
        self.series(&service, 1)?;
        self.ledger
            .note(answer, (healthy + begun.elapsed()).as_secs_f64());
        let first = self.series(&service, FIRST - 1)?;
        let later = self.series(&service, MEASURED)?;
        self.ledger.note(warmth, first.p50 / later.p50);
        Ok(service)
    }

    /// Asks questions that were never asked before, one after the other.
    fn series(&mut self, service: &Service, count: usize) -> Fallible<Spread> {
        let mut wire = Wire::open(service.base())?;
        let mut times: Vec<Duration> = Vec::new();
        while times.len() < count {
            let question = prose_question(&self.prose, &mut self.rng, self.notes);
            if !self.asked.insert(question.clone()) {
                continue;
            }
            let body = json!({"query": question, "k": 10}).to_string();
            let begun = Instant::now();
            let found = wire.post("/api/recall", &body)?;
            times.push(begun.elapsed());
            let found: Value = serde_json::from_str(&found)?;
            if found["count"] == 0 {
                return Err(format!("nothing was found for {question}").into());
            }
        }
        Ok(Spread::of(times))
    }

    fn pair(&mut self, [p50, p95]: [Measure; 2], spread: &Spread) {
        self.ledger.note(p50, spread.p50);
        self.ledger.note(p95, spread.p95);
    }
}
