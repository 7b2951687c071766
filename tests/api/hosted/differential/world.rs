//! One workspace, in which a program is played.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use test_support::extent;
use uuid::Uuid;

use super::acts::{Act, Request};
use super::transcript::{entry, ids_in};
use crate::helpers::{Answer, Client, PASSWORD, TestApp, encode};

const QUESTIONS: [&str; 8] = [
    "Umber Loader",
    "turbine ledger",
    "which tools use Violet Relay",
    "Cobalt",
    "Falcon",
    "glacier",
    "T1015",
    "198.51.100.3",
];

/// Values that are looked up: addresses and networks of the observables, what is inside and around them, and what is no
/// indicator.
const VALUES: [&str; 12] = [
    "198.51.100.1",
    "198.51.100.3",
    "198.51.100.7",
    "198.51.100.9",
    "198.51.100.200",
    "198.51.100.0/24",
    "198.51.100.0/28",
    "198.51.100.0/30",
    "198.51.0.0/16",
    "T1015",
    "Umber Loader",
    "turbine.example",
];

/// What a caller of limited clearance was answered.
pub struct World {
    client: Client,
    /// Who makes hidden entries of an analyst. A source that states its own node again at a stricter marking takes it away from
    /// others, which they may see.
    other_analyst: Option<Client>,
    sees_all: bool,
    sessions: Vec<(String, Value)>,
    feed_batches: Vec<(bool, String)>,
    sent: BTreeSet<String>,
    transcript: Vec<String>,
}

impl World {
    /// Plays the acts in a new workspace, and returns the answers to its visible acts and to what is asked afterwards.
    pub async fn play(app: &TestApp, acts: impl Iterator<Item = &Act>) -> Vec<String> {
        let mut world = Self {
            client: app.workspace(&format!("World {}", Uuid::new_v4())).await,
            other_analyst: None,
            sees_all: false,
            sessions: Vec::new(),
            feed_batches: Vec::new(),
            sent: BTreeSet::new(),
            transcript: Vec::new(),
        };
        for act in acts {
            world.see_all(act.is_hidden).await;
            world.act(act).await;
        }
        world.see_all(false).await;
        for ceiling in ["TLP:AMBER", "TLP:GREEN", "TLP:AMBER"] {
            world.client.settings(json!({"tlp_ceiling": ceiling})).await;
            world.ask().await;
        }
        world.transcript
    }

    async fn see_all(&mut self, sees_all: bool) {
        if sees_all != self.sees_all {
            let ceiling = if sees_all { "TLP:RED" } else { "TLP:AMBER" };
            let rights = json!({"tlp_ceiling": ceiling, "elevated_clearance": sees_all});
            self.client.settings(rights).await;
            self.sees_all = sees_all;
        }
    }

    async fn act(&mut self, act: &Act) {
        match &act.request {
            Request::Post(path, body) => {
                let text = body.to_string();
                self.sent.extend(ids_in(&text));
                let client = self.author_of(act.is_hidden, path).await;
                let answer = client.post(path, body).await;
                let body = self.keep(act.is_hidden, &format!("POST {path}"), answer).await;
                self.remember(act, &body);
            }
            Request::Correct(name, change) => {
                if let Some(node) = self.node_like(name, act.is_hidden).await {
                    let answer = self.client.patch(&format!("/api/nodes/{node}"), change).await;
                    self.keep(act.is_hidden, &format!("PATCH node {name}"), answer)
                        .await;
                }
            }
            Request::Merge(name, other) => {
                let (one, other) = (
                    self.node_like(name, false).await,
                    self.node_like(other, false).await,
                );
                if let (Some(one), Some(other)) = (one, other) {
                    let path = format!("/api/nodes/{one}/merge");
                    let answer = self.client.post(&path, &json!({"into": other})).await;
                    self.keep(act.is_hidden, "POST merge", answer).await;
                }
            }
            Request::Unmerge(name) => {
                if let Some(node) = self.node_like(name, false).await {
                    let read = self
                        .client
                        .get(&format!("/api/nodes/{node}"))
                        .await
                        .expect(200)
                        .await;
                    for member in read["merged"].as_array().into_iter().flatten() {
                        let path =
                            format!("/api/nodes/{}/unmerge", member["id"].as_str().unwrap_or_default());
                        let answer = self.client.post(&path, &json!({})).await;
                        self.keep(act.is_hidden, "POST unmerge", answer).await;
                    }
                }
            }
            Request::CommitSession(session) => self.commit_session(act.is_hidden, session).await,
            Request::CommitFeedBatch(back) => {
                let mut own = self
                    .feed_batches
                    .iter()
                    .rev()
                    .filter(|(hidden, _)| *hidden == act.is_hidden);
                let Some((_, batch)) = own.nth(*back).cloned() else {
                    return;
                };
                let path = format!("/api/threat-intel/batches/{batch}/commit");
                let items = self.client.items(&batch).await;
                let items: Vec<&Value> = items.iter().map(|item| &item["id"]).collect();
                let answer = self.client.post(&path, &json!({"item_ids": items})).await;
                self.keep(act.is_hidden, &format!("POST {path}"), answer).await;
            }
        }
    }

