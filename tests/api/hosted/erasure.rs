//! What is erased is in no answer and in no byte of the data directory; what is hidden is erased by nobody who doesn't see it.

use std::fs;
use std::path::Path;

use regex::bytes::Regex;
use serde_json::{Value, json};
use test_support::eventually;

use super::merges::{merge, node_of};
use crate::helpers::{ADMIN, Client, TestApp, run};
use crate::stix::{object, relationship, text, with};

const ERASURES: &str = "/api/admin/erasures";

impl Client {
    /// Erases, and returns the receipt once it is done.
    pub(crate) async fn erase(&self, targets: Value) -> Value {
        let begun = self.post(ERASURES, &targets).await.expect(202).await;
        assert_eq!(begun["erasure"]["status"], "running");
        self.erased(text(&begun["erasure"], "id")).await
    }

    pub async fn erased(&self, id: &str) -> Value {
        let path = format!("{ERASURES}/{id}");
        eventually(|| async {
            let receipt = self.get(&path).await.expect(200).await["erasure"].clone();
            match receipt["status"] == "done" {
                true => Ok(receipt),
                false => Err(receipt),
            }
        })
        .await
    }
}

/// Which of these words some file below the directory holds, whatever the case of its letters.
pub fn held(dir: &Path, words: &[&str]) -> Vec<String> {
    let wanted = words
        .iter()
        .map(|word| Regex::new(&format!("(?i-u){word}")).unwrap());
    let wanted: Vec<Regex> = wanted.collect();
    let (mut found, mut dirs) = (Vec::new(), vec![dir.to_owned()]);
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                dirs.push(path);
                continue;
            }
            // Files come and go while the service runs.
            let bytes = fs::read(&path).unwrap_or_default();
            for (word, wanted) in words.iter().zip(&wanted) {
                if wanted.is_match(&bytes) {
                    found.push(format!("{word} in {}", path.display()));
                }
            }
        }
    }
    found.sort_unstable();
    found
}

/// Ways in, each with a word of its own. No part of a word comes twice, so a compressed text holds it as it is.
const STIX: &str = "qvxstwzj";
const ANALYST: &str = "kyrpghub";
const OSINT: &str = "wobnjfiz";
const REPORT: &str = "zulmedyt";
const STAGED: &str = "vugnekax";
const CORRECTED: &str = "hjolbyqs";
const MERGED: &str = "pfaxuwik";
const WORDS: [&str; 7] = [STIX, ANALYST, OSINT, REPORT, STAGED, CORRECTED, MERGED];

/// What each way in brought.
struct Brought {
    /// The group of the bundle, which was corrected, and another one that was merged into it.
    groups: [String; 2],
}

async fn bring_in(admin: &Client) -> Brought {
    let group = with(
        object("intrusion-set", &format!("Turbine {STIX}")),
        json!({"description": format!("A turbine group {STIX}."), "aliases": [format!("Alias {STIX}")],
            "labels": [STIX], "goals": [format!("goal {STIX}")]}),
    );
    let tool = object("tool", "Turbine Tool");
    let second = object("intrusion-set", &format!("Turbine {MERGED}"));
    let mut link = relationship(&group, "uses", &tool);
    link = with(link, json!({"description": format!("It uses {STIX} daily.")}));
    let absent = object("malware", "Turbine Absent");
    let waiting = with(
        relationship(&group, "uses", &absent),
        json!({"description": format!("waits {STIX}")}),
    );
    let objects = [group, tool, second, link, waiting];
    admin.ingest(json!(objects)).await;
    let groups = [
        node_of(admin, &objects[0]).await,
        node_of(admin, &objects[2]).await,
    ];
    let change = json!({"description": format!("Said {CORRECTED}."), "add_aliases": [format!("Also {CORRECTED}")],
        "reason": format!("because {CORRECTED}")});
    let path = format!("/api/nodes/{}", groups[0]);
    admin.patch(&path, &change).await.expect(200).await;
    merge(admin, &groups[1], &groups[0]).await;
    let nodes = json!({"nodes": [{"name": format!("Turbine {ANALYST}"), "node_type": "actor",
        "description": format!("turbine {ANALYST}")}]});
    admin.post("/api/ingest/analyst", &nodes).await.expect(201).await;
    let osint = json!({"collector": "turbine collector", "items": [{"title": format!("Turbine {OSINT}"),
        "content": format!("turbine news of {OSINT}")}]});
    admin.post("/api/ingest/osint", &osint).await.expect(201).await;
    let report = json!({"title": format!("Turbine report {REPORT}"), "content_blocks": [
        {"entity_name": format!("Turbine {REPORT}"), "node_type": "actor", "text": format!("turbine {REPORT}")}]});
    admin.post("/api/ingest/report", &report).await.expect(201).await;
    let sent = json!({"text": format!("The turbine actor talks to {STAGED}-turbine.com by night.")});
    let staged = admin.preview(&sent).await;
    for entity in staged["entities"].as_array().unwrap() {
        admin.decide(entity, json!({"status": "accepted"})).await;
    }
    admin.commit(&staged["batch_id"]).await;
    Brought { groups }
}

