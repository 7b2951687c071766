//! Keys of entities and what texts mention.

use sha2::{Digest, Sha256};

use super::*;

fn keys(text: &str) -> Vec<String> {
    let found = mentions_in(text).entities;
    found.iter().map(|entity| entity.key.to_string()).collect()
}

#[test]
fn a_text_yields_canonical_entities_each_once() {
    let text = "APT28 used Cobalt Strike to exploit CVE-2024-3094 against 10.1.2.3 and evil[.]example.com \
                (T1566.001). Fancy Bear, also APT 28, is G0007.";
    assert_eq!(
        keys(text),
        [
            "actor:apt28",
            "tool:cobalt-strike",
            "cve:cve-2024-3094",
            "ipv4:10.1.2.3",
            "domain:evil.example.com",
            "attack_pattern:t1566.001",
        ]
    );
    assert_eq!(
        keys("TA0001 over 2001:DB8::1"),
        ["tactic:ta0001", "ipv6:2001:db8::1"]
    );
    assert!(keys("nothing of note").is_empty());
}

#[test]
fn every_spelling_is_one_key() {
    for (kind, spellings) in [
        ("actor", &["APT28", "apt 28", "Fancy Bear", "G0007"][..]),
        ("tool", &["Cobalt Strike", "cobalt-strike", "COBALT  STRIKE"]),
        ("domain", &["evil.com", "EVIL[.]com"]),
        ("organization", &["Acme, Inc.", "acme inc", "ACME--INC"]),
        ("url", &["hxxp://evil[.]com/A", "http://evil.com/A"]),
    ] {
        let keys: Vec<_> = spellings
            .iter()
            .map(|value| EntityKey::new(kind, value).unwrap())
            .collect();
        assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
    }
    let upper = EntityKey::new("url", "http://evil.com/A").unwrap();
    assert_ne!(upper, EntityKey::new("url", "http://evil.com/a").unwrap());
    assert_eq!(
        EntityKey::new("Malware Family", "X").unwrap().entity_type,
        "malware_family"
    );
}

#[test]
fn threat_actors_and_intrusion_sets_are_the_actor_of_that_name() {
    let actor = EntityKey::new("actor", "APT28").unwrap();
    for kind in ["threat_actor", "Threat Actor", "intrusion-set", "INTRUSION_SET"] {
        for name in ["apt 28", "Fancy Bear", "G0007"] {
            assert_eq!(EntityKey::new(kind, name).unwrap(), actor, "{kind} {name}");
        }
    }
    let unknown = EntityKey::new("intrusion-set", "Silk Moth").unwrap();
    assert_eq!(unknown.to_string(), "actor:silk-moth");
    assert_eq!(unknown.node_type(), NodeType::Actor);
    // A group known only by its id is the same entity in every spelling.
    assert_eq!(keys("The group G1199 again"), ["actor:g1199"]);
    assert_eq!(
        EntityKey::new("intrusion_set", "G1199").unwrap().to_string(),
        "actor:g1199"
    );
}

#[test]
fn empty_and_long_keys_are_refused_by_name() {
    for (kind, value, field) in [
        ("", "x", "entity_type"),
        ("actor", "  ", "entity_value"),
        ("actor", &"x".repeat(MAX_VALUE + 1), "entity_value"),
    ] {
        let error = EntityKey::new(kind, value).unwrap_err().to_string();
        assert!(error.starts_with(field), "{error}");
    }
    assert!(relationship_label("->").is_err());
    assert!(relationship_label("uses\ntool").is_err());
    assert!(relationship_label(&"é".repeat(MAX_TYPE)).is_ok());
    assert!(relationship_label(&"é".repeat(MAX_TYPE + 1)).is_err());
}

#[test]
fn labels_of_relationships_stay_as_they_were_written() {
    for label in ["USES_TOOL", "uses-tool", "Uses Tool", "verwendet/nutzt"] {
        assert_eq!(relationship_label(&format!(" {label}\n")).unwrap(), label);
    }
}

#[test]
fn stated_relations_point_at_the_entities() {
    let found = mentions_in("Sandworm uses Industroyer. Sandworm uses Industroyer.");
    assert_eq!(found.relations.len(), 1);
    let relation = &found.relations[0];
    assert_eq!(relation.relationship, "uses");
    assert_eq!(found.entities[relation.source].key.entity_type, "actor");
    assert_eq!(found.entities[relation.target].key.value, "industroyer");
}

/// What the gazetteer and a value of each kind become, one line each.
fn lines_of_keys() -> Vec<String> {
    let mut lines = Vec::new();
    for entry in Gazetteer::shared().entries() {
        let ids = entry.attack_id.iter().map(String::as_str);
        for name in entry.names().chain(ids) {
            let own = EntityKey::new(entry.kind.row().local, name).unwrap();
            let told = keys(&format!("It is {name}.")).join(" ");
            lines.push(format!("{name} {own} {} {told}", own.node_type()));
        }
    }
    for value in [
        "CVE-2024-3094",
        "CWE-79",
        "CAPEC-98",
        "T1059.001",
        "TA0001",
        "G1199",
        "S9999",
        "M1036",
        "C0999",
        "198.51.100.7",
        "2001:DB8::6",
        "198.51.100.0/24",
        "Evil[.]Example.com",
        "hxxps://Evil[.]com/A?b=C",
        "A.B@Evil.com",
        "D41D8CD98F00B204E9800998ECF8427E",
        "DA39A3EE5E6B4B0D3255BFEF95601890AFD80709",
        "E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855",
        "Invoice.DOCX",
        "C:\\Windows\\Temp\\A.exe",
        "HKLM\\Software\\Run",
        "AS64496",
        "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
        "Acme, Inc.",
        "Ü",
    ] {
        for kind in EntityKind::ALL {
            let key = EntityKey::new(kind.row().local, value).unwrap();
            lines.push(format!("{value} {kind} {key} {}", key.node_type()));
        }
        lines.push(format!("{value} {}", keys(value).join(" ")));
    }
    lines
}

/// Notes are found again by these keys, so they never change. A new entry of the gazetteer or a new kind changes the digest;
/// then the lines that differ must be new ones only.
#[test]
fn the_keys_of_entities_stay() {
    let lines = lines_of_keys();
    let digest = Sha256::digest(lines.join("\n"));
    const DIGEST: &str = "64c864badafb458772840c1a45c0066aaee427f1db3b0466387d2b98c47dfff4";
    assert_eq!((lines.len(), hex::encode(digest).as_str()), (8_930, DIGEST));
}
