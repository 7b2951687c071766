//! One write per ingest endpoint, with nodes that no other write contains.

use reqwest::Method;
use serde_json::{Value, json};

use crate::helpers::Client;
use crate::stix::{object, relationship, text};

/// Every ingest endpoint; the text ingest once per mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IngestRoute {
    Stix,
    Osint,
    Misp,
    Analyst,
    Report,
    Review,
    Auto,
}

impl IngestRoute {
    pub const ALL: [IngestRoute; 7] = [
        IngestRoute::Stix,
        IngestRoute::Osint,
        IngestRoute::Misp,
        IngestRoute::Analyst,
        IngestRoute::Report,
        IngestRoute::Review,
        IngestRoute::Auto,
    ];
}

/// A write that was started.
#[derive(Debug, Clone)]
pub struct WrittenItem {
    pub way: IngestRoute,
    /// Names of the nodes it creates.
    pub names: Vec<String>,
    /// STIX ids of the relationships it creates.
    pub edges: Vec<String>,
    pub body: Value,
    /// Whether it goes to the neighbour's workspace rather than the operator's.
    pub neighbour: bool,
    pub acknowledged: bool,
}

/// Why a write did not succeed.
#[derive(Debug)]
pub enum Failure {
    /// The service is down.
    Gone,
    /// The service refused the write as overloaded.
    Busy,
}

impl WrittenItem {
    pub fn new(way: IngestRoute, neighbour: bool) -> Self {
        let word = format!("w{}", uuid::Uuid::new_v4().simple());
        let two = [format!("{word} one"), format!("{word} two")];
        let hosts = [format!("{word}a.com"), format!("{word}b.com")];
        let (mut names, mut edges) = (two.to_vec(), Vec::new());
        let body = match way {
            IngestRoute::Stix => {
                let tools = two.map(|name| object("tool", &name));
                let edge = relationship(&tools[0], "uses", &tools[1]);
                edges.push(text(&edge, "id").to_owned());
                let [one, other] = tools;
                json!({"bundle": [one, other, edge]})
            }
            IngestRoute::Osint => json!({"collector": "storm", "items": [
                {"title": two[0], "type": "osint", "url": format!("https://{word}.example/one")},
                {"title": two[1], "type": "osint", "url": format!("https://{word}.example/two")},
            ]}),
            IngestRoute::Misp => {
                names = hosts.to_vec();
                let attributes = hosts.map(|host| {
                    json!({"uuid": uuid::Uuid::new_v4(), "type": "domain", "category": "Network activity",
                        "value": host, "to_ids": true, "distribution": "5"})
                });
                json!({"event": {"uuid": uuid::Uuid::new_v4(), "info": format!("{word} event"), "distribution": "3",
                    "Attribute": attributes}})
            }
            IngestRoute::Analyst => {
                json!({"nodes": two.map(|name| json!({"name": name, "node_type": "tool"}))})
            }
            IngestRoute::Report => json!({"title": format!("{word} report"), "content_blocks":
                two.map(|name| json!({"entity_name": name, "node_type": "tool"}))}),
            IngestRoute::Review | IngestRoute::Auto => {
                names = hosts.to_vec();
                let mode = if way == IngestRoute::Auto {
                    "auto"
                } else {
                    "review"
                };
                json!({"text": format!("The implant called {} and then {}.", hosts[0], hosts[1]),
                    "default_tlp": "TLP:GREEN", "ingest_mode": mode})
            }
        };
        Self {
            way,
            names,
            edges,
            body,
            neighbour,
            acknowledged: false,
        }
    }

    /// Sends the write with all its steps. Repeating it creates no duplicates.
    pub async fn send(&self, client: &Client) -> Result<(), Failure> {
        let path = match self.way {
            IngestRoute::Stix => "/api/ingest/stix",
            IngestRoute::Osint => "/api/ingest/osint",
            IngestRoute::Misp => "/api/ingest/misp",
            IngestRoute::Analyst => "/api/ingest/analyst",
            IngestRoute::Report => "/api/ingest/report",
            IngestRoute::Review | IngestRoute::Auto => "/api/ingest/preview",
        };
        let answer = step(client, Method::POST, path, &self.body).await?;
        if self.way == IngestRoute::Auto && answer["auto_ingest"] != true {
            return Err(Failure::Busy);
        }
        if self.way == IngestRoute::Review {
            for entity in answer["entities"].as_array().unwrap() {
                let path = format!("/api/ingest/staging/{}", text(entity, "id"));
                step(client, Method::PATCH, &path, &json!({"status": "accepted"})).await?;
            }
            let path = format!("/api/ingest/batch/{}/commit", text(&answer, "batch_id"));
            step(client, Method::POST, &path, &json!({})).await?;
        }
        Ok(())
    }
}

async fn step(client: &Client, method: Method, path: &str, body: &Value) -> Result<Value, Failure> {
    let answer = client.request(method, path).json(body).send().await;
    let Ok(answer) = answer else {
        return Err(Failure::Gone);
    };
    let status = answer.status().as_u16();
    let again = answer.headers().contains_key("retry-after");
    let Ok(whole) = answer.text().await else {
        return Err(Failure::Gone);
    };
    match status {
        200 | 201 => Ok(serde_json::from_str(&whole).unwrap()),
        503 if again => Err(Failure::Busy),
        _ => panic!("{path}: {status} {whole}"),
    }
}
