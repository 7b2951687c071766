//! Pilot requests and the e-mails about them.

use std::time::Duration;

use chrono::TimeDelta;

use super::*;
use crate::domain::pilot::{ApplicantEmail, Application, Line, Notification, PilotRequest, PilotRole};
use crate::store::{AfterFailure, ClaimedMail};

const LONG: Duration = Duration::from_secs(3_600);
const AT_ONCE: Duration = Duration::ZERO;

async fn submit(store: &Store, ws: Uuid, notification: Notification) -> PilotRequest {
    let line = |text: &str| Line::try_from(text.to_owned()).unwrap();
    let application = Application {
        name: line("Grace"),
        email: ApplicantEmail::try_from("grace@example.com".to_owned()).unwrap(),
        org: line("Bank"),
        role: PilotRole::Other,
        cti_stack: None,
    };
    let request = PilotRequest::new(application, notification, clock::now());
    let entry = entry(ws, "pilot.request");
    store.submit_pilot(ws, &request, &entry).await.unwrap();
    request
}

async fn claim(store: &Store, lease: Duration) -> Option<ClaimedMail> {
    store.claim_mail(lease).await.unwrap()
}

async fn notification(store: &Store, ws: Uuid, id: Uuid) -> Notification {
    store.pilot_request(ws, id).await.unwrap().unwrap().notification
}

#[test]
fn a_mail_is_claimed_by_one_and_by_another_when_the_claim_is_over() {
    run_on_each(|url| async move {
        let store = open(&url).await;
        let ws = Uuid::new_v4();
        assert_eq!(claim(&store, LONG).await, None);
        submit(&store, ws, Notification::Off).await;
        assert_eq!(claim(&store, LONG).await, None);
        let ids = [
            submit(&store, ws, Notification::Pending).await.id,
            submit(&store, ws, Notification::Pending).await.id,
        ];
        assert_eq!(store.pending_mails().await.unwrap(), 2);
        let first = claim(&store, AT_ONCE).await.unwrap();
        assert_eq!((first.id, first.ws, first.attempts), (ids[0], ws, 1));
        // The first claim is over, and its mail has been due for a shorter time than the other.
        assert_eq!(claim(&store, LONG).await.unwrap().id, ids[1]);
        let again = claim(&store, LONG).await.unwrap();
        assert_eq!((again.id, again.attempts), (ids[0], 2));
        assert_eq!(claim(&store, LONG).await, None);
        let late = store
            .record_mail_failure(&first, "late", (AT_ONCE, LONG))
            .await
            .unwrap();
        assert_eq!(late, AfterFailure::Lost);
        assert_eq!(claim(&store, LONG).await, None);
        // What was sent is sent, whoever says so.
        store.record_mail_sent(&first).await.unwrap();
        assert_eq!(notification(&store, ws, ids[0]).await, Notification::Sent);
        let failed = store
            .record_mail_failure(&again, "late", (AT_ONCE, LONG))
            .await
            .unwrap();
        assert_eq!(failed, AfterFailure::Lost);
        store.end_mail_claims().await.unwrap();
        let freed = claim(&store, LONG).await.unwrap();
        assert_eq!((freed.id, freed.attempts), (ids[1], 2));
        assert_eq!(store.pending_mails().await.unwrap(), 1);
    });
}

#[test]
fn of_many_that_come_at_once_each_gets_another_mail() {
    run_on_each(|url| async move {
        let store = std::sync::Arc::new(open(&url).await);
        let ws = Uuid::new_v4();
        for _ in 0..4 {
            submit(&store, ws, Notification::Pending).await;
        }
        let claims: Vec<_> = (0..8)
            .map(|_| {
                let store = std::sync::Arc::clone(&store);
                tokio::spawn(async move { claim(&store, LONG).await })
            })
            .collect();
        let mut got = Vec::new();
        for claim in claims {
            got.extend(claim.await.unwrap().map(|mail| mail.id));
        }
        got.sort_unstable();
        got.dedup();
        assert_eq!(got.len(), 4);
    });
}

#[test]
fn a_failed_mail_waits_and_is_given_up_in_the_end() {
    run_on_each(|url| async move {
        let store = open(&url).await;
        let ws = Uuid::new_v4();
        let id = submit(&store, ws, Notification::Pending).await.id;
        let mail = claim(&store, LONG).await.unwrap();
        let next = store
            .record_mail_failure(&mail, "no answer", (LONG, LONG))
            .await
            .unwrap();
        assert_eq!(next, AfterFailure::Retry);
        assert_eq!(claim(&store, LONG).await, None);
        // Waiting is no claim.
        store.end_mail_claims().await.unwrap();
        assert_eq!(claim(&store, LONG).await, None);

        let id2 = submit(&store, ws, Notification::Pending).await.id;
        let mail = claim(&store, LONG).await.unwrap();
        let next = store
            .record_mail_failure(&mail, "no answer", (AT_ONCE, LONG))
            .await
            .unwrap();
        assert_eq!(next, AfterFailure::Retry);
        let mail = claim(&store, LONG).await.unwrap();
        assert_eq!((mail.id, mail.attempts), (id2, 2));
        let next = store
            .record_mail_failure(&mail, "no answer", (AT_ONCE, AT_ONCE))
            .await
            .unwrap();
        assert_eq!(next, AfterFailure::GivenUp);
        assert_eq!(claim(&store, LONG).await, None);
        assert_eq!(notification(&store, ws, id2).await, Notification::Failed);
        assert_eq!(notification(&store, ws, id).await, Notification::Pending);
        assert_eq!(store.pending_mails().await.unwrap(), 1);
    });
}

#[test]
fn ended_mails_are_removed_and_requests_are_kept() {
    run_on_each(|url| async move {
        let store = open(&url).await;
        let ws = Uuid::new_v4();
        for _ in 0..3 {
            submit(&store, ws, Notification::Pending).await;
        }
        let sent = claim(&store, LONG).await.unwrap();
        store.record_mail_sent(&sent).await.unwrap();
        let dead = claim(&store, LONG).await.unwrap();
        store
            .record_mail_failure(&dead, "x", (AT_ONCE, AT_ONCE))
            .await
            .unwrap();
        assert_eq!(
            store
                .sweep_outbox(clock::now() - TimeDelta::hours(1))
                .await
                .unwrap(),
            0
        );
        assert_eq!(
            store
                .sweep_outbox(clock::now() + TimeDelta::hours(1))
                .await
                .unwrap(),
            2
        );
        assert_eq!(store.pending_mails().await.unwrap(), 1);
        let requests = store.pilot_requests(ws, 10, 0).await.unwrap();
        assert_eq!(requests.len(), 3);
        assert_eq!(store.pilot_requests(Uuid::new_v4(), 10, 0).await.unwrap(), []);
        let foreign = store.pilot_request(Uuid::new_v4(), requests[0].id).await.unwrap();
        assert_eq!(foreign, None);
        for statement in [
            "DELETE pilot_request",
            "UPDATE pilot_request SET name = 'x'",
            "UPDATE pilot_request SET email = 'x@example.com'",
        ] {
            let done = store.db.query(statement).await;
            let unchanged = store.pilot_requests(ws, 10, 0).await.unwrap();
            assert_eq!(unchanged, requests, "{statement}: {:?}", done.err());
        }
    });
}
