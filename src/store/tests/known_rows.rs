//! Rows that the index does not know are inserted without being read first. If one exists all the same, the outcome is that
//! of an ingest that read it.

use std::collections::HashSet;

use test_support::extent;

use super::*;
use crate::domain::ingest_result::IngestResult;

/// A relationship of each of these tools with the first one, and the tools themselves unless `alone`.
fn bundle(tools: std::ops::Range<usize>, year: u32, alone: bool) -> StixPlan {
    let (created, modified) = ("2020-01-01T00:00:00.000Z", format!("{year}-01-01T00:00:00.000Z"));
    let id = |kind: &str, at: usize| format!("{kind}--00000000-0000-4000-8000-{at:012}");
    let mut all = vec![];
    for at in tools {
        if !alone {
            all.push(
                json!({"type": "tool", "id": id("tool", at), "spec_version": "2.1", "name": format!("Tool {at}"),
                "created": created, "modified": modified}),
            );
        }
        all.push(
            json!({"type": "relationship", "id": id("relationship", at), "spec_version": "2.1",
            "created": created, "modified": modified, "relationship_type": "related-to",
            "source_ref": id("tool", at), "target_ref": id("tool", 0)}),
        );
    }
    let defaults = StixDefaults {
        tlp: Tlp::Green,
        confidence: 0.5,
        now: DateTime::<Utc>::UNIX_EPOCH,
    };
    ingest::plan(all.into(), defaults, Markings::new())
}

/// What ingests of some bundles, the first of this many tools, say if these rows may exist, and how many rows there are
/// afterwards.
async fn ingested(
    store: &Store,
    tools: usize,
    known: Option<HashSet<Uuid>>,
) -> (Vec<IngestResult>, Vec<usize>) {
    let ws = Uuid::new_v4();
    let mut results = Vec::new();
    let bundles = [
        (0..tools, 2020, false),
        (0..tools, 2020, false),
        (tools - 10..tools + 10, 2021, false),
        (0..tools + 10, 2020, false),
        (0..5, 2022, true),
    ];
    for (tools, year, alone) in bundles {
        let (plan, audit) = (bundle(tools, year, alone), entry(ws, "ingest"));
        let origin = StixOrigin {
            known: known.clone(),
            ..origin(store, ws).await
        };
        let done = store.ingest_stix(ws, &plan, &origin, clock::now(), |_, _| audit.clone());
        results.push(done.await.unwrap().result);
    }
    let mut counts = Vec::new();
    for table in ["node", "edge", "evidence", "audit_entry", "node_write"] {
        let all = rows(&store.db, table).await;
        counts.push(all.iter().filter(|row| row.contains(&ws.to_string())).count());
    }
    (results, counts)
}

#[test]
fn rows_that_were_taken_for_new_are_found_at_the_second_attempt() {
    run_on_each(|url| async move {
        let (store, tools) = (open(&url).await, extent(60, 300));
        let looked_for = ingested(&store, tools, None).await;
        let created: Vec<u64> = looked_for.0.iter().map(|result| result.nodes_created).collect();
        let updated: Vec<u64> = looked_for.0.iter().map(|result| result.edges_updated).collect();
        assert_eq!(created, [tools as u64, 0, 10, 0, 0]);
        assert_eq!(updated, [0, 0, 10, 0, 5]);
        assert_eq!(looked_for.1, [tools + 10, tools + 10, tools + 20, 5, 5]);
        assert_eq!(ingested(&store, tools, Some(HashSet::new())).await, looked_for);
    });
}
