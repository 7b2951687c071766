use proptest::prelude::*;
use serde_json::json;

use std::collections::HashSet;

use super::*;
use crate::domain::stix::pattern::is_well_formed;

fn one(text: &str, name: &str) -> ExtractedEntity {
    let extraction = entities_of(text);
    let found = extraction.entities.iter().find(|entity| entity.name == name);
    found
        .unwrap_or_else(|| panic!("no {name} in {extraction:?}"))
        .clone()
}

#[test]
fn several_mentions_are_one_entity_with_the_first_span() {
    let text = "CVE-2024-3094 is bad. cve-2024-3094 again, CVE 2024-3094 too.";
    let extraction = entities_of(text);
    assert_eq!(extraction.entities.len(), 1);
    let cve = &extraction.entities[0];
    assert_eq!(cve.node_type, NodeType::Cve);
    assert_eq!(cve.span, Some((0, 13)));
    assert_eq!(
        cve.reasoning,
        "rule cve-id matched \"CVE-2024-3094\" (3 mentions)"
    );
    assert_eq!(cve.identity, identity(["cve", "CVE-2024-3094"]));
    assert!(cve.merge_by_name);
    assert_eq!(cve.properties["external_ids"], json!(["CVE-2024-3094"]));
}

#[test]
fn names_are_canonical_with_aliases_and_attack_ids() {
    let text = "Fancy Bear (G0007), that is APT 28, deployed X-Agent.";
    let actor = one(text, "APT28");
    assert_eq!(actor.identity, identity(["actor", "apt28"]));
    assert!(actor.merge_by_name);
    assert_eq!(actor.properties["external_ids"], json!(["G0007"]));
    assert!(
        actor.properties["aliases"]
            .as_array()
            .unwrap()
            .contains(&json!("Sofacy"))
    );
    assert!(actor.reasoning.ends_with("(3 mentions)"), "{}", actor.reasoning);
    assert_eq!(entities_of(text).entities.len(), 2);
}

#[test]
fn attack_ids_keep_their_types() {
    for (text, node_type) in [
        ("They used T1059.001.", NodeType::Attck),
        ("Tactic TA0001 came first.", NodeType::Attck),
        ("M1030 helps.", NodeType::Attck),
        ("See S0002.", NodeType::Tool),
        ("See group G0007.", NodeType::Actor),
        ("A case of CWE-79.", NodeType::Vulnerability),
    ] {
        let extraction = entities_of(text);
        assert_eq!(extraction.entities.len(), 1, "{text}");
        let entity = &extraction.entities[0];
        assert_eq!(entity.node_type, node_type, "{text}");
        assert!(entity.merge_by_name, "{text}");
        assert!(entity.properties.contains_key("external_ids"), "{text}");
    }
    assert_eq!(entities_of("See S0002.").entities[0].name, "Mimikatz");
}

#[test]
fn indicators_carry_value_kind_and_pattern() {
    let text = "C2 at hxxps://Evil[.]com/a, bücher[.]de, 1.2.3[.]4, 2001:db9::1, 5.6.0.0/16, bob[at]evil[.]com, \
                C:\\Windows\\Temp\\it's.exe, HKLM\\Software\\Evil\\Run, AS15139 \
                and 44d88612fea8a8f36de82e1278abb02f.";
    let extraction = entities_of(text);
    for (value, kind, pattern) in [
        (
            "https://evil.com/a",
            "url",
            Some("[url:value = 'https://evil.com/a']"),
        ),
        (
            "xn--bcher-kva.de",
            "domain",
            Some("[domain-name:value = 'xn--bcher-kva.de']"),
        ),
        ("1.2.3.4", "ipv4", Some("[ipv4-addr:value = '1.2.3.4']")),
        ("2001:db9::1", "ipv6", Some("[ipv6-addr:value = '2001:db9::1']")),
        (
            "5.6.0.0/16",
            "cidr",
            Some("[ipv4-addr:value ISSUBSET '5.6.0.0/16']"),
        ),
        (
            "bob@evil.com",
            "email",
            Some("[email-addr:value = 'bob@evil.com']"),
        ),
        ("AS15139", "asn", Some("[autonomous-system:number = 15139]")),
        (
            "44d88612fea8a8f36de82e1278abb02f",
            "md5",
            Some("[file:hashes.MD5 = '44d88612fea8a8f36de82e1278abb02f']"),
        ),
    ] {
        let entity = extraction
            .entities
            .iter()
            .find(|entity| entity.properties["value"] == value)
            .unwrap_or_else(|| panic!("{value}: {extraction:?}"));
        assert_eq!(entity.node_type, NodeType::Ioc);
        assert_eq!(entity.properties["value"], value);
        assert_eq!(entity.properties["ioc_type"], kind);
        assert_eq!(
            entity.properties.get("pattern").and_then(Value::as_str),
            pattern,
            "{value}"
        );
        assert_eq!(entity.identity, identity(["ioc", kind, value]));
        assert!(!entity.merge_by_name);
        // A bare name has the same identity.
        assert_eq!(naming::identity_of(NodeType::Ioc, value).0, entity.identity);
    }
    let spans = extraction.entities.iter().filter_map(|entity| entity.span);
    assert!(
        spans
            .map(|(from, to)| &text[from..to])
            .any(|words| words == "hxxps://Evil[.]com/a")
    );
    for entity in &extraction.entities {
        let pattern = entity.properties.get("pattern").and_then(Value::as_str);
        assert!(pattern.is_some_and(is_well_formed), "{entity:?}");
    }
}

