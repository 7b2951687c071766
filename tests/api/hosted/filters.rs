//! Filters on the results of a search: node type, source, time of ingest and confidence.

use serde_json::{Value, json};
use test_support::extent;

use crate::helpers::{Client, TestApp, encode, run};
use crate::stix::{object, relationship, text, with};

/// Ways to search: the path, and the mode if it has one.
const WAYS: [(&str, Option<&str>); 3] = [
    ("search", Some("blended")),
    ("search", Some("structured")),
    ("semantic", None),
];

type Given<'a> = &'a [(&'a str, &'a str)];

/// The results in one way of searching, best first.
async fn results(client: &Client, way: (&str, Option<&str>), question: &str, given: Given<'_>) -> Vec<Value> {
    let (path, mode) = way;
    let mut pairs = vec![("q", question), ("limit", "100"), ("min_score", "0")];
    pairs.extend(mode.map(|mode| ("mode", mode)));
    pairs.extend_from_slice(given);
    let path = format!("/api/recall/{path}?{}", encode(&pairs));
    let answer = client.get(&path).await.expect(200).await;
    let results = answer["results"].as_array().unwrap().clone();
    assert_eq!(answer["count"], results.len());
    results
}

async fn names(client: &Client, way: (&str, Option<&str>), question: &str, given: Given<'_>) -> Vec<String> {
    let found = results(client, way, question, given).await;
    found.iter().map(|node| text(node, "name").to_owned()).collect()
}

fn node(kind: &str, name: &str, source: &str, confidence: u32) -> Value {
    let from = json!({"external_references": [{"source_name": source, "description": "Their report."}], "confidence": confidence});
    with(object(kind, name), from)
}

/// A group that no filter of the tests passes, what it uses, and the campaign that leads to it.
async fn world(client: &Client) {
    let heron = node("intrusion-set", "Zinc Heron", "Neither", 5);
    let marshgate = node("malware", "Marshgate", "CERT Alpha", 90);
    let fenlight = node("malware", "Fenlight", "Bravo", 40);
    let dumping = node("attack-pattern", "OS Credential Dumping", "CERT Alpha", 60);
    let reedbed = node("campaign", "Operation Reedbed", "Neither", 5);
    let mut objects = vec![
        relationship(&heron, "uses", &marshgate),
        relationship(&heron, "uses", &fenlight),
        relationship(&heron, "uses", &dumping),
        relationship(&reedbed, "attributed-to", &heron),
    ];
    objects.extend([heron, marshgate, fenlight, dumping, reedbed]);
    client.ingest(json!(objects)).await;
    let later = node("malware", "Sedgelock", "Bravo", 100);
    client.ingest(json!([later])).await;
}

async fn ingested_at(client: &Client, name: &str) -> String {
    let found = results(client, WAYS[0], name, &[]).await;
    text(&found[0], "ingested_at").to_owned()
}

fn passes(node: &Value, (name, value): (&str, &str)) -> bool {
    match name {
        "node_type" => value.split(',').any(|kind| node["node_type"] == kind),
        "source" => text(node, "source").to_lowercase() == value.trim().to_lowercase(),
        // All in UTC and with microseconds.
        "since" => text(node, "ingested_at") >= value,
        "until" => text(node, "ingested_at") <= value,
        "min_confidence" => node["confidence"].as_f64().unwrap() >= value.parse().unwrap(),
        other => panic!("{other}"),
    }
}

