//! MISP events of every shape: wrapped, invalid, with awkward values, and very large.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use test_support::extent;

use crate::helpers::{TestApp, run};
use crate::hosted::ways_in::counts;
use crate::stix::{evidence, text};

const UUID: &str = "5d3f036b-0f50-4499-af4c-695a0a016219";
/// Attributes of the large event.
fn many() -> usize {
    extent(500, 5_000)
}

fn attribute(kind: &str, value: &str) -> Value {
    json!({"type": kind, "value": value, "category": "Network activity", "to_ids": true,
        "uuid": uuid::Uuid::new_v4().to_string(), "distribution": "5"})
}

fn event(attributes: Vec<Value>) -> Value {
    json!({"uuid": UUID, "info": "A test", "distribution": "3", "Attribute": attributes})
}

#[test]
fn what_is_no_event_is_refused_with_the_field() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let one = || vec![attribute("domain", "one.example")];
        for (body, want) in [
            (json!({}), "event: is required"),
            (json!({"event": null}), "event: must be an object"),
            (json!({"event": "x"}), "event: must be an object"),
            (json!({"event": 7}), "event: must be an object"),
            (json!({"event": []}), "event: holds no event"),
            (
                json!({"event": [event(one()), event(one())]}),
                "event: must hold one event, holds 2",
            ),
            (json!({"event": {"Attribute": one()}}), "event.uuid: is required"),
            (
                json!({"event": {"uuid": null, "Attribute": one()}}),
                "event.uuid: is required",
            ),
            (
                json!({"event": {"uuid": 5, "Attribute": one()}}),
                "event.uuid: must be a string",
            ),
            (
                json!({"event": {"uuid": " ", "Attribute": one()}}),
                "event.uuid: must not be empty",
            ),
            (json!({"event": {"uuid": UUID}}), "event.Attribute: is required"),
            (
                json!({"event": {"uuid": UUID, "Object": []}}),
                "event.Attribute: is required",
            ),
            (
                json!({"event": {"uuid": UUID, "Attribute": {}}}),
                "event.Attribute: must be an array",
            ),
            (
                json!({"event": {"uuid": UUID, "Attribute": "x"}}),
                "event.Attribute: must be an array",
            ),
            (
                json!({"event": {"uuid": UUID, "Attribute": one(), "Object": 5}}),
                "event.Object: must be an array",
            ),
            (
                json!({"event": {"uuid": UUID, "Attribute": one(), "Tag": [{"name": "tlp:pink"}]}}),
                "event.Tag: tlp:pink",
            ),
            (
                json!({"event": {"uuid": UUID, "Attribute": one(), "distribution": "all"}}),
                "event.distribution: must be a number",
            ),
            (
                json!({"event": event(one()), "default_tlp": "PINK"}),
                "default_tlp: must be one of",
            ),
            (
                json!({"event": event(one()), "default_confidence": 1.5}),
                "default_confidence: must be",
            ),
            (
                json!({"event": event(one()), "default_confidence": "1"}),
                "default_confidence: must be",
            ),
        ] {
            let error = admin.refuses("misp", &body).await;
            assert!(error.starts_with(want), "{body} gave {error}");
        }
        for broken in [
            "{\"event\": {\"uuid\": \"x\", \"Attribute\": [}",
            "{\"event\"",
            "",
        ] {
            let answer = admin.post_bytes("/api/ingest/misp", broken).await;
            let error = answer.refused(400).await;
            assert!(
                error.starts_with("body: is not valid JSON"),
                "{broken:?} gave {error}"
            );
        }
        assert!(admin.nodes_of("one.example").await.is_empty());
        assert!(admin.audited("ingest.misp").await.is_empty());
        app.stop().await;
    });
}

#[test]
fn an_event_without_a_usable_attribute_is_taken_with_nothing_in_it() {
    run(async {
        let app = TestApp::shared().await;
        let mut gone = attribute("domain", "gone.example");
        gone["deleted"] = json!(true);
        let useless = vec![
            gone,
            json!({"type": "domain"}),
            json!({"type": "domain", "value": ""}),
            json!({"type": "domain", "value": {"x": 1}}),
            json!("x"),
        ];
        for (n, attributes) in [vec![], useless].into_iter().enumerate() {
            let mut event = event(attributes);
            event["uuid"] = json!(format!("{n}"));
            let results = app.admin.send_in("misp", &json!({"event": event})).await;
            assert_eq!(results["nodes_created"], 0, "{results}");
            assert_eq!(results["skipped"], n * 5, "{results}");
            let reasons = match n {
                0 => json!({}),
                _ => json!({"attribute": {"count": 5, "kept": 0, "reasons": {"attribute is deleted": 1,
                    "attribute is not an object": 1, "value is empty": 2, "value is not a string": 1}}}),
            };
            assert_eq!(results["skipped_by_type"], reasons, "{results}");
        }
        app.stop().await;
    });
}

