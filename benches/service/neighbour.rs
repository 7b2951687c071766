//! How a workspace is affected when another one sends many large bundles at once.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::task::JoinSet;

use crate::Fallible;
use crate::client::{Client, PASSWORD};
use crate::corpus::Corpus;
use crate::load::{BLENDED, LIMIT};
use crate::process::Service;
use crate::spread::Spread;

/// Bundles sent at once, and nodes per bundle; with relationships, each has 12,000 objects.
const LOUD: usize = 20;
const LOUD_NODES: usize = 7200;
/// Bundles in the quiet workspace.
const QUIET: usize = 5;
const IDLE: usize = 300;

/// What the quiet workspace observed.
#[derive(Default)]
struct Seen {
    searches: Vec<Duration>,
    writes: BTreeMap<u16, usize>,
}

/// Measures a quiet workspace alone and alongside a loud one.
pub async fn run() -> Fallible<()> {
    crate::program::head("");
    // Generated before connecting, since the service closes connections that are idle for seconds.
    let mut others = Corpus::new();
    let bodies: Vec<Vec<u8>> = (0..LOUD).map(|_| others.bundle_of(LOUD_NODES).body).collect();
    let dir = tempfile::tempdir()?;
    let (service, _) = Service::start(dir.path()).await?;
    let operator = Client::sign_in(service.base()).await?;
    let loud = workspace(&operator, service.base(), "loud").await?;
    let quiet = workspace(&operator, service.base(), "quiet").await?;
    let mut corpus = Corpus::new();
    for _ in 0..QUIET {
        quiet.ingest(corpus.bundle().body).await?;
    }
    let mut idle = Seen::default();
    while idle.searches.len() < IDLE {
        look(&quiet, &mut corpus, &mut idle).await?;
    }

    let mut sending = JoinSet::new();
    for body in bodies {
        let client = loud.clone();
        sending.spawn(async move { client.status_of("/api/ingest/stix", body).await });
    }
    let begun = Instant::now();
    let (mut beside, mut answers) = (Seen::default(), BTreeMap::new());
    while !sending.is_empty() {
        look(&quiet, &mut corpus, &mut beside).await?;
        while let Some(done) = sending.try_join_next() {
            *answers.entry(done??).or_insert(0) += 1;
        }
    }
    let took = begun.elapsed();
    println!("\nbeside {LOUD} bundles of 12,000 objects in another workspace");
    println!("  searches: {}", beside.searches.len());
    let [alone, meanwhile] = [idle.searches, beside.searches].map(Spread::of);
    println!("  search, p50: {:.1} -> {:.1} ms", alone.p50, meanwhile.p50);
    println!("  search, p95: {:.1} -> {:.1} ms", alone.p95, meanwhile.p95);
    println!("  own small writes, by status: {:?}", beside.writes);
    println!("  the loud one's bundles, by status: {answers:?}");
    println!("  until the last one was answered: {:.1} s", took.as_secs_f64());
    let memory = service.memory("VmHWM").unwrap_or_default() as f64 / 1e6;
    println!("  memory (RSS), highest: {memory:.0} MB");
    service.terminate()
}

async fn workspace(operator: &Client, base: &str, name: &str) -> Fallible<Client> {
    let email = format!("{name}@example.com");
    let body = json!({"name": name, "admin_email": email, "admin_password": PASSWORD}).to_string();
    operator.post("/api/admin/workspaces", body.into_bytes()).await?;
    Client::sign_in_as(base, &email).await
}

/// Performs one search and one small write.
async fn look(client: &Client, corpus: &mut Corpus, seen: &mut Seen) -> Fallible<()> {
    let query = corpus.query();
    let begun = Instant::now();
    client.search(BLENDED, &query, LIMIT).await?;
    seen.searches.push(begun.elapsed());
    let name = format!("note {}", uuid::Uuid::new_v4());
    let body = json!({"nodes": [{"name": name, "node_type": "tool"}]}).to_string();
    let status = client.status_of("/api/ingest/analyst", body.into_bytes()).await?;
    *seen.writes.entry(status).or_insert(0) += 1;
    Ok(())
}