#[test]
fn every_filter_holds_in_every_way_of_searching() {
    run(async {
        let app = TestApp::shared().await;
        world(&app.admin).await;
        let later = ingested_at(&app.admin, "Sedgelock").await;
        let earlier = ingested_at(&app.admin, "Marshgate").await;
        let filters: [Given<'_>; 10] = [
            &[("node_type", "tool")],
            &[("node_type", "attck,actor")],
            &[("source", " cert ALPHA ")],
            &[("source", "bravo")],
            &[("since", &later)],
            &[("until", &earlier)],
            &[("min_confidence", "0.9")],
            &[("min_confidence", "1")],
            &[("source", "Bravo"), ("node_type", "tool"), ("since", &later)],
            &[
                ("source", "Bravo"),
                ("min_confidence", "0.4"),
                ("until", &earlier),
            ],
        ];
        for way in WAYS {
            for question in [
                "malware of groups",
                "Marshgate",
                "Zinc Heron malware",
                "techniques used by Zinc Heron",
                "malware of the group behind Operation Reedbed",
                "credential dumping",
            ]
            .into_iter()
            .step_by(extent(3, 1))
            {
                let whole = results(&app.admin, way, question, &[]).await;
                for given in filters {
                    let found = results(&app.admin, way, question, given).await;
                    let fits = |node: &&Value| given.iter().all(|filter| passes(node, *filter));
                    let wrong = found.iter().find(|node| !fits(node));
                    assert_eq!(wrong, None, "{way:?} {question} {given:?}");
                    // Without the others there is no less to be found.
                    for node in whole.iter().filter(fits) {
                        let known = found.iter().any(|other| other["id"] == node["id"]);
                        assert!(known, "{way:?} {question} {given:?} misses {}", node["name"]);
                    }
                    if way.1 != Some("structured") {
                        assert!(!found.is_empty(), "{way:?} {question} {given:?}");
                    }
                }
            }
        }
        app.stop().await;
    });
}

#[test]
fn answers_from_the_graph_are_narrowed_and_what_leads_to_them_is_not() {
    run(async {
        let app = TestApp::shared().await;
        world(&app.admin).await;
        let earlier = ingested_at(&app.admin, "Marshgate").await;
        let alpha: Given<'_> = &[("source", "cert alpha")];
        let bravo: Given<'_> = &[("source", "bravo"), ("until", &earlier)];
        for way in &WAYS[..2] {
            for (question, given, first) in [
                ("Zinc Heron malware", alpha, "Marshgate"),
                ("Zinc Heron malware", bravo, "Fenlight"),
                (
                    "Zinc Heron malware",
                    &[("min_confidence", "0.9"), ("until", &earlier)],
                    "Marshgate",
                ),
                (
                    "What does Zinc Heron use?",
                    &[("node_type", "attck")],
                    "OS Credential Dumping",
                ),
                (
                    "malware of the group behind Operation Reedbed",
                    alpha,
                    "Marshgate",
                ),
                ("malware of the group behind Operation Reedbed", bravo, "Fenlight"),
                ("techniques used by Zinc Heron", alpha, "OS Credential Dumping"),
                // Of the named things, only those that pass are results.
                (
                    "who uses credential dumping",
                    &[("source", "Neither")],
                    "Zinc Heron",
                ),
            ] {
                let found = names(&app.admin, *way, question, given).await;
                assert_eq!(
                    found.first().map(String::as_str),
                    Some(first),
                    "{way:?} {question} {given:?}"
                );
                let named = found.iter().any(|name| name == "Zinc Heron" && first != name);
                assert!(!named, "{way:?} {question} {given:?}");
            }
        }
        // What the question asks for and the filter excludes is no answer.
        let found = names(&app.admin, WAYS[1], "Zinc Heron malware", &[("node_type", "cve")]).await;
        assert_eq!(found, [""; 0]);
        app.stop().await;
    });
}

#[test]
fn an_exact_name_is_a_result_only_if_it_passes() {
    run(async {
        let app = TestApp::shared().await;
        let bear = node("intrusion-set", "APT28", "CERT Alpha", 50);
        let other = node("intrusion-set", "Quiet Otter", "Bravo", 50);
        app.admin.ingest(json!([bear, other])).await;
        for way in &WAYS[..2] {
            // Nobody recorded the second name; it is well known.
            for name in ["apt 28", "Fancy Bear"] {
                if way.1 == Some("structured") && name == "Fancy Bear" {
                    continue;
                }
                let found = names(&app.admin, *way, name, &[("source", "cert alpha")]).await;
                assert_eq!(found.first().map(String::as_str), Some("APT28"), "{way:?} {name}");
                let found = names(&app.admin, *way, name, &[("source", "bravo")]).await;
                assert!(!found.contains(&"APT28".to_owned()), "{way:?} {name}: {found:?}");
            }
        }
        app.stop().await;
    });
}

