//! Structured recall around a node with thousands of relationships.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use test_support::extent;

use crate::helpers::{TestApp, run};
use crate::stix::{id, object, relationship, text, with};

/// A multiple of 50.
fn neighbours() -> usize {
    extent(250, 5_000)
}

/// The neighbour that is described.
fn described() -> usize {
    neighbours() / 5 * 4 + 32
}

/// Few enough that no arbitrary fifth of the neighbours would contain all of them.
const ASKED_FOR: usize = 20;

/// A group with many relationships: [`ASKED_FOR`] of its neighbours are attack patterns, the others are tools.
fn hub() -> Vec<Value> {
    let group = object("intrusion-set", "Sandworm Team");
    let mut objects = vec![group.clone()];
    for n in 0..neighbours() {
        let (kind, name) = match n % (neighbours() / ASKED_FOR) {
            0 => ("attack-pattern", format!("Heronmove {n}")),
            _ => ("tool", format!("Heronkit {n:04}")),
        };
        let mut other = with(object(kind, &name), json!({"id": id(kind), "confidence": 90}));
        if n == described() {
            other = with(
                other,
                json!({"description": "Overwrites flumoxed sectors.", "confidence": 10}),
            );
        }
        // Hidden and revoked neighbours must not displace the others.
        if n % 10 == 3 {
            other = with(other, json!({"labels": ["TLP:RED"]}));
        }
        if n % 10 == 7 {
            other = with(other, json!({"revoked": true}));
        }
        objects.push(relationship(&group, "uses", &other));
        objects.push(other);
    }
    objects
}

#[test]
fn a_hub_of_thousands_of_neighbours_finds_the_ones_that_are_asked_for() {
    run(async {
        let app = TestApp::spawn().await;
        let admin = &app.admin;
        let done = admin.ingest(json!(hub())).await;
        assert_eq!(done["nodes_created"], neighbours() + 1);
        let ask = async |question: &str| {
            let found = admin.search_with(question, &[("mode", "structured")]).await;
            found["results"].as_array().unwrap().clone()
        };
        let found = ask("techniques used by Sandworm Team").await;
        assert!(found.len() >= ASKED_FOR, "{}", found.len());
        for node in &found[..ASKED_FOR] {
            assert!(text(node, "name").starts_with("Heronmove "), "{node}");
        }
        // The remaining words of the query rank the thousands of neighbours of that type.
        let found = ask("malware used by Sandworm Team with flumoxed sectors").await;
        assert_eq!(found[0]["name"], format!("Heronkit {:04}", described()));
        assert_eq!(found.len(), 100);
        // Without such words, each of the visible ones is as good.
        let found = ask("malware used by Sandworm Team").await;
        let names: BTreeSet<&str> = found.iter().map(|node| text(node, "name")).collect();
        assert_eq!(names.len(), 100);
        for name in names {
            let number: usize = name.strip_prefix("Heronkit ").unwrap().parse().unwrap();
            assert!(![3, 7].contains(&(number % 10)), "{name} is hidden");
        }
        // Four out of five neighbours are visible, page by page.
        let hub = admin.one("Sandworm Team").await;
        let mut read = 0;
        let limit = neighbours() / 5;
        for page in 0..4 {
            let path = format!(
                "/api/nodes/{}?limit={limit}&offset={}",
                text(&hub, "id"),
                page * limit
            );
            let answer = admin.get(&path).await.expect(200).await;
            read += answer["relationships"].as_array().unwrap().len();
            assert_eq!(answer["more_relationships"], json!(page < 3), "page {page}");
        }
        assert_eq!(read, neighbours() / 10 * 8);
        app.stop().await;
    });
}

#[test]
fn a_revoked_relationship_takes_nobodys_place() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let group = object("intrusion-set", "Sandworm Team");
        let [kept, dropped] = ["Heronkit", "Quietkit"].map(|name| object("malware", name));
        let by = |tool: &Value, confidence: u64| {
            with(
                relationship(&group, "uses", tool),
                json!({"confidence": confidence}),
            )
        };
        let (weak, strong) = (by(&kept, 10), by(&dropped, 95));
        admin.ingest(json!([group, kept, dropped, weak, strong])).await;
        let ask = async || {
            let path = "/api/recall/search?limit=1&q=What%20malware%20does%20Sandworm%20Team%20use%3F";
            let found = admin.get(path).await.expect(200).await;
            found["results"][0]["name"].clone()
        };
        assert_eq!(ask().await, "Quietkit");
        let later = json!({"revoked": true, "modified": "2030-01-01T00:00:00.000Z"});
        admin.ingest(json!([with(strong, later)])).await;
        assert_eq!(ask().await, "Heronkit");
        app.stop().await;
    });
}
