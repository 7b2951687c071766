//! What holds of a collection whatever happens to the objects in it: who gets what, once, and in which version.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::super::feeds;
use super::{ask, pull, pull_pages, root_of};
use crate::helpers::{Client, TestApp, run, settings};
use crate::stix::{id, object, relationship, statement, text, version, with};

fn found(objects: &[Value]) -> BTreeSet<&str> {
    objects.iter().map(|object| text(object, "id")).collect()
}

fn report(name: &str, of: &[&Value]) -> Value {
    let refs: Vec<&Value> = of.iter().map(|object| &object["id"]).collect();
    let more = json!({"published": "2020-01-01T00:00:00.000Z", "object_refs": refs, "labels": ["tlp:green"]});
    with(object("report", name), more)
}

/// The id and version of each record of a manifest, with its date.
async fn manifest(client: &Client, path: &str, limit: usize) -> Vec<(String, String, String)> {
    let (mut records, mut next) = (Vec::new(), String::new());
    loop {
        let page = ask(client, &format!("{path}limit={limit}{next}"))
            .await
            .expect(200)
            .await;
        for record in page["objects"].as_array().into_iter().flatten() {
            let part = |name: &str| text(record, name).to_owned();
            records.push((part("id"), part("version"), part("date_added")));
        }
        match page["next"].as_str() {
            Some(more) => next = format!("&next={more}"),
            None => return records,
        }
    }
}

#[test]
fn a_definition_leaves_where_its_own_marking_and_feed_let_it() {
    run(async {
        let app = TestApp::with(feeds::allowing(settings("mem://"))).await;
        let admin = &app.admin;
        let all = format!("{}collections/all/objects/?limit=1000", root_of(admin).await);
        let feed = json!({"redistribution_state": "internal_only"});
        let feed = admin.feed_at("http://127.0.0.1:9/objects/", feed).await;
        let secret = statement("Vendor contract 77");
        let of_feed = with(
            object("tool", "Leased Hook"),
            json!({"object_marking_refs": [secret["id"]]}),
        );
        let body = json!({"input_kind": "stix_bundle", "bundle": [of_feed, secret], "feed_source_id": feed});
        let made = admin.post(feeds::BATCHES, &body).await.expect(201).await;
        admin.commit_all(text(&made["batch"], "id")).await;
        let open = statement("Copyright of everybody");
        admin.ingest(json!([open])).await;
        let objects = pull(admin, &all).await;
        let ids = found(&objects);
        assert!(
            ids.contains(text(&open, "id")) && !ids.contains(text(&secret, "id")),
            "{ids:?}"
        );
        app.stop().await;
    });
}

#[test]
fn older_versions_obey_the_collection_and_the_status_of_their_object() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let root = root_of(admin).await;
        let doubtful = with(object("tool", "Doubtful Hook"), json!({"confidence": 10}));
        let newer = version(&doubtful, 2024, json!({"confidence": 10}));
        let revoked = object("tool", "Revoked Hook");
        let end = version(&revoked, 2024, json!({"revoked": true}));
        for object in [&doubtful, &newer, &revoked, &end] {
            admin.ingest(json!([object])).await;
        }
        let sure = json!({"title": "Sure", "alias": "sure", "filter": {"min_confidence": 0.5}});
        admin
            .post("/api/admin/collections", &sure)
            .await
            .expect(201)
            .await;
        let viewer = app.user("viewer").await;
        let path = format!("{root}collections/sure/objects/?match[version]=all");
        assert!(!found(&pull(&viewer, &path).await).contains(text(&doubtful, "id")));
        let (_, key) = admin.add_key(&["read"]).await;
        let key = app.anonymous().with_header("x-api-key", &key);
        let all = format!("{root}collections/all/objects/?match[version]=all");
        let objects = pull(&key, &all).await;
        let valid = |of: &Value| {
            let versions = objects.iter().filter(|object| object["id"] == of["id"]);
            versions.filter(|object| object["revoked"] != true).count()
        };
        assert_eq!((valid(&doubtful), valid(&revoked)), (2, 0));
        app.stop().await;
    });
}

#[test]
fn a_version_is_asked_for_by_the_time_that_it_has() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let all = format!("{}collections/all/", root_of(admin).await);
        let hook = object("tool", "Corrected Hook");
        admin.ingest(json!([hook])).await;
        let node = super::super::merges::node_of(admin, &hook).await;
        let change = json!({"description": "corrected by hand"});
        admin
            .patch(&format!("/api/nodes/{node}"), &change)
            .await
            .expect(200)
            .await;
        let item =
            json!({"collector": "rss", "items": [{"title": "Native note", "content": "Of the desk."}]});
        admin.post("/api/ingest/osint", &item).await.expect(201).await;
        for (id, version, _) in manifest(admin, &format!("{all}manifest/?"), 100).await {
            for (asked, count) in [(version.as_str(), 1), ("1999-01-01T00:00:00Z", 0)] {
                let path = format!("{all}objects/{id}/?match[version]={asked}");
                let answer = ask(admin, &path).await.expect(200).await;
                let objects = answer["objects"].as_array().map_or(0, Vec::len);
                assert_eq!(objects, count, "{id} {asked}: {answer}");
            }
        }
        let of_source = format!(
            "{all}objects/{}/?match[version]={}",
            text(&hook, "id"),
            text(&hook, "modified")
        );
        let old = ask(admin, &of_source).await.expect(200).await;
        for object in old["objects"].as_array().into_iter().flatten() {
            assert_eq!(object["modified"], hook["modified"], "{old}");
        }
        app.stop().await;
    });
}

