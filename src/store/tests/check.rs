//! What a check of a store finds.

use std::sync::Weak;

use uuid::Uuid;

use super::{entry, open, origin, plan};
use crate::archive::ServiceKind;
use crate::clock;
use crate::lifecycle::wait_until_closed;
use crate::store::archive::Purpose;
use crate::store::{StorageMemory, StoreReport, StoreTarget};

fn target(url: &str) -> StoreTarget {
    StoreTarget {
        url: url.to_owned(),
        memory: StorageMemory::default(),
        server: None,
        service: ServiceKind::Hosted,
    }
}

async fn faults(url: &str) -> (StoreReport, Vec<(&'static str, u64)>) {
    let target = target(url);
    let report = target.check().await.unwrap();
    wait_until_closed(&Weak::new(), target.dir(), None).await;
    let faults = report.faults().map(|(name, count, _)| (name, count)).collect();
    (report, faults)
}

/// Runs a statement as the owner, while no service has the store open.
async fn meddle(url: &str, statement: &str) {
    let open = target(url).open(Purpose::Read).await.unwrap();
    open.db
        .query(statement.to_owned())
        .await
        .unwrap()
        .check()
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sound_store_is_sound_and_what_lacks_something_is_named() {
    // The marker stands beside the store.
    let dir = tempfile::tempdir().unwrap();
    let url = format!("surrealkv://{}", dir.path().join("store").display());
    let ws = Uuid::new_v4();
    {
        let store = open(&url).await;
        for objects in 3..6 {
            let (plan, origin, ingested) = (plan(objects), origin(&store, ws).await, entry(ws, "ingest"));
            let done = store.ingest_stix(ws, &plan, &origin, clock::now(), |_, _| ingested.clone());
            done.await.unwrap();
        }
    }
    wait_until_closed(&Weak::new(), target(&url).dir(), None).await;
    let (report, found) = faults(&url).await;
    assert_eq!(found, [], "{report:?}");
    assert_eq!(report.tables["node"], 5);
    assert_eq!(report.workspaces[&ws], 3, "{report:?}");
    for (statement, fault) in [
        (
            "INSERT RELATION INTO edge { id: edge:u'$ws', in: node:u'$ws', out: node:u'$ws', ws: u'$ws', tlp_rank: 1, relationship: 'uses', active: true }",
            "relationships without an end",
        ),
        (
            "DELETE (SELECT VALUE id FROM evidence LIMIT 1)",
            "nodes whose evidence is missing",
        ),
        (
            "DELETE type::record('node_write', [u'$ws', 2, 0])",
            "gaps in the numbers of writes",
        ),
    ] {
        meddle(&url, &statement.replace("$ws", &ws.to_string())).await;
        let (report, found) = faults(&url).await;
        assert!(
            found.iter().any(|(name, count)| *name == fault && *count >= 1),
            "{fault}: {report:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_rewritten_when_no_snapshot_keeps_what_was_deleted() {
    let store = super::fresh().await;
    let snapshot = store.snapshot().await.unwrap();
    let purged = tokio::time::timeout(std::time::Duration::from_millis(200), store.purge()).await;
    assert!(purged.is_err(), "it waits for the snapshot");
    snapshot.end().await;
    store.purge().await.unwrap();
}
