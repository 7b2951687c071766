//! Every node type, with as little and as much as there can be; real MISP events; arbitrary content.

use proptest::prelude::*;

use super::*;
use crate::domain::misp::{self, MispDefaults};
use crate::domain::node::NodeStatus;
use crate::domain::stix::export::{self, ExportObject, ExportParts};
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
    let object = Value::Object(object_of(&Facts {
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
            json!({"value": "bücher.example", "kind": "domain"}),
            "[domain-name:value = 'bücher.example']",
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
        // A broken pattern is not passed on; the value still has one.
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

/// The rows that a plan would become.
fn stored(plan: misp::MispPlan) -> Vec<KgNode> {
    let drafts = plan.drafts.nodes.into_iter();
    drafts
        .map(|draft| KgNode {
            id: row(&draft.identity),
            node_type: draft.node_type,
            name: draft.name,
            description: draft.description,
            source: draft.source,
            source_type: draft.source_type.to_owned(),
            tlp: draft.tlp,
            confidence: draft.confidence,
            properties: draft.properties,
            ingested_at: now(),
            linked_evidence_ids: Vec::new(),
            status: NodeStatus::Active,
        })
        .collect()
}

#[test]
fn every_real_misp_event_goes_out_as_one_valid_bundle() {
    let defaults = MispDefaults {
        tlp: Tlp::Amber,
        confidence: 0.6,
    };
    for (file, given) in misp::real_events() {
        let event = misp::unwrap_event(given).unwrap();
        let Ok(plan) = misp::plan(&event, defaults) else {
            continue;
        };
        let edges = plan.drafts.edges.clone();
        let nodes = stored(plan);
        let objects: Vec<Value> = nodes.iter().map(made).collect();
        let identity_id = identity()["id"].as_str().unwrap().to_owned();
        let id = |at: usize| objects[at]["id"].as_str().unwrap();
        let part = |raw: Map<String, Value>, tlp| ExportObject {
            raw,
            tlp,
            confidence: Some(0.6),
        };
        let relationships = edges.iter().enumerate().map(|(at, edge)| {
            let (source, target) = (id(edge.source), id(edge.target));
            let row = row(&at.to_string());
            let raw = relationship_of(
                row,
                source,
                target,
                &edge.relationship,
                &edge.proof,
                &identity_id,
                now(),
            );
            part(raw, edge.tlp)
        });
        let parts = ExportParts {
            relationships: relationships.collect(),
            nodes: objects
                .iter()
                .zip(&nodes)
                .map(|(o, n)| part(o.as_object().unwrap().clone(), n.tlp))
                .collect(),
            supporting: vec![ExportObject {
                raw: identity(),
                tlp: Tlp::White,
                confidence: None,
            }],
        };
        let bundle = export::bundle(parts, row("bundle"));
        let count = |kind: &str| objects.iter().filter(|object| object["type"] == kind).count();
        println!(
            "{file}: {} indicators, {} notes, {} others",
            count("indicator"),
            count("note"),
            objects.len() - count("indicator") - count("note")
        );
        assert!(bundle.is_ok(), "{file}: {:?}", bundle.err());
    }
}

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<String>().prop_map(Value::from),
        "[ -~]{0,40}".prop_map(Value::from),
        "https?://[!-~]{0,30}".prop_map(Value::from),
        "(CVE|CWE|CAPEC|T|G|S|M|TA)-?[0-9]{1,5}([.-][0-9]{1,6})?".prop_map(Value::from),
        "[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2}))?"
            .prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        Just(Value::Null),
    ];
    prop_oneof![
        leaf.clone(),
        proptest::collection::vec(leaf, 0..4).prop_map(Value::from)
    ]
}

const KEYS: [&str; 18] = [
    "tags",
    "aliases",
    "external_ids",
    "url",
    "references",
    "source_url",
    "first_seen",
    "last_seen",
    "published",
    "kill_chain",
    "value",
    "ioc_type",
    "kind",
    "pattern",
    "pattern_type",
    "galaxy_type",
    "to_ids",
    "misp_type",
];

const KINDS: [&str; 22] = [
    "ipv4",
    "ipv6",
    "cidr",
    "domain",
    "url",
    "email",
    "md5",
    "sha256",
    "file-name",
    "file-path",
    "registry-key",
    "asn",
    "mutex",
    "user-agent",
    "yara",
    "snort",
    "stix2-pattern",
    "email-subject",
    "mac-address",
    "port",
    "tlsh",
    "ssdeep",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_node_is_a_valid_object(
        kind in 0..7usize, name in any::<String>(), description in any::<String>(),
        properties in proptest::collection::hash_map(proptest::sample::select(&KEYS[..]), anything(), 0..12),
    ) {
        let properties: Map<String, Value> = properties.into_iter().map(|(k, v)| (k.to_owned(), v)).collect();
        let mut node = node(NodeType::ALL[kind], &name, Value::Object(properties));
        node.description = description;
        made(&node);
    }

    #[test]
    fn any_value_of_any_kind_is_a_valid_object(
        kind in 0..KINDS.len(), value in prop_oneof![any::<String>(), "[ -~]{1,40}", "[a-f0-9:./\\\\'|-]{1,70}"],
    ) {
        made(&node(NodeType::Ioc, &value, json!({"ioc_type": KINDS[kind], "value": value})));
    }

    #[test]
    fn any_misp_attribute_goes_out_valid(
        kind in 0..KINDS.len(), value in prop_oneof![any::<String>(), "[ -~]{1,40}"], comment: String,
    ) {
        let event = json!({"uuid": "e", "Attribute": [{"type": KINDS[kind], "value": value, "comment": comment}]});
        let plan = misp::plan(event.as_object().unwrap(), MispDefaults { tlp: Tlp::Amber, confidence: 0.6 }).unwrap();
        stored(plan).iter().for_each(|node| { made(node); });
    }
}
