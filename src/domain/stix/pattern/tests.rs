use super::*;
use proptest::prelude::*;

const SHA256: &str = "fe90a7e910cb3a4739bed9180e807e93fa70c90f25a8915476f5e4bfbac681db";

#[test]
fn a_value_becomes_the_pattern_of_its_kind() {
    let cases = [
        (
            Observable::Ipv4,
            "198.51.100.3",
            "[ipv4-addr:value = '198.51.100.3']",
        ),
        (
            Observable::Ipv4,
            "198.51.100.0/24",
            "[ipv4-addr:value ISSUBSET '198.51.100.0/24']",
        ),
        (
            Observable::Ipv6,
            "2001:db8::1",
            "[ipv6-addr:value = '2001:db8::1']",
        ),
        (
            Observable::Domain,
            "example.com",
            "[domain-name:value = 'example.com']",
        ),
        (
            Observable::Url,
            "https://example.com/a'b",
            "[url:value = 'https://example.com/a\\'b']",
        ),
        (
            Observable::Email,
            "john@example.com",
            "[email-addr:value = 'john@example.com']",
        ),
        (
            Observable::AutonomousSystem,
            "AS15139",
            "[autonomous-system:number = 15139]",
        ),
        (
            Observable::Md5,
            "d41d8cd98f00b204e9800998ecf8427e",
            "[file:hashes.MD5 = 'd41d8cd98f00b204e9800998ecf8427e']",
        ),
        (Observable::FileName, "it's.exe", "[file:name = 'it\\'s.exe']"),
        (
            Observable::RegistryKey,
            "HKEY_LOCAL_MACHINE\\x",
            "[windows-registry-key:key = 'HKEY_LOCAL_MACHINE\\\\x']",
        ),
        (
            Observable::UserAgent,
            "curl/8",
            "[network-traffic:extensions.'http-request-ext'.request_header.'User-Agent' = 'curl/8']",
        ),
    ];
    for (kind, value, expected) in cases {
        let made = pattern(kind, value);
        assert_eq!(made.as_deref(), Some(expected));
        assert!(is_well_formed(expected), "{expected}");
    }
    let made = pattern(Observable::Sha256, SHA256).unwrap();
    assert_eq!(made, format!("[file:hashes.'SHA-256' = '{SHA256}']"));
    assert!(is_well_formed(&made));
}

#[test]
fn a_value_of_another_kind_becomes_nothing() {
    let cases = [
        (Observable::Ipv4, "999.1.1.1"),
        (Observable::Ipv4, "10.0.0.0/33"),
        (Observable::Ipv4, "example.com"),
        (Observable::Ipv6, "198.51.100.3"),
        (Observable::Domain, "https://example.com"),
        (Observable::Domain, "two words"),
        (Observable::Url, "example.com"),
        (Observable::Email, "john"),
        (Observable::Sha256, "d41d8cd98f00b204e9800998ecf8427e"),
        (Observable::Md5, "not hexadecimal but 32 characters"),
        (Observable::AutonomousSystem, "ASN"),
        (Observable::Port, "65536"),
        (Observable::Mac, "d2:fb:49:24:37"),
        (Observable::RegistryKey, "Software"),
        (Observable::FileName, "  "),
        (Observable::FileName, "a\nb"),
    ];
    for (kind, value) in cases {
        assert_eq!(pattern(kind, value), None, "{kind:?} {value}");
    }
}

#[test]
fn values_that_belong_together_stay_together() {
    let file = pattern_all(&[(Observable::FileName, "a.exe"), (Observable::Sha256, SHA256)]).unwrap();
    assert_eq!(
        file,
        format!("[file:name = 'a.exe' AND file:hashes.'SHA-256' = '{SHA256}']")
    );
    let host = pattern_all(&[
        (Observable::Domain, "example.com"),
        (Observable::Ipv4, "198.51.100.3"),
    ])
    .unwrap();
    assert_eq!(
        host,
        "[domain-name:value = 'example.com'] AND [ipv4-addr:value = '198.51.100.3']"
    );
    assert!(is_well_formed(&file) && is_well_formed(&host));
    assert_eq!(
        pattern_all(&[(Observable::FileName, "a.exe"), (Observable::Sha256, "short")]),
        None
    );
    assert_eq!(pattern_all(&[]), None);
}

/// Examples in the forms described in section 9 of the standard.
#[test]
fn well_formed_patterns_parse() {
    let cases = [
        "[aaa:bbb = 1]",
        "[aaa:bbb=1]",
        "[ aaa:bbb == -1.5 ]",
        "[aaa:bbb != true]",
        "[aaa:bbb <> 'x']",
        "[aaa:bbb NOT = 'x']",
        "[aaa:bbb > .5 AND aaa:ccc <= +3 OR aaa:ddd >= h'00ff']",
        "[aaa:bbb = b'aGVsbG8=']",
        "[aaa:bbb < t'2024-02-29T00:00:00Z']",
        "[file:hashes.'SHA-256' = 'x']",
        "[file:hashes.MD5 = 'x' AND (file:size > 10 OR file:name LIKE '%.ex_')]",
        "[file:extensions.'windows-pebinary-ext'.sections[*].entropy > 7.0]",
        "[process:child_refs[0].pid = 3 OR process:child_refs[-1].pid = 3]",
        "[ipv4-addr:value ISSUBSET '10.0.0.0/8' OR ipv4-addr:value ISSUPERSET '10.1.0.0/16']",
        "[ipv4-addr:value NOT ISSUBSET '10.0.0.0/8']",
        "[url:value MATCHES '^https?://[^\\\\s]+\\\\.php$']",
        "[aaa:bbb IN ('x', 'y', 3)]",
        "[aaa:bbb NOT IN ('x')]",
        "[EXISTS file:hashes.MD5]",
        "[aaa:bbb = 1] FOLLOWEDBY [ccc:ddd = 2]",
        "([aaa:bbb = 1] OR [ccc:ddd = 2]) AND [eee:fff = 3]",
        "([aaa:bbb = 1] FOLLOWEDBY [ccc:ddd = 2]) WITHIN 300 SECONDS",
        "[aaa:bbb = 1] REPEATS 5 TIMES WITHIN 1800.5 SECONDS",
        "[aaa:bbb = 1] START t'2024-01-01T00:00:00Z' STOP t'2024-01-02T00:00:00.123Z'",
        "[aaa:bbb = 'it\\'s'] // a comment\n/* another */ AND [ccc:ddd = '\\\\']",
        "[x-custom-type:x_prop.'quoted key' = '日本']",
        "[aaa:'bbb_c'.'b c' = 1]",
    ];
    for case in cases {
        assert!(is_well_formed(case), "{case}");
    }
}