/// Tools of one group, and three of them that differ from the others.
fn crowd_size() -> (usize, [usize; 3]) {
    let size = extent(300, 5_600);
    (size, [17, size / 2, size - 1])
}

/// Many tools of one group, of which three differ; hidden ones that pass as well.
fn crowd() -> Vec<Value> {
    let group = object("intrusion-set", "Sandworm Team");
    let mut objects = vec![group.clone()];
    let (size, rare) = crowd_size();
    for n in 0..size {
        let (source, confidence) = match rare.contains(&n) {
            true => ("Rare Desk", 95),
            false => ("Bravo", 50),
        };
        let mut tool = node("tool", &format!("Heronkit {n:04}"), source, confidence);
        if n % 50 == 3 {
            let rare = json!({"external_references": [{"source_name": "Rare Desk", "description": "Their report."}], "confidence": 95, "labels": ["tlp:red"]});
            tool = with(tool, rare);
        }
        tool["description"] = json!("A kit that herons use.");
        objects.push(relationship(&group, "uses", &tool));
        objects.push(tool);
    }
    objects
}

#[test]
fn the_few_that_pass_are_found_among_thousands_in_one_workspace_alone() {
    run(async {
        let app = TestApp::spawn().await;
        app.admin.ingest(json!(crowd())).await;
        let elsewhere = app.workspace("elsewhere").await;
        let foreign = node("tool", "Heronkit foreign", "Rare Desk", 95);
        elsewhere.ingest(json!([foreign])).await;
        let rare = crowd_size().1.map(|n| format!("Heronkit {n:04}"));
        for given in [("source", "rare desk"), ("min_confidence", "0.9")] {
            for way in WAYS {
                for question in ["tools used by Sandworm Team", "a kit that herons use", "Heronkit"] {
                    let mut found = names(&app.admin, way, question, &[given, ("node_type", "tool")]).await;
                    found.sort_unstable();
                    assert_eq!(found, rare, "{given:?} {way:?} {question}");
                    let found = names(&elsewhere, way, question, &[given]).await;
                    let is_ours = |name: &String| name != "Heronkit foreign";
                    assert!(
                        !found.iter().any(is_ours),
                        "{given:?} {way:?} {question}: {found:?}"
                    );
                    assert!(
                        way.1 == Some("structured") || found.len() == 1,
                        "{given:?} {way:?} {question}"
                    );
                }
            }
        }
        app.stop().await;
    });
}

