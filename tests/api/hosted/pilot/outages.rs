//! Mail servers that are dead, slow or unwilling: nothing is lost, and nobody waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use test_support::{eventually, until};
use tokio::net::TcpListener;

use super::sink::{Act, Security, Sink};
use super::{arrived, mailing, spawn};
use crate::helpers::{TestApp, run, settings};
use crate::process::started_once;

#[test]
fn a_dead_server_gets_the_mail_when_it_is_back() {
    run(async {
        let sink = Sink::start(Security::Never).await;
        let app = spawn(&sink).await;
        let port = sink.port;
        drop(sink);
        for org in ["One", "Two", "Three"] {
            app.anonymous().applies(json!({"org": org})).await;
        }
        let pending = app.admin.pilot_requests().await;
        assert!(
            pending.iter().all(|request| request["notification"] == "pending"),
            "{pending:?}"
        );
        // The old listener closes in the background.
        let listener = eventually(|| TcpListener::bind(("127.0.0.1", port))).await;
        let sink = Sink::on(listener, Security::Never);
        app.admin.all_sent(3).await;
        let mut subjects: Vec<_> = arrived(&sink, 3)
            .await
            .iter()
            .map(|mail| mail.subject())
            .collect();
        subjects.sort();
        assert_eq!(
            subjects,
            ["Pilot request: One", "Pilot request: Three", "Pilot request: Two"]
        );
        app.stop().await;
    });
}

/// Session after session fails at another step, at first with a reply and then without one.
#[test]
fn a_server_that_fails_at_any_step_gets_the_mail_later_and_once() {
    run(async {
        let steps = ["connect", "EHLO", "MAIL", "RCPT", "DATA", "content"];
        let sink = Sink::start(Security::Never).await;
        let (sessions, failures) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
        let failed = Arc::clone(&failures);
        sink.behave(move |step| {
            if step.verb == "connect" {
                sessions.fetch_add(1, Ordering::Relaxed);
            }
            let session = sessions.load(Ordering::Relaxed) - 1;
            if step.verb != steps[session % steps.len()] {
                return Act::Usual;
            }
            failed.fetch_add(1, Ordering::Relaxed);
            match session / steps.len() {
                0 => Act::Say("451 4.3.0 later".into()),
                1 if step.verb != "content" => Act::Drop,
                _ => Act::Usual,
            }
        });
        let app = spawn(&sink).await;
        for org in steps {
            app.anonymous().applies(json!({"org": org})).await;
        }
        app.admin.all_sent(steps.len()).await;
        assert!(failures.load(Ordering::Relaxed) >= 2 * steps.len());
        let mut subjects: Vec<String> = arrived(&sink, steps.len())
            .await
            .iter()
            .map(|mail| mail.subject())
            .collect();
        let mut wanted = steps.map(|org| format!("Pilot request: {org}"));
        subjects.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(subjects, wanted);
        app.stop().await;
    });
}

#[test]
fn a_stalled_server_delays_no_request_and_no_stop() {
    run(async {
        let sink = Sink::start(Security::Never).await;
        sink.stall("DATA");
        let mut settings = mailing(settings("mem://"), &sink, Security::Never);
        settings.notifier.timeout_ms = 600_000;
        settings.server.drain_seconds = 1;
        let app = TestApp::with(settings).await;
        app.anonymous().applies(json!({})).await;
        until(|| sink.steps("DATA") == 1).await;
        let clients: Vec<_> = (0..20).map(|_| app.anonymous()).collect();
        let applying = clients.iter().map(|client| client.applies(json!({})));
        futures_util::future::join_all(applying).await;
        app.admin.search("anything").await;
        assert_eq!(app.admin.pilot_requests().await.len(), 21);
        // One attempt at a time, and it is still under way.
        assert_eq!((sink.steps("connect"), sink.received().len()), (1, 0));
        app.stop().await;
    });
}

#[test]
fn a_server_that_never_answers_is_given_up_on_and_tried_again() {
    run(async {
        let sink = Sink::start(Security::Never).await;
        sink.stall("connect");
        let mut settings = mailing(settings("mem://"), &sink, Security::Never);
        settings.notifier.timeout_ms = 200;
        let app = TestApp::with(settings).await;
        app.anonymous().applies(json!({})).await;
        until(|| sink.steps("connect") >= 2).await;
        assert_eq!(sink.received().len(), 0);
        sink.release();
        app.admin.all_sent(1).await;
        arrived(&sink, 1).await;
        app.stop().await;
    });
}

#[test]
fn a_stop_lets_the_mail_under_way_arrive() {
    run(async {
        let dir = started_once();
        let sink = Sink::start(Security::Never).await;
        sink.stall("content");
        let storage = format!("surrealkv://{}", dir.path().display());
        let app = TestApp::with(mailing(settings(&storage), &sink, Security::Never)).await;
        app.anonymous().applies(json!({})).await;
        until(|| sink.steps("content") == 1).await;
        let stopping = app.stop();
        let releasing = async {
            // The stop is under way when the server answers.
            tokio::task::yield_now().await;
            sink.release();
        };
        tokio::join!(stopping, releasing);
        let app = TestApp::with(mailing(settings(&storage), &sink, Security::Never)).await;
        app.admin.all_sent(1).await;
        arrived(&sink, 1).await;
        app.stop().await;
    });
}

#[test]
fn a_refusal_for_good_is_tried_rarely_and_loses_nothing() {
    run(async {
        let sink = Sink::start(Security::Never).await;
        sink.refuse("RCPT", "550 5.1.1 no such user");
        let app = spawn(&sink).await;
        app.anonymous().applies(json!({"org": "Refused"})).await;
        until(|| sink.steps("RCPT") == 1).await;
        sink.release();
        // A later e-mail passes the refused one, which has had its retry time several times over by then.
        for at in 0..3 {
            app.anonymous()
                .applies(json!({"org": format!("Later {at}")}))
                .await;
            arrived(&sink, at + 1).await;
        }
        assert_eq!(sink.steps("RCPT"), 4);
        let requests = app.admin.pilot_requests().await;
        assert_eq!(
            (&requests[3]["org"], &requests[3]["notification"]),
            (&json!("Refused"), &json!("pending"))
        );
        app.stop().await;
    });
}