    /// Who hands something in.
    async fn author_of(&mut self, is_hidden: bool, path: &str) -> Client {
        if !is_hidden || !path.ends_with("/analyst") {
            return self.client.clone();
        }
        if let Some(client) = &self.other_analyst {
            return client.clone();
        }
        let (_, email) = self.client.add_user("analyst").await;
        let account = json!({"email": email, "password": PASSWORD});
        let signed_in = self
            .client
            .post("/api/auth/login", &account)
            .await
            .expect(200)
            .await;
        let client = self.client.bearer(signed_in["access_token"].as_str().unwrap());
        self.other_analyst.insert(client).clone()
    }

    /// The id of the first node by what it says, among those that a search for a name finds; for a hidden act, among
    /// those that are hidden.
    async fn node_like(&mut self, name: &str, is_hidden: bool) -> Option<String> {
        let path = format!(
            "/api/recall/search?{}",
            encode(&[("q", name), ("min_score", "0")])
        );
        let found = self.client.get(&path).await.expect(200).await;
        let nodes = found["results"].as_array()?.iter();
        let is_meant = |node: &&Value| {
            let tlp = node["tlp"].as_str().unwrap_or_default();
            !is_hidden || ["TLP:AMBER+PK", "TLP:RED"].contains(&tlp)
        };
        let said = |node: &&Value| {
            ["name", "node_type", "description", "tlp", "source_type"].map(|field| node[field].to_string())
        };
        let node = nodes.filter(is_meant).min_by_key(said)?;
        Some(node["id"].as_str()?.to_owned())
    }

    /// Remembers the batches that an act made.
    fn remember(&mut self, act: &Act, answer: &Value) {
        let Request::Post(path, body) = &act.request else {
            return;
        };
        if let (true, Some(batch)) = (path.ends_with("/batches"), answer["batch"]["id"].as_str()) {
            self.feed_batches.push((act.is_hidden, batch.to_owned()));
        }
        if let (false, Some(session)) = (act.is_hidden, body["session_id"].as_str()) {
            self.sessions.retain(|(known, _)| known != session);
            self.sessions
                .push((session.to_owned(), answer["batch_id"].clone()));
        }
    }

    /// Accepts what waits in the session's batch without a warning, and commits it.
    async fn commit_session(&mut self, is_hidden: bool, session: &str) {
        let Some((_, batch)) = self.sessions.iter().find(|(known, _)| known == session).cloned() else {
            return;
        };
        let batch = batch.as_str().unwrap_or_default().to_owned();
        let answer = self.client.get(&format!("/api/ingest/batch/{batch}")).await;
        let read = self.keep(is_hidden, "GET batch", answer).await;
        for entity in read["entities"].as_array().into_iter().flatten() {
            if entity["status"] == "pending" {
                let path = format!(
                    "/api/ingest/staging/{}",
                    entity["id"].as_str().unwrap_or_default()
                );
                let decision = json!({"status": "accepted"});
                let answer = self.client.patch(&path, &decision).await;
                self.keep(is_hidden, "PATCH entity", answer).await;
            }
        }
        let answer = self
            .client
            .post(&format!("/api/ingest/batch/{batch}/commit"), &json!({}))
            .await;
        self.keep(is_hidden, "POST commit", answer).await;
    }

