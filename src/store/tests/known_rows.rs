//! Rows that an ingest takes for new are inserted without a look; those that exist all the same are treated as ever.

use std::collections::HashSet;

use super::*;
use crate::store::IngestResult;

/// Tools, and a relationship of each with the first one.
fn bundle(tools: std::ops::Range<usize>, year: u32) -> StixPlan {
    let (created, modified) = ("2020-01-01T00:00:00.000Z", format!("{year}-01-01T00:00:00.000Z"));
    let id = |kind: &str, at: usize| format!("{kind}--00000000-0000-4000-8000-{at:012}");
    let mut all = vec![];
    for at in tools {
        all.push(
            json!({"type": "tool", "id": id("tool", at), "spec_version": "2.1", "name": format!("Tool {at}"),
            "created": created, "modified": modified}),
        );
        all.push(
            json!({"type": "relationship", "id": id("relationship", at), "spec_version": "2.1",
            "created": created, "modified": modified, "relationship_type": "related-to",
            "source_ref": id("tool", at), "target_ref": id("tool", 0)}),
        );
    }
    let defaults = Defaults {
        tlp: Tlp::Green,
        confidence: 0.5,
        now: DateTime::<Utc>::UNIX_EPOCH,
    };
    ingest::plan(all.into(), defaults, Markings::new())
}

/// What ingests of some bundles say if these rows may exist, and how many rows there are afterwards.
async fn ingested(store: &Store, known: Option<HashSet<Uuid>>) -> (Vec<IngestResult>, Vec<usize>) {
    let ws = Uuid::new_v4();
    let origin = StixOrigin {
        known,
        ..StixOrigin::default()
    };
    let mut results = Vec::new();
    let bundles = [(0..300, 2020), (0..300, 2020), (290..310, 2021), (0..310, 2020)];
    for (tools, year) in bundles {
        let (plan, audit) = (bundle(tools, year), entry(ws, "ingest"));
        let done = store.ingest_stix(ws, &plan, &origin, clock::now(), |_, _| audit.clone(), |_, _| ());
        results.push(done.await.unwrap().result);
    }
    let mut counts = Vec::new();
    for table in ["node", "edge", "evidence", "audit", "node_write"] {
        let all = rows(&store.db, table).await;
        counts.push(all.iter().filter(|row| row.contains(&ws.to_string())).count());
    }
    (results, counts)
}

#[test]
fn rows_that_were_taken_for_new_are_found_at_the_second_attempt() {
    run_on_each(|url| async move {
        let store = open(&url).await;
        let looked_for = ingested(&store, None).await;
        let created: Vec<u64> = looked_for.0.iter().map(|result| result.nodes_created).collect();
        let updated: Vec<u64> = looked_for.0.iter().map(|result| result.edges_updated).collect();
        assert_eq!((created, updated), (vec![300, 0, 10, 0], vec![0, 0, 10, 0]));
        assert_eq!(looked_for.1, [310, 310, 320, 4, 4]);
        assert_eq!(ingested(&store, Some(HashSet::new())).await, looked_for);
    });
}
