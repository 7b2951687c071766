//! Several processes that write to one workspace at once: each write has its number, nothing is there twice, and each
//! index is what the database holds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use test_support::extent;
use uuid::Uuid;

use super::{GraphCore, IngestStix, analyst, names, open, process, run};
use crate::actors::graph_store::drafts::IngestDrafts;
use crate::actors::worker::Work;
use crate::clock;
use crate::domain::draft::{Drafts, EvidenceDraft, NodeDraft, identity};
use crate::domain::node::NodeType;
use crate::domain::principal::Principal;
use crate::domain::stix::ingest::StixDefaults;
use crate::domain::tlp::Tlp;
use crate::store::tests::TestServer;
use crate::store::{StixOrigin, Store};

const WRITERS: usize = 16;
/// Actors that all writers name, each by another name and by the same external id.
const ACTORS: usize = 3;

fn sends_bundle(writer: usize, round: usize) -> bool {
    (writer / 2 + round).is_multiple_of(3)
}

fn entry(writer: usize, round: usize) -> Drafts {
    let actor = (writer + round) % ACTORS;
    let name = format!("Heron {actor} of writer {writer}");
    let Value::Object(properties) = json!({"external_ids": [format!("G90{actor:02}")]}) else {
        unreachable!()
    };
    let record = EvidenceDraft {
        identity: identity(["entry", &name]),
        kind: "analyst",
        ext_id: None,
        title: name.clone(),
        source: format!("analyst {writer}"),
        tlp: Tlp::Green,
        raw: serde_json::Map::new().into(),
    };
    let node = NodeDraft {
        identity: identity(["actor", &name]),
        node_type: NodeType::Actor,
        name,
        description: String::new(),
        source: format!("analyst {writer}"),
        source_type: "analyst",
        tlp: Tlp::Green,
        confidence: 0.5,
        properties: properties.into(),
        evidence: vec![0],
        merge_by_name: true,
    };
    Drafts {
        nodes: vec![node],
        evidence: vec![record],
        ..Drafts::default()
    }
}

/// Two tools and what one does to the other, in a version of this round.
fn bundle(round: usize) -> Vec<Value> {
    let id = |kind: &str, number: usize| format!("{kind}--00000000-0000-4000-8000-{number:012}");
    let modified = format!("2024-01-01T00:00:00.{round:03}Z");
    let tool = |number: usize| {
        json!({"type": "tool", "id": id("tool", number), "spec_version": "2.1", "name": format!("Spade {number}"),
            "created": "2020-01-01T00:00:00.000Z", "modified": modified})
    };
    let uses = json!({"type": "relationship", "id": id("relationship", 0), "spec_version": "2.1",
        "relationship_type": "uses", "source_ref": id("tool", 0), "target_ref": id("tool", 1),
        "created": "2020-01-01T00:00:00.000Z", "modified": modified});
    vec![tool(0), tool(1), uses]
}

/// Writes as one of the writers; returns how many writes it were.
async fn write(core: Arc<GraphCore>, by: Principal, writer: usize, rounds: usize) -> u64 {
    for round in 0..rounds {
        if sends_bundle(writer, round) {
            let message = IngestStix {
                by: by.clone(),
                objects: bundle(round).into(),
                defaults: StixDefaults {
                    tlp: Tlp::Green,
                    confidence: 0.5,
                    now: clock::now(),
                },
                origin: StixOrigin::default(),
            };
            message.run(Arc::clone(&core)).await.unwrap();
        } else {
            let message = IngestDrafts {
                by: by.clone(),
                drafts: entry(writer, round),
                action: "ingest.analyst",
            };
            message.run(Arc::clone(&core)).await.unwrap();
        }
    }
    rounds as u64
}

