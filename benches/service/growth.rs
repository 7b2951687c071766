//! How cost grows with the number of nodes: one service, measured at one size after the other.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::Fallible;
use crate::bulk::{Bulk, Clock, NODES};
use crate::client::Client;
use crate::corpus::Corpus;
use crate::ledger::Bound::AtMost;
use crate::ledger::{Ledger, Measure};
use crate::load::{BLENDED, LIMIT, SEMANTIC, STRUCTURED};
use crate::paces::{Part, Smaller};
use crate::program::{self, Service, disk};
use crate::prose::Prose;
use crate::raw_store;
use crate::report::Report;
use crate::spread::Spread;
use crate::turns::{self, Before};

pub const SIZES: [usize; 3] = [10_000, 100_000, 1_000_000];
/// The size to which the largest is compared.
const REFERENCE: usize = 100_000;
const LARGEST: usize = 1_000_000;
/// Questions of a series, and after a restart before such a series.
const MEASURED: usize = 300;
const FIRST: usize = 100;
const EXPORTS: usize = 100;
const EXPORTED: usize = 100;
const MEGABYTE: f64 = 1e6;
const MICROSECONDS: f64 = 1e6;
/// From milliseconds to nanoseconds.
const NANOSECONDS: f64 = 1e6;

const RAW: Measure = Measure::new("raw speed of the embedded store", "rows/s");
const INGEST: Measure = Measure::new("ingest", "nodes/s");
const SLOWEST: Measure = Measure::new("ingest, slowest tenth", "nodes/s");
const LAST: Measure = Measure::new("ingest, last tenth", "nodes/s");
const CORES: Measure = Measure::new("cores used by the service meanwhile", "");
const OWN_CORES: Measure = Measure::new("cores used by this client meanwhile", "");
const AFTERMATH: Measure = Measure::new("work in the background after the ingest", "s of CPU time");
/// Unlike times, CPU times can be compared while other programs use the machine.
const EFFORT: Measure = Measure::new("CPU time of the service per node", "us");
const RSS: Measure = Measure::new("memory (RSS) after the ingest", "MB")
    .at_size(LARGEST, AtMost(1_400.0))
    .per_row(MEGABYTE, "bytes");
const PEAK: Measure = Measure::new("memory (RSS), highest so far", "MB");
const DISK: Measure = Measure::new("bytes on disk per node", "");
const DISK_TOTAL: Measure = Measure::new("data directory", "MB").per_row(MEGABYTE, "bytes");
const AT_ONCE: [Measure; 2] = [
    Measure::new("blended, straight after the ingest, p50", "ms"),
    Measure::new("blended, straight after the ingest, p95", "ms"),
];
/// Targets for growth are set where both sizes are asked in turn.
const BLENDED_IDLE: [Measure; 3] = [
    Measure::new("blended, p50", "ms"),
    Measure::new("blended, p95", "ms"),
    Measure::new("blended, CPU time of the service", "ms").per_row(NANOSECONDS, "ns"),
];
const STRUCTURED_IDLE: [Measure; 3] = [
    Measure::new("structured, p50", "ms"),
    Measure::new("structured, p95", "ms"),
    Measure::new("structured, CPU time of the service", "ms").per_row(NANOSECONDS, "ns"),
];
const SEMANTIC_IDLE: [Measure; 3] = [
    Measure::new("semantic, p50", "ms"),
    Measure::new("semantic, p95", "ms"),
    Measure::new("semantic, CPU time of the service", "ms").per_row(NANOSECONDS, "ns"),
];
const EXPORT: [Measure; 2] = [
    Measure::new("export of 100 nodes, p50", "ms"),
    Measure::new("export of 100 nodes, p95", "ms"),
];
const BESIDE: [Measure; 2] = [
    Measure::new("blended while a bulk ingest runs, p50", "ms"),
    Measure::new("blended while a bulk ingest runs, p95", "ms"),
];
const BESIDE_RATIO: Measure =
    Measure::new("blended while a bulk ingest runs", "times the idle p95").always(AtMost(3.0));
const BESIDE_INGEST: Measure = Measure::new("ingest while questions are asked", "nodes/s");
const STOPPED: [Measure; 2] = [
    Measure::new("start to first answer after SIGTERM", "s").at_size(LARGEST, AtMost(1.0)),
    Measure::new(
        "first 100 questions after SIGTERM, p50",
        "times that of later ones",
    )
    .always(AtMost(2.0)),
];
const KILLED: [Measure; 2] = [
    Measure::new("start to first answer after kill -9", "s").at_size(LARGEST, AtMost(1.0)),
    Measure::new(
        "first 100 questions after kill -9, p50",
        "times that of later ones",
    )
    .always(AtMost(2.0)),
];
const FRESH: Measure = Measure::new("memory (RSS) after a restart", "MB");
/// A bulk ingest must leave behind a search as fast as a restart does; a fifth is allowed for noise.
const WORN: Measure =
    Measure::new("blended before a restart, p50", "times that after it").always(AtMost(1.2));
