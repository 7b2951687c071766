//! The local service from a client's view: remember, recall, start-up, memory; release build, durable store, real HTTP.
//!
//! Run with `cargo bench --bench memory`. Compare ratios within one run only: absolute times depend on the machine.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

type Fallible<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

const NOTES: usize = 10_000;
const WRITERS: usize = 16;
const SINGLE: usize = 500;
const QUESTIONS: usize = 500;
/// Pause between two queries of a reader, and before a refused writer retries.
const PAUSE: Duration = Duration::from_millis(50);
const WORDS: [&str; 48] = [
    "beacon",
    "phishing",
    "ministry",
    "server",
    "lateral",
    "movement",
    "credential",
    "dump",
    "loader",
    "dropper",
    "persistence",
    "scheduled",
    "task",
    "registry",
    "exfiltration",
    "archive",
    "tunnel",
    "proxy",
    "fronting",
    "victim",
    "energy",
    "sector",
    "report",
    "campaign",
    "observed",
    "analyst",
    "network",
    "traffic",
    "malware",
    "sample",
    "signed",
    "driver",
    "kernel",
    "exploit",
    "patch",
    "vendor",
    "advisory",
    "incident",
    "mailbox",
    "forwarding",
    "backdoor",
    "implant",
    "staging",
    "operator",
    "infrastructure",
    "certificate",
    "hosting",
    "domain",
];
const ACTORS: [&str; 8] = [
    "APT28",
    "Sandworm",
    "Lazarus Group",
    "APT29",
    "FIN7",
    "Turla",
    "Volt Typhoon",
    "OilRig",
];
const TOOLS: [&str; 6] = [
    "Cobalt Strike",
    "Mimikatz",
    "PsExec",
    "Industroyer",
    "NotPetya",
    "Snake",
];
const ASKED: [&str; 6] = [
    "What tools does APT28 use?",
    "latest incident in the energy sector",
    "CVE-2024-1500",
    "credential dump and lateral movement",
    "Why was the mailbox forwarding?",
    "10.0.3.7",
];

/// The same note for a given number in every run.
fn note(number: usize) -> String {
    let mut state = number as u64 ^ 0x9e37_79b9_7f4a_7c15;
    let mut words = Vec::with_capacity(60);
    for _ in 0..60 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        words.push(WORDS[(state >> 33) as usize % WORDS.len()]);
    }
    let (actor, tool) = (ACTORS[number % ACTORS.len()], TOOLS[number % TOOLS.len()]);
    let address = format!(
        "10.{}.{}.{}",
        number / 65_536 % 256,
        number / 256 % 256,
        number % 256
    );
    let (cve, words) = (1000 + number % 3000, words.join(" "));
    format!(
        "{actor} used {tool} against {address} and host{number}.evil-{}.com, CVE-2024-{cve}. {words}.",
        number % 97
    )
}

struct Service {
    child: Child,
    base: String,
    http: reqwest::Client,
}

impl Service {
    async fn start(dir: &Path, write_concurrency: usize) -> Fallible<(Self, Duration)> {
        let begun = Instant::now();
        let mut child = Command::new(env!("CARGO_BIN_EXE_threat-memory"))
            .args(["local", "--port", "0", "--data-dir"])
            .arg(dir)
            .env("LOCAL_WEB_ADMIN_BIND", "127.0.0.1:0")
            .env("LOCAL_WEB_RATE_LIMIT_PER_MINUTE", "100000000")
            .env("LOCAL_WEB_WRITE_CONCURRENCY", write_concurrency.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut lines = BufReader::new(child.stderr.take().ok_or("no stderr")?).lines();
        let address = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| Some(line.strip_prefix("API on ")?.split(',').next()?.to_owned()));
        // Drains the pipe, so that the service never blocks on a full one.
        std::thread::spawn(move || lines.for_each(drop));
        let service = Self {
            child,
            base: address.ok_or("the service did not start")?,
            http: reqwest::Client::builder().no_proxy().build()?,
        };
        let health = service
            .http
            .get(format!("{}/api/health", service.base))
            .send()
            .await?;
        health.error_for_status()?;
        Ok((service, begun.elapsed()))
    }

