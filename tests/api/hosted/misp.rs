//! Real MISP events: the stored data is compared with a second, independent reading of the same JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde_json::{Value, json};
use test_support::extent;
use threat_memory::domain::extraction::Gazetteer;

use crate::helpers::{Client, TestApp, read_json, run, shared};
use crate::hosted::ways_in::counts;
use crate::stix::{is_node, text};

/// The files that are not events, with the field that the error names.
const NO_EVENTS: [(&str, &str); 3] = [
    ("mispevent_testfiles_event_tags.json", "event.uuid"),
    ("mispevent_testfiles_galaxy.json", "event.Attribute"),
    ("mispevent_testfiles_sighting.json", "event.uuid"),
];
/// Number of values per event to look up.
fn looked_up() -> usize {
    extent(8, 40)
}

/// Size of the largest file that is read, in bytes.
fn largest() -> u64 {
    extent(100 << 10, u64::MAX)
}

/// Every file that is not too large, with its name.
fn files() -> Vec<(String, Value)> {
    let Some(folder) = shared("data/misp") else {
        return Vec::new();
    };
    let mut files: Vec<(String, Value)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .filter(|path| path.metadata().unwrap().len() <= largest())
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, read_json(&path))
        })
        .collect();
    files.sort_by(|one, other| one.0.cmp(&other.0));
    files
}

/// The event without its wrappers.
fn event_of(file: &Value) -> &Value {
    let inside = file.pointer("/response/0/Event").or_else(|| file.get("Event"));
    inside.unwrap_or(file)
}

fn list<'e>(value: &'e Value, key: &str) -> impl Iterator<Item = &'e Value> {
    value[key].as_array().into_iter().flatten()
}

/// An indicator in the JSON: a class that groups equivalent types, and the value.
type Ioc = (String, String);

fn class(kind: &str) -> &str {
    match kind {
        "ip-src" | "ip-dst" => "ip",
        "hostname" => "domain",
        "email-src" | "email-dst" => "email",
        other => other,
    }
}

fn canonical(kind: &str, value: &str) -> String {
    let plain = value.trim().replace("[.]", ".").replace("hxxp", "http");
    match class(kind) {
        "md5" | "sha1" | "sha256" | "sha512" | "domain" | "email" => plain.to_lowercase(),
        "ip" => plain
            .parse::<IpAddr>()
            .map_or(plain, |address| address.to_string()),
        "regkey" => value
            .trim()
            .replace("HKLM\\", "HKEY_LOCAL_MACHINE\\")
            .replace("HKCU\\", "HKEY_CURRENT_USER\\"),
        "vulnerability" => plain.to_uppercase(),
        "url" | "link" => match plain.split_once("://") {
            Some((scheme, rest)) => {
                let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                format!("{}://{}{path}", scheme.to_lowercase(), host.to_lowercase())
            }
            None => plain,
        },
        _ => value.trim().to_owned(),
    }
}

/// RED where the attribute, its object or the event has distribution 0; otherwise AMBER, the default here.
fn marking(chain: [&Value; 3]) -> &'static str {
    let is_own = |carrier: &&Value| {
        let stated = &carrier["distribution"];
        stated == "0" || stated == 0
    };
    match chain.iter().any(is_own) {
        true => "TLP:RED",
        false => "TLP:AMBER",
    }
}

/// The indicators expected from the event's attributes, with their markings; no file here has a tag above AMBER.
fn expected(event: &Value) -> BTreeMap<Ioc, &'static str> {
    let mut expected = BTreeMap::new();
    let mut take = |attribute: &Value, object: &Value| {
        let (kind, value) = (text(attribute, "type"), text(attribute, "value"));
        let deleted = attribute["deleted"] == true || object["deleted"] == true;
        if deleted || value.trim().is_empty() {
            return;
        }
        let parts: Vec<(&str, &str)> = match (kind.split_once('|'), value.rsplit_once('|')) {
            (Some(kinds), Some(values)) => vec![(kinds.0, values.0), (kinds.1, values.1)],
            _ => vec![(kind, value)],
        };
        let tlp = marking([attribute, object, event]);
        for (kind, value) in parts {
            // For a domain with an address, the type says "ip".
            let key = (class(kind).to_owned(), canonical(kind, value));
            let known = expected.entry(key).or_insert(tlp);
            if tlp == "TLP:RED" {
                *known = tlp;
            }
        }
    };
    list(event, "Attribute").for_each(|attribute| take(attribute, &Value::Null));
    for object in list(event, "Object") {
        list(object, "Attribute").for_each(|attribute| take(attribute, object));
    }
    expected
}

