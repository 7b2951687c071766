//! Objects, manifests and versions: what a collection gives, in which order, and what changes add again.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::super::feeds;
use super::{ask, pull, pull_pages, root_of};
use crate::helpers::{Client, TestApp, run, settings};
use crate::stix::{assert_faithful, by_id, id, object, relationship, statement, text, version, with};

/// An author, a marking, two tools of theirs and what joins them.
fn scene() -> Vec<Value> {
    let author = json!({"type": "identity", "id": id("identity"), "spec_version": "2.1", "name": "Harbour desk",
        "created": "2020-01-01T00:00:00.000Z", "modified": "2020-01-01T00:00:00.000Z"});
    let marking = statement("Copyright 2024, Harbour desk");
    let made = json!({"created_by_ref": author["id"], "object_marking_refs": [marking["id"]]});
    let one = with(object("tool", "Crane Hook"), made.clone());
    let other = with(object("malware", "Ladder Rung"), made);
    let edge = relationship(&one, "drops", &other);
    let report = json!({"type": "report", "id": id("report"), "spec_version": "2.1", "name": "Quay report",
        "created": "2020-01-01T00:00:00.000Z", "modified": "2020-01-01T00:00:00.000Z",
        "published": "2020-01-01T00:00:00.000Z", "object_refs": [one["id"], edge["id"]]});
    let address =
        json!({"type": "ipv4-addr", "id": id("ipv4-addr"), "spec_version": "2.1", "value": "198.51.100.9"});
    vec![report, edge, other, one, address, author, marking]
}

/// The ids of objects, in their order.
fn ids(objects: &[Value]) -> Vec<&str> {
    objects.iter().map(|object| text(object, "id")).collect()
}

/// The objects of a collection that were taken in.
async fn received(client: &Client, path: &str, sent: &[Value]) -> Vec<Value> {
    let known: HashSet<&str> = ids(sent).into_iter().collect();
    let all = pull(client, path).await;
    all.into_iter()
        .filter(|object| known.contains(text(object, "id")))
        .collect()
}

#[test]
fn what_was_taken_in_is_given_out_once_and_after_what_it_refers_to() {
    run(async {
        let app = TestApp::shared().await;
        let sent = scene();
        app.admin.ingest(json!(sent)).await;
        let all = format!("{}collections/all/", root_of(&app.admin).await);
        for limit in [1, 2, 3, 100] {
            let objects = pull(&app.admin, &format!("{all}objects/?limit={limit}")).await;
            let given = json!({"type": "bundle", "spec_version": "2.1", "objects": objects});
            let identity = objects.iter().filter(|object| object["type"] == "identity");
            let own = identity
                .filter(|object| text(object, "name") != "Harbour desk")
                .cloned();
            let known: Vec<Value> = sent.iter().cloned().chain(own).collect();
            let found = assert_given(&given, &known);
            assert!(
                sent.iter().all(|object| found.contains(text(object, "id"))),
                "limit {limit}"
            );
            let place = |id: &Value| objects.iter().position(|object| object["id"] == *id).unwrap();
            for object in &objects {
                let refs = ["created_by_ref", "source_ref", "target_ref"].map(|name| &object[name]);
                for to in refs.into_iter().filter(|to| to.is_string()) {
                    assert!(place(to) < place(&object["id"]), "{object} is before {to}");
                }
            }
        }
        app.stop().await;
    });
}

/// As `assert_faithful`, for a whole collection. The ids of what was given.
fn assert_given(bundle: &Value, known: &[Value]) -> HashSet<String> {
    assert_faithful(bundle, known).into_keys().collect()
}

#[test]
fn dates_rise_strictly_and_the_manifest_has_the_same_objects() {
    run(async {
        let app = TestApp::shared().await;
        app.admin.ingest(json!(scene())).await;
        let all = format!("{}collections/all/", root_of(&app.admin).await);
        let objects = pull(&app.admin, &format!("{all}objects/?limit=3")).await;
        let manifest = pull(&app.admin, &format!("{all}manifest/?limit=2")).await;
        assert_eq!(ids(&objects), ids(&manifest));
        let dates: Vec<&str> = manifest.iter().map(|one| text(one, "date_added")).collect();
        assert!(dates.is_sorted_by(|one, other| one < other), "{dates:?}");
        for (object, record) in objects.iter().zip(&manifest) {
            let time = ["modified", "created", "date_added"];
            let time = time.iter().find_map(|name| object[name].as_str());
            assert_eq!(
                text(record, "version"),
                time.unwrap_or(text(record, "date_added"))
            );
            assert_eq!(record["media_type"], "application/stix+json;version=2.1");
        }
        // A client that goes on by dates, as some do.
        let (mut after, mut found) = (String::new(), Vec::new());
        loop {
            let answer = ask(&app.admin, &format!("{all}objects/?limit=2{after}")).await;
            let last = answer.header("x-taxii-date-added-last").map(str::to_owned);
            let page = answer.expect(200).await;
            found.extend(page["objects"].as_array().cloned().unwrap_or_default());
            match last {
                Some(last) if page["more"] == true => after = format!("&added_after={last}"),
                _ => break,
            }
        }
        assert_eq!(ids(&found), ids(&objects));
        let last = dates.last().unwrap();
        let none = ask(&app.admin, &format!("{all}objects/?added_after={last}")).await;
        assert_eq!(none.expect(200).await, json!({}));
        app.stop().await;
    });
}

