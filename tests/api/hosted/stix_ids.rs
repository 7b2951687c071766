//! Ids of what came in as STIX tell nothing: two workspaces that differ only in hidden rows of the same objects answer
//! alike but for ids, and nobody can compute those.

use std::collections::{BTreeSet, HashSet};

use serde_json::{Value, json};
use uuid::Uuid;

use super::differential::transcript::{entry, ids_in};
use crate::helpers::{Client, TestApp, run};
use crate::stix::{self, text};

const LEVELS: [&str; 5] = ["TLP:WHITE", "TLP:GREEN", "TLP:AMBER", "TLP:AMBER+PK", "TLP:RED"];

/// What a caller up to AMBER was answered.
struct Answers {
    client: Client,
    sent: BTreeSet<String>,
    transcript: Vec<String>,
    /// Ids that were made here.
    made: HashSet<Uuid>,
}

impl Answers {
    fn keep(&mut self, call: &str, (status, body): (u16, String)) -> Value {
        assert!(status < 300, "{call}: {status} {body}");
        let made = ids_in(&body).filter(|id| !self.sent.contains(id));
        self.made.extend(made.map(|id| id.parse::<Uuid>().unwrap()));
        self.transcript.push(entry(call, status, None, &body, &self.sent));
        serde_json::from_str(&body).unwrap()
    }

    async fn get(&mut self, call: &str, path: &str) -> Value {
        let answer = self.client.get(path).await.whole().await;
        self.keep(call, answer)
    }

    /// Sends the objects, searches for them, and reads and exports what is found.
    async fn play(client: &Client, objects: &[Value]) -> Self {
        let sent = json!({"bundle": objects, "default_tlp": "TLP:GREEN"});
        let mut answers = Self {
            client: client.clone(),
            sent: ids_in(&sent.to_string()).collect(),
            transcript: Vec::new(),
            made: HashSet::new(),
        };
        for _ in 0..2 {
            let answer = client.post("/api/ingest/stix", &sent).await.whole().await;
            answers.keep("ingest", answer);
        }
        let found = answers.get("search", "/api/recall/search?q=Heron").await;
        let results = found["results"].as_array().unwrap();
        assert!(!results.is_empty());
        for node in results {
            let path = format!("/api/nodes/{}", text(node, "id"));
            let read = answers.get(&format!("node {}", text(node, "name")), &path).await;
            let path = format!("/api/nodes?stix_id={}", text(&node["properties"], "stix_id"));
            assert_eq!(answers.get("object", &path).await, read);
            for evidence in read["evidence"].as_array().unwrap() {
                let path = format!("/api/evidence/{}", text(evidence, "id"));
                answers.get("evidence", &path).await;
            }
        }
        let path = format!("/api/recall/sessions/{}/export.stix", text(&found, "recall_id"));
        answers.get("export", &path).await;
        answers
    }
}

/// The ids that anybody can compute who knows the workspace and these objects.
fn computable(ws: Uuid, objects: &[Value]) -> HashSet<Uuid> {
    let mut all = HashSet::new();
    for object in objects {
        let id = text(object, "id");
        let modified: chrono::DateTime<chrono::Utc> = text(object, "modified").parse().unwrap();
        let beside = LEVELS.map(|level| format!("{id}\0up to {level}"));
        let names = beside
            .into_iter()
            .chain([id.to_owned(), format!("{id}\0{modified}")]);
        for name in names {
            let kinds = ["node", "edge", "evidence"];
            all.extend(kinds.map(|kind| Uuid::new_v5(&ws, format!("{kind}\0{name}").as_bytes())));
        }
    }
    all
}

#[test]
fn ids_do_not_tell_whether_a_hidden_row_has_the_object() {
    run(async {
        let app = TestApp::shared().await;
        let malware = stix::with(
            stix::object("malware", "Heron"),
            json!({"description": "Opens sluices."}),
        );
        let tool = stix::object("tool", "Stork");
        let uses = stix::relationship(&malware, "uses", &tool);
        let objects = [&malware, &tool, &uses].map(|object| stix::version(object, 2021, json!({})));
        let hidden = objects.clone().map(|object| {
            let red = json!({"x_mitre_tlp": "TLP:RED", "description": "secret"});
            stix::version(&object, 2022, red)
        });
        let mut worlds = Vec::new();
        for is_with in [false, true] {
            let client = app.workspace(if is_with { "with" } else { "without" }).await;
            if is_with {
                client
                    .settings(json!({"tlp_ceiling": "TLP:RED", "elevated_clearance": true}))
                    .await;
                client.ingest(json!(hidden)).await;
                client
                    .settings(json!({"tlp_ceiling": "TLP:AMBER", "elevated_clearance": false}))
                    .await;
            }
            let answers = Answers::play(&client, &objects).await;
            let me = client.get("/api/auth/me").await.expect(200).await;
            let ws: Uuid = text(&me["workspace"], "id").parse().unwrap();
            let guessed = computable(ws, &objects);
            let told: Vec<&Uuid> = answers.made.intersection(&guessed).collect();
            assert!(answers.made.len() >= 5 && told.is_empty(), "{told:?}");
            worlds.push(answers.transcript);
        }
        assert_eq!(worlds[0], worlds[1]);
        app.stop().await;
    });
}
