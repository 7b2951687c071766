//! The time of a refusal reveals nothing: a hidden resource is refused as quickly as one that does not exist.

use std::time::{Duration, Instant};

use rand::Rng;
use reqwest::Method;
use serde_json::{Value, json};
use test_support::{extent, is_full};
use uuid::Uuid;

use crate::helpers::{Client, TestApp, encode, run};
use crate::stix::{object, relationship, text, with};

/// Pairs of requests per route; in the quick round too few to compare times.
fn pairs() -> usize {
    extent(2, 100)
}

/// Accepted share of pairs in which the hidden resource is the slower one. Chance exceeds it once in a million times
/// (sign test, standard deviation 0.05).
const CHANCE: std::ops::RangeInclusive<f64> = 0.25..=0.75;

/// A request for a resource; `{}` stands for its id.
struct Probe {
    method: Method,
    path: &'static str,
    body: &'static str,
    status: u16,
    /// The id of a resource that the caller may not see.
    hidden: String,
}

impl Probe {
    fn of(method: Method, path: &'static str, body: &'static str, hidden: &str) -> Self {
        Self {
            method,
            path,
            body,
            status: 404,
            hidden: hidden.to_owned(),
        }
    }

    async fn time(&self, client: &Client, id: &str) -> Duration {
        let mut request = client.request(self.method.clone(), &self.path.replace("{}", id));
        if !self.body.is_empty() {
            let body: Value = serde_json::from_str(&self.body.replace("{}", id)).unwrap();
            request = request.json(&body);
        }
        let asked = Instant::now();
        let answer = request.send().await.unwrap();
        let (status, body) = (answer.status().as_u16(), answer.text().await.unwrap());
        let took = asked.elapsed();
        assert_eq!(status, self.status, "{}: {body}", self.path);
        took
    }

    /// The share of pairs in which the hidden resource was slower than a nonexistent one.
    async fn slower(&self, client: &Client) -> f64 {
        let nothing = Uuid::new_v4().to_string();
        let mut slower = 0;
        for _ in 0..pairs() {
            // The order affects the time, so it is random.
            let hidden_first = rand::rng().random_bool(0.5);
            let mut ids = [&self.hidden, &nothing];
            if !hidden_first {
                ids.reverse();
            }
            let first = self.time(client, ids[0]).await;
            let second = self.time(client, ids[1]).await;
            slower += usize::from((first > second) == hidden_first);
        }
        slower as f64 / pairs() as f64
    }
}

/// Resources of a workspace, large enough to affect the time, and the routes that lead to them.
async fn probes(owner: &Client) -> Vec<Probe> {
    let tools: Vec<Value> = (0..100)
        .map(|n| object("tool", &format!("Heronword {n}")))
        .collect();
    owner.ingest(json!(tools)).await;
    let search = encode(&[("q", "Heronword"), ("limit", "100")]);
    let path = format!("/api/recall/search?{search}");
    let found = owner.get(&path).await.expect(200).await;
    assert_eq!(found["results"].as_array().unwrap().len(), 100);
    let count = extent(40, 400);
    let addresses: Vec<String> = (0..count)
        .map(|n| format!("198.51.{}.{}", n / 200, n % 200))
        .collect();
    let batch = owner.preview(&json!({"text": addresses.join(", ")})).await;
    assert_eq!(batch["entities"].as_array().unwrap().len(), count);
    let (user, _) = owner.add_user("viewer").await;
    let (key, _) = owner.add_key(&["read"]).await;
    let (session, batch_id) = (text(&found, "recall_id"), text(&batch, "batch_id"));
    let entity = text(&batch["entities"][0], "id");
    let (node, evidence) = told(owner).await;
    let accept = r#"{"status": "accepted"}"#;
    vec![
        Probe::of(Method::GET, "/api/recall/sessions/{}", "", session),
        Probe::of(Method::GET, "/api/recall/sessions/{}/export.stix", "", session),
        Probe::of(Method::GET, "/api/nodes/{}", "", &node),
        Probe::of(Method::GET, "/api/evidence/{}", "", &evidence),
        Probe::of(Method::GET, "/api/ingest/batch/{}", "", batch_id),
        Probe::of(Method::POST, "/api/ingest/batch/{}/commit", "{ }", batch_id),
        Probe::of(Method::PATCH, "/api/ingest/staging/{}", accept, entity),
        Probe::of(Method::DELETE, "/api/admin/api-keys/{}", "", &key),
        Probe::of(
            Method::PATCH,
            "/api/admin/users/{}",
            r#"{"disabled": false}"#,
            &user,
        ),
    ]
}

