//! Ingest of items from an OSINT collector.

use serde_json::{Value, json};
use test_support::extent;

use crate::helpers::{TestApp, run};
use crate::hosted::ways_in::counts;
use crate::stix::{evidence, text};

fn body(items: Value) -> Value {
    json!({"collector": "rss", "items": items})
}

#[test]
fn an_item_keeps_all_its_fields() {
    run(async {
        let app = TestApp::shared().await;
        let item = json!({"title": " Full item zfull ", "description": "All of it.",
            "url": "https://news.example/zfull", "type": "tool", "tlp": "green", "confidence": 0.9,
            "tags": ["one", "two"], "published": "2024-03-29T12:00:00+02:00", "unknown": 1});
        let results = app.admin.send_in("osint", &body(json!([item]))).await;
        assert_eq!(counts(&results), [1, 0, 1]);
        let node = app.admin.one("Full item zfull").await;
        for (key, want) in [
            ("description", json!("All of it.")),
            ("node_type", json!("tool")),
            ("tlp", json!("TLP:GREEN")),
            ("confidence", json!(0.9)),
            ("source", json!("rss")),
            ("source_type", json!("osint")),
            ("status", json!("active")),
        ] {
            assert_eq!(node[key], want, "{key}");
        }
        let properties = &node["properties"];
        assert_eq!(properties["tags"], json!(["one", "two"]));
        assert_eq!(properties["url"], "https://news.example/zfull");
        assert_eq!(properties["collector"], "rss");
        let published: chrono::DateTime<chrono::Utc> = text(properties, "published").parse().unwrap();
        assert_eq!(published.timestamp(), 1_711_706_400);
        app.stop().await;
    });
}

#[test]
fn what_an_item_leaves_out_is_the_routes_or_the_requests_default() {
    run(async {
        let app = TestApp::shared().await;
        let items = json!([{"title": "zbare"}]);
        app.admin.send_in("osint", &body(items)).await;
        let node = app.admin.one("zbare").await;
        assert_eq!(
            (&node["tlp"], &node["confidence"], &node["node_type"]),
            (&json!("TLP:AMBER"), &json!(0.5), &json!("osint"))
        );
        assert!(node["properties"]["tags"].is_null() && node["properties"]["published"].is_null());
        let mut given =
            body(json!([{"title": "zgiven"}, {"title": "zown", "tlp": "CLEAR", "confidence": 0}]));
        given["default_tlp"] = json!("TLP:GREEN");
        given["default_confidence"] = json!(1);
        app.admin.send_in("osint", &given).await;
        let node = app.admin.one("zgiven").await;
        assert_eq!(
            (&node["tlp"], &node["confidence"]),
            (&json!("TLP:GREEN"), &json!(1.0))
        );
        let node = app.admin.one("zown").await;
        assert_eq!(
            (&node["tlp"], &node["confidence"]),
            (&json!("TLP:WHITE"), &json!(0.0))
        );
        app.stop().await;
    });
}

#[test]
fn the_type_is_inferred_from_keywords_unless_it_is_stated() {
    run(async {
        let app = TestApp::shared().await;
        let cases = [
            ("zt1 CVE-2024-3094 in xz", "", "vulnerability"),
            ("zt2 new Ransomware wave", "", "vulnerability"),
            ("zt3 title", "An exploit was published", "vulnerability"),
            ("zt4 APT29 is back", "", "actor"),
            ("zt5 a look at threat-actors", "", "actor"),
            ("zt6 MITRE updates", "", "attck"),
            ("zt7 title", "New in ATT&CK", "attck"),
            ("zt8 weekly summary", "", "osint"),
            ("zt9 APT29 uses an exploit", "", "vulnerability"),
        ];
        let items: Vec<Value> = cases
            .iter()
            .map(|(title, description, _)| json!({"title": title, "description": description}))
            .collect();
        app.admin.send_in("osint", &body(json!(items))).await;
        for (title, _, want) in cases {
            assert_eq!(app.admin.one(title).await["node_type"], want, "{title}");
        }
        for kind in ["actor", "cve", "ioc", "attck", "vulnerability", "osint", "tool"] {
            let title = format!("ztype {kind} exploit");
            let item = json!([{"title": title, "type": kind}]);
            app.admin.send_in("osint", &body(item)).await;
            assert_eq!(app.admin.one(&title).await["node_type"], kind);
        }
        app.stop().await;
    });
}

