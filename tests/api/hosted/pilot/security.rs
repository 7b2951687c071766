//! Encryption and credentials.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use secrecy::SecretString;
use serde_json::json;
use test_support::until;

use super::sink::{Act, Security, Sink};
use super::{arrived, mailing};
use crate::helpers::{TestApp, run, settings};
use crate::process::{Service, copy_started_once, hosted};

const USER: &str = "mailer@example.org";
const SECRET: &str = "a secret for the mail server";

/// A service that signs in.
async fn signing_in(sink: &Sink, security: Security) -> TestApp {
    let mut settings = mailing(settings("mem://"), sink, security);
    settings.smtp_user = Some(USER.into());
    settings.smtp_password = Some(SecretString::from(SECRET));
    TestApp::with(settings).await
}

#[test]
fn mail_arrives_encrypted_and_signed_in() {
    run(async {
        for security in [Security::StartTls, Security::AtOnce] {
            let sink = Sink::start(security).await;
            let app = signing_in(&sink, security).await;
            app.anonymous().applies(json!({})).await;
            let mail = arrived(&sink, 1).await.remove(0);
            assert!(mail.encrypted);
            assert_eq!(mail.signed_in, Some((USER.into(), SECRET.into())));
            let clear = sink.clear();
            assert!(!clear.contains("AUTH") && !clear.contains("MAIL"), "{clear}");
            app.stop().await;
        }
    });
}

#[test]
fn a_server_with_the_old_way_to_sign_in_works_too() {
    run(async {
        let sink = Sink::start(Security::AtOnce).await;
        sink.behave(|step| match step.verb {
            "EHLO" => Act::Say("250-sink\r\n250 AUTH LOGIN".into()),
            _ => Act::Usual,
        });
        let app = signing_in(&sink, Security::AtOnce).await;
        app.anonymous().applies(json!({})).await;
        let mail = arrived(&sink, 1).await.remove(0);
        assert_eq!(mail.signed_in, Some((USER.into(), SECRET.into())));
        app.stop().await;
    });
}

#[test]
fn a_certificate_of_another_authority_gets_nothing() {
    run(async {
        for security in [Security::StartTls, Security::AtOnce] {
            let (sink, other) = (Sink::start(security).await, Sink::start(security).await);
            let mut settings = mailing(settings("mem://"), &sink, security);
            settings.notifier.ca_file = other.ca_file().to_owned();
            settings.smtp_user = Some(USER.into());
            settings.smtp_password = Some(SecretString::from(SECRET));
            let app = TestApp::with(settings).await;
            app.anonymous().applies(json!({})).await;
            let metrics = || async { app.admin.metrics().await };
            test_support::eventually(|| async {
                let metrics = metrics().await;
                let failed = metrics.contains("notifications_total{outcome=\"failed\"}");
                if failed { Ok(()) } else { Err(metrics) }
            })
            .await;
            if security == Security::StartTls {
                until(|| sink.steps("STARTTLS") >= 2).await;
            }
            assert_eq!(sink.steps("MAIL") + sink.steps("credentials"), 0);
            let clear = sink.clear();
            assert!(!clear.contains("AUTH") && !clear.contains("MAIL"), "{clear}");
            assert_eq!(app.admin.pilot_requests().await[0]["notification"], "pending");
            app.stop().await;
        }
    });
}

#[test]
fn a_certificate_for_another_host_gets_nothing() {
    run(async {
        let sink = Sink::start(Security::StartTls).await;
        let mut settings = mailing(settings("mem://"), &sink, Security::StartTls);
        settings.notifier.host = "localhost".into();
        let app = TestApp::with(settings).await;
        app.anonymous().applies(json!({})).await;
        until(|| sink.steps("STARTTLS") >= 2).await;
        assert_eq!((sink.steps("MAIL"), sink.received().len()), (0, 0));
        app.stop().await;
    });
}

#[test]
fn a_server_without_starttls_gets_nothing() {
    run(async {
        let sink = Sink::start(Security::Never).await;
        let app = signing_in(&sink, Security::StartTls).await;
        app.anonymous().applies(json!({})).await;
        until(|| sink.steps("EHLO") >= 2).await;
        let clear = sink.clear();
        assert!(!clear.contains("AUTH") && !clear.contains("MAIL"), "{clear}");
        assert!(sink.received().is_empty());
        app.stop().await;
    });
}

#[test]
fn replies_slipped_in_before_tls_are_not_taken_for_encrypted_ones() {
    run(async {
        let sink = Sink::start(Security::StartTls).await;
        let slipped = Arc::new(AtomicBool::new(true));
        let slips = Arc::clone(&slipped);
        sink.behave(
            move |step| match step.verb == "STARTTLS" && slips.load(Ordering::Relaxed) {
                true => Act::Say("220 go ahead\r\n250-evil\r\n250 AUTH PLAIN".into()),
                false => Act::Usual,
            },
        );
        let app = signing_in(&sink, Security::StartTls).await;
        app.anonymous().applies(json!({})).await;
        until(|| sink.steps("STARTTLS") >= 2).await;
        assert_eq!((sink.steps("credentials"), sink.steps("MAIL")), (0, 0));
        slipped.store(false, Ordering::Relaxed);
        arrived(&sink, 1).await;
        app.stop().await;
    });
}

#[test]
fn the_password_is_never_logged_even_if_the_server_repeats_it() {
    run(async {
        let sink = Sink::start(Security::StartTls).await;
        sink.behave(|step| match step.verb {
            "credentials" => Act::Say(format!("535 5.7.8 not with {SECRET}, {}", step.line)),
            _ => Act::Usual,
        });
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("c.toml");
        let ca = sink.ca_file().display();
        let text = format!(
            "[notifier]\nmode = \"starttls\"\nhost = \"127.0.0.1\"\nport = {}\nfrom = \"memory@example.org\"\n\
             to = [\"ops@example.org\"]\nca_file = \"{ca}\"\n[log]\nfilter = \"trace\"\n",
            sink.port
        );
        std::fs::write(&file, text).unwrap();
        let data = dir.path().join("data");
        copy_started_once(&data);
        let mut command = hosted(&data);
        command
            .arg("--config")
            .arg(&file)
            .env("THREAT_MEMORY_SMTP_USER", USER)
            .env("THREAT_MEMORY_SMTP_PASSWORD", SECRET);
        let mut service = Service::start(command);
        service.anonymous().applies(json!({})).await;
        until(|| sink.steps("credentials") >= 1).await;
        service.terminate();
        assert!(service.ended().await.success());
        let mut logs = String::new();
        for file in std::fs::read_dir(data.join("logs")).unwrap() {
            logs.push_str(&std::fs::read_to_string(file.unwrap().path()).unwrap());
        }
        assert!(logs.contains("signing in: refused with 535 5.7.8"), "{logs}");
        use base64::Engine;
        let encoded = base64::engine::general_purpose::STANDARD.encode(format!("\0{USER}\0{SECRET}"));
        for secret in [SECRET, &encoded, "Grace Hopper", "grace@example.com"] {
            assert!(!logs.contains(secret), "{secret} is in the log");
        }
    });
}
