//! Real events (kept beside the repository): the reader's results against a second, simpler reading of the same JSON.

use std::collections::BTreeMap;

use super::*;
use crate::domain::node::NodeType;
use test_support::shared;

/// Files that are not events, with the field named in the error.
const NOT_EVENTS: [(&str, &str); 3] = [
    ("mispevent_testfiles_event_tags.json", "event.uuid"),
    ("mispevent_testfiles_galaxy.json", "event.Attribute"),
    ("mispevent_testfiles_sighting.json", "event.uuid"),
];

/// All events, by file name.
pub(in crate::domain) fn files() -> Vec<(String, Value)> {
    let Some(folder) = shared("data/misp") else {
        return Vec::new();
    };
    let mut files: Vec<(String, Value)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), entry.path()))
        .filter(|(name, _)| name.ends_with(".json"))
        .map(|(name, path)| {
            (
                name,
                serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap(),
            )
        })
        .collect();
    files.sort_by(|a, b| a.0.cmp(&b.0));
    files
}

/// Maps kinds and attribute types of the same thing to one name.
fn class(kind: &str) -> &str {
    match kind {
        "ip-src" | "ip-dst" | "ipv4" | "ipv6" => "ip",
        "hostname" => "domain",
        "email-src" | "email-dst" => "email",
        "filename" | "file-name" | "file-path" => "file",
        "regkey" => "registry-key",
        "vulnerability" => "cve",
        other => other,
    }
}

fn canonical(kind: &str, value: &str) -> String {
    let value = value.trim();
    let plain = value.replace("[.]", ".").replace("hxxp", "http");
    match class(kind) {
        "md5" | "sha1" | "sha256" | "sha512" | "domain" | "email" => plain.to_lowercase(),
        "cve" => value.to_uppercase(),
        "ip" => plain
            .parse::<std::net::IpAddr>()
            .map_or(plain, |address| address.to_string()),
        "registry-key" => value
            .replace("HKLM\\", "HKEY_LOCAL_MACHINE\\")
            .replace("HKCU\\", "HKEY_CURRENT_USER\\")
            .trim_end_matches('\\')
            .to_owned(),
        "url" | "link" => {
            let mut parts: Vec<String> = plain.splitn(4, '/').map(str::to_owned).collect();
            if let [scheme, _, host, ..] = parts.as_mut_slice() {
                *scheme = scheme.to_lowercase();
                *host = host.to_lowercase();
            }
            parts.join("/")
        }
        _ => value.to_owned(),
    }
}

fn stated(distribution: &Value) -> Option<&str> {
    distribution.as_str().filter(|text| *text != "5")
}

/// A value by class; two spellings of a file or registry key by case are one.
fn folded(class: &str, value: String) -> (String, String) {
    let is_any_case = ["file", "registry-key", "regkey"].contains(&class);
    let value = if is_any_case { value.to_lowercase() } else { value };
    (class.to_owned(), value)
}

/// Marking by class and value, with AMBER for every distribution other than 0 and 1.
fn expected(event: &Value) -> BTreeMap<(String, String), Tlp> {
    let mut expected = BTreeMap::new();
    let white = json!({});
    let loose = event["Attribute"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|attribute| (attribute, &white));
    let objects = event["Object"].as_array().into_iter().flatten();
    let inside = objects.flat_map(|object| {
        let attributes = object["Attribute"].as_array().into_iter().flatten();
        attributes.map(move |attribute| (attribute, object))
    });
    for (attribute, object) in loose.chain(inside) {
        if attribute["deleted"] == true || object["deleted"] == true {
            continue;
        }
        let mut distributions = [attribute, object, event]
            .into_iter()
            .filter_map(|carrier| stated(&carrier["distribution"]));
        let tlp = if distributions.any(|distribution| distribution == "0") {
            Tlp::Red
        } else {
            Tlp::Amber
        };
        let (kind, value) = (
            attribute["type"].as_str().unwrap(),
            attribute["value"].as_str().unwrap(),
        );
        let kinds = kind.split('|');
        let values = if kind.contains('|') {
            value.rsplitn(2, '|').collect()
        } else {
            vec![value]
        };
        for (kind, value) in kinds.zip(values.into_iter().rev()) {
            let key = folded(class(kind), canonical(kind, value));
            let known = expected.entry(key).or_insert(tlp);
            *known = tlp.max(*known);
        }
    }
    expected
}

