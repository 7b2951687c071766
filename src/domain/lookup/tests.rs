use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

fn kinds(values: &[&str]) -> Vec<(Option<EntityKind>, String)> {
    let read = read_values(values.iter().copied());
    read.into_iter().map(|asked| (asked.kind, asked.value)).collect()
}

#[test]
fn a_value_is_read_with_what_a_list_leaves_around_it() {
    use EntityKind::*;
    for (sent, kind, value) in [
        ("198.51.100.44", Ipv4, "198.51.100.44"),
        (" 198.51.100.44, ", Ipv4, "198.51.100.44"),
        ("\"198.51.100.44\";", Ipv4, "198.51.100.44"),
        ("198[.]51.100.44:443", Ipv4, "198.51.100.44"),
        ("[198.51.100.44]", Ipv4, "198.51.100.44"),
        ("::ffff:198.51.100.44", Ipv4, "198.51.100.44"),
        ("[2001:DB8::6]:443", Ipv6, "2001:db8::6"),
        ("2001:db8::6%eth0", Ipv6, "2001:db8::6"),
        ("203.0.113.77/25", Cidr, "203.0.113.0/25"),
        ("evil.example.com.", Domain, "evil.example.com"),
        ("evil.example.com:8443", Domain, "evil.example.com"),
        ("bücher.de", Domain, "xn--bcher-kva.de"),
        ("hxxp://evil[.]example.com/A", Url, "http://evil.example.com/A"),
        ("mailto:kit@example.com", Email, "kit@example.com"),
        (
            "44:d8:86:12:fe:a8:a8:f3:6d:e8:2e:12:78:ab:b0:2f",
            Md5,
            "44d88612fea8a8f36de82e1278abb02f",
        ),
        (
            "HKLM/SOFTWARE/Brant",
            RegistryKey,
            "HKEY_LOCAL_MACHINE\\SOFTWARE\\Brant",
        ),
        ("cve-2024-3094", Cve, "CVE-2024-3094"),
        ("t1059.001", AttckTechnique, "T1059.001"),
    ] {
        assert_eq!(kinds(&[sent]), [(Some(kind), value.to_owned())], "{sent}");
    }
}

#[test]
fn what_is_no_indicator_is_told_with_the_reason() {
    let long = "x".repeat(MAX_VALUE + 1);
    for (sent, reason) in [
        ("", "is empty"),
        (" ,; ", "is empty"),
        (&long, "has more than 4000 characters"),
        ("198.51.100.044", "an octet has a leading zero"),
        ("198.051.100.0/24", "an octet has a leading zero"),
        ("198.51.100.300", "is no address"),
        ("198.51.100.0/33", "is no network"),
        ("0123456789abcdef0", "17 hexadecimal digits are no MD5"),
        ("several words here", "is no indicator: has several words"),
        ("nothing", "is no indicator: neither"),
    ] {
        let read = read_values([sent]);
        let told = read[0].reason.as_deref().unwrap_or_default();
        assert!(told.starts_with(reason), "{sent}: {read:?}");
        let result = LookupResult::<LookupMatch>::new(read[0].clone(), Vec::new(), Vec::new(), |hit| *hit);
        assert_eq!((result.verdict, result.value), (Verdict::Invalid, None));
    }
}

#[test]
fn a_value_is_answered_once_under_its_first_spelling() {
    let read = read_values([
        "b.example.com",
        "198.51.100.44",
        "B[.]example.com",
        "198.51.100.44",
    ]);
    let told: Vec<_> = read
        .iter()
        .map(|asked| (asked.sent.as_str(), asked.count))
        .collect();
    assert_eq!(told, [("b.example.com", 2), ("198.51.100.44", 2)]);
    let read =
        read_text("198.51.100.44 and 198[.]51.100.44 dropped CVE-2024-3094; see https://evil.example.com/a.");
    let told: Vec<_> = read
        .iter()
        .map(|asked| (asked.value.as_str(), asked.count))
        .collect();
    let want = [
        ("198.51.100.44", 2),
        ("CVE-2024-3094", 1),
        ("https://evil.example.com/a", 1),
    ];
    assert_eq!(told, want);
}

