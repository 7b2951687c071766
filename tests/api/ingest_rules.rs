//! What an ingest does to what is there already.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use crate::helpers::{Client, TestApp, encode, run};
use crate::stix::{id, names, object, relationship, statement, text, with, without};

/// `object` as it was modified in this year.
fn version(object: &Value, year: u32, changes: Value) -> Value {
    let time = format!("{year}-01-01T00:00:00.000Z");
    with(with(object.clone(), json!({"modified": time})), changes)
}

fn evidence(node: &Value) -> usize {
    node["linked_evidence_ids"].as_array().unwrap().len()
}

#[test]
fn a_newer_version_updates_the_node_and_an_older_one_is_skipped() {
    run(async {
        let app = TestApp::spawn().await;
        let base = object("intrusion-set", "Copper Jay");
        let stix_id = text(&base, "id");
        app.admin.ingest(json!([version(&base, 2021, json!({}))])).await;
        let first = app.admin.node("Copper Jay", stix_id).await.unwrap();
        assert_eq!((text(&first, "tlp"), text(&first, "status"), evidence(&first)), ("TLP:GREEN", "active", 1));

        let newer = version(&base, 2022, json!({"name": "Bronze Jay", "labels": ["tlp:amber"], "confidence": 20}));
        let results = app.admin.ingest(json!([newer])).await;
        assert_eq!((&results["nodes_created"], &results["nodes_updated"]), (&json!(0), &json!(1)));
        let second = app.admin.node("Bronze Jay", stix_id).await.unwrap();
        assert_eq!(second["id"], first["id"]);
        assert_eq!((text(&second, "name"), text(&second, "tlp")), ("Bronze Jay", "TLP:AMBER"));
        assert_eq!((second["confidence"].as_f64(), evidence(&second)), (Some(0.2), 2));
        let kept = &second["linked_evidence_ids"].as_array().unwrap()[0];
        assert_eq!(kept, &first["linked_evidence_ids"][0], "earlier evidence stays linked");

        for (year, name) in [(2022, "Same Jay"), (2021, "Older Jay"), (2020, "Oldest Jay")] {
            let results = app.admin.ingest(json!([version(&base, year, json!({"name": name}))])).await;
            assert_eq!((&results["nodes_updated"], &results["skipped"]), (&json!(0), &json!(1)), "{name}");
            assert_eq!(
                results["skipped_by_type"]["intrusion-set"]["reasons"],
                json!({"not newer than the stored version": 1})
            );
            let now = app.admin.node("Bronze Jay", stix_id).await.unwrap();
            assert_eq!(now, second, "{name}");
        }
        app.stop().await;
    });
}

#[test]
fn a_revoked_object_leaves_search_and_export_and_comes_back_when_it_is_not_revoked_any_more() {
    run(async {
        let app = TestApp::spawn().await;
        let base = object("campaign", "Operation Winter Gate");
        let stix_id = text(&base, "id");
        app.admin.ingest(json!([base])).await;
        let session = app.admin.search("Winter Gate").await;

        app.admin.ingest(json!([version(&base, 2021, json!({"revoked": true}))])).await;
        assert_eq!(app.admin.search("Winter Gate").await["count"], 0);
        assert_eq!(app.admin.node("Winter Gate", stix_id).await.unwrap()["status"], "rejected");
        let path = format!("/api/recall/sessions/{}/export.stix", text(&session, "recall_id"));
        let answer = app.admin.get(&path).await;
        let status = answer.0.status().as_u16();
        let bundle = answer.expect(status).await;
        assert!(!bundle.to_string().contains("Winter Gate"), "{status} {bundle}");

        app.admin.ingest(json!([version(&base, 2022, json!({"revoked": false}))])).await;
        let node = app.admin.node("Winter Gate", stix_id).await.unwrap();
        assert_eq!((text(&node, "status"), evidence(&node)), ("active", 3));
        assert_eq!(app.admin.search("Winter Gate").await["count"], 1);
        app.stop().await;
    });
}

