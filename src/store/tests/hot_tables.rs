//! Nodes and edges: what the database still checks, also in a store whose schema listed every field.

use super::node_ids::public;
use super::*;
use crate::store::connection::error::StoreError;
use crate::store::rows::record;

/// The schema that listed every field of nodes and edges.
const BEFORE: [&str; 11] = [
    include_str!("../../../schemas/0001_core.surql"),
    include_str!("../../../schemas/0002_notes.surql"),
    include_str!("../../../schemas/0003_retention.surql"),
    include_str!("../../../schemas/0004_staging_sessions.surql"),
    include_str!("../../../schemas/0005_local.surql"),
    include_str!("../../../schemas/0006_addresses.surql"),
    include_str!("../../../schemas/0007_held_back.surql"),
    include_str!("../../../schemas/0008_node_writes.surql"),
    include_str!("../../../schemas/0009_feeds.surql"),
    include_str!("../../../schemas/0010_demo.surql"),
    include_str!("../../../schemas/0011_pilot.surql"),
];

/// The fields that the database knows of a table, in order.
async fn fields(db: &Database, table: &str) -> Vec<String> {
    let query = format!("RETURN object::keys((INFO FOR TABLE {table}).fields)");
    let mut fields: Vec<String> = db.query(query).await.unwrap().take(0).unwrap();
    fields.sort_unstable();
    fields
}

pub(super) async fn ingest(store: &Store, ws: Uuid, plan: &StixPlan) -> (u64, u64) {
    let audit = entry(ws, "ingest");
    let origin = origin(store, ws).await;
    let done = store.ingest_stix(ws, plan, &origin, clock::now(), |_, _| audit.clone());
    let result = done.await.unwrap().result;
    (
        result.nodes_created + result.edges_created,
        result.nodes_updated + result.edges_updated,
    )
}

/// Makes a store with that schema.
pub(super) async fn previous(url: &str) -> Database {
    let db = Database::new(
        Connection::Remote(connect((url, Config::new())).await.unwrap()),
        SizeLimit::new(256 << 20),
    );
    let define = "DEFINE NAMESPACE threat_memory; USE NS threat_memory; DEFINE DATABASE hosted";
    db.query(define).await.unwrap().check().unwrap();
    db.use_database("threat_memory", "hosted").await.unwrap();
    let versions = "DEFINE TABLE schema_version TYPE NORMAL SCHEMAFULL PERMISSIONS NONE; \
                    DEFINE FIELD applied_at ON schema_version TYPE datetime";
    db.query(versions).await.unwrap().check().unwrap();
    for (number, script) in (1..).zip(BEFORE) {
        let whole = format!("{script} CREATE schema_version:{number} SET applied_at = time::now()");
        db.query(whole).await.unwrap().check().unwrap();
    }
    for table in ["node", "edge"] {
        assert!(fields(&db, table).await.len() > 15, "{table}");
    }
    db
}

/// A workspace of such a store.
pub(super) async fn previous_workspace(db: &Database) -> Uuid {
    let ws = Uuid::new_v4();
    let create = "CREATE $id SET name = 'w', tier = 'pilot', tlp_ceiling = 2, elevated_clearance = false, \
        red_export_grant = false, features = [], is_operator = false, is_demo = false, created_at = time::now()";
    let create = db.query(create).bind(("id", record("workspace", ws)));
    create.await.unwrap().check().unwrap();
    ws
}

#[test]
fn a_store_with_every_field_in_its_schema_keeps_its_rows_and_takes_new_ones() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("surrealkv://{}", dir.path().display());
    run(async move {
        let db = previous(&url).await;
        let ws = previous_workspace(&db).await;
        let node = public(ws).node("tool--00000000-0000-4000-8000-000000000000");
        let insert = "INSERT INTO node { id: $id, ws: $ws, node_type: 'tool', name: 'Tool 0', description: 'd', \
            source: 's', source_type: 'stix', tlp_rank: 1, confidence: 0.5, properties: '{}', status: 'active', \
            evidence: [$ws], evidence_tlp: [1], modified: d'2019-01-01T00:00:00Z', rev: 1, redistribution: 'allowed', \
            ingested_at: time::now() } RETURN NONE";
        let insert = db.query(insert).bind(("ws", ws));
        let insert = insert.bind(("id", record("node", node)));
        insert.await.unwrap().check().unwrap();
        drop(db);

        let store = open(&url).await;
        let found = store.nodes_by_id(ws, &[node], Tlp::Green, false).await.unwrap();
        assert_eq!(found[0].node.name, "Tool 0");
        assert_eq!(found[0].node.linked_evidence_ids, [ws]);
        assert_eq!(
            ingest(&store, ws, &plan(3)).await,
            (4, 1),
            "two tools and two edges are new"
        );
        let found = store.nodes_by_id(ws, &[node], Tlp::Green, false).await.unwrap();
        assert_eq!(
            found[0].node.linked_evidence_ids.len(),
            2,
            "what it knew and the new version"
        );
        drop(store);

        let db = owner(&url).await;
        assert_eq!(fields(&db, "node").await, ["tlp_rank", "ws"]);
        assert_eq!(fields(&db, "edge").await, ["in", "out", "tlp_rank", "ws"]);
        assert!(
            fields(&db, "evidence").await.len() >= 8,
            "evidence is as strict as before"
        );
    });
}

#[test]
fn a_row_keeps_its_workspace_and_a_marking_that_exists() {
    run_on_each(|url| async move {
        let (store, ws) = (open(&url).await, Uuid::new_v4());
        ingest(&store, ws, &plan(3)).await;
        let before = [rows(&store.db, "node").await, rows(&store.db, "edge").await];
        for attack in [
            "UPDATE node SET ws = rand::uuid()",
            "UPDATE node SET tlp_rank = 5",
            "UPDATE node SET tlp_rank = NONE",
            "UPDATE edge SET tlp_rank = 'green'",
            "UPDATE edge SET ws = NONE",
            "INSERT INTO node { id: rand::uuid(), tlp_rank: 1 }",
            "INSERT INTO node { id: rand::uuid(), ws: rand::uuid() }",
            "INSERT RELATION INTO edge { id: rand::uuid(), in: audit:a, out: audit:b, ws: rand::uuid(), tlp_rank: 1 }",
        ] {
            let refused = store.db.query(attack).await.and_then(|answer| answer.check());
            let error = StoreError::from(refused.expect_err(attack)).to_string();
            assert!(
                error.contains("Couldn't coerce") || error.contains("eadonly"),
                "{attack}: {error}"
            );
            let after = [rows(&store.db, "node").await, rows(&store.db, "edge").await];
            assert_eq!(after, before, "{attack}");
        }
    });
}
