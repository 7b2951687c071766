//! Endpoints that the operator configured.

use std::time::Instant;

use reqwest::header::{AUTHORIZATION, HOST, HeaderValue};
use secrecy::SecretString;
use serde_json::json;

use super::server::{Act, Server, answer, send};
use super::*;

fn endpoint(url: &reqwest::Url, resolver: Arc<ScriptedResolver>, limits: Limits) -> GuardedClient {
    GuardedClient::with_resolver(Policy::for_endpoint(url), limits, resolver).unwrap()
}

fn loopback() -> Arc<ScriptedResolver> {
    ScriptedResolver::new(&[&["127.0.0.1"]])
}

#[test]
fn an_endpoint_is_one_scheme_host_and_port() {
    let policy = Policy::for_endpoint(&"http://llm.internal:8000/v1".parse().unwrap());
    for (url, want) in [
        ("http://llm.internal:8000/v1/chat/completions", "ok"),
        ("http://LLM.internal:8000/other?x", "ok"),
        ("https://llm.internal:8000/v1", "other-endpoint"),
        ("http://llm.internal:8001/v1", "other-endpoint"),
        ("http://llm.internal/v1", "other-endpoint"),
        ("http://evil.internal:8000/v1", "other-endpoint"),
        ("http://llm.internal.:8000/v1", "other-endpoint"),
        ("http://u@llm.internal:8000/v1", "userinfo"),
        ("http://llm.internal:0/", "port"),
        ("ftp://llm.internal:8000/", "scheme"),
        ("llm.internal", "invalid-url"),
    ] {
        assert_eq!(rule_of(policy.check(url)), want, "{url}");
    }
}

#[test]
fn an_endpoint_may_be_private_but_not_link_local() {
    for (url, want) in [
        ("http://127.0.0.1:11434/v1", "ok"),
        ("http://localhost:11434/v1", "ok"),
        ("http://[::1]:11434/v1", "ok"),
        ("http://10.0.0.1/", "ok"),
        ("http://192.168.1.1/", "ok"),
        ("http://100.64.0.1/", "ok"),
        ("http://[fd00::1]/", "ok"),
        ("http://[::ffff:10.0.0.1]/", "ok"),
        ("https://llm.svc.cluster.local./v1", "ok"),
        ("https://api.example.com/v1", "ok"),
        ("http://169.254.169.254/", "metadata-address"),
        ("http://169.254.1.1/", "link-local-address"),
        ("http://0xa9fea9fe/", "metadata-address"),
        ("http://[::ffff:169.254.169.254]/", "metadata-address"),
        ("http://[64:ff9b::a9fe:a9fe]/", "metadata-address"),
        ("http://[64:ff9b:1:a9fe:a9:fe00::]/", "metadata-address"),
        ("http://[2002:a9fe:a9fe::1]/", "metadata-address"),
        ("http://[2001:0:1:2:3:4:5601:5601]/", "metadata-address"),
        ("http://[fe80::1]/", "link-local-address"),
        ("http://[fd00:ec2::254]/", "metadata-address"),
        ("http://100.100.100.200/", "metadata-address"),
        ("http://224.0.0.1/", "multicast-address"),
        ("http://[ff02::1]/", "multicast-address"),
        ("http://255.255.255.255/", "broadcast-address"),
        ("http://0.0.0.0:11434/", "unspecified-address"),
        ("http://[::]:11434/", "unspecified-address"),
    ] {
        let policy = Policy::for_endpoint(&url.parse().unwrap());
        assert_eq!(rule_of(policy.check(url)), want, "{url}");
    }
}