#[test]
fn the_event_may_come_in_any_of_its_wrappers() {
    run(async {
        let app = TestApp::shared().await;
        let bare = event(vec![attribute("domain", "wrapped.example")]);
        for (n, wrapped) in [
            bare.clone(),
            json!({"Event": bare}),
            json!({"response": [{"Event": bare}]}),
            json!({"response": {"Event": bare}}),
            json!([{"Event": bare}]),
            json!([bare]),
        ]
        .into_iter()
        .enumerate()
        {
            let results = app.admin.send_in("misp", &json!({"event": wrapped})).await;
            let first = u64::from(n == 0);
            assert_eq!(counts(&results), [first, 0, first], "{wrapped}");
        }
        let node = app.admin.one("wrapped.example").await;
        assert_eq!(
            (&node["tlp"], &node["confidence"], &node["node_type"]),
            (&json!("TLP:AMBER"), &json!(0.6), &json!("ioc"))
        );
        assert_eq!(node["properties"]["to_ids"], true);
        assert_eq!(node["properties"]["category"], "Network activity");
        app.stop().await;
    });
}

#[test]
fn distribution_is_inherited_and_the_most_restrictive_marking_wins() {
    run(async {
        let app = TestApp::shared().await;
        app.admin.open().await;
        let with = |host: &str, changes: Value| {
            let mut made = attribute("hostname", host);
            for (key, value) in changes.as_object().unwrap() {
                made[key] = value.clone();
            }
            made
        };
        let tag = |name: &str| json!([{"name": name}]);
        let mut body = event(vec![
            with("a.example", json!({"distribution": 0})),
            with("b.example", json!({"distribution": "1"})),
            with("c.example", json!({"distribution": "3"})),
            with("d.example", json!({"distribution": "5"})),
            with("e.example", json!({"distribution": "3", "Tag": tag("tlp:red")})),
            with("f.example", json!({"distribution": "1", "Tag": tag("TLP:WHITE")})),
            with(
                "g.example",
                json!({"distribution": "3", "Tag": tag("tlp:amber+strict")}),
            ),
            with(
                "h.example|192.0.2.9",
                json!({"type": "domain|ip", "distribution": 0}),
            ),
            with("i.example|8080", json!({"type": "hostname|port"})),
        ]);
        body["Object"] = json!([{"name": "x", "uuid": UUID, "distribution": "0",
            "Attribute": [with("o.example", json!({})), with("p.example", json!({"distribution": "3"}))]}]);
        let sent = json!({"event": body, "default_tlp": "TLP:GREEN", "default_confidence": 0.25});
        app.admin.send_in("misp", &sent).await;
        for (host, tlp) in [
            ("a.example", "TLP:RED"),
            ("b.example", "TLP:AMBER"),
            ("c.example", "TLP:GREEN"),
            ("d.example", "TLP:GREEN"),
            ("e.example", "TLP:RED"),
            ("f.example", "TLP:AMBER"),
            ("g.example", "TLP:AMBER+PK"),
            ("h.example", "TLP:RED"),
            ("192.0.2.9", "TLP:RED"),
            ("i.example", "TLP:GREEN"),
            ("o.example", "TLP:RED"),
            ("p.example", "TLP:RED"),
        ] {
            let node = app.admin.one(host).await;
            assert_eq!(
                (&node["tlp"], &node["confidence"]),
                (&json!(tlp), &json!(0.25)),
                "{host}"
            );
            assert_eq!(evidence(&node), 1);
        }
        app.stop().await;
    });
}

/// A string literal of the pattern language.
fn literal(value: &str) -> String {
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "\\'"))
}

