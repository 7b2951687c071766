//! Versions of STIX objects: what stands above the sender is neither seen, lowered nor replaced by what is sent.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use crate::helpers::{Client, TestApp, run};
use crate::stix::{self, text};

const LEVELS: [&str; 5] = ["TLP:WHITE", "TLP:GREEN", "TLP:AMBER", "TLP:AMBER+PK", "TLP:RED"];
/// The default of the bundles sent here.
const DEFAULT: usize = 1;
const STORED: u32 = 2021;

/// An object that is stored, and the version of it that is sent later.
struct Case {
    name: String,
    stored: Value,
    sent: Value,
    /// The level of what is stored, and the one that is sent; `None` for none.
    levels: (usize, Option<usize>),
    year: u32,
}

impl Case {
    fn new(stored: usize, sent: Option<usize>, year: u32) -> Self {
        let at = sent.map_or(9, |sent| sent);
        let name = format!("Heron{stored} {at} {year}");
        let object = stix::object("malware", &name);
        let said = |text: &str| json!({"description": text});
        let of_stored = stix::with(said("stored"), json!({"x_mitre_tlp": LEVELS[stored]}));
        let mut of_sent = said("sent");
        if let Some(sent) = sent {
            of_sent["x_mitre_tlp"] = json!(LEVELS[sent]);
        }
        Self {
            name,
            stored: stix::version(&object, STORED, of_stored),
            sent: stix::version(&object, year, of_sent),
            levels: (stored, sent),
            year,
        }
    }

    /// Every stored level, sent level and order of the versions.
    fn all() -> Vec<Self> {
        let mut cases = Vec::new();
        for stored in 0..LEVELS.len() {
            for sent in (0..LEVELS.len()).map(Some).chain([None]) {
                let years = [STORED - 1, STORED, STORED + 1];
                cases.extend(years.map(|year| Self::new(stored, sent, year)));
            }
        }
        cases
    }

    /// The level and text that a sender with this clearance sees afterwards.
    fn seen_below(&self, clearance: usize) -> Option<(usize, &'static str)> {
        let (stored, sent) = self.levels;
        let after = match self.year {
            _ if stored > clearance => (sent.unwrap_or(DEFAULT), "sent"),
            year if year > STORED => (sent.unwrap_or(stored.max(DEFAULT)), "sent"),
            STORED => (stored.max(sent.unwrap_or(stored)), "stored"),
            _ => (stored, "stored"),
        };
        (after.0 <= clearance).then_some(after)
    }

    /// The level and text that one who sees everything sees afterwards.
    fn seen_above(&self, clearance: usize) -> (usize, &'static str) {
        let (stored, sent) = self.levels;
        let level = sent.unwrap_or(DEFAULT);
        if stored <= clearance {
            // What was sent is in the row that was seen.
            return match self.year {
                year if year > STORED => (sent.unwrap_or(stored.max(DEFAULT)), "sent"),
                STORED => (stored.max(sent.unwrap_or(stored)), "stored"),
                _ => (stored, "stored"),
            };
        }
        let stands = level >= stored && self.year > STORED;
        if stands {
            (level, "sent")
        } else {
            (stored, "stored")
        }
    }
}

async fn clear(client: &Client, level: usize) {
    let elevated = level > 2;
    let ceiling = LEVELS[level];
    let settings =
        json!({"tlp_ceiling": ceiling, "elevated_clearance": elevated, "red_export_grant": level == 4});
    client.settings(settings).await;
}

async fn send(client: &Client, objects: &[Value]) -> Value {
    let body = json!({"bundle": objects, "default_tlp": LEVELS[DEFAULT]});
    client.post("/api/ingest/stix", &body).await.expect(201).await["results"].clone()
}

/// The level and text of each object that a search finds, by STIX id. No object is found twice.
async fn found(client: &Client, query: &str) -> HashMap<String, (String, String)> {
    let answer = client.search_with(query, &[]).await;
    let mut found = HashMap::new();
    let results = answer["results"].as_array().unwrap();
    // What is only alike fills the page, so that the other version of an object may be missing there.
    for node in results
        .iter()
        .filter(|node| text(node, "name").starts_with(query))
    {
        let id = text(&node["properties"], "stix_id").to_owned();
        let seen = (text(node, "tlp").to_owned(), text(node, "description").to_owned());
        assert!(found.insert(id, seen).is_none(), "found twice: {node}");
    }
    found
}

/// The level and text of all objects that are found.
async fn all_found(client: &Client) -> HashMap<String, (String, String)> {
    let mut all = HashMap::new();
    for stored in 0..LEVELS.len() {
        all.extend(found(client, &format!("Heron{stored}")).await);
    }
    all
}

