use proptest::prelude::*;

use super::*;
use crate::domain::stix::pattern::literal;

fn values(pattern: &str) -> Vec<(String, String)> {
    let observed = observed_values(pattern);
    let pair = |one: ObservedValue<'_>| (one.kind.into_owned(), one.value.into_owned());
    observed.into_iter().map(pair).collect()
}

/// Patterns, and the kinds and values that they match.
const PATTERNS: [(&str, &[(&str, &str)]); 30] = [
    ("[ipv4-addr:value = '192.0.2.1']", &[("ipv4", "192.0.2.1")]),
    ("[ipv4-addr:value == '192.0.2.0/24']", &[("cidr", "192.0.2.0/24")]),
    (
        "[ipv4-addr:value ISSUBSET '192.0.2.0/24']",
        &[("cidr", "192.0.2.0/24")],
    ),
    ("[ipv6-addr:value = '2001:db8::1']", &[("ipv6", "2001:db8::1")]),
    (
        "[domain-name:value IN ('a.example', 'b.example')]",
        &[("domain", "a.example"), ("domain", "b.example")],
    ),
    (
        "[domain-name:resolves_to_refs[*].value = '192.0.2.1']",
        &[("ipv4", "192.0.2.1")],
    ),
    (
        r"[url:value = 'http://a.example/\'x\\']",
        &[("url", r"http://a.example/'x\")],
    ),
    ("[email-addr:value = 'a@b.example']", &[("email", "a@b.example")]),
    (
        "[email-message:from_ref.value = 'a@b.example']",
        &[("email", "a@b.example")],
    ),
    (
        "[email-message:to_refs[0].value = 'a@b.example']",
        &[("email", "a@b.example")],
    ),
    (
        "[mac-addr:value = 'AA-BB-CC-DD-EE-FF']",
        &[("mac-address", "aa:bb:cc:dd:ee:ff")],
    ),
    ("[autonomous-system:number = 64500]", &[("asn", "AS64500")]),
    ("[file:hashes.MD5 = 'ab']", &[("md5", "ab")]),
    ("[file:hashes.'SHA-256' = 'ab' OR file:hashes.\"x\" = 'cd']", &[]),
    (
        "[file:hashes.'SHA-256' = 'ab' OR file:hashes.SSDEEP = 'cd']",
        &[("sha256", "ab"), ("ssdeep", "cd")],
    ),
    ("[artifact:hashes.'SHA-1' = 'ab']", &[("sha1", "ab")]),
    (
        "[x509-certificate:hashes.'SHA-1' = 'ab']",
        &[("x509-fingerprint-sha1", "ab")],
    ),
    ("[file:name = 'a.exe']", &[("file-name", "a.exe")]),
    (
        r"[file:name = 'a.exe' AND file:parent_directory_ref.path = 'C:\\x']",
        &[("file-name", "a.exe"), ("file-path", r"C:\x\a.exe")],
    ),
    (r"[directory:path = '/tmp/x']", &[("file-path", "/tmp/x")]),
    (
        r"[windows-registry-key:key = 'HKLM\\a']",
        &[("registry-key", r"HKLM\a")],
    ),
    ("[mutex:name = 'm']", &[("mutex", "m")]),
    (
        "[network-traffic:dst_ref.type = 'ipv4-addr' AND network-traffic:dst_ref.value = '192.0.2.1']",
        &[("ipv4", "192.0.2.1")],
    ),
    (
        "[network-traffic:dst_port = 443 AND network-traffic:protocols[0] = 'tcp']",
        &[],
    ),
    (
        "[network-traffic:extensions.'http-request-ext'.request_header.'User-Agent' = 'x 1']",
        &[("user-agent", "x 1")],
    ),
    ("[ipv4-addr:value != '192.0.2.1']", &[]),
    ("[ipv4-addr:value NOT = '192.0.2.1']", &[]),
    (
        "[domain-name:value NOT IN ('a.example') AND domain-name:value = 'b.example']",
        &[("domain", "b.example")],
    ),
    ("[EXISTS ipv4-addr:value]", &[]),
    (
        "([url:value = 'http://a.example'] FOLLOWEDBY [mutex:name = 'm']) WITHIN 5 SECONDS",
        &[("url", "http://a.example"), ("mutex", "m")],
    ),
];

#[test]
fn a_pattern_is_known_by_what_it_matches() {
    for (pattern, want) in PATTERNS {
        let want: Vec<(String, String)> = want
            .iter()
            .map(|(kind, value)| ((*kind).into(), (*value).into()))
            .collect();
        assert_eq!(values(pattern), want, "{pattern}");
    }
}

#[test]
fn what_a_value_is_like_is_not_the_value() {
    let found = observed_values("[file:name LIKE 'a%.exe']");
    assert_eq!(found.len(), 1);
    assert!(!found[0].is_exact);
}

proptest! {
    /// Whatever a value holds, it comes out of its quotes as it went in.
    #[test]
    fn a_quoted_value_is_read_as_it_is(value in "[ -~äж\u{4e2d}]{1,40}") {
        prop_assume!(!value.trim().is_empty());
        let pattern = format!("[mutex:name = {}]", literal(&value));
        prop_assert_eq!(values(&pattern), vec![("mutex".to_owned(), value)]);
    }

    #[test]
    fn any_text_is_read_without_a_panic(text in any::<String>()) {
        observed_values(&text);
    }
}
