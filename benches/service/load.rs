//! The load on the service, and how long the requests take.

use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::task::JoinSet;

use crate::Fallible;
use crate::client::Client;
use crate::corpus::{Bundle, Corpus, STREAMS};
use crate::spread::Spread;

pub const BLENDED: &str = "/api/recall/search";
pub const STRUCTURED: &str = "/api/recall/search?mode=structured";
pub const SEMANTIC: &str = "/api/recall/semantic";
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
    pub time: Duration,
}

/// Ingests the bundles over one connection per stream.
pub async fn ingest(client: &Client, bundles: Vec<Bundle>) -> Fallible<Grown> {
    let objects = bundles.iter().map(|bundle| bundle.objects).sum();
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
            for bundle in stream {
                let results = client.ingest(bundle.body).await?;
                if results["nodes_created"] != bundle.nodes || results["skipped"] != 1 {
                    return Err(format!("not everything was taken: {results}").into());
                }
            }
            Fallible::Ok(())
        });
    }
    finish(connections).await?;
    Ok(Grown {
        objects,
        time: begun.elapsed(),
    })
}

/// Latencies of searches, one after the other.
pub async fn searches(client: &Client, path: &str, corpus: &mut Corpus) -> Fallible<Spread> {
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
    Ok(Spread::of(times))
}

/// Blended searches per second of eight clients at once.
pub async fn throughput(client: &Client, corpus: &mut Corpus) -> Fallible<f64> {
    let begun = Instant::now();
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let queries: Vec<String> = (0..OF_EACH).map(|_| corpus.query()).collect();
        let client = client.clone();
        clients.spawn(async move {
            for query in queries {
                client.search(BLENDED, &query, LIMIT).await?;
            }
            Fallible::Ok(())
        });
    }
    finish(clients).await?;
    Ok((CLIENTS * OF_EACH) as f64 / begun.elapsed().as_secs_f64())
}

/// Latencies of exports of a hundred nodes, one after the other.
pub async fn exports(client: &Client, corpus: &mut Corpus) -> Fallible<Spread> {
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
    Ok(Spread::of(times))
}

async fn finish(mut clients: JoinSet<Fallible<()>>) -> Fallible<()> {
    while let Some(done) = clients.join_next().await {
        done??;
    }
    Ok(())
}