/// The ids of a node with many words and relationships, and of its evidence.
async fn told(owner: &Client) -> (String, String) {
    let long = with(
        object("intrusion-set", "Cormorant"),
        json!({"description": "It dives. ".repeat(extent(1_000, 20_000))}),
    );
    let mut objects = vec![long.clone()];
    for n in 0..100 {
        let tool = object("tool", &format!("Bittern {n}"));
        objects.push(relationship(&long, "uses", &tool));
        objects.push(tool);
    }
    owner.ingest(json!(objects)).await;
    ids_of(&owner.search("Cormorant").await["results"][0])
}

/// The ids of a node and of its first evidence record.
fn ids_of(node: &Value) -> (String, String) {
    let evidence = node["linked_evidence_ids"][0].as_str().unwrap();
    (text(node, "id").to_owned(), evidence.to_owned())
}

/// The UUID of the STIX object of the hidden node.
async fn hidden_object(own: &Client) -> String {
    own.settings(json!({"tlp_ceiling": "RED", "elevated_clearance": true}))
        .await;
    let found = own.search("Ottersign").await;
    let stix_id = text(&found["results"][0]["properties"], "stix_id");
    own.settings(json!({"tlp_ceiling": "AMBER", "elevated_clearance": false}))
        .await;
    stix_id.replace("tool--", "")
}

/// The ids of a node whose marking is now above its workspace's ceiling, and of its evidence.
async fn hidden_node(own: &Client) -> (String, String) {
    own.settings(json!({"tlp_ceiling": "RED", "elevated_clearance": true}))
        .await;
    let red = with(
        object("tool", "Ottersign"),
        json!({"object_marking_refs": ["marking-definition--5e57c739-391a-4eb3-b6be-7d15ca92d5ed"]}),
    );
    own.ingest(json!([red])).await;
    let ids = ids_of(&own.search("Ottersign").await["results"][0]);
    own.settings(json!({"tlp_ceiling": "AMBER", "elevated_clearance": false}))
        .await;
    ids
}

#[test]
fn what_the_caller_may_not_see_is_as_quickly_refused_as_what_nobody_has() {
    run(async {
        let app = TestApp::spawn().await;
        let (owner, stranger) = (app.workspace("first").await, app.workspace("second").await);
        let mut probes = probes(&owner).await;
        let (node, evidence) = hidden_node(&stranger).await;
        probes.push(Probe::of(Method::GET, "/api/nodes/{}", "", &node));
        probes.push(Probe::of(Method::GET, "/api/evidence/{}", "", &evidence));
        let object = hidden_object(&stranger).await;
        probes.push(Probe::of(Method::GET, "/api/nodes?stix_id=tool--{}", "", &object));
        let batch = stranger.preview(&json!({"text": "198.51.100.7"})).await;
        let path = format!("/api/ingest/staging/{}", text(&batch["entities"][0], "id"));
        let merge = r#"{"status": "merged", "merge_target_id": "{}"}"#;
        probes.push(Probe {
            status: 400,
            ..Probe::of(Method::PATCH, path.leak(), merge, &node)
        });
        // Sequentially, since concurrent probes would drown the difference.
        for probe in &probes {
            let share = probe.slower(&stranger).await;
            assert!(
                !is_full() || CHANCE.contains(&share),
                "{} {}: slower in {share:.3} of all pairs",
                probe.method,
                probe.path
            );
        }
        app.stop().await;
    });
}
