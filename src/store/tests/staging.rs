//! A store of an earlier version: its open batches can be read, extended by further texts, and committed.

use std::collections::HashMap;
use std::net::IpAddr;

use secrecy::SecretString;
use serde_json::Map;
use surrealdb::engine::any::connect;
use surrealdb::opt::Config;
use test_support::eventually;
use uuid::Uuid;

use super::{SizeLimit, run};
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::naming::identity_of;
use crate::domain::node::NodeType;
use crate::domain::staging::{
    ExtractedEntity, ExtractedRelation, IngestMode, SourceType, StagedEntity, StagedStatus, StagingBatch,
    Summary,
};
use crate::domain::tlp::Tlp;
use crate::store::connection::database::{Connection, Database};
use crate::store::staging::rows::{BatchRow, StagedEntityRow};
use crate::store::{NewBatch, StorageMemory, Store};

/// The schema before a batch could take further texts.
const BEFORE: [&str; 2] = [
    include_str!("../../../schemas/0001_core.surql"),
    include_str!("../../../schemas/0002_notes.surql"),
];

fn actor(name: &str) -> (StagedEntity, ExtractedEntity) {
    let (identity, merge_by_name) = identity_of(NodeType::Actor, name);
    let found = ExtractedEntity {
        kind: None,
        node_type: NodeType::Actor,
        name: name.into(),
        description: String::new(),
        confidence: 0.5,
        reasoning: "named".into(),
        properties: Map::new(),
        identity,
        merge_by_name,
        span: None,
        warnings: Vec::new(),
    };
    let staged = StagedEntity {
        id: Uuid::new_v4(),
        batch_id: Uuid::nil(),
        status: StagedStatus::Accepted,
        node_type: found.node_type,
        name: found.name.clone(),
        description: String::new(),
        proposed_tlp: Tlp::Amber,
        proposed_confidence: 0.5,
        resolved_tlp: None,
        merge_target_id: None,
        duplicate_candidates: Vec::new(),
        warnings: Vec::new(),
        extraction_reasoning: "named".into(),
        node_id: None,
        unmarked: true,
    };
    (staged, found)
}

fn batch(entities: &[(StagedEntity, ExtractedEntity)]) -> StagingBatch {
    StagingBatch {
        id: Uuid::new_v4(),
        status: "open".into(),
        source_type: SourceType::Chat,
        session_id: Some("s".into()),
        ingest_mode: IngestMode::Review,
        summary: Summary::of(entities.iter().map(|(entity, _)| entity)),
        warnings: Vec::new(),
        created_at: clock::now(),
        committed_at: None,
    }
}

fn new<'a>(
    batch: &'a StagingBatch,
    entities: &'a [(StagedEntity, ExtractedEntity)],
    relations: &'a [ExtractedRelation],
) -> NewBatch<'a> {
    NewBatch {
        batch,
        user: Uuid::nil(),
        text: "a text of some length",
        tlp: Tlp::Amber,
        sensitive: false,
        relations,
        entities,
    }
}

fn uses() -> ExtractedRelation {
    ExtractedRelation {
        source: 0,
        target: 1,
        relationship: "related-to".into(),
        proof: "It says so.".into(),
        confidence: 0.5,
    }
}

/// A store of the previous version, with one open batch.
async fn fill(url: &str, ws: Uuid, new: &NewBatch<'_>) {
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
    let batch = BatchRow {
        sensitive: None,
        parts: None,
        text_bytes: None,
        ..BatchRow::new(ws, new).unwrap()
    };
    let entities: Vec<StagedEntityRow> = (0..)
        .zip(new.entities)
        .map(|(ord, (entity, found))| StagedEntityRow {
            parts: None,
            unmarked: None,
            ..StagedEntityRow::new(&batch, (ord, 0), entity, found).unwrap()
        })
        .collect();
    let insert =
        "INSERT INTO staging_batch $batch RETURN NONE; INSERT INTO staged_entity $entities RETURN NONE";
    let done = db
        .query(insert)
        .bind(("batch", batch))
        .bind(("entities", entities));
    done.await.unwrap().check().unwrap();
}

async fn open(url: &str) -> Store {
    let secret = SecretString::from("a secret of at least 32 bytes for tests");
    // The engine releases the directory in the background.
    eventually(|| Store::open(url, "hosted", StorageMemory::default(), None, &secret)).await
}

async fn check(url: String) {
    let ws = Uuid::new_v4();
    let old = [actor("Heron Group"), actor("Otter Group")];
    let (first, stated) = (batch(&old), [uses()]);
    fill(&url, ws, &new(&first, &old, &stated)).await;
    let store = open(&url).await;
    let (shown, entities) = store.batch(ws, first.id, Tlp::Amber).await.unwrap().unwrap();
    assert_eq!((shown.summary, entities.len()), (first.summary, 2));
    assert!(entities.iter().all(|entity| entity.unmarked));

    let more = [actor("Otter Group"), actor("Bittern Group")];
    let second = batch(&more);
    let ip = IpAddr::from([127, 0, 0, 1]);
    let entry = AuditEntry::anonymous(ws, ip, "test", "test", Outcome::Success, clock::now());
    let later = NewBatch {
        text: "A later text of the session.",
        ..new(&second, &more, &stated)
    };
    let staged = store
        .stage(ws, &later, Tlp::Amber, |_| entry.clone())
        .await
        .unwrap();
    assert_eq!((staged.batch, staged.part, staged.added), (first.id, 1, 1));
    let entry = AuditEntry::anonymous(ws, ip, "test", "test", Outcome::Success, clock::now());
    let done = store
        .commit_batch(
            ws,
            first.id,
            &HashMap::new(),
            (Tlp::Amber, 0),
            clock::now(),
            |_| entry.clone(),
        )
        .await
        .unwrap();
    let result = done.result;
    assert_eq!(
        (result.nodes_created, result.evidence_created, result.remaining),
        (3, 2, 0)
    );
    let touched = store.nodes_to_index(ws, &done.written.rows.nodes).await.unwrap();
    let linked = |name: &str| {
        let node = touched.iter().find(|stored| stored.node.name == name);
        node.unwrap().node.linked_evidence_ids.len()
    };
    assert_eq!(
        ["Heron Group", "Otter Group", "Bittern Group"].map(linked),
        [1, 2, 1]
    );
}

#[test]
fn an_open_batch_of_an_earlier_version_takes_in_a_further_text_and_is_committed() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("surrealkv://{}", dir.path().display());
    run(check(url));
}
