//! A list of values is looked up: what is known, in ranges and under parents, and nothing hidden.

#[path = "../../../src/domain/normal_form/tests/spellings.rs"]
mod spellings;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use threat_memory::domain::kinds::EntityKind;
use threat_memory::domain::node::NodeType;

use self::spellings::{ALONE, SPELLINGS};
use crate::helpers::{Client, TestApp, encode, run};
use crate::stix::{object, relationship, text, with};

const PATH: &str = "/api/recall/lookup";

pub async fn look_up(client: &Client, values: &[&str]) -> Value {
    client
        .post(PATH, &json!({"values": values}))
        .await
        .expect(200)
        .await
}

/// The verdict of each value, by its normal form.
fn verdicts(answer: &Value) -> BTreeMap<String, String> {
    let results = answer["results"].as_array().unwrap().iter();
    results
        .map(|result| {
            let value = result["value"].as_str().or(result["sent"].as_str()).unwrap();
            (value.to_owned(), text(result, "verdict").to_owned())
        })
        .collect()
}

/// How the hits of the first value matched, with what.
fn matches(answer: &Value) -> Vec<(String, String)> {
    let hits = answer["results"][0]["hits"].as_array().unwrap().iter();
    hits.map(|hit| (text(hit, "match").to_owned(), text(hit, "value").to_owned()))
        .collect()
}

pub async fn enter(client: &Client, names: &[&str], tlp: &str) {
    let nodes: Vec<Value> = names
        .iter()
        .map(|name| json!({"name": name, "node_type": "ioc", "tlp": tlp}))
        .collect();
    let body = json!({"nodes": nodes});
    client.post("/api/ingest/analyst", &body).await.expect(201).await;
}

pub fn indicator(name: &str, pattern: &str) -> Value {
    with(object("indicator", name), json!({"pattern": pattern}))
}

#[test]
fn what_ingest_takes_is_found_in_every_spelling() {
    run(async {
        let app = TestApp::shared().await;
        let rows = SPELLINGS.iter().chain(ALONE);
        let rows: Vec<_> = rows
            .filter(|(kind, ..)| kind.node_type() == NodeType::Ioc)
            .collect();
        let names: Vec<&str> = rows.iter().map(|(_, normal, _)| *normal).collect();
        enter(&app.admin, &names, "TLP:GREEN").await;
        let (mut asked, mut wrong) = (0, Vec::new());
        for (kind, normal, spellings) in rows {
            // A bare number is one of a system only where that is stated.
            let spellings = spellings.iter().filter(|spelling| **spelling != "64496");
            let spellings: Vec<String> = spellings.map(|spelling| spelling.replace("{}", normal)).collect();
            asked += spellings.len();
            let body = json!({"values": spellings});
            let answer = app.admin.post(PATH, &body).await.expect(200).await;
            let results = answer["results"].as_array().unwrap();
            let [result] = results.as_slice() else {
                wrong.push(format!("{kind} {normal}: {} values", results.len()));
                continue;
            };
            if result["verdict"] != "known"
                || result["count"] != spellings.len()
                || result["value"] != *normal
            {
                wrong.push(format!("{kind} {normal}: {result}"));
            }
        }
        assert!(asked >= 180, "{asked} spellings");
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        app.stop().await;
    });
}

#[test]
fn addresses_are_found_in_networks_and_networks_around_addresses() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        enter(
            admin,
            &["203.0.113.0/24", "2001:db8:7::/48", "192.0.2.8/32"],
            "TLP:GREEN",
        )
        .await;
        let subset = indicator("Relays", "[ipv4-addr:value ISSUBSET '203.0.113.64/26']");
        let single = indicator("Relay", "[ipv4-addr:value = '203.0.113.77']");
        let like = indicator("Alike", "[ipv4-addr:value LIKE '203.0.113.%']");
        admin.ingest(json!([subset, single, like])).await;
        let value = |matched: &str, value: &str| (matched.to_owned(), value.to_owned());
        for (asked, verdict, want) in [
            (
                "203.0.113[.]77",
                "known",
                vec![
                    value("value", "203.0.113.77"),
                    value("network", "203.0.113.64/26"),
                    value("network", "203.0.113.0/24"),
                ],
            ),
            (
                "203.0.113.9:443",
                "contained",
                vec![value("network", "203.0.113.0/24")],
            ),
            (
                "::ffff:203.0.113.9",
                "contained",
                vec![value("network", "203.0.113.0/24")],
            ),
            (
                "http://203.0.113.9/x",
                "contained",
                vec![value("network", "203.0.113.0/24")],
            ),
            (
                "203.0.113.200/24",
                "known",
                vec![
                    value("value", "203.0.113.0/24"),
                    value("inside", "203.0.113.64/26"),
                    value("inside", "203.0.113.77"),
                ],
            ),
            (
                "203.0.113.76/30",
                "contained",
                vec![
                    value("network", "203.0.113.64/26"),
                    value("network", "203.0.113.0/24"),
                    value("inside", "203.0.113.77"),
                ],
            ),
            (
                "2001:db8:7::1",
                "contained",
                vec![value("network", "2001:db8:7::/48")],
            ),
            (
                "2001:DB8::/32",
                "contained",
                vec![value("inside", "2001:db8:7::/48")],
            ),
            ("192.0.2.8", "known", vec![value("value", "192.0.2.8")]),
            ("203.0.114.1", "unknown", vec![]),
            ("::/0", "contained", vec![value("inside", "2001:db8:7::/48")]),
        ] {
            let answer = look_up(admin, &[asked]).await;
            assert_eq!(answer["results"][0]["verdict"], verdict, "{asked}: {answer}");
            assert_eq!(matches(&answer), want, "{asked}: {answer}");
        }
        // A search finds both directions, too.
        let found = admin.search("203.0.113.76/30").await;
        let names: Vec<&str> = found["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|node| text(node, "name"))
            .collect();
        for name in ["Relay", "Relays", "203.0.113.0/24"] {
            assert!(names.contains(&name), "{name}: {names:?}");
        }
        app.stop().await;
    });
}

