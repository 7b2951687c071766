//! Galaxy clusters, with and without their galaxy.

use super::*;
use crate::domain::draft::identity;
use crate::domain::node::NodeType;

#[test]
fn a_uuid_names_nobody() {
    let tag = "misp-galaxy:threat-actor=\"7cdff317-a673-4474-84ec-4f1754947823\"";
    let cluster = json!({"type": "threat-actor", "value": "7CDFF317-A673-4474-84EC-4F1754947823", "tag_name": "custom"});
    let plan = planned(json!({
        "Tag": [{"name": tag}], "Galaxy": [{"type": "threat-actor", "GalaxyCluster": [cluster]}],
        "Attribute": [{"type": "domain", "value": "a.example"}],
    }));
    assert_eq!(names(&plan), ["a.example"]);
    assert_eq!(
        named(&plan, "a.example").properties.map()["tags"],
        json!(["custom", tag])
    );
}

#[test]
fn synonyms_are_aliases_wherever_the_cluster_lists_them() {
    let elements = json!([{"key": "synonyms", "value": "Bonebreakers"}, {"key": "synonyms", "value": "OG-7"},
        {"key": "country", "value": "ZZ"}]);
    for cluster in [
        json!({"meta": {"synonyms": ["Bonebreakers", "OG-7"]}}),
        json!({"GalaxyElement": elements, "meta": {}}),
        json!({"GalaxyElement": elements, "meta": {"synonyms": ["Bonebreakers", "OG-7"]}}),
        json!({"GalaxyElement": elements}),
    ] {
        let mut cluster = cluster;
        cluster["value"] = "Ossifrage Gang".into();
        let galaxy = json!([{"type": "threat-actor", "GalaxyCluster": [cluster]}]);
        let plan = planned(json!({"Galaxy": galaxy, "Attribute": []}));
        let node = named(&plan, "Ossifrage Gang").properties.map();
        assert_eq!(node["aliases"], json!(["Bonebreakers", "OG-7"]), "{cluster}");
    }
}

#[test]
fn clusters_become_nodes_of_their_type() {
    for (kind, value, node_type, name, want) in [
        (
            "threat-actor",
            "Sofacy",
            NodeType::Actor,
            "Sofacy",
            identity(["actor", "apt28"]),
        ),
        (
            "mitre-intrusion-set",
            "APT32 - G0050",
            NodeType::Actor,
            "APT32",
            identity(["actor", "apt32"]),
        ),
        (
            "360net-threat-actor",
            "CIA - APT-C-39",
            NodeType::Actor,
            "CIA - APT-C-39",
            identity(["actor", "ciaaptc39"]),
        ),
        (
            "eset-threat-actor",
            "Ebury",
            NodeType::Actor,
            "Ebury",
            identity(["actor", "ebury"]),
        ),
        (
            "malpedia",
            "SamSam",
            NodeType::Tool,
            "SamSam",
            identity(["tool", "samsam"]),
        ),
        (
            "mitre-tool",
            "Mimikatz - S0002",
            NodeType::Tool,
            "Mimikatz",
            identity(["tool", "mimikatz"]),
        ),
        (
            "ransomware",
            "Made Up Locker",
            NodeType::Tool,
            "Made Up Locker",
            identity(["tool", "madeuplocker"]),
        ),
        (
            "exploit-kit",
            "Angler",
            NodeType::Tool,
            "Angler",
            identity(["tool", "angler"]),
        ),
        (
            "mitre-attack-pattern",
            "Server - T1583.004",
            NodeType::Attck,
            "Server - T1583.004",
            identity(["attck", "T1583.004"]),
        ),
        (
            "mitre-course-of-action",
            "AppCert DLLs Mitigation - T1182",
            NodeType::Attck,
            "AppCert DLLs Mitigation - T1182",
            identity(["attck", "appcertdllsmitigationt1182"]),
        ),
        (
            "mitre-course-of-action",
            "Audit - M1047",
            NodeType::Attck,
            "Audit - M1047",
            identity(["attck", "M1047"]),
        ),
        (
            "branded-vulnerability",
            "Shellshock",
            NodeType::Vulnerability,
            "Shellshock",
            identity(["vulnerability", "shellshock"]),
        ),
    ] {
        let tag = format!("misp-galaxy:{kind}=\"{value}\"");
        let cluster = json!({"type": kind, "value": value, "tag_name": tag});
        let whole = planned(
            json!({"Attribute": [], "Galaxy": [{"type": kind, "GalaxyCluster": [cluster]}],
            "Tag": [{"name": tag}]}),
        );
        let tagged = planned(json!({"Attribute": [], "Tag": [{"name": tag}]}));
        for plan in [whole, tagged] {
            let [node] = plan.drafts.nodes.as_slice() else {
                panic!("{kind}: {plan:?}")
            };
            assert_eq!((node.node_type, node.name.as_str()), (node_type, name), "{kind}");
            assert_eq!(node.identity, want, "{kind}");
            assert!(node.merge_by_name && node.evidence == [0]);
        }
    }
}

