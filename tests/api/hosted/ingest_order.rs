//! Ingests that run concurrently, repeatedly or in another order give the same result as sequential ones.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use test_support::extent;

use crate::helpers::{Client, TestApp, encode, http_client, run};
use crate::stix::{evidence, id, object, relationship, text, version, with};

#[test]
fn concurrent_ingests_of_overlapping_bundles_end_as_if_one_came_after_the_other() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let app = TestApp::durable(dir.path()).await;
        let tools: Vec<Value> = (0..30)
            .map(|i| object("tool", &format!("Shared{i:02}")))
            .collect();
        let edges: Vec<Value> = tools
            .windows(2)
            .map(|pair| relationship(&pair[0], "uses", &pair[1]))
            .collect();
        let mut tasks = Vec::new();
        for task in 0..8u32 {
            let (client, tools, edges) = (app.admin.clone(), tools.clone(), edges.clone());
            tasks.push(tokio::spawn(async move {
                let mut totals = [0u64; 4];
                for round in 0..3 {
                    let year = 2021 + round * 8 + task;
                    // Half of the tools, a different half in each round and in another order.
                    let half = tools
                        .iter()
                        .enumerate()
                        .filter(|(i, _)| (i + task as usize + round as usize).is_multiple_of(2));
                    let mut objects: Vec<Value> = half
                        .map(|(i, tool)| {
                            version(tool, year, json!({"name": format!("Shared{i:02} of {year}")}))
                        })
                        .collect();
                    objects.extend(edges.iter().map(|edge| version(edge, year, json!({}))));
                    if task % 2 == 0 {
                        objects.reverse();
                    }
                    let results = client.ingest(json!(objects)).await;
                    for (total, key) in totals.iter_mut().zip([
                        "nodes_created",
                        "nodes_updated",
                        "evidence_created",
                        "edges_created",
                    ]) {
                        *total += results[key].as_u64().unwrap();
                    }
                }
                totals
            }));
        }
        let mut totals = [0u64; 4];
        for task in tasks {
            totals
                .iter_mut()
                .zip(task.await.unwrap())
                .for_each(|(total, more)| *total += more);
        }
        assert_eq!((totals[0], totals[3]), (30, 29), "created once each: {totals:?}");
        assert_eq!(totals[2], totals[0] + totals[1]);
        let mut linked = 0;
        for (i, tool) in tools.iter().enumerate() {
            let last = (2021..2045)
                .filter(|year| (i as u32 + (year - 2021) % 8 + (year - 2021) / 8).is_multiple_of(2))
                .max()
                .unwrap();
            let node = app
                .admin
                .node(&format!("Shared{i:02}"), text(tool, "id"))
                .await
                .unwrap();
            assert_eq!(text(&node, "name"), format!("Shared{i:02} of {last}"));
            linked += evidence(&node) as u64;
        }
        assert_eq!(
            linked, totals[2],
            "every version that was taken left its evidence"
        );
        let chain = app.admin.get("/api/audit/verify").await.expect(200).await;
        assert_eq!(
            (&chain["valid"], &chain["unchained"]),
            (&json!(true), &json!(0)),
            "{chain}"
        );
        app.stop().await;
    });
}

/// One object of a random bundle: its id slot, its version and its content.
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

/// The objects of the drafts. The content of a version depends only on its slot and year, as with an honest producer.
fn bundle_of(drafts: &[Draft], word: &str, ids: &[String]) -> Vec<Value> {
    let honest = |draft: &Draft| {
        drafts
            .iter()
            .find(|d| (d.slot, d.year) == (draft.slot, draft.year))
            .cloned()
            .unwrap()
    };
    drafts
        .iter()
        .map(honest)
        .map(
            |Draft {
                 slot,
                 year,
                 level,
                 revoked,
             }| {
                let name = format!("{word} slot {slot} year {year}");
                let base = with(
                    object("tool", &name),
                    json!({"id": ids[slot], "labels": [LEVELS[level]]}),
                );
                version(&base, year, json!({"revoked": revoked}))
            },
        )
        .collect()
}

/// What the workspace has stored of a bundle, without ids and times.
async fn stored(client: &Client, word: &str) -> BTreeSet<String> {
    let pairs = [("q", word), ("limit", "100"), ("include_rejected", "true")];
    let found = client
        .get(&format!("/api/recall/search?{}", encode(&pairs)))
        .await
        .expect(200)
        .await;
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
        let app = TestApp::shared().await;
        let mut client = app.admin.clone();
        let checked = tokio::task::spawn_blocking(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            // Connections belong to the runtime that opened them.
            client.http = http_client();
            let drafts = proptest::collection::vec(draft(), 1..7);
            let shuffled = drafts.prop_flat_map(|drafts| (Just(drafts.clone()), Just(drafts).prop_shuffle()));
            let mut runner = TestRunner::new(Config {
                cases: extent(6, 24),
                failure_persistence: None,
                ..Config::default()
            });
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
    assert_eq!(
        (&twice["nodes_created"], &twice["nodes_updated"]),
        (&json!(0), &json!(0))
    );
    assert_eq!(twice["skipped"], objects.len());
    assert_eq!(stored(client, &word).await, after_one);

    // The same versions in another order; the content of a version must not depend on the order of the drafts.
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