#[tokio::test]
async fn a_name_of_the_endpoint_is_resolved_once_per_connection_and_checked() {
    let kept = || {
        let reply = || answer("200 OK", b"{}");
        vec![reply(), Act::Next, reply(), Act::Next, reply()]
    };
    let server = Server::start(vec![kept()]).await;
    let url = server.named("llm.internal", "/v1");
    let resolver = loopback();
    let client = endpoint(&url, Arc::clone(&resolver), limits(1000));
    let key = SecretString::from("sk-secret");
    for _ in 0..3 {
        let posted = client
            .post_json(&url, Some(&key), &json!({"a": 1}), PATIENT)
            .await
            .unwrap();
        assert_eq!(posted.body, "{}");
    }
    assert_eq!((server.connections(), resolver.asked()), (1, 1));
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    for request in requests {
        assert!(request.starts_with("post /v1 http/1.1\r\n"), "{request}");
        assert!(
            request.contains("authorization: bearer sk-secret\r\n"),
            "{request}"
        );
        assert!(
            request.contains("content-type: application/json\r\n"),
            "{request}"
        );
    }

    for (address, rule) in [
        ("169.254.169.254", "metadata-address"),
        ("fe80::1", "link-local-address"),
        ("0.0.0.0", "unspecified-address"),
    ] {
        let client = endpoint(
            &url,
            ScriptedResolver::new(&[&["127.0.0.1", address]]),
            limits(1000),
        );
        let error = client
            .post_json(&url, Some(&key), &json!({}), PATIENT)
            .await
            .unwrap_err();
        let OutboundError::Refused(refusal) = error else {
            panic!("{error:?}")
        };
        assert_eq!(
            (refusal.rule.name(), refusal.host.as_str()),
            (rule, "llm.internal")
        );
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_another_endpoint_is_refused() {
    let server = Server::start(vec![vec![answer("307 Temporary\r\nLocation: /v2", b"")]]).await;
    let url = server.url("/v1");
    let client = endpoint(&url, loopback(), limits(1000));
    let posted = client.post_json(&url, None, &json!({}), PATIENT).await.unwrap();
    assert_eq!(posted.status.as_u16(), 307);
    assert_eq!(
        client.get(&url, HeaderMap::new()).await.unwrap().status.as_u16(),
        307
    );
    assert_eq!(server.connections(), 2);
    let other = Server::start(vec![vec![answer("200 OK", b"")]]).await;
    let error = client
        .post_json(&other.url("/v1"), None, &json!({}), PATIENT)
        .await
        .unwrap_err();
    assert!(
        matches!(
            error,
            OutboundError::Refused(Refusal {
                rule: Rule::OtherEndpoint,
                ..
            })
        ),
        "{error:?}"
    );
    assert_eq!(other.connections(), 0);
}

#[tokio::test]
async fn the_body_of_an_error_can_be_left_unread() {
    let slow = vec![
        send("HTTP/1.1 503 Unavailable\r\nContent-Length: 99\r\n\r\n"),
        Act::Pause(PATIENT),
    ];
    let server = Server::start(vec![slow]).await;
    let url = server.url("/v1");
    let client = endpoint(
        &url,
        loopback(),
        Limits {
            error_bodies: false,
            ..limits(10)
        },
    );
    let since = Instant::now();
    let posted = client.post_json(&url, None, &json!({}), PATIENT).await.unwrap();
    assert_eq!((posted.status.as_u16(), &posted.body[..]), (503, &b""[..]));
    assert!(since.elapsed() < PATIENT / 2);
}

#[tokio::test]
async fn a_request_has_its_own_time_out_within_that_of_the_client() {
    let server = Server::start(vec![vec![Act::Pause(PATIENT)]]).await;
    let url = server.url("/v1");
    let client = endpoint(
        &url,
        loopback(),
        Limits {
            total_timeout: Duration::from_millis(400),
            ..limits(10)
        },
    );
    for (patience, ms) in [(Duration::from_millis(200), 200), (PATIENT, 400)] {
        let error = client
            .post_json(&url, None, &json!({}), patience)
            .await
            .unwrap_err();
        assert_eq!(error, OutboundError::Timeout { ms });
    }
    let key = SecretString::from("line\nbreak");
    let error = client
        .post_json(&url, Some(&key), &json!({}), PATIENT)
        .await
        .unwrap_err();
    assert!(
        matches!(&error, OutboundError::Broken(why) if !why.contains("break")),
        "{error:?}"
    );
}

#[tokio::test]
async fn bytes_are_posted_as_they_are_with_their_headers_and_not_by_a_public_client() {
    let server = Server::start(vec![vec![answer("200 OK", b"{}")]]).await;
    let url = server.url("/token");
    let client = endpoint(&url, loopback(), limits(1000));
    let headers = HeaderMap::from_iter([
        (AUTHORIZATION, HeaderValue::from_static("Basic YTpi")),
        (HOST, HeaderValue::from_static("other.example.org")),
    ]);
    let posted = client.post(&url, headers, b"code=1".to_vec()).await.unwrap();
    assert_eq!((posted.status.as_u16(), &posted.body[..]), (200, &b"{}"[..]));
    let requests = server.requests();
    let request = &requests[0];
    assert!(request.starts_with("post /token http/1.1"), "{request}");
    assert!(request.contains("authorization: basic ytpi"), "{request}");
    assert!(request.contains("content-length: 6"), "{request}");
    assert!(!request.contains("other.example.org"), "{request}");
    let elsewhere = "http://127.0.0.1:1/token".parse().unwrap();
    let feed = super::client(loopback(), limits(1000));
    for (client, url, rule) in [
        (&client, &elsewhere, Rule::OtherEndpoint),
        (&feed, &url, Rule::Method),
    ] {
        let refused = client.post(url, HeaderMap::new(), Vec::new()).await;
        assert!(
            matches!(&refused, Err(OutboundError::Refused(refusal)) if refusal.rule == rule),
            "{refused:?}"
        );
    }
    assert_eq!(server.connections(), 1);
}
