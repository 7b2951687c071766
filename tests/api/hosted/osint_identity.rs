//! The identity of an OSINT item: its URL, or the entity that its title names.

use serde_json::{Value, json};

use crate::helpers::{TestApp, run};
use crate::hosted::ways_in::counts;
use crate::stix::{evidence, text};

const LIST: &str = "https://feed.example/list.txt";

fn body(items: Value) -> Value {
    json!({"collector": "feed", "items": items})
}

#[test]
fn indicators_of_one_list_are_as_many_nodes_as_there_are() {
    run(async {
        let app = TestApp::shared().await;
        let values = [
            "198[.]51.100.7",
            "evil-zq.example.com",
            "d41d8cd98f00b204e9800998ecf8427e",
        ];
        let items: Vec<Value> = values
            .iter()
            .map(|value| json!({"title": value, "type": "ioc", "url": LIST}))
            .collect();
        let results = app.admin.send_in("osint", &body(json!(items))).await;
        assert_eq!(counts(&results), [3, 0, 3]);
        for value in values {
            let node = app.admin.one(value).await;
            assert_eq!(
                (evidence(&node), &node["properties"]["url"]),
                (1, &json!(LIST)),
                "{value}"
            );
        }
        // It has the same identity as an indicator from other sources, and is exported with a pattern.
        let session = app.admin.search("198.51.100.7").await;
        let bundle = app.admin.export(text(&session, "recall_id")).await;
        let objects = bundle["objects"].as_array().unwrap();
        assert!(
            objects
                .iter()
                .any(|object| object["pattern"] == "[ipv4-addr:value = '198.51.100.7']"),
            "{bundle}"
        );
        let entry = json!({"nodes": [{"name": "198.51.100.7", "node_type": "ioc"}]});
        assert_eq!(counts(&app.admin.send_in("analyst", &entry).await), [0, 1, 1]);
        app.stop().await;
    });
}

#[test]
fn a_title_that_names_an_actor_is_the_actor_and_each_address_is_evidence() {
    run(async {
        let app = TestApp::shared().await;
        let entry = json!({"nodes": [{"name": "APT28", "node_type": "actor"}]});
        app.admin.send_in("analyst", &entry).await;
        let item = |url: &str| json!({"title": "Fancy Bear", "type": "actor", "url": url});
        let items = body(json!([item("https://a.example/1"), item("https://b.example/2")]));
        assert_eq!(counts(&app.admin.send_in("osint", &items).await), [0, 1, 2]);
        assert_eq!(evidence(&app.admin.one("APT28").await), 3);
        app.stop().await;
    });
}

/// Each article is a source of its own: a strict one adds evidence, and what an open one tells stays open.
#[test]
fn a_stricter_article_of_the_same_collector_leaves_the_node_where_it_is() {
    run(async {
        let app = TestApp::shared().await;
        let item = |url: Option<&str>, description: &str, tlp: Option<&str>| {
            body(
                json!([{"title": "ZetaKit", "type": "tool", "url": url, "description": description, "tlp": tlp}]),
            )
        };
        let (one, other) = (Some("https://a.example/1"), Some("https://a.example/2"));
        for (at, (first, second)) in [(one, other), (one, None), (None, one)].into_iter().enumerate() {
            let client = app.workspace(&format!("articles {at}")).await;
            client
                .send_in("osint", &item(first, "A tool.", Some("GREEN")))
                .await;
            let secret = item(second, "A tool of heron, formerly TLP:RED.", None);
            assert_eq!(counts(&client.send_in("osint", &secret).await), [0, 1, 1]);
            let node = client.one("ZetaKit").await;
            assert_eq!(
                (&node["tlp"], &node["description"], evidence(&node)),
                (&json!("TLP:GREEN"), &json!("A tool."), 1)
            );
            client.open().await;
            assert_eq!(evidence(&client.one("ZetaKit").await), 2);
            // The same article again may mark what it said itself.
            let again = item(first, "A tool of heron.", Some("RED"));
            client.send_in("osint", &again).await;
            assert_eq!(client.one("ZetaKit").await["tlp"], "TLP:RED");
        }
        app.stop().await;
    });
}

#[test]
fn an_article_is_its_address_and_is_found_by_both_of_its_titles() {
    run(async {
        let app = TestApp::shared().await;
        let item = |title: &str| json!({"title": title, "type": "osint", "url": "https://news.example/zq"});
        let items = body(json!([item("Quiet heron zqone"), item("Loud heron zqtwo")]));
        assert_eq!(counts(&app.admin.send_in("osint", &items).await), [1, 0, 2]);
        let node = app.admin.one("Quiet heron zqone").await;
        assert_eq!(evidence(&node), 2);
        assert_eq!(node["properties"]["aliases"], json!(["Loud heron zqtwo"]));
        assert_eq!(app.admin.nodes_of("Loud heron zqtwo").await[0]["id"], node["id"]);
        let session = app.admin.search("Loud heron zqtwo").await;
        app.admin.export(text(&session, "recall_id")).await;
        app.stop().await;
    });
}
