//! TLS of the hosted service's own.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use reqwest::{Certificate, Client};
use serde_json::Value;
use test_support::eventually;

use crate::helpers::{ADMIN, PASSWORD, run};
use crate::process::{Service, hosted, started_once};

/// Writes a new certificate and its key.
fn certify(dir: &Path) -> Certificate {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(dir.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    std::fs::write(dir.join("cert.pem"), made.cert.pem()).unwrap();
    Certificate::from_pem(made.cert.pem().as_bytes()).unwrap()
}

/// A new client that trusts this certificate alone: one that was there before would resume its session.
fn client_of(trusted: &Certificate) -> Client {
    let client = Client::builder().no_proxy().tls_certs_only([trusted.clone()]);
    client.build().unwrap()
}

fn reload(service: &Service) {
    hang_up(service.pid());
}

fn hang_up(process: u32) {
    let sent = Command::new("kill").args(["-HUP", &process.to_string()]).status();
    assert!(sent.unwrap().success());
}

#[test]
fn a_certificate_is_served_and_read_again_on_sighup() {
    run(async {
        let (store, files) = (started_once(), tempfile::tempdir().unwrap());
        let first = certify(files.path());
        let mut command = hosted(store.path());
        command
            .env("THREAT_MEMORY_SERVER__TLS_CERT", files.path().join("cert.pem"))
            .env("THREAT_MEMORY_SERVER__TLS_KEY", files.path().join("key.pem"));
        let service = Service::start(command);
        let base = service.base().to_owned();
        assert!(base.starts_with("https://"), "{base}");
        let health = format!("{base}/health");
        let is_served = async |trusted: &Certificate| {
            client_of(trusted)
                .get(&health)
                .send()
                .await
                .is_ok_and(|got| got.status() == 200)
        };
        assert!(is_served(&first).await);

        let basic = client_of(&first)
            .get(format!("{base}/taxii2/"))
            .basic_auth(ADMIN, Some(PASSWORD));
        let found = basic
            .header("accept", "application/taxii+json;version=2.1")
            .send();
        let found: Value = found.await.unwrap().json().await.unwrap();
        let root = found["default"].as_str().unwrap_or_default();
        assert!(root.starts_with(&format!("{base}/taxii2/")), "{found}");

        // Who says nothing holds nobody up; who speaks HTTP is told what is wrong.
        let address = base.trim_start_matches("https://");
        let silent: Vec<TcpStream> = (0..50).map(|_| TcpStream::connect(address).unwrap()).collect();
        let mut plain = TcpStream::connect(address).unwrap();
        plain
            .write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .unwrap();
        let mut said = String::new();
        plain.read_to_string(&mut said).unwrap();
        assert!(
            said.starts_with("HTTP/1.1 400 ") && said.ends_with("{\"error\":\"this port speaks HTTPS\"}"),
            "{said}"
        );
        assert!(is_served(&first).await);
        drop(silent);

        let next = certify(files.path());
        assert!(!is_served(&next).await);
        reload(&service);
        let is_next = async || is_served(&next).await.then_some(()).ok_or("the old certificate");
        eventually(is_next).await;
        assert!(!is_served(&first).await);

        std::fs::write(files.path().join("key.pem"), "not a key").unwrap();
        reload(&service);
        for _ in 0..20 {
            assert!(
                is_served(&next).await,
                "a file that can't be used changes nothing"
            );
        }
        service.stop();
    });
}

#[test]
fn sighup_does_not_end_a_service_that_is_starting() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let mut child = hosted(dir.path()).stderr(Stdio::null()).spawn().unwrap();
    // The signal is listened to before the store is made.
    let until = Instant::now() + Duration::from_secs(60);
    while !store.exists() {
        assert!(Instant::now() < until, "no store is made");
        std::thread::sleep(Duration::from_millis(5));
    }
    for _ in 0..50 {
        hang_up(child.id());
        std::thread::sleep(Duration::from_millis(20));
        assert!(child.try_wait().unwrap().is_none(), "the signal ended it");
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn sighup_does_not_end_a_service_that_has_nothing_to_read_again() {
    run(async {
        let store = started_once();
        let service = Service::start(hosted(store.path()));
        reload(&service);
        for _ in 0..5 {
            service.anonymous().get("/health").await.expect(200).await;
        }
        service.stop();
    });
}
