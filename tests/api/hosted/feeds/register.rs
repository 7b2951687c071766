//! Registration of feeds: which URLs are refused, and by which rule.

use serde_json::{Value, json};

use super::FEEDS;
use crate::helpers::{Client, TestApp, keys_of, run, settings};
use crate::stix::text;

/// URLs that a service in production refuses, with the rule.
const REFUSED: [(&str, &str); 62] = [
    ("", "invalid-url"),
    ("feeds.example.com/objects/", "invalid-url"),
    ("//feeds.example.com/objects/", "invalid-url"),
    ("https://", "invalid-url"),
    ("https:///objects/", "invalid-url"),
    ("https://feeds.example.com /objects/", "invalid-url"),
    ("https://feeds.example.com\\@evil.example/", "invalid-url"),
    ("https:\\\\feeds.example.com/", "invalid-url"),
    ("https://feeds.example.com\t/", "invalid-url"),
    ("https://feeds%2eexample.com/", "invalid-url"),
    ("http://feeds.example.com/objects/", "scheme"),
    ("ftp://feeds.example.com/objects/", "scheme"),
    ("file:///etc/passwd", "scheme"),
    ("gopher://feeds.example.com/", "scheme"),
    ("data:application/json,{}", "scheme"),
    ("https://user@feeds.example.com/", "userinfo"),
    ("https://user:hunter2@feeds.example.com/", "userinfo"),
    ("https://feeds.example.com@evil.example/", "userinfo"),
    ("https://@feeds.example.com/", "userinfo"),
    ("https://feeds.example.com:0/", "port"),
    ("https://evil.example/objects/", "host-not-allowed"),
    ("https://feeds.example.com.evil.example/", "host-not-allowed"),
    ("https://evilfeeds.example.com/", "host-not-allowed"),
    ("https://intel.example/", "host-not-allowed"),
    ("https://ported.example.com/", "host-not-allowed"),
    ("https://8.8.8.8/", "host-not-allowed"),
    ("https://feeds.example.com./", "trailing-dot"),
    ("https://2130706433/", "address-spelling"),
    ("https://0x7f000001/", "address-spelling"),
    ("https://017700000001/", "address-spelling"),
    ("https://0177.0.0.1/", "address-spelling"),
    ("https://0x7f.0.0.1/", "address-spelling"),
    ("https://127.1/", "address-spelling"),
    ("https://127.0.1/", "address-spelling"),
    ("https://%31%32%37.0.0.1/", "address-spelling"),
    ("https://１２７.0.0.1/", "address-spelling"),
    ("https://127。0。0。1/", "address-spelling"),
    ("https://127.0.0.1./", "address-spelling"),
    ("https://127.0.0.1/", "loopback-address"),
    ("https://127.255.255.254/", "loopback-address"),
    ("https://localhost/", "loopback-address"),
    ("https://LOCALHOST/", "loopback-address"),
    ("https://a.localhost/", "loopback-address"),
    ("https://[::1]/", "loopback-address"),
    ("https://0.0.0.0/", "unspecified-address"),
    ("https://[::]/", "unspecified-address"),
    ("https://10.0.0.1/", "private-address"),
    ("https://172.16.0.1/", "private-address"),
    ("https://192.168.1.1/", "private-address"),
    ("https://100.64.0.1/", "shared-address"),
    ("https://169.254.1.1/", "link-local-address"),
    ("https://169.254.169.254/latest/meta-data/", "metadata-address"),
    ("https://[fd00:ec2::254]/", "metadata-address"),
    ("https://[fe80::1]/", "link-local-address"),
    ("https://[fc00::1]/", "unique-local-address"),
    ("https://224.0.0.1/", "multicast-address"),
    ("https://255.255.255.255/", "broadcast-address"),
    ("https://198.51.100.7/", "documentation-address"),
    ("https://[::ffff:127.0.0.1]/", "embedded-address"),
    ("https://[::ffff:7f00:1]/", "embedded-address"),
    ("https://[64:ff9b::7f00:1]/", "embedded-address"),
    ("https://[2002:7f00:1::]/", "embedded-address"),
];

