//! URLs, and the rule that refuses each.

use super::*;
use crate::domain::destination::{HostPattern, HostPatternError};

const HOSTS: [&str; 12] = [
    "taxii.example.org",
    "*.feeds.example.net",
    "port.example.org:8443",
    "default.example.org:443",
    "B\u{fc}cher.example.com",
    "UPPER.example.org",
    "8.8.8.8",
    "127.0.0.1",
    "[::1]",
    "[2606:4700:4700::1111]",
    "[2620:fe::FE]:8443",
    "localhost",
];

const URLS: [(&str, &str); 104] = [
    ("https://taxii.example.org", "ok"),
    ("https://taxii.example.org/api/collections/?limit=1#x", "ok"),
    ("HTTPS://TAXII.Example.ORG/", "ok"),
    ("https://taxii.example.org:443/", "ok"),
    ("https://taxii.example.org:8443/", "ok"),
    ("https://a.feeds.example.net/", "ok"),
    ("https://a.b.feeds.example.net/", "ok"),
    ("https://port.example.org:8443/", "ok"),
    ("https://default.example.org/", "ok"),
    ("https://default.example.org:443/", "ok"),
    ("https://b\u{fc}cher.example.com/", "ok"),
    ("https://xn--bcher-kva.example.com/", "ok"),
    ("https://upper.example.org/", "ok"),
    ("https://8.8.8.8/", "ok"),
    ("https://[2606:4700:4700::1111]/", "ok"),
    ("https://[2606:4700:4700:0:0:0:0:1111]/", "ok"),
    ("https://[2620:FE::fe]:8443/", "ok"),
    ("https://taxii.example.org/a%20b?next=http://127.0.0.1/@x", "ok"),
    // Other hosts, and hosts that look alike.
    ("https://example.org/", "host-not-allowed"),
    ("https://feeds.example.net/", "host-not-allowed"),
    ("https://.feeds.example.net/", "host-not-allowed"),
    ("https://xfeeds.example.net/", "host-not-allowed"),
    ("https://feeds.example.net.evil.com/", "host-not-allowed"),
    ("https://taxii.example.org.evil.com/", "host-not-allowed"),
    ("https://evil.com/taxii.example.org", "host-not-allowed"),
    ("https://evil.com?taxii.example.org", "host-not-allowed"),
    ("https://evil.com#@taxii.example.org", "host-not-allowed"),
    ("https://port.example.org/", "host-not-allowed"),
    ("https://port.example.org:8444/", "host-not-allowed"),
    ("https://default.example.org:8443/", "host-not-allowed"),
    ("https://t\u{430}xii.example.org/", "host-not-allowed"),
    ("https://taxi\u{131}.example.org/", "host-not-allowed"),
    ("https://bucher.example.com/", "host-not-allowed"),
    ("https://1.1.1.1/", "host-not-allowed"),
    ("https://[2606:4700:4700::1001]/", "host-not-allowed"),
    ("https://[2620:fe::fe]/", "host-not-allowed"),
    // Schemes.
    ("http://taxii.example.org/", "scheme"),
    ("http://127.0.0.1/", "scheme"),
    ("ftp://taxii.example.org/", "scheme"),
    ("file:///etc/passwd", "scheme"),
    ("file://taxii.example.org/etc/passwd", "scheme"),
    ("gopher://taxii.example.org:70/", "scheme"),
    ("data:text/plain,x", "scheme"),
    ("javascript:alert(1)", "scheme"),
    ("wss://taxii.example.org/", "scheme"),
    ("unix:/var/run/docker.sock", "scheme"),
    // Credentials.
    ("https://user@taxii.example.org/", "userinfo"),
    ("https://user:pass@taxii.example.org/", "userinfo"),
    ("https://:pass@taxii.example.org/", "userinfo"),
    ("https://@taxii.example.org/", "userinfo"),
    ("https://taxii.example.org@evil.com/", "userinfo"),
    ("https://taxii.example.org%40evil.com/", "invalid-url"),
    // Ports and dots.
    ("https://taxii.example.org:0/", "port"),
    ("https://taxii.example.org:00/", "port"),
    ("https://taxii.example.org:65536/", "invalid-url"),
    ("https://taxii.example.org:-1/", "invalid-url"),
    ("https://taxii.example.org./", "trailing-dot"),
    ("https://taxii.example.org\u{3002}/", "trailing-dot"),
    ("https://8.8.8.8./", "address-spelling"),
    // Texts that parsers read differently.
    ("", "invalid-url"),
    ("taxii.example.org", "invalid-url"),
    ("//taxii.example.org/", "invalid-url"),
    ("https:taxii.example.org/", "invalid-url"),
    ("https:/taxii.example.org/", "invalid-url"),
    ("https:///taxii.example.org/", "invalid-url"),
    ("https:\\\\taxii.example.org\\", "invalid-url"),
    ("https://evil.com\\@taxii.example.org/", "invalid-url"),
    (" https://taxii.example.org/", "invalid-url"),
    ("https://taxii.example.org/ x", "invalid-url"),
    ("https://taxii.exa\tmple.org/", "invalid-url"),
    ("https://taxii.example.org/\r\nHost: evil.com", "invalid-url"),
    ("https://taxii.example.org\u{0}.evil.com/", "invalid-url"),
    ("https://t%61xii.example.org/", "invalid-url"),
    ("https://[::1/", "invalid-url"),
    ("https://[fe80::1%25eth0]/", "invalid-url"),
    ("https://256.1.1.1/", "invalid-url"),
    // Spellings of addresses, those of public ones too.
    ("https://2130706433/", "address-spelling"),
    ("https://0x7f000001/", "address-spelling"),
    ("https://0x7f.1/", "address-spelling"),
    ("https://0X7F.0.0.1/", "address-spelling"),
    ("https://0177.0.0.1/", "address-spelling"),
    ("https://127.1/", "address-spelling"),
    ("https://127.0.1/", "address-spelling"),
    ("https://127.0.0.01/", "address-spelling"),
    ("https://%31%32%37.0.0.1/", "address-spelling"),
    ("https://\u{ff11}27.0.0.1/", "address-spelling"),
    ("https://127\u{3002}0\u{3002}0\u{3002}1/", "address-spelling"),
    ("https://134744072/", "address-spelling"),
    ("https://0x8.8.8.8/", "address-spelling"),
    // Addresses; loopback is on the list and refused nevertheless.
    ("https://127.0.0.1/", "loopback-address"),
    ("https://[::1]/", "loopback-address"),
    ("https://localhost/", "loopback-address"),
    ("https://api.LOCALHOST/", "loopback-address"),
    ("https://0.0.0.0/", "unspecified-address"),
    ("https://10.1.2.3/", "private-address"),
    ("https://100.64.0.1/", "shared-address"),
    ("https://169.254.169.254/latest/meta-data/", "metadata-address"),
    ("https://224.0.0.1/", "multicast-address"),
    ("https://255.255.255.255/", "broadcast-address"),
    ("https://[fe80::1]/", "link-local-address"),
    ("https://[fd12:3456::1]/", "unique-local-address"),
    ("https://[::ffff:8.8.8.8]/", "embedded-address"),
    ("https://[64:ff9b::7f00:1]/", "embedded-address"),
    ("https://[2001:db8::1]/", "documentation-address"),
];