#[test]
fn an_update_to_a_level_above_the_ceiling_hides_the_node_everywhere() {
    run(async {
        let app = TestApp::spawn().await;
        let base = object("campaign", "Operation Summer Gate");
        app.admin.ingest(json!([base])).await;
        let session = app.admin.search("Summer Gate").await;
        app.admin.ingest(json!([version(&base, 2021, json!({"x_mitre_tlp": "RED"}))])).await;
        for mode in ["blended", "structured"] {
            let found = app.admin.search_with("Summer Gate", &[("mode", mode), ("include_rejected", "true")]).await;
            assert_eq!((&found["count"], text(&found, "max_tlp")), (&json!(0), "TLP:WHITE"));
        }
        let path = format!("/api/recall/sessions/{}/export.stix", text(&session, "recall_id"));
        let answer = app.admin.get(&path).await;
        let status = answer.0.status().as_u16();
        assert!(!answer.expect(status).await.to_string().contains("Summer Gate"));
        app.stop().await;
    });
}

#[test]
fn relationships_need_both_ends_and_may_arrive_later_than_they() {
    run(async {
        let app = TestApp::spawn().await;
        let (actor, tool) = (object("threat-actor", "Slate Crow"), object("tool", "Slate Hook"));
        let uses = relationship(&actor, "uses", &tool);
        let results = app.admin.ingest(json!([actor, uses])).await;
        assert_eq!((&results["nodes_created"], &results["edges_created"]), (&json!(1), &json!(0)));
        assert_eq!(
            results["skipped_by_type"]["relationship"]["reasons"],
            json!({"an end of the relationship is not in the workspace": 1})
        );
        let results = app.admin.ingest(json!([tool])).await;
        assert_eq!(results["edges_created"], 0);
        let results = app.admin.ingest(json!([uses])).await;
        assert_eq!((&results["edges_created"], &results["skipped"]), (&json!(1), &json!(0)));
        let objects = [actor.clone(), tool.clone(), uses.clone()];
        assert!(app.admin.export_of("Slate", &objects).await.contains_key(text(&uses, "id")));

        let identity = with(object("identity", "Slate Works"), json!({"identity_class": "organization"}));
        let odd = relationship(&actor, "targets", &identity);
        let results = app.admin.ingest(json!([odd])).await;
        assert_eq!(
            results["skipped_by_type"]["relationship"]["reasons"],
            json!({"target_ref: identity objects are not nodes": 1})
        );
        for (broken, reason) in [
            (without(uses.clone(), "target_ref"), "target_ref"),
            (with(uses.clone(), json!({"source_ref": "tool--x"})), "source_ref"),
            (without(uses.clone(), "relationship_type"), "relationship_type"),
        ] {
            let results = app.admin.ingest(json!([with(broken, json!({"id": id("relationship")}))])).await;
            assert!(text(&results["skipped_objects"][0], "reason").contains(reason), "{results}");
        }
        app.stop().await;
    });
}

#[test]
fn a_newer_relationship_replaces_the_edge_even_with_other_ends() {
    run(async {
        let app = TestApp::spawn().await;
        let (actor, one, two) =
            (object("threat-actor", "Umber Crow"), object("tool", "Umber Hook"), object("tool", "Umber Nail"));
        let edge = relationship(&actor, "uses", &one);
        app.admin.ingest(json!([actor, one, two, edge])).await;
        let moved = version(&edge, 2021, json!({"target_ref": two["id"], "description": "moved"}));
        let results = app.admin.ingest(json!([moved])).await;
        assert_eq!((&results["edges_created"], &results["edges_updated"]), (&json!(0), &json!(1)), "{results}");
        let objects = [actor.clone(), one, two, moved.clone()];
        assert!(app.admin.export_of("Umber", &objects).await.contains_key(text(&edge, "id")));
        let results = app.admin.ingest(json!([edge, moved])).await;
        assert_eq!((&results["edges_updated"], &results["skipped"]), (&json!(0), &json!(2)));
        let revoked = version(&moved, 2022, json!({"revoked": true}));
        app.admin.ingest(json!([revoked])).await;
        assert!(!app.admin.export_of("Umber", &objects).await.contains_key(text(&edge, "id")));
        app.stop().await;
    });
}

