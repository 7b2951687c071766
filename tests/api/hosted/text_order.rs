//! Texts at different markings about the same things: whatever their order, the same is found.

use serde_json::{Value, json};
use test_support::extent;

use crate::helpers::{Client, TestApp, run};
use crate::stix::text;

/// The markings, each with words that only its text has.
const LEVELS: [(&str, &str); 3] = [
    ("GREEN", "The harbour cranes stood still for a whole night."),
    ("AMBER", "Some ledger entries of the orchard were rewritten."),
    (
        "RED",
        "An informant at the glacier foundry tells of a second team.",
    ),
];
const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
const WAYS: [[&str; 3]; 4] = [
    ["preview"; 3],
    ["osint"; 3],
    ["report"; 3],
    ["osint", "report", "preview"],
];
const NAMES: [&str; 3] = ["APT28", "X-Agent", "zq-evil.com"];

impl Client {
    /// Stores a text that names all of [`NAMES`].
    async fn tell(&self, way: &str, (level, said): (&str, &str)) {
        match way {
            "preview" => {
                let told = format!("TLP:{level}\n\nAPT28 uses X-Agent. It called zq-evil.com. {said}");
                let preview = self.preview(&json!({ "text": told })).await;
                for found in preview["entities"].as_array().unwrap() {
                    self.decide(found, json!({"status": "accepted"})).await;
                }
                self.commit(&preview["batch_id"]).await;
            }
            "osint" => {
                let item = |(name, kind): (&str, &str)| {
                    json!({"title": name, "type": kind, "description": said, "tlp": level, "tags": [level],
                        "url": format!("https://news.example/{level}")})
                };
                let items = NAMES.into_iter().zip(["actor", "tool", "ioc"]).map(item);
                let body = json!({"collector": "rss", "items": items.collect::<Vec<_>>()});
                self.send_in("osint", &body).await;
            }
            "report" => {
                let block = |(name, kind): (&str, &str)| json!({"entity_name": name, "node_type": kind, "description": said});
                let blocks = NAMES.into_iter().zip(["actor", "tool", "ioc"]).map(block);
                let body = json!({"title": format!("Of {level}"), "source_name": "Lab", "default_tlp": level,
                    "content_blocks": blocks.collect::<Vec<_>>()});
                self.send_in("report", &body).await;
            }
            other => panic!("{other}"),
        }
    }

    /// What the workspace finds of [`NAMES`] and of the words of each text, without ids and times.
    async fn finds(&self) -> Value {
        let mut found = Vec::new();
        for name in NAMES {
            for node in self.named(name).await {
                let mut records = Vec::new();
                for id in node["linked_evidence_ids"].as_array().unwrap() {
                    let record = self.read_evidence(id.as_str().unwrap()).await;
                    records.push(format!("{} {}", text(&record, "kind"), text(&record, "tlp")));
                }
                records.sort();
                let relations = self.read_node(text(&node, "id")).await["relationships"].clone();
                let relations = relations.as_array().unwrap().len();
                found.push(json!([
                    name,
                    node["tlp"],
                    node["source"],
                    node["description"],
                    node["confidence"],
                    node["properties"],
                    records,
                    relations
                ]));
            }
        }
        for (level, said) in LEVELS {
            let mut nodes: Vec<String> = self
                .nodes_of(said)
                .await
                .iter()
                .map(|node| text(node, "name").to_owned())
                .collect();
            nodes.sort();
            found.push(json!([level, nodes]));
        }
        json!(found)
    }
}

#[test]
fn texts_at_three_markings_are_found_the_same_in_any_order() {
    run(async {
        let app = TestApp::shared().await;
        for ways in WAYS.into_iter().skip(extent(3, 0)) {
            let mut first: Option<Vec<Value>> = None;
            for order in ORDERS.into_iter().step_by(extent(2, 1)) {
                let client = app.workspace(&format!("{ways:?} {order:?}")).await;
                client.open().await;
                for at in order {
                    client.tell(ways[at], LEVELS[at]).await;
                }
                let mut seen = Vec::new();
                for (ceiling, elevated) in [("RED", true), ("AMBER", false), ("GREEN", false)] {
                    let seen_from = json!({"tlp_ceiling": ceiling, "elevated_clearance": elevated});
                    client.settings(seen_from).await;
                    seen.push(client.finds().await);
                    for name in NAMES {
                        assert_eq!(
                            client.one(name).await["tlp"],
                            "TLP:GREEN",
                            "{ways:?} {order:?} {ceiling}"
                        );
                    }
                }
                match &first {
                    None => first = Some(seen),
                    Some(first) => assert_eq!(&seen, first, "{ways:?} {order:?}"),
                }
            }
        }
        app.stop().await;
    });
}
