//! Processes that are killed: what was acknowledged is mailed after the restart.

use std::collections::HashSet;
use std::path::Path;

use serde_json::json;
use test_support::until;

use super::arrived;
use super::sink::{Security, Sink};
use crate::helpers::run;
use crate::process::{Service, copy_started_once, hosted};

fn service(dir: &Path, sink: &Sink) -> Service {
    let file = dir.join("c.toml");
    let text = format!(
        "[server]\ntrusted_proxies = [\"127.0.0.1\"]\n[notifier]\nmode = \"plain\"\nhost = \"127.0.0.1\"\nport = {}\n\
         from = \"memory@example.org\"\nto = [\"ops@example.org\"]\nretry_seconds = 1\n",
        sink.port
    );
    std::fs::write(&file, text).unwrap();
    let mut command = hosted(&dir.join("data"));
    command.arg("--config").arg(&file);
    Service::start(command)
}

#[test]
fn a_kill_before_the_mail_is_sent_delays_it_and_doubles_nothing() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        copy_started_once(&dir.path().join("data"));
        let sink = Sink::start(Security::Never).await;
        sink.stall("connect");
        let running = service(dir.path(), &sink);
        for org in ["One", "Two", "Three"] {
            running.anonymous().applies(json!({"org": org})).await;
        }
        until(|| sink.steps("connect") == 1).await;
        running.kill();
        sink.release();
        let running = service(dir.path(), &sink);
        running.admin().await.all_sent(3).await;
        let ids: HashSet<_> = arrived(&sink, 3)
            .await
            .iter()
            .map(|mail| mail.header("Message-ID"))
            .collect();
        assert_eq!(ids.len(), 3, "{ids:?}");
        // Nothing is due after another restart.
        running.kill();
        let running = service(dir.path(), &sink);
        running.anonymous().applies(json!({"org": "Four"})).await;
        running.admin().await.all_sent(4).await;
        arrived(&sink, 4).await;
    });
}

#[test]
fn a_mail_that_is_sent_again_after_a_kill_is_recognised_by_its_id() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        copy_started_once(&dir.path().join("data"));
        let sink = Sink::start(Security::Never).await;
        sink.stall("content");
        let running = service(dir.path(), &sink);
        running.anonymous().applies(json!({})).await;
        // The server has the e-mail, and its answer is lost.
        arrived(&sink, 1).await;
        running.kill();
        sink.release();
        let running = service(dir.path(), &sink);
        running.admin().await.all_sent(1).await;
        let mails = arrived(&sink, 2).await;
        assert_eq!(mails[0].wire, mails[1].wire);
    });
}