/// Node ids and evidence ids of what has a word in its name.
async fn of_word(admin: &Client, word: &str) -> (String, Vec<String>) {
    let graph = admin.get("/api/graph").await.expect(200).await;
    let node = graph["nodes"].as_array().unwrap().iter();
    let node = node
        .filter(|node| text(node, "name").to_lowercase().contains(word))
        .map(|node| text(node, "id").to_owned())
        .next()
        .unwrap_or_else(|| panic!("no node with {word}"));
    let detail = admin.get(&format!("/api/nodes/{node}")).await.expect(200).await;
    let evidence = detail["node"]["linked_evidence_ids"].as_array().unwrap().iter();
    let evidence = evidence.map(|id| id.as_str().unwrap().to_owned());
    (node, evidence.collect())
}

async fn answered(app: &TestApp) -> Vec<String> {
    words_in(app, &WORDS).await
}

/// Those of these words that some answer has.
pub async fn words_in(app: &TestApp, words: &[&str]) -> Vec<String> {
    let admin = &app.admin;
    let mut found = Vec::new();
    for path in [
        "/api/graph",
        "/api/changes?since=0&limit=1000",
        "/api/recall/sessions",
        "/api/recall/search?q=turbine",
        "/api/recall/semantic?q=turbine",
        "/api/ingest/batch",
        "/api/nodes/duplicates",
        "/api/audit/logs?limit=1000",
        "/api/admin/users",
        "/api/admin/api-keys",
        "/api/admin/workspaces",
        "/api/threat-intel/feeds",
        "/api/audit/export",
    ] {
        let (status, body) = admin.get(path).await.whole().await;
        assert_eq!(status, 200, "{path}: {body}");
        let body = body.to_lowercase();
        let named = words.iter().filter(|word| body.contains(**word));
        found.extend(named.map(|word| format!("{word} in {path}")));
    }
    let metrics = admin.metrics().await;
    found.extend(
        words
            .iter()
            .filter(|word| metrics.contains(**word))
            .map(|word| format!("{word} in the metrics")),
    );
    found
}