#[test]
fn hosts_and_domains_above_are_parents_and_public_suffixes_are_none() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let names = [
            "evil-parent.com",
            "cdn.evil-parent.com",
            "co.uk",
            "github.io",
            "http://evil-parent.com/Known",
        ];
        enter(admin, &names, "TLP:GREEN").await;
        let value = |matched: &str, value: &str| (matched.to_owned(), value.to_owned());
        for (asked, verdict, want) in [
            (
                "evil-parent.com.",
                "known",
                vec![value("value", "evil-parent.com")],
            ),
            (
                "a.b.cdn.evil-parent.com",
                "parent",
                vec![
                    value("parent_domain", "cdn.evil-parent.com"),
                    value("parent_domain", "evil-parent.com"),
                ],
            ),
            (
                "hxxps://cdn[.]evil-parent[.]com:8443/x",
                "parent",
                vec![
                    value("host", "cdn.evil-parent.com"),
                    value("parent_domain", "evil-parent.com"),
                ],
            ),
            (
                "kit@evil-parent.com",
                "parent",
                vec![value("host", "evil-parent.com")],
            ),
            (
                "http://evil-parent.com/Known",
                "known",
                vec![
                    value("value", "http://evil-parent.com/Known"),
                    value("host", "evil-parent.com"),
                ],
            ),
            (
                "http://evil-parent.com/known",
                "parent",
                vec![value("host", "evil-parent.com")],
            ),
            ("innocent.co.uk", "unknown", vec![]),
            ("https://github.io/x", "listed", vec![]),
            ("someone.github.io", "listed", vec![]),
            ("notevil-parent.com", "unknown", vec![]),
        ] {
            let answer = look_up(admin, &[asked]).await;
            assert_eq!(answer["results"][0]["verdict"], verdict, "{asked}: {answer}");
            assert_eq!(matches(&answer), want, "{asked}: {answer}");
        }
        app.stop().await;
    });
}

#[test]
fn a_hash_finds_the_same_file_by_another_hash_and_what_it_indicates() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let (md5, sha1) = (
            "44d88612fea8a8f36de82e1278abb02f",
            "3395856ce81f2b7382dee72602f798b642f14140",
        );
        let both = format!(
            "[file:hashes.MD5 = '{md5}' OR file:hashes.'SHA-1' = '{}']",
            sha1.to_uppercase()
        );
        let both = with(
            indicator("Dropper", &both),
            json!({"confidence": 85, "labels": ["dropper"]}),
        );
        let other = indicator("Dropper again", &format!("[file:hashes.'SHA-1' = '{sha1}']"));
        let (malware, actor) = (
            object("malware", "Lookup Stealer"),
            object("intrusion-set", "Lookup Egret"),
        );
        let links = [
            relationship(&both, "indicates", &malware),
            relationship(&both, "indicates", &actor),
        ];
        admin
            .ingest(json!([both, other, malware, actor, links[0], links[1]]))
            .await;
        let answer = look_up(admin, &[&md5.to_uppercase(), "cve-2024-3094"]).await;
        assert_eq!(
            matches(&answer),
            [
                ("value".to_owned(), md5.to_owned()),
                ("same_file".to_owned(), sha1.to_owned())
            ],
            "{answer}"
        );
        let hit = &answer["results"][0]["hits"][0];
        assert_eq!(
            (&hit["name"], &hit["tlp"], &hit["status"]),
            (&json!("Dropper"), &json!("TLP:GREEN"), &json!("active"))
        );
        assert_eq!(
            (&hit["confidence"], &hit["node_type"]),
            (&json!(0.85), &json!("ioc"))
        );
        let mut indicated: Vec<&str> = hit["indicates"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| text(one, "name"))
            .collect();
        indicated.sort_unstable();
        assert_eq!(indicated, ["Lookup Egret", "Lookup Stealer"]);
        assert_eq!(hit["more_indicated"], false);
        let keys: Vec<&str> = answer.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["recall_id", "results", "summary"]);
        let want = json!({"known": 1, "contained": 0, "parent": 0, "listed": 0, "unknown": 1, "invalid": 0});
        assert_eq!(answer["summary"], want);

        let path = format!("/api/recall/sessions/{}", text(&answer, "recall_id"));
        let session = admin.get(&path).await.expect(200).await;
        assert_eq!(
            (&session["query"], &session["mode"]),
            (&json!("look-up of 2 values"), &json!("structured"))
        );
        assert_eq!(session["result_count"], 2);
        let bundle = admin.export(text(&answer, "recall_id")).await;
        let exported = bundle["objects"].as_array().unwrap().iter();
        assert_eq!(exported.filter(|object| object["type"] == "indicator").count(), 2);
        app.stop().await;
    });
}

