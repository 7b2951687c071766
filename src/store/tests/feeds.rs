//! Feeds, and which rows remember them.

use std::collections::{HashMap, HashSet};

use serde_json::Map;

use super::*;
use crate::domain::draft::{Drafts, EvidenceDraft, NodeDraft};
use crate::domain::feed::{Feed, Redistribution};
use crate::domain::ingest_result::IngestResult;
use crate::domain::node::NodeType;
use crate::store::rows::record;
use crate::store::{Corrections, DraftsIngestOutcome, DraftsWrite, StixIngestOutcome, StixOrigin};

/// Reverts a store to the schema without feeds, in which each node named the redistribution state of its source.
pub(super) const WITHOUT_FEEDS: &str = "REMOVE TABLE pilot_request; REMOVE TABLE outbox; \
    REMOVE TABLE feed; REMOVE TABLE feed_batch; REMOVE TABLE feed_item; REMOVE TABLE feed_pulse; \
    REMOVE TABLE feed_object; REMOVE TABLE feed_support; REMOVE TABLE feed_waiting; REMOVE TABLE passage; \
    REMOVE FIELD IF EXISTS feeds ON node; \
    REMOVE FIELD IF EXISTS feeds ON edge; REMOVE FIELD feeds ON stix_support; REMOVE FIELD edges ON node_write; \
    UPDATE node SET redistribution = 'allowed'; \
    DEFINE FIELD OVERWRITE redistribution ON node TYPE string; DELETE schema_version WHERE record::id(id) >= 9;";

impl Store {
    /// Sets a feed's redistribution state behind the program's back.
    pub(crate) async fn set_redistribution(&self, feed: Uuid, state: Redistribution) {
        let update = "UPDATE $feed SET redistribution = $state RETURN id";
        let statement = self.db.query(update).bind(("feed", record("feed", feed)));
        let mut done = statement
            .bind(("state", state.as_str().to_owned()))
            .await
            .unwrap();
        let changed: Vec<surrealdb::types::Value> = done.take(0).unwrap();
        assert_eq!(changed.len(), 1);
    }
}

pub(super) fn feed(name: &str, redistribution: Redistribution) -> Feed {
    Feed {
        id: Uuid::new_v4(),
        name: name.into(),
        description: String::new(),
        connector_config_ref: "https://taxii.example/collections/1/objects/".into(),
        default_tlp: Tlp::Amber,
        redistribution_state: redistribution,
        enabled: true,
        running_batch_id: None,
        created_at: clock::now(),
        updated_at: clock::now(),
        last_pull_at: None,
    }
}

pub(super) async fn register(store: &Store, ws: Uuid, feed: &Feed) {
    let audit = entry(ws, "feed.register");
    store.register_feed(ws, feed, &audit).await.unwrap();
}

#[test]
fn a_feed_is_registered_once_with_its_audit_entry_and_blocks_its_own_workspace_only() {
    run_on_each(|url| async move {
        let (store, ws, other) = (open(&url).await, Uuid::new_v4(), Uuid::new_v4());
        let open_feed = feed("Open", Redistribution::Allowed);
        let closed = feed("Closed", Redistribution::Prohibited);
        let internal = feed("Internal", Redistribution::InternalOnly);
        for feed in [&open_feed, &internal, &closed] {
            register(&store, ws, feed).await;
        }
        register(&store, other, &feed("Theirs", Redistribution::Prohibited)).await;

        let blocked = store.blocked_feeds(ws).await.unwrap();
        let shown: Vec<_> = blocked
            .iter()
            .map(|feed| (feed.id, feed.name.as_str(), feed.redistribution))
            .collect();
        let want = [
            (closed.id, "Closed", Redistribution::Prohibited),
            (internal.id, "Internal", Redistribution::InternalOnly),
        ];
        assert_eq!(shown, want);

        let again = entry(ws, "feed.register");
        assert!(store.register_feed(ws, &closed, &again).await.is_err());
        assert_eq!(rows(&store.db, "feed").await.len(), 4);
        assert_eq!(
            rows(&store.db, "audit_entry").await.len(),
            4,
            "one entry for each feed"
        );
    });
}

