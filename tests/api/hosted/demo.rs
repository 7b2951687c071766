//! The public demo: what visitors without an account may ask, and what they get.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::helpers::{Client, TestApp, encode, keep_export, keys_of, run, settings};

const RECALL: &str = "/api/public/demo-recall";
const EXPORT: &str = "/api/public/demo-export.stix";

/// A service that trusts this machine as a proxy, so that a test can be many clients.
async fn spawn() -> TestApp {
    let mut settings = settings("mem://");
    settings.server.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
    TestApp::with(settings).await
}

fn visitor(app: &TestApp, number: u8) -> Client {
    app.anonymous()
        .with_header("x-forwarded-for", &format!("198.51.100.{number}"))
}

async fn ask(client: &Client, query: &str) -> Value {
    client
        .post(RECALL, &json!({"query": query}))
        .await
        .expect(200)
        .await
}

#[test]
fn a_visitor_finds_public_nodes_of_every_type() {
    run(async {
        let app = spawn().await;
        let answer = ask(&visitor(&app, 1), "  Fancy Bear ").await;
        assert_eq!(
            keys_of(&answer),
            ["latency_ms", "query", "result_count", "results", "seeded"]
        );
        assert_eq!(answer["seeded"], true);
        assert_eq!(answer["query"], "Fancy Bear");
        assert!(answer["latency_ms"].is_u64());
        let results = answer["results"].as_array().unwrap();
        assert_eq!(answer["result_count"], results.len());
        assert_eq!(results[0]["name"], "APT28");
        assert_eq!(
            keys_of(&results[0]),
            [
                "confidence",
                "description",
                "id",
                "linked_evidence_ids",
                "name",
                "node_type",
                "properties",
                "source",
                "tlp"
            ]
        );
        let mut types = BTreeSet::new();
        let questions = [
            "espionage",
            "exploited vulnerability",
            "example indicator address",
            "phishing",
            "advisory",
            "ransomware malware tool",
            "weakness default credentials",
        ];
        for (number, question) in (2..).zip(questions) {
            for row in ask(&visitor(&app, number), question).await["results"]
                .as_array()
                .unwrap()
            {
                types.insert(row["node_type"].as_str().unwrap().to_owned());
                let tlp = row["tlp"].as_str().unwrap();
                assert!(["TLP:WHITE", "TLP:GREEN"].contains(&tlp), "{row}");
                assert_ne!(row["linked_evidence_ids"], json!([]), "{row}");
            }
        }
        let all = ["actor", "attck", "cve", "ioc", "osint", "tool", "vulnerability"];
        assert_eq!(types.iter().map(String::as_str).collect::<Vec<_>>(), all);
        app.stop().await;
    });
}

#[test]
fn a_question_that_breaks_a_rule_is_refused_with_the_rule() {
    run(async {
        let app = spawn().await;
        for (number, (body, want)) in (1..).zip([
            (json!({}), "query: "),
            (json!({"query": null}), "query: "),
            (json!({"query": 4111111111111111_u64}), "query: must be a string"),
            (json!({"query": "  "}), "query: must have 1 to 300 characters"),
            (
                json!({"query": "x".repeat(301)}),
                "query: must have 1 to 300 characters",
            ),
            (json!({"query": "a\0b"}), "query: must not hold a NUL character"),
            (json!([]), ""),
        ]) {
            let refused = visitor(&app, number).post(RECALL, &body).await.refused(400).await;
            assert!(refused.starts_with(want), "{body}: {refused}");
        }
        ask(&visitor(&app, 20), &"é".repeat(300)).await;
        for (number, (query, want)) in (30..).zip([
            ("", "q: is required"),
            ("q=a&q=b", "q: must be given once"),
            ("q=", "q: must have 1 to 300 characters"),
            ("q=APT28&limit=0", "limit: must be a whole number from 1 to 100"),
            ("q=APT28&limit=101", "limit: must be a whole number from 1 to 100"),
            ("q=APT28&limit=x", "limit: must be a whole number from 1 to 100"),
        ]) {
            let path = format!("{EXPORT}?{query}");
            let refused = visitor(&app, number).get(&path).await.refused(400).await;
            assert!(refused.starts_with(want), "{query}: {refused}");
        }
        app.stop().await;
    });
}