#[test]
fn a_request_names_types_ids_and_versions() {
    run(async {
        let app = TestApp::shared().await;
        let sent = scene();
        app.admin.ingest(json!(sent)).await;
        let all = format!("{}collections/all/", root_of(&app.admin).await);
        let (edge, malware, address) = (&sent[1], &sent[2], &sent[4]);
        let newer = version(malware, 2024, json!({"description": "Rewritten"}));
        app.admin.ingest(json!([newer])).await;
        let get = async |query: &str| received(&app.admin, &format!("{all}objects/{query}"), &sent).await;
        assert_eq!(
            ids(&get("?match[type]=tool,malware").await),
            [text(&sent[3], "id"), text(malware, "id")]
        );
        let of_ids = format!("?match[id]={},{}", text(edge, "id"), text(address, "id"));
        let of_ids = get(&of_ids).await;
        let of_ids: HashSet<&str> = ids(&of_ids).into_iter().collect();
        assert_eq!(of_ids, HashSet::from([text(edge, "id"), text(address, "id")]));
        assert!(get("?match[spec_version]=2.0").await.is_empty());
        assert_eq!(get("?match[spec_version]=2.1").await.len(), sent.len());
        let modified = |objects: &[Value]| -> Vec<String> {
            objects
                .iter()
                .map(|object| text(object, "modified").to_owned())
                .collect()
        };
        let (old, new) = (text(malware, "modified"), text(&newer, "modified"));
        let one = format!("{}/", text(malware, "id"));
        for (asked, want) in [
            ("", vec![new]),
            ("last", vec![new]),
            ("first", vec![old]),
            ("all", vec![old, new]),
            ("first,last", vec![old, new]),
            (old, vec![old]),
            ("2021-01-01T00:00:00Z", vec![]),
        ] {
            let query = if asked.is_empty() {
                String::new()
            } else {
                format!("match[version]={asked}")
            };
            let found = get(&format!("?match[type]=malware&{query}")).await;
            assert_eq!(modified(&found), want, "{asked}");
            let answer = ask(&app.admin, &format!("{all}objects/{one}?{query}")).await;
            // The object is there, if not in this version.
            let found = answer.expect(200).await;
            let found = found["objects"].as_array().cloned().unwrap_or_default();
            assert_eq!(modified(&found), want, "{asked}");
        }
        let versions = ask(&app.admin, &format!("{all}objects/{one}versions/")).await;
        assert_eq!(versions.expect(200).await["versions"], json!([old, new]));
        for bad in [
            "limit=0",
            "limit=x",
            "limit=1&limit=2",
            "next=x",
            "added_after=yesterday",
            "match[version]=newest",
            "match[type]=",
            "match[colour]=red",
            "colour=red",
        ] {
            let answer = ask(&app.admin, &format!("{all}objects/?{bad}")).await;
            let error = answer.expect(400).await;
            let name = bad.split('=').next().unwrap();
            assert!(text(&error, "description").starts_with(name), "{bad}: {error}");
        }
        for path in ["", "versions/"] {
            let absent = format!("{all}objects/{}/{path}", id("tool"));
            ask(&app.admin, &absent).await.expect(404).await;
        }
        let late = format!("{all}objects/{one}?added_after=2999-01-01T00:00:00Z");
        assert_eq!(ask(&app.admin, &late).await.expect(200).await, json!({}));
        // What has one version has it at its time only.
        let known = format!("{all}manifest/?match[version]=2011-01-01T00:00:00Z");
        assert_eq!(ask(&app.admin, &known).await.expect(200).await, json!({}));
        let manifest = ask(&app.admin, &format!("{all}manifest/"))
            .await
            .expect(200)
            .await;
        for record in manifest["objects"].as_array().unwrap() {
            let (id, version) = (text(record, "id"), text(record, "version"));
            let path = format!("{all}objects/{id}/?match[version]={version}");
            let found = ask(&app.admin, &path).await.expect(200).await;
            assert_eq!(found["objects"][0]["id"], id, "{record}: {found}");
        }
        app.stop().await;
    });
}

