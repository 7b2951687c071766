//! Pilot requests with an external database that two services share.

use std::collections::HashSet;

use serde_json::json;

use super::{assert_chain, with_database};
use crate::helpers::TestApp;
use crate::hosted::pilot::sink::{Security, Sink};
use crate::hosted::pilot::{arrived, mailing};

#[test]
fn services_that_share_an_outbox_send_each_mail_once() {
    with_database(async |database| {
        let sink = Sink::start(Security::Never).await;
        let settings = |process: &str| mailing(database.settings(process), &sink, Security::Never);
        let apps = [
            TestApp::with(settings("service")).await,
            TestApp::with(settings("another")).await,
        ];
        const REQUESTS: usize = 20;
        let clients: Vec<_> = (0..REQUESTS).map(|at| apps[at % 2].anonymous()).collect();
        let applying = clients.iter().map(|client| client.applies(json!({})));
        futures_util::future::join_all(applying).await;
        for app in &apps {
            app.admin.all_sent(REQUESTS).await;
        }
        let mails = arrived(&sink, REQUESTS).await;
        let ids: HashSet<_> = mails.iter().map(|mail| mail.header("Message-ID")).collect();
        assert_eq!(ids.len(), REQUESTS);
        for app in apps {
            assert_chain(&app.admin).await;
            app.stop().await;
        }
        assert_eq!(sink.received().len(), REQUESTS);
    });
}

#[test]
fn a_mail_claimed_by_one_service_is_left_alone_by_the_other() {
    with_database(async |database| {
        let sink = Sink::start(Security::Never).await;
        sink.stall("connect");
        let settings = |process: &str| {
            let mut settings = mailing(database.settings(process), &sink, Security::Never);
            settings.server.drain_seconds = 1;
            settings.notifier.timeout_ms = 600_000;
            settings
        };
        let first = TestApp::with(settings("service")).await;
        first.anonymous().applies(json!({})).await;
        test_support::until(|| sink.steps("connect") == 1).await;
        let second = TestApp::with(settings("another")).await;
        first.stop().await;
        // The claim still holds: the other service sends only what nobody has claimed.
        sink.release();
        second.anonymous().applies(json!({"org": "Unclaimed"})).await;
        let mails = arrived(&sink, 1).await;
        assert_eq!(mails[0].subject(), "Pilot request: Unclaimed");
        second.stop().await;
    });
}
