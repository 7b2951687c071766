//! Limit on the writes of one request: an oversized one is refused before anything is written, with advice in the
//! error.

use rand::Rng;
use serde_json::{Value, json};
use test_support::extent;

use crate::helpers::{Client, TestApp, run, settings};
use crate::stix::object;

/// A service with the smallest transaction limit that can be set.
async fn small() -> TestApp {
    let mut settings = settings("mem://");
    settings.storage.transaction_mib = 16;
    TestApp::with(settings).await
}

/// Indicators that one transaction can't hold: a few large ones, or thousands of small ones.
fn indicators() -> Vec<Value> {
    let (count, noise) = extent((36, 300_000), (9_000, 0));
    (0..count)
        .map(|n| {
            let mut indicator = object("indicator", &format!("h{n}"));
            indicator["pattern"] = json!(format!("[domain-name:value = 'h{n}.example']"));
            if noise > 0 {
                let mut bytes = vec![0; noise];
                rand::rng().fill(&mut bytes[..]);
                indicator["x_noise"] = json!(hex::encode(bytes));
            }
            indicator
        })
        .collect()
}

async fn refused(client: &Client, path: &str, body: &Value) {
    let error = client.post(path, body).await.refused(413).await;
    for part in ["16 MiB", "storage.transaction_mib", "split the bundle"] {
        assert!(error.contains(part), "{path}: {error}");
    }
}

#[test]
fn a_bundle_that_one_transaction_can_not_hold_is_413_and_its_parts_go_through() {
    run(async {
        let app = small().await;
        let all = indicators();
        refused(&app.admin, "/api/ingest/stix", &json!({"bundle": all})).await;
        assert_eq!(app.admin.search("h1").await["count"], 0, "something was written");
        assert!(app.admin.audited("ingest.stix").await.is_empty());
        let (half, again) = (all.len() / 2, all.len() / 18);
        for (part, already) in [(&all[..half], 0), (&all[half - again..], again)] {
            let results = app.admin.ingest(json!(part)).await;
            assert_eq!(
                (&results["nodes_created"], &results["skipped"]),
                (&json!(part.len() - already), &json!(already))
            );
        }
        app.stop().await;
    });
}

#[test]
fn other_ways_in_are_held_to_the_same_size() {
    run(async {
        let app = small().await;
        let (count, length) = extent((36, 500_000), (3_000, 6_000));
        let comment = "c".repeat(length);
        let attributes: Vec<Value> = (0..count)
            .map(|n| {
                json!({"type": "domain", "value": format!("h{n}.example"), "category": "Network activity",
                "uuid": uuid::Uuid::new_v4(), "to_ids": true, "comment": comment})
            })
            .collect();
        let event =
            json!({"event": {"uuid": uuid::Uuid::new_v4(), "info": "Large", "Attribute": attributes}});
        refused(&app.admin, "/api/ingest/misp", &event).await;
        assert!(app.admin.audited("ingest.misp").await.is_empty());

        // Few nodes but long ones: only the size of their rows reveals it.
        let long = "A long and winding description. ".repeat(1800);
        let nodes: Vec<Value> = (0..300)
            .map(|n| json!({"name": format!("long {n}"), "node_type": "tool", "properties": {"text": long}}))
            .collect();
        refused(&app.admin, "/api/ingest/analyst", &json!({"nodes": nodes})).await;
        assert_eq!(
            app.admin.search("long 1").await["count"],
            0,
            "something was written"
        );
        app.stop().await;
    });
}
