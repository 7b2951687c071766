//! Questions that are answered from the graph: what they cost beside ordinary ones, and what the graph costs.

use std::time::{Duration, Instant};

use crate::Fallible;
use crate::client::Client;
use crate::ledger::Bound::AtMost;
use crate::ledger::{Ledger, Measure};
use crate::load::{self, BLENDED, LIMIT, STRUCTURED};
use crate::program::{self, Service, disk};
use crate::spread::Spread;
use crate::world::{GROUP, MALWARE, TECHNIQUE, World};

pub const SIZES: [usize; 1] = [100_000];
const ORDINARY: usize = 300;
const OF_EACH: usize = 25;
const MEGABYTE: f64 = 1e6;
const MICROSECONDS: f64 = 1e6;

const NODES: [Measure; 2] = [
    Measure::new("ingest of nodes", "nodes/s"),
    Measure::new("ingest of nodes, CPU time of the service for each", "us"),
];
const RELATIONSHIPS: [Measure; 2] = [
    Measure::new("ingest of relationships", "relationships/s"),
    Measure::new("ingest of relationships, CPU time of the service for each", "us"),
];
const AFTERMATH: Measure = Measure::new("work in the background after the ingest", "s of CPU time");
const RSS: Measure = Measure::new("memory (RSS) after the ingest", "MB");
const ASKED: Measure = Measure::new("memory (RSS) after the questions", "MB");
const RESTARTED: Measure = Measure::new("memory (RSS) after a restart and 100 questions", "MB");
const DISK: Measure = Measure::new("data directory", "MB");

/// Latencies and CPU time of a kind of question.
type Figures = [Measure; 3];

const BLENDED_ORDINARY: Figures = [
    Measure::new("ordinary questions, blended, p50", "ms"),
    Measure::new("ordinary questions, blended, p95", "ms"),
    Measure::new("ordinary questions, blended, CPU time", "ms"),
];
const STRUCTURED_ORDINARY: Figures = [
    Measure::new("ordinary questions, structured, p50", "ms"),
    Measure::new("ordinary questions, structured, p95", "ms"),
    Measure::new("ordinary questions, structured, CPU time", "ms"),
];
const ONE_STEP: Figures = [
    Measure::new("relational questions, p50", "ms").always(AtMost(15.0)),
    Measure::new("relational questions, p95", "ms"),
    Measure::new("relational questions, CPU time", "ms"),
];
const TWO_STEPS: Figures = [
    Measure::new("questions of two steps, p50", "ms"),
    Measure::new("questions of two steps, p95", "ms"),
    Measure::new("questions of two steps, CPU time", "ms"),
];
const YEARS: Figures = [
    Measure::new("questions about a year, p50", "ms"),
    Measure::new("questions about a year, p95", "ms"),
    Measure::new("questions about a year, CPU time", "ms"),
];
const HUB: Figures = [
    Measure::new("questions about the hub, p50", "ms"),
    Measure::new("questions about the hub, p95", "ms").always(AtMost(40.0)),
    Measure::new("questions about the hub, CPU time", "ms"),
];

const RELATIONAL: [(&str, usize); 9] = [
    ("Which groups use {}?", TECHNIQUE),
    ("Which malware uses {}?", TECHNIQUE),
    ("How can {} be mitigated?", TECHNIQUE),
    ("Which techniques does {} use?", GROUP),
    ("What malware and tools does {} use?", GROUP),
    ("Which campaigns are attributed to {}?", GROUP),
    ("Who uses {}?", MALWARE),
    ("Which vulnerabilities does {} exploit?", MALWARE),
    ("indicators of {}", MALWARE),
];
const OF_TWO_STEPS: [(&str, usize); 4] = [
    ("malware of groups that use {}", TECHNIQUE),
    ("Which mitigations cover what {} uses?", GROUP),
    ("techniques of the malware of {}", GROUP),
    ("Which malware was used in campaigns of {}?", GROUP),
];
const OF_YEARS: [&str; 2] = ["campaigns in {}", "Which malware was used in campaigns in {}?"];
const OF_HUB: [&str; 6] = [
    "indicators of {}",
    "Which indicators indicate {}?",
    "indicators of {} with {words}",
    "Which techniques does {} use?",
    "What malware does {} use?",
    "{} campaigns",
];

/// Measures a service of each of the sizes.
pub async fn run(sizes: &[usize]) -> Fallible<()> {
    program::head(", graph");
    let mut ledger = Ledger::new("nodes");
    for &size in sizes {
        ledger.size(size);
        measure(size, &mut ledger).await?;
    }
    ledger.compare_sizes(0);
    ledger.close();
    Ok(())
}