#[test]
fn a_cluster_keeps_what_is_known_about_it() {
    let cluster = json!({"type": "mitre-intrusion-set", "value": "APT32 - G0050", "uuid": "c", "description": "A group.",
        "meta": {"synonyms": ["OceanLotus", "APT32", "SeaLotus"], "external_id": "G0050", "country": ["VN"],
                 "refs": ["https://example.com/1"]}});
    let plan = planned(
        json!({"Attribute": [], "Galaxy": [{"type": "mitre-intrusion-set", "GalaxyCluster": [cluster]}]}),
    );
    let node = named(&plan, "APT32");
    assert_eq!(node.description, "A group.");
    assert_eq!(
        node.properties.map()["aliases"],
        json!(["OceanLotus", "SeaLotus"])
    );
    assert_eq!(node.properties.map()["external_ids"], json!(["G0050"]));
    assert_eq!(
        node.properties.map()["references"],
        json!(["https://example.com/1"])
    );
    assert_eq!(node.properties.map()["meta"]["country"], json!(["VN"]));
}

#[test]
fn a_galaxy_on_an_attribute_is_indicated_by_it() {
    let galaxy = |relation: Value| json!([{"type": "malpedia", "GalaxyCluster": [{"value": "Emotet", "relationship_type": relation}]}]);
    let plan = planned(json!({"Attribute": [
        {"type": "domain", "value": "a.example", "Galaxy": galaxy(json!(false)), "distribution": "0"},
        {"type": "domain", "value": "b.example", "Galaxy": galaxy(json!("delivers")), "distribution": "1"},
        {"type": "vulnerability", "value": "CVE-2017-0144", "Tag": [{"name": "misp-galaxy:malpedia=\"Emotet\""}]},
        {"type": "domain", "value": "c.example"},
    ]}));
    assert_eq!(
        edges(&plan),
        [
            ("a.example", "indicates", "Emotet"),
            ("b.example", "delivers", "Emotet"),
            ("CVE-2017-0144", "related-to", "Emotet"),
        ]
    );
    assert_eq!(named(&plan, "Emotet").tlp, Tlp::Red);
}

#[test]
fn other_galaxies_are_tags_and_deleted_clusters_nothing() {
    let plan = planned(json!({
        "Galaxy": [
            {"type": "sector", "GalaxyCluster": [{"value": "Energy", "tag_name": "misp-galaxy:sector=\"Energy\""}]},
            {"type": "threat-actor", "GalaxyCluster": [{"value": "Gone", "deleted": true}]},
        ],
        "Tag": [{"name": "misp-galaxy:country=\"france\""}, {"name": "plain"}],
        "Attribute": [{"type": "domain", "value": "a.example", "Tag": [{"name": "own"}]}],
    }));
    assert_eq!(names(&plan), ["a.example"]);
    assert_eq!(
        named(&plan, "a.example").properties.map()["tags"],
        json!([
            "own",
            "plain",
            "misp-galaxy:sector=\"Energy\"",
            "misp-galaxy:country=\"france\""
        ])
    );
}

#[test]
fn a_private_cluster_is_marked_as_private() {
    let clusters = json!([{"value": "Ours", "distribution": "0"}, {"value": "Theirs", "distribution": "3"}]);
    let plan =
        planned(json!({"Attribute": [], "Galaxy": [{"type": "threat-actor", "GalaxyCluster": clusters}]}));
    assert_eq!(named(&plan, "Ours").tlp, Tlp::Red);
    assert_eq!(named(&plan, "Theirs").tlp, Tlp::Green);
}