#[test]
fn awkward_values_survive_into_their_patterns() {
    run(async {
        let app = TestApp::shared().await;
        for (kind, value, path) in [
            ("mutex", r#"Global\it's "zq1" \\ here"#, "mutex:name"),
            ("mutex", "zq2 ' OR '1' = '1']", "mutex:name"),
            ("mutex", r"zq3 ends with \", "mutex:name"),
            ("url", r#"http://zq4.example/a'b\c?q="d"#, "url:value"),
            ("url", "http://zq5.example/пример?ü=ß", "url:value"),
            ("filename", "zq6 Ünïcödé 文書 💥.docx", "file:name"),
            ("filename", "zq7 it's.exe", "file:name"),
            ("domain", "bücher-zq8.example", "domain-name:value"),
            ("domain", "xn--bcher-zq9-u9a.example", "domain-name:value"),
            ("domain", "пример-zq10.испытание", "domain-name:value"),
            (
                "email-subject",
                "zq11 Rechnung: \"it's\" \\ due 💶",
                "email-message:subject",
            ),
            (
                "regkey",
                r"HKEY_LOCAL_MACHINE\Software\zq12 O'Brien",
                "windows-registry-key:key",
            ),
            (
                "user-agent",
                r#"zq13 (it's; "x") \1"#,
                "network-traffic:extensions.'http-request-ext'.request_header.'User-Agent'",
            ),
        ] {
            // Of an internationalised host the value is the punycode, and the name what was sent.
            let kept = match value {
                "bücher-zq8.example" => "xn--bcher-zq8-q9a.example",
                "пример-zq10.испытание" => "xn---zq10-yweu6azakd.xn--80akhbyknj4f",
                other => other,
            };
            let mut event = event(vec![attribute(kind, value)]);
            event["uuid"] = json!(uuid::Uuid::new_v4().to_string());
            app.admin.send_in("misp", &json!({"event": event})).await;
            let session = app.admin.search_with(value, &[]).await;
            let stored = session["results"].as_array().unwrap().iter();
            let stored: Vec<&Value> = stored
                .filter(|node| node["properties"]["value"] == kept)
                .collect();
            assert_eq!(stored.len(), 1, "{value}: {session}");
            let bundle = app.admin.export(text(&session, "recall_id")).await;
            let wanted = format!("[{path} = {}]", literal(kept));
            let objects = bundle["objects"].as_array().unwrap();
            let found = objects.iter().find(|object| object["pattern"] == wanted.as_str());
            let patterns: Vec<&Value> = objects.iter().map(|object| &object["pattern"]).collect();
            let found = found.unwrap_or_else(|| panic!("{wanted} is not among {patterns:?}"));
            assert_eq!(
                (&found["type"], &found["pattern_type"]),
                (&json!("indicator"), &json!("stix"))
            );
        }
        app.stop().await;
    });
}

#[test]
fn a_very_large_event_goes_in_as_one_while_searches_are_answered() {
    run(async {
        let app = TestApp::spawn().await;
        app.admin
            .send_in(
                "analyst",
                &json!({"nodes": [{"name": "LanternFly", "node_type": "tool"}]}),
            )
            .await;
        let attributes = (0..many())
            .map(|n| match n % 4 {
                0 => attribute("ip-dst", &format!("10.{}.{}.7", n / 250, n % 250)),
                1 => attribute("domain", &format!("host{n}.big.example")),
                2 => attribute("sha256", &format!("{n:064x}")),
                _ => attribute("url", &format!("http://big.example/{n}")),
            })
            .collect();
        let body = json!({"event": event(attributes)});
        let done = Arc::new(AtomicBool::new(false));
        let (client, over) = (app.admin.clone(), Arc::clone(&done));
        let searching = tokio::spawn(async move {
            let (mut answers, mut slowest) = (0u32, Duration::ZERO);
            while !over.load(Ordering::Relaxed) {
                let begun = Instant::now();
                let found = client.search("LanternFly").await;
                assert_eq!(found["results"][0]["name"], "LanternFly");
                slowest = slowest.max(begun.elapsed());
                answers += 1;
                // Leaves the processor to the ingest.
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            (answers, slowest)
        });
        let begun = Instant::now();
        let results = app.admin.send_in("misp", &body).await;
        let took = begun.elapsed();
        done.store(true, Ordering::Relaxed);
        let (answers, slowest) = searching.await.unwrap();
        println!(
            "{} attributes in {took:?}; {answers} searches, the slowest {slowest:?}",
            many()
        );
        assert_eq!(counts(&results), [many() as u64, 0, 1]);
        // A loose bound, for an unoptimised build on a busy machine; searches must not wait for the whole ingest.
        assert!(
            slowest < (took / 2).max(Duration::from_secs(3)),
            "{slowest:?} of {took:?}"
        );
        assert!(answers >= 5, "{answers} searches in {took:?}");
        let node = app.admin.one(&format!("host{}.big.example", many() - 3)).await;
        assert_eq!(evidence(&node), 1);
        app.stop().await;
    });
}
