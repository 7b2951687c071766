//! What expires after its retention period, and what does not.

use chrono::TimeDelta;
use serde_json::Map;
use surrealdb::types::{SurrealValue, Value as Row};
use test_support::extent;

use super::*;
use crate::domain::node::NodeType;
use crate::domain::staging::{
    ExtractedEntity, IngestMode, SourceType, StagedEntity, StagedStatus, StagingBatch, Summary,
};
use crate::store::rows::record;
use crate::store::{NewBatch, StagedText};

/// Saves a session created this many hours ago.
async fn session(store: &Store, tenant: Uuid, hours: i64) -> Uuid {
    let id = Uuid::new_v4();
    let record = SessionRecord {
        session: RecallSession {
            id,
            query: "q".into(),
            mode: RecallMode::Blended,
            result_count: 0,
            max_tlp: Tlp::White,
            has_red_node: false,
            node_ids: Vec::new(),
            created_at: clock::now() - TimeDelta::hours(hours),
        },
        user: Uuid::new_v4(),
        include_rejected: false,
    };
    store
        .save_session(tenant, &record, &entry(tenant, "search"))
        .await
        .unwrap();
    id
}

/// Adds sessions like this one, created this many hours ago, as one statement: a debug build takes long to save many.
async fn repeat(store: &Store, session: Uuid, hours: impl Iterator<Item = i64>) {
    let query = store.db.query("SELECT * FROM ONLY $saved");
    let found = query.bind(("saved", record("recall_session", session))).await;
    let saved: Row = found.unwrap().take(0).unwrap();
    let copies = hours.map(|hours| {
        let Row::Object(mut fields) = saved.clone() else {
            panic!("{saved:?}");
        };
        let created_at = clock::now() - TimeDelta::hours(hours);
        fields.insert(
            "id".to_owned(),
            record("recall_session", Uuid::new_v4()).into_value(),
        );
        fields.insert("created_at".to_owned(), created_at.into_value());
        Row::Object(fields)
    });
    let copies: Vec<Row> = copies.collect();
    let insert = store.db.query("INSERT INTO recall_session $copies RETURN NONE");
    let done = insert.bind(("copies", copies)).await;
    done.unwrap().check().unwrap();
}

/// Saves a batch with one entity, committed this many days ago or still open.
async fn batch(store: &Store, tenant: Uuid, committed: Option<i64>) -> Uuid {
    let batch = StagingBatch {
        id: Uuid::new_v4(),
        status: if committed.is_some() { "committed" } else { "open" }.into(),
        source_type: SourceType::ManualText,
        session_id: None,
        ingest_mode: IngestMode::Review,
        summary: Summary::default(),
        warnings: Vec::new(),
        created_at: clock::now() - TimeDelta::days(400),
        committed_at: committed.map(|days| clock::now() - TimeDelta::days(days)),
    };
    let entity = StagedEntity {
        id: Uuid::new_v4(),
        batch_id: batch.id,
        status: StagedStatus::Rejected,
        node_type: NodeType::Tool,
        name: "Mimikatz".into(),
        description: String::new(),
        proposed_tlp: Tlp::Green,
        proposed_confidence: 0.5,
        resolved_tlp: None,
        merge_target_id: None,
        duplicate_candidates: Vec::new(),
        warnings: Vec::new(),
        extraction_reasoning: String::new(),
        node_id: None,
        unmarked: false,
    };
    let found = ExtractedEntity {
        kind: None,
        node_type: NodeType::Tool,
        name: "Mimikatz".into(),
        description: String::new(),
        confidence: 0.5,
        reasoning: String::new(),
        properties: Map::new(),
        identity: "tool:mimikatz".into(),
        merge_by_name: true,
        span: None,
        warnings: Vec::new(),
    };
    let new = NewBatch {
        batch: &batch,
        user: Uuid::new_v4(),
        text: "They used Mimikatz.",
        tlp: Tlp::Green,
        sensitive: false,
        relations: &[],
        entities: &[(entity, found)],
    };
    let audited = |_: &StagedText| entry(tenant, "preview");
    store.stage(tenant, &new, Tlp::Red, audited).await.unwrap();
    batch.id
}