/// What the page shows of each size.
const ON_PAGE: [Measure; 9] = [
    INGEST,
    BLENDED_IDLE[0],
    BLENDED_IDLE[1],
    BLENDED_IDLE[2],
    RSS,
    FRESH,
    DISK_TOTAL,
    KILLED[0],
    RAW,
];

/// A service that grows, and what is asked of it.
struct Growth {
    dir: PathBuf,
    client: Client,
    prose: Arc<Prose>,
    asked: HashSet<String>,
    ledger: Ledger,
}

/// Measures one service at each of the sizes.
pub async fn run(sizes: &[usize], report: Option<Report>) -> Fallible<()> {
    program::head(", growth");
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("grown");
    let (mut service, _) = Service::start(&path).await?;
    let prose = Arc::new(Prose::new());
    let mut corpus = Corpus::of(Arc::clone(&prose));
    let mut growth = Growth {
        client: Client::sign_in(service.base()).await?,
        dir: path,
        prose,
        asked: HashSet::new(),
        ledger: Ledger::new("nodes"),
    };
    let kept = sizes.iter().rev().nth(1).copied().unwrap_or_default();
    let mut before: Option<Before> = None;
    for &size in sizes {
        if corpus.nodes() >= size {
            println!("\nskipped {size} nodes: there are {} already", corpus.nodes());
            continue;
        }
        growth.ledger.size(size);
        let smaller = before.is_some().then(|| Smaller {
            prose: Arc::clone(&growth.prose),
            from: sizes.iter().rev().nth(2).copied().unwrap_or_default(),
            to: kept,
        });
        (service, corpus) = growth.measure(service, corpus, size, smaller).await?;
        if let Some(before) = &before {
            before.compare(&growth.client, &mut growth.ledger).await?;
        }
        if size == kept {
            let questions = growth.questions(&mut corpus, turns::QUESTIONS);
            service.terminate()?;
            before = Some(Before::of(&growth.dir, dir.path().join("before"), questions)?);
            (service, _) = Service::start(&growth.dir).await?;
            growth.client = growth.client.at(service.base());
        }
    }
    let ledger = &growth.ledger;
    ledger.compare_sizes(REFERENCE);
    ledger.close();
    service.terminate()?;
    let remark = ledger.remark_on_growth(&RSS, &DISK_TOTAL, &BLENDED_IDLE[2]);
    report.map_or(Ok(()), |report| {
        report.write(&ledger.table_by_size(&ON_PAGE), &remark)
    })
}

impl Growth {
    async fn measure(
        &mut self,
        service: Service,
        corpus: Corpus,
        size: usize,
        smaller: Option<Smaller>,
    ) -> Fallible<(Service, Corpus)> {
        let mut corpus = self.ingest(&service, corpus, size, smaller).await?;
        self.resources(&service, size);
        let raw = raw_store::rows_per_second(&self.prose).await?;
        self.ledger.note(RAW, raw);
        let idle = self.idle(&service, &mut corpus).await?;
        let mut corpus = self.beside(corpus, &idle).await?;
        service.settle().await;
        let worn = self.searches(BLENDED, &mut corpus, MEASURED).await?;
        service.terminate()?;

        let (service, later) = self.comeback(STOPPED, &mut corpus).await?;
        self.ledger.note(WORN, worn.p50 / later.p50);
        if let Some(bytes) = service.memory("VmRSS") {
            self.ledger.note(FRESH, bytes as f64 / MEGABYTE);
        }
        // A recently acknowledged write must still be there.
        self.client.ingest(corpus.bundle_of(NODES).body).await?;
        service.kill()?;
        let (service, _) = self.comeback(KILLED, &mut corpus).await?;
        Ok((service, corpus))
    }

    /// Ingests up to `size` nodes, asks at once, and waits until the service is idle.
    async fn ingest(
        &mut self,
        service: &Service,
        corpus: Corpus,
        size: usize,
        smaller: Option<Smaller>,
    ) -> Fallible<Corpus> {
        let (mut corpus, part) = match smaller {
            Some(smaller) => {
                let ledger = &mut self.ledger;
                smaller
                    .in_turn(service, &self.client, corpus, size, ledger)
                    .await?
            }
            None => {
                let clock = Arc::new(Clock::running());
                Part::ingest(service, &self.client, corpus, size, clock).await?
            }
        };
        self.pace(&part);
        let first = self.searches(BLENDED, &mut corpus, FIRST).await?;
        self.pair(AT_ONCE, &first);
        let before = service.cpu();
        service.settle().await;
        if let Some((after, before)) = service.cpu().zip(before) {
            self.ledger.note(AFTERMATH, after - before);
        }
        Ok(corpus)
    }