#[test]
fn personal_data_is_refused_and_recorded_nowhere() {
    run(async {
        let app = spawn().await;
        let secrets = [
            "jane.doe@example.org",
            "078-05-1120",
            "+49 30 901820",
            "4111 1111 1111 1111",
        ];
        for (number, secret) in (1..).zip(secrets) {
            let client = visitor(&app, number);
            let question = format!("who is {secret}");
            let refused = client
                .post(RECALL, &json!({"query": question}))
                .await
                .refused(400)
                .await;
            assert!(
                refused.starts_with("query: must not contain personal data ("),
                "{refused}"
            );
            assert!(!refused.contains(secret));
            let path = format!("{EXPORT}?{}", encode(&[("q", &question)]));
            let refused = client.get(&path).await.refused(400).await;
            assert!(
                refused.starts_with("q: must not contain personal data ("),
                "{refused}"
            );
        }
        let logs = app.admin.audit_logs().await;
        let denied: Vec<&Value> = logs.iter().filter(|entry| entry["resource"] == "demo").collect();
        assert_eq!(denied.len(), 2 * secrets.len());
        for entry in denied {
            assert_eq!(entry["outcome"], "denied");
            assert_eq!(keys_of(&entry["metadata"]), ["personal_data"]);
        }
        let text = Value::from(logs).to_string();
        assert!(secrets.iter().all(|secret| !text.contains(secret)));
        app.stop().await;
    });
}

#[test]
fn an_export_is_a_valid_bundle_of_public_objects() {
    run(async {
        let app = spawn().await;
        let client = visitor(&app, 1);
        let answer = client.get(&format!("{EXPORT}?q=ransomware&limit=5")).await;
        assert_eq!(
            answer.header("content-type"),
            Some("application/stix+json;version=2.1")
        );
        let bundle = answer.expect(200).await;
        keep_export(&bundle);
        assert_eq!(
            (&bundle["type"], &bundle["spec_version"]),
            (&json!("bundle"), &json!("2.1"))
        );
        let objects = bundle["objects"].as_array().unwrap();
        let of_type = |kind: &str| objects.iter().filter(|object| object["type"] == kind).count();
        let other = ["marking-definition", "identity", "relationship"]
            .map(of_type)
            .iter()
            .sum::<usize>();
        assert_eq!(objects.len() - other, 5);
        let markings: Vec<&Value> = objects
            .iter()
            .filter(|object| object["type"] == "marking-definition")
            .collect();
        assert!(
            markings
                .iter()
                .all(|marking| ["TLP:WHITE", "TLP:GREEN"].contains(&marking["name"].as_str().unwrap())),
            "{markings:?}"
        );
        let none = visitor(&app, 2)
            .get(&format!("{EXPORT}?q=zzzyyyxxx"))
            .await
            .refused(404)
            .await;
        assert_eq!(none, "a result for this query not found");
        app.stop().await;
    });
}

