//! What was handed in over TAXII: taken in once, again if that failed, and kept no longer than its review.

use chrono::TimeDelta;

use super::*;
use crate::domain::feed::{BatchState, InputKind};
use crate::domain::taxii::hand_in::{HandIn, HandedObject};
use crate::store::NewFeedBatch;

fn batch(user: Uuid, now: DateTime<Utc>) -> NewFeedBatch {
    NewFeedBatch {
        id: Uuid::now_v7(),
        feed: None,
        user,
        input_kind: InputKind::StixBundle,
        default_tlp: Tlp::Green,
        now,
    }
}

fn hand_in(user: Uuid, batch: Option<Uuid>, at: DateTime<Utc>) -> HandIn {
    HandIn {
        id: Uuid::new_v4(),
        user,
        at,
        batch,
        objects: vec![HandedObject {
            id: "tool--1".into(),
            version: "2024-01-01T00:00:00Z".into(),
            failure: None,
        }],
        unnamed_failures: 0,
    }
}

async fn begin(store: &Store, ws: Uuid, sent: &HandIn, batch: &NewFeedBatch) -> bool {
    let audit = entry(ws, "taxii.hand_in");
    store.begin_hand_in(ws, sent, batch, &audit).await.unwrap()
}

#[test]
fn what_failed_is_taken_in_again_and_anything_else_is_not() {
    run_on_each(|url| async move {
        let store = open(&url).await;
        let (ws, user, now) = (Uuid::new_v4(), Uuid::new_v4(), clock::now());
        let first = batch(user, now);
        let mut sent = hand_in(user, Some(first.id), now);
        assert!(begin(&store, ws, &sent, &first).await);
        let second = batch(user, now);
        sent.batch = Some(second.id);
        assert!(
            !begin(&store, ws, &sent, &second).await,
            "the first one is being staged"
        );
        let known = store.hand_in(ws, user, sent.id).await.unwrap().unwrap();
        assert_eq!(known.batch, Some(first.id));
        let ended = entry(ws, "feed.upload_failed");
        store
            .fail_pull(ws, (first.id, None), "the disk", now, &ended)
            .await
            .unwrap();
        let failed = store.review_state(ws, first.id, Tlp::Red).await.unwrap().unwrap();
        assert_eq!(
            (failed.state, failed.error.as_deref()),
            (BatchState::Failed, Some("the disk"))
        );
        assert_eq!(known.status(Some(&failed)).failure_count, 1);
        assert!(begin(&store, ws, &sent, &second).await);
        assert_eq!(
            store.hand_in(ws, user, sent.id).await.unwrap(),
            Some(sent.clone())
        );
        for (ws, user) in [(Uuid::new_v4(), user), (ws, Uuid::new_v4())] {
            assert_eq!(store.hand_in(ws, user, sent.id).await.unwrap(), None);
        }
    });
}

#[test]
fn a_status_is_kept_as_long_as_its_review() {
    run_on_each(|url| async move {
        let store = open(&url).await;
        let (ws, user, now) = (Uuid::new_v4(), Uuid::new_v4(), clock::now());
        let old = now - TimeDelta::days(31);
        let in_review = batch(user, old);
        let kept = hand_in(user, Some(in_review.id), old);
        assert!(begin(&store, ws, &kept, &in_review).await);
        let gone = [hand_in(user, None, old), hand_in(user, Some(Uuid::new_v4()), old)];
        let recent = hand_in(user, None, now);
        for one in gone.iter().chain([&recent]) {
            store
                .put_hand_in(ws, one, &entry(ws, "taxii.hand_in"))
                .await
                .unwrap();
        }
        assert_eq!(store.sweep_hand_ins(now - TimeDelta::days(30)).await.unwrap(), 2);
        for (one, is_kept) in [
            (&kept, true),
            (&recent, true),
            (&gone[0], false),
            (&gone[1], false),
        ] {
            let found = store.hand_in(ws, user, one.id).await.unwrap();
            assert_eq!(found.is_some(), is_kept);
        }
    });
}
