//! Stress test for lost and duplicated data: writers on all ingest endpoints, readers and exports in two workspaces,
//! while the service is killed every few seconds. At the end, acknowledged writes are compared with the stored data.
//!
//! It lasts 2 seconds with one kill in the quick round and 60 seconds in the full one; `THREAT_MEMORY_STORM_SECONDS` sets
//! another length. On a slow machine the storm goes on, without further kills, until a write of each kind was
//! acknowledged.

mod routes;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use rand::Rng;
use serde_json::{Value, json};
use test_support::extent;
use tokio::sync::watch;

use self::routes::{Failure, IngestRoute, WrittenItem};
use crate::helpers::{Client, PASSWORD, encode, run};
use crate::process::{Service, hosted, started_once};
use crate::stix::{by_id, text};

const SECONDS: &str = "THREAT_MEMORY_STORM_SECONDS";
/// Number of writers; in the quick round one for each way in.
fn writers() -> usize {
    extent(IngestRoute::ALL.len(), 16)
}

/// Every fourth writer uses the neighbour's workspace.
const NEIGHBOURS: usize = 4;
const READERS: usize = 4;
/// Pause between writes; keeps the comparison time in proportion to that of the storm.
fn pause() -> Duration {
    Duration::from_millis(extent(200, 80))
}

/// Concurrent requests during the comparison.
const LANES: usize = 4;
/// How much longer than planned a storm may last while some kind of write was never acknowledged.
const EXTENSION: Duration = Duration::from_secs(300);
const NEIGHBOUR: &str = "neighbour@example.com";

/// The clients of both workspaces while the service runs.
#[derive(Clone)]
struct Clients {
    operator: Client,
    neighbour: Client,
}

impl Clients {
    fn of(&self, neighbour: bool) -> &Client {
        if neighbour {
            &self.neighbour
        } else {
            &self.operator
        }
    }

    /// Signs in to both workspaces of a service that has just started.
    async fn sign_in(service: &Service) -> Self {
        let neighbour = service.anonymous().sign_in(NEIGHBOUR, PASSWORD).await;
        Self {
            operator: service.admin().await,
            neighbour,
        }
    }
}

/// Uses a small memtable, so that the engine rotates it several times during a storm.
fn start(dir: &Path) -> Service {
    let mut command = hosted(dir);
    command.env("THREAT_MEMORY_STORAGE__MEMTABLE_MIB", "4");
    Service::start(command)
}

/// When the storm ends, and the endpoints that acknowledged a write so far.
struct Course {
    until: Instant,
    through: Mutex<HashSet<IngestRoute>>,
}

impl Course {
    fn lasting(length: Duration) -> Arc<Self> {
        Arc::new(Self {
            until: Instant::now() + length,
            through: Mutex::default(),
        })
    }

    fn goes_on(&self) -> bool {
        let now = Instant::now();
        let complete = self.through.lock().unwrap().len() == IngestRoute::ALL.len();
        now < self.until || (!complete && now < self.until + EXTENSION)
    }
}

type Running = watch::Receiver<Option<Clients>>;

/// The clients, once the service is up; `None` when the storm is over.
async fn up(running: &mut Running) -> Option<Clients> {
    let clients = running.wait_for(Option::is_some).await.ok()?;
    clients.clone()
}

async fn write(lane: usize, mut running: Running, course: Arc<Course>) -> Vec<WrittenItem> {
    let neighbour = lane % NEIGHBOURS == NEIGHBOURS - 1;
    let mut all = Vec::new();
    while course.goes_on() {
        let Some(clients) = up(&mut running).await else {
            break;
        };
        let way = IngestRoute::ALL[(lane + all.len()) % IngestRoute::ALL.len()];
        let mut written = WrittenItem::new(way, neighbour);
        let sent = written.send(clients.of(neighbour)).await;
        written.acknowledged = sent.is_ok();
        if written.acknowledged {
            course.through.lock().unwrap().insert(way);
        }
        all.push(written);
        // Spreads the writes over the storm.
        tokio::time::sleep(pause()).await;
    }
    all
}

