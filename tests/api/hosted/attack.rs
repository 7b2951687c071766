//! Two releases of ATT&CK for ICS, ingested into a durable store.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use serde_json::{Value, json};
use test_support::extent;

use crate::helpers::{Client, TestApp, encode, read_json, run, shared};
use crate::stix::{assert_faithful, by_id, is_node, names, objects_of, text};

fn releases() -> Option<(Vec<Value>, Vec<Value>)> {
    let read = |path: PathBuf| objects_of(&read_json(&path));
    let old = shared("data/attack/ics-attack-17.1.json").map(read)?;
    Some((old, shared("data/attack/ics-attack.json").map(read)?))
}

fn is_edge(object: &Value) -> bool {
    let node = |end: &str| {
        let kind = text(object, end).split_once("--").map_or("", |(kind, _)| kind);
        crate::stix::NODE_TYPES.contains(&kind)
    };
    object["type"] == "relationship" && node("source_ref") && node("target_ref")
}

fn inactive(object: &Value) -> bool {
    object["revoked"] == true || object["x_mitre_deprecated"] == true
}

/// The counters the service should report for `objects` on top of `stored`, computed from the files alone.
fn expected(stored: &[Value], objects: &[Value]) -> HashMap<&'static str, usize> {
    let known = by_id(stored);
    let newer = |object: &&Value| {
        known
            .get(text(object, "id"))
            .is_some_and(|old| text(object, "modified") > text(old, "modified"))
    };
    let new = |object: &&Value| !known.contains_key(text(object, "id"));
    let (nodes, edges): (Vec<&Value>, Vec<&Value>) = (
        objects.iter().filter(|o| is_node(o)).collect(),
        objects.iter().filter(|o| is_edge(o)).collect(),
    );
    let count =
        |list: &[&Value], rule: &dyn Fn(&&Value) -> bool| list.iter().copied().filter(|o| rule(o)).count();
    let counts = HashMap::from([
        ("nodes_created", count(&nodes, &new)),
        ("nodes_updated", count(&nodes, &newer)),
        ("edges_created", count(&edges, &new)),
        ("edges_updated", count(&edges, &newer)),
        ("evidence_created", count(&nodes, &new) + count(&nodes, &newer)),
    ]);
    let taken = counts.values().sum::<usize>() - counts["evidence_created"];
    let mut counts = counts;
    counts.insert("skipped", objects.len() - taken);
    counts
}

/// The objects stored after both releases: the later `modified` wins, the first one on a tie.
fn newest(old: &[Value], new: &[Value]) -> Vec<Value> {
    let mut stored = by_id(old);
    for object in new {
        let known = stored.get(text(object, "id"));
        if known.is_none_or(|known| text(object, "modified") > text(known, "modified")) {
            stored.insert(text(object, "id").to_owned(), object.clone());
        }
    }
    stored.into_values().collect()
}

#[track_caller]
fn assert_counts(results: &Value, want: &HashMap<&'static str, usize>) {
    for (key, want) in want {
        assert_eq!(results[key], json!(want), "{key} in {results}");
    }
}

async fn top(client: &Client, query: &str, n: usize) -> Vec<(String, String)> {
    let found = client.search(query).await;
    let results = found["results"].as_array().unwrap();
    results
        .iter()
        .take(n)
        .map(|node| {
            (
                text(node, "name").to_owned(),
                node["properties"]["external_ids"].to_string(),
            )
        })
        .collect()
}

#[test]
fn two_releases_of_attack_are_merged_searched_and_exported_unchanged() {
    let Some((old, new)) = releases() else { return };
    run(async move {
        let dir = tempfile::tempdir().unwrap();
        let app = TestApp::durable(dir.path()).await;
        let admin = &app.admin;

        let first = admin.ingest(json!(old)).await;
        assert_counts(&first, &expected(&[], &old));
        let second = admin.ingest(json!(new)).await;
        assert_counts(&second, &expected(&old, &new));
        assert!(second["nodes_updated"].as_u64().unwrap() > 0);
        let merged = newest(&old, &new);
        let third = admin.ingest(json!(new)).await;
        assert_counts(&third, &expected(&merged, &new));
        assert_eq!(
            (&third["nodes_created"], &third["nodes_updated"]),
            (&json!(0), &json!(0))
        );

        searches(admin).await;
        rejected(admin, &merged).await;
        exports(admin, &merged).await;
        app.stop().await;
    });
}