#[test]
fn errors_name_the_field() {
    run(async {
        let app = TestApp::shared().await;
        let item = |change: Value| {
            let mut item = json!({"title": "znever"});
            for (key, value) in change.as_object().unwrap() {
                item[key] = value.clone();
            }
            body(json!([{"title": "znever"}, item]))
        };
        let many: Vec<Value> = (0..10_001)
            .map(|n| json!({"title": format!("znever {n}")}))
            .collect();
        for (body, want) in [
            (json!({"items": [{"title": "znever"}]}), "collector: is required"),
            (json!({"collector": "rss"}), "items: is required"),
            (
                json!({"collector": "", "items": [{"title": "znever"}]}),
                "collector: must have from 1",
            ),
            (json!({"collector": 5, "items": []}), "collector: must be"),
            (body(json!([])), "items: must hold from 1 to 10000"),
            (body(json!(many)), "items: must hold from 1 to 10000"),
            (body(json!({})), "items: must be"),
            (body(json!([{}])), "items[0].title: is required"),
            (body(json!([{"title": "  "}])), "items[0].title: must have from 1"),
            (
                body(json!([{"title": "x".repeat(2001)}])),
                "items[0].title: must have from 1 to 2000",
            ),
            (
                body(json!([{"title": "a\u{0}b"}])),
                "items[0].title: must not hold a NUL",
            ),
            (body(json!(["x"])), "items[0]: must be an object"),
            (item(json!({"description": 5})), "items[1].description: must be"),
            (
                item(json!({"url": "a\u{0}"})),
                "items[1].url: must not hold a NUL",
            ),
            (item(json!({"type": "malware"})), "items[1].type: "),
            (
                item(json!({"tlp": "PINK"})),
                "items[1].tlp: must be one of TLP:WHITE",
            ),
            (
                item(json!({"confidence": 1.01})),
                "items[1].confidence: must be a number from 0 to 1",
            ),
            (
                item(json!({"confidence": -0.01})),
                "items[1].confidence: must be a number from 0 to 1",
            ),
            (item(json!({"confidence": "0.5"})), "items[1].confidence: must be"),
            (item(json!({"tags": "x"})), "items[1].tags: must be"),
            (
                item(json!({"tags": ["x".repeat(201)]})),
                "items[1].tags[0]: must have from 1",
            ),
            (item(json!({"tags": ["a", 5]})), "items[1].tags[1]: must be"),
            (item(json!({"published": "yesterday"})), "items[1].published: "),
            (item(json!({"published": 5})), "items[1].published: must be"),
        ] {
            let error = app.admin.refuses("osint", &body).await;
            assert!(error.starts_with(want), "{want}: {error}");
        }
        for (key, value) in [
            ("default_tlp", json!("")),
            ("default_tlp", json!(5)),
            ("default_confidence", json!(2)),
        ] {
            let mut wrong = body(json!([{"title": "znever"}]));
            wrong[key] = value;
            let error = app.admin.refuses("osint", &wrong).await;
            assert!(error.starts_with(key), "{error}");
        }
        // One invalid item rejects the whole request.
        assert!(app.admin.nodes_of("znever").await.is_empty());
        assert!(app.admin.audited("ingest.osint").await.is_empty());
        app.stop().await;
    });
}

#[test]
fn the_same_item_is_one_node_and_a_changed_one_adds_evidence() {
    run(async {
        let app = TestApp::shared().await;
        let first = json!({"title": "zrepeat", "url": "https://news.example/zrepeat", "tags": ["a"]});
        let twice = body(json!([first, first]));
        assert_eq!(counts(&app.admin.send_in("osint", &twice).await), [1, 0, 1]);
        assert_eq!(counts(&app.admin.send_in("osint", &twice).await), [0, 0, 0]);
        let mut changed = first.clone();
        changed["title"] = json!("zrepeat, corrected");
        changed["description"] = json!("More is known.");
        changed["tags"] = json!(["b"]);
        let results = app.admin.send_in("osint", &body(json!([changed]))).await;
        assert_eq!(counts(&results), [0, 1, 1]);
        let node = app.admin.one("zrepeat").await;
        assert_eq!(evidence(&node), 2);
        assert_eq!(node["description"], "More is known.");
        assert_eq!(node["properties"]["tags"], json!(["a", "b"]));
        // Without a URL, an item is identified by its type and title, case-insensitively.
        let plain = json!([{"title": "zplain Title"}, {"title": "ZPLAIN title"}]);
        assert_eq!(counts(&app.admin.send_in("osint", &body(plain)).await)[0], 1);
        // The same title with another type is a different item.
        let other = json!([{"title": "zplain Title", "type": "tool"}]);
        assert_eq!(counts(&app.admin.send_in("osint", &body(other)).await)[0], 1);
        // Other workspaces are not affected.
        let elsewhere = app.workspace("elsewhere").await;
        assert!(elsewhere.nodes_of("zrepeat").await.is_empty());
        assert_eq!(counts(&elsewhere.send_in("osint", &twice).await), [1, 0, 1]);
        app.stop().await;
    });
}

#[test]
fn thousands_of_items_go_in_at_once_and_out_as_stix() {
    run(async {
        let app = TestApp::spawn().await;
        let count = extent(400, 4_000);
        let items: Vec<Value> = (0..count)
            .map(|n| json!({"title": format!("zbulk item{n}"), "published": "2024-01-01T00:00:00Z"}))
            .collect();
        let results = app.admin.send_in("osint", &body(json!(items))).await;
        assert_eq!(counts(&results), [count, 0, count]);
        let last = format!("zbulk item{}", count - 1);
        let session = app.admin.search(&last).await;
        assert_eq!(session["results"][0]["name"], last.as_str());
        let bundle = app.admin.export(text(&session, "recall_id")).await;
        let objects = bundle["objects"].as_array().unwrap();
        let report = objects
            .iter()
            .find(|object| object["name"] == last.as_str())
            .unwrap();
        assert_eq!(
            (&report["type"], &report["published"]),
            (&json!("report"), &json!("2024-01-01T00:00:00.000Z"))
        );
        let audited = app.admin.audited("ingest.osint").await;
        assert_eq!(audited.len(), 1);
        let entry = &audited[0];
        assert_eq!(
            (&entry["outcome"], &entry["resource"], &entry["user_email"]),
            (&json!("success"), &json!("node"), &json!("admin@example.com"))
        );
        let metadata: Value = match &entry["metadata"] {
            Value::String(text) => serde_json::from_str(text).unwrap(),
            other => other.clone(),
        };
        assert_eq!(counts(&metadata), [count, 0, count]);
        app.stop().await;
    });
}