    async fn post(&self, path: &str, body: &Value) -> Fallible<Value> {
        let answer = self
            .http
            .post(format!("{}{path}", self.base))
            .json(body)
            .send()
            .await?;
        let status = answer.status();
        let text = answer.text().await?;
        if !status.is_success() {
            return Err(format!("{path} answered {status}: {text}").into());
        }
        Ok(serde_json::from_str(&text)?)
    }

    async fn remember(&self, number: usize) -> Fallible<()> {
        let told = self
            .post("/api/remember", &json!({"content": note(number)}))
            .await?;
        if told["status"] != "created" {
            return Err(format!("note {number} was {}", told["status"]).into());
        }
        Ok(())
    }

    /// Returns false if no permit was available.
    async fn try_remember(&self, number: usize) -> Fallible<bool> {
        let body = json!({"content": note(number)});
        let asked = self.http.post(format!("{}/api/remember", self.base)).json(&body);
        let answer = asked.send().await?;
        if answer.status() == reqwest::StatusCode::TOO_MANY_REQUESTS {
            return Ok(false);
        }
        answer.error_for_status()?.bytes().await?;
        Ok(true)
    }

    async fn recall(&self, number: usize) -> Fallible<()> {
        let body = json!({"query": ASKED[number % ASKED.len()], "k": 10});
        let found = self.post("/api/recall", &body).await?;
        if found["count"].as_u64().unwrap_or(0) == 0 {
            return Err("a question found nothing".into());
        }
        Ok(())
    }

    fn rss(&self) -> String {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let figure = |name: &str| -> f64 {
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .unwrap_or_default();
            let number = line.trim_start_matches(':').split_whitespace().next();
            number
                .and_then(|number| number.parse::<f64>().ok())
                .unwrap_or(0.0)
                * 1024.0
                / 1e6
        };
        format!(
            "{:.0} MB (highest {:.0}, files {:.0})",
            figure("VmRSS"),
            figure("VmHWM"),
            figure("RssFile")
        )
    }

    fn terminate(mut self) -> Fallible<()> {
        Command::new("kill").arg(self.child.id().to_string()).status()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn line(name: &str, value: &str) {
    println!("  {name:<46} {value:>32}");
}

fn spread(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |share: usize| times[times.len() * share / 100].as_secs_f64() * 1e3;
    format!("p50 {:.2}, p95 {:.2} ms", at(50), at(95))
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

/// Readers that query continuously, with a pause between queries, until they are stopped.
struct Readers {
    done: Arc<AtomicBool>,
    tasks: Vec<tokio::task::JoinHandle<Fallible<Vec<Duration>>>>,
}

impl Readers {
    fn start(service: &Arc<Service>, count: usize) -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let tasks = (0..count)
            .map(|mut number| {
                let (service, done) = (Arc::clone(service), Arc::clone(&done));
                tokio::spawn(async move {
                    let mut times = Vec::new();
                    while !done.load(Ordering::Relaxed) {
                        let begun = Instant::now();
                        service.recall(number).await?;
                        times.push(begun.elapsed());
                        number += 1;
                        tokio::time::sleep(PAUSE).await;
                    }
                    Ok(times)
                })
            })
            .collect();
        Self { done, tasks }
    }

    /// Stops the readers and returns their latencies.
    async fn stop(self) -> Fallible<Vec<Duration>> {
        self.done.store(true, Ordering::Relaxed);
        let mut waited = Vec::new();
        for task in self.tasks {
            waited.extend(task.await??);
        }
        Ok(waited)
    }
}

/// Stores notes until there are `NOTES`, while two readers query; returns the total time and the readers' latencies.
async fn load(service: &Arc<Service>) -> Fallible<(Duration, Vec<Duration>)> {
    let readers = Readers::start(service, 2);
    let begun = Instant::now();
    let each = (NOTES - SINGLE) / WRITERS;
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let service = Arc::clone(service);
            tokio::spawn(async move {
                for number in 0..each {
                    service.remember(SINGLE + writer * each + number).await?;
                }
                Fallible::Ok(())
            })
        })
        .collect();
    for writer in writers {
        writer.await??;
    }
    Ok((begun.elapsed(), readers.stop().await?))
}