async fn searches(admin: &Client) {
    let question = "which technique abuses remote services for lateral movement";
    let best = top(admin, question, 5).await;
    assert!(
        best.iter()
            .any(|(_, ids)| ids.contains("\"T0886\"") || ids.contains("\"T0866\"")),
        "{best:?}"
    );
    assert_eq!(top(admin, "Sandworm Team", 1).await[0].0, "Sandworm Team");
    assert!(top(admin, "T0866", 1).await[0].1.contains("\"T0866\""));
    for alias in ["ELECTRUM", "Voodoo Bear", "iron viking", "APT 44"] {
        assert_eq!(top(admin, alias, 1).await[0].0, "Sandworm Team", "{alias}");
    }

    let structured = admin
        .search_with("what do we know about Sandworm Team", &[("mode", "structured")])
        .await;
    assert_eq!(structured["mode"], "structured");
    assert_eq!(names(&structured)[0], "Sandworm Team");
    let structured = admin.search_with("T0886", &[("mode", "structured")]).await;
    assert_eq!(names(&structured)[0], "Remote Services");

    let path = format!(
        "/api/recall/semantic?{}",
        encode(&[("q", question), ("limit", "10")])
    );
    let semantic = admin.get(&path).await.expect(200).await;
    assert_eq!(
        semantic["count"],
        json!(semantic["results"].as_array().unwrap().len())
    );
    assert!(
        names(&semantic)
            .iter()
            .any(|name| name.contains("Remote Services")),
        "{:?}",
        names(&semantic)
    );
    assert!(semantic["recall_id"].is_null());
}

/// Revoked and deprecated objects are found only with `include_rejected`.
async fn rejected(admin: &Client, merged: &[Value]) {
    let gone: Vec<&Value> = merged.iter().filter(|o| is_node(o) && inactive(o)).collect();
    assert!(!gone.is_empty());
    for object in gone {
        let (name, id) = (text(object, "name"), text(object, "id"));
        let plain = admin.search_with(name, &[]).await;
        let shows = |answer: &Value| {
            let results = answer["results"].as_array().unwrap();
            results.iter().any(|node| node["properties"]["stix_id"] == id)
        };
        assert!(!shows(&plain), "{name} is inactive and was found");
        let node = admin
            .node(name, id)
            .await
            .unwrap_or_else(|| panic!("{name} is not there at all"));
        assert_eq!(node["status"], "rejected", "{name}");
    }
}

/// Exports until every node has been seen (one in thirty in the quick round), one search per node not seen yet, and
/// compares the objects field by field.
async fn exports(admin: &Client, originals: &[Value]) {
    let mut left: HashSet<String> = originals
        .iter()
        .filter(|object| is_node(object))
        .step_by(extent(60, 1))
        .map(|object| text(object, "id").to_owned())
        .collect();
    let mut edges = 0;
    let known = by_id(originals);
    while let Some(next) = left.iter().next().cloned() {
        let found = admin
            .search_with(text(&known[&next], "name"), &[("include_rejected", "true")])
            .await;
        let bundle = admin.export(text(&found, "recall_id")).await;
        let exported = assert_faithful(&bundle, originals);
        assert!(
            exported.contains_key(&next),
            "{next} is not in the export of its own name"
        );
        let inside = |object: &&Value| {
            is_edge(object)
                && !inactive(object)
                && exported.contains_key(text(object, "source_ref"))
                && exported.contains_key(text(object, "target_ref"))
        };
        for edge in originals.iter().filter(inside) {
            assert!(
                exported.contains_key(text(edge, "id")),
                "{} is missing",
                edge["id"]
            );
            edges += 1;
        }
        left.retain(|id| !exported.contains_key(id));
    }
    assert!(edges > 100, "only {edges} relationships were checked");
}