#[test]
fn sessions_older_than_their_period_end_and_younger_ones_stay() {
    run(async {
        let (store, tenant) = (fresh().await, Uuid::new_v4());
        let old = session(&store, tenant, 91 * 24).await;
        // More than fit in one removal transaction.
        let ended = extent(520, 1_100);
        repeat(&store, old, (1..ended).map(|hours| 91 * 24 + hours)).await;
        let young = [
            session(&store, tenant, 89 * 24).await,
            session(&store, tenant, 0).await,
        ];
        let audit = rows(&store.db, "audit_entry").await.len();

        let before = clock::now() - TimeDelta::days(90);
        let ended = ended as usize;
        assert_eq!(rows(&store.db, "recall_session").await.len(), ended + young.len());
        assert_eq!(store.sweep_sessions(before).await.unwrap(), ended);
        assert_eq!(store.sweep_sessions(before).await.unwrap(), 0);
        assert!(store.session(tenant, old).await.unwrap().is_none());
        assert_eq!(rows(&store.db, "recall_session").await.len(), young.len());
        for id in young {
            assert!(store.session(tenant, id).await.unwrap().is_some());
        }
        assert_eq!(rows(&store.db, "audit_entry").await.len(), audit);
    });
}

#[test]
fn the_database_keeps_a_session_of_today_whatever_the_sweeper_asks() {
    run(async {
        let (store, tenant) = (fresh().await, Uuid::new_v4());
        let fresh = session(&store, tenant, 1).await;
        let old = session(&store, tenant, 30).await;
        store
            .sweep_sessions(clock::now() + TimeDelta::days(1))
            .await
            .unwrap();
        assert!(store.session(tenant, fresh).await.unwrap().is_some());
        assert!(store.session(tenant, old).await.unwrap().is_none());
    });
}

#[test]
fn finished_batches_end_with_their_entities_and_open_ones_never() {
    run(async {
        let (store, tenant) = (fresh().await, Uuid::new_v4());
        let mut old = Vec::new();
        for days in 31..50 {
            old.push(batch(&store, tenant, Some(days)).await);
        }
        let kept = [
            batch(&store, tenant, Some(29)).await,
            batch(&store, tenant, None).await,
        ];
        let before = clock::now() - TimeDelta::days(30);
        assert_eq!(store.sweep_batches(before).await.unwrap(), old.len());
        for id in old {
            assert!(store.batch(tenant, id, Tlp::Red).await.unwrap().is_none());
        }
        for id in kept {
            let (_, entities) = store.batch(tenant, id, Tlp::Red).await.unwrap().unwrap();
            assert_eq!(entities.len(), 1);
        }
        assert_eq!(rows(&store.db, "staged_entity").await.len(), kept.len());
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_end_soon_are_those_that_are_valid_now() {
    let (store, now) = (fresh().await, clock::now());
    let statement = "INSERT INTO api_key { id: type::record('api_key', $id), ws: $id, owner: $id, name: $name, \
        key_hash: $name, scopes: ['read'], expires_at: $expires_at, revoked_at: $revoked_at, created_at: $now }";
    for (name, ends_in, revoked) in [
        ("gone", Some(-1), false),
        ("soon", Some(3), false),
        ("revoked", Some(3), true),
        ("later", Some(30), false),
        ("never", None, false),
    ] {
        let made = store
            .db
            .query(statement)
            .bind(("id", Uuid::new_v4()))
            .bind(("name", name.to_owned()));
        let made = made.bind(("expires_at", ends_in.map(|days| now + TimeDelta::days(days))));
        let made = made
            .bind(("revoked_at", revoked.then_some(now)))
            .bind(("now", now));
        made.await.unwrap().check().unwrap();
    }
    let ending = store
        .ending_api_keys(now, now + TimeDelta::days(14))
        .await
        .unwrap();
    let names: Vec<&str> = ending.iter().map(|key| key.name.as_str()).collect();
    assert_eq!(names, ["soon"]);
}
