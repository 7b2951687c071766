use proptest::prelude::*;

use super::*;

fn ioc(kind: &str, value: &str) -> (String, bool) {
    (identity(["ioc", kind, value]), false)
}

#[test]
fn every_spelling_of_a_name_has_one_identity() {
    let apt28 = (identity(["actor", "apt28"]), true);
    for name in [
        "APT28",
        "apt 28",
        " Fancy Bear ",
        "G0007",
        "APT28 (G0007)",
        "Sofacy",
    ] {
        assert_eq!(identity_of(NodeType::Actor, name), apt28, "{name}");
    }
    // The gazetteer knows this name only as an actor.
    assert_eq!(
        identity_of(NodeType::Tool, "Fancy Bear"),
        (identity(["tool", "fancybear"]), true)
    );
    let technique = (identity(["attck", "T1059.001"]), true);
    for name in ["T1059.001", "PowerShell (T1059.001)", "T1059.001: PowerShell"] {
        assert_eq!(identity_of(NodeType::Attck, name), technique, "{name}");
    }
    assert_eq!(
        identity_of(NodeType::Actor, "!?"),
        (identity(["actor", "!?"]), true)
    );
}

#[test]
fn a_cve_is_its_id() {
    let id = (identity(["cve", "CVE-2021-44228"]), true);
    for name in [
        "cve-2021-44228",
        "CVE-2021-44228 (Log4Shell)",
        "Log4Shell CVE-2021-44228",
    ] {
        assert_eq!(identity_of(NodeType::Cve, name), id, "{name}");
    }
    assert_eq!(
        identity_of(NodeType::Cve, "Log4Shell"),
        (identity(["cve", "log4shell"]), true)
    );
    let (two, _) = identity_of(NodeType::Cve, "CVE-2021-44228 and CVE-2021-45046");
    assert_ne!(two, id.0);
}

#[test]
fn an_indicator_is_its_kind_and_canonical_value() {
    for (name, kind, value) in [
        ("1.2.3[.]4", "ipv4", "1.2.3.4"),
        ("2001:DB8:0::1", "ipv6", "2001:db8::1"),
        ("EVIL[.]com", "domain", "evil.com"),
        ("hxxps://Evil[.]com/A", "url", "https://evil.com/A"),
        ("\"bob@evil.com\"", "email", "bob@evil.com"),
        (
            "D41D8CD98F00B204E9800998ECF8427E",
            "md5",
            "d41d8cd98f00b204e9800998ecf8427e",
        ),
        ("10.0.0.0/8", "cidr", "10.0.0.0/8"),
        (
            "00000000000000000000000000000000",
            "md5",
            "00000000000000000000000000000000",
        ),
        ("Global\\Mutex One", "value", "global\\mutex one"),
        ("1.2.3.4 and 5.6.7.8", "value", "1.2.3.4 and 5.6.7.8"),
        ("APT28", "value", "apt28"),
    ] {
        assert_eq!(identity_of(NodeType::Ioc, name), ioc(kind, value), "{name}");
    }
}

#[test]
fn a_stated_kind_decides_and_agrees_with_the_text_alone() {
    for (kind, value) in [
        ("domain", "Evil[.]COM"),
        ("sha1", "DA39A3EE5E6B4B0D3255BFEF95601890AFD80709"),
        ("url", "hxxp://Evil[.]com/x"),
        ("asn", "AS15139"),
        ("ipv6", "2001:DB8::0:1"),
    ] {
        assert_eq!(
            indicator_identity(kind, value),
            identity_of(NodeType::Ioc, value).0,
            "{value}"
        );
    }
    // A name that looks like a file is a domain if the source says so.
    assert_eq!(
        indicator_identity("domain", "Evil.zip"),
        identity(["ioc", "domain", "evil.zip"])
    );
    assert_eq!(
        indicator_identity("mutex", " Global\\X "),
        identity(["ioc", "mutex", "Global\\X"])
    );
    assert_eq!(
        indicator_identity("asn", "15139"),
        identity(["ioc", "asn", "AS15139"])
    );
}

proptest! {
    #[test]
    fn any_name_has_an_identity_that_ignores_space_around_it(name in any::<String>(), kind in 0..7usize) {
        let node_type = NodeType::ALL[kind];
        prop_assert_eq!(identity_of(node_type, &format!(" {name}\n")), identity_of(node_type, name.trim()));
    }
}
