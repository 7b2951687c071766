//! One thing is one node by whichever way it comes, and in whichever order; what is hidden decides nothing.

use serde_json::{Value, json};

use super::ways_in::counts;
use crate::helpers::{Client, TestApp, run};
use crate::stix::{self, object, relationship, text};

const HASH: &str = "730f7d03509cce2ddaed4203d62baac9b68d92824a9bafbe14c0214c82bf7fb4";

/// Patterns, and the MISP attribute of a value in each.
const VALUES: [(&str, &str, &str); 10] = [
    ("[ipv4-addr:value = '198.51.100.130']", "ip-dst", "198.51.100.130"),
    (
        "[ipv4-addr:value = '198.51.100.131' AND network-traffic:dst_port = 8443]",
        "ip-dst|port",
        "198.51.100.131|8443",
    ),
    ("[ipv6-addr:value = '2001:DB8:0::42']", "ip-src", "2001:db8::42"),
    (
        "[ipv4-addr:value ISSUBSET '198.51.100.0/24']",
        "ip-dst",
        "198.51.100.0/24",
    ),
    (
        "[domain-name:value IN ('a.heron-case.com', 'B.heron-case.com')]",
        "hostname",
        "b.heron-case.com",
    ),
    (
        "[url:value = 'HTTP://heron-case.com/A']",
        "url",
        "http://heron-case.com/A",
    ),
    (
        "[file:hashes.'SHA-256' = '730F7D03509CCE2DDAED4203D62BAAC9B68D92824A9BAFBE14C0214C82BF7FB4'] \
         FOLLOWEDBY [email-addr:value = 'kit@heron-case.com']",
        "sha256",
        HASH,
    ),
    (
        r"[windows-registry-key:key = 'HKLM\\Software\\Heron']",
        "regkey",
        r"HKEY_LOCAL_MACHINE\software\Heron",
    ),
    (
        r"[file:name = 'Heron.exe' AND file:parent_directory_ref.path = 'C:\\Temp']",
        "filename",
        r"c:\temp\heron.EXE",
    ),
    ("[mutex:name = 'heron-mutex']", "mutex", "heron-mutex"),
];

fn event(attributes: Value, time: i64) -> Value {
    json!({"event": {"Event": {
        "uuid": "11111111-aaaa-4aaa-8aaa-000000000001", "info": "of herons", "distribution": "3",
        "timestamp": time.to_string(), "Orgc": {"name": "Testers"}, "Attribute": attributes,
    }}, "default_tlp": "TLP:GREEN"})
}

fn attribute(kind: &str, value: &str) -> Value {
    json!({"uuid": "22222222-aaaa-4aaa-8aaa-000000000001", "type": kind, "category": "Network activity",
        "value": value, "to_ids": true, "distribution": "5", "timestamp": "1700000000", "comment": ""})
}

async fn workspace(app: &TestApp) -> Client {
    let client = app.workspace("herons").await;
    client.open().await;
    client
}

#[test]
fn a_value_in_a_pattern_is_the_indicator_in_either_order() {
    run(async {
        let app = TestApp::shared().await;
        for (pattern, kind, value) in VALUES {
            let indicator = stix::with(object("indicator", "Alert 4711"), json!({"pattern": pattern}));
            let misp = event(json!([attribute(kind, value)]), 1_700_000_000);
            for stix_first in [true, false] {
                let client = workspace(&app).await;
                let created = if stix_first {
                    client.ingest(json!([indicator])).await;
                    client.send_in("misp", &misp).await
                } else {
                    client.send_in("misp", &misp).await;
                    client.ingest(json!([indicator])).await
                };
                assert_eq!(created["nodes_created"], 0, "{pattern} {stix_first}: {created}");
                let node = client.one("Alert 4711").await;
                assert_eq!(node["linked_evidence_ids"].as_array().unwrap().len(), 2, "{node}");
                assert_eq!(text(&node["properties"], "stix_id"), text(&indicator, "id"));
            }
        }
        app.stop().await;
    });
}

#[test]
fn a_hidden_indicator_takes_no_value_in() {
    run(async {
        let app = TestApp::shared().await;
        let client = workspace(&app).await;
        let pattern = json!({"pattern": "[ipv4-addr:value = '198.51.100.130']", "x_mitre_tlp": "TLP:RED"});
        let indicator = stix::with(object("indicator", "Alert 4711"), pattern);
        client.ingest(json!([indicator])).await;
        let misp = event(json!([attribute("ip-dst", "198.51.100.130")]), 1_700_000_000);
        client
            .settings(json!({"tlp_ceiling": "TLP:GREEN", "elevated_clearance": false}))
            .await;
        let results = client.send_in("misp", &misp).await;
        assert_eq!(counts(&results), [1, 0, 1]);
        client.one("198.51.100.130").await;
        app.stop().await;
    });
}

