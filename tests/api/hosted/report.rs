//! Ingest of structured reports.

use serde_json::{Value, json};

use crate::helpers::{Client, TestApp, run};
use crate::hosted::ways_in::counts;
use crate::stix::{evidence, text};

const SENTENCE: &str = "APT28 uses X-Agent against ministries.";

fn body(blocks: Value) -> Value {
    json!({"title": "Ztitle", "content_blocks": blocks})
}

fn block(name: &str, kind: &str) -> Value {
    json!({"entity_name": name, "node_type": kind})
}

/// The relationships in an export of everything that a query finds.
async fn relationships(client: &Client, query: &str) -> Vec<Value> {
    let session = client.search_with(query, &[]).await;
    let bundle = client.export(text(&session, "recall_id")).await;
    let objects = bundle["objects"].as_array().unwrap().iter();
    objects
        .filter(|object| object["type"] == "relationship")
        .cloned()
        .collect()
}

#[test]
fn all_blocks_are_linked_to_the_one_evidence_of_the_report() {
    run(async {
        let app = TestApp::shared().await;
        let report = json!({"title": " Zreport ", "source_name": "Zlab", "content_blocks": [
            {"entity_name": "zfull", "node_type": "tool", "description": "All.", "tlp": "WHITE", "confidence": 0.9,
             "source_url": "https://lab.example/r", "excerpt": "Said so."},
            block("zbare", "actor"),
        ]});
        let results = app.admin.send_in("report", &report).await;
        assert_eq!(counts(&results), [2, 0, 1]);
        let (full, bare) = (app.admin.one("zfull").await, app.admin.one("zbare").await);
        assert_eq!(full["linked_evidence_ids"], bare["linked_evidence_ids"]);
        assert_eq!(evidence(&full), 1);
        for (node, tlp, confidence) in [(&full, "TLP:WHITE", 0.9), (&bare, "TLP:GREEN", 0.6)] {
            assert_eq!(
                (&node["tlp"], &node["confidence"]),
                (&json!(tlp), &json!(confidence))
            );
            assert_eq!(
                (&node["source"], &node["source_type"]),
                (&json!("Zlab"), &json!("report"))
            );
            assert_eq!(node["properties"]["report"], "Zreport");
        }
        assert_eq!(full["properties"]["source_url"], "https://lab.example/r");
        assert_eq!(full["properties"]["excerpt"], "Said so.");
        assert_eq!(full["description"], "All.");
        // Without a source name, the report itself is the source, and the request's defaults apply.
        let mut plain = body(json!([block("zplain", "tool")]));
        plain["default_tlp"] = json!("TLP:AMBER");
        plain["default_confidence"] = json!(0.2);
        app.admin.send_in("report", &plain).await;
        let node = app.admin.one("zplain").await;
        assert_eq!(
            (&node["source"], &node["tlp"], &node["confidence"]),
            (&json!("Ztitle"), &json!("TLP:AMBER"), &json!(0.2))
        );
        assert_eq!(app.admin.audited("ingest.report").await.len(), 2);
        app.stop().await;
    });
}

#[test]
fn errors_name_the_field() {
    run(async {
        let app = TestApp::shared().await;
        let wrong = |change: Value| {
            let mut wrong = block("znever", "tool");
            for (key, value) in change.as_object().unwrap() {
                wrong[key] = value.clone();
            }
            body(json!([block("znever", "tool"), wrong]))
        };
        let many: Vec<Value> = (0..10_001)
            .map(|n| block(&format!("znever {n}"), "tool"))
            .collect();
        for (body, want) in [
            (
                json!({"content_blocks": [block("znever", "tool")]}),
                "title: is required",
            ),
            (json!({"title": "x"}), "content_blocks: is required"),
            (
                json!({"title": " ", "content_blocks": [block("znever", "tool")]}),
                "title: must have from 1",
            ),
            (json!({"title": 1, "content_blocks": []}), "title: must be"),
            (
                json!({"title": "x", "source_name": 5, "content_blocks": [block("znever", "tool")]}),
                "source_name: must be",
            ),
            (
                json!({"title": "x", "source_name": "\u{0}", "content_blocks": [block("znever", "tool")]}),
                "source_name: must not hold a NUL",
            ),
            (body(json!([])), "content_blocks: must hold from 1 to 10000"),
            (body(json!(many)), "content_blocks: must hold from 1 to 10000"),
            (
                body(json!([{"node_type": "tool"}])),
                "content_blocks[0].entity_name: is required",
            ),
            (
                body(json!([{"entity_name": "znever"}])),
                "content_blocks[0].node_type: is required",
            ),
            (
                wrong(json!({"entity_name": " "})),
                "content_blocks[1].entity_name: must have from 1",
            ),
            (
                wrong(json!({"node_type": "group"})),
                "content_blocks[1].node_type: ",
            ),
            (
                wrong(json!({"description": {}})),
                "content_blocks[1].description: must be",
            ),
            (
                wrong(json!({"excerpt": "\u{0}"})),
                "content_blocks[1].excerpt: must not hold a NUL",
            ),
            (
                wrong(json!({"source_url": 1})),
                "content_blocks[1].source_url: must be",
            ),
            (
                wrong(json!({"tlp": "x"})),
                "content_blocks[1].tlp: must be one of",
            ),
            (
                wrong(json!({"confidence": 1.5})),
                "content_blocks[1].confidence: must be a number from 0 to 1",
            ),
        ] {
            let error = app.admin.refuses("report", &body).await;
            assert!(error.starts_with(want), "{want}: {error}");
        }
        assert!(app.admin.nodes_of("znever").await.is_empty());
        assert!(app.admin.audited("ingest.report").await.is_empty());
        app.stop().await;
    });
}

