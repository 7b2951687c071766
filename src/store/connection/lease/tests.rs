//! Two processes over one database: two stores on one connection.

use std::collections::HashMap;

use parking_lot::Mutex;
use test_support::eventually;

use super::*;
use crate::store::tests::{fresh, run};

const LASTS: Duration = Duration::from_secs(30);

impl Store {
    /// When the lease was renewed last, as the database prints it.
    pub(crate) async fn lease_renewed_at(&self) -> String {
        let query = "RETURN <string> lease:memory.renewed_at";
        let mut found = self.db.query(query).await.unwrap().check().unwrap();
        found.take::<Option<String>>(0).unwrap().unwrap()
    }
}

/// Another process's handle to the same database.
fn beside(store: &Store) -> Store {
    Store {
        db: store.db.clone(),
        id_secret: store.id_secret(),
        chains: Mutex::new(HashMap::new()),
        opened: crate::clock::now(),
        reserve: None,
        snapshots: std::sync::Arc::default(),
        unsaved: Mutex::default(),
        dir: None,
        temporary: None,
    }
}

fn holder(place: &str) -> Holder {
    Holder {
        instance: Uuid::new_v4(),
        process: Uuid::new_v4(),
        place: place.into(),
    }
}

#[test]
fn a_second_installation_is_told_where_the_first_one_runs_until_that_one_gives_the_lease_back() {
    run(async {
        let first = fresh().await;
        let second = beside(&first);
        let (one, other) = (holder("one, process 1"), holder("other, process 2"));
        first.take_lease(&one, LASTS).await.unwrap();
        let refused = second.take_lease(&other, LASTS).await.unwrap_err().to_string();
        assert!(
            refused.contains("in use by another process (one, process 1)") && refused.contains("30 seconds"),
            "{refused}"
        );
        assert!(!second.renew_lease(&other).await.unwrap());
        // A process that does not hold the lease can't release it either.
        second.release_lease(&other).await.unwrap();
        assert!(first.renew_lease(&one).await.unwrap());
        first.release_lease(&one).await.unwrap();
        second.take_lease(&other, LASTS).await.unwrap();
        assert!(!first.renew_lease(&one).await.unwrap());
    });
}

#[test]
fn the_lease_of_a_crashed_process_ends_and_its_own_installation_does_not_wait_for_that() {
    run(async {
        let first = fresh().await;
        let one = holder("one");
        first.take_lease(&one, LASTS).await.unwrap();
        let again = Holder {
            process: Uuid::new_v4(),
            ..one.clone()
        };
        let second = beside(&first);
        second.take_lease(&again, LASTS).await.unwrap();
        assert!(
            !first.renew_lease(&one).await.unwrap(),
            "the earlier process has lost it"
        );
        let other = holder("other");
        second.take_lease(&other, LASTS).await.unwrap_err();
        let short = Duration::from_millis(40);
        eventually(|| second.take_lease(&other, short)).await;
        assert!(!second.renew_lease(&again).await.unwrap());
        assert!(second.renew_lease(&other).await.unwrap());
    });
}

#[test]
fn of_many_that_come_at_once_one_gets_the_lease() {
    run(async {
        let store = fresh().await;
        let asks: Vec<_> = (0..8)
            .map(|number| {
                let store = beside(&store);
                tokio::spawn(async move { store.take_lease(&holder(&number.to_string()), LASTS).await })
            })
            .collect();
        let mut got = 0;
        for ask in asks {
            match ask.await.unwrap() {
                Ok(()) => got += 1,
                Err(StoreError::Held { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        }
        assert_eq!(got, 1);
    });
}