#[test]
fn what_is_erased_is_in_no_answer_and_in_no_byte_of_the_data_directory() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let app = TestApp::durable(dir.path()).await;
        let admin = &app.admin;
        let brought = bring_in(admin).await;
        let session = admin.search("turbine").await;
        // The files are rewritten once, so that the words are looked for where compaction leaves them.
        let victim = object("tool", "Turbine Victim");
        admin.ingest(json!([victim.clone()])).await;
        let id = node_of(admin, &victim).await;
        admin.erase(json!({"node_ids": [id]})).await;
        let before = held(dir.path(), &WORDS);
        for word in WORDS {
            assert!(
                before.iter().any(|place| place.starts_with(word)),
                "{word} is not found at all"
            );
        }
        let (analyst, _) = of_word(admin, ANALYST).await;
        let (staged, _) = of_word(admin, STAGED).await;
        let (_, report) = of_word(admin, REPORT).await;

        let mut nodes = brought.groups.to_vec();
        nodes.extend([analyst, staged]);
        let receipt = admin.erase(json!({"node_ids": nodes})).await;
        let removed = &receipt["removed"];
        assert_eq!(
            (&receipt["what"], &receipt["asked"]),
            (&json!("node_ids"), &json!(4))
        );
        assert_eq!(
            (
                &removed["nodes"],
                &removed["merges"],
                &removed["staging_batches"],
                &removed["waiting_relationships"]
            ),
            (&json!(4), &json!(1), &json!(1), &json!(1)),
            "{receipt}"
        );
        assert!(
            removed["sessions"].as_u64() >= Some(1) && removed["evidence"].as_u64() >= Some(4),
            "{receipt}"
        );
        let left = admin.erase(json!({"evidence_ids": report})).await;
        assert_eq!(left["removed"]["nodes"], 1, "{left}");
        let left = admin.erase(json!({"source": "turbine collector"})).await;
        assert_eq!(left["removed"]["nodes"], 1, "{left}");

        assert_eq!(answered(&app).await, Vec::<String>::new());
        assert_eq!(held(dir.path(), &WORDS), Vec::<String>::new());
        let path = format!("/api/recall/sessions/{}", text(&session, "recall_id"));
        let kept = admin.get(&path).await.expect(200).await.to_string();
        assert!(nodes.iter().all(|id| !kept.contains(id.as_str())), "{kept}");
        // What is left is found as before, and the list of changes tells the end.
        assert_eq!(
            admin.search("Turbine Tool").await["results"][0]["name"],
            "Turbine Tool"
        );
        let told = admin
            .get("/api/changes?since=0&kind=erased&limit=1000")
            .await
            .expect(200)
            .await;
        let told = told.to_string();
        assert!(nodes.iter().all(|id| told.contains(id.as_str())), "{told}");
        let requests = admin.audited("erasure.request").await;
        assert_eq!(requests.len(), 4);
        assert_eq!(requests[2]["metadata"]["digest"], receipt["digest"]);
        assert_eq!(admin.audited("erasure.erase").await.len(), 5);
        assert_eq!(
            admin.get("/api/audit/verify").await.expect(200).await["valid"],
            true
        );
        app.stop().await;
        assert_eq!(held(dir.path(), &WORDS), Vec::<String>::new());
        // The index is built of nothing else than the rows.
        let app = TestApp::durable(dir.path()).await;
        assert_eq!(answered(&app).await, Vec::<String>::new());
        assert_eq!(held(dir.path(), &WORDS), Vec::<String>::new());
        app.stop().await;
    });
}

#[test]
fn an_erasure_names_what_it_refuses_and_reaches_nothing_hidden() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let nobody = uuid::Uuid::nil();
        for (body, error) in [
            (json!({}), "body"),
            (json!({"node_ids": [nobody], "source": "x"}), "body"),
            (json!({"node_ids": []}), "node_ids"),
            (json!({"evidence_ids": []}), "evidence_ids"),
            (json!({"source": ""}), "source"),
            (json!({"node_ids": ["x"]}), "node_ids"),
        ] {
            let refused = admin.post(ERASURES, &body).await.refused(400).await;
            assert!(refused.starts_with(error), "{body}: {refused}");
        }
        admin
            .settings(json!({"tlp_ceiling": "TLP:RED", "elevated_clearance": true}))
            .await;
        let hidden = with(
            object("malware", "Hidden Wader"),
            json!({"x_mitre_tlp": "TLP:RED"}),
        );
        let seen = object("tool", "Seen Wader");
        let link = with(
            relationship(&hidden, "uses", &seen),
            json!({"x_mitre_tlp": "TLP:RED"}),
        );
        admin.ingest(json!([hidden.clone(), seen.clone(), link])).await;
        let secret = node_of(admin, &hidden).await;
        let shown = node_of(admin, &seen).await;
        let detail = admin.get(&format!("/api/nodes/{secret}")).await.expect(200).await;
        let record = detail["node"]["linked_evidence_ids"][0].clone();
        admin
            .settings(json!({"tlp_ceiling": "TLP:AMBER", "elevated_clearance": false}))
            .await;
        for (body, error) in [
            (json!({"node_ids": [shown, secret]}), "node_ids: node not found"),
            (json!({"node_ids": [shown, nobody]}), "node_ids: node not found"),
            (
                json!({"evidence_ids": [record]}),
                "evidence_ids: evidence record not found",
            ),
            (
                json!({"evidence_ids": [nobody]}),
                "evidence_ids: evidence record not found",
            ),
            (
                json!({"source": "nobody at all"}),
                "source: node or evidence record not found",
            ),
        ] {
            assert_eq!(admin.post(ERASURES, &body).await.refused(404).await, error);
        }
        let elsewhere = app.workspace("elsewhere").await;
        let body = json!({"node_ids": [shown]});
        elsewhere.post(ERASURES, &body).await.refused(404).await;
        // A relationship to something hidden goes with its node, and is counted nowhere.
        let receipt = admin.erase(body).await;
        assert_eq!(
            (&receipt["removed"]["nodes"], &receipt["removed"]["relationships"]),
            (&json!(1), &json!(0)),
            "{receipt}"
        );
        let path = format!("{ERASURES}/{}", text(&receipt, "id"));
        elsewhere.get(&path).await.refused(404).await;
        app.user("analyst").await.get(&path).await.refused(403).await;
        admin
            .settings(json!({"tlp_ceiling": "TLP:RED", "elevated_clearance": true}))
            .await;
        let detail = admin.get(&format!("/api/nodes/{secret}")).await.expect(200).await;
        assert_eq!(detail["relationships"], json!([]));
        app.stop().await;
    });
}