const TOOL: &str = "tool--00000000-0000-4000-8000-000000000001";
const OTHER: &str = "tool--00000000-0000-4000-8000-000000000002";
const EDGE: &str = "relationship--00000000-0000-4000-8000-000000000003";
const EXTENSION: &str = "extension-definition--00000000-0000-4000-8000-000000000004";
pub(super) const MARKING: &str = "marking-definition--00000000-0000-4000-8000-000000000005";

pub(super) fn object(id: &str, year: u32, more: Value) -> Value {
    let kind = id.split_once("--").unwrap().0;
    let mut object = json!({"type": kind, "id": id, "spec_version": "2.1", "created": "2020-01-01T00:00:00.000Z",
        "modified": format!("{year}-01-01T00:00:00.000Z")});
    for (key, value) in more.as_object().unwrap() {
        object[key] = value.clone();
    }
    object
}

/// Two tools, a relationship between them, and a definition, in the version of a year.
fn version(year: u32) -> Vec<Value> {
    let named = json!({"name": "Tool"});
    let ends = json!({"relationship_type": "uses", "source_ref": TOOL, "target_ref": OTHER});
    let extension = json!({"name": "Extension", "schema": "https://example.com/schema.json", "version": "1.0",
        "extension_types": ["property-extension"],
        "created_by_ref": "identity--00000000-0000-4000-8000-000000000006"});
    vec![
        object(TOOL, year, named.clone()),
        object(OTHER, year, named),
        object(EDGE, year, ends),
        object(EXTENSION, year, extension),
    ]
}

async fn bring(store: &Store, ws: Uuid, feed: Option<Uuid>, objects: Vec<Value>) -> StixIngestOutcome {
    let defaults = StixDefaults {
        tlp: Tlp::Green,
        confidence: 0.5,
        now: DateTime::<Utc>::UNIX_EPOCH,
    };
    let known = store.markings(ws, &[MARKING.to_owned()], Tlp::Red).await.unwrap();
    let plan = ingest::plan(objects.into(), defaults, known);
    let audit = entry(ws, "ingest");
    let origin = StixOrigin {
        feed,
        ..origin(store, ws).await
    };
    let done = store.ingest_stix(ws, &plan, &origin, clock::now(), |_, _| audit.clone());
    done.await.unwrap()
}

/// The lists of feeds of all rows in a table; several rows must agree.
async fn feeds_in(store: &Store, table: &str) -> Option<Vec<Uuid>> {
    let query = format!("SELECT VALUE feeds FROM {table}");
    let mut lists: Vec<Option<Vec<Uuid>>> = store.db.query(query).await.unwrap().take(0).unwrap();
    lists.dedup();
    let [list] = lists.as_slice() else {
        panic!("{table}: {lists:?}");
    };
    list.clone()
}

async fn assert_feeds(store: &Store, [nodes, edges, supporting]: [&[Uuid]; 3], when: &str) {
    for (table, want) in [("node", nodes), ("edge", edges), ("stix_support", supporting)] {
        let want = Some(want.to_vec()).filter(|feeds| !feeds.is_empty());
        assert_eq!(feeds_in(store, table).await, want, "{table}: {when}");
    }
}

#[test]
fn a_row_remembers_the_feeds_of_all_its_versions() {
    run_on_each(|url| async move {
        let (store, ws) = (open(&url).await, Uuid::new_v4());
        let [a, b] = [Uuid::new_v4(), Uuid::new_v4()];
        bring(&store, ws, None, version(2020)).await;
        assert_feeds(&store, [&[], &[], &[]], "no feed brought it").await;
        bring(&store, ws, Some(a), version(2020)).await;
        assert_feeds(&store, [&[], &[], &[]], "the feed repeats what is known").await;
        bring(&store, ws, Some(a), version(2021)).await;
        assert_feeds(&store, [&[a], &[a], &[a]], "a newer version of a feed").await;
        bring(&store, ws, Some(b), version(2022)).await;
        assert_feeds(&store, [&[a, b], &[a, b], &[a, b]], "and one of another feed").await;
        bring(&store, ws, Some(a), version(2023)).await;
        assert_feeds(&store, [&[a, b], &[a, b], &[a, b]], "each is named once").await;
        let done = bring(&store, ws, None, version(2024)).await;
        assert_eq!((done.result.nodes_updated, done.result.edges_updated), (2, 1));
        assert_feeds(&store, [&[a, b], &[a, b], &[]], "a newer version of no feed").await;

        let (fresh, ws) = (fresh().await, Uuid::new_v4());
        bring(&fresh, ws, Some(a), version(2020)).await;
        assert_feeds(&fresh, [&[a], &[a], &[a]], "new rows of a feed").await;
    });
}