/// URLs that are in order, but name no collection.
const NO_COLLECTION: [(&str, &str); 7] = [
    (
        "https://feeds.example.com/api/collections/",
        "list of collections",
    ),
    (
        "https://feeds.example.com/api/collections/c1/manifest/",
        "manifest",
    ),
    (
        "https://feeds.example.com/api/collections/c1/objects/?next=abc",
        "`next`",
    ),
    (
        "https://feeds.example.com/api/collections/c1/objects/?limit=0",
        "`limit`",
    ),
    (
        "https://feeds.example.com/api/collections/c1/objects/?limit=1&limit=2",
        "`limit`",
    ),
    (
        "https://feeds.example.com/api/collections/c1/objects/?limit=ten",
        "`limit`",
    ),
    (
        "https://feeds.example.com/api/collections/c1/objects/?added_after=today",
        "`added_after`",
    ),
];

fn body(url: &str) -> Value {
    json!({"name": "Feed", "connector_config_ref": url, "default_tlp": "TLP:GREEN",
        "redistribution_state": "internal_only"})
}

/// A service as in production, with a list of allowed hosts.
async fn production(allowed: &[&str]) -> TestApp {
    let mut settings = settings("mem://");
    settings.feeds.allowed_hosts = allowed.iter().map(|&host| host.to_owned()).collect();
    TestApp::with(settings).await
}

async fn refused(client: &Client, url: &str) -> String {
    let (status, text) = client.post(FEEDS, &body(url)).await.whole().await;
    assert_eq!(status, 400, "{url:?}: {text}");
    let answer: Value = serde_json::from_str(&text).unwrap();
    let error = crate::stix::text(&answer, "error").to_owned();
    assert!(error.starts_with("connector_config_ref: "), "{url:?}: {error}");
    error
}

