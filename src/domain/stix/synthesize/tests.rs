//! Every node type, with minimal and maximal content.

mod arbitrary;
mod misp_events;

use super::*;
use crate::domain::node::NodeStatus;
use crate::domain::stix::schema::StixValidator;
use crate::domain::tlp::Tlp;

const WORKSPACE: Uuid = Uuid::from_u128(0x1111_1111_1111_4111_8111_1111_1111_1111);

fn now() -> DateTime<Utc> {
    "2026-01-02T03:04:05.678Z".parse().unwrap()
}

fn row(name: &str) -> Uuid {
    Uuid::new_v5(&WORKSPACE, name.as_bytes())
}

fn node(node_type: NodeType, name: &str, properties: Value) -> KgNode {
    KgNode {
        id: row(name),
        node_type,
        name: name.to_owned(),
        description: String::new(),
        source: "test".to_owned(),
        source_type: "analyst".to_owned(),
        tlp: Tlp::Green,
        confidence: 0.5,
        properties: properties.as_object().cloned().unwrap_or_default(),
        ingested_at: now(),
        linked_evidence_ids: Vec::new(),
        status: NodeStatus::Active,
    }
}

fn identity() -> Map<String, Value> {
    workspace_identity(WORKSPACE, "SOC", now())
}

fn made(node: &KgNode) -> Value {
    let identity = identity();
    let identity_id = identity["id"].as_str().unwrap();
    let object = Value::Object(object_of(&Origin {
        id: node.id,
        node,
        identity_id,
    }));
    let violations = StixValidator::shared().object(&object);
    assert!(violations.is_empty(), "{object:#}\n{violations:?}");
    assert_eq!(object["created_by_ref"], identity_id);
    object
}

fn of(node_type: NodeType, name: &str, properties: Value) -> Value {
    made(&node(node_type, name, properties))
}

#[test]
fn every_type_is_valid_with_nothing_but_a_name_and_even_without() {
    for (node_type, want) in [
        (NodeType::Actor, "threat-actor"),
        (NodeType::Cve, "vulnerability"),
        (NodeType::Ioc, "note"),
        (NodeType::Attck, "attack-pattern"),
        (NodeType::Osint, "report"),
        (NodeType::Tool, "tool"),
        (NodeType::Vulnerability, "vulnerability"),
    ] {
        for name in ["something", "", " \n", "\0"] {
            let object = of(node_type, name, json!({}));
            assert_eq!(object["type"], want);
            assert!(object.get("description").is_none() && object.get("labels").is_none());
        }
    }
}

#[test]
fn every_type_is_valid_with_everything() {
    let properties = json!({
        "tags": ["a", "", "a", "TLP:WHITE", "tlp:clear", " \"tlp:red\"", "b", 7], "aliases": ["Other", "", "x", "Other"],
        "external_ids": ["T1059.001", "G0007", "S0154", "CVE-2021-44228", "CWE-79", "CAPEC-66", "CVE-1-2", "G1"],
        "url": "https://example.com/a?b=c%20d#e", "references": ["not a url", "https://exa mple.com", "http://cve/x"],
        "first_seen": "2020-01-02T03:04:05.123456+02:00", "last_seen": "2019-01-01", "published": "2024-05-06",
        "kill_chain": ["mitre-attack:linux:discovery", "x", ":"], "value": "evil.example", "ioc_type": "domain",
        "to_ids": true, "severity": "high", "action": null, "x": {}, "list": [],
    });
    for node_type in NodeType::ALL {
        let mut node = node(*node_type, "x", properties.clone());
        node.description = "Words".to_owned();
        let object = made(&node);
        assert_eq!(object["labels"], json!(["a", "b"]));
        assert_eq!(object["description"], "Words");
        assert_eq!(object["created"], "2026-01-02T03:04:05.678Z");
        assert!(object.get("severity").is_none());
        let references = object["external_references"].as_array().unwrap();
        let urls: Vec<&str> = references.iter().filter_map(|r| r["url"].as_str()).collect();
        assert!(
            urls.contains(&"https://example.com/a?b=c%20d#e") && urls.contains(&"http://cve/x"),
            "{urls:?}"
        );
        let ids: Vec<&str> = references
            .iter()
            .filter_map(|r| r["external_id"].as_str())
            .collect();
        let want: &[&str] = match node_type {
            NodeType::Actor => &["G0007", "CAPEC-66"],
            NodeType::Attck => &["T1059.001", "CAPEC-66"],
            NodeType::Tool => &["S0154", "CAPEC-66"],
            NodeType::Cve | NodeType::Vulnerability => &["CVE-2021-44228", "CWE-79"],
            NodeType::Ioc | NodeType::Osint => &[],
        };
        assert_eq!(ids, want, "{node_type}");
    }
    let report = of(NodeType::Osint, "x", properties.clone());
    assert_eq!(report["published"], "2024-05-06T00:00:00.000Z");
    let actor = of(NodeType::Actor, "x", properties.clone());
    assert_eq!(
        (&actor["aliases"], &actor["first_seen"]),
        (&json!(["Other"]), &json!("2020-01-02T01:04:05.123Z"))
    );
    assert!(actor.get("last_seen").is_none());
    let technique = of(NodeType::Attck, "x", properties.clone());
    assert_eq!(
        technique["kill_chain_phases"],
        json!([{"kill_chain_name": "mitre-attack", "phase_name": "discovery"}])
    );
    let indicator = of(NodeType::Ioc, "x", properties);
    assert_eq!(indicator["valid_from"], "2020-01-02T01:04:05.123Z");
    assert_eq!(indicator["indicator_types"], json!(["malicious-activity"]));
}