/// What all rows hold beside their feeds, as text.
async fn beside_feeds(store: &Store) -> Vec<String> {
    let mut all = Vec::new();
    for table in ["node", "edge", "stix_support", "evidence", "stix_held"] {
        let query = format!("SELECT * OMIT feeds FROM {table} ORDER BY id");
        let value: surrealdb::types::Value = store.db.query(query).await.unwrap().take(0).unwrap();
        all.push(format!("{value:?}"));
    }
    assert!(all[0].contains("Tool") && all[1].contains("uses"), "{all:?}");
    all
}

#[test]
fn the_same_version_from_no_feed_lifts_the_restriction_and_changes_nothing_else() {
    run_on_each(|url| async move {
        let (store, ws) = (open(&url).await, Uuid::new_v4());
        let [a, b] = [Uuid::new_v4(), Uuid::new_v4()];
        bring(&store, ws, Some(a), version(2021)).await;
        for (feed, year) in [(Some(a), 2021), (Some(b), 2021), (None, 2020)] {
            let done = bring(&store, ws, feed, version(year)).await;
            assert_eq!(done.skipped.total(), 4, "{:?}", done.skipped);
            assert_feeds(
                &store,
                [&[a], &[a], &[a]],
                "neither a feed nor an old version lifts",
            )
            .await;
        }
        let (before, last) = (beside_feeds(&store).await, store.last_write(ws).await.unwrap());
        let done = bring(&store, ws, None, version(2021)).await;
        assert_eq!(done.result, IngestResult::default());
        assert!(done.written.rows.nodes.is_empty());
        assert_eq!(done.skipped.by_type["tool"].count, 2);
        assert_eq!(done.skipped.by_type["relationship"].count, 1);
        assert_feeds(&store, [&[], &[], &[]], "the same version of no feed").await;
        let later = store.changes(ws, last, 10).await.unwrap();
        assert!(later.nodes.is_empty() && later.edges.is_empty(), "{later:?}");
        assert_eq!(beside_feeds(&store).await, before);
    });
}

#[test]
fn a_node_with_further_evidence_stays_restricted() {
    run(async {
        let (store, ws, a) = (fresh().await, Uuid::new_v4(), Uuid::new_v4());
        bring(&store, ws, Some(a), version(2020)).await;
        bring(&store, ws, Some(a), version(2021)).await;
        bring(&store, ws, None, version(2021)).await;
        assert_feeds(
            &store,
            [&[a], &[], &[]],
            "its older version came from the feed only",
        )
        .await;
    });
}

#[test]
fn other_workspaces_neither_lift_nor_inherit() {
    run(async {
        let (store, ws, a) = (fresh().await, Uuid::new_v4(), Uuid::new_v4());
        bring(&store, ws, Some(a), version(2020)).await;
        bring(&store, Uuid::new_v4(), None, version(2020)).await;
        let query = "SELECT VALUE feeds FROM node WHERE ws = $ws";
        let mut found = store.db.query(query).bind(("ws", ws)).await.unwrap();
        let lists: Vec<Option<Vec<Uuid>>> = found.take(0).unwrap();
        assert_eq!(lists, [Some(vec![a]), Some(vec![a])]);
        let free = "SELECT VALUE id FROM node WHERE ws != $ws AND feeds = NONE";
        let mut found = store.db.query(free).bind(("ws", ws)).await.unwrap();
        let ids: Vec<surrealdb::types::RecordId> = found.take(0).unwrap();
        assert_eq!(ids.len(), 2);
    });
}