/// Searches and exports; every response must be complete JSON.
async fn read(lane: usize, mut running: Running, course: Arc<Course>) -> usize {
    let mut answered = 0;
    while course.goes_on() {
        let Some(clients) = up(&mut running).await else {
            break;
        };
        let client = clients.of(lane % 2 == 1);
        let path = "/api/recall/search?q=one+two+implant&limit=50";
        let Some(found) = try_get(client, path).await else {
            continue;
        };
        answered += 1;
        let path = format!("/api/recall/sessions/{}/export.stix", text(&found, "recall_id"));
        answered += usize::from(try_get(client, &path).await.is_some());
    }
    answered
}

async fn try_get(client: &Client, path: &str) -> Option<Value> {
    let answer = client.request(reqwest::Method::GET, path).send().await.ok()?;
    let status = answer.status().as_u16();
    let whole = answer.text().await.ok()?;
    // A session without results can't be exported (422).
    assert!([200, 422, 503].contains(&status), "{path}: {status} {whole}");
    (status == 200).then(|| serde_json::from_str(&whole).unwrap())
}

/// Runs the storm; returns what was written and how often the service was killed.
async fn storm(dir: &Path, length: Duration) -> (Vec<WrittenItem>, usize) {
    let mut service = start(dir);
    let body = json!({"name": "Neighbour", "admin_email": NEIGHBOUR, "admin_password": PASSWORD});
    let operator = service.admin().await;
    let made = operator.post("/api/admin/workspaces", &body).await;
    made.expect(201).await;
    let neighbour = service.anonymous().sign_in(NEIGHBOUR, PASSWORD).await;
    operator.oversees(&neighbour, json!({"tier": "enterprise"})).await;

    let (send, running) = watch::channel(Some(Clients::sign_in(&service).await));
    let course = Course::lasting(length);
    let writers = (0..writers()).map(|lane| tokio::spawn(write(lane, running.clone(), course.clone())));
    let writers: Vec<_> = writers.collect();
    let readers = (0..READERS).map(|lane| tokio::spawn(read(lane, running.clone(), course.clone())));
    let readers: Vec<_> = readers.collect();
    let mut kills = 0;
    while Instant::now() < course.until {
        let calm = rand::rng().random_range(1_000..extent(1_500, 5_000));
        // The service is killed at a random moment.
        tokio::time::sleep(Duration::from_millis(calm)).await;
        send.send_replace(None);
        service.kill();
        kills += 1;
        service = start(dir);
        send.send_replace(Some(Clients::sign_in(&service).await));
    }
    // The writers end when the course does.
    let mut all = Vec::new();
    for writer in writers {
        all.extend(writer.await.unwrap());
    }
    let mut answered = 0;
    for reader in readers {
        answered += reader.await.unwrap();
    }
    assert!(answered > 0, "nobody could read");
    service.kill();
    (all, kills + 1)
}

/// Runs `check` for each of `all`, a few at a time.
async fn each<'w, F: Future<Output = ()>>(all: &'w [WrittenItem], check: impl Fn(&'w WrittenItem) -> F) {
    let check = &check;
    join_all((0..LANES).map(|lane| async move {
        for written in all.iter().skip(lane).step_by(LANES) {
            check(written).await;
        }
    }))
    .await;
}

/// Repeats unacknowledged writes, as a client would.
async fn repeat(clients: &Clients, all: &[WrittenItem]) {
    each(all, |written| async move {
        while let Err(failure) = written.send(clients.of(written.neighbour)).await {
            assert!(matches!(failure, Failure::Busy), "{failure:?}");
            // As a client that was told to retry; each lane has its own write to repeat, however long it takes.
            tokio::time::sleep(pause()).await;
        }
    })
    .await;
}