/// Names of the clusters that are actors, tools or techniques, from galaxies and from tags that no galaxy describes.
fn clusters(event: &Value) -> BTreeSet<(&'static str, String)> {
    let mut found = BTreeSet::new();
    let mut described = BTreeSet::new();
    let mut add = |kind: &str, value: &str| {
        let is = |parts: &[&str]| parts.iter().any(|part| kind.contains(part));
        let what = if is(&["threat-actor", "intrusion-set"]) {
            "actor"
        } else if is(&["attack-pattern", "course-of-action"]) {
            "attck"
        } else if is(&["malpedia", "ransomware"]) {
            "tool"
        } else {
            return;
        };
        // Clusters may be names of one thing.
        let known = Gazetteer::shared().resolve(value);
        let name = known.map_or(value, |entry| entry.name.as_str());
        found.insert((what, name.to_lowercase()));
    };
    for galaxy in list(event, "Galaxy") {
        for cluster in list(galaxy, "GalaxyCluster") {
            described.insert(text(cluster, "tag_name").to_owned());
            add(text(cluster, "type"), text(cluster, "value"));
        }
    }
    for tag in list(event, "Tag").map(|tag| text(tag, "name")) {
        if let Some((kind, value)) = tag
            .strip_prefix("misp-galaxy:")
            .filter(|_| !described.contains(tag))
            .and_then(|rest| rest.split_once('='))
        {
            add(kind, value.trim_matches('"'));
        }
    }
    found
}

/// Looks the values up and compares the markings of their nodes.
async fn look_up(client: &Client, name: &str, expected: &BTreeMap<Ioc, &'static str>) {
    let short: Vec<_> = expected
        .iter()
        .filter(|((_, value), _)| value.len() < 200 && !value.contains('\n') && value.len() > 3)
        .collect();
    let step = short.len().div_ceil(looked_up()).max(1);
    for ((class, value), tlp) in short.into_iter().step_by(step) {
        let nodes = client.nodes_of(value).await;
        let same: Vec<&Value> = nodes
            .iter()
            .filter(|node| node["properties"]["value"] == value.as_str())
            .collect();
        assert!(!same.is_empty(), "{name}: {class} {value} is not found");
        for node in same {
            assert_eq!(node["tlp"], *tlp, "{name}: {class} {value}");
            assert_eq!(
                node["linked_evidence_ids"].as_array().unwrap().len(),
                1,
                "{name}: {value}"
            );
        }
    }
}

#[test]
fn every_real_event_becomes_the_nodes_and_markings_that_its_json_states() {
    run(async {
        let app = TestApp::shared().await;
        for (name, file) in files() {
            let client = app.workspace(&name).await;
            client.open().await;
            if let Some((_, field)) = NO_EVENTS.iter().find(|(known, _)| *known == name) {
                let error = client.refuses("misp", &json!({"event": file})).await;
                assert_eq!(error, format!("{field}: is required"), "{name}");
                continue;
            }
            let event = event_of(&file);
            let (expected, clusters) = (expected(event), clusters(event));
            let body = json!({"event": file});
            let results = client.send_in("misp", &body).await;
            let want = (expected.len() + clusters.len()) as u64;
            assert_eq!(counts(&results), [want, 0, 1], "{name}: {clusters:?}");
            look_up(&client, &name, &expected).await;
            let again = client.send_in("misp", &body).await;
            assert_eq!(counts(&again), [0, 0, 0], "{name} once more");
            assert_eq!(again["edges_created"], 0, "{name} once more");
            assert_eq!(client.audited("ingest.misp").await.len(), 2);
        }
        app.stop().await;
    });
}