/// Merges a draft into a node.
async fn merge(store: &Store, ws: Uuid, node: Uuid) -> DraftsIngestOutcome {
    let properties = Map::from_iter([("motive".to_owned(), json!("money"))]);
    let drafts = Drafts {
        nodes: vec![NodeDraft {
            identity: "tool\0x".into(),
            node_type: NodeType::Tool,
            name: "Tool".into(),
            description: "said elsewhere".into(),
            source: "s".into(),
            source_type: "osint",
            tlp: Tlp::Green,
            confidence: 0.5,
            properties: properties.into(),
            evidence: vec![0],
            merge_by_name: true,
        }],
        evidence: vec![EvidenceDraft {
            identity: "e".into(),
            kind: "osint",
            ext_id: None,
            title: "t".into(),
            source: "s".into(),
            tlp: Tlp::Green,
            raw: Map::new().into(),
        }],
        ..Drafts::default()
    };
    let write = DraftsWrite {
        ws,
        drafts: &drafts,
        merges: &HashMap::from([(0, node)]),
        highest: Tlp::Red,
        evidence_only: &HashSet::new(),
        corrections: &Corrections::default(),
        after: store.last_write(ws).await.unwrap(),
        now: clock::now(),
    };
    let audit = entry(ws, "ingest");
    store.ingest_drafts(&write, |_| audit.clone()).await.unwrap()
}

#[test]
fn what_is_merged_into_a_node_leaves_its_feeds() {
    run(async {
        let (store, ws, a) = (fresh().await, Uuid::new_v4(), Uuid::new_v4());
        bring(&store, ws, Some(a), version(2020)).await;
        let node = store.ids_of(ws).node(TOOL);
        let done = merge(&store, ws, node).await;
        assert_eq!((done.result.nodes_updated, done.ids), (1, vec![node]));
        assert_feeds(&store, [&[a], &[a], &[a]], "a draft is merged").await;
        bring(&store, ws, None, version(2020)).await;
        let ids = [node, store.ids_of(ws).node(OTHER)];
        let found = store.nodes_by_id(ws, &ids, Tlp::Red, false).await.unwrap();
        let mut feeds: Vec<_> = found.into_iter().map(|node| node.feeds).collect();
        feeds.sort();
        assert_eq!(
            feeds,
            [vec![], vec![a]],
            "the draft is further evidence of the first"
        );
    });
}

#[test]
fn re_marking_leaves_the_feeds() {
    run(async {
        let (store, ws, a) = (fresh().await, Uuid::new_v4(), Uuid::new_v4());
        let mut held = version(2020);
        for object in &mut held {
            object["object_marking_refs"] = json!([MARKING]);
        }
        let done = bring(&store, ws, Some(a), held).await;
        assert_eq!(done.result.held_back, 4);
        let definition = json!({"definition_type": "statement", "definition": {"statement": "x"}});
        let mut definition = object(MARKING, 2020, definition);
        definition.as_object_mut().unwrap().remove("modified");
        bring(&store, ws, Some(a), vec![definition]).await;
        let audit = |_| entry(ws, "remark");
        let mut after = store.last_write(ws).await.unwrap();
        while let Some(page) = store.release_held(ws, MARKING, after, audit).await.unwrap() {
            assert!(page.objects > 0);
            after = page.written.rev;
        }
        assert!(!store.has_held_objects(ws).await.unwrap());
        assert_feeds(&store, [&[a], &[a], &[a]], "the marking became known").await;
    });
}

#[test]
fn nodes_of_a_store_without_feeds_stay_readable_and_learn_their_feeds() {
    let (_dir, url) = new_dir();
    run(async move {
        let (ws, a) = (Uuid::new_v4(), Uuid::new_v4());
        let store = open(&url).await;
        number_by_time(&store, ws, 0).await;
        bring(&store, ws, None, version(2020)).await;
        drop(store);
        let db = owner(&url).await;
        db.query(WITHOUT_FEEDS).await.unwrap().check().unwrap();
        assert!(rows(&db, "node").await[0].contains("redistribution"));
        drop(db);

        let store = open(&url).await;
        let ids = [store.ids_of(ws).node(TOOL)];
        let found = store.nodes_by_id(ws, &ids, Tlp::Red, false).await.unwrap();
        assert!(found.len() == 1 && found[0].feeds.is_empty(), "{found:?}");
        bring(&store, ws, Some(a), version(2021)).await;
        assert_feeds(&store, [&[a], &[a], &[a]], "after the upgrade").await;
        assert!(!rows(&store.db, "node").await[0].contains("redistribution"));
    });
}
