use std::sync::atomic::{AtomicBool, Ordering};

use test_support::eventually;

use super::*;
use crate::store::tests::{fresh, run};

#[test]
fn an_installation_keeps_its_id_and_is_locked_while_it_is_open() {
    let dir = tempfile::tempdir().unwrap();
    let first = Installation::open(dir.path()).unwrap();
    let refused = Installation::open(dir.path()).err().unwrap().to_string();
    assert!(refused.contains("in use by another process"), "{refused}");
    let id = first.id;
    drop(first);
    assert_eq!(Installation::open(dir.path()).unwrap().id, id);
    std::fs::write(dir.path().join(FILE), "half an i").unwrap();
    let new = Installation::open(dir.path()).unwrap().id;
    assert_ne!(new, id);
    assert_eq!(Installation::open(dir.path()).unwrap().id, new);
}

#[test]
fn a_second_installation_does_not_start_and_one_that_stopped_leaves_no_wait() {
    run(async {
        let store = Arc::new(fresh().await);
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let lease = Lease::take(&store, here.path()).await.unwrap();
        let refused = Lease::take(&store, there.path()).await.err().unwrap().to_string();
        let own = format!("process {}", std::process::id());
        assert!(
            refused.contains("in use by another process") && refused.contains(&own),
            "{refused}"
        );
        lease.release(&store).await;
        Lease::take(&store, there.path())
            .await
            .unwrap()
            .release(&store)
            .await;
        assert_eq!(Arc::strong_count(&store), 1, "nothing keeps the store open");
    });
}

#[test]
fn a_lease_is_renewed_until_another_process_has_it() {
    run(async {
        let store = Arc::new(fresh().await);
        let holder = |place: &str| Holder {
            instance: Uuid::from_u128(1),
            process: Uuid::new_v4(),
            place: place.into(),
        };
        let lasts = Duration::from_secs(30);
        let (old, new) = (holder("old"), holder("new"));
        store.take_lease(&old, lasts).await.unwrap();
        let gave_up = Arc::new(AtomicBool::new(false));
        let noted = Arc::clone(&gave_up);
        let lost = move || noted.store(true, Ordering::SeqCst);
        let (_stop, stopped) = watch::channel(());
        let every = Duration::from_millis(20);
        let renewing = tokio::spawn(renew(Arc::clone(&store), old, every, stopped, lost));
        for _ in 0..3 {
            let before = store.lease_renewed_at().await;
            eventually(|| async {
                let now = store.lease_renewed_at().await;
                if now == before { Err(now) } else { Ok(()) }
            })
            .await;
        }
        let stranger = Holder {
            instance: Uuid::from_u128(2),
            ..holder("stranger")
        };
        assert!(store.take_lease(&stranger, lasts).await.is_err());
        assert!(!gave_up.load(Ordering::SeqCst));
        store.take_lease(&new, lasts).await.unwrap();
        tokio::time::timeout(Duration::from_secs(5), renewing)
            .await
            .unwrap()
            .unwrap();
        assert!(gave_up.load(Ordering::SeqCst));
    });
}