#[test]
fn a_change_adds_an_object_again_and_a_rejection_is_told() {
    run(async {
        let app = TestApp::shared().await;
        let sent = scene();
        app.admin.ingest(json!(sent)).await;
        let tool = &sent[3];
        let all = format!("{}collections/all/objects/", root_of(&app.admin).await);
        let mut after = String::new();
        let reader = app.api_key(&["read"]).await;
        let mut news = async |what: &str| -> Vec<Value> {
            let pages = pull_pages(&reader, &format!("{all}?{after}")).await;
            let last = pages.iter().filter_map(|page| page.last.clone()).next_back();
            if let Some(last) = last {
                after = format!("added_after={last}");
            }
            let objects: Vec<Value> = pages.into_iter().flat_map(|page| page.objects).collect();
            println!("{what}: {:?}", ids(&objects));
            objects
        };
        assert!(news("first").await.len() > sent.len());
        assert!(news("nothing").await.is_empty());
        let node = app.admin.node("Crane Hook", text(tool, "id")).await.unwrap();
        let path = format!("/api/nodes/{}", text(&node, "id"));
        let reject = json!({"status": "rejected", "reason": "not seen"});
        app.admin.patch(&path, &reject).await.expect(200).await;
        let told = news("rejected").await;
        let told = by_id(&told);
        let told = &told[text(tool, "id")];
        assert_eq!(told["revoked"], true);
        assert!(text(told, "modified") > text(tool, "modified"));
        let restore = json!({"status": "active", "reason": "seen"});
        app.admin.patch(&path, &restore).await.expect(200).await;
        let told = by_id(&news("restored").await);
        assert_ne!(told[text(tool, "id")]["revoked"], true, "{told:?}");
        assert!(
            told.contains_key(text(&sent[1], "id")),
            "its relationship comes back"
        );
        let rename = json!({"description": "A hook", "reason": "known"});
        app.admin.patch(&path, &rename).await.expect(200).await;
        let told = news("changed").await;
        assert_eq!(told.len(), 1);
        assert_eq!(told[0]["description"], "A hook");
        app.stop().await;
    });
}

#[test]
fn what_becomes_visible_is_added_for_those_who_see_it_then() {
    run(async {
        let app = TestApp::shared().await;
        let open = json!({"tlp_ceiling": "TLP:AMBER"});
        app.admin.settings(open.clone()).await;
        let marked =
            json!({"object_marking_refs": ["marking-definition--f88d31f6-486f-44da-b317-01333bde0b82"]});
        let tool = with(object("tool", "Hidden Winch"), marked);
        app.admin.ingest(json!([tool])).await;
        let node = app.admin.node("Hidden Winch", text(&tool, "id")).await.unwrap();
        app.admin.settings(json!({"tlp_ceiling": "TLP:GREEN"})).await;
        let root = root_of(&app.admin).await;
        let all = format!("{root}collections/all/objects/");
        let before = pull_pages(&app.admin, &all).await;
        let seen = before.iter().flat_map(|page| &page.objects);
        assert!(seen.into_iter().all(|object| object["id"] != tool["id"]));
        let last = before.last().unwrap().last.clone().unwrap();
        app.admin.settings(open).await;
        let path = format!("/api/nodes/{}", text(&node, "id"));
        let lower = json!({"tlp": "TLP:GREEN", "reason": "published"});
        app.admin.patch(&path, &lower).await.expect(200).await;
        app.admin.settings(json!({"tlp_ceiling": "TLP:GREEN"})).await;
        let after = pull(&app.admin, &format!("{all}?added_after={last}")).await;
        assert_eq!(ids(&after), [text(&tool, "id")]);
        let green = pull(
            &app.admin,
            &format!("{root}collections/tlp-green/objects/?match[type]=tool"),
        )
        .await;
        assert_eq!(ids(&green), [text(&tool, "id")]);
        let white = pull(
            &app.admin,
            &format!("{root}collections/tlp-white/objects/?match[type]=tool"),
        )
        .await;
        assert!(white.is_empty());
        app.stop().await;
    });
}