#[test]
fn a_path_is_a_file_in_its_directory() {
    for (path, want) in [
        (
            "C:\\Temp\\it's.exe",
            "[file:name = 'it\\'s.exe' AND file:parent_directory_ref.path = 'C:\\\\Temp']",
        ),
        (
            "C:\\a.exe",
            "[file:name = 'a.exe' AND file:parent_directory_ref.path = 'C:\\\\']",
        ),
        (
            "/etc/cron.d/x",
            "[file:name = 'x' AND file:parent_directory_ref.path = '/etc/cron.d']",
        ),
    ] {
        let pattern = stix_pattern(EntityKind::FilePath, path).unwrap();
        assert_eq!(pattern, want);
        assert!(is_well_formed(&pattern));
    }
    assert_eq!(stix_pattern(EntityKind::YaraRule, "APT_x"), None);
    assert_eq!(stix_pattern(EntityKind::Md5, "not one"), None);
}

#[test]
fn a_weak_indicator_says_so() {
    let local = one("It calls 192.168.1.10 and 8.8.4.4.", "192.168.1.10");
    assert!(local.confidence < WEAK);
    assert_eq!(local.warnings.len(), 1);
    assert!(
        one("It calls 192.168.1.10 and 8.8.4.4.", "8.8.4.4")
            .warnings
            .is_empty()
    );
}

#[test]
fn what_a_sentence_states_is_a_relation_with_the_sentence_as_proof() {
    let text = "Intro. APT28 uses X-Agent. Fancy Bear has used X-Agent. Turla and Kazuar are named here.";
    let extraction = entities_of(text);
    assert_eq!(extraction.relations.len(), 1);
    let relation = &extraction.relations[0];
    assert_eq!(extraction.entities[relation.source].name, "APT28");
    assert_eq!(extraction.entities[relation.target].name, "X-Agent");
    assert_eq!(relation.relationship, "uses");
    assert_eq!(relation.proof, "APT28 uses X-Agent.");
    assert!(relation.confidence > 0.8);
}

#[test]
fn a_name_alone_becomes_what_the_rules_know_of_it() {
    let technique = entity_of_name(NodeType::Attck, "Phishing (T1566)");
    assert_eq!(technique.name, "Phishing (T1566)");
    assert_eq!(technique.properties["external_ids"], json!(["T1566"]));
    assert_eq!(
        technique.identity,
        entity_of_name(NodeType::Attck, "T1566").identity
    );
    let actor = entity_of_name(NodeType::Actor, "fancybear");
    assert_eq!(
        (actor.name.as_str(), &actor.properties["external_ids"]),
        ("APT28", &json!(["G0007"]))
    );
    // An indicator stays an indicator, whatever type is claimed.
    let address = entity_of_name(NodeType::Actor, "1.2.3[.]4");
    assert_eq!(
        (address.node_type, address.name.as_str()),
        (NodeType::Ioc, "1.2.3.4")
    );
    let mutex = entity_of_name(NodeType::Ioc, "Global\\Mutex One");
    assert_eq!(
        (mutex.name.as_str(), &mutex.properties["ioc_type"]),
        ("Global\\Mutex One", &json!("value"))
    );
    assert_eq!(entity_of_name(NodeType::Tool, "NewThing").properties, Map::new());
}

#[test]
fn nothing_gives_nothing() {
    assert_eq!(
        entities_of("Nothing of note happened today."),
        Extraction::default()
    );
}

proptest! {
    #[test]
    fn any_text_gives_distinct_entities_with_spans_inside(
        text in r"([a-zA-Z0-9 .:/@\\\[\]()é漢-]{0,40}|APT28 uses X-Agent\. |CVE-2021-44228 |1\.2\.3\.4 |evil\[\.\]com ){0,8}",
    ) {
        let extraction = entities_of(&text);
        let identities: HashSet<&str> = extraction.entities.iter().map(|e| e.identity.as_str()).collect();
        prop_assert_eq!(identities.len(), extraction.entities.len());
        for entity in &extraction.entities {
            let (from, to) = entity.span.unwrap();
            prop_assert!(text.get(from..to).is_some());
            prop_assert!((0.0..=1.0).contains(&entity.confidence));
        }
        for relation in &extraction.relations {
            prop_assert!(relation.source < extraction.entities.len() && relation.target < extraction.entities.len());
            prop_assert!(text.contains(&relation.proof));
        }
    }
}
