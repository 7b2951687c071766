//! Ids of the rows of STIX objects: nobody can compute them, and a workspace of an older store keeps its own.

use std::collections::{BTreeSet, HashSet};

use surrealdb::types::RecordId;

use super::hot_tables::{previous, previous_workspace};
use super::node_ids::public;
use super::*;
use crate::domain::graph::place::Place;
use crate::store::rows::key;

const TOOLS: [&str; 2] = [
    "tool--00000000-0000-4000-8000-000000000001",
    "tool--00000000-0000-4000-8000-000000000002",
];
const RELATIONSHIP: &str = "relationship--00000000-0000-4000-8000-000000000003";
const YEARS: [u32; 3] = [2020, 2021, 2022];

fn modified(year: u32) -> DateTime<Utc> {
    format!("{year}-01-01T00:00:00Z").parse().unwrap()
}

/// Sends a version of each object at this marking, as somebody who may see up to `highest`. The numbers of nodes and
/// edges that the answer calls new and updated.
async fn send(store: &Store, ws: Uuid, year: u32, (tlp, highest): (Tlp, Tlp)) -> [u64; 4] {
    let mut objects = TOOLS
        .map(|id| json!({"type": "tool", "id": id, "name": "Quiet Heron"}))
        .to_vec();
    objects.push(
        json!({"type": "relationship", "id": RELATIONSHIP, "relationship_type": "related-to",
        "source_ref": TOOLS[0], "target_ref": TOOLS[1]}),
    );
    for object in &mut objects {
        object["spec_version"] = json!("2.1");
        object["created"] = json!(modified(2019).to_rfc3339());
        object["modified"] = json!(modified(year).to_rfc3339());
    }
    let defaults = StixDefaults {
        tlp,
        confidence: 0.5,
        now: clock::now(),
    };
    let plan = ingest::plan(objects.into(), defaults, Markings::new());
    let origin = StixOrigin {
        highest: Some(highest),
        ..origin(store, ws).await
    };
    let audit = entry(ws, "ingest");
    let done = store.ingest_stix(ws, &plan, &origin, clock::now(), |_, _| audit.clone());
    let result = done.await.unwrap().result;
    [
        result.nodes_created,
        result.nodes_updated,
        result.edges_created,
        result.edges_updated,
    ]
}

/// The rows of a workspace in a table that one sees who may see up to `highest`.
async fn seen(store: &Store, ws: Uuid, table: &str, highest: Tlp) -> BTreeSet<Uuid> {
    let query = format!("SELECT VALUE id FROM {table} WHERE ws = $ws AND tlp_rank <= $highest");
    let query = store.db.query(query).bind(("ws", ws));
    let mut answer = query.bind(("highest", i64::from(highest.rank()))).await.unwrap();
    let found: Vec<RecordId> = answer.take(0).unwrap();
    found.iter().map(|id| key(id).unwrap()).collect()
}

/// The ids that anybody can compute who knows the workspace, the objects and the nodes' ids.
fn computable(ws: Uuid, nodes: &BTreeSet<Uuid>) -> HashSet<Uuid> {
    let ids = public(ws);
    let joined = |one: &Uuid, other: &Uuid| format!("{RELATIONSHIP}\0{one}\0{other}");
    let pairs = nodes
        .iter()
        .flat_map(|one| nodes.iter().map(move |other| joined(one, other)));
    let objects = TOOLS.into_iter().chain([RELATIONSHIP]).map(str::to_owned);
    let mut all = HashSet::new();
    for name in objects.chain(pairs) {
        let beside = Tlp::ALL.map(|level| Place::UpTo(level, 1).name(&name));
        let versions = YEARS.map(|year| format!("{name}\0{}", modified(year)));
        let of_rows = versions
            .iter()
            .flat_map(|name| nodes.iter().map(move |row| format!("{name}\0{row}")));
        let of_rows: Vec<String> = of_rows.collect();
        for name in beside.iter().chain(&versions).chain(&of_rows).chain([&name]) {
            all.extend([ids.node(name), ids.edge(name), ids.evidence(name)]);
        }
    }
    all
}

#[test]
fn ids_do_not_tell_whether_a_hidden_row_has_the_object() {
    run_on_each(|url| async move {
        let store = open(&url).await;
        let (without, with) = (Uuid::new_v4(), Uuid::new_v4());
        send(&store, with, 2020, (Tlp::Red, Tlp::Red)).await;
        for ws in [without, with] {
            for (year, told) in [(2021, [2, 0, 1, 0]), (2021, [0; 4]), (2022, [0, 2, 0, 1])] {
                assert_eq!(send(&store, ws, year, (Tlp::Green, Tlp::Amber)).await, told);
            }
            let nodes = seen(&store, ws, "node", Tlp::Amber).await;
            let guessed = computable(ws, &nodes);
            for (table, count) in [("node", 2), ("edge", 1), ("evidence", 4)] {
                let found = seen(&store, ws, table, Tlp::Red).await;
                assert!(found.iter().all(|id| !guessed.contains(id)), "{table} {found:?}");
                assert_eq!(seen(&store, ws, table, Tlp::Amber).await.len(), count, "{table}");
            }
        }
    });
}

#[test]
fn a_workspace_of_an_older_store_keeps_its_ids() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("surrealkv://{}", dir.path().display());
    run(async move {
        let db = previous(&url).await;
        let ws = previous_workspace(&db).await;
        drop(db);
        let store = open(&url).await;
        assert_eq!(store.ids_of(ws), public(ws));
        // As the version before would have written them: its ids are these.
        assert_eq!(
            send(&store, ws, 2020, (Tlp::Green, Tlp::Amber)).await,
            [2, 0, 1, 0]
        );
        let tables = ["node", "edge", "evidence"];
        let mut before = Vec::new();
        for table in tables {
            let found = seen(&store, ws, table, Tlp::Red).await;
            assert!(
                found.iter().all(|id| computable(ws, &found).contains(id)),
                "{table}"
            );
            before.push(found);
        }
        drop(store);
        let store = open(&url).await;
        assert_eq!(
            send(&store, ws, 2021, (Tlp::Green, Tlp::Amber)).await,
            [0, 2, 0, 1]
        );
        for (table, before) in tables.into_iter().zip(before) {
            let found = seen(&store, ws, table, Tlp::Red).await;
            assert!(found.is_superset(&before), "{table}");
            let versions = if table == "evidence" { 2 } else { 1 };
            assert_eq!(found.len(), before.len() * versions, "{table}");
        }
    });
}