#[test]
fn broken_patterns_do_not_parse() {
    let cases = [
        "",
        " ",
        "[]",
        "[aaa:bbb = ]",
        "[aaa:bbb = 1",
        "aaa:bbb = 1",
        "[aaa:bbb = 1]]",
        "[aaa:bbb = 1] trailing",
        "[aaa:bbb = 1] [ccc:ddd = 2]",
        "[aaa:bbb 1]",
        "[aaa = 1]",
        "[aaa: = 1]",
        "[:bbb = 1]",
        "[aaa:bbb = 'open]",
        "[aaa:bbb = 'it's']",
        "[aaa:bbb = 'bad \\escape']",
        "[aaa:bbb = \"double\"]",
        "[aaa:bbb = bareword]",
        "[aaa:bbb = 007]",
        "[aaa:bbb = 1x]",
        "[aaa:bbb > true]",
        "[aaa:bbb LIKE 3]",
        "[aaa:bbb MATCHES]",
        "[aaa:bbb ISSUBSET 10]",
        "[aaa:bbb IN ()]",
        "[aaa:bbb IN 'x']",
        "[aaa:bbb IN ('x',)]",
        "[aaa:bbb IN ('x' 'y')]",
        "[EXISTS]",
        "[EXISTS aaa:bbb = 1]",
        "[NOT aaa:bbb = 1]",
        "[aaa:bbb-c = 1]",
        "[aaa:bbb.c-d = 1]",
        "[aaa:bbb[x] = 1]",
        "[aaa:bbb[1.5] = 1]",
        "[aaa:bbb[] = 1]",
        "[aaa:bbb = 1 AND]",
        "[AND aaa:bbb = 1]",
        "[aaa:bbb = 1 and aaa:ccc = 2]",
        "[(aaa:bbb = 1]",
        "[aaa:bbb = 1)]",
        "([aaa:bbb = 1]",
        "[aaa:bbb = 1] FOLLOWEDBY",
        "[aaa:bbb = 1 FOLLOWEDBY aaa:ccc = 2]",
        "[aaa:bbb = 1] WITHIN 5",
        "[aaa:bbb = 1] WITHIN -5 SECONDS",
        "[aaa:bbb = 1] WITHIN 5 MINUTES",
        "[aaa:bbb = 1] REPEATS 0 TIMES",
        "[aaa:bbb = 1] REPEATS 1.5 TIMES",
        "[aaa:bbb = 1] REPEATS 2 TIMES REPEATS 3 TIMES",
        "[aaa:bbb = 1] START t'2024-01-01T00:00:00Z'",
        "[aaa:bbb = 1] START '2024-01-01T00:00:00Z' STOP '2024-01-02T00:00:00Z'",
        "[aaa:bbb = t'yesterday']",
        "[aaa:bbb = t'2024-02-30T00:00:00Z']",
        "[aaa:bbb = t'2024-01-01T00:00:00+01:00']",
        "[aaa:bbb = h'abc']",
        "[aaa:bbb = b'?']",
        "[aaa:bbb = b'']",
        "[aaa:bbb = 1] /* open",
        "[aaa:bbb = 1;]",
        "[ab:bbb = 1]",
        "[aaa:bb = 1]",
        "[Aaa:bbb = 1]",
        "[aaa:Bbb = 1]",
        "[aaa:'b c' = 1]",
        "[aaa-:bbb = 1]",
    ];
    for case in cases {
        assert!(!is_well_formed(case), "{case}");
    }
}

#[test]
fn nesting_is_bounded() {
    let nested = |depth: usize| format!("{}[aaa:bbb = 1]{}", "(".repeat(depth), ")".repeat(depth));
    assert!(is_well_formed(&nested(60)));
    assert!(!is_well_formed(&nested(1_000_000)));
}

proptest! {
    #[test]
    fn no_text_escapes_its_quotes(text in "\\PC*") {
        let pattern = format!("[aaa:bbb = {}]", literal(&text));
        prop_assert!(is_well_formed(&pattern));
    }

    #[test]
    fn no_input_panics(text in ".*") {
        let _ = is_well_formed(&text);
        let _ = is_well_formed(&format!("[{text}]"));
    }

    #[test]
    fn whatever_is_built_parses(value in "[ -~é]{1,40}") {
        for kind in [Observable::Domain, Observable::Url, Observable::Email, Observable::FileName,
                     Observable::RegistryKey, Observable::Mutex, Observable::Ipv4, Observable::Ssdeep] {
            if let Some(pattern) = pattern(kind, &value) {
                prop_assert!(is_well_formed(&pattern), "{}", pattern);
            }
        }
    }
}