#[test]
fn pages_of_named_objects_lose_no_version() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let all = format!("{}collections/all/objects/", root_of(admin).await);
        let tools = [object("tool", "Paged Hook"), object("tool", "Paged Rung")];
        for year in [2023, 2024, 2025] {
            let versions = tools.each_ref().map(|tool| version(tool, year, json!({})));
            admin.ingest(json!(versions)).await;
        }
        let named = format!(
            "{all}?match[version]=all&match[id]={},{}",
            text(&tools[0], "id"),
            text(&tools[1], "id")
        );
        for limit in 1..=7 {
            let objects = pull(admin, &format!("{named}&limit={limit}")).await;
            let versions: BTreeSet<(&str, &str)> = objects
                .iter()
                .map(|object| (text(object, "id"), text(object, "modified")))
                .collect();
            assert_eq!((objects.len(), versions.len()), (6, 6), "pages of {limit}");
        }
        app.stop().await;
    });
}

#[test]
fn what_refers_to_something_that_may_be_seen_by_now_is_given_again() {
    run(async {
        let app = TestApp::spawn().await;
        let admin = &app.admin;
        let root = root_of(admin).await;
        let all = format!("{root}collections/all/objects/?limit=1000");
        let amber = with(object("tool", "Amber Hook"), json!({"labels": ["tlp:amber"]}));
        let green = with(object("tool", "Green Hook"), json!({"labels": ["tlp:green"]}));
        let alone = report("Of the amber one", &[&amber]);
        let both = report("Of both", &[&amber, &green]);
        let edge = with(
            relationship(&green, "related-to", &amber),
            json!({"labels": ["tlp:green"]}),
        );
        let other = with(
            object("tool", "Other green hook"),
            json!({"labels": ["tlp:green"]}),
        );
        let seen = ["uses", "drops", "targets"].map(|label| {
            with(
                relationship(&green, label, &other),
                json!({"labels": ["tlp:green"]}),
            )
        });
        let sent = json!([amber, green, alone, both, seen[0], edge, other, seen[1], seen[2]]);
        admin.ingest(sent).await;
        admin.settings(json!({"tlp_ceiling": "TLP:GREEN"})).await;
        let pages = pull_pages(admin, &all).await;
        let before: Vec<Value> = pages.iter().flat_map(|page| page.objects.clone()).collect();
        let ids = found(&before);
        assert!(
            ids.contains(text(&both, "id")) && !ids.contains(text(&alone, "id")),
            "{ids:?}"
        );
        // No gap in the dates tells of what is hidden.
        let dates: Vec<i64> = manifest(
            admin,
            &format!("{root}collections/all/manifest/?match[type]=relationship&"),
            1000,
        )
        .await
        .iter()
        .map(|(_, _, date)| {
            chrono::DateTime::parse_from_rfc3339(date)
                .unwrap()
                .timestamp_micros()
        })
        .collect();
        assert_eq!(dates.len(), 3);
        assert!(dates.windows(2).all(|pair| pair[1] == pair[0] + 1), "{dates:?}");
        let later = format!(
            "{all}&added_after={}",
            pages.last().unwrap().last.clone().unwrap()
        );
        admin.settings(json!({"tlp_ceiling": "TLP:AMBER"})).await;
        let wanted: BTreeSet<&str> = [&amber, &alone, &both, &edge]
            .map(|object| text(object, "id"))
            .into();
        test_support::eventually(|| async {
            let news = pull(admin, &later).await;
            if found(&news) == wanted { Ok(()) } else { Err(news) }
        })
        .await;
        let news = pull(admin, &later).await;
        let of_both = news.iter().find(|object| object["id"] == both["id"]).unwrap();
        assert_eq!(of_both["object_refs"].as_array().unwrap().len(), 2, "{of_both}");
        // Who reads from the beginning gets each once, whatever the pages are.
        let whole = manifest(admin, &format!("{root}collections/all/manifest/?"), 1000).await;
        let distinct: BTreeSet<&String> = whole.iter().map(|(id, ..)| id).collect();
        assert_eq!(distinct.len(), whole.len(), "{whole:?}");
        for limit in [1, 2, 3] {
            let paged = manifest(admin, &format!("{root}collections/all/manifest/?"), limit).await;
            assert_eq!(paged, whole, "pages of {limit}");
        }
        // What is named has the same date.
        for (id, version, date) in &whole {
            let path = format!("{root}collections/all/manifest/?match[id]={id}&");
            let named = manifest(admin, &path, 100).await;
            assert!(
                named.contains(&(id.clone(), version.clone(), date.clone())),
                "{id}: {named:?}"
            );
        }
        app.stop().await;
    });
}

#[test]
fn an_id_that_nothing_has_is_nothing() {
    run(async {
        let app = TestApp::shared().await;
        let all = format!("{}collections/all/objects/", root_of(&app.admin).await);
        let nothing = pull(&app.admin, &format!("{all}?match[id]={}", id("tool"))).await;
        assert!(nothing.is_empty());
        app.stop().await;
    });
}