    fn pace(&mut self, part: &Part) {
        let pace = &part.pace;
        self.ledger.note(INGEST, pace.overall);
        self.ledger.note(SLOWEST, pace.slowest_tenth);
        self.ledger.note(LAST, pace.last_tenth);
        for (measure, cpu) in [(CORES, part.cpu), (OWN_CORES, part.own_cpu)] {
            if let Some(cpu) = cpu {
                self.ledger.note(measure, cpu / pace.time.as_secs_f64());
            }
        }
        if let Some(effort) = part.effort() {
            self.ledger.note(EFFORT, effort * MICROSECONDS);
        }
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

    /// Latencies with nothing else running; returns those of blended recall.
    async fn idle(&mut self, service: &Service, corpus: &mut Corpus) -> Fallible<Spread> {
        let blended = self.search(BLENDED, BLENDED_IDLE, service, corpus).await?;
        self.search(STRUCTURED, STRUCTURED_IDLE, service, corpus).await?;
        self.search(SEMANTIC, SEMANTIC_IDLE, service, corpus).await?;
        let exports = self.exports(corpus).await?;
        self.pair(EXPORT, &exports);
        Ok(blended)
    }

    /// Measures one kind of search.
    async fn search(
        &mut self,
        path: &str,
        [p50, p95, effort]: [Measure; 3],
        service: &Service,
        corpus: &mut Corpus,
    ) -> Fallible<Spread> {
        let before = service.cpu();
        let spread = self.searches(path, corpus, MEASURED).await?;
        self.pair([p50, p95], &spread);
        if let Some((after, before)) = service.cpu().zip(before) {
            self.ledger.note(effort, (after - before) * 1e3 / MEASURED as f64);
        }
        Ok(spread)
    }

    /// Latencies while the next nodes are ingested, as many as it takes to ask all questions.
    async fn beside(&mut self, mut corpus: Corpus, idle: &Spread) -> Fallible<Corpus> {
        let questions = self.questions(&mut corpus, MEASURED);
        let bulk = Bulk::start(&self.client, corpus, usize::MAX);
        let asked = ask(&self.client, BLENDED, questions).await?;
        let (corpus, pace) = bulk.stop().await?;
        self.pair(BESIDE, &asked);
        self.ledger.note(BESIDE_RATIO, asked.p95 / idle.p95);
        self.ledger.note(BESIDE_INGEST, pace.overall);
        Ok(corpus)
    }

    /// Starts the service again; returns its latencies once it has answered the first questions.
    async fn comeback(
        &mut self,
        [answer, warmth]: [Measure; 2],
        corpus: &mut Corpus,
    ) -> Fallible<(Service, Spread)> {
        let mut questions = self.questions(corpus, FIRST);
        let question = questions.pop().ok_or("no question")?;
        let (service, healthy) = Service::start(&self.dir).await?;
        self.client = self.client.at(service.base());
        let begun = Instant::now();
        self.client.search(BLENDED, &question, LIMIT).await?;
        self.ledger
            .note(answer, (healthy + begun.elapsed()).as_secs_f64());
        let first = ask(&self.client, BLENDED, questions).await?;
        let later = self.searches(BLENDED, corpus, MEASURED).await?;
        self.ledger.note(warmth, first.p50 / later.p50);
        Ok((service, later))
    }

    async fn searches(&mut self, path: &str, corpus: &mut Corpus, count: usize) -> Fallible<Spread> {
        let questions = self.questions(corpus, count);
        ask(&self.client, path, questions).await
    }

    /// Exports as many sessions of a hundred nodes, each once.
    async fn exports(&mut self, corpus: &mut Corpus) -> Fallible<Spread> {
        let mut times = Vec::new();
        while times.len() < EXPORTS {
            let answer = self.client.search(BLENDED, &corpus.question(), EXPORTED).await?;
            let answer: Value = serde_json::from_str(&answer)?;
            if answer["count"] == EXPORTED {
                let session = answer["recall_id"].as_str().ok_or("no recall_id")?;
                let begun = Instant::now();
                self.client.export(session).await?;
                times.push(begun.elapsed());
            }
        }
        Ok(Spread::of(times))
    }

    /// Questions that were never asked before.
    fn questions(&mut self, corpus: &mut Corpus, count: usize) -> Vec<String> {
        let mut questions = Vec::new();
        while questions.len() < count {
            let question = corpus.query();
            if self.asked.insert(question.clone()) {
                questions.push(question);
            }
        }
        questions
    }

    fn pair(&mut self, [p50, p95]: [Measure; 2], spread: &Spread) {
        self.ledger.note(p50, spread.p50);
        self.ledger.note(p95, spread.p95);
    }
}

/// Asks one question after the other.
async fn ask(client: &Client, path: &str, questions: Vec<String>) -> Fallible<Spread> {
    let mut times: Vec<Duration> = Vec::new();
    for question in questions {
        let begun = Instant::now();
        client.search(path, &question, LIMIT).await?;
        times.push(begun.elapsed());
    }
    Ok(Spread::of(times))
}
