//! ATT&CK for ICS, pulled page by page, becomes the same graph as the same bundle ingested at once.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Value, json};
use test_support::{extent, is_full};

use super::server::Server;
use super::{allowing, ids};
use crate::helpers::{Client, TestApp, read_json, run, settings, shared};
use crate::stix::{assert_faithful, is_node, objects_of, text};

/// The graph around each named node: its fields, and its relationships with their other ends.
async fn graph(client: &Client, objects: &[Value]) -> BTreeMap<String, Value> {
    let mut graph = BTreeMap::new();
    for object in objects.iter().filter(|object| is_node(object)) {
        let id = text(object, "id");
        let Some(node) = client.node(text(object, "name"), id).await else {
            panic!("{id} is no node");
        };
        graph.insert(id.to_owned(), comparable(detail(client, text(&node, "id")).await));
    }
    graph
}

/// A node with all of its relationships.
async fn detail(client: &Client, node: &str) -> Value {
    let mut all: Vec<Value> = Vec::new();
    loop {
        let path = format!(
            "/api/nodes/{node}?include_rejected=true&limit=100&offset={}",
            all.len()
        );
        let mut detail = client.get(&path).await.expect(200).await;
        all.append(detail["relationships"].as_array_mut().unwrap());
        if detail["more_relationships"] == false {
            detail["relationships"] = json!(all);
            return detail;
        }
    }
}

/// Without what differs from workspace to workspace: row ids and times of arrival.
fn comparable(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => {
            for own in [
                "id",
                "linked_evidence_ids",
                "created_at",
                "ingested_at",
                "updated_at",
                "source_node_id",
                "target_node_id",
            ] {
                fields.remove(own);
            }
            for field in fields.values_mut() {
                *field = comparable(field.take());
            }
        }
        Value::Array(list) => {
            let mut sorted: Vec<Value> = list.drain(..).map(comparable).collect();
            sorted.sort_by_cached_key(Value::to_string);
            *list = sorted;
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    value
}

/// Exports every node by its name; returns the ids of the exported objects that are not relationships. Which relationships
/// leave with a node depends on what else its search finds, and that on merges of the index: until a merge, words of
/// replaced documents count.
async fn exported(client: &Client, objects: &[Value]) -> HashSet<String> {
    let mut seen = HashSet::new();
    for object in objects.iter().filter(|object| is_node(object)) {
        if seen.contains(text(object, "id")) {
            continue;
        }
        let found = client
            .search_with(text(object, "name"), &[("include_rejected", "true")])
            .await;
        let bundle = client.export(text(&found, "recall_id")).await;
        seen.extend(assert_faithful(&bundle, objects).into_keys());
    }
    seen.retain(|id| !id.starts_with("relationship--"));
    seen
}

/// Relationships that are pulled in the quick round.
const RELATIONSHIPS: usize = 10;

/// The first relationships between nodes, their ends, and what these refer to.
fn beginning(objects: Vec<Value>, relationships: usize) -> Vec<Value> {
    let nodes: HashSet<String> = objects
        .iter()
        .filter(|object| is_node(object))
        .map(|object| text(object, "id").to_owned())
        .collect();
    let ends = |object: &Value| ["source_ref", "target_ref"].map(|end| text(object, end).to_owned());
    let between_nodes = |object: &&Value| ends(object).iter().all(|end| nodes.contains(end));
    let first = objects.iter().filter(between_nodes).take(relationships);
    let mut chosen: HashSet<String> = HashSet::new();
    for relationship in first {
        chosen.extend(ends(relationship));
        chosen.insert(text(relationship, "id").to_owned());
    }
    let mut objects = objects;
    objects.retain(|object| {
        let is_support = ["identity", "marking-definition"].contains(&text(object, "type"));
        is_support || chosen.contains(text(object, "id"))
    });
    objects
}

#[test]
fn a_pulled_release_of_attack_equals_an_ingested_one() {
    let Some(path) = shared("data/attack/ics-attack.json") else {
        return;
    };
    run(async move {
        let mut objects = objects_of(&read_json(&path));
        let page = extent(10, 100);
        if !is_full() {
            objects = beginning(objects, RELATIONSHIPS);
        }
        let mut settings = allowing(settings("mem://"));
        settings.feeds.page_objects = page;
        let app = TestApp::with(settings).await;
        let server = Server::start(&objects).await;
        let batch = app.admin.pull(&app.admin.feed_of(&server).await).await;
        assert_eq!(batch["pages"], objects.len().div_ceil(page), "{batch}");
        assert_eq!(batch["objects"], objects.len());

        let id = text(&batch, "id");
        let items = app.admin.items(id).await;
        let accepting = items.chunks(items.len().div_ceil(4));
        futures_util::future::join_all(accepting.map(|items| app.admin.accept_items(items))).await;
        let pulled = app.admin.commit_items(id, None).await;
        assert_eq!(
            (&pulled["remaining"], &pulled["waiting"]),
            (&json!(0), &json!([])),
            "{pulled}"
        );
        assert_eq!(app.admin.feed_batch(id).await["status"], "committed");

        let other = app.workspace("ingested").await;
        let ingested = other.ingest(json!(objects)).await;
        for field in [
            "nodes_created",
            "nodes_updated",
            "edges_created",
            "edges_updated",
            "evidence_created",
        ] {
            assert_eq!(pulled[field], ingested[field], "{field}: {pulled} {ingested}");
        }
        let number = |part: &serde_json::Value| part.as_u64().unwrap();
        let kept = &ingested["kept"];
        let made = number(&ingested["nodes_created"]) + number(&ingested["edges_created"]);
        let made = made + number(&kept["objects_created"]) + number(&kept["relationships_created"]);
        assert_eq!(ids(&items).len() as u64, made);
        assert_eq!(&pulled["kept"], kept, "{pulled}");
        let (ours, theirs) = (graph(&app.admin, &objects).await, graph(&other, &objects).await);
        for (id, node) in &theirs {
            assert_eq!(&ours[id], node, "{id}");
        }
        assert_eq!(ours.len(), theirs.len());
        assert_eq!(
            exported(&app.admin, &objects).await,
            exported(&other, &objects).await
        );
        // Nothing is new afterwards.
        let feed = text(&batch, "feed_source_id");
        assert_eq!(app.admin.pull(feed).await["item_count"], 0);
        app.stop().await;
    });
}
