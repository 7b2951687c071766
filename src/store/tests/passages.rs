//! Edges for the search index: which ones a write names, also in a store that named none, or those with texts alone.

use std::collections::{HashMap, HashSet};

use serde_json::Map;

use super::*;
use crate::domain::draft::{Drafts, NodeDraft, PassageDraft};
use crate::domain::node::NodeType;
use crate::store::{Changes, Corrections, DraftsIngestOutcome, DraftsWrite};

/// Reverts a store to the schema whose journal listed nodes alone, and to the one whose journal listed only some edges.
const BEFORE: [&str; 2] = [
    "LET $rows = (SELECT id, nodes FROM node_write WHERE array::len(nodes) > 0); DELETE node_write; \
        FOR $row IN $rows { CREATE $row.id SET nodes = $row.nodes }; REMOVE FIELD edges ON node_write; \
        REMOVE TABLE passage; DELETE schema_version WHERE record::id(id) >= 13;",
    "LET $rows = (SELECT id, nodes FROM node_write WHERE array::len(nodes) > 0); DELETE node_write; \
        FOR $row IN $rows { CREATE $row.id SET nodes = $row.nodes }; REMOVE TABLE passage; \
        DELETE schema_version WHERE record::id(id) >= 14;",
];

fn id(kind: &str, number: usize) -> String {
    format!("{kind}--00000000-0000-4000-8000-{number:012}")
}

/// Ten tools, and relationships from each to the next with these texts; `revoked` says which are not in force.
fn plan_of(texts: &[&str], year: u32, revoked: bool) -> StixPlan {
    let (created, modified) = ("2020-01-01T00:00:00.000Z", format!("{year}-01-01T00:00:00.000Z"));
    let tools = (0..10).map(|n| {
        json!({"type": "tool", "id": id("tool", n), "spec_version": "2.1", "name": format!("Tool {n}"),
            "created": created, "modified": created})
    });
    let edges = texts.iter().enumerate().map(|(n, text)| {
        json!({"type": "relationship", "id": id("relationship", n), "spec_version": "2.1", "created": created,
            "modified": modified, "relationship_type": "uses", "source_ref": id("tool", n),
            "target_ref": id("tool", n + 1), "description": text, "revoked": revoked})
    });
    let defaults = StixDefaults {
        tlp: Tlp::Green,
        confidence: 0.5,
        now: DateTime::<Utc>::UNIX_EPOCH,
    };
    let objects: Vec<Value> = tools.chain(edges).collect();
    ingest::plan(objects.into(), defaults, Markings::new())
}

async fn write(store: &Store, ws: Uuid, plan: &StixPlan) -> u64 {
    let audit = entry(ws, "ingest");
    let origin = origin(store, ws).await;
    let done = store.ingest_stix(ws, plan, &origin, clock::now(), |_, _| audit.clone());
    done.await.unwrap().written.rev
}

async fn texts(store: &Store, ws: Uuid, changes: &Changes) -> Vec<String> {
    let ids: Vec<Uuid> = changes.edges.iter().map(|change| change.id).collect();
    let stored = store.edges_to_index(ws, &ids).await.unwrap();
    let mut texts: Vec<String> = stored.into_iter().filter_map(|edge| edge.text).collect();
    texts.sort_unstable();
    texts
}

#[test]
fn a_write_names_the_edges_that_it_changed() {
    run_on_each(|url| async move {
        let (store, ws) = (open(&url).await, Uuid::new_v4());
        let plan = plan_of(
            &[
                "it reads the memory (Citation: X)",
                "too short",
                "it writes to the disk",
            ],
            2020,
            false,
        );
        let first = write(&store, ws, &plan).await;
        let changes = store.changes(ws, 0, 1_000).await.unwrap();
        assert_eq!(
            (changes.nodes.len(), changes.edges.len(), changes.last),
            (10, 3, Some(first))
        );
        assert_eq!(
            texts(&store, ws, &changes).await,
            ["it reads the memory", "it writes to the disk"]
        );
        assert!(texts(&store, Uuid::new_v4(), &changes).await.is_empty());

        let second = write(&store, ws, &plan_of(&["it reads the memory"], 2021, true)).await;
        let changes = store.changes(ws, first, 1_000).await.unwrap();
        assert_eq!(
            (changes.nodes.len(), changes.edges.len(), changes.last),
            (0, 1, Some(second))
        );
        assert!(
            texts(&store, ws, &changes).await.is_empty(),
            "a revoked relationship says nothing"
        );
        assert!(store.changes(ws, second, 1_000).await.unwrap().last.is_none());
    });
}

#[test]
fn the_edges_of_an_older_store_are_named() {
    for before in BEFORE {
        let (_dir, url) = new_dir();
        run(names_the_edges_of_an_older_store(url, before));
    }
}

