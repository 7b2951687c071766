//! The standard measurement: ingest, search and export at each size, memory, and how fast a restart is.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::Fallible;
use crate::client::Client;
use crate::corpus::Corpus;
use crate::ledger::Bound::{AtLeast, AtMost};
use crate::ledger::{Ledger, Measure};
use crate::load;
use crate::process::Service;
use crate::program::{self, disk};
use crate::prose::Prose;
use crate::raw_store;
use crate::report::{Report, thousands};

pub const SIZES: [usize; 2] = [10_000, 100_000];
pub const QUICK: [usize; 1] = [2_000];
/// Questions after a restart before memory is measured.
const FEW: usize = 20;
/// Idle time before the memory of an empty service is measured.
const PAUSE: Duration = Duration::from_secs(2);
const MEGABYTE: f64 = 1e6;
const MICROSECONDS: f64 = 1e6;

const INGEST: Measure = Measure::new("ingest, two streams", "objects/s").always(AtLeast(5_000.0));
const BLENDED: [Measure; 2] = [
    Measure::new("blended recall, p50", "ms").always(AtMost(8.0)),
    Measure::new("blended recall, p95", "ms").always(AtMost(20.0)),
];
const STRUCTURED: [Measure; 2] = [
    Measure::new("structured recall, p50", "ms").always(AtMost(8.0)),
    Measure::new("structured recall, p95", "ms").always(AtMost(20.0)),
];
const SEMANTIC: [Measure; 2] = [
    Measure::new("semantic recall, p50", "ms").always(AtMost(8.0)),
    Measure::new("semantic recall, p95", "ms").always(AtMost(20.0)),
];
const EXPORT: [Measure; 2] = [
    Measure::new("export of 100 nodes, p50", "ms").always(AtMost(10.0)),
    Measure::new("export of 100 nodes, p95", "ms"),
];
const THROUGHPUT: Measure = Measure::new("blended recall, 8 clients", "requests/s");
const RSS: Measure = Measure::new("memory (RSS)", "MB")
    .always(AtMost(800.0))
    .at_size(0, AtMost(150.0));
const PEAK: Measure = Measure::new("memory (RSS), highest so far", "MB").always(AtMost(800.0));
const DISK: Measure = Measure::new("data directory", "MB");
const STOPPED: Measure = Measure::new("start to healthy, after SIGTERM", "s").always(AtMost(3.0));
const RESTARTED: Measure = Measure::new("memory (RSS) after a restart", "MB").always(AtMost(800.0));
const ANSWERED: Measure = Measure::new("start to first answer, after kill -9", "s").always(AtMost(3.0));

/// One service that grows.
struct Run {
    service: Service,
    client: Client,
    dir: PathBuf,
    corpus: Corpus,
    ledger: Ledger,
}

pub async fn run(sizes: &[usize], report: Option<Report>) -> Fallible<()> {
    program::head("");
    let raw = raw_store::rows_per_second(&Prose::new()).await?;
    println!("raw speed of the embedded store: {raw:.0} rows/s");
    let dir = tempfile::tempdir()?;
    let mut ledger = Ledger::new("nodes");
    ledger.size(0);
    let attack = empty(&dir.path().join("empty"), &mut ledger).await?;

    let dir = dir.path().join("grown");
    let (service, _) = Service::start(&dir).await?;
    let client = Client::sign_in(service.base()).await?;
    let corpus = Corpus::new();
    let mut run = Run {
        service,
        client,
        dir,
        corpus,
        ledger,
    };
    for &size in sizes {
        run.ledger.size(size);
        run.ingest(size).await?;
        run.ask().await?;
        run.resources();
        run = run.restart().await?;
    }
    run.ledger.close();
    run.service.terminate()?;
    let raw = format!("Raw speed of the embedded store: {} rows/s.", thousands(raw));
    let remark = format!("{raw} {attack}{}", run.ledger.misses());
    report.map_or(Ok(()), |report| report.write(&run.ledger.table(), &remark))
}