#[test]
fn urls_are_refused_by_a_rule_that_the_answer_names() {
    run(async {
        let allowed = [
            "feeds.example.com",
            "*.intel.example",
            "ported.example.com:8443",
            "10.0.0.1",
        ];
        let app = production(&allowed).await;
        for (url, rule) in REFUSED {
            let error = refused(&app.admin, url).await;
            assert!(error.ends_with(&format!("({rule})")), "{url:?}: {error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
        for (url, what) in NO_COLLECTION {
            let error = refused(&app.admin, url).await;
            assert!(error.contains(what), "{url:?}: {error}");
        }
        let made = [
            "https://feeds.example.com/api/collections/c1/objects/",
            "https://FEEDS.example.com:8443/api/collections/c1/",
            "https://a.b.intel.example/objects/?match[type]=indicator&limit=50",
            "https://ported.example.com:8443/objects/?added_after=2024-01-31T00:00:00Z",
        ];
        for url in made {
            let answer = app.admin.post(FEEDS, &body(url)).await.expect(201).await;
            assert_eq!(answer["feed"]["connector_config_ref"], url);
        }
        let listed = app.admin.get(FEEDS).await.expect(200).await;
        assert_eq!(listed["count"], made.len());
        app.stop().await;
    });
}

#[test]
fn without_a_list_of_hosts_no_feed_can_be_registered() {
    run(async {
        let app = production(&[]).await;
        let error = refused(&app.admin, "https://feeds.example.com/objects/").await;
        assert!(error.ends_with("(host-not-allowed)"), "{error}");
        app.stop().await;
    });
}

/// Local development allows HTTP and loopback addresses, and nothing else.
#[test]
fn local_development_allows_loopback_only() {
    run(async {
        let app = TestApp::shared().await;
        for (url, rule) in [
            ("http://2130706433/", "address-spelling"),
            ("http://127.1/", "address-spelling"),
            ("http://localhost/", "host-not-allowed"),
            ("http://[::1]/", "host-not-allowed"),
            ("http://127.0.0.2/", "host-not-allowed"),
            ("http://10.0.0.1/", "private-address"),
            ("http://169.254.169.254/", "metadata-address"),
            ("http://[::ffff:127.0.0.1]/", "embedded-address"),
            ("http://0.0.0.0/", "unspecified-address"),
            ("http://user@127.0.0.1/", "userinfo"),
            ("ftp://127.0.0.1/", "scheme"),
        ] {
            let error = refused(&app.admin, url).await;
            assert!(error.ends_with(&format!("({rule})")), "{url}: {error}");
        }
        app.admin.feed_at("http://127.0.0.1:9/objects/", json!({})).await;
        app.stop().await;
    });
}

#[test]
fn fields_have_rules() {
    run(async {
        let app = TestApp::shared().await;
        let good = body("http://127.0.0.1:9/objects/");
        let wrong = [
            ("name", json!(""), "name"),
            ("name", json!(7), "name"),
            ("name", json!("x".repeat(201)), "name"),
            ("name", json!("a\nb"), "name"),
            ("name", Value::Null, "name"),
            ("description", json!("x".repeat(2001)), "description"),
            ("connector_config_ref", Value::Null, "connector_config_ref"),
            ("default_tlp", json!("TLP:PUCE"), "default_tlp"),
            ("default_tlp", Value::Null, "default_tlp"),
            ("default_tlp", json!("TLP:RED"), "default_tlp"),
            ("redistribution_state", json!("sometimes"), "redistribution_state"),
            ("redistribution_state", Value::Null, "redistribution_state"),
        ];
        for (field, value, named) in wrong {
            let mut body = good.clone();
            body[field] = value;
            if body[field].is_null() {
                body.as_object_mut().unwrap().remove(field);
            }
            let error = app.admin.post(FEEDS, &body).await.refused(400).await;
            assert!(error.contains(named), "{body}: {error}");
        }
        let long = format!("http://127.0.0.1:9/{}", "x".repeat(2000));
        refused(&app.admin, &long).await;
        assert_eq!(app.admin.get(FEEDS).await.expect(200).await["count"], 0);
        app.stop().await;
    });
}

#[test]
fn a_feed_is_read_listed_and_changed() {
    run(async {
        let app = TestApp::shared().await;
        let mut new = body("http://127.0.0.1:9/api/collections/c1/objects/");
        new["description"] = json!("from the sector's ISAC");
        let made = app.admin.post(FEEDS, &new).await.expect(201).await["feed"].clone();
        assert_eq!(
            keys_of(&made),
            [
                "connector_config_ref",
                "created_at",
                "default_tlp",
                "description",
                "enabled",
                "id",
                "name",
                "redistribution_state",
                "updated_at"
            ]
        );
        for (field, value) in new.as_object().unwrap() {
            assert_eq!(&made[field], value, "{field}");
        }
        assert_eq!(made["enabled"], true);
        let path = format!("{FEEDS}/{}", text(&made, "id"));
        assert_eq!(
            app.admin.get(&path).await.expect(200).await,
            json!({"feed": made})
        );

        let change = json!({"name": "Renamed", "description": "", "enabled": false, "default_tlp": "TLP:AMBER",
            "redistribution_state": "prohibited"});
        let changed = app.admin.patch(&path, &change).await.expect(200).await["feed"].clone();
        for (field, value) in change.as_object().unwrap() {
            assert_eq!(&changed[field], value, "{field}");
        }
        assert_eq!(changed["created_at"], made["created_at"]);
        let listed = app.admin.get(FEEDS).await.expect(200).await;
        assert_eq!(listed, json!({"feeds": [changed], "count": 1}));
        for wrong in [
            json!({}),
            json!({"name": ""}),
            json!({"default_tlp": "TLP:RED"}),
            json!({"enabled": "no"}),
            json!({"redistribution_state": "open"}),
        ] {
            app.admin.patch(&path, &wrong).await.refused(400).await;
        }
        assert_eq!(app.admin.get(&path).await.expect(200).await["feed"], changed);
        let unknown = format!("{FEEDS}/{}", uuid::Uuid::new_v4());
        app.admin.get(&unknown).await.refused(404).await;
        app.admin.patch(&unknown, &change).await.refused(404).await;
        app.stop().await;
    });
}