#[test]
fn a_text_is_read_values_are_counted_and_what_is_wrong_is_said() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        enter(admin, &["203.0.113.77"], "TLP:GREEN").await;
        let mail = "Received: from relay (203.0.113[.]77)\nSubject: invoice\n\nhxxp://unknown[.]example-mail[.]com/a and 203.0.113.77";
        let answer = admin.post(PATH, &json!({"text": mail})).await.expect(200).await;
        let want = [
            ("203.0.113.77", "known"),
            ("http://unknown.example-mail.com/a", "unknown"),
        ];
        let want = want.map(|(value, verdict)| (value.to_owned(), verdict.to_owned()));
        assert_eq!(verdicts(&answer), BTreeMap::from(want));
        assert_eq!(answer["results"][0]["count"], 2);
        assert_eq!(answer["results"][0]["sent"], "203.0.113[.]77");

        let answer = look_up(admin, &["203.0.113.077", "", "several words", "203.0.113.77"]).await;
        let results = answer["results"].as_array().unwrap();
        let told: Vec<(&str, bool)> = results
            .iter()
            .map(|result| (text(result, "verdict"), result["reason"].is_string()))
            .collect();
        assert_eq!(
            told,
            [
                ("invalid", true),
                ("invalid", true),
                ("invalid", true),
                ("known", false)
            ]
        );
        assert!(results[0]["value"].is_null() && results[0]["kind"].is_null());

        let one = admin
            .get(&format!("{PATH}?{}", encode(&[("value", "203.0.113[.]77")])))
            .await
            .expect(200)
            .await;
        assert_eq!(one["results"][0]["verdict"], "known");
        let empty = look_up(admin, &[]).await;
        assert_eq!(empty["results"], json!([]));

        let many: Vec<String> = (0..10_001).map(|n| format!("host{n}.example.com")).collect();
        let log = "Jan 1 00:00:00 fw drop 203.0.113.77\n".repeat(3_000_000 / 36);
        let ips: String = (0..10_001)
            .map(|n| format!("10.{}.{}.9 ", n / 250, n % 250))
            .collect();
        for (body, want) in [
            (
                json!({}),
                "values: is required, unless the values are sent within a text as `text`",
            ),
            (
                json!({"values": ["x"], "text": "x"}),
                "values: must not be sent together with text",
            ),
            (
                json!({"values": many}),
                "values: must have at most 10000 entries, and has 10001: send them in parts",
            ),
            (json!({"values": [1]}), "values[0]: must be a string"),
            (json!({"values": "x"}), "values: must be an array"),
            (
                json!({"text": log}),
                "text: must have at most 1048576 bytes (1 MiB), and has 2999988: send it in parts",
            ),
            (
                json!({"text": ips}),
                "text: has 10001 distinct values, and at most 10000 are looked up at once",
            ),
        ] {
            let refusal = admin.post(PATH, &body).await.refused(400).await;
            assert!(refusal.starts_with(want), "{refusal}");
        }
        admin.get(PATH).await.refused(400).await;
        app.stop().await;
    });
}

#[test]
fn order_and_duplicates_change_nothing_but_order_and_counts() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        enter(
            admin,
            &["203.0.113.0/28", "203.0.113.5", "ordered-lookup.com"],
            "TLP:GREEN",
        )
        .await;
        let values = [
            "203.0.113.5",
            "a.ordered-lookup.com",
            "203.0.113.6",
            "nothing",
            "203.0.113.0/27",
        ];
        let answer = look_up(admin, &values).await;
        let sent = |answer: &Value| -> Vec<String> {
            let results = answer["results"].as_array().unwrap().iter();
            results.map(|result| text(result, "sent").to_owned()).collect()
        };
        assert_eq!(sent(&answer), values);
        let mut turned: Vec<&str> = values.iter().rev().copied().collect();
        turned.extend(values);
        let again = look_up(admin, &turned).await;
        assert_eq!(again["summary"], answer["summary"]);
        let by_value = |answer: &Value, count: u64| -> BTreeMap<String, Value> {
            let results = answer["results"].as_array().unwrap().iter();
            results
                .map(|result| {
                    assert_eq!(result["count"], count);
                    let mut result = result.clone();
                    result.as_object_mut().unwrap().remove("count");
                    (text(&result, "sent").to_owned(), result)
                })
                .collect()
        };
        assert_eq!(by_value(&again, 2), by_value(&answer, 1));
        app.stop().await;
    });
}