#[test]
fn a_name_is_one_node_in_either_order() {
    run(async {
        let app = TestApp::shared().await;
        for (stix_type, node_type) in [
            ("intrusion-set", "actor"),
            ("malware", "tool"),
            ("attack-pattern", "attck"),
        ] {
            let entry = json!({"nodes": [{"name": "grey heron", "node_type": node_type, "tlp": "TLP:GREEN",
                "description": "Seen at the weir.", "properties": {"aliases": ["Weirwader"]}}]});
            let sent = object(stix_type, "Grey Heron");
            for stix_first in [true, false] {
                let client = workspace(&app).await;
                if stix_first {
                    client.ingest(json!([sent])).await;
                    client.send_in("analyst", &entry).await;
                } else {
                    client.send_in("analyst", &entry).await;
                    client.ingest(json!([sent])).await;
                }
                let found = client.nodes_of("Grey Heron").await;
                assert_eq!(found.len(), 1, "{stix_type} {stix_first}: {found:?}");
                assert_eq!(found[0]["linked_evidence_ids"].as_array().unwrap().len(), 2);
                assert!(
                    found[0]["properties"]["aliases"]
                        .to_string()
                        .contains("Weirwader")
                );
                // A newer version, and a relationship, find the node.
                let newer = stix::with(
                    sent.clone(),
                    json!({"modified": "2030-01-01T00:00:00.000Z", "description": "Newer."}),
                );
                let other = object("tool", "Reed Knife");
                let edge = relationship(&sent, "uses", &other);
                let results = client.ingest(json!([newer, other, edge])).await;
                assert_eq!(results["nodes_updated"], 1, "{results}");
                assert_eq!(results["edges_created"], 1, "{results}");
                let found = client.nodes_of("Grey Heron").await;
                assert_eq!(
                    found
                        .iter()
                        .filter(|node| text(node, "description") == "Newer.")
                        .count(),
                    1
                );
            }
        }
        app.stop().await;
    });
}

#[test]
fn a_name_of_several_nodes_becomes_a_node_of_its_own_and_says_so() {
    run(async {
        let app = TestApp::shared().await;
        let client = workspace(&app).await;
        let malware = |name: &str| stix::with(object("malware", name), json!({"aliases": ["Chronos Heron"]}));
        client
            .ingest(json!([malware("Reed Heron"), malware("Marsh Heron")]))
            .await;
        let entry = json!({"nodes": [{"name": "Chronos Heron", "node_type": "tool", "tlp": "TLP:GREEN"}]});
        let results = client.send_in("analyst", &entry).await;
        assert_eq!(results["nodes_created"], 1);
        let warning = results["warnings"][0].as_str().unwrap();
        assert!(warning.contains("Marsh Heron, Reed Heron"), "{warning}");
        // From then on the name has its node.
        let results = client.send_in("analyst", &entry).await;
        assert_eq!(
            (&results["nodes_created"], &results["warnings"]),
            (&json!(0), &json!([]))
        );
        let tag = json!([{"name": "misp-galaxy:malpedia=\"Chronos Heron\""}]);
        let mut misp = event(json!([attribute("domain", "heron-case.com")]), 1_700_000_000);
        misp["event"]["Event"]["Tag"] = tag;
        let results = client.send_in("misp", &misp).await;
        assert_eq!(results["warnings"], json!([]));
        for name in ["Reed Heron", "Marsh Heron"] {
            let node = client.one(name).await;
            assert_eq!(node["linked_evidence_ids"].as_array().unwrap().len(), 1, "{name}");
        }
        app.stop().await;
    });
}

