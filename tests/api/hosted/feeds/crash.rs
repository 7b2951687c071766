//! The process is killed in the middle of pulls and commits, at another moment each time.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use rand::Rng;
use serde_json::{Value, json};
use test_support::{eventually, extent, until};

use super::server::Server;
use super::{BATCHES, PAGE, all, batch_path, ids, tools};
use crate::helpers::{Client, run};
use crate::process::{Service, hosted, started_once};
use crate::stix::{by_id, object, relationship, text};

/// Nodes of a part that is committed at once, and the number of parts.
const NODES: usize = 12;
fn parts() -> usize {
    extent(4, 8)
}

fn service(dir: &Path) -> Service {
    let mut command = hosted(dir);
    command
        .env("TAXII_ALLOWED_HOSTS", "127.0.0.1")
        .env("THREAT_MEMORY_LOCAL_DEVELOPMENT", "true")
        .env("THREAT_MEMORY_FEEDS__PAGE_OBJECTS", PAGE.to_string());
    Service::start(command)
}

/// The newest batch of a feed, once no pull runs.
async fn settled(client: &Client, feed: &str) -> Option<Value> {
    eventually(|| async {
        let path = format!("{BATCHES}?feed={feed}");
        let listed = client.get(&path).await.expect(200).await;
        let newest = listed["batches"].get(0).cloned();
        match newest {
            Some(batch) if batch["status"] == "pulling" => Err(batch),
            newest => Ok(newest),
        }
    })
    .await
}

/// What is staged is the beginning of the collection, each object once, and the counters agree.
async fn assert_beginning(client: &Client, batch: &Value, objects: &[Value]) -> usize {
    let items = client.items(text(batch, "id")).await;
    let staged = all(&items, "stix_id");
    assert_eq!(staged, ids(&objects[..staged.len()]));
    let of = |field: &str| usize::try_from(batch[field].as_u64().unwrap()).unwrap();
    assert_eq!(of("item_count"), staged.len(), "{batch}");
    assert_eq!(of("objects"), staged.len() + of("unchanged"), "{batch}");
    staged.len()
}

#[test]
fn a_pull_that_is_killed_again_and_again_stages_every_object_once() {
    run(async {
        let dir = started_once();
        let objects = tools(extent(10, 60) * PAGE);
        let (least_kills, most_kills) = extent((1, 1), (5, 8));
        let server = Server::start(&objects).await;
        let mut running = service(dir.path());
        let feed = running.admin().await.feed_of(&server).await;
        let mut kills = 0;
        let batch = loop {
            let client = running.admin().await;
            let known = settled(&client, &feed).await;
            let staged = match &known {
                Some(batch) => assert_beginning(&client, batch, &objects).await,
                None => 0,
            };
            println!(
                "after {kills} kills: {staged} objects, {} requests",
                server.requests().len()
            );
            if let Some(batch) = known.as_ref().filter(|batch| batch["status"] == "review") {
                let again = client.pull(&feed).await;
                assert_eq!(again["item_count"], 0, "{again}");
                break batch.clone();
            }
            let (pull, feed) = (client.clone(), feed.clone());
            let pulling = tokio::spawn(async move {
                let path = known.map(|batch| format!("{}/resume", batch_path(text(&batch, "id"))));
                let body = json!({"input_kind": "taxii_2_1_pull", "feed_source_id": feed});
                let path = path.unwrap_or_else(|| BATCHES.to_owned());
                let answer = pull
                    .request(reqwest::Method::POST, &path)
                    .json(&body)
                    .send()
                    .await;
                answer.is_ok_and(|answer| answer.status().is_success())
            });
            let (pages, moment) = (rand::rng().random_range(0..12), rand::rng().random_range(0..40));
            if kills == most_kills {
                assert!(pulling.await.unwrap());
            } else {
                let seen = server.requests().len() + pages;
                until(|| pulling.is_finished() || server.requests().len() >= seen).await;
                // The moment of the kill is what the test varies.
                tokio::time::sleep(Duration::from_millis(moment)).await;
                kills += 1;
            }
            running.kill();
            running = service(dir.path());
        };
        assert_eq!(batch["item_count"], objects.len());
        assert!(
            kills >= least_kills,
            "only {kills} kills before the pull was done"
        );
    });
}

/// Nodes and relationships that are committed together, with a word that occurs nowhere else.
struct Part {
    word: String,
    objects: Vec<Value>,
}