/// Asserts that each node of each write exists exactly once, and that each edge exists; returns the node ids by name.
async fn compare(clients: &Clients, all: &[WrittenItem]) -> BTreeMap<String, String> {
    let found = Mutex::new(BTreeMap::new());
    each(all, |written| {
        let found = &found;
        async move {
            let client = clients.of(written.neighbour);
            for name in &written.names {
                let nodes = named(client, name).await;
                let ids: BTreeSet<&str> = nodes.iter().map(|node| text(node, "id")).collect();
                assert_eq!(
                    (nodes.len(), ids.len()),
                    (1, 1),
                    "{name} of {written:?}: {nodes:?}"
                );
                let id = text(&nodes[0], "id").to_owned();
                found.lock().unwrap().insert(name.clone(), id);
            }
            if !written.edges.is_empty() {
                assert_edges(client, written).await;
            }
        }
    })
    .await;
    found.into_inner().unwrap()
}

/// The nodes of this name. Exact names rank first, so a duplicate would appear in a short list.
async fn named(client: &Client, name: &str) -> Vec<Value> {
    let path = format!("/api/recall/search?{}", encode(&[("q", name), ("limit", "5")]));
    let mut found = client.get(&path).await.expect(200).await;
    let mut nodes: Vec<Value> = found["results"].as_array_mut().unwrap().drain(..).collect();
    nodes.retain(|node| text(node, "name") == name);
    nodes
}

async fn assert_edges(client: &Client, written: &WrittenItem) {
    let word = written.names[0].split(' ').next().unwrap();
    let path = format!("/api/recall/search?{}", encode(&[("q", word), ("limit", "100")]));
    let session = client.get(&path).await.expect(200).await;
    let bundle = client.export(text(&session, "recall_id")).await;
    let exported = by_id(bundle["objects"].as_array().unwrap());
    for edge in &written.edges {
        assert!(exported.contains_key(edge.as_str()), "{edge} of {written:?}");
    }
}

/// Asserts that neither workspace finds what the other one wrote.
async fn assert_apart(clients: &Clients, all: &[WrittenItem]) {
    for neighbour in [false, true] {
        let theirs = all.iter().filter(|written| written.neighbour != neighbour);
        for written in theirs.take(extent(5, 50)) {
            let name = &written.names[0];
            assert!(named(clients.of(neighbour), name).await.is_empty(), "{name}");
        }
    }
}

async fn assert_chains(clients: &Clients, all: &[WrittenItem]) {
    for neighbour in [false, true] {
        let chain = clients
            .of(neighbour)
            .get("/api/audit/verify")
            .await
            .expect(200)
            .await;
        assert_eq!(
            (&chain["valid"], &chain["unchained"]),
            (&json!(true), &json!(0)),
            "{chain}"
        );
        let acknowledged = all
            .iter()
            .filter(|written| written.neighbour == neighbour && written.acknowledged);
        assert!(
            chain["entries"].as_u64().unwrap() >= acknowledged.count() as u64,
            "{chain}"
        );
    }
}

#[test]
fn a_storm_with_kills_loses_nothing_acknowledged_and_doubles_nothing() {
    let seconds = std::env::var(SECONDS).map_or(extent(2, 60), |text| text.parse().unwrap());
    run(async move {
        let dir = started_once();
        let (all, kills) = storm(dir.path(), Duration::from_secs(seconds)).await;
        let (acknowledged, doubtful): (Vec<WrittenItem>, Vec<WrittenItem>) =
            all.iter().cloned().partition(|written| written.acknowledged);

        let service = start(dir.path());
        let clients = Clients::sign_in(&service).await;
        let mut whole = compare(&clients, &acknowledged).await;
        repeat(&clients, &doubtful).await;
        whole.extend(compare(&clients, &doubtful).await);
        assert_apart(&clients, &all).await;
        assert_chains(&clients, &all).await;
        service.kill();

        // An index rebuilt from the store gives the same results.
        std::fs::remove_dir_all(dir.path().join("index")).unwrap();
        let service = start(dir.path());
        let clients = Clients::sign_in(&service).await;
        assert!(
            compare(&clients, &all).await == whole,
            "the index differs from the store"
        );
        println!(
            "{kills} kills: {} writes, {} acknowledged, {} nodes, each there once",
            all.len(),
            acknowledged.len(),
            whole.len()
        );
        for way in IngestRoute::ALL {
            assert!(
                acknowledged.iter().any(|written| written.way == way),
                "{way:?} never got through"
            );
        }
        service.kill();
    });
}