/// Whatever is done in the demo workspace's neighbours and whatever the settings of the demo workspace say.
#[test]
fn nothing_of_another_workspace_and_nothing_above_green_is_found() {
    run(async {
        let app = spawn().await;
        let node = |name: &str, tlp: &str| json!({"name": name, "node_type": "tool", "description": "zirconium quokka", "tlp": tlp});
        let nodes: Vec<Value> = ["TLP:WHITE", "TLP:GREEN", "TLP:AMBER"]
            .iter()
            .map(|tlp| node(&format!("Quokka {tlp}"), tlp))
            .collect();
        app.admin
            .post("/api/ingest/analyst", &json!({"nodes": nodes}))
            .await
            .expect(201)
            .await;
        assert_eq!(app.admin.search("quokka").await["count"], 3);
        let found = ask(&visitor(&app, 1), "quokka").await;
        assert_eq!(
            (&found["result_count"], &found["results"]),
            (&json!(0), &json!([]))
        );
        visitor(&app, 1)
            .get(&format!("{EXPORT}?q=quokka"))
            .await
            .refused(404)
            .await;
        // Credentials and parameters change nothing.
        let body = json!({"query": "quokka", "workspace": "Operator", "mode": "blended", "limit": 100, "include_rejected": true});
        let found = app
            .admin
            .with_header("x-forwarded-for", "198.51.100.9")
            .post(RECALL, &body)
            .await
            .expect(200)
            .await;
        assert_eq!(found["result_count"], 0);
        app.stop().await;
    });
}

#[test]
fn searches_and_exports_are_audited_in_the_operators_workspace() {
    run(async {
        let app = spawn().await;
        let other = app.workspace("Other").await;
        let client = visitor(&app, 7);
        let found = ask(&client, "wiper").await;
        client.get(&format!("{EXPORT}?q=wiper")).await.expect(200).await;
        client
            .get(&format!("{EXPORT}?q=zzzyyyxxx"))
            .await
            .refused(404)
            .await;
        let searched = app.admin.audited("demo.recall").await;
        assert_eq!(searched.len(), 1);
        assert_eq!(
            searched[0]["metadata"],
            json!({"query": "wiper", "result_count": found["result_count"]})
        );
        assert_eq!(
            (&searched[0]["ip_address"], &searched[0]["user_id"]),
            (&json!("198.51.100.7"), &Value::Null)
        );
        let exported = app.admin.audited("demo.export").await;
        assert_eq!(
            (&exported[1]["outcome"], &exported[0]["outcome"]),
            (&json!("success"), &json!("failure"))
        );
        assert!(exported[1]["metadata"]["nodes"].as_u64().unwrap() > 0);
        assert!(other.audited("demo.recall").await.is_empty());
        let report = app.admin.get("/api/audit/verify").await.expect(200).await;
        assert_eq!(report["valid"], true);
        app.stop().await;
    });
}

#[test]
fn both_routes_share_ten_requests_an_hour_and_address() {
    run(async {
        let app = spawn().await;
        let client = visitor(&app, 1);
        for number in 0..10 {
            let answer = match number % 3 {
                0 => client.post(RECALL, &json!({"query": "APT28"})).await,
                1 => client.get(&format!("{EXPORT}?q=zzzyyyxxx")).await,
                _ => client.post(RECALL, &json!({"query": "jane@example.org"})).await,
            };
            assert_eq!(answer.header("ratelimit-limit"), Some("10"));
            let left = (9 - number).to_string();
            assert_eq!(answer.header("ratelimit-remaining"), Some(left.as_str()));
        }
        for path in [RECALL, EXPORT] {
            let refused = if path == RECALL {
                client.post(path, &json!({"query": "APT28"})).await
            } else {
                client.get(&format!("{path}?q=APT28")).await
            };
            let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
            assert!((3_500..=3_601).contains(&wait), "{wait}");
            assert_eq!(refused.refused(429).await, "rate limit exceeded");
        }
        ask(&visitor(&app, 2), "APT28").await;
        app.stop().await;
    });
}

#[test]
fn the_content_is_loaded_once_and_again_when_it_is_new() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let count = async |app: &TestApp| {
            let found = ask(&visitor(app, 1), "group").await;
            found["results"].clone()
        };
        let settings = || {
            let mut settings = settings(&format!("surrealkv://{}", dir.path().display()));
            settings.server.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
            settings
        };
        let app = TestApp::with(settings()).await;
        let first = count(&app).await;
        app.stop().await;
        let app = TestApp::with(settings()).await;
        assert_eq!(count(&app).await, first);
        app.stop().await;
    });
}