/// Without tags and galaxies, only the indicators of an event are stored.
#[test]
fn an_event_without_galaxies_is_exactly_its_indicators() {
    run(async {
        let app = TestApp::shared().await;
        for (name, file) in files() {
            if NO_EVENTS.iter().any(|(known, _)| *known == name) {
                continue;
            }
            let mut event = event_of(&file).clone();
            for key in ["Tag", "Galaxy"] {
                event.as_object_mut().unwrap().remove(key);
            }
            let client = app.workspace(&name).await;
            let results = client.send_in("misp", &json!({"event": event})).await;
            assert_eq!(counts(&results), [expected(&event).len() as u64, 0, 1], "{name}");
        }
        app.stop().await;
    });
}

#[test]
fn an_event_for_the_own_organisation_only_is_red_throughout_and_hidden_by_default() {
    run(async {
        let Some(path) = shared("data/misp/machete_misp-machete-event.json") else {
            return;
        };
        let app = TestApp::shared().await;
        let file = read_json(&path);
        let expected = expected(event_of(&file));
        assert!(expected.len() > 300 && expected.values().all(|tlp| *tlp == "TLP:RED"));
        let client = app.workspace("default").await;
        client.send_in("misp", &json!({"event": file})).await;
        for query in ["machete", "El Machete", "spyware espionage"]
            .into_iter()
            .chain(expected.keys().step_by(25).map(|(_, value)| value.as_str()))
        {
            let query: String = query.chars().take(200).collect();
            let query = query.lines().next().unwrap_or("machete");
            let nodes = client.nodes_of(query).await;
            assert!(nodes.is_empty(), "{query}: {nodes:?}");
        }
        client.open().await;
        let seen = client.nodes_of("machete").await;
        assert!(!seen.is_empty() && seen.iter().all(|node| node["tlp"] == "TLP:RED"));
        let actors: Vec<&Value> = seen.iter().filter(|node| node["node_type"] == "actor").collect();
        assert_eq!(actors.len(), 1, "{actors:?}");
        // Once the grant is withdrawn, none of it can be exported.
        let session = client.search("machete").await;
        client.settings(json!({"red_export_grant": false})).await;
        let path = format!("/api/recall/sessions/{}/export.stix", text(&session, "recall_id"));
        client.get(&path).await.refused(403).await;
        app.stop().await;
    });
}

#[test]
fn what_came_in_from_misp_goes_out_as_valid_stix() {
    run(async {
        let app = TestApp::shared().await;
        for (name, file) in files() {
            if NO_EVENTS.iter().any(|(known, _)| *known == name) {
                continue;
            }
            let client = app.workspace(&name).await;
            client.open().await;
            client.send_in("misp", &json!({"event": file})).await;
            let hashes: Vec<Ioc> = expected(event_of(&file))
                .into_keys()
                .filter(|(class, value)| {
                    ["md5", "sha1", "sha256"].contains(&class.as_str()) && value.len() > 31
                })
                .take(5)
                .collect();
            for (class, value) in &hashes {
                let path = match class.as_str() {
                    "md5" => "MD5".to_owned(),
                    other => format!("'{}'", other.to_uppercase().replace("SHA", "SHA-")),
                };
                let session = client.search(value).await;
                let bundle = client.export(text(&session, "recall_id")).await;
                let wanted = format!("[file:hashes.{path} = '{value}']");
                let objects = bundle["objects"].as_array().unwrap();
                assert!(
                    objects.iter().any(|object| object["pattern"] == wanted.as_str()),
                    "{name}: {wanted}"
                );
            }
            let info = text(event_of(&file), "info").to_owned();
            let found = client.search_with(&info, &[]).await;
            if found["count"] == 0 {
                assert!(!hashes.is_empty(), "{name} can't be found at all");
                continue;
            }
            let bundle = client.export(text(&found, "recall_id")).await;
            let objects = bundle["objects"].as_array().unwrap();
            assert!(
                objects
                    .iter()
                    .any(|object| is_node(object) || object["type"] == "note"),
                "{name}"
            );
        }
        app.stop().await;
    });
}
