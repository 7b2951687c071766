//! Kinds, canonical forms, composite types and patterns of values.

use super::*;
use crate::domain::naming::indicator_identity;
use crate::domain::stix::pattern::is_well_formed;

const MD5: &str = "d41d8cd98f00b204e9800998ecf8427e";
const SHA256: &str = "fe90a7e910cb3a4739bed9180e807e93fa70c90f25a8915476f5e4bfbac681db";

fn shown(node: &NodeDraft, key: &str) -> String {
    node.properties
        .map()
        .get(key)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn a_value_gets_its_kind_its_form_and_its_pattern() {
    for (misp_type, value, kind, canonical, pattern) in [
        (
            "ip-dst",
            "198[.]51.100.3",
            "ipv4",
            "198.51.100.3",
            "[ipv4-addr:value = '198.51.100.3']",
        ),
        (
            "ip-src",
            "2001:DB8:0::1",
            "ipv6",
            "2001:db8::1",
            "[ipv6-addr:value = '2001:db8::1']",
        ),
        (
            "ip-dst",
            "10.0.0.0/8",
            "cidr",
            "10.0.0.0/8",
            "[ipv4-addr:value ISSUBSET '10.0.0.0/8']",
        ),
        ("ip-dst", "10.0.0.1-10.0.0.9", "ip", "10.0.0.1-10.0.0.9", ""),
        (
            "hostname",
            "WWW.Evil[.]Example.",
            "domain",
            "www.evil.example",
            "[domain-name:value = 'www.evil.example']",
        ),
        (
            "domain",
            "Bücher.example",
            "domain",
            "xn--bcher-kva.example",
            "[domain-name:value = 'xn--bcher-kva.example']",
        ),
        (
            "domain",
            "198.51.100.3",
            "ipv4",
            "198.51.100.3",
            "[ipv4-addr:value = '198.51.100.3']",
        ),
        (
            "url",
            "hxxps://Evil[.]Example/A'b\\c",
            "url",
            "https://evil.example/A'b\\c",
            "[url:value = 'https://evil.example/A\\'b\\\\c']",
        ),
        (
            "link",
            "https://Example.com/Report",
            "link",
            "https://example.com/Report",
            "",
        ),
        (
            "email-src",
            "Bob[at]Evil.example",
            "email",
            "bob@evil.example",
            "[email-addr:value = 'bob@evil.example']",
        ),
        (
            "md5",
            "D41D8CD98F00B204E9800998ECF8427E",
            "md5",
            MD5,
            "[file:hashes.MD5 = 'd41d8cd98f00b204e9800998ecf8427e']",
        ),
        ("sha256", "not a hash", "sha256", "not a hash", ""),
        (
            "filename",
            "it's.exe",
            "file-name",
            "it's.exe",
            "[file:name = 'it\\'s.exe']",
        ),
        (
            "filename",
            "C:\\Temp\\x y.exe",
            "file-path",
            "C:\\Temp\\x y.exe",
            "[file:name = 'x y.exe' AND file:parent_directory_ref.path = 'C:\\\\Temp']",
        ),
        (
            "filename",
            "/etc/",
            "file-path",
            "/etc/",
            "[directory:path = '/etc/']",
        ),
        (
            "filename",
            "/x",
            "file-path",
            "/x",
            "[file:name = 'x' AND file:parent_directory_ref.path = '/']",
        ),
        (
            "regkey",
            "HKLM\\Software\\Evil",
            "registry-key",
            "HKEY_LOCAL_MACHINE\\Software\\Evil",
            "[windows-registry-key:key = 'HKEY_LOCAL_MACHINE\\\\Software\\\\Evil']",
        ),
        (
            "mutex",
            "Global\\日本語'",
            "mutex",
            "Global\\日本語'",
            "[mutex:name = 'Global\\\\日本語\\'']",
        ),
        (
            "AS",
            "15139",
            "asn",
            "AS15139",
            "[autonomous-system:number = 15139]",
        ),
        (
            "mac-address",
            "D2-FB-49-24-37-18",
            "mac-address",
            "d2:fb:49:24:37:18",
            "[mac-addr:value = 'd2:fb:49:24:37:18']",
        ),
        (
            "x509-fingerprint-md5",
            "D4:1D:8C:D9:8F:00:B2:04:E9:80:09:98:EC:F8:42:7E",
            "x509-fingerprint-md5",
            MD5,
            "[x509-certificate:hashes.MD5 = 'd41d8cd98f00b204e9800998ecf8427e']",
        ),
        (
            "email-subject",
            "Your 'invoice'",
            "email-subject",
            "Your 'invoice'",
            "[email-message:subject = 'Your \\'invoice\\'']",
        ),
        ("port", "443", "port", "443", ""),
        ("text", "Malicious", "text", "Malicious", ""),
        ("some-new-type", "Whatever", "some-new-type", "Whatever", ""),
    ] {
        let plan = attribute(misp_type, value);
        let [node] = plan.drafts.nodes.as_slice() else {
            panic!("{misp_type} {value}: {plan:?}")
        };
        let spelled = !value.is_ascii() && canonical.starts_with("xn--");
        let name = if spelled {
            value.to_lowercase()
        } else {
            canonical.to_owned()
        };
        assert_eq!(node.name, name, "{misp_type} {value}");
        assert_eq!(shown(node, "value"), canonical, "{misp_type} {value}");
        assert_eq!(shown(node, "ioc_type"), kind, "{misp_type} {value}");
        assert_eq!(shown(node, "misp_type"), misp_type);
        assert_eq!(shown(node, "pattern"), pattern, "{misp_type} {value}");
        assert_eq!(
            node.identity,
            indicator_identity(kind, canonical),
            "{misp_type} {value}"
        );
        assert!(pattern.is_empty() || is_well_formed(pattern), "{pattern}");
        assert!(!node.merge_by_name && node.evidence == [0]);
    }
}

#[test]
fn composite_values_are_split_and_keep_their_bond() {
    type Row<'r> = (&'r str, String, &'r [&'r str], &'r [(&'r str, &'r str, &'r str)]);
    let table: [Row; 11] = [
        (
            "filename|sha256",
            format!("a|b.exe|{SHA256}"),
            &["a|b.exe", SHA256],
            &[("a|b.exe", "related-to", SHA256)],
        ),
        (
            "malware-sample",
            format!("x.exe|{MD5}"),
            &["x.exe", MD5],
            &[("x.exe", "related-to", MD5)],
        ),
        (
            "filename|imphash",
            format!("x.exe|{MD5}"),
            &["x.exe", MD5],
            &[("x.exe", "related-to", MD5)],
        ),
        (
            "domain|ip",
            "Evil.example|198.51.100.3".into(),
            &["evil.example", "198.51.100.3"],
            &[("evil.example", "resolves-to", "198.51.100.3")],
        ),
        ("ip-dst|port", "198.51.100.3|443".into(), &["198.51.100.3"], &[]),
        ("ip-dst|port", "[2001:db8::6]:443".into(), &["2001:db8::6"], &[]),
        ("ip-dst|port", "[2001:DB8::6]|443".into(), &["2001:db8::6"], &[]),
        (
            "hostname|port",
            "evil.example:8080".into(),
            &["evil.example"],
            &[],
        ),
        (
            "regkey|value",
            "HKCU\\Run|evil|x".into(),
            &["HKEY_CURRENT_USER\\Run"],
            &[],
        ),
        ("filename|sha256", format!("|{SHA256}"), &[SHA256], &[]),
        ("filename|sha256", SHA256.into(), &[SHA256], &[]),
    ];
    for (misp_type, value, want, bonds) in table {
        let plan = attribute(misp_type, &value);
        assert_eq!(names(&plan), want, "{misp_type} {value}");
        assert_eq!(edges(&plan), bonds, "{misp_type} {value}");
        for node in &plan.drafts.nodes {
            let original = &node.properties.map()["misp_attributes"][0];
            assert!(original.get("value").is_none_or(|kept| *kept == json!(value)));
        }
    }
    let ports = planned(json!({"Attribute": [
        {"type": "ip-dst|port", "value": "198.51.100.3|443"}, {"type": "ip-src|port", "value": "198.51.100.3|80"},
        {"type": "ip-dst|port", "value": "198.51.100.3|443"},
    ]}));
    assert_eq!(ports.drafts.nodes[0].properties.map()["ports"], json!([443, 80]));
    let key = attribute("regkey|value", "HKCU\\Run|evil|x");
    assert_eq!(
        key.drafts.nodes[0].properties.map()["registry_values"],
        json!(["evil|x"])
    );
}

