//! Versions of STIX objects: what stands above the sender is neither seen, lowered nor replaced by what is sent.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use crate::helpers::{Client, TestApp, encode, run};
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

/// The level and text of each object that a search finds, by STIX id. None is found twice.
async fn found(client: &Client, query: &str) -> HashMap<String, (String, String)> {
    let answer = client.search_with(query, &[]).await;
    let mut found = HashMap::new();
    let results = answer["results"].as_array().unwrap();
    for node in results {
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
        // Silence keeps the stricter of both markings, and says so where they differ.
        let differs = case.year > STORED && sent.is_none() && stored <= clearance && stored != DEFAULT;
        let warned = warnings.contains(text(&case.sent, "id"));
        assert_eq!(warned, differs, "up to {clearance}, {}: {warnings}", case.name);
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

/// Two versions of an object: one that is marked RED, with this text, and one that a sender up to AMBER sent later with
/// this marking. Their texts and confidence differ.
async fn two_versions(client: &Client, later: &str) -> Value {
    let object = stix::object("malware", "Sandglass");
    let version = |year, text: &str, confidence, level: &str| {
        let changes = json!({"description": text, "confidence": confidence, "x_mitre_tlp": level});
        stix::version(&object, year, changes)
    };
    clear(client, 4).await;
    send(client, &[version(2021, "An obsidian lantern.", 20, "TLP:RED")]).await;
    clear(client, 2).await;
    send(client, &[version(2022, "A turquoise harbour.", 90, later)]).await;
    clear(client, 4).await;
    object
}

#[test]
fn a_search_that_finds_another_version_shows_the_one_that_stands() {
    run(async {
        let app = TestApp::shared().await;
        for (later, stands, other) in [
            ("TLP:GREEN", "obsidian lantern", "turquoise harbour"),
            ("TLP:RED", "turquoise harbour", "obsidian lantern"),
        ] {
            let client = app.workspace(later).await;
            let object = two_versions(&client, later).await;
            for words in [stands, other] {
                let question = encode(&[("q", words), ("explain", "true")]);
                let found = client.get(&format!("/api/recall/search?{question}")).await;
                let found = found.expect(200).await;
                let results = found["results"].as_array().unwrap();
                assert_eq!(results.len(), 1, "{later} {words}: {found}");
                assert_eq!(results[0]["properties"]["stix_id"], object["id"]);
                assert!(
                    text(&results[0], "description").contains(stands),
                    "{later} {words}: {found}"
                );
                // What was found says why.
                let shares = &results[0]["why"]["shares"];
                assert!(
                    shares["words"].as_f64().unwrap() > 0.0,
                    "{later} {words}: {found}"
                );
                let bundle = client.export(text(&found, "recall_id")).await;
                let objects = bundle["objects"].as_array().unwrap();
                let left: Vec<&Value> = objects.iter().filter(|left| left["id"] == object["id"]).collect();
                assert_eq!(left.len(), 1, "{bundle}");
                assert!(text(left[0], "description").contains(stands), "{bundle}");
            }
        }
        app.stop().await;
    });
}

#[test]
fn a_version_that_stands_and_is_filtered_out_leaves_no_other_one_in_its_place() {
    run(async {
        let app = TestApp::shared().await;
        let client = app.workspace("filters").await;
        let object = two_versions(&client, "TLP:GREEN").await;
        let count = |more: &'static [(&'static str, &'static str)]| async {
            let found = client.search_with("turquoise harbour", more).await;
            found["results"].as_array().unwrap().len()
        };
        assert_eq!(count(&[]).await, 1);
        assert_eq!(count(&[("min_confidence", "0.5")]).await, 0);
        assert_eq!(count(&[("min_confidence", "0.1")]).await, 1);

        let revoked = json!({"revoked": true, "x_mitre_tlp": "TLP:RED"});
        send(&client, &[stix::version(&object, 2023, revoked)]).await;
        assert_eq!(count(&[]).await, 0, "the version that stands is revoked");
        assert_eq!(count(&[("include_rejected", "true")]).await, 1);
        clear(&client, 2).await;
        assert_eq!(count(&[]).await, 1, "below, the other version is the only one");
        app.stop().await;
    });
}

/// Sends the same bundles, each at a clearance, to a workspace with a hidden version of the object and to one without it.
async fn assert_same_answers(name: &str, steps: &[(usize, Vec<Value>)], hidden: &Value) {
    let app = TestApp::shared().await;
    let (with, without) = (app.workspace("with").await, app.workspace("without").await);
    clear(&with, 4).await;
    send(&with, std::slice::from_ref(hidden)).await;
    for (at, (clearance, objects)) in steps.iter().enumerate() {
        let mut answers = Vec::new();
        for client in [&with, &without] {
            clear(client, *clearance).await;
            let results = send(client, objects).await;
            answers.push((results, found(client, name).await));
        }
        assert_eq!(answers[0], answers[1], "step {at} of {name}");
    }
    app.stop().await;
}

#[test]
fn a_row_beside_a_hidden_one_is_the_object_for_whoever_sees_it() {
    run(async {
        let object = stix::object("malware", "Bittern");
        let version = |year: u32, level: usize| {
            stix::version(
                &object,
                year,
                json!({"description": format!("of {year}"), "x_mitre_tlp": LEVELS[level]}),
            )
        };
        let other = stix::object("tool", "Bittern kit");
        let tie = |year: u32| {
            let tie = stix::relationship(&other, "targets", &object);
            stix::version(&tie, year, json!({"x_mitre_tlp": LEVELS[0]}))
        };
        let hidden = version(STORED, 4);
        // The clearance falls below that of the sender.
        let steps = [
            (2, vec![version(2023, 0), other.clone()]),
            (1, vec![version(2023, 0)]),
            (1, vec![tie(2023)]),
            (1, vec![version(2024, 0)]),
            (2, vec![version(2024, 0)]),
            (0, vec![version(2025, 0)]),
        ];
        assert_same_answers("Bittern", &steps, &hidden).await;
        // A row beside rises above its sender, and a further one takes its place.
        let steps = [
            (2, vec![version(2022, 1), other.clone()]),
            (2, vec![version(2023, 4)]),
            (2, vec![version(2024, 1)]),
            (2, vec![tie(2024)]),
            (2, vec![version(2024, 1)]),
            (2, vec![version(2025, 4)]),
            (2, vec![version(2026, 1)]),
        ];
        assert_same_answers("Bittern", &steps, &hidden).await;
    });
}

#[test]
fn a_relationship_of_two_versions_is_listed_once() {
    run(async {
        let app = TestApp::shared().await;
        let client = &app.admin;
        let (group, kit) = (
            stix::object("malware", "Dipper"),
            stix::object("tool", "Dipper kit"),
        );
        let tie = stix::relationship(&group, "uses", &kit);
        let version = |year: u32, level: usize, confidence: u32| {
            let change = json!({"x_mitre_tlp": LEVELS[level], "confidence": confidence});
            stix::version(&tie, year, change)
        };
        let listed = async |name: &str| {
            let answer = client.search_with(name, &[]).await;
            let results = answer["results"].as_array().unwrap();
            let node = results.iter().find(|node| node["name"] == name).unwrap();
            let detail = client
                .get(&format!("/api/nodes/{}", text(node, "id")))
                .await
                .expect(200)
                .await;
            let list = detail["relationships"].as_array().unwrap().clone();
            let list = list.iter().map(|tie| tie["confidence"].as_f64().unwrap());
            list.collect::<Vec<_>>()
        };
        clear(client, 4).await;
        send(client, &[group.clone(), kit.clone(), version(2021, 4, 90)]).await;
        // Who can't see the first version states another one, which is kept beside it.
        clear(client, 2).await;
        assert!(listed("Dipper kit").await.is_empty());
        send(client, &[version(2024, 0, 40)]).await;
        assert_eq!(listed("Dipper kit").await, [0.4]);
        clear(client, 4).await;
        for name in ["Dipper", "Dipper kit"] {
            assert_eq!(listed(name).await, [0.9], "{name}");
        }
        app.stop().await;
    });
}

#[test]
fn nobody_is_put_back_to_an_older_version() {
    run(async {
        let app = TestApp::shared().await;
        let client = &app.admin;
        let group = stix::object("malware", "Curlew");
        let version = |year: u32| {
            let change = json!({"description": format!("of {year}"), "x_mitre_tlp": LEVELS[4]});
            stix::version(&group, year, change)
        };
        let seen = async || found(client, "Curlew").await[text(&group, "id")].1.clone();
        clear(client, 4).await;
        send(client, &[version(2021)]).await;
        // Who can't see the first version states a newer one that is marked no lower, so it is kept beside.
        clear(client, 2).await;
        send(client, &[version(2024)]).await;
        clear(client, 4).await;
        assert_eq!(seen().await, "of 2024");
        for (year, updated, want) in [
            (2023, 0, "of 2024"),
            (2024, 0, "of 2024"),
            (2021, 0, "of 2024"),
            (2025, 1, "of 2025"),
            (2024, 0, "of 2025"),
        ] {
            let results = send(client, &[version(year)]).await;
            assert_eq!(results["nodes_updated"], updated, "{year}: {results}");
            assert_eq!(seen().await, want, "after {year}");
        }
        // Below, nothing of it shows.
        clear(client, 2).await;
        assert!(!found(client, "Curlew").await.contains_key(text(&group, "id")));
        app.stop().await;
    });
}
