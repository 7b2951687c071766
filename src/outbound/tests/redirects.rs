//! Redirects, resolvers that change their minds, and what requests carry.

use std::time::Instant;

use super::server::{Act, Server, answer, send};
use super::*;

const LOOPBACK: &[&[&str]] = &[&["127.0.0.1"]];

fn redirect(location: &str) -> Vec<Act> {
    vec![answer(&format!("302 Found\r\nLocation: {location}"), b"")]
}

fn done() -> Vec<Act> {
    vec![answer("200 OK", b"done")]
}

fn refusal(outcome: Result<OutboundResponse, OutboundError>) -> Refusal {
    match outcome {
        Err(OutboundError::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_redirect_leads_nowhere_that_a_url_may_not() {
    for (location, rule) in [
        ("https://127.0.0.1/", "redirect-scheme"),
        ("https://feed.example.org/", "redirect-scheme"),
        ("http://evil.com/", "host-not-allowed"),
        ("http://127.0.0.2/", "host-not-allowed"),
        ("http://allowed.example.org/", "host-not-allowed"),
        ("//evil.com/", "host-not-allowed"),
        ("http://10.0.0.1/", "private-address"),
        ("http://169.254.169.254/latest/meta-data/", "metadata-address"),
        ("//169.254.169.254/", "metadata-address"),
        ("http://[::ffff:127.0.0.1]/", "embedded-address"),
        ("http://[fd00:ec2::254]/", "metadata-address"),
        ("http://0.0.0.0/", "unspecified-address"),
        ("http://0x7f.1/", "address-spelling"),
        ("http://2130706433/", "address-spelling"),
        ("http://0177.0.0.1/", "address-spelling"),
        ("http://u:p@127.0.0.1/", "userinfo"),
        ("//u@127.0.0.1/", "userinfo"),
        ("http://127.0.0.1:0/", "port"),
        ("http://feed.example.org./", "trailing-dot"),
        ("file:///etc/passwd", "scheme"),
        ("gopher://127.0.0.1/", "scheme"),
        ("/\\evil.com/", "invalid-url"),
        ("http:///evil.com/", "invalid-url"),
        ("http:evil.com", "invalid-url"),
        ("/a b", "invalid-url"),
    ] {
        let server = Server::start(vec![redirect(location), done()]).await;
        let resolver = ScriptedResolver::new(LOOPBACK);
        let client = client(Arc::clone(&resolver), limits(1000));
        let refused = refusal(client.get(&server.url("/"), HeaderMap::new()).await);
        assert_eq!((refused.rule.name(), refused.redirects), (rule, 1), "{location}");
        assert_eq!((server.connections(), resolver.asked()), (1, 0), "{location}");
    }
}

#[tokio::test]
async fn redirects_among_allowed_hosts_are_followed() {
    for code in [
        "301 Moved",
        "302 Found",
        "303 See Other",
        "307 Temporary",
        "308 Permanent",
    ] {
        for location in [
            "next?x=1",
            "/next?x=1",
            "//127.0.0.1:PORT/next?x=1",
            "http://a.allowed.example.org:PORT/next?x=1",
        ] {
            let server = Server::with(|port| {
                let location = location.replace("PORT", &port.to_string());
                vec![
                    vec![answer(&format!("{code}\r\nLocation: {location}"), b"")],
                    done(),
                ]
            })
            .await;
            let client = client(ScriptedResolver::new(LOOPBACK), limits(1000));
            let got = client.get(&server.url("/"), HeaderMap::new()).await.unwrap();
            assert_eq!(
                (got.status.as_u16(), &got.body[..]),
                (200, &b"done"[..]),
                "{code} {location}"
            );
            assert!(server.requests()[1].starts_with("get /next?x=1 http/1.1\r\n"));
        }
    }
    // Neither leads anywhere.
    for head in [
        "302 Found",
        "304 Not Modified\r\nLocation: /x",
        "300 Choices\r\nLocation: /x",
    ] {
        let server = Server::start(vec![vec![answer(head, b"")]]).await;
        let client = client(ScriptedResolver::new(LOOPBACK), limits(1000));
        let got = client.get(&server.url("/"), HeaderMap::new()).await.unwrap();
        assert!(got.status.is_redirection());
        assert_eq!(server.connections(), 1);
    }
}

#[tokio::test]
async fn five_redirects_are_followed_and_six_are_not() {
    let hop = || redirect("/again");
    let mut scripts = vec![hop(), hop(), hop(), hop(), hop(), done()];
    let server = Server::start(scripts.clone()).await;
    let client = client(ScriptedResolver::new(LOOPBACK), limits(1000));
    assert_eq!(
        client.get(&server.url("/"), HeaderMap::new()).await.unwrap().body,
        "done"
    );

    scripts.insert(0, hop());
    let server = Server::start(scripts).await;
    let refused = refusal(client.get(&server.url("/"), HeaderMap::new()).await);
    assert_eq!((refused.rule, refused.redirects), (Rule::TooManyRedirects, 5));
    assert_eq!(server.connections(), 6);

    let server = Server::start(vec![redirect("/")]).await;
    let refused = refusal(client.get(&server.url("/"), HeaderMap::new()).await);
    assert_eq!(refused.rule, Rule::TooManyRedirects);
}

#[tokio::test]
async fn the_body_of_a_redirect_is_not_read() {
    let endless = vec![
        send("HTTP/1.1 302 Found\r\nLocation: /next\r\nContent-Length: 99999999999\r\n\r\n"),
        Act::Repeat(vec![b'x'; 1 << 16]),
    ];
    let server = Server::start(vec![endless, done()]).await;
    let client = client(ScriptedResolver::new(LOOPBACK), limits(1000));
    let since = Instant::now();
    assert_eq!(
        client.get(&server.url("/"), HeaderMap::new()).await.unwrap().body,
        "done"
    );
    assert!(since.elapsed() < PATIENT / 2);
}

#[tokio::test]
async fn a_name_that_means_another_address_a_moment_later_is_refused() {
    let server = Server::start(vec![done()]).await;
    let url = server.named("feed.example.org", "/");
    // Allowed here is loopback, so that the first answer reaches the test's server.
    for (second, rule) in [
        ("10.0.0.1", "private-address"),
        ("169.254.169.254", "metadata-address"),
        ("::ffff:127.0.0.1", "embedded-address"),
    ] {
        let resolver = ScriptedResolver::new(&[&["127.0.0.1"], &[second]]);
        let client = client(Arc::clone(&resolver), limits(1000));
        // The connection goes to the address that was checked: there is no second question for it.
        assert_eq!(client.get(&url, HeaderMap::new()).await.unwrap().body, "done");
        assert_eq!(resolver.asked(), 1);
        let refused = refusal(client.get(&url, HeaderMap::new()).await);
        assert_eq!(
            (refused.rule.name(), refused.host.as_str()),
            (rule, "feed.example.org")
        );
        assert_eq!(resolver.asked(), 2);
    }
    assert_eq!(server.connections(), 3);
    // The same between two steps of one request.
    let server = Server::start(vec![redirect("/"), done()]).await;
    let resolver = ScriptedResolver::new(&[&["127.0.0.1"], &["10.0.0.1"]]);
    let client = client(resolver, limits(1000));
    let refused = refusal(
        client
            .get(&server.named("feed.example.org", "/"), HeaderMap::new())
            .await,
    );
    assert_eq!((refused.rule, refused.redirects), (Rule::PrivateAddress, 1));
}

#[tokio::test]
async fn without_local_development_a_name_that_turns_to_loopback_is_never_connected_to() {
    let server = Server::start(vec![done()]).await;
    let policy = Arc::new(public(&["feed.example.org"], false));
    let inner = ScriptedResolver::new(&[&["8.8.8.8", "2606:4700::1"], &["127.0.0.1"]]);
    let checked = resolve::CheckedResolver {
        inner: inner.clone(),
        policy: Arc::clone(&policy),
    };
    let ask = || checked.resolve("feed.example.org".parse().unwrap());
    let first: Vec<String> = ask().await.unwrap().map(|address| address.to_string()).collect();
    assert_eq!(first, ["8.8.8.8:0", "[2606:4700::1]:0"]);
    let error = ask().await.err().unwrap();
    assert_eq!(
        error.downcast_ref::<Refusal>().unwrap().rule,
        Rule::LoopbackAddress
    );

    // One bad address among good ones refuses all of them.
    for bad in [
        "127.0.0.1",
        "::1",
        "10.9.8.7",
        "64:ff9b::808:808",
        "2002:808:808::1",
        "fe80::1",
        "0.0.0.0",
    ] {
        for answer in [&[bad, "8.8.8.8"], &["8.8.8.8", bad]] {
            let resolver = ScriptedResolver::new(&[answer]);
            let client =
                GuardedClient::with_resolver((*policy).clone(), limits(1000), resolver.clone()).unwrap();
            let url = format!("https://feed.example.org:{}/", server.address.port());
            refusal(client.get(&url.parse().unwrap(), HeaderMap::new()).await);
            assert_eq!(resolver.asked(), 1);
        }
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_name_without_an_address_is_unreachable() {
    let client = client(ScriptedResolver::new(&[&[]]), limits(1000));
    let url = "http://feed.example.org/?token=hunter2".parse().unwrap();
    let error = client.get(&url, HeaderMap::new()).await.unwrap_err();
    assert_eq!(
        error,
        OutboundError::Unreachable("the host name has no address".into())
    );
}

#[tokio::test]
async fn no_credential_is_sent_on_any_step() {
    let server = Server::start(vec![
        vec![answer(
            "302 Found\r\nLocation: /next\r\nSet-Cookie: session=hunter2; Path=/",
            b"",
        )],
        done(),
    ])
    .await;
    let client = client(ScriptedResolver::new(LOOPBACK), limits(1000));
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("accept", "application/taxii+json;version=2.1"),
        ("authorization", "Bearer hunter2"),
        ("cookie", "session=hunter2"),
        ("proxy-authorization", "Basic hunter2"),
        ("referer", "https://hunter2.example.org/"),
        ("x-api-key", "hunter2"),
        ("host", "hunter2.example.org"),
    ] {
        headers.insert(name, value.parse().unwrap());
    }
    client.get(&server.url("/?page=1"), headers).await.unwrap();
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    for request in requests {
        assert!(
            !request.contains("hunter2") && !request.contains("referer"),
            "{request}"
        );
        assert!(
            request.contains("accept: application/taxii+json;version=2.1\r\n"),
            "{request}"
        );
        assert!(request.contains(&format!(
            "user-agent: threat-memory/{}\r\n",
            env!("CARGO_PKG_VERSION")
        )));
    }
    let key = secrecy::SecretString::from("hunter2");
    let posted = client
        .post_json(&server.url("/"), Some(&key), &"x", PATIENT)
        .await;
    assert_eq!(refusal(posted).rule, Rule::Method);
    assert_eq!(server.connections(), 2);
}

/// Runs another test of this file in a process of its own, as variables belong to the process.
#[tokio::test]
async fn no_proxy_of_the_environment_is_used() {
    let proxy = Server::start(vec![vec![answer("502 Bad Gateway", b"")]]).await;
    let url = format!("http://{}", proxy.address);
    let mut test = tokio::process::Command::new(std::env::current_exe().unwrap());
    test.args([
        "--exact",
        "outbound::tests::redirects::five_redirects_are_followed_and_six_are_not",
    ]);
    for name in [
        "http_proxy",
        "HTTP_PROXY",
        "https_proxy",
        "HTTPS_PROXY",
        "all_proxy",
        "ALL_PROXY",
    ] {
        test.env(name, &url);
    }
    let output = test
        .env_remove("no_proxy")
        .env_remove("NO_PROXY")
        .output()
        .await
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    assert_eq!(proxy.connections(), 0);
}
