//! Pulling a threat feed: objects per second, and peak memory, which must not depend on the number of pages. The TAXII
//! server is in this process.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Fallible;
use crate::client::Client;
use crate::process::Service;

/// Objects of a page.
const PAGE: usize = 100;
/// Items committed together.
pub const COMMIT: usize = 5_000;
/// Pages of items read for the latency of a review.
const READS: usize = 50;

/// What a pull of a feed achieved.
pub struct Pull {
    /// Objects staged and items committed, per second.
    pub staged: f64,
    pub committed: f64,
    /// Median latency of a page of items, in milliseconds.
    pub page: f64,
    /// Highest memory above that before the pull, in bytes.
    pub memory: u64,
}

/// Pulls a feed of this many indicators into a fresh service, and then reviews and commits some.
pub async fn pull(objects: usize) -> Fallible<Pull> {
    let port = serve(objects)?;
    let dir = tempfile::tempdir()?;
    let variables = [
        ("TAXII_ALLOWED_HOSTS", "127.0.0.1"),
        ("THREAT_MEMORY_LOCAL_DEVELOPMENT", "true"),
    ];
    let (service, _) = Service::start_with(dir.path(), &variables).await?;
    let client = Client::sign_in(service.base()).await?;
    let feed = json!({"name": "bench", "default_tlp": "TLP:GREEN", "redistribution_state": "allowed",
        "connector_config_ref": format!("http://127.0.0.1:{port}/api/collections/c/objects/")});
    let feed = client
        .post("/api/threat-intel/feeds", feed.to_string().into())
        .await?;
    let before = service.memory("VmRSS").ok_or("no memory")?;
    let begun = Instant::now();
    let body = json!({"input_kind": "taxii_2_1_pull", "feed_source_id": feed["feed"]["id"]});
    let mut answer = client
        .post("/api/threat-intel/batches", body.to_string().into())
        .await?;
    let batch = answer["batch"]["id"].as_str().ok_or("no batch")?.to_owned();
    let path = format!("/api/threat-intel/batches/{batch}");
    while answer["batch"]["status"] == "pulling" {
        tokio::time::sleep(Duration::from_millis(100)).await;
        answer = read(&client, &format!("{path}?limit=1")).await?;
    }
    let took = begun.elapsed().as_secs_f64();
    let peak = service.memory("VmHWM").ok_or("no memory")?.saturating_sub(before);
    if answer["batch"]["item_count"] != objects {
        return Err(format!("not everything is staged: {}", answer["batch"]).into());
    }
    let (page, committed) = review(&client, &path).await?;
    service.terminate()?;
    Ok(Pull {
        staged: objects as f64 / took,
        committed,
        page,
        memory: peak,
    })
}

/// Reads pages of items from the whole batch, then commits the first ones; returns the median latency of a page and the
/// items committed per second.
async fn review(client: &Client, path: &str) -> Fallible<(f64, f64)> {
    let (mut after, mut times, mut ids) = (String::new(), Vec::new(), Vec::new());
    for _ in 0..READS {
        let begun = Instant::now();
        let page = read(client, &format!("{path}?limit={PAGE}{after}")).await?;
        times.push(begun.elapsed());
        let items = page["items"].as_array().ok_or("no items")?;
        ids.extend(items.iter().map(|item| item["id"].clone()));
        let Some(next) = page["next"].as_str() else {
            break;
        };
        after = format!("&after={next}");
    }
    times.sort();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    ids.truncate(COMMIT);
    let begun = Instant::now();
    let body = json!({"item_ids": ids}).to_string();
    let done = client.post(&format!("{path}/commit"), body.into()).await?;
    if done["results"]["committed"] != ids.len() {
        return Err(format!("not everything is committed: {}", done["results"]).into());
    }
    let rate = ids.len() as f64 / begun.elapsed().as_secs_f64();
    Ok((median.as_secs_f64() * 1e3, rate))
}

async fn read(client: &Client, path: &str) -> Fallible<Value> {
    Ok(serde_json::from_str(&client.get_path(path).await?)?)
}

/// Starts a TAXII server with this many indicators; returns its port.
fn serve(objects: usize) -> Fallible<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            std::thread::spawn(move || answer(socket, objects).ok());
        }
    });
    Ok(port)
}

fn answer(mut socket: TcpStream, objects: usize) -> std::io::Result<()> {
    socket.set_nodelay(true)?;
    let mut lines = BufReader::new(socket.try_clone()?).lines();
    while let Some(request) = lines.next().transpose()? {
        // The header fields.
        while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
        let next = request.split_once("next=").and_then(|(_, rest)| {
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            rest.get(..end)?.parse::<usize>().ok()
        });
        let body = page(next.unwrap_or(0), objects);
        write!(
            socket,
            "HTTP/1.1 200 OK\r\ncontent-type: application/taxii+json;version=2.1\r\ncontent-length: {}\r\n\
             x-taxii-date-added-first: 2024-01-01T00:00:00.000000Z\r\n\
             x-taxii-date-added-last: 2024-01-01T00:00:00.000000Z\r\n\r\n{body}",
            body.len()
        )?;
    }
    Ok(())
}

fn page(start: usize, objects: usize) -> String {
    let end = (start + PAGE).min(objects);
    let mut body = format!("{{\"more\":{},", end < objects);
    if end < objects {
        write!(body, "\"next\":\"{end}\",").expect("memory");
    }
    body.push_str("\"objects\":[");
    for number in start..end {
        let comma = if number > start { "," } else { "" };
        write!(
            body,
            "{comma}{{\"type\":\"indicator\",\"spec_version\":\"2.1\",\
             \"id\":\"indicator--00000000-0000-4000-8000-{number:012}\",\
             \"created\":\"2024-01-01T00:00:00.000Z\",\"modified\":\"2024-01-01T00:00:00.000Z\",\
             \"name\":\"host {number}\",\"pattern\":\"[domain-name:value = 'h{number}.example']\",\
             \"pattern_type\":\"stix\",\"valid_from\":\"2024-01-01T00:00:00.000Z\"}}"
        )
        .expect("memory");
    }
    body.push_str("]}");
    body
}