#[test]
fn the_newest_version_of_an_attribute_counts_and_what_nobody_states_is_retired() {
    run(async {
        let app = TestApp::shared().await;
        let client = workspace(&app).await;
        let first = attribute("domain", "old.heron-case.com");
        let send =
            async |attribute: &Value, time| client.send_in("misp", &event(json!([attribute]), time)).await;
        send(&first, 1_700_000_000).await;
        let flipped = stix::with(
            first.clone(),
            json!({"to_ids": false, "timestamp": "1700000100", "comment": "benign"}),
        );
        send(&flipped, 1_700_000_100).await;
        let node = client.one("old.heron-case.com").await;
        assert_eq!(
            (&node["properties"]["to_ids"], &node["properties"]["comment"]),
            (&json!(false), &json!("benign"))
        );
        // An older event changes nothing.
        let results = send(&first, 1_700_000_000).await;
        assert_eq!(
            (counts(&results), &results["skipped"]),
            ([0, 0, 0], &json!(1)),
            "{results}"
        );
        assert_eq!(client.one("old.heron-case.com").await, node);
        // Its value is corrected.
        let corrected = stix::with(
            flipped,
            json!({"value": "new.heron-case.com", "timestamp": "1700000200"}),
        );
        send(&corrected, 1_700_000_200).await;
        client.one("new.heron-case.com").await;
        assert!(client.named("old.heron-case.com").await.is_empty());
        let path = "/api/recall/search?q=old.heron-case.com&include_rejected=true";
        let rejected = client.get(path).await.expect(200).await;
        assert_eq!(rejected["results"][0]["status"], "rejected", "{rejected}");
        send(&first, 1_700_000_000).await;
        assert!(client.named("old.heron-case.com").await.is_empty());
        // It is deleted, and an event that does not list it deletes nothing.
        client.send_in("misp", &event(json!([]), 1_700_000_300)).await;
        client.one("new.heron-case.com").await;
        let deleted = stix::with(
            corrected.clone(),
            json!({"deleted": true, "timestamp": "1700000400"}),
        );
        send(&deleted, 1_700_000_400).await;
        assert!(client.named("new.heron-case.com").await.is_empty());
        send(&corrected, 1_700_000_200).await;
        assert!(client.named("new.heron-case.com").await.is_empty());
        // Another source states it.
        let entry =
            json!({"nodes": [{"name": "new.heron-case.com", "node_type": "ioc", "tlp": "TLP:GREEN"}]});
        client.send_in("analyst", &entry).await;
        client.one("new.heron-case.com").await;
        app.stop().await;
    });
}

#[test]
fn what_another_source_states_survives_the_deletion_of_an_attribute() {
    run(async {
        let app = TestApp::shared().await;
        let client = workspace(&app).await;
        let first = attribute("domain", "kept.heron-case.com");
        client
            .send_in("misp", &event(json!([first]), 1_700_000_000))
            .await;
        let entry =
            json!({"nodes": [{"name": "kept.heron-case.com", "node_type": "ioc", "tlp": "TLP:GREEN"}]});
        client.send_in("analyst", &entry).await;
        let deleted = stix::with(first, json!({"deleted": true, "timestamp": "1700000400"}));
        client
            .send_in("misp", &event(json!([deleted]), 1_700_000_400))
            .await;
        client.one("kept.heron-case.com").await;
        app.stop().await;
    });
}

#[test]
fn relationships_wait_for_either_end() {
    run(async {
        let app = TestApp::shared().await;
        let client = workspace(&app).await;
        let (actor, tool) = (
            object("threat-actor", "Slate Heron"),
            object("tool", "Slate Hook"),
        );
        let uses = stix::with(
            relationship(&actor, "uses", &tool),
            json!({"x_mitre_tlp": "TLP:AMBER"}),
        );
        let results = client.ingest(json!([uses])).await;
        assert_eq!(
            (&results["waiting"], &results["edges_created"]),
            (&json!(1), &json!(0)),
            "{results}"
        );
        let results = client.ingest(json!([tool])).await;
        assert_eq!(
            (&results["waiting"], &results["edges_created"]),
            (&json!(0), &json!(0)),
            "{results}"
        );
        let results = client.ingest(json!([actor])).await;
        assert_eq!(results["edges_created"], 1, "{results}");
        let node = client.one("Slate Heron").await;
        let path = format!("/api/nodes/{}", text(&node, "id"));
        let read = client.get(&path).await.expect(200).await;
        assert_eq!(read["relationships"].as_array().unwrap().len(), 1, "{read}");
        // At its own marking.
        client
            .settings(json!({"tlp_ceiling": "TLP:GREEN", "elevated_clearance": false}))
            .await;
        let read = client.get(&path).await.expect(200).await;
        assert_eq!(read["relationships"], json!([]));
        app.stop().await;
    });
}