async fn measure(size: usize, ledger: &mut Ledger) -> Fallible<()> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("graph");
    let (service, _) = Service::start(&path).await?;
    let client = Client::sign_in(service.base()).await?;
    let mut world = World::new(size);
    let mut run = Run {
        service,
        client,
        ledger,
    };
    let (nodes, relationships) = (world.nodes(), world.relationships());
    run.ingest(NODES, nodes).await?;
    run.ingest(RELATIONSHIPS, relationships).await?;
    let before = run.cpu();
    run.service.settle().await;
    run.ledger.note(AFTERMATH, run.cpu() - before);
    run.memory(RSS);
    run.ledger.note(DISK, disk(&path) as f64 / MEGABYTE);
    run.questions(&mut world).await?;
    run.memory(ASKED);

    run.service.terminate()?;
    (run.service, _) = Service::start(&path).await?;
    run.client = run.client.at(run.service.base());
    for _ in 0..100 {
        run.client.search(BLENDED, &world.ordinary(), LIMIT).await?;
    }
    run.memory(RESTARTED);
    run.service.terminate()
}

struct Run<'a> {
    service: Service,
    client: Client,
    ledger: &'a mut Ledger,
}

impl Run<'_> {
    fn cpu(&self) -> f64 {
        self.service.cpu().unwrap_or(f64::NAN)
    }

    fn memory(&mut self, measure: Measure) {
        if let Some(bytes) = self.service.memory("VmRSS") {
            self.ledger.note(measure, bytes as f64 / MEGABYTE);
        }
    }

    async fn ingest(
        &mut self,
        [rate, effort]: [Measure; 2],
        bundles: Vec<crate::corpus::Bundle>,
    ) -> Fallible<()> {
        let before = self.cpu();
        // Each bundle brings its author, which is no node.
        let authors = bundles.len();
        let grown = load::ingest(&self.client, bundles).await?;
        let count = (grown.objects - authors) as f64;
        self.ledger.note(rate, count / grown.time.as_secs_f64());
        self.ledger
            .note(effort, (self.cpu() - before) / count * MICROSECONDS);
        Ok(())
    }

    async fn questions(&mut self, world: &mut World) -> Fallible<()> {
        for (figures, path) in [(BLENDED_ORDINARY, BLENDED), (STRUCTURED_ORDINARY, STRUCTURED)] {
            let questions = (0..ORDINARY).map(|_| world.ordinary()).collect();
            self.series(figures, path, vec![("", questions)]).await?;
        }
        for (figures, templates) in [(ONE_STEP, &RELATIONAL[..]), (TWO_STEPS, &OF_TWO_STEPS[..])] {
            let mut make = |(template, kind): &(&'static str, usize)| {
                let questions = (0..OF_EACH).map(|_| world.about(*kind, template));
                (*template, questions.collect())
            };
            let all = templates.iter().map(&mut make).collect();
            self.series(figures, BLENDED, all).await?;
        }
        let mut make = |template: &&'static str| {
            let questions = (0..OF_EACH).map(|_| world.about_year(template));
            (*template, questions.collect())
        };
        let all = OF_YEARS.iter().map(&mut make).collect();
        self.series(YEARS, BLENDED, all).await?;
        let mut make = |template: &&'static str| {
            let questions = (0..OF_EACH).map(|_| world.about_hub(template));
            (*template, questions.collect())
        };
        let all = OF_HUB.iter().map(&mut make).collect();
        self.series(HUB, BLENDED, all).await
    }

    /// Asks the questions of each template, and prints figures of each and of all.
    async fn series(
        &mut self,
        [p50, p95, effort]: Figures,
        path: &str,
        templates: Vec<(&'static str, Vec<String>)>,
    ) -> Fallible<()> {
        let mut times = Vec::new();
        let begun = self.cpu();
        for (template, questions) in templates {
            let before = self.cpu();
            let own = ask(&self.client, path, &questions).await?;
            if !template.is_empty() {
                let each = (self.cpu() - before) * 1e3 / questions.len() as f64;
                let spread = Spread::of(own.clone());
                println!(
                    "    {template:<44} {:>8.1} {:>8.1} {each:>8.1}",
                    spread.p50, spread.p95
                );
            }
            times.extend(own);
        }
        let count = times.len() as f64;
        let spread = Spread::of(times);
        self.ledger.note(p50, spread.p50);
        self.ledger.note(p95, spread.p95);
        self.ledger.note(effort, (self.cpu() - begun) * 1e3 / count);
        Ok(())
    }
}

/// Asks one question after the other.
async fn ask(client: &Client, path: &str, questions: &[String]) -> Fallible<Vec<Duration>> {
    let mut times = Vec::new();
    for question in questions {
        let begun = Instant::now();
        client.search(path, question, LIMIT).await?;
        times.push(begun.elapsed());
    }
    Ok(times)
}