    /// Asks in every mode, looks values up, exports what was found, and reads every node, batch and list.
    async fn ask(&mut self) {
        let mut nodes = BTreeSet::new();
        for question in &QUESTIONS[..extent(2, QUESTIONS.len())] {
            for path in ["search?mode=blended&", "search?mode=structured&", "semantic?"] {
                let path = format!("/api/recall/{path}{}", encode(&[("q", *question)]));
                let found = self.get(&path).await;
                for node in found["results"].as_array().into_iter().flatten() {
                    nodes.insert((
                        node["name"].to_string(),
                        node["id"].as_str().unwrap_or_default().to_owned(),
                    ));
                }
                if let Some(recall) = found["recall_id"].as_str() {
                    self.get(&format!("/api/recall/sessions/{recall}/export.stix"))
                        .await;
                }
            }
        }
        let (path, body) = ("/api/recall/lookup", json!({"values": VALUES}));
        let answer = self.client.post(path, &body).await;
        let found = self.keep(false, &format!("POST {path}"), answer).await;
        if let Some(recall) = found["recall_id"].as_str() {
            self.get(&format!("/api/recall/sessions/{recall}")).await;
            self.get(&format!("/api/recall/sessions/{recall}/export.stix"))
                .await;
        }
        self.ask_as_agent(&nodes).await;
        let mut reads = Vec::new();
        for (name, id) in nodes {
            let answer = self.client.get(&format!("/api/nodes/{id}")).await;
            let (status, body) = answer.whole().await;
            reads.push(entry(&format!("node {name}"), status, None, &body, &self.sent));
        }
        reads.sort();
        self.transcript.extend(reads);
        self.get("/api/changes?limit=1000").await;
        self.get("/api/nodes/duplicates").await;
        self.get("/api/threat-intel/batches").await;
        for (is_hidden, batch) in self.feed_batches.clone() {
            if !is_hidden {
                self.get(&format!("/api/threat-intel/batches/{batch}")).await;
            }
        }
        for (_, batch) in self.sessions.clone() {
            self.get(&format!(
                "/api/ingest/batch/{}",
                batch.as_str().unwrap_or_default()
            ))
            .await;
        }
    }

    /// Asks as an agent does, and reads what is found.
    async fn ask_as_agent(&mut self, nodes: &BTreeSet<(String, String)>) {
        for question in &QUESTIONS[..extent(1, QUESTIONS.len())] {
            let arguments = json!({"query": question, "explain": true});
            let found = self.call("search", question, arguments).await;
            self.call("export", question, json!({"recall_id": found["recall_id"]}))
                .await;
        }
        self.call("lookup", "values", json!({"values": VALUES})).await;
        self.call("changes", "all", json!({"limit": 1000})).await;
        let mut reads = Vec::new();
        // Identifiers differ between the two worlds, so nodes of one name are read all or not at all.
        let mut names: Vec<&String> = nodes.iter().map(|(name, _)| name).collect();
        names.dedup();
        names.truncate(extent(1, usize::MAX));
        for (name, id) in nodes.iter().filter(|(name, _)| names.contains(&name)) {
            let answer = self
                .client
                .mcp("tools/call", json!({"name": "node", "arguments": {"id": id}}))
                .await;
            reads.push(told(&format!("agent's node {name}"), &answer, &self.sent));
            let read = self
                .client
                .mcp(
                    "resources/read",
                    json!({"uri": format!("threat-memory://node/{id}")}),
                )
                .await;
            let text = read["result"]["contents"][0]["text"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            reads.push(entry(
                &format!("agent's resource {name}"),
                200,
                None,
                &text,
                &self.sent,
            ));
        }
        reads.sort();
        self.transcript.extend(reads);
    }

    /// Calls a tool and notes its answer; returns the structure.
    async fn call(&mut self, tool: &'static str, about: &str, arguments: Value) -> Value {
        let answer = self
            .client
            .mcp("tools/call", json!({"name": tool, "arguments": arguments}))
            .await;
        let call = format!("agent's {tool} {about}");
        self.transcript.push(told(&call, &answer, &self.sent));
        answer["result"]["structuredContent"].clone()
    }

    async fn get(&mut self, path: &str) -> Value {
        let answer = self.client.get(path).await;
        self.keep(false, &format!("GET {path}"), answer).await
    }

    /// Notes what the caller was answered, unless that caller is the one who sees everything.
    async fn keep(&mut self, is_hidden: bool, call: &str, answer: Answer) -> Value {
        let held_back = answer.header("x-held-back").map(str::to_owned);
        let (status, body) = answer.whole().await;
        assert!(status < 500, "{call}: {status} {body}");
        if !is_hidden {
            self.transcript
                .push(entry(call, status, held_back.as_deref(), &body, &self.sent));
        }
        serde_json::from_str(&body).unwrap_or(Value::Null)
    }
}

/// What a tool tells: its structure, which its first text repeats, what it says in words, and its links in any order.
fn told(call: &str, answer: &Value, sent: &BTreeSet<String>) -> String {
    let result = &answer["result"];
    let content = result["content"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let is_link = |part: &&Value| part["type"] == "resource_link";
    let mut links: Vec<&Value> = content.iter().filter(is_link).map(|link| &link["name"]).collect();
    links.sort_by_key(|name| name.to_string());
    let said: Vec<&Value> = content.iter().filter(|part| !is_link(part)).skip(1).collect();
    let told = json!({"structure": result["structuredContent"], "links": links, "said": said, "isError": result["isError"]});
    entry(call, 200, None, &told.to_string(), sent)
}