#[test]
fn each_url_is_allowed_or_refused_by_its_rule() {
    let policy = public(&HOSTS, false);
    for (url, want) in URLS {
        assert_eq!(rule_of(policy.check(url)), want, "{url:?}");
    }
    let long = format!("https://taxii.example.org/{}", "a".repeat(9000));
    assert_eq!(rule_of(policy.check(&long)), "invalid-url");
}

#[test]
fn an_empty_list_allows_no_host() {
    let policy = public(&[], false);
    for (url, want) in URLS {
        let want = if want == "ok" { "host-not-allowed" } else { want };
        assert_eq!(rule_of(policy.check(url)), want, "{url:?}");
    }
}

#[test]
fn local_development_allows_http_and_loopback_of_listed_hosts_and_nothing_else() {
    let hosts = [
        "127.0.0.1",
        "localhost",
        "[::1]:8080",
        "10.0.0.1",
        "feed.example.org",
    ];
    let policy = public(&hosts, true);
    for (url, want) in [
        ("http://127.0.0.1:5000/", "ok"),
        ("https://127.0.0.1/", "ok"),
        ("http://localhost:5000/", "ok"),
        ("http://[::1]:8080/", "ok"),
        ("http://feed.example.org/", "ok"),
        ("http://127.0.0.2/", "host-not-allowed"),
        ("http://[::1]/", "host-not-allowed"),
        ("http://other.localhost/", "host-not-allowed"),
        ("http://10.0.0.1/", "private-address"),
        ("http://169.254.169.254/", "metadata-address"),
        ("http://[::ffff:127.0.0.1]/", "embedded-address"),
        ("http://0.0.0.0/", "unspecified-address"),
        ("http://127.1/", "address-spelling"),
        ("http://u@127.0.0.1/", "userinfo"),
        ("ftp://127.0.0.1/", "scheme"),
    ] {
        assert_eq!(rule_of(policy.check(url)), want, "{url:?}");
    }
}