#[test]
fn rules_are_their_own_pattern_and_are_called_by_their_title() {
    for (misp_type, value, name) in [
        (
            "yara",
            "// by us\nprivate rule Evil_Loader : apt { condition: true }",
            "Evil_Loader",
        ),
        (
            "sigma",
            "title: Suspicious thing\nlogsource: {}",
            "Suspicious thing",
        ),
        (
            "snort",
            "alert tcp any any -> any any (msg:\"Beacon\"; sid:1;)",
            "Beacon",
        ),
    ] {
        let plan = attribute(misp_type, value);
        let node = named(&plan, name);
        assert_eq!(
            (
                shown(node, "pattern_type").as_str(),
                shown(node, "pattern").as_str()
            ),
            (misp_type, "")
        );
        assert_eq!(detection(misp_type, value), Some((value.to_owned(), misp_type)));
    }
    let pattern = "[file:name = 'x'] FOLLOWEDBY [mutex:name = 'y']";
    assert_eq!(
        detection("stix2-pattern", pattern),
        Some((pattern.to_owned(), "stix"))
    );
    assert_eq!(detection("stix2-pattern", "[file:name = 'x"), None);
}

#[test]
fn vulnerabilities_and_actors_are_not_indicators() {
    use crate::domain::node::NodeType;
    for (misp_type, value, node_type, name) in [
        ("vulnerability", "cve-2017-0144", NodeType::Cve, "CVE-2017-0144"),
        (
            "vulnerability",
            "EternalBlue",
            NodeType::Vulnerability,
            "EternalBlue",
        ),
        ("threat-actor", "APT28", NodeType::Actor, "APT28"),
        (
            "campaign-name",
            "Olympic Destroyer",
            NodeType::Ioc,
            "Olympic Destroyer",
        ),
    ] {
        let plan = attribute(misp_type, value);
        assert_eq!(named(&plan, name).node_type, node_type, "{value}");
    }
}

#[test]
fn a_long_value_has_a_short_name_and_is_kept_whole() {
    let long = "long line ".repeat(100);
    let plan = attribute("text", &format!("{long}\nsecond"));
    let node = &plan.drafts.nodes[0];
    assert_eq!(node.name.chars().count(), 201);
    assert!(shown(node, "value").ends_with("second"));
}