#[test]
fn the_level_comes_from_the_object_then_its_labels_then_its_markings_then_the_default() {
    run(async {
        let app = TestApp::spawn().await;
        let all = json!({"tlp_ceiling": "TLP:RED", "elevated_clearance": true, "red_export_grant": true});
        app.admin.patch("/api/admin/workspace", &all).await.expect(200).await;
        let (green, red) = (
            "marking-definition--34098fce-860f-48ae-8e50-ebd3cc5e41da",
            "marking-definition--5e57c739-391a-4eb3-b6be-7d15ca92d5ed",
        );
        let own = with(
            statement("x"),
            json!({"definition_type": "tlp", "definition": {"tlp": "red"}, "name": "house rule"}),
        );
        let says_nothing = statement("no level");
        let granular = json!([{"marking_ref": red, "selectors": ["name"]}]);
        for (changes, default, want) in [
            (json!({}), "TLP:AMBER", "TLP:AMBER"),
            (json!({}), "clear", "TLP:WHITE"),
            (json!({}), "tlp:amber+strict", "TLP:AMBER+PK"),
            (json!({"object_marking_refs": [green]}), "TLP:RED", "TLP:GREEN"),
            (json!({"object_marking_refs": [green, red]}), "TLP:WHITE", "TLP:RED"),
            (json!({"object_marking_refs": [green], "granular_markings": granular}), "TLP:WHITE", "TLP:RED"),
            (json!({"object_marking_refs": [says_nothing["id"]]}), "TLP:AMBER", "TLP:AMBER"),
            (json!({"object_marking_refs": [own["id"]]}), "TLP:WHITE", "TLP:RED"),
            (json!({"labels": ["TLP:Green", "tlp:amber", "other"], "object_marking_refs": [red]}), "TLP:WHITE", "TLP:AMBER"),
            (json!({"x_mitre_tlp": "white", "labels": ["tlp:red"]}), "TLP:AMBER", "TLP:WHITE"),
        ] {
            let tool = with(object("tool", "Level Gauge"), changes.clone());
            let body = json!({"bundle": [own, says_nothing, tool], "default_tlp": default});
            app.admin.post("/api/ingest/stix", &body).await.expect(201).await;
            match app.admin.node("Level Gauge", text(&tool, "id")).await {
                Some(node) => assert_eq!(text(&node, "tlp"), want, "{changes}"),
                // A TLP definition of one's own is no valid STIX marking; the object must not be weaker for it.
                None => assert_eq!(changes["object_marking_refs"][0], own["id"], "{changes}"),
            }
        }
        app.stop().await;
    });
}

#[test]
fn confidence_is_read_as_percent_and_defaults_apply_without_it() {
    run(async {
        let app = TestApp::spawn().await;
        let mut sent = Vec::new();
        for (changes, default, want) in [
            (json!({"confidence": 0}), json!(0.9), 0.0),
            (json!({"confidence": 42}), json!(0.9), 0.42),
            (json!({"confidence": 100}), json!(0.1), 1.0),
            (json!({}), json!(0.25), 0.25),
            (json!({}), json!(0), 0.0),
            (json!({}), Value::Null, 0.7),
        ] {
            let tool = with(object("tool", "Sure Scale"), changes);
            let body = json!({"bundle": [tool], "default_confidence": default});
            app.admin.post("/api/ingest/stix", &body).await.expect(201).await;
            let node = app.admin.node("Sure Scale", text(&tool, "id")).await.unwrap();
            assert!((node["confidence"].as_f64().unwrap() - want).abs() < 1e-9, "{node}");
            sent.push(tool.clone());
            let exported = app.admin.export_of("Sure Scale", &sent).await;
            let percent = (want * 100.0).round() as u64;
            assert_eq!(exported[text(&tool, "id")]["confidence"], json!(percent));
        }
        app.stop().await;
    });
}

#[test]
fn every_type_becomes_its_node_type_with_evidence_of_its_own() {
    run(async {
        let app = TestApp::spawn().await;
        let cve = json!([{"source_name": "cve", "external_id": "CVE-2024-3094"}]);
        let cases = [
            (object("threat-actor", "Type Probe a"), "actor"),
            (object("intrusion-set", "Type Probe b"), "actor"),
            (object("campaign", "Type Probe c"), "actor"),
            (object("malware", "Type Probe d"), "tool"),
            (object("tool", "Type Probe e"), "tool"),
            (object("attack-pattern", "Type Probe f"), "attck"),
            (object("course-of-action", "Type Probe g"), "attck"),
            (object("indicator", "Type Probe h"), "ioc"),
            (object("vulnerability", "Type Probe i"), "vulnerability"),
            (with(object("vulnerability", "Type Probe j"), json!({"external_references": cve})), "cve"),
            (object("vulnerability", "CVE-2021-44228"), "cve"),
        ];
        let sent: Vec<&Value> = cases.iter().map(|(object, _)| object).collect();
        let results = app.admin.ingest(json!(sent)).await;
        assert_eq!((&results["nodes_created"], &results["evidence_created"]), (&json!(11), &json!(11)));
        let mut seen = BTreeSet::new();
        for (object, node_type) in &cases {
            let node = app.admin.node(text(object, "name"), text(object, "id")).await.unwrap();
            assert_eq!(text(&node, "node_type"), *node_type, "{}", object["name"]);
            assert_eq!(evidence(&node), 1);
            assert_eq!(text(&node, "source_type"), "stix");
            assert!(seen.insert(node["linked_evidence_ids"][0].to_string()), "evidence is shared");
        }
        app.stop().await;
    });
}

