//! Group commit, the order of the chain, and draining.

use std::future::Future;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::future::{join, join_all};
use test_support::until;

use super::*;
use crate::actors::roster::Roster;
use crate::clock;
use crate::config::ActorSettings;
use crate::domain::audit::{ChainLink, Outcome};
use crate::store::AuditFilter;
use crate::store::tests::fresh;

const SETTINGS: ActorSettings = ActorSettings {
    mailbox: 4096,
    gate: 4,
    write_gate: 4096,
    timeout_ms: 20_000,
    write_timeout_ms: 20_000,
};

/// Runs a test as production does, on threads whose stack is large enough for the engine.
fn run<F: Future<Output = ()>>(test: F) {
    let system = actix::System::with_tokio_rt(|| {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_stack_size(16 << 20)
            .enable_all()
            .build()
            .unwrap()
    });
    system.block_on(async {
        tokio::time::timeout(Duration::from_secs(60), test)
            .await
            .expect("the test hangs");
    });
}

fn audit_writer(store: &Arc<Store>, settings: ActorSettings) -> AuditHandle {
    let store = Arc::clone(store);
    Roster::new(move |_| settings).stateful(move || AuditWriter::new(Arc::clone(&store)))
}

async fn store() -> Arc<Store> {
    Arc::new(fresh().await)
}

fn entry(tenant: Uuid, n: usize) -> AuditEntry {
    let ip = IpAddr::from([127, 0, 0, 1]);
    AuditEntry::anonymous(tenant, ip, "test.act", "test", Outcome::Success, clock::now()).with("n", n as u64)
}

fn entries(tenant: Uuid, n: usize) -> Vec<AuditEntry> {
    (0..n).map(|n| entry(tenant, n)).collect()
}

/// The head of a chain with these entries in this order.
fn head_of(entries: &[AuditEntry]) -> String {
    let mut last: Option<ChainLink> = None;
    for entry in entries {
        let prev = last.as_ref().map(|link| (link.seq, link.hash.as_str()));
        last = Some(ChainLink::after(entry.tenant_id, prev, entry.id, entry.digest()));
    }
    last.map_or_else(|| ChainLink::GENESIS.to_owned(), |link| link.hash)
}

#[test]
fn a_thousand_concurrent_appends_are_all_acknowledged_and_chained_in_their_order() {
    run(async {
        let store = store().await;
        let writer = audit_writer(&store, SETTINGS);
        let (one, other) = (Uuid::new_v4(), Uuid::new_v4());
        let (ours, theirs) = (entries(one, 1000), entries(other, 300));
        let appends = ours
            .iter()
            .chain(&theirs)
            .map(|entry| writer.call(Append(entry.clone())));
        for result in join_all(appends).await {
            result.unwrap();
        }
        for (tenant, sent) in [(one, &ours), (other, &theirs)] {
            let report = writer.call(VerifyChain { tenant }).await.unwrap();
            assert_eq!(
                (report.valid, report.entries, report.unchained),
                (true, sent.len() as u64, 0)
            );
            assert_eq!(report.head, head_of(sent), "the chain has another order");
        }
    });
}

#[test]
fn the_writer_ends_and_lets_go_of_the_store_when_nobody_holds_it() {
    run(async {
        let store = store().await;
        let writer = audit_writer(&store, SETTINGS);
        writer.call(Append(entry(Uuid::new_v4(), 0))).await.unwrap();
        writer.call(Drain).await.unwrap();
        drop(writer);
        until(|| Arc::strong_count(&store) == 1).await;
    });
}

#[test]
fn an_append_is_acknowledged_only_when_it_is_in_the_log() {
    run(async {
        let store = store().await;
        let writer = audit_writer(&store, SETTINGS);
        let tenant = Uuid::new_v4();
        for n in 1..=20u32 {
            writer.call(Append(entry(tenant, 0))).await.unwrap();
            let filter = AuditFilter {
                limit: 100,
                ..AuditFilter::default()
            };
            assert_eq!(store.list_audit(tenant, &filter).await.unwrap().len(), n as usize);
        }
    });
}

#[test]
fn drain_waits_until_everything_that_was_accepted_is_written_and_linked() {
    run(async {
        let store = store().await;
        let writer = audit_writer(&store, SETTINGS);
        let tenant = Uuid::new_v4();
        let sent = entries(tenant, 700);
        let appends = join_all(sent.iter().map(|entry| writer.call(Append(entry.clone()))));
        let drained = async {
            writer.call(Drain).await.unwrap();
            store.verify_audit(tenant).await.unwrap()
        };
        let (results, report) = join(appends, drained).await;
        assert!(results.iter().all(Result::is_ok));
        assert_eq!((report.valid, report.entries, report.unchained), (true, 700, 0));
        // An idle writer is drained at once.
        writer.call(Drain).await.unwrap();
    });
}

#[test]
fn verify_answers_while_entries_keep_coming() {
    run(async {
        let store = store().await;
        let writer = audit_writer(&store, SETTINGS);
        let tenant = Uuid::new_v4();
        let written = Arc::new(AtomicU32::new(0));
        let streams: Vec<_> = (0..8)
            .map(|_| {
                let (writer, written) = (writer.clone(), Arc::clone(&written));
                tokio::spawn(async move {
                    loop {
                        writer.call(Append(entry(tenant, 0))).await.unwrap();
                        written.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        until(|| written.load(Ordering::Relaxed) >= 80).await;
        let answer = tokio::time::timeout(Duration::from_secs(10), writer.call(VerifyChain { tenant })).await;
        let report = answer.expect("verify starves").unwrap();
        assert!(report.valid, "{report:?}");
        assert!(report.entries > 0);
        streams.iter().for_each(tokio::task::JoinHandle::abort);
    });
}

#[test]
fn entries_written_by_another_actor_get_their_link_when_it_is_asked_for() {
    run(async {
        let store = store().await;
        let tenant = Uuid::new_v4();
        let sent = entries(tenant, 3);
        store.append_audit(&sent).await.unwrap();
        let before = store.verify_audit(tenant).await.unwrap();
        assert_eq!((before.valid, before.entries, before.unchained), (true, 0, 3));
        let writer = audit_writer(&store, SETTINGS);
        for entry in sent {
            writer.call(Chain(entry)).await.unwrap();
        }
        let report = writer.call(VerifyChain { tenant }).await.unwrap();
        assert_eq!((report.valid, report.entries, report.unchained), (true, 3, 0));
    });
}