fn found(plan: &MispPlan) -> BTreeMap<(String, String), Tlp> {
    let mut found = BTreeMap::new();
    for node in &plan.drafts.nodes {
        let properties = node.properties.map();
        let Some(kind) = properties.get("ioc_type").and_then(Value::as_str) else {
            continue;
        };
        let value = properties["value"].as_str().unwrap().to_owned();
        if node.node_type == NodeType::Ioc {
            assert_eq!(
                node.identity,
                crate::domain::naming::indicator_identity(kind, &value)
            );
        }
        let twice = found.insert(folded(class(kind), value), node.tlp);
        assert_eq!(twice, None, "{} is two nodes", node.name);
    }
    found
}

#[test]
fn every_event_gives_the_nodes_and_markings_that_a_second_reading_expects() {
    let defaults = ItemDefaults {
        tlp: Tlp::Amber,
        confidence: 0.6,
    };
    for (name, given) in files() {
        let event = unwrap_event(given).unwrap();
        if let Some((_, field)) = NOT_EVENTS.iter().find(|(file, _)| *file == name) {
            assert_eq!(plan(&event, defaults).unwrap_err().0, *field, "{name}");
            continue;
        }
        let plan = plan(&event, defaults).unwrap();
        let expected = expected(&Value::Object(event));
        let found = found(&plan);
        println!(
            "{name}: {} nodes of attributes, {} in all, {} edges, skipped {:?}",
            found.len(),
            plan.drafts.nodes.len(),
            plan.drafts.edges.len(),
            plan.skipped
        );
        assert_eq!(found, expected, "{name}");
        assert!(!found.is_empty(), "{name}");
        assert!(plan.drafts.nodes.iter().all(|node| node.evidence == [0]));
        if name.starts_with("machete") {
            assert!(
                plan.drafts.nodes.iter().all(|node| node.tlp == Tlp::Red),
                "{name}"
            );
            assert!(
                plan.drafts
                    .evidence
                    .iter()
                    .all(|evidence| evidence.tlp == Tlp::Red)
            );
        }
    }
}

#[test]
fn galaxies_and_references_of_real_events_are_read() {
    for (name, given) in files() {
        let event = unwrap_event(given).unwrap();
        let Ok(plan) = plan(&event, DEFAULTS) else {
            continue;
        };
        let count = |node_type| {
            let galaxies = plan
                .drafts
                .nodes
                .iter()
                .filter(|node| node.properties.map().contains_key("galaxy_type"));
            galaxies.filter(|node| node.node_type == node_type).count()
        };
        let counts = (
            count(NodeType::Actor),
            count(NodeType::Tool),
            count(NodeType::Attck),
        );
        match name.split(['_', '.']).next().unwrap() {
            "machete" | "sednit" | "telebots" => assert_eq!(counts, (1, 0, 0), "{name}"),
            "mozi" => assert_eq!(counts, (0, 0, 12), "{name}"),
            "windigo" => {
                assert_eq!(counts, (1, 0, 56), "{name}");
                assert_eq!(
                    named(&plan, "Ebury").properties.map()["aliases"],
                    json!(["Operation Windigo"])
                );
                assert!(
                    plan.drafts
                        .edges
                        .iter()
                        .any(|edge| edge.relationship == "exfiltrates-to")
                );
            }
            // Its two clusters are names of one ransomware.
            "reportlab" if name.contains("mainly") => assert_eq!(counts, (0, 1, 0), "{name}"),
            // Its tags were mangled: one names a cluster other than the galaxy's, one no known galaxy.
            "reportlab" => assert_eq!(counts, (1, 0, 2), "{name}"),
            _ => {}
        }
    }
}