async fn check(clearance: usize) {
    let app = TestApp::shared().await;
    let cases = Case::all();
    clear(&app.admin, 4).await;
    let stored: Vec<Value> = cases.iter().map(|case| case.stored.clone()).collect();
    send(&app.admin, &stored).await;

    clear(&app.admin, clearance).await;
    let sent: Vec<Value> = cases.iter().map(|case| case.sent.clone()).collect();
    let results = send(&app.admin, &sent).await;
    let hidden = cases.iter().filter(|case| case.levels.0 > clearance).count();
    assert_eq!(
        results["nodes_created"],
        json!(hidden),
        "up to {clearance}: {results}"
    );
    let warnings = results["warnings"].to_string();
    for case in &cases {
        let (stored, sent) = case.levels;
        let keeps = case.year > STORED && sent.is_none() && stored <= clearance && stored > DEFAULT;
        let warned = warnings.contains(text(&case.sent, "id"));
        assert_eq!(warned, keeps, "up to {clearance}, {}: {warnings}", case.name);
    }
    let owned = |(level, text): (usize, &str)| (LEVELS[level].to_owned(), text.to_owned());
    let seen = all_found(&app.admin).await;
    for case in &cases {
        let seen = seen.get(text(&case.sent, "id")).cloned();
        let want = case.seen_below(clearance).map(owned);
        assert_eq!(seen, want, "up to {clearance}: {}", case.name);
    }
    clear(&app.admin, 4).await;
    let seen = all_found(&app.admin).await;
    for case in &cases {
        let seen = seen.get(text(&case.sent, "id")).cloned();
        let want = Some(owned(case.seen_above(clearance)));
        assert_eq!(seen, want, "sent up to {clearance}, seen by all: {}", case.name);
    }
    app.stop().await;
}

#[test]
fn a_version_sent_up_to_green_changes_nothing_above() {
    run(check(1));
}

#[test]
fn a_version_sent_up_to_amber_changes_nothing_above() {
    run(check(2));
}

#[test]
fn a_version_sent_up_to_amber_pk_changes_nothing_above() {
    run(check(3));
}

#[test]
fn a_version_sent_by_one_who_sees_everything_replaces_the_stored_one() {
    run(check(4));
}

#[test]
fn an_answer_does_not_depend_on_hidden_versions() {
    run(async {
        let app = TestApp::shared().await;
        let other = app.workspace("without").await;
        let author = stix::object("identity", "An author");
        let by = |object: Value| stix::with(object, json!({"created_by_ref": author["id"]}));
        let (malware, tool) = (
            by(stix::object("malware", "Heron")),
            by(stix::object("tool", "Stork")),
        );
        let uses = stix::relationship(&malware, "uses", &tool);
        let all = [&author, &malware, &tool, &uses];
        clear(&app.admin, 4).await;
        let red = json!({"x_mitre_tlp": "TLP:RED", "description": "secret"});
        let hidden = all.map(|object| stix::version(object, 2022, red.clone()));
        send(&app.admin, &hidden).await;

        for year in [2021, 2022, 2023, 2023] {
            let objects = all.map(|object| stix::version(object, year, json!({})));
            let mut answers = Vec::new();
            for client in [&app.admin, &other] {
                clear(client, 2).await;
                let results = send(client, &objects).await;
                let recall = client.search("Heron").await;
                let nodes = recall["results"].as_array().unwrap();
                let id = text(nodes.first().unwrap(), "id").to_owned();
                let node = client.get(&format!("/api/nodes/{id}")).await.expect(200).await;
                let count = node["relationships"].as_array().unwrap().len();
                let bundle = client.export(text(&recall, "recall_id")).await;
                assert!(!bundle.to_string().contains("secret"), "{bundle}");
                let mut ids: Vec<String> = Vec::new();
                for object in bundle["objects"].as_array().unwrap() {
                    ids.push(text(object, "id").to_owned());
                    if object["id"] == malware["id"] {
                        assert_eq!(object["created_by_ref"], author["id"], "{object}");
                    }
                }
                ids.sort_unstable();
                answers.push((results, nodes.len(), count, ids));
            }
            assert_eq!(answers[0], answers[1], "{year}");
        }

        // Above, the secret version stands, and no object leaves twice.
        clear(&app.admin, 4).await;
        let recall = app.admin.search("Heron").await;
        let bundle = app.admin.export(text(&recall, "recall_id")).await;
        let objects = bundle["objects"].as_array().unwrap();
        let ids: HashSet<&str> = objects.iter().map(|object| text(object, "id")).collect();
        assert_eq!(ids.len(), objects.len(), "{bundle}");
        let left = objects
            .iter()
            .find(|object| object["id"] == malware["id"])
            .unwrap();
        assert_eq!(left["description"], "secret");
        app.stop().await;
    });
}

#[test]
fn a_marking_that_arrives_late_still_counts() {
    run(async {
        let app = TestApp::shared().await;
        clear(&app.admin, 4).await;
        let silent = stix::version(&stix::object("tool", "Late Heron"), 2022, json!({}));
        send(&app.admin, std::slice::from_ref(&silent)).await;
        let older = stix::version(&silent, 2021, json!({"x_mitre_tlp": "TLP:RED"}));
        send(&app.admin, &[older]).await;
        let seen = found(&app.admin, "Late Heron").await;
        assert_eq!(
            seen[text(&silent, "id")].0,
            "TLP:RED",
            "the newer version states no marking"
        );

        let stated = stix::version(
            &stix::object("tool", "Early Heron"),
            2022,
            json!({"x_mitre_tlp": "GREEN"}),
        );
        send(&app.admin, std::slice::from_ref(&stated)).await;
        let older = stix::version(&stated, 2021, json!({"x_mitre_tlp": "TLP:RED"}));
        send(&app.admin, &[older]).await;
        let seen = found(&app.admin, "Early Heron").await;
        assert_eq!(
            seen[text(&stated, "id")].0,
            "TLP:GREEN",
            "the newer version states its marking"
        );
        app.stop().await;
    });
}