/// In whatever order versions of one relationship come, and at whatever markings: they are one edge when their end is there, and
/// the list of changes tells of it once.
#[test]
fn versions_of_a_relationship_that_wait_for_one_end_become_one_edge() {
    run(async {
        let app = TestApp::shared().await;
        let markings = ["TLP:WHITE", "TLP:GREEN", "TLP:AMBER"];
        for (number, [one, other]) in [[0, 1], [1, 0], [0, 2], [2, 1], [1, 1]].into_iter().enumerate() {
            for years in [["2021", "2022"], ["2022", "2021"], ["2021", "2021"]] {
                let client = app
                    .workspace(&format!("Waiting {number} {}", years.join(" ")))
                    .await;
                let (actor, tool) = (
                    object("threat-actor", "Slate Heron"),
                    object("tool", "Slate Hook"),
                );
                client.ingest(json!([actor])).await;
                let uses = relationship(&actor, "uses", &tool);
                for (marking, year) in [one, other].into_iter().zip(years) {
                    let version = json!({"modified": format!("{year}-01-01T00:00:00.000Z"),
                        "x_mitre_tlp": markings[marking], "description": format!("{marking} of {year}")});
                    client.ingest(json!([stix::with(uses.clone(), version)])).await;
                }
                let results = client.ingest(json!([tool])).await;
                let case = format!("{one}, {other}, {years:?}");
                assert_eq!(results["edges_created"], 1, "{case}: {results}");
                let changes = client.get("/api/changes?limit=100").await.expect(200).await;
                let of_edge = changes["changes"].as_array().unwrap().iter();
                let of_edge: Vec<_> = of_edge
                    .filter(|change| change["relationship"].is_object())
                    .collect();
                assert_eq!(of_edge.len(), 1, "{case}: {of_edge:?}");
                assert_eq!(of_edge[0]["kind"], "created", "{case}");
            }
        }
        app.stop().await;
    });
}

#[test]
fn a_relationship_to_a_hidden_node_waits_like_one_to_none() {
    run(async {
        let app = TestApp::shared().await;
        let (actor, tool) = (
            object("threat-actor", "Slate Heron"),
            object("tool", "Slate Hook"),
        );
        let uses = relationship(&actor, "uses", &tool);
        let mut answers = Vec::new();
        for is_there in [true, false] {
            let client = workspace(&app).await;
            if is_there {
                let hidden = stix::with(tool.clone(), json!({"x_mitre_tlp": "TLP:RED"}));
                client.ingest(json!([hidden])).await;
            }
            client
                .settings(json!({"tlp_ceiling": "TLP:GREEN", "elevated_clearance": false}))
                .await;
            answers.push(client.ingest(json!([actor, uses])).await);
        }
        assert_eq!(answers[0], answers[1]);
        app.stop().await;
    });
}

#[test]
fn two_spellings_of_a_uuid_are_one_object() {
    run(async {
        let app = TestApp::shared().await;
        let client = workspace(&app).await;
        let lower = object("malware", "Dust Heron");
        let id = text(&lower, "id").replace("malware--", "");
        let upper = json!(format!("malware--{}", id.to_uppercase()));
        let actor = object("threat-actor", "Heron Keeper");
        client
            .ingest(json!([stix::with(lower.clone(), json!({"id": upper}))]))
            .await;
        client.ingest(json!([lower])).await;
        let uses = stix::with(relationship(&actor, "uses", &lower), json!({"target_ref": upper}));
        let results = client.ingest(json!([actor, uses])).await;
        assert_eq!(results["edges_created"], 1, "{results}");
        client.one("Dust Heron").await;
        app.stop().await;
    });
}

#[test]
fn the_same_text_is_one_record_of_each_source_and_marking() {
    run(async {
        let app = TestApp::shared().await;
        let client = workspace(&app).await;
        for (session, tlp, records) in [
            (None, "TLP:GREEN", 1),
            (None, "TLP:GREEN", 1),
            (Some("herons"), "TLP:GREEN", 2),
            (Some("herons"), "TLP:GREEN", 2),
            (None, "TLP:AMBER", 3),
            (None, "TLP:AMBER", 3),
        ] {
            let mut body = json!({"text": "The host 198.51.100.9 was seen at the weir of the mill.",
                "default_tlp": tlp, "ingest_mode": "auto"});
            if let Some(session) = session {
                body["session_id"] = session.into();
            }
            client.post("/api/ingest/preview", &body).await.expect(200).await;
            let node = client.one("198.51.100.9").await;
            let linked = node["linked_evidence_ids"].as_array().unwrap();
            assert_eq!(linked.len(), records, "{session:?} {tlp}");
        }
        app.stop().await;
    });
}