fn part() -> Part {
    let word = format!("w{}", uuid::Uuid::new_v4().simple());
    let mut objects: Vec<Value> = (0..NODES)
        .map(|at| object("tool", &format!("{word} part {at}")))
        .collect();
    let edges: Vec<Value> = objects
        .windows(2)
        .map(|pair| relationship(&pair[0], "uses", &pair[1]))
        .collect();
    objects.extend(edges);
    Part { word, objects }
}

/// The ids of a part's items, given all items by the id of their object.
fn items_of<'i>(part: &Part, items: &'i [Value]) -> Vec<&'i Value> {
    let wanted: HashSet<&str> = ids(&part.objects).into_iter().collect();
    items
        .iter()
        .filter(|item| wanted.contains(text(item, "stix_id")))
        .collect()
}

/// Whether a part is committed; its items, nodes and relationships must agree.
async fn is_committed(client: &Client, part: &Part, items: &[Value]) -> bool {
    let statuses: HashSet<&str> = items_of(part, items)
        .iter()
        .map(|item| text(item, "status"))
        .collect();
    assert_eq!(statuses.len(), 1, "a part is half committed: {statuses:?}");
    let committed = statuses.contains("committed");
    let found = client.search_with(&part.word, &[]).await;
    let hits: Vec<&Value> = found["results"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|node| text(node, "name").starts_with(&part.word))
        .collect();
    assert_eq!(hits.len(), if committed { NODES } else { 0 }, "{statuses:?}");
    assert!(hits.iter().all(|node| crate::stix::evidence(node) == 1));
    if committed {
        let bundle = client.export(text(&found, "recall_id")).await;
        let exported = by_id(bundle["objects"].as_array().unwrap());
        assert!(
            part.objects
                .iter()
                .all(|object| exported.contains_key(text(object, "id")))
        );
    }
    committed
}

/// Commits one part after the other until the service is gone. Returns how many were acknowledged.
async fn commits(client: Client, path: String, bodies: Vec<Value>) -> usize {
    for (acknowledged, body) in bodies.iter().enumerate() {
        let request = client.request(reqwest::Method::POST, &path).json(body);
        let answer = request.send().await;
        if !answer.is_ok_and(|answer| answer.status() == 200) {
            return acknowledged;
        }
    }
    bodies.len()
}

#[test]
fn a_commit_that_is_killed_is_there_whole_or_not_at_all() {
    run(async {
        let dir = started_once();
        for round in 0..extent(1, 5) {
            let parts: Vec<Part> = (0..parts()).map(|_| part()).collect();
            let objects: Vec<Value> = parts.iter().flat_map(|part| part.objects.clone()).collect();
            let server = Server::start(&objects).await;
            let running = service(dir.path());
            let client = running.admin().await;
            let batch = client.pull(&client.feed_of(&server).await).await;
            let id = text(&batch, "id").to_owned();
            let items = client.items(&id).await;
            let bodies = parts.iter().map(|part| {
                let chosen = items_of(part, &items).into_iter();
                json!({"item_ids": chosen.map(|item| text(item, "id")).collect::<Vec<_>>()})
            });
            let path = format!("{}/commit", batch_path(&id));
            let commits = tokio::spawn(commits(client.clone(), path, bodies.collect()));
            let moment = rand::rng().random_range(5..600);
            // The moment of the kill is what the test varies.
            tokio::time::sleep(Duration::from_millis(moment)).await;
            running.kill();
            let acknowledged = commits.await.unwrap();

            let running = service(dir.path());
            let client = running.admin().await;
            let items = client.items(&id).await;
            let mut whole = 0;
            for (at, part) in parts.iter().enumerate() {
                let committed = is_committed(&client, part, &items).await;
                assert!(committed || at >= acknowledged, "part {at} was acknowledged");
                whole += usize::from(committed);
            }
            println!(
                "round {round}: killed after {moment} ms, {acknowledged} acknowledged, {whole} committed"
            );
            let done = client.commit_items(&id, Some(&ids(&items))).await;
            let per_part = parts[0].objects.len();
            assert_eq!(done["already_committed"], whole * per_part, "{done}");
            assert_eq!(done["committed"], (parts.len() - whole) * per_part, "{done}");
            let items = client.items(&id).await;
            for part in &parts {
                assert!(is_committed(&client, part, &items).await);
            }
            running.kill();
        }
    });
}
