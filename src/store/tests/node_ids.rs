//! Ids of nodes, edges and evidence: nobody can compute them, and those of an older store stay.

use std::collections::{HashMap, HashSet};

use serde_json::Map;

use super::hot_tables::{ingest, previous, previous_workspace};
use super::*;
use crate::domain::draft::{Drafts, NodeDraft};
use crate::domain::ids::{IdSecret, WorkspaceIds};
use crate::domain::node::NodeType;
use crate::domain::permission::Tier;
use crate::domain::principal::Workspace;
use crate::store::rows::record;
use crate::store::{Corrections, DraftsIngestOutcome, DraftsWrite};

const IDENTITY: &str = "tool\0quiet heron";

fn heron(tlp: Tlp) -> Drafts {
    let node = NodeDraft {
        identity: IDENTITY.into(),
        node_type: NodeType::Tool,
        name: "Quiet Heron".into(),
        description: String::new(),
        source: "analyst".into(),
        source_type: "analyst",
        tlp,
        confidence: 0.5,
        properties: Map::new().into(),
        evidence: Vec::new(),
        merge_by_name: true,
    };
    Drafts {
        nodes: vec![node],
        ..Drafts::default()
    }
}

/// Sends drafts as somebody who may see up to `highest`; the id of the node, and whether it is new to the sender.
async fn send(store: &Store, ws: Uuid, drafts: &Drafts, highest: Tlp) -> (Uuid, bool) {
    let write = DraftsWrite {
        ws,
        drafts,
        merges: &HashMap::new(),
        highest,
        evidence_only: &HashSet::new(),
        corrections: &Corrections::default(),
        after: store.last_write(ws).await.unwrap(),
        now: clock::now(),
    };
    let audit = entry(ws, "ingest");
    let done = store.ingest_drafts(&write, |_| audit.clone()).await;
    let DraftsIngestOutcome { ids, result, .. } = done.unwrap();
    (ids[0], result.nodes_created == 1)
}

/// Makes the ids that anybody can compute who knows the workspace and the name.
pub(super) fn public(ws: Uuid) -> WorkspaceIds {
    IdSecret::new(Uuid::nil(), [ws]).ids_of(ws)
}

/// Those of the node.
fn public_ids(ws: Uuid) -> Vec<Uuid> {
    let levels = Tlp::ALL.map(|level| format!("{IDENTITY}\0up to {}", level.as_str()));
    let names = levels.into_iter().chain([IDENTITY.to_owned()]);
    names.map(|name| public(ws).node(&name)).collect()
}

/// A workspace that this store makes.
async fn new_workspace(store: &Store) -> Uuid {
    let workspace = Workspace {
        id: Uuid::new_v4(),
        name: "w".into(),
        tier: Tier::Pilot,
        tlp_ceiling: Tlp::Amber,
        elevated_clearance: false,
        red_export_grant: false,
        features: Vec::new(),
        created_at: clock::now(),
        is_operator: false,
        suspended: false,
    };
    let made = store.create_workspace(&workspace, false, None, None, clock::now());
    made.await.unwrap();
    workspace.id
}

#[test]
fn an_id_does_not_tell_whether_a_hidden_node_has_the_name() {
    run_on_each(|url| async move {
        let store = open(&url).await;
        let (open_ws, hiding) = (Uuid::new_v4(), Uuid::new_v4());
        let (hidden, _) = send(&store, hiding, &heron(Tlp::Red), Tlp::Red).await;
        for ws in [open_ws, hiding] {
            let (id, is_new) = send(&store, ws, &heron(Tlp::Green), Tlp::Amber).await;
            assert!(is_new, "{ws}");
            assert_ne!(id, hidden);
            assert!(!public_ids(ws).contains(&id));
            assert_eq!(
                send(&store, ws, &heron(Tlp::Green), Tlp::Amber).await,
                (id, false)
            );
        }
        assert!(!public_ids(hiding).contains(&hidden));
    });
}

#[test]
fn ids_stay_the_same_after_a_restart() {
    let (_dir, url) = new_dir();
    run(async move {
        let store = open(&url).await;
        let ws = new_workspace(&store).await;
        let (first, _) = send(&store, ws, &heron(Tlp::Green), Tlp::Amber).await;
        assert_eq!(ingest(&store, ws, &plan(3)).await, (5, 0));
        drop(store);
        drop(owner(&url).await);
        let store = open(&url).await;
        assert_eq!(
            send(&store, ws, &heron(Tlp::Green), Tlp::Amber).await,
            (first, false)
        );
        assert_eq!(ingest(&store, ws, &plan(3)).await, (0, 0), "all of it is known");
    });
}

#[test]
fn a_node_of_an_older_store_keeps_its_id_and_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("surrealkv://{}", dir.path().display());
    run(async move {
        let db = previous(&url).await;
        let ws = previous_workspace(&db).await;
        let old = public(ws).node(IDENTITY);
        let insert = "INSERT INTO node { id: $id, ws: $ws, node_type: 'tool', name: 'Quiet Heron', description: 'd', \
            source: 's', source_type: 'analyst', tlp_rank: 1, confidence: 0.5, properties: '{}', status: 'active', \
            evidence: [], evidence_tlp: [], modified: d'2019-01-01T00:00:00Z', rev: 1, redistribution: 'allowed', \
            ingested_at: time::now() } RETURN NONE";
        let insert = db.query(insert).bind(("ws", ws));
        let insert = insert.bind(("id", record("node", old)));
        insert.await.unwrap().check().unwrap();
        drop(db);

        let store = open(&url).await;
        assert_eq!(
            send(&store, ws, &heron(Tlp::Green), Tlp::Amber).await,
            (old, false)
        );
        // Who may not see it gets a node of their own.
        let (beside, is_new) = send(&store, ws, &heron(Tlp::White), Tlp::White).await;
        assert!(is_new && beside != old && !public_ids(ws).contains(&beside));
    });
}