/// Measures a service without data, and how fast it takes ATT&CK for ICS; the latter in a sentence.
async fn empty(dir: &Path, ledger: &mut Ledger) -> Fallible<String> {
    let (service, healthy) = Service::start(dir).await?;
    tokio::time::sleep(PAUSE).await;
    resources(&service, dir, ledger);
    ledger.note(STOPPED, healthy.as_secs_f64());
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../shared/data/attack/ics-attack.json"
    );
    let mut sentence = String::new();
    if let Ok(text) = std::fs::read_to_string(path) {
        let client = Client::sign_in(service.base()).await?;
        let bundle: serde_json::Value = serde_json::from_str(&text)?;
        let objects = bundle["objects"].as_array().map_or(0, Vec::len) as f64;
        let begun = Instant::now();
        client
            .ingest(format!("{{\"bundle\":{text}}}").into_bytes())
            .await?;
        let rate = thousands(objects / begun.elapsed().as_secs_f64());
        let objects = thousands(objects);
        sentence = format!("ATT&CK for ICS ({objects} objects): {rate} objects/s. ");
        println!("  {sentence}");
    }
    service.terminate()?;
    Ok(sentence)
}

fn resources(service: &Service, dir: &Path, ledger: &mut Ledger) {
    memory(RSS, "VmRSS", service, ledger);
    memory(PEAK, "VmHWM", service, ledger);
    ledger.note(DISK, disk(dir) as f64 / MEGABYTE);
}

fn memory(measure: Measure, name: &str, service: &Service, ledger: &mut Ledger) {
    if let Some(bytes) = service.memory(name) {
        ledger.note(measure, bytes as f64 / MEGABYTE);
    }
}

impl Run {
    async fn ingest(&mut self, size: usize) -> Fallible<()> {
        let bundles = self.corpus.grow_to(size);
        let before = self.service.cpu();
        let grown = load::ingest(&self.client, bundles).await?;
        let objects = grown.objects as f64;
        self.ledger.note(INGEST, objects / grown.time.as_secs_f64());
        if let Some((after, before)) = self.service.cpu().zip(before) {
            let effort = (after - before) / objects * MICROSECONDS;
            println!("  CPU time of the service per object: {effort:.0} us");
        }
        self.service.settle().await;
        Ok(())
    }

    async fn ask(&mut self) -> Fallible<()> {
        let series = [
            (BLENDED, load::BLENDED),
            (STRUCTURED, load::STRUCTURED),
            (SEMANTIC, load::SEMANTIC),
        ];
        for ([p50, p95], path) in series {
            let spread = load::searches(&self.client, path, &mut self.corpus).await?;
            self.ledger.note(p50, spread.p50);
            self.ledger.note(p95, spread.p95);
        }
        let [p50, p95] = EXPORT;
        let spread = load::exports(&self.client, &mut self.corpus).await?;
        self.ledger.note(p50, spread.p50);
        self.ledger.note(p95, spread.p95);
        let many = load::throughput(&self.client, &mut self.corpus).await?;
        self.ledger.note(THROUGHPUT, many);
        Ok(())
    }

    fn resources(&mut self) {
        resources(&self.service, &self.dir, &mut self.ledger);
    }

    /// Stops the service by SIGTERM and by SIGKILL, and measures the restarts.
    async fn restart(mut self) -> Fallible<Self> {
        self.service.terminate()?;
        let healthy;
        (self.service, healthy) = Service::start(&self.dir).await?;
        self.ledger.note(STOPPED, healthy.as_secs_f64());
        self.client = self.client.at(self.service.base());
        self.ask_few(FEW).await?;
        memory(RESTARTED, "VmRSS", &self.service, &mut self.ledger);

        // A recently acknowledged write must still be there.
        self.client.ingest(self.corpus.bundle().body).await?;
        self.service.kill()?;
        let begun = Instant::now();
        (self.service, _) = Service::start(&self.dir).await?;
        self.client = self.client.at(self.service.base());
        self.ask_few(1).await?;
        self.ledger.note(ANSWERED, begun.elapsed().as_secs_f64());
        Ok(self)
    }

    async fn ask_few(&mut self, count: usize) -> Fallible<()> {
        for _ in 0..count {
            let question = self.corpus.query();
            self.client.search(load::BLENDED, &question, load::LIMIT).await?;
        }
        Ok(())
    }
}