#[test]
fn a_redirect_is_checked_like_a_url() {
    let policy = public(&HOSTS, false);
    let from = policy.check("https://taxii.example.org/a/b?c").unwrap();
    for (location, want) in [
        ("next", "https://taxii.example.org/a/next"),
        (
            "/next?x=https://evil.com",
            "https://taxii.example.org/next?x=https://evil.com",
        ),
        ("?page=2", "https://taxii.example.org/a/b?page=2"),
        ("../../../x", "https://taxii.example.org/x"),
        ("", "https://taxii.example.org/a/b?c"),
        ("//a.feeds.example.net/x", "https://a.feeds.example.net/x"),
        ("https://8.8.8.8/x", "https://8.8.8.8/x"),
        ("http://taxii.example.org/", "scheme"),
        ("file:///etc/passwd", "scheme"),
        ("a:b", "scheme"),
        ("//evil.com/x", "host-not-allowed"),
        ("https://evil.com/x", "host-not-allowed"),
        ("https://127.0.0.1/x", "loopback-address"),
        ("//169.254.169.254/latest", "metadata-address"),
        ("//0x7f.1/", "address-spelling"),
        ("https://2130706433/", "address-spelling"),
        ("https://u:p@taxii.example.org/", "userinfo"),
        ("//taxii.example.org@evil.com/", "userinfo"),
        ("/\\evil.com/", "invalid-url"),
        ("\\\\evil.com/", "invalid-url"),
        ("///evil.com/", "invalid-url"),
        ("https:evil.com", "invalid-url"),
        ("/a b", "invalid-url"),
        ("/\u{e9}", "invalid-url"),
    ] {
        let next = policy.next(&from, location.as_bytes());
        let found = next.map_or_else(|refusal| refusal.rule.name().to_owned(), String::from);
        assert_eq!(found, want, "{location:?}");
    }
    assert_eq!(policy.next(&from, b"/\xff").unwrap_err().rule, Rule::InvalidUrl);
}

#[test]
fn entries_of_the_list_have_one_meaning() {
    for entry in [
        "taxii.example.org",
        "TAXII.example.org:8443",
        "*.example.org",
        "*.corp.internal",
        "localhost",
        "10.0.0.1:80",
        "[::1]",
        "[2001:DB8::1]:443",
        "b\u{fc}cher.example",
    ] {
        assert!(entry.parse::<HostPattern>().is_ok(), "{entry}");
    }
    for entry in [
        "",
        "*",
        "*.",
        "*.*.example.org",
        "a.*.org",
        "https://taxii.example.org",
        "taxii.example.org/",
        "u@example.org",
        "example.org:",
        "example.org:0",
        "example.org:65536",
        "example.org.",
        "127.1",
        "0x7f000001",
        "::1",
        "*.127.0.0.1",
        "*.[::1]",
        "a b",
        "example.org?x",
        "*.8.8.8.8",
        "ex%61mple.org",
    ] {
        assert_eq!(
            entry.parse::<HostPattern>(),
            Err(HostPatternError::Form),
            "{entry}"
        );
    }
    for entry in ["*.com", "*.co.uk", "*.internal", "*.github.io"] {
        assert_eq!(
            entry.parse::<HostPattern>(),
            Err(HostPatternError::Suffix),
            "{entry}"
        );
    }
}

#[test]
fn a_refusal_shows_the_host_and_nothing_else_of_a_url() {
    let policy = public(&HOSTS, false);
    let shown = |url: &str| policy.check(url).unwrap_err().to_string();
    assert_eq!(
        shown("https://u:hunter2@evil.com/hunter2?token=hunter2#hunter2"),
        "the URL of host evil.com must not hold a user name or password (userinfo)"
    );
    assert_eq!(
        Refusal::new(Rule::PrivateAddress, "a.example")
            .after(2)
            .to_string(),
        "the URL of host a.example must not lead to a private address (private-address), after 2 redirects"
    );
    for url in ["https://hunter2 x", "hunter2", "hunter2://hunter2@x/"] {
        assert!(!shown(url).contains("hunter2"), "{url}");
    }
    assert!(shown(&format!("https://{}.org/", "a.".repeat(2000))).len() < 400);
}