#[test]
fn a_bad_filter_is_refused_by_name_and_rule() {
    run(async {
        let app = TestApp::shared().await;
        let long = "x".repeat(501);
        let types = "node_type: each must be one of actor, cve, ioc, attck, osint, tool, vulnerability";
        let length = "source: must have from 1 to 500 characters";
        let time = "must be a date such as 2024-03-01 or an RFC 3339 date-time";
        let (since, until) = (format!("since: {time}"), format!("until: {time}"));
        let number = "min_confidence: must be a number from 0 to 1";
        let crossed = &[
            ("since", "2024-03-02T00:00:01Z"),
            ("until", "2024-03-02T00:00:00Z"),
        ];
        let cases: [(Given<'_>, &str); 17] = [
            (&[("node_type", "malware")], types),
            (&[("node_type", "tool,")], types),
            (&[("node_type", "")], types),
            (
                &[("source", "one"), ("source", "two")],
                "source: must be given once",
            ),
            (&[("source", "")], length),
            (&[("source", "  ")], length),
            (&[("source", &long)], length),
            (&[("source", "a\0b")], "source: must not hold a NUL character"),
            (&[("since", "yesterday")], &since),
            (&[("since", "2024-13-01")], &since),
            (&[("since", "")], &since),
            (&[("until", "2024-03-01T10:00:00")], &until),
            (&[("until", "1709251200")], &until),
            (&[("min_confidence", "1.01")], number),
            (&[("min_confidence", "-0.1")], number),
            (&[("min_confidence", "NaN")], number),
            (crossed, "since: must not be after until"),
        ];
        for path in ["search", "semantic"] {
            for (given, error) in cases {
                let mut pairs = vec![("q", "heron")];
                pairs.extend_from_slice(given);
                let path = format!("/api/recall/{path}?{}", encode(&pairs));
                let answer = app.admin.get(&path).await;
                assert_eq!(answer.refused(400).await, error, "{given:?}");
            }
        }
        app.stop().await;
    });
}

#[test]
fn the_session_holds_what_was_found_and_the_log_what_was_asked() {
    run(async {
        let app = TestApp::shared().await;
        world(&app.admin).await;
        let given = [
            ("node_type", "tool,attck"),
            ("source", " CERT Alpha"),
            ("since", "2020-01-01"),
            ("min_confidence", "0.6"),
        ];
        let found = app.admin.search_with("malware of groups", &given).await;
        let ids: Vec<&Value> = found["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|node| &node["id"])
            .collect();
        assert_eq!(ids.len(), 2, "{found}");
        let recall_id = text(&found, "recall_id");
        let session = app.admin.get(&format!("/api/recall/sessions/{recall_id}")).await;
        assert_eq!(session.expect(200).await["node_ids"], json!(ids));
        results(&app.admin, WAYS[2], "malware of groups", &given).await;
        for action in ["recall.search", "recall.semantic"] {
            let entries = app.admin.audited(action).await;
            let metadata = &entries[0]["metadata"];
            assert_eq!(metadata["node_type"], json!(["tool", "attck"]), "{action}");
            assert_eq!(metadata["source"], "CERT Alpha", "{action}");
            assert_eq!(metadata["since"], "2020-01-01T00:00:00Z", "{action}");
            assert_eq!(metadata["min_confidence"], json!(0.6), "{action}");
            assert_eq!(metadata.get("until"), None, "{action}");
        }
        app.stop().await;
    });
}

#[test]
fn filters_hold_after_a_restart_and_in_a_rebuilt_index() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let app = TestApp::durable(dir.path()).await;
        world(&app.admin).await;
        // An item that two sources report keeps the time and the source of the first.
        let item =
            |collector: &str| json!({"collector": collector, "items": [{"title": "Reed warbler seen"}]});
        for collector in ["First Desk", "Second Desk"] {
            let path = "/api/ingest/osint";
            app.admin.post(path, &item(collector)).await.expect(201).await;
        }
        let time = ingested_at(&app.admin, "Sedgelock").await;
        let ask = async |client: &Client| {
            let mut found = Vec::new();
            for way in WAYS {
                for given in [
                    [("since", time.as_str()), ("until", &time)],
                    [("since", "2020-01-01"), ("source", "first desk")],
                    [("since", "2020-01-01"), ("source", "second desk")],
                    [("source", "CERT Alpha"), ("min_confidence", "0.9")],
                    [("source", "Bravo"), ("node_type", "tool")],
                ] {
                    found.push(names(client, way, "reed warbler malware", &given).await);
                }
            }
            found
        };
        let before = ask(&app.admin).await;
        assert_eq!(before[0], ["Sedgelock"]);
        assert_eq!(before[1], ["Reed warbler seen"]);
        assert_eq!(before[2], [""; 0]);
        assert_eq!(before[3], ["Marshgate"]);
        app.stop().await;
        let app = TestApp::durable(dir.path()).await;
        assert_eq!(ask(&app.admin).await, before, "after a restart");
        app.stop().await;
        std::fs::remove_dir_all(dir.path().join("index")).unwrap();
        let app = TestApp::durable(dir.path()).await;
        assert_eq!(ask(&app.admin).await, before, "in a rebuilt index");
        app.stop().await;
    });
}