async fn writers_of_two_processes_make_one_graph(stores: [Arc<Store>; 2]) {
    let by = analyst();
    let ws = by.workspace.id;
    let cores = stores.each_ref().map(process);
    let rounds = extent(3, 40);
    let writers = (0..WRITERS).map(|writer| {
        let core = Arc::clone(&cores[writer % 2]);
        tokio::spawn(write(core, by.clone(), writer, rounds))
    });
    let mut writes = 0;
    for writer in writers.collect::<Vec<_>>() {
        writes += writer.await.unwrap();
    }
    let [store, _] = &stores;
    assert_eq!(
        store.last_write(ws).await.unwrap(),
        writes,
        "each write has a number"
    );
    for number in 1..=writes {
        assert!(
            store.has_revision(ws, number).await.unwrap(),
            "number {number} is missing"
        );
    }
    let changes = store.changes(ws, 0, usize::MAX).await.unwrap();
    let ids: Vec<Uuid> = changes.nodes.iter().map(|change| change.id).collect();
    let nodes = store.nodes_to_index(ws, &ids).await.unwrap();
    let mut aliases: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for stored in &nodes {
        let properties = &stored.node.properties;
        let known = |key: &str| {
            properties
                .get(key)
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default()
        };
        let thing = known("external_ids")
            .first()
            .map_or(stored.node.name.clone(), Value::to_string);
        let names = aliases.entry(thing.clone()).or_default();
        assert!(names.is_empty(), "{thing} is there twice");
        names.insert(stored.node.name.clone());
        names.extend(
            known("aliases")
                .iter()
                .map(|alias| alias.as_str().unwrap().to_owned()),
        );
    }
    assert_eq!(nodes.len(), ACTORS + 2, "{aliases:?}");
    let actors = aliases.iter().filter(|(_, names)| names.len() > 1);
    let named: usize = actors.map(|(_, names)| names.len()).sum();
    let turns = (0..WRITERS).flat_map(|writer| (0..rounds).map(move |round| (writer, round)));
    let entries = turns.filter(|(writer, round)| !sends_bundle(*writer, *round));
    let sent: BTreeSet<String> = entries
        .map(|(writer, round)| entry(writer, round).nodes[0].name.clone())
        .collect();
    assert_eq!(named, sent.len(), "no name is lost: {aliases:?}");
    for core in &cores {
        core.graph.follow().await;
        let target = core.graph.index_of(ws).await.unwrap();
        assert_eq!(target.len(), nodes.len());
        for stored in &nodes {
            assert!(
                target.contains(stored.node.id, stored.rev),
                "{}",
                stored.node.name
            );
        }
        for change in &changes.edges {
            assert!(target.contains(change.id, change.rev), "an edge");
        }
        for name in sent.iter().take(5) {
            let found = names(core, &by, name).await;
            let actor = aliases.values().find(|names| names.contains(name)).unwrap();
            assert!(actor.contains(&found[0]), "{name}: {found:?}");
        }
    }
}

#[test]
fn writers_of_two_processes_over_one_embedded_store_make_one_graph() {
    run(async {
        let store = open().await;
        writers_of_two_processes_make_one_graph([Arc::clone(&store), store]).await;
    });
}

#[test]
fn writers_of_two_processes_over_a_server_make_one_graph() {
    if let Some(server) = TestServer::start() {
        run(async move { writers_of_two_processes_make_one_graph(connections(&server).await).await });
    }
}

#[test]
fn an_index_of_a_later_state_than_the_store_is_made_anew() {
    run(async {
        let (store, by) = (open().await, analyst());
        let ws = by.workspace.id;
        let core = process(&store);
        write(Arc::clone(&core), by.clone(), 0, 3).await;
        let written = store.last_write(ws).await.unwrap();
        let target = core.graph.index_of(ws).await.unwrap();
        target.apply(Vec::new(), written + 7).unwrap();
        drop(target);
        // As at the next start, over an older back-up of the store.
        core.graph.catch_up(ws).await.unwrap();
        let target = core.graph.index_of(ws).await.unwrap();
        assert_eq!(target.checkpoint(), written);
        assert!(!names(&core, &by, "Spade").await.is_empty());
    });
}

/// A write of one process that takes long, beside another process that writes without a pause.
async fn a_long_write_has_its_turn(stores: [Arc<Store>; 2]) {
    let by = analyst();
    let [one, other] = stores.each_ref().map(process);
    let stop = Arc::new(AtomicBool::new(false));
    let hurried = {
        let (core, by, stop) = (other, by.clone(), Arc::clone(&stop));
        tokio::spawn(async move {
            let mut writes = 0;
            while !stop.load(Ordering::Relaxed) {
                writes += write(Arc::clone(&core), by.clone(), 1, 1).await;
            }
            writes
        })
    };
    let tools = (0..extent(600, 3_000)).map(|number| {
        json!({"type": "tool", "id": format!("tool--00000000-0000-4000-9000-{number:012}"), "spec_version": "2.1",
            "name": format!("Loam {number}"), "created": "2020-01-01T00:00:00.000Z",
            "modified": "2020-01-01T00:00:00.000Z"})
    });
    let message = IngestStix {
        by: by.clone(),
        objects: tools.collect::<Vec<Value>>().into(),
        defaults: StixDefaults {
            tlp: Tlp::Green,
            confidence: 0.5,
            now: clock::now(),
        },
        origin: StixOrigin::default(),
    };
    message.run(one).await.unwrap();
    stop.store(true, Ordering::Relaxed);
    let writes = hurried.await.unwrap();
    let last = stores[0].last_write(by.workspace.id).await.unwrap();
    assert_eq!(last, writes + 1);
}

/// Two connections to a new store on a server.
async fn connections(server: &TestServer) -> [Arc<Store>; 2] {
    let url = server.url();
    let [one, other] = [crate::store::tests::open(&url), crate::store::tests::open(&url)];
    [Arc::new(one.await), Arc::new(other.await)]
}

#[test]
fn a_long_write_is_not_overtaken_for_ever() {
    run(async {
        let store = open().await;
        a_long_write_has_its_turn([Arc::clone(&store), store]).await;
    });
}

#[test]
fn a_long_write_is_not_overtaken_for_ever_over_a_server() {
    if let Some(server) = TestServer::start() {
        run(async move { a_long_write_has_its_turn(connections(&server).await).await });
    }
}