/// Many readers, alone and alongside as many writers of which two may write at a time.
async fn contention(service: &Arc<Service>) -> Fallible<()> {
    let readers = Readers::start(service, WRITERS);
    tokio::time::sleep(Duration::from_secs(5)).await;
    line(
        "recall, 16 readers, nobody writes",
        &spread(readers.stop().await?),
    );
    let (readers, end) = (
        Readers::start(service, WRITERS),
        Instant::now() + Duration::from_secs(5),
    );
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let service = Arc::clone(service);
            tokio::spawn(async move {
                let (mut written, mut refused) = (0, 0);
                while Instant::now() < end {
                    let number = 2 * NOTES + writer * NOTES + written;
                    match service.try_remember(number).await? {
                        true => written += 1,
                        false => {
                            refused += 1;
                            tokio::time::sleep(PAUSE).await;
                        }
                    }
                }
                Fallible::Ok((written, refused))
            })
        })
        .collect();
    let (mut written, mut refused) = (0, 0);
    for writer in writers {
        let (more, again) = writer.await??;
        written += more;
        refused += again;
    }
    line(
        "recall, 16 readers, 16 writers, 2 at a time",
        &spread(readers.stop().await?),
    );
    line(
        "notes written, and refused with 429",
        &format!("{written}, {refused}"),
    );
    Ok(())
}

async fn run() -> Fallible<()> {
    let dir = tempfile::tempdir()?;
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    println!("threat-memory {} local, {cores} cores", env!("CARGO_PKG_VERSION"));
    let (service, healthy) = Service::start(dir.path(), WRITERS).await?;
    line(
        "first start to healthy",
        &format!("{:.0} ms", healthy.as_secs_f64() * 1e3),
    );
    line("memory (RSS), empty", &service.rss());
    let service = Arc::new(service);
    line(
        "remember, one writer, first 500",
        &spread(timed(SINGLE, |number| service.remember(number)).await?),
    );
    let idle = timed(QUESTIONS, |number| service.recall(number)).await?;
    line("recall, nobody writes, 500 notes", &spread(idle));
    let (took, waited) = load(&service).await?;
    let written = (NOTES - SINGLE) / WRITERS * WRITERS;
    let rate = written as f64 / took.as_secs_f64();
    line("remember, 16 writers", &format!("{rate:.0} notes/s"));
    line("recall meanwhile, two readers", &spread(waited));
    line("memory (RSS) right after", &service.rss());
    tokio::time::sleep(Duration::from_secs(5)).await;
    line(
        "recall k=10, 10,000 notes",
        &spread(timed(QUESTIONS, |number| service.recall(number)).await?),
    );
    let more = timed(200, |number| service.remember(NOTES + 100 + number)).await?;
    line("remember, one writer, 10,000 notes", &spread(more));
    tokio::time::sleep(Duration::from_secs(5)).await;
    line("memory (RSS), 10,000 notes", &service.rss());
    Arc::into_inner(service).ok_or("still in use")?.terminate()?;
    let (service, healthy) = Service::start(dir.path(), WRITERS).await?;
    line(
        "start to healthy, 10,000 notes",
        &format!("{:.0} ms", healthy.as_secs_f64() * 1e3),
    );
    timed(QUESTIONS, |number| service.recall(number)).await?;
    line("memory (RSS), 10,000 notes, after a restart", &service.rss());
    service.terminate()?;
    let service = Arc::new(Service::start(dir.path(), 2).await?.0);
    contention(&service).await?;
    Arc::into_inner(service).ok_or("still in use")?.terminate()
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let outcome = runtime
        .map_err(Into::into)
        .and_then(|runtime| runtime.block_on(run()));
    if let Err(error) = outcome {
        eprintln!("{error}");
        std::process::exit(1);
    }
}