#[test]
fn the_type_follows_what_the_source_says_then_the_name() {
    for (node_type, name, properties, want) in [
        (
            NodeType::Actor,
            "APT32",
            json!({"galaxy_type": "mitre-intrusion-set"}),
            "intrusion-set",
        ),
        (
            NodeType::Actor,
            "SolarWinds",
            json!({"galaxy_type": "mitre-campaign"}),
            "campaign",
        ),
        (
            NodeType::Tool,
            "Whatever",
            json!({"galaxy_type": "ransomware"}),
            "malware",
        ),
        (
            NodeType::Tool,
            "Emotet",
            json!({"galaxy_type": "mitre-tool"}),
            "tool",
        ),
        (NodeType::Tool, "Emotet", json!({}), "malware"),
        (NodeType::Tool, "Mimikatz", json!({}), "tool"),
        (
            NodeType::Attck,
            "Audit",
            json!({"external_ids": ["M1047"]}),
            "course-of-action",
        ),
    ] {
        assert_eq!(of(node_type, name, properties)["type"], want, "{name}");
    }
    let technique = of(
        NodeType::Attck,
        "Server - T1583.004",
        json!({"external_ids": ["T1583.004"]}),
    );
    assert_eq!(technique["name"], "Server");
    assert_eq!(
        technique["external_references"][0]["url"],
        "https://attack.mitre.org/techniques/T1583/004/"
    );
}

#[test]
fn an_indicator_has_the_pattern_of_its_value_and_no_other() {
    let sha1 = "da39a3ee5e6b4b0d3255bfef95601890afd80709";
    for (name, properties, pattern, language) in [
        (
            "evil.example",
            json!({}),
            "[domain-name:value = 'evil.example']",
            "stix",
        ),
        (
            "198[.]51[.]100[.]3",
            json!({}),
            "[ipv4-addr:value = '198.51.100.3']",
            "stix",
        ),
        (
            sha1,
            json!({"ioc_type": "sha1"}),
            "[file:hashes.'SHA-1' = 'da39a3ee5e6b4b0d3255bfef95601890afd80709']",
            "stix",
        ),
        (
            "x",
            json!({"value": "it's\\.exe", "misp_type": "mutex"}),
            "[mutex:name = 'it\\'s\\\\.exe']",
            "stix",
        ),
        (
            "x",
            json!({"value": "xn--bcher-kva.example", "kind": "domain"}),
            "[domain-name:value = 'xn--bcher-kva.example']",
            "stix",
        ),
        (
            "x",
            json!({"pattern": "[file:name = 'x']", "pattern_type": "stix"}),
            "[file:name = 'x']",
            "stix",
        ),
        (
            "x",
            json!({"pattern": "rule x {condition:true}", "pattern_type": "yara"}),
            "rule x {condition:true}",
            "yara",
        ),
        (
            "r",
            json!({"value": "title: r", "pattern_type": "sigma", "ioc_type": "sigma"}),
            "title: r",
            "sigma",
        ),
        // A broken pattern is not exported; the value still gets one.
        (
            "evil.example",
            json!({"pattern": "[file:name = "}),
            "[domain-name:value = 'evil.example']",
            "stix",
        ),
    ] {
        let object = of(NodeType::Ioc, name, properties);
        assert_eq!(
            (&object["pattern"], &object["pattern_type"]),
            (&json!(pattern), &json!(language)),
            "{name}"
        );
    }
    for (name, properties) in [
        ("443", json!({"ioc_type": "port"})),
        ("https://example.com/report", json!({"ioc_type": "link"})),
        ("some words", json!({})),
        ("not a hash", json!({"ioc_type": "sha256"})),
        ("x", json!({"pattern": "[file:name = ", "pattern_type": "stix"})),
    ] {
        let object = of(NodeType::Ioc, name, properties);
        assert_eq!(object["type"], "note", "{name}");
        assert!(object["content"].as_str().unwrap().contains(name));
    }
}

#[test]
fn ids_are_stable_different_and_version_four() {
    let node = node(NodeType::Actor, "APT28", json!({}));
    assert_eq!(node.id.get_version_num(), 5);
    let id = made(&node)["id"].as_str().unwrap().to_owned();
    assert_eq!(made(&node)["id"], id.as_str());
    let uuid: Uuid = id.strip_prefix("threat-actor--").unwrap().parse().unwrap();
    assert_eq!(uuid.get_version_num(), 4);
    assert_ne!(of(NodeType::Actor, "APT29", json!({}))["id"], id.as_str());
}

#[test]
fn relationships_and_identities_are_valid() {
    for (relationship, want) in [
        ("uses", "uses"),
        ("Talks To!", "talks-to"),
        ("", "related-to"),
        ("日本", "related-to"),
    ] {
        let identity = identity();
        let object = Value::Object(relationship_of(
            row("edge"),
            "indicator--8e2e2d2b-17d4-4cbf-938f-98ee46b3cd3f",
            "malware--31b940d4-6f7f-459a-80ea-9c1f17b58abc",
            relationship,
            "",
            identity["id"].as_str().unwrap(),
            now(),
        ));
        assert_eq!(StixValidator::shared().object(&object), Vec::new());
        assert_eq!(object["relationship_type"], want);
        assert!(object.get("description").is_none());
    }
    for name in ["SOC", "", "\0"] {
        let identity = Value::Object(workspace_identity(row(name), name, now()));
        assert_eq!(StixValidator::shared().object(&identity), Vec::new());
    }
}