#[test]
fn what_an_erased_correction_set_goes_and_the_node_stays() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let tool = with(
            object("tool", "Corrected Wader"),
            json!({"description": "As it was."}),
        );
        admin.ingest(json!([tool.clone()])).await;
        let path = format!("/api/nodes/{}", node_of(admin, &tool).await);
        let change = json!({"description": "Said kyrpghub.", "reason": "kyrpghub"});
        let corrected = admin.patch(&path, &change).await.expect(200).await;
        let record = corrected["corrections"][0]["evidence"].clone();
        let receipt = admin.erase(json!({"evidence_ids": [record]})).await;
        assert_eq!(
            (&receipt["removed"]["nodes"], &receipt["removed"]["evidence"]),
            (&json!(0), &json!(1))
        );
        let now = admin.get(&path).await.expect(200).await;
        assert_eq!(now["node"]["description"], "As it was.");
        let changes = admin
            .get("/api/changes?since=0&limit=1000")
            .await
            .expect(200)
            .await;
        assert!(!changes.to_string().contains("kyrpghub"), "{changes}");
        assert!(!now.to_string().contains("kyrpghub"), "{now}");
        // The source of all corrections of this administrator.
        admin.patch(&path, &change).await.expect(200).await;
        admin.erase(json!({"source": ADMIN})).await;
        assert_eq!(
            admin.get(&path).await.expect(200).await["node"]["description"],
            "As it was."
        );
        app.stop().await;
    });
}

#[test]
fn writes_go_on_while_erasures_run() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let victims: Vec<Value> = (0..30).map(|n| object("tool", &format!("Victim {n}"))).collect();
        admin.ingest(json!(victims)).await;
        let mut ids = Vec::new();
        for victim in &victims {
            ids.push(node_of(admin, victim).await);
        }
        let writes = async {
            for n in 0..20 {
                admin
                    .ingest(json!([object("tool", &format!("Writer {n}"))]))
                    .await;
            }
        };
        let erasures =
            futures_util::future::join_all(ids.chunks(10).map(|ids| admin.erase(json!({"node_ids": ids}))));
        let (receipts, ()) = futures_util::join!(erasures, writes);
        assert!(
            receipts.iter().all(|receipt| receipt["removed"]["nodes"] == 10),
            "{receipts:?}"
        );
        let graph = admin.get("/api/graph").await.expect(200).await;
        let names: Vec<&str> = graph["nodes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|node| text(node, "name"))
            .collect();
        assert!(
            names.len() == 20 && names.iter().all(|name| name.starts_with("Writer")),
            "{names:?}"
        );
        app.stop().await;
    });
}
