//! The load on the service, and how long the requests take.

use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::task::JoinSet;

use crate::Fallible;
use crate::client::Client;
use crate::corpus::{Bundle, Corpus, STREAMS};

pub const BLENDED: &str = "/api/recall/search";
pub const STRUCTURED: &str = "/api/recall/search?mode=structured";
pub const SEMANTIC: &str = "/api/recall/semantic";
/// The search modes, by name.
pub const SEARCHES: [(&str, &str); 3] = [
    ("blended recall", BLENDED),
    ("structured recall", STRUCTURED),
    ("semantic recall", SEMANTIC),
];
pub const LIMIT: usize = 20;
const EXPORTED: usize = 100;
const WARM_UP: usize = 50;
const MEASURED: usize = 300;
const SESSIONS: usize = 20;
const CLIENTS: usize = 8;
const OF_EACH: usize = 100;

/// Size and duration of an ingest.
pub struct Grown {
    pub objects: usize,
    pub nodes: usize,
    pub bytes: usize,
    pub time: Duration,
    /// Objects per second in the slowest tenth of the bundles.
    pub slowest: f64,
}

/// Latencies of a single client in milliseconds, ascending, and the throughput of many clients.
pub struct Series {
    sorted: Vec<f64>,
    pub per_second: f64,
}

impl Series {
    pub fn percentile(&self, share: f64) -> f64 {
        let rank = (share * self.sorted.len() as f64).ceil() as usize;
        let at = rank.saturating_sub(1);
        self.sorted.get(at).copied().unwrap_or(f64::NAN)
    }
}

/// Ingests the bundles over one connection per stream.
pub async fn ingest(client: &Client, bundles: Vec<Bundle>) -> Fallible<Grown> {
    let sum = |of: fn(&Bundle) -> usize| bundles.iter().map(of).sum::<usize>();
    let (objects, nodes) = (sum(|bundle| bundle.objects), sum(|bundle| bundle.nodes));
    let bytes = sum(|bundle| bundle.body.len());
    let mut streams: [Vec<Bundle>; STREAMS] = Default::default();
    for bundle in bundles {
        if let Some(stream) = streams.get_mut(bundle.stream) {
            stream.push(bundle);
        }
    }
    let begun = Instant::now();
    let mut connections = JoinSet::new();
    for stream in streams {
        let client = client.clone();
        connections.spawn(async move {
            let mut done = Vec::new();
            for bundle in stream {
                let results = client.ingest(bundle.body).await?;
                if results["nodes_created"] != bundle.nodes || results["skipped"] != 1 {
                    return Err(format!("not everything was taken: {results}").into());
                }
                done.push((begun.elapsed().as_secs_f64(), bundle.objects));
            }
            Fallible::Ok(done)
        });
    }
    let mut done = Vec::new();
    while let Some(stream) = connections.join_next().await {
        done.extend(stream??);
    }
    let time = begun.elapsed();
    done.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let mut slowest = f64::INFINITY;
    let mut since = 0.0;
    for part in done.chunks(done.len().div_ceil(10).max(1)) {
        let until = part.last().map_or(since, |(at, _)| *at);
        let objects: usize = part.iter().map(|(_, objects)| objects).sum();
        slowest = slowest.min(objects as f64 / (until - since).max(1e-9));
        since = until;
    }
    Ok(Grown {
        objects,
        nodes,
        bytes,
        time,
        slowest,
    })
}

/// Searches sequentially, then from many concurrent clients.
pub async fn searches(client: &Client, path: &'static str, corpus: &mut Corpus) -> Fallible<Series> {
    for _ in 0..WARM_UP {
        client.search(path, &corpus.query(), LIMIT).await?;
    }
    let mut times = Vec::new();
    for _ in 0..MEASURED {
        let query = corpus.query();
        let begun = Instant::now();
        client.search(path, &query, LIMIT).await?;
        times.push(begun.elapsed());
    }
    let begun = Instant::now();
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let queries: Vec<String> = (0..OF_EACH).map(|_| corpus.query()).collect();
        let client = client.clone();
        clients.spawn(async move {
            for query in queries {
                client.search(path, &query, LIMIT).await?;
            }
            Fallible::Ok(())
        });
    }
    finish(clients).await?;
    Ok(series(times, begun.elapsed()))
}

/// Exports sessions of a hundred nodes sequentially, then from many concurrent clients.
pub async fn exports(client: &Client, corpus: &mut Corpus) -> Fallible<Series> {
    let mut sessions = Vec::new();
    while sessions.len() < SESSIONS {
        let answer = client.search(BLENDED, &corpus.question(), EXPORTED).await?;
        let answer: Value = serde_json::from_str(&answer)?;
        if answer["count"] == EXPORTED {
            sessions.push(answer["recall_id"].as_str().ok_or("no recall_id")?.to_owned());
        }
    }
    for session in &sessions {
        client.export(session).await?;
    }
    let mut times = Vec::new();
    for session in sessions.iter().cycle().take(MEASURED) {
        let begun = Instant::now();
        client.export(session).await?;
        times.push(begun.elapsed());
    }
    let begun = Instant::now();
    let mut clients = JoinSet::new();
    for first in 0..CLIENTS {
        let (client, sessions) = (client.clone(), sessions.clone());
        clients.spawn(async move {
            for session in sessions.iter().cycle().skip(first).take(OF_EACH) {
                client.export(session).await?;
            }
            Fallible::Ok(())
        });
    }
    finish(clients).await?;
    Ok(series(times, begun.elapsed()))
}

async fn finish(mut clients: JoinSet<Fallible<()>>) -> Fallible<()> {
    while let Some(done) = clients.join_next().await {
        done??;
    }
    Ok(())
}

/// The latency in milliseconds below which this share of the times lies.
pub fn percentile(times: &[Duration], share: f64) -> f64 {
    series(times.to_vec(), Duration::MAX).percentile(share)
}

fn series(times: Vec<Duration>, many: Duration) -> Series {
    let mut sorted: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1e3).collect();
    sorted.sort_by(f64::total_cmp);
    Series {
        sorted,
        per_second: (CLIENTS * OF_EACH) as f64 / many.as_secs_f64(),
    }
}