async fn names_the_edges_of_an_older_store(url: String, before: &str) {
    let (store, ws) = (open(&url).await, Uuid::new_v4());
    number_by_time(&store, ws, 0).await;
    let last = write(
        &store,
        ws,
        &plan_of(
            &["it reads the memory", "-", "it writes to the disk"],
            2020,
            false,
        ),
    )
    .await;
    drop(store);
    let db = owner(&url).await;
    db.query(before).await.unwrap().check().unwrap();
    drop(db);

    let store = open(&url).await;
    let changes = store.changes(ws, 0, 1_000).await.unwrap();
    assert_eq!(
        (changes.nodes.len(), changes.edges.len(), changes.last),
        (10, 3, Some(store.last_write(ws).await.unwrap()))
    );
    assert_eq!(
        texts(&store, ws, &changes).await,
        ["it reads the memory", "it writes to the disk"]
    );
    assert!(changes.edges.iter().all(|change| change.rev < last));
}

fn tool(description: &str, source: &str, tlp: Tlp) -> NodeDraft {
    NodeDraft {
        identity: "tool\0x".into(),
        node_type: NodeType::Tool,
        name: "Tool".into(),
        description: description.into(),
        source: source.into(),
        source_type: "osint",
        tlp,
        confidence: 0.5,
        properties: Map::new().into(),
        evidence: Vec::new(),
        merge_by_name: true,
    }
}

pub(in crate::store) async fn send(store: &Store, ws: Uuid, drafts: &Drafts) -> DraftsIngestOutcome {
    let write = DraftsWrite {
        ws,
        drafts,
        merges: &HashMap::new(),
        highest: Tlp::Red,
        evidence_only: &HashSet::new(),
        corrections: &Corrections::default(),
        after: store.last_write(ws).await.unwrap(),
        now: clock::now(),
    };
    let audit = entry(ws, "ingest");
    store.ingest_drafts(&write, |_| audit.clone()).await.unwrap()
}

/// A node with an excerpt about it.
pub(super) fn excerpt() -> Drafts {
    Drafts {
        nodes: vec![tool("", "a", Tlp::Green)],
        passages: vec![PassageDraft {
            about: [0, 0],
            tlp: Tlp::Green,
            text: "it writes to the disk at night".into(),
        }],
        ..Drafts::default()
    }
}

#[test]
fn what_a_description_does_not_take_becomes_a_passage_with_its_own_marking() {
    run_on_each(|url| async move {
        let (store, ws) = (open(&url).await, Uuid::new_v4());
        let only = |node: NodeDraft| Drafts {
            nodes: vec![node],
            ..Drafts::default()
        };
        let first = "it reads the memory of the process";
        let other = "it writes to the disk at night";
        let red = "it was bought by the northern group";
        let created = send(&store, ws, &only(tool(first, "a", Tlp::Green))).await;
        assert!(created.written.rows.edges.is_empty());
        for known in [first, "the memory of the process", "too short", ""] {
            let sent = send(&store, ws, &only(tool(known, "b", Tlp::Green))).await;
            assert!(sent.written.rows.edges.is_empty(), "{known}");
        }
        let added = send(&store, ws, &only(tool(other, "b", Tlp::Green))).await;
        assert_eq!((added.written.rows.edges.len(), &added.ids), (1, &created.ids));
        let again = send(&store, ws, &only(tool(other, "c", Tlp::Green))).await;
        assert!(again.written.rows.edges.is_empty(), "a passage is written once");
        let hidden = send(&store, ws, &only(tool(red, "b", Tlp::Red))).await;
        let mut excerpt = only(tool(first, "a", Tlp::Green));
        excerpt.passages = vec![PassageDraft {
            about: [0, 0],
            tlp: Tlp::Amber,
            text: other.into(),
        }];
        let excerpt = send(&store, ws, &excerpt).await;

        let written = [added, hidden, excerpt]
            .map(|sent| sent.written.rows.edges)
            .concat();
        let stored = store.passages_to_index(ws, &written).await.unwrap();
        let mut stored: Vec<(Tlp, &str)> = stored
            .iter()
            .map(|passage| {
                assert_eq!([passage.source, passage.target], [created.ids[0]; 2]);
                (passage.tlp, passage.text.as_str())
            })
            .collect();
        stored.sort_unstable();
        assert_eq!(
            stored,
            [(Tlp::Green, other), (Tlp::Amber, other), (Tlp::Red, red)]
        );
        let elsewhere = store.passages_to_index(Uuid::new_v4(), &written).await.unwrap();
        assert!(elsewhere.is_empty());
        let named = store.changes(ws, 0, 1_000).await.unwrap().edges;
        let named: HashSet<Uuid> = named.iter().map(|change| change.id).collect();
        assert_eq!(named, HashSet::from_iter(written.iter().copied()));
        for (highest, seen) in [(Tlp::White, 0), (Tlp::Green, 1), (Tlp::Amber, 2), (Tlp::Red, 3)] {
            let texts = store
                .texts_of_passages(ws, &written, (highest, false))
                .await
                .unwrap();
            assert_eq!(texts.len(), seen, "{highest}");
        }
    });
}