#[test]
fn concurrent_ingests_of_overlapping_bundles_end_as_if_one_came_after_the_other() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let app = TestApp::durable(dir.path()).await;
        let tools: Vec<Value> = (0..30).map(|i| object("tool", &format!("Shared{i:02}"))).collect();
        let edges: Vec<Value> = tools.windows(2).map(|pair| relationship(&pair[0], "uses", &pair[1])).collect();
        let mut tasks = Vec::new();
        for task in 0..8u32 {
            let (client, tools, edges) = (app.admin.clone(), tools.clone(), edges.clone());
            tasks.push(tokio::spawn(async move {
                let mut totals = [0u64; 4];
                for round in 0..3 {
                    let year = 2021 + round * 8 + task;
                    // Half of the tools, another half each time, in another order.
                    let half = tools.iter().enumerate().filter(|(i, _)| (i + task as usize + round as usize) % 2 == 0);
                    let mut objects: Vec<Value> = half
                        .map(|(i, tool)| version(tool, year, json!({"name": format!("Shared{i:02} of {year}")})))
                        .collect();
                    objects.extend(edges.iter().map(|edge| version(edge, year, json!({}))));
                    if task % 2 == 0 {
                        objects.reverse();
                    }
                    let results = client.ingest(json!(objects)).await;
                    for (total, key) in totals.iter_mut().zip(["nodes_created", "nodes_updated", "evidence_created", "edges_created"]) {
                        *total += results[key].as_u64().unwrap();
                    }
                }
                totals
            }));
        }
        let mut totals = [0u64; 4];
        for task in tasks {
            totals.iter_mut().zip(task.await.unwrap()).for_each(|(total, more)| *total += more);
        }
        assert_eq!((totals[0], totals[3]), (30, 29), "created once each: {totals:?}");
        assert_eq!(totals[2], totals[0] + totals[1]);
        let mut linked = 0;
        for (i, tool) in tools.iter().enumerate() {
            let last = (2021..2045).filter(|year| (i as u32 + (year - 2021) % 8 + (year - 2021) / 8) % 2 == 0).max().unwrap();
            let node = app.admin.node(&format!("Shared{i:02}"), text(tool, "id")).await.unwrap();
            assert_eq!(text(&node, "name"), format!("Shared{i:02} of {last}"));
            linked += evidence(&node) as u64;
        }
        assert_eq!(linked, totals[2], "every version that was taken left its evidence");
        let chain = app.admin.get("/api/audit/verify").await.expect(200).await;
        assert_eq!((&chain["valid"], &chain["unchained"]), (&json!(true), &json!(0)), "{chain}");
        app.stop().await;
    });
}

/// One object of a random bundle: which of a few ids, which version, what it says.
#[derive(Debug, Clone)]
struct Draft {
    slot: usize,
    year: u32,
    level: usize,
    revoked: bool,
}

const LEVELS: [&str; 3] = ["TLP:WHITE", "TLP:GREEN", "TLP:AMBER"];

fn draft() -> impl Strategy<Value = Draft> {
    (0..4usize, 2021..2025u32, 0..3usize, any::<bool>()).prop_map(|(slot, year, level, revoked)| Draft {
        slot,
        year,
        level,
        revoked,
    })
}

/// The objects of drafts; what a version says depends on its slot and year alone, as with an honest sender.
fn bundle_of(drafts: &[Draft], word: &str, ids: &[String]) -> Vec<Value> {
    let honest = |draft: &Draft| drafts.iter().find(|d| (d.slot, d.year) == (draft.slot, draft.year)).cloned().unwrap();
    drafts
        .iter()
        .map(honest)
        .map(|Draft { slot, year, level, revoked }| {
            let name = format!("{word} slot {slot} year {year}");
            let base = with(object("tool", &name), json!({"id": ids[slot], "labels": [LEVELS[level]]}));
            version(&base, year, json!({"revoked": revoked}))
        })
        .collect()
}

