//! One write per ingest endpoint, with nodes that no other write contains.

use reqwest::Method;
use serde_json::{Value, json};

use crate::helpers::Client;
use crate::stix::{object, relationship, text};

/// Every ingest endpoint; the text ingest once per mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Way {
    Stix,
    Osint,
    Misp,
    Analyst,
    Report,
    Review,
    Auto,
}

impl Way {
    pub const ALL: [Way; 7] = [
        Way::Stix,
        Way::Osint,
        Way::Misp,
        Way::Analyst,
        Way::Report,
        Way::Review,
        Way::Auto,
    ];
}

/// A write that was started.
#[derive(Debug, Clone)]
pub struct Written {
    pub way: Way,
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

impl Written {
    pub fn new(way: Way, neighbour: bool) -> Self {
        let word = format!("w{}", uuid::Uuid::new_v4().simple());
        let two = [format!("{word} one"), format!("{word} two")];
        let hosts = [format!("{word}a.com"), format!("{word}b.com")];
        let (mut names, mut edges) = (two.to_vec(), Vec::new());
        let body = match way {
            Way::Stix => {
                let tools = two.map(|name| object("tool", &name));
                let edge = relationship(&tools[0], "uses", &tools[1]);
                edges.push(text(&edge, "id").to_owned());
                let [one, other] = tools;
                json!({"bundle": [one, other, edge]})
            }
            Way::Osint => json!({"collector": "storm", "items": [
                {"title": two[0], "type": "osint", "url": format!("https://{word}.example/one")},
                {"title": two[1], "type": "osint", "url": format!("https://{word}.example/two")},
            ]}),
            Way::Misp => {
                names = hosts.to_vec();
                let attributes = hosts.map(|host| {
                    json!({"uuid": uuid::Uuid::new_v4(), "type": "domain", "category": "Network activity",
                        "value": host, "to_ids": true, "distribution": "5"})
                });
                json!({"event": {"uuid": uuid::Uuid::new_v4(), "info": format!("{word} event"), "distribution": "3",
                    "Attribute": attributes}})
            }
            Way::Analyst => json!({"nodes": two.map(|name| json!({"name": name, "node_type": "tool"}))}),
            Way::Report => json!({"title": format!("{word} report"), "content_blocks":
                two.map(|name| json!({"entity_name": name, "node_type": "tool"}))}),
            Way::Review | Way::Auto => {
                names = hosts.to_vec();
                let mode = if way == Way::Auto { "auto" } else { "review" };
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
            Way::Stix => "/api/ingest/stix",
            Way::Osint => "/api/ingest/osint",
            Way::Misp => "/api/ingest/misp",
            Way::Analyst => "/api/ingest/analyst",
            Way::Report => "/api/ingest/report",
            Way::Review | Way::Auto => "/api/ingest/preview",
        };
        let answer = step(client, Method::POST, path, &self.body).await?;
        if self.way == Way::Auto && answer["auto_ingest"] != true {
            return Err(Failure::Busy);
        }
        if self.way == Way::Review {
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