#[test]
fn a_client_that_pages_while_others_write_gets_each_object_once() {
    run(async {
        let app = TestApp::shared().await;
        let all = format!("{}collections/all/objects/", root_of(&app.admin).await);
        let writers = 16;
        let each = 6;
        let writing = (0..writers).map(|writer| {
            let admin = app.admin.clone();
            tokio::spawn(async move {
                let mut sent = Vec::new();
                for number in 0..each {
                    let one = object("tool", &format!("Pier {writer} {number}"));
                    let other = object("malware", &format!("Buoy {writer} {number}"));
                    let edge = relationship(&one, "uses", &other);
                    let objects = vec![one, other, edge];
                    sent.extend(ids(&objects).into_iter().map(str::to_owned));
                    loop {
                        let bundle =
                            json!({"bundle": {"type": "bundle", "id": id("bundle"), "objects": objects}});
                        let answer = admin.post("/api/ingest/stix", &bundle).await;
                        match answer.status() {
                            503 => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
                            status => break assert_eq!(status, 201),
                        }
                    }
                }
                sent
            })
        });
        let writing: Vec<_> = writing.collect();
        let (mut found, mut after) = (Vec::new(), String::new());
        let mut is_last = false;
        loop {
            let is_over = writing.iter().all(tokio::task::JoinHandle::is_finished);
            let pages = pull_pages(&app.admin, &format!("{all}?limit=7{after}")).await;
            for page in pages {
                if let Some(last) = &page.last {
                    after = format!("&added_after={last}");
                }
                found.extend(page.objects);
            }
            if is_last {
                break;
            }
            is_last = is_over;
        }
        let mut sent = HashSet::new();
        for writer in writing {
            sent.extend(writer.await.unwrap());
        }
        let found: Vec<&str> = ids(&found).into_iter().filter(|id| sent.contains(*id)).collect();
        let distinct: HashSet<&str> = found.iter().copied().collect();
        assert_eq!(found.len(), distinct.len(), "an object came twice");
        assert_eq!(distinct.len(), writers * each * 3, "an object is missing");
        app.stop().await;
    });
}

#[test]
fn what_may_not_leave_is_counted_and_given_once_it_may() {
    run(async {
        let app = TestApp::shared().await;
        let root = root_of(&app.admin).await;
        let all = format!("{root}collections/all/objects/?limit=1000");
        let marking = statement("Copyright 2024");
        let tool = with(
            object("tool", "Held Winch"),
            json!({"object_marking_refs": [marking["id"]]}),
        );
        let other = object("tool", "Free Winch");
        app.admin.ingest(json!([tool, other])).await;
        let page = pull_pages(&app.admin, &all).await.remove(0);
        let found: HashSet<&str> = ids(&page.objects).into_iter().collect();
        assert!(found.contains(text(&other, "id")) && !found.contains(text(&tool, "id")));
        assert_eq!(page.held_back, 1);
        app.admin.ingest(json!([marking])).await;
        let after = format!("{all}&added_after={}", page.last.unwrap());
        let news = pull_pages(&app.admin, &after).await.remove(0);
        assert_eq!(news.held_back, 0);
        assert_eq!(ids(&news.objects), [text(&marking, "id"), text(&tool, "id")]);
        let entry = app.admin.audited("taxii.objects").await.remove(0);
        assert_eq!(entry["metadata"]["objects"], 2, "{entry}");
        let viewer = app.user("viewer").await;
        assert_eq!(pull(&viewer, &all).await.len(), page.objects.len() + 2);
        app.stop().await;
    });
}

#[test]
fn what_may_leave_since_a_setting_or_a_feed_changed_is_added_then() {
    run(async {
        let app = TestApp::with(feeds::allowing(settings("mem://"))).await;
        let all = format!("{}collections/all/objects/?limit=1000", root_of(&app.admin).await);
        let feed = app
            .admin
            .feed_at(
                "http://127.0.0.1:9/objects/",
                json!({"redistribution_state": "internal_only"}),
            )
            .await;
        let of_feed = object("tool", "Leased Winch");
        let body = json!({"input_kind": "stix_bundle", "bundle": [of_feed], "feed_source_id": feed});
        let made = app.admin.post(feeds::BATCHES, &body).await.expect(201).await;
        app.admin.commit_all(text(&made["batch"], "id")).await;
        let amber = with(object("tool", "Amber Winch"), json!({"labels": ["TLP:AMBER"]}));
        app.admin.ingest(json!([amber])).await;
        app.admin.ingest(json!([object("tool", "Open Winch")])).await;
        app.admin.settings(json!({"tlp_ceiling": "TLP:GREEN"})).await;
        let pages = pull_pages(&app.admin, &all).await;
        assert_eq!(pages.iter().map(|page| page.held_back).sum::<u64>(), 1);
        let last = pages.last().unwrap().last.clone().unwrap();
        let later = format!("{all}&match[type]=tool&added_after={last}");
        assert!(pull(&app.admin, &later).await.is_empty());
        app.admin.settings(json!({"tlp_ceiling": "TLP:AMBER"})).await;
        let has = async |count: usize| {
            test_support::eventually(|| async {
                let found = pull(&app.admin, &later).await;
                if found.len() == count {
                    Ok(found)
                } else {
                    Err(found)
                }
            })
            .await
        };
        assert_eq!(ids(&has(1).await), [text(&amber, "id")]);
        let path = format!("{}/{feed}", feeds::FEEDS);
        let allowed = json!({"redistribution_state": "allowed"});
        app.admin.patch(&path, &allowed).await.expect(200).await;
        assert_eq!(ids(&has(2).await), [text(&amber, "id"), text(&of_feed, "id")]);
        app.stop().await;
    });
}