/// What the workspace holds of a bundle, without ids and times.
async fn stored(client: &Client, word: &str) -> BTreeSet<String> {
    let pairs = [("q", word), ("limit", "100"), ("include_rejected", "true")];
    let found = client.get(&format!("/api/recall/search?{}", encode(&pairs))).await.expect(200).await;
    let results = found["results"].as_array().unwrap();
    let ours = results.iter().filter(|node| text(node, "name").starts_with(word));
    ours.map(|node| {
        let name = text(node, "name").trim_start_matches(word);
        format!("{name} {} {} {}", node["tlp"], node["status"], evidence(node))
    })
    .collect()
}

#[test]
fn a_bundle_twice_is_a_bundle_once_and_order_does_not_matter() {
    run(async {
        let app = TestApp::spawn().await;
        let mut client = app.admin.clone();
        let checked = tokio::task::spawn_blocking(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            // Connections belong to the runtime that opened them.
            client.http = reqwest::Client::builder().no_proxy().build().unwrap();
            let drafts = proptest::collection::vec(draft(), 1..7);
            let shuffled = drafts.prop_flat_map(|drafts| (Just(drafts.clone()), Just(drafts).prop_shuffle()));
            let mut runner = TestRunner::new(Config { cases: 24, failure_persistence: None, ..Config::default() });
            runner.run(&shuffled, |(drafts, shuffled)| {
                runtime.block_on(twice_and_shuffled(&client, &drafts, &shuffled));
                Ok(())
            })
        });
        checked.await.unwrap().unwrap();
        app.stop().await;
    });
}

async fn twice_and_shuffled(client: &Client, drafts: &[Draft], shuffled: &[Draft]) {
    let fresh = || {
        let ids: Vec<String> = (0..4).map(|_| id("tool")).collect();
        (format!("w{}", uuid::Uuid::new_v4().simple()), ids)
    };
    let (word, ids) = fresh();
    let objects = bundle_of(drafts, &word, &ids);
    let slots: BTreeSet<usize> = drafts.iter().map(|draft| draft.slot).collect();
    let once = client.ingest(json!(objects)).await;
    assert_eq!(once["nodes_created"], slots.len());
    let after_one = stored(client, &word).await;
    assert_eq!(after_one.len(), slots.len());
    let twice = client.ingest(json!(objects)).await;
    assert_eq!((&twice["nodes_created"], &twice["nodes_updated"]), (&json!(0), &json!(0)));
    assert_eq!(twice["skipped"], objects.len());
    assert_eq!(stored(client, &word).await, after_one);

    // The same versions in another order; what a version says must not depend on the order of the drafts.
    let (other, other_ids) = fresh();
    let mut reordered = bundle_of(drafts, &other, &other_ids);
    let place = |object: &Value| {
        shuffled
            .iter()
            .position(|d| text(object, "name").ends_with(&format!("slot {} year {}", d.slot, d.year)))
    };
    reordered.sort_by_key(place);
    client.ingest(json!(reordered)).await;
    assert_eq!(stored(client, &other).await, after_one);
}

#[test]
fn two_workspaces_with_the_same_objects_never_see_each_other() {
    run(async {
        let app = TestApp::spawn().await;
        let other = app.workspace("Elsewhere").await;
        let tool = object("tool", "Twin Lantern");
        app.admin.ingest(json!([tool])).await;
        assert_eq!(names(&other.search("Twin Lantern").await), Vec::<&str>::new());
        let results = other.ingest(json!([version(&tool, 2021, json!({"name": "Twin Lantern there"}))])).await;
        assert_eq!(results["nodes_created"], 1);
        assert_eq!(names(&app.admin.search("Twin Lantern").await), ["Twin Lantern"]);
        let here = app.admin.search("Twin Lantern").await;
        let there = other.search("Twin Lantern").await;
        assert_ne!(here["results"][0]["id"], there["results"][0]["id"]);
        let session = format!("/api/recall/sessions/{}", text(&here, "recall_id"));
        other.get(&session).await.expect(404).await;
        other.get(&format!("{session}/export.stix")).await.expect(404).await;
        app.stop().await;
    });
}
