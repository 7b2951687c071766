//! Pilot requests: their intake, and the e-mails that tell the operator of them.

mod crash;
mod intake;
mod letters;
mod outages;
mod security;
pub mod sink;

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use test_support::{eventually, until};
use threat_memory::config::{NotifierMode, Settings};

use self::sink::{Received, Security, Sink};
use crate::helpers::{Client, TestApp, settings};

pub const PILOT: &str = "/api/pilot";
pub const REQUESTS: &str = "/api/admin/pilot-requests";
pub const OPERATOR: &str = "operator@example.org";

/// A valid body; `more` replaces fields.
pub fn body(more: Value) -> Value {
    let mut body = json!({"name": "Grace Hopper", "email": "grace@example.com", "org": "Example Bank",
        "role": "threat-intel-lead", "cti_stack": "MISP"});
    for (key, value) in more.as_object().unwrap() {
        body[key] = value.clone();
    }
    body
}

/// Settings that send e-mail to the sink, and retry soon.
pub fn mailing(mut settings: Settings, sink: &Sink, security: Security) -> Settings {
    settings.notifier.mode = match security {
        Security::Never => NotifierMode::Plain,
        Security::StartTls => NotifierMode::Starttls,
        Security::AtOnce => NotifierMode::Tls,
    };
    settings.notifier.host = "127.0.0.1".into();
    settings.notifier.port = sink.port;
    settings.notifier.from = "Threat Memory <memory@example.org>".into();
    settings.notifier.to = vec![OPERATOR.into()];
    settings.notifier.retry_seconds = 1;
    settings.notifier.timeout_ms = 5_000;
    settings.notifier.ca_file = sink.ca_file().to_owned();
    // Lets a test come from many addresses.
    settings.server.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
    settings
}

/// A service with an in-memory store that sends e-mail to the sink without TLS.
pub async fn spawn(sink: &Sink) -> TestApp {
    TestApp::with(mailing(settings("mem://"), sink, Security::Never)).await
}

impl Client {
    /// The same client at another address, for a service that trusts this one as a proxy.
    pub fn elsewhere(&self) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let [_, b, c, d] = NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        self.with_header("x-forwarded-for", &format!("10.{b}.{c}.{d}"))
    }

    /// Asks for a pilot from a new address.
    pub async fn applies(&self, more: Value) {
        let answer = self.elsewhere().post(PILOT, &body(more)).await;
        assert_eq!(answer.expect(200).await, json!({"success": true}));
    }

    /// All pilot requests, newest first.
    pub async fn pilot_requests(&self) -> Vec<Value> {
        let answer = self
            .get(&format!("{REQUESTS}?limit=1000"))
            .await
            .expect(200)
            .await;
        let requests = answer["pilot_requests"].as_array().unwrap().clone();
        assert_eq!(answer["count"], requests.len());
        requests
    }

    /// Waits until the operator has been told of this many requests, and of all.
    pub async fn all_sent(&self, count: usize) {
        eventually(|| async {
            let requests = self.pilot_requests().await;
            let sent = requests
                .iter()
                .filter(|request| request["notification"] == "sent");
            if sent.count() == count && requests.len() == count {
                Ok(())
            } else {
                Err(requests)
            }
        })
        .await;
    }
}

/// Waits for this many e-mails.
pub async fn arrived(sink: &Sink, count: usize) -> Vec<Received> {
    until(|| sink.received().len() >= count).await;
    let received = sink.received();
    assert_eq!(received.len(), count, "{received:?}");
    received
}