#[test]
fn parents_end_at_the_registered_domain() {
    for (kind, value, want) in [
        (EntityKind::Domain, "example.com", ""),
        (EntityKind::Domain, "a.b.example.com", "b.example.com example.com"),
        (EntityKind::Domain, "a.example.co.uk", "example.co.uk"),
        (EntityKind::Domain, "co.uk", ""),
        (EntityKind::Domain, "someone.github.io", ""),
        (EntityKind::Domain, "x.someone.github.io", "someone.github.io"),
        (EntityKind::Domain, "com", ""),
        (
            EntityKind::Url,
            "https://u@a.example.com:8443/x?y",
            "a.example.com example.com",
        ),
        (EntityKind::Url, "a.example.com/x", "a.example.com example.com"),
        (EntityKind::Url, "http://[2001:db8::7]:8080/x", "2001:db8::7"),
        (EntityKind::Url, "198.51.100.44:8443/gate.php", "198.51.100.44"),
        (EntityKind::Url, "https://github.io/x", ""),
        (
            EntityKind::Email,
            "kit@mail.example.com",
            "mail.example.com example.com",
        ),
        (EntityKind::Md5, "44d88612fea8a8f36de82e1278abb02f", ""),
    ] {
        let parents = parents_of(kind, value);
        let found: Vec<&str> = parents.iter().map(|parent| parent.value.as_str()).collect();
        assert_eq!(found.join(" "), want, "{value}");
        let hosts = parents
            .iter()
            .filter(|parent| parent.matched == LookupMatch::Host);
        let is_part = !matches!(kind, EntityKind::Domain) && !want.is_empty();
        assert_eq!(hosts.count(), usize::from(is_part), "{value}");
    }
}

fn node(name: &str, properties: Value) -> KgNode {
    let Value::Object(properties) = properties else {
        panic!("an object")
    };
    KgNode {
        id: Uuid::nil(),
        node_type: NodeType::Ioc,
        name: name.to_owned(),
        description: String::new(),
        source: String::new(),
        source_type: String::new(),
        tlp: Tlp::White,
        confidence: 0.5,
        properties,
        ingested_at: DateTime::UNIX_EPOCH,
        linked_evidence_ids: Vec::new(),
        status: NodeStatus::Active,
    }
}

use crate::domain::node::KgNode;

#[test]
fn a_node_carries_its_values_and_not_what_they_are_like() {
    let url = node("Loader", json!({"value": "http://evil.example.com/A"}));
    let pattern = "[file:hashes.MD5 = '44D88612FEA8A8F36DE82E1278ABB02F' OR domain-name:value LIKE '%evil.example.com%' \
                   OR file:hashes.'SHA-1' = '3395856ce81f2b7382dee72602f798b642f14140']";
    let indicator = node("Loader", json!({"stix_id": "indicator--1", "pattern": pattern}));
    for (node, kind, value, want) in [
        (&url, EntityKind::Url, "http://evil.example.com/A", true),
        (&url, EntityKind::Url, "evil.example.com/A", true),
        (&url, EntityKind::Url, "http://evil.example.com/a", false),
        (
            &indicator,
            EntityKind::Md5,
            "44d88612fea8a8f36de82e1278abb02f",
            true,
        ),
        (&indicator, EntityKind::Domain, "evil.example.com", false),
    ] {
        assert_eq!(carries(node, Some(kind), value), want, "{value}");
    }
    let others = other_digests(&indicator, "44d88612fea8a8f36de82e1278abb02f");
    let sha1 = "3395856ce81f2b7382dee72602f798b642f14140".to_owned();
    assert_eq!(others, [(EntityKind::Sha1, sha1)]);
    assert!(carries(
        &node("Global\\Mutex", Value::Object(Map::new())),
        None,
        "global\\mutex"
    ));
}

proptest! {
    #[test]
    fn order_and_duplicates_do_not_matter(
        values in prop::collection::vec("[a-c]{1,2}\\.example\\.com|198\\.51\\.100\\.[0-9]|[a-z ]{0,6}", 1..20),
        seed: u64,
    ) {
        let counts = |values: &[String]| {
            let read = read_values(values.iter().map(String::as_str));
            let mut counts: Vec<_> = read.into_iter().map(|one| (one.kind, one.value, one.reason, one.count)).collect();
            counts.sort();
            counts
        };
        let mut shuffled = values.clone();
        let length = shuffled.len();
        for place in 0..length {
            shuffled.swap(place, (seed.wrapping_mul(place as u64 + 1) % length as u64) as usize);
        }
        prop_assert_eq!(counts(&values), counts(&shuffled));
        let twice: Vec<String> = values.iter().chain(&values).cloned().collect();
        let doubled: Vec<_> = counts(&values).into_iter().map(|(k, v, r, count)| (k, v, r, 2 * count)).collect();
        prop_assert_eq!(counts(&twice), doubled);
    }

    #[test]
    fn any_text_is_read(text in "\\PC{0,60}") {
        for asked in read_values([text.as_str()]) {
            prop_assert!(asked.kind.is_none() || asked.reason.is_none());
            if let Some(kind) = asked.kind {
                parents_of(kind, &asked.value);
            }
        }
    }
}