#[test]
fn the_same_report_is_one_and_a_changed_one_adds_evidence() {
    run(async {
        let app = TestApp::shared().await;
        let first = body(json!([
            block("zone", "tool"),
            block("ztwo", "actor"),
            block("ZONE", "tool")
        ]));
        assert_eq!(counts(&app.admin.send_in("report", &first).await), [2, 0, 1]);
        assert_eq!(counts(&app.admin.send_in("report", &first).await), [0, 0, 0]);
        let changed = body(json!([block("zone", "tool")]));
        assert_eq!(counts(&app.admin.send_in("report", &changed).await), [0, 1, 1]);
        assert_eq!(evidence(&app.admin.one("zone").await), 2);
        assert_eq!(evidence(&app.admin.one("ztwo").await), 1);
        app.stop().await;
    });
}

#[test]
fn a_stated_relation_leaves_as_a_relationship_with_its_sentence() {
    run(async {
        let app = TestApp::shared().await;
        let mut stating = block("Fancy Bear", "actor");
        stating["excerpt"] = json!(format!("It began in May. {SENTENCE} More follows."));
        let results = app
            .admin
            .send_in("report", &body(json!([stating, block("X-Agent", "tool")])))
            .await;
        assert_eq!(results["edges_created"], 1, "{results}");
        let found = relationships(&app.admin, "Fancy Bear X-Agent").await;
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            (&found[0]["relationship_type"], &found[0]["description"]),
            (&json!("uses"), &json!(SENTENCE))
        );
        // A repeated report does not create a second edge.
        let again = app
            .admin
            .send_in("report", &body(json!([stating, block("X-Agent", "tool")])))
            .await;
        assert_eq!(again["edges_created"], 0);
        app.stop().await;
    });
}

#[test]
fn what_merely_stands_together_is_no_relationship() {
    run(async {
        let app = TestApp::shared().await;
        for (n, excerpt) in [
            "APT28 and X-Agent were in the news.",
            "APT28 does not use X-Agent.",
            "APT28 may have used X-Agent.",
            "",
        ]
        .iter()
        .enumerate()
        {
            let client = app.workspace(&format!("w{n}")).await;
            let mut first = block("APT28", "actor");
            first["excerpt"] = json!(excerpt);
            let both = body(json!([first, block("X-Agent", "tool")]));
            let results = client.send_in("report", &both).await;
            assert_eq!(results["edges_created"], 0, "{excerpt}");
            assert!(
                relationships(&client, "APT28 X-Agent").await.is_empty(),
                "{excerpt}"
            );
        }
        app.stop().await;
    });
}

/// The relationship stated by a restricted block is as restricted as the block, whatever the markings of its ends.
#[test]
fn the_relationship_of_a_red_block_stays_hidden() {
    run(async {
        let app = TestApp::shared().await;
        let open = body(json!([block("APT28", "actor"), block("X-Agent", "tool")]));
        app.admin.send_in("report", &open).await;
        let mut red = block("APT28", "actor");
        red["excerpt"] = json!(SENTENCE);
        red["tlp"] = json!("TLP:RED");
        let report = json!({"title": "Zred", "content_blocks": [red, block("X-Agent", "tool")]});
        let results = app.admin.send_in("report", &report).await;
        assert_eq!(results["edges_created"], 1);
        assert!(relationships(&app.admin, "APT28 X-Agent").await.is_empty());
        let tool = app.admin.one("X-Agent").await;
        assert_eq!(
            evidence(&tool),
            1,
            "the report as a whole is RED, so is its evidence"
        );
        app.admin.open().await;
        assert_eq!(relationships(&app.admin, "APT28 X-Agent").await.len(), 1);
        assert_eq!(evidence(&app.admin.one("X-Agent").await), 2);
        app.stop().await;
    });
}

/// Each report is a source of its own, whoever wrote it.
#[test]
fn a_stricter_report_of_the_same_source_leaves_the_node_where_it_is() {
    run(async {
        let app = TestApp::shared().await;
        let report = |title: &str, tlp: &str, said: &str| {
            let mut tool = block("ZetaKit", "tool");
            tool["description"] = json!(said);
            json!({"title": title, "source_name": "Zlab", "default_tlp": tlp, "content_blocks": [tool]})
        };
        app.admin
            .send_in("report", &report("Spring", "GREEN", "A tool."))
            .await;
        let secret = report("Summer", "RED", "A tool of heron.");
        assert_eq!(counts(&app.admin.send_in("report", &secret).await), [0, 1, 1]);
        let node = app.admin.one("ZetaKit").await;
        assert_eq!(
            (&node["tlp"], &node["description"], evidence(&node)),
            (&json!("TLP:GREEN"), &json!("A tool."), 1)
        );
        app.admin.open().await;
        assert_eq!(evidence(&app.admin.one("ZetaKit").await), 2);
        app.admin
            .send_in("report", &report("Spring", "RED", "A tool of heron."))
            .await;
        assert_eq!(app.admin.one("ZetaKit").await["tlp"], "TLP:RED");
        app.stop().await;
    });
}
